"""Columns of contacts that follow from the motion of the two bodies: gradients of distance, and velocities.

Where the two nearest points are unique, the distance d changes with the bodies' positions x and rotations as if the
points p were fixed to the bodies (envelope theorem): with the normal n from shape0 to shape1, dd/dx0 = -n,
dd/dtheta0 = -(p0 - x0) x n, dd/dx1 = n, dd/dtheta1 = (p1 - x1) x n, where theta is a rotation vector in the world,
about the body's origin. Hence dd/dt = n . (v1 - v0) with the velocities v of the points as fixed to their bodies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.numerics.elementary import atan2
from collidecli.numerics.matrices import compose_poses, cross, dot, multiply, norm
from collidecli.scene.model import Model
from collidecli.scene.tables import MOTION_COLUMNS, ContactBlock

STRIP = 1 << 15
"""Contacts in one vectorized step."""


@dataclass(frozen=True)
class FramePoses:
    """Poses of consecutive frames, and the two frames of each cell between which velocities are taken.

    first_frame: frame of body_pose[0]. body_pose: float64[frames, recorded worlds, B, 7]. before, after: int64[cells],
    frames. seconds: float64[cells], time between them; greater than zero, or NaN where no velocity is wanted.
    """

    first_frame: int
    body_pose: np.ndarray
    before: np.ndarray
    after: np.ndarray
    seconds: np.ndarray


def body_poses(model: Model, poses: np.ndarray, frame: np.ndarray, world: np.ndarray, body: np.ndarray) -> np.ndarray:
    """float64[n, 7]: poses of bodies in worlds; the identity for body -1, the world.

    poses: float64[frames, recorded worlds, B, 7]. frame: int64[n], rows of poses. world, body: int64[n].
    """
    found = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(body), 1))
    moving = np.flatnonzero(body >= 0)
    if not len(moving):
        return found
    frame, world, body = frame[moving], world[moving], body[moving]
    is_shared = poses.shape[1] == 1
    pose = poses[frame, np.zeros_like(world) if is_shared else world, body]
    if is_shared and model.world_shift is not None:
        shifted = model.bodies.template[body] >= 0
        pose[shifted] = compose_poses(model.world_shift[world[shifted]], pose[shifted])
    found[moving] = pose
    return found


def rotation_vector(quaternion: np.ndarray) -> np.ndarray:
    """float64[n, 3]: rotation vectors of unit quaternions xyzw, of angles up to half a turn [rad].

    Of half a turn, for which both directions are right, the one of the quaternion's own sign.
    """
    sine = norm(quaternion[:, :3])
    angle = 2.0 * atan2(sine, np.abs(quaternion[:, 3]))
    sign = np.where(quaternion[:, 3] < 0.0, -1.0, 1.0)
    factor = np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine > 0.0)
    return quaternion[:, :3] * (sign * factor)[:, None]


def motion_columns(
    model: Model, block: ContactBlock, poses: FramePoses, names: frozenset[str]
) -> dict[str, np.ndarray]:
    """The columns `names`, of MOTION_COLUMNS without grad_exact, of a block's contacts."""
    wanted = [column for column in MOTION_COLUMNS if column.name in names and column.name != "grad_exact"]
    shapes = [(column.width,) if column.width > 1 else () for column in wanted]
    count = block.contact_count
    columns = {c.name: np.empty((count, *shape), c.dtype) for c, shape in zip(wanted, shapes, strict=True)}
    index = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    for start in range(0, count, STRIP):
        rows = slice(start, min(start + STRIP, count))
        for name, values in _strip(model, block, poses, rows, index[rows], names).items():
            columns[name][rows] = values
    return columns


def _strip(
    model: Model, block: ContactBlock, poses: FramePoses, rows: slice, index: np.ndarray, names: frozenset[str]
) -> dict[str, np.ndarray]:
    """`motion_columns` of some rows; index: of the cell of each in the block."""
    frame, world = np.divmod(block.first_cell + index, model.world_count)
    normal = block.normal[rows].astype(np.float64)
    normal /= norm(normal)[:, None]
    found: dict[str, np.ndarray] = {}
    velocity = []
    for side, sign in ((0, -1.0), (1, 1.0)):
        body = model.shapes.body[block.columns[f"shape{side}"][rows]].astype(np.int64)
        point = block.columns[f"point{side}"][rows].astype(np.float64)

        def at(frames: np.ndarray, body: np.ndarray = body) -> np.ndarray:
            return body_poses(model, poses.body_pose, frames - poses.first_frame, world, body)

        arm = point - at(frame)[:, :3]
        if f"distance_grad{side}" in names:
            found[f"distance_grad{side}"] = sign * np.concatenate([normal, cross(arm, normal)], axis=1)
        if names & {"normal_velocity", "slip"}:
            before = at(poses.before[index])
            after = at(poses.after[index])
            conjugate = before[:, 3:] * [-1.0, -1.0, -1.0, 1.0]
            turn = rotation_vector(multiply(after[:, 3:].T, conjugate.T).T)
            velocity.append((after[:, :3] - before[:, :3] + cross(turn, arm)) / poses.seconds[index][:, None])
    if velocity:
        relative = velocity[1] - velocity[0]
        along = dot(relative, normal)
        found["normal_velocity"], found["slip"] = along, norm(relative - along[:, None] * normal)
    return {name: values for name, values in found.items() if name in names}
