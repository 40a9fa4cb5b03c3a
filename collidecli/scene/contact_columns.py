"""The tables of a contact set: the columns of each, and rows of blocks of consecutive cells."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Column:
    """One column of a contact set. width: numbers a row. follows_motion: has the trajectory's float
    type.

    missing: value of contacts that have none, such as those of other engines. dtype: may be given
    by its name.
    """

    name: str
    dtype: Any
    width: int
    unit: str
    meaning: str
    follows_motion: bool = False
    missing: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def dtype_for(self, float_type: np.dtype) -> np.dtype:
        return np.dtype(float_type) if self.follows_motion else self.dtype

    def filled(self, count: int) -> np.ndarray:
        """`missing` in `count` rows: [count] or [count, width]."""
        return np.full((count, self.width) if self.width > 1 else count, self.missing, self.dtype)


def columns_of_sides(names: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of columns of the first and the second shape among `names`: equal names that end in
    0 and in 1."""
    given = set(names)
    return [
        (name, f"{name[:-1]}1")
        for name in sorted(given)
        if name.endswith("0") and f"{name[:-1]}1" in given
    ]


@dataclass(frozen=True)
class ListColumn:
    """One list of values a row, such as the corners of a polygon.

    column: of the values of all lists. start: name of the dataset int64[rows + 1] of first values;
    the last is the end. least: least length of a list.
    """

    column: Column
    start: str
    least: int = 0


@dataclass(frozen=True)
class ContactGroup:
    """A table of a contact set, whose rows are ordered by cell.

    columns: a dataset each. optional: those that an option selects, after the others. lists: two
    datasets each. keys: the columns that identify a row within its cell and order it; rows with
    equal keys are numbered in their order. references: column to the name of the table whose rows
    it numbers; within a block counted from the block's first row, in a file from the file's.
    shapes: the columns that number shapes. objects: name of a particle object of each row to the
    entry of the column indices with one of its particles. least: smallest allowed value of columns.
    kinds: words of the column kind. flipped: vectors whose sign changes if shape0 and shape1 are
    exchanged. limit: the option below which distances are reported [m], or "".
    """

    name: str
    columns: tuple[Column, ...]
    lists: tuple[ListColumn, ...] = ()
    keys: tuple[str, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    shapes: tuple[str, ...] = ()
    objects: Mapping[str, int] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    flipped: tuple[str, ...] = ()
    limit: str = ""
    optional: tuple[Column, ...] = ()

    def having(self, names: Container[str]) -> ContactGroup:
        """The table with those optional columns that are among `names`."""
        given = tuple(column for column in self.optional if column.name in names)
        return replace(self, columns=(*self.columns, *given), optional=()) if given else self

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """Names of all datasets of the table."""
        lists = (name for entries in self.lists for name in (entries.column.name, entries.start))
        return ("cell_start", *(column.name for column in self.columns), *lists)


@dataclass(frozen=True, repr=False)
class GroupRows:
    """Rows of one table in a block of cells.

    cell_counts: int64[cells]. columns: name to array [n] or [n, width]. lists: name to lengths
    int64[n] and values [total] or [total, width].
    """

    cell_counts: np.ndarray
    columns: dict[str, np.ndarray]
    lists: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"<GroupRows rows={self.row_count} cells={len(self.cell_counts)}"
            f" columns={','.join(self.columns)}>"
        )

    @property
    def row_count(self) -> int:
        return int(self.cell_counts.sum())

    @property
    def nbytes(self) -> int:
        """Size of all columns and lists [bytes]."""
        arrays = (
            *self.columns.values(),
            *(array for pair in self.lists.values() for array in pair),
        )
        return sum(array.nbytes for array in arrays)


_PAIR = (
    Column("shape0", "int32", 1, "", "row of /model/shape; less than shape1"),
    Column("shape1", "int32", 1, "", "row of /model/shape"),
)
_SOFT_ELEMENT = (
    Column("kind", "uint8", 1, "", "0 vertex, 1 edge, 2 face"),
    Column("indices", "int32", 3, "", "particles; -1 none"),
)
_SELF_ELEMENT = (
    Column("kind", "uint8", 1, "", "0 vertex and face, 1 edge and edge"),
    Column("indices", "int32", 4, "", "particles: a vertex and a triangle, or two edges"),
)
KIND_UNKNOWN = 255
"""Of a contact of another engine."""
RIGID_COLUMNS = (
    *_PAIR,
    Column("distance", "float32", 1, "m", "signed; negative is penetration"),
    Column("normal", "float32", 3, "", "unit, world, from shape0 to shape1"),
    Column("point0", "float64", 3, "m", "witness on shape0, world", follows_motion=True),
    Column("point1", "float64", 3, "m", "witness on shape1, world", follows_motion=True),
    Column("offset0", "float32", 3, "m", "point0 in the frame of shape0's body"),
    Column("offset1", "float32", 3, "m", "point1 in the frame of shape1's body"),
    Column("feature0", "int32", 1, "", "feature of shape0; -1 none", missing=-1),
    Column("feature1", "int32", 1, "", "feature of shape1; -1 none", missing=-1),
    Column("kind", "uint8", 1, "", "0 point, 1 edge, 2 face, 3 patch", missing=KIND_UNKNOWN),
)
"""Columns of /rigid_contacts besides cell_start, in the order of the file."""

CONTACT_ID = Column(
    "contact_id",
    "int64",
    1,
    "",
    "of its world; a contact that goes on has that of the frame before",
)
FRICTION_SCALE = Column(
    "friction_scale", "float32", 1, "", "factor of friction where moments are matched", missing=1.0
)
REDUCED_COLUMNS = (
    Column(
        "stiffness",
        "float64",
        1,
        "N/m",
        "of a reduced hydroelastic contact: force / -distance; 0 of others",
    ),
    Column("area", "float64", 1, "m^2", "of a reduced hydroelastic contact; 0 of others"),
)
"""Columns of reduced hydroelastic contacts."""
MOTION_COLUMNS = (
    Column(
        "distance_grad0",
        "float32",
        6,
        "",
        "change of distance as shape0's body moves [3] and turns [3, m]",
    ),
    Column(
        "distance_grad1",
        "float32",
        6,
        "",
        "change of distance as shape1's body moves [3] and turns [3, m]",
    ),
    Column(
        "grad_exact", "uint8", 1, "", "1 if the gradients are those of the pair's least distance"
    ),
    Column(
        "normal_velocity",
        "float32",
        1,
        "m/s",
        "change of distance in time; negative is approaching",
    ),
    Column("slip", "float32", 1, "m/s", "speed of point1 along the surface relative to point0"),
)
"""Columns that follow from the motion of the two bodies."""
SOFT_MOTION_COLUMNS = (
    Column(
        "body_velocity",
        "float32",
        3,
        "m/s",
        "of the point of the shape's surface as fixed to its body, world",
    ),
    Column(
        "relative_velocity",
        "float32",
        3,
        "m/s",
        "of the particle, edge or face at the contact, less body_velocity, world",
    ),
)
"""Columns of /soft_contacts that follow from the motion of the particles and the body."""
MATERIAL_COLUMNS = tuple(
    Column(
        f"material{side}",
        "int32",
        1,
        "",
        f"row of /model/triangle_material; -1: the material of shape{side}",
        missing=-1,
    )
    for side in (0, 1)
)
"""Columns of scenes in which triangles of a mesh have their own materials."""
OPTIONAL_COLUMNS = (
    Column("friction", "float32", 1, "", "dynamic friction coefficient"),
    Column("static_friction", "float32", 1, "", "static friction coefficient"),
    Column("torsional_friction", "float32", 1, "m", "about the normal"),
    Column("rolling_friction", "float32", 1, "m", "about the tangents"),
    Column("restitution", "float32", 1, "", "coefficient of restitution"),
    Column("condim", "int32", 1, "", "dimension of the contact's force: 1, 3, 4 or 6"),
    Column("friction5", "float32", 5, "", "two of sliding, torsional [m], two of rolling [m]"),
    Column(
        "solref",
        "float32",
        2,
        "",
        "time constant [s] and damping ratio, or negative stiffness and damping",
    ),
    Column("solimp", "float32", 5, "", "impedance"),
    Column("margin0", "float32", 1, "m", "margin of shape0; of a forced pair, half of its own"),
    Column("margin1", "float32", 1, "m", "margin of shape1; of a forced pair, half of its own"),
    FRICTION_SCALE,
    CONTACT_ID,
    *REDUCED_COLUMNS,
    *MOTION_COLUMNS,
    *MATERIAL_COLUMNS,
)
"""Columns of /rigid_contacts that an option selects, or the scene, in the order of the file."""

KIND_POINT, KIND_EDGE, KIND_FACE, KIND_PATCH = range(4)
ROW_ORDER = ("distance", "point0")
"""Columns that order the contacts of another engine in a pair, which have no features."""


RIGID_CONTACTS = ContactGroup(
    "rigid_contacts",
    RIGID_COLUMNS,
    keys=("shape0", "shape1", "feature0", "feature1"),
    shapes=("shape0", "shape1"),
    kinds=("point", "edge", "face", "patch"),
    flipped=("normal",),
    optional=OPTIONAL_COLUMNS,
)
"""Contacts of rigid shapes; every contact set has this table."""

HYDRO_PATCHES = ContactGroup(
    "hydro_patches",
    (
        *_PAIR,
        Column("area", "float64", 1, "m^2", "of the contact surface"),
        Column("force", "float64", 3, "N", "nominal force on shape1, world"),
        Column("center", "float64", 3, "m", "centre of pressure, world", follows_motion=True),
        Column("torque", "float64", 3, "N m", "on shape1 about the centre of pressure, world"),
        Column(
            "depth", "float64", 1, "m", "least separation of the faces; negative is penetration"
        ),
        Column("face_count", "int32", 1, "", "faces of the contact surface"),
        Column(
            "torque_error",
            "float64",
            1,
            "N m",
            "of the reduced contacts about the centre; 0 without them",
        ),
    ),
    keys=("shape0", "shape1"),
    shapes=("shape0", "shape1"),
    least={"area": 0, "face_count": 0},
    flipped=("force", "torque"),
)
"""Hydroelastic contact surfaces: one row per pair of shapes and cell."""

HYDRO_FACES = ContactGroup(
    "hydro_faces",
    (
        Column("patch", "int64", 1, "", "row of /hydro_patches"),
        Column("centroid", "float64", 3, "m", "world", follows_motion=True),
        Column("area", "float64", 1, "m^2", ""),
        Column("normal", "float32", 3, "", "unit, world, from shape0 to shape1"),
        Column("pressure", "float64", 1, "Pa", "at the centroid"),
        Column("separation", "float64", 1, "m", "signed; negative is penetration"),
        Column(
            "gradient", "float64", 1, "Pa/m", "effective gradient of the pressure along the normal"
        ),
    ),
    lists=(
        ListColumn(
            Column("vertices", "float64", 3, "m", "corners, world", follows_motion=True),
            "vertex_start",
            3,
        ),
    ),
    keys=("patch",),
    references={"patch": "hydro_patches"},
    least={"area": 0},
    flipped=("normal",),
)
"""Faces of the contact surfaces, in the order of their patches."""

SOFT_CONTACTS = ContactGroup(
    "soft_contacts",
    (
        *_SOFT_ELEMENT,
        Column("barycentric", "float32", 3, "", "weights of the particles"),
        Column("shape", "int32", 1, "", "row of /model/shape"),
        Column("feature", "int32", 1, "", "feature of the shape; -1 none"),
        Column("distance", "float32", 1, "m", "signed; negative is penetration"),
        Column("normal", "float32", 3, "", "unit, world, from the shape to the particle"),
        Column(
            "point_body", "float32", 3, "m", "point of the shape's surface in the frame of its body"
        ),
        Column(
            "point_world",
            "float64",
            3,
            "m",
            "point of the shape's surface, world",
            follows_motion=True,
        ),
    ),
    keys=("kind", "indices", "shape", "feature"),
    shapes=("shape",),
    objects={"object": 0},
    least={"indices": -1, "feature": -1},
    kinds=("vertex", "edge", "face"),
    limit="soft_gap",
    optional=SOFT_MOTION_COLUMNS,
)
"""Contacts of particles with shapes."""

SELF_CONTACTS = ContactGroup(
    "self_contacts",
    (
        *_SELF_ELEMENT,
        Column(
            "barycentric",
            "float32",
            4,
            "",
            "weights of the particles, of each of both features their sum is 1",
        ),
        Column("distance", "float32", 1, "m", "between both points"),
        Column("normal", "float32", 3, "", "unit, world, from the first feature to the second"),
        Column("point0", "float64", 3, "m", "on the first feature, world", follows_motion=True),
        Column("point1", "float64", 3, "m", "on the second feature, world", follows_motion=True),
    ),
    keys=("kind", "indices"),
    objects={"object0": 0, "object1": 3},
    least={"indices": 0},
    kinds=("vertex-face", "edge-edge"),
    limit="self_contacts",
)
"""Contacts of cloth and tetrahedra with themselves and each other."""


_NEGATIVE = "; negative is penetration"


def _step_columns(tunnel: str, least: str) -> tuple[Column, ...]:
    """When a row touches in the step from its frame to the next. tunnel: what is missed; least: of
    the distance."""
    return (
        Column("status", "uint8", 1, "", "1 touch, 2 undecided"),
        Column("tunnel", "uint8", 1, "", f"1 if {tunnel}"),
        Column(
            "enter",
            "float64",
            1,
            "",
            "begin of the first touch, part of the step from this frame to the next",
        ),
        Column("leave", "float64", 1, "", "end of the last touch, part of the step"),
        Column("least", "float64", 1, "m", f"least distance that was found in the step{least}"),
        Column("least_bound", "float64", 1, "m", "lower bound of every distance in the step"),
    )


SWEEP = ContactGroup(
    "sweep",
    (
        *_PAIR,
        *_step_columns("the pair is apart in both frames and touches between them", _NEGATIVE),
        Column(
            "point0", "float64", 3, "m", "witness on shape0 at enter, world", follows_motion=True
        ),
        Column(
            "point1", "float64", 3, "m", "witness on shape1 at enter, world", follows_motion=True
        ),
        Column("normal", "float32", 3, "", "at enter, unit, world, from shape0 to shape1"),
    ),
    keys=("shape0", "shape1"),
    shapes=("shape0", "shape1"),
    least={"enter": 0, "leave": 0},
    flipped=("normal",),
)
"""Pairs of shapes that touch between a frame and the next, or of which that is undecided."""

SOFT_SWEEP = ContactGroup(
    "soft_sweep",
    (
        *_SOFT_ELEMENT,
        Column("barycentric", "float32", 3, "", "weights of the particles at enter"),
        Column("shape", "int32", 1, "", "row of /model/shape"),
        *_step_columns(
            "particle and shape are apart in both frames and touch between them", _NEGATIVE
        ),
        Column(
            "point_world",
            "float64",
            3,
            "m",
            "point of the shape's surface at enter, world",
            follows_motion=True,
        ),
        Column("normal", "float32", 3, "", "at enter, unit, world, from the shape to the particle"),
    ),
    keys=("kind", "indices", "shape"),
    shapes=("shape",),
    objects={"object": 0},
    least={"indices": -1, "enter": 0, "leave": 0},
    kinds=("vertex", "edge", "face"),
)
"""Particles that touch shapes between a frame and the next, or of which that is undecided, and
lines and triangles of particles that do while none of their particles does."""

SELF_SWEEP = ContactGroup(
    "self_sweep",
    (
        *_SELF_ELEMENT,
        Column("barycentric", "float32", 4, "", "weights of the particles at enter"),
        *_step_columns("both are apart in both frames and touch between them", ", without radii"),
        Column(
            "point0", "float64", 3, "m", "on the first feature at enter, world", follows_motion=True
        ),
        Column(
            "point1",
            "float64",
            3,
            "m",
            "on the second feature at enter, world",
            follows_motion=True,
        ),
        Column(
            "normal",
            "float32",
            3,
            "",
            "at enter, unit, world, from the first feature to the second",
        ),
    ),
    keys=("kind", "indices"),
    objects={"object0": 0, "object1": 3},
    least={"indices": 0, "enter": 0, "leave": 0, "least": 0, "least_bound": 0},
    kinds=("vertex-face", "edge-edge"),
)
"""Elements of cloth and tetrahedra that touch between a frame and the next, or of which that is
undecided."""

TOUCHES = ContactGroup("touches", _PAIR, keys=("shape0", "shape1"), shapes=("shape0", "shape1"))
"""Pairs of shapes nearer than their gap, in place of their contacts."""

CANDIDATES = ContactGroup(
    "candidates", _PAIR, keys=("shape0", "shape1"), shapes=("shape0", "shape1")
)
"""Pairs of shapes that the broad phase finds, in place of their contacts."""

PAIR_TABLES = {"touch_only": TOUCHES, "candidates_only": CANDIDATES}
"""Tables of pairs of shapes in place of contacts, by the option that finds them."""

GROUPS = (
    HYDRO_PATCHES,
    HYDRO_FACES,
    SOFT_CONTACTS,
    SELF_CONTACTS,
    SWEEP,
    SOFT_SWEEP,
    SELF_SWEEP,
    TOUCHES,
    CANDIDATES,
)
"""The tables beside the rigid contacts, which a contact set has or not; one follows those that it
refers to."""
TABLES = (RIGID_CONTACTS, *GROUPS)
"""All tables, those of rigid contacts first."""

OF_PARTICLES = (SOFT_CONTACTS.name, SELF_CONTACTS.name)
"""Groups of contacts of particles."""

OF_STEPS = (SWEEP.name, SOFT_SWEEP.name, SELF_SWEEP.name)
"""Groups whose rows are of the step from the frame of their cell to the next."""

GROUPS_BY_NAME = {group.name: group for group in GROUPS}
TABLES_BY_NAME = {table.name: table for table in TABLES}


def group_words(name: str) -> str:
    """The name of a group as words."""
    return name.replace("_", " ")


def no_columns(columns: Iterable[Column], float_type: np.dtype) -> dict[str, np.ndarray]:
    """Columns without rows."""
    return {
        column.name: np.zeros(
            (0, column.width) if column.width > 1 else 0, column.dtype_for(float_type)
        )
        for column in columns
    }


def no_rows(group: ContactGroup, cell_count: int, float_type: np.dtype) -> GroupRows:
    """Rows of `cell_count` cells without contacts."""
    values = no_columns((entries.column for entries in group.lists), float_type)
    lists = {name: (np.zeros(0, np.int64), empty) for name, empty in values.items()}
    return GroupRows(np.zeros(cell_count, np.int64), no_columns(group.columns, float_type), lists)


def shapes_of(groups: Mapping[str, GroupRows], name: str) -> tuple[np.ndarray, ...]:
    """The shapes of each row of a table, int32[n] each: its own columns, or those of the rows that
    it refers to."""
    group = TABLES_BY_NAME[name]
    if group.shapes:
        return tuple(groups[name].columns[column] for column in group.shapes)
    for column, target in group.references.items():
        return tuple(values[groups[name].columns[column]] for values in shapes_of(groups, target))
    return ()


def consecutive_groups(blocks: Sequence[Mapping[str, GroupRows]]) -> dict[str, GroupRows]:
    """The groups of blocks of consecutive cells, which have equal groups; the columns of `blocks`
    are emptied."""
    return _joined(blocks, np.concatenate)


def groups_of_parts(parts: Sequence[Mapping[str, GroupRows]]) -> dict[str, GroupRows]:
    """The groups of one cell from those of parts of its pairs; the columns of `parts` are emptied.

    Every part has the same groups.
    """
    return _joined(parts, lambda counts: np.sum(counts, axis=0))


def _joined(
    parts: Sequence[Mapping[str, GroupRows]], join_counts: Callable[[list[np.ndarray]], np.ndarray]
) -> dict[str, GroupRows]:
    joined = {}
    for name in parts[0]:
        rows = [part[name] for part in parts]
        columns = {
            key: np.concatenate([entry.columns.pop(key) for entry in rows])
            for key in list(rows[0].columns)
        }
        for key, target in TABLES_BY_NAME[name].references.items() if columns else ():
            first = np.cumsum([0, *(part[target].row_count for part in parts[:-1])]).astype(
                columns[key].dtype
            )
            columns[key] += np.repeat(first, [entry.row_count for entry in rows])
        lists = {}
        for key in list(rows[0].lists):
            lengths, values = zip(*(entry.lists.pop(key) for entry in rows), strict=True)
            lists[key] = np.concatenate(lengths), np.concatenate(values)
        joined[name] = GroupRows(join_counts([entry.cell_counts for entry in rows]), columns, lists)
    return joined


def groups_of_cells(groups: Mapping[str, GroupRows], cells: np.ndarray) -> dict[str, GroupRows]:
    """The groups of some cells of a block, each at most once, in the order of `cells` int64[n]."""
    rows = {name: entries_of(entry.cell_counts, cells) for name, entry in groups.items()}
    return _selected(
        groups, rows, {name: entry.cell_counts[cells] for name, entry in groups.items()}
    )


def groups_without_cells(
    groups: Mapping[str, GroupRows], dropped: np.ndarray
) -> dict[str, GroupRows]:
    """The groups without the rows of the cells of `dropped`, bool[cells], which then have none."""
    rows = {
        name: np.flatnonzero(np.repeat(~dropped, entry.cell_counts))
        for name, entry in groups.items()
    }
    return _selected(
        groups,
        rows,
        {name: np.where(dropped, 0, entry.cell_counts) for name, entry in groups.items()},
    )


def groups_with_rows(
    groups: Mapping[str, GroupRows], rows: Mapping[str, np.ndarray]
) -> dict[str, GroupRows]:
    """The groups with some of their rows, ascending int64[n] of each. A row that another refers to
    is selected with it."""
    counts = {}
    for name, entry in groups.items():
        cell = np.repeat(np.arange(len(entry.cell_counts)), entry.cell_counts)[rows[name]]
        counts[name] = np.bincount(cell, minlength=len(entry.cell_counts)).astype(np.int64)
    return _selected(groups, rows, counts)


def _selected(
    groups: Mapping[str, GroupRows],
    rows: Mapping[str, np.ndarray],
    cell_counts: Mapping[str, np.ndarray],
) -> dict[str, GroupRows]:
    """The groups with some of their rows. A row that another refers to is selected with it."""
    chosen = {}
    for name, entry in groups.items():
        taken = rows[name]
        columns = {key: values[taken] for key, values in entry.columns.items()}
        for key, target in TABLES_BY_NAME[name].references.items():
            number = np.full(groups[target].row_count, -1, np.int64)
            number[rows[target]] = np.arange(len(rows[target]))
            columns[key] = number[columns[key]].astype(columns[key].dtype)
        lists = {
            key: (lengths[taken], values[entries_of(lengths, taken)])
            for key, (lengths, values) in entry.lists.items()
        }
        chosen[name] = GroupRows(cell_counts[name], columns, lists)
    return chosen


def entries_of(lengths: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """int64: positions of the entries of some lists, in their order, among the entries of all lists
    of `lengths`."""
    first = (np.cumsum(lengths) - lengths)[lists]
    taken = lengths[lists]
    return np.arange(int(taken.sum())) + np.repeat(first - (np.cumsum(taken) - taken), taken)


def _column(name: str, meaning: str) -> property:
    return property(lambda block: block.columns[name], doc=meaning)


@dataclass(frozen=True, repr=False)
class ContactBlock:
    """Contacts of the cells `first_cell .. first_cell + len(cell_counts)`, in canonical order.

    cell_counts: int64[cells]. columns: name to array [n] or [n, width]: RIGID_COLUMNS, and the
    selected columns of OPTIONAL_COLUMNS. Those of RIGID_COLUMNS are attributes too; a column that
    was not read raises KeyError. groups: rows of further groups of the same cells, by the group's
    name.
    """

    first_cell: int
    cell_counts: np.ndarray
    columns: dict[str, np.ndarray]
    groups: dict[str, GroupRows] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = (
            f"contacts={self.contact_count} first_cell={self.first_cell}"
            f" cells={len(self.cell_counts)}"
        )
        return f"<ContactBlock {counts} columns={','.join(self.columns)}>"

    @property
    def contact_count(self) -> int:
        return int(self.cell_counts.sum())

    @property
    def nbytes(self) -> int:
        """Size of all columns, with those of further groups [bytes]."""
        return sum(array.nbytes for array in (*self.columns.values(), *self.groups.values()))

    @property
    def tables(self) -> dict[str, GroupRows]:
        """The rows of all tables by name, the rigid contacts first."""
        return {RIGID_CONTACTS.name: GroupRows(self.cell_counts, self.columns), **self.groups}

    shape0 = _column(
        "shape0", "int32[n]: row of the first shape in the table of shapes; less than shape1."
    )
    shape1 = _column("shape1", "int32[n]: row of the second shape in the table of shapes.")
    distance = _column(
        "distance",
        "float32[n]: signed, of the surfaces with their margins [m]; negative is penetration.",
    )
    normal = _column("normal", "float32[n, 3]: unit, in the world, from shape0 to shape1.")
    point0 = _column(
        "point0",
        "float32 or float64[n, 3]: witness point on shape0 without margin, in the world [m].",
    )
    point1 = _column(
        "point1",
        "float32 or float64[n, 3]: witness point on shape1 without margin, in the world [m].",
    )
    offset0 = _column(
        "offset0",
        "float32[n, 3]: point0 in the frame of shape0's body, in the world if static [m].",
    )
    offset1 = _column(
        "offset1",
        "float32[n, 3]: point1 in the frame of shape1's body, in the world if static [m].",
    )
    feature0 = _column(
        "feature0",
        "int32[n]: the vertex, edge, face or side of shape0 that contains point0; -1 none.",
    )
    feature1 = _column(
        "feature1",
        "int32[n]: the vertex, edge, face or side of shape1 that contains point1; -1 none.",
    )
    kind = _column("kind", "uint8[n]: 0 point, 1 edge, 2 face, 3 patch.")

    @property
    def depth(self) -> np.ndarray:
        """float32[n]: penetration depth [m], max(0, -distance)."""
        return np.maximum(-self.columns["distance"], np.float32(0.0))

    @property
    def cell(self) -> np.ndarray:
        """int64[n]: the cell of each contact, frame * world count + world."""
        return np.repeat(self.first_cell + np.arange(len(self.cell_counts)), self.cell_counts)


def pair_begins(block: ContactBlock) -> np.ndarray:
    """bool[rows]: whether a row of the rigid contacts is the first of its pair of shapes in its
    cell."""
    shape0 = block.columns["shape0"]
    shape1 = block.columns["shape1"]
    begins = np.ones(len(shape0), bool)
    if len(shape0):
        begins[1:] = (shape0[1:] != shape0[:-1]) | (shape1[1:] != shape1[:-1])
        cell_end = np.cumsum(block.cell_counts)
        begins[cell_end[cell_end < len(shape0)]] = True
    return begins
