"""Polygons as triangles: they cover the polygon once, keep its sides, and lose no corner."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.triangle_mesh import CORNER_LIMIT, area_vectors, triangulated

TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


def in_space(flat: list[tuple[float, float]] | np.ndarray) -> np.ndarray:
    """Corners in a plane of its own, far from the origin."""
    corners = np.asarray(flat, np.float64)
    return np.column_stack([corners, np.zeros(len(corners))]) @ TURN.T + [3.0, -5.0, 2.0]


def star(rng: np.random.Generator, count: int) -> np.ndarray:
    """A simple polygon about the origin, not convex; some of its corners are in the middle of a side."""
    angle = np.sort(rng.choice(360, count, replace=False)) / 180.0 * np.pi
    corners = rng.uniform(0.2, 1.0, count)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    middle = 0.5 * (corners + np.roll(corners, -1, axis=0))
    kept = rng.uniform(size=count) < 0.3
    return np.concatenate([[c, m] if k else [c] for c, m, k in zip(corners, middle, kept, strict=True)])


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
    # Together they have the area of the polygon, each side once, and all else between two of them: they cover it once.
    assert np.linalg.norm(areas, axis=1).sum() == pytest.approx(size, rel=1e-9)
    sides = Counter((int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3))
    assert set(sides.values()) == {1}
    alone = {side for side in sides if side[::-1] not in sides}
    assert alone == {(k, (k + 1) % count) for k in range(count)}


def test_simple_polygons_of_any_shape():
    rng = np.random.default_rng(1)
    for count in (4, 5, 8, 13, 40):
        for _ in range(8):
            corners = star(rng, count)
            check(in_space(np.roll(corners, int(rng.integers(len(corners))), axis=0)))
    for teeth in (2, 3, 20):
        check(in_space(comb(teeth)))
        check(1e-4 * in_space(np.roll(comb(teeth), teeth, axis=0)))


def test_corners_in_the_middle_of_sides_are_kept():
    square = [(0, 0), (1, 0), (2, 0), (3, 0), (3, 3), (2, 3), (0, 3), (0, 1)]
    for k in range(8):
        check(in_space(np.roll(np.array(square, float), k, axis=0)))


def test_a_polygon_with_a_bridge_to_its_hole():
    """Corners twice in one place: the outline goes in along a bridge, around the hole, and back."""
    flat = np.array([(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)], float)
    points = in_space(flat)
    triangles = triangulated(points, np.array([10]), np.arange(10), "")
    areas = area_vectors(points[triangles])
    assert np.linalg.norm(areas, axis=1).sum() == pytest.approx(2.0 * 12.0)
    assert (areas @ areas[0] > 0.0).all()


def test_convex_faces_are_fans_that_are_plane_or_not():
    points = np.array([[0.0, 0, 0], [1, 0, 0.1], [1, 1, 0], [0, 1, 0.1], [0.5, 2, 0]])
    found = triangulated(points, np.array([4, 3, 5, 2]), np.array([0, 1, 2, 3, 2, 4, 3, 0, 1, 2, 4, 3, 0, 1]), "")
    assert found.tolist() == [[0, 1, 2], [0, 2, 3], [2, 4, 3], [0, 1, 2], [0, 2, 4], [0, 4, 3]]


def test_polygons_without_area_give_triangles_without_area():
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
        [(np.cos(k * 0.5 * np.pi), np.sin(k * 0.5 * np.pi)) for k in range(8)],  # a square, twice around
    ],
)
def test_faces_that_cross_themselves_are_refused(flat):
    points = np.concatenate([in_space(flat), [[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    count = len(flat)
    order = np.concatenate([[count, count + 1, count + 2], np.arange(count)])
    with pytest.raises(InputError, match="crosses itself") as error:
        triangulated(points, np.array([3, count]), order, "mesh")
    assert "mesh, face 1" in str(error.value)


def test_too_many_corners_that_no_fan_covers_are_refused():
    points = in_space(comb(CORNER_LIMIT))
    with pytest.raises(InputError, match="corners"):
        triangulated(points, np.array([len(points)]), np.arange(len(points)), "")
