"""Velocities of contacts of particles: of the body at the contact, and of the particles relative to
it."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.contact_motion import MOTION_STRIP, FramePoses, point_velocity
from collidecli.numerics.poses import moved_points
from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.contact_columns import SOFT_MOTION_COLUMNS
from collidecli.scene.model import GLOBAL_TEMPLATE, Model


def soft_motion_columns(
    model: Model,
    first_cell: int,
    rows: GroupRows,
    poses: FramePoses,
    positions: np.ndarray,
    names: frozenset[str],
) -> dict[str, np.ndarray]:
    """The columns `names`, of SOFT_MOTION_COLUMNS, of rows of /soft_contacts, in that order.

    The point of an element moves as the particles do, weighted by its barycentric coordinates; a
    particle does not turn. positions: float64[frames of `poses`, 1 or worlds, particles, 3].
    """
    wanted = [column for column in SOFT_MOTION_COLUMNS if column.name in names]
    columns = {c.name: np.empty((rows.row_count, c.width), c.dtype) for c in wanted}
    index = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    for start in range(0, rows.row_count, MOTION_STRIP):
        at = slice(start, min(start + MOTION_STRIP, rows.row_count))
        cell = first_cell + index[at]
        body = model.shapes.body[rows.columns["shape"][at]].astype(np.int64)
        point = rows.columns["point_world"][at].astype(np.float64)
        of_body = point_velocity(model, poses, index[at], body, point, cell)
        values = {"body_velocity": of_body}
        if "relative_velocity" in columns:
            of_element = _element_velocity(model, rows, at, poses, positions, index[at], cell)
            values["relative_velocity"] = of_element - of_body
        for name, column in columns.items():
            column[at] = values[name]
    return columns


def _element_velocity(
    model: Model,
    rows: GroupRows,
    at: slice,
    poses: FramePoses,
    positions: np.ndarray,
    index: np.ndarray,
    cell: np.ndarray,
) -> np.ndarray:
    """float64[n, 3]: velocities of the points of vertices, edges and faces, world [m/s]."""
    indices = rows.columns["indices"][at]
    is_used = indices >= 0
    particle = np.where(is_used, indices, 0)
    weight = np.where(is_used, rows.columns["barycentric"][at], 0.0)
    world = cell % model.world_count

    def placed(frames: np.ndarray) -> np.ndarray:
        """float64[n, 3, 3]: positions of the particles of each row."""
        recorded = world if positions.shape[1] > 1 else np.zeros_like(world)
        point = positions[(frames - poses.first_frame)[:, None], recorded[:, None], particle]
        if positions.shape[1] > 1 or model.world_shift is None:
            return point
        is_global = model.particles.template[model.particles.owner[particle]] == GLOBAL_TEMPLATE
        moved = moved_points(model.world_shift[world][:, None], point)
        return np.where(is_global[..., None], point, moved)

    way = placed(poses.after[index]) - placed(poses.before[index])
    first, second, third = (weight[:, k, None] * way[:, k] for k in range(3))
    return (first + second + third) / poses.seconds[index][:, None]
