"""The edges of a triangle mesh, their adjacent triangles, and whether the mesh bounds a volume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.numerics.products import dot, norm
from collidecli.scene.connected_parts import connected_parts
from collidecli.scene.distinct_values import distinct, numbered
from collidecli.scene.mesh_crossings import winding_at


@dataclass(frozen=True)
class Edges:
    """Undirected edges of triangles. side_edge: int64[3 F], the edge of side k of triangle f at 3 f
    + k.

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
    start = face.reshape(-1)
    end = np.roll(face, -1, axis=1).reshape(-1)
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
    """Whether triangles bound a volume: each edge has as many forward as backward sides, and not
    all triangles cancel.

    The winding number is then an integer everywhere off the surface. A mesh in which every triangle
    has an opposite twin, such as a sheet with both sides, bounds nothing.
    """
    if edges.is_manifold or (edges.balance != 0).any():
        return edges.is_manifold
    # For each set of three vertices, the number of its triangles minus that of opposite triangles.
    _, index = numbered(np.sort(face, axis=1, kind="stable"), axis=0)
    a, b, c = face.T
    # of the permutation from ascending vertices
    parity = np.where((a < b) ^ (b < c) ^ (c < a), -1, 1)
    return bool(np.bincount(index, weights=parity).astype(np.int64).any())


def joined_faces(
    face: np.ndarray, edges: Edges, joins: np.ndarray, pairs: np.ndarray | None = None
) -> np.ndarray:
    """int64[F]: parts of a mesh that are connected by the edges in `joins`, ordered by their first
    triangle.

    pairs: int64[n, 2], further connected triangles.
    """
    side = np.flatnonzero(joins[edges.side_edge])
    size = len(face) + len(edges.count)
    row = side // 3
    col = len(face) + edges.side_edge[side]
    if pairs is not None:
        row = np.concatenate([row, pairs[:, 0]])
        col = np.concatenate([col, pairs[:, 1]])
    return connected_parts(row, col, size)[: len(face)]


def bodies_of(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> np.ndarray:
    """int64[F]: the body of each triangle of a balanced mesh; bodies are ordered by their first
    triangle.

    Two triangles at an edge of two are in one body; at an edge of more, pairs of triangles with the
    inside between them: solids that touch along an edge or a face are several bodies. Each body by
    itself is balanced.
    """
    pairs = (
        _pairs_around_edges(vertex, face, edges)
        if (edges.count > 2).any()
        else np.zeros((0, 2), np.int64)
    )
    return joined_faces(face, edges, edges.count == 2, pairs)


def _pairs_around_edges(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> np.ndarray:
    """int64[n, 2]: pairs of triangles at edges of more than two, with the inside in the wedge
    between them.

    Around an edge, counterclockwise about its direction, a backward side opens the inside and a
    forward one closes it.
    """
    order = np.argsort(edges.side_edge, kind="stable")
    start = np.cumsum(edges.count) - edges.count
    several = np.flatnonzero(edges.count > 2)
    side = np.concatenate([order[start[e] : start[e] + edges.count[e]] for e in several])
    of_edge = np.repeat(np.arange(len(several)), edges.count[several])
    rows = side // 3
    k = side % 3
    ends = np.stack([face[rows, k], face[rows, (k + 1) % 3]], axis=1)
    low = vertex[ends.min(axis=1)]
    high = vertex[ends.max(axis=1)]
    off = vertex[face[rows, (k + 2) % 3]] - low
    axis = high - low
    # Two directions across the edge; the angle is measured from the first side of each edge.
    lead = np.cumsum(edges.count[several]) - edges.count[several]
    across = np.cross(axis, off[lead][of_edge])
    along = np.cross(across, axis)
    x = dot(off, along) / norm(along)
    y = dot(off, across) / norm(across)
    # Grows with the angle, without a transcendental function.
    turn = np.where(y >= 0.0, 1.0 - x / (np.abs(x) + np.abs(y)), 3.0 + x / (np.abs(x) + np.abs(y)))
    forward = edges.forward[side]
    # Of coincident triangles the closing one comes first: touching solids are two bodies.
    by_angle = np.lexsort((~forward, turn, of_edge))
    pairs: list[tuple[int, int]] = []
    for first, count in zip(lead.tolist(), edges.count[several].tolist(), strict=True):
        around = by_angle[first : first + count]
        level = np.cumsum(np.where(forward[around], -1, 1))
        around = np.roll(around, -(int(np.argmin(level)) + 1))
        opened: list[int] = []
        for row in around.tolist():
            if forward[row]:
                pairs.append((int(rows[opened.pop()]), int(rows[row])))
            else:
                opened.append(row)
    return np.array(pairs, np.int64)


def volumes_of(vertex: np.ndarray, face: np.ndarray, label: np.ndarray) -> np.ndarray:
    """float64[bodies]: signed volumes [m^3], each about a vertex of the body, so that a far body
    loses no digits."""
    first = np.unique(label, return_index=True)[1]
    origin = vertex[face[first, 0]][label]
    p, q, r = (vertex[face[:, k]] - origin for k in range(3))
    across = np.cross(q, r)
    return (
        np.bincount(
            label, weights=p[:, 0] * across[:, 0] + p[:, 1] * across[:, 1] + p[:, 2] * across[:, 2]
        )
        / 6.0
    )


def boxes_of(
    vertex: np.ndarray, face: np.ndarray, label: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """float64[bodies, 3] twice: lower and upper corners of the bodies' AABBs [m]."""
    order = np.argsort(label, kind="stable")
    start = np.searchsorted(label[order], np.arange(int(label.max()) + 1))
    corners = vertex[face[order]]
    return np.minimum.reduceat(corners.min(axis=1), start), np.maximum.reduceat(
        corners.max(axis=1), start
    )


def containment(vertex: np.ndarray, face: np.ndarray, label: np.ndarray) -> np.ndarray:
    """int64[bodies, bodies]: the winding number of body j about the middle of the largest triangle
    of body i."""
    count = int(label.max()) + 1
    p, q, r = (vertex[face[:, k]] for k in range(3))
    area = norm(np.cross(q - p, r - p))
    order = np.lexsort((-area, label))
    largest = order[np.searchsorted(label[order], np.arange(count))]
    middle = (p[largest] + q[largest] + r[largest]) / 3.0
    result = np.zeros((count, count), np.int64)
    low, high = boxes_of(vertex, face, label)
    for body in range(count):
        near = np.flatnonzero(((middle >= low[body]) & (middle <= high[body])).all(axis=1))
        near = near[near != body]
        if len(near):
            result[near, body] = winding_at(middle[near], vertex, face[label == body])
    return result


def turned_outwards(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> tuple[np.ndarray, int]:
    """The triangles with inside-out bodies reversed, and the number of reversed bodies.

    A body of negative volume at a positive winding number of the others is a cavity. Any other body
    of negative volume is inside out, and is reversed together with the bodies inside it.
    """
    label = bodies_of(vertex, face, edges)
    volume = volumes_of(vertex, face, label)
    if not (volume < 0.0).any():
        return face, 0
    if len(volume) == 1:
        return face[:, ::-1], 1
    inside = containment(vertex, face, label)
    sign = np.where(volume < 0.0, -1, 1)
    turned = np.zeros(len(volume), bool)
    # In descending order of volume: a container precedes its contents.
    for body in np.argsort(-np.abs(volume), kind="stable"):
        around = int((sign * np.abs(inside[body]))[np.arange(len(sign)) != body].sum())
        if sign[body] < 0 and around <= 0:
            is_turned = np.zeros(len(sign), bool)
            is_turned[body] = True
            for other in np.flatnonzero(inside[:, body]):
                points = vertex[distinct(face[label == other])]
                is_turned[other] = bool(
                    (winding_at(points, vertex, face[label == body]) != 0).all()
                )
            turned ^= is_turned
            sign = np.where(is_turned, -sign, sign)
    face = np.where(turned[label][:, None], face[:, ::-1], face)
    return face, int(turned.sum())
