"""Volume of the intersection of two solids, by the library Manifold, with a certified bound for round shapes.

Boxes, hulls, closed meshes and heightfields are polyhedra: their volume is exact up to rounding. A round shape is
enclosed by two polyhedra, one inside it and one around it, whose two volumes bound the true one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from collidecli.numerics.matrices import compose_poses, inverse_poses, moved_points
from collidecli.scene.heightfield import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import facets
from collidecli.scene.triangle_mesh import TriangleMesh

CIRCLE_SEGMENTS, SPHERE_SEGMENTS = 1024, 256


@dataclass(frozen=True)
class OverlapVolume:
    """A volume and the bound of its error [m^3]; reason: why there is none, or ""."""

    volume: float
    error: float
    reason: str = ""


NO_VOLUME = float("nan")


def overlap_volume(model: Model, poses: np.ndarray, shape0: int, shape1: int) -> OverlapVolume:
    """Volume of the intersection of two shapes of a model, without margins.

    poses: float64[S, 7], xyzw, of the shapes in world. An open mesh, and one that Manifold rejects, has no volume.
    Source: github.com/elalish/manifold, whose booleans are exact for the given vertices up to float64 rounding.
    """
    rows = sorted((shape0, shape1), key=lambda row: model.shapes.type[row] == ShapeType.PLANE)
    if model.shapes.type[rows[0]] == ShapeType.PLANE:
        return OverlapVolume(NO_VOLUME, 0.0, "both are infinite planes")
    pose_b_to_a = compose_poses(inverse_poses(poses[rows[0]]), poses[rows[1]])
    volumes = []
    for outside in (False, True):
        first = _solid(model, rows[0], outside)
        if isinstance(first, str):
            return OverlapVolume(NO_VOLUME, 0.0, first)
        if model.shapes.type[rows[1]] == ShapeType.PLANE:
            normal = _matrix(pose_b_to_a)[:, 2]
            common = first.trim_by_plane((-normal).tolist(), float(-normal @ pose_b_to_a[:3]))
        else:
            second = _solid(model, rows[1], outside)
            if isinstance(second, str):
                return OverlapVolume(NO_VOLUME, 0.0, second)
            common = first ^ second.transform(_matrix(pose_b_to_a))
        volumes.append(float(common.volume()))
        if not any(model.shapes.type[row] in _ROUND_SOLIDS for row in rows):
            return OverlapVolume(volumes[0], 0.0)
    low, high = volumes
    return OverlapVolume((low + high) / 2, (high - low) / 2)


def _matrix(pose: np.ndarray) -> np.ndarray:
    """float64[3, 4] of a pose."""
    return np.column_stack([(moved_points(pose, np.eye(3)) - pose[:3]).T, pose[:3]])


def _solid(model: Model, row: int, outside: bool) -> Any:
    """A shape as a solid of Manifold in its own frame; a text if it is none. outside: around a round shape."""
    shapes = model.shapes
    kind, size, path = ShapeType(shapes.type[row]), shapes.size[row], shapes.path[row]
    if kind in _ROUND_SOLIDS:
        return _ROUND_SOLIDS[kind](size, outside)
    mesh = _triangles(model, row)
    if not (mesh.is_closed and mesh.is_solid):
        return f"{path} is {'a hollow' if mesh.is_closed else 'an open'} mesh"
    return _polyhedron(mesh.vertex, mesh.face if mesh.volume >= 0.0 else mesh.face[:, ::-1], path)


def _triangles(model: Model, row: int) -> TriangleMesh:
    """The triangles of a shape that is neither round nor a plane."""
    shapes, kind = model.shapes, ShapeType(model.shapes.type[row])
    if kind == ShapeType.HEIGHTFIELD:
        return solid_mesh(model.heightfields[shapes.heightfield[row]])
    if kind == ShapeType.MESH:
        return model.meshes[shapes.mesh[row]]
    hull = model.hulls[shapes.hull[row]] if kind == ShapeType.CONVEX_MESH else None
    mesh = facets(kind, shapes.size[row], hull=hull)
    assert mesh is not None
    return mesh


def surface_of(model: Model, row: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Vertices float64[n, 3] and triangles int[m, 3] of a shape that is no plane, in its frame [m], and the greatest
    distance of its surface from them [m]: 0 for all but round shapes, whose vertices are on the surface.
    """
    kind, size = ShapeType(model.shapes.type[row]), model.shapes.size[row]
    if kind not in _ROUND_SOLIDS:
        mesh = _triangles(model, row)
        return mesh.vertex, mesh.face, 0.0
    mesh = _ROUND_SOLIDS[kind](size, False).to_mesh64()
    vertex = np.asarray(mesh.vert_properties, np.float64)[:, :3]
    if kind in (ShapeType.CYLINDER, ShapeType.CONE):
        error = float(size[0] * (1.0 - np.cos(np.pi / CIRCLE_SEGMENTS)))
    else:
        error = float((size.max() if kind == ShapeType.ELLIPSOID else size[0]) * (1.0 - _least_height()))
    return vertex, np.asarray(mesh.tri_verts, np.int64), error


def _polyhedron(vertex: np.ndarray, face: np.ndarray, path: str) -> Any:
    import manifold3d

    # Manifold takes no read-only arrays.
    solid = manifold3d.Manifold(
        manifold3d.Mesh64(np.array(vertex, np.float64, order="C"), np.array(face, np.uint64, order="C"))
    )
    if solid.status() != manifold3d.Error.NoError or solid.is_empty():
        return f"{path} is no manifold solid: {str(solid.status()).rpartition('.')[2]}"
    return solid


def _ball(outside: bool) -> Any:
    import manifold3d

    inner = manifold3d.Manifold.sphere(1.0, SPHERE_SEGMENTS)
    return inner.scale([1.0 / _least_height()] * 3) if outside else inner


@cache
def _least_height() -> float:
    """Least distance of the faces of the polyhedron in the unit ball from its centre."""
    mesh = _ball(False).to_mesh64()
    vertex = np.asarray(mesh.vert_properties, np.float64)[:, :3]
    a, b, c = (vertex[np.asarray(mesh.tri_verts)[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    return float(((normal * a).sum(axis=1) / np.sqrt((normal * normal).sum(axis=1))).min())


def _sphere(size: np.ndarray, outside: bool) -> Any:
    return _ball(outside).scale([float(size[0])] * 3)


def _ellipsoid(size: np.ndarray, outside: bool) -> Any:
    return _ball(outside).scale(size.tolist())


def _capsule(size: np.ndarray, outside: bool) -> Any:
    import manifold3d

    ball = _sphere(size, outside)
    ends = [ball.translate([0.0, 0.0, sign * float(size[1])]) for sign in (-1.0, 1.0)]
    return manifold3d.Manifold.batch_hull(ends)


def _frustum(low: float, high: float, half: float, outside: bool) -> Any:
    import manifold3d

    wider = 1.0 / np.cos(np.pi / CIRCLE_SEGMENTS) if outside else 1.0
    frustum = manifold3d.Manifold.cylinder(2.0 * half, low, high, CIRCLE_SEGMENTS, True)
    return frustum.scale([float(wider), float(wider), 1.0])


_ROUND_SOLIDS: dict[ShapeType, Callable[[np.ndarray, bool], Any]] = {
    ShapeType.SPHERE: _sphere,
    ShapeType.ELLIPSOID: _ellipsoid,
    ShapeType.CAPSULE: _capsule,
    ShapeType.CYLINDER: lambda size, outside: _frustum(float(size[0]), float(size[0]), float(size[1]), outside),
    ShapeType.CONE: lambda size, outside: _frustum(float(size[0]), 0.0, float(size[1]), outside),
}
