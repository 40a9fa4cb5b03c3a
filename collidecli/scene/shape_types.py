"""The shape types, in the order that defines their pairs, and the meaning of their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ShapeType(IntEnum):
    """Type of a shape. The origin of its local frame is the centre, the axis of symmetry is along
    z.

    `size` is the numbers of SHAPE_FORMS in metres; those that a type does not use are 0:

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


@dataclass(frozen=True)
class ShapeForm:
    """What is stated of a shape type by itself.

    sizes: names of its sizes, in order, which are the parameters of its `add_shape_` method. core:
    of a shape with a support function, which is its core rounded by a ball: "flat", a point or a
    segment; "polyhedral"; or "curved", on which GJK and EPA alone do not terminate exactly. Else
    empty.
    """

    sizes: tuple[str, ...] = ()
    core: str = ""


_BOX_SIZES = ("hx", "hy", "hz")
_ROUND_SIZES = ("radius", "half_height")
SHAPE_FORMS = {
    ShapeType.PLANE: ShapeForm(),
    ShapeType.SPHERE: ShapeForm(("radius",), "flat"),
    ShapeType.CAPSULE: ShapeForm(_ROUND_SIZES, "flat"),
    ShapeType.BOX: ShapeForm(_BOX_SIZES, "polyhedral"),
    ShapeType.CYLINDER: ShapeForm(_ROUND_SIZES, "curved"),
    ShapeType.CONE: ShapeForm(_ROUND_SIZES, "curved"),
    ShapeType.ELLIPSOID: ShapeForm(("rx", "ry", "rz"), "curved"),
    ShapeType.CONVEX_MESH: ShapeForm(_BOX_SIZES, "polyhedral"),
    ShapeType.MESH: ShapeForm(_BOX_SIZES),
    ShapeType.HEIGHTFIELD: ShapeForm(_BOX_SIZES),
}
"""Of every type. Types with a curved core are consecutive, since kernels test them as a range."""
SIZE_COUNT = {kind: len(form.sizes) for kind, form in SHAPE_FORMS.items()}
SIZE_WIDTH = max(3, *SIZE_COUNT.values())
"""Columns of arrays of sizes: the most sizes of a type."""

LENGTH_LIMIT = 1.0e9
"""Largest size, margin and gap [m]. Their squares, and those of positions, must be within float32's
range."""
POSITION_LIMIT = 1.0e12
"""Largest coordinate of a pose [m]; see LENGTH_LIMIT."""
