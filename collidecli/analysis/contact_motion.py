"""Contacts of bodies in motion: gradients of distance, velocities.

Where the two nearest points are unique, the distance d changes with the bodies' positions x and
rotations as if the points p were fixed to the bodies (envelope theorem): with the normal n from
shape0 to shape1, dd/dx0 = -n, dd/dtheta0 = -(p0 - x0) x n, dd/dx1 = n, dd/dtheta1 = (p1 - x1) x n,
where theta is a rotation vector in the world, about the body's origin. Hence dd/dt = n . (v1 - v0)
with the velocities v of the points as fixed to their bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.cell_poses import body_poses
from collidecli.numerics.pose_columns import multiply
from collidecli.numerics.poses import compose_poses
from collidecli.numerics.products import cross, dot, norm
from collidecli.numerics.trigonometry import atan2, sincos
from collidecli.scene.contact_blocks import ContactBlock, pair_begins
from collidecli.scene.contact_columns import MOTION_COLUMNS
from collidecli.scene.model import Model

MOTION_STRIP = 1 << 15
"""Contacts in one vectorized step."""


@dataclass(frozen=True)
class FramePoses:
    """Poses of consecutive frames, and the two frames of each cell between which velocities are
    taken.

    first_frame: frame of body_pose[0]. body_pose: float64[frames, recorded worlds, B, 7]. before,
    after: int64[cells], frames. seconds: float64[cells], time between them; greater than zero, or
    NaN where no velocity is wanted.
    """

    first_frame: int
    body_pose: np.ndarray
    before: np.ndarray
    after: np.ndarray
    seconds: np.ndarray


def rotation_vector(quaternion: np.ndarray) -> np.ndarray:
    """float64[n, 3]: rotation vectors of unit quaternions xyzw, of angles up to half a turn [rad].

    Of half a turn, for which both directions are right, the one of the quaternion's own sign.
    """
    sine = norm(quaternion[:, :3])
    angle = 2.0 * atan2(sine, np.abs(quaternion[:, 3]))
    sign = np.where(quaternion[:, 3] < 0.0, -1.0, 1.0)
    factor = np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine > 0.0)
    return quaternion[:, :3] * (sign * factor)[:, None]


def distance_gradient(
    side: int, normal: np.ndarray, point: np.ndarray, origin: np.ndarray
) -> np.ndarray:
    """float64[n, 6]: derivatives of distances over the position of a body [1], and over its
    rotation vector [m].

    side: 0 or 1, of the shape on the body. normal, point: float64[n, 3], unit from shape 0 to shape
    1, and the witness point of the shape, in world. origin: float64[n, 3], of the body in world,
    about which it rotates.
    """
    return (2.0 * side - 1.0) * np.concatenate([normal, cross(point - origin, normal)], axis=1)


PART = 1e-5
"""Displacement of a difference, as a part of the size."""
AGREEMENT = 0.01
"""Largest difference of the slopes to either side from the gradient, per unit of displacement.
Rounding of a depth, up to 1e-9 of the size, makes 1e-4; a curvature of 1000 / size makes 5e-3.
"""


def is_differentiable(
    distance: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    origin: np.ndarray,
    placed: np.ndarray,
    point: np.ndarray,
    size: np.ndarray,
) -> np.ndarray:
    """bool[n]: whether least distances of pairs have these gradients, by differences to both sides.

    The distance is measured again with the body of shape 1 moved and turned both ways about each
    axis, by PART of the size. At a kink, such as that of two faces that are parallel, the
    differences to both sides differ.

    Args:
        distance: least distances [m] for world poses float64[n, 7] of shape 1.
        gradient, origin, point: float64[n, 6], [n, 3] and [n, 3], of shape 1, see
            `distance_gradient`.
        placed: float64[n, 7], world poses of shape 1. size: float64[n], of the smaller shape of
            each pair [m].
    """
    arm = norm(point - origin)
    # displacement per unit of the motion
    reach = np.stack([np.ones_like(arm)] * 3 + [arm + size] * 3, axis=1)
    distance_here = distance(placed)
    exact = np.ones(len(placed), bool)
    for axis in range(6):
        for sign in (-1.0, 1.0):
            step = sign * PART * size / reach[:, axis]
            slope = (
                distance(compose_poses(_motion(origin, axis, step), placed)) - distance_here
            ) / step
            exact &= np.abs(slope - gradient[:, axis]) <= AGREEMENT * reach[:, axis]
    return exact


def least_rows(block: ContactBlock) -> np.ndarray:
    """int64: the row with the least distance of each pair in each cell, the first of several."""
    begins = np.flatnonzero(pair_begins(block))
    if not len(begins):
        return begins
    least = np.minimum.reduceat(block.distance, begins)
    of_pair = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, block.contact_count)))
    candidates = np.flatnonzero(block.distance == least[of_pair])
    _, first = np.unique(of_pair[candidates], return_index=True)
    return candidates[first]


def _motion(origin: np.ndarray, axis: int, step: np.ndarray) -> np.ndarray:
    """float64[n, 7]: motions along axis 0 to 2 [m], or turns about axis 3 to 5 through origins [n,
    3] [rad]."""
    motion = np.zeros((len(step), 7))
    motion[:, 6] = 1.0
    if axis < 3:
        motion[:, axis] = step
        return motion
    motion[:, axis], motion[:, 6] = sincos(0.5 * step)
    about = np.zeros_like(motion)
    about[:, :3] = origin
    about[:, 6] = 1.0
    back = about * [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    return compose_poses(compose_poses(about, motion), back)


def point_velocity(
    model: Model,
    poses: FramePoses,
    index: np.ndarray,
    body: np.ndarray,
    point: np.ndarray,
    cell: np.ndarray,
) -> np.ndarray:
    """float64[n, 3]: velocities of points as fixed to bodies, world [m/s].

    index: int64[n], of the cell of each in `poses`. body: int64[n], -1 is the world. point:
    float64[n, 3], world [m]. cell: int64[n].
    """
    frame, world = np.divmod(cell, model.world_count)

    def at(frames: np.ndarray) -> np.ndarray:
        return body_poses(model, poses.body_pose, frames - poses.first_frame, world, body)

    before = at(poses.before[index])
    after = at(poses.after[index])
    conjugate = before[:, 3:] * [-1.0, -1.0, -1.0, 1.0]
    turn = rotation_vector(multiply(after[:, 3:].T, conjugate.T).T)
    return (after[:, :3] - before[:, :3] + cross(turn, point - at(frame)[:, :3])) / poses.seconds[
        index
    ][:, None]


def motion_columns(
    model: Model, block: ContactBlock, poses: FramePoses, names: frozenset[str]
) -> dict[str, np.ndarray]:
    """The columns `names`, of MOTION_COLUMNS without grad_exact, of a block's contacts."""
    wanted = [
        column for column in MOTION_COLUMNS if column.name in names and column.name != "grad_exact"
    ]
    shapes = [(column.width,) if column.width > 1 else () for column in wanted]
    count = block.contact_count
    columns = {
        c.name: np.empty((count, *shape), c.dtype) for c, shape in zip(wanted, shapes, strict=True)
    }
    index = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    for start in range(0, count, MOTION_STRIP):
        rows = slice(start, min(start + MOTION_STRIP, count))
        for name, values in _strip(model, block, poses, rows, index[rows], names).items():
            columns[name][rows] = values
    return columns


def _strip(
    model: Model,
    block: ContactBlock,
    poses: FramePoses,
    rows: slice,
    index: np.ndarray,
    names: frozenset[str],
) -> dict[str, np.ndarray]:
    """`motion_columns` of some rows; index: of the cell of each in the block."""
    frame, world = np.divmod(block.first_cell + index, model.world_count)
    normal = block.normal[rows].astype(np.float64)
    normal /= norm(normal)[:, None]
    of_strip: dict[str, np.ndarray] = {}
    velocity = []
    for side in (0, 1):
        body = model.shapes.body[block.columns[f"shape{side}"][rows]].astype(np.int64)
        point = block.columns[f"point{side}"][rows].astype(np.float64)
        if f"distance_grad{side}" in names:
            at_frame = frame - poses.first_frame
            origin = body_poses(model, poses.body_pose, at_frame, world, body)[:, :3]
            of_strip[f"distance_grad{side}"] = distance_gradient(side, normal, point, origin)
        if names & {"normal_velocity", "slip"}:
            velocity.append(
                point_velocity(model, poses, index, body, point, block.first_cell + index)
            )
    if velocity:
        relative = velocity[1] - velocity[0]
        along = dot(relative, normal)
        of_strip["normal_velocity"] = along
        of_strip["slip"] = norm(relative - along[:, None] * normal)
    return {name: values for name, values in of_strip.items() if name in names}
