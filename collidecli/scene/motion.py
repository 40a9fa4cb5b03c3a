"""The interface of a motion: frames that can be read in chunks of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.tables import ContactBlock, groups_without_cells

# The episodes of a recording: which frames of which world are one demonstration, by name.


@dataclass(frozen=True)
class Episodes:
    """Episodes of a motion or a contact set, E rows. A cell outside every episode is not recorded.

    name: of each, unique. world: int32[E]. first_frame, frame_count: int64[E]; an episode of which no frame is selected
    has none.
    """

    name: tuple[str, ...]
    world: np.ndarray
    first_frame: np.ndarray
    frame_count: np.ndarray

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def of_demonstrations(cls, lengths: Mapping[str, int], frame_count: int) -> Episodes:
        """Each demonstration as a world, from frame 0 to its own length or the end of the motion.

        lengths: recorded frames by name.
        """
        count, counts = len(lengths), [min(length, frame_count) for length in lengths.values()]
        world, first = np.arange(count, dtype=np.int32), np.zeros(count, np.int64)
        return cls(tuple(lengths), world, first, np.array(counts, np.int64))

    def in_worlds(self, world_count: int) -> Episodes:
        """The episodes of one world in each of `world_count` worlds; of several, `#` and the world follow the name."""
        if world_count == 1:
            return self
        names = tuple(f"{name}#{world}" for world in range(world_count) for name in self.name)
        world = np.repeat(np.arange(world_count, dtype=np.int32), len(self))
        return Episodes(names, world, np.tile(self.first_frame, world_count), np.tile(self.frame_count, world_count))

    @property
    def end_frame(self) -> np.ndarray:
        """int64[E]: the frame after the last of each."""
        return self.first_frame + self.frame_count

    def sliced(self, frames: range) -> Episodes:
        """The episodes in a selection of frames, which are numbered in the selection."""
        starts = (frame - frames.start for frame in (self.first_frame, self.end_frame))
        first, end = (np.clip(-(-frame // frames.step), 0, len(frames)) for frame in starts)
        return Episodes(self.name, self.world, first, end - first)

    def seconds(self, time: np.ndarray) -> np.ndarray:
        """float64[E]: time from the first to the last frame of each [s]. time: float64[F]."""
        last = np.maximum(self.end_frame - 1, self.first_frame)
        has_frames = self.frame_count > 0
        seconds = np.zeros(len(self))
        seconds[has_frames] = time[last[has_frames]] - time[self.first_frame[has_frames]]
        return seconds

    def listed(self, time: np.ndarray) -> list[dict[str, Any]]:
        """Each as name, world, first_frame, frame_count and seconds, for results. time: float64[F] [s]."""
        columns = (self.world, self.first_frame, self.frame_count, self.seconds(time))
        keys = ("name", "world", "first_frame", "frame_count", "seconds")
        rows = zip(self.name, *(column.tolist() for column in columns), strict=True)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def of_worlds(self, worlds: np.ndarray) -> Episodes:
        """The episodes of some worlds; they keep their numbers."""
        rows = np.flatnonzero(np.isin(self.world, worlds))
        names = tuple(self.name[row] for row in rows)
        return Episodes(names, self.world[rows], self.first_frame[rows], self.frame_count[rows])

    @cached_property
    def _ordered(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows with frames, ordered by world and first frame, and their sort keys."""
        rows = np.flatnonzero(self.frame_count > 0)
        rows = rows[np.lexsort((self.first_frame[rows], self.world[rows]))]
        return rows, _key(self.world[rows], self.first_frame[rows])

    def row(self, world: np.ndarray, frame: np.ndarray) -> np.ndarray:
        """int64[n]: the episode of each cell; -1 for a cell outside every episode."""
        rows, keys = self._ordered
        if not len(rows):
            return np.full(len(world), -1, np.int64)
        row = rows[np.maximum(np.searchsorted(keys, _key(world, frame), side="right") - 1, 0)]
        inside = (self.world[row] == world) & (self.first_frame[row] <= frame) & (frame < self.end_frame[row])
        return np.where(inside, row, -1)

    def name_at(self, world: int, frame: int) -> str:
        """Name of a cell's episode; "" outside every episode."""
        row = int(self.row(np.array([world]), np.array([frame]))[0])
        return self.name[row] if row >= 0 else ""

    def starts(self, frame: int) -> np.ndarray:
        """int32[n]: worlds in which an episode begins at a frame."""
        return self.world[(self.first_frame == frame) & (self.frame_count > 0)]

    def inside(self, first_cell: int, cell_count: int, world_count: int) -> np.ndarray:
        """bool[cell_count]: whether each of consecutive cells is in an episode."""
        frame, world = np.divmod(np.arange(first_cell, first_cell + cell_count), world_count)
        return self.row(world, frame) >= 0

    def without_others(self, block: ContactBlock, world_count: int) -> ContactBlock:
        """The block without the contacts of cells outside every episode."""
        inside = self.inside(block.first_cell, len(block.cell_counts), world_count)
        counts = (block.cell_counts, *(rows.cell_counts for rows in block.groups.values()))
        if not any(count[~inside].any() for count in counts):
            return block
        rows = np.repeat(inside, block.cell_counts)
        columns = {name: values[rows] for name, values in block.columns.items()}
        groups = groups_without_cells(block.groups, ~inside)
        return ContactBlock(block.first_cell, np.where(inside, block.cell_counts, 0), columns, groups)

    def faults(self, frame_count: int, world_count: int) -> list[tuple[str, int, str]]:
        """Rules that the table breaks: (column, row, what)."""
        first: dict[str, int] = {}
        repeated = [row for row, name in enumerate(self.name) if first.setdefault(name, row) != row]
        beyond = (self.frame_count < 0) | (self.frame_count > frame_count - self.first_frame)
        rules: list[tuple[str, Sequence[int] | np.ndarray, str]] = [
            ("name", repeated, "is the name of an earlier episode"),
            ("world", np.flatnonzero((self.world < 0) | (self.world >= world_count)), "is no world"),
            ("first_frame", np.flatnonzero((self.first_frame < 0) | (self.first_frame > frame_count)), "is no frame"),
            ("frame_count", np.flatnonzero(beyond), "exceeds the frames of the file"),
        ]
        faults = [(column, int(rows[0]), what) for column, rows, what in rules if len(rows)]
        if not faults:
            rows, _ = self._ordered
            overlap = self.first_frame[rows[1:]] < self.end_frame[rows[:-1]]
            overlap &= self.world[rows[1:]] == self.world[rows[:-1]]
            what = "is before the end of another episode of its world"
            faults += [("first_frame", int(rows[k + 1]), what) for k in np.flatnonzero(overlap)[:1]]
        return faults


def _key(world: np.ndarray, frame: np.ndarray) -> np.ndarray:
    return world.astype(np.int64) * 2**40 + frame


def recorded_cells(episodes: Episodes | None, frame_count: int, world_count: int) -> np.ndarray:
    """bool[frames, worlds]: whether each cell is recorded: in an episode, if there are some."""
    if episodes is None:
        return np.ones((frame_count, world_count), bool)
    return episodes.inside(0, frame_count * world_count, world_count).reshape(frame_count, world_count)


class Motion(Protocol):
    """Body poses over time, matched to a model's bodies.

    time: float64[F] [s], non-decreasing, or frame numbers, see `time_unit`. step: int64[F], the recorder's own step
        numbers.
    world_count: worlds in the recording. 1 applies to every world of the model: a body has the recorded pose in the
        first world of its template, and that pose moved by `Model.world_shift` in the others.
    float_type: the dtype of the recording, float32 or float64; witness points are written in it.
    warnings: for the user, one line each. kinematics_seconds: time spent in forward kinematics by `read` so far [s].
    sha256: of the recording's bytes; empty when the motion is part of the scene file. episodes: of a recording that
        consists of demonstrations, or None. A cell outside every episode has poses, but no contacts.
    """

    time: np.ndarray
    step: np.ndarray
    world_count: int
    float_type: np.dtype
    episodes: Episodes | None

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def kinematics_seconds(self) -> float: ...

    @property
    def sha256(self) -> str: ...

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), world_count, B, 7]: world pose of each of the model's bodies, xyzw, normalized.

        Raises InputError with dataset, frame, world and body of a pose that is not finite or not a rotation.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class RecordsCoordinates(Protocol):
    """A motion of generalized coordinates of one MuJoCo scene."""

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), world_count, nq], and poses of mocap bodies [len(frames), world_count, nmocap, 7],
        xyzw, or None where they rest. None in place of both for a recording of body poses.
        """
        ...


def has_joint_tree(motion: Motion) -> bool:
    """Whether a motion computes its poses by a tree of joints (`scene.kinematics`): its attribute of this name."""
    return bool(getattr(motion, "has_joint_tree", False))


SECOND, FRAME = "s", "frame"
"""Units of times: seconds, or numbers of frames where the times of the frames are unknown."""
NO_TIME = "the poses are an array without times"
GIVE_TIMES = "give time= [s] or fps= beside the poses"


def time_unit(motion: Motion) -> str:
    """SECOND, or FRAME for poses whose times are unknown: a motion's attribute `time_unit`."""
    return str(getattr(motion, "time_unit", SECOND))


def check_seconds(unit: str, where: str) -> None:
    """Raises InputError for a result in seconds, named by `where`, of poses whose times are unknown."""
    if unit != SECOND:
        raise InputError(f"{NO_TIME}: there are no seconds", where, GIVE_TIMES)


def recorded_particles(motion: Motion, frames: range) -> np.ndarray | None:
    """float64[len(frames), world_count, P, 3]: world positions of a model's particles; None if they rest.

    Of a motion with the method `read_particles`, which raises InputError with dataset, frame, world and particle of a
    position that is not finite.
    """
    read = getattr(motion, "read_particles", None)
    return None if read is None else read(frames)


def episodes_in(motion: Motion, world_count: int) -> Episodes | None:
    """The episodes of a motion in the worlds of a model; one recorded world moves all of them."""
    if motion.episodes is None or motion.world_count > 1:
        return motion.episodes
    return motion.episodes.in_worlds(world_count)


class TimedMotion:
    """Base of motions with one time a frame: of one world, float64 and no recording, unless they set other values.

    time: float64[F] [s]. close: releases what is read; None where nothing is open.
    """

    world_count: int = 1
    float_type: np.dtype = np.dtype(np.float64)
    warnings: tuple[str, ...] = ()
    kinematics_seconds: float = 0.0
    episodes: Episodes | None = None

    def __init__(self, time: np.ndarray, close: Callable[[], None] | None = None) -> None:
        self.time, self.step, self._close = time, np.arange(len(time), dtype=np.int64), close

    def close(self) -> None:
        if self._close is not None:
            self._close()


class RestingMotion(TimedMotion):
    """The scene's resting pose, as a motion of one frame at time 0.

    poses: float64[1 or W, B, 7], of all worlds or of each world.
    """

    def __init__(self, poses: np.ndarray) -> None:
        super().__init__(np.zeros(1))
        self.world_count, self.sha256 = len(poses), ""
        self._pose = np.ascontiguousarray(poses)[None]

    def read(self, frames: range) -> np.ndarray:
        return np.repeat(self._pose, len(frames), axis=0)
