"""The shape types, in the order that defines their pairs, and the meaning of their sizes."""

from __future__ import annotations

from enum import IntEnum


class ShapeType(IntEnum):
    """Type of a shape. The origin of its local frame is the centre, the axis of symmetry is along
    z.

    `size` is three numbers in metres; those that a type does not use are 0:

    - plane: none; the surface is z = 0, solid below, the normal is +z, infinite
    - sphere: radius
    - capsule: radius, half length of the inner segment
    - box: half extents along x, y, z
    - cylinder: radius, half height
    - cone: base radius, half height; base at z = -half height, apex at z = +half height
    - ellipsoid: semi-axes along x, y, z
    - convex_mesh, mesh, heightfield: half extents of the bounding box, whose centre is the origin;
      derived from the vertices
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
"""Largest size, margin and gap [m]. Their squares, and those of positions, must be within float32's
range."""
POSITION_LIMIT = 1.0e12
"""Largest coordinate of a pose [m]; see LENGTH_LIMIT."""
