"""Initial guess of the closest points of two separated cores, for Newton's method.

Alternating projection: the point of one core closest to the other's centre, then the other's closest to that, and back.
Exact for a sphere, for others nearly always close enough. An ellipsoid's closest point is approximated by its support
point towards the other's.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CAPSULE, CYLINDER, ELLIPSOID
from collidecli.engine.geometry.support import MinkowskiDifference, Support, core_support


@wp.struct
class Guess:
    """normal: unit, a to b, in a's frame. discontinuities: bits of those that it may be on. is_valid: 0 if there is no
    guess.
    """

    normal: Vec3
    discontinuities: int
    is_valid: int


@wp.func
def nearest_on_core(shape_type: int, size: Vec3, radius: Real, point: Vec3) -> Support:
    """Approximate closest point of a core to an outside point, in the core's frame [m]; `patch`: discontinuity bits.

    The core's centre if `point` is inside it, and for unsupported types. radius: of the core's rounding [m].
    """
    result = Support()
    if shape_type == BOX:
        for k in range(3):
            if wp.abs(point[k]) < size[k]:
                result.patch += 1 << k
                result.point[k] = point[k]
            else:
                result.point[k] = wp.where(point[k] < Real(0.0), -size[k], size[k])
    elif shape_type == CAPSULE or shape_type == CYLINDER:
        if wp.abs(point[2]) < size[1]:
            result.patch = 1
            result.point[2] = point[2]
        else:
            result.point[2] = wp.where(point[2] < Real(0.0), -size[1], size[1])
        if shape_type == CYLINDER:
            square = point[0] * point[0] + point[1] * point[1]
            scale = Real(1.0)
            if square > size[0] * size[0]:
                scale = size[0] / wp.sqrt(square)
            result.point[0] = scale * point[0]
            result.point[1] = scale * point[1]
    elif shape_type == ELLIPSOID:
        square = wp.dot(point, point)
        if square > Real(0.0):
            result = core_support(shape_type, size, radius, point / wp.sqrt(square))
    return result


@wp.func
def guess_nearest(difference: MinkowskiDifference) -> Guess:
    """Guess of the cores' closest points; not valid for types that `nearest_on_core` does not support."""
    a = difference.a
    b = difference.b
    to_b = wp.transpose(difference.rotation)
    # An ellipsoid needs the other shape's point first: its support point towards that.
    on_a = Support()
    if a.type != ELLIPSOID:
        on_a = nearest_on_core(a.type, a.size, difference.radius_a, difference.position)
    on_b = nearest_on_core(b.type, b.size, difference.radius_b, to_b * (on_a.point - difference.position))
    in_a = difference.rotation * on_b.point + difference.position
    on_a = nearest_on_core(a.type, a.size, difference.radius_a, in_a)
    if b.type != ELLIPSOID:
        on_b = nearest_on_core(b.type, b.size, difference.radius_b, to_b * (on_a.point - difference.position))
        in_a = difference.rotation * on_b.point + difference.position
    result = Guess()
    normal = in_a - on_a.point
    square = wp.dot(normal, normal)
    if square > Real(0.0):
        result.is_valid = 1
        result.normal = normal / wp.sqrt(square)
        result.discontinuities = on_a.patch + 8 * on_b.patch
    return result
