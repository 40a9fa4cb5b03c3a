"""Body poses of an MJCF scene from its generalized coordinates, and of its articulations from
joints by name.

`mj_kinematics` takes the sine and cosine of hinge angles from the C library, whose last bit depends
on the processor. `ForwardKinematics` has its arithmetic in its order, with the sine and cosine of
`numerics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from collidecli.importers.mujoco.locked_joints import limits_of_range
from collidecli.numerics.pose_columns import (
    WXYZ_TO_XYZW,
    XYZW_TO_WXYZ,
    column,
    compose,
    inverse,
    multiply,
)
from collidecli.numerics.products import norm
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.joint_tree import (
    BALL,
    BY_BODY,
    BY_FRAME,
    FIXED,
    FREE,
    FROM_COORDINATES,
    HINGE,
    JOINTED,
    SHORTEST,
    SLIDE,
    STORE,
    UNIT,
    CompiledTree,
    JointTree,
    PoseSteps,
    ready_compiler,
)
from collidecli.scene.kinematics import (
    QUATERNION_AXES,
    BadRow,
    JointColumns,
    NamedJoint,
    last_element,
)
from collidecli.scene.poses import QUATERNION_TOLERANCE
from collidecli.storage.pose_checks import bad_poses, pose_fault

if TYPE_CHECKING:
    from collidecli.scene.joint_poses import RowPlace

WORLD_BODY = 0


class MujocoArticulation:
    """Forward kinematics of one child of the world body and its descendants; see
    `ArticulationKinematics`.

    The root is that child. The root pose positions a root with a free joint, a mocap body, and a
    root welded to the world with all its descendants.
    """

    def __init__(
        self, mj_model: mujoco.MjModel, kinematics: MujocoKinematics, root: int, rest: np.ndarray
    ) -> None:
        self._kinematics = kinematics
        self._bodies = np.flatnonzero(mj_model.body_rootid == root)
        self.body_path = tuple(kinematics.body_path[body - 1] for body in self._bodies)
        row_of = {int(body): row for row, body in enumerate(self._bodies)}
        parents = mj_model.body_parentid[self._bodies].tolist()
        self.body_parent = tuple(row_of.get(parent, -1) for parent in parents)
        self.path = self.body_path[0]
        self.aliases: tuple[str, ...] = (last_element(self.path),)
        self.joints, self._qpos_start, self._free = _joints(mj_model, root)
        self.free_joint = _free_joint(mj_model, root) if self._free >= 0 else ""
        self._initial = np.array(mj_model.qpos0, np.float64)
        self.root_is_jointed = self._free < 0 and int(mj_model.body_jntnum[root]) > 0
        self._rest = rest[self._bodies - 1]

    def poses(
        self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray
    ) -> np.ndarray:
        """float64[n, B, 7], see `ArticulationKinematics.poses`."""
        if _moves(columns):
            qpos = self._placed(root_pose, columns, joint_position, None)
            out = self._kinematics.poses(qpos)[:, self._bodies - 1]
        else:
            out = np.tile(self._rest, (len(joint_position), 1, 1))
        if root_pose is None or not self.is_placed(columns):
            return out
        return self.placed(out, root_pose)

    def is_placed(self, columns: JointColumns) -> bool:
        """See `InTree`."""
        return not self.root_is_jointed and not (self._free >= 0 and _moves(columns))

    def placed(self, poses: np.ndarray, root_pose: np.ndarray) -> np.ndarray:
        """See `InTree`."""
        out = np.empty_like(poses)
        shift = compose(np.ascontiguousarray(root_pose.T), inverse(column(self._rest[0])))
        for body in range(len(self._bodies)):
            out[:, body] = compose(shift, np.ascontiguousarray(poses[:, body].T)).T
        return out

    @property
    def tree_of(self) -> MujocoKinematics:
        """See `InTree`."""
        return self._kinematics

    def add_steps(
        self, steps: PoseSteps, bodies: Sequence[int], columns: JointColumns, place: RowPlace
    ) -> None:
        """See `HasSteps`: those of a root pose that moves all bodies."""
        if place.root < 0 or not self.is_placed(columns):
            return
        for body in bodies:
            steps.add(FROM_COORDINATES, place.root)
            steps.add_frame(BY_FRAME, inverse(column(self._rest[0])))
            steps.add(BY_BODY, body)
            steps.add(STORE, body)

    def coordinates(
        self,
        root_pose: np.ndarray | None,
        columns: JointColumns,
        joint_position: np.ndarray,
        qpos: np.ndarray | None,
    ) -> np.ndarray | None:
        """See `MujocoCoordinates`."""
        has_pose = root_pose is None or self._free >= 0 or self.root_is_jointed
        return self._placed(root_pose, columns, joint_position, qpos) if has_pose else None

    def _placed(
        self,
        root_pose: np.ndarray | None,
        columns: JointColumns,
        joint_position: np.ndarray,
        qpos: np.ndarray | None,
    ) -> np.ndarray:
        qpos = np.tile(self._initial, (len(joint_position), 1)) if qpos is None else qpos
        for joint, start, joint_columns in zip(
            self.joints, self._qpos_start, columns.of_joint, strict=True
        ):
            if joint_columns is not None:
                order = joint_columns[XYZW_TO_WXYZ] if joint.is_quaternion else joint_columns
                qpos[:, start : start + len(order)] = joint_position[:, order]
        if self._free >= 0 and root_pose is not None:
            qpos[:, self._free : self._free + 3] = root_pose[:, :3]
            qpos[:, self._free + 3 : self._free + 7] = root_pose[:, 3:][:, XYZW_TO_WXYZ]
        return qpos


def _moves(columns: JointColumns) -> bool:
    """Whether any joint is recorded."""
    return any(joint_columns is not None for joint_columns in columns.of_joint)


class MujocoArticulations:
    """Every child of the world body; see `ArticulatedScene`. Computed on first use.

    Where one child alone has joints, the model's name is an alias of it.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, mj_model: mujoco.MjModel, kinematics: MujocoKinematics) -> None:
        self._model = mj_model
        self._kinematics = kinematics

    @property
    def articulations(self) -> tuple[MujocoArticulation, ...]:
        return self._articulations

    @cached_property
    def _articulations(self) -> tuple[MujocoArticulation, ...]:
        model = self._model
        rest = self._kinematics.poses(np.array(model.qpos0, np.float64)[None])[0]
        roots = np.flatnonzero(model.body_parentid == WORLD_BODY)
        articulations = [
            MujocoArticulation(model, self._kinematics, int(r), rest)
            for r in roots
            if r != WORLD_BODY
        ]
        jointed = [articulation for articulation in articulations if articulation.joints]
        if len(jointed) == 1:
            jointed[0].aliases += (
                bytes(model.names).split(b"\0", 1)[0].decode("utf-8", "replace"),
            )
        return tuple(articulations)


def _joints(mj_model: mujoco.MjModel, root: int) -> tuple[tuple[NamedJoint, ...], list[int], int]:
    """The joints, the first index of each in qpos, and that of the root's free joint; -1 without
    one."""
    kinds = mujoco.mjtJoint
    joints = []
    starts = []
    free = -1
    for joint in np.flatnonzero(mj_model.body_rootid[mj_model.jnt_bodyid] == root):
        start = int(mj_model.jnt_qposadr[joint])
        kind = int(mj_model.jnt_type[joint])
        if kind == int(kinds.mjJNT_FREE):
            free = start
            continue
        axes = QUATERNION_AXES if kind == int(kinds.mjJNT_BALL) else ("",)
        angles = (0,) if kind == int(kinds.mjJNT_HINGE) else ()
        name = mj_model.joint(joint).name or f"joint#{joint}"
        limits = (0.0, np.pi) if axes == QUATERNION_AXES else (-np.inf, np.inf)
        if mj_model.jnt_limited[joint]:
            limits = limits_of_range(*map(float, mj_model.jnt_range[joint]))
        joints.append(
            NamedJoint(
                name, axes, angles=angles, mimic=_mimic(mj_model, int(joint)), limits=(limits,)
            )
        )
        starts.append(start)
    return tuple(joints), starts, free


def _free_joint(mj_model: mujoco.MjModel, root: int) -> str:
    """The name of the free joint of a body, its only joint; "" without a name."""
    return mj_model.joint(int(mj_model.body_jntadr[root])).name


def _mimic(mj_model: mujoco.MjModel, joint: int) -> tuple[str, tuple[float, ...]] | None:
    """See `NamedJoint`: of a joint that an equality couples to another, as MuJoCo reads `mimic` of
    a URDF."""
    for row in np.flatnonzero(
        (mj_model.eq_type == int(mujoco.mjtEq.mjEQ_JOINT)) & (mj_model.eq_obj1id == joint)
    ):
        leader = int(mj_model.eq_obj2id[row])
        if leader >= 0 and mj_model.eq_active0[row]:
            rest = [float(mj_model.qpos0[mj_model.jnt_qposadr[side]]) for side in (joint, leader)]
            return mj_model.joint(leader).name, (*rest, *map(float, mj_model.eq_data[row, :5]))
    return None


_JOINT = mujoco.mjtJoint
FREE_JOINT = int(_JOINT.mjJNT_FREE)
BALL_JOINT = int(_JOINT.mjJNT_BALL)
SLIDE_JOINT = int(_JOINT.mjJNT_SLIDE)
_COMPILED = {SLIDE_JOINT: SLIDE, BALL_JOINT: BALL}
_IDENTITY = np.array([[1.0], [0.0], [0.0], [0.0]])


class ForwardKinematics:
    """World poses of the bodies of one compiled model.

    Arrays are [components, n], quaternions wxyz; a body that no coordinate moves has one column.
    """

    def __init__(self, mj_model: mujoco.MjModel) -> None:
        self._model = mj_model
        self._position = np.array(mj_model.body_pos)
        self._quaternion = np.array(mj_model.body_quat)
        self._axis = np.array(mj_model.jnt_axis)
        self._anchor = np.array(mj_model.jnt_pos)
        self._kind = mj_model.jnt_type.tolist()
        self._address = mj_model.jnt_qposadr.tolist()
        self._parent = mj_model.body_parentid.tolist()
        self._mocap = mj_model.body_mocapid.tolist()
        self._parents = set(self._parent)
        self._first = mj_model.body_jntadr.tolist()
        self._count = mj_model.body_jntnum.tolist()
        self._zero = np.array(mj_model.qpos0)

    def poses(
        self, qpos: np.ndarray, mocap: np.ndarray | None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Positions [3, n] and quaternions [4, n] of all bodies but the world. qpos: float64[nq,
        n], contiguous.

        mocap: float64[nmocap, 7, n], position and quaternion wxyz; None leaves mocap bodies as in
        the scene.
        """
        positions = [np.zeros((3, 1))]
        quaternions = [_IDENTITY]
        rotations = {WORLD_BODY: np.eye(3)[:, :, None]}
        for body in range(1, len(self._parent)):
            position, quaternion = self._body(body, qpos, mocap, positions, quaternions, rotations)
            quaternion = _normalized(quaternion)
            positions.append(position)
            quaternions.append(quaternion)
            if body in self._parents:
                rotations[body] = _matrix(quaternion)
        return positions[1:], quaternions[1:]

    def tree(self, has_mocap: bool) -> JointTree:
        """The tree for compiled code; with `has_mocap` each mocap body has 7 coordinates behind
        those of the joints."""
        rest = np.repeat(self._zero[:, None], 2, axis=1)
        body_poses = zip(*self.poses(rest, None), strict=True)
        body_pose = np.zeros((len(self._parent), 7))
        kind = [FIXED] * len(self._parent)
        body_pose[0, 3] = 1.0
        first = list(self._first)
        for body, (position, quaternion) in enumerate(body_poses, 1):
            if has_mocap and self._mocap[body] >= 0:
                kind[body] = FREE
                first[body] = len(self._zero) + 7 * self._mocap[body]
            elif self._count[body] == 1 and self._kind[first[body]] == FREE_JOINT:
                kind[body] = FREE
                first[body] = self._address[first[body]]
            elif position.shape[1] + quaternion.shape[1] > 2 or kind[self._parent[body]] != FIXED:
                kind[body] = JOINTED
                body_pose[body] = np.concatenate([self._position[body], self._quaternion[body]])
            else:
                body_pose[body] = np.concatenate([position[:, 0], quaternion[:, 0]])
        reference = self._zero[self._address] if self._address else np.zeros(0)
        return JointTree(
            kind, self._parent, first, self._count, body_pose,
            [_COMPILED.get(joint_kind, HINGE) for joint_kind in self._kind], self._address,
            np.column_stack([self._axis, self._anchor, reference]),
        )  # fmt: skip

    def _body(
        self,
        body: int,
        qpos: np.ndarray,
        mocap: np.ndarray | None,
        positions: list[np.ndarray],
        quaternions: list[np.ndarray],
        rotations: dict[int, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        first = self._first[body]
        count = self._count[body]
        parent = self._parent[body]
        if count == 1 and self._kind[first] == FREE_JOINT:
            address = self._address[first]
            return qpos[address : address + 3], _normalized(qpos[address + 3 : address + 7])
        position = self._position[body][:, None]
        quaternion = self._quaternion[body][:, None]
        if self._mocap[body] >= 0:
            if mocap is not None:  # else the pose in the scene, which MuJoCo resets it to
                position = mocap[self._mocap[body]][:3]
                quaternion = mocap[self._mocap[body]][3:]
            quaternion = _normalized(quaternion)
        if parent:
            r = rotations[parent]
            position = (
                r[:, 0] * position[0] + r[:, 1] * position[1] + r[:, 2] * position[2]
            ) + positions[parent]
            quaternion = _product(quaternions[parent], quaternion)
        for joint in range(first, first + count):
            position, quaternion = self._moved(joint, qpos, position, quaternion)
        return position, quaternion

    def _moved(
        self, joint: int, qpos: np.ndarray, position: np.ndarray, quaternion: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        address = self._address[joint]
        kind = self._kind[joint]
        axis = self._axis[joint][:, None]
        anchor = self._anchor[joint][:, None]
        if kind == SLIDE_JOINT:
            return position + _rotated(axis, quaternion) * (
                qpos[address] - self._zero[address]
            ), quaternion
        anchor_world = _rotated(anchor, quaternion) + position
        if kind == BALL_JOINT:
            rotation = _normalized(qpos[address : address + 4])
        else:
            sine, cosine = sincos((qpos[address] - self._zero[address]) * 0.5)
            rotation = np.concatenate([cosine[None], axis * sine])
        quaternion = _product(quaternion, rotation)
        return anchor_world - _rotated(anchor, quaternion), quaternion


def _normalized(q: np.ndarray) -> np.ndarray:
    length = np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if not (np.abs(length - 1.0) > UNIT).any():
        return q
    with np.errstate(all="ignore"):
        divided = np.where(np.abs(length - 1.0) > UNIT, q * (1.0 / length), q)
    return np.where(length < SHORTEST, _IDENTITY, divided)


def _product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quaternion products, wxyz; q's rotation first. MuJoCo's order of operations is that of
    `multiply`."""
    return multiply(p[WXYZ_TO_XYZW], q[WXYZ_TO_XYZW])[XYZW_TO_WXYZ]


def _rotated(vector: np.ndarray, q: np.ndarray) -> np.ndarray:
    """float64[3, n]: vectors [3, n] rotated by unit quaternions, in MuJoCo's order of
    operations."""
    w, x, y, z = q
    u, v, t = vector
    a = w * u + y * t - z * v
    b = w * v + z * u - x * t
    c = w * t + x * v - y * u
    return np.stack(
        [u + 2.0 * (y * c - z * b), v + 2.0 * (z * a - x * c), t + 2.0 * (x * b - y * a)]
    )


def _matrix(q: np.ndarray) -> np.ndarray:
    """float64[3, 3, n]: rotation matrices of unit quaternions."""
    w, x, y, z = q
    ww = w * w
    wx = w * x
    wy = w * y
    wz = w * z
    xx = x * x
    xy = x * y
    xz = x * z
    yy = y * y
    yz = y * z
    zz = z * z
    return np.stack(
        [
            np.stack([ww + xx - yy - zz, 2.0 * (xy - wz), 2.0 * (xz + wy)]),
            np.stack([2.0 * (xy + wz), ww - xx + yy - zz, 2.0 * (yz - wx)]),
            np.stack([2.0 * (xz - wy), 2.0 * (yz + wx), ww - xx - yy + zz]),
        ]
    )


_BLOCK = 2048
"""Configurations per block, so that its arrays fit in the processor's cache."""
_POSE_WXYZ = [0, 1, 2, 6, 3, 4, 5]
_POSE_XYZW = [0, 1, 2, 4, 5, 6, 3]


class MujocoKinematics:
    """Forward kinematics of one compiled scene; its bodies are MuJoCo's without the world.

    body_path: name of each body. welded: bool[B], bodies that are part of the static world.
    coordinate_count: length of qpos. mocap_count: number of mocap bodies. coordinate_names,
    coordinate_limits: see `Kinematics`.
    articulated: kinematics by articulation, with joints by name.
    """

    def __init__(
        self, mj_model: mujoco.MjModel, body_path: tuple[str, ...], welded: np.ndarray
    ) -> None:
        self.body_path = body_path
        self.welded = welded
        self.coordinate_count = int(mj_model.nq)
        self.mocap_count = int(mj_model.nmocap)
        self._model = mj_model
        self._forward = ForwardKinematics(mj_model)
        self._trees: dict[bool, CompiledTree] = {}
        start_of = {int(mujoco.mjtJoint.mjJNT_FREE): 3, int(mujoco.mjtJoint.mjJNT_BALL): 0}
        joints = []
        for joint in range(mj_model.njnt):
            start = start_of.get(int(mj_model.jnt_type[joint]))
            if start is not None:
                body = int(mj_model.jnt_bodyid[joint])
                joints.append(
                    (
                        int(mj_model.jnt_qposadr[joint]) + start,
                        mj_model.body(body).name or f"body#{body}",
                    )
                )
        self._quaternions = joints
        self.coordinate_names, self.coordinate_limits = _coordinates(mj_model)
        self.articulated = MujocoArticulations(mj_model, self)

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None = None) -> np.ndarray:
        """float64[n, B, 7] xyzw: world pose of every body in every frame, each frame on its own.

        qpos: float64[n, nq], MuJoCo's layout (quaternions wxyz); they need not be normalized.
        mocap: float64[n, nmocap, 7], xyzw; None leaves mocap bodies at their poses in the scene.
        """
        compiler = ready_compiler()
        if compiler is not None:
            has_mocap = mocap is not None
            if has_mocap not in self._trees:
                self._trees[has_mocap] = compiler.compiled(self._forward.tree(has_mocap))
            body_poses = self._trees[has_mocap].poses(_joined(qpos, mocap))
            if body_poses is not None:
                return body_poses
        out = np.empty((len(qpos), len(self.body_path), 7))
        for start in range(0, len(qpos), _BLOCK):
            rows = slice(start, start + _BLOCK)
            coordinates = np.ascontiguousarray(np.asarray(qpos[rows], np.float64).T)
            moved = None if mocap is None else np.moveaxis(mocap[rows][..., _POSE_WXYZ], 0, -1)
            for body, (position, rotation) in enumerate(
                zip(*self._forward.poses(coordinates, moved), strict=True)
            ):
                out[rows, body, :3] = position.T
                out[rows, body, 3:] = rotation[WXYZ_TO_XYZW].T
        return out

    def joint_tree(self, has_mocap: bool) -> JointTree:
        """See `HasTree`."""
        return self._forward.tree(has_mocap)

    def tree_coordinates(self, qpos: np.ndarray, mocap: np.ndarray | None) -> np.ndarray:
        """See `HasTree`."""
        return _joined(qpos, mocap)

    def poses_of_tree(self, coordinates: np.ndarray) -> np.ndarray:
        """See `HasTree`."""
        qpos, moved = np.split(coordinates, [self.coordinate_count], axis=1)
        if not moved.shape[1]:
            return self.poses(qpos)
        return self.poses(qpos, moved.reshape(len(moved), -1, 7)[..., _POSE_XYZW])

    def first_bad_coordinate(self, qpos: np.ndarray) -> BadRow | None:
        """Row of qpos[n, nq], body, and what is wrong, for the first invalid configuration; else
        None."""
        finite = np.isfinite(qpos)
        bad = ~finite.all(axis=1)
        first = np.array([address for address, _ in self._quaternions], np.intp)
        with np.errstate(invalid="ignore", over="ignore"):
            norms = norm(qpos[:, first[:, None] + np.arange(4)])
            bad |= ~(np.abs(norms - 1.0) <= QUATERNION_TOLERANCE).all(axis=1)
        if not bad.any():
            return None
        row = int(np.argmax(bad))
        if not finite[row].all():
            index = int(np.argmin(finite[row]))
            joint = int(np.searchsorted(self._model.jnt_qposadr, index, side="right")) - 1
            body = self.body_path[int(self._model.jnt_bodyid[joint]) - 1]
            return row, body, f"qpos[{index}] is {qpos[row, index]:g}"
        for joint_norm, (_, body) in zip(norms[row], self._quaternions, strict=True):
            if not abs(joint_norm - 1.0) <= QUATERNION_TOLERANCE:
                return row, body, f"the joint's quaternion has norm {joint_norm:.6g}"
        raise AssertionError("a bad row has a bad coordinate")

    def first_bad_mocap(self, mocap: np.ndarray) -> BadRow | None:
        """Row of mocap[n, nmocap, 7], body, and what is wrong, for the first row with an invalid
        pose; else None."""
        bad = bad_poses(mocap)
        if not bad.any():
            return None
        row, mocap_id = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
        body = int(np.flatnonzero(self._model.body_mocapid == mocap_id)[0])
        return row, self.body_path[body - 1], pose_fault(mocap[row, mocap_id])


def _coordinates(mj_model: mujoco.MjModel) -> tuple[tuple[str, ...], np.ndarray]:
    """The joint of each number of qpos, and float64[nq, 2], its limits; see `Kinematics`."""
    limits = np.full((mj_model.nq, 2), [-np.inf, np.inf])
    names = [""] * mj_model.nq
    edges = [*map(int, mj_model.jnt_qposadr), int(mj_model.nq)]
    for joint in range(mj_model.njnt):
        width = edges[joint + 1] - edges[joint]
        names[edges[joint] : edges[joint + 1]] = [mj_model.joint(joint).name] * width
        if width == 1 and mj_model.jnt_limited[joint]:
            limits[edges[joint]] = limits_of_range(*map(float, mj_model.jnt_range[joint]))
    return tuple(names), limits


def _joined(qpos: np.ndarray, mocap: np.ndarray | None) -> np.ndarray:
    """float64[n, nq + 7 nmocap]: coordinates, and poses wxyz of mocap bodies."""
    if mocap is None:
        return np.ascontiguousarray(qpos, np.float64)
    return np.concatenate(
        [qpos, mocap[..., _POSE_WXYZ].reshape(len(mocap), -1)], axis=1, dtype=np.float64
    )
