"""Articulations and free bodies of an MJCF or URDF scene, their joints by name, by MuJoCo's own kinematics."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from functools import cached_property

import mujoco
import numpy as np

from collidecli.numerics.pose_products import XYZW_TO_WXYZ, column, compose, inverse
from collidecli.scene.kinematics import QUATERNION_AXES, JointColumns, Kinematics, NamedJoint, last_element

WORLD_BODY = 0


class MujocoArticulation:
    """Forward kinematics of one child of the world body and its descendants; see `ArticulationKinematics`.

    The root is that child. The root pose positions a root with a free joint, a mocap body, and a root welded to the
    world with all its descendants.
    """

    def __init__(self, mj_model: mujoco.MjModel, kinematics: Kinematics, root: int, rest: np.ndarray) -> None:
        self._kinematics = kinematics
        self._bodies = np.flatnonzero(mj_model.body_rootid == root)
        self.body_path = tuple(kinematics.body_path[body - 1] for body in self._bodies)
        self.path = self.body_path[0]
        self.aliases: tuple[str, ...] = (last_element(self.path),)
        self.joints, self._qpos_start, self._free = _joints(mj_model, root)
        self._initial = np.array(mj_model.qpos0, np.float64)
        self.root_is_jointed = self._free < 0 and int(mj_model.body_jntnum[root]) > 0
        self._rest = rest[self._bodies - 1]

    def poses(self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray) -> np.ndarray:
        """float64[n, B, 7], see `ArticulationKinematics.poses`."""
        qpos = np.tile(self._initial, (len(joint_position), 1))
        moving = False
        for joint, start, found in zip(self.joints, self._qpos_start, columns.of_joint, strict=True):
            if found is not None:
                moving = True
                order = found[XYZW_TO_WXYZ] if joint.is_quaternion else found
                qpos[:, start : start + len(order)] = joint_position[:, order]
        if self._free >= 0 and root_pose is not None:
            qpos[:, self._free : self._free + 3] = root_pose[:, :3]
            qpos[:, self._free + 3 : self._free + 7] = root_pose[:, 3:][:, XYZW_TO_WXYZ]
        if moving:
            out = self._kinematics.poses(qpos)[:, self._bodies - 1]
        else:
            out = np.tile(self._rest, (len(qpos), 1, 1))
        if root_pose is None or self.root_is_jointed or (self._free >= 0 and moving):
            return out
        shift = compose(np.ascontiguousarray(root_pose.T), inverse(column(self._rest[0])))
        for body in range(len(self._bodies)):
            out[:, body] = compose(shift, np.ascontiguousarray(out[:, body].T)).T
        return out


class MujocoArticulations:
    """Every child of the world body; see `ArticulatedScene`. Computed on first use.

    Where one child alone has joints, the model's name is an alias of it.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, mj_model: mujoco.MjModel, kinematics: Kinematics) -> None:
        self._model, self._kinematics = mj_model, kinematics

    @property
    def articulations(self) -> tuple[MujocoArticulation, ...]:
        return self._articulations

    @cached_property
    def _articulations(self) -> tuple[MujocoArticulation, ...]:
        model = self._model
        rest = self._kinematics.poses(np.array(model.qpos0, np.float64)[None])[0]
        roots = np.flatnonzero(model.body_parentid == WORLD_BODY)
        found = [MujocoArticulation(model, self._kinematics, int(r), rest) for r in roots if r != WORLD_BODY]
        jointed = [articulation for articulation in found if articulation.joints]
        if len(jointed) == 1:
            jointed[0].aliases += (bytes(model.names).split(b"\0", 1)[0].decode("utf-8", "replace"),)
        return tuple(found)


def _joints(mj_model: mujoco.MjModel, root: int) -> tuple[tuple[NamedJoint, ...], list[int], int]:
    """The joints, the first index of each in qpos, and that of the root's free joint; -1 without one."""
    kinds = mujoco.mjtJoint
    joints, starts, free = [], [], -1
    for joint in np.flatnonzero(mj_model.body_rootid[mj_model.jnt_bodyid] == root):
        start, kind = int(mj_model.jnt_qposadr[joint]), int(mj_model.jnt_type[joint])
        if kind == int(kinds.mjJNT_FREE):
            free = start
            continue
        axes = QUATERNION_AXES if kind == int(kinds.mjJNT_BALL) else ("",)
        joints.append(NamedJoint(mj_model.joint(joint).name or f"joint#{joint}", axes))
        starts.append(start)
    return tuple(joints), starts, free
