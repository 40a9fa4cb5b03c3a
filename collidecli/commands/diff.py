"""The verb `diff`: differences of two contact sets, and whether they exceed what is allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.contact_differences import CHANGED, EXTRA, MISSING, ContactDifferences, PairTally
from collidecli.analysis.field_comparison import BINS, LEAST_DECADE, FieldTally, Tolerances
from collidecli.analysis.group_differences import GroupDifferences
from collidecli.analysis.shape_alignment import FrameAlignment
from collidecli.commands.diff_comparison import Comparison, DiffRequest, compare, limits
from collidecli.commands.diff_groups import group_reasons, group_results, groups_alone
from collidecli.commands.result import Progress, Result
from collidecli.scene.text_format import count, plural
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading

MAX_WORLDS_LISTED = 20


@dataclass(frozen=True)
class DiffResult(Result):
    """Differences of contact set B from contact set A.

    equal: no difference exceeds what is allowed; reasons: else the differences that do, as text. by_hash: the content
    hashes are equal and the contacts were not read. first: the first cell that differs. pairs, fields, differences:
    the first so many, by pair of shapes, by column, and by contact. groups: of each table beside /rigid_contacts that
    both files have, rows by kind of difference and fields that differ. notes: what else a reader should consider.
    """

    SCHEMA: ClassVar[str] = "collide.diff/1"

    a: dict[str, Any]
    b: dict[str, Any]
    equal: bool
    reasons: list[str]
    by_hash: bool
    options: dict[str, Any]
    model: dict[str, Any]
    frames: dict[str, Any]
    worlds: dict[str, Any]
    contacts: dict[str, Any]
    first: dict[str, Any] | None
    pairs: dict[str, Any]
    fields: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    notes: list[str]


def diff(request: DiffRequest, progress: Progress = None) -> DiffResult:
    """Compares two contact sets.

    Raises InputError for files that are not contact sets, frames that cannot be matched, and invalid options.
    """
    tolerances = Tolerances(limits(request.atol, "--atol"), limits(request.rtol, "--rtol"))
    with (
        reading("contact set", request.a),
        ContactSet.open(request.a) as a,
        reading("contact set", request.b),
        ContactSet.open(request.b) as b,
    ):
        return _result(compare(request, tolerances, a, b, progress), a, b)


def _result(compared: Comparison, a: ContactSet, b: ContactSet) -> DiffResult:
    frames = _frames(compared, a, b)
    worlds = min(a.world_count, b.world_count)
    cells = _Cells(a, compared.frames, worlds, compared.model.shapes.names)
    contacts = _contacts(compared, a, b, cells)
    groups = _groups(compared, a, cells)
    reasons = _reasons(compared, frames, a, b, contacts) + group_reasons(groups) + groups_alone(a, b)
    found = compared.contacts
    request = compared.request
    return DiffResult(
        a=_file(a),
        b=_file(b),
        equal=not reasons,
        reasons=reasons,
        by_hash=found is None,
        options={
            "atol": dict(compared.tolerances.atol),
            "rtol": dict(compared.tolerances.rtol),
            "fields": list(request.fields),
            "include": list(request.include),
            "exclude": list(request.exclude),
            "renames": list(request.renames),
            "ignore_shallow": request.ignore_shallow if request.ignore_shallow >= 0.0 else None,
            "pairs_only": request.pairs_only,
        },
        model={
            "differences": len(compared.model.differences),
            "listed": [
                {
                    "kind": one.kind,
                    "path": one.path,
                    "what": one.what,
                    "a": one.a,
                    "b": one.b,
                    "world": one.world if one.world >= 0 else None,
                }
                for one in compared.model.differences[: request.first]
            ],
        },
        frames=frames,
        worlds={"a": a.world_count, "b": b.world_count, "compared": worlds, **_worlds(found)},
        contacts=contacts,
        first=cells(found.first_cell) if found is not None and found.first_cell >= 0 else None,
        pairs=_pairs(found, cells, request.first),
        fields=[_field(tally, compared, cells) for tally in found.fields] if found is not None else [],
        differences=_differences(found, cells),
        groups=groups,
        notes=[*compared.model.notes, *compared.notes, *_crowded(found)],
    )


def _groups(compared: Comparison, a: ContactSet, cells: _Cells) -> list[dict[str, Any]]:
    """Differences by group, and how many of each kind are allowed in it."""
    request, fraction = compared.request, compared.request.allow_fraction
    if compared.groups is None:
        names = [(name, table.row_count) for name, table in a.groups.items()]
        compared.groups = [GroupDifferences(name, (), compared.tolerances, -1.0, n, n, n) for name, n in names]
    found = group_results(compared.groups, cells, compared.model.particles.names)
    for group in found:
        group["allowed"] = {
            MISSING: max(request.max_missing, share_of(fraction, group["a"])),
            EXTRA: max(request.max_extra, share_of(fraction, group["b"])),
            CHANGED: share_of(fraction, group["matched"]),
        }
    return found


class _Cells:
    """Descriptions of cells, which are counted over the matched frames, by frame, step, time and world."""

    def __init__(self, a: ContactSet, frames: FrameAlignment, worlds: int, names: list[str]) -> None:
        self._a, self._frames, self._worlds, self._names = a, frames, worlds, names

    def __call__(self, cell: int) -> dict[str, Any]:
        match, world = divmod(cell, self._worlds)
        frame = int(self._frames.a[match])
        return {
            "frame_a": frame,
            "frame_b": int(self._frames.b[match]),
            "step": int(self._a.step[frame]),
            "time": float(self._a.time[frame]),
            "world": world,
        }

    def pair(self, pair: tuple[int, int]) -> dict[str, str]:
        return {"shape0": self._names[pair[0]], "shape1": self._names[pair[1]]}


def _file(contacts: ContactSet) -> dict[str, Any]:
    return {
        "file": contacts.path,
        "version": ".".join(map(str, contacts.version)),
        "creator": contacts.creator,
        "scene": contacts.scene,
        "content_sha256": contacts.content_sha256,
        "frames": contacts.frame_count,
        "worlds": contacts.world_count,
        "contacts": contacts.contact_count,
    }


def _frames(compared: Comparison, a: ContactSet, b: ContactSet) -> dict[str, Any]:
    frames, worlds = compared.frames, min(a.world_count, b.world_count)
    time_a, time_b = a.time[frames.a], b.time[frames.b]
    atol, rtol = compared.tolerances.of("time")
    with np.errstate(invalid="ignore"):
        apart = np.where((time_a == time_b) | (np.isnan(time_a) & np.isnan(time_b)), 0.0, np.abs(time_a - time_b))
        changed = np.flatnonzero(~(apart <= atol + rtol * np.maximum(np.abs(time_a), np.abs(time_b))))

    def alone(contacts: ContactSet, rows: np.ndarray) -> dict[str, Any] | None:
        if not len(rows):
            return None
        frame = int(rows[0])
        return {"frame": frame, "step": int(contacts.step[frame]), "time": float(contacts.time[frame])}

    found = compared.contacts
    cells_a, cells_b = _recorded(a, frames.a, worlds), _recorded(b, frames.b, worlds)
    return {
        "by": frames.by,
        "cells_only_a": int((cells_a & ~cells_b).sum()),
        "cells_only_b": int((cells_b & ~cells_a).sum()),
        "compared": len(frames.a),
        "only_a": len(frames.only_a),
        "only_b": len(frames.only_b),
        "first_only_a": alone(a, frames.only_a),
        "first_only_b": alone(b, frames.only_b),
        "times_changed": len(changed),
        "largest_time_change": float(apart[changed].max(initial=0.0)),
        "differing": found.frames_differing if found is not None else 0,
    }


def _recorded(contacts: ContactSet, frames: np.ndarray, worlds: int) -> np.ndarray:
    """bool[frames, worlds]: whether each cell is recorded, that is in an episode if there are episodes."""
    if contacts.episodes is None:
        return np.ones((len(frames), worlds), bool)
    inside = contacts.episodes.inside(0, contacts.cell_count, contacts.world_count)
    return inside.reshape(contacts.frame_count, contacts.world_count)[frames, :worlds]


def _worlds(found: ContactDifferences | None) -> dict[str, Any]:
    differing = np.flatnonzero(found.world_differs) if found is not None else np.zeros(0, int)
    return {"differing": len(differing), "listed": differing[:MAX_WORLDS_LISTED].tolist()}


def _contacts(compared: Comparison, a: ContactSet, b: ContactSet, cells: _Cells) -> dict[str, Any]:
    found, request = compared.contacts, compared.request
    if found is None:
        found = ContactDifferences((), compared.tolerances, a.world_count, 0)
        found.contacts_a = found.contacts_b = found.matched = a.contact_count
    fraction = request.allow_fraction
    allowed = {
        MISSING: max(request.max_missing, share_of(fraction, found.contacts_a)),
        EXTRA: max(request.max_extra, share_of(fraction, found.contacts_b)),
        CHANGED: share_of(fraction, found.matched),
    }
    return {
        "what": "pairs" if request.pairs_only else "contacts",
        "a": found.contacts_a,
        "b": found.contacts_b,
        "matched": found.matched,
        **found.counts,
        "missing_pairs": found.pair_cells[MISSING],
        "extra_pairs": found.pair_cells[EXTRA],
        "ignored_shallow": found.shallow_count,
        "at_limit": {
            **found.at_limit,
            "pairs": [
                {**cells.pair(pair), "contacts": n} for pair, n in list(found.at_limit_pairs.items())[: request.first]
            ],
        },
        "within_tolerance": max((f.differing - f.changed for f in found.fields), default=0),
        "allowed": allowed,
    }


def share_of(fraction: float, number: int) -> int:
    """A fraction of `number`, rounded down apart from rounding errors of the product: 0.29 of 100 is 29."""
    return math.floor(fraction * number * (1.0 + 4 * np.finfo(np.float64).eps))


def _reasons(
    compared: Comparison, frames: dict[str, Any], a: ContactSet, b: ContactSet, contacts: dict[str, Any]
) -> list[str]:
    reasons = []
    if compared.model.differences:
        reasons.append(f"{plural(len(compared.model.differences), 'difference')} of the model")
    for name in ("a", "b"):
        if frames[f"only_{name}"]:
            reasons.append(f"{plural(frames[f'only_{name}'], 'frame')} only in {name.upper()}")
        if frames[f"cells_only_{name}"]:
            cells = plural(frames[f"cells_only_{name}"], "frame of a demonstration", "frames of demonstrations")
            reasons.append(f"{cells} only in {name.upper()}")
    if frames["times_changed"]:
        reasons.append(f"another time in {plural(frames['times_changed'], 'frame')}")
    if a.world_count != b.world_count:
        reasons.append(f"{plural(a.world_count, 'world')} in A and {count(b.world_count)} in B")
    noun = "touching pair" if compared.request.pairs_only else "contact"
    for kind in (MISSING, EXTRA, CHANGED):
        allowed = contacts["allowed"][kind]
        if contacts[kind] > allowed:
            words = f"{plural(contacts[kind], noun)} {kind}"
            reasons.append(f"{words}, and {count(allowed)} allowed" if allowed else words)
    return reasons


def _pairs(found: ContactDifferences | None, cells: _Cells, first: int) -> dict[str, Any]:
    tallies: list[tuple[tuple[int, int], PairTally]] = list(found.pairs.items()) if found is not None else []
    tallies.sort(key=lambda item: (item[1].first_cell, item[0]))
    return {
        "differing": len(tallies),
        "listed": [
            {
                **cells.pair(pair),
                **tally.counts,
                "missing_cells": tally.missing_cells,
                "extra_cells": tally.extra_cells,
                "first": cells(tally.first_cell),
            }
            for pair, tally in tallies[:first]
        ],
    }


def _field(tally: FieldTally, compared: Comparison, cells: _Cells) -> dict[str, Any]:
    atol, rtol = (0.0, 0.0) if tally.exact else compared.tolerances.of(tally.name)
    at = tally.largest_at
    worst = None
    if at is not None:
        worst = {**cells(at["cell"]), **cells.pair(at["pair"]), "a": at["a"], "b": at["b"]}
    edges = [None, *(float(f"1e{LEAST_DECADE + n}") for n in range(1, BINS))]
    return {
        "name": tally.name,
        "unit": tally.unit,
        "atol": atol,
        "rtol": 0.0 if tally.name == "normal" else rtol,
        "differing": tally.differing,
        "changed": tally.changed,
        "largest": tally.largest,
        "worst": worst,
        "histogram": []
        if tally.exact
        else [{"from": edge, "contacts": int(n)} for edge, n in zip(edges, tally.histogram, strict=True) if n],
    }


def _differences(found: ContactDifferences | None, cells: _Cells) -> list[dict[str, Any]]:
    return [
        {
            "kind": one.kind,
            **cells(one.cell),
            **cells.pair(one.pair),
            "features": list(one.features),
            "distance": one.distance,
            "fields": {name: {"a": a, "b": b} for name, (a, b) in one.values.items()},
        }
        for one in (found.differences if found is not None else ())
    ]


def _crowded(found: ContactDifferences | None) -> list[str]:
    if found is None or not found.crowded:
        return []
    return [f"{found.crowded} pairs have too many contacts in a cell to match by position: matched in order"]
