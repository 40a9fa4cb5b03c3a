"""Mapping of the frames and worlds of several contact sets to those of the merged set, and its blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contacts import CONTACT_ID, ContactBlock
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet

CELL_WINDOW = 1 << 18
"""Number of cells that are sorted together."""


@dataclass(frozen=True)
class MergePlan:
    """Mapping to the merged set. frame_of: for each set, intp[its frames], ascending merged frames.

    first_world: merged number of the first world of each set. world_count, step, time: of the merged set.
    """

    frame_of: tuple[np.ndarray, ...]
    first_world: tuple[int, ...]
    world_count: int
    step: np.ndarray
    time: np.ndarray

    @property
    def frame_count(self) -> int:
        """Number of merged frames."""
        return len(self.step)


def plan_frames(sets: Sequence[ContactSet]) -> MergePlan:
    """Plan for sets of disjoint frames, ordered by step, with equal worlds.

    Raises InputError for contact ids, which start anew in every set; for steps that do not increase, a step in two
    sets, or times that decrease.
    """
    for one in sets:
        if CONTACT_ID.name in one.optional_columns:
            what = "it has contact ids, which start anew in every set"
            raise InputError(what, f"{one.path}: /rigid_contacts/{CONTACT_ID.name}", "run the whole motion at once")
        falls = np.flatnonzero(one.step[1:] <= one.step[:-1])
        if len(falls):
            what = f"step {one.step[falls[0] + 1]} follows step {one.step[falls[0]]}: steps must increase"
            raise InputError(what, f"{one.path}: /time/step", "record increasing steps")
    steps = np.concatenate([one.step for one in sets])
    owner = np.repeat(np.arange(len(sets)), [one.frame_count for one in sets])
    order = np.argsort(steps, kind="stable")
    same = np.flatnonzero(steps[order[1:]] == steps[order[:-1]])
    if len(same):
        first, second = (sets[int(owner[order[same[0] + k]])].path for k in (0, 1))
        what = f"step {steps[order[same[0]]]} is in {first} too" + (
            f", {len(same)} steps in all" if len(same) > 1 else ""
        )
        raise InputError(what, second, "give disjoint frames, or --worlds if these are other worlds")
    time = np.concatenate([one.time for one in sets])[order]
    back = np.flatnonzero(np.diff(time) < 0.0)
    if len(back):
        before, after = (sets[int(owner[order[back[0] + k]])].path for k in (0, 1))
        one, next_one = steps[order[back[0] : back[0] + 2]]
        what = f"step {next_one} is earlier than step {one} of {before}: times must increase with steps"
        raise InputError(what, after, "give sets of one recording")
    merged = np.empty(len(order), np.intp)
    merged[order] = np.arange(len(order))
    frame_of = tuple(merged[owner == k] for k in range(len(sets)))
    return MergePlan(frame_of, (0,) * len(sets), sets[0].world_count, steps[order], time)


def plan_worlds(sets: Sequence[ContactSet]) -> MergePlan:
    """Plan for sets of disjoint worlds, in the order of the sets, with equal frames.

    Raises InputError for different frames, and for sets of one recording with common worlds.
    """
    for k, one in enumerate(sets):
        for name in ("step", "time"):
            if not np.array_equal(getattr(one, name), getattr(sets[0], name)):
                raise InputError(
                    f"the frames differ from those of {sets[0].path} in /time/{name}",
                    one.path,
                    "give sets of the same frames, or leave --worlds out if these are other frames",
                )
        twin = next((other for other in sets[:k] if _share_worlds(one, other)), None)
        if twin is not None:
            what = f"it has worlds of {twin.path}: both are of one motion"
            raise InputError(what, one.path, "give sets of disjoint worlds")
    counts = [one.world_count for one in sets]
    every = np.arange(sets[0].frame_count)
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    return MergePlan((every,) * len(sets), first, sum(counts), sets[0].step, sets[0].time)


def _share_worlds(one: ContactSet, other: ContactSet) -> bool:
    """Whether both are of one recording without disjoint demonstrations."""
    if one.trajectory_sha256 != other.trajectory_sha256:
        return False
    demos = [set(demos_of(each)) for each in (one, other)]
    return not (demos[0] and demos[1]) or bool(demos[0] & demos[1])


def demos_of(contacts: ContactSet) -> tuple[str, ...]:
    """Names of the demonstrations in a set; () is all of its recording."""
    found = contacts.config.get("demos")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def check_same_worlds(one: ContactSet, other: ContactSet) -> None:
    """Raises InputError for sets with different numbers of worlds."""
    if one.world_count != other.world_count:
        what = f"has {one.world_count} worlds, and {other.path} has {other.world_count}"
        raise InputError(what, one.path, "give sets of the same worlds, or --worlds if these are other worlds")


def merged_blocks(
    sets: Sequence[ContactSet], plan: MergePlan, names: tuple[str, ...], max_rows: int = BLOCK_ROWS
) -> Iterator[ContactBlock]:
    """Merged cells in order, in blocks of whole frames with at most `max_rows` contacts, or of one frame.

    The frames of a block are consecutive in each set, as `frame_of` is ascending.
    """
    rows = np.zeros(plan.frame_count, np.int64)
    for one, frames in zip(sets, plan.frame_of, strict=True):
        rows[frames] += _frame_rows(one)
    ends = np.cumsum(rows)
    most_frames = max(1, CELL_WINDOW // max(1, plan.world_count))
    first = 0
    while first < plan.frame_count:
        done = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, done + max_rows, side="right"))
        last = max(first + 1, min(last, first + most_frames))
        yield _joined(sets, plan, first, last, names)
        first = last


def _frame_rows(one: ContactSet) -> np.ndarray:
    """int64[F]: number of contacts of each frame."""
    worlds, starts = one.world_count, []
    step = max(1, CELL_WINDOW // max(1, worlds))
    for first in range(0, one.frame_count, step):
        last = min(first + step, one.frame_count)
        starts.append(one.cell_start(slice(first * worlds, last * worlds))[::worlds])
    ends = one.cell_start(slice(one.cell_count, one.cell_count + 1))
    return np.diff(np.concatenate([*starts, ends]))


def _joined(sets: Sequence[ContactSet], plan: MergePlan, first: int, last: int, names: tuple[str, ...]) -> ContactBlock:
    """Merged frames first to last - 1."""
    counts = np.zeros((last - first, plan.world_count), np.int64)
    parts, cells = [], []
    for one, frames, world in zip(sets, plan.frame_of, plan.first_world, strict=True):
        low, high = np.searchsorted(frames, (first, last))
        if low == high:
            continue
        worlds = slice(world, world + one.world_count)
        block = one.cells(int(low) * one.world_count, int(high) * one.world_count, names)
        counts[frames[low:high] - first, worlds] = block.cell_counts.reshape(-1, one.world_count)
        merged = (frames[low:high, None] - first) * plan.world_count + np.arange(plan.world_count)[worlds]
        cells.append(np.repeat(merged.reshape(-1), block.cell_counts))
        parts.append(block.columns)
    cell = np.concatenate(cells)
    # The rows of a cell are of one set; the stable sort keeps their order.
    order = np.argsort(cell, kind="stable") if len(parts) > 1 else slice(None)
    columns = {name: np.concatenate([part[name] for part in parts])[order] for name in names}
    return ContactBlock(first * plan.world_count, counts.reshape(-1), columns)
