"""Where two cores that are apart are nearest, guessed: where Newton's method begins.

The point of one core that is nearest to the other's centre, then the other's nearest to that, and back: for a sphere
the answer, for others nearly always near enough. An ellipsoid's nearest point is taken to be its farthest one towards
the other's.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CAPSULE, CYLINDER, ELLIPSOID
from collidecli.engine.geometry.support import MinkowskiDifference, Support, core_support


@wp.struct
class Guess:
    """normal: unit, a to b, a's frame. creases: bits of those that it may be on. is_valid: 0 where there is none."""

    normal: Vec3
    discontinuities: int
    is_valid: int


@wp.func
def nearest_on_core(shape_type: int, size: Vec3, radius: Real, point: Vec3) -> Support:
    """About the point of a core nearest to one outside, the core's frame [m]; `patch`: bits of the creases it is on.

    The middle where `point` is in it, and for kinds that are not known here. radius: of the core's rounding [m].
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
    """Where the cores may be nearest; nowhere for kinds that `nearest_on_core` does not know."""
    a = difference.a
    b = difference.b
    to_b = wp.transpose(difference.rotation)
    # Of an ellipsoid the farthest point towards the other's counts, which is known only then.
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
