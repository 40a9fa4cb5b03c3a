"""Convex hulls, their points and surfaces."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.scene import convex_hull as module
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import (
    FACE_CORNERS,
    FEW,
    _outline,
    convex_hull,
    half_widths,
    hull_points,
    kept_corners,
)
from collidecli.scene.convex_surface import convex_surface
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.meshes import blob, box, grid, joined, torus
from tests.support.oracle import rotation_of

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))


def prism(sides: int) -> np.ndarray:
    angle = np.arange(sides) * 2 * np.pi / sides
    return np.concatenate(
        [np.stack([np.cos(angle), np.sin(angle), np.full(sides, z)], -1) for z in (-1.0, 1.0)]
    )


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
def test_triangles_of_one_plane_are_one_face(size):
    inside = np.array(list(product(np.linspace(-1, 1, 4), repeat=3)))
    offset = np.array([5.0, -3.0, 2.0])
    hull = convex_hull(size * (inside + offset), "here")
    assert (len(hull.vertex), len(hull.edge), len(hull.face)) == (8, 12, 6)
    np.testing.assert_allclose(hull.center, size * offset, rtol=1e-12)
    np.testing.assert_allclose(hull.half_extents, [size] * 3, rtol=1e-12)
    np.testing.assert_allclose(
        np.sort(np.abs(hull.face_normal), axis=1), [[0, 0, 1]] * 6, atol=1e-12
    )
    np.testing.assert_allclose(half_widths(hull), size)


@pytest.mark.parametrize("seed", range(8))
def test_a_polytope_is_a_closed_surface_around_its_points(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rng.integers(4, 400), 3)) * rng.uniform(0.1, 1, 3)
    hull = convex_hull(points, "here")
    assert len(hull.vertex) - len(hull.edge) + len(hull.face) == 2  # Euler
    height = points @ hull.face_normal.T - hull.center @ hull.face_normal.T
    offset = np.array(
        [hull.vertex[f[0]] @ n for f, n in zip(hull.face, hull.face_normal, strict=True)]
    )
    assert np.all(height <= offset + 1e-9)  # every point is inside
    for outline, normal in zip(hull.face, hull.face_normal, strict=True):
        p, q, r = hull.vertex[list(outline[:3])]
        assert np.dot(np.cross(q - p, r - p), normal) > 0.0  # counterclockwise from outside
    assert {tuple(v) for v in hull.vertex + hull.center} <= {
        tuple(v) for v in np.round(points, 15)
    } or np.all(
        np.min(np.abs((hull.vertex + hull.center)[:, None] - points[None]).max(-1), axis=1) < 1e-12
    )


def test_a_face_of_many_corners_keeps_those_with_the_most_area():
    hull = convex_hull(prism(24), "here")
    assert (len(hull.vertex), len(hull.edge), len(hull.face)) == (48, 72, 26)
    cap = next(f for f in hull.face if len(f) == 24)
    kept = kept_corners(hull.vertex, cap)
    assert len(kept) == FACE_CORNERS
    assert kept == sorted(kept)
    # A hexagon at best has 3 sqrt(3) / 2 of the unit disc's area.
    x, y, _ = hull.vertex[[cap[k] for k in kept]].T
    area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    assert area > 0.9 * 1.5 * np.sqrt(3)


@pytest.mark.parametrize(
    ("points", "what"),
    [
        (CUBE[:3], "shape"),
        (np.zeros((9, 3)), "a single point"),
        (CUBE * [1.0, 1.0, 0.0], "flat"),
        (CUBE * [1.0, 1.0, 1e-12], "flat"),
        (CUBE * [1.0, 0.0, 0.0], "flat"),
        (np.where(CUBE == 1.0, np.nan, CUBE), "not finite"),
        (CUBE * 1e12, "beyond"),
        (CUBE[:, :2], "shape"),
    ],
)
def test_what_has_no_hull_is_refused_by_name(points, what):
    with pytest.raises(InputError, match=what) as refusal:
        ModelBuilder().add_shape_convex_hull(-1, points, key="bad")
    assert "bad" in refusal.value.where


def test_equal_hulls_are_stored_once():
    builder = ModelBuilder()
    for offset in (0.0, 0.0, 4.0):
        builder.add_shape_convex_hull(-1, CUBE + offset)
    builder.add_shape_convex_hull(-1, 2.0 * CUBE)
    builder.add_shape_sphere(-1)
    model = builder.finalize()
    assert len(model.hulls) == 2
    np.testing.assert_array_equal(model.shapes.hull, [0, 0, 0, 1, -1])
    np.testing.assert_array_equal(model.shapes.pose[2, :3], [4.0, 4.0, 4.0])


@pytest.mark.parametrize("sides", [3, 16, 40])
def test_faces_outlast_coordinates_in_float32(sides):
    """As scene files have them, in a frame of their own."""
    rng = np.random.default_rng(sides)
    for _ in range(10):
        turned = prism(sides) @ Rotation.random(rng=rng).as_matrix().T + rng.normal(size=3)
        hull = convex_hull(turned.astype(np.float32), "here")
        assert (len(hull.vertex), len(hull.edge), len(hull.face)) == (
            2 * sides,
            3 * sides,
            sides + 2,
        )


@pytest.mark.parametrize("thickness", [1e-4, 1e-6, 1e-7, 1e-8])
def test_a_thin_plate_keeps_its_two_sides(thickness):
    hull = convex_hull(CUBE * [1.0, 0.7, thickness], "here")
    assert len(hull.vertex) == 8
    assert len(hull.vertex) - len(hull.edge) + len(hull.face) == 2
    flat = [
        outline
        for outline, normal in zip(hull.face, hull.face_normal, strict=True)
        if abs(normal[2]) > 0.5
    ]
    assert len(flat) == 2


def half_width(corners: np.ndarray) -> float:
    """Half the least, over the sides of a polygon, of the largest distance of a corner to the
    side's line."""
    widths = []
    for p, q in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (q - p) / np.linalg.norm(q - p)
        widths.append(max(np.linalg.norm(np.cross(corner - p, along)) for corner in corners))
    return 0.5 * min(widths)


def test_half_widths_of_all_faces_are_those_of_each():
    hull = convex_hull(np.concatenate([prism(7), [[0.1, 0.0, 3.0]]]), "here")
    assert {len(outline) for outline in hull.face} == {3, 4, 7}
    each = [half_width(hull.vertex[list(f)]) for f in hull.face]
    np.testing.assert_allclose(half_widths(hull), each, rtol=1e-9)


def test_an_outline_that_meets_itself_is_none():
    """Two triangles that share a corner, and a ring around a hole: no face has such a border."""
    ring = [[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3], [2, 3, 5]]
    assert _outline(np.array([[0, 1, 2], [0, 3, 4]])) is None
    assert _outline(np.array([[2, 5, 3], [3, 1, 4]])) is None
    assert _outline(np.array(ring)) is None
    assert _outline(np.array([[7, 2, 5], [5, 2, 9]])) == [2, 9, 5, 7]


RNG = np.random.default_rng(5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", ["ball", "sphere", "box", "around the origin"])
def test_the_vertices_are_those_of_qhull(kind, scale):
    points = RNG.normal(size=(FEW + 1, 3)) * [1, 2, 5]
    if kind == "sphere":
        points /= np.linalg.norm(points, axis=1)[:, None]
    if kind == "box":
        points = RNG.uniform(-1, 1, (FEW + 1, 3))
    points = (
        points * scale + [7 * scale, 0, 0]
        if kind != "around the origin"
        else np.concatenate([points, -points])
    )
    assert hull_points(points[:FEW], "m").base is points, "few points stay as they are"
    kept = hull_points(points, "m")
    expected = points[ConvexHull(points).vertices]
    assert sorted(map(tuple, kept)) == sorted(map(tuple, expected))


@pytest.mark.parametrize("squeeze", [(1, 1, 0), (1, 0, 0), (0, 0, 0)])
def test_flat_points_are_left_for_the_hull_to_refuse(squeeze):
    points = RNG.normal(size=(FEW + 1, 3)) * squeeze
    kept = hull_points(points, "m")
    assert 1 <= len(kept) <= 26
    assert np.ptp(kept, axis=0).tolist() == np.ptp(points, axis=0).tolist()


@pytest.mark.parametrize(
    ("limit", "said"), [("CANDIDATE_LIMIT", "points near its hull"), ("VERTEX_LIMIT", "vertices")]
)
def test_too_many_are_refused(monkeypatch, limit, said):
    monkeypatch.setattr(module, limit, 1000)
    points = RNG.normal(size=(FEW + 1, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    with pytest.raises(InputError, match=f"^m: .*{said}, and 1000 are the most"):
        hull_points(points, "m")


SIZES = [1e-3, 1.0, 1e3]
BALL = blob(np.random.default_rng(0), 9, 14, 0.0)


def surface_of(mesh, size=1.0):
    vertices, faces = mesh
    return convex_surface(triangle_mesh(size * np.asarray(vertices), faces, "the test"))


def dented(depth: float):
    """A box, one of whose faces is cut in four around its middle, pushed in."""
    vertices, faces = box(0.5, 0.4, 0.3)
    middle = len(vertices)
    a, b, c = faces[0]
    d = int(np.setdiff1d(faces[1], faces[0])[0])
    inward = -np.cross(vertices[b] - vertices[a], vertices[c] - vertices[a])
    inward /= np.linalg.norm(inward)
    vertices = np.concatenate([vertices, [0.5 * (vertices[a] + vertices[c]) + depth * inward]])
    fan = [(a, b, middle), (b, c, middle), (c, d, middle), (d, a, middle)]
    return vertices, np.concatenate([faces[2:], fan])


@pytest.mark.parametrize("size", SIZES)
def test_convex_meshes_are_hulls(size):
    turned = box(0.5, 0.4, 0.3)
    way = np.array([0.0, 0.0, 0.0, 0.3, -0.5, 0.2, 0.7])
    way[3:] /= np.linalg.norm(way[3:])
    turned = ((turned[0] @ rotation_of(way[None])[0].T).astype(np.float32), turned[1])
    for mesh, faces in ((turned, 6), (BALL, None), (dented(1e-8), 6)):
        found = surface_of(mesh, size)
        assert found is not None
        assert faces is None or len(found.hull.face) == faces
        assert abs(found.hull.vertex).max() == pytest.approx(
            size * 0.5 * np.ptp(mesh[0], axis=0).max(), rel=1e-6
        )


@pytest.mark.parametrize("size", SIZES)
def test_others_are_not(size):
    vertices, faces = box(0.5, 0.4, 0.3)
    others = {
        "dent": dented(1e-5),
        "open": (vertices, faces[:-1]),
        "two apart": joined((vertices, faces), box(0.5, 0.4, 0.3, (2.0, 0.0, 0.0))),
        "through each other": joined((vertices, faces), box(0.5, 0.4, 0.3, (0.3, 0.2, 0.0))),
        "hollow": joined((vertices, faces), (0.5 * vertices, faces[:, ::-1])),
        "torus": torus(),
        "blob": blob(np.random.default_rng(1)),
        "sheet": grid(4),
        "pillow of two sides": (grid(1)[0], np.concatenate([grid(1)[1], grid(1)[1][:, ::-1]])),
    }
    for name, mesh in others.items():
        assert surface_of(mesh, size) is None, name


@pytest.mark.parametrize("size", SIZES)
def test_what_is_repaired_to_a_box_is_one(size):
    """Inside out, side by side with another, and with another inside."""
    vertices, faces = box(0.5, 0.4, 0.3)
    beside = box(0.5, 0.4, 0.3, (1.0, 0.0, 0.0))
    within = (0.9 * vertices, faces)
    for mesh in (
        (vertices, faces[:, ::-1]),
        joined((vertices, faces), beside),
        joined((vertices, faces), within),
    ):
        assert len(surface_of(mesh, size).hull.vertex) == 8


@pytest.mark.parametrize(
    "mesh", [box(0.5, 0.4, 0.3), BALL, dented(0.0)], ids=["box", "ball", "cut"]
)
def test_names_are_of_the_same_places(mesh):
    """Each vertex stands where its name's does, each edge lies along its name's, each face in its
    name's plane."""
    vertices, faces = mesh
    solid = triangle_mesh(vertices, faces, "the test")
    found = convex_surface(solid)
    assert found is not None
    hull = found.hull
    name = found.name
    ends = np.zeros((solid.edge_count, 2), int)
    ends[solid.face_edge.reshape(-1)] = np.stack(
        [solid.face, np.roll(solid.face, -1, axis=1)], -1
    ).reshape(-1, 2)
    vertex = name[3 * np.arange(len(hull.vertex))]
    assert np.all(vertex % 3 == 0)
    np.testing.assert_allclose(solid.vertex[vertex // 3], hull.vertex, atol=1e-12)
    edge = name[3 * np.arange(len(hull.edge)) + 1]
    assert np.all(edge % 3 == 1)
    for (p, q), number in zip(hull.edge[:, :2], edge // 3, strict=True):
        along = hull.vertex[q] - hull.vertex[p]
        for end in solid.vertex[ends[number]]:
            assert np.linalg.norm(np.cross(along, end - hull.vertex[p])) < 1e-12
    face = name[3 * np.arange(len(hull.face)) + 2]
    assert np.all(face % 3 == 2)
    np.testing.assert_allclose(solid.face_normal[face // 3], hull.face_normal, atol=1e-12)
    height = np.einsum("fi,fi->f", hull.face_normal, solid.vertex[solid.face[face // 3, 0]])
    np.testing.assert_allclose(
        height, [hull.vertex[o[0]] @ n for o, n in zip(hull.face, hull.face_normal, strict=True)]
    )
    given = name[name >= 0]
    assert len(np.unique(given)) == len(given)
