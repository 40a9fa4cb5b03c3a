"""Triangle meshes that are the surface of a convex solid: their hull, with feature ids of the
mesh."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import dot, norm
from collidecli.scene.convex_hull import COPLANAR, FACE_CORNERS, convex_hull
from collidecli.scene.distinct_values import distinct
from collidecli.scene.triangle_mesh import TriangleMesh

if TYPE_CHECKING:
    from collidecli.scene.convex_hull import ConvexHull


@dataclass(frozen=True, eq=False)
class ConvexSurface:
    """A convex mesh as a hull in the mesh's frame.

    name: int32[3 max(V, E, F)], the mesh's feature id of each feature id of the hull; -1 for unused
    ids. A vertex has the id of the mesh's vertex; an edge that of the mesh's edge from its first
    vertex along it; a face the lowest id of the triangles along its outline.
    """

    hull: ConvexHull
    name: np.ndarray


def convex_surface(mesh: TriangleMesh) -> ConvexSurface | None:
    """The hull of a closed mesh without a dent deeper than COPLANAR times its size; None for any
    other mesh.

    Two conditions hold: no triangle rises above the plane of a neighbour, and the volumes of mesh
    and hull are equal. The first alone admits disjoint and nested solids, the second alone a slit.
    """
    if not (mesh.is_closed and mesh.is_manifold):
        return None
    used = distinct(mesh.face)
    near = COPLANAR * float(np.ptp(mesh.vertex[used], axis=0).max())
    # The largest height of a triangle's vertex above the plane of an adjacent triangle.
    sides = np.argsort(mesh.face_edge.reshape(-1), kind="stable").reshape(-1, 2)
    across = np.roll(mesh.face, 1, axis=1).reshape(-1)
    highest = -np.inf
    for side, other_side in ((0, 1), (1, 0)):
        face = sides[:, side] // 3
        off = mesh.vertex[across[sides[:, other_side]]] - mesh.vertex[mesh.face[face, 0]]
        highest = max(highest, float(dot(mesh.face_normal[face], off).max()))
    if highest > near:
        return None
    try:
        hull = convex_hull(mesh.vertex[used], "a mesh")
    except InputError:  # as flat as a sheet
        return None
    p, q, r = np.moveaxis(hull.vertex[hull.triangles], 1, 0)
    volume = float(dot(p, np.cross(q, r)).sum() / 6.0)
    area = 0.5 * float(norm(np.cross(q - p, r - p)).sum())
    if abs(volume - mesh.volume) > near * area:
        return None
    return ConvexSurface(hull, _names(mesh, used, hull))


def _names(mesh: TriangleMesh, used: np.ndarray, hull: ConvexHull) -> np.ndarray:
    from scipy.spatial import KDTree

    vertex: list[int] = used[KDTree(mesh.vertex[used]).query(hull.vertex)[1]].tolist()
    start = mesh.face.reshape(-1)
    end = np.roll(mesh.face, -1, axis=1).reshape(-1)
    order = np.argsort(start, kind="stable")
    first = np.searchsorted(start[order], np.arange(len(mesh.vertex) + 1))

    def leaving(corner: int, toward: int) -> int:
        """The half-edge, 3 * triangle + side, from a vertex that is closest in direction to another
        vertex."""
        around = order[first[corner] : first[corner + 1]]
        direct = around[end[around] == toward]
        if len(direct):
            return int(direct[0])
        line = mesh.vertex[toward] - mesh.vertex[corner]
        along = mesh.vertex[end[around]] - mesh.vertex[corner]
        return int(around[np.argmax(dot(along, line) / norm(along))])

    edges = len(hull.edge) + FACE_CORNERS * len(hull.face)
    faces = len(hull.face)
    of_edge = [leaving(vertex[p], vertex[q]) for p, q, _, _ in hull.edge.tolist()]
    edge = _distinct([int(mesh.face_edge.reshape(-1)[k]) for k in of_edge], mesh.edge_count)
    outlines = [zip(o, o[1:] + o[:1], strict=True) for o in hull.face]
    face = [min(leaving(vertex[p], vertex[q]) // 3 for p, q in outline) for outline in outlines]
    face = _distinct(face, len(mesh.face))
    # Ids of a face's sides that replace several edges are above all others.
    behind = max(mesh.edge_count, max(edge) + 1)
    edge += range(behind, behind + edges - len(edge))
    name = np.full((max(len(vertex), edges, faces), 3), -1, np.int64)
    for kind, numbers in enumerate((vertex, edge, face)):
        name[: len(numbers), kind] = 3 * np.asarray(numbers, np.int64) + kind
    return name.reshape(-1).astype(np.int32)


def _distinct(numbers: list[int], behind: int) -> list[int]:
    """The numbers, with every repetition replaced by a new number from `behind` on."""
    fresh = count(behind)
    seen = set[int]()
    result = []
    for number in numbers:
        result.append(next(fresh) if number in seen else number)
        seen.add(result[-1])
    return result
