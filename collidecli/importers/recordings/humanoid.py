"""Arrays of a humanoid motion file: .npz files by the names of their arrays, .csv files by their columns."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings import coordinates, recording
from collidecli.scene.kinematics import JointColumns, coordinate_names, last_element
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.h5_files import text_of
from collidecli.storage.input_files import CSV, NPZ
from collidecli.storage.trajectory_motion import BodyMatch, RecordedInFile
from collidecli.texts import plural, some_names

BODY_KEYS = (("body_pos_w", "body_quat_w"), ("body_positions", "body_rotations"))
ROOT_POSITION = ("root_pos", "root_trans")
JOINTS = ("joint_pos", "dof_pos", "dof_positions")
BODY_NAMES, JOINT_NAMES = ("body_names",), ("joint_names", "dof_names")
ORDER_SUFFIXES = ("_xyzw", "_wxyz")
TIMES = ("time", "timestamp", "t")
ROOT_COLUMNS = 7

_POSITION = re.compile(r"(.*[_.\s])?(pos|position|trans|translation|p|t)?[_.\s]?[xyz]", re.IGNORECASE)
_ROTATION = re.compile(r"(.*[_.\s])?(q|quat|quaternion|rot|rotation|orientation)[_.\s]?[wxyz]", re.IGNORECASE)


@dataclass(frozen=True)
class MotionTable:
    """The content of a motion file; None or () for what the file does not contain.

    body_position: float[F, B, 3], body_rotation: float[F, B, 4] of body_names, in the world.
    root_position: float[F, 3], root_rotation: float[F, 4]. joints: float[F, k] of joint_names.
    order: of the quaternions, "" where the file does not define it. fps: frames per second. time: float64[F] [s].
    locations: file and array of each field, for messages.
    """

    path: str
    frames: int
    body_position: np.ndarray | None = None
    body_rotation: np.ndarray | None = None
    root_position: np.ndarray | None = None
    root_rotation: np.ndarray | None = None
    joints: np.ndarray | None = None
    body_names: tuple[str, ...] = ()
    joint_names: tuple[str, ...] = ()
    order: str = ""
    fps: float | None = None
    time: np.ndarray | None = None
    locations: dict[str, str] = field(default_factory=dict)


def holds_motion(arrays: dict[str, recording.ArrayHeader]) -> bool:
    """Whether a .npz file has the arrays of a motion: poses of bodies, or of a root, be they columns before joints."""
    bodies = any(position in arrays and rotation in arrays for position, rotation in BODY_KEYS)
    joints, names = _first(arrays, JOINTS), _first(arrays, JOINT_NAMES)
    if joints and names and arrays[joints].shape[1:] == (ROOT_COLUMNS + int(np.prod(arrays[names].shape)),):
        return True
    return bodies or (_first(arrays, ROOT_POSITION) is not None and _rotation_key(arrays) is not None)


def _npz(path: str, headers: dict[str, recording.ArrayHeader]) -> MotionTable:
    """Raises InputError: arrays that are pickled, missing, of another type or shape, or of different frame counts."""
    keys: dict[str, str | None] = {
        "root_position": _first(headers, ROOT_POSITION),
        "root_rotation": _rotation_key(headers),
        "joints": _first(headers, JOINTS),
    }
    for position, rotation in BODY_KEYS:
        if position in headers and rotation in headers:
            keys |= {"body_position": position, "body_rotation": rotation}
            break
    wanted = {
        "body_position": ["frames", "bodies", 3],
        "body_rotation": ["frames", "bodies", 4],
        "root_position": ["frames", 3],
        "root_rotation": ["frames", 4],
        "joints": ["frames", "joints"],
    }
    arrays: dict[str, np.ndarray] = {}
    locations = {}
    for name, key in keys.items():
        if key is not None:
            locations[name] = f"{path}: {key}"
            header, shape = headers[key], wanted[name]
            if not header.is_float or len(header.shape) != len(shape) or shape[-1] not in ("joints", header.shape[-1]):
                what = f"is {header}, not floats [{', '.join(map(str, shape))}]"
                raise InputError(what, f"{path}: {key}", "save it in that shape")
            arrays[name] = recording.read_npz(path, key)
    names = _texts(path, headers, JOINT_NAMES)
    joints = arrays.get("joints")
    if joints is not None and "root_position" not in arrays and names and joints.shape[1] == ROOT_COLUMNS + len(names):
        arrays |= {"root_position": joints[:, :3], "root_rotation": joints[:, 3:7], "joints": joints[:, 7:]}
        locations |= dict.fromkeys(("root_position", "root_rotation"), locations["joints"])
    frames = {locations[name]: len(array) for name, array in arrays.items()}
    if len(set(frames.values())) > 1:
        shown = ", ".join(f"{where.removeprefix(f'{path}: ')} {count}" for where, count in frames.items())
        raise InputError(f"the arrays have different numbers of frames: {shown}", path, "save them again")
    if "body_position" in arrays and arrays["body_position"].shape[1] != arrays["body_rotation"].shape[1]:
        what = "positions and rotations are of different numbers of bodies"
        raise InputError(what, locations["body_position"], "save them again")
    count = next(iter(frames.values()))
    if not count:
        raise InputError("the recording has no frames", path, "record at least one")
    rotation = keys["root_rotation"]
    suffix = next((s[1:] for s in ORDER_SUFFIXES if rotation is not None and rotation.endswith(s)), "")
    order = _texts(path, headers, ("quaternion_order", "quat_order"))
    return MotionTable(
        path=path,
        frames=count,
        **arrays,
        body_names=_texts(path, headers, BODY_NAMES),
        joint_names=names,
        order=order[0] if order else suffix,
        fps=_fps(path, headers),
        locations=locations,
    )


def _texts(path: str, headers: dict[str, recording.ArrayHeader], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Names in an array of strings, or one string; () where there is none."""
    key = _first(headers, keys)
    if key is None:
        return ()
    if headers[key].dtype.kind not in "US" or len(headers[key].shape) > 1:
        raise InputError(f"is {headers[key]}, not names", f"{path}: {key}", "save it as an array of strings")
    return tuple(map(text_of, np.atleast_1d(recording.read_npz(path, key))))


def _fps(path: str, headers: dict[str, recording.ArrayHeader]) -> float | None:
    if "fps" not in headers:
        return None
    header = headers["fps"]
    if header.dtype.kind not in "iuf" or int(np.prod(header.shape, dtype=object)) != 1:
        raise InputError(f"is {header}, not one number", f"{path}: fps", "save the rate as one number")
    return float(recording.read_npz(path, "fps").reshape(-1)[0])


def _rotation_key(arrays: dict[str, recording.ArrayHeader]) -> str | None:
    return _first(arrays, tuple(key + suffix for key in ("root_quat", "root_rot") for suffix in ("", *ORDER_SUFFIXES)))


def _first(arrays: dict[str, recording.ArrayHeader], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in arrays), None)


def _csv(path: str) -> MotionTable:
    """One row per frame: the root's x y z, its quaternion, the joints; the first line may be a header."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        first = tuple(name.strip() for name in file.readline().split(","))
    header = not _numbers(first)
    rows = _table_rows(path, header, len(first))
    if not len(rows):
        raise InputError("the recording has no frames", path, "record at least one")
    start, order, time = 0, "", None
    if header:
        root = _root_columns(first)
        if root is None:
            what = f"the columns do not begin with a root's x y z and quaternion: {', '.join(first[:8])}"
            raise InputError(what, f"{path}, line 1", "name them x, y, z, qx, qy, qz, qw and then the joints")
        start, order = root
        time = rows[:, 0] if start else None
    end = start + ROOT_COLUMNS
    names = {"root_position": "root's position", "root_rotation": "root's rotation", "joints": "joints"}
    return MotionTable(
        path=path,
        frames=len(rows),
        root_position=rows[:, start : start + 3],
        root_rotation=rows[:, start + 3 : end],
        joints=rows[:, end:],
        joint_names=first[end:] if header else (),
        order=order,
        time=time,
        locations={key: f"{path}: {name}" for key, name in names.items()},
    )


def _table_rows(path: str, header: bool, width: int) -> np.ndarray:
    """float64[F, width]."""
    if os.path.getsize(path) and width < ROOT_COLUMNS:
        raise InputError(f"a row has {width} numbers", path, "write the 7 numbers of the root's pose, then the joints")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about a file without rows, which the caller reports
            rows = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2, encoding="utf-8-sig", comments=None)
    except (ValueError, UnicodeDecodeError) as error:
        what = f"the rows cannot be read: {str(error).splitlines()[0]}"
        raise InputError(what, path, "write the same number of values in each row") from error
    if rows.size and rows.shape[1] != width:
        raise InputError(f"a row has {rows.shape[1]} numbers, and the first line {width}", path, "correct the rows")
    return rows


def _numbers(columns: tuple[str, ...]) -> bool:
    try:
        return bool([float(name) for name in columns])
    except ValueError:
        return False


def _root_columns(columns: tuple[str, ...]) -> tuple[int, str] | None:
    """First of the root's seven columns (1 after a time column, else 0) and its quaternion order; None without them."""
    start = 1 if columns and columns[0].lower() in TIMES else 0
    position, rotation = columns[start : start + 3], columns[start + 3 : start + ROOT_COLUMNS]
    letters = "".join(name[-1:].lower() for name in rotation)
    if "".join(name[-1:].lower() for name in position) != "xyz" or letters not in ("xyzw", "wxyz"):
        return None
    named = all(_POSITION.fullmatch(name) for name in position) and all(_ROTATION.fullmatch(name) for name in rotation)
    return (start, letters) if named else None


# Motions of humanoids from motion trackers and retargeting tools: body poses, or a root pose and joint positions.

ORDER_HINT = "; Unitree's LAFAN1 retargeting files are xyzw, those of Isaac Lab 2 are wxyz, of Isaac Lab 3 xyzw"


class HumanoidRecording(recording.Recording):
    """Body poses, or a root pose and joint positions, of one world."""

    NAME = "humanoid-motion"
    LABEL = "humanoid motions (.npz: body_pos_w, body_quat_w, or root_pos, root_quat, joint_pos; .csv: root and joints)"
    OPTIONS = ("body_names", "joint_names", "quaternion_order", "fps", "strict_bodies", "prefer")

    def __init__(self, content: recording.Content) -> None:
        self.content = content
        self._table = _npz(content.path, content.arrays) if content.storage == NPZ else _csv(content.path)

    @staticmethod
    def recognise(content: recording.Content) -> bool:
        """A .npz with the arrays of a motion, or text in columns of which the first seven are a root's pose."""
        if content.storage == CSV:
            columns = content.columns
            return len(columns) >= ROOT_COLUMNS and (_numbers(columns) or _root_columns(columns) is not None)
        return content.storage == NPZ and holds_motion(content.arrays)

    def describe(self) -> recording.RecordingDescription:
        table = self._table
        needs = [] if table.order else ["--quaternion-order"]
        needs += [] if table.fps or table.time is not None else ["--fps"]
        joints = 0 if table.joints is None else table.joints.shape[1]
        if table.body_position is not None and not table.body_names:
            needs.append("--body-names" + (", or --joint-names" if joints else ""))
        elif table.body_position is None and joints and not table.joint_names:
            needs.append("--joint-names")
        time = table.time if table.time is not None else np.arange(table.frames) / table.fps if table.fps else None
        return recording.RecordingDescription(
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

    def motion(self, target: recording.Target, options: RecordingOptions) -> Motion:
        """The motion in the world frame. Body poses, where they are recorded, take precedence over joint positions.

        Bodies without names are in Isaac Lab's order, the root first; with joint names, only the root's pose is used.
        """
        table, path = self._table, self.content.path
        order = coordinates.ORDERS[coordinates.quaternion_order(table.order, options, path, ORDER_HINT)]
        if options.fps is None and table.time is not None:
            time = recording.checked_time(table.time, f"{path}: time")
        else:
            time = recording.rate_time(table.frames, table.fps if options.fps is None else options.fps, path)
        by_joints = options.prefer == "joints" and table.joints is not None
        positions, rotations = table.body_position, table.body_rotation
        if positions is not None and rotations is not None and not (by_joints and table.root_position is not None):
            where = table.locations["body_position"]
            names = _names(table.body_names, options.body_names, "body", where)
            no_joints = table.joints is None or not (table.joint_names or options.joint_names)
            if no_joints or (names and not by_joints):
                poses = np.concatenate([positions, rotations], axis=2)
                return BodyPoseMotion(table, target.model, names, poses[..., order], time, options.strict_bodies)
            paths = [_body_path(name, target.model) for name in names]
            first = next((row for row, path in enumerate(paths) if path in target.model.bodies.path), 0)
            what = f"its body {names[first]}" if names else "its bodies have no names; the first"
            root = np.concatenate([positions[:, first], rotations[:, first]], axis=1)
            notes = (f"{where}: {what} is taken as the root",)
        else:
            assert table.root_position is not None
            assert table.root_rotation is not None
            root, notes = np.concatenate([table.root_position, table.root_rotation], axis=1), ()
            where = table.locations["root_position"]
        return _articulated(table, target, options, root[:, order], time, where, notes)


class BodyPoseMotion(RecordedInFile):
    """Poses of named bodies in one world; see `scene.motion.Motion`."""

    def __init__(
        self, table: MotionTable, model: Model, names: Sequence[str], poses: np.ndarray, time: np.ndarray, strict: bool
    ) -> None:
        self._path, self._where = table.path, table.locations["body_position"]
        self._dataset = self._where.removeprefix(f"{table.path}: ")
        if len(names) != poses.shape[1]:
            what = f"{poses.shape[1]} bodies are recorded, and {len(names) or 'no'} names are given"
            fix = f"give --body-names in the recorded order; the scene's bodies are {some_names(model.bodies.path)}"
            raise InputError(what, self._where, fix)
        super().__init__(time)
        paths = [_body_path(name, model) for name in names]
        unknown = [row for row, path in enumerate(paths) if path not in set(model.bodies.path)]
        if unknown and not strict and len(unknown) < len(paths):
            kept = np.delete(np.arange(len(paths)), unknown)
            paths, poses = [paths[row] for row in kept], poses[:, kept]
        self._poses, self.float_type = poses, poses.dtype
        self._match = BodyMatch(paths, model, self._where)
        self.warnings = tuple(self._match.warnings)
        if len(paths) < len(names):
            left_out = plural(len(unknown), "recorded body", "recorded bodies")
            self.warnings += (f"{left_out} not in the scene left out: {some_names([names[row] for row in unknown])}",)

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), 1, B, 7], see `Motion.read`."""
        return self._match.checked(_rows(self._poses, frames)[:, None], frames, self._path, self._dataset)


def _articulated(
    table: MotionTable,
    target: recording.Target,
    options: RecordingOptions,
    root: np.ndarray,
    time: np.ndarray,
    root_location: str,
    notes: tuple[str, ...],
) -> coordinates.ArticulationMotion:
    where = table.locations.get("joints", root_location)
    joints = np.zeros((table.frames, 0)) if table.joints is None else np.asarray(table.joints, np.float64)
    width = joints.shape[1]
    scene = target.articulated(table.path)
    names = _names(table.joint_names, options.joint_names, "joint", where) if width else ()
    known = [name for articulation in scene.articulations for name in coordinate_names(articulation)]
    coordinates.check_name_count(width, names, "joints", known, where)
    articulation = coordinates.moved_articulation(scene, names, where)
    rows, columns = np.asarray(root, np.float64), JointColumns(articulation, names, where)
    roots_at, joints_at = partial(_rows, rows), partial(_rows, joints)
    recorded = coordinates.RecordedArticulation(articulation, columns, roots_at, joints_at, root_location, where)
    return coordinates.ArticulationMotion(
        table.path, target, [[recorded]], np.zeros((1, 3)), time, (*scene.warnings, *notes)
    )


def _rows(array: np.ndarray, frames: range) -> np.ndarray:
    return array[frames.start : max(frames.start, frames.stop) : frames.step]


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
