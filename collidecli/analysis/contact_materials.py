"""Materials of contacts with meshes whose triangles have their own, of the triangle touched."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.cell_poses import shape_poses
from collidecli.analysis.contact_motion import FramePoses
from collidecli.numerics.poses import inverse_poses, moved_points, rotated
from collidecli.numerics.products import norm
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import MATERIAL_COLUMNS
from collidecli.scene.distinct_values import common
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.nearest_triangles import nearest_triangle
from collidecli.scene.triangle_materials import OF_SHAPE

TIE = 2.0**-20
"""Rounding of the coordinates of a witness point in float32 columns, relative to their size: of
triangles whose distances from it agree to this, none is nearer."""


def material_columns(model: Model, block: ContactBlock, poses: FramePoses) -> dict[str, np.ndarray]:
    """material0, material1: int32[n], rows of `Model.triangle_materials`, -1 of other surfaces.

    The material is that of the triangle nearest to the witness point. On an edge or a vertex it is
    that of the triangle that faces the other shape most directly, and of several the first. Points
    of a signed distance field and of a reduced manifold may be off the surface; the nearest
    triangle is then that of the nearest point of the surface.
    """
    frame, world = np.divmod(block.cell, model.world_count)
    values = {}
    for side, column in enumerate(MATERIAL_COLUMNS):
        value = np.full(block.contact_count, OF_SHAPE, np.int32)
        shape = block.columns[f"shape{side}"]
        for row in common(shape, list(model.triangle_materials.row)).tolist():
            at = np.flatnonzero(shape == row)
            shapes = np.full(len(at), row)
            in_batch = frame[at] - poses.first_frame
            pose = shape_poses(model, poses.body_pose, in_batch, world[at], shapes)
            triangle = _touched(model, row, block, side, at, pose)
            value[at] = model.triangle_materials.row[row][triangle]
        values[column.name] = value
    return values


def _touched(
    model: Model, shape: int, block: ContactBlock, side: int, at: np.ndarray, pose: np.ndarray
) -> np.ndarray:
    """int64[n]: the triangle of the mesh `shape` that each of the contacts `at` touches.

    pose: float64[n, 7], of the shape. side: 0 or 1, of the shape.
    """
    mesh = model.meshes[model.shapes.mesh[shape]]
    if model.shapes.body[shape] == STATIC_BODY:
        stored = block.columns[f"point{side}"][at].astype(np.float64)
        point = moved_points(inverse_poses(pose), stored)
    else:
        # in the body's frame, where a body far from the origin has small coordinates
        stored = block.columns[f"offset{side}"][at].astype(np.float64)
        to_shape = inverse_poses(np.broadcast_to(model.shapes.pose[shape], pose.shape))
        point = moved_points(to_shape, stored)
    outwards = (1.0 - 2.0 * side) * block.columns["normal"][at].astype(np.float64)
    direction = rotated(inverse_poses(pose)[:, 3:], outwards)
    slack = TIE * (norm(stored) + float(mesh.half_extents.max()))
    return nearest_triangle(point, direction, mesh.vertex[mesh.face], slack)
