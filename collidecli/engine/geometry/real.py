"""Number types of the engine, and functions of numbers that are bit-identical on every processor.

Float64: witness points on a 1 km shape are accurate to micrometres, EPA converges to 1e-7 of a
shape's size, and results do not depend on the position of the scene in the world. See
docs/adr/0068.
"""

from typing import Any

import numpy as np
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


def by_reference(kind: Any, values: list[Any], device: wp.Device) -> wp.array:
    """Array with copies of structs, which later changes of `values` do not change. Keeps the
    structs' arrays alive."""
    result = wp.array(values, dtype=kind, device=device)
    vars(result)["held"] = values
    return result


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


def device_array(values: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    """Array of values on a device; of none, one unused element: Warp passes no array of length zero
    by pointer."""
    filled = values if len(values) else np.zeros((1, *values.shape[1:]), values.dtype)
    return wp.array(np.ascontiguousarray(filled), dtype=dtype, device=device)


def referenced(array: wp.array) -> Any:
    """The struct of which `by_reference` copied the array's only element."""
    return vars(array)["held"][0]


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
