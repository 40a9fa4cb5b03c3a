"""Touches between frames: rows of /sweep joined over steps, with their begins and ends in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.commands.contact_totals import TOUCHES
from collidecli.errors import InputError
from collidecli.scene.contact_groups import SWEEP
from collidecli.scene.option_choices import EVENT_COLUMNS
from collidecli.storage.contact_sets.reader import ContactSet

if TYPE_CHECKING:
    from collidecli.commands.event_stream import EventStream


def swept_events(contacts: ContactSet, stream: EventStream, by: str, first: int) -> dict[str, Any]:
    """Counts of the touches between frames of selected pairs, worlds and frames, and the first ones by begin.

    A touch that lasts to the end of its step goes on in a touch of the pair from the begin of the next step. missed: in
    no frame. undecided: rows of pairs that may touch. Raises InputError for a set without contacts between frames, for
    pairs of particles, and for frames that are not consecutive.
    """
    if SWEEP.name not in contacts.groups:
        fix = "run it with --sweep"
        raise InputError("the contact set has no contacts between frames", f"{contacts.path}: /{SWEEP.name}", fix)
    if by == "particles":
        raise InputError("particles are not swept", "--by", "give shapes or bodies")
    frames = stream.frames
    if len(frames) > 1 and frames.number[1] - frames.number[0] > 1:
        raise InputError("the frames are not consecutive", "--frames", "select a range of frames")
    table = contacts.groups[SWEEP.name]
    names = ("shape0", "shape1", "status", "tunnel", "enter", "leave", "least")
    columns = {name: table.column(name) for name in names}
    cell = np.repeat(np.arange(contacts.cell_count), np.diff(table.cell_start()))
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
    latest = np.maximum.reduceat(end, start) if len(start) else end
    missed = np.logical_and.reduceat(tunnel, start) if len(start) else tunnel
    listed = {
        "world": stream.keys.world(key[start]),
        **dict(zip(EVENT_COLUMNS[by], stream.keys.items(key[start]), strict=True)),
        "frame": frame[start],
        "begin_time": begin[start],
        "end_time": latest,
        "missed": missed,
        "least_distance": np.minimum.reduceat(least, start) if len(start) else least,
    }
    shown = np.lexsort((key[start], begin[start]))[:first]
    named = {name: values[shown].tolist() for name, values in listed.items()}
    for name in EVENT_COLUMNS[by]:
        named[name] = [stream.keys.paths[row] for row in named[name]]
    listed_rows = [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
    return {"count": len(start), "missed": int(missed.sum()), "undecided": undecided, "listed": listed_rows}


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
