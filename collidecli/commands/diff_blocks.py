"""What `diff` compares: two models, and matched cells of two contact sets in blocks, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from collidecli.analysis import alignment
from collidecli.analysis.alignment import Contacts, FrameAlignment, ShapeDifference
from collidecli.analysis.differences import GAP, FieldTally, TableDifferences, Tolerances, deviations, pairs_alone
from collidecli.analysis.patterns import NamedItems
from collidecli.errors import InputError
from collidecli.scene.options import recorded_number, recorded_option
from collidecli.scene.shape_config import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.tables import (
    GROUPS,
    RIGID_CONTACTS,
    ContactBlock,
    ContactGroup,
    GroupRows,
    columns_of_sides,
    shapes_of,
)
from collidecli.storage.contact_sets import check, reader
from collidecli.storage.contact_sets.reader import ContactSet, ContactTable
from collidecli.system import processor_count


@dataclass(frozen=True)
class DiffRequest:
    """Two contact sets, what is compared and what is allowed. By default everything is compared and nothing allowed.

    atol, rtol: tolerances, texts "1e-6" or "FIELD=1e-6". fields: names of the compared columns; empty is all.
    renames: texts "OLD=NEW", prefixes of paths. include, exclude: patterns of paths of shapes and particle objects.
    ignore_shallow: missing and extra contacts within this distance of the gap are ignored [m]; -1 ignores none. A
    tolerance of the distance ignores those within it of the gap. max_missing, max_extra: allowed number of contacts, or
    of pairs with pairs_only. allow_fraction: allowed fraction of the contacts, for each of missing, extra and changed.
    match_frames: "", "step", "time" or "index". first: number of differences that are listed.
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
    block_rows: int = reader.BLOCK_ROWS


# Comparison of two models.

MOST_TEXT = 80
"""Characters of an option's value in a note."""
SOURCES = {"scene_sha256": "scenes", "trajectory_sha256": "recordings"}


@dataclass(frozen=True)
class ModelComparison:
    """Differences of two models.

    kept: bool[numbers, 2], see `NamedItems.kept`, of shapes, then particle objects; None is all.
    """

    shapes: alignment.ShapeAlignment
    particles: alignment.ParticleAlignment
    differences: list[ShapeDifference]
    kept: np.ndarray | None
    notes: list[str] = field(default_factory=list)


def compare_models(a: ContactSet, b: ContactSet, tolerances: Tolerances, request: DiffRequest) -> ModelComparison:
    """Differences of two models. Patterns are of A's paths of shapes and particle objects (of B's for added ones).

    Raises InputError for a pattern that matches none of either file.
    """
    renames = [_halves(text, "--rename", "write OLD=NEW: prefixes of a path in A and in B") for text in request.renames]
    aligned = alignment.align_shapes(_shape_columns(a), _shape_columns(b), renames)
    particles = alignment.align_particles(a.particle_objects, b.particle_objects, renames)
    names = [*aligned.names, *particles.names]
    kind_of_item = f"{'shape, particle object' if len(particles.names) else 'shape'} or body of either file"
    body = np.full(len(names), -1)
    for contacts, numbers, first_body in ((b, aligned.number_b, len(a.body_path)), (a, aligned.number_a, 0)):
        moving = contacts.shapes.body >= 0
        body[numbers[moving]] = first_body + contacts.shapes.body[moving]
    kept = NamedItems(names, body, (*a.body_path, *b.body_path), kind_of_item).kept(request.include, request.exclude)
    candidates = [*aligned.differences, *particles.differences, *_forced(a, b, aligned), *_rules(a, b)]
    is_kept = {name: kept is None or bool(kept[n].all()) for n, name in enumerate(names)}
    differences = [d for d in candidates if _beyond(d, tolerances) and is_kept.get(d.path, True)]
    return ModelComparison(aligned, particles, differences, kept, _notes(a, b, aligned))


def _shape_columns(contacts: ContactSet) -> alignment.ShapeRecords:
    shapes = contacts.shapes
    check.check_body_rows(contacts)
    body = [contacts.body_path[row] if row >= 0 else "" for row in shapes.body.tolist()]
    values = {"margin": shapes.margin, "gap": shapes.gap}
    if contacts.materials is not None:
        for name in (*RULE_FIELDS[contacts.material_rule], *PENALTY_PARAMETERS):
            values[name] = np.asarray(getattr(contacts.materials, name))
    return alignment.ShapeRecords(
        shapes.path, shapes.type, body, shapes.template, contacts.world_template, values, where=contacts.path
    )


def _beyond(difference: ShapeDifference, tolerances: Tolerances) -> bool:
    """Whether a difference exceeds the tolerance of its field; always, if the values are not numbers."""
    was, now = (np.atleast_1d(np.asarray(value)) for value in (difference.a, difference.b))
    if difference.kind != "changed" or not was.dtype.kind == now.dtype.kind == "f" or was.shape != now.shape:
        return True
    atol, rtol = tolerances.of(difference.what)
    apart, size = deviations(difference.what, was[None], now[None])
    return not apart[0] <= atol + rtol * size[0]


def _forced(a: ContactSet, b: ContactSet, aligned: alignment.ShapeAlignment) -> list[ShapeDifference]:
    """Differences of forced pairs. Pairs of equal names in several worlds are compared together."""
    tables: list[dict[tuple[int, int], list[tuple[float, ...]]]] = []
    for contacts, numbers in ((a, aligned.number_a), (b, aligned.number_b)):
        forced, materials = contacts.forced, contacts.forced_materials
        rows = np.concatenate([forced.shape0, forced.shape1])
        if ((rows < 0) | (rows >= len(contacts.shapes))).any():
            raise InputError("is no row of /model/shape", f"{contacts.path}: /model/forced_pair", "make it again")
        columns = [forced.margin, forced.gap]
        if a.material_rule == b.material_rule == "mujoco" and len(materials):
            columns += [materials.condim, *materials.friction.T, *materials.solref.T, *materials.solimp.T]
        table: dict[tuple[int, int], list[tuple[float, ...]]] = {}
        for row in range(len(forced)):
            one, other = sorted(int(numbers[shapes[row]]) for shapes in (forced.shape0, forced.shape1))
            table.setdefault((one, other), []).append(tuple(float(c[row]) for c in columns))
        tables.append(table)
    changes = []
    for pair in sorted(tables[0].keys() | tables[1].keys()):
        was, now = (sorted(table.get(pair, []), key=repr) for table in tables)
        if repr(was) != repr(now):
            path = " and ".join(aligned.names[number] for number in pair)
            changes.append(ShapeDifference("changed", path, "forced pair", _plain_pair(was), _plain_pair(now)))
    return changes


def _plain_pair(rows: list[tuple[float, ...]]) -> str:
    if not rows:
        return "not forced"
    words = [f"{name} {value:g}" for name, value in zip(("margin", "gap"), rows[0], strict=False) if value == value]
    return ("forced, " + ", ".join(words)) if words else "forced"


def _rules(a: ContactSet, b: ContactSet) -> list[ShapeDifference]:
    names = ["gap_rule", "up_axis", *(["material_rule"] if a.material_rule and b.material_rule else [])]
    differ = [name for name in names if getattr(a, name) != getattr(b, name)]
    return [ShapeDifference("changed", "/model", name, getattr(a, name), getattr(b, name)) for name in differ]


def _notes(a: ContactSet, b: ContactSet, aligned: alignment.ShapeAlignment) -> list[str]:
    notes = []
    if a.version != b.version:
        versions = " and ".join(".".join(map(str, contacts.version)) for contacts in (a, b))
        notes.append(f"the files have format versions {versions}: common data is compared")
    for one, other, name in ((a, b, "A"), (b, a, "B")):
        alone = [c for c in one.optional_columns if c not in other.optional_columns]
        if alone:
            notes.append(f"only {name} has the column{'s' if len(alone) > 1 else ''} {', '.join(alone)}: not compared")
        if one.material_rule and not other.material_rule:
            notes.append(f"only {name} has materials of shapes: not compared")
    if a.float_type != b.float_type:
        notes.append(f"points are {a.float_type} in A and {b.float_type} in B")
    if aligned.reordered:
        notes.append("the shapes are in another order; they are matched by path")
    differ = [what for name, what in SOURCES.items() if getattr(a, name) != getattr(b, name)]
    notes += [f"the {what} are different files" for what in differ]
    for key in sorted(a.config.keys() | b.config.keys()):
        one, other = (recorded_option(contacts.config, key) for contacts in (a, b))
        if one != other:
            notes.append(f"the option {key} differs: {_short(one)} in A, {_short(other)} in B")
    return notes


def _short(value: Any) -> str:
    text = "none" if value is None or value == "" else str(value)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."


def _halves(text: str, option: str, fix: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old:
        raise InputError(f"'{text}' is not OLD=NEW", option, fix)
    return old, new


# Matched cells of two files.

Tables = Sequence[tuple[ContactTable, ContactTable]]
"""Tables of A and of B."""
MATCHED_BY = ("shape0", "shape1", "feature0", "feature1")
THREADS = min(4, processor_count())
"""Number of threads that decompress columns."""


@dataclass(frozen=True)
class Side:
    """One of the two files. index: 0 of A, 1 of B. names: columns of its contacts to read.

    has_gap: the gap of the pairs of shapes is a column too. pairs_only: one row per pair and cell.
    """

    contacts: ContactSet
    index: int
    model: ModelComparison
    names: tuple[str, ...]
    has_gap: bool = False
    pairs_only: bool = False

    @property
    def numbers(self) -> np.ndarray:
        """Of the shapes, as aligned."""
        return (self.model.shapes.number_a, self.model.shapes.number_b)[self.index]

    @cached_property
    def _gap(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        return check.pair_values(self.contacts)[1]

    def read(self, first: int, last: int) -> Contacts:
        """Contacts of cells first to last - 1, numbered from 0. Raises InputError for an unknown shape."""
        return self.named(self.contacts.cells(first, last, self.names))

    def named(self, block: ContactBlock) -> Contacts:
        """Contacts of a block with the columns `names`; see `read`."""
        check.check_shape_rows(self.contacts, block)
        columns = dict(block.columns)
        if self.has_gap:
            columns[GAP] = self._gap(columns["shape0"], columns["shape1"])
        contacts = alignment.contacts_of(block.cell_counts, columns, self.numbers, self.model.kept)
        return pairs_alone(contacts) if self.pairs_only else contacts


@dataclass(frozen=True)
class MatchedBlock:
    """Consecutive matched cells of both files. first: the first cell, counted over matched frames.

    same: number of contacts if all columns are bit-identical and were not decompressed; then a and b are None.
    """

    first: int
    a: Contacts | None
    b: Contacts | None
    same: int = 0


def side_by_side(a: Side, b: Side, frames: FrameAlignment, max_rows: int = reader.BLOCK_ROWS) -> Iterator[MatchedBlock]:
    """Blocks of the matched frames and common worlds, in order; the next block is read ahead.

    A block has at most `max_rows` contacts of a file on average, or is one cell with more contacts.
    """

    def blocks(pool: ThreadPoolExecutor) -> Iterator[MatchedBlock]:
        tables = a.contacts.rigid, b.contacts.rigid
        for cells in matched_blocks(a.contacts, b.contacts, frames, [tables], 2 * max_rows):
            yield _matched_block(a, b, *cells, pool)

    with ThreadPoolExecutor(THREADS, "collide-unpack") as pool:
        yield from reader.read_ahead(blocks(pool))


def matched_blocks(
    a: ContactSet, b: ContactSet, frames: FrameAlignment, tables: Tables, max_rows: int
) -> Iterator[tuple[int, int, int, int]]:
    """(cell over matched frames, cell of A, cell of B, count) of blocks of cells that are consecutive in both files.

    A block has at most `max_rows` rows of all tables of both files, or is one cell with more.
    """

    def start_of(table: ContactTable, first: int) -> Callable[[slice], np.ndarray]:
        return lambda cells: table.cell_start(slice(first + cells.start, first + cells.stop))

    worlds = min(a.world_count, b.world_count)
    follows = (np.diff(frames.a) == 1) & (np.diff(frames.b) == 1) & (a.world_count == b.world_count)
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1, [len(frames.a)]])
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if last > first and worlds and tables:
            cell_a, cell_b = int(frames.a[first]) * a.world_count, int(frames.b[first]) * b.world_count
            rows = [
                start_of(table, cell) for pair in tables for table, cell in zip(pair, (cell_a, cell_b), strict=True)
            ]
            for done, stop in reader.spans(rows, max_rows, 0, (last - first) * worlds):
                yield first * worlds + done, cell_a + done, cell_b + done, stop - done


def _matched_block(
    a: Side, b: Side, first: int, cell_a: int, cell_b: int, cell_count: int, pool: ThreadPoolExecutor
) -> MatchedBlock:
    """Columns with equal compressed bytes are decompressed once, or not at all if nothing depends on them."""
    start_a = a.contacts.rigid.row_starts(cell_a, cell_a + cell_count)
    start_b = b.contacts.rigid.row_starts(cell_b, cell_b + cell_count)
    rows_a, rows_b = (slice(int(start[0]), int(start[-1])) for start in (start_a, start_b))
    same = set()
    if np.array_equal(start_a, start_b):
        chunks = [[side.contacts.rigid.chunks(name) for name in a.names] for side in (a, b)]
        alike = pool.map(lambda one, other: one.same_as(other, rows_a), *chunks)
        same = {name for name, one in zip(a.names, alike, strict=True) if one}
    alike = np.array_equal(a.numbers, b.numbers)
    if len(same) == len(a.names) and a.model.kept is None and not a.pairs_only and alike:
        return MatchedBlock(first, None, None, rows_a.stop - rows_a.start)
    names = [name for name in a.names if not alike or name not in _idle(same)]
    wanted = [(a, name, rows_a) for name in names] + [(b, name, rows_b) for name in b.names if name not in same]
    values = list(pool.map(lambda one: one[0].contacts.column(one[1], one[2]), wanted))
    of_a = dict(zip(names, values, strict=False))
    of_b = {name: of_a[name] for name in names if name in same}
    of_b |= {name: values_b for (side, name, _), values_b in zip(wanted, values, strict=True) if side is b}
    one = a.named(ContactBlock(cell_a, np.diff(start_a), of_a))
    return MatchedBlock(first, one, b.named(ContactBlock(cell_b, np.diff(start_b), of_b)))


def _idle(same: set[str]) -> set[str]:
    """Equal columns that the comparison of the other columns does not need.

    If the columns of MATCHED_BY are equal, contacts are matched without positions and normals. Of two columns that are
    exchanged when the shapes of a pair are, both are read or neither.
    """
    if not same.issuperset(MATCHED_BY):
        return set()
    idle = same - {*MATCHED_BY, "distance"}
    for one, other in columns_of_sides(column.name for column in (*RIGID_CONTACTS.columns, *RIGID_CONTACTS.optional)):
        if not {one, other} <= idle:
            idle -= {one, other}
    return idle


# Comparison of the groups beside /rigid_contacts of two contact sets.

UNMATCHED = ("feature",)
"""Keys that are compared: a row whose feature changed is the same contact."""


def group_fields(group: ContactGroup) -> list[tuple[str, str, np.dtype]]:
    """(name, unit, type) of the compared columns of a group: those that do not identify a row."""
    keys = set(group.keys) - set(UNMATCHED) | set(group.references) | set(group.shapes)
    columns = [column for column in group.columns if column.name not in keys] + [own.column for own in group.lists]
    return [(one.name, "rad" if one.name == "normal" else one.unit, one.dtype) for one in columns]


def compare_groups(
    sides: Sequence[Side], frames: FrameAlignment, request: DiffRequest, tolerances: Tolerances
) -> list[TableDifferences]:
    """Differences of each group that both sets have. Raises InputError for unreadable rows."""
    a, b = (side.contacts for side in sides)
    shared = [group for group in GROUPS if group.name in a.groups and group.name in b.groups]
    worlds = min(a.world_count, b.world_count)
    compared = {}
    for group in shared:
        fields = [field for field in group_fields(group) if not request.fields or field[0] in request.fields]
        tallies = [FieldTally(name, unit, dtype.kind != "f") for name, unit, dtype in fields if not request.pairs_only]
        compared[group.name] = TableDifferences(
            group.name, tallies, tolerances, worlds, shallow=request.ignore_shallow, by_pair=False
        )
    tables = [(a.groups[group.name], b.groups[group.name]) for group in shared]
    for first, cell_a, cell_b, cells in matched_blocks(a, b, frames, tables, request.block_rows):
        rows_a, rows_b = (_keyed(*side_rows, cells, shared) for side_rows in zip(sides, (cell_a, cell_b), strict=True))
        for name, differences in compared.items():
            differences.add(rows_a[name], rows_b[name], alignment.match_rows(rows_a[name], rows_b[name], 0), first)
    return list(compared.values())


def _keyed(side: Side, first: int, count: int, shared: Sequence[ContactGroup]) -> dict[str, Contacts]:
    """The rows of cells by group, numbered from 0; common numbers of shapes, the lower one first, and of particles."""
    tables = {group.name: side.contacts.groups[group.name] for group in shared}
    groups = reader.rows_of_cells(tables, first, first + count)
    check.check_group_rows(side.contacts, groups, first, first + count)
    return {group.name: _rows(side, group, groups) for group in shared}


def _rows(side: Side, group: ContactGroup, groups: dict[str, GroupRows]) -> Contacts:
    group_rows, kept, particles = groups[group.name], side.model.kept, side.model.particles
    owners = check.objects_of(side.contacts, group.name, group_rows)
    objects = [particles.objects[side.index][owner] for owner in owners]
    limit = recorded_number(side.contacts.config, group.limit)
    cell = np.repeat(np.arange(len(group_rows.cell_counts)), group_rows.cell_counts)
    shapes = [side.numbers[shape] for shape in shapes_of(groups, group.name)]
    columns = dict(group_rows.columns)
    if group.objects:
        columns["indices"] = particles.numbers[side.index][columns["indices"]]
    if len(shapes) == 2:
        shapes, columns = alignment.in_order_of_shapes(shapes, columns, group.flipped)
    if limit is not None and "distance" in columns:
        columns[GAP] = np.full(len(cell), limit)
    keys = [*shapes, *(objects if side.pairs_only else ())]
    for name in () if side.pairs_only else group.keys:
        if name not in (*group.shapes, *group.references, *UNMATCHED):
            keys += list(columns[name].reshape(len(cell), -1).T)
    none = np.zeros(len(cell), np.int64)
    contacts = Contacts(cell, none, none, columns, group_rows.lists, keys, objects)
    if kept is not None:
        first_object = len(kept) - len(particles.names)
        contacts = alignment.kept_rows(contacts, kept, [*shapes, *(first_object + owner for owner in objects)])
    if side.pairs_only and len(contacts):
        rows = np.unique(np.stack([contacts.cell, *(contacts.keys or ())]), axis=1, return_index=True)[1]
        contacts = contacts.at(np.sort(rows))
    return contacts
