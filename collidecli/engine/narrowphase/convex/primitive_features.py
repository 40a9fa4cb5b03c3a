"""Support features and feature ids of primitives; see `features`.

`hull_features` and `triangle_features` add the overloads for their shapes to these functions.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CAPSULE, CONE, CYLINDER
from collidecli.engine.geometry.support import Primitive
from collidecli.engine.narrowphase.convex.feature import (
    AT_BORDER,
    EDGES,
    FACE,
    FACE_COSINE,
    LINE,
    LINE_SINE,
    LOWER_RIM,
    RIM_CORNERS,
    RIM_SINE,
    UPPER_RIM,
    Feature,
)


@wp.func
def support_feature(shape: Primitive, direction: Vec3) -> Feature:
    """Feature of a shape that supports a unit `direction`, in the shape's frame; `feature_corners` has its corners."""
    shape_type = shape.type
    if shape_type == BOX:
        return _box_feature(shape.size, direction)
    if shape_type == CYLINDER or shape_type == CONE:
        return _round_feature(shape_type, shape.size, direction)
    result = Feature()
    result.code = -1
    if shape_type == CAPSULE:
        result.code = wp.where(direction[2] >= Real(0.0), 1, 0)
        if wp.abs(direction[2]) < LINE_SINE and shape.size[1] > Real(0.0):
            result.kind = LINE
            result.code = 2
            result.count = 2
    return result


@wp.func
def feature_corners(shape: Primitive, feature: Feature, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]):
    """Writes the corners of a face, in order, or the two ends of a line.

    Args:
        feature, direction: of `support_feature`.
        corner: of length RIM_COUNT; receives the corners [m] in the shape's frame. A disc's are those of an inscribed
            regular hexagon, the first at +x: all its points are on the disc. A capsule's line is its axis.
        code: of length MAX_CODES; receives the corners' ids and, for a face, its edges'.
    """
    if shape.type == BOX:
        _box_corners(shape.size, feature, corner, code)
    elif shape.type == CAPSULE:
        corner[0] = Vec3(Real(0.0), Real(0.0), -shape.size[1])
        corner[1] = Vec3(Real(0.0), Real(0.0), shape.size[1])
        code[0] = 0
        code[1] = 1
    elif feature.kind == FACE:
        _rim_corners(shape.size, feature, corner, code)
    else:
        top_radius = wp.where(shape.type == CONE, Real(0.0), shape.size[0])
        across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        x = direction[0] / across
        y = direction[1] / across
        corner[0] = Vec3(shape.size[0] * x, shape.size[0] * y, -shape.size[1])
        corner[1] = Vec3(top_radius * x, top_radius * y, shape.size[1])
        code[0] = 3
        code[1] = wp.where(shape.type == CONE, 1, 4)


@wp.func
def with_facing(shape: Primitive, direction: Vec3) -> Primitive:
    """The shape prepared for feature queries in one unit direction: a hull caches its support vertex and face."""
    return shape


@wp.func
def face_normal(shape: Primitive, direction: Vec3) -> Vec3:
    """Outward normal of the flat face that supports a unit direction, in the shape's frame; zero if there is none."""
    shape_type = shape.type
    normal = Vec3()
    if shape_type == BOX:
        for axis in range(3):
            if wp.abs(direction[axis]) >= FACE_COSINE:
                normal[axis] = wp.sign(direction[axis])
    elif direction[2] <= -FACE_COSINE and (shape_type == CYLINDER or shape_type == CONE):
        normal[2] = Real(-1.0)
    elif direction[2] >= FACE_COSINE and shape_type == CYLINDER:
        normal[2] = Real(1.0)
    return normal


@wp.func
def _axis_weight(axis: int) -> int:
    """Value of an axis's digit in a box's ids."""
    return wp.where(axis == 0, 1, wp.where(axis == 1, 3, 9))


@wp.func
def _box_feature(size: Vec3, direction: Vec3) -> Feature:
    result = Feature()
    x = wp.abs(direction[0])
    y = wp.abs(direction[1])
    z = wp.abs(direction[2])
    steep = wp.where(z > wp.max(x, y), 2, wp.where(y > x, 1, 0))
    flat = wp.where(z < wp.min(x, y), 2, wp.where(y < x, 1, 0))
    # Selections instead of branches and indices: no direction is more likely than another.
    if wp.max(x, wp.max(y, z)) >= FACE_COSINE:
        result.kind = FACE
        result.count = 4
        along = wp.where(steep == 0, direction[0], wp.where(steep == 1, direction[1], direction[2]))
        side = wp.where(along < Real(0.0), Real(-1.0), Real(1.0))
        result.normal = _along_axis(steep, side, Real(0.0), Real(0.0))
        result.half_width = wp.where(
            steep == 0,
            wp.min(size[1], size[2]),
            wp.where(steep == 1, wp.min(size[2], size[0]), wp.min(size[0], size[1])),
        )
        result.code = 13 + wp.where(along < Real(0.0), -1, 1) * _axis_weight(steep)
        return result
    digit_x = wp.where(direction[0] < Real(0.0), 0, 2)
    digit_y = wp.where(direction[1] < Real(0.0), 0, 2)
    digit_z = wp.where(direction[2] < Real(0.0), 0, 2)
    if wp.min(x, wp.min(y, z)) < LINE_SINE:
        result.kind = LINE
        result.count = 2
        digit_x = wp.where(flat == 0, 1, digit_x)
        digit_y = wp.where(flat == 1, 1, digit_y)
        digit_z = wp.where(flat == 2, 1, digit_z)
    result.code = digit_x + 3 * digit_y + 9 * digit_z
    return result


@wp.func
def _along_axis(axis: int, along: Real, first: Real, second: Real) -> Vec3:
    """Vector with the coordinate `along` on one axis, `first` and `second` on the two that follow it."""
    if axis == 0:
        return Vec3(along, first, second)
    if axis == 1:
        return Vec3(second, along, first)
    return Vec3(first, second, along)


@wp.func
def _box_corners(size: Vec3, feature: Feature, corner: wp.array[Vec3], code: wp.array[int]):
    if feature.kind == LINE:
        low = Vec3(
            wp.where(feature.code % 3 == 2, size[0], -size[0]),
            wp.where(feature.code / 3 % 3 == 2, size[1], -size[1]),
            wp.where(feature.code / 9 == 2, size[2], -size[2]),
        )
        axis = wp.where(feature.code % 3 == 1, 0, wp.where(feature.code / 3 % 3 == 1, 1, 2))
        corner[0] = low
        corner[1] = Vec3(
            wp.where(axis == 0, size[0], low[0]),
            wp.where(axis == 1, size[1], low[1]),
            wp.where(axis == 2, size[2], low[2]),
        )
        code[0] = feature.code - _axis_weight(axis)
        code[1] = feature.code + _axis_weight(axis)
        return
    axis = wp.where(feature.normal[0] != Real(0.0), 0, wp.where(feature.normal[1] != Real(0.0), 1, 2))
    along = wp.dot(feature.normal, size)
    u = wp.where(axis == 0, size[1], wp.where(axis == 1, size[2], size[0]))
    v = wp.where(axis == 0, size[2], wp.where(axis == 1, size[0], size[1]))
    weight_u = _axis_weight((axis + 1) % 3)
    weight_v = _axis_weight((axis + 2) % 3)
    corner[0] = _along_axis(axis, along, u, v)
    corner[1] = _along_axis(axis, along, -u, v)
    corner[2] = _along_axis(axis, along, -u, -v)
    corner[3] = _along_axis(axis, along, u, -v)
    code[0] = feature.code + weight_u + weight_v
    code[1] = feature.code - weight_u + weight_v
    code[2] = feature.code - weight_u - weight_v
    code[3] = feature.code + weight_u - weight_v
    code[EDGES] = feature.code + weight_v
    code[EDGES + 1] = feature.code - weight_u
    code[EDGES + 2] = feature.code - weight_v
    code[EDGES + 3] = feature.code + weight_u


@wp.func
def _round_feature(shape_type: int, size: Vec3, direction: Vec3) -> Feature:
    """Feature of a cylinder or a cone."""
    result = Feature()
    radius = size[0]
    half_height = size[1]
    up = direction[2]
    result.code = 3
    if up <= -FACE_COSINE or (up >= FACE_COSINE and shape_type == CYLINDER):
        result.kind = FACE
        result.count = RIM_CORNERS
        result.half_width = radius
        result.normal = Vec3(Real(0.0), Real(0.0), wp.sign(up))
        result.code = wp.where(up > Real(0.0), 1, 0)
        return result
    across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
    off_side = wp.abs(up)
    toward_side = across
    if shape_type == CONE:
        slant = wp.sqrt(Real(4.0) * half_height * half_height + radius * radius)
        off_side = wp.abs(across * radius - up * Real(2.0) * half_height) / slant
        toward_side = (across * Real(2.0) * half_height + up * radius) / slant
    # Closer to a cone's axis than to its side, the lines of the side differ too little to select one: the apex.
    if off_side < LINE_SINE and toward_side > wp.max(up, Real(0.0)):
        result.kind = LINE
        result.count = 2
        result.code = 2
    elif shape_type == CONE:
        if Real(2.0) * half_height * up >= radius * across:
            result.code = 1
    elif up > Real(0.0):
        result.code = 4
    return result


@wp.func
def _rim_corners(size: Vec3, feature: Feature, corner: wp.array[Vec3], code: wp.array[int]):
    """Corners of a flat end of a cylinder or a cone."""
    first = wp.where(feature.code == 1, UPPER_RIM, LOWER_RIM)
    p = Vec3(size[0], Real(0.0), size[1] * feature.normal[2])
    for k in range(RIM_CORNERS):
        corner[k] = p
        code[k] = first + 2 * k
        code[EDGES + k] = first + 2 * k + 1
        p = Vec3(Real(0.5) * p[0] - RIM_SINE * p[1], RIM_SINE * p[0] + Real(0.5) * p[1], p[2])


@wp.func(inline=False)
def feature_at(shape: Primitive, point: Vec3, direction: Vec3) -> int:
    """Id of the smallest feature that contains a surface point (AT_BORDER), farthest along `direction`."""
    shape_type = shape.type
    size = shape.size
    within = Real(1.0) - AT_BORDER
    if shape_type == BOX:
        code = int(0)
        digit = int(1)
        for axis in range(3):
            if point[axis] >= size[axis] * within:
                code += 2 * digit
            elif point[axis] > -size[axis] * within:
                code += digit
            digit = 3 * digit
        return code
    if shape_type == CAPSULE:
        if wp.abs(point[2]) < size[1] * within:
            return 2
        return wp.where(point[2] > Real(0.0), 1, 0)
    if shape_type == CYLINDER or shape_type == CONE:
        outside = point[0] * point[0] + point[1] * point[1] >= size[0] * size[0] * within * within
        if point[2] <= -size[1] * within:
            return wp.where(outside, 3, 0)
        if point[2] >= size[1] * within:
            return wp.where(outside, 4, 1)
        return 2
    return -1


@wp.func(inline=False)
def line_exit(shape: Primitive, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Length of a ray from `origin` along `direction` to its exit from the shape near its feature `line`; -inf if it
    misses.

    All in the shape's frame [m]; direction: unit, within LINE_SINE of perpendicular to the line. The exit from the side
    of a cylinder or cone is between its ends or does not exist; a triangle's ends are treated as infinitely far.
    """
    shape_type = shape.type
    size = shape.size
    result = Real(wp.inf)
    if shape_type == BOX:
        entered = -Real(wp.inf)
        for axis in range(3):
            steep = wp.abs(direction[axis])
            beside = wp.sign(direction[axis]) * origin[axis]
            # Along the edge's own axis, whose digit is 1, the direction may have no component.
            if line % 3 != 1 or steep > Real(0.0):
                result = wp.min(result, (size[axis] - beside) / steep)
                entered = wp.max(entered, (-size[axis] - beside) / steep)
            line = line / 3
        # A box thinner than the offset from its edge is missed by the ray.
        if entered > result:
            return -Real(wp.inf)
        return result
    # Side: x^2 + y^2 = (radius - taper * z)^2, radius at z = 0.
    radius = size[0]
    taper = Real(0.0)
    if shape_type == CONE:
        radius = Real(0.5) * size[0]
        taper = radius / size[1]
    x = origin[0]
    y = origin[1]
    width = radius - taper * origin[2]
    narrowing = taper * direction[2]
    square = direction[0] * direction[0] + direction[1] * direction[1] - narrowing * narrowing
    half_linear = x * direction[0] + y * direction[1] + width * narrowing
    result = _leaving_root(square, half_linear, x * x + y * y - width * width)
    if shape_type != CAPSULE and wp.abs(origin[2] + result * direction[2]) > size[1]:
        return -Real(wp.inf)
    if shape_type == CAPSULE:
        z = origin[2] + result * direction[2]
        if wp.abs(z) > size[1]:
            to_end = origin - Vec3(Real(0.0), Real(0.0), wp.sign(z) * size[1])
            offset = wp.dot(to_end, to_end) - size[0] * size[0]
            result = _leaving_root(Real(1.0), wp.dot(to_end, direction), offset)
    return result


@wp.func(inline=False)
def is_on_face(shape: Primitive, normal: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point in the shape's frame is on the flat face with a normal from `face_normal`, to `near` [m]."""
    size = shape.size
    if shape.type == BOX:
        off = Real(0.0)
        for axis in range(3):
            beyond = wp.abs(point[axis]) - size[axis]
            if normal[axis] != Real(0.0):
                beyond = wp.abs(normal[axis] * point[axis] - size[axis])
            off = wp.max(off, beyond)
        return off <= near
    off_axis = wp.sqrt(point[0] * point[0] + point[1] * point[1]) - size[0]
    return wp.max(off_axis, wp.abs(normal[2] * point[2] - size[1])) <= near


@wp.func
def _leaving_root(square: Real, half_linear: Real, offset: Real) -> Real:
    """The s at which square s^2 + 2 half_linear s + offset increases through 0; -inf if there is none."""
    discriminant = half_linear * half_linear - square * offset
    if discriminant < Real(0.0):
        return -Real(wp.inf)
    root = wp.sqrt(discriminant)
    if half_linear > Real(0.0):
        return -offset / (half_linear + root)
    if square <= Real(0.0):
        return -Real(wp.inf)
    return (root - half_linear) / square
