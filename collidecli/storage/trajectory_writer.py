"""Writer of trajectories."""

from __future__ import annotations

import os
from typing import Any

import h5py
import numpy as np

from collidecli.errors import OutputError
from collidecli.scene.episodes import Episodes
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.header import EPISODE_TABLES
from collidecli.storage.output_writer import OutputWriter
from collidecli.storage.pose_checks import bad_entries
from collidecli.storage.trajectory_check import POSE_FAULTS
from collidecli.storage.trajectory_header import (
    CONVERTED_VERSION,
    JOINT_LAYOUT,
    NORMALIZED,
    TRAJECTORY_FORMAT,
    TRAJECTORY_VERSION,
)

TRAJECTORY_COMPRESSIONS = ("none", "gzip")
_CHUNK_BYTES = 1 << 18
_CHUNK_FRAMES = 4096


class TrajectoryWriter(OutputWriter):
    """An atomic trajectory file, to which blocks of frames are appended.

    A context manager: a normal exit moves the file to its path, an exit by an exception leaves no
    file.

    Args:
        body_names: the bodies of body_q; None to write joint_q.
        coordinate_count: length of qpos for joint_q. mocap_count: mocap bodies, with joint_q only.
        float_type: of body_q, float32 or float64; joint_q is float64.
        converted_from: float type of the recording whose poses, as they were read, are body_q in
            float64: a reader keeps their bits, and writes points in this type. None: recorded.
        compression: "none" reads fastest; "gzip" (with shuffle) is smaller.
        episodes: of a recording that consists of demonstrations.
        frames_expected: limits the chunks, so that a short recording does not waste its last one; 0
            if unknown.
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
        converted_from: np.dtype | None = None,
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
            version = TRAJECTORY_VERSION if converted_from is None else CONVERTED_VERSION
            self._file.attrs["format_version"] = np.array(version, np.int32)
            self._file.attrs["creator"] = creator
            self._add("time", (), unit="s")
            self._add("step", (), "int64")
            if body_names is not None:
                self._file.create_dataset(
                    "body_name", data=list(body_names), dtype=h5py.string_dtype()
                )
                self._add("body_q", (world_count, len(body_names), 7), float_type)
                if converted_from is not None:
                    self._datasets["body_q"].attrs["quaternions"] = NORMALIZED
                    self._datasets["body_q"].attrs["point_type"] = np.dtype(converted_from).name
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
        """Appends n frames: time[n], step[n], and body_q[n, W, B, 7], or joint_q[n, W, nq] and
        mocap_q[n, W, M, 7]; and particle_q[n, W, P, 3] of a recording with particles.

        Raises OutputError for data that the reader refuses: descending times, invalid poses, wrong
        shapes.
        """
        given = {
            "time": time,
            "step": step,
            "body_q": body_q,
            "joint_q": joint_q,
            "mocap_q": mocap_q,
        }
        given["particle_q"] = particle_q
        blocks = {name: np.asarray(block) for name, block in given.items() if block is not None}
        if set(blocks) != set(self._datasets):
            raise OutputError(
                f"the arrays are {', '.join(blocks)}, not {', '.join(self._datasets)}", self._path
            )
        self._check(blocks)
        first = self._frame_count
        count = len(blocks["time"])
        for name, block in blocks.items():
            data = self._datasets[name]
            data.resize(first + count, axis=0)
            data[first:] = block
        self._frame_count += count
        self._output.check()

    def close(self) -> None:
        """Completes the file and moves it to its path. Raises OutputError for no frames or a failed
        write."""
        if self._frame_count == 0:
            self.abort()
            raise OutputError(
                "the recording has no frames", self._path, "record at least one frame"
            )
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

    def _leave(self, failed: bool) -> None:
        if failed:
            self.abort()
        else:
            self.close()

    def _add(
        self,
        name: str,
        row_shape: tuple[int, ...],
        dtype: np.dtype | str = "float64",
        unit: str = "",
    ) -> None:
        """Creates a dataset that is extensible by frames."""
        dtype = np.dtype(dtype)
        row_bytes = max(1, int(np.prod(row_shape))) * dtype.itemsize
        frames = max(1, min(_CHUNK_BYTES // row_bytes, self._frames_expected or _CHUNK_FRAMES))
        worlds = row_shape[:1]
        if worlds and row_bytes > _CHUNK_BYTES:
            worlds = (max(1, _CHUNK_BYTES * worlds[0] // row_bytes),)
        chunk = (frames, *worlds, *(max(1, extent) for extent in row_shape[1:]))
        longest = (None, *(extent or None for extent in row_shape))
        filters = (
            {"compression": "gzip", "compression_opts": 4, "shuffle": True}
            if self._compression == "gzip"
            else {}
        )
        shape: dict[str, Any] = {"shape": (0, *row_shape), "maxshape": longest, "chunks": chunk}
        self._datasets[name] = self._file.create_dataset(name, dtype=dtype, **shape, **filters)
        if unit:
            self._datasets[name].attrs["unit"] = unit

    def _check(self, blocks: dict[str, np.ndarray]) -> None:
        count = len(blocks["time"])
        for name, block in blocks.items():
            wanted = (count, *self._datasets[name].shape[1:])
            if block.shape != wanted:
                raise OutputError(
                    f"the shape is {block.shape}, not {wanted}", f"{self._path}: /{name}"
                )
        times = np.concatenate([[self._last_time], blocks["time"]])
        # A NaN fails this condition too; the first time has -inf before it.
        if not (np.isfinite(times[1:]).all() and (np.diff(times) >= 0.0).all()):
            where = f"{self._path}: /time, frames {self._frame_count} onwards"
            raise OutputError("time is not finite or runs back", where)
        for name in filter(POSE_FAULTS.__contains__, blocks):
            bad = bad_entries(name, blocks[name])
            if bad.any():
                frame, world, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
                where = (
                    f"{self._path}: /{name}, frame {self._frame_count + int(frame)}, world {world},"
                    f" column {column}"
                )
                raise OutputError(POSE_FAULTS[name], where)
        if count:
            self._last_time = float(times[-1])


BLOCK_BYTES = 8 << 20
"""Size of the motion that is buffered before it is written."""
