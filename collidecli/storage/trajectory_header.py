"""The header of a trajectory: format, version, datasets and shapes, checked before poses are
read."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.scene.episodes import Episodes
from collidecli.storage.attribute_rules import (
    AttributeRule,
    one_of,
    refuse_attributes,
    text_or_bytes,
)
from collidecli.storage.contact_sets.header import EPISODE_GROUP, EPISODE_TABLES
from collidecli.storage.h5_files import exact_texts, format_of, open_h5, text_of
from collidecli.storage.process_activity import data, structure

TRAJECTORY_FORMAT = "collide-trajectory"
TRAJECTORY_VERSION = (1, 1)
CONVERTED_VERSION = (1, 2)
"""Version of a file with the attributes of a converted recording."""
EPISODES_VERSION = (1, 1)
"""First version with the table /episode."""
NORMALIZED = "normalized"
"""Value of the attribute `quaternions` of /body_q: those of unit norm keep their bits."""
JOINT_LAYOUT = "mujoco-qpos"
ATTRIBUTE_RULES = (
    AttributeRule("", "creator", text_or_bytes, required=False),
    AttributeRule("/time", "unit", one_of(("s",)), required=False),
    *(
        AttributeRule(path, "unit", one_of(("m",)), required=False)
        for path in ("/body_q", "/mocap_q", "/particle_q")
    ),
    AttributeRule("/body_q", "quaternions", one_of((NORMALIZED,)), required=False),
    AttributeRule("/body_q", "point_type", one_of(("float32", "float64")), required=False),
)
_CACHE_SLOTS = 521
"""Slots of the cache's hash table: a prime, many times the two chunks in the cache."""


@dataclass(frozen=True)
class TrajectoryHeader:
    """A recording's properties, without its poses.

    kind: "body_q" or "joint_q". body_names: of body_q, in its order; empty for joint_q.
    coordinate_count: length of qpos for joint_q, else 0. mocap_count: -1 without /mocap_q.
    particle_count: -1 without /particle_q. float_type: dtype of body_q; float64 for joint_q.
    episodes: of /episode. point_type: of the points of its contacts, float_type unless the file was
    converted from a recording of another type. is_normalized: whether quaternions of unit norm keep
    their bits.
    """

    path: str
    frame_count: int
    world_count: int
    kind: str
    body_names: tuple[str, ...]
    coordinate_count: int
    mocap_count: int
    particle_count: int
    float_type: np.dtype
    time: np.ndarray
    step: np.ndarray
    creator: str
    point_type: np.dtype
    is_normalized: bool
    episodes: Episodes | None = None


def read_header(path: str | os.PathLike[str]) -> TrajectoryHeader:
    """The header of a recorded trajectory. Raises InputError for another format or a malformed
    file."""
    with open_h5(path) as file:
        return header_of(file, os.fspath(path))


@structure()
def header_of(file: h5py.File, file_name: str) -> TrajectoryHeader:
    """The header of a file that `open_h5` opened; `file_name` is its name in messages."""
    creator = check_format(file, file_name)
    recorded = [name for name in ("body_q", "joint_q") if name in file]
    if len(recorded) == 2:
        raise InputError(
            "the recording has both /body_q and /joint_q", file_name, "remove one of them"
        )
    if not recorded:
        raise InputError(
            "the recording has neither /body_q nor /joint_q",
            file_name,
            "record poses or coordinates",
        )
    kind = recorded[0]
    of_joints = recorded == ["joint_q"]
    poses = _floats(file, kind, file_name)
    where = f"{file_name}: /{kind}"
    shape = poses.shape
    wanted = "[frames, worlds, nq]" if of_joints else "[frames, worlds, bodies, 7]"
    if len(shape) != wanted.count(",") + 1 or (not of_joints and shape[-1] != 7):
        raise InputError(
            f"the shape is {_shown(shape)}, not {wanted}", where, "record it in that shape"
        )
    frames, worlds = shape[:2]
    for count, noun in ((frames, "frame"), (worlds, "world")):
        if count == 0:
            raise InputError(f"the recording has no {noun}s", where, f"record at least one {noun}")
    layout = text_of(poses.attrs.get("layout", "")) if of_joints else JOINT_LAYOUT
    if layout != JOINT_LAYOUT:
        what = f"the layout is '{layout}'" if layout else "the layout is missing"
        raise InputError(what, f"{where}, attribute layout", f"this program reads '{JOINT_LAYOUT}'")
    float_type = np.dtype(np.float64) if of_joints else poses.dtype.newbyteorder("=")
    return TrajectoryHeader(
        path=file_name,
        frame_count=frames,
        world_count=worlds,
        kind=kind,
        body_names=() if of_joints else _body_names(file, shape[2], file_name),
        coordinate_count=shape[2] if of_joints else 0,
        mocap_count=_optional(file, "mocap_q", (frames, worlds, None, 7), file_name)
        if of_joints
        else -1,
        particle_count=_optional(file, "particle_q", (frames, worlds, None, 3), file_name),
        float_type=float_type,
        time=_time(file, frames, file_name),
        step=_step(file, frames, file_name),
        creator=creator,
        point_type=float_type if of_joints else np.dtype(_text(poses, "point_type") or float_type),
        is_normalized=not of_joints and _text(poses, "quaternions") == NORMALIZED,
        episodes=_episodes(file, frames, worlds, file_name),
    )


def check_format(file: h5py.File, file_name: str) -> str:
    """The creator of a recorded trajectory. Raises InputError for another format or version."""
    known = f"this program reads {TRAJECTORY_FORMAT} {TRAJECTORY_VERSION[0]}.x"
    file_format = format_of(file)
    if file_format != TRAJECTORY_FORMAT:
        what = (
            f"the file's format is '{file_format}'"
            if file_format
            else "the file has no format attribute"
        )
        fix = "give a recorded trajectory"
        if file_format == "collide-contacts":
            fix = "this is a contact set, give the trajectory it was made from"
        raise InputError(what, f"{file_name}: attribute format", f"{known}; {fix}")
    version = np.asarray(file.attrs.get("format_version", ()))
    if version.shape != (2,) or version.dtype.kind not in "iu":
        raise InputError(
            "the version is not two integers", f"{file_name}: attribute format_version", known
        )
    major, minor = (int(v) for v in version)
    if major != TRAJECTORY_VERSION[0]:
        raise InputError(
            f"the file has version {major}.{minor}", f"{file_name}: attribute format_version", known
        )
    refuse_attributes(
        file, ATTRIBUTE_RULES, file_name, "record the file again, or correct the attribute"
    )
    return text_of(file.attrs.get("creator", ""))


def dataset(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    """A dataset of a file that `open_h5` opened, with a shape; InputError for anything else."""
    where = f"{file_name}: /{name}"
    try:
        item = file.get(name)
    except (KeyError, OSError) as error:
        raise InputError("the dataset cannot be opened", where, "record the file again") from error
    if not isinstance(item, h5py.Dataset):
        raise InputError("there is no such dataset", where, "see the trajectory format")
    if item.shape is None:
        raise InputError("the dataset has no shape", where, "record it again")
    return item


def cached_dataset(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    """`dataset`, with a cache of two of its chunks.

    With it, consecutive ranges of frames that meet inside a chunk decode the chunk once, in bounded
    memory.
    """
    item = dataset(file, name, file_name)
    if item.chunks is None:
        return item
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_chunk_cache(_CACHE_SLOTS, 2 * math.prod(item.chunks) * item.dtype.itemsize, 1.0)
    del item  # HDF5 keeps the cache of a dataset that is open already
    return h5py.Dataset(h5d.open(file.id, name.encode(), access))


def _text(item: h5py.Dataset, name: str) -> str:
    """A text attribute; empty without it."""
    return text_of(item.attrs.get(name, ""))


def _floats(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    item = dataset(file, name, file_name)
    if item.dtype.kind != "f" or item.dtype.itemsize not in (4, 8):
        raise InputError(
            f"the type is {item.dtype}", f"{file_name}: /{name}", "record it as float32 or float64"
        )
    return item


def _body_names(file: h5py.File, count: int, file_name: str) -> tuple[str, ...]:
    names = dataset(file, "body_name", file_name)
    where = f"{file_name}: /body_name"
    if h5py.check_string_dtype(names.dtype) is None:
        raise InputError(
            f"the type is {names.dtype}, not a string", where, "name the bodies in UTF-8"
        )
    if names.shape != (count,):
        what = f"the shape is {_shown(names.shape)}, but /body_q has {count} bodies"
        raise InputError(what, where, "give each body one name")
    try:
        return tuple(str(name) for name in np.asarray(names.asstr("utf-8")[()]))
    except UnicodeDecodeError as error:
        raise InputError("a name is not UTF-8", where, "name the bodies in UTF-8") from error
    except OSError as error:
        raise InputError(
            f"the dataset cannot be read: {error}", where, "record the file again"
        ) from error


def _time(file: h5py.File, frames: int, file_name: str) -> np.ndarray:
    item = _floats(file, "time", file_name)
    where = f"{file_name}: /time"
    time = _column(item, frames, where).astype(np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(
            f"the time is {time[frame]:g}", f"{where}, frame {frame}", "record the times again"
        )
    back = np.diff(time) < 0.0
    if back.any():
        frame = int(np.argmax(back)) + 1
        what = f"time runs back from {time[frame - 1]:.9g} to {time[frame]:.9g}"
        raise InputError(what, f"{where}, frame {frame}", "order the frames by time")
    return time


def _step(file: h5py.File, frames: int, file_name: str) -> np.ndarray:
    if "step" not in file:
        return np.arange(frames, dtype=np.int64)
    item = dataset(file, "step", file_name)
    where = f"{file_name}: /step"
    if item.dtype.kind not in "iu":
        raise InputError(
            f"the type is {item.dtype}, not an integer", where, "record the steps as int64"
        )
    return _column(item, frames, where).astype(np.int64)


def _column(item: h5py.Dataset, frames: int, where: str) -> np.ndarray:
    if item.shape != (frames,):
        what = f"the shape is {_shown(item.shape)}, but the recording has {frames} frames"
        raise InputError(what, where, "give one per frame")
    try:
        with data():
            return item[()]
    except (OSError, MemoryError) as error:
        raise InputError(
            f"the dataset cannot be read: {error}", where, "record the file again"
        ) from error


def _episodes(file: h5py.File, frames: int, worlds: int, file_name: str) -> Episodes | None:
    """The table /episode, of version 1.1; None without it."""
    version = tuple(int(v) for v in np.asarray(file.attrs["format_version"]))
    if version < EPISODES_VERSION or EPISODE_GROUP not in file:
        return None
    columns: dict[str, Any] = {}
    for table in EPISODE_TABLES:
        where = f"{file_name}: {table.path}"
        item = dataset(file, table.path.removeprefix("/"), file_name)
        count = len(columns.get("name", item))
        is_kind = (
            h5py.check_string_dtype(item.dtype) is not None
            if table.dtype is None
            else item.dtype.kind in "iu"
        )
        if not is_kind or item.shape != (count,):
            kind = "strings" if table.dtype is None else str(table.dtype)
            raise InputError(
                f"is {item.dtype}{_shown(item.shape)}, not {kind}[{count}]",
                where,
                "record it again",
            )
        values = item[()]
        values = exact_texts(values, where) if table.dtype is None else values.astype(table.dtype)
        columns[table.path.rpartition("/")[2]] = values
    episodes = Episodes(**columns)
    for column, row, what in episodes.faults(frames, worlds):
        raise InputError(
            what, f"{file_name}: {EPISODE_GROUP}/{column}, row {row}", "record it again"
        )
    return episodes


def _optional(file: h5py.File, name: str, shape: tuple[int | None, ...], file_name: str) -> int:
    """The third extent of an optional dataset of floats; -1 if it is absent."""
    if name not in file:
        return -1
    item = _floats(file, name, file_name)
    if len(item.shape) != len(shape) or any(
        w is not None and w != g for w, g in zip(shape, item.shape, strict=True)
    ):
        wanted = ", ".join("any" if extent is None else str(extent) for extent in shape)
        what = f"the shape is {_shown(item.shape)}, not [{wanted}]"
        raise InputError(what, f"{file_name}: /{name}", "record it in that shape")
    return int(item.shape[2])


def _shown(shape: tuple[int, ...] | None) -> str:
    return "empty" if shape is None else f"[{', '.join(str(extent) for extent in shape)}]"
