"""The verb `diff`: differences of two contact sets, and whether they exceed what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.deviations import BINS, LEAST_DECADE, FieldTally, Tolerances
from collidecli.analysis.differences import CHANGED, EXTRA, KINDS, MISSING, TableDifferences
from collidecli.analysis.model_alignment import FrameAlignment
from collidecli.results.result import Progress, Result
from collidecli.scene.contact_columns import group_words
from collidecli.scene.episodes import recorded_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading
from collidecli.verbs.diff.causes import Causes, causes_entry, causes_of
from collidecli.verbs.diff.common import common_of_pairs
from collidecli.verbs.diff.comparison import compare, limits
from collidecli.verbs.diff.request import DiffRequest
from collidecli.verbs.diff.times import time_at
from collidecli.wording import count, plural

if TYPE_CHECKING:
    from collidecli.verbs.diff.comparison import Comparison

MAX_WORLDS_LISTED = 20


@dataclass(frozen=True)
class DiffResult(Result, schema="collide.diff/1", rows="fields"):
    """Differences of contact set B from contact set A.

    equal: no difference exceeds what is allowed; reasons: else the differences that do, as text.
    by_hash: the content hashes are equal. first: the first cell that differs. common: what all
    differing pairs have in common, see `common_of_pairs`, or None. causes: what differs between the
    scenes and between the motions, see `causes_entry`, or None for equal sets or sources. pairs,
    fields,
    differences: the first so many, by pair of shapes, by column, and by contact. groups: of each
    table beside /rigid_contacts that both files have, rows by kind of difference and fields that
    differ. notes: what else a reader should consider.
    """

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
    common: dict[str, Any] | None
    causes: dict[str, Any] | None
    fields: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    notes: list[str]


def diff(request: DiffRequest, progress: Progress = None) -> DiffResult:
    """Compares two contact sets.

    Raises InputError for files that are not contact sets, frames that cannot be matched, and
    invalid options.
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
    worlds = min(a.world_count, b.world_count)
    cells = _Cells(a, compared.frames, worlds, compared.model.shapes.names)
    tables = {"frames": _frames(compared, a, b), "contacts": _contacts(compared, cells)}
    groups = _groups(compared, cells)
    reasons = _reasons(compared, a, b, tables, groups)
    rigid = compared.contacts
    request = compared.request
    by_hash = bool(a.content_sha256) and a.content_sha256 == b.content_sha256
    causes = causes_of(compared, a, b) if reasons or rigid.pairs else None
    return DiffResult(
        a=file_of(a),
        b=file_of(b),
        equal=not reasons,
        reasons=reasons,
        by_hash=by_hash,
        options={
            "atol": dict(compared.tolerances.atol),
            "rtol": dict(compared.tolerances.rtol),
            **{
                name: list(getattr(request, name))
                for name in ("fields", "include", "exclude", "renames")
            },
            "ignore_shallow": request.ignore_shallow if request.ignore_shallow >= 0.0 else None,
            "pairs_only": request.pairs_only,
        },
        model={
            "differences": len(compared.model.differences),
            "listed": [
                {**vars(difference), "world": difference.world if difference.world >= 0 else None}
                for difference in compared.model.differences[: request.first]
            ],
        },
        **tables,
        worlds={"a": a.world_count, "b": b.world_count, "compared": worlds, **_worlds(rigid)},
        first=cells(rigid.first_cell) if rigid.first_cell >= 0 else None,
        pairs=_pairs(rigid, cells, request.first, causes),
        common=common_of_pairs(compared, causes),
        causes=causes_entry(causes, compared),
        fields=[_field(tally, compared, cells) for tally in rigid.fields],
        differences=_listed(rigid, cells),
        groups=groups,
        notes=_notes(compared, by_hash, bool(reasons)),
    )


def _notes(compared: Comparison, by_hash: bool, is_different: bool) -> list[str]:
    """Notes of the comparison. by_hash: the content hashes are equal. is_different: by any rule."""
    rigid = compared.contacts
    notes = [*compared.model.notes, *compared.notes]
    if rigid.crowded:
        notes.append(
            f"{rigid.crowded} pairs have too many contacts in a cell to match by position: matched"
            " in order"
        )
    tallied = [
        (
            *table.counts.values(),
            *table.at_limit.values(),
            *(tally.differing for tally in table.fields),
        )
        for table in (rigid, *compared.groups)
    ]
    if by_hash and (is_different or any(map(any, tallied))):
        notes.append(
            "the content hashes are equal: one of the files was changed after it was written"
            " (collide check)"
        )
    return notes


def _listed(rigid: TableDifferences, cells: _Cells) -> list[dict[str, Any]]:
    """The first differences of contacts."""
    return [
        {
            "kind": difference.kind,
            **cells(difference.cell),
            **cells.pair(difference.pair),
            "features": list(difference.features),
            "distance": difference.distance,
            "fields": {name: {"a": a, "b": b} for name, (a, b) in difference.values.items()},
        }
        for difference in rigid.differences
    ]


def _groups(compared: Comparison, cells: _Cells) -> list[dict[str, Any]]:
    objects = compared.model.particles.names
    names = ("name", "unit", "differing", "changed", "largest")
    return [
        {
            "name": table.name,
            **_row_counts(table),
            "at_limit": dict(table.at_limit),
            "ignored_shallow": table.ignored_shallow,
            "first": cells(table.first_cell) if table.first_cell >= 0 else None,
            "objects": [
                {"paths": [objects[row] for row in rows], **counts}
                for rows, counts in sorted(table.by_object.items())
            ],
            "fields": [
                {name: getattr(tally, name) for name in names}
                for tally in table.fields
                if tally.differing
            ],
            "allowed": _allowed(compared.request, table),
        }
        for table in compared.groups
    ]


def _row_counts(table: TableDifferences) -> dict[str, int]:
    return {"a": table.rows_a, "b": table.rows_b, "matched": table.matched, **table.counts}


def _allowed(request: DiffRequest, table: TableDifferences) -> dict[str, int]:
    return {
        MISSING: max(request.max_missing, share_of(request.allow_fraction, table.rows_a)),
        EXTRA: max(request.max_extra, share_of(request.allow_fraction, table.rows_b)),
        CHANGED: share_of(request.allow_fraction, table.matched),
    }


class _Cells:
    """Descriptions of cells, which are counted over the matched frames, by frame, step, time and
    world."""

    def __init__(
        self, a: ContactSet, frames: FrameAlignment, worlds: int, names: list[str]
    ) -> None:
        self._a = a
        self._frames = frames
        self._worlds = worlds
        self.names = names

    def __call__(self, cell: int) -> dict[str, Any]:
        match, world = divmod(cell, self._worlds)
        frame = int(self._frames.a[match])
        episodes = self._a.episodes
        return {
            **({} if episodes is None else {"episode": episodes.name_at(world, frame)}),
            "frame_a": frame,
            "frame_b": int(self._frames.b[match]),
            "step": int(self._a.step[frame]),
            "time": time_at(self._a, frame),
            "world": world,
        }

    def pair(self, pair: tuple[int, int]) -> dict[str, str]:
        return {"shape0": self.names[pair[0]], "shape1": self.names[pair[1]]}


def file_of(contacts: ContactSet) -> dict[str, Any]:
    """What a result of `diff` says about a contact set."""
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
    frames = compared.frames
    worlds = min(a.world_count, b.world_count)
    time_a = a.time[frames.a]
    time_b = b.time[frames.b]
    atol, rtol = compared.tolerances.of("time")
    with np.errstate(invalid="ignore"):
        apart = np.where(
            (time_a == time_b) | (np.isnan(time_a) & np.isnan(time_b)), 0.0, np.abs(time_a - time_b)
        )
        changed = np.flatnonzero(
            ~(apart <= atol + rtol * np.maximum(np.abs(time_a), np.abs(time_b)))
        )

    def alone(contacts: ContactSet, rows: np.ndarray) -> dict[str, Any] | None:
        if not len(rows):
            return None
        frame = int(rows[0])
        return {
            "frame": frame,
            "step": int(contacts.step[frame]),
            "time": time_at(contacts, frame),
        }

    table = compared.contacts
    cells_a, cells_b = (
        recorded_cells(side.episodes, side.frame_count, side.world_count)[rows, :worlds]
        for side, rows in ((a, frames.a), (b, frames.b))
    )
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
        "differing": table.frames_differing,
    }


def _worlds(table: TableDifferences) -> dict[str, Any]:
    differing = np.flatnonzero(table.world_differs)
    return {"differing": len(differing), "listed": differing[:MAX_WORLDS_LISTED].tolist()}


def _contacts(compared: Comparison, cells: _Cells) -> dict[str, Any]:
    table = compared.contacts
    request = compared.request
    return {
        "what": "pairs" if request.pairs_only else "contacts",
        **_row_counts(table),
        "missing_pairs": table.pair_cells[MISSING],
        "extra_pairs": table.pair_cells[EXTRA],
        "ignored_shallow": table.ignored_shallow,
        "at_limit": {
            **table.at_limit,
            "pairs": [
                {**cells.pair(pair), "contacts": n}
                for pair, n in list(table.at_limit_pairs.items())[: request.first]
            ],
        },
        "within_tolerance": max((f.differing - f.changed for f in table.fields), default=0),
        "allowed": _allowed(request, table),
    }


def share_of(fraction: float, number: int) -> int:
    """A fraction of `number`, rounded down apart from rounding errors of the product: 0.29 of 100
    is 29."""
    return math.floor(fraction * number * (1.0 + 4 * np.finfo(np.float64).eps))


def _reasons(
    compared: Comparison,
    a: ContactSet,
    b: ContactSet,
    result: dict[str, Any],
    groups: Sequence[dict[str, Any]],
) -> list[str]:
    """result: the entries `frames` and `contacts` of the result."""
    frames = result["frames"]
    reasons = []
    if compared.model.differences:
        reasons.append(f"{plural(len(compared.model.differences), 'difference')} of the model")
    for name in ("a", "b"):
        if frames[f"only_{name}"]:
            reasons.append(f"{plural(frames[f'only_{name}'], 'frame')} only in {name.upper()}")
        if frames[f"cells_only_{name}"]:
            cells = plural(
                frames[f"cells_only_{name}"], "frame of a demonstration", "frames of demonstrations"
            )
            reasons.append(f"{cells} only in {name.upper()}")
    if frames["times_changed"]:
        reasons.append(f"another time in {plural(frames['times_changed'], 'frame')}")
    if a.world_count != b.world_count:
        reasons.append(f"{plural(a.world_count, 'world')} in A and {count(b.world_count)} in B")
    noun = "touching pair" if compared.request.pairs_only else "contact"
    reasons += _beyond(result["contacts"], noun, "")
    for group in groups:
        reasons += _beyond(group, "row", f" of {group_words(group['name'])}")
    for one, other, name in ((a, b, "A"), (b, a, "B")):
        reasons += [
            f"only {name} has {group_words(group)}"
            for group in one.groups
            if group not in other.groups
        ]
    return reasons


def _beyond(table: dict[str, Any], noun: str, of: str) -> list[str]:
    """The kinds of differences of a table of which there are more than allowed."""
    reasons = []
    for kind in KINDS:
        if table[kind] > (allowed := table["allowed"][kind]):
            words = f"{plural(table[kind], noun)}{of} {kind}"
            reasons.append(f"{words}, and {count(allowed)} allowed" if allowed else words)
    return reasons


def _pairs(
    table: TableDifferences, cells: _Cells, first: int, causes: Causes | None
) -> dict[str, Any]:
    tallies = sorted(table.pairs.items(), key=lambda item: (item[1].first_cell, item[0]))
    return {
        "differing": len(tallies),
        "one_sided": sum(bool(one.missing_cells or one.extra_cells) for _, one in tallies),
        "listed": [
            {
                **cells.pair(pair),
                **tally.counts,
                "missing_cells": tally.missing_cells,
                "extra_cells": tally.extra_cells,
                "first": cells(tally.first_cell),
                "causes": None if causes is None else causes.of_pair(pair, cells.names),
            }
            for pair, tally in tallies[:first]
        ],
    }


def _field(tally: FieldTally, compared: Comparison, cells: _Cells) -> dict[str, Any]:
    atol, rtol = (0.0, 0.0) if tally.exact else compared.tolerances.of(tally.name)
    at = tally.largest_at
    edges = [None, *(float(f"1e{LEAST_DECADE + n}") for n in range(1, BINS))]
    bins = zip(edges, tally.histogram, strict=True)
    return {
        **{name: getattr(tally, name) for name in ("name", "unit")},
        "atol": atol,
        "rtol": 0.0 if tally.name == "normal" else rtol,
        **{name: getattr(tally, name) for name in ("differing", "changed", "largest")},
        "worst": at and {**cells(at["cell"]), **cells.pair(at["pair"]), "a": at["a"], "b": at["b"]},
        "histogram": (
            [] if tally.exact else [{"from": edge, "contacts": int(n)} for edge, n in bins if n]
        ),
    }
