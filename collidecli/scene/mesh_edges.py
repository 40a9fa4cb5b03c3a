"""The edges of a triangle mesh, which of its triangles they join, and whether it bounds a volume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.sorting import numbered


@dataclass(frozen=True)
class Edges:
    """Undirected edges of triangles. side_edge: int64[3 F], the edge of side k of triangle f at 3 f + k.

    forward: bool[3 F], whether the side runs from the lower vertex number to the higher one.
    count: int64[E], sides of each edge. balance: int64[E], forward sides less backward ones.
    """

    side_edge: np.ndarray
    forward: np.ndarray
    count: np.ndarray
    balance: np.ndarray

    @property
    def is_manifold(self) -> bool:
        """Whether every edge has two sides that run in opposite directions."""
        return bool((self.count == 2).all() and (self.balance == 0).all())


def edges_of(face: np.ndarray) -> Edges:
    """The edges of triangles int64[F, 3]."""
    start, end = face.reshape(-1), np.roll(face, -1, axis=1).reshape(-1)
    key = np.minimum(start, end) * (int(face.max()) + 1) + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    first = np.concatenate([[True], np.diff(key[order]) != 0])
    side_edge = np.empty(len(key), np.int64)
    side_edge[order] = np.cumsum(first) - 1
    count = np.diff(np.append(np.flatnonzero(first), len(key)))
    forward = start < end
    ahead = np.bincount(side_edge[forward], minlength=len(count))
    return Edges(side_edge, forward, count, 2 * ahead - count)


def is_balanced(face: np.ndarray, edges: Edges) -> bool:
    """Whether triangles bound a volume: each edge has as many sides one way as the other, and not all triangles cancel.

    The winding number is then an integer everywhere off the surface. Triangles all of which have an opposite twin, as
    of a sheet drawn from both sides, bound nothing.
    """
    if edges.is_manifold:
        return True
    return bool((edges.balance == 0).all()) and bool(_net(face).any())


def joined_faces(face: np.ndarray, edges: Edges, joins: np.ndarray, pairs: np.ndarray | None = None) -> np.ndarray:
    """int64[F]: parts of a mesh that the edges chosen by `joins` hold together, numbered by their first triangle.

    pairs: int64[n, 2], triangles that belong together besides.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    side = np.flatnonzero(joins[edges.side_edge])
    size = len(face) + len(edges.count)
    row, col = side // 3, len(face) + edges.side_edge[side]
    if pairs is not None:
        row, col = np.concatenate([row, pairs[:, 0]]), np.concatenate([col, pairs[:, 1]])
    links = coo_matrix((np.ones(len(row), np.int8), (row, col)), shape=(size, size))
    label = connected_components(links, directed=False)[1][: len(face)]
    return in_order(label)


def in_order(label: np.ndarray) -> np.ndarray:
    """int64[n]: labels as numbers from 0, in the order of their first use."""
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[place.reshape(-1)]


def _net(face: np.ndarray) -> np.ndarray:
    """int64[n]: of each set of three vertices, the triangles that wind one way less those that wind the other."""
    _, place = numbered(np.sort(face, axis=1, kind="stable"), axis=0)
    return np.bincount(place, weights=_parity(face)).astype(np.int64)


def _parity(face: np.ndarray) -> np.ndarray:
    """int64[F]: 1 where the vertices ascend from some corner around the triangle, else -1."""
    a, b, c = face.T
    return np.where((a < b) ^ (b < c) ^ (c < a), -1, 1)
