"""Tables of a humanoid motion from arrays and CSV: body poses, or a root pose and joints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.array_files import ArrayHeader
from collidecli.importers.recordings.articulations import ORDERS
from collidecli.importers.recordings.column_titles import is_of_root
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.root_columns import root_groups
from collidecli.importers.recordings.text_columns import TextColumns
from collidecli.storage.h5_files import text_of
from collidecli.wording import some_names

BODY_KEYS = (("body_pos_w", "body_quat_w"), ("body_positions", "body_rotations"))
ROOT_POSITION = ("root_pos", "root_trans")
JOINTS = ("joint_pos", "dof_pos", "dof_positions")
BODY_NAMES = ("body_names",)
JOINT_NAMES = ("joint_names", "dof_names")
ORDER_SUFFIXES = ("_xyzw", "_wxyz")
TIMES = ("time", "timestamp", "t")
ROOT_COLUMNS = 7


@dataclass(frozen=True)
class MotionTable:
    """The content of a motion file; None or () for what the file does not contain.

    body_position: float[F, B, 3], body_rotation: float[F, B, 4] of body_names, in the world.
    root_position: float[F, 3], root_rotation: float[F, 4]. joints: float[F, k] of joint_names.
    coordinates: float[F, n] of MuJoCo's coordinates with names beside them, coordinate_names, as
    they are stored. order: of the quaternions, "" where the file does not define it. fps: frames
    per second. time: float64[F] [s], in a damaged file of another length. notes: warnings.
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
    coordinates: np.ndarray | None = None
    coordinate_names: tuple[str, ...] = ()
    order: str = ""
    fps: float | None = None
    time: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    locations: dict[str, str] = field(default_factory=dict)

    @property
    def has_rotations(self) -> bool:
        return self.body_rotation is not None or self.root_rotation is not None


HOLOMOTION_PREFIXES = ("robot_", "ref_", "")
BODIES_OF_HOLOMOTION = {
    "body_position": "global_translation",
    "body_rotation": "global_rotation_quat",
}
JOINTS_OF_HOLOMOTION = "dof_pos"
METADATA = "metadata"
RATE_OF_HOLOMOTION = "motion_fps"
"""Arrays of HoloMotion (docs/holomotion_motion_file_spec.md of the repository at 8d05b46c), whose
quaternions are xyzw. ft_ref_ begins the names of the motion after a filter, which is not used."""
COORDINATES = "qpos"
"""MuJoCo's coordinates; with names of joints beside them they are columns by name."""
GMR_ENTRIES = ("local_body_pos", "link_body_list")
RATES = ("fps", "frequency")
"""Arrays of one number, the frames per second."""
FREE_JOINT_COLUMNS = 6
"""How many more coordinates than names a free joint has."""


def holds_motion(arrays: dict[str, ArrayHeader]) -> bool:
    """Whether a .npz file has the arrays of a motion: poses of bodies, or of a root, be they
    columns before joints."""
    bodies = any(position in arrays and rotation in arrays for position, rotation in BODY_KEYS)
    joints = _joints_key(arrays)
    names = _first(arrays, JOINT_NAMES)
    if holomotion_prefix(arrays) is not None:
        return True
    if joints == COORDINATES or (
        joints
        and names
        and arrays[joints].shape[1:] == (ROOT_COLUMNS + int(np.prod(arrays[names].shape)),)
    ):
        return True
    return bodies or (
        _first(arrays, ROOT_POSITION) is not None and _rotation_key(arrays) is not None
    )


def pose_arrays(headers: Mapping[str, ArrayHeader]) -> tuple[str, ...]:
    """The arrays of poses of bodies and of a root that are recognised by name."""
    root = (_first(headers, ROOT_POSITION), _rotation_key(headers))
    pairs = [pair for pair in (*BODY_KEYS, root) if all(name in headers for name in pair)]
    return tuple(name for pair in pairs for name in pair if name)


def _keys_of_fields(headers: dict[str, ArrayHeader]) -> dict[str, str | None]:
    """The array of each field of a `MotionTable`; None for a field that the file lacks."""
    keys: dict[str, str | None] = {
        "root_position": _first(headers, ROOT_POSITION),
        "root_rotation": _rotation_key(headers),
        "joints": _joints_key(headers),
    }
    prefix = holomotion_prefix(headers)
    if prefix is not None:
        names = {"joints": JOINTS_OF_HOLOMOTION, **BODIES_OF_HOLOMOTION}
        keys |= {
            field: f"{prefix}{name}" if f"{prefix}{name}" in headers else None
            for field, name in names.items()
        }
        return keys
    for position, rotation in BODY_KEYS:
        if position in headers and rotation in headers:
            keys |= {"body_position": position, "body_rotation": rotation}
            break
    return keys


def _checked_fields(
    path: str, headers: dict[str, ArrayHeader], keys: dict[str, str | None]
) -> dict[str, ArrayHeader]:
    """The header of each field that the file has. Raises InputError for another type or shape."""
    wanted = {
        "body_position": ["frames", "bodies", 3],
        "body_rotation": ["frames", "bodies", 4],
        "root_position": ["frames", 3],
        "root_rotation": ["frames", 4],
        "joints": ["frames", "joints"],
    }
    fields = dict[str, ArrayHeader]()
    for name, key in keys.items():
        if key is not None:
            header = headers[key]
            shape = wanted[name]
            if (
                not header.is_float
                or len(header.shape) != len(shape)
                or shape[-1] not in ("joints", header.shape[-1])
            ):
                what = f"is {header}, not floats [{', '.join(map(str, shape))}]"
                raise InputError(what, f"{path}: {key}", "save it in that shape")
            fields[name] = header
    return fields


def _checked_frame_count(
    path: str, fields: dict[str, ArrayHeader], locations: dict[str, str]
) -> int:
    """The number of frames. Raises InputError for arrays of several, for none, and for different
    numbers of bodies."""
    frames = {locations[name]: header.shape[0] for name, header in fields.items()}
    if len(set(frames.values())) > 1:
        shown = ", ".join(
            f"{where.removeprefix(f'{path}: ')} {count}" for where, count in frames.items()
        )
        raise InputError(
            f"the arrays have different numbers of frames: {shown}", path, "save them again"
        )
    if (
        "body_position" in fields
        and fields["body_position"].shape[1] != fields["body_rotation"].shape[1]
    ):
        what = "positions and rotations are of different numbers of bodies"
        raise InputError(what, locations["body_position"], "save them again")
    count = next(iter(frames.values()))
    if not count:
        raise InputError("the recording has no frames", path, "record at least one")
    return count


def array_table(content: Content) -> MotionTable:
    """The table of a file of arrays by name. Raises InputError: arrays that are missing, of another
    type or shape, or of different frame counts."""
    path = content.path
    headers = content.arrays
    keys = _keys_of_fields(headers)
    fields = _checked_fields(path, headers, keys)
    locations = {name: f"{path}: {keys[name]}" for name in fields}
    count = _checked_frame_count(path, fields, locations)
    arrays = {name: content.array(str(keys[name])) for name in fields}
    names = _texts(content, JOINT_NAMES)
    stored_names = names
    is_mujoco = keys["joints"] == COORDINATES and "root_position" not in arrays
    if is_mujoco:
        names = _names_of_columns(names, arrays["joints"].shape[1], locations["joints"])
    joints = arrays.get("joints")
    joints_as_stored = joints
    has_root = (
        joints is not None
        and "root_position" not in arrays
        and bool(names)
        and joints.shape[1] == ROOT_COLUMNS + len(names)
    )
    if joints is not None and has_root:
        arrays |= {
            "root_position": joints[:, :3],
            "root_rotation": joints[:, 3:7],
            "joints": joints[:, 7:],
        }
        locations |= dict.fromkeys(("root_position", "root_rotation"), locations["joints"])
    rotation = keys["root_rotation"]
    suffix = next(
        (s[1:] for s in ORDER_SUFFIXES if rotation is not None and rotation.endswith(s)), ""
    )
    order = _texts(content, ("quaternion_order", "quat_order"))
    if not order and holomotion_prefix(headers) is not None:
        order = ("xyzw",)
    return MotionTable(
        path=path,
        frames=count,
        **arrays,
        body_names=_texts(content, BODY_NAMES),
        joint_names=names,
        coordinates=joints_as_stored if is_mujoco else None,
        coordinate_names=stored_names if is_mujoco else (),
        order=order[0]
        if order
        else "wxyz"
        if is_mujoco and has_root
        else suffix or gmr_order(content),
        fps=_holomotion_rate(content) or stored_rate(content),
        time=_times(content),
        notes=_holomotion_notes(path, headers),
        locations=locations,
    )


def gmr_order(content: Content, motion: str = "") -> str:
    """ "xyzw" of a motion of GMR, which has two entries besides, of arrays or None; else "".

    motion: the part of the names before those of the motion. Source: YanjieZe/GMR 0b22e42,
    scripts/smplx_to_robot.py.
    """
    entries = (f"{motion}{name}" for name in GMR_ENTRIES)
    is_known = all(name in content.arrays or name in content.left_out for name in entries)
    return "xyzw" if is_known and content.values else ""


def holomotion_prefix(headers: dict[str, ArrayHeader]) -> str | None:
    """What the names of HoloMotion's arrays begin with: the robot's own states before the motion
    that it follows; None for another file."""
    for prefix in HOLOMOTION_PREFIXES:
        if all(prefix + name in headers for name in BODIES_OF_HOLOMOTION.values()):
            return prefix
    return None


def _holomotion_notes(path: str, headers: dict[str, ArrayHeader]) -> tuple[str, ...]:
    """A warning where a file has the motion of several sources."""
    used = holomotion_prefix(headers)
    joints = [name for name in headers if name.endswith(JOINTS_OF_HOLOMOTION)]
    if used is None or len(joints) < 2:
        return ()
    others = [name for name in joints if name != used + JOINTS_OF_HOLOMOTION]
    return (f"{path}: the arrays {used}* are used, not those of {some_names(others)}",)


def _holomotion_rate(content: Content) -> float | None:
    """motion_fps in the array `metadata`, a text of JSON; None without it."""
    if holomotion_prefix(content.arrays) is None or METADATA not in content.arrays:
        return None
    texts = _texts(content, (METADATA,))
    try:
        return float(json.loads(texts[0])[RATE_OF_HOLOMOTION])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def _texts(content: Content, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Names in an array of strings, or one string; () where there is none."""
    headers = content.arrays
    key = _first(headers, keys)
    if key is None:
        return ()
    if headers[key].dtype.kind not in "US" or len(headers[key].shape) > 1:
        raise InputError(
            f"is {headers[key]}, not names",
            f"{content.path}: {key}",
            "save it as an array of strings",
        )
    return tuple(map(text_of, np.atleast_1d(content.array(key))))


def stored_rate(content: Content) -> float | None:
    """Frames per second that a file of arrays has; None without them. Raises InputError where it is
    not one number."""
    headers = content.arrays
    key = _first(headers, RATES)
    if key is None:
        return None
    header = headers[key]
    if header.dtype.kind not in "iuf" or int(np.prod(header.shape, dtype=object)) != 1:
        raise InputError(
            f"is {header}, not one number", f"{content.path}: {key}", "save the rate as one number"
        )
    return float(content.array(key).reshape(-1)[0])


def _times(content: Content) -> np.ndarray | None:
    """The array of times of a file of arrays, of any length; None without one. Raises InputError
    where it is no list of numbers."""
    header = content.arrays.get(TIMES[0])
    if header is None:
        return None
    if header.dtype.kind not in "iuf" or header.shape not in (
        header.shape[:1],
        (*header.shape[:1], 1),
    ):
        what = f"is {header}, not a number for each frame"
        raise InputError(what, f"{content.path}: {TIMES[0]}", "save the times in seconds, or none")
    return content.array(TIMES[0]).reshape(-1)


def _joints_key(headers: dict[str, ArrayHeader]) -> str | None:
    """The array of joint positions by name; `qpos` only with names beside it."""
    named = _first(headers, JOINT_NAMES) is not None
    return _first(headers, JOINTS) or (COORDINATES if named and COORDINATES in headers else None)


def _names_of_columns(names: tuple[str, ...], width: int, where: str) -> tuple[str, ...]:
    """The names of the coordinates after a free joint's, or of all where there is no free joint.

    The free joint's own name may be the first. The names themselves where several free joints may
    be among them, which only the scene tells. Raises InputError where there are other numbers of
    names and coordinates.
    """
    if width in (len(names), len(names) + ROOT_COLUMNS):
        return names
    if names and width == len(names) + FREE_JOINT_COLUMNS:
        return names[1:]
    if names and width > len(names) and (width - len(names)) % FREE_JOINT_COLUMNS == 0:
        return names
    what = f"a frame has {width} coordinates, and {len(names)} joints are named"
    fix = (
        "save a name for each coordinate, after the seven of a free joint, or remove the names if"
        " the coordinates are all of the scene in its order"
    )
    raise InputError(what, where, fix)


def _rotation_key(arrays: Mapping[str, ArrayHeader]) -> str | None:
    return _first(
        arrays,
        tuple(
            key + suffix for key in ("root_quat", "root_rot") for suffix in ("", *ORDER_SUFFIXES)
        ),
    )


def _first(arrays: Mapping[str, ArrayHeader], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in arrays), None)


def csv_table(text: TextColumns) -> MotionTable:
    """One row per frame: the root's x y z, its quaternion, the joints; the first line may be a
    header."""
    titles = text.titles if text.has_titles else ()
    start, order = (root_columns(titles) if titles else None) or (0, "")
    rows = text.rows()
    end = start + ROOT_COLUMNS
    names = {
        "root_position": "root's position",
        "root_rotation": "root's rotation",
        "joints": "joints",
    }
    return MotionTable(
        path=text.path,
        frames=len(rows),
        root_position=rows[:, start : start + 3],
        root_rotation=rows[:, start + 3 : end],
        joints=rows[:, end:],
        joint_names=titles[end:],
        order=order,
        time=rows[:, 0] if start else None,
        locations={key: f"{text.path}: {name}" for key, name in names.items()},
    )


def root_columns(columns: tuple[str, ...]) -> tuple[int, str] | None:
    """First of the root's seven columns (1 after a time column, else 0) and its quaternion order;
    None without them."""
    start = 1 if columns and columns[0].lower() in TIMES else 0
    poses = root_groups(dict(enumerate(columns[start : start + ROOT_COLUMNS], start)))
    pose = poses[0] if poses else None
    if pose is None or pose.is_euler or pose.length_unit or pose.angle_unit:
        return None
    recorded = [column - start for column in pose.columns]
    order = next((order for order, places in ORDERS.items() if places == recorded), "")
    return (start, order) if order and is_of_root(pose.prefix) else None
