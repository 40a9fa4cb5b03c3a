"""Signed distances of points from shapes by brute force in float64, without the engine's functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.heightfields import Terrain, rough
from tests.support.meshes import sheet, torus, windings

Distance = Callable[[np.ndarray], np.ndarray]
"""Signed distances float64[n] of points [n, 3]."""
CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


@dataclass(frozen=True)
class Solid:
    """A shape of about unit size, and its signed distance. places: points of special features, unit size.

    add: adds it to a builder, static, at a pose, at a size, with a configuration.
    """

    name: str
    add: Callable[[ModelBuilder, Any, float, ShapeConfig], int]
    distance: Distance
    places: np.ndarray


def segment_distance(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    t = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return np.linalg.norm(p - a - t[:, None] * (b - a), axis=1)


def of_profile(outline: list[tuple[float, float]]) -> Distance:
    """Of the solid of revolution about z of a convex outline (r, z), counterclockwise, from the axis to the axis."""
    points = [np.array(point) for point in outline]

    def distance(p: np.ndarray) -> np.ndarray:
        flat = np.stack([np.hypot(p[:, 0], p[:, 1]), p[:, 2]], axis=1)
        least, inside = np.full(len(p), np.inf), np.ones(len(p), bool)
        for a, b in pairwise(points):
            least = np.minimum(least, segment_distance(flat, a, b))
            inside &= (b - a)[0] * (flat - a)[:, 1] - (b - a)[1] * (flat - a)[:, 0] > 0.0
        return np.where(inside, -least, least)

    return distance


def of_box(half: np.ndarray) -> Distance:
    def distance(p: np.ndarray) -> np.ndarray:
        off = np.abs(p) - half
        return np.linalg.norm(np.maximum(off, 0.0), axis=1) + np.minimum(off.max(axis=1), 0.0)

    return distance


def of_ellipsoid(half: np.ndarray) -> Distance:
    """By bisection of the multiplier t: the closest point is half^2 y / (half^2 + t)."""

    def distance(p: np.ndarray) -> np.ndarray:
        y = np.maximum(np.abs(p), 1e-14)
        low = np.full(len(p), -(half.min() ** 2))
        high = np.linalg.norm(y, axis=1) * half.max() * 2.0 + 1.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            above = ((half * y / (half**2 + middle[:, None])) ** 2).sum(axis=1) > 1.0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        found = np.linalg.norm(y - half**2 * y / (half**2 + high[:, None]), axis=1)
        return np.where(((y / half) ** 2).sum(axis=1) > 1.0, found, -found)

    return distance


def triangle_distances(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[n]: least distance of points [n, 3] from triangles [F, 3, 3]."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    # By coordinates, float64[3, n, F]: sums over a last axis of three take NumPy five times as long.
    off = [p.T[:, :, None] - corners[:, k].T[:, None] for k in range(3)]
    inside, least = np.ones((len(p), len(corners)), bool), np.inf
    for k in range(3):
        side = (corners[:, (k + 1) % 3] - corners[:, k]).T[:, None]
        inside &= (off[k] * np.cross(normal, side[:, 0].T).T[:, None]).sum(0) >= 0.0
        t = np.clip((off[k] * side).sum(0) / (side**2).sum(0), 0.0, 1.0)
        least = np.minimum(least, ((off[k] - t * side) ** 2).sum(0))
    height = (off[0] * normal.T[:, None]).sum(0)
    return np.minimum(np.where(inside, np.abs(height), np.inf), np.sqrt(least)).min(axis=1)


def of_triangles(corners: np.ndarray, closed: bool = True) -> Distance:
    def distance(p: np.ndarray) -> np.ndarray:
        least = triangle_distances(p, corners)
        if not closed:
            return least
        return np.where(windings(corners, p) > 0.5, -least, least)

    return distance


def of_terrain(field: Terrain) -> Distance:
    """Of a heightfield; inside, the base does not count."""
    vertices, faces = field.solid()
    sides = faces[: len(faces) - len(field.border())]

    def distance(p: np.ndarray) -> np.ndarray:
        inside = field.is_inside(p)
        return np.where(inside, -triangle_distances(p, vertices[sides]), triangle_distances(p, vertices[faces]))

    return distance


def hull_triangles(points: np.ndarray) -> np.ndarray:
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    corners = points[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    turned = (normal * hull.equations[:, :3]).sum(axis=1) < 0.0
    corners[turned] = corners[turned][:, [0, 2, 1]]
    return corners


def solids() -> list[Solid]:
    """One of every shape type, and open meshes."""
    return [*primitives(), *surfaces()]


def primitives() -> list[Solid]:
    half: Any = np.array([0.9, 0.6, 0.4])
    rim = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.7, 0.7, 0.5]])
    return [
        Solid("plane", lambda b, x, s, c: b.add_shape_plane(-1, x, c), lambda p: p[:, 2], rim),
        Solid(
            "sphere",
            lambda b, x, s, c: b.add_shape_sphere(-1, x, 0.8 * s, c),
            lambda p: np.linalg.norm(p, axis=1) - 0.8,
            rim,
        ),
        Solid(
            "capsule",
            lambda b, x, s, c: b.add_shape_capsule(-1, x, 0.3 * s, 0.5 * s, c),
            lambda p: segment_distance(p, np.array([0.0, 0.0, -0.5]), np.array([0.0, 0.0, 0.5])) - 0.3,
            rim,
        ),
        Solid(
            "box",
            lambda b, x, s, c: b.add_shape_box(-1, x, half[0] * s, half[1] * s, half[2] * s, c),
            of_box(half),
            CUBE * half,
        ),
        Solid(
            "cylinder",
            lambda b, x, s, c: b.add_shape_cylinder(-1, x, 0.7 * s, 0.4 * s, c),
            of_profile([(0.0, -0.4), (0.7, -0.4), (0.7, 0.4), (0.0, 0.4)]),
            np.array([[0.7, 0.0, 0.4], [0.7, 0.0, 0.0], [0.0, 0.0, 0.4], [0.3, 0.0, 0.39]]),
        ),
        Solid(
            "cone",
            lambda b, x, s, c: b.add_shape_cone(-1, x, 0.7 * s, 0.6 * s, c),
            of_profile([(0.0, -0.6), (0.7, -0.6), (0.0, 0.6)]),
            np.array([[0.7, 0.0, -0.6], [0.0, 0.0, 0.6], [0.35, 0.0, 0.0], [0.0, 0.0, -0.6]]),
        ),
        Solid(
            "ellipsoid",
            lambda b, x, s, c: b.add_shape_ellipsoid(-1, x, half[0] * s, half[1] * s, half[2] * s, c),
            of_ellipsoid(half),
            CUBE * half / np.sqrt(3.0),
        ),
    ]


def surfaces() -> list[Solid]:
    rng = np.random.default_rng(5)
    cloud = rng.normal(size=(20, 3)) * (0.9, 0.6, 0.4)
    cloud -= 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
    ring, ring_faces = torus()
    flat, flat_faces = sheet(1.0)
    field = rough(3)
    terrain = field.vertices()
    return [
        Solid(
            "convex_mesh",
            lambda b, x, s, c: b.add_shape_convex_hull(-1, cloud * s, x, c),
            of_triangles(hull_triangles(cloud)),
            cloud,
        ),
        Solid(
            "mesh",
            lambda b, x, s, c: b.add_shape_mesh(-1, ring * s, ring_faces, x, c),
            of_triangles(ring[ring_faces]),
            ring,
        ),
        Solid(
            "open_mesh",
            lambda b, x, s, c: b.add_shape_mesh(-1, flat * s, flat_faces, x, c),
            of_triangles(flat[flat_faces], closed=False),
            flat,
        ),
        Solid(
            "heightfield",
            lambda b, x, s, c: b.add_shape_heightfield(-1, *scaled(field, s), x, c),
            of_terrain(field),
            np.concatenate([terrain, terrain * (1.0, 1.0, 0.0) + (0.0, 0.0, field.bottom - 0.05)]),
        ),
    ]


def scaled(terrain: Terrain, size: float) -> tuple[np.ndarray, float, float, float]:
    grown = terrain.scaled(size)
    return grown.heights, grown.hx, grown.hy, grown.base
