"""Axes of the joints of an MJCF scene in the world, for Jacobians over its joint velocities
(MuJoCo's qvel)."""

from __future__ import annotations

import mujoco
import numpy as np

from collidecli.importers.mujoco.kinematics import BALL_JOINT, FREE_JOINT, SLIDE_JOINT
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW, multiply, rotate
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.kinematics import Kinematics

_SUFFIXES = {FREE_JOINT: ("/x", "/y", "/z", "/rx", "/ry", "/rz"), BALL_JOINT: ("/rx", "/ry", "/rz")}
"""Of the names of the velocities of joints with several; a rotation's are in the body's frame."""


class JointAxes:
    """The velocities of a compiled scene, its degrees of freedom.

    names: of each, `joint`, and `joint/x` to `joint/rz` of free and ball joints. affects:
    bool[nbody, nv], whether a velocity moves a body.
    """

    def __init__(self, mj_model: mujoco.MjModel, kinematics: Kinematics) -> None:
        self._model = mj_model
        self._kinematics = kinematics
        names = [mj_model.joint(joint).name or f"joint#{joint}" for joint in range(mj_model.njnt)]
        kinds = mj_model.jnt_type.tolist()
        self.names = tuple(
            name + suffix
            for name, kind in zip(names, kinds, strict=True)
            for suffix in _SUFFIXES.get(kind, ("",))
        )
        self.affects = np.zeros((mj_model.nbody, mj_model.nv), bool)
        for body in range(1, mj_model.nbody):  # parents precede their children
            self.affects[body] = self.affects[mj_model.body_parentid[body]]
            first = mj_model.body_dofadr[body]
            self.affects[body, first : first + mj_model.body_dofnum[body]] = True

    def at(self, qpos: np.ndarray, mocap: np.ndarray | None) -> np.ndarray:
        """float64[n, 2, nv, 3]: angular velocities, and velocities of the point at the world's
        origin, per unit.

        qpos: float64[n, nq]. mocap: float64[n, nmocap, 7] xyzw, or None where those have the pose
        of the scene.
        """
        poses = np.zeros((self._model.nbody, 7, len(qpos)))
        poses[0, 6] = 1.0
        poses[1:] = np.moveaxis(self._kinematics.poses(qpos, mocap), 0, -1)
        axes = np.zeros((2, self._model.nv, 3, len(qpos)))
        coordinates = np.ascontiguousarray(qpos.T)
        for body in np.flatnonzero(self._model.body_jntnum):
            self._of_body(int(body), poses, coordinates, axes)
        return np.moveaxis(axes, -1, 0)

    def _of_body(self, body: int, poses: np.ndarray, qpos: np.ndarray, axes: np.ndarray) -> None:
        """Sets the velocities of a body's joints, which act one after the other from its parent
        on."""
        model = self._model
        pose = poses[body]
        parent = poses[model.body_parentid[body]]
        rotation = multiply(parent[3:], _column(model.body_quat[body][WXYZ_TO_XYZW]))
        position = parent[:3] + rotate(parent[3:], _column(model.body_pos[body]))
        first = model.body_jntadr[body]
        for joint in range(first, first + model.body_jntnum[body]):
            kind = model.jnt_type[joint]
            dof = model.jnt_dofadr[joint]
            start = model.jnt_qposadr[joint]
            if kind == FREE_JOINT:
                axes[1, dof : dof + 3] = np.eye(3)[:, :, None]
                _turn_about(axes, dof + 3, pose[3:], pose[:3])
                return
            offset = _column(model.jnt_pos[joint])
            anchor = position + rotate(rotation, offset)
            axis = rotate(rotation, _column(model.jnt_axis[joint]))
            if kind == SLIDE_JOINT:
                axes[1, dof] = axis
                position = position + axis * (qpos[start] - model.qpos0[start])
                continue
            if kind == BALL_JOINT:
                _turn_about(axes, dof, pose[3:], anchor)
                turn = qpos[start : start + 4][WXYZ_TO_XYZW]
            else:
                axes[0, dof] = axis
                axes[1, dof] = np.cross(anchor, axis, axis=0)
                sine, cosine = sincos(0.5 * (qpos[start] - model.qpos0[start]))
                turn = np.concatenate([_column(model.jnt_axis[joint]) * sine, cosine[None]])
            rotation = multiply(rotation, turn)
            position = anchor - rotate(rotation, offset)


def _turn_about(axes: np.ndarray, dof: int, rotation: np.ndarray, center: np.ndarray) -> None:
    for k, unit in enumerate(np.eye(3)):
        axis = rotate(rotation, _column(unit))
        axes[0, dof + k] = axis
        axes[1, dof + k] = np.cross(center, axis, axis=0)


def _column(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float64)[:, None]
