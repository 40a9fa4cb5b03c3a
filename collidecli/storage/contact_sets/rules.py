"""The rules for the tables and rows of a contact set, and checks of the rows that other tables index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.material import CONTACT_DIMENSIONS, Materials, PairMaterials
from collidecli.scene.mixing import RULE_COLUMNS, ContactMixing, pair_rows
from collidecli.scene.tables import (
    CONTACT_ID,
    FRICTION_SCALE,
    KIND_PATCH,
    OF_STEPS,
    OPTIONAL_COLUMNS,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    ContactBlock,
    ContactGroup,
    GroupRows,
    shapes_of,
)
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, GroupTable, rows_of_cells, spans

SHAPE_TYPES = (
    "plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "mesh", "convex_mesh", "heightfield",
)  # fmt: skip

_UNIT_32 = float(np.finfo(np.float32).eps) / 2
_UNIT_64 = float(np.finfo(np.float64).eps) / 2
_NORMAL_TOLERANCE = 8 * _UNIT_32
"""Rounding of the components changes n.n by at most 2 units; the rest is slack for a normal computed in float32."""


@dataclass(frozen=True)
class Finding:
    """One rule that a file breaks: its first location, and the rule."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def table_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that the tables and cell_start break."""
    shapes, time = contacts.shapes, contacts.time
    lowest_template = -1
    highest_template = max(int(contacts.world_template.max(initial=-1)), -1)
    forced = contacts.forced
    rules: list[tuple[str, str, np.ndarray]] = [
        ("/time/time", "is not finite", ~np.isfinite(time)),
        ("/time/time", "is earlier than the frame before it", np.diff(time, prepend=-np.inf) < 0),
        ("/model/shape/type", "is not a shape type", ~np.isin(shapes.type, SHAPE_TYPES)),
        ("/model/shape/body", "is no row of /model/body", _outside(shapes.body, -1, len(contacts.body_path))),
        ("/model/shape/template", "is below -1", shapes.template < lowest_template),
        ("/model/shape/template", "is the template of no world", shapes.template > highest_template),
        ("/model/shape/margin", "is not finite", ~np.isfinite(shapes.margin)),
        ("/model/shape/gap", "is not finite", ~np.isfinite(shapes.gap)),
        ("/model/forced_pair/shape0", "is no row of /model/shape", _outside(forced.shape0, 0, len(shapes))),
        ("/model/forced_pair/shape1", "is no row of /model/shape", _outside(forced.shape1, 0, len(shapes))),
        ("/model/forced_pair/shape0", "is not less than shape1", forced.shape0 >= forced.shape1),
        ("/model/forced_pair/shape0", "is the pair of an earlier row", _repeated(forced.shape0, forced.shape1)),
    ]
    if contacts.materials is not None:
        rules += _material_rules(contacts.materials, contacts.forced_materials)
    found = [
        Finding(f"{contacts.path}: {path}, row {int(np.argmax(broken))}", f"{what}{_times(broken)}")
        for path, what, broken in rules
        if broken.any()
    ]
    return found + _cell_start_findings(contacts)


def _material_rules(materials: Materials, pairs: PairMaterials) -> list[tuple[str, str, np.ndarray]]:
    """Rules for materials. NaN is an unspecified value of penalty parameters and of pairs' own parameters."""
    rules = []
    for name, values in vars(materials).items():
        path = f"/model/shape/{name}"
        if name.endswith("_combine"):
            rules.append((path, "is no combine mode", values < 0))
        elif name == "condim":
            rules.append((path, "is not 1, 3, 4 or 6", ~np.isin(values, CONTACT_DIMENSIONS)))
        elif not name.startswith("contact_"):
            broken = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
            rules.append((path, "is not finite", broken))
    known = np.isin(pairs.condim, (0, *CONTACT_DIMENSIONS))
    return [*rules, ("/model/forced_pair/condim", "is not 0, 1, 3, 4 or 6", ~known)]


def _outside(values: np.ndarray, low: int, end: int) -> np.ndarray:
    return (values < low) | (values >= end)


def _times(broken: np.ndarray) -> str:
    count = int(broken.sum())
    return f" ({count} rows)" if count > 1 else ""


def _cell_start_findings(contacts: ContactSet) -> list[Finding]:
    where = f"{contacts.path}: {schema.CELL_START}"
    previous = 0
    for first in range(0, contacts.cell_count + 1, BLOCK_ROWS):
        start = contacts.cell_start(slice(first, min(first + BLOCK_ROWS, contacts.cell_count + 1)))
        if first == 0 and start[0] != 0:
            return [Finding(where, f"begins with {start[0]}, not 0")]
        falls = np.diff(start, prepend=previous) < 0
        if falls.any():
            return [Finding(f"{where}, entry {first + int(np.argmax(falls))}", "is less than the one before it")]
        if contacts.episodes is not None:
            counts = np.diff(start, prepend=previous)[1 if first == 0 else 0 :]
            cell = max(0, first - 1)
            outside = ~contacts.episodes.inside(cell, len(counts), contacts.world_count) & (counts > 0)
            if outside.any():
                frame, world = divmod(cell + int(np.argmax(outside)), contacts.world_count)
                return [Finding(f"{where}, frame {frame}, world {world}", "has contacts outside every episode")]
        previous = int(start[-1])
    if previous != contacts.contact_count:
        return [Finding(where, f"ends with {previous}, not the number of contacts, {contacts.contact_count}")]
    return []


def row_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that rows break, each with its first row and the count. Reads in blocks of whole cells."""
    first_row: dict[str, str] = {}
    counts: dict[str, int] = {}
    pair_margin, pair_gap = pair_values(contacts)
    mixing = _mixing(contacts)
    for block in contacts.blocks(names=schema.COLUMN_NAMES + contacts.optional_columns):
        if block.contact_count == 0:
            continue
        cell = np.repeat(block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts)
        rules = _row_rules(contacts, block, cell, pair_margin, pair_gap)
        for what, broken in chain(rules, _mixing_rules(contacts, block, mixing)):
            if broken.any():
                row = int(np.argmax(broken))
                frame, world = divmod(int(cell[row]), contacts.world_count)
                pair = f"shapes {block.columns['shape0'][row]} and {block.columns['shape1'][row]}"
                first_row.setdefault(what, f"{contacts.path}: frame {frame}, world {world}, {pair}")
                counts[what] = counts.get(what, 0) + int(broken.sum())
    return [
        Finding(where, what + (f" ({counts[what]} contacts)" if counts[what] > 1 else ""))
        for what, where in first_row.items()
    ]


def _mixing(contacts: ContactSet) -> ContactMixing | None:
    """The contact parameters of the file's tables; None for a file without material tables."""
    if contacts.materials is None:
        return None
    shapes, forced = contacts.shapes, contacts.forced
    pairs = np.stack([forced.shape0, forced.shape1], axis=1)
    return ContactMixing(
        contacts.material_rule, contacts.materials, shapes.margin, pairs, forced.margin, contacts.forced_materials
    )


def _mixing_rules(
    contacts: ContactSet, block: ContactBlock, mixing: ContactMixing | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Optional columns against the tables that determine them, to the bit: both are computed in float64."""
    if mixing is None or not contacts.optional_columns:
        return
    shape0, shape1 = block.columns["shape0"], block.columns["shape1"]
    if _outside(np.concatenate([shape0, shape1]), 0, len(contacts.shapes)).any():
        return
    names = [name for name in contacts.optional_columns if name in RULE_COLUMNS[mixing.rule]]
    wanted = [column for column in OPTIONAL_COLUMNS if column.name in names]
    for name, expected in mixing.columns(wanted, shape0, shape1).items():
        broken = (block.columns[name] != expected).reshape(block.contact_count, -1).any(axis=1)
        yield f"{name} does not follow from the pair's two surfaces", broken


PairValue = Callable[[np.ndarray, np.ndarray], np.ndarray]


def pair_values(contacts: ContactSet) -> tuple[PairValue, PairValue]:
    """The margin and the gap of pairs of shapes: combined from the shapes, or the own value of a forced pair."""
    shapes, forced = contacts.shapes, contacts.forced
    pairs = np.stack([forced.shape0, forced.shape1], axis=1)
    join = np.maximum if contacts.gap_rule == "max" else np.add

    def lookup(of_shape: np.ndarray, of_pair: np.ndarray, combine: np.ufunc) -> PairValue:
        def value(shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
            usual = combine(of_shape[shape0].astype(np.float64), of_shape[shape1].astype(np.float64))
            if not len(pairs):
                return usual
            at = pair_rows(pairs, len(shapes), shape0, shape1)
            own = np.where(at >= 0, of_pair[at].astype(np.float64), np.nan)
            return np.where(np.isnan(own), usual, own)

        return value

    return lookup(shapes.margin, forced.margin, np.add), lookup(shapes.gap, forced.gap, join)


def gap_range(contacts: ContactSet) -> tuple[float, float]:
    """Least and largest gap of two shapes, of which one moves, and of forced pairs [m]; nothing is reported beyond it.

    (0, 0) for a set with fewer than two shapes.
    """
    gap, count = contacts.shapes.gap.astype(np.float64), len(contacts.shapes)
    if count < 2:
        return 0.0, 0.0
    join = np.maximum if contacts.gap_rule == "max" else np.add
    own = contacts.forced.gap[~np.isnan(contacts.forced.gap)].astype(np.float64)
    moving = np.flatnonzero(contacts.shapes.body >= 0) if (contacts.shapes.body >= 0).any() else np.arange(count)
    order = np.argsort(gap, kind="stable")
    ends = [join(gap[moving], gap[np.where(moving == at, other, at)]) for at, other in (order[:2], order[:-3:-1])]
    return float(np.append(ends[0], own).min()), float(np.append(ends[1], own).max())


def _row_rules(
    contacts: ContactSet, block: ContactBlock, cell: np.ndarray, pair_margin: PairValue, pair_gap: PairValue
) -> Iterator[tuple[str, Any]]:
    """Each rule's text and the rows that break it; stops after shapes out of range, as later rules index by shape."""
    columns = block.columns
    shape0, shape1 = columns["shape0"], columns["shape1"]
    outside = _outside(shape0, 0, len(contacts.shapes)) | _outside(shape1, 0, len(contacts.shapes))
    yield "a shape is no row of /model/shape", outside
    if outside.any():
        return
    yield "shape0 is not less than shape1", shape0 >= shape1
    template = contacts.world_template[cell % contacts.world_count]
    for shape in (shape0, shape1):
        own = contacts.shapes.template[shape]
        yield "a shape is not in this world", (own != -1) & (own != template)
    yield "rows are out of order: cell, shape0, shape1, feature0, feature1, each row once", _out_of_order(cell, columns)
    yield "kind is not 0 to 3", columns["kind"] > KIND_PATCH

    if CONTACT_ID.name in columns:
        yield "contact_id is negative", columns[CONTACT_ID.name] < 0
        yield "contact_id is not the only one of its cell", _repeated(cell, columns[CONTACT_ID.name])
    if FRICTION_SCALE.name in columns:
        yield (
            "friction_scale is negative or not finite",
            ~(columns[FRICTION_SCALE.name] >= 0.0) | np.isinf(columns[FRICTION_SCALE.name]),
        )

    infinite = np.zeros(len(cell), bool)
    for name in ("distance", "normal", "point0", "point1", "offset0", "offset1"):
        values = columns[name].reshape(len(cell), -1)
        bad = ~np.isfinite(values).all(axis=1)
        infinite |= bad
        yield f"{name} is not finite", bad
    if infinite.any():
        return
    normal = columns["normal"].astype(np.float64)
    yield "the normal has not unit length", np.abs((normal**2).sum(axis=1) - 1.0) > _NORMAL_TOLERANCE
    margin = pair_margin(shape0, shape1)
    yield "dot(point1 - point0, normal) is not distance + margin0 + margin1", _equation_broken(columns, normal, margin)
    distance, gap = columns["distance"].astype(np.float64), pair_gap(shape0, shape1)
    # The engine compares distance and gap before they are rounded to float32.
    slack = 4 * _UNIT_32 * (np.abs(distance) + np.abs(gap) + margin)
    yield "the distance is not less than the pair's gap", distance > gap + slack


def _repeated(cell: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows whose value an earlier row of the cell has too."""
    order = np.lexsort((values, cell))
    broken = np.zeros(len(cell), bool)
    broken[order[1:]] = (np.diff(cell[order]) == 0) & (np.diff(values[order]) == 0)
    return broken


def _out_of_order(cell: np.ndarray, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Rows that do not sort after the previous row. Blocks contain whole cells, so none is missed between blocks."""
    broken = np.zeros(len(cell), bool)
    undecided = np.ones(max(0, len(cell) - 1), bool)
    for key in (cell, *(columns[name] for name in ("shape0", "shape1", "feature0", "feature1"))):
        broken[1:] |= undecided & (key[1:] < key[:-1])
        undecided &= key[1:] == key[:-1]
    broken[1:] |= undecided
    return broken


def _equation_broken(columns: dict[str, np.ndarray], normal: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Rows where the residual of the equation exceeds rounding.

    Each witness coordinate is rounded once to the column's type: unit * |n| . (|p0| + |p1|). Normal, distance and
    margins are rounded once to float32, in proportion to the separation. The computation before is in float64, on
    coordinates as large as the points and their offsets; its allowance is 64 units. The first two terms have a factor
    4 for a separation that other operations computed.
    """
    point0, point1 = columns["point0"].astype(np.float64), columns["point1"].astype(np.float64)
    distance = columns["distance"].astype(np.float64)
    unit = _UNIT_32 if columns["point0"].dtype.itemsize == 4 else _UNIT_64
    separation = point1 - point0
    residual = np.abs((separation * normal).sum(axis=1) - distance - margin)
    in_points = unit * (np.abs(normal) * (np.abs(point0) + np.abs(point1))).sum(axis=1)
    in_separation = _UNIT_32 * (np.abs(separation * normal).sum(axis=1) + np.abs(distance) + np.abs(margin))
    scale = sum(np.abs(columns[name]).max(axis=1, initial=0.0) for name in ("point0", "point1", "offset0", "offset1"))
    return residual > 4 * (in_points + in_separation) + 64 * _UNIT_64 * scale


def check_has_contacts(contacts: ContactSet) -> None:
    """Raises InputError for a set of pairs that touch, which has no contacts of shapes."""
    if contacts.config.get("touch_only"):
        what = "the contact set is of a run with --touch-only: it has pairs of shapes and no distances"
        fix = "run without --touch-only, or read its pairs with collide export --to csv --group touches"
        raise InputError(what, contacts.path, fix)


def check_shape_rows(contacts: ContactSet, block: ContactBlock) -> None:
    """Raises InputError for a shape0 or shape1 of a block that is no row of /model/shape."""
    count = len(contacts.shapes)
    for name in ("shape0", "shape1"):
        rows = block.columns[name]
        if len(rows) and not (rows.min() >= 0 and rows.max() < count):
            row = int(np.argmax((rows < 0) | (rows >= count)))
            last = block.first_cell + len(block.cell_counts) - 1
            where = f"{contacts.path}: /rigid_contacts/{name}, cells {block.first_cell} to {last}"
            raise InputError(f"{rows[row]} is no row of /model/shape", where, "make the contact set again")


def check_group_rows(contacts: ContactSet, groups: Mapping[str, GroupRows], first: int, last: int) -> None:
    """Raises InputError for a shape that is no row of /model/shape, and for a particle of no object, in rows of groups
    of cells first to last - 1.

    Only columns that were read are checked.
    """
    for name, rows in groups.items():
        for column in contacts.groups[name].definition.shapes:
            if column not in rows.columns:
                continue
            broken = _outside(rows.columns[column], 0, len(contacts.shapes))
            if broken.any():
                where = f"{contacts.path}: /{name}/{column}, cells {first} to {last - 1}"
                what = f"{rows.columns[column][int(np.argmax(broken))]} is no row of /model/shape"
                raise InputError(what, where, "make the contact set again")
        if contacts.groups[name].definition.objects and "indices" in rows.columns:
            total, indices = contacts.particle_objects.total, rows.columns["indices"]
            least = contacts.groups[name].definition.least["indices"]
            broken = _outside(indices, least, total).any(axis=1)
            for entry in contacts.groups[name].definition.objects.values():
                broken |= indices[:, entry] < 0
            if broken.any():
                where = f"{contacts.path}: /{name}/indices, cells {first} to {last - 1}"
                shown = ", ".join(map(str, indices[int(np.argmax(broken))].tolist()))
                what = f"({shown}) are not particles of the scene, which has {total}"
                raise InputError(what, where, "make the contact set again")


def objects_of(contacts: ContactSet, name: str, rows: GroupRows) -> tuple[np.ndarray, ...]:
    """The particle objects of each row of a group, int64[n] each; the rows must have passed `check_group_rows`."""
    entries = contacts.groups[name].definition.objects.values()
    return tuple(contacts.particle_objects.of(rows.columns["indices"][:, entry]) for entry in entries)


def check_body_rows(contacts: ContactSet) -> None:
    """Raises InputError for a shape whose body is neither -1 nor a row of /model/body."""
    body = contacts.shapes.body
    outside = (body < -1) | (body >= len(contacts.body_path))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError("is no row of /model/body", f"{contacts.path}: /model/shape/body, row {row}", "make it again")


# The rules for the groups of a contact set beside /rigid_contacts.

NORMAL_TOLERANCE = 1e-6
"""Of n.n, for a normal rounded to float32."""
WEIGHT_TOLERANCE = 1e-6
"""Of the sum of three weights rounded to float32."""


def group_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that the groups break, each with its first row. Rows are checked only if all starts are valid."""
    found = [finding for table in contacts.groups.values() for finding in _start_findings(contacts, table)]
    return found or _row_findings(contacts)


def _start_findings(contacts: ContactSet, table: GroupTable) -> list[Finding]:
    found = _starts(table.where("cell_start"), table.cell_start, contacts.cell_count, table.row_count, "rows")
    for held in table.definition.lists:
        values, read = table.value_count(held.column.name), partial(table.column, held.start)
        found += _starts(table.where(held.start), read, table.row_count, values, "values")
    return found


def _starts(where: str, read: Callable[[slice], np.ndarray], count: int, end: int, what: str) -> list[Finding]:
    """Findings of a dataset of starts with `count` + 1 entries, from 0 to `end`."""
    previous = 0
    for first in range(0, count + 1, BLOCK_ROWS):
        start = read(slice(first, min(first + BLOCK_ROWS, count + 1)))
        if first == 0 and start[0] != 0:
            return [Finding(where, f"begins with {start[0]}, not 0")]
        falls = np.flatnonzero(start < np.concatenate([[previous], start[:-1]]))
        if len(falls):
            return [Finding(f"{where}, entry {first + int(falls[0])}", "is less than the one before it")]
        previous = int(start[-1])
    return [Finding(where, f"ends with {previous}, not the number of {what}, {end}")] if previous != end else []


def _row_findings(contacts: ContactSet) -> list[Finding]:
    first_row: dict[tuple[str, str], str] = {}
    counts: dict[tuple[str, str], int] = {}
    tables = contacts.groups
    starts = [table.cell_start for table in tables.values()]
    for first, last in spans(starts, BLOCK_ROWS, 0, contacts.cell_count) if tables else ():
        try:
            groups = rows_of_cells(tables, first, last)
        except InputError as error:
            return [Finding(error.where, error.what)]
        for name, rows in groups.items():
            cell = first + np.repeat(np.arange(last - first), rows.cell_counts)
            for what, broken in _rules(contacts, groups, name, cell):
                if broken.any():
                    row = int(np.argmax(broken))
                    frame, world = divmod(int(cell[row]), contacts.world_count)
                    in_cell = row - int(np.searchsorted(cell, cell[row]))
                    where = f"{contacts.path}: /{name}, frame {frame}, world {world}, row {in_cell} of the cell"
                    first_row.setdefault((name, what), where)
                    counts[name, what] = counts.get((name, what), 0) + int(broken.sum())
    return [
        Finding(where, key[1] + (f" ({counts[key]} rows)" if counts[key] > 1 else ""))
        for key, where in first_row.items()
    ]


def _rules(
    contacts: ContactSet, groups: dict[str, GroupRows], name: str, cell: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """Each rule's text and the rows that break it; stops after shapes out of range."""
    rows, definition = groups[name], contacts.groups[name].definition
    if not len(cell):
        return
    if contacts.episodes is not None:
        frame, world = np.divmod(cell, contacts.world_count)
        yield "is outside every episode", contacts.episodes.row(world, frame) < 0
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
        own = contacts.shapes.template[shape]
        yield "a shape is not in this world", (own != -1) & (own != template)
    if definition.objects:
        yield from _object_rules(contacts, definition, rows, template)
    strict = not definition.references
    order = ", ".join(("cell", *definition.keys))
    once = ", each row once" if strict else ""
    yield f"rows are out of order: {order}{once}", _group_out_of_order(rows, cell, definition.keys, strict)
    yield from _value_rules(contacts.groups[name], rows)
    if name in (SOFT_CONTACTS.name, SOFT_SWEEP.name):
        yield from _element_rules(rows)
    if name in OF_STEPS:
        yield "is in the last frame, which has no step", cell // contacts.world_count == contacts.frame_count - 1
        yield from _sweep_rules(rows)
    for held in definition.lists:
        lengths, values = rows.lists[held.column.name]
        yield f"{held.column.name} has fewer than {held.least} entries", lengths < held.least
        row = np.repeat(np.arange(len(cell)), lengths)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        yield f"{held.column.name} is not finite", np.bincount(row[bad], minlength=len(cell)) > 0
    if name == "hydro_patches" and "hydro_faces" in groups:
        faces = np.bincount(groups["hydro_faces"].columns["patch"], minlength=len(cell))
        yield "face_count is not the number of faces", rows.columns["face_count"] != faces


def _object_rules(
    contacts: ContactSet, definition: ContactGroup, rows: GroupRows, template: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """Rules for particles: those of an element are of one object, which is in the world. template: of each row."""
    objects, indices = contacts.particle_objects, rows.columns["indices"]
    outside = indices >= objects.total
    yield "a particle is of no object", outside.any(axis=1)
    is_there = (indices >= 0) & ~outside
    yield "a row has no particle", ~is_there[:, list(definition.objects.values())].all(axis=1)
    row = objects.of(np.where(is_there, indices, 0))
    expected = np.repeat(row[:, :1], indices.shape[1], axis=1)
    if definition.name in (SELF_CONTACTS.name, SELF_SWEEP.name):  # a vertex and a triangle, or two edges
        expected[:, 1] = np.where(rows.columns["kind"] == 1, row[:, 0], row[:, 3])
        expected[:, 2] = row[:, 3]
        expected[:, 3] = row[:, 3]
    yield "the particles of an element are of several objects", (is_there & (row != expected)).any(axis=1)
    own = np.append(objects.template, -1)[row]
    yield "a particle is not in this world", (is_there & (own != -1) & (own != template[:, None])).any(axis=1)


def _element_rules(rows: GroupRows) -> Iterator[tuple[str, Any]]:
    """Rules for vertices, edges and faces: as many particles as the kind has, with weights."""
    indices, weights = rows.columns["indices"], rows.columns["barycentric"]
    held = np.arange(3) <= rows.columns["kind"][:, None]
    yield "indices are not as many as the kind has", ((indices >= 0) != held).any(axis=1)
    with np.errstate(invalid="ignore"):
        wrong = (weights < 0.0).any(axis=1) | (np.abs(weights.sum(axis=1, dtype=np.float64) - 1.0) > WEIGHT_TOLERANCE)
    yield "the weights are not at least 0 with the sum 1", wrong | ((weights != 0.0) & ~held).any(axis=1)


def _sweep_rules(rows: GroupRows) -> Iterator[tuple[str, Any]]:
    """Rules for pairs that touch between frames."""
    held = rows.columns
    yield "status is not 1 or 2", (held["status"] < 1) | (held["status"] > 2)
    is_between = (held["enter"] > 0.0) & (held["leave"] < 1.0) & (held["status"] == 1)
    yield "tunnel does not follow from enter, leave and status", held["tunnel"] != is_between
    yield "enter and leave are not ascending in 0 to 1", (held["enter"] > held["leave"]) | (held["leave"] > 1.0)
    yield "least_bound is above least", held["least_bound"] > held["least"]


def _value_rules(table: GroupTable, rows: GroupRows) -> Iterator[tuple[str, Any]]:
    definition = table.definition
    for column in definition.columns:
        values = rows.columns[column.name].reshape(-1, column.width)
        if column.dtype.kind == "f":
            yield f"{column.name} is not finite", ~np.isfinite(values).all(axis=1)
        if column.name in definition.least:
            least = definition.least[column.name]
            yield f"{column.name} is less than {least}", (values < least).any(axis=1)
        if column.name == "kind":
            yield f"kind is not 0 to {len(definition.kinds) - 1}", values[:, 0] >= len(definition.kinds)
        if column.name == "normal":
            with np.errstate(over="ignore", invalid="ignore"):
                size = np.square(values.astype(np.float64)).sum(axis=1)
                yield "the normal has not unit length", np.abs(size - 1.0) > NORMAL_TOLERANCE


def _group_out_of_order(rows: GroupRows, cell: np.ndarray, keys: tuple[str, ...], strict: bool) -> np.ndarray:
    """Rows that do not sort after the row before. strict: equal keys are out of order too."""
    broken, equal = np.zeros(len(cell), bool), np.ones(max(0, len(cell) - 1), bool)
    for key in (cell, *(values for name in keys for values in rows.columns[name].reshape(len(cell), -1).T)):
        broken[1:] |= equal & (key[1:] < key[:-1])
        equal &= key[1:] == key[:-1]
    if strict:
        broken[1:] |= equal
    return broken
