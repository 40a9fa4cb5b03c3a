"""Touches between frames: rows of the groups of steps joined over steps, with begins and ends in
seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.interval_rows import triggers_of
from collidecli.analysis.pair_selection import PARTICLES
from collidecli.analysis.totals import TOUCHES
from collidecli.analysis.touching_rows import COLUMNS_OF_GROUP, SWEPT_GROUPS, TouchingItems
from collidecli.errors import InputError
from collidecli.scene import contact_columns
from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.option_values import EVENT_COLUMNS, EVENT_ORDERS
from collidecli.storage.contact_sets.readable_rows import check_group_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import TableColumn

if TYPE_CHECKING:
    from collidecli.analysis.event_stream import EventStream
    from collidecli.analysis.touch_intervals import Intervals

TIMES = ("enter_time", "leave_time")
"""Columns of a table of intervals: when a pair begins and ends to touch, between frames too [s]."""
MISSED = "missed"


@dataclass(frozen=True)
class SweptTouches:
    """Touches of selected pairs, worlds and frames, joined over steps; ordered by key, then begin.

    key: of `EventStream.keys`. frame: of the first step. begin, end: times [s]. missed: in no
    frame. least: least distance [m]. of_particles: of particles, lines and triangles. undecided:
    rows of pairs that may touch.
    """

    key: np.ndarray
    frame: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    missed: np.ndarray
    least: np.ndarray
    of_particles: np.ndarray
    undecided: int

    def lower_least(self, touches: Intervals, time: np.ndarray) -> None:
        """Lowers `least` of the touches of particles, lines and triangles to their distances in
        frames. Between frames it is that of some points of a line or triangle. touches: of one
        frame each. time: of the frames [s]."""
        if not self.of_particles.any() or not len(touches.key):
            return
        at = time[touches.first]
        order = np.unique(np.concatenate([self.begin, self.end, at]), return_inverse=True)[1]
        n = len(self.key)
        count = int(order.max()) + 1
        numbered = np.unique(np.concatenate([self.key, touches.key]), return_inverse=True)[1]
        begins, ends = (numbered[:n] * count + order[part : part + n] for part in (0, n))
        wanted = numbered[n:] * count + order[2 * n :]
        touch = np.searchsorted(begins, wanted, side="right") - 1
        inside = (touch >= 0) & (wanted <= ends[touch]) & self.of_particles[touch]
        distance = touches.distance[inside].astype(np.float64)
        np.minimum.at(self.least, touch[inside], distance)

    def times(self, key: np.ndarray, first: np.ndarray, last: np.ndarray) -> dict[str, np.ndarray]:
        """TIMES of touches in frames, of pairs `key` from time `first` to `last` [s]: the begin of
        the earliest touch of the pair at one of these times, and the end of the latest. NaN without
        one, such as at a larger threshold.
        """
        order = np.unique(np.concatenate([self.begin, self.end, first, last]), return_inverse=True)[
            1
        ]
        n = len(self.key)
        m = len(key)
        count = int(order.max(initial=0)) + 1
        numbered = np.unique(np.concatenate([self.key, key]), return_inverse=True)[1]
        pair = numbered[n:]
        begins, ends = (numbered[:n] * count + order[at : at + n] for at in (0, n))
        since = np.searchsorted(ends, pair * count + order[2 * n : 2 * n + m], side="left")
        until = np.searchsorted(begins, pair * count + order[2 * n + m :], side="right") - 1
        swept = since <= until
        times = {name: np.full(m, np.nan) for name in TIMES}
        times["enter_time"][swept] = self.begin[since[swept]]
        times["leave_time"][swept] = self.end[until[swept]]
        return times

    def rows(self, stream: EventStream, intervals: Intervals) -> dict[str, np.ndarray]:
        """Rows of `interval_rows`, TIMES and MISSED for intervals of touches in frames."""
        rows = stream.rows(intervals)
        last = stream.frames.time[intervals.last]
        times = self.times(intervals.key, rows["begin_time"], last)
        return {**rows, **times, MISSED: np.zeros(len(intervals), bool)}

    def missed_rows(self, stream: EventStream) -> dict[str, np.ndarray]:
        """Rows of `interval_rows`, TIMES and MISSED for the touches in no frame, by begin."""
        rows = np.flatnonzero(self.missed)
        rows = rows[np.lexsort((self.key[rows], self.begin[rows]))]
        key = self.key[rows]
        frame = self.frame[rows]
        begin = self.begin[rows]
        end = self.end[rows]
        none = np.zeros(len(rows), np.int64)
        known = np.ones(len(rows), bool)
        world = stream.keys.world(key)
        episodes = stream.frames.episodes
        first = int(stream.frames.number[0]) if len(stream.frames) else 0
        return {
            "world": world,
            **({} if episodes is None else {"episode": episodes.row(world, frame - first) + 1}),
            **dict(zip(EVENT_COLUMNS[stream.by], stream.keys.items(key), strict=True)),
            **triggers_of(key, stream.keys),
            **dict.fromkeys(("begin_frame", "last_frame", "deepest_frame"), frame),
            **dict.fromkeys(("begin_known", "end_known", MISSED), known),
            **dict.fromkeys(("touching_frames", "pauses", "contacts", "most_contacts"), none),
            **{
                "begin_time": begin,
                "end_time": end,
                "seconds": end - begin,
                "enter_time": begin,
                "leave_time": end,
            },
            **{
                "least_distance": self.least[rows].astype(np.float32),
                "deepest_time": np.full(len(rows), np.nan),
            },
        }


def named_rows(
    swept: SweptTouches, stream: EventStream, intervals: Intervals
) -> dict[str, np.ndarray]:
    """The rows of intervals, then `missed_rows`, with paths and names of episodes as objects of
    type str in place of their numbers."""
    parts = [swept.rows(stream, intervals), swept.missed_rows(stream)]
    joined = {}
    for column in swept_columns(stream.table()):
        values = np.concatenate([part[column.name] for part in parts])
        words = column.words
        joined[column.name] = values if words is None else np.array(words, object)[values]
    return joined


def swept_columns(columns: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
    """Columns of a table of intervals, with TIMES and MISSED."""
    kept = [
        replace(column, nan_is_none=True) if column.name == "deepest_time" else column
        for column in columns
    ]
    times = (TableColumn(name, np.dtype(np.float64), "s", nan_is_none=True) for name in TIMES)
    return (*kept, *times, TableColumn(MISSED, np.dtype(bool)))


def swept_touches(stream: EventStream) -> SweptTouches:
    """The touches of a stream's set with contacts between frames.

    A touch that lasts to the end of its step goes on in a touch of the pair from the begin of the
    next step. Particles touch as their object, or each by itself with `by` particles. Raises
    InputError for a set without contacts between frames, and for frames that are not consecutive.
    """
    _check_swept(stream)
    contacts = stream.contacts
    columns = _swept_rows(contacts, stream.by == PARTICLES)
    cell = columns.pop("cell")
    rows = stream.selected_steps(cell, columns["shape0"], columns["shape1"])
    columns = {name: values[rows] for name, values in columns.items()}
    cell = cell[rows]
    touches = columns["status"] == TOUCHES
    undecided = int((~touches).sum())
    columns = {name: values[touches] for name, values in columns.items()}
    cell = cell[touches]
    frame, world = np.divmod(cell, contacts.world_count)
    key = stream.keys.key(world, columns["shape0"], columns["shape1"])
    before = contacts.time[frame]
    after = contacts.time[frame + 1]
    begin = before + columns["enter"] * (after - before)
    end = before + columns["leave"] * (after - before)
    # equal to the bit to the begin of a touch that goes on
    end = np.where(columns["leave"] == 1.0, after, end)
    order = np.lexsort((end, begin, key))
    key = key[order]
    begin = begin[order]
    end = end[order]
    frame = frame[order]
    tunnel = columns["tunnel"][order] == 1
    of_particles = columns["shape1"][order] >= len(contacts.shapes)
    least = columns["least"][order]
    start = _first_rows(key, begin, end)
    if len(start):
        end = np.maximum.reduceat(end, start)
        least = np.minimum.reduceat(least, start)
        tunnel = np.logical_and.reduceat(tunnel, start)
    return SweptTouches(
        key[start],
        frame[start],
        begin[start],
        end,
        tunnel,
        least,
        of_particles[start],
        undecided,
    )


def _check_swept(stream: EventStream) -> None:
    """Raises InputError for a set without contacts between frames, and for frames that are not
    consecutive."""
    contacts = stream.contacts
    if contact_columns.SWEEP.name not in contacts.groups:
        fix = "run it with --sweep"
        what = "the contact set has no contacts between frames"
        raise InputError(what, f"{contacts.path}: /{contact_columns.SWEEP.name}", fix)
    if stream.by == PARTICLES and contact_columns.SOFT_SWEEP.name not in contacts.groups:
        what = "the contact set has no particles between frames"
        raise InputError(
            what,
            f"{contacts.path}: /{contact_columns.SOFT_SWEEP.name}",
            "give --by shapes or bodies",
        )
    frames = stream.frames
    if len(frames) > 1 and frames.number[1] - frames.number[0] > 1:
        raise InputError("the frames are not consecutive", "--frames", "select a range of frames")


def _first_rows(key: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """int64[t]: the first row of each touch, of rows ordered by key, then begin. A later row
    belongs to a touch that has not ended before it begins."""
    first = []
    latest = -np.inf
    for row, (begins, ends) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        if row == 0 or key[row] != key[row - 1] or begins > latest:
            first.append(row)
            latest = ends
        latest = max(latest, ends)
    return np.array(first, np.int64)


def swept_events(
    swept: SweptTouches, stream: EventStream, first: int, order: str = EVENT_ORDERS[0]
) -> dict[str, Any]:
    """Counts of the touches between frames, and the first ones in an order of EVENT_ORDERS: those
    in no frame, which only this list has, before the others.

    Equal ones are ordered by begin, then by world and pair. Touches between frames have no number
    of contacts: by `contacts` is by begin.
    """
    by = {
        "begin": swept.begin,
        "end": swept.end,
        "duration": swept.begin - swept.end,
        "depth": swept.least,
        "contacts": swept.begin,
    }[order]
    shown = np.lexsort((swept.key, swept.begin, by, ~swept.missed))[:first]
    items = (rows[shown].tolist() for rows in stream.keys.items(swept.key))
    names = ([stream.keys.paths[row] for row in rows] for rows in items)
    listed = {
        "world": stream.keys.world(swept.key[shown]).tolist(),
        **dict(zip(EVENT_COLUMNS[stream.by], names, strict=True)),
        "frame": swept.frame[shown].tolist(),
        "begin_time": swept.begin[shown].tolist(),
        "end_time": swept.end[shown].tolist(),
        "missed": swept.missed[shown].tolist(),
        "least_distance": swept.least[shown].tolist(),
    }
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    counts = {
        "count": len(swept.key),
        "missed": int(swept.missed.sum()),
        "undecided": swept.undecided,
    }
    return {**counts, "listed": rows}


def missed_by_world(swept: SweptTouches, stream: EventStream) -> np.ndarray:
    """int64[W]: touches in no frame, of each world of the set."""
    world = stream.keys.world(swept.key[swept.missed])
    return np.bincount(world, minlength=stream.contacts.world_count).astype(np.int64)


def _swept_rows(contacts: ContactSet, each_particle: bool) -> dict[str, np.ndarray]:
    """The rows of all groups, as of `TouchingItems.steps`."""
    groups = {}
    for group in SWEPT_GROUPS[1:] if each_particle else SWEPT_GROUPS:
        if group in contacts.groups:
            table = contacts.groups[group]
            groups[group] = GroupRows(
                np.diff(table.cell_start()),
                {name: table.column(name) for name in COLUMNS_OF_GROUP[group]},
            )
    check_group_rows(contacts, groups, 0, contacts.cell_count)
    return TouchingItems.of_set(contacts).steps(0, groups, each_particle)
