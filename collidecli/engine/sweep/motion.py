"""Motion of shapes between two frames, bounds of their speed, first touches and least distances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from collidecli.engine.cells import PoseBatch, has_step
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses, rotated
from collidecli.numerics.products import cross, dot, norm
from collidecli.numerics.trigonometry import atan2, sincos
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.poses import IDENTITY_POSE
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import ball_radius, half_extents, has_support, support_heights

if TYPE_CHECKING:
    from collidecli.engine.pair_distances import PairDistanceRows, PairDistances

# At the time s in [0, 1] of a step the origin of a body is x + s dx, and its rotation is that by s
# times the rotation vector w after the one at the step's begin, as the slerp has a constant axis
# and rate.

ROUNDING = 128.0 * np.finfo(np.float64).eps
"""Of a support height and of an interpolated pose, as a fraction of the coordinates and sizes; a
bound of the sums."""
HULL_VERTICES = 64
"""Meshes with more vertices are replaced by the vertices of their hull."""
PRODUCTS = 1 << 20
"""Dot products of directions and vertices that are held at a time."""


class Supports:
    """Support heights of the shapes of a model; sizes [m].

    radius: float64[S], of the ball about the shape's origin that contains it; infinite for a plane.
    half: float64[S, 3], half extents of a box in the shape's frame that contains it. is_ball,
    is_convex, is_one_sided: bool[S].
    """

    def __init__(self, model: Model) -> None:
        shapes = model.shapes
        self.type = shapes.type
        self.size = shapes.size
        self.half = half_extents(shapes.type, shapes.size)
        self.radius = ball_radius(shapes.type, self.size, self.half)
        self.is_ball = shapes.type == ShapeType.SPHERE
        self.is_convex = has_support(shapes.type)
        one_sided = [mesh.has_front and not mesh.is_closed for mesh in model.meshes]
        self.is_one_sided = np.array([*one_sided, False])[
            np.where(shapes.type == ShapeType.MESH, shapes.mesh, -1)
        ]
        self.has_closed_exits = bool(
            self.is_one_sided.any() or np.any(shapes.type == ShapeType.HEIGHTFIELD)
        )
        self._points: dict[tuple[int, int], np.ndarray] = {}
        self._key = np.where(shapes.type == ShapeType.CONVEX_MESH, shapes.hull, shapes.mesh)
        for row in np.flatnonzero(
            (shapes.type == ShapeType.CONVEX_MESH) | (shapes.type == ShapeType.MESH)
        ):
            key = int(shapes.type[row]), int(self._key[row])
            if key not in self._points:
                is_hull = shapes.type[row] == ShapeType.CONVEX_MESH
                self._points[key] = (
                    model.hulls[key[1]].vertex if is_hull else _extreme(model.meshes[key[1]].vertex)
                )

    def height(self, row: np.ndarray, pose: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """float64[n]: greatest direction.(p - origin) over the points p of each shape [m]; infinite
        for a plane.

        Of a heightfield that of its box.

        row: int[n]. pose: float64[n, 7], of the shapes in world. direction: float64[n, 3], unit, in
        world.
        """
        local = rotated_inverse(pose[:, 3:], direction)
        kind = self.type[row]
        height = support_heights(kind, self.size[row], local)
        for (shape_type, number), points in self._points.items():
            of_surface = np.flatnonzero((kind == shape_type) & (self._key[row] == number))
            step = max(1, PRODUCTS // len(points))
            for first in range(0, len(of_surface), step):
                rows = of_surface[first : first + step]
                height[rows] = dot(local[rows, None, :], points).max(axis=1)
        return height

    def separation(
        self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray, normal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower bound of the distance of two shapes along a direction, float64[n] [m], and the
        directions.

        rows: int[n, 2]. normal: float64[n, 3], from the first shape to the second, any lengths;
        that of a plane is replaced by the plane's own normal. -inf where there is no bound.
        """
        length = norm(normal)
        with np.errstate(invalid="ignore", divide="ignore"):
            direction = np.where(
                length[:, None] > 0.0, normal / length[:, None], np.array([0.0, 0.0, 1.0])
            )
        direction = np.where(np.isfinite(direction), direction, 0.0)
        is_plane = self.type[rows] == ShapeType.PLANE
        for side, pose, sign in ((0, pose0, 1.0), (1, pose1, -1.0)):
            up = rotated(pose[:, 3:], np.array([0.0, 0.0, sign]))
            direction = np.where(is_plane[:, side, None], up, direction)
        return self.along(rows, pose0, pose1, direction), direction

    def along(
        self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray, direction: np.ndarray
    ) -> np.ndarray:
        """float64[n]: lower bound of the distance of two shapes by their extents along unit
        directions [m]. The direction of a pair with a plane is the plane's own normal."""
        is_plane = self.type[rows] == ShapeType.PLANE
        height0 = np.where(is_plane[:, 0], 0.0, self.height(rows[:, 0], pose0, direction))
        height1 = np.where(is_plane[:, 1], 0.0, self.height(rows[:, 1], pose1, -direction))
        offset = dot(direction, pose1[:, :3] - pose0[:, :3])
        return offset - height0 - height1 - self.rounding(rows, pose0, pose1)

    def with_exits(
        self,
        pairs: PairSteps,
        poses: tuple[np.ndarray, np.ndarray],
        separation: np.ndarray,
        direction: np.ndarray,
    ) -> np.ndarray:
        """float64[n]: lower bounds of signed distances that change at most by `PairSteps.speed`
        over the step [m].

        separation: along `direction`. Shapes that overlap do not leave a one-sided mesh by its
        back, nor a heightfield by its base while their middle is above it: their distance jumps,
        and is bounded without that exit.
        """
        if not self.has_closed_exits:
            return separation
        is_field = self.type[pairs.rows] == ShapeType.HEIGHTFIELD
        has_plane = (self.type[pairs.rows] == ShapeType.PLANE).any(axis=1)
        whole = np.where(
            self.is_one_sided[pairs.rows].any(axis=1),
            -2.0 * self.radius[pairs.rows].sum(axis=1),
            np.inf,
        )
        result = np.where(has_plane, separation, np.minimum(separation, whole))
        for field, other, sign in ((0, 1, 1.0), (1, 0, -1.0)):
            of = np.flatnonzero(is_field[:, field] & ~is_field[:, other] & ~has_plane)
            taken = pairs.take(of)
            at = (poses[0][of], poses[1][of])
            radius = self.radius[pairs.rows[of, other]]
            up = rotated(at[field][:, 3:], np.array([0.0, 0.0, sign]))
            half = self.half[pairs.rows[of, field], 2]
            lowest = sign * dot(up, at[other][:, :3] - at[field][:, :3]) + half - radius
            stays = (lowest > taken.speed) & (norm((taken.of0, taken.of1)[field].turn) == 0.0)
            along = np.where(
                dot(direction[of], up) >= 0.0, separation[of], self.along(taken.rows, *at, up)
            )
            result[of] = np.where(stays, along, -2.0 * (half + radius))
        return result

    def rounding(self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray) -> np.ndarray:
        """float64[n]: bound of the rounding of poses and heights [m]."""
        size = np.where(np.isfinite(self.radius), self.radius, 0.0)[rows].sum(axis=1)
        return ROUNDING * (
            size + np.abs(pose0[:, :3]).sum(axis=1) + np.abs(pose1[:, :3]).sum(axis=1)
        )


def rotated_inverse(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[..., 3]: vectors rotated by the inverses of unit quaternions."""
    return rotated(np.concatenate([-q[..., :3], q[..., 3:]], axis=-1), v)


def _extreme(points: np.ndarray) -> np.ndarray:
    """The vertices of the convex hull of points; all points where Qhull finds no hull."""
    if len(points) <= HULL_VERTICES:
        return points
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[np.sort(ConvexHull(points).vertices)]
    except QhullError:
        return points


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


def turning_radius(supports: Supports, row: np.ndarray, steps: ShapeSteps) -> np.ndarray:
    """float64[n]: largest distance of a point of each shape from the axis of its rotation, at any
    time of its step [m].

    Of a sphere that of its centre, since a rotation about it changes nothing. 0 without rotation;
    infinite for a plane that rotates.
    """
    axis, angle = axis_and_angle(steps.turn)
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
    about_center = np.where(
        supports.is_ball[row], 0.0, np.where(np.isnan(about_center), np.inf, about_center)
    )
    return np.where(angle > 0.0, (norm(cross(steps.arm, axis)) + about_center) * (1.0 + 1e-12), 0.0)


# Bounds of the speed at which the distance of two shapes decreases: the largest decrease over the
# whole step [m].

UPWARDS = 1.0 + 1e-12
"""Exceeds the rounding of a speed."""


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


def pair_steps(
    supports: Supports, rows: np.ndarray, of0: ShapeSteps, of1: ShapeSteps, margin: np.ndarray
) -> PairSteps:
    """Pairs of shapes in steps, with their bounds.

    The speed of any point of one shape relative to any point of the other is the least of three
    bounds, of which each holds: that of both motions in world, and those of the motion of each
    shape relative to the other's body. In the frame of a body that turns by w, a point at r from
    the origin of the other, which turns by w', moves with (u' - w x u) + (w' - w) x r, where u,
    from one origin to the other, is linear in time: the length of the first part is largest at one
    end of the step.
    """
    radius0 = turning_radius(supports, rows[:, 0], of0)
    radius1 = turning_radius(supports, rows[:, 1], of1)
    ball = np.where(supports.is_ball, 0.0, supports.radius)
    reach0 = norm(of0.arm) + ball[rows[:, 0]]
    reach1 = norm(of1.arm) + ball[rows[:, 1]]
    far0 = norm(of0.arm) + supports.radius[rows[:, 0]]
    far1 = norm(of1.arm) + supports.radius[rows[:, 1]]
    speed = (
        norm(of1.shift - of0.shift)
        + _product(norm(of0.turn), radius0)
        + _product(norm(of1.turn), radius1)
    )
    for first, second, reach in ((of0, of1, reach1), (of1, of0, reach0)):
        speed = np.minimum(speed, _speed_in_frame(first, second, reach))
    return PairSteps(
        rows, of0, of1, radius0, radius1, reach0, reach1, far0, far1, speed * UPWARDS, margin
    )


def speed_along(pairs: PairSteps, normal: np.ndarray) -> np.ndarray:
    """float64[n]: bound of the decrease of the separation along a fixed direction, over the
    whole step [m]. normal: float64[n, 3], unit, from shape0 to shape1. A negative bound is an
    increase."""
    of0 = pairs.of0
    of1 = pairs.of1
    along = dot(normal, of0.shift - of1.shift)
    along += _product(norm(cross(normal, of0.turn)), pairs.radius0)
    along += _product(norm(cross(normal, of1.turn)), pairs.radius1)
    size = norm(of0.shift) + norm(of1.shift)
    return along + (UPWARDS - 1.0) * (np.abs(along) + size)


def pair_frames(
    pairs: PairSteps, normal: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The frame of each pair, world or that of one of its bodies, with the least curvature; in
    world that along `normal`, float64[n, 3], unit.

    Returns its rotation vector over the step [rad]; a bound of the time derivative of q - p in the
    frame, for any points p and q of both shapes; and bounds of the second one along the direction,
    and along any [m].

    In world the acceleration of a point at r from the axis of a rotation w is w x (w x r). In the
    frame of a body, p is at rest, and with the vector u from its origin to the other's, u' its
    constant velocity, and e = w' - w, that of q is -w x (2 u' - w x u) + e x (e x r) + (e x w) x r:
    the first part is linear in time, so that its length is largest at one end.
    """
    of0 = pairs.of0
    of1 = pairs.of1
    turning = _product(norm(of0.turn), pairs.radius0) + _product(norm(of1.turn), pairs.radius1)
    turns = [np.zeros_like(normal), of0.turn, of1.turn]
    speeds = [norm(of1.shift - of0.shift) + turning]
    along = np.zeros(len(pairs))
    every = np.zeros(len(pairs))
    for motion, radius in ((of0, pairs.radius0), (of1, pairs.radius1)):
        along = along + _product(norm(cross(normal, motion.turn)) * norm(motion.turn), radius)
        every = every + _product(dot(motion.turn, motion.turn), radius)
    curvatures = [np.where(np.isinf(every), np.inf, along)]
    for first, second, reach in ((of0, of1, pairs.reach1), (of1, of0, pairs.reach0)):
        shift = second.shift - first.shift
        between = second.origin - first.origin
        difference = second.turn - first.turn
        ends = (
            cross(first.turn, 2.0 * shift - cross(first.turn, at))
            for at in (between, between + shift)
        )
        relative = dot(difference, difference) + norm(cross(difference, first.turn))
        curvatures.append(np.maximum(*map(norm, ends)) + _product(relative, reach))
        speeds.append(_speed_in_frame(first, second, reach))
    chosen = np.argmin(np.stack(curvatures), axis=0)
    rows = np.arange(len(pairs))
    turn, speed, curvature = (
        np.stack(arrays)[chosen, rows] for arrays in (turns, speeds, curvatures)
    )
    return (
        turn,
        speed * UPWARDS,
        curvature * UPWARDS,
        np.where(chosen == 0, every, curvature) * UPWARDS,
    )


def _speed_in_frame(first: ShapeSteps, second: ShapeSteps, reach: np.ndarray) -> np.ndarray:
    """Speed of the points of the other shape in the frame of the body `first`."""
    shift = second.shift - first.shift
    between = second.origin - first.origin
    ends = (norm(shift - cross(first.turn, at)) for at in (between, between + shift))
    return np.maximum(*ends) + _product(norm(second.turn - first.turn), reach)


def _product(angle: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The product, 0 for an angle of 0 whatever the radius."""
    with np.errstate(invalid="ignore"):
        return np.where(angle > 0.0, angle * radius, 0.0)


# Conservative advancement: the first time at which two moving shapes touch, with certified lower
# bounds.
#
# docs/adr/0111 states the bounds, of which the longest advance is taken. Those along a direction n
# hold for shapes that are not convex as well, but only for the separation along n, never for the
# distance: such shapes may touch beside n.
#
# Source: Mirtich 1996; Zhang, Lee, Kim 2006 (directional bounds); Catto 2013 (separation along a
# fixed axis).

CLEAR, TOUCH, UNDECIDED = range(3)
ROUNDS = 400
"""Largest number of distances of a pair in a step, after which it is undecided."""
ROUNDS_TO_TOUCH = 10_000
"""As ROUNDS, for the ends of the touch of a pair that touches for certain: twice those with which
every such pair of a campaign was decided (docs/adr/0111)."""
TRIALS = 12
"""Largest number of times at which the separation along one direction is computed."""
LARGEST_TURN = 0.05
"""Of a direction between two distances [rad]."""
SHORTENED = 1.0 - 1e-9
"""Factor of an advance, which exceeds its rounding."""
LEAST_ADVANCE = 1e-13
"""Of a step: shorter advances are lost in the rounding of the time."""


@dataclass(frozen=True)
class Advance(Rows):
    """Result of an advancement, a row each pair. status: CLEAR, TOUCH or UNDECIDED. time:
    float64[n], of the touch; no touch is before it; 1 of a clear pair. The others are those of the
    last query: distance less both margins, a lower bound of it (`Sweeper.lower_bound`), normal and
    witness points.
    """

    status: np.ndarray
    time: np.ndarray
    distance: np.ndarray
    lower: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray


@dataclass(frozen=True)
class Query:
    """Pairs of shapes at times of their steps, a row each. found: distances of the shapes without
    margins. distance: those less both margins, and `error` of them [m]. separation: along
    `direction` by support heights, less both margins [m]; exits: that of `Supports.with_exits`.
    rounding: of the poses [m].
    """

    found: PairDistanceRows
    distance: np.ndarray
    error: np.ndarray
    separation: np.ndarray
    exits: np.ndarray
    direction: np.ndarray
    rounding: np.ndarray


@dataclass(frozen=True)
class Sweeper:
    """Queries of pairs of shapes within their steps. tolerance: a pair touches at this distance or
    less [m]."""

    distances: PairDistances
    supports: Supports
    tolerance: float

    def query(
        self, pairs: PairSteps, time: np.ndarray, expected: np.ndarray | None = None
    ) -> Query:
        """The distances of pairs, each at a time of its step.

        expected: float64[n, 3], other directions along which the shapes may be separated more, of
        any lengths. The normal of two shapes that nearly touch is known to the rounding of their
        points over their distance only.
        """
        pose0 = pairs.of0.at(time)
        pose1 = pairs.of1.at(time)
        measured = self.distances.measure(pairs.rows, np.stack([pose0, pose1], axis=1))
        separation, direction = self.supports.separation(pairs.rows, pose0, pose1, measured.normal)
        if expected is not None:
            other, along = self.supports.separation(pairs.rows, pose0, pose1, expected)
            is_more = other > separation
            separation = np.where(is_more, other, separation)
            direction = np.where(is_more[:, None], along, direction)
        rounding = self.supports.rounding(pairs.rows, pose0, pose1)
        error = np.minimum(
            measured.error, np.maximum(measured.distance - separation, 0.0) + rounding
        )
        error = np.where(np.isfinite(measured.error), error, np.inf)
        exits = (
            self.supports.with_exits(pairs, (pose0, pose1), separation, direction) - pairs.margin
        )
        distance = measured.distance - pairs.margin
        separation = separation - pairs.margin
        return Query(measured, distance, error, separation, exits, direction, rounding)

    def lower_bound(self, pairs: PairSteps, query: Query) -> np.ndarray:
        """float64[n]: lower bound of the signed distance of each pair, whose depth is the least
        translation [m].

        The separation along a direction is one for all shapes: a translation along it separates
        even their hulls. The certified distance is another for convex shapes, whose signed distance
        has no jumps.
        """
        certified = query.distance - query.error - query.rounding
        are_convex = self.supports.is_convex[pairs.rows].all(axis=1)
        return np.where(are_convex, np.maximum(query.separation, certified), query.exits)

    def advance(self, pairs: PairSteps, rounds: int = ROUNDS) -> Advance:
        """The first touch of each pair in its step. rounds: largest number of distances of a
        pair."""
        count = len(pairs)
        scalars = np.zeros((4, count))
        vectors = np.zeros((5, count, 3))
        result = Advance(np.full(count, UNDECIDED, np.uint8), *scalars[:3], *vectors[:3])
        elapsed, before, expected = scalars[3], *vectors[3:]
        active = np.arange(count)
        for _ in range(rounds):
            if not len(active):
                break
            active_pairs = pairs.take(active)
            query = self.query(active_pairs, result.time[active], expected[active])
            for name in ("normal", "point0", "point1"):
                getattr(result, name)[active] = getattr(query.found, name)
            result.distance[active], result.lower[active] = (
                query.distance,
                self.lower_bound(active_pairs, query),
            )
            touches = touching(query, self.tolerance)
            lower = np.maximum(query.separation, query.distance - query.error - query.rounding)
            goal = 0.5 * self.tolerance
            step = np.maximum(
                _advance(query.separation - goal, speed_along(active_pairs, query.direction)),
                _advance(lower - goal, active_pairs.speed),
            )
            moving = MovingDirection.of(
                active_pairs, query.direction, before[active], elapsed[active]
            )
            step = self._along_direction(active_pairs, query, result.time[active], step, moving)
            before[active] = query.direction
            elapsed[active] = SHORTENED * step
            expected[active] = moving.after(
                query.direction, np.arange(len(active)), np.minimum(elapsed[active], 1.0)
            )
            time = result.time[active] + SHORTENED * step
            clear = ~touches & (time >= 1.0)
            result.status[active[touches]] = TOUCH
            result.status[active[clear]] = CLEAR
            going = ~touches & ~clear & (step > LEAST_ADVANCE)
            result.time[active[clear]] = 1.0
            result.time[active[going]] = time[going]
            active = active[going]
        return result

    def _along_direction(
        self,
        pairs: PairSteps,
        query: Query,
        begin: np.ndarray,
        known: np.ndarray,
        moving: MovingDirection,
    ) -> np.ndarray:
        """float64[n]: parts of the steps from `begin` on without touch, at least `known`.

        A trial is a later time: between `begin` and it, the separation along the direction is at
        least `least_between` of both ends. Trials are between the longest part that is known to be
        without touch and the shortest that is not, in turn where a line between both separations is
        at the goal and in the middle.
        """
        goal = 0.5 * self.tolerance
        whole = 1.0 - begin
        first = query.separation
        done = np.zeros(len(pairs))
        failed = whole.copy()
        at_done = first.copy()
        at_failed = np.full(len(pairs), np.nan)
        active = np.flatnonzero((known < whole) & (first > goal) & np.isfinite(moving.curvature))
        for trial in range(TRIALS):
            if not len(active):
                break
            low = done[active]
            high = failed[active]
            with np.errstate(invalid="ignore", divide="ignore"):
                part = (at_done[active] - 1.5 * goal) / (at_done[active] - at_failed[active])
            part = np.where((part > 0.0) & (part < 1.0) & (trial % 3 > 0), part, 0.5)
            length = high if trial == 0 else low + part * (high - low)
            active_pairs = pairs.take(active)
            time = begin[active] + length
            direction = moving.after(query.direction, active, length)
            value = (
                self.supports.along(
                    active_pairs.rows,
                    active_pairs.of0.at(time),
                    active_pairs.of1.at(time),
                    direction,
                )
                - active_pairs.margin
            )
            fits = (
                least_between(first[active], value, moving.curvature[active] * length * length)
                > goal
            )
            done[active[fits]] = length[fits]
            at_done[active[fits]] = value[fits]
            failed[active[~fits]] = length[~fits]
            at_failed[active[~fits]] = value[~fits]
            near = fits & ((value < self.tolerance) | (length >= high))
            active = active[~near & (failed[active] - done[active] > LEAST_ADVANCE)]
        return np.maximum(done, known)


@dataclass(frozen=True)
class MovingDirection:
    """A direction of each pair that moves with time: with a frame that turns by `turn`, float64[n,
    3] [rad], over the step, and in that frame by `own`. curvature: float64[n], bound of the second
    time derivative of n.(q - p) for any points p and q of both shapes [m].
    """

    turn: np.ndarray
    own: np.ndarray
    curvature: np.ndarray

    @classmethod
    def of(
        cls, pairs: PairSteps, direction: np.ndarray, before: np.ndarray, elapsed: np.ndarray
    ) -> MovingDirection:
        """The direction that goes on as it moved from `before`, float64[n, 3], in the last part
        `elapsed` of the step.

        With n' = s x n, of size s at most, n.(q - p) has the second derivative n''.(q - p) + 2
        n'.(q - p)' + n.(q - p)''. Directions that moved by more than LARGEST_TURN rest in the
        frame, as do those of planes.
        """
        turn, speed, along, every = pair_frames(pairs, direction)
        last = rotated(rotations(turn, elapsed), before)
        axis = cross(last, direction)
        with np.errstate(invalid="ignore", divide="ignore"):
            rotation = axis / elapsed[:, None]
        between = pairs.of1.origin - pairs.of0.origin
        ends = norm(between), norm(between + pairs.of1.shift - pairs.of0.shift)
        far = (
            np.maximum(*ends) + pairs.far0 + pairs.far1
        )  # of any point of one shape and any of the other
        follows = (
            (elapsed > 0.0)
            & (norm(axis) < LARGEST_TURN)
            & (dot(last, direction) > 0.0)
            & np.isfinite(far)
        )
        rotation = np.where(follows[:, None], rotation, 0.0)
        rate = norm(rotation)
        with np.errstate(invalid="ignore"):
            moving = every + rate * (2.0 * speed + rate * far)
        return cls(turn, rotation, np.where(rate > 0.0, moving, along))

    def after(self, direction: np.ndarray, rows: np.ndarray, time: np.ndarray) -> np.ndarray:
        """float64[n, 3]: the directions of some rows a part `time` of the step later."""
        return rotated(
            rotations(self.turn[rows], time),
            rotated(rotations(self.own[rows], time), direction[rows]),
        )


def least_between(first: np.ndarray, last: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """float64[n]: lower bound in [0, 1] of functions with values `first` at 0 and `last` at 1.

    curvature: bound of the second derivatives. With c it the function is at least first + (last -
    first) t - c t (1 - t) / 2, of which this is the minimum.
    """
    half = 0.5 * curvature
    fall = first - last
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = 0.5 * (first + last) - 0.25 * half - 0.25 * fall * fall / half
    return np.where(np.abs(fall) >= half, np.minimum(first, last), inside)


def touching(query: Query, tolerance: float) -> np.ndarray:
    """bool[n]: whether pairs touch for certain. A pair whose distance is not above its rounding
    touches, whether or not its depth is certified."""
    return (query.distance + query.error <= tolerance) | (query.distance <= query.rounding)


def _advance(distance: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """float64[n]: part of a step for which a positive distance stays positive; 0 of others."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        time = np.where(speed > 0.0, distance / speed, np.inf)
    return np.where(distance > 0.0, time, 0.0)


# Least distance of pairs over a part of their steps, with a certified lower bound.
#
# Source: Piyavskii 1972; Shubert 1972.

QUERIES = 16
"""Largest number of distances of a pair between the ends of its touch."""


def least_distance(
    sweeper: Sweeper,
    pairs: PairSteps,
    begin: np.ndarray,
    end: np.ndarray,
    known: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least distance of each pair, less both margins, that is found from `begin` to `end`,
    float64[n] in [0, 1]; a lower bound of all [m]; and bool[n], whether there is a touch for
    certain at a time between.

    known: distances less margins at the begin and at the end, and their lower bounds, float64[n]
    each.
    """
    count = len(pairs)
    width = QUERIES + 1
    left = np.zeros((count, width))
    right = np.zeros((count, width))
    at_left = np.full((count, width), np.inf)
    at_right = np.full((count, width), np.inf)
    left[:, 0] = begin
    right[:, 0] = end
    at_left[:, 0] = known[2]
    at_right[:, 0] = known[3]
    least = np.minimum(known[0], known[1])
    touches = np.zeros(count, bool)

    def bounds(rows: np.ndarray) -> np.ndarray:
        sides = (
            at_left[rows] + at_right[rows] - pairs.speed[rows, None] * (right[rows] - left[rows])
        )
        return np.minimum(0.5 * sides, np.minimum(at_left[rows], at_right[rows]))

    active = np.arange(count)
    for used in range(1, width):
        bound = bounds(active)
        lowest = np.argmin(bound, axis=1)
        is_open = bound[np.arange(len(active)), lowest] < least[active] - sweeper.tolerance
        is_open &= (right[active, lowest] > left[active, lowest]) & (pairs.speed[active] > 0.0)
        active = active[is_open]
        lowest = lowest[is_open]
        if not len(active):
            break
        low = left[active, lowest]
        high = right[active, lowest]
        of_low = at_left[active, lowest]
        of_high = at_right[active, lowest]
        time = 0.5 * (low + high) + 0.5 * (of_low - of_high) / pairs.speed[active]
        time = np.minimum(np.maximum(time, low), high)
        active_pairs = pairs.take(active)
        query = sweeper.query(active_pairs, time)
        lower = sweeper.lower_bound(active_pairs, query)
        least[active] = np.minimum(least[active], query.distance)
        touches[active] |= touching(query, sweeper.tolerance)
        left[active, used] = time
        right[active, used] = high
        at_left[active, used] = lower
        at_right[active, used] = of_high
        right[active, lowest] = time
        at_right[active, lowest] = lower
    return least, np.minimum(bounds(np.arange(count)).min(axis=1, initial=np.inf), least), touches
