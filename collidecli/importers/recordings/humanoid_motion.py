"""Motions of humanoids from motion trackers and retargeting tools: body poses, or a root pose and joint positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.articulation_motion import (
    ORDERS,
    ArticulationMotion,
    RecordedArticulation,
    moved_articulation,
    quaternion_order,
)
from collidecli.importers.recordings.content import CSV, NPZ, Content
from collidecli.importers.recordings.humanoid_table import MotionTable, holds_motion, is_table, read_table
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.recordings.times import checked_time, rate_time
from collidecli.scene.episodes import Episodes
from collidecli.scene.kinematics import (
    JointColumns,
    coordinate_names,
    last_element,
)
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import RecordingOptions
from collidecli.scene.text_format import some_names
from collidecli.storage.file_hash import RecordedInFile
from collidecli.storage.trajectories.bodies import BodyMatch

ORDER_HINT = "; Unitree's LAFAN1 retargeting files are xyzw, those of Isaac Lab 2 are wxyz, of Isaac Lab 3 xyzw"


class HumanoidRecording(Recording):
    """Body poses, or a root pose and joint positions, of one world."""

    NAME = "humanoid-motion"
    LABEL = "humanoid motions (.npz: body_pos_w, body_quat_w, or root_pos, root_quat, joint_pos; .csv: root and joints)"
    OPTIONS = ("body_names", "joint_names", "quaternion_order", "fps")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._table = read_table(content)

    @staticmethod
    def recognise(content: Content) -> bool:
        """A .npz with the arrays of a motion, or text in columns of which the first seven are a root's pose."""
        return (content.storage == NPZ and holds_motion(content.arrays)) or (
            content.storage == CSV and is_table(content)
        )

    def describe(self) -> RecordingDescription:
        table = self._table
        needs = [] if table.order else ["--quaternion-order"]
        needs += [] if table.fps or table.time is not None else ["--fps"]
        joints = 0 if table.joints is None else table.joints.shape[1]
        if table.body_position is not None and not table.body_names:
            needs.append("--body-names" + (", or --joint-names" if joints else ""))
        elif table.body_position is None and joints and not table.joint_names:
            needs.append("--joint-names")
        time = table.time if table.time is not None else np.arange(table.frames) / table.fps if table.fps else None
        return RecordingDescription(
            frames=table.frames,
            worlds=1,
            start=None if time is None else float(time[0]),
            end=None if time is None else float(time[-1]),
            bodies=table.body_names,
            coordinates=joints,
            quaternion_order=table.order,
            needs=tuple(needs),
            details=(("joints", some_names(table.joint_names)),) if table.joint_names else (),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The motion in the world frame. Body poses, where they are recorded, take precedence over joint positions.

        Bodies without names are in Isaac Lab's order, the root first; with joint names, only the root's pose is used.
        """
        table, path = self._table, self.content.path
        order = ORDERS[quaternion_order(table.order, options, path, ORDER_HINT)]
        if options.fps is None and table.time is not None:
            time = checked_time(table.time, f"{path}: time")
        else:
            time = rate_time(table.frames, table.fps if options.fps is None else options.fps, path)
        if table.body_position is not None and table.body_rotation is not None:
            where = table.locations["body_position"]
            names = _names(table.body_names, options.body_names, "body", where)
            if names or table.joints is None or not (table.joint_names or options.joint_names):
                poses = np.concatenate([table.body_position, table.body_rotation], axis=2)
                return BodyPoseMotion(table, target.model, names, poses[..., order], time)
            note = f"{where}: its bodies have no names; the first is taken as the root"
            root = np.concatenate([table.body_position[:, 0], table.body_rotation[:, 0]], axis=1)
            return _articulated(table, target, options, root[:, order], time, where, (note,))
        assert table.root_position is not None
        assert table.root_rotation is not None
        root = np.concatenate([table.root_position, table.root_rotation], axis=1)
        return _articulated(table, target, options, root[:, order], time, table.locations["root_position"], ())


class BodyPoseMotion(RecordedInFile):
    """Poses of named bodies in one world; see `scene.motion.Motion`."""

    def __init__(
        self, table: MotionTable, model: Model, names: Sequence[str], poses: np.ndarray, time: np.ndarray
    ) -> None:
        self._path, self._where = table.path, table.locations["body_position"]
        self._dataset = self._where.removeprefix(f"{table.path}: ")
        if len(names) != poses.shape[1]:
            raise InputError(
                f"{poses.shape[1]} bodies are recorded, and {len(names) or 'no'} names are given",
                self._where,
                f"give --body-names in the recorded order; the scene's bodies are {some_names(model.bodies.path)}",
            )
        self.time, self.step = time, np.arange(len(time), dtype=np.int64)
        self.world_count, self.float_type = 1, poses.dtype
        self._poses, self.kinematics_seconds = poses, 0.0
        self.episodes: Episodes | None = None
        self._match = BodyMatch([_body_path(name, model) for name in names], model, self._where)
        self.warnings = tuple(self._match.warnings)

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), 1, B, 7], see `Motion.read`."""
        return self._match.checked(self._poses[_rows(frames), None], frames, self._path, self._dataset)

    def close(self) -> None:
        pass


def _articulated(
    table: MotionTable,
    target: Target,
    options: RecordingOptions,
    root: np.ndarray,
    time: np.ndarray,
    root_location: str,
    notes: tuple[str, ...],
) -> ArticulationMotion:
    where = table.locations.get("joints", root_location)
    joints = np.zeros((table.frames, 0)) if table.joints is None else np.asarray(table.joints, np.float64)
    width = joints.shape[1]
    scene = target.articulated(table.path)
    names = _names(table.joint_names, options.joint_names, "joint", where) if width else ()
    jointed = [articulation for articulation in scene.articulations if articulation.joints]
    if len(names) != width:
        raise InputError(
            f"{width} joints are recorded, and {len(names) or 'no'} names are given",
            where,
            "give --joint-names in the recorded order; the scene's are "
            + (", ".join(name for articulation in jointed for name in coordinate_names(articulation)) or "none"),
        )
    articulation = moved_articulation(scene, names, where)
    rows = np.asarray(root, np.float64)
    recorded = RecordedArticulation(
        articulation,
        JointColumns(articulation, names, where),
        lambda frames: rows[_rows(frames)],
        lambda frames: joints[_rows(frames)],
        root_location,
        where,
    )
    return ArticulationMotion(table.path, target, [[recorded]], np.zeros((1, 3)), time, (*scene.warnings, *notes))


def _rows(frames: range) -> slice:
    return slice(frames.start, max(frames.start, frames.stop), frames.step)


def _names(stored: tuple[str, ...], given: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """The names in the file, else those of the option. Raises InputError where both exist and differ."""
    if stored and given and stored != given:
        raise InputError(f"the recording contains other names of its {kind} columns", where, f"remove --{kind}-names")
    return stored or given


def _body_path(name: str, model: Model) -> str:
    """The path of the scene's body of this name, or of the only one whose path ends in it; else the name itself."""
    paths = list(dict.fromkeys(model.bodies.path))
    ending = [path for path in paths if last_element(path) == name]
    return ending[0] if name not in paths and len(ending) == 1 else name
