"""Triangle meshes, their repair, polygons, heightfields."""

from collections import Counter

import numpy as np
import pytest

import collidecli
from collidecli.engine.geometry.heightfields import FIRST_LEVEL, pyramid
from collidecli.engine.geometry.mesh_tree import tree_of_triangles
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import heightfield
from collidecli.scene.mesh_crossings import crossed_triangles, winding_at
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from collidecli.scene.triangulation import CORNER_LIMIT, area_vectors, triangulated
from tests.support.meshes import blob, box, grid, joined, knot, torus, turned, windings
from tests.unit.test_docs import blocks, page

TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
OUTWARD = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
Mesh = tuple[np.ndarray, np.ndarray]
SIZES = (1e-3, 1.0, 1e3)
BOX = box(1.0, 1.0, 1.0)
SMALL = box(0.5, 0.5, 0.5)
CORNER = box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85))
POKING = joined(BOX, CORNER)
"""A 2 m box, and a small one that pokes out of a corner of it."""


def test_a_mesh_that_lacks_a_face_is_open():
    assert not triangle_mesh(TETRAHEDRON, OUTWARD[:3], "").is_closed


def test_equal_vertices_of_a_soup_are_one():
    # A soup of triangles, each with corners of its own, is the surface that they make.
    soup = triangle_mesh(TETRAHEDRON[OUTWARD].reshape(-1, 3), np.arange(12).reshape(4, 3), "")
    assert (len(soup.vertex), soup.is_closed, soup.edge_count) == (4, True, 6)
    np.testing.assert_allclose(
        soup.vertex[soup.face] + soup.center, TETRAHEDRON[OUTWARD], atol=1e-15
    )


def test_the_box_of_a_mesh_is_that_of_its_surface():
    """A vertex that no face uses is none of it."""
    mesh = triangle_mesh(np.concatenate([TETRAHEDRON, [[9.0, 9.0, 9.0]]]), OUTWARD, "")
    np.testing.assert_allclose([mesh.half_extents, mesh.center], 0.5)


def builder_of_repaired_meshes() -> ModelBuilder:
    """Also a test of what is said of the repairs."""
    builder = ModelBuilder()
    with pytest.warns(UserWarning, match="shape 'thing': 2 triangles without area are left out"):
        builder.add_shape_mesh(
            -1, TETRAHEDRON, np.array([*OUTWARD, [1, 1, 2], [0, 1, 0]]), key="thing"
        )
    with pytest.warns(
        UserWarning,
        match="shape 'part': 1 duplicate triangle is left out; 2 overlapping bodies are",
    ):
        builder.add_shape_mesh(
            -1, POKING[0], np.concatenate([POKING[1], POKING[1][:1]]), key="part"
        )
    return builder


def test_repairs_are_said():
    model = builder_of_repaired_meshes().finalize()
    assert (len(model.meshes[0].face), ShapeType(model.shapes.type[0]).label) == (4, "mesh")


def test_equal_meshes_are_stored_once():
    builder = builder_of_repaired_meshes()
    for scale in (1.0, 2.0, 1.0):
        builder.add_shape_mesh(-1, scale * TETRAHEDRON, OUTWARD)
    model = builder.finalize()
    assert model.shapes.mesh.tolist() == [0, 1, 2, 3, 2]


@pytest.mark.parametrize(
    ("vertices", "faces", "said"),
    [
        (TETRAHEDRON[:, :2], OUTWARD, "vertices of shape"),
        (TETRAHEDRON, OUTWARD[:, :2], "triangles of type"),
        (TETRAHEDRON, OUTWARD + 0.5, "triangles of type"),
        (TETRAHEDRON, OUTWARD + 1, "has vertex 4 of 4"),
        (TETRAHEDRON, OUTWARD - 1, "has vertex -1 of 4"),
        (TETRAHEDRON * np.nan, OUTWARD, "not finite"),
        (TETRAHEDRON * 1e10, OUTWARD, "beyond"),
        (TETRAHEDRON * 0.0, OUTWARD, "no triangle of the mesh has an area"),
    ],
)
def test_what_is_no_mesh_is_refused(vertices, faces, said):
    with pytest.raises(InputError, match=said):
        ModelBuilder().add_shape_mesh(-1, vertices, faces)


def test_an_open_mesh_may_have_a_front():
    """Closed meshes have one whatever is said of them."""
    for two_sided in (True, False):
        assert triangle_mesh(TETRAHEDRON, OUTWARD, "", two_sided).has_front
        assert triangle_mesh(*grid(3), "", two_sided).has_front == (not two_sided)
    builder = ModelBuilder()
    for two_sided in (True, False, True):
        builder.add_shape_mesh(-1, *grid(3), two_sided=two_sided)
        builder.add_shape_mesh(-1, TETRAHEDRON, OUTWARD, two_sided=two_sided)
    assert builder.finalize().shapes.mesh.tolist() == [0, 1, 2, 1, 0, 1]


def test_the_tree_holds_every_triangle_in_its_boxes():
    mesh = triangle_mesh(*blob(np.random.default_rng(1)), "")
    tree = tree_of_triangles(mesh.vertex[mesh.face], float(mesh.half_extents.max()))
    assert sorted(tree.face[tree.face >= 0].tolist()) == list(range(len(mesh.face)))
    for node, (end, face) in enumerate(zip(tree.skip.tolist(), tree.face.tolist(), strict=True)):
        corners = mesh.vertex[mesh.face[tree.face[node:end][tree.face[node:end] >= 0]]].reshape(
            -1, 3
        )
        assert np.all(corners >= tree.lower[node])
        assert np.all(corners <= tree.upper[node])
        assert (face >= 0) == (end == node + 1)


def with_faces(mesh: Mesh, more: np.ndarray) -> Mesh:
    return mesh[0], np.concatenate([mesh[1], more])


def fin() -> Mesh:
    """A box and one triangle that stands on its edge between vertices 6 and 7."""
    return np.concatenate([BOX[0], [[1.5, 1.5, 0.0]]]), np.concatenate([BOX[1], [[6, 7, 8]]])


def one_over() -> Mesh:
    faces = BOX[1].copy()
    faces[3] = faces[3, ::-1]
    return BOX[0], faces


REPAIRED = {
    "duplicate triangle": (with_faces(BOX, BOX[1][2:3]), {"duplicates": 1}, 8.0),
    "duplicate from another corner": (
        with_faces(BOX, np.roll(BOX[1][2:3], 1, axis=1)),
        {"duplicates": 1},
        8.0,
    ),
    "every triangle twice": (with_faces(BOX, BOX[1]), {"duplicates": 12}, 8.0),
    "opposite duplicate": (with_faces(BOX, BOX[1][2:3, ::-1]), {"opposite": 1}, 8.0),
    "fin": (fin(), {"fins": 1}, 8.0),
    "a triangle turned over": (one_over(), {"turned": 1}, 8.0),
    "inside out": (turned(BOX), {"inside_out": 1}, 8.0),
    "inside out with its cavity": (joined(turned(BOX), SMALL), {"inside_out": 2}, 7.0),
    "one of two inside out": (
        joined(BOX, turned(box(0.5, 0.5, 0.5, (3.0, 0.0, 0.0)))),
        {"inside_out": 1},
        9.0,
    ),
    "a poking box inside out": (joined(BOX, turned(CORNER)), {"inside_out": 1, "united": 2}, 8.365),
    "poking": (POKING, {"united": 2}, 8.365),
    "box in box": (joined(BOX, SMALL), {"united": 2}, 8.0),
    "touching over a face": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 0.0, 0.0))), {"united": 2}, 16.0),
    "touching over part of a face": (
        joined(BOX, box(1.0, 0.5, 0.5, (2.0, 0.0, 0.0))),
        {"united": 2},
        10.0,
    ),
    "a box in a wall with a cavity": (
        joined(BOX, turned(SMALL), box(0.5, 0.1, 0.1, (0.5, 0.0, 0.0))),
        {"united": 2},
        7.0 + 0.5 * 0.2 * 0.2,
    ),
}
AS_IT_IS = {
    "box": (BOX, 8.0),
    "cavity": (joined(BOX, turned(SMALL)), 7.0),
    "a box in a cavity": (joined(BOX, turned(SMALL), box(0.25, 0.25, 0.25)), 7.125),
    "apart": (joined(BOX, box(1.0, 1.0, 1.0, (3.0, 0.0, 0.0))), 16.0),
    "touching along an edge": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 2.0, 0.0))), 16.0),
    "a sheet of two sides on an edge": (with_faces(fin(), np.array([[8, 7, 6]])), 8.0),
    "touching at a vertex": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 2.0, 2.0))), 16.0),
    "blob": (blob(np.random.default_rng(2)), None),
    "torus": (torus(), None),
}


def made(mesh: Mesh, size: float = 1.0) -> TriangleMesh:
    return triangle_mesh(size * mesh[0], np.asarray(mesh[1]), "the test")


def check_inside(mesh: TriangleMesh, seed: int = 0) -> None:
    """The winding number of what is left is 0 or 1, and that of the solid angles."""
    half = mesh.half_extents
    points = np.random.default_rng(seed).uniform(-1.1 * half, 1.1 * half, (300, 3))
    numbers = winding_at(points, mesh.vertex, mesh.face)
    np.testing.assert_allclose(windings(mesh.vertex[mesh.face], points), numbers, atol=1e-6)
    assert set(numbers.tolist()) <= {0, 1}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REPAIRED)
def test_what_is_dirty_is_repaired(name, size):
    mesh, repairs, volume = REPAIRED[name]
    found = made(mesh, size)
    assert found.is_closed
    assert found.repairs.counts() == repairs
    assert found.volume == pytest.approx(volume * size**3, rel=1e-9)
    check_inside(found)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", AS_IT_IS)
def test_what_is_sound_stays_as_it_is(name, size):
    """Its vertices, numbered by first use, and triangles keep their bits; a cavity stays empty."""
    mesh, volume = AS_IT_IS[name]
    found = made(mesh, size)
    assert (found.is_closed, bool(found.repairs)) == (True, False)
    np.testing.assert_array_equal(found.vertex[found.face], size * mesh[0][mesh[1]] - found.center)
    if volume is None:
        assert (found.face == mesh[1]).all()
        assert not found.needs_winding
    else:
        assert found.volume == pytest.approx(volume * size**3, rel=1e-9)
    check_inside(found)


@pytest.mark.parametrize("size", SIZES)
def test_a_soup_with_noise_is_welded(size):
    vertices, faces = blob(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    soup = size * vertices[faces].reshape(-1, 3)
    soup += rng.uniform(-1e-9, 1e-9, soup.shape)
    found = made((soup, np.arange(len(soup)).reshape(-1, 3)))
    assert found.is_closed
    assert found.repairs.counts() == {"welded": len(soup) - len(vertices)}
    assert len(np.unique(found.face)) == len(vertices)


def test_a_crack_is_welded_but_a_gap_is_not():
    vertices, faces = BOX
    for width, closed in ((1e-6, True), (1e-4, False)):
        moved = np.concatenate([vertices, vertices[faces[0]] + width / np.sqrt(3.0)])
        found = made((moved, np.concatenate([[[8, 9, 10]], faces[1:]])))
        assert found.is_closed == closed
        assert found.repairs.counts() == ({"welded": 3} if closed else {})


def test_open_meshes_stay_as_they_are():
    """But for duplicates: what would not be closed is not welded, and what hangs on nothing is no
    fin."""
    vertices, faces = grid(6)
    rng = np.random.default_rng(0)
    soup = vertices[faces].reshape(-1, 3) + rng.uniform(-1e-9, 1e-9, (3 * len(faces), 3))
    for mesh, repairs in (
        ((vertices, faces), {}),
        (with_faces((vertices, faces), faces[:2]), {"duplicates": 2}),
        ((soup, np.arange(len(soup)).reshape(-1, 3)), {}),
        ((BOX[0], BOX[1][1:]), {}),
        (with_faces((vertices, faces), faces[:, ::-1]), {}),
        (joined(BOX, (vertices + 5.0, faces)), {}),
        (joined(BOX, (box(1.0, 1.0, 1.0, (2.0, 2.0, 0.0))[0], BOX[1][1:])), {}),
    ):
        found = made(mesh)
        assert not found.is_closed
        assert found.repairs.counts() == repairs


def test_united_bodies_keep_the_vertices_of_the_others():
    far = box(0.5, 0.5, 0.5, (4.0, 0.0, 0.0))
    found = made(joined(far, POKING))
    np.testing.assert_array_equal(found.face[: len(far[1])], far[1])
    np.testing.assert_array_equal(found.vertex[:8] + found.center, far[0])
    assert found.repairs.counts() == {"united": 2}


@pytest.mark.parametrize("size", SIZES)
def test_a_body_that_crosses_itself_needs_the_winding_number(size):
    """Its surface within itself is hidden where nothing crosses it; what is in it is not united
    with it."""
    found = made(knot(), size)
    assert found.is_closed
    assert not found.repairs
    assert found.needs_winding
    between = (np.abs(found.vertex[found.face][:, :, 2] + found.center[2]) < 0.11 * size).all(
        axis=1
    )
    np.testing.assert_array_equal(found.hidden, between)
    assert found.hidden.sum() == 8
    together = made(joined(knot(), box(0.02, 0.02, 0.02, (2.0, 0.0, 0.0))), size)
    assert not together.repairs, "a body that crosses itself is not united"
    np.testing.assert_array_equal(
        np.flatnonzero(together.hidden)[-12:], len(found.face) + np.arange(12)
    )
    assert together.hidden.sum() == 20


def test_only_triangles_of_bodies_that_poke_into_each_other_cross():
    for mesh in (BOX, blob(np.random.default_rng(0)), torus(), AS_IT_IS["cavity"][0]):
        assert not len(crossed_triangles(*mesh)), "neighbours do not cross"
    pairs = crossed_triangles(*POKING)
    assert len(pairs)
    assert (pairs[:, 0] < 12).all()
    assert (pairs[:, 1] >= 12).all()


def test_a_ray_through_edges_or_vertices_is_counted_once():
    vertices = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]])
    faces = np.array(
        [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
    )
    points = np.array(
        [[x, y, z] for x in (-2, -0.5, 0, 0.4) for y in (0, 0.5, 1) for z in (-1, -0.5, 0, 0.5)],
        float,
    )
    off = np.abs(np.abs(points).sum(axis=1) - 1.0) > 1e-12
    inside = np.abs(points).sum(axis=1) < 1.0
    np.testing.assert_array_equal(winding_at(points[off], vertices, faces), inside[off])


TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


def in_space(flat: list[tuple[float, float]] | np.ndarray) -> np.ndarray:
    """Corners in a plane of its own, far from the origin."""
    corners = np.asarray(flat, np.float64)
    return np.column_stack([corners, np.zeros(len(corners))]) @ TURN.T + [3.0, -5.0, 2.0]


def star(rng: np.random.Generator, count: int) -> np.ndarray:
    """A simple polygon about the origin, not convex; some of its corners are in the middle of a
    side."""
    angle = np.sort(rng.choice(360, count, replace=False)) / 180.0 * np.pi
    corners = rng.uniform(0.2, 1.0, count)[:, None] * np.stack(
        [np.cos(angle), np.sin(angle)], axis=1
    )
    middle = 0.5 * (corners + np.roll(corners, -1, axis=0))
    kept = rng.uniform(size=count) < 0.3
    return np.concatenate(
        [[c, m] if k else [c] for c, m, k in zip(corners, middle, kept, strict=True)]
    )


def comb(teeth: int) -> np.ndarray:
    """Teeth on a bar; no point sees all of it."""
    line = [(float(2 * k + j), 3.0 * (j % 2)) for k in range(teeth) for j in (0, 1)]
    return np.array([(2.0 * teeth, -1.0), *reversed(line), (0.0, -1.0)])


def check(points: np.ndarray) -> None:
    count = len(points)
    triangles = triangulated(points, np.array([count]), np.arange(count), "")
    assert len(triangles) == count - 2
    whole = area_vectors(points[None])[0]
    areas = area_vectors(points[triangles])
    size = np.linalg.norm(whole)
    assert (areas @ whole > 1e-9 * size**2).all(), "a triangle is turned over or flat"
    # Together they have the area of the polygon, each side once, and all else between two of them:
    # they cover it once.
    assert np.linalg.norm(areas, axis=1).sum() == pytest.approx(size, rel=1e-9)
    sides = Counter((int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3))
    assert set(sides.values()) == {1}
    alone = {side for side in sides if side[::-1] not in sides}
    assert alone == {(k, (k + 1) % count) for k in range(count)}


def test_simple_polygons_of_any_shape_keep_corners_in_the_middle_of_sides():
    rng = np.random.default_rng(1)
    for count in (4, 5, 8, 13, 40):
        for _ in range(8):
            corners = star(rng, count)
            check(in_space(np.roll(corners, int(rng.integers(len(corners))), axis=0)))
    for teeth in (2, 3, 20):
        check(in_space(comb(teeth)))
        check(1e-4 * in_space(np.roll(comb(teeth), teeth, axis=0)))
    square = [(0, 0), (1, 0), (2, 0), (3, 0), (3, 3), (2, 3), (0, 3), (0, 1)]
    for k in range(8):
        check(in_space(np.roll(np.array(square, float), k, axis=0)))


def test_a_polygon_with_a_bridge_to_its_hole():
    """Corners twice in one place: the outline goes in along a bridge, around the hole, and back."""
    flat = np.array(
        [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)], float
    )
    points = in_space(flat)
    triangles = triangulated(points, np.array([10]), np.arange(10), "")
    areas = area_vectors(points[triangles])
    assert np.linalg.norm(areas, axis=1).sum() == pytest.approx(2.0 * 12.0)
    assert (areas @ areas[0] > 0.0).all()


def test_convex_faces_are_fans_that_are_plane_or_not():
    points = np.array([[0.0, 0, 0], [1, 0, 0.1], [1, 1, 0], [0, 1, 0.1], [0.5, 2, 0]])
    found = triangulated(
        points, np.array([4, 3, 5, 2]), np.array([0, 1, 2, 3, 2, 4, 3, 0, 1, 2, 4, 3, 0, 1]), ""
    )
    assert found.tolist() == [[0, 1, 2], [0, 2, 3], [2, 4, 3], [0, 1, 2], [0, 2, 4], [0, 4, 3]]
    points = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])
    found = triangulated(points, np.array([4, 4]), np.array([0, 1, 2, 3, 1, 1, 1, 1]), "")
    assert found.shape == (4, 3)
    np.testing.assert_allclose(area_vectors(points[found]), 0.0)


@pytest.mark.parametrize(
    "flat",
    [
        [(0, 0), (1, 1), (1, 0), (0, 1)],  # a bow tie: no area in sum
        [(0, 0), (3, 3), (3, 0), (0, 1)],  # with a larger half
        [(np.cos(k * 0.8 * np.pi), np.sin(k * 0.8 * np.pi)) for k in range(5)],  # a pentagram
        # a square, twice around
        [(np.cos(k * 0.5 * np.pi), np.sin(k * 0.5 * np.pi)) for k in range(8)],
    ],
)
def test_faces_that_cross_themselves_are_refused(flat):
    points = np.concatenate([in_space(flat), [[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    count = len(flat)
    order = np.concatenate([[count, count + 1, count + 2], np.arange(count)])
    with pytest.raises(InputError, match="crosses itself") as error:
        triangulated(points, np.array([3, count]), order, "mesh")
    assert "mesh, face 1" in str(error.value)
    points = in_space(comb(CORNER_LIMIT))
    with pytest.raises(InputError, match="corners"):
        triangulated(points, np.array([len(points)]), np.arange(len(points)), "")


RNG = np.random.default_rng(0)


def test_float32_is_held_as_it_is():
    # float64 is held about the middle of its range
    for far, dtype in ((0.0, np.float32), (0.0, float), (1e6, float)):
        heights = (far + RNG.uniform(-1.0, 3.0, (5, 7))).astype(dtype)
        field = heightfield(heights, 2.0, 1.0, 0.5, "")
        assert (np.shares_memory(field.data, heights), field.data.flags.writeable) == (
            dtype == np.float32,
            False,
        )
        error = 1e-15 if dtype == np.float32 else 1.3e-7 + 1e-16 * far
        np.testing.assert_allclose(field.heights + field.center, heights, atol=error)
        low = float(heights.min()) - 0.5
        high = float(heights.max())
        np.testing.assert_allclose(
            (field.bottom + field.center, field.half_extents[2]), (low, (high - low) / 2), 3e-7
        )


@pytest.mark.parametrize(
    ("heights", "sizes", "what"),
    [
        (np.zeros((1, 5)), (1, 1, 1), "at least 2 by 2"),
        (np.zeros(5), (1, 1, 1), "at least 2 by 2"),
        (np.zeros((2, 2), bool), (1, 1, 1), "give numbers"),
        (np.array([[0.0, 1.0], [np.nan, 0.0]]), (1, 1, 1), r"height 1, 0 \(row, column\) is nan"),
        (np.array([[0.0, -np.inf], [0.0, 0.0]]), (1, 1, 1), "height 0, 1 .* is -inf"),
        (np.array([[0.0, 1.0], [2e9, 0.0]]), (1, 1, 1), "(?s)height 1, 0 .*at most 1e.09 m"),
        (np.zeros((2, 2)), (0, 1, 1), "hx = 0"),
        (np.zeros((2, 2)), (1, -1, 1), "hy = -1"),
        (np.zeros((2, 2)), (1, 1, np.nan), "base = nan"),
        (
            np.broadcast_to(np.float32(0.0), (20000, 20000)),
            (1, 1, 1),
            "(?s)400000000 heights.*32-bit",
        ),
    ],
)
def test_refused(heights, sizes, what):
    with pytest.raises(InputError, match=what) as caught:
        ModelBuilder().add_shape_heightfield(-1, heights, *sizes, key="hills")
    assert "shape 'hills'" in str(caught.value)


def test_equal_ones_are_held_once():
    builder = ModelBuilder()
    heights = RNG.uniform(size=(4, 4)).astype(np.float32)
    for given in (heights, heights.copy(), heights + 1.0):
        builder.add_shape_heightfield(-1, given, 1.0, 1.0, 0.5)
    builder.add_shape_heightfield(-1, builder.finalize().heightfields[0])
    model = builder.finalize()
    assert len(model.heightfields) == 2
    assert model.shapes.heightfield.tolist() == [0, 0, 1, 0]


def test_ranges_of_squares_are_those_of_their_corners():
    data = RNG.uniform(size=(38, 51)).astype(np.float32)
    levels = pyramid(data)
    assert levels[-1].shape == (1, 1, 2)
    for number, level in enumerate(levels):
        side = 1 << (FIRST_LEVEL + number)
        for i, j in np.ndindex(*level.shape[:2]):
            square = data[i * side : (i + 1) * side + 1, j * side : (j + 1) * side + 1]
            assert level[i, j].tolist() == [square.min(), square.max()]


@pytest.mark.share(2)
@pytest.mark.parametrize(("other", "given"), [("heightfield", [np.zeros((2, 3))]), ("plane", [])])
def test_a_heightfield_touches_what_no_filter_excludes(other, given):
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, np.zeros((2, 2)), key="hills")
    getattr(builder, f"add_shape_{other}")(builder.add_body(), *given, key="other")
    assert len(collidecli.collide(builder.finalize()).distance) > 0
    builder.add_shape_collision_filter_pair(0, 1)
    assert len(collidecli.collide(builder.finalize()).distance) == 0


def test_the_example_of_the_page():
    examples = blocks(page("docs/reference/python.md"), "python")
    (code,) = [block for block in examples if "add_shape_heightfield" in block]
    exec(compile(code, "python.md", "exec"), {})
