"""Repairs that make a triangle mesh closed: welding, removal of duplicate triangles and fins, orientation.

Only comparisons, integers, sums and products are used: the result has the same bits on every x86-64 processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from collidecli.numerics import dot, norm
from collidecli.scene.mesh_crossings import crossed_triangles, distinct, numbered, winding_at
from collidecli.texts import plural

# The edges of a triangle mesh, their adjacent triangles, and whether the mesh bounds a volume.


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
    if edges.is_manifold or (edges.balance != 0).any():
        return edges.is_manifold
    # For each set of three vertices, the number of its triangles minus that of opposite triangles.
    _, index = numbered(np.sort(face, axis=1, kind="stable"), axis=0)
    a, b, c = face.T
    parity = np.where((a < b) ^ (b < c) ^ (c < a), -1, 1)  # of the permutation from ascending vertices
    return bool(np.bincount(index, weights=parity).astype(np.int64).any())


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
            is_turned = np.zeros(len(sign), bool)
            is_turned[body] = True
            for other in np.flatnonzero(inside[:, body]):
                points = vertex[distinct(face[label == other])]
                is_turned[other] = bool((winding_at(points, vertex, face[label == body]) != 0).all())
            turned ^= is_turned
            sign = np.where(is_turned, -sign, sign)
    face = np.where(turned[label][:, None], face[:, ::-1], face)
    return face, int(turned.sum())


WELD = 5e-6
"""Fraction of the longest extent within which border vertices are welded: the rounding of six significant digits in a
text file. A rounding of float32, 6e-8, and noise of 1e-9 m on a part of 1 mm are below it."""
FIN_AREA = 0.25
"""Largest area of fins, as a fraction of the kept area; larger border parts are separate surfaces."""
PEEL_ROUNDS = 64
"""Largest width of a fin in triangles."""
FLAT = 1e-12
"""A triangle whose height is below this fraction of its longest side has no accurate normal and is dropped."""


@dataclass(frozen=True)
class MeshRepairs:
    """Counts of the changes of a mesh at load.

    degenerate: triangles without area that were dropped. welded: vertices merged into another. duplicates: repeated
    triangles. opposite: triangles on another one of opposite orientation. fins: triangles attached to a closed surface
    by an edge. turned: triangles reversed to agree with their neighbours. inside_out: reversed bodies. united:
    overlapping or touching bodies that became one surface.
    """

    degenerate: int = 0
    welded: int = 0
    duplicates: int = 0
    opposite: int = 0
    fins: int = 0
    turned: int = 0
    inside_out: int = 0
    united: int = 0

    def __bool__(self) -> bool:
        return any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """The counts that are not 0, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}

    def words(self) -> tuple[str, ...]:
        """One phrase for each kind of repair."""
        phrases = {
            "degenerate": _told(self.degenerate, "triangle without area", "triangles without area", "left out"),
            "welded": _told(self.welded, "border vertex", "border vertices", "welded to others"),
            "duplicates": _told(self.duplicates, "duplicate triangle", "duplicate triangles", "left out"),
            "opposite": _told(self.opposite, "triangle that faces", "triangles that face", "left out", _OPPOSITE),
            "fins": _told(self.fins, "triangle of a fin", "triangles of fins", "left out"),
            "turned": _told(self.turned, "triangle", "triangles", "turned over to face as those beside"),
            "inside_out": _told(self.inside_out, "inside-out body", "inside-out bodies", "turned over"),
            "united": _told(self.united, "overlapping body", "overlapping bodies", "united"),
        }
        return tuple(phrases[name] for name in self.counts())


NO_REPAIRS = MeshRepairs()
_OPPOSITE = " away from an equal one"


def _told(number: int, one: str, several: str, done: str, more: str = "") -> str:
    return f"{plural(number, one, several)}{more} {'is' if number == 1 else 'are'} {done}"


@dataclass(frozen=True)
class RepairedMesh:
    """vertex: float64[V, 3] [m]; vertices without a triangle keep their index. face: int64[F, 3]."""

    vertex: np.ndarray
    face: np.ndarray
    repairs: MeshRepairs


def repaired(vertex: np.ndarray, face: np.ndarray) -> RepairedMesh:
    """The repaired mesh, and its repairs. The input has no equal vertices.

    A closed manifold of outward bodies keeps its bits. Border triangles are dropped and vertices welded only if that
    closes the whole mesh; duplicate triangles are dropped from open meshes too.
    Degenerate: the result of a mesh without a triangle with area has no triangles.
    """
    counts = dict.fromkeys((field.name for field in fields(MeshRepairs)), 0)
    kept = has_area(vertex, face)
    counts["degenerate"] = int(len(face) - kept.sum())
    face = face[kept]
    if not len(face):
        return RepairedMesh(vertex, face, MeshRepairs(**counts))
    edges = edges_of(face)
    if not edges.is_manifold:
        face, repairs = _closed(vertex, face, edges)
        counts |= repairs
        edges = edges_of(face)
    if is_balanced(face, edges):
        face, counts["inside_out"] = turned_outwards(vertex, face, edges)
    return RepairedMesh(vertex, face, MeshRepairs(**counts))


def has_area(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """bool[F]: triangles with an accurate normal."""
    p, q, r = (vertex[face[:, k]] for k in range(3))
    longest = np.max([norm(side) for side in (q - p, r - q, p - r)], axis=0)
    area = norm(np.cross(q - p, r - p))
    distinct = (face[:, 0] != face[:, 1]) & (face[:, 1] != face[:, 2]) & (face[:, 2] != face[:, 0])
    return distinct & (area > FLAT * longest * longest)


def _closed(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> tuple[np.ndarray, dict[str, int]]:
    """The triangles after the first set of repairs that closes the mesh, and its counts.

    If none closes it, the triangles without duplicates.
    """
    unique = _without_duplicates(face, edges)
    plain = {"duplicates": len(face) - len(unique)}
    if plain["duplicates"]:
        edges = edges_of(unique)
    welded, moved = _welded(vertex, unique, edges)
    choices = [(unique, plain)]
    if moved:
        welded = welded[has_area(vertex, welded)]
        if len(welded):
            once = _without_duplicates(welded, edges_of(welded))
            more = {"welded": moved, "duplicates": plain["duplicates"] + len(welded) - len(once)}
            choices.append((once, more))
    for repair in (_turned, _without_fins):
        for start, counts in choices:
            for closed, more in repair(vertex, start):
                if len(closed) and is_balanced(closed, edges_of(closed)):
                    return closed, counts | more
    return unique, plain


def _without_duplicates(face: np.ndarray, edges: Edges) -> np.ndarray:
    """The triangles without repetitions of the same vertices in the same cyclic order; the first of each remains."""
    # A duplicate shares three edges that have another side in the same direction.
    doubled = edges.count > 2
    doubled |= np.abs(edges.balance) > 1
    suspect = np.flatnonzero(doubled[edges.side_edge].reshape(-1, 3).all(axis=1))
    if not len(suspect):
        return face
    suspects = face[suspect]
    turn = np.argmin(suspects, axis=1)
    rows = np.arange(len(suspects))
    key = np.stack([suspects[rows, (turn + k) % 3] for k in range(3)], axis=1)
    first = np.unique(key, axis=0, return_index=True)[1]
    if len(first) == len(suspects):
        return face
    kept = np.ones(len(face), bool)
    kept[suspect] = False
    kept[suspect[first]] = True
    return face[kept]


def _welded(vertex: np.ndarray, face: np.ndarray, edges: Edges) -> tuple[np.ndarray, int]:
    """The triangles after welding vertices of unbalanced edges within WELD, and the number of welded vertices.

    Vertices that are connected directly or by a chain get their lowest index.
    """
    open_side = np.flatnonzero(edges.balance[edges.side_edge] != 0)
    if not len(open_side):
        return face, 0
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    ends = np.concatenate([face.reshape(-1)[open_side], np.roll(face, -1, axis=1).reshape(-1)[open_side]])
    rim = distinct(ends)
    used = vertex[face.reshape(-1)]
    extent = float((used.max(axis=0) - used.min(axis=0)).max())
    pairs = KDTree(vertex[rim]).query_pairs(WELD * extent, output_type="ndarray")
    if not len(pairs):
        return face, 0
    links = coo_matrix((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(len(rim), len(rim)))
    label = connected_components(links, directed=False)[1]
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    number = np.arange(len(vertex))
    number[rim] = rim[first[inverse.reshape(-1)]]
    return number[face], int((number[rim] != rim).sum())


def _turned(vertex: np.ndarray, face: np.ndarray) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Candidates: the triangles; oriented consistently; with one of each opposite pair; with none; those oriented."""
    edges = edges_of(face)
    yield face, {}
    yield from _agreeing(face, edges, {})
    if not (edges.count > 2).any():
        return
    key = np.sort(face, axis=1, kind="stable")
    _, first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(face):
        return
    once = face[np.sort(first, kind="stable")]
    counts = {"opposite": len(face) - len(once)}
    yield once, counts
    yield from _agreeing(once, edges_of(once), counts)
    none = face[np.bincount(inverse.reshape(-1))[inverse.reshape(-1)] == 1]
    if len(none):
        counts = {"opposite": len(face) - len(none)}
        yield none, counts
        yield from _agreeing(none, edges_of(none), counts)


def _agreeing(face: np.ndarray, edges: Edges, before: dict[str, int]) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Triangles reversed so that the two sides of each edge have opposite directions; the fewest of each part.

    Yields nothing if an edge has an odd number of sides, or if a part is not orientable.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if (edges.count % 2 != 0).any() or not (edges.balance != 0).any():
        return
    order = np.argsort(edges.side_edge, kind="stable")
    start = np.cumsum(edges.count) - edges.count
    pair = np.flatnonzero(edges.count == 2)
    a, b = order[start[pair]], order[start[pair] + 1]
    agree = edges.forward[a] != edges.forward[b]
    count = len(face)
    # The graph has two nodes for each triangle, unchanged and reversed: neighbours that agree connect unchanged nodes.
    of_a, of_b = a // 3, b // 3
    row = np.concatenate([of_a, of_a + count])
    col = np.concatenate([np.where(agree, of_b, of_b + count), np.where(agree, of_b + count, of_b)])
    links = coo_matrix((np.ones(len(row), np.int8), (row, col)), shape=(2 * count, 2 * count))
    label = connected_components(links, directed=False)[1]
    upright, over = label[:count], label[count:]
    if (upright == over).any():
        return
    # A part and its reversal are two components: the one with more unchanged triangles is chosen.
    unchanged = np.bincount(upright, minlength=int(label.max()) + 1)
    more, less = unchanged[upright], unchanged[over]
    turned = (less > more) | ((less == more) & (over < upright))
    if turned.any():
        yield np.where(turned[:, None], face[:, ::-1], face), before | {"turned": int(turned.sum())}


def _without_fins(vertex: np.ndarray, face: np.ndarray) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Candidates after repeated removal of triangles with a border edge, until no border edge remains."""
    edges = edges_of(face)
    if not ((edges.count > 2) & (edges.count % 2 == 1)).any() and not (edges.count > 3).any():
        return
    kept = np.ones(len(face), bool)
    count = edges.count.copy()
    side_edge = edges.side_edge.reshape(-1, 3)
    for _ in range(PEEL_ROUNDS):
        border = kept & (count[side_edge] == 1).any(axis=1)
        if not border.any():
            break
        kept &= ~border
        count -= np.bincount(side_edge[border].reshape(-1), minlength=len(count))
    if kept.all() or not kept.any() or not _are_fins(vertex, face, edges, kept):
        return
    fins = {"fins": int((~kept).sum())}
    for turned, more in _turned(vertex, face[kept]):
        yield turned, fins | more


def _are_fins(vertex: np.ndarray, face: np.ndarray, edges: Edges, kept: np.ndarray) -> bool:
    """Whether the removed triangles are connected to the kept ones by edges, and small beside them."""
    p, q, r = (vertex[face[:, k]] for k in range(3))
    area = norm(np.cross(q - p, r - p))
    if area[~kept].sum() > FIN_AREA * area[kept].sum():
        return False
    label = joined_faces(face, edges, edges.count > 1)
    return bool(np.isin(label[~kept], label[kept]).all())


# Union of overlapping or touching bodies of one closed mesh, by the library Manifold.

MERGED = 1e-12
"""Fraction of the volume that a union must remove to be accepted, unless it reduces the number of bodies."""


def united(mesh: RepairedMesh) -> RepairedMesh:
    """The mesh with the union of its overlapping bodies; the argument itself if it is open, or no bodies overlap.

    `bodies_of` defines the bodies; a cavity belongs to its enclosing body. A group of overlapping solids is unchanged
    if a surface crosses itself, or if Manifold rejects it. Triangles of other bodies come first, unchanged; those of
    each union follow, in the order of their vertices; new vertices of a union follow the old ones.
    """
    face = mesh.face
    if not len(face):
        return mesh
    edges = edges_of(face)
    if not is_balanced(face, edges):
        return mesh
    label = bodies_of(mesh.vertex, face, edges)
    count = int(label.max()) + 1
    if count == 1:
        return mesh
    low, high = boxes_of(mesh.vertex, face, label)
    overlaps = _overlapping_boxes(low, high)
    if not len(overlaps):
        return mesh
    near = np.zeros(count, bool)
    near[overlaps.reshape(-1)] = True
    rows = np.flatnonzero(near[label])
    groups, simple = _groups(mesh.vertex, face[rows], label[rows], count)
    vertex, kept, added = mesh.vertex, np.ones(len(face), bool), []
    joined = 0
    for group in groups:
        if not all(simple[body] for solid in group for body in solid):
            continue
        parts = [face[np.isin(label, solid)] for solid in group]
        made = _union(mesh.vertex, parts)
        if made is None:
            continue
        points, triangles = made
        # Vertices of the union that are not among the mesh's own follow them.
        known = {row.tobytes(): number for number, row in reversed(list(enumerate(vertex[: len(mesh.vertex)])))}
        number = np.array([known.get(row.tobytes(), -1) for row in points], np.int64)
        new = np.flatnonzero(number < 0)
        number[new] = len(vertex) + np.arange(len(new))
        vertex, triangles = np.concatenate([vertex, points[new]]), number[triangles]
        added.append(triangles)
        kept &= ~np.isin(label, [body for solid in group for body in solid])
        joined += len(group)
    if not joined:
        return mesh
    return RepairedMesh(vertex, np.concatenate([face[kept], *added]), replace(mesh.repairs, united=joined))


def _overlapping_boxes(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """int64[n, 2]: pairs of bodies whose AABBs overlap."""
    order = np.argsort(low[:, 0], kind="stable")
    pairs = []
    for index, body in enumerate(order):
        stop = index + 1 + int(np.searchsorted(low[order[index + 1 :], 0], high[body, 0], side="right"))
        others = order[index + 1 : stop]
        overlap = ((low[others] <= high[body]) & (low[body] <= high[others])).all(axis=1)
        pairs += [(int(body), int(other)) for other in others[overlap]]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _groups(
    vertex: np.ndarray, face: np.ndarray, label: np.ndarray, count: int
) -> tuple[list[list[list[int]]], np.ndarray]:
    """Groups of solids that cross, touch or contain each other; and bool[bodies], True for a surface without
    self-intersection. A solid is a body and its cavities."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    pairs = crossed_triangles(vertex, face)
    first, second = label[pairs[:, 0]], label[pairs[:, 1]]
    simple = np.ones(count, bool)
    simple[first[first == second]] = False
    labels = distinct(label)
    number = np.searchsorted(labels, label)
    inside = np.zeros((count, count), np.int64)
    inside[np.ix_(labels, labels)] = containment(vertex, face, number)
    volume = np.zeros(count)
    volume[labels] = volumes_of(vertex, face, number)
    owner = np.arange(count)
    for body in labels[volume[labels] < 0.0]:
        holders = labels[(inside[body, labels] > 0) & (volume[labels] > 0.0)]
        if len(holders):
            owner[body] = holders[np.argmin(volume[holders])]
    # A point in a cavity is inside the outer body, and outside the solid.
    held_by = np.zeros((count, count), np.int64)
    np.add.at(held_by.T, owner, inside.T)
    links = np.concatenate([np.stack([first, second], axis=1), np.argwhere(held_by > 0)])
    links = owner[links]
    links = links[links[:, 0] != links[:, 1]]
    graph = coo_matrix((np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(count, count))
    group = in_order(connected_components(graph, directed=False)[1])
    members: dict[int, dict[int, list[int]]] = {}
    for body in labels.tolist():
        members.setdefault(int(group[owner[body]]), {}).setdefault(int(owner[body]), []).append(body)
    return [list(solids.values()) for solids in members.values() if len(solids) > 1], simple


def _union(vertex: np.ndarray, solids: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and triangles of the union of solids, each given by its triangles; None for a rejected union.

    The result is sorted, so that it does not depend on the scheduling of Manifold's threads.
    Source: github.com/elalish/manifold; Smith 2009 for the guarantee that the result is manifold.
    """
    import manifold3d

    parts: list[Any] = []
    for face in solids:
        used, number = numbered(face)
        points = np.ascontiguousarray(vertex[used])
        part = manifold3d.Manifold(manifold3d.Mesh64(points, number.reshape(-1, 3).astype(np.uint64)))
        if part.status() != manifold3d.Error.NoError or part.is_empty():
            return None
        parts.append(part)
    whole = manifold3d.Manifold.batch_boolean(parts, manifold3d.OpType.Add)
    if whole.status() != manifold3d.Error.NoError or whole.is_empty():
        return None
    mesh = whole.to_mesh64()
    points, face = _sorted(np.asarray(mesh.vert_properties, np.float64)[:, :3], np.asarray(mesh.tri_verts, np.int64))
    kept = has_area(points, face)
    if not kept.all() or not edges_of(face).is_manifold:
        return None
    before = [float(volumes_of(vertex, solid, np.zeros(len(solid), np.int64))[0]) for solid in solids]
    after = float(volumes_of(points, face, np.zeros(len(face), np.int64))[0])
    slack = MERGED * sum(before)
    if not max(before) - slack <= after <= sum(before) + slack:
        return None
    parts_before = sum(int(bodies_of(vertex, solid, edges_of(solid)).max()) + 1 for solid in solids)
    parts_after = int(bodies_of(points, face, edges_of(face)).max()) + 1
    if after >= sum(before) - slack and parts_after >= parts_before:
        return None
    return points, face


def _sorted(vertex: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct vertices sorted by coordinates, and triangles sorted by vertices, each from its lowest vertex."""
    points, number = numbered(vertex + 0.0, axis=0)
    face = number[face]
    turn = np.argmin(face, axis=1)
    rows = np.arange(len(face))
    face = np.stack([face[rows, (turn + k) % 3] for k in range(3)], axis=1)
    return points, face[np.lexsort(face.T[::-1])]
