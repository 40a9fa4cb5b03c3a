"""What a contact set is: columns, their types and units, and a block of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Column:
    """One column of a contact set. `width` 3 is a vector; `float_type` columns follow the trajectory's float type."""

    name: str
    dtype: np.dtype
    width: int
    unit: str
    meaning: str
    follows_motion: bool = False

    def dtype_for(self, float_type: np.dtype) -> np.dtype:
        return np.dtype(float_type) if self.follows_motion else self.dtype


def _column(name: str, dtype: str, width: int, unit: str, meaning: str, follows_motion: bool = False) -> Column:
    return Column(name, np.dtype(dtype), width, unit, meaning, follows_motion)


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
"""Columns of /rigid_contacts besides cell_start, in the order they are written."""

CONTACT_ID = _column("contact_id", "int64", 1, "", "of its world; a contact that goes on has that of the frame before")
FRICTION_SCALE = _column("friction_scale", "float32", 1, "", "factor of friction, where moments are matched")
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
)
"""Columns of /rigid_contacts that are there when asked for, in the order they are written."""

KIND_POINT, KIND_EDGE, KIND_FACE, KIND_PATCH = range(4)


@dataclass(frozen=True)
class ContactBlock:
    """Contacts of the cells `first_cell .. first_cell + len(cell_counts)`, in canonical order.

    cell_counts: int64[cells]. columns: name to array [n] or [n, width]: RIGID_COLUMNS, and what was chosen of
    OPTIONAL_COLUMNS.
    """

    first_cell: int
    cell_counts: np.ndarray
    columns: dict[str, np.ndarray]

    @property
    def contact_count(self) -> int:
        return int(self.cell_counts.sum())
