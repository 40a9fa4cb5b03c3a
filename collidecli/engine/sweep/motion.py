"""Motion of shapes between two frames.

At the time s in [0, 1] of a step the origin of a body is x + s dx, and its rotation is that by s
times the rotation vector w after the one at the step's begin, as the slerp has a constant axis and
rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from collidecli.engine.cells import PoseBatch, has_step
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses, rotated
from collidecli.numerics.products import cross, dot, norm
from collidecli.numerics.trigonometry import atan2, sincos
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.poses import IDENTITY_POSE


def rotated_inverse(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[..., 3]: vectors rotated by the inverses of unit quaternions."""
    return rotated(np.concatenate([-q[..., :3], q[..., 3:]], axis=-1), v)


HALF_TURN = float(np.pi) - 1e-6
"""Largest angle of a body's rotation in one step [rad]: half a turn has no shortest direction."""


@dataclass(frozen=True)
class BodySteps:
    """Bodies over the steps of cells, entry [cell, body]; the last entry of each cell is the static
    world.

    cell: int64[C], numbers of the cells in the batch, each with a next frame. pose: float64[C, B +
    1, 7] at the begin. shift: float64[C, B + 1, 3] [m]. turn: float64[C, B + 1, 3], rotation
    vectors in world [rad].
    """

    cell: np.ndarray
    world: np.ndarray
    pose: np.ndarray
    shift: np.ndarray
    turn: np.ndarray


class Rows:
    """Arrays of one length, and records of such arrays: base class of data classes."""

    def take(self, rows: np.ndarray) -> Self:
        """Some of the rows."""
        values = vars(self).values()
        return type(self)(
            *(
                values_of_field.take(rows)
                if isinstance(values_of_field, Rows)
                else values_of_field[rows]
                for values_of_field in values
            )
        )


def in_blocks(
    parts: Iterable[tuple[np.ndarray, ...]], size: int
) -> Iterator[tuple[np.ndarray, ...]]:
    """The rows of parts, arrays of one length each, in blocks of `size` rows, or less than twice as
    many."""
    block = []
    count = 0
    for part in parts:
        for first in range(0, len(part[0]), size):
            block.append([values[first : first + size] for values in part])
            count += len(block[-1][0])
            if count >= size:
                yield tuple(map(np.concatenate, zip(*block, strict=True)))
                block = []
                count = 0
    if count:
        yield tuple(map(np.concatenate, zip(*block, strict=True)))


@dataclass(frozen=True)
class ShapeSteps(Rows):
    """Shapes in steps, a row each. origin: float64[n, 3], of the body [m]. arm: float64[n, 3], from
    the body's origin to the shape's, in world, at the begin [m]. quat: float64[n, 4], of the shape.
    shift, turn: see `BodySteps`.
    """

    origin: np.ndarray
    arm: np.ndarray
    quat: np.ndarray
    shift: np.ndarray
    turn: np.ndarray

    def at(self, time: np.ndarray) -> np.ndarray:
        """float64[n, 7]: poses of the shapes at the time of each row in its step."""
        turned = np.concatenate(
            [self.origin + time[:, None] * self.shift, rotations(self.turn, time)], axis=1
        )
        return compose_poses(turned, np.concatenate([self.arm, self.quat], axis=1))

    def part(self, since: np.ndarray, until: np.ndarray) -> ShapeSteps:
        """The parts of the steps between two times of each, float64[n]; a whole step keeps its
        bits."""
        is_cut = (since > 0.0) | (until < 1.0)
        if not is_cut.any():
            return self
        length = (until - since)[:, None]
        turned = np.concatenate([np.zeros((len(since), 3)), rotations(self.turn, since)], axis=1)
        placed = compose_poses(turned, np.concatenate([self.arm, self.quat], axis=1))
        origin = self.origin + since[:, None] * self.shift
        cut = origin, placed[:, :3], placed[:, 3:], length * self.shift, length * self.turn
        fields = zip(cut, vars(self).values(), strict=True)
        return ShapeSteps(*(np.where(is_cut[:, None], part, own) for part, own in fields))

    def reversed(self) -> ShapeSteps:
        """The steps backwards in time."""
        end = self.at(np.ones(len(self.shift)))
        origin = self.origin + self.shift
        return ShapeSteps(origin, end[:, :3] - origin, end[:, 3:], -self.shift, -self.turn)


def body_steps(model: Model, batch: PoseBatch) -> BodySteps:
    """The steps of the cells of a batch that have one, see `has_step`.
    Raises InputError for a rotation of half a turn in one step."""
    number = np.flatnonzero(has_step(model, batch))
    frame, world = np.divmod(batch.first_cell + number, model.world_count)
    frame = frame - batch.first_frame
    poses = np.asarray(batch.body_pose, np.float64)
    if poses.shape[1] == 1:
        poses = model.moved_with_worlds(poses)
    recorded = world if poses.shape[1] > 1 else np.zeros_like(world)
    begin = poses[frame, recorded]
    end = poses[frame + 1, recorded]
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
        moved = compose_poses(model.world_shift[bodies.world[step]], local)
        local = np.where(placed[:, None], moved, local)
    column = np.where(body == STATIC_BODY, bodies.pose.shape[1] - 1, body)
    pose = bodies.pose[step, column]
    placed_pose = compose_poses(pose, local)
    turned = compose_poses(np.concatenate([np.zeros((len(row), 3)), pose[:, 3:]], axis=1), local)
    return ShapeSteps(
        pose[:, :3],
        turned[:, :3],
        placed_pose[:, 3:],
        bodies.shift[step, column],
        bodies.turn[step, column],
    )


def axis_and_angle(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit axes float64[n, 3] and angles float64[n] of rotation vectors [rad]; the axis of no
    rotation is 0."""
    angle = norm(turn)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(angle[:, None] > 0.0, turn / angle[:, None], 0.0), angle


def rotations(turn: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[n, 4]: unit quaternions of the parts `time`, float64[n], of rotation vectors
    [rad]."""
    axis, angle = axis_and_angle(turn)
    sine, cosine = sincos(0.5 * angle * time)
    return np.concatenate([sine[:, None] * axis, cosine[:, None]], axis=1)


def _turn(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """float64[..., 3]: rotation vectors in world of the shortest rotations between unit quaternions
    [rad]."""
    begin = begin / norm(begin)[..., None]
    end = end / norm(end)[..., None]
    bv = begin[..., :3]
    bw = begin[..., 3:]
    ev = end[..., :3]
    ew = end[..., 3:]
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
    is_global = model.bodies.template == GLOBAL_TEMPLATE
    present = is_global | (model.bodies.template == model.world_template[world][:, None])
    broken = (norm(turn) > HALF_TURN) & used & present
    if broken.any():
        step, body = (int(index[0]) for index in np.nonzero(broken))
        at = f", world {int(world[step])}" if model.world_count > 1 else ""
        raise InputError(
            f"body '{model.bodies.path[body]}' rotates by half a turn from frame"
            f" {int(frame[step])} to the next{at}",
            "--sweep",
            "its direction of rotation is unknown: record more frames, or select frames without"
            " this step by --frames",
        )


@dataclass(frozen=True)
class PairSteps(Rows):
    """Pairs of shapes in steps, a row each. rows: int32[n, 2], shape0 < shape1. of0, of1: the
    motions of both shapes.

    radius0, radius1: float64[n], see `turning_radius` [m]. reach0, reach1: float64[n], largest
    distance of a point of each shape from its body's origin; of a sphere that of its centre. far0,
    far1: float64[n], of a sphere too that of its surface [m]. speed: float64[n], bound of
    `pair_steps` [m]. margin: float64[n], sum of both margins [m].
    """

    rows: np.ndarray
    of0: ShapeSteps
    of1: ShapeSteps
    radius0: np.ndarray
    radius1: np.ndarray
    reach0: np.ndarray
    reach1: np.ndarray
    far0: np.ndarray
    far1: np.ndarray
    speed: np.ndarray
    margin: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def reversed(self) -> PairSteps:
        """The steps backwards in time; the bounds of speeds are those of the steps."""
        both = self.of0.reversed(), self.of1.reversed()
        return replace(self, of0=both[0], of1=both[1])
