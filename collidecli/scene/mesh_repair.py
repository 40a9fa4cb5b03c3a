"""Repairs that make a triangle mesh closed: welding, removal of duplicate triangles and fins,
orientation.

Only comparisons, integers, sums and products are used: the result has the same bits on every x86-64
processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from collidecli.numerics.products import norm
from collidecli.scene.connected_parts import connected_parts
from collidecli.scene.distinct_values import distinct
from collidecli.scene.mesh_edges import edges_of, is_balanced, joined_faces, turned_outwards
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.scene.mesh_edges import Edges

WELD = 5e-6
"""Fraction of the longest extent within which border vertices are welded: the rounding of six
significant digits in a text file. A rounding of float32, 6e-8, and noise of 1e-9 m on a part of 1
mm are below it."""
FIN_AREA = 0.25
"""Largest area of fins, as a fraction of the kept area; larger border parts are separate
surfaces."""
PEEL_ROUNDS = 64
"""Largest width of a fin in triangles."""
FLAT = 1e-12
"""A triangle whose height is below this fraction of its longest side has no accurate normal and is
dropped."""


@dataclass(frozen=True)
class MeshRepairs:
    """Counts of the changes of a mesh at load.

    degenerate: triangles without area that were dropped. welded: vertices merged into another.
    duplicates: repeated triangles. opposite: triangles on another one of opposite orientation.
    fins: triangles attached to a closed surface by an edge. turned: triangles reversed to agree
    with their neighbours. inside_out: reversed bodies. united: overlapping or touching bodies that
    became one surface.
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
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name)
        }

    def words(self) -> tuple[str, ...]:
        """One phrase for each kind of repair."""
        phrases = {
            "degenerate": _told(
                self.degenerate, "triangle without area", "triangles without area", "left out"
            ),
            "welded": _told(self.welded, "border vertex", "border vertices", "welded to others"),
            "duplicates": _told(
                self.duplicates, "duplicate triangle", "duplicate triangles", "left out"
            ),
            "opposite": _told(
                self.opposite, "triangle that faces", "triangles that face", "left out", _OPPOSITE
            ),
            "fins": _told(self.fins, "triangle of a fin", "triangles of fins", "left out"),
            "turned": _told(
                self.turned, "triangle", "triangles", "turned over to face as those beside"
            ),
            "inside_out": _told(
                self.inside_out, "inside-out body", "inside-out bodies", "turned over"
            ),
            "united": _told(self.united, "overlapping body", "overlapping bodies", "united"),
        }
        return tuple(phrases[name] for name in self.counts())


NO_REPAIRS = MeshRepairs()
_OPPOSITE = " away from an equal one"


def _told(number: int, one: str, several: str, done: str, more: str = "") -> str:
    return f"{plural(number, one, several)}{more} {'is' if number == 1 else 'are'} {done}"


@dataclass(frozen=True)
class RepairedMesh:
    """vertex: float64[V, 3] [m]; vertices without a triangle keep their index. face: int64[F,
    3]."""

    vertex: np.ndarray
    face: np.ndarray
    repairs: MeshRepairs


def repaired(vertex: np.ndarray, face: np.ndarray) -> RepairedMesh:
    """The repaired mesh, and its repairs. The input has no equal vertices.

    A closed manifold of outward bodies keeps its bits. Border triangles are dropped and vertices
    welded only if that closes the whole mesh; duplicate triangles are dropped from open meshes too.
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


def _closed(
    vertex: np.ndarray, face: np.ndarray, edges: Edges
) -> tuple[np.ndarray, dict[str, int]]:
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
    """The triangles without repetitions of the same vertices in the same cyclic order; the first of
    each remains."""
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
    """The triangles after welding vertices of unbalanced edges within WELD, and the number of
    welded vertices.

    Vertices that are connected directly or by a chain get their lowest index.
    """
    open_side = np.flatnonzero(edges.balance[edges.side_edge] != 0)
    if not len(open_side):
        return face, 0
    from scipy.spatial import KDTree

    ends = np.concatenate(
        [face.reshape(-1)[open_side], np.roll(face, -1, axis=1).reshape(-1)[open_side]]
    )
    rim = distinct(ends)
    used = vertex[face.reshape(-1)]
    extent = float((used.max(axis=0) - used.min(axis=0)).max())
    pairs = KDTree(vertex[rim]).query_pairs(WELD * extent, output_type="ndarray")
    if not len(pairs):
        return face, 0
    label = connected_parts(pairs[:, 0], pairs[:, 1], len(rim))
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    number = np.arange(len(vertex))
    number[rim] = rim[first[inverse.reshape(-1)]]
    return number[face], int((number[rim] != rim).sum())


def _turned(vertex: np.ndarray, face: np.ndarray) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Candidates: the triangles; oriented consistently; with one of each opposite pair; with none;
    those oriented."""
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


def _agreeing(
    face: np.ndarray, edges: Edges, before: dict[str, int]
) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Triangles reversed so that the two sides of each edge have opposite directions; the fewest of
    each part.

    Yields nothing if an edge has an odd number of sides, or if a part is not orientable.
    """
    if (edges.count % 2 != 0).any() or not (edges.balance != 0).any():
        return
    order = np.argsort(edges.side_edge, kind="stable")
    start = np.cumsum(edges.count) - edges.count
    pair = np.flatnonzero(edges.count == 2)
    a = order[start[pair]]
    b = order[start[pair] + 1]
    agree = edges.forward[a] != edges.forward[b]
    count = len(face)
    # The graph has two nodes for each triangle, unchanged and reversed: neighbours that agree
    # connect unchanged nodes.
    of_a = a // 3
    of_b = b // 3
    row = np.concatenate([of_a, of_a + count])
    col = np.concatenate([np.where(agree, of_b, of_b + count), np.where(agree, of_b + count, of_b)])
    label = connected_parts(row, col, 2 * count)
    upright = label[:count]
    over = label[count:]
    if (upright == over).any():
        return
    # A part and its reversal are two components: the one with more unchanged triangles is chosen.
    unchanged = np.bincount(upright, minlength=int(label.max()) + 1)
    more = unchanged[upright]
    less = unchanged[over]
    turned = (less > more) | ((less == more) & (over < upright))
    if turned.any():
        yield np.where(turned[:, None], face[:, ::-1], face), before | {"turned": int(turned.sum())}


def _without_fins(
    vertex: np.ndarray, face: np.ndarray
) -> Iterator[tuple[np.ndarray, dict[str, int]]]:
    """Candidates after repeated removal of triangles with a border edge, until no border edge
    remains."""
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
    """Whether the removed triangles are connected to the kept ones by edges, and small beside
    them."""
    p, q, r = (vertex[face[:, k]] for k in range(3))
    area = norm(np.cross(q - p, r - p))
    if area[~kept].sum() > FIN_AREA * area[kept].sum():
        return False
    label = joined_faces(face, edges, edges.count > 1)
    return bool(np.isin(label[~kept], label[kept]).all())
