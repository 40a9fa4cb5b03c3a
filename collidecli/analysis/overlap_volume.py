"""Volume of the intersection of two solids, by the library Manifold, with a certified bound for
round shapes.

Boxes, hulls, closed meshes and heightfields are polyhedra: their volume is exact up to rounding. A
round shape is enclosed by two polyhedra, one inside it and one around it, whose two volumes bound
the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.numerics.poses import compose_poses, inverse_poses, moved_points
from collidecli.numerics.products import dot, norm
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import SOLIDS, ball_radius, solid_triangles, support_heights
from collidecli.scene.triangle_mesh import TriangleMesh


@dataclass(frozen=True)
class OverlapVolume:
    """A volume and the bound of its error [m^3]; reason: why there is none, or ""."""

    volume: float
    error: float
    reason: str = ""


NO_VOLUME = float("nan")


def overlap_volume(model: Model, poses: np.ndarray, shape0: int, shape1: int) -> OverlapVolume:
    """Volume of the intersection of two shapes of a model, without margins.

    poses: float64[S, 7], xyzw, of the shapes in world. An open mesh, and one that Manifold rejects,
    has no volume. Source: github.com/elalish/manifold, whose booleans are exact for the given
    vertices up to float64 rounding.
    """
    rows = sorted((shape0, shape1), key=lambda row: model.shapes.type[row] == ShapeType.PLANE)
    if model.shapes.type[rows[0]] == ShapeType.PLANE:
        return OverlapVolume(NO_VOLUME, 0.0, "both are infinite planes")
    solids = [_solids(model, row) for row in rows if model.shapes.type[row] != ShapeType.PLANE]
    for each in solids:
        if isinstance(each, str):
            return OverlapVolume(NO_VOLUME, 0.0, each)
    pose_b_to_a = compose_poses(inverse_poses(poses[rows[0]]), poses[rows[1]])
    normal = _matrix(pose_b_to_a)[:, 2]
    volumes = []
    for first, *others in zip(*solids, strict=True):
        if others:
            common = first ^ others[0].transform(_matrix(pose_b_to_a))
        else:
            common = first.trim_by_plane((-normal).tolist(), float(-normal @ pose_b_to_a[:3]))
        volumes.append(float(common.volume()))
        if all(inside is outside for inside, outside in solids):
            break
    low = volumes[0]
    high = volumes[-1]
    return OverlapVolume((low + high) / 2, (high - low) / 2)


def _matrix(pose: np.ndarray) -> np.ndarray:
    """float64[3, 4] of a pose."""
    return np.column_stack([(moved_points(pose, np.eye(3)) - pose[:3]).T, pose[:3]])


def _solids(model: Model, row: int) -> tuple[Any, Any] | str:
    """Solids of Manifold in a shape and around it, in its own frame, one for a polyhedron; a text
    if it is none."""
    mesh = _triangles(model, row)
    path = model.shapes.path[row]
    if not (mesh.is_closed and mesh.is_solid):
        return f"{path} is {'a hollow' if mesh.is_closed else 'an open'} mesh"
    inside = _polyhedron(mesh.vertex, mesh.face if mesh.volume >= 0.0 else mesh.face[:, ::-1], path)
    excess = _excess(model, row, mesh)
    return (
        inside
        if isinstance(inside, str)
        else (inside, inside.scale([1.0 + excess] * 3) if excess else inside)
    )


def _triangles(model: Model, row: int) -> TriangleMesh:
    """The triangles of a shape that is no plane."""
    shapes = model.shapes
    kind = ShapeType(model.shapes.type[row])
    if kind == ShapeType.HEIGHTFIELD:
        return solid_mesh(model.heightfields[shapes.heightfield[row]])
    if kind == ShapeType.MESH:
        return model.meshes[shapes.mesh[row]]
    if kind == ShapeType.CONVEX_MESH:
        vertex = model.hulls[shapes.hull[row]].vertex
        face = model.hulls[shapes.hull[row]].triangles
    else:
        triangles = solid_triangles(kind, shapes.size[row], SOLIDS[kind].segments)
        assert triangles is not None
        vertex, face = triangles
    return TriangleMesh(
        np.ascontiguousarray(vertex, np.float64), np.zeros(3), face.astype(np.int32)
    )


def _excess(model: Model, row: int, mesh: TriangleMesh) -> float:
    """Least x for which a round shape is within its triangles scaled by 1 + x about its origin; 0
    of a polyhedron.

    A convex shape is within the half spaces below its supporting planes along the triangles'
    normals, and those are within the triangles' scaled by the greatest ratio of both planes'
    heights.
    """
    kind = model.shapes.type[row]
    size = model.shapes.size[row]
    if kind not in SOLIDS or not SOLIDS[kind].segments:
        return 0.0
    a, b, c = (mesh.vertex[mesh.face[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= norm(normal)[:, None]
    height = support_heights(np.full(len(normal), kind), np.tile(size, (len(normal), 1)), normal)
    return float((height / dot(normal, a)).max() - 1.0)


def surface_of(model: Model, row: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Vertices float64[n, 3] and triangles int[m, 3] of a shape that is no plane, in its frame [m],
    and the greatest distance of its surface from them [m]: 0 for all but round shapes, whose
    vertices are on the surface.
    """
    mesh = _triangles(model, row)
    shapes = model.shapes
    radius = ball_radius(shapes.type[row], shapes.size[row], shapes.size[row])
    excess = _excess(model, row, mesh)
    return mesh.vertex, mesh.face, excess * float(radius) if excess else 0.0


def _polyhedron(vertex: np.ndarray, face: np.ndarray, path: str) -> Any:
    import manifold3d

    # Manifold takes no read-only arrays.
    solid = manifold3d.Manifold(
        manifold3d.Mesh64(
            np.array(vertex, np.float64, order="C"), np.array(face, np.uint64, order="C")
        )
    )
    if solid.status() != manifold3d.Error.NoError or solid.is_empty():
        return f"{path} is no manifold solid: {str(solid.status()).rpartition('.')[2]}"
    return solid
