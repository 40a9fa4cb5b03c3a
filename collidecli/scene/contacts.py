"""The columns of a contact set, with their types and units, and blocks of contacts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from collidecli.scene.columns import new_column as _column
from collidecli.scene.contact_groups import GroupRows

RIGID_COLUMNS = (
    _column("shape0", "int32", 1, "", "row of /model/shape; less than shape1"),
    _column("shape1", "int32", 1, "", "row of /model/shape"),
    _column("distance", "float32", 1, "m", "signed; negative is penetration"),
    _column("normal", "float32", 3, "", "unit, world, from shape0 to shape1"),
    _column("point0", "float64", 3, "m", "witness on shape0, world", follows_motion=True),
    _column("point1", "float64", 3, "m", "witness on shape1, world", follows_motion=True),
    _column("offset0", "float32", 3, "m", "point0 in the frame of shape0's body"),
    _column("offset1", "float32", 3, "m", "point1 in the frame of shape1's body"),
    _column("feature0", "int32", 1, "", "feature of shape0; -1 none"),
    _column("feature1", "int32", 1, "", "feature of shape1; -1 none"),
    _column("kind", "uint8", 1, "", "0 point, 1 edge, 2 face, 3 patch"),
)
"""Columns of /rigid_contacts besides cell_start, in the order of the file."""

CONTACT_ID = _column("contact_id", "int64", 1, "", "of its world; a contact that goes on has that of the frame before")
FRICTION_SCALE = _column("friction_scale", "float32", 1, "", "factor of friction, where moments are matched")
REDUCED_COLUMNS = (
    _column("stiffness", "float64", 1, "N/m", "of a reduced hydroelastic contact: force / -distance; 0 of others"),
    _column("area", "float64", 1, "m^2", "of a reduced hydroelastic contact; 0 of others"),
)
"""Columns of reduced hydroelastic contacts."""
MOTION_COLUMNS = (
    _column("distance_grad0", "float32", 6, "", "change of distance as shape0's body moves [3] and turns [3, m]"),
    _column("distance_grad1", "float32", 6, "", "change of distance as shape1's body moves [3] and turns [3, m]"),
    _column("grad_exact", "uint8", 1, "", "1 if the gradients are those of the pair's least distance"),
    _column("normal_velocity", "float32", 1, "m/s", "change of distance in time; negative is approaching"),
    _column("slip", "float32", 1, "m/s", "speed of point1 along the surface relative to point0"),
)
"""Columns that follow from the motion of the two bodies."""
OPTIONAL_COLUMNS = (
    _column("friction", "float32", 1, "", "dynamic friction coefficient"),
    _column("static_friction", "float32", 1, "", "static friction coefficient"),
    _column("torsional_friction", "float32", 1, "m", "about the normal"),
    _column("rolling_friction", "float32", 1, "m", "about the tangents"),
    _column("restitution", "float32", 1, "", "coefficient of restitution"),
    _column("condim", "int32", 1, "", "dimension of the contact's force: 1, 3, 4 or 6"),
    _column("friction5", "float32", 5, "", "two of sliding, torsional [m], two of rolling [m]"),
    _column("solref", "float32", 2, "", "time constant [s] and damping ratio, or negative stiffness and damping"),
    _column("solimp", "float32", 5, "", "impedance"),
    _column("margin0", "float32", 1, "m", "margin of shape0; of a forced pair, half of its own"),
    _column("margin1", "float32", 1, "m", "margin of shape1; of a forced pair, half of its own"),
    FRICTION_SCALE,
    CONTACT_ID,
    *REDUCED_COLUMNS,
    *MOTION_COLUMNS,
)
"""Columns of /rigid_contacts that an option selects, in the order of the file."""

KIND_POINT, KIND_EDGE, KIND_FACE, KIND_PATCH = range(4)


@dataclass(frozen=True)
class ContactBlock:
    """Contacts of the cells `first_cell .. first_cell + len(cell_counts)`, in canonical order.

    cell_counts: int64[cells]. columns: name to array [n] or [n, width]: RIGID_COLUMNS, and the selected columns of
    OPTIONAL_COLUMNS. Those of RIGID_COLUMNS are attributes too; a column that was not read raises KeyError.
    groups: rows of further groups of the same cells, by the group's name.
    """

    first_cell: int
    cell_counts: np.ndarray
    columns: dict[str, np.ndarray]
    groups: dict[str, GroupRows] = field(default_factory=dict)

    @property
    def contact_count(self) -> int:
        return int(self.cell_counts.sum())

    @property
    def nbytes(self) -> int:
        """Size of all columns, with those of further groups [bytes]."""
        return sum(array.nbytes for array in (*self.columns.values(), *self.groups.values()))

    @property
    def shape0(self) -> np.ndarray:
        """int32[n]: row of the first shape in the table of shapes; less than shape1."""
        return self.columns["shape0"]

    @property
    def shape1(self) -> np.ndarray:
        """int32[n]: row of the second shape in the table of shapes."""
        return self.columns["shape1"]

    @property
    def distance(self) -> np.ndarray:
        """float32[n]: signed distance of the surfaces, inflated by their margins [m]; negative is penetration."""
        return self.columns["distance"]

    @property
    def normal(self) -> np.ndarray:
        """float32[n, 3]: unit, in the world, from shape0 to shape1."""
        return self.columns["normal"]

    @property
    def point0(self) -> np.ndarray:
        """float32 or float64[n, 3]: witness point on shape0's surface without margin, in the world [m]."""
        return self.columns["point0"]

    @property
    def point1(self) -> np.ndarray:
        """float32 or float64[n, 3]: witness point on shape1's surface without margin, in the world [m]."""
        return self.columns["point1"]

    @property
    def offset0(self) -> np.ndarray:
        """float32[n, 3]: point0 in the frame of shape0's body, in the world for a static shape [m]."""
        return self.columns["offset0"]

    @property
    def offset1(self) -> np.ndarray:
        """float32[n, 3]: point1 in the frame of shape1's body, in the world for a static shape [m]."""
        return self.columns["offset1"]

    @property
    def feature0(self) -> np.ndarray:
        """int32[n]: the vertex, edge, face or side of shape0 that contains point0; -1 none."""
        return self.columns["feature0"]

    @property
    def feature1(self) -> np.ndarray:
        """int32[n]: the vertex, edge, face or side of shape1 that contains point1; -1 none."""
        return self.columns["feature1"]

    @property
    def kind(self) -> np.ndarray:
        """uint8[n]: 0 point, 1 edge, 2 face, 3 patch."""
        return self.columns["kind"]

    @property
    def depth(self) -> np.ndarray:
        """float32[n]: penetration depth [m], max(0, -distance)."""
        return np.maximum(-self.columns["distance"], np.float32(0.0))

    @property
    def cell(self) -> np.ndarray:
        """int64[n]: the cell of each contact, frame * world count + world."""
        return np.repeat(self.first_cell + np.arange(len(self.cell_counts)), self.cell_counts)


def pair_begins(block: ContactBlock) -> np.ndarray:
    """bool[rows]: whether a row of the rigid contacts is the first of its pair of shapes in its cell."""
    shape0, shape1 = block.columns["shape0"], block.columns["shape1"]
    begins = np.ones(len(shape0), bool)
    if len(shape0):
        begins[1:] = (shape0[1:] != shape0[:-1]) | (shape1[1:] != shape1[:-1])
        cell_end = np.cumsum(block.cell_counts)
        begins[cell_end[cell_end < len(shape0)]] = True
    return begins
