"""The tables of a contact set and the columns of each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
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
