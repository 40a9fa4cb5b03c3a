"""Triangle meshes: repaired vertices and triangles, their edges, and inside and outside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import dot, norm
from collidecli.scene.arguments import float_array
from collidecli.scene.distinct_values import distinct, numbered
from collidecli.scene.mesh_crossings import crossed_triangles, hidden_triangles
from collidecli.scene.mesh_edges import Edges, boxes_of, edges_of, is_balanced, joined_faces
from collidecli.scene.mesh_repair import NO_REPAIRS, MeshRepairs, repaired
from collidecli.scene.mesh_union import united
from collidecli.scene.shape_types import LENGTH_LIMIT

FEATURE_LIMIT = 2**31 // 3 - 1
"""Most vertices, edges or triangles: feature ids have 32 bits and three values for each."""


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Triangles whose bounding box is centred at the origin. The surface may be open; any number
    may share an edge.

    vertex: float64[V, 3] [m], distinct, in the order of their first occurrence in the input.
    center: float64[3], the centre of the box in the input's frame [m]. face: int32[F, 3],
    counterclockwise from outside. repairs: changes of the input. two_sided: an open surface is
    solid from both sides; else only from its front, from which its triangles are counterclockwise.
    Closed surfaces have an inside in both cases, unless is_solid is False: then the mesh is hollow,
    and handled as an open one.
    """

    vertex: np.ndarray
    center: np.ndarray
    face: np.ndarray
    repairs: MeshRepairs = NO_REPAIRS
    two_sided: bool = True
    is_solid: bool = True

    @property
    def half_extents(self) -> np.ndarray:
        """float64[3]: half extents of the bounding box [m]; the smallest positive number across a
        flat mesh."""
        return np.maximum(np.abs(self.vertex).max(axis=0), np.nextafter(0.0, 1.0))

    @cached_property
    def key(self) -> bytes:
        """Equal for equal meshes with equal repairs."""
        return (
            self.vertex.tobytes()
            + self.face.tobytes()
            + bytes([self.has_front])
            + repr(self.repairs).encode()
        )

    @cached_property
    def face_normal(self) -> np.ndarray:
        """float64[F, 3]: unit normals."""
        p, q, r = (self.vertex[self.face[:, k]] for k in range(3))
        across = np.cross(q - p, r - p)
        return across / norm(across)[:, None]

    @property
    def volume(self) -> float:
        """Volume of a closed mesh [m^3]; negative if its triangles are clockwise from outside."""
        p, q, r = (self.vertex[self.face[:, k]] for k in range(3))
        return float(dot(p, np.cross(q, r)).sum() / 6.0)

    @property
    def mean_wall(self) -> float:
        """Twice the volume of a closed mesh over its area [m]: the thickness of thin walls, 2/3 of
        a ball's radius."""
        p, q, r = (self.vertex[self.face[:, k]] for k in range(3))
        return 4.0 * abs(self.volume) / float(norm(np.cross(q - p, r - p)).sum())

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[3 F, 2], the vertices of each triangle's sides, ascending; and the edge index of
        each side."""
        ends = np.sort(
            np.stack([self.face, np.roll(self.face, -1, axis=1)], axis=2).reshape(-1, 2), axis=1
        )
        keys = ends[:, 0].astype(np.int64) * len(self.vertex) + ends[:, 1]
        return ends, numbered(keys)[1]

    @property
    def face_edge(self) -> np.ndarray:
        """int[F, 3]: the edge from each corner of a triangle to the next. Edges are sorted by their
        vertices."""
        return self._sides[1].reshape(-1, 3)

    @property
    def edge_count(self) -> int:
        return int(self._sides[1].max()) + 1

    @cached_property
    def _edges(self) -> Edges:
        return edges_of(self.face.astype(np.int64))

    @property
    def is_manifold(self) -> bool:
        """Whether every edge has two triangles with opposite directions along it.

        Two parts of the surface may touch at a vertex.
        """
        return self._edges.is_manifold

    @cached_property
    def is_closed(self) -> bool:
        """Whether the mesh has an inside, where the winding number is not 0. See `is_balanced`."""
        return self.is_solid and is_balanced(self.face, self._edges)

    @cached_property
    def _crossings(self) -> tuple[bool, np.ndarray, bool]:
        hidden = np.zeros(len(self.face), bool)
        if not self.is_closed:
            return False, hidden, False
        face = self.face.astype(np.int64)
        crossed = np.zeros(len(face), bool)
        crossed[crossed_triangles(self.vertex, face).reshape(-1)] = True
        several = bool(crossed.any()) or not self.is_manifold
        if not several and not self._has_nested_parts(face):
            return False, hidden, False
        edges = self._edges
        joins = edges.count == 2
        joins[edges.side_edge[np.repeat(crossed, 3)]] = False
        hidden = hidden_triangles(self.vertex, face, joined_faces(face, edges, joins), crossed)
        return several or bool(hidden.any()), hidden, bool(crossed.any())

    def _has_nested_parts(self, face: np.ndarray) -> bool:
        label = joined_faces(face, self._edges, self._edges.count > 0)
        if not label.any():
            return False
        low, high = boxes_of(self.vertex, face, label)
        return any(
            ((low[body] <= low) & (high <= high[body])).all(axis=1).sum() > 1
            for body in range(int(label.max()) + 1)
        )

    @property
    def needs_winding(self) -> bool:
        """Whether inside and outside of a closed mesh require the winding number instead of the
        nearest triangle: its surface crosses itself, parts of it are inside others, or more than
        two triangles share an edge."""
        return self._crossings[0]

    @property
    def crosses_itself(self) -> bool:
        """Whether triangles of a closed mesh cross each other, after its repairs."""
        return self._crossings[2]

    @property
    def hidden(self) -> np.ndarray:
        """bool[F]: triangles of a closed mesh whose two sides are entirely inside: they bound
        nothing."""
        return self._crossings[1]

    @property
    def has_front(self) -> bool:
        """Whether the back of its triangles is behind the surface: a closed or one-sided mesh."""
        return self.is_closed or not self.two_sided


def _check_arrays(vertices: np.ndarray, faces: np.ndarray, where: str) -> None:
    """Raises InputError for arrays that are no triangles of finite vertices."""
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not len(vertices):
        raise InputError(
            f"the mesh has vertices of shape {vertices.shape}", where, "give an array [n, 3]"
        )
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces) or faces.dtype.kind not in "iu":
        shown = f"{faces.dtype}{list(faces.shape)}"
        raise InputError(
            f"the mesh has triangles of type {shown}", where, "give whole numbers [m, 3]"
        )
    if max(len(vertices), 3 * len(faces)) > FEATURE_LIMIT:
        raise InputError(
            f"the mesh has {len(faces)} triangles",
            where,
            "split it: its features have 32-bit numbers",
        )
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(faces.min() if faces.min() < 0 else faces.max())
        raise InputError(
            f"a triangle has vertex {wrong} of {len(vertices)}", where, "correct the mesh"
        )
    if not np.all(np.abs(vertices) <= LENGTH_LIMIT):
        what = f"a vertex of the mesh is not finite, or beyond {LENGTH_LIMIT:g} m"
        raise InputError(what, where, "correct the mesh")


def triangle_mesh(
    vertices: np.ndarray,
    faces: np.ndarray,
    where: str,
    two_sided: bool = True,
    is_solid: bool = True,
) -> TriangleMesh:
    """The mesh of vertices [n, 3] [m] and triangles [m, 3] of vertex indices; two_sided, is_solid:
    see `TriangleMesh`.

    It is repaired if that makes it closed, see `repaired`, and its overlapping bodies are united,
    see `united`, unless it is hollow; `repairs` counts the changes. Raises InputError, with
    `where`, for a hollow mesh that is one-sided, arrays of other shapes, vertices that are not
    finite or too large, indices out of range, and meshes whose triangles all lack area.
    """
    vertices = float_array("vertices", vertices, where)
    faces = np.asarray(faces)
    _check_arrays(vertices, faces, where)
    if not (two_sided or is_solid):
        raise InputError(
            "the mesh is hollow and one-sided", where, "leave two_sided or is_solid out"
        )
    mesh = repaired(*_merged(vertices, faces.astype(np.int64)))
    mesh = united(mesh) if is_solid else mesh
    vertex = mesh.vertex
    face = mesh.face
    if not len(face):
        raise InputError(
            "no triangle of the mesh has an area", where, "correct the mesh, or leave it out"
        )
    used = vertex[distinct(face)]
    center = 0.5 * used.min(axis=0) + 0.5 * used.max(axis=0)
    # A vertex without a triangle keeps its index, but moves to the origin: the box is that of the
    # surface.
    centred = np.zeros_like(vertex)
    numbers = distinct(face)
    centred[numbers] = vertex[numbers] - center
    return TriangleMesh(
        centred, center, face.astype(np.int32), mesh.repairs, bool(two_sided), bool(is_solid)
    )


def _merged(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct vertices in the order of their first occurrence, and triangles of their indices."""
    # Adding 0 makes -0 equal to 0 in all bits.
    _, first, inverse = np.unique(vertices + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return vertices[first[order]] + 0.0, number[inverse.reshape(-1)][faces]
