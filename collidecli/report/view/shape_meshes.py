"""Triangle meshes of shapes for drawing. Shapes that differ only by a scale along x, y and z share a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

AROUND = 32
"""Number of vertices of a circle."""
RINGS = 8
"""Number of rings of a half sphere, from its rim to its pole."""
MAX_GRID = 256
"""Largest number of rows and columns of a heightfield that are drawn; above it some are skipped, with a note."""


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

    rows: int[n], rows of the model's shapes. scale: float32[n, 3]. planes: they are planes, drawn as squares of 2 by 2
    before the scale.
    """

    mesh: DrawnMesh
    rows: np.ndarray
    scale: np.ndarray
    planes: bool


def shape_groups(model: Model) -> list[ShapeGroup]:
    """Every shape of a model, in groups by mesh; planes, which are infinite, have scale 1."""
    meshes: dict[tuple, DrawnMesh] = {}
    members: dict[tuple, list[tuple[int, np.ndarray]]] = {}
    for row, kind in enumerate(model.shapes.types()):
        key, scale = _key(model, row, kind)
        if key not in meshes:
            meshes[key] = _mesh(model, key)
        members.setdefault(key, []).append((row, scale))
    return [
        ShapeGroup(
            meshes[key],
            np.array([row for row, _ in rows]),
            np.array([scale for _, scale in rows], np.float32),
            key[0] == ShapeType.PLANE,
        )
        for key, rows in members.items()
    ]


def coarse_heightfields(model: Model) -> int:
    """Number of heightfields with more rows or columns than are drawn."""
    return sum(max(field.data.shape) > MAX_GRID for field in model.heightfields)


def _key(model: Model, row: int, kind: ShapeType) -> tuple[tuple, np.ndarray]:
    """Key of the mesh of a shape, and the scale of the shape."""
    shapes = model.shapes
    x, y, z = shapes.size[row]
    if kind == ShapeType.CAPSULE:
        return (kind, y / x), np.full(3, x)
    if kind in (ShapeType.CONVEX_MESH, ShapeType.MESH, ShapeType.HEIGHTFIELD):
        table = {ShapeType.CONVEX_MESH: "hull", ShapeType.MESH: "mesh", ShapeType.HEIGHTFIELD: "heightfield"}[kind]
        return (kind, int(getattr(shapes, table)[row])), np.ones(3)
    scale = {
        ShapeType.PLANE: (1.0, 1.0, 1.0),
        ShapeType.SPHERE: (x, x, x),
        ShapeType.CYLINDER: (x, x, y),
        ShapeType.CONE: (x, x, y),
    }
    return (kind, 0), np.array(scale.get(kind, (x, y, z)))


def _mesh(model: Model, key: tuple) -> DrawnMesh:
    kind, which = key
    if kind == ShapeType.CONVEX_MESH:
        return _hull(model.hulls[which])
    if kind == ShapeType.MESH:
        mesh = model.meshes[which]
        return _drawn(mesh.vertex, mesh.face, flat=True, open=not mesh.is_closed)
    if kind == ShapeType.HEIGHTFIELD:
        return _heightfield(model.heightfields[which])
    if kind == ShapeType.CAPSULE:
        return _surface_of_revolution(*_capsule_profile(which))
    if kind in (ShapeType.SPHERE, ShapeType.ELLIPSOID):
        return _surface_of_revolution(*_capsule_profile(0.0))
    if kind == ShapeType.PLANE:
        corners = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
        return _drawn(corners, np.array([(0, 1, 2), (0, 2, 3)]), flat=True, open=True)
    if kind == ShapeType.BOX:
        return _box()
    # A rim is two rings, one for each of the adjacent surfaces, whose vertex normals differ.
    if kind == ShapeType.CYLINDER:
        return _surface_of_revolution([0.0, 1.0, 1.0, 1.0, 1.0, 0.0], [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], doubled=(1, 3))
    return _surface_of_revolution([0.0, 1.0, 1.0, 0.0], [-1.0, -1.0, -1.0, 1.0], doubled=(1,))


def _drawn(vertex: np.ndarray, face: np.ndarray, flat: bool, open: bool = False) -> DrawnMesh:
    return DrawnMesh(np.ascontiguousarray(vertex, np.float32), np.ascontiguousarray(face, np.uint32), flat, open)


def _capsule_profile(half_length: float) -> tuple[list[float], list[float]]:
    """Radius and height of each ring of a capsule of radius 1, from the bottom to the top."""
    angle = np.linspace(0.0, 0.5 * np.pi, RINGS + 1)
    radius, height = np.cos(angle), np.sin(angle)
    radius[-1] = 0.0
    upper = half_length + height
    if half_length == 0.0:
        return [*radius[:0:-1], *radius], [*-upper[:0:-1], *upper]
    return [*radius[::-1], *radius], [*-upper[::-1], *upper]


def _surface_of_revolution(radius: list[float], height: list[float], doubled: tuple[int, ...] = ()) -> DrawnMesh:
    """Surface of revolution of a profile about z. doubled: rings that coincide with the next ring."""
    angle = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [np.column_stack([r * circle, np.full(AROUND, h)]) for r, h in zip(radius, height, strict=True)]
    here, after = np.arange(AROUND), np.roll(np.arange(AROUND), -1)
    faces = []
    for ring in range(len(rings) - 1):
        if ring in doubled:
            continue
        low, high = ring * AROUND, (ring + 1) * AROUND
        # At a pole one of the two triangles has no area.
        if radius[ring] > 0.0:
            faces.append(np.column_stack([low + here, low + after, high + after]))
        if radius[ring + 1] > 0.0:
            faces.append(np.column_stack([low + here, high + after, high + here]))
    return _drawn(np.concatenate(rings), np.concatenate(faces), flat=False)


def _box() -> DrawnMesh:
    corner = np.array([(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)])
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    return _drawn(corner, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]), flat=True)


def _hull(hull: ConvexHull) -> DrawnMesh:
    faces = [(face[0], *pair) for face in hull.face for pair in pairwise(face[1:])]
    return _drawn(hull.vertex, np.array(faces), flat=True)


def _heightfield(field: Heightfield) -> DrawnMesh:
    """Top surface, walls and base; if rows or columns are skipped, the outermost are kept."""
    rows, cols = (np.unique(np.linspace(0, n - 1, min(n, MAX_GRID)).astype(int)) for n in field.data.shape)
    x = np.linspace(-field.half_x, field.half_x, field.data.shape[1])[cols]
    y = np.linspace(-field.half_y, field.half_y, field.data.shape[0])[rows]
    top = np.stack([*np.meshgrid(x, y), field.heights[np.ix_(rows, cols)]], axis=-1).reshape(-1, 3)
    number = np.arange(len(top)).reshape(len(rows), len(cols))
    low, right, up, far = (
        part.ravel() for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:])
    )
    faces = [np.column_stack([low, right, far]), np.column_stack([low, far, up])]
    border = np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])
    base = top[border].copy()
    base[:, 2] = field.bottom
    below, following = len(top) + np.arange(len(border)), np.roll(np.arange(len(border)), -1)
    ahead, ahead_below = border[following], below[following]
    faces += [np.column_stack([border, below, ahead_below]), np.column_stack([border, ahead_below, ahead])]
    middle = len(top) + len(border)
    faces.append(np.column_stack([np.full(len(border), middle), ahead_below, below]))
    vertex = np.concatenate([top, base, [(0.0, 0.0, field.bottom)]])
    return _drawn(vertex, np.concatenate(faces), flat=True)
