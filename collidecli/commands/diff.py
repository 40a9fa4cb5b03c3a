"""The verb `diff`: differences of two contact sets, and whether they exceed what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis import differences
from collidecli.analysis.alignment import Contacts, FrameAlignment, align_frames, match_contacts
from collidecli.commands import diff_blocks
from collidecli.commands.diff_blocks import DiffRequest, ModelComparison, Side, compare_models, matched_blocks
from collidecli.commands.results import Progress, Result
from collidecli.engines import unusable_normals
from collidecli.errors import InputError
from collidecli.numerics import cross, dot
from collidecli.scene.motion import recorded_cells
from collidecli.scene.tables import GROUPS, OPTIONAL_COLUMNS, RIGID_COLUMNS, RIGID_CONTACTS, group_words
from collidecli.storage.contact_sets.check import check_has_contacts
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading
from collidecli.texts import count, did_you_mean, metres, plural

# Comparison of two contact sets: touching pairs, contacts, fields.

MAX_WORLDS_TRIED = 64
"""Number of other worlds that are searched for the contacts of the first cell that differs."""
MATCH_COLUMNS = ("shape0", "shape1", "feature0", "feature1", "point0", "point1", "normal")
"""Columns by which contacts are matched."""
_SHAPE_FIELDS = ("margin", "gap", "contact_ke", "contact_kd", "contact_kf", "contact_ka", "solmix")


@dataclass
class Comparison:
    """All differences of two contact sets. groups: of the groups that both have."""

    request: DiffRequest
    tolerances: differences.Tolerances
    model: ModelComparison
    frames: FrameAlignment
    contacts: differences.TableDifferences
    groups: list[differences.TableDifferences]
    notes: list[str] = field(default_factory=list)


def compare(
    request: DiffRequest, tolerances: differences.Tolerances, a: ContactSet, b: ContactSet, progress: Progress = None
) -> Comparison:
    """The comparison of two open contact sets. Raises InputError for frames that cannot be matched."""
    model = diff_blocks.compare_models(a, b, tolerances, request)
    names = _compared(request, a, b)
    try:
        frames = align_frames(a.step, a.time, b.step, b.time, request.match_frames)
    except InputError as error:
        raise InputError(error.what, f"{a.path}, {b.path}: {error.where}", "--match-frames index, or time") from error
    worlds = min(a.world_count, b.world_count)
    table = differences.TableDifferences(
        RIGID_CONTACTS.name, _tallies(names), tolerances, worlds, request.first, request.ignore_shallow
    )
    has_gap = request.ignore_shallow >= 0.0 or any(tolerances.of("distance"))
    matched: tuple[str, ...] = ("shape0", "shape1") if request.pairs_only else (*MATCH_COLUMNS, *names)
    needed = tuple(dict.fromkeys((*matched, "distance") if has_gap else matched))
    sides = [Side(contacts, index, model, needed, has_gap, request.pairs_only) for index, contacts in enumerate((a, b))]
    count = len(model.shapes.names)
    for block in diff_blocks.side_by_side(sides[0], sides[1], frames, request.block_rows):
        if block.a is None or block.b is None:
            table.add_same(block.same)
        else:
            table.add(block.a, block.b, match_contacts(block.a, block.b, count), block.first)
        if progress is not None and worlds:
            progress(block.first // worlds, len(frames.a))
    groups = diff_blocks.compare_groups(sides, frames, request, tolerances)
    compared = Comparison(request, tolerances, model, frames, table, groups)
    if table.first_cell >= 0:
        compared.notes += _shift_notes(compared, sides, worlds)
    return compared


def _compared(request: DiffRequest, a: ContactSet, b: ContactSet) -> list[str]:
    """Names of the compared columns. Raises InputError for a column that one of the files lacks."""
    shared = [c.name for c in RIGID_COLUMNS if c.name not in ("shape0", "shape1")]
    shared += [name for name in a.optional_columns if name in b.optional_columns]
    groups = [group for group in GROUPS if group.name in a.groups and group.name in b.groups]
    of_groups = [field[0] for group in groups for field in diff_blocks.group_fields(group)]
    for name in request.fields:
        if name not in (*shared, *of_groups):
            what = f"'{name}' is no column of both files"
            raise InputError(what, "--fields", f"both have {', '.join(dict.fromkeys(shared + of_groups))}")
    if request.pairs_only:
        return []
    return [name for name in shared if not request.fields or name in request.fields]


def _tallies(names: Sequence[str]) -> list[differences.FieldTally]:
    columns = {column.name: column for column in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)}
    return [
        differences.FieldTally(name, "rad" if name == "normal" else columns[name].unit, columns[name].dtype.kind != "f")
        for name in names
    ]


def limits(texts: Sequence[str], option: str) -> dict[str, float]:
    """Tolerances by field from texts "1e-6" (field "") and "FIELD=1e-6". "normal=0.1deg" is in degrees, else [rad].

    An absolute tolerance with a unit of length, as "1mm", is of the fields in metres, or of the named one. Raises
    InputError for a value that is not a number of at least 0, and for a field that is unknown or has no tolerance.
    """
    named = [(c.name, c.unit, c.dtype) for c in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)]
    named += [column for group in GROUPS for column in diff_blocks.group_fields(group)]
    units = dict.fromkeys(_SHAPE_FIELDS, "") | {name: unit for name, unit, dtype in named if dtype.kind == "f"}
    units |= {"time": "s", "normal": "rad", "margin": "m", "gap": "m"}
    if option == "--rtol":
        del units["normal"]
    lengths = [name for name, unit in units.items() if unit == "m" and option == "--atol"]
    limit_of: dict[str, float] = {}
    for text in sorted(texts, key=lambda text: "=" in text):  # a named field precedes
        name, equals, value = text.rpartition("=")
        if equals and name not in units:
            fix = did_you_mean(name, units, f"fields with one: {', '.join(sorted(units))}")
            raise InputError(f"'{name}' is no field with a tolerance of this kind", option, fix)
        degrees = name == "normal" and value.endswith("deg")
        names, number = [name], math.nan
        try:
            number = math.radians(float(value.removesuffix("deg"))) if degrees else float(value)
        except ValueError:
            if name in ("", *lengths) and option == "--atol":
                names = [name] if name else lengths
                with suppress(ValueError):
                    number = metres(value)
        if not (math.isfinite(number) and number >= 0.0):
            fix = "write a number of at least 0, or FIELD=NUMBER"
            raise InputError(f"'{text}' is no tolerance", option, fix + (", or a length as 1mm" if lengths else ""))
        limit_of |= dict.fromkeys(names, number)
    return limit_of


def _shift_notes(compared: Comparison, sides: Sequence[Side], worlds: int) -> list[str]:
    """A note if the first cell that differs occurs in the other file one frame later or in another world.

    The cell found there must itself differ between the files; otherwise resting contacts would count as shifted.
    """
    match, world = divmod(compared.contacts.first_cell, worlds)
    candidates = [(match + 1, world)] if match + 1 < len(compared.frames.a) else []
    candidates += [(match, other) for other in range(min(worlds, MAX_WORLDS_TRIED)) if other != world]
    cells = [_cell(compared, sides, side, match, world) for side in (0, 1)]
    for there_match, there_world in candidates:
        shifted = [_cell(compared, sides, side, there_match, there_world) for side in (0, 1)]
        for side, other, names in ((0, 1, "AB"), (1, 0, "BA")):
            if not len(cells[side]) or not _cells_match(cells[side], shifted[other], compared):
                continue
            if _cells_match(shifted[0], shifted[1], compared):
                break
            frames = (compared.frames.a, compared.frames.b)
            kind = "frames" if there_world == world else "worlds"
            here_text = f"frame {frames[side][match]}, world {world} of {names[0]}"
            there_text = f"frame {frames[other][there_match]}, world {there_world} of {names[1]}"
            return [f"{here_text} is {there_text}: are {kind} shifted or exchanged?"]
    return []


def _cell(compared: Comparison, sides: Sequence[Side], side: int, match: int, world: int) -> Contacts:
    frame = int((compared.frames.a, compared.frames.b)[side][match])
    cell = frame * sides[side].contacts.world_count + world
    return sides[side].read(cell, cell + 1)


def _cells_match(contacts: Contacts, other: Contacts, compared: Comparison) -> bool:
    trial = differences.TableDifferences(
        "", _tallies([f.name for f in compared.contacts.fields]), compared.tolerances, 1
    )
    trial.add(contacts, other, match_contacts(contacts, other, len(compared.model.shapes.names)), 0)
    return trial.first_cell < 0


MAX_WORLDS_LISTED = 20


@dataclass(frozen=True)
class DiffResult(Result, schema="collide.diff/1"):
    """Differences of contact set B from contact set A.

    equal: no difference exceeds what is allowed; reasons: else the differences that do, as text. by_hash: the content
    hashes are equal. first: the first cell that differs. pairs, fields, differences:
    the first so many, by pair of shapes, by column, and by contact. groups: of each table beside /rigid_contacts that
    both files have, rows by kind of difference and fields that differ. notes: what else a reader should consider.
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
    fields: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    notes: list[str]


def diff(request: DiffRequest, progress: Progress = None) -> DiffResult:
    """Compares two contact sets.

    Raises InputError for files that are not contact sets, frames that cannot be matched, and invalid options.
    """
    tolerances = differences.Tolerances(limits(request.atol, "--atol"), limits(request.rtol, "--rtol"))
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
    request, notes = compared.request, [*compared.model.notes, *compared.notes]
    if rigid.crowded:
        notes.append(f"{rigid.crowded} pairs have too many contacts in a cell to match by position: matched in order")
    by_hash = bool(a.content_sha256) and a.content_sha256 == b.content_sha256
    tallied = [
        (*table.counts.values(), *table.at_limit.values(), *(tally.differing for tally in table.fields))
        for table in (rigid, *compared.groups)
    ]
    if by_hash and (reasons or any(map(any, tallied))):
        notes.append("the content hashes are equal: one of the files was changed after it was written (collide check)")
    return DiffResult(
        a=file_of(a),
        b=file_of(b),
        equal=not reasons,
        reasons=reasons,
        by_hash=by_hash,
        options={
            "atol": dict(compared.tolerances.atol),
            "rtol": dict(compared.tolerances.rtol),
            **{name: list(getattr(request, name)) for name in ("fields", "include", "exclude", "renames")},
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
        pairs=_pairs(rigid, cells, request.first),
        fields=[_field(tally, compared, cells) for tally in rigid.fields],
        differences=[
            {
                "kind": difference.kind,
                **cells(difference.cell),
                **cells.pair(difference.pair),
                "features": list(difference.features),
                "distance": difference.distance,
                "fields": {name: {"a": a, "b": b} for name, (a, b) in difference.values.items()},
            }
            for difference in rigid.differences
        ],
        groups=groups,
        notes=notes,
    )


def _groups(compared: Comparison, cells: _Cells) -> list[dict[str, Any]]:
    objects, names = compared.model.particles.names, ("name", "unit", "differing", "changed", "largest")
    return [
        {
            "name": table.name,
            **_row_counts(table),
            "at_limit": dict(table.at_limit),
            "ignored_shallow": table.ignored_shallow,
            "first": cells(table.first_cell) if table.first_cell >= 0 else None,
            "objects": [
                {"paths": [objects[row] for row in rows], **counts} for rows, counts in sorted(table.by_object.items())
            ],
            "fields": [{name: getattr(tally, name) for name in names} for tally in table.fields if tally.differing],
            "allowed": _allowed(compared.request, table),
        }
        for table in compared.groups
    ]


def _row_counts(table: differences.TableDifferences) -> dict[str, int]:
    return {"a": table.rows_a, "b": table.rows_b, "matched": table.matched, **table.counts}


def _allowed(request: DiffRequest, table: differences.TableDifferences) -> dict[str, int]:
    return {
        differences.MISSING: max(request.max_missing, share_of(request.allow_fraction, table.rows_a)),
        differences.EXTRA: max(request.max_extra, share_of(request.allow_fraction, table.rows_b)),
        differences.CHANGED: share_of(request.allow_fraction, table.matched),
    }


class _Cells:
    """Descriptions of cells, which are counted over the matched frames, by frame, step, time and world."""

    def __init__(self, a: ContactSet, frames: FrameAlignment, worlds: int, names: list[str]) -> None:
        self._a, self._frames, self._worlds, self._names = a, frames, worlds, names

    def __call__(self, cell: int) -> dict[str, Any]:
        match, world = divmod(cell, self._worlds)
        frame, episodes = int(self._frames.a[match]), self._a.episodes
        return {
            **({} if episodes is None else {"episode": episodes.name_at(world, frame)}),
            "frame_a": frame,
            "frame_b": int(self._frames.b[match]),
            "step": int(self._a.step[frame]),
            "time": float(self._a.time[frame]),
            "world": world,
        }

    def pair(self, pair: tuple[int, int]) -> dict[str, str]:
        return {"shape0": self._names[pair[0]], "shape1": self._names[pair[1]]}


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


def _worlds(table: differences.TableDifferences) -> dict[str, Any]:
    differing = np.flatnonzero(table.world_differs)
    return {"differing": len(differing), "listed": differing[:MAX_WORLDS_LISTED].tolist()}


def _contacts(compared: Comparison, cells: _Cells) -> dict[str, Any]:
    table, request = compared.contacts, compared.request
    return {
        "what": "pairs" if request.pairs_only else "contacts",
        **_row_counts(table),
        "missing_pairs": table.pair_cells[differences.MISSING],
        "extra_pairs": table.pair_cells[differences.EXTRA],
        "ignored_shallow": table.ignored_shallow,
        "at_limit": {
            **table.at_limit,
            "pairs": [
                {**cells.pair(pair), "contacts": n} for pair, n in list(table.at_limit_pairs.items())[: request.first]
            ],
        },
        "within_tolerance": max((f.differing - f.changed for f in table.fields), default=0),
        "allowed": _allowed(request, table),
    }


def share_of(fraction: float, number: int) -> int:
    """A fraction of `number`, rounded down apart from rounding errors of the product: 0.29 of 100 is 29."""
    return math.floor(fraction * number * (1.0 + 4 * np.finfo(np.float64).eps))


def _reasons(
    compared: Comparison, a: ContactSet, b: ContactSet, result: dict[str, Any], groups: Sequence[dict[str, Any]]
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
            cells = plural(frames[f"cells_only_{name}"], "frame of a demonstration", "frames of demonstrations")
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
        reasons += [f"only {name} has {group_words(group)}" for group in one.groups if group not in other.groups]
    return reasons


def _beyond(table: dict[str, Any], noun: str, of: str) -> list[str]:
    """The kinds of differences of a table of which there are more than allowed."""
    reasons = []
    for kind in differences.KINDS:
        if table[kind] > (allowed := table["allowed"][kind]):
            words = f"{plural(table[kind], noun)}{of} {kind}"
            reasons.append(f"{words}, and {count(allowed)} allowed" if allowed else words)
    return reasons


def _pairs(table: differences.TableDifferences, cells: _Cells, first: int) -> dict[str, Any]:
    tallies = sorted(table.pairs.items(), key=lambda item: (item[1].first_cell, item[0]))
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


def _field(tally: differences.FieldTally, compared: Comparison, cells: _Cells) -> dict[str, Any]:
    atol, rtol = (0.0, 0.0) if tally.exact else compared.tolerances.of(tally.name)
    at = tally.largest_at
    edges = [None, *(float(f"1e{differences.LEAST_DECADE + n}") for n in range(1, differences.BINS))]
    bins = zip(edges, tally.histogram, strict=True)
    return {
        **{name: getattr(tally, name) for name in ("name", "unit")},
        "atol": atol,
        "rtol": 0.0 if tally.name == "normal" else rtol,
        **{name: getattr(tally, name) for name in ("differing", "changed", "largest")},
        "worst": at and {**cells(at["cell"]), **cells.pair(at["pair"]), "a": at["a"], "b": at["b"]},
        "histogram": [] if tally.exact else [{"from": edge, "contacts": int(n)} for edge, n in bins if n],
    }


# Of `diff --by-pair`: what two contact sets, of any engines, contain about each pair of shapes in each cell.

NAMES = ("shape0", "shape1", "distance", "normal", "point0", "point1")
MEASURES = ("distance", "angle", "centre")


@dataclass(frozen=True)
class PairDiffRequest(DiffRequest):
    """Two contact sets, compared by pair and cell. Gaps, features and numbers of contacts are not compared.

    band: least distances that differ by less are equal, and a pair that is this near to contact may be missing [m].
    max_angle: of the normals of the deepest contacts [degree]. max_missing, max_extra, allow_fraction: of pairs, each
    counted in every cell.
    """

    band: float = 1e-4
    max_angle: float = 1.0


@dataclass(frozen=True)
class PairDiffResult(Result, schema="collide.diff_pairs/1"):
    """Differences of contact set B from contact set A by pair and cell. Lengths [m], angles [degree].

    engines: name and version of each, or of collide. counts: pairs with a contact in a and b and in both, each counted
    in every cell, and those missing, extra or changed; allowed: of these. not_asked: pairs that are not compared, as an
    engine does not hold a shape or the pair. normals: contacts of each set whose normal is
    not of unit length, and those of them without direction, of which no angle is taken. distance, angle, centre: of
    pairs in both sets, differences of the least distance, of its normal and of the mean point; contacts_a, contacts_b:
    mean number of contacts. pairs: the same by pair, the first so many that differ.
    """

    a: dict[str, Any]
    b: dict[str, Any]
    engines: dict[str, str]
    equal: bool
    reasons: list[str]
    options: dict[str, Any]
    frames: dict[str, Any]
    counts: dict[str, int]
    not_asked: int
    allowed: dict[str, int]
    normals: dict[str, dict[str, int]]
    distance: dict[str, float] | None
    angle: dict[str, float] | None
    centre: dict[str, float] | None
    contacts_a: float | None
    contacts_b: float | None
    differing_pairs: int
    pairs: list[dict[str, Any]]
    notes: list[str]


def diff_pairs(request: PairDiffRequest, progress: Progress = None) -> PairDiffResult:
    """Compares two contact sets by pair and cell.

    Raises InputError for files that are not contact sets, and for frames that cannot be matched.
    """
    with (
        reading("contact set", request.a),
        ContactSet.open(request.a) as a,
        reading("contact set", request.b),
        ContactSet.open(request.b) as b,
    ):
        for contacts in (a, b):
            check_has_contacts(contacts)
        model = compare_models(a, b, differences.Tolerances({"gap": np.inf}), request)
        frames = align_frames(a.step, a.time, b.step, b.time, request.match_frames)
        sides = [Side(contacts, index, model, NAMES) for index, contacts in enumerate((a, b))]
        compared = _compared_pairs(sides, frames, request, progress)
        allowed, reasons = _verdict(request, compared, model, frames)
        differing, pairs = compared.pairs(a, frames, model.shapes.names, request.first)
        return PairDiffResult(
            a=file_of(a),
            b=file_of(b),
            engines={name: _engine(contacts) for name, contacts in (("a", a), ("b", b))},
            equal=not reasons,
            reasons=reasons,
            options={name: getattr(request, name) for name in ("band", "max_angle", "include", "exclude", "renames")},
            frames={"by": frames.by, "compared": len(frames.a), "worlds": compared.worlds},
            **compared.about(slice(None)),
            not_asked=compared.not_asked,
            allowed=allowed,
            normals=compared.normals,
            differing_pairs=differing,
            pairs=pairs,
            notes=model.notes,
        )


def _engine(contacts: ContactSet) -> str:
    engine = contacts.engine
    return contacts.creator if engine is None else f"{engine.name} {engine.version}".strip()


@dataclass
class _Compared:
    """What A and B, the first index, say about n pairs of cells that both engines hold.

    key: int64[n], of cell, then pair. rows: int64[2, n], numbers of contacts. least: float64[2, n] [m], infinite
    without a contact; normal: of it, and centre: the mean point, float64[2, n, 3], NaN without one. worlds: of a frame.
    not_asked: number of the pairs of cells with a contact that an engine does not hold. normals: numbers of unusable
    ones, by set. kinds: bool[n] of KINDS. measures: float64[n] of MEASURES [m, degree], NaN where not both sets have
    it.
    """

    key: np.ndarray
    rows: np.ndarray
    least: np.ndarray
    normal: np.ndarray
    centre: np.ndarray
    worlds: int
    not_asked: int
    normals: dict[str, dict[str, int]]
    kinds: dict[str, np.ndarray] = field(default_factory=dict)
    measures: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def both(self) -> np.ndarray:
        """bool[n]: pairs of which both sets have a contact."""
        return (self.rows[0] > 0) & (self.rows[1] > 0)

    def compare(self, band: float, max_angle: float) -> None:
        """Sets kinds and measures."""
        (a, b), both = self.normal, self.both
        usable = both & ~(unusable_normals(a)[0] | unusable_normals(b)[0])
        turn = np.degrees(np.arctan2(np.linalg.norm(cross(a, b), axis=1), dot(a, b)))
        apart = np.where(both, self.least, np.nan)
        self.measures = {
            "distance": np.abs(apart[0] - apart[1]),
            "angle": np.where(usable, turn, np.nan),
            "centre": np.linalg.norm(self.centre[0] - self.centre[1], axis=1),
        }
        missing, extra = (self.least < -band) & ~(self.least[::-1] <= band)
        beyond = (self.measures["distance"] > band) | (self.measures["angle"] > max_angle)
        self.kinds = {
            differences.MISSING: missing,
            differences.EXTRA: extra,
            differences.CHANGED: beyond & ~missing & ~extra,
        }

    def about(self, chosen: Any) -> dict[str, Any]:
        """Counts and measures of chosen pairs of cells."""
        both, has = self.both[chosen], self.rows[:, chosen] > 0
        kinds = {kind: int(mask[chosen].sum()) for kind, mask in self.kinds.items()}
        means = self.rows[:, chosen][:, both].mean(axis=1).tolist() if both.any() else (None, None)
        return {
            "counts": {"a": int(has[0].sum()), "b": int(has[1].sum()), "both": int(both.sum()), **kinds},
            **{name: differences.spread(values[chosen]) for name, values in self.measures.items()},
            **dict(zip(("contacts_a", "contacts_b"), means, strict=True)),
        }

    def pairs(
        self, a: ContactSet, frames: FrameAlignment, names: list[str], most: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """The number of pairs of shapes that differ, and `most` of them, those that differ in most cells first."""
        shapes = len(names)
        pair, differs = self.key % max(1, shapes**2), np.logical_or.reduce(list(self.kinds.values()))
        every, cells = np.unique(pair[differs], return_counts=True)  # a pair of a cell is of one kind at most
        rows = []
        for pair_key in every[np.argsort(-cells, kind="stable")][:most].tolist():
            chosen = np.flatnonzero(pair == pair_key)
            match, world = divmod(int(self.key[chosen[differs[chosen]][0]]) // shapes**2, self.worlds)
            frame = int(frames.a[match])
            cell = {"frame_a": frame, "frame_b": int(frames.b[match]), "step": int(a.step[frame])}
            cell |= {"time": float(a.time[frame]), "world": world}
            about = self.about(chosen)
            sides = {"shape0": names[pair_key // shapes], "shape1": names[pair_key % shapes]}
            rows.append({**sides, **about.pop("counts"), **about, "first": cell})
        return len(every), rows


def _compared_pairs(
    sides: Sequence[Side], frames: FrameAlignment, request: PairDiffRequest, progress: Progress
) -> _Compared:
    """Both sets by pair and cell, and their unusable normals."""
    sets, shapes = [side.contacts for side in sides], len(sides[0].model.shapes.names)
    worlds = max(1, min(one.world_count for one in sets))
    parts: list[list[tuple[np.ndarray, ...]]] = [[_pairs_of(None, 0, shapes)] for _ in sides]
    normals = {name: {"unusable": 0, "zero": 0} for name in "ab"}
    tables = [(sets[0].rigid, sets[1].rigid)]
    for first, *begins, cells in matched_blocks(sets[0], sets[1], frames, tables, 2 * request.block_rows):
        for name, part, side, begin in zip("ab", parts, sides, begins, strict=True):
            block = side.read(begin, begin + cells)
            part.append(_pairs_of(block, first, shapes))
            for kind, broken in zip(normals[name], unusable_normals(block.columns["normal"]), strict=True):
                normals[name][kind] += int(broken.sum())
        if progress is not None:
            progress(first // worlds, len(frames.a))
    joined = [[np.concatenate(column) for column in zip(*part, strict=True)] for part in parts]
    unheld = np.logical_or.reduce([_not_asked(side, shapes) for side in sides]).ravel()
    every = np.union1d(joined[0][0], joined[1][0])
    key = every[~unheld[every % max(1, shapes**2)]]
    rows, least = np.zeros((2, len(key)), np.int64), np.full((2, len(key)), np.inf)
    normal, centre = np.full((2, 2, len(key), 3), np.nan)
    result = _Compared(key, rows, least, normal, centre, worlds, len(every) - len(key), normals)
    for side, (own_key, *columns) in enumerate(joined):
        kept = np.isin(own_key, key)
        at = np.searchsorted(key, own_key[kept])
        for values, column in zip((result.rows, result.least, result.normal, result.centre), columns, strict=True):
            values[side, at] = column[kept]
    result.compare(request.band, request.max_angle)
    return result


def _pairs_of(contacts: Contacts | None, first_cell: int, shapes: int) -> tuple[np.ndarray, ...]:
    """Key, number of contacts, least distance, its normal and the mean point of each pair of each cell."""
    if contacts is None or not len(contacts):
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3))
    values = {name: column.astype(np.float64) for name, column in contacts.columns.items()}
    key = ((contacts.cell + first_cell) * shapes + contacts.first) * shapes + contacts.second
    order = np.lexsort((values["distance"], key))
    keys, start, rows = np.unique(key[order], return_index=True, return_counts=True)
    centre = np.add.reduceat(0.5 * (values["point0"] + values["point1"])[order], start) / rows[:, None]
    return keys, rows, values["distance"][order][start], values["normal"][order][start], centre


def _not_asked(side: Side, shapes: int) -> np.ndarray:
    """bool[shapes, shapes]: pairs that the engine of a set does not hold, by common numbers."""
    unasked, numbers, engine = np.zeros((shapes, shapes), bool), side.numbers, side.contacts.engine
    if engine is not None:
        unasked[numbers[np.array(engine.treated) == "skipped"]] = True
        unasked[numbers[engine.not_asked0], numbers[engine.not_asked1]] = True
    return unasked | unasked.T


def _verdict(
    request: PairDiffRequest, compared: _Compared, model: ModelComparison, frames: FrameAlignment
) -> tuple[dict[str, int], list[str]]:
    """The numbers of pairs that may differ, and the reasons why the sets do."""
    only = [(len(model.differences), "difference", "of the model")]
    only += [(len(rows), "frame", f"only in {name}") for rows, name in ((frames.only_a, "A"), (frames.only_b, "B"))]
    reasons = [f"{plural(number, noun)} {place}" for number, noun, place in only if number]
    limits = {differences.MISSING: request.max_missing, differences.EXTRA: request.max_extra, differences.CHANGED: 0}
    totals = (*(compared.least < -request.band).sum(axis=1).tolist(), int(compared.both.sum()))
    shares = (share_of(request.allow_fraction, total) for total in totals)
    allowed = {kind: max(limits[kind], share) for kind, share in zip(differences.KINDS, shares, strict=True)}
    for kind, most in allowed.items():
        if (number_of_kind := int(compared.kinds[kind].sum())) > most:
            words = f"{plural(number_of_kind, 'pair')} {kind}"
            reasons.append(f"{words}, and {count(most)} allowed" if most else words)
    for name, normals in compared.normals.items():
        if normals["unusable"]:
            zero = f"{count(normals['zero'])} of them zero"
            reasons.append(f"{plural(normals['unusable'], 'unusable normal')} in {name.upper()}, {zero}")
    return allowed, reasons
