"""Reader of recorded trajectories, format `collide-trajectory` 1.0, chunk by chunk.

A dataset without filters has equal bytes in the file and in memory. HDF5 still copies each chunk twice, under a lock
that every use of h5py shares; a read at the chunk's file offset takes a third of the time and releases the GIL.
HDF5 reads everything else (filters, another byte order, a chunk that was never written or is incomplete), and reports
its errors.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.numerics.matrices import compose_poses, length
from collidecli.scene.kinematics import Kinematics, find_bodies, shift_of_named
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.motion import Episodes, TimedMotion
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.scene.text_format import some_names
from collidecli.storage import array_loops as loops
from collidecli.storage.contact_sets.schema import EPISODE_GROUP, EPISODE_TABLES
from collidecli.storage.file_hash import recording_sha256
from collidecli.storage.h5_files import (
    DAMAGE,
    AttributeRule,
    exact_texts,
    format_of,
    one_of,
    open_h5,
    refuse_attributes,
    text_of,
    text_or_bytes,
)
from collidecli.storage.process_activity import data, structure

# Matching of a recording's bodies to a model's by name, and checks of their poses.

QUATERNION_TOLERANCE = 1e-3
"""Largest difference of a recorded quaternion's norm from 1 in the format; within it, the quaternion is normalized."""

STATIC_POSITION_TOLERANCE = 1e-3
"""Largest distance of a welded body's recorded position from the scene's [m]: float32 at 10 km."""

STATIC_ROTATION_TOLERANCE = 1e-3
"""Largest difference of a welded body's recorded rotation from the scene's, in quaternion components."""


class BodyMatch:
    """Mapping of recorded bodies to the model's bodies.

    Args:
        names: the recording's body names, in its order: a subset of the scene's in any order, see `find_bodies`.
        where: the dataset of the names, for messages.
        welded: names of bodies that are part of the static world, whose recorded pose must be the scene's.
    Raises:
        InputError: names that `find_bodies` refuses.
    """

    def __init__(self, names: list[str], model: Model, where: str, welded: frozenset[str] = frozenset()) -> None:
        self.names = names
        self.warnings: list[str] = []
        paths = model.bodies.path
        found = find_bodies(names, model, where)
        self._rows = np.array(list(found), np.intp)
        self._columns = np.array(list(found.values()), np.intp)
        self.body_count = len(paths)
        self._rest, self._rest_in_worlds = model.bodies.pose, model.resting_poses()
        self._shift = shift_of_named(names, found, model)
        self._absent = _absent_bodies(model)
        in_order = np.array_equal(self._columns, np.arange(len(paths))) and len(names) == len(paths)
        self._in_order = in_order and self._absent is None
        self._welded = np.array([path in welded and row in found for row, path in enumerate(paths)], bool)
        self._warn_of_missing(model, {paths[row] for row in found})

    def _warn_of_missing(self, model: Model, recorded: set[str]) -> None:
        """Warns of missing bodies with shapes; a body without shapes has no contacts."""
        carrying = {model.bodies.path[body] for body in set(model.shapes.body.tolist()) - {STATIC_BODY}}
        missing = [path for path in dict.fromkeys(model.bodies.path) if path in carrying and path not in recorded]
        if missing:
            self.warnings.append(
                f"{len(missing)} of the scene's bodies {'is' if len(missing) == 1 else 'are'} not in the recording and "
                f"{'keeps its' if len(missing) == 1 else 'keep their'} scene pose: " + some_names(missing)
            )

    def is_straight(self, world_count: int) -> bool:
        """Whether a recording of `world_count` worlds has the model's bodies, in order, without a transform."""
        return self._in_order and (self._shift is None or world_count > 1)

    def reorder(self, out: np.ndarray, recorded: np.ndarray) -> None:
        """Writes out[n, W, B, 7] in the model's order from recorded[n, W, K, 7], which may be `out`, without checks.

        One recorded world for several worlds of the model has the poses of the first world of each body's template,
        see `Motion`.
        """
        one_world = recorded.shape[1] == 1
        if self.is_straight(recorded.shape[1]):
            if recorded is not out:
                out[...] = recorded
            return
        rest = self._rest if one_world else self._rest_in_worlds
        out[...] = rest
        named = recorded[:, :, self._columns]
        if one_world and self._shift is not None:
            with np.errstate(invalid="ignore", over="ignore"):  # not yet checked
                named = compose_poses(self._shift, named.astype(np.float64))
        out[:, :, self._rows] = named
        if self._absent is not None:
            absent = self._absent if not one_world else np.all(self._absent, axis=0, keepdims=True)
            np.copyto(out, rest, where=np.asarray(absent)[None, :, :, None])

    def checked(self, recorded: np.ndarray, frames: range, path: str, dataset: str = "/body_q") -> np.ndarray:
        """float64[n, W, B, 7] in the model's order from recorded[n, W, K, 7], checked by `check_into`."""
        out = np.empty((*recorded.shape[:2], self.body_count, 7))
        self.check_into(out, recorded, frames, path, dataset)
        return out

    def check_into(self, out: np.ndarray, recorded: np.ndarray, frames: range, path: str, dataset: str) -> None:
        """Writes `out` by `reorder` and normalizes every quaternion.

        Raises InputError, with dataset, frame, world and body, for a pose that is not finite, a quaternion with a norm
        outside the format's tolerance, and a moved body that the scene welds to the world.
        """
        self.reorder(out, recorded)
        bad = normalize(out)
        if bad is not None:
            cell, row = _first(bad)
            raise InputError(
                pose_fault(out[(*cell, row)]), self._where(path, dataset, frames, cell, row), "record this pose again"
            )
        if self._welded.any():
            self._check_welded(out, frames, path, dataset)

    def _check_welded(self, out: np.ndarray, frames: range, path: str, dataset: str) -> None:
        rest = self._rest[self._welded]
        held = out[:, :, self._welded]
        with_sign = np.where((held[..., 3:] * rest[:, 3:]).sum(-1, keepdims=True) < 0.0, -1.0, 1.0)
        moved = np.any(np.abs(held[..., :3] - rest[:, :3]) > STATIC_POSITION_TOLERANCE, axis=-1)
        turned = np.any(np.abs(held[..., 3:] * with_sign - rest[:, 3:]) > STATIC_ROTATION_TOLERANCE, axis=-1)
        moved = np.asarray(moved | turned)
        if moved.any():
            cell, at = _first(moved)
            row = int(np.flatnonzero(self._welded)[at])
            raise InputError(
                "the body is welded to the world in the scene, but has another recorded pose",
                self._where(path, dataset, frames, cell, row),
                "give the body a joint (--floating-base for the root of a URDF), make it mocap, or leave it out of the "
                "recording",
            )

    def _where(self, path: str, dataset: str, frames: range, cell: tuple[int, int], row: int) -> str:
        column = self._columns[list(self._rows).index(row)]
        return f"{path}: {dataset}, frame {frames[cell[0]]}, world {cell[1]}, body '{self.names[column]}'"


def _absent_bodies(model: Model) -> np.ndarray | None:
    """bool[W, B]: bodies that are not in a world's template; None if every world has every body."""
    owner = model.bodies.template
    absent = (owner[None, :] != GLOBAL_TEMPLATE) & (owner[None, :] != model.world_template[:, None])
    return absent if absent.any() else None


def bad_poses(poses: np.ndarray) -> np.ndarray:
    """bool[...] of poses[..., 7]: not finite, or a quaternion with a norm outside the format's tolerance."""
    bad = ~(np.abs(poses[..., :3]) <= POSITION_LIMIT).all(axis=-1)
    with np.errstate(invalid="ignore"):
        return bad | ~(np.abs(_norms(poses) - 1.0) <= QUATERNION_TOLERANCE)


def normalize(poses: np.ndarray) -> np.ndarray | None:
    """Normalizes every quaternion of contiguous poses[..., 7] in place; returns `bad_poses` if any is bad, else None.

    A bad pose is located only after the check of all fails; poses normalized until then remain within the tolerance.
    """
    sound = loops.normalize(poses.reshape(-1, 7), POSITION_LIMIT, QUATERNION_TOLERANCE)
    return None if sound else bad_poses(poses)


def _norms(poses: np.ndarray) -> np.ndarray:
    """Norm of each quaternion, as a sum in fixed order, which does not depend on the blocks of the array."""
    x, y, z, w = (poses[..., k] for k in range(3, 7))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.sqrt(x * x + y * y + z * z + w * w)


def _first(bad: np.ndarray) -> tuple[tuple[int, int], int]:
    frame, world, row = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return (frame, world), row


def pose_fault(pose: np.ndarray) -> str:
    """Description of the error of a bad pose."""
    if not np.isfinite(pose).all():
        return f"the pose is not finite ({', '.join(f'{x:g}' for x in pose)})"
    if np.abs(pose[:3]).max() > POSITION_LIMIT:
        return f"the position is beyond {POSITION_LIMIT:g} m"
    norm = length(pose[3:])
    return f"the quaternion has norm {norm:.6g}, off from 1 by more than {QUATERNION_TOLERANCE:g}"


# The header of a recorded trajectory: format, version, datasets and shapes, checked before poses are read.

TRAJECTORY_FORMAT = "collide-trajectory"
TRAJECTORY_VERSION = (1, 1)
JOINT_LAYOUT = "mujoco-qpos"


ATTRIBUTE_RULES = (
    AttributeRule("", "creator", text_or_bytes, required=False),
    AttributeRule("/time", "unit", one_of(("s",)), required=False),
    *(AttributeRule(path, "unit", one_of(("m",)), required=False) for path in ("/body_q", "/mocap_q", "/particle_q")),
)
_CACHE_SLOTS = 521
"""Slots of the cache's hash table: a prime, many times the two chunks in the cache."""


@dataclass(frozen=True)
class TrajectoryHeader:
    """A recording's properties, without its poses.

    kind: "body_q" or "joint_q". body_names: of body_q, in its order; empty for joint_q.
    coordinate_count: length of qpos for joint_q, else 0. mocap_count: -1 without /mocap_q.
    particle_count: -1 without /particle_q. float_type: dtype of body_q; float64 for joint_q. episodes: of /episode.
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
    episodes: Episodes | None = None


def read_header(path: str | os.PathLike[str]) -> TrajectoryHeader:
    """The header of a recorded trajectory. Raises InputError for another format or a malformed file."""
    with open_h5(path) as file:
        return header_of(file, os.fspath(path))


@structure()
def header_of(file: h5py.File, file_name: str) -> TrajectoryHeader:
    """The header of a file that `open_h5` opened; `file_name` is its name in messages."""
    creator = check_format(file, file_name)
    kind = _kind(file, file_name)
    poses = _floats(file, kind, file_name)
    shape = poses.shape
    wanted = "[frames, worlds, bodies, 7]" if kind == "body_q" else "[frames, worlds, nq]"
    if len(shape) != wanted.count(",") + 1 or (kind == "body_q" and shape[-1] != 7):
        raise InputError(
            f"the shape is {_shown(shape)}, not {wanted}", f"{file_name}: /{kind}", "record it in that shape"
        )
    frames, worlds = shape[:2]
    if frames == 0:
        raise InputError("the recording has no frames", f"{file_name}: /{kind}", "record at least one frame")
    if worlds == 0:
        raise InputError("the recording has no worlds", f"{file_name}: /{kind}", "record at least one world")
    if kind == "joint_q":
        _check_layout(poses, file_name)
    names = _body_names(file, shape[2], file_name) if kind == "body_q" else ()
    time, step = _time(file, frames, file_name), _step(file, frames, file_name)
    mocap = _optional(file, "mocap_q", (frames, worlds, None, 7), file_name) if kind == "joint_q" else -1
    particles = _optional(file, "particle_q", (frames, worlds, None, 3), file_name)
    float_type = np.dtype(np.float64) if kind == "joint_q" else poses.dtype.newbyteorder("=")
    coordinates = shape[2] if kind == "joint_q" else 0
    episodes = _episodes(file, frames, worlds, file_name)
    return TrajectoryHeader(
        file_name, frames, worlds, kind, names, coordinates, mocap, particles, float_type, time, step, creator, episodes
    )


def check_format(file: h5py.File, file_name: str) -> str:
    """Returns the creator."""
    known = f"this program reads {TRAJECTORY_FORMAT} {TRAJECTORY_VERSION[0]}.x"
    found = format_of(file)
    if found != TRAJECTORY_FORMAT:
        what = "the file has no format attribute" if not found else f"the file's format is '{found}'"
        fix = f"{known}; give a recorded trajectory"
        if found == "collide-contacts":
            fix = f"{known}; this is a contact set, give the trajectory it was made from"
        raise InputError(what, f"{file_name}: attribute format", fix)
    version = np.asarray(file.attrs.get("format_version", ()))
    if version.shape != (2,) or version.dtype.kind not in "iu":
        raise InputError("the version is not two integers", f"{file_name}: attribute format_version", known)
    major, minor = (int(v) for v in version)
    if major != TRAJECTORY_VERSION[0]:
        raise InputError(f"the file has version {major}.{minor}", f"{file_name}: attribute format_version", known)
    refuse_attributes(file, ATTRIBUTE_RULES, file_name, "record the file again, or correct the attribute")
    return text_of(file.attrs.get("creator", ""))


def _kind(file: h5py.File, file_name: str) -> str:
    held = [name for name in ("body_q", "joint_q") if name in file]
    if len(held) == 2:
        raise InputError("the recording has both /body_q and /joint_q", file_name, "remove one of them")
    if not held:
        raise InputError("the recording has neither /body_q nor /joint_q", file_name, "record poses or coordinates")
    return held[0]


def dataset(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    """A dataset of a file that `open_h5` opened, with a shape; InputError for anything else."""
    where = f"{file_name}: /{name}"
    try:
        found = file.get(name)
    except (KeyError, OSError) as error:
        raise InputError("the dataset cannot be opened", where, "record the file again") from error
    if not isinstance(found, h5py.Dataset):
        raise InputError("there is no such dataset", where, "see the trajectory format")
    if found.shape is None:
        raise InputError("the dataset has no shape", where, "record it again")
    return found


def cached_dataset(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    """`dataset`, with a cache of two of its chunks.

    With it, consecutive ranges of frames that meet inside a chunk decode the chunk once, in bounded memory.
    """
    found = dataset(file, name, file_name)
    if found.chunks is None:
        return found
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_chunk_cache(_CACHE_SLOTS, 2 * math.prod(found.chunks) * found.dtype.itemsize, 1.0)
    del found  # HDF5 keeps the cache of a dataset that is open already
    return h5py.Dataset(h5d.open(file.id, name.encode(), access))


def _floats(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    found = dataset(file, name, file_name)
    if found.dtype.kind != "f" or found.dtype.itemsize not in (4, 8):
        raise InputError(f"the type is {found.dtype}", f"{file_name}: /{name}", "record it as float32 or float64")
    return found


def _check_layout(joint_q: h5py.Dataset, file_name: str) -> None:
    layout = text_of(joint_q.attrs.get("layout", ""))
    if layout != JOINT_LAYOUT:
        what = "the layout is missing" if not layout else f"the layout is '{layout}'"
        raise InputError(what, f"{file_name}: /joint_q, attribute layout", f"this program reads '{JOINT_LAYOUT}'")


def _body_names(file: h5py.File, count: int, file_name: str) -> tuple[str, ...]:
    found = dataset(file, "body_name", file_name)
    where = f"{file_name}: /body_name"
    if h5py.check_string_dtype(found.dtype) is None:
        raise InputError(f"the type is {found.dtype}, not a string", where, "name the bodies in UTF-8")
    if found.shape != (count,):
        raise InputError(
            f"the shape is {_shown(found.shape)}, but /body_q has {count} bodies", where, "give each body one name"
        )
    try:
        return tuple(str(name) for name in np.asarray(found.asstr("utf-8")[()]))
    except UnicodeDecodeError as error:
        raise InputError("a name is not UTF-8", where, "name the bodies in UTF-8") from error
    except OSError as error:
        raise InputError(f"the dataset cannot be read: {error}", where, "record the file again") from error


def _time(file: h5py.File, frames: int, file_name: str) -> np.ndarray:
    found = _floats(file, "time", file_name)
    where = f"{file_name}: /time"
    time = _column(found, frames, where).astype(np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(f"the time is {time[frame]:g}", f"{where}, frame {frame}", "record the times again")
    back = np.diff(time) < 0.0
    if back.any():
        frame = int(np.argmax(back)) + 1
        raise InputError(
            f"time runs back from {time[frame - 1]:.9g} to {time[frame]:.9g}",
            f"{where}, frame {frame}",
            "order the frames by time",
        )
    return time


def _step(file: h5py.File, frames: int, file_name: str) -> np.ndarray:
    if "step" not in file:
        return np.arange(frames, dtype=np.int64)
    found = dataset(file, "step", file_name)
    where = f"{file_name}: /step"
    if found.dtype.kind not in "iu":
        raise InputError(f"the type is {found.dtype}, not an integer", where, "record the steps as int64")
    return _column(found, frames, where).astype(np.int64)


def _column(found: h5py.Dataset, frames: int, where: str) -> np.ndarray:
    if found.shape != (frames,):
        raise InputError(
            f"the shape is {_shown(found.shape)}, but the recording has {frames} frames", where, "give one per frame"
        )
    try:
        with data():
            return found[()]
    except (OSError, MemoryError) as error:
        raise InputError(f"the dataset cannot be read: {error}", where, "record the file again") from error


def _episodes(file: h5py.File, frames: int, worlds: int, file_name: str) -> Episodes | None:
    """The table /episode, of version 1.1; None without it."""
    version = tuple(int(v) for v in np.asarray(file.attrs["format_version"]))
    if version < TRAJECTORY_VERSION or EPISODE_GROUP not in file:
        return None
    columns: dict[str, Any] = {}
    for table in EPISODE_TABLES:
        where = f"{file_name}: {table.path}"
        found = dataset(file, table.path.removeprefix("/"), file_name)
        count = len(columns.get("name", found))
        is_kind = h5py.check_string_dtype(found.dtype) is not None if table.dtype is None else found.dtype.kind in "iu"
        if not is_kind or found.shape != (count,):
            kind = "strings" if table.dtype is None else str(table.dtype)
            raise InputError(f"is {found.dtype}{_shown(found.shape)}, not {kind}[{count}]", where, "record it again")
        values = found[()]
        columns[table.path.rpartition("/")[2]] = (
            exact_texts(values, where) if table.dtype is None else values.astype(table.dtype)
        )
    episodes = Episodes(**columns)
    for column, row, what in episodes.faults(frames, worlds):
        raise InputError(what, f"{file_name}: {EPISODE_GROUP}/{column}, row {row}", "record it again")
    return episodes


def _optional(file: h5py.File, name: str, shape: tuple[int | None, ...], file_name: str) -> int:
    """The third extent of an optional dataset of floats; -1 if it is absent."""
    if name not in file:
        return -1
    found = _floats(file, name, file_name)
    if len(found.shape) != len(shape) or any(w is not None and w != g for w, g in zip(shape, found.shape, strict=True)):
        wanted = ", ".join("any" if extent is None else str(extent) for extent in shape)
        raise InputError(
            f"the shape is {_shown(found.shape)}, not [{wanted}]", f"{file_name}: /{name}", "record it in that shape"
        )
    return int(found.shape[2])


def _shown(shape: tuple[int, ...] | None) -> str:
    return "empty" if shape is None else f"[{', '.join(str(extent) for extent in shape)}]"


# Checks of recorded positions of particles.


def bad_positions(positions: np.ndarray) -> np.ndarray:
    """bool[...] of positions[..., 3]: not finite or too far away."""
    return np.asarray(~(np.abs(positions) <= POSITION_LIMIT).all(axis=-1))


def check_positions(positions: np.ndarray, frames: range, where: str) -> None:
    """Raises InputError for a position that is not finite or too far away. positions: [frames, worlds, P, 3] [m]."""
    bad = bad_positions(positions)
    if not bad.any():
        return
    frame, world, particle = (int(k) for k in np.argwhere(bad)[0])
    shown = ", ".join(f"{x:g}" for x in positions[frame, world, particle])
    place = f"{where}, frame {frames[frame]}, world {world}, particle {particle}"
    raise InputError(f"the position is ({shown})", place, f"record finite positions of at most {POSITION_LIMIT:g} m")


PIECE_BYTES = 1 << 20
"""Approximate size of the ranges in which frames are read and checked: a range fits the processor's cache. With 256 KiB
a recording takes 39 ms where it takes 31, since each range costs some 50 us of Python."""


class FrameRows:
    """The rows of a dataset whose first extent is frames."""

    def __init__(self, file: h5py.File, data: h5py.Dataset) -> None:
        # Each access of an h5py property queries HDF5, which takes as long as reading a range.
        self._data, self._chunks, self._type, self._count = data, data.chunks, data.dtype, data.shape[0]
        self._row_shape = data.shape[1:]
        self._row_bytes = math.prod(self._row_shape) * data.dtype.itemsize
        self._file_descriptor = _descriptor(file, data)

    @property
    def name(self) -> str:
        return str(self._data.name)

    def pieces(self, frames: range) -> Iterator[range]:
        """`frames` split at chunks of the file, into ranges of about PIECE_BYTES."""
        chunk = self._chunks[0] if self._chunks is not None else 1
        whole = max(1, PIECE_BYTES // max(1, self._row_bytes * chunk)) * chunk
        if frames.step != 1:
            whole = max(1, PIECE_BYTES // max(1, self._row_bytes))
            for first in range(0, len(frames), whole):
                yield frames[first : first + whole]
            return
        first = frames.start
        while first < frames.stop:
            end = min(frames.stop, (first // whole + 1) * whole)
            yield range(first, end)
            first = end

    def read(self, frames: range, into: np.ndarray | None = None) -> np.ndarray:
        """The rows of `frames`, in the dataset's type.

        into: [len(frames), *row shape], contiguous; filled and returned if the rows are read directly and it has their
            type. Raises OSError if HDF5 cannot read them.
        """
        if self._file_descriptor is not None and frames.step == 1 and len(frames):
            fits = into is not None and into.dtype == self._type and into.flags.c_contiguous
            out = into if fits and into is not None else np.empty((len(frames), *self._row_shape), self._type)
            if self._read_directly(frames, out):
                return out
        return self._data[frames.start : frames.stop : frames.step]

    def _read_directly(self, frames: range, out: np.ndarray) -> bool:
        """Reads the rows into `out`; False if HDF5 must read them, with undefined contents of `out`."""
        assert self._file_descriptor is not None
        memory = out.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(frames):
            frame = frames.start + done
            offset, count = self._offset(frame)
            if offset is None:
                return False
            count = min(count, len(frames) - done)
            target = memory[done * self._row_bytes : (done + count) * self._row_bytes]
            if os.preadv(self._file_descriptor, [target], offset) != len(target):
                return False
            done += count
        return True

    def _offset(self, frame: int) -> tuple[int | None, int]:
        """File offset of a frame's row, and the number of contiguous rows from it on; None if HDF5 must read it."""
        data, chunks = self._data.id, self._chunks
        if chunks is None:
            offset = data.get_offset()
            return (None, 0) if offset is None else (offset + frame * self._row_bytes, self._count - frame)
        number, within = divmod(frame, chunks[0])
        offset = int(self._chunk_offsets[number])
        return (None, 0) if offset < 0 else (offset + within * self._row_bytes, chunks[0] - within)

    @cached_property
    def _chunk_offsets(self) -> np.ndarray:
        """int64: file offset of each chunk of frames; -1 if HDF5 must read it.

        HDF5 searches for one chunk through all before it: reading chunk by chunk would take quadratic time.
        """
        assert self._chunks is not None
        frames = self._chunks[0]
        found = np.full(-(-self._count // frames), -1)

        def keep(chunk: Any) -> None:
            if chunk.byte_offset is not None and chunk.size == frames * self._row_bytes and not chunk.filter_mask:
                found[chunk.chunk_offset[0] // frames] = chunk.byte_offset

        with contextlib.suppress(*DAMAGE, IndexError):  # HDF5 reads what is not found, or reports the damage
            self._data.id.chunk_iter(keep)
        return found


def _descriptor(file: h5py.File, data: h5py.Dataset) -> int | None:
    """The file descriptor if `data` can be read directly; None if HDF5 must read it."""
    created = data.id.get_create_plist()
    plain = (
        hasattr(os, "preadv")
        and file.driver == "sec2"
        and file.userblock_size == 0
        and created.get_nfilters() == 0
        and data.dtype.isnative
        and data.dtype.kind == "f"
        and math.prod(data.shape) > 0
        and (data.chunks is None or data.chunks[1:] == data.shape[1:])
    )
    return file.id.get_vfd_handle() if plain else None


def open_trajectory(
    path: str | os.PathLike[str], model: Model, kinematics: Kinematics | None = None, ignore_particles: bool = False
) -> TrajectoryMotion:
    """A recording as a motion of `model`'s bodies.

    kinematics: body poses from generalized coordinates, of an MJCF scene; /joint_q requires it.
    ignore_particles: warn of recorded particles, which have no contacts, instead of refusing them.
    Raises InputError for a file of another format or version, a malformed file, and one that does not match the model.
    """
    file = open_h5(path)
    try:
        return TrajectoryMotion(file, os.fspath(path), model, kinematics, ignore_particles)
    except BaseException:
        file.close()
        raise


class RecordedInFile(TimedMotion):
    """Base of motions that are read from one file, `_path`."""

    _path: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes; computed at the first access."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return recording_sha256((self._path,))


class TrajectoryMotion(RecordedInFile):
    """A recorded motion (see `scene.motion.Motion`); only the requested frames are in memory.

    header: of the file. warnings: for the user. kinematics_seconds: time of forward kinematics so far.
    """

    def __init__(
        self, file: h5py.File, path: str, model: Model, kinematics: Kinematics | None, ignore_particles: bool = False
    ) -> None:
        self.header = header_of(file, path)
        particles = _particle_warnings(self.header, model, ignore_particles)
        has_particles = self.header.particle_count > 0 and not ignore_particles
        self._particles = FrameRows(file, cached_dataset(file, "particle_q", path)) if has_particles else None
        self.has_joint_tree = self.header.kind == "joint_q"
        self.time, self.step = self.header.time, self.header.step
        self.world_count = self.header.world_count
        self.float_type = self.header.float_type
        self.episodes = self.header.episodes
        self._file, self._path, self._kinematics = file, path, kinematics
        if self.world_count not in (1, model.world_count):
            raise InputError(
                f"the recording has {self.world_count} worlds, the scene {model.world_count}",
                f"{path}: /{self.header.kind}",
                f"run with --worlds {self.world_count}, or record 1 world",
            )
        if self.header.kind == "joint_q":
            names, welded = self._check_coordinates(kinematics), frozenset[str]()
        else:
            names = self.header.body_names
            still = () if kinematics is None else np.flatnonzero(kinematics.welded)
            welded = frozenset(kinematics.body_path[k] for k in still) if kinematics is not None else frozenset()
        self._match = BodyMatch(list(names), model, f"{path}: /body_name", welded)
        self._data = FrameRows(file, cached_dataset(file, self.header.kind, path))
        self._mocap = FrameRows(file, cached_dataset(file, "mocap_q", path)) if self.header.mocap_count >= 0 else None
        self.warnings = (*self._match.warnings, *particles)
        if self.world_count == 1 and model.world_shift is not None:
            self.warnings += ("the recording is of one world; its poses relative to the origin apply to every world",)
        if self.header.kind == "body_q" and "mocap_q" in file:
            self.warnings += ("/mocap_q is ignored: it applies to /joint_q only",)

    def _check_coordinates(self, kinematics: Kinematics | None) -> tuple[str, ...]:
        where = f"{self._path}: /joint_q"
        if kinematics is None:
            raise InputError(
                "generalized coordinates need an MJCF scene", where, "run it with the .xml that it was recorded from"
            )
        recorded, wanted = self.header.coordinate_count, kinematics.coordinate_count
        if recorded != wanted:
            raise InputError(
                f"the recording has {recorded} coordinates, the scene {wanted} (nq)",
                where,
                "run it with the scene that it was recorded from",
            )
        mocap = self.header.mocap_count
        if mocap >= 0 and mocap != kinematics.mocap_count:
            raise InputError(
                f"the recording has {mocap} mocap bodies, the scene {kinematics.mocap_count}",
                f"{self._path}: /mocap_q",
                "run it with the scene that it was recorded from",
            )
        return kinematics.body_path

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        name = f"/{self.header.kind}"
        if self.header.kind == "joint_q":
            return self._match.checked(self._forward(self._rows(self._data, frames), frames), frames, self._path, name)
        self._check_range(self._data, frames)
        out = np.empty((len(frames), self.world_count, self._match.body_count, 7))
        straight = self._match.is_straight(self.world_count)
        first = 0
        for piece in self._data.pieces(frames):
            part = out[first : first + len(piece)]
            first += len(piece)
            recorded = self._rows(self._data, piece, part if straight else None)
            self._match.check_into(part, recorded, piece, self._path, name)
        return out

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), W, P, 3], see `RecordsParticles`; None for a recording without particles."""
        if self._particles is None:
            return None
        positions = self._rows(self._particles, frames).astype(np.float64)
        check_positions(positions, frames, f"{self._path}: /particle_q")
        return positions

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), W, nq] and poses of mocap bodies, see `RecordsCoordinates`."""
        if self.header.kind != "joint_q":
            return None
        mocap = None if self._mocap is None else self._mocap_poses(frames).reshape(len(frames), self.world_count, -1, 7)
        return self._rows(self._data, frames).astype(np.float64), mocap

    def close(self) -> None:
        self._file.close()

    def _check_range(self, data: FrameRows, frames: range) -> None:
        if frames and (frames[0] < 0 or frames[-1] >= self.header.frame_count or frames.step < 1):
            raise InputError(
                f"frames {frames[0]} to {frames[-1]} are out of range, the recording has {self.header.frame_count}",
                f"{self._path}: {data.name}",
            )

    def _rows(self, data: FrameRows, frames: range, into: np.ndarray | None = None) -> np.ndarray:
        self._check_range(data, frames)
        try:
            return data.read(frames, into)
        except OSError as error:
            raise InputError(
                f"frames {frames[0]} to {frames[-1]} cannot be read: {error}",
                f"{self._path}: {data.name}",
                "copy or record the file again",
            ) from error

    def _forward(self, joint_q: np.ndarray, frames: range) -> np.ndarray:
        """float64[n, W, K, 7] of joint_q[n, W, nq]."""
        kinematics = self._kinematics
        assert kinematics is not None
        start = time.perf_counter()
        counts = joint_q.shape[:2]
        qpos = joint_q.astype(np.float64).reshape(counts[0] * counts[1], joint_q.shape[2])
        bad = kinematics.first_bad_coordinate(qpos) if len(qpos) else None
        if bad is not None:
            row, body, what = bad
            raise InputError(what, self._cell("joint_q", frames, row) + f", body '{body}'", "record this pose again")
        mocap = None if self._mocap is None else self._mocap_poses(frames)
        poses = kinematics.poses(qpos, mocap).reshape(*counts, len(kinematics.body_path), 7)
        self.kinematics_seconds += time.perf_counter() - start
        return poses

    def _mocap_poses(self, frames: range) -> np.ndarray:
        """float64[n * W, nmocap, 7]."""
        kinematics = self._kinematics
        assert kinematics is not None
        assert self._mocap is not None
        poses = self._rows(self._mocap, frames).astype(np.float64)
        poses = poses.reshape(len(frames) * self.world_count, kinematics.mocap_count, 7)
        bad = kinematics.first_bad_mocap(poses)
        if bad is not None:
            row, body, what = bad
            raise InputError(what, self._cell("mocap_q", frames, row) + f", body '{body}'", "record this pose again")
        return poses

    def _cell(self, name: str, frames: range, row: int) -> str:
        frame, world = divmod(row, self.world_count)
        return f"{self._path}: /{name}, frame {frames[frame]}, world {world}"


def _particle_warnings(header: TrajectoryHeader, model: Model, ignore: bool) -> tuple[str, ...]:
    """A warning of ignored particles. Raises InputError for particles that the scene does not have."""
    held, wanted = header.particle_count, len(model.particles)
    owner = model.particles.owner
    with_bodies = owner[model.particles.body >= 0]  # objects such as flexes, some vertices of which are fixed
    free = int((~np.isin(owner, with_bodies)).sum())
    where = f"{header.path}: /particle_q"
    if ignore and held > 0:
        return (f"/particle_q is ignored: the recording has {held} particles, whose contacts are not computed",)
    if free and held < 0:
        of_all = f"{free} of " if free < wanted else ""
        return (f"the recording has no /particle_q: {of_all}the scene's {wanted} particles rest",)
    if held > 0 and not wanted:
        fix = "run it with the scene that it was recorded from, or give --ignore-particles"
        raise InputError(f"the recording has {held} particles, the scene none", where, fix)
    if held > 0 and held != wanted:
        fix = "run it with the scene that it was recorded from"
        raise InputError(f"the recording has {held} particles, the scene {wanted}", where, fix)
    return ()
