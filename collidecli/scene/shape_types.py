"""The shape types, in the order that defines their pairs, and the meaning of their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import float_array


class ShapeType(IntEnum):
    """Type of a shape. The origin of its local frame is the centre, the axis of symmetry is along z.

    `size` is three numbers in metres; those that a type does not use are 0:

    - plane: none; the surface is z = 0, solid below, the normal is +z, infinite
    - sphere: radius
    - capsule: radius, half length of the inner segment
    - box: half extents along x, y, z
    - cylinder: radius, half height
    - cone: base radius, half height; base at z = -half height, apex at z = +half height
    - ellipsoid: semi-axes along x, y, z
    - convex_mesh, mesh, heightfield: half extents of the bounding box, whose centre is the origin; derived from the
      vertices
    """

    PLANE = 0
    SPHERE = 1
    CAPSULE = 2
    BOX = 3
    CYLINDER = 4
    CONE = 5
    ELLIPSOID = 6
    CONVEX_MESH = 7
    MESH = 8
    HEIGHTFIELD = 9

    @property
    def label(self) -> str:
        return self.name.lower()


LENGTH_LIMIT = 1.0e9
"""Largest size, margin and gap [m]. Their squares, and those of positions, must be within float32's range."""
POSITION_LIMIT = 1.0e12
"""Largest coordinate of a pose [m]; see LENGTH_LIMIT."""

SIZE_COUNT = {
    ShapeType.PLANE: 0,
    ShapeType.SPHERE: 1,
    ShapeType.CAPSULE: 2,
    ShapeType.BOX: 3,
    ShapeType.CYLINDER: 2,
    ShapeType.CONE: 2,
    ShapeType.ELLIPSOID: 3,
    ShapeType.CONVEX_MESH: 3,
    ShapeType.MESH: 3,
    ShapeType.HEIGHTFIELD: 3,
}


def checked_size(shape_type: ShapeType, size: Sequence[float] | np.ndarray, where: str) -> np.ndarray:
    """`size` as float64[3]. Raises InputError for a wrong count and for sizes that are not finite and positive.

    A capsule's half length may be zero: the capsule is then a sphere.
    """
    given = float_array("size", size, where)
    count = SIZE_COUNT[shape_type]
    if given.shape != (count,):
        shown = f"{len(given)} sizes" if given.ndim == 1 else f"sizes of shape {given.shape}"
        raise InputError(f"{shape_type.label} has {shown}", where, f"give {count}, in metres")
    full = np.zeros(3)
    full[:count] = given
    numbers = given.tolist()
    may_be_zero = 1 if shape_type == ShapeType.CAPSULE else -1
    if not all(0.0 < x <= LENGTH_LIMIT or (x == 0.0 and index == may_be_zero) for index, x in enumerate(numbers)):
        shown = ", ".join(f"{x:g}" for x in numbers)
        limits = f"every size must be greater than zero and at most {LENGTH_LIMIT:g} m"
        raise InputError(f"{shape_type.label} has size ({shown})", where, limits)
    return full
