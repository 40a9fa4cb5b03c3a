"""MuJoCo's forward kinematics for many configurations at once, bit-identical on every processor.

`mj_kinematics` takes the sine and cosine of hinge angles from the C library, whose last bit depends on the processor.
This module has its arithmetic in its order, with the sine and cosine of `numerics.elementary`.
"""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np

from collidecli.numerics.elementary import sincos

_JOINT = mujoco.mjtJoint
_FREE, _BALL, _SLIDE = int(_JOINT.mjJNT_FREE), int(_JOINT.mjJNT_BALL), int(_JOINT.mjJNT_SLIDE)
_SHORTEST = 1e-15
"""Norm of a quaternion below which MuJoCo uses the identity."""
_UNIT = 1e-15
"""Deviation of a norm from 1 above which MuJoCo divides by it."""
_IDENTITY = np.array([[1.0], [0.0], [0.0], [0.0]])


class ForwardKinematics:
    """World poses of the bodies of one compiled model.

    Arrays are [components, n], quaternions wxyz; a body that no coordinate moves has one column.
    """

    def __init__(self, mj_model: mujoco.MjModel) -> None:
        self._model = mj_model
        self._position, self._quaternion = np.array(mj_model.body_pos), np.array(mj_model.body_quat)
        self._axis, self._anchor = np.array(mj_model.jnt_axis), np.array(mj_model.jnt_pos)
        self._kind, self._address = mj_model.jnt_type.tolist(), mj_model.jnt_qposadr.tolist()
        self._parent, self._mocap = mj_model.body_parentid.tolist(), mj_model.body_mocapid.tolist()
        self._first, self._count = mj_model.body_jntadr.tolist(), mj_model.body_jntnum.tolist()
        self._zero = np.array(mj_model.qpos0)

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Positions [3, n] and quaternions [4, n] of all bodies but the world.

        Args:
            qpos: float64[nq, n], contiguous.
            mocap: float64[nmocap, 7, n], position and quaternion wxyz; None leaves mocap bodies as in the scene.
        """
        positions = [np.zeros((3, 1))]
        quaternions = [_IDENTITY]
        rotations = [np.eye(3)[:, :, None]]
        for body in range(1, len(self._parent)):
            position, quaternion = self._body(body, qpos, mocap, positions, quaternions, rotations)
            quaternion = _normalized(quaternion)
            positions.append(position)
            quaternions.append(quaternion)
            rotations.append(_matrix(quaternion))
        return positions[1:], quaternions[1:]

    def _body(
        self,
        body: int,
        qpos: np.ndarray,
        mocap: np.ndarray | None,
        positions: list[np.ndarray],
        quaternions: list[np.ndarray],
        rotations: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        first, count, parent = self._first[body], self._count[body], self._parent[body]
        if count == 1 and self._kind[first] == _FREE:
            address = self._address[first]
            return qpos[address : address + 3], _normalized(qpos[address + 3 : address + 7])
        position, quaternion = self._position[body][:, None], self._quaternion[body][:, None]
        if self._mocap[body] >= 0:
            given = self._mocap_pose(body) if mocap is None else mocap[self._mocap[body]]
            position, quaternion = given[:3], _normalized(given[3:])
        if parent:
            r = rotations[parent]
            position = (r[:, 0] * position[0] + r[:, 1] * position[1] + r[:, 2] * position[2]) + positions[parent]
            quaternion = _product(quaternions[parent], quaternion)
        for joint in range(first, first + count):
            position, quaternion = self._moved(joint, qpos, position, quaternion)
        return position, quaternion

    def _mocap_pose(self, body: int) -> np.ndarray:
        """The pose of a mocap body in the scene, which MuJoCo resets it to."""
        return np.concatenate([self._position[body], self._quaternion[body]])[:, None]

    def _moved(
        self, joint: int, qpos: np.ndarray, position: np.ndarray, quaternion: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        address, kind = self._address[joint], self._kind[joint]
        axis, anchor = self._axis[joint][:, None], self._anchor[joint][:, None]
        if kind == _SLIDE:
            return position + _rotated(axis, quaternion) * (qpos[address] - self._zero[address]), quaternion
        anchor_world = _rotated(anchor, quaternion) + position
        if kind == _BALL:
            rotation = _normalized(qpos[address : address + 4])
        else:
            sine, cosine = sincos((qpos[address] - self._zero[address]) * 0.5)
            rotation = np.concatenate([cosine[None], axis * sine])
        quaternion = _product(quaternion, rotation)
        return anchor_world - _rotated(anchor, quaternion), quaternion


def _normalized(q: np.ndarray) -> np.ndarray:
    length = np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if not (np.abs(length - 1.0) > _UNIT).any():
        return q
    with np.errstate(all="ignore"):
        divided = np.where(np.abs(length - 1.0) > _UNIT, q * (1.0 / length), q)
    return np.where(length < _SHORTEST, _IDENTITY, divided)


def _product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return np.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ]
    )


def _rotated(vector: np.ndarray, q: np.ndarray) -> np.ndarray:
    """float64[3, n]: vectors [3, n] rotated by unit quaternions."""
    w, x, y, z = q
    u, v, t = vector
    a = w * u + y * t - z * v
    b = w * v + z * u - x * t
    c = w * t + x * v - y * u
    return np.stack([u + 2.0 * (y * c - z * b), v + 2.0 * (z * a - x * c), t + 2.0 * (x * b - y * a)])


def _matrix(q: np.ndarray) -> np.ndarray:
    """float64[3, 3, n]: rotation matrices of unit quaternions."""
    w, x, y, z = q
    ww, wx, wy, wz = w * w, w * x, w * y, w * z
    xx, xy, xz, yy, yz, zz = x * x, x * y, x * z, y * y, y * z, z * z
    return np.stack(
        [
            np.stack([ww + xx - yy - zz, 2.0 * (xy - wz), 2.0 * (xz + wy)]),
            np.stack([2.0 * (xy + wz), ww - xx + yy - zz, 2.0 * (yz - wx)]),
            np.stack([2.0 * (xz - wy), 2.0 * (yz + wx), ww - xx - yy + zz]),
        ]
    )
