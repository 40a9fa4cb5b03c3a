"""What a humanoid's motion file holds: .npz files by the names of their arrays, .csv files by their columns."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass, field

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.arrays import ArrayHeader, npz_headers, read_npz
from collidecli.importers.recordings.content import NPZ, Content, storage_of
from collidecli.storage.h5_input import text_of

BODY_KEYS = (("body_pos_w", "body_quat_w"), ("body_positions", "body_rotations"))
ROOT_POSITION = ("root_pos", "root_trans")
ROOT_ROTATION = ("root_quat", "root_rot")
JOINTS = ("joint_pos", "dof_pos", "dof_positions")
BODY_NAMES, JOINT_NAMES = ("body_names",), ("joint_names", "dof_names")
ORDER_SUFFIXES = ("_xyzw", "_wxyz")
TIMES = ("time", "timestamp", "t")
ROOT_COLUMNS = 7

_POSITION = re.compile(r"(.*[_.\s])?(pos|position|trans|translation|p|t)?[_.\s]?[xyz]", re.IGNORECASE)
_ROTATION = re.compile(r"(.*[_.\s])?(q|quat|quaternion|rot|rotation|orientation)[_.\s]?[wxyz]", re.IGNORECASE)


@dataclass(frozen=True)
class MotionTable:
    """A motion file's content; None or () for what it does not have.

    body_position: float[F, B, 3], body_rotation: float[F, B, 4] of body_names, in the world.
    root_position: float[F, 3], root_rotation: float[F, 4]. joints: float[F, k] of joint_names.
    order: of its quaternions, where the file says it. fps, time: float64[F] [s], likewise.
    places: where each of the arrays is, for messages, by its field's name.
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
    places: dict[str, str] = field(default_factory=dict)


def holds_motion(arrays: dict[str, ArrayHeader]) -> bool:
    """Whether the names in a .npz file are those of a motion: poses of bodies, or of a root."""
    bodies = any(position in arrays and rotation in arrays for position, rotation in BODY_KEYS)
    return bodies or (_first(arrays, ROOT_POSITION) is not None and _rotation_key(arrays) is not None)


def is_table(content: Content) -> bool:
    """Whether a csv's first line is that of a root's pose and joints: as many numbers, or named so."""
    columns = content.columns
    return len(columns) >= ROOT_COLUMNS and (_numbers(columns) or _root_columns(columns) is not None)


def read_table(path: str) -> MotionTable:
    """The content of a motion file.

    Raises InputError: arrays that are pickled, missing, of another type or shape, or of unequally many frames; rows
    of a csv that are no numbers, or not as many as in the first line.
    """
    return _npz(path) if storage_of(path) == NPZ else _csv(path)


def _npz(path: str) -> MotionTable:
    headers = npz_headers(path)
    keys: dict[str, str | None] = {
        "root_position": _first(headers, ROOT_POSITION),
        "root_rotation": _rotation_key(headers),
        "joints": _first(headers, JOINTS),
    }
    for position, rotation in BODY_KEYS:
        if position in headers and rotation in headers:
            keys |= {"body_position": position, "body_rotation": rotation}
            break
    sizes = {"body_position": 3, "body_rotation": 4, "root_position": 3, "root_rotation": 4, "joints": None}
    arrays: dict[str, np.ndarray] = {}
    places = {}
    for name, key in keys.items():
        if key is not None:
            places[name] = f"{path}: {key}"
            arrays[name] = _floats(path, key, headers[key], sizes[name], 3 if name.startswith("body") else 2)
    frames = {places[name]: len(array) for name, array in arrays.items()}
    if len(set(frames.values())) > 1:
        shown = ", ".join(f"{place.removeprefix(f'{path}: ')} {count}" for place, count in frames.items())
        raise InputError(f"the arrays have unequally many frames: {shown}", path, "save them again")
    body = arrays.get("body_position")
    if body is not None and body.shape[1] != arrays["body_rotation"].shape[1]:
        raise InputError("positions and rotations are of unequally many bodies", places["body_position"], "save again")
    count = next(iter(frames.values()))
    if not count:
        raise InputError("the recording has no frames", path, "record one at least")
    rotation = keys["root_rotation"]
    suffix = next((s[1:] for s in ORDER_SUFFIXES if rotation is not None and rotation.endswith(s)), "")
    said = _words(path, headers, ("quaternion_order", "quat_order"))
    return MotionTable(
        path=path,
        frames=count,
        **arrays,
        body_names=_words(path, headers, BODY_NAMES),
        joint_names=_words(path, headers, JOINT_NAMES),
        order=said[0] if said else suffix,
        fps=_fps(path, headers),
        places=places,
    )


def _floats(path: str, key: str, header: ArrayHeader, size: int | None, dimensions: int) -> np.ndarray:
    wanted = ["frames", "bodies", str(size)] if dimensions == 3 else ["frames", "joints" if size is None else str(size)]
    if not header.is_float or len(header.shape) != dimensions or (size is not None and header.shape[-1] != size):
        raise InputError(f"is {header}, not floats [{', '.join(wanted)}]", f"{path}: {key}", "save it in that shape")
    return read_npz(path, key)


def _words(path: str, headers: dict[str, ArrayHeader], keys: tuple[str, ...]) -> tuple[str, ...]:
    """Names in an array of strings, or one string; () where there is none."""
    key = _first(headers, keys)
    if key is None:
        return ()
    if headers[key].dtype.kind not in "US" or len(headers[key].shape) > 1:
        raise InputError(f"is {headers[key]}, not names", f"{path}: {key}", "save it as an array of strings")
    held = np.atleast_1d(read_npz(path, key))
    return tuple(map(text_of, held))


def _fps(path: str, headers: dict[str, ArrayHeader]) -> float | None:
    if "fps" not in headers:
        return None
    header = headers["fps"]
    if header.dtype.kind not in "iuf" or int(np.prod(header.shape, dtype=object)) != 1:
        raise InputError(f"is {header}, not one number", f"{path}: fps", "save the rate as one number")
    return float(read_npz(path, "fps").reshape(-1)[0])


def _rotation_key(arrays: dict[str, ArrayHeader]) -> str | None:
    return _first(arrays, tuple(key + suffix for key in ROOT_ROTATION for suffix in ("", *ORDER_SUFFIXES)))


def _first(arrays: dict[str, ArrayHeader], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in arrays), None)


def _csv(path: str) -> MotionTable:
    """A row a frame: the root's x y z, its quaternion, the joints; names in the first line, or none at all."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        first = tuple(name.strip() for name in file.readline().split(","))
    header = not _numbers(first)
    rows = _rows(path, header, len(first))
    if not len(rows):
        raise InputError("the recording has no frames", path, "record one at least")
    start, order, time = 0, "", None
    if header:
        root = _root_columns(first)
        if root is None:
            raise InputError(
                f"the columns do not begin with a root's x y z and quaternion: {', '.join(first[:8])}",
                f"{path}, line 1",
                "name them x, y, z, qx, qy, qz, qw and then the joints",
            )
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
        places={key: f"{path}: {words}" for key, words in names.items()},
    )


def _rows(path: str, header: bool, width: int) -> np.ndarray:
    """float64[F, width]."""
    if os.path.getsize(path) and width < ROOT_COLUMNS:
        raise InputError(f"a row has {width} numbers", path, "a root's pose takes 7, and the joints follow")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a file without rows, which is said elsewhere
            rows = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2, encoding="utf-8-sig", comments=None)
    except (ValueError, UnicodeDecodeError) as error:
        words = str(error).splitlines()[0]
        raise InputError(f"the rows cannot be read: {words}", path, "give numbers, equally many a row") from error
    if rows.size and rows.shape[1] != width:
        raise InputError(f"a row has {rows.shape[1]} numbers, and the first line {width}", path, "correct the file")
    return rows


def _numbers(columns: tuple[str, ...]) -> bool:
    try:
        return bool([float(name) for name in columns])
    except ValueError:
        return False


def _root_columns(columns: tuple[str, ...]) -> tuple[int, str] | None:
    """Where the root's seven columns begin, after one of times, and the order of its quaternion; None without them."""
    start = 1 if columns and columns[0].lower() in TIMES else 0
    position, rotation = columns[start : start + 3], columns[start + 3 : start + ROOT_COLUMNS]
    letters = "".join(name[-1:].lower() for name in rotation)
    if "".join(name[-1:].lower() for name in position) != "xyz" or letters not in ("xyzw", "wxyz"):
        return None
    named = all(_POSITION.fullmatch(name) for name in position) and all(_ROTATION.fullmatch(name) for name in rotation)
    return (start, letters) if named else None
