"""Comparison of two contact sets: touching pairs, contacts, fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from collidecli.analysis.contact_matching import Contacts, match_contacts
from collidecli.analysis.deviations import FieldTally, Tolerances
from collidecli.analysis.differences import TableDifferences
from collidecli.analysis.model_alignment import FrameAlignment, align_frames
from collidecli.errors import InputError
from collidecli.results.result import Progress
from collidecli.scene.contact_columns import GROUPS, OPTIONAL_COLUMNS, RIGID_COLUMNS, RIGID_CONTACTS
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff import models
from collidecli.verbs.diff.blocks import Side, side_by_side
from collidecli.verbs.diff.groups import compare_groups, group_fields, shared_groups
from collidecli.verbs.diff.models import ModelComparison
from collidecli.verbs.diff.request import DiffRequest
from collidecli.wording import did_you_mean, metres

MAX_WORLDS_TRIED = 64
"""Number of other worlds that are searched for the contacts of the first cell that differs."""
MATCH_COLUMNS = ("shape0", "shape1", "feature0", "feature1", "point0", "point1", "normal")
"""Columns by which contacts are matched."""
_SHAPE_FIELDS = ("margin", "gap", "contact_ke", "contact_kd", "contact_kf", "contact_ka", "solmix")


@dataclass
class Comparison:
    """All differences of two contact sets. groups: of the groups that both have."""

    request: DiffRequest
    tolerances: Tolerances
    model: ModelComparison
    frames: FrameAlignment
    contacts: TableDifferences
    groups: list[TableDifferences]
    notes: list[str] = field(default_factory=list)


def compare(
    request: DiffRequest,
    tolerances: Tolerances,
    a: ContactSet,
    b: ContactSet,
    progress: Progress = None,
) -> Comparison:
    """The comparison of two open contact sets. Raises InputError for frames that cannot be
    matched."""
    model = models.compare_models(a, b, tolerances, request)
    names = _compared(request, a, b)
    try:
        frames = align_frames(a.step, a.time, b.step, b.time, request.match_frames)
    except InputError as error:
        raise InputError(
            error.what, f"{a.path}, {b.path}: {error.where}", "--match-frames index, or time"
        ) from error
    worlds = min(a.world_count, b.world_count)
    table = TableDifferences(
        RIGID_CONTACTS.name,
        _tallies(names),
        tolerances,
        worlds,
        request.first,
        request.ignore_shallow,
    )
    has_gap = request.ignore_shallow >= 0.0 or any(tolerances.of("distance"))
    matched: tuple[str, ...] = (
        ("shape0", "shape1") if request.pairs_only else (*MATCH_COLUMNS, *names)
    )
    needed = tuple(dict.fromkeys((*matched, "distance") if has_gap else matched))
    sides = [
        Side(contacts, index, model, needed, has_gap, request.pairs_only)
        for index, contacts in enumerate((a, b))
    ]
    count = len(model.shapes.names)
    for block in side_by_side(sides[0], sides[1], frames, request.block_rows):
        if block.a is None or block.b is None:
            table.add_same(block.same)
        else:
            table.add(block.a, block.b, match_contacts(block.a, block.b, count), block.first)
        if progress is not None and worlds:
            progress(block.first // worlds, len(frames.a))
    groups = compare_groups(sides, frames, request, tolerances)
    compared = Comparison(request, tolerances, model, frames, table, groups)
    if table.first_cell >= 0:
        compared.notes += _shift_notes(compared, sides, worlds)
    return compared


def _compared(request: DiffRequest, a: ContactSet, b: ContactSet) -> list[str]:
    """Names of the compared columns. Raises InputError for a column that one of the files lacks."""
    shared = [c.name for c in RIGID_COLUMNS if c.name not in ("shape0", "shape1")]
    shared += [name for name in a.optional_columns if name in b.optional_columns]
    of_groups = [field[0] for group in shared_groups(a, b) for field in group_fields(group)]
    for name in request.fields:
        if name not in (*shared, *of_groups):
            what = f"'{name}' is no column of both files"
            raise InputError(
                what, "--fields", f"both have {', '.join(dict.fromkeys(shared + of_groups))}"
            )
    if request.pairs_only:
        return []
    return [name for name in shared if not request.fields or name in request.fields]


def _tallies(names: Sequence[str]) -> list[FieldTally]:
    columns = {column.name: column for column in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)}
    return [
        FieldTally(
            name, "rad" if name == "normal" else columns[name].unit, columns[name].dtype.kind != "f"
        )
        for name in names
    ]


def limits(texts: Sequence[str], option: str) -> dict[str, float]:
    """Tolerances by field from texts "1e-6" (field "") and "FIELD=1e-6". "normal=0.1deg" is in
    degrees, else [rad].

    An absolute tolerance with a unit of length, as "1mm", is of the fields in metres, or of the
    named one. Raises InputError for a value that is not a number of at least 0, and for a field
    that is unknown or has no tolerance.
    """
    named = [(c.name, c.unit, c.dtype) for c in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)]
    for group in GROUPS:
        named += group_fields(group.having([column.name for column in group.optional]))
    units = dict.fromkeys(_SHAPE_FIELDS, "") | {
        name: unit for name, unit, dtype in named if dtype.kind == "f"
    }
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
        names = [name]
        number = math.nan
        try:
            number = math.radians(float(value.removesuffix("deg"))) if degrees else float(value)
        except ValueError:
            if name in ("", *lengths) and option == "--atol":
                names = [name] if name else lengths
                with suppress(ValueError):
                    number = metres(value)
        if not (math.isfinite(number) and number >= 0.0):
            fix = "write a number of at least 0, or FIELD=NUMBER"
            raise InputError(
                f"'{text}' is no tolerance",
                option,
                fix + (", or a length as 1mm" if lengths else ""),
            )
        limit_of |= dict.fromkeys(names, number)
    return limit_of


def _shift_notes(compared: Comparison, sides: Sequence[Side], worlds: int) -> list[str]:
    """A note if the first cell that differs occurs in the other file one frame later or in another
    world.

    The cell found there must itself differ between the files; otherwise resting contacts would
    count as shifted.
    """
    match, world = divmod(compared.contacts.first_cell, worlds)
    candidates = [(match + 1, world)] if match + 1 < len(compared.frames.a) else []
    candidates += [
        (match, other) for other in range(min(worlds, MAX_WORLDS_TRIED)) if other != world
    ]
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


def _cell(
    compared: Comparison, sides: Sequence[Side], side: int, match: int, world: int
) -> Contacts:
    frame = int((compared.frames.a, compared.frames.b)[side][match])
    cell = frame * sides[side].contacts.world_count + world
    return sides[side].read(cell, cell + 1)


def _cells_match(contacts: Contacts, other: Contacts, compared: Comparison) -> bool:
    trial = TableDifferences(
        "", _tallies([f.name for f in compared.contacts.fields]), compared.tolerances, 1
    )
    trial.add(contacts, other, match_contacts(contacts, other, len(compared.model.shapes.names)), 0)
    return trial.first_cell < 0
