"""A triangle mesh: its vertices and triangles, cleaned, and which edges and vertices its triangles share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import dot, norm
from collidecli.scene.arguments import float_array
from collidecli.scene.mesh_bodies import boxes_of
from collidecli.scene.mesh_crossings import crossed_triangles, hidden_triangles
from collidecli.scene.mesh_edges import Edges, edges_of, is_balanced, joined_faces
from collidecli.scene.mesh_repair import NO_REPAIRS, MeshRepairs, repaired
from collidecli.scene.mesh_union import united
from collidecli.scene.shape_types import LENGTH_LIMIT
from collidecli.scene.sorting import distinct, numbered

FEATURE_LIMIT = 2**31 // 3 - 1
"""Vertices, edges and triangles are numbered in 32 bits, three numbers for each."""


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Triangles whose box has its centre at the origin. The surface may be open, and any number may share an edge.

    vertex: float64[V, 3] [m]; equal ones are one, in the order of their first use in the points given. center:
    float64[3], the centre of the box in the points' own frame [m]. face: int32[F, 3], counterclockwise from outside.
    repairs: what was changed of the points and triangles given. two_sided: whether an open surface is solid from both
    sides; else it has a front, from which its triangles are counterclockwise. Closed ones have an inside whatever it
    says.
    """

    vertex: np.ndarray
    center: np.ndarray
    face: np.ndarray
    repairs: MeshRepairs = NO_REPAIRS
    two_sided: bool = True

    @property
    def half_extents(self) -> np.ndarray:
        """float64[3] of the box [m]; a flat mesh's is a little above 0 across it."""
        return np.maximum(np.abs(self.vertex).max(axis=0), np.nextafter(0.0, 1.0))

    @cached_property
    def key(self) -> bytes:
        """Equal for equal meshes with equal repairs."""
        return self.vertex.tobytes() + self.face.tobytes() + bytes([self.has_front]) + repr(self.repairs).encode()

    @cached_property
    def face_normal(self) -> np.ndarray:
        """float64[F, 3], unit."""
        p, q, r = (self.vertex[self.face[:, k]] for k in range(3))
        across = np.cross(q - p, r - p)
        return across / norm(across)[:, None]

    @property
    def volume(self) -> float:
        """What a closed mesh holds [m^3]; negative where its triangles are clockwise from outside."""
        p, q, r = (self.vertex[self.face[:, k]] for k in range(3))
        return float(dot(p, np.cross(q, r)).sum() / 6.0)

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[3 F, 2], the ends of each triangle's sides, ascending; and the number of the edge that each is."""
        ends = np.sort(np.stack([self.face, np.roll(self.face, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
        keys = ends[:, 0].astype(np.int64) * len(self.vertex) + ends[:, 1]
        return ends, numbered(keys)[1]

    @property
    def face_edge(self) -> np.ndarray:
        """int[F, 3]: the edge from each corner of a triangle to the next. Edges are in the order of their vertices."""
        return self._sides[1].reshape(-1, 3)

    @property
    def edge_count(self) -> int:
        return int(self._sides[1].max()) + 1

    @cached_property
    def _edges(self) -> Edges:
        return edges_of(self.face.astype(np.int64))

    @property
    def is_manifold(self) -> bool:
        """Whether every edge parts two triangles that run along it in opposite directions.

        A vertex where two parts of the surface touch is allowed.
        """
        return self._edges.is_manifold

    @cached_property
    def is_closed(self) -> bool:
        """Whether the mesh has an inside: where the winding number is not 0. See `is_balanced`."""
        return is_balanced(self.face, self._edges)

    @cached_property
    def _crossings(self) -> tuple[bool, np.ndarray]:
        """`needs_winding` and `hidden`."""
        hidden = np.zeros(len(self.face), bool)
        if not self.is_closed:
            return False, hidden
        face = self.face.astype(np.int64)
        crossed = np.zeros(len(face), bool)
        crossed[crossed_triangles(self.vertex, face).reshape(-1)] = True
        several = bool(crossed.any()) or not self.is_manifold
        if not several and not self._has_nested_parts(face):
            return False, hidden
        edges = self._edges
        joins = edges.count == 2
        joins[edges.side_edge[np.repeat(crossed, 3)]] = False
        hidden = hidden_triangles(self.vertex, face, joined_faces(face, edges, joins), crossed)
        return several or bool(hidden.any()), hidden

    def _has_nested_parts(self, face: np.ndarray) -> bool:
        """Whether there are several bodies, the box of one within that of another."""
        label = joined_faces(face, self._edges, self._edges.count > 0)
        if not label.any():
            return False
        low, high = boxes_of(self.vertex, face, label)
        return any(
            ((low[body] <= low) & (high <= high[body])).all(axis=1).sum() > 1 for body in range(int(label.max()) + 1)
        )

    @property
    def needs_winding(self) -> bool:
        """Whether the nearest triangle of a closed mesh may not tell inside from outside: its surface crosses itself,
        parts of it are inside others, or more than two triangles have an edge in common. The winding number does.
        """
        return self._crossings[0]

    @property
    def hidden(self) -> np.ndarray:
        """bool[F]: triangles of a closed mesh with the inside on both sides all over: they bound nothing."""
        return self._crossings[1]

    @property
    def has_front(self) -> bool:
        """Whether the back of its triangles counts as behind the surface."""
        return self.is_closed or not self.two_sided


def triangle_mesh(vertices: np.ndarray, faces: np.ndarray, where: str, two_sided: bool = True) -> TriangleMesh:
    """The mesh of vertices [n, 3] [m] and triangles [m, 3] of their numbers; two_sided: see `TriangleMesh`.

    It is repaired where that gives it an inside, see `mesh_repair.repaired`, and its overlapping bodies are united, see
    `mesh_union.united`; `repairs` tells what was done.

    Raises InputError, naming `where`, for arrays of other shapes, vertices that are not finite or too large, numbers
    that no vertex has, and meshes whose triangles all lack area.
    """
    vertices, faces = float_array("vertices", vertices, where), np.asarray(faces)
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not len(vertices):
        raise InputError(f"the mesh has vertices of shape {vertices.shape}", where, "give an array [n, 3]")
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces) or faces.dtype.kind not in "iu":
        shown = f"{faces.dtype}{list(faces.shape)}"
        raise InputError(f"the mesh has triangles of type {shown}", where, "give whole numbers [m, 3]")
    if max(len(vertices), 3 * len(faces)) > FEATURE_LIMIT:
        raise InputError(f"the mesh has {len(faces)} triangles", where, "split it: its features have 32-bit numbers")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(faces.min() if faces.min() < 0 else faces.max())
        raise InputError(f"a triangle names vertex {wrong} of {len(vertices)}", where, "correct the mesh")
    if not np.all(np.abs(vertices) <= LENGTH_LIMIT):
        what = f"a vertex of the mesh is not finite, or beyond {LENGTH_LIMIT:g} m"
        raise InputError(what, where, "correct the mesh")
    mesh = united(repaired(*_merged(vertices, faces.astype(np.int64))))
    vertex, face = mesh.vertex, mesh.face
    if not len(face):
        raise InputError("no triangle of the mesh has an area", where, "correct the mesh, or leave it out")
    used = vertex[distinct(face)]
    center = 0.5 * used.min(axis=0) + 0.5 * used.max(axis=0)
    # A vertex of no triangle keeps its number, but not its place: the box is that of the surface.
    held = np.zeros_like(vertex)
    numbers = distinct(face)
    held[numbers] = vertex[numbers] - center
    return TriangleMesh(held, center, face.astype(np.int32), mesh.repairs, bool(two_sided))


def _merged(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal vertices as one, numbered by where they come first."""
    # Adding 0 makes -0 and 0 one number.
    _, first, place = np.unique(vertices + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return vertices[first[order]] + 0.0, number[place.reshape(-1)][faces]
