"""Two contact sets compared: models, frames and worlds, touching pairs, contacts, fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.contact_differences import ContactDifferences
from collidecli.analysis.contact_matching import Contacts, Matches, match_contacts
from collidecli.analysis.field_comparison import FieldTally, Tolerances
from collidecli.analysis.frame_alignment import FrameAlignment, align_frames
from collidecli.commands.diff_blocks import Side, side_by_side
from collidecli.commands.diff_facts import diff_facts
from collidecli.commands.diff_model import ModelComparison, compare_models, renames_of
from collidecli.errors import InputError
from collidecli.scene.contacts import OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet
from collidecli.storage.process_activity import reading

MOST_WORLDS_TRIED = 64
"""When one cell differs, so many other worlds are looked at for its contacts."""
NEEDED = ("shape0", "shape1", "feature0", "feature1", "point0", "point1", "normal")
"""Columns by which contacts are matched."""
_SHAPE_FACTS = ("margin", "gap", "contact_ke", "contact_kd", "contact_kf", "contact_ka", "solmix")

Progress = Callable[[int, int], None] | None


@dataclass(frozen=True)
class DiffRequest:
    """What is compared and what is allowed. Empty or 0 is no limit to what is looked at, and nothing that is allowed.

    atol, rtol: texts "1e-6" or "FIELD=1e-6". fields: to compare; empty is all. renames: texts "OLD=NEW".
    ignore_shallow: [m], -1 ignores nothing. max_missing, max_extra: contacts, or pairs with pairs_only.
    allow_fraction: of contacts, for each of missing, extra and changed. match_frames: "", "step", "time" or "index".
    first: how many differences are listed. full: compare although the content hashes are equal.
    """

    a: str
    b: str
    atol: Sequence[str] = ()
    rtol: Sequence[str] = ()
    fields: Sequence[str] = ()
    renames: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    ignore_shallow: float = -1.0
    max_missing: int = 0
    max_extra: int = 0
    allow_fraction: float = 0.0
    pairs_only: bool = False
    match_frames: str = ""
    first: int = 20
    full: bool = False
    block_rows: int = BLOCK_ROWS


@dataclass
class Comparison:
    """Everything found; `diff_facts` makes plain values of it. contacts: None where equal hashes said enough."""

    request: DiffRequest
    tolerances: Tolerances
    model: ModelComparison
    frames: FrameAlignment
    contacts: ContactDifferences | None
    notes: list[str] = field(default_factory=list)


def diff(request: DiffRequest, progress: Progress = None) -> dict[str, Any]:
    """JSON-ready, schema collide.diff/1; `equal` is the verdict within the tolerances.

    Raises InputError for files that are no contact sets, frames that cannot be matched, and options that mean nothing.
    """
    tolerances = Tolerances(limits(request.atol, "--atol"), limits(request.rtol, "--rtol"))
    with (
        reading("contact set", request.a),
        ContactSet.open(request.a) as a,
        reading("contact set", request.b),
        ContactSet.open(request.b) as b,
    ):
        return diff_facts(_compare(request, tolerances, a, b, progress), a, b)


def _compare(
    request: DiffRequest, tolerances: Tolerances, a: ContactSet, b: ContactSet, progress: Progress
) -> Comparison:
    model = compare_models(a, b, tolerances, renames_of(request.renames), request.include, request.exclude)
    names = _compared(request, a, b)
    by_hash = bool(a.content_sha256) and a.content_sha256 == b.content_sha256 and not request.full
    try:
        if by_hash:
            every = np.arange(a.frame_count)
            return Comparison(request, tolerances, model, FrameAlignment("step", every, every, *[every[:0]] * 2), None)
        frames = align_frames(a.step, a.time, b.step, b.time, request.match_frames)
    except InputError as error:
        raise InputError(error.what, f"{a.path}, {b.path}: {error.where}", "--match-frames index, or time") from error
    worlds = min(a.world_count, b.world_count)
    found = ContactDifferences(_tallies(names), tolerances, worlds, request.first, request.ignore_shallow)
    needed = ("shape0", "shape1") if request.pairs_only else tuple(dict.fromkeys((*NEEDED, *names)))
    shapes = model.shapes
    sides = [
        Side.of(contacts, numbers, model.kept, needed, request.ignore_shallow >= 0.0, request.pairs_only)
        for contacts, numbers in ((a, shapes.number_a), (b, shapes.number_b))
    ]
    count = len(shapes.names)
    for block in side_by_side(sides[0], sides[1], frames, request.block_rows):
        if block.a is None or block.b is None:
            found.add_same(block.same)
        else:
            found.add(block.a, block.b, match_contacts(block.a, block.b, count), block.first)
        if progress is not None and worlds:
            progress(block.first // worlds, len(frames.a))
    compared = Comparison(request, tolerances, model, frames, found)
    if found.first_cell >= 0:
        compared.notes += _elsewhere(compared, sides, worlds)
    return compared


def _compared(request: DiffRequest, a: ContactSet, b: ContactSet) -> list[str]:
    """Names of the columns that are compared. Raises InputError for one that a file does not have."""
    shared = [c.name for c in RIGID_COLUMNS if c.name not in ("shape0", "shape1")]
    shared += [name for name in a.optional_columns if name in b.optional_columns]
    for name in request.fields:
        if name not in shared:
            raise InputError(f"'{name}' is no column of both files", "--fields", f"both have {', '.join(shared)}")
    if request.pairs_only:
        return []
    return [name for name in shared if not request.fields or name in request.fields]


def _tallies(names: Sequence[str]) -> list[FieldTally]:
    columns = {column.name: column for column in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)}
    return [
        FieldTally(name, "rad" if name == "normal" else columns[name].unit, columns[name].dtype.kind != "f")
        for name in names
    ]


def limits(texts: Sequence[str], option: str) -> dict[str, float]:
    """Tolerances by field from texts "1e-6" (field "") and "FIELD=1e-6"; "normal=0.1deg" is in degrees, else rad.

    Raises InputError for what is no number of at least 0, and for a field that is not known or has no tolerance.
    """
    numbers = {c.name for c in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS) if c.dtype.kind == "f"} | {"time", *_SHAPE_FACTS}
    found: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if (equals and name not in numbers) or (name == "normal" and option == "--rtol"):
            fix = f"fields with one: {', '.join(sorted(numbers - ({'normal'} if option == '--rtol' else set())))}"
            raise InputError(f"'{name}' is no field with a tolerance of this kind", option, fix)
        degrees = name == "normal" and value.endswith("deg")
        try:
            number = float(value.removesuffix("deg") if degrees else value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0.0):
            raise InputError(f"'{text}' is no tolerance", option, "write a number of at least 0, or FIELD=NUMBER")
        found[name] = math.radians(number) if degrees else number
    return found


def _elsewhere(compared: Comparison, sides: Sequence[Side], worlds: int) -> list[str]:
    """Whether the first cell that differs is found, in the other file, one frame later or in another world.

    That cell must differ from its own partner, or everything that rests would look shifted.
    """
    assert compared.contacts is not None
    match, world = divmod(compared.contacts.first_cell, worlds)
    places = [(match + 1, world)] if match + 1 < len(compared.frames.a) else []
    places += [(match, other) for other in range(min(worlds, MOST_WORLDS_TRIED)) if other != world]
    here = [_cell(compared, sides, side, match, world) for side in (0, 1)]
    for there_match, there_world in places:
        there = [_cell(compared, sides, side, there_match, there_world) for side in (0, 1)]
        for side, other, names in ((0, 1, "AB"), (1, 0, "BA")):
            if not len(here[side]) or not _alike(here[side], there[other], compared):
                continue
            if _alike(there[0], there[1], compared):
                break
            frames = (compared.frames.a, compared.frames.b)
            kind = "frames" if there_world == world else "worlds"
            return [
                f"frame {frames[side][match]}, world {world} of {names[0]} is frame {frames[other][there_match]}, "
                f"world {there_world} of {names[1]}: are {kind} shifted or exchanged?"
            ]
    return []


def _cell(compared: Comparison, sides: Sequence[Side], side: int, match: int, world: int) -> Contacts:
    frame = int((compared.frames.a, compared.frames.b)[side][match])
    cell = frame * sides[side].contacts.world_count + world
    return sides[side].read(cell, cell + 1)


def _alike(one: Contacts, other: Contacts, compared: Comparison) -> bool:
    assert compared.contacts is not None
    matches: Matches = match_contacts(one, other, len(compared.model.shapes.names))
    trial = ContactDifferences(_tallies([f.name for f in compared.contacts.fields]), compared.tolerances, 1, 0)
    trial.add(one, other, matches, 0)
    return trial.first_cell < 0
