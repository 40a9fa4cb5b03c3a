"""Convex polytopes divided into pressure cells: one cell per face, the points of the solid nearest
to that face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.numerics.products import dot, matvec
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.distinct_values import distinct

FEW_FACES = 16
"""Faces up to which every other cell counts as a neighbour."""


@dataclass(frozen=True, eq=False)
class PressureCells:
    """Faces of a convex polytope, and the cells that may share a boundary with each face's cell.

    Inside, the signed distance is the largest of all faces' plane distances normal . x - offset; a
    cell is where its face's is the largest.

    normal: float64[F, 3], unit, outwards. offset: float64[F] [m]. lower, upper: float64[F, 3], the
    box of each face's corners [m]; infinite for a half-space. neighbor_start: int64[F + 1].
    neighbor: int32[n], ascending per face.
    """

    normal: np.ndarray
    offset: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    neighbor_start: np.ndarray
    neighbor: np.ndarray


def half_space_cells() -> PressureCells:
    """The one cell of the half-space below z = 0."""
    infinite = np.full((1, 3), np.inf)
    return _cells(
        np.array([[0.0, 0.0, 1.0]]), np.zeros(1), -infinite, infinite, np.zeros((0, 2), np.int64)
    )


def box_cells(half: np.ndarray) -> PressureCells:
    """The six cells of a box with these half extents; faces in the order +x, -x, +y, -y, +z, -z."""
    normal = np.zeros((6, 3))
    lower = np.tile(-half, (6, 1))
    upper = np.tile(half, (6, 1))
    for face in range(6):
        axis = face // 2
        sign = 1.0 - 2.0 * (face % 2)
        normal[face, axis] = sign
        lower[face, axis] = upper[face, axis] = sign * half[axis]
    return _cells(normal, np.repeat(half, 2), lower, upper, _all_pairs(6))


def hull_cells(hull: ConvexHull) -> PressureCells:
    """The cells of a convex hull, one for each of its merged faces."""
    corners = [hull.vertex[list(outline)] for outline in hull.face]
    offset = np.array([dot(p, n).max() for p, n in zip(corners, hull.face_normal, strict=True)])
    lower = np.array([p.min(axis=0) for p in corners])
    upper = np.array([p.max(axis=0) for p in corners])
    pairs = _all_pairs(len(corners))
    if len(corners) > FEW_FACES:
        pairs = _neighboring(hull, offset, pairs)
    return _cells(hull.face_normal, offset, lower, upper, pairs)


def _neighboring(hull: ConvexHull, offset: np.ndarray, all_pairs: np.ndarray) -> np.ndarray:
    """Pairs of faces (i < j) whose cells may share a boundary; `all_pairs` where Qhull cannot find
    them.

    The cells are the facets of the polyhedron z >= normal . x - offset in four dimensions; two of
    them are adjacent if their dual points are joined by an edge of the dual polytope, which here
    contains the origin, as the polyhedron is unbounded.
    """
    from scipy.spatial import ConvexHull as Qhull
    from scipy.spatial import QhullError

    size = float(hull.half_extents.max())
    inside = hull.vertex.mean(axis=0) / size
    slack = 1.0 + offset / size - matvec(hull.face_normal, inside)
    dual = (
        np.concatenate([hull.face_normal, np.full((len(offset), 1), -1.0)], axis=1) / slack[:, None]
    )
    try:
        simplices = np.sort(
            Qhull(np.concatenate([dual, np.zeros((1, 4))])).simplices.astype(np.int64), axis=1
        )
    except QhullError:
        return all_pairs
    first, second = np.triu_indices(simplices.shape[1], 1)
    pairs = distinct(
        np.concatenate([simplices[:, [a, b]] for a, b in zip(first, second, strict=True)]), axis=0
    )
    return pairs[pairs[:, 1] < len(offset)]


def _all_pairs(count: int) -> np.ndarray:
    return np.stack(np.triu_indices(count, 1), axis=1).astype(np.int64)


def _cells(
    normal: np.ndarray, offset: np.ndarray, lower: np.ndarray, upper: np.ndarray, pairs: np.ndarray
) -> PressureCells:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    start = np.searchsorted(both[:, 0], np.arange(len(offset) + 1)).astype(np.int64)
    return PressureCells(normal, offset, lower, upper, start, both[:, 1].astype(np.int32))
