"""Triangle meshes: repaired vertices and triangles, their edges, and inside and outside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from collidecli import numerics
from collidecli.errors import InputError
from collidecli.numerics import dot, length, matmul, norm, symmetric_eigen
from collidecli.scene import mesh_repair
from collidecli.scene.arguments import float_array
from collidecli.scene.mesh_crossings import crossed_triangles, distinct, hidden_triangles, numbered
from collidecli.scene.shape_types import LENGTH_LIMIT

FEATURE_LIMIT = 2**31 // 3 - 1
"""Most vertices, edges or triangles: feature ids have 32 bits and three values for each."""


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Triangles whose bounding box is centred at the origin. The surface may be open; any number may share an edge.

    vertex: float64[V, 3] [m], distinct, in the order of their first occurrence in the input. center: float64[3], the
    centre of the box in the input's frame [m]. face: int32[F, 3], counterclockwise from outside.
    repairs: changes of the input. two_sided: an open surface is solid from both sides; else only from its front, from
    which its triangles are counterclockwise. Closed surfaces have an inside in both cases, unless is_solid is False:
    then the mesh is hollow, and handled as an open one.
    """

    vertex: np.ndarray
    center: np.ndarray
    face: np.ndarray
    repairs: mesh_repair.MeshRepairs = mesh_repair.NO_REPAIRS
    two_sided: bool = True
    is_solid: bool = True

    @property
    def half_extents(self) -> np.ndarray:
        """float64[3]: half extents of the bounding box [m]; the smallest positive number across a flat mesh."""
        return np.maximum(np.abs(self.vertex).max(axis=0), np.nextafter(0.0, 1.0))

    @cached_property
    def key(self) -> bytes:
        """Equal for equal meshes with equal repairs."""
        return self.vertex.tobytes() + self.face.tobytes() + bytes([self.has_front]) + repr(self.repairs).encode()

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
        """Twice the volume of a closed mesh over its area [m]: the thickness of thin walls, 2/3 of a ball's radius."""
        p, q, r = (self.vertex[self.face[:, k]] for k in range(3))
        return 4.0 * abs(self.volume) / float(norm(np.cross(q - p, r - p)).sum())

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[3 F, 2], the vertices of each triangle's sides, ascending; and the edge index of each side."""
        ends = np.sort(np.stack([self.face, np.roll(self.face, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
        keys = ends[:, 0].astype(np.int64) * len(self.vertex) + ends[:, 1]
        return ends, numbered(keys)[1]

    @property
    def face_edge(self) -> np.ndarray:
        """int[F, 3]: the edge from each corner of a triangle to the next. Edges are sorted by their vertices."""
        return self._sides[1].reshape(-1, 3)

    @property
    def edge_count(self) -> int:
        return int(self._sides[1].max()) + 1

    @cached_property
    def _edges(self) -> mesh_repair.Edges:
        return mesh_repair.edges_of(self.face.astype(np.int64))

    @property
    def is_manifold(self) -> bool:
        """Whether every edge has two triangles with opposite directions along it.

        Two parts of the surface may touch at a vertex.
        """
        return self._edges.is_manifold

    @cached_property
    def is_closed(self) -> bool:
        """Whether the mesh has an inside, where the winding number is not 0. See `is_balanced`."""
        return self.is_solid and mesh_repair.is_balanced(self.face, self._edges)

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
        hidden = hidden_triangles(self.vertex, face, mesh_repair.joined_faces(face, edges, joins), crossed)
        return several or bool(hidden.any()), hidden, bool(crossed.any())

    def _has_nested_parts(self, face: np.ndarray) -> bool:
        label = mesh_repair.joined_faces(face, self._edges, self._edges.count > 0)
        if not label.any():
            return False
        low, high = mesh_repair.boxes_of(self.vertex, face, label)
        return any(
            ((low[body] <= low) & (high <= high[body])).all(axis=1).sum() > 1 for body in range(int(label.max()) + 1)
        )

    @property
    def needs_winding(self) -> bool:
        """Whether inside and outside of a closed mesh require the winding number instead of the nearest triangle: its
        surface crosses itself, parts of it are inside others, or more than two triangles share an edge."""
        return self._crossings[0]

    @property
    def crosses_itself(self) -> bool:
        """Whether triangles of a closed mesh cross each other, after its repairs."""
        return self._crossings[2]

    @property
    def hidden(self) -> np.ndarray:
        """bool[F]: triangles of a closed mesh whose two sides are entirely inside: they bound nothing."""
        return self._crossings[1]

    @property
    def has_front(self) -> bool:
        """Whether the back of its triangles is behind the surface: a closed or one-sided mesh."""
        return self.is_closed or not self.two_sided


def triangle_mesh(
    vertices: np.ndarray, faces: np.ndarray, where: str, two_sided: bool = True, is_solid: bool = True
) -> TriangleMesh:
    """The mesh of vertices [n, 3] [m] and triangles [m, 3] of vertex indices; two_sided, is_solid: see `TriangleMesh`.

    It is repaired if that makes it closed, see `mesh_repair.repaired`, and its overlapping bodies are united, see
    `mesh_repair.united`, unless it is hollow; `repairs` counts the changes. Raises InputError, with `where`, for a
    hollow mesh that is one-sided, arrays of other shapes, vertices that are not finite or too large, indices out of
    range, and meshes whose triangles all lack area.
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
        raise InputError(f"a triangle has vertex {wrong} of {len(vertices)}", where, "correct the mesh")
    if not np.all(np.abs(vertices) <= LENGTH_LIMIT):
        what = f"a vertex of the mesh is not finite, or beyond {LENGTH_LIMIT:g} m"
        raise InputError(what, where, "correct the mesh")
    if not (two_sided or is_solid):
        raise InputError("the mesh is hollow and one-sided", where, "leave two_sided or is_solid out")
    mesh = mesh_repair.repaired(*_merged(vertices, faces.astype(np.int64)))
    mesh = mesh_repair.united(mesh) if is_solid else mesh
    vertex, face = mesh.vertex, mesh.face
    if not len(face):
        raise InputError("no triangle of the mesh has an area", where, "correct the mesh, or leave it out")
    used = vertex[distinct(face)]
    center = 0.5 * used.min(axis=0) + 0.5 * used.max(axis=0)
    # A vertex without a triangle keeps its index, but moves to the origin: the box is that of the surface.
    centred = np.zeros_like(vertex)
    numbers = distinct(face)
    centred[numbers] = vertex[numbers] - center
    return TriangleMesh(centred, center, face.astype(np.int32), mesh.repairs, bool(two_sided), bool(is_solid))


def _merged(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct vertices in the order of their first occurrence, and triangles of their indices."""
    # Adding 0 makes -0 equal to 0 in all bits.
    _, first, inverse = np.unique(vertices + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return vertices[first[order]] + 0.0, number[inverse.reshape(-1)][faces]


# Triangulation of polygons: a fan if that covers the polygon, else ear clipping.

NEAR = 1e-6
"""Fraction of a polygon's size: distance of collinear corners from their line in a file of float32 coordinates."""
FLAT = 1e-12
"""Fraction of the square of a polygon's size below which a triangle has no area: a mesh would omit it."""
CORNER_LIMIT = 2000
"""Most corners for ear clipping, whose time is quadratic in their number: some seconds for 2000."""


def triangulated(points: np.ndarray, counts: np.ndarray, indices: np.ndarray, where: str) -> np.ndarray:
    """int64[T, 3]: the triangles of polygons, `count - 2` for each polygon in turn, in its orientation.

    points: float64[n, 3]; counts: int[m], corners of each polygon; indices: int[sum of counts], its points in order.
    A polygon of fewer than three corners has none. A fan from the first corner is used if its triangles cover the
    polygon, projected along its area vector; so convex polygons, also non-planar ones, have the triangulation of
    common viewers. Others are triangulated by ear clipping, which keeps every edge to a neighbour.
    Raises InputError, with `where` and the polygon, for a self-intersecting polygon and for one of too many corners.
    """
    counts, indices = np.asarray(counts, np.int64), np.asarray(indices, np.int64)
    first = np.cumsum(counts) - counts
    triangle_count = np.maximum(counts - 2, 0)
    offset = np.cumsum(triangle_count) - triangle_count
    triangles = np.empty((int(triangle_count.sum()), 3), np.int64)
    for corner_count in np.unique(counts[counts > 2]).tolist():
        rows = np.flatnonzero(counts == corner_count)
        corners = indices[first[rows][:, None] + np.arange(corner_count)]
        fan = np.stack([np.zeros(corner_count - 2, np.int64), np.arange(1, corner_count - 1)], axis=1)
        cut = corners[:, np.concatenate([fan, fan[:, 1:] + 1], axis=1)]
        if corner_count > 3:
            for row in np.flatnonzero(~_is_covered_by_fan(points[corners])).tolist():
                cut[row] = corners[row][_ears(points[corners[row]], f"{where}, face {rows[row]}")]
        triangles[offset[rows][:, None] + np.arange(corner_count - 2)] = cut
    return triangles


def area_vectors(polygons: np.ndarray) -> np.ndarray:
    """float64[m, 3]: area vectors of polygons [m, n, 3]: along their normals, with twice the area as length.

    Source: Newell's method (Sutherland, Sproull, Schumacker 1974).
    """
    spokes = polygons[:, 1:] - polygons[:, :1]
    return np.cross(spokes[:, :-1], spokes[:, 1:]).sum(axis=1)


def _is_covered_by_fan(polygons: np.ndarray) -> np.ndarray:
    """bool[m]: whether the fan's triangles have area and equal orientation, and turn about the first corner once."""
    spokes = polygons[:, 1:] - polygons[:, :1]
    across = np.cross(spokes[:, :-1], spokes[:, 1:])
    normal = across.sum(axis=1)
    sizes = norm(normal)
    normal /= np.where(sizes > 0.0, sizes, 1.0)[:, None]
    size = np.ptp(polygons, axis=1).max(axis=1)
    area = dot(across, normal[:, None])
    along = dot(spokes[:, :-1], spokes[:, 1:])
    around = numerics.atan2(area, along).sum(axis=1)
    return (area > (NEAR * size * size)[:, None]).all(axis=1) & (around < 2.0 * np.pi)


def _ears(polygon: np.ndarray, where: str) -> np.ndarray:
    """int64[n - 2, 3]: triangles of a polygon [n, 3] whose projection along its area vector is simple.

    A polygon without area has triangles without area.
    Source: Meisters 1975: a simple polygon has at least two ears, triangles of three consecutive corners that contain
    no other corner. Here a triangle contains the corners on its boundary, so that no triangle is flat.
    """
    count = len(polygon)
    if count > CORNER_LIMIT:
        what = f"a face that is not convex has {count} corners"
        raise InputError(what, where, f"triangulate it: {CORNER_LIMIT} is the limit")
    flat = _projected(polygon)
    if flat is None:
        return np.stack([np.zeros(count - 2, np.int64), np.arange(1, count - 1), np.arange(2, count)], axis=1)
    left, ears = list(range(count)), []
    is_ear = _which_are_ears(flat, left)
    while len(left) > 3:
        if True not in is_ear:
            is_ear = _which_are_ears(flat, left)
        if True not in is_ear:
            raise _crosses_itself(where)
        at = is_ear.index(True)
        ears.append((left[at - 1], left[at], left[(at + 1) % len(left)]))
        del left[at], is_ear[at]
        # Only the two corners beside a clipped ear change.
        for beside in (at - 1, at % len(left)):
            is_ear[beside] = _is_ear(flat, left, beside % len(left), NEAR)
    if _cross(flat[left[1]] - flat[left[0]], flat[left[2]] - flat[left[0]]) < -NEAR:
        raise _crosses_itself(where)
    ears.append(tuple(left))
    return np.array(ears)


def _projected(polygon: np.ndarray) -> np.ndarray | None:
    """float64[n, 2]: corners projected along the area vector, counterclockwise, of size 1; None if they are collinear.

    A polygon that is not collinear and has no area vector crosses itself; then any plane serves in which it is not
    collinear.
    """
    size = np.ptp(polygon, axis=0).max()
    if size == 0.0:
        return None
    scaled = (polygon - polygon[0]) / size
    centred = scaled - scaled.mean(axis=0)
    squares, axes = symmetric_eigen((centred[:, :, None] * centred[:, None, :]).sum(axis=0))
    if squares[1] <= NEAR * NEAR:
        return None
    normal = area_vectors(scaled[None])[0]
    if length(normal) <= NEAR:
        normal = axes[:, 0]
    normal /= length(normal)
    x = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    x /= length(x)
    return matmul(scaled, np.stack([x, np.cross(normal, x)], axis=1))


def _which_are_ears(flat: np.ndarray, left: list[int]) -> list[bool]:
    """Whether each remaining corner is an ear; without the tolerance if none is an ear with it."""
    for near in (NEAR, 0.0):
        ears = [_is_ear(flat, left, at, near) for at in range(len(left))]
        if True in ears:
            break
    return ears


def _is_ear(flat: np.ndarray, left: list[int], at: int, near: float) -> bool:
    """Whether the triangle at a corner has area, and no other corner is in it, or nearer to it than `near`."""
    a, b, c = (flat[left[k % len(left)]] for k in (at - 1, at, at + 1))
    if _cross(b - a, c - a) <= max(near, FLAT):
        return False
    others = flat[np.array(left)]  # its own corners are excluded below, as equal to a corner
    outside = np.zeros(len(others), bool)
    for start, end in ((a, b), (b, c), (c, a)):
        side = end - start
        outside |= _cross(side, others - start) < -near * length(side)
        outside |= (others == start).all(axis=1)
    return bool(outside.all())


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _crosses_itself(where: str) -> InputError:
    return InputError("a face of the mesh crosses itself", where, "triangulate it, or correct the mesh")
