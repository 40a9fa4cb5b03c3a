"""A heightfield and a triangle mesh: against brute force over all pairs of features, and against
two meshes."""

import resource

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import heightfield
from collidecli.scene.shape_config import ShapeConfig
from tests.support.mesh_pairs import crosses, deepest_vertex, mesh_distance, placed
from tests.support.meshes import Terrain, blob, box, grid, rough, smooth, torus
from tests.support.oracle import ROUNDING, check_contract, columns, rotation_of

FRAMES = 14
SIZES = [1e-3, 1.0, 1e3]
DEEP = 3.0
"""A base so far down that nothing is nearest to it: the solid is then as a mesh's in all ways."""
TERRAINS = {
    "rough": Terrain(rough(0).heights, 1.0, 0.8, DEEP),
    "smooth": Terrain(smooth(9, 11).heights, 1.0, 0.8, DEEP),
    "one cell": Terrain(rough(3, 2, 2).heights, 1.0, 0.8, DEEP),
}
MESHES = {
    "blob": blob(np.random.default_rng(0), 7, 9),
    "torus": torus(12, 7),
    "box": box(0.5, 0.4, 0.3),
    "bar": box(1.5, 0.1, 0.1),
    "open": grid(4, 2.0, lambda x, y: 0.2 * np.sin(5.0 * x) * np.cos(4.0 * y)),
}
SMALL = {name: (0.4 * vertices, faces) for name, (vertices, faces) in MESHES.items()}


def scene(
    terrain: Terrain,
    mesh: tuple[np.ndarray, np.ndarray],
    size: float = 1.0,
    as_mesh: bool = False,
    **options,
):
    builder = ModelBuilder()
    here = terrain.scaled(size)
    if as_mesh:
        builder.add_shape_mesh(builder.add_body(), *here.solid())
    else:
        builder.add_shape_heightfield(builder.add_body(), here.heights, here.hx, here.hy, here.base)
    builder.add_shape_mesh(builder.add_body(), size * mesh[0], mesh[1], **options)
    return builder.finalize()


def poses(seed: int, terrain: Terrain, count: int = FRAMES, rise: float = 0.9) -> np.ndarray:
    """float64[count, 1, 2, 7]: a terrain and a mesh in, around and above it, both turned at
    random."""
    rng = np.random.default_rng(seed)
    body_q = rng.normal(size=(count, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    local = rng.uniform(-1.0, 1.0, (count, 3)) * [1.25 * terrain.hx, 1.25 * terrain.hy, rise]
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + np.einsum(
        "fij,fj->fi", rotation_of(body_q[:, 0, 0]), local
    )
    return body_q


def resting(*place: float) -> np.ndarray:
    """float64[1, 1, 2, 7]: two bodies that are not turned, the second moved."""
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, 1, :3] = place
    return body_q


def in_terrain(body_q: np.ndarray, points: np.ndarray) -> np.ndarray:
    """World points in the frame of body 0."""
    return (points - body_q[0, :3]) @ rotation_of(body_q[:1])[0]


def deepest_in(terrain: Terrain, points: np.ndarray) -> float:
    """How deep the deepest of some points of the terrain's frame is, 0 where none is; its base does
    not count."""
    return max(
        (-terrain.signed_distance(point) for point in points if terrain.is_inside(point)),
        default=0.0,
    )


SQUARE = [
    (name, mesh, SIZES[(k + m) % 3])
    for k, name in enumerate(TERRAINS)
    for m, mesh in enumerate(MESHES)
]


@pytest.mark.share(18, 3)
@pytest.mark.parametrize(("name", "mesh", "size"), SQUARE)
def test_distance_and_depth(name, mesh, size):
    """Apart, the distance of the surfaces; overlapping, no less deep than the deepest vertex of
    either in the other."""
    terrain = TERRAINS[name]
    shape = SMALL[mesh]
    body_q = poses(1, terrain)
    moved = body_q.copy()
    moved[..., :3] *= size
    contacts = collidecli.collide(scene(terrain, shape, size), moved, gap=3.0 * size)
    vertices, faces = terrain.solid()
    kinds = set()
    for frame in range(FRAMES):
        cell = contacts.cell(frame)
        check_contract(cell, size)
        corners = [
            placed((vertices, faces), body_q[frame, 0, 0]),
            placed(shape, body_q[frame, 0, 1]),
        ]
        inside = deepest_in(
            terrain, np.unique(in_terrain(body_q[frame, 0], corners[1].reshape(-1, 3)), axis=0)
        )
        if mesh != "open":
            inside = max(inside, deepest_vertex(corners[0], corners[1]))
        found = cell.distance.min() / size
        if inside > 0.0 or crosses(*corners) or crosses(*corners[::-1]):
            kinds.add("overlaps")
            assert found < 0.0
            assert found <= -inside + ROUNDING
        else:
            kinds.add("apart")
            assert found == pytest.approx(mesh_distance(*corners), abs=2.0 * ROUNDING)
    assert kinds == {"apart", "overlaps"}


def test_every_vertex_inside_leaves_as_spheres_do():
    """Deep under the surface too: by the exact way from the vertex to surface and walls; and its
    number is right."""
    terrain = TERRAINS["rough"]
    (vertices, faces) = SMALL["box"]
    body_q = poses(3, terrain, rise=2.5)
    model = scene(terrain, (vertices, faces))
    contacts = collidecli.collide(model, body_q, gap=0.01)
    seen = 0
    for frame in range(FRAMES):
        cell = contacts.cell(frame)
        turn = rotation_of(body_q[frame, 0])[1]
        points = in_terrain(body_q[frame, 0], vertices @ turn.T + body_q[frame, 0, 1, :3])
        others = cell.distance > cell.distance.min(initial=0.0)
        columns_of = cell.distance[others], cell.feature1[others].tolist(), cell.point1[others]
        for distance, feature, where in zip(*columns_of, strict=True):
            # The deepest contact has the depth of its region.
            if feature % 3 == 0 and terrain.is_inside(points[feature // 3]):
                point = points[feature // 3]
                np.testing.assert_allclose(in_terrain(body_q[frame, 0], where), point, atol=1e-6)
                assert distance == pytest.approx(terrain.signed_distance(point), abs=1e-6)
                seen += 1
        assert cell.distance.min(initial=0.0) <= -deepest_in(terrain, points) + ROUNDING
    assert seen > 8


@pytest.mark.parametrize("size", SIZES)
def test_what_is_wholly_buried_is_lifted(size):
    terrain = TERRAINS["smooth"]
    model = scene(terrain, box(0.05, 0.1, 0.05), size)
    for place in ((0.1, 0.05, -0.6), (-0.2, 0.1, -0.3), (0.9, 0.0, -1.5)):
        body_q = resting(*(size * np.array(place)))
        for gap in (0.0, 0.1 * size):
            cell = collidecli.collide(model, body_q, gap=gap).cell(0)
            corners = np.unique(
                placed(box(0.05, 0.1, 0.05), np.array([*place, 0, 0, 0, 1.0])).reshape(-1, 3),
                axis=0,
            )
            deepest = size * deepest_in(terrain, corners)
            assert deepest - ROUNDING * size <= -cell.distance.min() <= 1.05 * deepest
            moved = (
                corners * size
                - (cell.distance.min() - 1e-6 * size) * cell.normal[np.argmin(cell.distance)]
            )
            assert deepest_in(terrain.scaled(size), moved) <= 2e-6 * size
            assert cell.normal[np.argmin(cell.distance)] @ [0.0, 0.0, 1.0] > -0.1


@pytest.mark.parametrize(
    ("level", "scale", "cells"), [(0, 1, 8), (16, 1, 8), (-16, 1, 8), (1, 1 / 256, 8), (0, 1, 72)]
)
def test_flat_ground_is_the_same_at_any_level_or_scale(level, scale, cells):
    """Far above and below the frame's origin, and in steps of 1/256: a box on it has its corners,
    and no edge more."""
    builder = ModelBuilder()
    heights = np.full((cells + 1, cells + 1), level / scale, np.float32)
    builder.add_shape_heightfield(-1, heightfield(heights, 1.0, 1.0, 0.5, "the test", scale))
    builder.add_shape_mesh(builder.add_body(), *box(0.2, 0.3, 0.1))
    for height in (1e-3, 0.0, -1e-3, -0.05):
        place = np.array([0.013, 0.007, level + 0.1 + height])
        cell = collidecli.collide(builder.finalize(), resting(*place)[:, :, 1:], gap=0.01).cell(0)
        np.testing.assert_allclose(cell.distance, height, atol=1e-8)
        np.testing.assert_allclose(np.abs(cell.point1 - place), [[0.2, 0.3, 0.1]] * 4, atol=1e-6)
        np.testing.assert_allclose(cell.normal, np.tile([0.0, 0.0, 1.0], (4, 1)), atol=1e-9)


def test_numbers_are_those_of_the_grid():
    """A peak under a box is vertex v = row * columns + col, 8 v; its corners stand on triangles of
    their cells."""
    heights = np.zeros((5, 6), np.float32)
    heights[2, 3] = 0.2
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights, 5.0, 4.0, 0.5)
    builder.add_shape_mesh(builder.add_body(), *box(0.4, 0.4, 0.1))
    cell = collidecli.collide(builder.finalize(), resting(1.1, 0.1, 0.31)[:, :, 1:], gap=0.05).cell(
        0
    )
    assert cell.distance.min() == pytest.approx(0.01, abs=1e-7)
    assert cell.feature0[np.argmin(cell.distance)] == 8 * (2 * 6 + 3)
    far = collidecli.collide(
        builder.finalize(), resting(-4.0, -3.3, 0.11)[:, :, 1:], gap=0.05
    ).cell(0)
    assert sorted(set(far.feature0.tolist())) == [4, 5]


def flat(base: float) -> Terrain:
    return Terrain(np.zeros((6, 6), np.float32), 1.0, 1.0, base)


X, Y, Z = np.eye(3)
BLOCK = box(0.2, 0.2, 0.2)
SQUARE_SHEET = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
UPWARDS = np.array([[0, 1, 2], [0, 2, 3]])
DOWNWARDS = np.array([[0, 2, 1], [0, 3, 2]])
PEAK = Terrain(np.pad([[0.3]], 2).astype(np.float32), 1.0, 1.0, 3.0)
EXITS = [
    # Beside, below, and with its middle under the base: the nearest of all; a middle above that is
    # lifted.
    (flat(0.4), BLOCK, (1.15, 0.3, -0.1), -0.05, X),
    (flat(0.4), BLOCK, (1.25, 0.3, -0.1), 0.05, X),
    (flat(0.4), BLOCK, (0.1, -1.17, -0.15), -0.03, -Y),
    (flat(0.4), BLOCK, (0.1, 0.2, -0.65), 0.05, -Z),
    (flat(0.4), BLOCK, (0.1, 0.2, -0.55), -0.05, -Z),
    (flat(0.4), BLOCK, (0.1, 0.2, -0.41), -0.19, -Z),
    (flat(0.4), BLOCK, (0.1, 0.2, -0.19), -0.39, Z),
    (flat(0.4), BLOCK, (0.1, 0.2, 0.15), -0.05, Z),
    # A column through thin ground: no vertex is inside, and it is lifted until its foot is out.
    (flat(0.1), box(0.1, 0.1, 0.5), (0.03, 0.02, 0.3), -0.2, Z),
    # A sheet on the ground, half in it and wholly under it, wherever the ground's own middle is.
    *(
        (flat(2.0), (0.3 * SQUARE_SHEET, DOWNWARDS), (0.31, 0.22, height), height, Z)
        for height in (0.02, -0.05, -0.4)
    ),
    # A hill through a sheet, none of whose vertices is in the ground: the peak is behind it,
    # however it is turned.
    *(
        (PEAK, (0.8 * SQUARE_SHEET, faces), (0.05, 0.1, 0.2), -0.1, Z)
        for faces in (UPWARDS, DOWNWARDS)
    ),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("terrain", "mesh", "place", "distance", "normal"), EXITS)
@pytest.mark.parametrize("two_sided", [True, False])
def test_by_which_side_a_mesh_leaves(terrain, mesh, place, distance, normal, two_sided):
    if not two_sided and (terrain is PEAK or len(mesh[1]) > 2):
        return
    cell = collidecli.collide(
        scene(terrain, mesh, two_sided=two_sided), resting(*place), gap=0.1
    ).cell(0)
    deepest = int(np.argmin(cell.distance))
    assert cell.distance[deepest] == pytest.approx(distance, abs=1e-6)
    np.testing.assert_allclose(cell.normal[deepest], normal, atol=1e-9)


def hook() -> tuple[np.ndarray, np.ndarray]:
    """Three boxes: an upright one beside the ground, an arm above it and a longer one below."""
    parts = [
        ((1.3, 0, 0), (0.1, 0.1, 1.0)),
        ((0.8, 0, 0.9), (0.4, 0.1, 0.1)),
        ((0.7, 0, -0.9), (0.5, 0.1, 0.1)),
    ]
    vertices = [np.array(middle) + box(*half)[0] for middle, half in parts]
    return np.concatenate(vertices), np.concatenate(
        [box(*half)[1] + 8 * k for k, (_, half) in enumerate(parts)]
    )


@pytest.mark.filterwarnings("ignore:shape 1. 3 overlapping bodies are united")
def test_a_hook_around_the_border_is_as_far_as_it_is():
    """Its middle is above the base, and what is nearest to it below."""
    terrain = Terrain(np.zeros((6, 6), np.float32), 1.0, 1.0, 0.6)
    model = scene(terrain, hook())
    (vertices, faces) = hook()
    center = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    assert center[2] > terrain.bottom
    for lift in (0.1, 0.15, -0.1):
        cell = collidecli.collide(model, resting(0.0, 0.0, lift), gap=0.4).cell(0)
        distance = mesh_distance(
            placed(terrain.solid(), resting(0, 0, 0)[0, 0, 0]), vertices[faces] + [0.0, 0.0, lift]
        )
        assert cell.distance.min() == pytest.approx(distance, abs=1e-7)


def test_a_large_terrain_costs_what_the_mesh_is_over():
    """4096 by 4096 heights: 64 MiB, of which no mesh is made."""
    line = np.arange(4096, dtype=np.float32)
    heights = (np.sin(0.05 * line)[None, :] * np.cos(0.04 * line)[:, None]).astype(np.float32)
    vertices, faces = blob(np.random.default_rng(3), 12, 16)
    mesh = (3.0 * vertices, faces)
    body_q = resting(1000.25, -700.5, 0.5)
    body_q[0, 0, 0, :2] = 999.0, -701.0
    patch = Terrain(heights[1332:1362, 3032:3062], 14.5, 14.5, 10.0)
    near = collidecli.collide(scene(patch, mesh), body_q, gap=0.1).cell(0)
    body_q[0, 0, 0, :2] = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = collidecli.collide(
        scene(Terrain(heights, 2047.5, 2047.5, 10.0), mesh), body_q, gap=0.1
    ).cell(0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024
    assert len(near.distance) > 20
    order, order_near = (np.lexsort(np.round(cell.point0, 3).T) for cell in (found, near))
    np.testing.assert_allclose(found.distance[order], near.distance[order_near], atol=1e-6)
    np.testing.assert_allclose(found.point0[order], near.point0[order_near], atol=1e-5)


def test_signed_distance_fields_do_not_matter():
    """A heightfield meets the surface itself."""
    terrain = TERRAINS["rough"]
    body_q = poses(4, TERRAINS["rough"], 6)
    plain = collidecli.collide(scene(terrain, SMALL["blob"]), body_q, gap=0.1)
    cfg = ShapeConfig(sdf_max_resolution=16)
    field = collidecli.collide(
        scene(terrain, SMALL["blob"], cfg=cfg), body_q, gap=0.1, cache_limit=0
    )
    assert len(plain.distance) > 20
    assert columns(plain) == columns(field)
