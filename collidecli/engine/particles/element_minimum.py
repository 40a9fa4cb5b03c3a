"""Least signed distance of an edge or a face from a shape, less a radius that is linear on the
element.

The signed distance from a convex shape is convex inside the shape too, as the greatest height over
its supporting planes. Each evaluation gives a value and a subgradient, and with them a plane below
the function: the least of the planes on the region that is left bounds the minimum from below, and
the search ends where the best value is within a precision of that bound. A query is a Warp struct
with an overload of `slope_at`. For surfaces that are not convex see `surface_minimum`.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.mesh_points import FACE_PART, nearest_triangle_point
from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.particles.surfaces import PolygonSurfaces, sample_primitive, sample_surface

# ruff: noqa: F811


MOST_CUTS = 100
"""Evaluations of one search. Each removes at least 0.37 of the region: 75 suffice for fifteen
digits."""
PRECISION = wp.constant(Real(1.0e-14))
"""Fraction of an element's longest side within which the least value is found."""
ROUNDING = wp.constant(Real(1.0e-15))
"""Fraction of an element's coordinates to which the distance is rounded."""
LOWER = wp.constant(Real(1.0e-9))
"""Fraction of an element's longest side by which the interior is lower than the boundary where its
minimum counts."""
CLOSEST_CUT = wp.constant(Real(1.0e-3))
"""Fraction of a bracket by which an evaluation is within it at least."""


@wp.struct
class Slope:
    """Signed distance of a point [m] and one of its subgradients, a unit vector."""

    value: Real
    gradient: Vec3


@wp.struct
class PrimitiveQuery:
    """A sphere, capsule, box, cylinder, cone or ellipsoid."""

    type: int
    size: Vec3


@wp.struct
class TriangleQuery:
    """A triangle with unit normal; its distance has no sign."""

    p: Vec3
    q: Vec3
    r: Vec3
    normal: Vec3


@wp.func
def slope_at(query: PrimitiveQuery, point: Vec3) -> Slope:
    """Signed distance of a point and its gradient."""
    sample = sample_primitive(query.type, query.size, point)
    return Slope(sample.distance, sample.outward)


@wp.func
def slope_at(query: TriangleQuery, point: Vec3) -> Slope:
    """Distance of a point from a triangle and its gradient; on the triangle zero, which is a
    subgradient."""
    nearest = nearest_triangle_point(query.p, query.q, query.r, query.normal, point)
    off = point - nearest.point
    distance = wp.length(off)
    if distance == Real(0.0):
        return Slope()
    if nearest.part == FACE_PART:  # the difference of two close points has no accurate direction
        return Slope(
            distance, wp.where(wp.dot(off, query.normal) < Real(0.0), -query.normal, query.normal)
        )
    return Slope(distance, off / distance)


@wp.struct
class DeformableElement:
    """An edge or a triangle of a deformable object in the frame of a shape.

    count: 2 or 3 corners p, q, r. radius: of each [m]. precision: of values [m]. lower: by how much
    the interior is lower than the boundary where its minimum counts [m]. limit: value from which on
    a minimum is of no interest [m].
    """

    count: int
    p: Vec3
    q: Vec3
    r: Vec3
    radius: Vec3
    precision: Real
    lower: Real
    limit: Real


@wp.struct
class Minimum:
    """Least value of a function on an element. weights: of its corners. slope: of the distance
    there. interior: 1 where the interior of the element is lower than its boundary. boundary: least
    value there."""

    interior: int
    value: Real
    boundary: Real
    weights: Vec3
    slope: Slope


@wp.func
def with_precision(element: DeformableElement) -> DeformableElement:
    """The element with the precision of its values, from its size and its distance from the
    origin."""
    side = wp.max(wp.length(element.r - element.q), wp.length(element.p - element.r))
    longest = wp.max(wp.length(element.q - element.p), side)
    farthest = wp.max(wp.length(element.p), wp.max(wp.length(element.q), wp.length(element.r)))
    result = element
    result.precision = PRECISION * longest + ROUNDING * farthest
    result.lower = LOWER * longest + Real(100.0) * result.precision
    return result


@wp.func
def point_of(element: DeformableElement, weights: Vec3) -> Vec3:
    """The point of an element with these weights of its corners."""
    return weights[0] * element.p + weights[1] * element.q + weights[2] * element.r


@wp.func
def corner_weights(k: int) -> Vec3:
    """Weights of corner 0, 1 or 2."""
    result = Vec3()
    result[k] = Real(1.0)
    return result


@wp.func
def side_of_element(element: DeformableElement, k: int) -> DeformableElement:
    """Side k, from corner k to the next, as an edge: p, q and the first two radii."""
    side = element
    side.count = 2
    if k == 1:
        side.p = element.q
        side.q = element.r
        side.radius = Vec3(element.radius[1], element.radius[2], Real(0.0))
    elif k == 2:
        side.p = element.r
        side.q = element.p
        side.radius = Vec3(element.radius[2], element.radius[0], Real(0.0))
    side.r = side.p
    return side


@wp.func
def weights_on_side(weights: Vec3, k: int) -> Vec3:
    """Weights of a triangle's corners from those of its side k."""
    if k == 0:
        return weights
    return (
        Vec3(Real(0.0), weights[0], weights[1])
        if k == 1
        else Vec3(weights[1], Real(0.0), weights[0])
    )


@wp.func
def minimum_on_edge(query: Any, edge: DeformableElement, low: Slope, high: Slope) -> Minimum:
    """Least value on an edge, between its ends of the slopes `low` and `high`.

    Two tangents bracket the minimum. Their crossing is the bound; it is evaluated in turn with the
    zero of the interpolated rate: the first is exact at a kink, the second converges fast where the
    function is smooth.
    """
    along = edge.q - edge.p
    growth = edge.radius[1] - edge.radius[0]
    begin = Real(0.0)
    end = Real(1.0)
    value_begin = low.value - edge.radius[0]
    value_end = high.value - edge.radius[1]
    rate_begin = wp.dot(low.gradient, along) - growth
    rate_end = wp.dot(high.gradient, along) - growth
    boundary = wp.min(value_begin, value_end)
    least = value_end if value_end < value_begin else value_begin
    least_slope = high if value_end < value_begin else low
    at = wp.where(value_end < value_begin, Real(1.0), Real(0.0))
    searching = rate_begin < Real(0.0) and rate_end > Real(0.0)
    cuts = int(0)
    while searching and cuts < wp.static(MOST_CUTS):
        cuts += 1
        width = end - begin
        step = (value_end - value_begin - rate_end * width) / (rate_begin - rate_end)
        bound = value_begin + rate_begin * step
        if cuts % 2 == 0:
            step = width * rate_begin / (rate_begin - rate_end)
        middle = begin + wp.clamp(step, CLOSEST_CUT * width, (Real(1.0) - CLOSEST_CUT) * width)
        if (
            least - bound <= edge.precision
            or bound >= edge.limit
            or middle <= begin
            or middle >= end
        ):
            searching = False
        else:
            slope = slope_at(query, edge.p + middle * along)
            value = slope.value - edge.radius[0] - middle * growth
            rate = wp.dot(slope.gradient, along) - growth
            if value < least:
                least = value
                least_slope = slope
                at = middle
            if rate < Real(0.0):
                begin = middle
                value_begin = value
                rate_begin = rate
            elif rate > Real(0.0):
                end = middle
                value_end = value
                rate_end = rate
            else:
                searching = False
    weights = Vec3(Real(1.0) - at, at, Real(0.0))
    return Minimum(
        wp.where(least < boundary - edge.lower, 1, 0), least, boundary, weights, least_slope
    )


@wp.func
def center_of_polygon(polygon: wp.array[Vec2], count: int) -> Vec2:
    """Centre of area of a convex polygon; of its corners where it has no area."""
    first = polygon[0]
    area = Real(0.0)
    sums = Vec2(Real(0.0), Real(0.0))
    corners = Vec2(Real(0.0), Real(0.0))
    for k in range(1, count):
        corners += polygon[k] - first
        if k + 1 < count:
            a = polygon[k] - first
            b = polygon[k + 1] - first
            part = a[0] * b[1] - a[1] * b[0]
            area += part
            sums += part * (a + b)
    return first + sums / (Real(3.0) * area) if area > Real(0.0) else first + corners / Real(count)


@wp.func
def cut_polygon(
    polygon: wp.array[Vec2], count: int, center: Vec2, rate: Vec2, above: Real, cut: wp.array[Vec2]
) -> int:
    """Number of corners of the part of a convex polygon where above + rate . (x - center) is at
    most 0, in `polygon`. cut: scratch of the same length."""
    written = int(0)
    for k in range(count):
        vertex = polygon[k]
        ahead = polygon[(k + 1) % count]
        height = above + wp.dot(rate, vertex - center)
        height_ahead = above + wp.dot(rate, ahead - center)
        if height <= Real(0.0):
            cut[written] = vertex
            written += 1
        if (height <= Real(0.0)) != (height_ahead <= Real(0.0)):
            cut[written] = vertex + (height / (height - height_ahead)) * (ahead - vertex)
            written += 1
    for k in range(written):
        polygon[k] = cut[k]
    return written


@wp.func
def minimum_in_face(query: Any, face: DeformableElement, threshold: Real) -> Minimum:
    """Least value on a triangle, if it is below `threshold`; else any value of it.

    Cutting planes through the centre of the region that is left. Source: Levin, On an algorithm for
    the minimization of convex functions, 1965; each cut removes at least 1 - 1/e of the area
    (Gruenbaum 1960).
    """
    polygon = wp.zeros(shape=wp.static(MOST_CUTS + 4), dtype=Vec2)
    scratch = wp.zeros(shape=wp.static(MOST_CUTS + 4), dtype=Vec2)
    polygon[1] = Vec2(Real(1.0), Real(0.0))
    polygon[2] = Vec2(Real(0.0), Real(1.0))
    count = int(3)
    result = Minimum(0, Real(wp.inf), Real(0.0), Vec3(), Slope())
    u, v = face.q - face.p, face.r - face.p
    bound = -Real(wp.inf)
    cuts = int(0)
    while count >= 3 and cuts < wp.static(MOST_CUTS):
        cuts += 1
        center = center_of_polygon(polygon, count)
        weights = Vec3(Real(1.0) - center[0] - center[1], center[0], center[1])
        slope = slope_at(query, point_of(face, weights))
        value = slope.value - wp.dot(weights, face.radius)
        rate = Vec2(
            wp.dot(slope.gradient, u) - face.radius[1] + face.radius[0],
            wp.dot(slope.gradient, v) - face.radius[2] + face.radius[0],
        )
        if value < result.value:
            result = Minimum(0, value, Real(0.0), weights, slope)
        lowest = Real(wp.inf)
        for k in range(count):
            lowest = wp.min(lowest, value + wp.dot(rate, polygon[k] - center))
        bound = wp.max(bound, lowest)
        if bound >= threshold or result.value - bound <= face.precision:
            count = 0
        else:
            count = cut_polygon(polygon, count, center, rate, value - result.value, scratch)
    return result


@wp.func
def is_least_on_boundary(face: DeformableElement, at: Minimum) -> bool:
    """Whether the plane below the function at a point of the boundary shows that no point of the
    triangle is lower."""
    point = point_of(face, at.weights)
    radius = wp.dot(at.weights, face.radius)
    for k in range(3):
        weights = corner_weights(k)
        rise = (
            wp.dot(at.slope.gradient, point_of(face, weights) - point)
            - wp.dot(weights, face.radius)
            + radius
        )
        if rise < -face.lower:
            return False
    return True


@wp.func
def convex_minimum(query: Any, element: DeformableElement) -> Minimum:
    """Least value on an edge or triangle, and whether its interior is lower than its boundary."""
    slope_p = slope_at(query, element.p)
    slope_q = slope_at(query, element.q)
    if element.count == 2:
        return minimum_on_edge(query, element, slope_p, slope_q)
    slope_r = slope_at(query, element.r)
    best = minimum_on_edge(query, side_of_element(element, 0), slope_p, slope_q)
    for k in range(1, 3):
        low = slope_q if k == 1 else slope_r
        high = slope_r if k == 1 else slope_p
        side = minimum_on_edge(query, side_of_element(element, k), low, high)
        if side.value < best.value:
            best = side
            best.weights = weights_on_side(side.weights, k)
    best.interior = 0
    best.boundary = best.value
    if is_least_on_boundary(element, best):
        return best
    inner = minimum_in_face(query, element, wp.min(best.value - element.lower, element.limit))
    if inner.value < best.value - element.lower:
        return Minimum(1, inner.value, best.value, inner.weights, inner.slope)
    return best


@wp.struct
class HullQuery:
    """A convex mesh. half: half extents of its box [m]."""

    surfaces: PolygonSurfaces
    row: int
    half: Vec3


@wp.func
def slope_at(query: HullQuery, point: Vec3) -> Slope:
    """Signed distance of a point and its gradient."""
    sample = sample_surface(query.surfaces, query.row, query.half, point, Real(wp.inf), Real(0.0))
    return Slope(sample.distance, sample.outward)
