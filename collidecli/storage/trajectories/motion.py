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
from functools import cached_property
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.kinematics import Kinematics
from collidecli.scene.model import Model
from collidecli.storage.file_hash import RecordedInFile
from collidecli.storage.h5_input import DAMAGE, open_h5
from collidecli.storage.trajectories.bodies import BodyMatch
from collidecli.storage.trajectories.header import TrajectoryHeader, cached_dataset, header_of
from collidecli.storage.trajectories.particles import check_positions

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
    path: str | os.PathLike[str],
    model: Model,
    kinematics: Kinematics | None = None,
    ignore_particles: bool = False,
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


class TrajectoryMotion(RecordedInFile):
    """A recorded motion (see `scene.motion.Motion`); only the requested frames are in memory.

    header: of the file. warnings: for the user. kinematics_seconds: time of forward kinematics so far.
    """

    def __init__(
        self,
        file: h5py.File,
        path: str,
        model: Model,
        kinematics: Kinematics | None,
        ignore_particles: bool = False,
    ) -> None:
        self.header = header_of(file, path)
        particles = _particle_warnings(self.header, model, ignore_particles)
        has_particles = self.header.particle_count > 0 and not ignore_particles
        self._particles = FrameRows(file, cached_dataset(file, "particle_q", path)) if has_particles else None
        self.kinematics_seconds, self.has_joint_tree = 0.0, self.header.kind == "joint_q"
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
