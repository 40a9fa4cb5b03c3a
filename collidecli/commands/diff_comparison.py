"""Comparison of two contact sets: models, frames and worlds, touching pairs, contacts, fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.contact_differences import ContactDifferences
from collidecli.analysis.contact_matching import Contacts, Matches, match_contacts
from collidecli.analysis.field_comparison import FieldTally, Tolerances, deviations
from collidecli.analysis.group_differences import GroupDifferences
from collidecli.analysis.particle_alignment import ParticleAlignment, align_particles
from collidecli.analysis.path_patterns import kept_pairs
from collidecli.analysis.shape_alignment import (
    FrameAlignment,
    ShapeAlignment,
    ShapeDifference,
    ShapeRecords,
    align_frames,
    align_shapes,
)
from collidecli.commands.diff_blocks import Side, side_by_side
from collidecli.commands.diff_groups import GroupOptions, compare_groups, group_fields
from collidecli.commands.result import Progress
from collidecli.errors import InputError
from collidecli.scene.contact_groups import GROUPS
from collidecli.scene.contacts import OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.scene.material import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.run_options import recorded_option
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet
from collidecli.storage.contact_sets.rules import check_body_rows

EITHER = "no {} of either file"
SOURCES = {"scene_sha256": "scenes", "trajectory_sha256": "recordings"}


@dataclass(frozen=True)
class ModelComparison:
    """Differences of two models.

    kept: bool[numbers, 2], see `kept_pairs`, of shapes, then particle objects; None is all.
    """

    shapes: ShapeAlignment
    particles: ParticleAlignment
    differences: list[ShapeDifference]
    kept: np.ndarray | None
    notes: list[str] = field(default_factory=list)


def compare_models(
    a: ContactSet,
    b: ContactSet,
    tolerances: Tolerances,
    renames: Sequence[tuple[str, str]] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> ModelComparison:
    """Differences of two models.

    include, exclude: patterns of A's paths of shapes and particle objects (of B's for added ones).

    Raises InputError for a pattern that matches none of either file.
    """
    alignment = align_shapes(_shape_columns(a), _shape_columns(b), renames)
    particles = align_particles(a.particle_objects, b.particle_objects, renames)
    names = [*alignment.names, *particles.names]
    of = EITHER.format("shape or particle object" if len(particles.names) else "shape")
    kept = kept_pairs(names, include, exclude, of)
    number = {name: n for n, name in enumerate(names)}
    found = [*alignment.differences, *particles.differences, *_forced(a, b, alignment), *_rules(a, b)]
    differences = [
        one
        for one in found
        if _beyond(one, tolerances) and (kept is None or one.path not in number or kept[number[one.path]].all())
    ]
    return ModelComparison(alignment, particles, differences, kept, _notes(a, b, alignment))


def _shape_columns(contacts: ContactSet) -> ShapeRecords:
    shapes = contacts.shapes
    check_body_rows(contacts)
    body = [contacts.body_path[row] if row >= 0 else "" for row in shapes.body.tolist()]
    values = {"margin": shapes.margin, "gap": shapes.gap}
    if contacts.materials is not None:
        for name in (*RULE_FIELDS[contacts.material_rule], *PENALTY_PARAMETERS):
            values[name] = np.asarray(getattr(contacts.materials, name))
    return ShapeRecords(
        shapes.path, shapes.type, body, shapes.template, contacts.world_template, values, where=contacts.path
    )


def _beyond(one: ShapeDifference, tolerances: Tolerances) -> bool:
    """Whether a difference exceeds the tolerance of its field; always, if the values are not numbers."""
    values = [np.atleast_1d(np.asarray(value)) for value in (one.a, one.b)]
    if one.kind != "changed" or any(value.dtype.kind != "f" for value in values):
        return True
    if values[0].shape != values[1].shape:
        return True
    atol, rtol = tolerances.of(one.what)
    apart, size = deviations(one.what, values[0][None], values[1][None])
    return not apart[0] <= atol + rtol * size[0]


def _forced(a: ContactSet, b: ContactSet, alignment: ShapeAlignment) -> list[ShapeDifference]:
    """Differences of forced pairs. Pairs of equal names in several worlds are compared together."""
    tables: list[dict[tuple[int, int], list[tuple[float, ...]]]] = []
    for contacts, numbers in ((a, alignment.number_a), (b, alignment.number_b)):
        forced, own = contacts.forced, contacts.forced_materials
        rows = np.concatenate([forced.shape0, forced.shape1])
        if ((rows < 0) | (rows >= len(contacts.shapes))).any():
            raise InputError("is no row of /model/shape", f"{contacts.path}: /model/forced_pair", "make it again")
        columns = [forced.margin, forced.gap]
        if a.material_rule == b.material_rule == "mujoco" and len(own):
            columns += [own.condim, *own.friction.T, *own.solref.T, *own.solimp.T]
        table: dict[tuple[int, int], list[tuple[float, ...]]] = {}
        for row in range(len(forced)):
            one, other = sorted(int(numbers[shapes[row]]) for shapes in (forced.shape0, forced.shape1))
            table.setdefault((one, other), []).append(tuple(float(c[row]) for c in columns))
        tables.append(table)
    found = []
    for pair in sorted(tables[0].keys() | tables[1].keys()):
        was, now = (sorted(table.get(pair, []), key=repr) for table in tables)
        if repr(was) != repr(now):
            path = " and ".join(alignment.names[number] for number in pair)
            found.append(ShapeDifference("changed", path, "forced pair", _plain_pair(was), _plain_pair(now)))
    return found


def _plain_pair(rows: list[tuple[float, ...]]) -> str:
    """Margin and gap of a forced pair, as text."""
    if not rows:
        return "not forced"
    words = [f"{name} {value:g}" for name, value in zip(("margin", "gap"), rows[0], strict=False) if value == value]
    return ("forced, " + ", ".join(words)) if words else "forced"


def _rules(a: ContactSet, b: ContactSet) -> list[ShapeDifference]:
    names = ["gap_rule", "up_axis"]
    if a.material_rule and b.material_rule:
        names.append("material_rule")
    return [
        ShapeDifference("changed", "/model", name, getattr(a, name), getattr(b, name))
        for name in names
        if getattr(a, name) != getattr(b, name)
    ]


def _notes(a: ContactSet, b: ContactSet, alignment: ShapeAlignment) -> list[str]:
    notes = []
    if a.version != b.version:
        versions = " and ".join(".".join(map(str, contacts.version)) for contacts in (a, b))
        notes.append(f"the files have format versions {versions}: common data is compared")
    for one, other, name in ((a, b, "A"), (b, a, "B")):
        alone = [c for c in one.optional_columns if c not in other.optional_columns]
        if alone:
            notes.append(f"only {name} has {_list(alone)}: not compared")
        if one.material_rule and not other.material_rule:
            notes.append(f"only {name} has materials of shapes: not compared")
    if a.float_type != b.float_type:
        notes.append(f"points are {a.float_type} in A and {b.float_type} in B")
    if alignment.reordered:
        notes.append("the shapes are in another order; they are matched by path")
    notes += [
        f"the {what} are different files" for name, what in SOURCES.items() if getattr(a, name) != getattr(b, name)
    ]
    for key in sorted(a.config.keys() | b.config.keys()):
        one, other = (recorded_option(contacts.config, key) for contacts in (a, b))
        if one != other:
            notes.append(f"the option {key} differs: {_short(one)} in A, {_short(other)} in B")
    return notes


def _list(names: Sequence[str]) -> str:
    return ("the column " if len(names) == 1 else "the columns ") + ", ".join(names)


def _short(value: Any, most: int = 80) -> str:
    text = "none" if value is None or value == "" else str(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def renames_of(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (OLD, NEW) of texts "OLD=NEW". Raises InputError for a text without OLD or equals sign."""
    return [_halves(text, "--rename", "write OLD=NEW: prefixes of a path in A and in B") for text in texts]


def _halves(text: str, option: str, fix: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old:
        raise InputError(f"'{text}' is not OLD=NEW", option, fix)
    return old, new


MAX_WORLDS_TRIED = 64
"""Number of other worlds that are searched for the contacts of the first cell that differs."""
MATCH_COLUMNS = ("shape0", "shape1", "feature0", "feature1", "point0", "point1", "normal")
"""Columns by which contacts are matched."""
_SHAPE_FIELDS = ("margin", "gap", "contact_ke", "contact_kd", "contact_kf", "contact_ka", "solmix")


@dataclass(frozen=True)
class DiffRequest:
    """Two contact sets, what is compared and what is allowed. By default everything is compared and nothing allowed.

    atol, rtol: tolerances, texts "1e-6" or "FIELD=1e-6". fields: names of the compared columns; empty is all.
    renames: texts "OLD=NEW", prefixes of paths. include, exclude: patterns of paths of shapes and particle
    objects. ignore_shallow: missing and
    extra contacts within this distance of the gap are ignored [m]; -1 ignores none. A tolerance of the distance
    ignores those within it of the gap. max_missing, max_extra: allowed
    number of contacts, or of pairs with pairs_only. allow_fraction: allowed fraction of the contacts, for each of
    missing, extra and changed. match_frames: "", "step", "time" or "index". first: number of differences that are
    listed. full: compare the contacts even if the content hashes are equal.
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
    """All differences of two contact sets. contacts: None if equal content hashes made their comparison unnecessary.

    groups: of the groups that both have; None as contacts.
    """

    request: DiffRequest
    tolerances: Tolerances
    model: ModelComparison
    frames: FrameAlignment
    contacts: ContactDifferences | None
    groups: list[GroupDifferences] | None = None
    notes: list[str] = field(default_factory=list)


def compare(
    request: DiffRequest, tolerances: Tolerances, a: ContactSet, b: ContactSet, progress: Progress = None
) -> Comparison:
    """The comparison of two open contact sets. Raises InputError for frames that cannot be matched."""
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
    needed = ("shape0", "shape1") if request.pairs_only else tuple(dict.fromkeys((*MATCH_COLUMNS, *names)))
    shapes = model.shapes
    limits_matter = request.ignore_shallow >= 0.0 or any(tolerances.of("distance"))
    sides = [
        Side.of(contacts, numbers, model.kept, needed, limits_matter, request.pairs_only)
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
    options = GroupOptions(
        (shapes.number_a, shapes.number_b),
        model.particles,
        model.kept,
        request.fields,
        request.pairs_only,
        request.ignore_shallow,
        request.block_rows,
    )
    groups = compare_groups(a, b, frames, options, tolerances)
    compared = Comparison(request, tolerances, model, frames, found, groups)
    if found.first_cell >= 0:
        compared.notes += _shift_notes(compared, sides, worlds)
    return compared


def _compared(request: DiffRequest, a: ContactSet, b: ContactSet) -> list[str]:
    """Names of the compared columns. Raises InputError for a column that one of the files lacks."""
    shared = [c.name for c in RIGID_COLUMNS if c.name not in ("shape0", "shape1")]
    shared += [name for name in a.optional_columns if name in b.optional_columns]
    of_groups = [
        field[0]
        for group in GROUPS
        if group.name in a.groups and group.name in b.groups
        for field in group_fields(group)
    ]
    for name in request.fields:
        if name not in (*shared, *of_groups):
            raise InputError(
                f"'{name}' is no column of both files",
                "--fields",
                f"both have {', '.join(dict.fromkeys(shared + of_groups))}",
            )
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
    """Tolerances by field from texts "1e-6" (field "") and "FIELD=1e-6". "normal=0.1deg" is in degrees, else [rad].

    Raises InputError for a value that is not a number of at least 0, and for a field that is unknown or has no
    tolerance.
    """
    numbers = {c.name for c in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS) if c.dtype.kind == "f"} | {"time", *_SHAPE_FIELDS}
    numbers |= {name for group in GROUPS for name, _, dtype in group_fields(group) if dtype.kind == "f"}
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


def _shift_notes(compared: Comparison, sides: Sequence[Side], worlds: int) -> list[str]:
    """A note if the first cell that differs occurs in the other file one frame later or in another world.

    The cell found there must itself differ between the files; otherwise resting contacts would count as shifted.
    """
    assert compared.contacts is not None
    match, world = divmod(compared.contacts.first_cell, worlds)
    candidates = [(match + 1, world)] if match + 1 < len(compared.frames.a) else []
    candidates += [(match, other) for other in range(min(worlds, MAX_WORLDS_TRIED)) if other != world]
    here = [_cell(compared, sides, side, match, world) for side in (0, 1)]
    for there_match, there_world in candidates:
        there = [_cell(compared, sides, side, there_match, there_world) for side in (0, 1)]
        for side, other, names in ((0, 1, "AB"), (1, 0, "BA")):
            if not len(here[side]) or not _cells_match(here[side], there[other], compared):
                continue
            if _cells_match(there[0], there[1], compared):
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


def _cells_match(one: Contacts, other: Contacts, compared: Comparison) -> bool:
    assert compared.contacts is not None
    matches: Matches = match_contacts(one, other, len(compared.model.shapes.names))
    trial = ContactDifferences(_tallies([f.name for f in compared.contacts.fields]), compared.tolerances, 1, 0)
    trial.add(one, other, matches, 0)
    return trial.first_cell < 0
