"""Types of the engine: numbers, vectors, structs, arrays of kernels, types of shapes as constants.

Float64: witness points on a 1 km shape are accurate to micrometres, EPA converges to 1e-7 of a
shape's size, and results do not depend on the position of the scene in the world. See
docs/adr/0068.
"""

from typing import Any

import warp as wp

from collidecli.scene.shape_types import ShapeType

Real = wp.float64
Vec2 = wp.vec2d
Vec3 = wp.vec3d
Mat33 = wp.mat33d
Quat = wp.quatd
Pose = wp.transformd
"""Position, then rotation xyzw."""
UP = wp.constant(Vec3(Real(0.0), Real(0.0), Real(1.0)))
AXIS_X = wp.constant(Vec3(Real(1.0), Real(0.0), Real(0.0)))


def struct_type(name: str, fields: dict[str, Any], module: str) -> Any:
    """Warp struct of `module` with these fields, for structs that differ in a type only."""
    return wp.struct(type(name, (), {"__annotations__": fields, "__module__": module}))


def array_of(dtype: Any, name: str) -> Any:
    """Function that returns a local array as one of any length: for fields of structs, and to be
    passed by address.

    Not for a generic function that others call with a local array: Warp compiles it for the kind of
    array of the first.
    """

    @wp.func(name=name)
    def as_array(scratch: wp.array[dtype]) -> wp.array[dtype]:  # type: ignore[valid-type]
        return scratch

    return as_array


PLANE = wp.constant(int(ShapeType.PLANE))
SPHERE = wp.constant(int(ShapeType.SPHERE))
CAPSULE = wp.constant(int(ShapeType.CAPSULE))
BOX = wp.constant(int(ShapeType.BOX))
CYLINDER = wp.constant(int(ShapeType.CYLINDER))
CONE = wp.constant(int(ShapeType.CONE))
ELLIPSOID = wp.constant(int(ShapeType.ELLIPSOID))
CONVEX_MESH = wp.constant(int(ShapeType.CONVEX_MESH))
MESH = wp.constant(int(ShapeType.MESH))
HEIGHTFIELD = wp.constant(int(ShapeType.HEIGHTFIELD))
"""PLANE to HEIGHTFIELD are the values of `ShapeType` as Warp constants."""
