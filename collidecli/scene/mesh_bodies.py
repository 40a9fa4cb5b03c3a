"""The bodies of a closed triangle mesh: their triangles, volumes, orientation and nesting."""

from __future__ import annotations

import numpy as np

from collidecli.numerics.matrices import dot, norm
from collidecli.scene.mesh_crossings import winding_at
from collidecli.scene.mesh_edges import Edges, joined_faces
from collidecli.scene.sorting import distinct


def bodies_of(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> np.ndarray:
    """int64[F]: the body of each triangle of a balanced mesh; bodies are ordered by their first triangle.

    Two triangles at an edge of two are in one body; at an edge of more, pairs of triangles with the inside between
    them: solids that touch along an edge or a face are several bodies. Each body by itself is balanced.
    """
    pairs = _pairs_around_edges(vertex, face, edges) if (edges.count > 2).any() else np.zeros((0, 2), np.int64)
    return joined_faces(face, edges, edges.count == 2, pairs)


def _pairs_around_edges(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> np.ndarray:
    """int64[n, 2]: pairs of triangles at edges of more than two, with the inside in the wedge between them.

    Around an edge, counterclockwise about its direction, a backward side opens the inside and a forward one closes it.
    """
    order = np.argsort(edges.side_edge, kind="stable")
    start = np.cumsum(edges.count) - edges.count
    several = np.flatnonzero(edges.count > 2)
    side = np.concatenate([order[start[e] : start[e] + edges.count[e]] for e in several])
    of_edge = np.repeat(np.arange(len(several)), edges.count[several])
    rows, k = side // 3, side % 3
    ends = np.stack([face[rows, k], face[rows, (k + 1) % 3]], axis=1)
    low, high = vertex[ends.min(axis=1)], vertex[ends.max(axis=1)]
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
    found: list[tuple[int, int]] = []
    for first, count in zip(lead.tolist(), edges.count[several].tolist(), strict=True):
        around = by_angle[first : first + count]
        level = np.cumsum(np.where(forward[around], -1, 1))
        around = np.roll(around, -(int(np.argmin(level)) + 1))
        opened: list[int] = []
        for each in around.tolist():
            if forward[each]:
                found.append((int(rows[opened.pop()]), int(rows[each])))
            else:
                opened.append(each)
    return np.array(found, np.int64)


def volumes_of(vertex: np.ndarray, face: np.ndarray, label: np.ndarray) -> np.ndarray:
    """float64[bodies]: signed volumes [m^3], each about a vertex of the body, so that a far body loses no digits."""
    first = np.unique(label, return_index=True)[1]
    origin = vertex[face[first, 0]][label]
    p, q, r = (vertex[face[:, k]] - origin for k in range(3))
    across = np.cross(q, r)
    return np.bincount(label, weights=p[:, 0] * across[:, 0] + p[:, 1] * across[:, 1] + p[:, 2] * across[:, 2]) / 6.0


def boxes_of(vertex: np.ndarray, face: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64[bodies, 3] twice: lower and upper corners of the bodies' AABBs [m]."""
    order = np.argsort(label, kind="stable")
    start = np.searchsorted(label[order], np.arange(int(label.max()) + 1))
    corners = vertex[face[order]]
    return np.minimum.reduceat(corners.min(axis=1), start), np.maximum.reduceat(corners.max(axis=1), start)


def containment(vertex: np.ndarray, face: np.ndarray, label: np.ndarray) -> np.ndarray:
    """int64[bodies, bodies]: the winding number of body j about the middle of the largest triangle of body i."""
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

    A body of negative volume at a positive winding number of the others is a cavity. Any other body of negative volume
    is inside out, and is reversed together with the bodies inside it.
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
            held = np.zeros(len(sign), bool)
            held[body] = True
            for other in np.flatnonzero(inside[:, body]):
                points = vertex[distinct(face[label == other])]
                held[other] = bool((winding_at(points, vertex, face[label == body]) != 0).all())
            turned ^= held
            sign = np.where(held, -sign, sign)
    face = np.where(turned[label][:, None], face[:, ::-1], face)
    return face, int(turned.sum())
