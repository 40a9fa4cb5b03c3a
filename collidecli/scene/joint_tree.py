"""A tree of joints as arrays, and the compiled forward kinematics of this process.

A verb that collides nothing does not import Warp: `use` sets the compiled code in the process of
one that does.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class JointTree:
    """Bodies, parents first, the world as body 0; and their joints.

    body_kind: FIXED, FREE or JOINTED. body_first, body_count: joints of a JOINTED body; body_first
    of a FREE one is its first coordinate. body_pose: float64[B, 7], position and quaternion wxyz,
    in the world of a FIXED body, in the parent's frame of a JOINTED one. joint_kind: SLIDE, BALL or
    HINGE. joint_address: first coordinate. joint_numbers: float64[J, 7], axis, anchor, and the
    coordinate at which the joint does not move its body.
    """

    body_kind: list[int]
    body_parent: list[int]
    body_first: list[int]
    body_count: list[int]
    body_pose: np.ndarray
    joint_kind: list[int]
    joint_address: list[int]
    joint_numbers: np.ndarray


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
