"""The edges of a triangle mesh, their adjacent triangles, and whether the mesh bounds a volume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.sorting import numbered


@dataclass(frozen=True)
class Edges:
    """Undirected edges of triangles. side_edge: int64[3 F], the edge of side k of triangle f at 3 f + k.

    forward: bool[3 F], whether the side runs from the lower vertex index to the higher one.
    count: int64[E], sides of each edge. balance: int64[E], forward sides minus backward sides.
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
    """Whether triangles bound a volume: each edge has as many forward as backward sides, and not all triangles cancel.

    The winding number is then an integer everywhere off the surface. A mesh in which every triangle has an opposite
    twin, such as a sheet with both sides, bounds nothing.
    """
    if edges.is_manifold:
        return True
    return bool((edges.balance == 0).all()) and bool(_net(face).any())


def joined_faces(face: np.ndarray, edges: Edges, joins: np.ndarray, pairs: np.ndarray | None = None) -> np.ndarray:
    """int64[F]: parts of a mesh that are connected by the edges in `joins`, ordered by their first triangle.

    pairs: int64[n, 2], further connected triangles.
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
    """int64[n]: labels renumbered from 0 in the order of their first use."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[inverse.reshape(-1)]


def _net(face: np.ndarray) -> np.ndarray:
    """int64[n]: for each set of three vertices, the number of its triangles minus that of opposite triangles."""
    _, index = numbered(np.sort(face, axis=1, kind="stable"), axis=0)
    return np.bincount(index, weights=_parity(face)).astype(np.int64)


def _parity(face: np.ndarray) -> np.ndarray:
    """int64[F]: 1 for an even permutation of ascending vertices, -1 for an odd one."""
    a, b, c = face.T
    return np.where((a < b) ^ (b < c) ^ (c < a), -1, 1)
