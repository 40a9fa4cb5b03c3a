"""Triangulated shapes, whose triangles are tested against the signed distance field of another shape.

Polyhedral shapes are exact. Curved shapes have triangles with corners on their surface.
"""

from __future__ import annotations

import numpy as np

from collidecli.numerics.elementary import sincos
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh

SPOKES = 48
"""Corners of the polygon that approximates a circle."""
BALL_RINGS = 24


def facets(
    shape_type: ShapeType, size: np.ndarray, hull: ConvexHull | None = None, mesh: TriangleMesh | None = None
) -> TriangleMesh | None:
    """The triangles of a shape, counterclockwise from outside; None for plane, sphere and capsule, which use none.

    Vertices of a box are its corners, numbered as in the conventions; those of a hull and a mesh are its own.
    """
    if mesh is not None:
        return mesh
    if hull is not None:
        vertex, face = hull.vertex, np.array([t for outline in hull.face for t in _fan(outline)])
    elif shape_type == ShapeType.BOX:
        vertex, face = _box(size)
    elif shape_type == ShapeType.CYLINDER:
        vertex, face = _prism(size)
    elif shape_type == ShapeType.CONE:
        vertex, face = _pyramid(size)
    elif shape_type == ShapeType.ELLIPSOID:
        vertex, face = _ball(size)
    else:
        return None
    return TriangleMesh(np.ascontiguousarray(vertex, np.float64), np.zeros(3), face.astype(np.int32))


def _fan(outline: tuple[int, ...]) -> list[tuple[int, int, int]]:
    return [(outline[0], outline[k], outline[k + 1]) for k in range(1, len(outline) - 1)]


def _box(half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    corner = np.array([[(k >> axis & 1) * 2 - 1 for axis in range(3)] for k in range(8)]) * half
    sides = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
    return corner, np.array([t for side in sides for t in _fan(side)])


def _circle() -> np.ndarray:
    angle = np.arange(SPOKES) / SPOKES * 2.0 * np.pi
    sine, cosine = sincos(angle)
    return np.stack([cosine, sine], axis=1)


def _prism(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ring = size[0] * _circle()
    vertex = np.concatenate([np.column_stack([ring, np.full(SPOKES, z)]) for z in (-size[1], size[1])])
    low = tuple(range(SPOKES))
    face = [*_fan(low[::-1]), *_fan(tuple(k + SPOKES for k in low))]
    for k in low:
        following = (k + 1) % SPOKES
        face += [(k, following, following + SPOKES), (k, following + SPOKES, k + SPOKES)]
    return vertex, np.array(face)


def _pyramid(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ring = np.column_stack([size[0] * _circle(), np.full(SPOKES, -size[1])])
    face = [*_fan(tuple(range(SPOKES))[::-1]), *((k, (k + 1) % SPOKES, SPOKES) for k in range(SPOKES))]
    return np.concatenate([ring, [[0.0, 0.0, size[1]]]]), np.array(face)


def _ball(half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    polar = np.arange(1, BALL_RINGS) / BALL_RINGS * np.pi
    rings = [np.column_stack([s * _circle(), np.full(SPOKES, -c)]) for s, c in zip(*sincos(polar), strict=True)]
    vertex = np.concatenate([*rings, [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]])
    low, high, last = len(vertex) - 2, len(vertex) - 1, (BALL_RINGS - 2) * SPOKES
    face = []
    for k in range(SPOKES):
        following = (k + 1) % SPOKES
        face += [(low, following, k), (high, last + k, last + following)]
        for first in range(0, last, SPOKES):
            a, b = first + k, first + following
            face += [(a, b, b + SPOKES), (a, b + SPOKES, a + SPOKES)]
    return vertex * half, np.array(face)
