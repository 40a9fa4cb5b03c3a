"""Triangle meshes of shapes for drawing. Shapes that differ only by a scale along x, y and z share
a mesh."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collidecli.scene.connected_parts import connected_parts
from collidecli.scene.distinct_values import distinct
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import SIZE_WIDTH, ShapeType
from collidecli.scene.solids import SOLIDS, half_extents, solid_triangles

AROUND = 32
"""Number of vertices of a circle."""
SMOOTH_COSINE = 0.8
"""Cosine of the angle of two triangles above which their edge is shaded smooth."""
MAX_GRID = 256
"""Largest number of rows and columns of a heightfield that are drawn; above it some are skipped,
with a note."""


@dataclass(frozen=True)
class DrawnMesh:
    """vertex: float32[V, 3]. face: uint32[F, 3], counterclockwise from outside.

    flat: shade the faces flat, not smoothly. open: draw the back of the faces too.
    """

    vertex: np.ndarray
    face: np.ndarray
    flat: bool
    open: bool = False


@dataclass(frozen=True)
class ShapeGroup:
    """Shapes that share a mesh.

    rows: int[n], rows of the model's shapes. scale: float32[n, 3]. planes: they are planes, drawn
    as squares of 2 by 2 before the scale.
    """

    mesh: DrawnMesh
    rows: np.ndarray
    scale: np.ndarray
    planes: bool

    def of_rows(self, rows: np.ndarray) -> ShapeGroup:
        """The shapes of the group that are among some rows."""
        is_kept = np.isin(self.rows, rows)
        return replace(self, rows=self.rows[is_kept], scale=self.scale[is_kept])


def shape_groups(model: Model, shape_count: int) -> list[ShapeGroup]:
    """Every shape of a model, in groups by mesh; planes, which are infinite, have scale 1.

    Shapes from row `shape_count` on, which are visual geometry, are in groups of their own.
    """
    meshes: dict[tuple, DrawnMesh] = {}
    members: dict[tuple, list[tuple[int, np.ndarray]]] = {}
    for row, kind in enumerate(model.shapes.types()):
        size = model.shapes.size[row]
        if kind in _TABLES:
            key = (kind, int(getattr(model.shapes, _TABLES[kind])[row]))
            scale = np.ones(3)
        elif kind == ShapeType.PLANE or not SOLIDS[kind].scales:
            key = (kind, tuple(size / (size[0] or 1.0)))
            scale = np.full(3, size[0] or 1.0)
        else:
            key = (kind, ())
            scale = half_extents(kind, size)
        if key not in meshes:
            meshes[key] = _mesh(model, key)
        members.setdefault((*key, row >= shape_count), []).append((row, scale))
    return [
        ShapeGroup(
            meshes[key[:2]],
            np.array([row for row, _ in rows]),
            np.array([scale for _, scale in rows], np.float32),
            key[0] == ShapeType.PLANE,
        )
        for key, rows in members.items()
    ]


def coarse_heightfields(model: Model) -> int:
    """Number of heightfields with more rows or columns than are drawn."""
    return sum(max(field.data.shape) > MAX_GRID for field in model.heightfields)


_TABLES = {
    ShapeType.CONVEX_MESH: "hull",
    ShapeType.MESH: "mesh",
    ShapeType.HEIGHTFIELD: "heightfield",
}


def _mesh(model: Model, key: tuple) -> DrawnMesh:
    kind, which = key
    if kind == ShapeType.CONVEX_MESH:
        return _drawn(model.hulls[which].vertex, model.hulls[which].triangles, flat=True)
    if kind == ShapeType.MESH:
        mesh = model.meshes[which]
        return _drawn(mesh.vertex, mesh.face, flat=True, open=not mesh.is_closed)
    if kind == ShapeType.HEIGHTFIELD:
        return _heightfield(model.heightfields[which])
    triangles = solid_triangles(kind, np.array(which or np.ones(SIZE_WIDTH)), AROUND)
    if triangles is None:
        corners = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
        return _drawn(corners, np.array([(0, 1, 2), (0, 2, 3)]), flat=True, open=True)
    return _smooth(*triangles)


def _smooth(vertex: np.ndarray, face: np.ndarray) -> DrawnMesh:
    """A closed surface whose triangles on both sides of a sharp edge have vertices of their own,
    for smooth shading."""
    a, b, c = (vertex[face[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    edges = np.sort(np.concatenate([face[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
    order = np.lexsort(edges.T).reshape(-1, 2)  # each edge is of two triangles
    left, right = (order % len(face)).T
    near = (normal[left] * normal[right]).sum(axis=1) > SMOOTH_COSINE
    side = connected_parts(left[near], right[near], len(face))
    corners, number = np.unique(side[:, None] * len(vertex) + face, return_inverse=True)
    return _drawn(vertex[corners % len(vertex)], number.reshape(face.shape), flat=False)


def _drawn(vertex: np.ndarray, face: np.ndarray, flat: bool, open: bool = False) -> DrawnMesh:
    return DrawnMesh(
        np.ascontiguousarray(vertex, np.float32), np.ascontiguousarray(face, np.uint32), flat, open
    )


def _heightfield(field: Heightfield) -> DrawnMesh:
    """Top surface, walls and base; if rows or columns are skipped, the outermost are kept."""
    rows, cols = (
        distinct(np.linspace(0, n - 1, min(n, MAX_GRID)).astype(int)) for n in field.data.shape
    )
    mesh = solid_mesh(replace(field, data=np.ascontiguousarray(field.data[np.ix_(rows, cols)])))
    vertex = mesh.vertex.copy()
    for axis, half, kept in ((0, field.half_x, cols), (1, field.half_y, rows)):
        even, uneven = (
            np.linspace(-half, half, n) for n in (len(kept), field.data.shape[1 - axis])
        )
        vertex[:, axis] = np.interp(vertex[:, axis], even, uneven[kept])
    return _drawn(vertex, mesh.face, flat=True)
