"""Heightfields below convex shapes, on planes and each other: against brute force over all
triangles."""

import numpy as np
import pytest
import warp as wp

import collidecli
from collidecli.engine.geometry.heightfields import upload_heightfields
from collidecli.engine.pipeline_build import find_device
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import heightfield
from collidecli.scene.heightfield_solid import solid_features, solid_mesh
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh
from tests.support.mesh_pairs import crosses, mesh_distance, placed
from tests.support.meshes import Terrain, hull_mesh, rough, smooth
from tests.support.oracle import ROUNDING, check_contract, directions_on_sphere, rotation_of, unit
from tests.support.pair_runner import SHAPES
from tests.support.poses import FEATURES, facing_poses, sample_feature
from tests.support.supports import support_height, support_point
from tests.unit.engine.test_geometry import _triangles

SIZES = [1e-3, 1.0, 1e3]
SOLID_FRAMES = 24
SOLID_TERRAINS = {
    "rough": rough(0, 5, 7),
    "smooth": smooth(8, 9),
    "one cell": rough(3, 2, 2),
    "one row": rough(4, 2, 6),
    "one column": rough(5, 6, 2),
    "flat": Terrain(np.zeros((4, 3), np.float32), 1.0, 0.8, 0.3),
}


def scene_of_solids(first: Terrain | None, second: Terrain, size: float):
    """A plane for None, else a heightfield; and a heightfield."""
    builder = ModelBuilder()
    cfg = ShapeConfig(gap=0.2 * size)
    if first is None:
        builder.add_shape(builder.add_body(), ShapeType.PLANE, cfg=cfg)
    for terrain in [second] if first is None else [first, second]:
        here = terrain.scaled(size)
        body = builder.add_body()
        builder.add_shape_heightfield(body, here.heights, here.hx, here.hy, here.base, cfg=cfg)
    return builder.finalize()


def poses_of_solids(seed: int, size: float, spread: float = 1.2) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: turned at random, and by none and by half a turn."""
    rng = np.random.default_rng(seed)
    body_q = rng.normal(size=(SOLID_FRAMES, 1, 2, 7))
    body_q[0, 0, :, 3:] = 0.0, 0.0, 0.0, 1.0
    body_q[1, 0, :, 3:] = [(0.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0)]
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    body_q[..., :3] = rng.uniform(-1.0, 1.0, (SOLID_FRAMES, 1, 2, 3)) * spread * size
    body_q[:2, 0, :, :2] = 0.0
    return body_q


def contacts(model, body_q, **options):
    return collidecli.collide(model, body_q, device="cpu", cache_limit=0, **options)


CONVEX_FRAMES = 30


@pytest.mark.share(8)
@pytest.mark.parametrize("kind", list(SHAPES)[1:], ids=lambda kind: kind.label)
@pytest.mark.parametrize(
    "name", ["rough", pytest.param("one cell", marks=pytest.mark.slow), "one row"]
)
def test_convex_shapes_are_as_apart_as_the_triangles_are(kind, name):
    """Over triangles but the base's. The hull of support points is within the shape, at most
    `short` smaller."""
    terrain = SOLID_TERRAINS[name]
    size = np.array(SHAPES[kind]) * [0.15, 0.6, 0.4]
    gap = 0.05
    rng = np.random.default_rng([int(kind), list(SOLID_TERRAINS).index(name)])
    dense = directions_on_sphere(4000)
    points = support_point(kind, size[None], directions_on_sphere(80)[None])[0]
    short = (
        1.1
        * (support_height(kind, size[None], dense[None])[0] - (dense @ points.T).max(axis=1)).max()
    )
    vertices, faces = terrain.solid()
    corners = vertices[faces]
    face = rng.integers(len(faces) - len(terrain.border()), size=CONVEX_FRAMES)
    foot = np.einsum("fk,fkx->fx", rng.dirichlet([0.4] * 3, CONVEX_FRAMES), corners[face])
    normal = unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))[face]
    normal = unit(normal + 0.3 * rng.normal(size=normal.shape))
    own = [
        sample_feature(kind, one, size[None], rng)
        for one in rng.choice(FEATURES[kind], CONVEX_FRAMES)
    ]
    own_point, own_normal = (
        np.concatenate([getattr(one, part) for one in own]) for part in ("point", "normal")
    )
    apart = rng.uniform(-0.02, 0.06, CONVEX_FRAMES)
    pose = facing_poses(
        foot, normal, own_point, own_normal, rng.uniform(0.0, 6.3, CONVEX_FRAMES), apart
    )
    distance = np.array([mesh_distance(placed(hull_mesh(points), here), corners) for here in pose])
    inside = terrain.is_inside(pose[:, :3])
    for scale in SIZES:
        builder = ModelBuilder()
        scaled = terrain.scaled(scale)
        builder.add_shape_heightfield(-1, scaled.heights, scaled.hx, scaled.hy, scaled.base)
        builder.add_shape(builder.add_body(), kind, scale * size[: SIZE_COUNT[kind]])
        found = contacts(
            builder.finalize(), pose[:, None, None] * ([scale] * 3 + [1.0] * 4), gap=gap * scale
        )
        for frame, expected in enumerate(distance):
            check_contract(found.cell(frame, 0), scale)
            least = found.cell(frame, 0).distance.min(initial=np.inf) / scale
            if expected == 0.0 or inside[frame]:
                assert least < 0.0
            elif expected < gap:
                assert least <= expected + 10 * ROUNDING
            if expected > short and not inside[frame]:
                assert least >= min(expected - short, gap) - 10 * ROUNDING
    assert np.sum((distance > 0.0) & (distance < gap)) > 5


@pytest.mark.parametrize("size", SIZES)
def test_a_capsule_across_a_ridge_is_over_its_edge(size):
    """Its ends, and those of the edge, are far from both."""
    roof = Terrain(np.float32([[0.0, 0.5, 0.0]] * 2), 1.0, 0.8, 0.3).scaled(size)
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, roof.heights, roof.hx, roof.hy, roof.base)
    builder.add_shape_capsule(builder.add_body(), radius=0.1 * size, half_height=0.7 * size)
    pose = [0.05 * size, 0.1 * size, 0.63 * size, 0.0, 0.5**0.5, 0.0, 0.5**0.5]
    found = contacts(builder.finalize(), np.array(pose)[None, None, None], gap=0.05 * size)
    np.testing.assert_allclose(found.distance, 0.03 * size, atol=ROUNDING * size)
    np.testing.assert_allclose(found.point0, [[0.0, 0.1 * size, 0.5 * size]], atol=ROUNDING * size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SOLID_TERRAINS)
def test_the_vertices_of_a_terrain_on_a_plane(name, size):
    """Every vertex of the solid below the gap has one contact, with its distance and its number."""
    terrain = SOLID_TERRAINS[name].scaled(size)
    body_q = poses_of_solids(1, size)
    found = contacts(scene_of_solids(None, SOLID_TERRAINS[name], size), body_q)
    vertices = terrain.solid()[0][:-1]
    border = terrain.border()
    names = np.concatenate(
        [8 * np.arange(terrain.heights.size), 8 * (terrain.heights.size + np.arange(len(border)))]
    )
    sides = 0
    for frame in range(SOLID_FRAMES):
        plane, body = body_q[frame, 0]
        world = vertices @ rotation_of(body[None])[0].T + body[:3]
        up = rotation_of(plane[None])[0][:, 2]
        height = (world - plane[:3]) @ up
        near = np.abs(height - 0.2 * size) < 1e-6 * size
        cell = found.cell(frame, 0)
        check_contract(cell, size)
        assert (
            set(names[(height < 0.2 * size) & ~near])
            <= set(cell.feature1.tolist())
            <= set(names[height < 0.3 * size])
        )
        assert set(cell.feature0.tolist()) <= {-1}
        of = {int(feature): index for index, feature in enumerate(names)}
        rows = [of[int(feature)] for feature in cell.feature1]
        np.testing.assert_allclose(cell.distance, height[rows], atol=10 * ROUNDING * size)
        np.testing.assert_allclose(cell.point1, world[rows], atol=10 * ROUNDING * size)
        sides += len(rows) > 0
    assert sides > SOLID_FRAMES // 3


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("first", "second"), [("rough", "smooth"), ("flat", "one row"), ("one cell", "one column")]
)
def test_two_terrains_are_as_apart_as_their_surfaces(first, second, size):
    body_q = poses_of_solids(2, size)
    found = contacts(scene_of_solids(SOLID_TERRAINS[first], SOLID_TERRAINS[second], size), body_q)
    apart = 0
    for frame in range(SOLID_FRAMES):
        cell = found.cell(frame, 0)
        check_contract(cell, size)
        a, b = (
            placed(SOLID_TERRAINS[name].scaled(size).solid(), body_q[frame, 0, k])
            for k, name in enumerate((first, second))
        )
        least = mesh_distance(a, b)
        if crosses(a, b) or crosses(b, a):
            assert cell.distance.min() < 0.0
        elif least < 0.2 * size * (1.0 - 1e-6):
            assert cell.distance.min() == pytest.approx(least, abs=10 * ROUNDING * size)
            apart += 1
        elif least > 0.2 * size * (1.0 + 1e-6) and len(cell.distance):
            assert cell.distance.min() < 0.0, "one is inside the other"
    assert apart > 1


def test_a_terrain_beside_or_in_another():
    """Side by side without a gap, stacked, and one in the other."""
    flat = SOLID_TERRAINS["flat"]
    body_q = np.zeros((3, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, 1, 0] = 2.0 * flat.hx
    body_q[1, 0, 1, 2] = 0.3
    body_q[2, 0, 1, :3] = 0.01, 0.02, 0.1
    found = contacts(scene_of_solids(flat, flat, 1.0), body_q)
    for frame, axis in ((0, 0), (1, 2)):
        cell = found.cell(frame, 0)
        assert cell.distance.min() == pytest.approx(0.0, abs=1e-7)
        assert (cell.normal[:, axis] > 0.5).all()
    cell = found.cell(2, 0)
    assert cell.distance.min() == pytest.approx(-0.2, abs=1e-6), "the least translation is up"


@pytest.mark.parametrize("name", SOLID_TERRAINS)
def test_the_mesh_of_a_solid_is_closed(name):
    terrain = SOLID_TERRAINS[name]
    field = heightfield(terrain.heights, terrain.hx, terrain.hy, terrain.base, "here")
    mesh = solid_mesh(field)
    plain = TriangleMesh(mesh.vertex, mesh.center, mesh.face)
    assert plain.is_closed
    assert plain.is_manifold
    assert not plain.needs_winding
    # The volume of the prisms under all triangles of the surface.
    corners = terrain.vertices()[terrain.faces()]
    area = terrain.hx * terrain.hy * 4.0 / len(corners)
    assert mesh.volume == pytest.approx(
        float((corners[..., 2].mean(axis=1) - terrain.bottom).sum() * area), rel=1e-6
    )


@pytest.mark.parametrize("name", SOLID_TERRAINS)
def test_the_mesh_of_a_solid_has_the_names_of_its_triangles(name):
    """Vertices, edges and triangles of the engine's triangles, but for those within the base."""
    terrain = SOLID_TERRAINS[name]
    field = heightfield(terrain.heights, terrain.hx, terrain.hy, terrain.base, "here")
    mesh = solid_mesh(field)
    device = find_device("cpu")
    names = solid_features(field, mesh)
    rows, cols = terrain.heights.shape
    cells = 2 * (np.arange(rows - 1)[:, None] * cols + np.arange(cols - 1)).reshape(-1)
    numbers = np.concatenate(
        [cells, cells + 1, 2 * rows * cols + np.arange(2 * field.perimeter)]
    ).astype(np.int32)
    corner = wp.zeros((len(numbers), 3), dtype=wp.vec3d, device=device)
    feature = wp.zeros((len(numbers), 7), dtype=wp.int32, device=device)
    fields = upload_heightfields([field], device)
    wp.launch(
        _triangles,
        len(numbers),
        [fields, 0, wp.array(numbers, dtype=wp.int32), corner, feature],
        device=device,
    )
    meant = {}
    for points, here in zip(corner.numpy(), feature.numpy(), strict=True):
        for k in range(3):
            meant[points[k].tobytes()] = here[k]
            meant[np.sort([points[k].tobytes(), points[(k + 1) % 3].tobytes()]).tobytes()] = here[
                3 + k
            ]
        meant[np.sort([point.tobytes() for point in points]).tobytes()] = here[6]
    of_base = 8 * (rows * cols + field.perimeter)
    for number, (face, edge) in enumerate(zip(mesh.face, mesh.face_edge, strict=True)):
        bits = [mesh.vertex[v].tobytes() for v in face]
        for k in range(3):
            assert names[3 * face[k]] == meant[bits[k]]
            side = np.sort([bits[k], bits[(k + 1) % 3]]).tobytes()
            assert names[3 * edge[k] + 1] == meant.get(side, of_base + 6)
        assert names[3 * number + 2] == meant.get(np.sort(bits).tobytes(), of_base + 4)
