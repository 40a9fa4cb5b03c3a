"""Motion of particles and triangles in the frames of shapes, with bounds of their speed: arguments of the kernels.

With the vector u from the body's origin to a particle, which is linear in time, and the rotation vector w, the particle
moves in the frame of the body with u' - w x u, whose derivative in that frame is -2 w x u' + w x (w x u): both are
linear in time, so that their lengths are largest at one end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.particles.swept_elements import ElementStep
from collidecli.engine.particles.swept_points import PointStep
from collidecli.engine.sweep.speeds import UPWARDS
from collidecli.engine.sweep.steps import ShapeSteps
from collidecli.engine.sweep.supports import ROUNDING, Supports
from collidecli.numerics.matrices import cross, norm


@dataclass(frozen=True)
class PointMotion:
    """Particles relative to bodies in steps. between, shift: float64[n, 3], see `PointStep` [m]. speed, curvature:
    float64[n], bounds [m]. size: float64[n], sum of the coordinates that their rounding is a fraction of [m].
    """

    between: np.ndarray
    shift: np.ndarray
    speed: np.ndarray
    curvature: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, motion: ShapeSteps, begin: np.ndarray, end: np.ndarray) -> PointMotion:
        """Particles at float64[n, 3] at the begin and the end of steps, and the motions of shapes."""
        between, shift = begin - motion.origin, (end - begin) - motion.shift
        ends = between, between + shift
        speeds = [norm(shift - cross(motion.turn, at)) for at in ends]
        curvatures = [norm(cross(motion.turn, cross(motion.turn, at) - 2.0 * shift)) for at in ends]
        size = sum(np.abs(vector).sum(axis=1) for vector in (begin, end, motion.origin, motion.shift, motion.arm))
        return cls(between, shift, UPWARDS * np.maximum(*speeds), UPWARDS * np.maximum(*curvatures), size)


def point_steps(
    supports: Supports,
    shape: np.ndarray,
    radius: np.ndarray,
    margin: np.ndarray,
    moved: PointMotion,
    motion: ShapeSteps,
) -> np.ndarray:
    """PointStep[n]: particles relative to shapes. radius, margin: of particles and shapes, float64[n] [m]."""
    found = _steps(PointStep, supports, shape, motion, moved.size + radius)
    found["radius"], found["inflation"] = radius, radius + margin
    found["between"], found["shift"] = moved.between, moved.shift
    found["speed"], found["curvature"] = moved.speed, moved.curvature
    return found


def element_steps(
    supports: Supports, shape: np.ndarray, inflation: np.ndarray, moved: list[PointMotion], motion: ShapeSteps
) -> np.ndarray:
    """ElementStep[n]: elements relative to shapes. inflation: radii of their particles with the margins, float64[n, 3]
    [m]. moved: of each of the three particles."""
    size = np.maximum.reduce([each.size for each in moved]) + inflation.max(axis=1)
    found = _steps(ElementStep, supports, shape, motion, size)
    found["inflation"] = inflation
    for name in ("between", "shift"):
        found[name] = np.stack([getattr(each, name) for each in moved], axis=1)
    for name in ("speed", "curvature"):
        found[name] = np.maximum.reduce([getattr(each, name) for each in moved])
    return found


def _steps(kind: type, supports: Supports, shape: np.ndarray, motion: ShapeSteps, size: np.ndarray) -> np.ndarray:
    """Rows of a struct of steps with the fields of the shape's motion. size: see `PointMotion`, with the radius [m]."""
    found = np.zeros(len(shape), kind.numpy_dtype())  # pyright: ignore[reportAttributeAccessIssue]
    angle = norm(motion.turn)
    with np.errstate(invalid="ignore", divide="ignore"):
        found["axis"] = np.where(angle[:, None] > 0.0, motion.turn / angle[:, None], 0.0)
    found["row"], found["angle"], found["arm"], found["quat"] = shape, angle, motion.arm, motion.quat
    found["rounding"] = ROUNDING * (np.where(np.isfinite(supports.radius), supports.radius, 0.0)[shape] + size)
    return found
