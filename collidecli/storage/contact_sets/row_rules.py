"""The rules for the tables and rows of a contact set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import pair_range
from collidecli.scene.contact_blocks import GroupRows, shapes_of
from collidecli.scene.contact_columns import (
    CONTACT_ID,
    FRICTION_SCALE,
    KIND_UNKNOWN,
    OF_STEPS,
    OPTIONAL_COLUMNS,
    RIGID_COLUMNS,
    RIGID_CONTACTS,
    ROW_ORDER,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    TABLES_BY_NAME,
    ContactGroup,
)
from collidecli.scene.materials import CONTACT_DIMENSIONS, Materials
from collidecli.scene.mixing import (
    RULE_COLUMNS,
    SURFACE_COLUMNS,
    ContactMixing,
    pair_rows,
)
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_materials import OF_SHAPE
from collidecli.storage.attribute_rules import Finding
from collidecli.storage.contact_sets.contact_table import rows_of_cells
from collidecli.storage.contact_sets.material_schema import SHAPE_GROUP, TRIANGLE_GROUP
from collidecli.storage.contact_sets.readable_rows import is_outside
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans

_UNIT_32 = float(np.finfo(np.float32).eps) / 2
_UNIT_64 = float(np.finfo(np.float64).eps) / 2
NORMAL_TOLERANCE = 18 * _UNIT_32
"""Largest |n.n - 1| of a unit vector that was normalized and rotated in float32, 1.07e-6.

Normalization: each square and each of two sums rounds once, which changes the length by at most 1.5
units; the root and the division round once each: 3.5 units of a component, 7 of n.n. A rotation
adds 3 units of |R| |n|, whose length is at most sqrt(3): 10.4 units of n.n. A normal that is
computed in float64 and rounded once is within 2 units.
"""
EQUATION = "dot(point1 - point0, normal) is not distance + margin0 + margin1"
WITHIN_GAP = "the distance is above the pair's gap"
UNIT_NORMAL = "the normal has not unit length"
NOTED = (
    *(EQUATION, WITHIN_GAP, UNIT_NORMAL),
    *(f"{column.name} is not finite" for column in RIGID_COLUMNS if column.dtype.kind == "f"),
)
"""Rules of rows that another engine need not keep."""
WEIGHT_TOLERANCE = 1e-6
"""Of the sum of three weights rounded to float32."""


def model_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that the tables of the model and the frames break."""
    shapes = contacts.shapes
    time = contacts.time
    highest_template = max(int(contacts.world_template.max(initial=-1)), -1)
    forced = contacts.forced
    rules: list[tuple[str, str, np.ndarray]] = [
        ("/time/time", "is not finite", ~np.isfinite(time)),
        ("/time/time", "is earlier than the frame before it", np.diff(time, prepend=-np.inf) < 0),
        (
            "/model/shape/type",
            "is not a shape type",
            ~np.isin(shapes.type, [kind.label for kind in ShapeType]),
        ),
        (
            "/model/shape/body",
            "is no row of /model/body",
            is_outside(shapes.body, -1, len(contacts.body_path)),
        ),
        ("/model/shape/template", "is below -1", shapes.template < -1),
        (
            "/model/shape/template",
            "is the template of no world",
            shapes.template > highest_template,
        ),
        ("/model/shape/margin", "is not finite", ~np.isfinite(shapes.margin)),
        ("/model/shape/gap", "is not finite", ~np.isfinite(shapes.gap)),
        (
            "/model/forced_pair/shape0",
            "is no row of /model/shape",
            is_outside(forced.shape0, 0, len(shapes)),
        ),
        (
            "/model/forced_pair/shape1",
            "is no row of /model/shape",
            is_outside(forced.shape1, 0, len(shapes)),
        ),
        ("/model/forced_pair/shape0", "is not less than shape1", forced.shape0 >= forced.shape1),
        (
            "/model/forced_pair/shape0",
            "is the pair of an earlier row",
            _repeated(forced.shape0, forced.shape1),
        ),
    ]
    if contacts.materials is not None:
        rules += _material_rules(contacts.materials, SHAPE_GROUP)
        rules += _material_rules(contacts.triangle_materials.materials, TRIANGLE_GROUP)
        condim = contacts.forced_materials.condim
        known = np.isin(condim, (0, *CONTACT_DIMENSIONS))
        rules.append(("/model/forced_pair/condim", "is not 0, 1, 3, 4 or 6", ~known))
    return [
        Finding(
            f"{contacts.path}: {path}, row {int(np.argmax(broken))}",
            f"{what}{_times(int(broken.sum()))}",
        )
        for path, what, broken in rules
        if broken.any()
    ]


def _material_rules(materials: Materials, group: str) -> list[tuple[str, str, np.ndarray]]:
    """Rules for the materials of a group's tables. NaN is an unspecified value of penalty
    parameters."""
    rules = []
    for name, values in vars(materials).items():
        path = f"{group}/{name}"
        if name.endswith("_combine"):
            rules.append((path, "is no combine mode", values < 0))
        elif name == "condim":
            rules.append((path, "is not 1, 3, 4 or 6", ~np.isin(values, CONTACT_DIMENSIONS)))
        elif not name.startswith("contact_"):
            broken = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
            rules.append((path, "is not finite", broken))
    return rules


def _times(count: int) -> str:
    return f" ({count} rows)" if count > 1 else ""


def start_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that the first rows of cells and the first values of lists break, in all tables."""
    findings: list[Finding] = []
    for table in contacts.tables.values():
        where = table.where("cell_start")
        cells = contacts.cell_count
        findings += _starts(where, table.cell_start, cells, table.row_count, "rows", contacts)
        for entries in table.definition.lists:
            values = table.value_count(entries.column.name)
            read = partial(table.column, entries.start)
            findings += _starts(table.where(entries.start), read, table.row_count, values, "values")
    return findings


def _starts(
    where: str,
    read: Callable[[slice], np.ndarray],
    count: int,
    end: int,
    what: str,
    contacts: ContactSet | None = None,
) -> list[Finding]:
    """Findings of a dataset of starts with `count` + 1 entries, from 0 to `end`. contacts: of
    starts of cells, which have rows in its episodes only.
    """
    previous = 0
    for first in range(0, count + 1, BLOCK_ROWS):
        start = read(slice(first, min(first + BLOCK_ROWS, count + 1)))
        if first == 0 and start[0] != 0:
            return [Finding(where, f"begins with {start[0]}, not 0")]
        before = np.concatenate([[previous], start[:-1]])
        falls = np.flatnonzero(start < before)
        if len(falls):
            return [
                Finding(f"{where}, entry {first + int(falls[0])}", "is less than the one before it")
            ]
        if contacts is not None and contacts.episodes is not None:
            cell = max(0, first - 1)
            counts = (start - before)[1 if first == 0 else 0 :]
            outside = ~contacts.episodes.inside(cell, len(counts), contacts.world_count) & (
                counts > 0
            )
            if outside.any():
                frame, world = divmod(cell + int(np.argmax(outside)), contacts.world_count)
                return [
                    Finding(
                        f"{where}, frame {frame}, world {world}",
                        "has contacts outside every episode",
                    )
                ]
        previous = int(start[-1])
    return (
        [Finding(where, f"ends with {previous}, not the number of {what}, {end}")]
        if previous != end
        else []
    )


def row_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that rows break, each with its first row and the count. Reads all tables in blocks
    of whole cells."""
    first_row: dict[tuple[str, str], str] = {}
    counts: dict[tuple[str, str], int] = {}
    tables = contacts.tables
    pairs = PairRules(contacts)
    known = {
        name: [n for n in table.names if n in table.definition.dataset_names]
        for name, table in tables.items()
    }
    unreadable = []
    for first, last in spans(
        [table.cell_start for table in tables.values()], BLOCK_ROWS, 0, contacts.cell_count
    ):
        try:
            blocks = rows_of_cells(tables, first, last, known)
        except InputError as error:
            unreadable = [Finding(error.where, error.what)]
            break
        for name, rows in blocks.items():
            cell = first + np.repeat(np.arange(last - first), rows.cell_counts)
            for what, broken in _rules(contacts, blocks, name, cell, pairs) if len(cell) else ():
                if broken.any():
                    row = int(np.argmax(broken))
                    where = (
                        f"{contacts.path}: /{name}, {_row_words(contacts, blocks, name, cell, row)}"
                    )
                    first_row.setdefault((name, what), where)
                    counts[name, what] = counts.get((name, what), 0) + int(broken.sum())
    noted = NOTED if contacts.engine is not None else ()
    findings = [
        Finding(where, key[1] + _times(counts[key]), key[1] in noted)
        for key, where in first_row.items()
    ]
    return findings + unreadable


def _row_words(
    contacts: ContactSet, tables: Mapping[str, GroupRows], name: str, cell: np.ndarray, row: int
) -> str:
    """Frame, world, and the pair of shapes of a row, or its number in the cell."""
    frame, world = divmod(int(cell[row]), contacts.world_count)
    shapes = TABLES_BY_NAME[name].shapes
    if len(shapes) == 2:
        item = "shapes " + " and ".join(str(tables[name].columns[column][row]) for column in shapes)
    else:
        item = f"row {row - int(np.searchsorted(cell, cell[row]))} of the cell"
    return f"frame {frame}, world {world}, {item}"


PairValue = Callable[[np.ndarray, np.ndarray], np.ndarray]


def pair_values(contacts: ContactSet) -> tuple[PairValue, PairValue]:
    """The margin and the gap of pairs of shapes: combined from the shapes, or the own value of a
    forced pair."""
    shapes = contacts.shapes
    forced = contacts.forced
    pairs = np.stack([forced.shape0, forced.shape1], axis=1)
    join = np.maximum if contacts.gap_rule == "max" else np.add

    def lookup(of_shape: np.ndarray, of_pair: np.ndarray, combine: np.ufunc) -> PairValue:
        def value(shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
            usual = combine(
                of_shape[shape0].astype(np.float64), of_shape[shape1].astype(np.float64)
            )
            if not len(pairs):
                return usual
            at = pair_rows(pairs, len(shapes), shape0, shape1)
            forced_values = np.where(at >= 0, of_pair[at].astype(np.float64), np.nan)
            return np.where(np.isnan(forced_values), usual, forced_values)

        return value

    return lookup(shapes.margin, forced.margin, np.add), lookup(shapes.gap, forced.gap, join)


def gap_range(contacts: ContactSet) -> tuple[float, float]:
    """Least and largest gap of two shapes, of which one moves; nothing is reported beyond it. See
    `pair_range`."""
    shapes = contacts.shapes
    forced_gaps = contacts.forced.gap.astype(np.float64)
    return pair_range(shapes.gap.astype(np.float64), shapes.body, forced_gaps, contacts.gap_rule)


class PairRules:
    """The rules of rigid contacts that follow from the two shapes of a pair."""

    def __init__(self, contacts: ContactSet) -> None:
        self._mixing = None
        shapes = contacts.shapes
        forced = contacts.forced
        self._optional = contacts.optional_columns
        if contacts.materials is not None:
            pairs = np.stack([forced.shape0, forced.shape1], axis=1)
            pairwise = contacts.forced_materials
            rule = contacts.material_rule
            self._mixing = ContactMixing(
                *(rule, contacts.materials, shapes.margin, pairs, forced.margin, pairwise),
                contacts.triangle_materials.materials,
            )
        self._material_count = len(contacts.triangle_materials)
        self._margin, self._gap = pair_values(contacts)

    def of(self, columns: Mapping[str, np.ndarray], cell: np.ndarray) -> Iterator[tuple[str, Any]]:
        """Each rule's text and the rows that break it; of rows with known shapes."""
        if CONTACT_ID.name in columns:
            yield "contact_id is negative", columns[CONTACT_ID.name] < 0
            yield (
                "contact_id is not the only one of its cell",
                _repeated(cell, columns[CONTACT_ID.name]),
            )
        if FRICTION_SCALE.name in columns:
            scale = columns[FRICTION_SCALE.name]
            yield "friction_scale is negative or not finite", ~(scale >= 0.0) | np.isinf(scale)
        outside = np.zeros(len(cell), bool)
        for name in SURFACE_COLUMNS[2:]:
            if name in columns:
                of_column = is_outside(columns[name], OF_SHAPE, self._material_count)
                yield f"{name} is no row of /model/triangle_material", of_column
                outside |= of_column
        # optional columns against the tables that determine them, to the bit
        if self._mixing is not None and not outside.any():
            names = [name for name in self._optional if name in RULE_COLUMNS[self._mixing.rule]]
            wanted = [column for column in OPTIONAL_COLUMNS if column.name in names]
            for name, expected in self._mixing.columns(wanted, columns).items():
                broken = (columns[name] != expected).reshape(len(expected), -1).any(axis=1)
                yield f"{name} does not follow from the pair's two surfaces", broken
        if not all(
            np.isfinite(columns[column.name]).all()
            for column in RIGID_COLUMNS
            if column.dtype.kind == "f"
        ):
            return
        shape0 = columns["shape0"]
        shape1 = columns["shape1"]
        margin = self._margin(shape0, shape1)
        gap = self._gap(shape0, shape1)
        yield EQUATION, _equation_broken(columns, margin)
        distance = columns["distance"].astype(np.float64)
        # The engine compares distance and gap before they are rounded to float32.
        slack = 4 * _UNIT_32 * (np.abs(distance) + np.abs(gap) + margin)
        yield WITHIN_GAP, distance > gap + slack


def _repeated(cell: np.ndarray, values: np.ndarray) -> np.ndarray:
    order = np.lexsort((values, cell))
    broken = np.zeros(len(cell), bool)
    broken[order[1:]] = (np.diff(cell[order]) == 0) & (np.diff(values[order]) == 0)
    return broken


def _equation_broken(columns: Mapping[str, np.ndarray], margin: np.ndarray) -> np.ndarray:
    """Rows where the residual of the equation exceeds rounding.

    Each witness coordinate is rounded once to the column's type: unit * |n| . (|p0| + |p1|).
    Normal, distance and margins are rounded once to float32, in proportion to the separation. The
    computation before is in float64, on coordinates as large as the points and their offsets; its
    allowance is 64 units. The first two terms have a factor 4 for a separation that other
    operations computed.
    """
    point0 = columns["point0"].astype(np.float64)
    point1 = columns["point1"].astype(np.float64)
    distance = columns["distance"].astype(np.float64)
    normal = columns["normal"].astype(np.float64)
    unit = _UNIT_32 if columns["point0"].dtype.itemsize == 4 else _UNIT_64
    separation = point1 - point0
    residual = np.abs((separation * normal).sum(axis=1) - distance - margin)
    in_points = unit * (np.abs(normal) * (np.abs(point0) + np.abs(point1))).sum(axis=1)
    in_separation = _UNIT_32 * (
        np.abs(separation * normal).sum(axis=1) + np.abs(distance) + np.abs(margin)
    )
    scale = sum(
        np.abs(columns[name]).max(axis=1, initial=0.0)
        for name in ("point0", "point1", "offset0", "offset1")
    )
    return residual > 4 * (in_points + in_separation) + 64 * _UNIT_64 * scale


def _rules(
    contacts: ContactSet,
    groups: Mapping[str, GroupRows],
    name: str,
    cell: np.ndarray,
    pairs: PairRules,
) -> Iterator[tuple[str, Any]]:
    """Each rule's text and the rows that break it; stops after shapes out of range, as later rules
    index by shape."""
    rows = groups[name]
    definition = TABLES_BY_NAME[name]
    shapes = shapes_of(groups, name) if definition.shapes else ()
    outside = np.zeros(len(cell), bool)
    for shape in shapes:
        outside |= (shape < 0) | (shape >= len(contacts.shapes))
    yield "a shape is no row of /model/shape", outside
    if outside.any():
        return
    if len(shapes) == 2:
        yield "shape0 is not less than shape1", shapes[0] >= shapes[1]
    template = contacts.world_template[cell % contacts.world_count]
    for shape in shapes:
        template_of_shape = contacts.shapes.template[shape]
        yield (
            "a shape is not in this world",
            (template_of_shape != -1) & (template_of_shape != template),
        )
    if definition.objects:
        yield from _object_rules(contacts, definition, rows, template)
    is_other = contacts.engine is not None and name == RIGID_CONTACTS.name
    strict = not (definition.references or is_other)
    keys = (*definition.keys, *(ROW_ORDER if is_other else ()))
    order = ", ".join(("cell", *keys))
    once = ", each row once" if strict else ""
    yield f"rows are out of order: {order}{once}", _out_of_order(rows, cell, keys, strict)
    given = definition if name == RIGID_CONTACTS.name else definition.having(rows.columns)
    yield from _value_rules(given, rows, (KIND_UNKNOWN,) if is_other else ())
    if name == RIGID_CONTACTS.name:
        yield from pairs.of(rows.columns, cell)
    if name in (SOFT_CONTACTS.name, SOFT_SWEEP.name):
        yield from _soft_rules(rows)
    if name in OF_STEPS:
        yield from _step_rules(contacts, name, rows, cell)
    yield from _list_rules(definition, rows, len(cell))
    if name == "hydro_patches" and "hydro_faces" in groups:
        faces = np.bincount(groups["hydro_faces"].columns["patch"], minlength=len(cell))
        yield "face_count is not the number of faces", rows.columns["face_count"] != faces


def _soft_rules(rows: GroupRows) -> Iterator[tuple[str, Any]]:
    """Rules of the particles of a contact, and of their weights."""
    indices = rows.columns["indices"]
    weights = rows.columns["barycentric"]
    is_used = np.arange(3) <= rows.columns["kind"][:, None]
    yield "indices are not as many as the kind has", ((indices >= 0) != is_used).any(axis=1)
    with np.errstate(invalid="ignore"):
        wrong = (weights < 0.0).any(axis=1) | (
            np.abs(weights.sum(axis=1, dtype=np.float64) - 1.0) > WEIGHT_TOLERANCE
        )
    yield (
        "the weights are not at least 0 with the sum 1",
        wrong | ((weights != 0.0) & ~is_used).any(axis=1),
    )


def _step_rules(
    contacts: ContactSet, name: str, rows: GroupRows, cell: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """Rules of contacts between a frame and the next one."""
    yield (
        "is in the last frame, which has no step",
        cell // contacts.world_count == contacts.frame_count - 1,
    )
    of = rows.columns
    yield "status is not 1 or 2", (of["status"] < 1) | (of["status"] > 2)
    is_between = (of["enter"] > 0.0) & (of["leave"] < 1.0) & (of["status"] == 1)
    wrong = of["tunnel"] != is_between
    if name == SOFT_SWEEP.name:
        # A line or triangle of which a particle touches in a frame does not tunnel.
        wrong &= ~(is_between & (of["tunnel"] == 0) & (of["kind"] > 0))
    yield "tunnel does not follow from enter, leave and status", wrong
    yield (
        "enter and leave are not ascending in 0 to 1",
        (of["enter"] > of["leave"]) | (of["leave"] > 1.0),
    )
    yield "least_bound is above least", of["least_bound"] > of["least"]


def _list_rules(
    definition: ContactGroup, rows: GroupRows, row_count: int
) -> Iterator[tuple[str, Any]]:
    """Rules of columns that have a list in each row."""
    for entries in definition.lists:
        lengths, values = rows.lists[entries.column.name]
        yield (
            f"{entries.column.name} has fewer than {entries.least} entries",
            lengths < entries.least,
        )
        row = np.repeat(np.arange(row_count), lengths)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        yield f"{entries.column.name} is not finite", np.bincount(row[bad], minlength=row_count) > 0


def _object_rules(
    contacts: ContactSet, definition: ContactGroup, rows: GroupRows, template: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """Rules for particles: those of an element are of one object, which is in the world. template:
    of each row."""
    objects = contacts.particle_objects
    indices = rows.columns["indices"]
    outside = indices >= objects.total
    yield "a particle is of no object", outside.any(axis=1)
    is_there = (indices >= 0) & ~outside
    yield "a row has no particle", ~is_there[:, list(definition.objects.values())].all(axis=1)
    row = objects.of(np.where(is_there, indices, 0))
    expected = np.repeat(row[:, :1], indices.shape[1], axis=1)
    # a vertex and a triangle, or two edges
    if definition.name in (SELF_CONTACTS.name, SELF_SWEEP.name):
        expected[:, 1] = np.where(rows.columns["kind"] == 1, row[:, 0], row[:, 3])
        expected[:, 2] = row[:, 3]
        expected[:, 3] = row[:, 3]
    yield (
        "the particles of an element are of several objects",
        (is_there & (row != expected)).any(axis=1),
    )
    owner = np.append(objects.template, -1)[row]
    yield (
        "a particle is not in this world",
        (is_there & (owner != -1) & (owner != template[:, None])).any(axis=1),
    )


def _value_rules(
    definition: ContactGroup, rows: GroupRows, more_kinds: tuple[int, ...]
) -> Iterator[tuple[str, Any]]:
    for column in definition.columns:
        values = rows.columns[column.name].reshape(-1, column.width)
        if column.dtype.kind == "f":
            yield f"{column.name} is not finite", ~np.isfinite(values).all(axis=1)
        if column.name in definition.least:
            least = definition.least[column.name]
            yield f"{column.name} is less than {least}", (values < least).any(axis=1)
        if column.name == "kind":
            unknown = (values[:, 0] >= len(definition.kinds)) & ~np.isin(values[:, 0], more_kinds)
            yield f"kind is not 0 to {len(definition.kinds) - 1}", unknown
        if column.name == "normal":
            with np.errstate(over="ignore", invalid="ignore"):
                size = np.square(values.astype(np.float64)).sum(axis=1)
                yield UNIT_NORMAL, np.abs(size - 1.0) > NORMAL_TOLERANCE


def _out_of_order(
    rows: GroupRows, cell: np.ndarray, keys: tuple[str, ...], strict: bool
) -> np.ndarray:
    """Rows that do not sort after the row before. strict: equal keys are out of order too."""
    broken = np.zeros(len(cell), bool)
    equal = np.ones(max(0, len(cell) - 1), bool)
    for key in (
        cell,
        *(values for name in keys for values in rows.columns[name].reshape(len(cell), -1).T),
    ):
        broken[1:] |= equal & (key[1:] < key[:-1])
        equal &= key[1:] == key[:-1]
    if strict:
        broken[1:] |= equal
    return broken
