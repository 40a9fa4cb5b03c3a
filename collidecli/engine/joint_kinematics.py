"""Forward kinematics of a tree of joints, several configurations at once, in C++ on the CPU.

The arithmetic, to the bit, is that of `importers.mujoco.kinematics.ForwardKinematics` and of
`numerics`, with LANES configurations in a vector. It does not have the exact reduction of angles
beyond MODERATE: NumPy computes configurations with such an angle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import begin_loading, is_found, is_loaded
from collidecli.engine.runtime.native_code import native
from collidecli.numerics.trigonometry import COSINE, HALF_PI_PARTS, MODERATE, SINE, TWO_OVER_PI
from collidecli.scene import joint_tree
from collidecli.scene.joint_tree import (
    BALL,
    FIXED,
    FREE,
    JOINTED,
    SHORTEST,
    SLIDE,
    UNIT,
    JointTree,
    use,
)
from collidecli.scene.motion import Motion, has_joint_tree
from collidecli.scene.pose_memory import empty_poses
from collidecli.scene.poses import QUATERNION_TOLERANCE
from collidecli.scene.shape_types import POSITION_LIMIT

LANES = 8
"""Configurations of a vector: two registers of AVX2, so that one square root does not wait for
another."""
MANY = 1000
"""Number of configurations from which loading the compiled code, some 4 ms, takes less time than
NumPy saves."""
UNPOSED = "unposed"
"""Name of the number of configurations of a device that need the host, in `ChunkCounts`; at least 1
if there are any."""
_NUMBERS = 7
"""Of a joint: axis, anchor, coordinate at which it does not move its body."""
_STATE = 16
"""Numbers of a body: position, quaternion wxyz, rotation matrix by rows."""

_TYPES = native(__file__, "vectors", LANES=LANES)
_ANGLES = {"MODERATE": MODERATE, "TWO_OVER_PI": TWO_OVER_PI, "HALF_PI_PARTS": HALF_PI_PARTS}
_SINCOS = native(__file__, "sincos", SINE=SINE, COSINE=COSINE, **_ANGLES)
_QUATERNIONS = native(__file__, "quaternions", UNIT=UNIT, SHORTEST=SHORTEST)
_MOVE = native(__file__, "move", _NUMBERS=_NUMBERS, SLIDE=SLIDE, BALL=BALL)
_BODIES = native(
    __file__, "bodies", _STATE=_STATE, FIXED=FIXED, LANES=LANES, FREE=FREE, JOINTED=JOINTED
)


_STEP_NAMES = (
    *("FROM_FRAME", "FROM_BODY", "FROM_COORDINATES", "BY_FRAME", "BY_BODY", "AT_REST", "SHIFT"),
    *("TURN", "ROTATION", "BY_MOTION", "BY_INVERSE", "STORE", "STEP_NUMBERS"),
)
ONE_TREE = "".join(
    (
        native(__file__, "numbers"),
        _SINCOS,
        _QUATERNIONS,
        _MOVE,
        native(__file__, "frames"),
        native(__file__, "configuration", FIXED=FIXED, FREE=FREE, JOINTED=JOINTED),
        native(
            __file__,
            "steps",
            **{name: getattr(joint_tree, name) for name in _STEP_NAMES},
        ),
        native(__file__, "checked", TOLERANCE=QUATERNION_TOLERANCE, LIMIT=POSITION_LIMIT),
    )
)
"""C++ of one configuration, without vectors, for a thread of a device."""


@wp.struct
class TreeBodies:
    """Bodies of a `JointTree`, its arrays flat. is_parent: 1 for the parent of a JOINTED body."""

    kind: wp.array[wp.int32]
    parent: wp.array[wp.int32]
    first: wp.array[wp.int32]
    count: wp.array[wp.int32]
    is_parent: wp.array[wp.int32]
    pose: wp.array[wp.float64]


@wp.struct
class TreeJoints:
    """Joints of a `JointTree`, its arrays flat."""

    kind: wp.array[wp.int32]
    address: wp.array[wp.int32]
    numbers: wp.array[wp.float64]


@wp.struct
class TreeSteps:
    """Steps of a `JointTree`, its arrays flat."""

    numbers: wp.array[wp.int32]
    frames: wp.array[wp.float64]


@wp.func_native(_TYPES + _SINCOS + _QUATERNIONS + _MOVE + _BODIES)
def pose_all(
    bodies: TreeBodies,
    joints: TreeJoints,
    coordinates: wp.array[wp.float64],
    coordinate_count: int,
    count: int,
    state: wp.array[wp.float64],
    poses: wp.array[wp.float64],
) -> bool:
    """Writes the poses of `count` configurations; false if an angle is beyond MODERATE."""
    ...


@kernel
def pose_tree(
    bodies: TreeBodies,
    joints: TreeJoints,
    coordinates: wp.array[wp.float64],
    coordinate_count: int,
    count: int,
    state: wp.array[wp.float64],
    poses: wp.array[wp.float64],
    is_done: wp.array[wp.int32],
):
    """One thread: world poses xyzw of all bodies but the world. For the CPU only.

    state: LANES times 16 numbers a body, of any content. is_done: 1 result, 0 for an angle beyond
    MODERATE.
    """
    is_done[0] = wp.where(
        pose_all(bodies, joints, coordinates, coordinate_count, count, state, poses), 1, 0
    )


def tree_structs(
    tree: JointTree, array_of: Callable[[Any], wp.array]
) -> tuple[TreeBodies, TreeJoints]:
    """A tree with arrays made by a function of lists, int32, and arrays, float64, which are flat
    there."""
    parents = {
        p for p, kind in zip(tree.body_parent, tree.body_kind, strict=True) if kind == JOINTED
    }
    structs = TreeBodies(), TreeJoints()
    bodies = {
        name: getattr(tree, f"body_{name}") for name in ("kind", "parent", "first", "count", "pose")
    }
    bodies["is_parent"] = [int(body in parents) for body in range(len(tree.body_kind))]
    joints = {name: getattr(tree, f"joint_{name}") for name in ("kind", "address", "numbers")}
    for struct, arrays in zip(structs, (bodies, joints), strict=True):
        for name, values in arrays.items():
            setattr(struct, name, array_of(values))
    return structs


class CompiledTree:
    """Forward kinematics of a tree by `pose_tree`, which must be loaded."""

    def __init__(self, tree: JointTree) -> None:
        self._width = len(tree.body_kind)
        self._bodies, self._joints = tree_structs(tree, _array)

    def poses(self, coordinates: np.ndarray) -> np.ndarray | None:
        """float64[n, B - 1, 7], xyzw, of contiguous coordinates float64[n, k]; None for an angle
        beyond MODERATE."""
        count, coordinate_count = coordinates.shape
        out = empty_poses((count, self._width - 1, 7))
        is_done = np.zeros(1, np.int32)
        if not out.size:
            return out
        arguments = [
            *(self._bodies, self._joints, _array(coordinates), coordinate_count, count),
            wp.empty(self._width * _STATE * LANES, dtype=wp.float64, device="cpu"),  # pyright: ignore[reportArgumentType]
            *(_array(out), _array(is_done)),
        ]
        wp.launch(pose_tree, 1, arguments, device="cpu")
        return out if is_done[0] else None


class TreeLoader:
    """`scene.kinematics.TreeCompiler` by `pose_tree`."""

    def is_ready(self) -> bool:
        return is_loaded(pose_tree, wp.get_device("cpu"))

    def compiled(self, tree: JointTree) -> CompiledTree:
        return CompiledTree(tree)


def begin_loading_kinematics(motion: Motion) -> None:
    """Sets `pose_tree` as the compiled code of this process; begins to load it for a motion with a
    joint tree.

    It is compiled for MANY configurations only; where it is compiled already, it serves any number.

    The caller calls `load_kernels` afterwards, of any kernels, which waits for it: a process that
    ends while it compiles leaves no compiled kernel, and the next one compiles it again.
    """
    loader = TreeLoader()
    use(loader)
    if not has_joint_tree(motion) or loader.is_ready():
        return
    device = wp.get_device("cpu")
    if len(motion.time) * motion.world_count >= MANY or is_found(pose_tree.module, device):
        begin_loading([pose_tree], device)


def _array(values: Any) -> wp.array:
    """A flat array of Warp that shares the memory of a NumPy array, int32 of a list."""
    flat = np.asarray(values, np.int32 if isinstance(values, list) else None).reshape(-1)
    return (
        wp.from_numpy(flat, device="cpu")
        if not flat.size
        else wp.array(flat, device="cpu", copy=False)
    )
