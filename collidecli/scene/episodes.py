"""The episodes of a recording: which frames of which world are one demonstration, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from collidecli.scene.contact_blocks import ContactBlock, groups_without_cells

UNNAMED = "the table"
"""Name of the one episode that files written before have of a recording without demonstrations,
such as a table; now such a recording has no episodes."""


def shown_name(name: str) -> str:
    """The name of an episode in texts for readers: "" of an `UNNAMED` one. Such names end with `#`
    and the world where the episode is in several worlds, or sets are merged."""
    return "" if name == UNNAMED or name.startswith(f"{UNNAMED}#") else name


def row_names(episodes: Episodes | None, path: str) -> tuple[str, ...]:
    """The names of the episodes of a contact set in rows of tables, which may stand without the
    set: that of the file for one that the recording does not name. path: of the set."""
    file = path.replace("\\", "/").rpartition("/")[2]
    for ending in (".h5", ".hdf5", ".contacts"):
        file = file.removesuffix(ending)
    names = () if episodes is None else episodes.name
    return tuple(
        file + name.removeprefix(UNNAMED) if not shown_name(name) else name for name in names
    )


@dataclass(frozen=True)
class Episodes:
    """Episodes of a motion or a contact set, E rows. A cell outside every episode is not recorded.

    name: of each, unique. world: int32[E]. first_frame, frame_count: int64[E]; an episode of which
    no frame is selected has none.
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
        count = len(lengths)
        counts = [min(length, frame_count) for length in lengths.values()]
        world = np.arange(count, dtype=np.int32)
        first = np.zeros(count, np.int64)
        return cls(tuple(lengths), world, first, np.array(counts, np.int64))

    def in_worlds(self, world_count: int) -> Episodes:
        """The episodes of one world in each of `world_count` worlds; of several, `#` and the world
        follow the name."""
        if world_count == 1:
            return self
        names = tuple(f"{name}#{world}" for world in range(world_count) for name in self.name)
        world = np.repeat(np.arange(world_count, dtype=np.int32), len(self))
        return Episodes(
            names,
            world,
            np.tile(self.first_frame, world_count),
            np.tile(self.frame_count, world_count),
        )

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
        """Each as name, world, first_frame, frame_count and seconds, for results. time: float64[F]
        [s]."""
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
        inside = (
            (self.world[row] == world)
            & (self.first_frame[row] <= frame)
            & (frame < self.end_frame[row])
        )
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
        return ContactBlock(
            block.first_cell, np.where(inside, block.cell_counts, 0), columns, groups
        )

    def faults(self, frame_count: int, world_count: int) -> list[tuple[str, int, str]]:
        """Rules that the table breaks: (column, row, what)."""
        first: dict[str, int] = {}
        repeated = [row for row, name in enumerate(self.name) if first.setdefault(name, row) != row]
        beyond = (self.frame_count < 0) | (self.frame_count > frame_count - self.first_frame)
        rules: list[tuple[str, Sequence[int] | np.ndarray, str]] = [
            ("name", repeated, "is the name of an earlier episode"),
            (
                "world",
                np.flatnonzero((self.world < 0) | (self.world >= world_count)),
                "is no world",
            ),
            (
                "first_frame",
                np.flatnonzero((self.first_frame < 0) | (self.first_frame > frame_count)),
                "is no frame",
            ),
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
    return episodes.inside(0, frame_count * world_count, world_count).reshape(
        frame_count, world_count
    )


def episodes_of_worlds(tables: Sequence[Episodes], first_world: Sequence[int]) -> Episodes:
    """The episodes of sets of disjoint worlds; where a name is not unique, each ends with `#` and
    the merged world."""
    world = np.concatenate(
        [episodes.world + first for episodes, first in zip(tables, first_world, strict=True)]
    )
    names = [name for episodes in tables for name in episodes.name]
    if len(set(names)) < len(names):
        names = [f"{name}#{number}" for name, number in zip(names, world.tolist(), strict=True)]
    first_frame, frame_count = (
        np.concatenate([getattr(episodes, column) for episodes in tables])
        for column in ("first_frame", "frame_count")
    )
    return Episodes(tuple(names), world.astype(np.int32), first_frame, frame_count)
