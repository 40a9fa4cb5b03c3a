"""Motion of particles and triangles in the frames of shapes, with bounds of their speed: arguments
of the kernels.

With the vector u from the body's origin to a particle, which is linear in time, and the rotation
vector w, the particle moves in the frame of the body with u' - w x u, whose derivative in that
frame is -2 w x u' + w x (w x u): both are linear in time, so that their lengths are largest at one
end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.runtime.warp_internals import struct_rows
from collidecli.engine.sweep.motion import ShapeSteps, axis_and_angle
from collidecli.engine.sweep.speed_bounds import UPWARDS
from collidecli.engine.sweep.supports import ROUNDING, Supports
from collidecli.numerics.products import cross, norm


@dataclass(frozen=True)
class PointMotion:
    """Particles relative to bodies in steps. between, shift: float64[n, 3], see `PointStep` [m].
    speed, curvature: float64[n], bounds [m]. size: float64[n], sum of the coordinates that their
    rounding is a fraction of [m].
    """

    between: np.ndarray
    shift: np.ndarray
    speed: np.ndarray
    curvature: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, motion: ShapeSteps, begin: np.ndarray, end: np.ndarray) -> PointMotion:
        """Particles at float64[n, 3] at the begin and the end of steps, and the motions of
        shapes."""
        between = begin - motion.origin
        shift = (end - begin) - motion.shift
        ends = between, between + shift
        speeds = [norm(shift - cross(motion.turn, at)) for at in ends]
        curvatures = [norm(cross(motion.turn, cross(motion.turn, at) - 2.0 * shift)) for at in ends]
        vectors = begin, end, motion.origin, motion.shift, motion.arm
        size = sum((np.abs(vector).sum(axis=1) for vector in vectors), np.zeros(len(begin)))
        return cls(
            between, shift, UPWARDS * np.maximum(*speeds), UPWARDS * np.maximum(*curvatures), size
        )


def step_rows(
    kind: type, supports: Supports, shape: np.ndarray, motion: ShapeSteps, size: np.ndarray
) -> np.ndarray:
    """Rows of a struct of steps with the fields of the shape's motion. size: see `PointMotion`,
    with the radius [m]."""
    steps = struct_rows(kind, len(shape))
    steps["axis"], steps["angle"] = axis_and_angle(motion.turn)
    steps["row"] = shape
    steps["type"] = supports.type[shape]
    steps["size"] = supports.size[shape, :3]
    steps["arm"] = motion.arm
    steps["quat"] = motion.quat
    steps["rounding"] = ROUNDING * (
        np.where(np.isfinite(supports.radius), supports.radius, 0.0)[shape] + size
    )
    return steps
