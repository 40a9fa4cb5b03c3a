"""Motion of bodies and shapes between consecutive frames: origins in straight lines, rotations by the shortest slerp.

With the time s in [0, 1] of a step, the origin of a body is x + s dx, and its rotation is that by s times the vector w
after the rotation at the step's begin: the rotation vector w is constant over the step, as the slerp has a constant
axis and rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.sweep.supports import Supports, rotated_inverse
from collidecli.errors import InputError
from collidecli.numerics.elementary import atan2, sincos
from collidecli.numerics.matrices import cross, dot, norm
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.placement import IDENTITY_POSE, compose

HALF_TURN = float(np.pi) - 1e-6
"""Largest angle of a body's rotation in one step [rad]: half a turn has no shortest direction."""


@dataclass(frozen=True)
class BodySteps:
    """Bodies over the steps of cells, entry [cell, body]; the last entry of each cell is the static world.

    cell: int64[C], numbers of the cells in the batch, each with a next frame. pose: float64[C, B + 1, 7] at the begin.
    shift: float64[C, B + 1, 3] [m]. turn: float64[C, B + 1, 3], rotation vectors in world [rad].
    """

    cell: np.ndarray
    world: np.ndarray
    pose: np.ndarray
    shift: np.ndarray
    turn: np.ndarray


@dataclass(frozen=True)
class ShapeSteps:
    """Shapes in steps, a row each. origin: float64[n, 3], of the body [m]. arm: float64[n, 3], from the body's origin
    to the shape's, in world, at the begin [m]. quat: float64[n, 4], of the shape. shift, turn: see `BodySteps`.
    """

    origin: np.ndarray
    arm: np.ndarray
    quat: np.ndarray
    shift: np.ndarray
    turn: np.ndarray

    def take(self, rows: np.ndarray) -> ShapeSteps:
        return ShapeSteps(self.origin[rows], self.arm[rows], self.quat[rows], self.shift[rows], self.turn[rows])

    def at(self, time: np.ndarray) -> np.ndarray:
        """float64[n, 7]: poses of the shapes at the time of each row in its step."""
        turned = np.concatenate([self.origin + time[:, None] * self.shift, rotations(self.turn, time)], axis=1)
        return compose(turned, np.concatenate([self.arm, self.quat], axis=1))

    def reversed(self) -> ShapeSteps:
        """The steps backwards in time."""
        end = self.at(np.ones(len(self.shift)))
        origin = self.origin + self.shift
        return ShapeSteps(origin, end[:, :3] - origin, end[:, 3:], -self.shift, -self.turn)


def has_step(model: Model, batch: PoseBatch) -> np.ndarray:
    """bool[cells]: the cells of a batch that have a step: a next frame in the batch, and in the episode."""
    frame, world = np.divmod(batch.first_cell + np.arange(batch.cell_count), model.world_count)
    frame = frame - batch.first_frame
    found = frame + 1 < len(batch.body_pose)
    if batch.has_step is not None:
        found &= batch.has_step[np.minimum(frame, len(batch.has_step) - 1), world]
    return found


def body_steps(model: Model, batch: PoseBatch) -> BodySteps:
    """The steps of the cells of a batch that have one, see `has_step`.

    Raises InputError for a rotation of half a turn in one step.
    """
    number = np.flatnonzero(has_step(model, batch))
    frame, world = np.divmod(batch.first_cell + number, model.world_count)
    frame = frame - batch.first_frame
    poses = np.asarray(batch.body_pose, np.float64)
    if poses.shape[1] == 1:
        poses = model.moved_with_worlds(poses)
    recorded = world if poses.shape[1] > 1 else np.zeros_like(world)
    begin, end = poses[frame, recorded], poses[frame + 1, recorded]
    turn = _turn(begin[..., 3:], end[..., 3:])
    _check_turns(model, turn, batch.first_frame + frame, world)
    static = np.broadcast_to(np.array(IDENTITY_POSE), (len(number), 1, 7))
    rest = np.zeros((len(number), 1, 3))
    pose = np.concatenate([begin, static], axis=1)
    shift = np.concatenate([end[..., :3] - begin[..., :3], rest], axis=1)
    return BodySteps(number, world, pose, shift, np.concatenate([turn, rest], axis=1))


def shape_steps(model: Model, bodies: BodySteps, step: np.ndarray, row: np.ndarray) -> ShapeSteps:
    """The motion of shapes `row`, int[n], in the steps `step`, int[n], entries of `bodies`."""
    body = model.shapes.body[row]
    local = model.shapes.pose[row]
    if model.world_shift is not None:
        placed = (body == STATIC_BODY) & (model.shapes.template[row] != GLOBAL_TEMPLATE)
        moved = compose(model.world_shift[bodies.world[step]], local)
        local = np.where(placed[:, None], moved, local)
    column = np.where(body == STATIC_BODY, bodies.pose.shape[1] - 1, body)
    pose = bodies.pose[step, column]
    placed_pose = compose(pose, local)
    turned = compose(np.concatenate([np.zeros((len(row), 3)), pose[:, 3:]], axis=1), local)
    return ShapeSteps(
        pose[:, :3], turned[:, :3], placed_pose[:, 3:], bodies.shift[step, column], bodies.turn[step, column]
    )


def rotations(turn: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[n, 4]: unit quaternions of the parts `time`, float64[n], of rotation vectors [rad]."""
    angle = norm(turn)
    sine, cosine = sincos(0.5 * angle * time)
    with np.errstate(invalid="ignore", divide="ignore"):
        axis = np.where(angle[:, None] > 0.0, turn / angle[:, None], 0.0)
    return np.concatenate([sine[:, None] * axis, cosine[:, None]], axis=1)


def _turn(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """float64[..., 3]: rotation vectors in world of the shortest rotations between unit quaternions [rad]."""
    begin, end = begin / norm(begin)[..., None], end / norm(end)[..., None]
    bv, bw, ev, ew = begin[..., :3], begin[..., 3:], end[..., :3], end[..., 3:]
    vector = bw * ev - ew * bv - cross(ev, bv)
    cosine = bw[..., 0] * ew[..., 0] + dot(bv, ev)
    vector = np.where(cosine[..., None] < 0.0, -vector, vector)
    sine = norm(vector)
    angle = 2.0 * atan2(sine, np.abs(cosine))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sine[..., None] > 0.0, vector * (angle / sine)[..., None], 0.0)


def _check_turns(model: Model, turn: np.ndarray, frame: np.ndarray, world: np.ndarray) -> None:
    used = np.zeros(turn.shape[1], bool)
    used[model.shapes.body[model.shapes.body != STATIC_BODY]] = True
    own = model.bodies.template == GLOBAL_TEMPLATE
    present = own | (model.bodies.template == model.world_template[world][:, None])
    broken = (norm(turn) > HALF_TURN) & used & present
    if broken.any():
        step, body = (int(index[0]) for index in np.nonzero(broken))
        at = f", world {int(world[step])}" if model.world_count > 1 else ""
        raise InputError(
            f"body '{model.bodies.path[body]}' rotates by half a turn from frame {int(frame[step])} to the next{at}",
            "--sweep",
            "its direction of rotation is unknown: record more frames, or select frames without this step by --frames",
        )


def turning_radius(supports: Supports, row: np.ndarray, steps: ShapeSteps) -> np.ndarray:
    """float64[n]: largest distance of a point of each shape from the axis of its rotation, at any time of its step [m].

    Of a sphere that of its centre, since a rotation about it changes nothing. 0 without rotation; infinite for a plane
    that rotates.
    """
    angle = norm(steps.turn)
    with np.errstate(invalid="ignore", divide="ignore"):
        axis = np.where(angle[:, None] > 0.0, steps.turn / angle[:, None], 0.0)
    local = np.abs(rotated_inverse(steps.quat, axis))
    half = supports.half[row]
    x, y, z = half.T
    with np.errstate(invalid="ignore"):
        spread = np.stack(
            [
                y * local[:, 2] + z * local[:, 1],
                z * local[:, 0] + x * local[:, 2],
                x * local[:, 1] + y * local[:, 0],
            ],
            axis=1,
        )
        about_center = np.minimum(norm(spread), supports.radius[row])
    about_center = np.where(supports.is_ball[row], 0.0, np.where(np.isnan(about_center), np.inf, about_center))
    return np.where(angle > 0.0, (norm(cross(steps.arm, axis)) + about_center) * (1.0 + 1e-12), 0.0)
