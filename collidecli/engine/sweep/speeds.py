"""Bounds of the speed at which the distance of two shapes decreases within a step.

Time is in [0, 1] over the step, so that a speed is the largest decrease over the whole step [m].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collidecli.engine.sweep.steps import ShapeSteps, turning_radius
from collidecli.engine.sweep.supports import Supports
from collidecli.numerics.matrices import cross, dot, norm

UPWARDS = 1.0 + 1e-12
"""Exceeds the rounding of a speed."""


@dataclass(frozen=True)
class PairSteps:
    """Pairs of shapes in steps, a row each. rows: int32[n, 2], shape0 < shape1. of0, of1: the motions of both shapes.

    radius0, radius1: float64[n], see `turning_radius` [m]. reach0, reach1: float64[n], largest distance of a point of
    each shape from its body's origin; of a sphere that of its centre. far0, far1: float64[n], of a sphere too that of
    its surface [m]. speed: float64[n], `largest_speed` [m]. margin: float64[n], sum of both margins [m].
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

    def take(self, rows: np.ndarray) -> PairSteps:
        return PairSteps(
            self.rows[rows], self.of0.take(rows), self.of1.take(rows), self.radius0[rows], self.radius1[rows],
            self.reach0[rows], self.reach1[rows], self.far0[rows], self.far1[rows], self.speed[rows],
            self.margin[rows],
        )  # fmt: skip

    def reversed(self) -> PairSteps:
        """The steps backwards in time; the bounds of speeds are those of the steps."""
        both = self.of0.reversed(), self.of1.reversed()
        return replace(self, of0=both[0], of1=both[1])


def pair_steps(supports: Supports, rows: np.ndarray, of0: ShapeSteps, of1: ShapeSteps, margin: np.ndarray) -> PairSteps:
    """Pairs of shapes in steps, with their bounds."""
    radius0, radius1 = turning_radius(supports, rows[:, 0], of0), turning_radius(supports, rows[:, 1], of1)
    ball = np.where(supports.is_ball, 0.0, supports.radius)
    reach0, reach1 = norm(of0.arm) + ball[rows[:, 0]], norm(of1.arm) + ball[rows[:, 1]]
    far0, far1 = norm(of0.arm) + supports.radius[rows[:, 0]], norm(of1.arm) + supports.radius[rows[:, 1]]
    speed = largest_speed(of0, of1, (radius0, radius1), (reach0, reach1))
    return PairSteps(rows, of0, of1, radius0, radius1, reach0, reach1, far0, far1, speed, margin)


def largest_speed(
    of0: ShapeSteps, of1: ShapeSteps, radius: tuple[np.ndarray, np.ndarray], reach: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """float64[n]: bound of the speed of any point of one shape relative to any point of the other [m].

    The least of three bounds, of which each holds: that of both motions in world, and those of the motion of each
    shape relative to the other's body. In the frame of a body that turns by w, a point at r from the origin of the
    other, which turns by w', moves with (u' - w x u) + (w' - w) x r, where u, from one origin to the other, is linear
    in time: the length of the first part is largest at one end of the step. radius, reach: see `PairSteps`.
    """
    found = norm(of1.shift - of0.shift) + _product(norm(of0.turn), radius[0]) + _product(norm(of1.turn), radius[1])
    for one, other, far in ((of0, of1, reach[1]), (of1, of0, reach[0])):
        found = np.minimum(found, _speed_in_frame(one, other, far))
    return found * UPWARDS


def speed_along(pairs: PairSteps, normal: np.ndarray) -> np.ndarray:
    """float64[n]: bound of the decrease of the separation along a fixed direction, over the whole step [m].

    normal: float64[n, 3], unit, from shape0 to shape1. A negative bound is an increase.
    """
    of0, of1 = pairs.of0, pairs.of1
    along = dot(normal, of0.shift - of1.shift)
    along += _product(norm(cross(normal, of0.turn)), pairs.radius0)
    along += _product(norm(cross(normal, of1.turn)), pairs.radius1)
    size = norm(of0.shift) + norm(of1.shift)
    return along + (UPWARDS - 1.0) * (np.abs(along) + size)


@dataclass(frozen=True)
class PairFrames:
    """A frame of each pair: the world, or that of one of its bodies. turn: its rotation vector over the step [rad].

    speed: bound of the time derivative of q - p in the frame, for any points p and q of both shapes [m]. along, any:
    bounds of the second one, along the direction of the choice and along any [m]. Infinite without a bound.
    """

    turn: np.ndarray
    speed: np.ndarray
    along: np.ndarray
    any: np.ndarray


def pair_frames(pairs: PairSteps, normal: np.ndarray) -> PairFrames:
    """The frame of each pair with the least curvature; in world that along `normal`, float64[n, 3], unit.

    In world the acceleration of a point at r from the axis of a rotation w is w x (w x r). In the frame of a body, p is
    at rest, and with the vector u from its origin to the other's, u' its constant velocity, and e = w' - w, that of q
    is -w x (2 u' - w x u) + e x (e x r) + (e x w) x r: the first part is linear in time, so that its length is largest
    at one end.
    """
    of0, of1 = pairs.of0, pairs.of1
    turns, speeds, curvatures = [np.zeros_like(normal), of0.turn, of1.turn], [_world_speed(pairs)], []
    along, every = np.zeros(len(pairs)), np.zeros(len(pairs))
    for motion, radius in ((of0, pairs.radius0), (of1, pairs.radius1)):
        along = along + _product(norm(cross(normal, motion.turn)) * norm(motion.turn), radius)
        every = every + _product(dot(motion.turn, motion.turn), radius)
    curvatures.append(np.where(np.isinf(every), np.inf, along))
    for one, other, reach in ((of0, of1, pairs.reach1), (of1, of0, pairs.reach0)):
        shift, between, difference = other.shift - one.shift, other.origin - one.origin, other.turn - one.turn
        ends = (cross(one.turn, 2.0 * shift - cross(one.turn, at)) for at in (between, between + shift))
        relative = dot(difference, difference) + norm(cross(difference, one.turn))
        curvatures.append(np.maximum(*map(norm, ends)) + _product(relative, reach))
        speeds.append(_speed_in_frame(one, other, reach))
    chosen, rows = np.argmin(np.stack(curvatures), axis=0), np.arange(len(pairs))
    turn, speed, curvature = (np.stack(each)[chosen, rows] for each in (turns, speeds, curvatures))
    every = np.where(chosen == 0, every, curvature)
    return PairFrames(turn, speed * UPWARDS, curvature * UPWARDS, every * UPWARDS)


def farthest_points(pairs: PairSteps) -> np.ndarray:
    """float64[n]: bound of the distance of any point of one shape and any of the other over the step [m]."""
    between = pairs.of1.origin - pairs.of0.origin
    ends = norm(between), norm(between + pairs.of1.shift - pairs.of0.shift)
    return np.maximum(*ends) + pairs.far0 + pairs.far1


def _world_speed(pairs: PairSteps) -> np.ndarray:
    turning = _product(norm(pairs.of0.turn), pairs.radius0) + _product(norm(pairs.of1.turn), pairs.radius1)
    return norm(pairs.of1.shift - pairs.of0.shift) + turning


def _speed_in_frame(one: ShapeSteps, other: ShapeSteps, reach: np.ndarray) -> np.ndarray:
    """Speed of the points of the other shape in the frame of the body `one`."""
    shift, between = other.shift - one.shift, other.origin - one.origin
    ends = (norm(shift - cross(one.turn, at)) for at in (between, between + shift))
    return np.maximum(*ends) + _product(norm(other.turn - one.turn), reach)


def _product(angle: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The product, 0 for an angle of 0 whatever the radius."""
    with np.errstate(invalid="ignore"):
        return np.where(angle > 0.0, angle * radius, 0.0)
