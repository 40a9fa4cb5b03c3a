"""Convex hulls: real faces and edges, and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import FACE_CORNERS, _outline, convex_hull, half_width, half_widths, kept_corners

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))


def prism(sides: int) -> np.ndarray:
    angle = np.arange(sides) * 2 * np.pi / sides
    return np.concatenate([np.stack([np.cos(angle), np.sin(angle), np.full(sides, z)], -1) for z in (-1.0, 1.0)])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
def test_triangles_of_one_plane_are_one_face(size):
    inside = np.array(list(product(np.linspace(-1, 1, 4), repeat=3)))
    offset = np.array([5.0, -3.0, 2.0])
    hull = convex_hull(size * (inside + offset), "here")
    assert (len(hull.vertex), len(hull.edge), len(hull.face)) == (8, 12, 6)
    np.testing.assert_allclose(hull.center, size * offset, rtol=1e-12)
    np.testing.assert_allclose(hull.half_extents, [size] * 3, rtol=1e-12)
    np.testing.assert_allclose(np.sort(np.abs(hull.face_normal), axis=1), [[0, 0, 1]] * 6, atol=1e-12)
    for normal, outline in zip(hull.face_normal, hull.face, strict=True):
        assert half_width(hull.vertex, outline, normal) == pytest.approx(size)


@pytest.mark.parametrize("seed", range(8))
def test_a_polytope_is_closed_convex_and_turns_outwards(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rng.integers(4, 400), 3)) * rng.uniform(0.1, 1, 3)
    hull = convex_hull(points, "here")
    assert len(hull.vertex) - len(hull.edge) + len(hull.face) == 2  # Euler
    height = points @ hull.face_normal.T - hull.center @ hull.face_normal.T
    offset = np.array([hull.vertex[f[0]] @ n for f, n in zip(hull.face, hull.face_normal, strict=True)])
    assert np.all(height <= offset + 1e-9)  # every point is inside
    for outline, normal in zip(hull.face, hull.face_normal, strict=True):
        p, q, r = hull.vertex[list(outline[:3])]
        assert np.dot(np.cross(q - p, r - p), normal) > 0.0  # counterclockwise from outside
    assert {tuple(v) for v in hull.vertex + hull.center} <= {tuple(v) for v in np.round(points, 15)} or np.all(
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
        assert (len(hull.vertex), len(hull.edge), len(hull.face)) == (2 * sides, 3 * sides, sides + 2)


@pytest.mark.parametrize("thickness", [1e-4, 1e-6, 1e-7, 1e-8])
def test_a_thin_plate_keeps_its_two_sides(thickness):
    hull = convex_hull(CUBE * [1.0, 0.7, thickness], "here")
    assert len(hull.vertex) == 8
    assert len(hull.vertex) - len(hull.edge) + len(hull.face) == 2
    flat = [outline for outline, normal in zip(hull.face, hull.face_normal, strict=True) if abs(normal[2]) > 0.5]
    assert len(flat) == 2


def test_half_widths_of_all_faces_are_those_of_each():
    hull = convex_hull(np.concatenate([prism(7), [[0.1, 0.0, 3.0]]]), "here")
    assert {len(outline) for outline in hull.face} == {3, 4, 7}
    each = [half_width(hull.vertex, f, n) for f, n in zip(hull.face, hull.face_normal, strict=True)]
    np.testing.assert_allclose(half_widths(hull), each, rtol=1e-9)


def test_an_outline_that_meets_itself_is_none():
    """Two triangles that share a corner, and a ring around a hole: no face has such a border."""
    ring = [[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3], [2, 3, 5]]
    assert _outline(np.array([[0, 1, 2], [0, 3, 4]])) is None
    assert _outline(np.array([[2, 5, 3], [3, 1, 4]])) is None
    assert _outline(np.array(ring)) is None
    assert _outline(np.array([[7, 2, 5], [5, 2, 9]])) == [2, 9, 5, 7]
