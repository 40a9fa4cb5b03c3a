"""Bounds of the speed at which the distance of two shapes decreases: the largest decrease over the
whole step [m]."""

from __future__ import annotations

import numpy as np

from collidecli.engine.sweep.motion import PairSteps, ShapeSteps, axis_and_angle, rotated_inverse
from collidecli.engine.sweep.supports import Supports
from collidecli.numerics.products import cross, dot, norm


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


UPWARDS = 1.0 + 1e-12
"""Exceeds the rounding of a speed."""


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
