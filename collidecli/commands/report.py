"""What a report and its charts show of a contact set: sums over frames, pairs and depths, timing, differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.contact_summary import DepthHistogram, FrameSums, PairMap, PairTotals, time_bins
from collidecli.analysis.touching import touches_of
from collidecli.commands.diff import DiffRequest, diff
from collidecli.commands.inspect import contact_set_head, timing_facts
from collidecli.errors import InputError
from collidecli.scene.contacts import ContactBlock
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_shape_rows
from collidecli.storage.process_activity import reading
from collidecli.storage.profile_files import read_profile

REPORT_SCHEMA = "collide.report/1"
PLOT_SCHEMA = "collide.plot/1"
COLUMNS = ("shape0", "shape1", "distance")
MOST_POINTS = 600
"""Of a line over time: a screen has not many more dots."""
MOST_BINS = 160
MOST_PAIRS = 24
WORST_PAIRS = 12
BLOCK_ROWS = 1 << 20
TEXTS = ("device", "processor", "broad_phase")
NUMBERS = (
    "wall_seconds",
    "candidate_count",
    "touching_pair_count",
    "contact_count",
    "inexact_pair_count",
    "peak_memory_bytes",
)

Progress = Callable[[int, int], None] | None


@dataclass(frozen=True)
class ReportRequest:
    """file: the contact set. against: a baseline to compare it with, and what is allowed, as in DiffRequest.

    profile: a file of `collide profile`. Empty: none.
    """

    file: str
    against: str = ""
    profile: str = ""
    atol: Sequence[str] = ()
    rtol: Sequence[str] = ()
    ignore_shallow: float = -1.0


@dataclass
class _Sums:
    frames: FrameSums
    depths: DepthHistogram
    pairs: PairTotals | None = None


def report_facts(request: ReportRequest, progress: Progress = None) -> dict[str, Any]:
    """JSON-ready, schema collide.report/1. Lengths [m], times [s]; lists over time have an entry a bin of frames.

    Reads the contacts twice, a block at a time. Raises InputError for files that are not what they should be.
    """
    profile = read_profile(request.profile) if request.profile else None
    difference = _difference(request) if request.against else None
    with reading("contact set", request.file), ContactSet.open(request.file) as contacts:
        sums = _first_pass(contacts, progress)
        assert sums.pairs is not None
        pairs = sums.pairs
        facts = {"schema": REPORT_SCHEMA, **_head(contacts, sums, pairs)}
        facts["series"] = _series(contacts, sums.frames)
        facts["pairs"] = _pairs(contacts, pairs, progress)
        facts["depths"] = _depths(sums.depths)
        facts["worst"] = _worst(contacts, pairs)
    facts["timing"], unclear = _timing(request.file)
    facts["profile"], facts["profile_file"] = profile, request.profile
    facts["difference"] = difference
    facts["notes"], facts["warnings"] = _notes(facts), _warnings(facts) + unclear
    return facts


def _timing(path: str) -> tuple[dict[str, Any], list[str]]:
    """What the timing report says of this run, and notes on what it says in a way that means nothing."""
    facts = timing_facts(path)
    found: dict[str, Any] = {name: facts[name] for name in TEXTS if isinstance(facts.get(name), str)}
    found |= {name: facts[name] for name in NUMBERS if _is_amount(facts.get(name))}
    stages = facts.get("stages", [])
    found["stages"] = [one for one in stages if _is_amount(one["seconds"])]
    unclear = [name for name in (*TEXTS, *NUMBERS) if name in facts and name not in found]
    unclear += [f"stage {one['stage']}" for one in stages if not _is_amount(one["seconds"])]
    return found, [f"left out of the timing, as it is no amount: {', '.join(unclear)}"] if unclear else []


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value < np.inf


def _difference(request: ReportRequest) -> dict[str, Any]:
    return diff(
        DiffRequest(
            request.against, request.file, atol=request.atol, rtol=request.rtol, ignore_shallow=request.ignore_shallow
        )
    )


def _first_pass(contacts: ContactSet, progress: Progress) -> _Sums:
    if not np.isfinite(contacts.time).all():
        frame = int(np.argmin(np.isfinite(contacts.time)))
        raise InputError(
            "is not a finite number", f"{contacts.path}: /time/time, frame {frame}", "repair the recording"
        )
    sums = _Sums(FrameSums(contacts.frame_count, contacts.world_count), DepthHistogram())
    none = np.zeros(0, np.int64)
    pairs = PairTotals(none, none, none, none, none, none.astype(float), none)
    for block in contacts.blocks(BLOCK_ROWS, names=COLUMNS):
        _check_distances(contacts, block)
        check_shape_rows(contacts, block)
        sums.frames.add(block)
        sums.depths.add(block.columns["distance"])
        pairs = pairs.joined(PairTotals.of(touches_of(block), len(contacts.shapes)))
        _tell(progress, contacts, block, 0)
    sums.pairs = pairs
    return sums


def _check_distances(contacts: ContactSet, block: ContactBlock) -> None:
    """Raises InputError for one that no sum can be made of."""
    finite = np.isfinite(block.columns["distance"])
    if not finite.all():
        cell = block.first_cell + int(np.searchsorted(np.cumsum(block.cell_counts), np.argmin(finite), side="right"))
        frame, world = divmod(cell, contacts.world_count)
        where = f"{contacts.path}: /rigid_contacts/distance, frame {frame}, world {world}"
        raise InputError("is not a finite number", where, "make the contact set again")


def _tell(progress: Progress, contacts: ContactSet, block: ContactBlock, done: int) -> None:
    """Two passes: 2 frames in all for each frame."""
    if progress is not None and contacts.world_count:
        last = (block.first_cell + len(block.cell_counts)) // contacts.world_count
        progress((done + last) // 2, contacts.frame_count)


def _head(contacts: ContactSet, sums: _Sums, pairs: PairTotals) -> dict[str, Any]:
    deepest = _place(contacts, pairs, int(np.argmin(pairs.least))) if len(pairs.key) else None
    return {
        **contact_set_head(contacts),
        "contacts": contacts.contact_count,
        "touching_pairs": int(pairs.touches.sum()),
        "penetrating": int(sums.frames.penetrating.sum()),
        "deepest": deepest,
    }


def _place(contacts: ContactSet, pairs: PairTotals, row: int) -> dict[str, Any]:
    """A pair and where its distance is least."""
    frame, world = divmod(int(pairs.at[row]), contacts.world_count)
    shape0, shape1 = divmod(int(pairs.key[row]), len(contacts.shapes))
    return {
        "shape0": contacts.shapes.path[shape0],
        "shape1": contacts.shapes.path[shape1],
        "distance": float(pairs.least[row]),
        "frame": frame,
        "world": world,
        "time": float(contacts.time[frame]),
    }


def _series(contacts: ContactSet, frames: FrameSums) -> dict[str, Any]:
    """Of each bin of frames: means of contacts and of those that penetrate, the most contacts, the greatest depth."""
    if not contacts.frame_count:
        return {
            "frames_per_bin": 1,
            "frame": [],
            "time": [],
            "contacts": [],
            "most": [],
            "penetrating": [],
            "depth": [],
        }
    bin_of = time_bins(contacts.frame_count, MOST_POINTS)
    start = np.flatnonzero(np.diff(bin_of, prepend=-1))
    lengths = np.diff(start, append=contacts.frame_count)
    depth = np.maximum(0.0, -np.minimum.reduceat(frames.least, start))
    return {
        "frames_per_bin": int(lengths[0]),
        "frame": start.tolist(),
        "time": contacts.time[start].tolist(),
        "contacts": (np.add.reduceat(frames.contacts, start) / lengths).tolist(),
        "most": np.maximum.reduceat(frames.contacts, start).tolist(),
        "penetrating": (np.add.reduceat(frames.penetrating, start) / lengths).tolist(),
        "depth": depth.tolist(),
    }


def _pairs(contacts: ContactSet, pairs: PairTotals, progress: Progress) -> dict[str, Any]:
    """The pairs with the most contacts, in the order in which they first touch, over time."""
    chosen = np.sort(np.lexsort((pairs.key, -pairs.contacts))[:MOST_PAIRS])
    bin_of = time_bins(contacts.frame_count, MOST_BINS)
    held = PairMap(pairs.key[chosen], bin_of, contacts.world_count, len(contacts.shapes))
    if len(chosen):
        for block in contacts.blocks(BLOCK_ROWS, names=COLUMNS):
            held.add(touches_of(block))
            _tell(progress, contacts, block, contacts.frame_count)
    start = np.flatnonzero(np.diff(bin_of, prepend=-1))
    lengths = np.diff(start, append=contacts.frame_count)
    listed = []
    for row in np.lexsort((pairs.key[chosen], pairs.first[chosen])).tolist():
        pair = int(chosen[row])
        first, last = (int(cells[pair]) // contacts.world_count for cells in (pairs.first, pairs.last))
        least = held.least[row]
        listed.append(
            {
                **_place(contacts, pairs, pair),
                "contacts": int(pairs.contacts[pair]),
                "touches": int(pairs.touches[pair]),
                "first_frame": first,
                "last_frame": last,
                "contacts_per_frame": (held.contacts[row] / lengths).tolist(),
                "depth": np.where(np.isfinite(least), np.maximum(0.0, -least), -1.0).tolist(),
            }
        )
    return {
        "count": len(pairs.key),
        "listed": listed,
        "frames_per_bin": int(lengths[0]) if len(lengths) else 1,
        "frame": start.tolist(),
        "time": contacts.time[start].tolist(),
    }


def _depths(depths: DepthHistogram) -> list[dict[str, Any]]:
    """The bins that hold something and those between; `from` is 0 in the first of all, `to` None in the last."""
    filled = np.flatnonzero(depths.counts)
    if not len(filled):
        return []
    edges = [0.0, *depths.edges.tolist(), None]
    return [
        {"from": edges[n], "to": edges[n + 1], "contacts": int(depths.counts[n])}
        for n in range(int(filled[0]), int(filled[-1]) + 1)
    ]


def _worst(contacts: ContactSet, pairs: PairTotals) -> list[dict[str, Any]]:
    """The pairs that penetrate deepest, the deepest first."""
    order = np.lexsort((pairs.key, pairs.least))[:WORST_PAIRS]
    return [
        {**_place(contacts, pairs, row), "contacts": int(pairs.contacts[row]), "touches": int(pairs.touches[row])}
        for row in order.tolist()
        if pairs.least[row] < 0.0
    ]


def _notes(facts: dict[str, Any]) -> list[str]:
    notes = []
    if facts["pairs"]["frames_per_bin"] > 1:
        notes.append(f"the map of pairs has {facts['pairs']['frames_per_bin']} frames in a column")
    if facts["series"]["frames_per_bin"] > 1:
        notes.append(f"lines over time are of {facts['series']['frames_per_bin']} frames at a time")
    return notes


def _warnings(facts: dict[str, Any]) -> list[str]:
    found = []
    profile = facts["profile"]
    if profile is not None and profile["scene_sha256"] != facts["scene_sha256"]:
        found.append(f"{facts['profile_file']} profiles another scene than this one")
    inexact = facts["timing"].get("inexact_pair_count", 0)
    if inexact:
        found.append(f"{inexact} depths are upper bounds: the search for them hit its limit")
    return found
