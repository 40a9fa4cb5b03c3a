"""Heightfields on planes and each other: against brute force over triangles, and the closed mesh of the solid."""

import numpy as np
import pytest
import warp as wp

import collidecli
from collidecli.engine.geometry.heightfields import upload_heightfields
from collidecli.engine.pipeline import find_device
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import heightfield, solid_features, solid_mesh
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh
from tests.support.mesh_pairs import crosses, mesh_distance, placed
from tests.support.meshes import Terrain, rough, smooth
from tests.support.oracle import ROUNDING, check_contract, rotation_of
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
        here, body = terrain.scaled(size), builder.add_body()
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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SOLID_TERRAINS)
def test_the_vertices_of_a_terrain_on_a_plane(name, size):
    """Every vertex of the solid below the gap has one contact, with its distance and its number."""
    terrain = SOLID_TERRAINS[name].scaled(size)
    body_q = poses_of_solids(1, size)
    found = contacts(scene_of_solids(None, SOLID_TERRAINS[name], size), body_q)
    vertices, border = terrain.solid()[0][:-1], terrain.border()
    names = np.concatenate([8 * np.arange(terrain.heights.size), 8 * (terrain.heights.size + np.arange(len(border)))])
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
            set(names[(height < 0.2 * size) & ~near]) <= set(cell.feature1.tolist()) <= set(names[height < 0.3 * size])
        )
        assert set(cell.feature0.tolist()) <= {-1}
        of = {int(feature): index for index, feature in enumerate(names)}
        rows = [of[int(feature)] for feature in cell.feature1]
        np.testing.assert_allclose(cell.distance, height[rows], atol=10 * ROUNDING * size)
        np.testing.assert_allclose(cell.point1, world[rows], atol=10 * ROUNDING * size)
        sides += len(rows) > 0
    assert sides > SOLID_FRAMES // 3


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("first", "second"), [("rough", "smooth"), ("flat", "one row"), ("one cell", "one column")])
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


def test_touching_walls_and_a_terrain_in_another():
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
def test_the_mesh_of_a_solid_is_closed_and_has_its_names(name):
    """Vertices, edges and triangles of the engine's triangles, but for those within the base."""
    terrain = SOLID_TERRAINS[name]
    field = heightfield(terrain.heights, terrain.hx, terrain.hy, terrain.base, "here")
    mesh, device = solid_mesh(field), find_device("cpu")
    plain = TriangleMesh(mesh.vertex, mesh.center, mesh.face)
    assert plain.is_closed
    assert plain.is_manifold
    assert not plain.needs_winding
    # The volume of the prisms under all triangles of the surface.
    corners = terrain.vertices()[terrain.faces()]
    area = terrain.hx * terrain.hy * 4.0 / len(corners)
    assert mesh.volume == pytest.approx(float((corners[..., 2].mean(axis=1) - terrain.bottom).sum() * area), rel=1e-6)
    names = solid_features(field, mesh)
    rows, cols = terrain.heights.shape
    cells = 2 * (np.arange(rows - 1)[:, None] * cols + np.arange(cols - 1)).reshape(-1)
    numbers = np.concatenate([cells, cells + 1, 2 * rows * cols + np.arange(2 * field.perimeter)]).astype(np.int32)
    corner = wp.zeros((len(numbers), 3), dtype=wp.vec3d, device=device)
    feature = wp.zeros((len(numbers), 7), dtype=wp.int32, device=device)
    fields = upload_heightfields([field], device)
    wp.launch(_triangles, len(numbers), [fields, 0, wp.array(numbers, dtype=wp.int32), corner, feature], device=device)
    meant = {}
    for points, here in zip(corner.numpy(), feature.numpy(), strict=True):
        for k in range(3):
            meant[points[k].tobytes()] = here[k]
            meant[np.sort([points[k].tobytes(), points[(k + 1) % 3].tobytes()]).tobytes()] = here[3 + k]
        meant[np.sort([point.tobytes() for point in points]).tobytes()] = here[6]
    of_base = 8 * (rows * cols + field.perimeter)
    for number, (face, edge) in enumerate(zip(mesh.face, mesh.face_edge, strict=True)):
        bits = [mesh.vertex[v].tobytes() for v in face]
        for k in range(3):
            assert names[3 * face[k]] == meant[bits[k]]
            side = np.sort([bits[k], bits[(k + 1) % 3]]).tobytes()
            assert names[3 * edge[k] + 1] == meant.get(side, of_base + 6)
        assert names[3 * number + 2] == meant.get(np.sort(bits).tobytes(), of_base + 4)
