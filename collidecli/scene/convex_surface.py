"""Triangle meshes that are the surface of a convex solid: their hull and the mesh's feature ids of its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import dot, norm
from collidecli.scene.convex_hull import COPLANAR, FACE_CORNERS, ConvexHull, convex_hull
from collidecli.scene.triangle_mesh import TriangleMesh


@dataclass(frozen=True, eq=False)
class ConvexSurface:
    """A convex mesh as a hull in the mesh's frame.

    name: int32[3 max(V, E, F)], the mesh's feature id of each feature id of the hull; -1 for unused ids. A vertex has
    the id of the mesh's vertex; an edge that of the mesh's edge from its first vertex along it; a face the lowest id
    of the triangles along its outline.
    """

    hull: ConvexHull
    name: np.ndarray


def convex_surface(mesh: TriangleMesh) -> ConvexSurface | None:
    """The hull of a closed mesh without a dent deeper than COPLANAR times its size; None for any other mesh.

    Two conditions hold: no triangle rises above the plane of a neighbour, and the volumes of mesh and hull are equal.
    The first alone admits disjoint and nested solids, the second alone a slit.
    """
    if not (mesh.is_closed and mesh.is_manifold):
        return None
    used = np.unique(mesh.face)
    near = COPLANAR * float(np.ptp(mesh.vertex[used], axis=0).max())
    if _highest_neighbor(mesh) > near:
        return None
    try:
        hull = convex_hull(mesh.vertex[used], "a mesh")
    except InputError:  # as flat as a sheet
        return None
    volume, area = _volume_and_area(hull)
    if abs(volume - mesh.volume) > near * area:
        return None
    return ConvexSurface(hull, _names(mesh, used, hull))


def _highest_neighbor(mesh: TriangleMesh) -> float:
    """Largest height of a triangle's vertex above the plane of an adjacent triangle [m]."""
    sides = np.argsort(mesh.face_edge.reshape(-1), kind="stable").reshape(-1, 2)
    across = np.roll(mesh.face, 1, axis=1).reshape(-1)
    highest = -np.inf
    for here, there in ((0, 1), (1, 0)):
        face = sides[:, here] // 3
        off = mesh.vertex[across[sides[:, there]]] - mesh.vertex[mesh.face[face, 0]]
        highest = max(highest, float(dot(mesh.face_normal[face], off).max()))
    return highest


def _volume_and_area(hull: ConvexHull) -> tuple[float, float]:
    fans = [(o[0], o[k], o[k + 1]) for o in hull.face for k in range(1, len(o) - 1)]
    p, q, r = np.moveaxis(hull.vertex[np.array(fans)], 1, 0)
    volume = float(dot(p, np.cross(q, r)).sum() / 6.0)
    return volume, 0.5 * float(norm(np.cross(q - p, r - p)).sum())


def _names(mesh: TriangleMesh, used: np.ndarray, hull: ConvexHull) -> np.ndarray:
    from scipy.spatial import KDTree

    vertex: list[int] = used[KDTree(mesh.vertex[used]).query(hull.vertex)[1]].tolist()
    side = _Sides(mesh)
    edges, faces = len(hull.edge) + FACE_CORNERS * len(hull.face), len(hull.face)
    of_edge = [side.leaving(vertex[p], vertex[q]) for p, q, _, _ in hull.edge.tolist()]
    edge = _distinct([int(mesh.face_edge.reshape(-1)[k]) for k in of_edge], mesh.edge_count)
    outlines = [zip(o, o[1:] + o[:1], strict=True) for o in hull.face]
    face = [min(side.leaving(vertex[p], vertex[q]) // 3 for p, q in outline) for outline in outlines]
    face = _distinct(face, len(mesh.face))
    # Ids of a face's sides that replace several edges are above all others.
    behind = max(mesh.edge_count, max(edge) + 1)
    edge += range(behind, behind + edges - len(edge))
    name = np.full((max(len(vertex), edges, faces), 3), -1, np.int64)
    for kind, numbers in enumerate((vertex, edge, face)):
        name[: len(numbers), kind] = 3 * np.asarray(numbers, np.int64) + kind
    return name.reshape(-1).astype(np.int32)


class _Sides:
    """A mesh's half-edges by their start vertex, counterclockwise from outside."""

    def __init__(self, mesh: TriangleMesh) -> None:
        self._mesh = mesh
        self._start = mesh.face.reshape(-1)
        self._end = np.roll(mesh.face, -1, axis=1).reshape(-1)
        self._order = np.argsort(self._start, kind="stable")
        self._first = np.searchsorted(self._start[self._order], np.arange(len(mesh.vertex) + 1))

    def leaving(self, vertex: int, toward: int) -> int:
        """The half-edge, 3 * triangle + side, from a vertex that is closest in direction to another vertex."""
        around = self._order[self._first[vertex] : self._first[vertex + 1]]
        direct = around[self._end[around] == toward]
        if len(direct):
            return int(direct[0])
        line = self._mesh.vertex[toward] - self._mesh.vertex[vertex]
        along = self._mesh.vertex[self._end[around]] - self._mesh.vertex[vertex]
        return int(around[np.argmax(dot(along, line) / norm(along))])


def _distinct(numbers: list[int], behind: int) -> list[int]:
    """The numbers, with every repetition replaced by a new number from `behind` on."""
    seen: set[int] = set()
    result = []
    for number in numbers:
        if number in seen:
            number, behind = behind, behind + 1
        seen.add(number)
        result.append(number)
    return result
