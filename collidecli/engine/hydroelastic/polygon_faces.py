"""Convex polygons of equal pressures: clipping, integrals of a linear pressure, `HydroFace`."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.pairs import HydroPair

IN_PLANE = wp.constant(Real(1.0e-12))
"""Distance from a clipping plane, as a fraction of the shape's size, within which a whole polygon
is in that plane."""


@wp.struct
class Clipped:
    """A polygon's corner count after clipping; in_plane: 1 where all of it is in the clipping
    plane, and unchanged. source, target: start of its corners and of the free buffer in the scratch
    array."""

    count: int
    in_plane: int
    source: int
    target: int


@wp.func
def clip_polygon(
    corner: wp.array[Vec3], polygon: Clipped, normal: Vec3, offset: Real, tolerance: Real
) -> Clipped:
    """The part of a convex polygon where normal . x <= offset.

    tolerance: of normal . x - offset, within which the whole polygon is in the plane.
    Source: Sutherland, Hodgman 1974.
    """
    result = polygon
    result.in_plane = 0
    most = Real(-wp.inf)
    least = Real(wp.inf)
    for k in range(polygon.count):
        height = wp.dot(normal, corner[polygon.source + k]) - offset
        most = wp.max(most, height)
        least = wp.min(least, height)
    if most <= tolerance and least >= -tolerance:
        result.in_plane = 1
        return result
    if most <= Real(0.0):
        return result
    if least >= Real(0.0):
        result.count = 0
        return result
    count = int(0)
    before = corner[polygon.source + polygon.count - 1]
    height_before = wp.dot(normal, before) - offset
    for k in range(polygon.count):
        vertex = corner[polygon.source + k]
        height = wp.dot(normal, vertex) - offset
        if (height < Real(0.0) and height_before > Real(0.0)) or (
            height > Real(0.0) and height_before < Real(0.0)
        ):
            # From the inner to the outer end, so that both cells at an edge compute one point.
            crossing = before + (height_before / (height_before - height)) * (vertex - before)
            if height < Real(0.0):
                crossing = vertex + (height / (height - height_before)) * (before - vertex)
            corner[polygon.target + count] = crossing
            count += 1
        if height <= Real(0.0):
            corner[polygon.target + count] = vertex
            count += 1
        before = vertex
        height_before = height
    result.count = count
    result.source = polygon.target
    result.target = polygon.source
    return result


@wp.struct
class HydroFace:
    """One flat polygon of a contact surface, in the pair's reference frame.

    pair: number of its pair. first_corner: of its polygon in the scratch array. count: corners; 0
    for a face that does not exist. normal: unit, from shape 0 to shape 1. area, area_moment:
    integrals of 1 and of the position. pressure, pressure_moment: integrals of the pressure and of
    pressure times position. pressure_slope: gradient of the pressure. separation: at the centroid
    [m]. depth: least separation of the corners, at most 0 [m]. gradient: effective pressure
    gradient along the normal [N/m^3]; 0 beyond the medial axis, where a shape's pressure does not
    increase into it along the normal.
    """

    pair: int
    first_corner: int
    count: int
    normal: Vec3
    area: Real
    area_moment: Vec3
    pressure: Real
    pressure_moment: Vec3
    pressure_slope: Vec3
    separation: Real
    depth: Real
    gradient: Real


@wp.struct
class LinearField:
    """A function slope . x + value."""

    slope: Vec3
    value: Real


@wp.func
def value_at(field: LinearField, point: Vec3) -> Real:
    """Value of a linear function at a point."""
    return wp.dot(field.slope, point) + field.value


@wp.func
def integrated(
    corner: wp.array[Vec3],
    first: int,
    count: int,
    normal: Vec3,
    pressure: LinearField,
    separation: LinearField,
) -> HydroFace:
    """The face of a polygon with a linear pressure and separation; exact. gradient is not set;
    count 0 without area."""
    face = HydroFace()
    face.normal = normal
    face.pressure_slope = pressure.slope
    origin = corner[first]
    pressure0 = value_at(pressure, origin)
    for k in range(1, count - 1):
        p = corner[first + k]
        q = corner[first + k + 1]
        area = Real(0.5) * wp.dot(normal, wp.cross(p - origin, q - origin))
        pressure_p = value_at(pressure, p)
        pressure_q = value_at(pressure, q)
        middle = (origin + p + q) / Real(3.0)
        total = pressure0 + pressure_p + pressure_q
        face.area += area
        face.area_moment = face.area_moment + area * middle
        face.pressure += area * total / Real(3.0)
        weighted = pressure0 * origin + pressure_p * p + pressure_q * q
        face.pressure_moment = face.pressure_moment + (area / Real(12.0)) * (
            total * Real(3.0) * middle + weighted
        )
    if face.area <= Real(0.0):
        return face
    face.count = count
    face.separation = value_at(separation, face.area_moment / face.area)
    for k in range(count):
        face.depth = wp.min(face.depth, value_at(separation, corner[first + k]))
    return face


@wp.func
def effective_gradient(gradient0: Real, gradient1: Real, rigid: int) -> Real:
    """Series of two pressure gradients along the normal [N/m^3]; 0 if one is not positive.

    rigid: 0 or 1 for the shape that is rigid, whose gradient is infinite; -1 for none.
    """
    if rigid == 0:
        return wp.max(gradient1, Real(0.0))
    if rigid == 1:
        return wp.max(gradient0, Real(0.0))
    if gradient0 <= Real(0.0) or gradient1 <= Real(0.0):
        return Real(0.0)
    return gradient0 * gradient1 / (gradient0 + gradient1)


@wp.struct
class PatchSums:
    """Sums over faces of one pair, in its reference frame: see `HydroFace`.
    force: of the pressure along the normals. torque: of this force about the origin."""

    pair: int
    face_count: int
    area: Real
    area_moment: Vec3
    pressure: Real
    pressure_moment: Vec3
    force: Vec3
    torque: Vec3
    depth: Real


@wp.func
def with_sums(sums: PatchSums, other: PatchSums) -> PatchSums:
    """Both sums together."""
    result = sums
    result.face_count += other.face_count
    result.area += other.area
    result.area_moment = result.area_moment + other.area_moment
    result.pressure += other.pressure
    result.pressure_moment = result.pressure_moment + other.pressure_moment
    result.force = result.force + other.force
    result.torque = result.torque + other.torque
    result.depth = wp.min(result.depth, other.depth)
    return result


@wp.func
def with_face(sums: PatchSums, face: HydroFace) -> PatchSums:
    """Sums with one more face."""
    if face.count == 0:
        return sums
    force = face.pressure * face.normal
    torque = wp.cross(face.pressure_moment, face.normal)
    one = PatchSums(
        sums.pair,
        1,
        face.area,
        face.area_moment,
        face.pressure,
        face.pressure_moment,
        force,
        torque,
        face.depth,
    )
    return with_sums(sums, one)


@wp.func
def clip_by_depth(
    pair: HydroPair, phi0: LinearField, phi1: LinearField, corner: wp.array[Vec3], polygon: Clipped
) -> Clipped:
    """The part of a polygon inside the soft shape; count 0 where all of it is in that shape's
    surface."""
    depth = wp.where(pair.soft == 1, phi1, phi0)
    result = clip_polygon(corner, polygon, depth.slope, -depth.value, IN_PLANE * pair.size)
    if result.in_plane == 1:
        result.count = 0
    return result


@wp.func
def face_of_polygon(
    pair: HydroPair,
    phi0: LinearField,
    phi1: LinearField,
    normal: Vec3,
    corner: wp.array[Vec3],
    polygon: Clipped,
) -> HydroFace:
    """The face of a polygon in which both distances are linear; count 0 without area, or without
    depth but rounding.

    normal: unit, from shape 0 to shape 1.
    """
    depth = wp.where(pair.soft == 1, phi1, phi0)
    pressure = LinearField(-pair.stiffness * depth.slope, -pair.stiffness * depth.value)
    separation = LinearField(phi0.slope + phi1.slope, phi0.value + phi1.value)
    face = integrated(corner, polygon.source, polygon.count, normal, pressure, separation)
    if face.depth > -IN_PLANE * pair.size:  # slivers where surfaces touch
        face.count = 0
    gradient0 = pair.stiffness0 * wp.dot(phi0.slope, normal)
    gradient1 = -pair.stiffness1 * wp.dot(phi1.slope, normal)
    face.gradient = effective_gradient(gradient0, gradient1, pair.rigid)
    face.first_corner = polygon.source
    return face
