"""Closest points of the surfaces of box, ellipsoid, cylinder, cone, sphere and capsule to a point.

For cylinders and cones they are computed in the half plane through axis and point.
"""

import warp as wp

from collidecli.engine.geometry.primitives import box_feature, feature_step, side_of
from collidecli.engine.geometry.real import AXIS_X, UP, Real, Vec3
from collidecli.engine.geometry.segments import away_from_axis
from collidecli.scene.shape_types import ShapeType

MOST_STEPS = wp.constant(60)
CONVERGED = wp.constant(Real(1e-8))
"""Relative change of s at which the iteration ends: the remaining error is its square, as
convergence is quadratic."""
CYLINDER_LOW_CAP = wp.constant(0)
CYLINDER_SIDE = wp.constant(2)
CYLINDER_LOW_RIM = wp.constant(3)
"""Of the cap and the rim at -z; those at +z are one more."""
CONE_BASE = wp.constant(0)
CONE_SIDE = wp.constant(1)
CONE_RIM = wp.constant(2)
CONE_APEX = wp.constant(3)


@wp.struct
class SurfacePoint:
    """Signed distance of a query point and its closest point on a shape's surface, which is point -
    distance * outward.

    outward: unit surface normal there, in the shape's frame. distance: negative inside [m].
    feature: feature number of the shape.
    """

    outward: Vec3
    distance: Real
    feature: int


@wp.func
def nearest_on_box(half: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a box's surface to `point`.

    Args:
        half: half extents [m]. point: in the box's frame [m].
    Returns:
        see `SurfacePoint`; feature as `box_feature`.
    Degenerate: for points inside or on the surface, the closest face; of equally close faces x
    before y before z, and
    the positive side for a coordinate of 0.
    """
    outside = point - wp.max(-half, wp.min(half, point))
    square = wp.dot(outside, outside)
    if square > Real(0.0):
        distance = wp.sqrt(square)
        feature = box_feature(side_of(outside[0]), side_of(outside[1]), side_of(outside[2]))
        return SurfacePoint(outside / distance, distance, feature)
    depth = half - wp.abs(point)
    axis = (
        0 if depth[0] <= depth[1] and depth[0] <= depth[2] else wp.where(depth[1] <= depth[2], 1, 2)
    )
    side = wp.where(point[axis] < Real(0.0), -1, 1)
    outward = Vec3()
    outward[axis] = Real(side)
    return SurfacePoint(outward, -depth[axis], 13 + feature_step(axis, side))


@wp.func
def nearest_on_ellipsoid(half: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of an ellipsoid's surface to `point`, outside or inside.

    With c the shortest semi-axis and r_i = (half_i / c)^2, the closest point to y is x_i = r_i y_i
    / (r_i - 1 + s) for the largest s that puts x on the surface: |q(s)| = 1 with q_i(s) = x_i /
    half_i. 1 / |q(s)| is increasing and concave, so Newton's method on it converges to the root
    monotonically from any s below, without overshoot, and in few steps as the function is nearly
    linear.

    Args:
        half: semi-axes [m]. point: in the ellipsoid's frame [m].
    Degenerate: where the closest point is not unique, the one on the positive side of the shortest
    axis, the last of
    equally short axes.
    Source: the equation after Eberly, Distance from a Point to an Ellipse, an Ellipsoid, or a
    Hyperellipsoid, 2013; the
    iteration after Moré and Sorensen, Computing a Trust Region Step, 1983.
    """
    shortest = wp.where(half[1] < half[2], 1, 2)
    shortest = 0 if half[0] < half[shortest] else shortest
    c = half[shortest]
    # q_i(s) = weight_i / (excess_i + s); excess_i is r_i - 1 without cancellation.
    excess = wp.cw_mul(half - Vec3(c, c, c), half + Vec3(c, c, c)) / (c * c)
    weight = wp.cw_mul(half, wp.abs(point)) / (c * c)
    s = _root(weight, excess)
    on_sphere = _directions(weight, excess, s)
    if s == Real(0.0):
        # The point is in the plane across the shortest axis, so close to the centre that there is
        # no root above 0.
        rest = Real(1.0) - wp.dot(on_sphere, on_sphere)
        on_sphere[shortest] = wp.sqrt(wp.max(rest, Real(0.0)))
    for i in range(3):
        if point[i] < Real(0.0):
            on_sphere[i] = -on_sphere[i]
    on_sphere = wp.normalize(on_sphere)
    outward = wp.normalize(wp.cw_div(on_sphere, half))
    return SurfacePoint(outward, wp.dot(point - wp.cw_mul(half, on_sphere), outward), -1)


@wp.func
def _root(weight: Vec3, excess: Vec3) -> Real:
    """The root s >= 0 of |q(s)| = 1, or 0 if |q| is below 1 for all s >= 0."""
    # No |q_i| exceeds 1 at the root.
    s = wp.max(weight[0] - excess[0], wp.max(weight[1] - excess[1], weight[2] - excess[2]))
    s = wp.max(s, Real(0.0))
    on_sphere = _directions(weight, excess, s)
    length = wp.length(on_sphere)
    for _ in range(MOST_STEPS):
        if length <= Real(1.0):
            break
        slope = Real(0.0)
        for i in range(3):
            if weight[i] > Real(0.0):
                slope += on_sphere[i] * on_sphere[i] / (excess[i] + s)
        change = length * length * (length - Real(1.0)) / slope
        s += change
        on_sphere = _directions(weight, excess, s)
        length = wp.length(on_sphere)
        if change <= CONVERGED * s:
            break
    return s


@wp.func
def _directions(weight: Vec3, excess: Vec3, s: Real) -> Vec3:
    """weight / (excess + s) by component; 0 where the weight is 0."""
    result = Vec3(Real(0.0), Real(0.0), Real(0.0))
    for i in range(3):
        if weight[i] > Real(0.0):
            result[i] = weight[i] / (excess[i] + s)
    return result


@wp.func
def nearest_on_cylinder(size: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a cylinder's surface to `point`.

    Args:
        size: (radius, half height, 0) [m]. point: in the cylinder's frame [m].
    Degenerate: inside, if cap and side are equally close, the side; on the axis the side at +x; at
    the centre height
    the cap at +z.
    """
    radial = away_from_axis(point)
    beyond_side = wp.dot(radial, point) - size[0]
    beyond_cap = wp.abs(point[2]) - size[1]
    high = wp.where(point[2] < Real(0.0), 0, 1)
    cap = -UP if high == 0 else UP
    if beyond_side > Real(0.0) and beyond_cap > Real(0.0):
        distance = wp.sqrt(beyond_side * beyond_side + beyond_cap * beyond_cap)
        return SurfacePoint(
            (beyond_side * radial + beyond_cap * cap) / distance, distance, CYLINDER_LOW_RIM + high
        )
    if beyond_side >= beyond_cap:
        return SurfacePoint(radial, beyond_side, CYLINDER_SIDE)
    return SurfacePoint(cap, beyond_cap, CYLINDER_LOW_CAP + high)


@wp.func
def nearest_on_cone(size: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a cone's surface to `point`.

    Args:
        size: (base radius, half height, 0) [m]. point: in the cone's frame [m].
    Degenerate: inside, if base and side are equally close, the base; on the axis the side at +x. At
    the apex itself the
    side's normal, on the rim itself the base's.
    """
    radial = away_from_axis(point)
    across = wp.dot(radial, point)
    height = Real(2.0) * size[1]
    slant = wp.sqrt(height * height + size[0] * size[0])
    # The side's generator from the apex has the direction (size[0], -height) / slant; its normal is
    # (height, size[0]) / slant.
    below_apex = point[2] - size[1]
    beyond_side = (height * across + size[0] * below_apex) / slant
    along_side = (size[0] * across - height * below_apex) / slant
    beyond_base = -size[1] - point[2]
    if beyond_base >= beyond_side and across <= size[0]:
        return SurfacePoint(Vec3(Real(0.0), Real(0.0), Real(-1.0)), beyond_base, CONE_BASE)
    side = (height * radial + Vec3(Real(0.0), Real(0.0), size[0])) / slant
    result = SurfacePoint(side, beyond_side, CONE_SIDE)
    if beyond_side <= Real(0.0) and beyond_base <= Real(0.0):
        return result
    from_feature = Vec3()
    if along_side > slant:
        from_feature = (across - size[0]) * radial - Vec3(Real(0.0), Real(0.0), beyond_base)
        result.feature = CONE_RIM
    elif along_side < Real(0.0):
        from_feature = Vec3(point[0], point[1], below_apex)
        result.feature = CONE_APEX
    distance = wp.length(from_feature)
    if distance > Real(0.0):
        result.distance = distance
        result.outward = from_feature / distance
    return result


@wp.func
def surface_point(shape_type: int, size: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a primitive's surface to a point in its frame; not for planes."""
    if shape_type == ShapeType.BOX:
        return nearest_on_box(size, point)
    if shape_type == ShapeType.ELLIPSOID:
        return nearest_on_ellipsoid(size, point)
    if shape_type == ShapeType.CYLINDER:
        return nearest_on_cylinder(size, point)
    if shape_type == ShapeType.CONE:
        return nearest_on_cone(size, point)
    core = point
    if shape_type == ShapeType.CAPSULE:
        core = point - Vec3(Real(0.0), Real(0.0), wp.clamp(point[2], -size[1], size[1]))
    length = wp.length(core)
    return SurfacePoint(core / length if length > Real(0.0) else AXIS_X, length - size[0], -1)
