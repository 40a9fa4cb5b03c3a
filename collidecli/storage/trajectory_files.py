"""Recorded trajectories, format `collide-trajectory` 1.x: header, rows of frames, writer and validation.

A dataset without filters has equal bytes in the file and in memory. HDF5 still copies each chunk twice, under a lock
that every use of h5py shares; a read at the chunk's file offset takes a third of the time and releases the GIL.
HDF5 reads everything else (filters, another byte order, a chunk that was never written or is incomplete), and reports
its errors.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError, OutputError
from collidecli.numerics import length
from collidecli.scene.motion import Episodes
from collidecli.scene.shape_types import POSITION_LIMIT, QUATERNION_TOLERANCE
from collidecli.storage import array_loops as loops
from collidecli.storage import h5_files
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.schema import EPISODE_GROUP, EPISODE_TABLES
from collidecli.storage.process_activity import data, structure

# Checks of recorded poses, positions and coordinates.


def bad_poses(poses: np.ndarray) -> np.ndarray:
    """bool[...] of poses[..., 7]: not finite, or a quaternion with a norm outside the format's tolerance."""
    bad = ~(np.abs(poses[..., :3]) <= POSITION_LIMIT).all(axis=-1)
    x, y, z, w = (poses[..., k] for k in range(3, 7))
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.sqrt(x * x + y * y + z * z + w * w)  # in fixed order: the sum does not depend on the array's blocks
        return bad | ~(np.abs(norms - 1.0) <= QUATERNION_TOLERANCE)


def normalize(poses: np.ndarray) -> np.ndarray | None:
    """Normalizes every quaternion of contiguous poses[..., 7] in place; returns `bad_poses` if any is bad, else None.

    A bad pose is located only after the check of all fails; poses normalized until then remain within the tolerance.
    """
    sound = loops.normalize(poses.reshape(-1, 7), POSITION_LIMIT, QUATERNION_TOLERANCE)
    return None if sound else bad_poses(poses)


def pose_fault(pose: np.ndarray) -> str:
    """Description of the error of a bad pose."""
    if not np.isfinite(pose).all():
        return f"the pose is not finite ({', '.join(f'{x:g}' for x in pose)})"
    if np.abs(pose[:3]).max() > POSITION_LIMIT:
        return f"the position is beyond {POSITION_LIMIT:g} m"
    norm = length(pose[3:])
    return f"the quaternion has norm {norm:.6g}, off from 1 by more than {QUATERNION_TOLERANCE:g}"


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


def _bad_entries(kind: str, values: np.ndarray) -> np.ndarray:
    """bool[frames, worlds, entries] of values of a dataset: bodies, coordinates of joint_q, or particles."""
    if kind == "joint_q":
        return ~np.isfinite(values)
    return bad_positions(values) if kind == "particle_q" else bad_poses(values.astype(np.float64))


# The header: format, version, datasets and shapes, checked before poses are read.

TRAJECTORY_FORMAT = "collide-trajectory"
TRAJECTORY_VERSION = (1, 1)
JOINT_LAYOUT = "mujoco-qpos"


ATTRIBUTE_RULES = (
    h5_files.AttributeRule("", "creator", h5_files.text_or_bytes, required=False),
    h5_files.AttributeRule("/time", "unit", h5_files.one_of(("s",)), required=False),
    *(
        h5_files.AttributeRule(path, "unit", h5_files.one_of(("m",)), required=False)
        for path in ("/body_q", "/mocap_q", "/particle_q")
    ),
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
    with h5_files.open_h5(path) as file:
        return header_of(file, os.fspath(path))


@structure()
def header_of(file: h5py.File, file_name: str) -> TrajectoryHeader:
    """The header of a file that `open_h5` opened; `file_name` is its name in messages."""
    creator = check_format(file, file_name)
    recorded = [name for name in ("body_q", "joint_q") if name in file]
    if len(recorded) == 2:
        raise InputError("the recording has both /body_q and /joint_q", file_name, "remove one of them")
    if not recorded:
        raise InputError("the recording has neither /body_q nor /joint_q", file_name, "record poses or coordinates")
    kind, of_joints = recorded[0], recorded == ["joint_q"]
    poses, where = _floats(file, kind, file_name), f"{file_name}: /{kind}"
    shape = poses.shape
    wanted = "[frames, worlds, nq]" if of_joints else "[frames, worlds, bodies, 7]"
    if len(shape) != wanted.count(",") + 1 or (not of_joints and shape[-1] != 7):
        raise InputError(f"the shape is {_shown(shape)}, not {wanted}", where, "record it in that shape")
    frames, worlds = shape[:2]
    for count, noun in ((frames, "frame"), (worlds, "world")):
        if count == 0:
            raise InputError(f"the recording has no {noun}s", where, f"record at least one {noun}")
    layout = h5_files.text_of(poses.attrs.get("layout", "")) if of_joints else JOINT_LAYOUT
    if layout != JOINT_LAYOUT:
        what = f"the layout is '{layout}'" if layout else "the layout is missing"
        raise InputError(what, f"{where}, attribute layout", f"this program reads '{JOINT_LAYOUT}'")
    return TrajectoryHeader(
        path=file_name,
        frame_count=frames,
        world_count=worlds,
        kind=kind,
        body_names=() if of_joints else _body_names(file, shape[2], file_name),
        coordinate_count=shape[2] if of_joints else 0,
        mocap_count=_optional(file, "mocap_q", (frames, worlds, None, 7), file_name) if of_joints else -1,
        particle_count=_optional(file, "particle_q", (frames, worlds, None, 3), file_name),
        float_type=np.dtype(np.float64) if of_joints else poses.dtype.newbyteorder("="),
        time=_time(file, frames, file_name),
        step=_step(file, frames, file_name),
        creator=creator,
        episodes=_episodes(file, frames, worlds, file_name),
    )


def check_format(file: h5py.File, file_name: str) -> str:
    """The creator of a recorded trajectory. Raises InputError for another format or version."""
    known, file_format = f"this program reads {TRAJECTORY_FORMAT} {TRAJECTORY_VERSION[0]}.x", h5_files.format_of(file)
    if file_format != TRAJECTORY_FORMAT:
        what = f"the file's format is '{file_format}'" if file_format else "the file has no format attribute"
        fix = "give a recorded trajectory"
        if file_format == "collide-contacts":
            fix = "this is a contact set, give the trajectory it was made from"
        raise InputError(what, f"{file_name}: attribute format", f"{known}; {fix}")
    version = np.asarray(file.attrs.get("format_version", ()))
    if version.shape != (2,) or version.dtype.kind not in "iu":
        raise InputError("the version is not two integers", f"{file_name}: attribute format_version", known)
    major, minor = (int(v) for v in version)
    if major != TRAJECTORY_VERSION[0]:
        raise InputError(f"the file has version {major}.{minor}", f"{file_name}: attribute format_version", known)
    h5_files.refuse_attributes(file, ATTRIBUTE_RULES, file_name, "record the file again, or correct the attribute")
    return h5_files.text_of(file.attrs.get("creator", ""))


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

    With it, consecutive ranges of frames that meet inside a chunk decode the chunk once, in bounded memory.
    """
    item = dataset(file, name, file_name)
    if item.chunks is None:
        return item
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_chunk_cache(_CACHE_SLOTS, 2 * math.prod(item.chunks) * item.dtype.itemsize, 1.0)
    del item  # HDF5 keeps the cache of a dataset that is open already
    return h5py.Dataset(h5d.open(file.id, name.encode(), access))


def _floats(file: h5py.File, name: str, file_name: str) -> h5py.Dataset:
    item = dataset(file, name, file_name)
    if item.dtype.kind != "f" or item.dtype.itemsize not in (4, 8):
        raise InputError(f"the type is {item.dtype}", f"{file_name}: /{name}", "record it as float32 or float64")
    return item


def _body_names(file: h5py.File, count: int, file_name: str) -> tuple[str, ...]:
    names = dataset(file, "body_name", file_name)
    where = f"{file_name}: /body_name"
    if h5py.check_string_dtype(names.dtype) is None:
        raise InputError(f"the type is {names.dtype}, not a string", where, "name the bodies in UTF-8")
    if names.shape != (count,):
        what = f"the shape is {_shown(names.shape)}, but /body_q has {count} bodies"
        raise InputError(what, where, "give each body one name")
    try:
        return tuple(str(name) for name in np.asarray(names.asstr("utf-8")[()]))
    except UnicodeDecodeError as error:
        raise InputError("a name is not UTF-8", where, "name the bodies in UTF-8") from error
    except OSError as error:
        raise InputError(f"the dataset cannot be read: {error}", where, "record the file again") from error


def _time(file: h5py.File, frames: int, file_name: str) -> np.ndarray:
    item = _floats(file, "time", file_name)
    where = f"{file_name}: /time"
    time = _column(item, frames, where).astype(np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(f"the time is {time[frame]:g}", f"{where}, frame {frame}", "record the times again")
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
        raise InputError(f"the type is {item.dtype}, not an integer", where, "record the steps as int64")
    return _column(item, frames, where).astype(np.int64)


def _column(item: h5py.Dataset, frames: int, where: str) -> np.ndarray:
    if item.shape != (frames,):
        what = f"the shape is {_shown(item.shape)}, but the recording has {frames} frames"
        raise InputError(what, where, "give one per frame")
    try:
        with data():
            return item[()]
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
        item = dataset(file, table.path.removeprefix("/"), file_name)
        count = len(columns.get("name", item))
        is_kind = h5py.check_string_dtype(item.dtype) is not None if table.dtype is None else item.dtype.kind in "iu"
        if not is_kind or item.shape != (count,):
            kind = "strings" if table.dtype is None else str(table.dtype)
            raise InputError(f"is {item.dtype}{_shown(item.shape)}, not {kind}[{count}]", where, "record it again")
        values = item[()]
        values = h5_files.exact_texts(values, where) if table.dtype is None else values.astype(table.dtype)
        columns[table.path.rpartition("/")[2]] = values
    episodes = Episodes(**columns)
    for column, row, what in episodes.faults(frames, worlds):
        raise InputError(what, f"{file_name}: {EPISODE_GROUP}/{column}, row {row}", "record it again")
    return episodes


def _optional(file: h5py.File, name: str, shape: tuple[int | None, ...], file_name: str) -> int:
    """The third extent of an optional dataset of floats; -1 if it is absent."""
    if name not in file:
        return -1
    item = _floats(file, name, file_name)
    if len(item.shape) != len(shape) or any(w is not None and w != g for w, g in zip(shape, item.shape, strict=True)):
        wanted = ", ".join("any" if extent is None else str(extent) for extent in shape)
        what = f"the shape is {_shown(item.shape)}, not [{wanted}]"
        raise InputError(what, f"{file_name}: /{name}", "record it in that shape")
    return int(item.shape[2])


def _shown(shape: tuple[int, ...] | None) -> str:
    return "empty" if shape is None else f"[{', '.join(str(extent) for extent in shape)}]"


# Rows of frames.

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
        chunk = self._chunks[0] if self._chunks is not None and frames.step == 1 else 1
        whole = max(1, PIECE_BYTES // max(1, self._row_bytes * chunk)) * chunk
        first = 0
        while first < len(frames):
            end = first + whole - (frames[first] % whole if frames.step == 1 else 0)
            yield frames[first:end]
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
        offsets = np.full(-(-self._count // frames), -1)

        def keep(chunk: Any) -> None:
            if chunk.byte_offset is not None and chunk.size == frames * self._row_bytes and not chunk.filter_mask:
                offsets[chunk.chunk_offset[0] // frames] = chunk.byte_offset

        with contextlib.suppress(*h5_files.DAMAGE, IndexError):  # HDF5 reads what is not found, or reports the damage
            self._data.id.chunk_iter(keep)
        return offsets


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


TRAJECTORY_COMPRESSIONS = ("none", "gzip")

_CHUNK_BYTES = 1 << 18
_CHUNK_FRAMES = 4096


class TrajectoryWriter:
    """An atomic trajectory file, to which blocks of frames are appended.

    A context manager: a normal exit moves the file to its path, an exit by an exception leaves no file.

    Args:
        body_names: the bodies of body_q; None to write joint_q.
        coordinate_count: length of qpos for joint_q. mocap_count: mocap bodies, with joint_q only.
        float_type: of body_q, float32 or float64; joint_q is float64.
        compression: "none" reads fastest; "gzip" (with shuffle) is smaller.
        episodes: of a recording that consists of demonstrations.
        frames_expected: limits the chunks, so that a short recording does not waste its last one; 0 if unknown.
    Raises OutputError if the file exists without `force`, or cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        world_count: int = 1,
        body_names: tuple[str, ...] | None = None,
        coordinate_count: int = 0,
        mocap_count: int = 0,
        particle_count: int = 0,
        float_type: np.dtype | str = "float64",
        compression: str = "none",
        frames_expected: int = 0,
        creator: str = "collide",
        force: bool = False,
        episodes: Episodes | None = None,
    ) -> None:
        if compression not in TRAJECTORY_COMPRESSIONS:
            fix = f"one of {', '.join(TRAJECTORY_COMPRESSIONS)}"
            raise OutputError(f"compression is '{compression}'", os.fspath(path), fix)
        self._path = os.fspath(path)
        self._compression = compression
        self._frames_expected = frames_expected
        self._frame_count = 0
        self._last_time = -np.inf
        self._datasets: dict[str, h5py.Dataset] = {}
        self._output = AtomicOutput(path, force)
        try:
            self._file = h5py.File(self._output, "w")
            self._file.attrs["format"] = TRAJECTORY_FORMAT
            self._file.attrs["format_version"] = np.array(TRAJECTORY_VERSION, np.int32)
            self._file.attrs["creator"] = creator
            self._add("time", (), unit="s")
            self._add("step", (), "int64")
            if body_names is not None:
                self._file.create_dataset("body_name", data=list(body_names), dtype=h5py.string_dtype())
                self._add("body_q", (world_count, len(body_names), 7), float_type)
            else:
                self._add("joint_q", (world_count, coordinate_count))
                self._datasets["joint_q"].attrs["layout"] = JOINT_LAYOUT
                if mocap_count:
                    self._add("mocap_q", (world_count, mocap_count, 7))
            if particle_count:
                self._add("particle_q", (world_count, particle_count, 3), unit="m")
            for table in EPISODE_TABLES if episodes is not None else ():
                values = getattr(episodes, table.path.rpartition("/")[2])
                dtype = h5py.string_dtype() if table.dtype is None else table.dtype
                self._file.create_dataset(table.path, data=list(values), dtype=dtype)
        except BaseException:
            self._output.discard()
            raise

    @property
    def frame_count(self) -> int:
        """Frames appended so far."""
        return self._frame_count

    def append(
        self,
        time: np.ndarray,
        step: np.ndarray,
        *,
        body_q: np.ndarray | None = None,
        joint_q: np.ndarray | None = None,
        mocap_q: np.ndarray | None = None,
        particle_q: np.ndarray | None = None,
    ) -> None:
        """Appends n frames: time[n], step[n], and body_q[n, W, B, 7], or joint_q[n, W, nq] and mocap_q[n, W, M, 7];
        and particle_q[n, W, P, 3] of a recording with particles.

        Raises OutputError for data that the reader refuses: descending times, invalid poses, wrong shapes.
        """
        given = {"time": time, "step": step, "body_q": body_q, "joint_q": joint_q, "mocap_q": mocap_q}
        given["particle_q"] = particle_q
        blocks = {name: np.asarray(block) for name, block in given.items() if block is not None}
        if set(blocks) != set(self._datasets):
            raise OutputError(f"the arrays are {', '.join(blocks)}, not {', '.join(self._datasets)}", self._path)
        self._check(blocks)
        first, count = self._frame_count, len(blocks["time"])
        for name, block in blocks.items():
            data = self._datasets[name]
            data.resize(first + count, axis=0)
            data[first:] = block
        self._frame_count += count
        self._output.check()

    def close(self) -> None:
        """Completes the file and moves it to its path. Raises OutputError for no frames or a failed write."""
        if self._frame_count == 0:
            self.abort()
            raise OutputError("the recording has no frames", self._path, "record at least one frame")
        try:
            self._file.close()
            self._output.commit()
        finally:
            self._output.discard()

    def abort(self) -> None:
        """Discards the file; an existing file at its path remains."""
        try:
            self._file.close()
        finally:
            self._output.discard()

    def __enter__(self) -> TrajectoryWriter:
        self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _add(self, name: str, row_shape: tuple[int, ...], dtype: np.dtype | str = "float64", unit: str = "") -> None:
        """Creates a dataset that is extensible by frames."""
        dtype = np.dtype(dtype)
        row_bytes = max(1, int(np.prod(row_shape))) * dtype.itemsize
        frames = max(1, min(_CHUNK_BYTES // row_bytes, self._frames_expected or _CHUNK_FRAMES))
        worlds = row_shape[:1]
        if worlds and row_bytes > _CHUNK_BYTES:
            worlds = (max(1, _CHUNK_BYTES * worlds[0] // row_bytes),)
        chunk = (frames, *worlds, *(max(1, extent) for extent in row_shape[1:]))
        longest = (None, *(extent or None for extent in row_shape))
        filters = {"compression": "gzip", "compression_opts": 4, "shuffle": True} if self._compression == "gzip" else {}
        shape: dict[str, Any] = {"shape": (0, *row_shape), "maxshape": longest, "chunks": chunk}
        self._datasets[name] = self._file.create_dataset(name, dtype=dtype, **shape, **filters)
        if unit:
            self._datasets[name].attrs["unit"] = unit

    def _check(self, blocks: dict[str, np.ndarray]) -> None:
        count = len(blocks["time"])
        for name, block in blocks.items():
            wanted = (count, *self._datasets[name].shape[1:])
            if block.shape != wanted:
                raise OutputError(f"the shape is {block.shape}, not {wanted}", f"{self._path}: /{name}")
        times = np.concatenate([[self._last_time], blocks["time"]])
        # A NaN fails this condition too; the first time has -inf before it.
        if not (np.isfinite(times[1:]).all() and (np.diff(times) >= 0.0).all()):
            where = f"{self._path}: /time, frames {self._frame_count} onwards"
            raise OutputError("time is not finite or runs back", where)
        for name in filter(_FAULTS.__contains__, blocks):
            bad = _bad_entries(name, blocks[name])
            if bad.any():
                frame, world, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
                where = f"{self._path}: /{name}, frame {self._frame_count + int(frame)}, world {world}, column {column}"
                raise OutputError(_FAULTS[name], where)
        if count:
            self._last_time = float(times[-1])


_FAULTS = {
    "body_q": "a pose is not finite or no rotation",
    "mocap_q": "a pose is not finite or no rotation",
    "joint_q": "a coordinate is not finite",
    "particle_q": f"a position is not finite, or beyond {POSITION_LIMIT:g} m",
}
"""What is wrong with a bad entry of a dataset."""


# Validation of the header and of every pose.

BLOCK_BYTES = 16 << 20


def check_trajectory(path: str | os.PathLike[str]) -> list[h5_files.Finding]:
    """All faults of the trajectory at `path`, without a scene; empty for a valid file.

    Each dataset has at most one finding, with its first bad entry and the count. Reads in blocks, in bounded memory.
    """
    name = os.fspath(path)
    try:
        with h5_files.open_h5(name) as file:
            header = header_of(file, name)
            twice = [body for body, count in Counter(header.body_names).items() if count > 1][:1]
            findings = [h5_files.Finding(f"{name}: /body_name", f"body '{body}' is named twice") for body in twice]
            findings += _entry_findings(file, name, header.kind, header.body_names)
            for optional, recorded in (("mocap_q", header.mocap_count), ("particle_q", header.particle_count)):
                findings += _entry_findings(file, name, optional, ()) if recorded >= 0 else []
            return findings
    except InputError as error:
        return [h5_files.Finding(error.where, error.what)]


def _entry_findings(file: h5py.File, name: str, kind: str, body_names: tuple[str, ...]) -> list[h5_files.Finding]:
    """Faults of one dataset [frames, worlds, entries, ...]; joint_q's entries are its coordinates."""
    data = dataset(file, kind, name)
    step = max(1, BLOCK_BYTES // max(1, 8 * int(np.prod(data.shape[1:]))))
    first, total = h5_files.Finding("", ""), 0
    for start in range(0, data.shape[0], step):
        try:
            block = data[start : start + step].astype(np.float64)
        except OSError as error:
            what = f"frames {start} to {min(start + step, data.shape[0]) - 1} cannot be read: {error}"
            return [h5_files.Finding(f"{name}: /{kind}", what)]
        bad = _bad_entries(kind, block)
        if bad.any() and not total:
            frame, world, entry = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            words = {"joint_q": "the value is not finite", "particle_q": _FAULTS["particle_q"].replace("a ", "the ", 1)}
            what = words[kind] if kind in words else pose_fault(block[frame, world, entry])
            body = f"body '{body_names[entry]}'" if body_names else f"entry {entry}"
            first = h5_files.Finding(f"{name}: /{kind}, frame {start + frame}, world {world}, {body}", what)
        total += int(bad.sum())
    more = f" ({total} faults)" if total > 1 else ""
    return [h5_files.Finding(first.where, first.what + more)] if total else []
