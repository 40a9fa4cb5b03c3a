"""Touches between frames: rows of the groups of steps joined over steps, with their begins and ends in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.commands.contact_totals import TOUCHES
from collidecli.errors import InputError
from collidecli.scene.contact_groups import SELF_SWEEP, SOFT_SWEEP, SWEEP, GroupRows
from collidecli.scene.option_choices import EVENT_COLUMNS
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows, objects_of
from collidecli.storage.flat_tables import TableColumn

if TYPE_CHECKING:
    from collidecli.commands.event_stream import EventStream


TIMES = ("enter_time", "leave_time")
"""Columns of a table of intervals: when a pair begins and ends to touch, between frames too [s]."""
MISSED = "missed"
READ = ("status", "tunnel", "enter", "leave", "least")
PARTICLES = "particles"


@dataclass(frozen=True)
class SweptTouches:
    """Touches of selected pairs, worlds and frames, joined over steps; ordered by key, then begin.

    key: of `EventStream.keys`. frame: of the first step. begin, end: times [s]. missed: in no frame. least: least
    distance [m]. undecided: rows of pairs that may touch.
    """

    key: np.ndarray
    frame: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    missed: np.ndarray
    least: np.ndarray
    undecided: int

    def times(self, key: np.ndarray, first: np.ndarray, last: np.ndarray) -> dict[str, np.ndarray]:
        """TIMES of touches in frames, of pairs `key` from time `first` to `last` [s]: the begin of the earliest touch
        of the pair at one of these times, and the end of the latest. NaN without one, such as at a larger threshold.
        """
        order = np.unique(np.concatenate([self.begin, self.end, first, last]), return_inverse=True)[1]
        n, m, count = len(self.key), len(key), int(order.max(initial=0)) + 1
        own = np.unique(np.concatenate([self.key, key]), return_inverse=True)[1]
        pair = own[n:]
        begins, ends = (own[:n] * count + order[at : at + n] for at in (0, n))
        since = np.searchsorted(ends, pair * count + order[2 * n : 2 * n + m], side="left")
        until = np.searchsorted(begins, pair * count + order[2 * n + m :], side="right") - 1
        held = since <= until
        found = {name: np.full(m, np.nan) for name in TIMES}
        found["enter_time"][held], found["leave_time"][held] = self.begin[since[held]], self.end[until[held]]
        return found

    def missed_rows(self, stream: EventStream, by: str) -> dict[str, np.ndarray]:
        """Rows of `interval_rows`, TIMES and MISSED for the touches in no frame, by begin."""
        rows = np.flatnonzero(self.missed)
        rows = rows[np.lexsort((self.key[rows], self.begin[rows]))]
        key, frame, begin, end = self.key[rows], self.frame[rows], self.begin[rows], self.end[rows]
        none, known, world = np.zeros(len(rows), np.int64), np.ones(len(rows), bool), stream.keys.world(key)
        episodes = stream.frames.episodes
        first = int(stream.frames.number[0]) if len(stream.frames) else 0
        return {
            "world": world,
            **({} if episodes is None else {"episode": episodes.row(world, frame - first) + 1}),
            **dict(zip(EVENT_COLUMNS[by], stream.keys.items(key), strict=True)),
            **dict.fromkeys(("begin_frame", "last_frame", "deepest_frame"), frame),
            **dict.fromkeys(("begin_known", "end_known", MISSED), known),
            **dict.fromkeys(("touching_frames", "pauses", "contacts", "most_contacts"), none),
            **{"begin_time": begin, "end_time": end, "seconds": end - begin, "enter_time": begin, "leave_time": end},
            **{"least_distance": self.least[rows].astype(np.float32), "deepest_time": np.full(len(rows), np.nan)},
        }


def swept_columns(columns: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
    """Columns of a table of intervals, with TIMES and MISSED."""
    kept = [replace(one, nan_is_none=True) if one.name == "deepest_time" else one for one in columns]
    times = (TableColumn(name, np.dtype(np.float64), "s", nan_is_none=True) for name in TIMES)
    return (*kept, *times, TableColumn(MISSED, np.dtype(bool)))


def swept_touches(contacts: ContactSet, stream: EventStream, by: str) -> SweptTouches:
    """The touches of a set with contacts between frames.

    A touch that lasts to the end of its step goes on in a touch of the pair from the begin of the next step. Particles
    touch as their object, or each by itself with `by` particles. Raises InputError for a set without contacts between
    frames, and for frames that are not consecutive.
    """
    if SWEEP.name not in contacts.groups:
        fix = "run it with --sweep"
        raise InputError("the contact set has no contacts between frames", f"{contacts.path}: /{SWEEP.name}", fix)
    if by == PARTICLES and SOFT_SWEEP.name not in contacts.groups:
        what = "the contact set has no particles between frames"
        raise InputError(what, f"{contacts.path}: /{SOFT_SWEEP.name}", "give --by shapes or bodies")
    frames = stream.frames
    if len(frames) > 1 and frames.number[1] - frames.number[0] > 1:
        raise InputError("the frames are not consecutive", "--frames", "select a range of frames")
    columns, cell = _rows(contacts, by)
    rows = stream.selected_steps(cell, columns["shape0"], columns["shape1"])
    columns, cell = {name: values[rows] for name, values in columns.items()}, cell[rows]
    touches = columns["status"] == TOUCHES
    undecided = int((~touches).sum())
    columns, cell = {name: values[touches] for name, values in columns.items()}, cell[touches]
    frame, world = np.divmod(cell, contacts.world_count)
    key = stream.keys.key(world, columns["shape0"], columns["shape1"])
    before, after = contacts.time[frame], contacts.time[frame + 1]
    begin, end = before + columns["enter"] * (after - before), before + columns["leave"] * (after - before)
    end = np.where(columns["leave"] == 1.0, after, end)  # equal to the bit to the begin of a touch that goes on
    order = np.lexsort((end, begin, key))
    key, begin, end, frame = key[order], begin[order], end[order], frame[order]
    tunnel, least = columns["tunnel"][order] == 1, columns["least"][order]
    start = _first_rows(key, begin, end)
    if len(start):
        end, least = np.maximum.reduceat(end, start), np.minimum.reduceat(least, start)
        tunnel = np.logical_and.reduceat(tunnel, start)
    return SweptTouches(key[start], frame[start], begin[start], end, tunnel, least, undecided)


def swept_events(found: SweptTouches, stream: EventStream, by: str, first: int) -> dict[str, Any]:
    """Counts of the touches between frames, and the first ones by begin."""
    shown = np.lexsort((found.key, found.begin))[:first]
    items = (rows[shown].tolist() for rows in stream.keys.items(found.key))
    names = ([stream.keys.paths[row] for row in rows] for rows in items)
    listed = {
        "world": stream.keys.world(found.key[shown]).tolist(),
        **dict(zip(EVENT_COLUMNS[by], names, strict=True)),
        "frame": found.frame[shown].tolist(),
        "begin_time": found.begin[shown].tolist(),
        "end_time": found.end[shown].tolist(),
        "missed": found.missed[shown].tolist(),
        "least_distance": found.least[shown].tolist(),
    }
    rows = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    counts = {"count": len(found.key), "missed": int(found.missed.sum()), "undecided": found.undecided}
    return {**counts, "listed": rows}


def _rows(contacts: ContactSet, by: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns of the rows of all groups, with the items of `touching_blocks` as shape0 and shape1; and their cells."""
    parts, cells = [], []
    for group, names in _ITEMS.items():
        if group not in contacts.groups or (group == SWEEP.name and by == PARTICLES):
            continue
        table = contacts.groups[group]
        counts = np.diff(table.cell_start())
        rows = GroupRows(counts, {name: table.column(name) for name in (*names, *READ)})
        check_group_rows(contacts, {group: rows}, 0, contacts.cell_count)
        cell = np.repeat(np.arange(contacts.cell_count), counts)
        for row, one, other in _items(contacts, group, rows, by):
            parts.append({"shape0": one, "shape1": other} | {name: rows.columns[name][row] for name in READ})
            cells.append(cell[row])
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, np.concatenate(cells)


_ITEMS = {SWEEP.name: ("shape0", "shape1"), SOFT_SWEEP.name: ("shape", "indices"), SELF_SWEEP.name: ("kind", "indices")}
"""Columns of each group that have the items of its rows."""


def _items(
    contacts: ContactSet, group: str, rows: GroupRows, by: str
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Row numbers and both items: with `by` particles each particle of a row, and what its element touches."""
    one, other = (rows.columns[name] for name in _ITEMS[group])
    every = np.arange(len(one))
    if group == SWEEP.name:
        yield every, one, other
        return
    first = len(contacts.shapes)
    owners = [first + owner for owner in objects_of(contacts, group, rows)]
    is_self = group == SELF_SWEEP.name
    if by != PARTICLES:
        yield every, owners[0] if is_self else one, owners[-1]
        return
    for entry, particle in enumerate(other.T.astype(np.int64)):
        partner = one
        if is_self:  # the first element is a vertex, or an edge of two particles
            partner = np.where(entry <= one, owners[1], owners[0])
        row = np.flatnonzero(particle >= 0)
        yield row, partner[row], first + len(contacts.particle_objects) + particle[row]


def _first_rows(key: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """int64: the first row of each touch; rows are ordered by key, then begin. A later row belongs to a touch that has
    not ended before it begins."""
    first, latest = [], -np.inf
    for row, (begins, ends) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        if row == 0 or key[row] != key[row - 1] or begins > latest:
            first.append(row)
            latest = ends
        latest = max(latest, ends)
    return np.array(first, np.int64)
