"""Closest points of the surfaces of cylinders and cones to a point, computed in the half plane through axis and
point.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.segments import away_from_axis
from collidecli.engine.geometry.surface_point import SurfacePoint

CYLINDER_LOW_CAP = wp.constant(0)
CYLINDER_HIGH_CAP = wp.constant(1)
CYLINDER_SIDE = wp.constant(2)
CYLINDER_LOW_RIM = wp.constant(3)
CYLINDER_HIGH_RIM = wp.constant(4)
CONE_BASE = wp.constant(0)
CONE_SIDE = wp.constant(1)
CONE_RIM = wp.constant(2)
CONE_APEX = wp.constant(3)


@wp.func
def nearest_on_cylinder(size: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a cylinder's surface to `point`.

    Args:
        size: (radius, half height, 0) [m]. point: in the cylinder's frame [m].
    Degenerate: inside, if cap and side are equally close, the side; on the axis the side at +x; at the centre height
    the cap at +z.
    """
    result = SurfacePoint()
    radial = away_from_axis(point)
    beyond_side = wp.dot(radial, point) - size[0]
    beyond_cap = wp.abs(point[2]) - size[1]
    cap = Vec3(Real(0.0), Real(0.0), Real(1.0))
    high = 1
    if point[2] < Real(0.0):
        cap = -cap
        high = 0
    if beyond_side > Real(0.0) and beyond_cap > Real(0.0):
        result.distance = wp.sqrt(beyond_side * beyond_side + beyond_cap * beyond_cap)
        result.outward = (beyond_side * radial + beyond_cap * cap) / result.distance
        result.feature = CYLINDER_LOW_RIM + high
    elif beyond_side >= beyond_cap:
        result.distance = beyond_side
        result.outward = radial
        result.feature = CYLINDER_SIDE
    else:
        result.distance = beyond_cap
        result.outward = cap
        result.feature = CYLINDER_LOW_CAP + high
    return result


@wp.func
def nearest_on_cone(size: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a cone's surface to `point`.

    Args:
        size: (base radius, half height, 0) [m]. point: in the cone's frame [m].
    Degenerate: inside, if base and side are equally close, the base; on the axis the side at +x. At the apex or on the
    rim itself, the side's normal.
    """
    result = SurfacePoint()
    radial = away_from_axis(point)
    across = wp.dot(radial, point)
    height = Real(2.0) * size[1]
    slant = wp.sqrt(height * height + size[0] * size[0])
    # The side's generator from the apex has the direction (size[0], -height) / slant; its normal is (height, size[0]) /
    # slant.
    below_apex = point[2] - size[1]
    beyond_side = (height * across + size[0] * below_apex) / slant
    along_side = (size[0] * across - height * below_apex) / slant
    beyond_base = -size[1] - point[2]
    side = (height * radial + Vec3(Real(0.0), Real(0.0), size[0])) / slant
    if beyond_base >= beyond_side and across <= size[0]:
        result.distance = beyond_base
        result.outward = Vec3(Real(0.0), Real(0.0), Real(-1.0))
        result.feature = CONE_BASE
        return result
    result.distance = beyond_side
    result.outward = side
    result.feature = CONE_SIDE
    if beyond_side <= Real(0.0) and beyond_base <= Real(0.0):
        return result
    from_feature = Vec3(Real(0.0), Real(0.0), Real(0.0))
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
