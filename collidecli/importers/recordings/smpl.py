"""Motions in the parameters of the body models SMPL, SMPL+H and SMPL-X, as in AMASS, over a scene
with the bodies of such a model.

The rotation of each body is that of its joint; where bodies are follows from the scene's own
skeleton, as its joints are at the origins of its bodies. So fingers, face and shape (betas) are not
used. The pelvis is at `trans` and the position that it has in the model at rest.
Source: smpl_sim/smpllib/smpl_joint_names.py of ZhengyiLuo/SMPLSim at 112506b9, and
scripts/data_process/convert_amass_isaac.py of ZhengyiLuo/PHC at 351b3596.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.array_files import ArrayHeader
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.humanoid import BodyPoseMotion
from collidecli.importers.recordings.motion_tables import MotionTable
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.recordings.refused_motions import is_amass, retargeting
from collidecli.importers.recordings.skeleton_rest import OTHER_REST, UP_TURN, resting_turn
from collidecli.importers.recordings.times import rate_time
from collidecli.numerics.poses import compose_poses
from collidecli.numerics.products import length
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.kinematics import ArticulationKinematics, last_element
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.reading_limit import check_size
from collidecli.storage.storage_formats import NPZ, PICKLE
from collidecli.wording import plural, some_names

NAMES = (
    # of SMPLSim and PHC, of the body models, and the joint above
    ("Pelvis", "pelvis", -1),
    ("L_Hip", "left_hip", 0),
    ("R_Hip", "right_hip", 0),
    ("Torso", "spine1", 0),
    ("L_Knee", "left_knee", 1),
    ("R_Knee", "right_knee", 2),
    ("Spine", "spine2", 3),
    ("L_Ankle", "left_ankle", 4),
    ("R_Ankle", "right_ankle", 5),
    ("Chest", "spine3", 6),
    ("L_Toe", "left_foot", 7),
    ("R_Toe", "right_foot", 8),
    ("Neck", "neck", 9),
    ("L_Thorax", "left_collar", 9),
    ("R_Thorax", "right_collar", 9),
    ("Head", "head", 12),
    ("L_Shoulder", "left_shoulder", 13),
    ("R_Shoulder", "right_shoulder", 14),
    ("L_Elbow", "left_elbow", 16),
    ("R_Elbow", "right_elbow", 17),
    ("L_Wrist", "left_wrist", 18),
    ("R_Wrist", "right_wrist", 19),
    ("L_Hand", "left_hand", 20),
    ("R_Hand", "right_hand", 21),
)
JOINT_OF = {name: joint for joint, names in enumerate(NAMES) for name in names[:2]}
PARENT = tuple(names[2] for names in NAMES)
WIDTHS = {66: 22, 72: 24, 156: 22, 165: 22}
"""Joints of the body by the numbers of a frame: of the body alone, of SMPL, of SMPL+H and of
SMPL-X, which have fingers in place of the hands of SMPL."""
BONES = (
    # directions in the zero pose: x is left, y up, z in front
    ("R_Hip", "L_Hip", (1.0, 0.0, 0.0)),
    ("Pelvis", "Head", (0.0, 1.0, 0.0)),
    ("L_Hip", "L_Knee", (0.0, -1.0, 0.0)),
    ("R_Hip", "R_Knee", (0.0, -1.0, 0.0)),
    ("L_Shoulder", "L_Elbow", (1.0, 0.0, 0.0)),
    ("R_Shoulder", "R_Elbow", (-1.0, 0.0, 0.0)),
    ("L_Ankle", "L_Toe", (0.0, -0.4, 0.9)),
    ("R_Ankle", "R_Toe", (0.0, -0.4, 0.9)),
)
PELVIS = (-0.0018, -0.2233, 0.0282)
"""Position of the pelvis of the mean body at rest [m], in the scenes of SMPLSim and PHC."""
PELVIS_RANGE = 0.2
"""Distance from `PELVIS` of a body of any shape [m]; of a body that stands on the ground, the
pelvis is more than a metre from it."""
RATES = ("mocap_framerate", "mocap_frame_rate")
AGAIN = "download the file again"


@dataclass(frozen=True)
class _Body:
    """A body of the scene that moves. joint: of `NAMES`, -1 for none. parent: number of the body
    that it is joined to, -1 of the pelvis. rest: its resting pose xyzw in the world."""

    path: str
    joint: int
    parent: int
    rest: np.ndarray


class SmplRecording(Recording):
    """Rotations of the joints of a human body as poses of one world's bodies."""

    NAME = "smpl-motion"
    LABEL = "a motion of AMASS (.npz with poses and trans of SMPL, SMPL+H or SMPL-X)"
    OPTIONS = ("fps", "up_axis", "root_offset")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self._arrays = content.arrays
        poses = self._header("poses")
        if len(poses.shape) != 2 or poses.shape[1] not in WIDTHS or not poses.shape[0]:
            what = f"is {poses}, not floats [frames, {' or '.join(map(str, WIDTHS))}]"
            raise InputError(what, f"{self._path}: poses", AGAIN)
        trans = self._header("trans")
        if trans.shape != (poses.shape[0], 3):
            what = f"is {trans}, not floats [{poses.shape[0]}, 3]"
            raise InputError(what, f"{self._path}: trans", AGAIN)
        self._frames = poses.shape[0]
        self._joints = WIDTHS[poses.shape[1]]

    @staticmethod
    def recognise(content: Content) -> bool:
        """A .npz with the arrays of AMASS."""
        return content.storage in (NPZ, PICKLE) and is_amass(content.arrays)

    def _header(self, name: str) -> ArrayHeader:
        header = self._arrays.get(name)
        if header is None or not header.is_float:
            what = f"the array '{name}' is {header or 'missing'}"
            raise InputError(what, self._path, AGAIN)
        return header

    def _rate(self) -> float | None:
        """Frames a second that the file has; None without them."""
        for name in RATES:
            header = self._arrays.get(name)
            if header is not None and header.dtype.kind in "iuf" and header.shape in ((), (1,)):
                return float(self.content.array(name).reshape(-1)[0])
        return None

    def describe(self) -> RecordingDescription:
        rate = self._rate()
        return RecordingDescription(
            frames=self._frames,
            worlds=1,
            start=None if not rate else 0.0,
            end=None if not rate else (self._frames - 1) / rate,
            bodies=tuple(names[0] for names in NAMES[: self._joints]),
            needs=("a scene with the bodies of SMPL", *(() if rate else ("--fps",))),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """Poses of the bodies of the scene's articulation that has those of SMPL.

        Raises InputError: no such bodies, one that is missing between two, a scene at rest that is
        not in the zero pose of SMPL, or whose pelvis is not where the model has it.
        """
        bodies = self._bodies(target)
        rate = self._rate() if options.fps is None else options.fps
        time = rate_time(self._frames, rate, self._path)
        turn = self._turn(bodies)
        size = 8 * 7 * 4 * self._frames * (len(bodies) + self._joints)
        check_size(size, "the poses", self._path, "save a part of the motion")
        poses = self._poses(bodies, turn, options)
        notes = self._notes(bodies)
        where = f"{self._path}: poses"
        table = MotionTable(
            self._path, self._frames, notes=notes, locations={"body_position": where}
        )
        paths = [body.path for body in bodies]
        return BodyPoseMotion(table, target.model, paths, poses, time, strict=True)

    def _bodies(self, target: Target) -> list[_Body]:
        """The pelvis and the bodies below it, each after its parent."""
        scene = target.articulated(self._path)
        for articulation in scene.articulations:
            names = [last_element(path) for path in articulation.body_path]
            pelvis = [row for row, name in enumerate(names) if JOINT_OF.get(name) == 0]
            others = {JOINT_OF[name] for name in names if name in JOINT_OF}
            if len(pelvis) == 1 and {1, 2, 15} <= others:
                return self._below(articulation, pelvis[0], target.model)
        raise retargeting(self._path)

    def _below(
        self, articulation: ArticulationKinematics, pelvis: int, model: Model
    ) -> list[_Body]:
        """The pelvis and the bodies below it. Raises InputError where two have one joint, or a body
        between two is missing."""
        rest = {path: model.bodies.pose[row] for row, path in enumerate(model.bodies.path)}
        number = {pelvis: 0}
        path = articulation.body_path[pelvis]
        bodies = [_Body(path, 0, -1, rest[path])]
        nearest = [0]  # joint of each body or of the nearest above it that has one
        pending = True
        while pending:
            pending = False
            for row, parent in enumerate(articulation.body_parent):
                if row in number or parent not in number:
                    continue
                path = articulation.body_path[row]
                joint = JOINT_OF.get(last_element(path), -1)
                above = nearest[number[parent]]
                if joint >= 0 and PARENT[joint] != above:
                    what = (
                        f"'{path}' is below {NAMES[above][0]}, and in SMPL below"
                        f" {NAMES[PARENT[joint]][0]}"
                    )
                    raise InputError(what, self._path, "use a scene with all bodies of SMPL")
                number[row] = len(bodies)
                bodies.append(_Body(path, joint, number[parent], rest[path]))
                nearest.append(joint if joint >= 0 else above)
                pending = True
        return bodies

    def _turn(self, bodies: Sequence[_Body]) -> np.ndarray:
        """The rotation xyzw of SMPL's axes to those of the scene at rest. Raises InputError where
        the scene is not in SMPL's zero pose."""
        place = {body.joint: body.rest[:3] for body in bodies if body.joint >= 0}
        found = [bone for bone in BONES if {JOINT_OF[bone[0]], JOINT_OF[bone[1]]} <= place.keys()]
        of_scene = np.array([place[JOINT_OF[b]] - place[JOINT_OF[a]] for a, b, _ in found])
        directions = np.array([direction for *_, direction in found])
        turn, angle = resting_turn(directions, of_scene, np.array([0.0, 0.0, 0.0, 1.0]))
        if angle > OTHER_REST:
            what = (
                "the scene at rest is not in the zero pose of SMPL, with stretched arms and legs:"
                f" a bone is {np.degrees(angle):.0f} degrees off"
            )
            raise InputError(what, self._path, "use a scene of that rest pose, as SMPLSim writes")
        return turn

    @np.errstate(over="ignore", invalid="ignore")  # poses beyond floats are refused when read
    def _poses(
        self, bodies: Sequence[_Body], turn: np.ndarray, options: RecordingOptions
    ) -> np.ndarray:
        """float64[F, B, 7], xyzw: poses of the bodies in the scene's world."""
        upright = np.array([0.0, 0.0, 0.0, *UP_TURN[options.up_axis or "z"]])
        back = np.array([0.0, 0.0, 0.0, *(-turn[:3]), turn[3]])
        joints = self._joint_turns()
        poses = np.empty((self._frames, len(bodies), 7))
        for number, body in enumerate(bodies):
            if body.parent >= 0:
                above = bodies[body.parent].rest
                poses[:, number] = compose_poses(poses[:, body.parent], _relative(above, body.rest))
            else:
                trans = self.content.array("trans").astype(np.float64)
                place = np.zeros((self._frames, 7))
                place[:, :3] = trans + self._offset(body.rest, options)
                place[:, 6] = 1.0
                poses[:, number] = compose_poses(upright, place)
            if body.joint >= 0:
                frame = np.array([0.0, 0.0, 0.0, *body.rest[3:]])
                turned = np.zeros((self._frames, 7))
                turned[:, 3:] = joints[:, body.joint]
                turned = compose_poses(compose_poses(upright, turned), compose_poses(back, frame))
                poses[:, number, 3:] = turned[:, 3:]
        return poses

    def _joint_turns(self) -> np.ndarray:
        """float64[F, 24, 4], xyzw: rotations of the joints' frames from their zero pose in the
        file's world. Those of hands that the file lacks are their wrists'."""
        vectors = self.content.array("poses").astype(np.float64)[:, : 3 * self._joints]
        local = np.zeros((self._frames, len(NAMES), 7))
        local[..., 6] = 1.0
        vectors = vectors.reshape(self._frames, self._joints, 3)
        local[:, : self._joints, 3:] = quaternions_of(vectors)
        for joint in range(1, len(NAMES)):
            local[:, joint] = compose_poses(local[:, PARENT[joint]], local[:, joint])
        return local[..., 3:]

    def _offset(self, rest: np.ndarray, options: RecordingOptions) -> np.ndarray:
        """float64[3]: the pelvis of the body model at rest, in the model's axes [m]: --root-offset,
        or where the scene has its pelvis. Raises InputError where the scene has it elsewhere."""
        if options.root_offset:
            try:
                offset = np.array([float(text) for text in options.root_offset.split(",")])
            except ValueError:
                offset = np.zeros(0)
            if offset.shape != (3,) or not np.isfinite(offset).all():
                what = f"'{options.root_offset}' is no position"
                raise InputError(what, "--root-offset", "write X,Y,Z in metres")
            return offset
        if length(rest[:3] - np.array(PELVIS)) > PELVIS_RANGE:
            what = (
                "the scene has its pelvis elsewhere than the body model at rest, so that its"
                " position beside trans is not known"
            )
            fix = (
                "give --root-offset, the pelvis of the body model at rest: "
                + ",".join(f"{x:g}" for x in PELVIS)
                + " of the mean body of SMPL"
            )
            raise InputError(what, self._path, fix)
        return rest[:3]

    def _notes(self, bodies: Sequence[_Body]) -> tuple[str, ...]:
        """Warnings of bodies without a joint, and of recorded joints without a body."""
        rigid = [body.path for body in bodies if body.joint < 0]
        has = {body.joint for body in bodies}
        absent = [names[0] for k, names in enumerate(NAMES[: self._joints]) if k not in has]
        notes = []
        if rigid:
            count = plural(len(rigid), "body", "bodies")
            notes.append(f"{self._path}: {count} without a joint of SMPL: {some_names(rigid)}")
        if absent:
            count = plural(len(absent), "recorded joint")
            notes.append(f"{self._path}: {count} without a body: {some_names(absent)}")
        return tuple(notes)


def quaternions_of(vectors: np.ndarray) -> np.ndarray:
    """float64[..., 4], xyzw, unit: rotations by vectors float64[..., 3], whose direction is the
    axis and whose length the angle [rad]; not finite where a vector is not."""
    angle = np.sqrt((vectors * vectors).sum(axis=-1))
    finite = np.isfinite(angle)
    sine, cosine = sincos(0.5 * np.where(finite, angle, 0.0))
    small = angle < 1e-8  # the sine of half an angle is half of it to 1e-17
    factor = np.where(small, 0.5, sine / np.where(small, 1.0, angle))
    out = np.concatenate([vectors * factor[..., None], cosine[..., None]], axis=-1)
    out[~finite] = np.nan
    return out


def _relative(above: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """float64[7]: a resting pose in the frame of another."""
    inverse = np.array([0.0, 0.0, 0.0, *(-above[3:6]), above[6]])
    moved = rest.copy()
    moved[:3] -= above[:3]
    return compose_poses(inverse, moved)
