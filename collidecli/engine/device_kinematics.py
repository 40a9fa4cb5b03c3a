"""Body poses of a chunk from the coordinates of joints, on a device.

The columns of joints are a tenth of the bytes of the poses, and a device computes a configuration a
thread. The arithmetic, to the bit, is that of the CPU (`joint_kinematics`), with the division of
each quaternion by its norm with which the read of a recording ends. What needs the host, an angle
beyond MODERATE or a pose that is to be refused, is marked: the chunk is then computed again with
poses of the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Pose
from collidecli.engine.joint_kinematics import (
    ONE_TREE,
    UNPOSED,
    TreeBodies,
    TreeJoints,
    TreeSteps,
    tree_structs,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.joint_poses import JointPoses
from collidecli.scene.joint_tree import JointTree


@wp.func_native(ONE_TREE)
def pose_configuration(
    bodies: TreeBodies,
    joints: TreeJoints,
    steps: TreeSteps,
    coordinates: wp.array[wp.float64],
    coordinate_count: int,
    number: int,
    poses: wp.array[Pose],
) -> bool:
    """Writes the poses of configuration `number`; false where the host must compute or refuse
    it."""
    ...


@kernel
def pose_configurations(
    bodies: TreeBodies,
    joints: TreeJoints,
    steps: TreeSteps,
    coordinates: wp.array[wp.float64],
    coordinate_count: int,
    poses: wp.array[Pose],
    unposed: wp.array[wp.int32],
):
    """One thread per configuration: world poses xyzw of all bodies but the world. unposed: 1 where
    one needs the host."""
    number = wp.tid()
    if not pose_configuration(bodies, joints, steps, coordinates, coordinate_count, number, poses):
        wp.atomic_max(unposed, 0, 1)


def posed_on_device(joints: JointPoses, name: str, workspace: Workspace) -> wp.array:
    """The poses of the bodies in each configuration, as array `name` of the scratch memory; UNPOSED
    of the chunk is not 0 where they need the host."""
    structs = _uploaded(joints.tree, workspace)
    frames, worlds, width = joints.coordinates.shape
    count = frames * worlds
    coordinates = workspace.array("joint_coordinates", count * width, wp.float64)
    workspace.upload(coordinates, joints.coordinates)
    poses = workspace.array(name, count * (len(joints.tree.body_kind) - 1), Pose)
    unposed = workspace.counts.flag(UNPOSED)
    arguments = [*structs, coordinates, width, poses, unposed]
    workspace.launch(pose_configurations, count, arguments)
    return poses


def _uploaded(tree: JointTree, workspace: Workspace) -> tuple[TreeBodies, TreeJoints, TreeSteps]:
    """The tree on the device; the last one is kept."""
    if workspace.joint_tree is None or workspace.joint_tree[0] is not tree:

        def array_of(values: Any) -> wp.array:
            flat = np.asarray(values, np.int32 if isinstance(values, list) else None).reshape(-1)
            kind = wp.int32 if isinstance(values, list) else wp.float64
            return workspace.uploaded(flat, kind)

        steps = TreeSteps()
        steps.numbers = array_of(tree.steps.numbers)
        steps.frames = array_of(np.array(tree.steps.frames, np.float64))
        workspace.joint_tree = tree, (*tree_structs(tree, array_of), steps)
    return workspace.joint_tree[1]
