"""Body poses of an MJCF scene from its generalized coordinates."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np

from collidecli.importers.mujoco.articulations import MujocoArticulations
from collidecli.importers.mujoco.forward import ForwardKinematics
from collidecli.numerics.matrices import norm
from collidecli.numerics.pose_products import WXYZ_TO_XYZW
from collidecli.scene.kinematics import BadRow
from collidecli.storage.trajectories.bodies import QUATERNION_TOLERANCE, bad_poses, pose_fault

_BLOCK = 2048
"""Configurations per block, so that its arrays fit in the processor's cache."""


class MujocoKinematics:
    """Forward kinematics of one compiled scene; its bodies are MuJoCo's without the world.

    body_path: name of each body. welded: bool[B], bodies that are part of the static world.
    coordinate_count: length of qpos. mocap_count: number of mocap bodies.
    articulated: kinematics by articulation, with joints by name.
    """

    def __init__(self, mj_model: mujoco.MjModel, body_path: tuple[str, ...], welded: np.ndarray) -> None:
        self.body_path = body_path
        self.welded = welded
        self.coordinate_count = int(mj_model.nq)
        self.mocap_count = int(mj_model.nmocap)
        self._model = mj_model
        self._forward = ForwardKinematics(mj_model)
        self._quaternions = _quaternion_joints(mj_model)
        self.articulated = MujocoArticulations(mj_model, self)

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None = None) -> np.ndarray:
        """World pose of every body in every frame, each frame on its own.

        Args:
            qpos: float64[n, nq], MuJoCo's layout (quaternions wxyz); they need not be normalized.
            mocap: float64[n, nmocap, 7], xyzw; None leaves mocap bodies at their poses in the scene.
        Returns:
            float64[n, B, 7], xyzw.
        """
        out = np.empty((len(qpos), len(self.body_path), 7))
        for start in range(0, len(qpos), _BLOCK):
            rows = slice(start, start + _BLOCK)
            coordinates = np.ascontiguousarray(np.asarray(qpos[rows], np.float64).T)
            moved = None
            if mocap is not None:
                moved = np.moveaxis(mocap[rows][..., [0, 1, 2, 6, 3, 4, 5]], 0, -1)
            for body, (position, rotation) in enumerate(zip(*self._forward.poses(coordinates, moved), strict=True)):
                out[rows, body, :3] = position.T
                out[rows, body, 3:] = rotation[WXYZ_TO_XYZW].T
        return out

    def first_bad_coordinate(self, qpos: np.ndarray) -> BadRow | None:
        """Row of qpos[n, nq], body, and what is wrong, for the first invalid configuration; else None."""
        finite = np.isfinite(qpos)
        bad = ~finite.all(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            norms = [norm(qpos[:, a : a + 4]) for a, _ in self._quaternions]
            for each in norms:
                bad |= ~(np.abs(each - 1.0) <= QUATERNION_TOLERANCE)
        if not bad.any():
            return None
        row = int(np.argmax(bad))
        if not finite[row].all():
            index = int(np.argmin(finite[row]))
            return row, self._body_of_coordinate(index), f"qpos[{index}] is {qpos[row, index]:g}"
        for each, (_, body) in zip(norms, self._quaternions, strict=True):
            if not abs(each[row] - 1.0) <= QUATERNION_TOLERANCE:
                return row, body, f"the joint's quaternion has norm {each[row]:.6g}"
        raise AssertionError("a bad row has a bad coordinate")

    def first_bad_mocap(self, mocap: np.ndarray) -> BadRow | None:
        """Row of mocap[n, nmocap, 7], body, and what is wrong, for the first row with an invalid pose; else None."""
        bad = bad_poses(mocap)
        if not bad.any():
            return None
        row, mocap_id = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        body = int(np.flatnonzero(self._model.body_mocapid == mocap_id)[0])
        return row, self.body_path[body - 1], pose_fault(mocap[row, mocap_id])

    def _body_of_coordinate(self, index: int) -> str:
        joint = int(np.searchsorted(self._model.jnt_qposadr, index, side="right")) - 1
        return self.body_path[int(self._model.jnt_bodyid[joint]) - 1]


def _quaternion_joints(mj_model: mujoco.MjModel) -> list[tuple[int, str]]:
    """First qpos index of every quaternion, with its body's name."""
    start_of = {int(mujoco.mjtJoint.mjJNT_FREE): 3, int(mujoco.mjtJoint.mjJNT_BALL): 0}
    found = []
    for joint in range(mj_model.njnt):
        start = start_of.get(int(mj_model.jnt_type[joint]))
        if start is not None:
            body = int(mj_model.jnt_bodyid[joint])
            found.append((int(mj_model.jnt_qposadr[joint]) + start, mj_model.body(body).name or f"body#{body}"))
    return found
