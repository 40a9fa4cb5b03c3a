"""A tree of joints as arrays, and the compiled forward kinematics of this process.

A verb that collides nothing does not import Warp: `use` sets the compiled code in the process of
one that does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

FIXED, FREE, JOINTED = range(3)
"""Bodies that no coordinate moves, whose pose is in the coordinates, and whose pose follows from
their parent's."""
SLIDE, BALL, HINGE = range(3)
"""Joints of a JOINTED body."""
SHORTEST = 1e-15
"""Norm of a quaternion below which MuJoCo uses the identity."""
UNIT = 1e-15
"""Deviation of a norm from 1 above which MuJoCo divides by it."""


(
    FROM_FRAME,
    FROM_BODY,
    FROM_COORDINATES,
    BY_FRAME,
    BY_BODY,
    AT_REST,
    SHIFT,
    TURN,
    ROTATION,
    BY_MOTION,
    BY_INVERSE,
    STORE,
) = range(12)
"""Steps with one pose and the motion of one joint, xyzw. The pose becomes a frame, that of a body,
or one in the coordinates; it is multiplied by a frame, or by the pose of a body. The motion becomes
the identity, is shifted along an axis by a coordinate, turned about an axis by an angle, or gets
the rotation of four coordinates. The pose is multiplied by the motion or its inverse, and is stored
as that of a body."""
STEP_NUMBERS = 5
"""Numbers of a step: its kind, and up to four of: a frame, body, axis or address of a
coordinate."""


class PoseSteps:
    """Steps that write poses of bodies, by the arithmetic of `numerics.pose_columns`.

    numbers: STEP_NUMBERS of each. frames: float64[7] each, xyzw. Bodies are counted without the
    world.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.frames: list[np.ndarray] = []

    def add(self, kind: int, *numbers: int) -> None:
        """Appends a step."""
        self.numbers += [kind, *numbers, *([0] * (STEP_NUMBERS - 1 - len(numbers)))]

    def add_frame(self, kind: int, frame: np.ndarray) -> None:
        """Appends a step with a frame."""
        self.add(kind, len(self.frames))
        self.frames.append(np.asarray(frame, np.float64).reshape(7))


@dataclass(frozen=True)
class JointTree:
    """Bodies, parents first, the world as body 0; and their joints.

    body_kind: FIXED, FREE or JOINTED. body_first, body_count: joints of a JOINTED body; body_first
    of a FREE one is its first coordinate. body_pose: float64[B, 7], position and quaternion wxyz,
    in the world of a FIXED body, in the parent's frame of a JOINTED one. joint_kind: SLIDE, BALL or
    HINGE. joint_address: first coordinate. joint_numbers: float64[J, 7], axis, anchor, and the
    coordinate at which the joint does not move its body. steps: what follows the poses of all
    bodies; for a device alone.
    """

    body_kind: list[int]
    body_parent: list[int]
    body_first: list[int]
    body_count: list[int]
    body_pose: np.ndarray
    joint_kind: list[int]
    joint_address: list[int]
    joint_numbers: np.ndarray
    steps: PoseSteps = field(default_factory=PoseSteps)


class CompiledTree(Protocol):
    """Forward kinematics of one tree."""

    def poses(self, coordinates: np.ndarray) -> np.ndarray | None:
        """float64[n, B - 1, 7], xyzw, of contiguous coordinates float64[n, k]; None if NumPy must
        compute them."""
        ...


class TreeCompiler(Protocol):
    """Compiled code for any tree."""

    def is_ready(self) -> bool:
        """Whether the code can be used without waiting."""
        ...

    def compiled(self, tree: JointTree) -> CompiledTree: ...


_compiler: TreeCompiler | None = None


def use(compiler: TreeCompiler | None) -> None:
    """Sets the compiled code of this process; None is NumPy."""
    global _compiler
    _compiler = compiler


def ready_compiler() -> TreeCompiler | None:
    """The compiled code of this process if it can be used without waiting, else None."""
    return _compiler if _compiler is not None and _compiler.is_ready() else None
