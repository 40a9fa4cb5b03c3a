"""Depth of the deepest point of two overlapping shapes: how far a point of one surface is below the other's surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.analysis.overlap_volume import surface_of
from collidecli.commands.python_api import ModelBuilder, collide
from collidecli.numerics.matrices import compose_poses, inverse_poses
from collidecli.scene.model import Model
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType


@dataclass(frozen=True)
class DeepestPoint:
    """A depth, and the bound of its error where a surface is round [m]."""

    depth: float
    error: float


def deepest_point(model: Model, poses: np.ndarray, shape0: int, shape1: int) -> DeepestPoint:
    """The greatest depth of a point of either surface below the other one, without margins.

    poses: float64[S, 7], xyzw, of the shapes in world. A surface is a cloth of its triangles, which the engine's search
    for the least distance of triangles measures (docs/adr/0098); the other shape is itself. A round surface is
    replaced by triangles with corners on it, which it is nowhere farther from than `error`. Planes have no points.
    """
    found = DeepestPoint(0.0, 0.0)
    for surface, solid in ((shape0, shape1), (shape1, shape0)):
        if model.shapes.type[surface] == ShapeType.PLANE:
            continue
        vertex, face, error = surface_of(model, surface)
        to_solid = compose_poses(inverse_poses(poses[solid]), poses[surface])
        placed = np.zeros((len(vertex), 7))
        placed[:, :3], placed[:, 6] = vertex, 1.0
        depth = _depth(model, solid, compose_poses(to_solid, placed)[:, :3], face)
        if depth > found.depth:
            found = DeepestPoint(depth, error)
    return found


def _depth(model: Model, row: int, vertex: np.ndarray, face: np.ndarray) -> float:
    """Greatest depth of triangles in the frame of a shape below its surface [m]."""
    builder = ModelBuilder()
    _add_alone(builder, model, row)
    builder.add_cloth_mesh(vertices=vertex, indices=face, particle_radius=0.0)
    contacts = collide(builder.finalize(), soft_gap=0.0, device="cpu")
    return max(0.0, -float(contacts.groups["soft_contacts"].columns["distance"].min(initial=0.0)))


def _add_alone(builder: ModelBuilder, model: Model, row: int) -> None:
    """Adds a shape of a model as a static one whose frame is the world's."""
    shapes = model.shapes
    kind = ShapeType(shapes.type[row])
    if kind == ShapeType.CONVEX_MESH:
        hull = model.hulls[shapes.hull[row]]
        builder.add_shape_convex_hull(-1, hull, _back(hull.center))
    elif kind == ShapeType.MESH:
        mesh = model.meshes[shapes.mesh[row]]
        builder.add_shape_mesh(-1, mesh, xform=_back(mesh.center))
    elif kind == ShapeType.HEIGHTFIELD:
        field = model.heightfields[shapes.heightfield[row]]
        builder.add_shape_heightfield(-1, field, xform=_back((0.0, 0.0, field.center)))
    else:
        builder.add_shape(-1, kind, shapes.size[row][: SIZE_COUNT[kind]].tolist())


def _back(center: np.ndarray | tuple[float, float, float]) -> tuple[float, ...]:
    """The pose that moves a shape's centre, about which its vertices are given, to the origin."""
    x, y, z = (-float(each) for each in center)
    return x, y, z, 0.0, 0.0, 0.0, 1.0
