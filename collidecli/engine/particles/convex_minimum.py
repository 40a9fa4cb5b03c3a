"""Least value of a convex function over a segment and a triangle: cutting planes, with a certificate.

The function is the signed distance of a point from a convex shape, less a radius that is linear on the element. It is
convex inside the shape too, as the greatest height over the shape's supporting planes. Each evaluation gives a value
and a subgradient, and with them a plane below the function: the least of the planes on the region that is left bounds
the minimum from below, and the search ends where the best value is within a precision of that bound.

A query is a Warp struct with an overload of `slope_at`.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.heightfields import base_begins, field_of, named_triangle
from collidecli.engine.geometry.meshes import FACE_PART, mesh_corner, nearest_triangle_point
from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import normal_of
from collidecli.engine.narrowphase.triangles.surface import TreeCursor, begin_in_box, next_in_box
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    PolygonSurfaces,
    Sample,
    sample_grid_surface,
    sample_polygons,
    sample_primitive,
)

MOST_CUTS = 100
"""Evaluations of one search. Each removes at least 0.37 of the region: 75 suffice for fifteen digits."""
PRECISION = wp.constant(Real(1.0e-14))
"""Fraction of an element's longest side within which the least value is found."""
ROUNDING = wp.constant(Real(1.0e-15))
"""Fraction of an element's coordinates to which the distance is rounded."""
LOWER = wp.constant(Real(1.0e-9))
"""Fraction of an element's longest side by which the interior is lower than the boundary where its minimum counts."""
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
    result = Slope()
    result.value = sample.distance
    result.gradient = sample.outward
    return result


@wp.func
def slope_at(query: TriangleQuery, point: Vec3) -> Slope:
    """Distance of a point from a triangle and its gradient; on the triangle zero, which is a subgradient."""
    nearest = nearest_triangle_point(query.p, query.q, query.r, query.normal, point)
    off = point - nearest.point
    result = Slope()
    result.value = wp.length(off)
    if result.value > Real(0.0):
        result.gradient = off / result.value
        if nearest.part == FACE_PART:
            # The difference of two close points has no accurate direction.
            result.gradient = wp.where(wp.dot(off, query.normal) < Real(0.0), -query.normal, query.normal)
    return result


@wp.struct
class DeformableElement:
    """An edge or a triangle of a deformable object in the frame of a shape.

    count: 2 or 3 corners p, q, r. radius: of each [m]. precision: of values [m]. lower: by how much the interior is
    lower than the boundary where its minimum counts [m]. limit: value from which on a minimum is of no interest [m].
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
    """Least value of a function on an element. weights: of its corners. slope: of the distance there.

    interior: 1 where the interior of the element is lower than its boundary. boundary: least value there.
    """

    interior: int
    value: Real
    boundary: Real
    weights: Vec3
    slope: Slope


@wp.func
def with_precision(element: DeformableElement) -> DeformableElement:
    """The element with the precision of its values, from its size and its distance from the origin."""
    result = element
    side = wp.max(wp.length(element.r - element.q), wp.length(element.p - element.r))
    longest = wp.max(wp.length(element.q - element.p), side)
    farthest = wp.max(wp.length(element.p), wp.max(wp.length(element.q), wp.length(element.r)))
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
    if k == 1:
        return Vec3(Real(0.0), weights[0], weights[1])
    return Vec3(weights[1], Real(0.0), weights[0])


@wp.func
def minimum_on_edge(query: Any, edge: DeformableElement, low: Slope, high: Slope) -> Minimum:
    """Least value on an edge, between its ends of the slopes `low` and `high`.

    Two tangents bracket the minimum. Their crossing is the bound; it is evaluated in turn with the zero of the
    interpolated rate: the first is exact at a kink, the second converges fast where the function is smooth.
    """
    result = Minimum()
    along = edge.q - edge.p
    growth = edge.radius[1] - edge.radius[0]
    begin = Real(0.0)
    end = Real(1.0)
    value_begin = low.value - edge.radius[0]
    value_end = high.value - edge.radius[1]
    rate_begin = wp.dot(low.gradient, along) - growth
    rate_end = wp.dot(high.gradient, along) - growth
    least_end = wp.min(value_begin, value_end)
    result.value = value_begin
    result.slope = low
    if value_end < value_begin:
        result.value = value_end
        result.slope = high
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
        if result.value - bound <= edge.precision or bound >= edge.limit or middle <= begin or middle >= end:
            searching = False
        else:
            slope = slope_at(query, edge.p + middle * along)
            value = slope.value - edge.radius[0] - middle * growth
            rate = wp.dot(slope.gradient, along) - growth
            if value < result.value:
                result.value = value
                result.slope = slope
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
    result.weights = Vec3(Real(1.0) - at, at, Real(0.0))
    result.boundary = least_end
    if result.value < least_end - edge.lower:
        result.interior = 1
    return result


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
    if area > Real(0.0):
        return first + sums / (Real(3.0) * area)
    return first + corners / Real(count)


@wp.func
def cut_polygon(polygon: wp.array[Vec2], count: int, center: Vec2, rate: Vec2, above: Real, cut: wp.array[Vec2]) -> int:
    """Number of corners of the part of a convex polygon where above + rate . (x - center) is at most 0, in `polygon`.

    cut: scratch of the same length.
    """
    written = int(0)
    for k in range(count):
        here = polygon[k]
        ahead = polygon[(k + 1) % count]
        height = above + wp.dot(rate, here - center)
        height_ahead = above + wp.dot(rate, ahead - center)
        if height <= Real(0.0):
            cut[written] = here
            written += 1
        if (height <= Real(0.0)) != (height_ahead <= Real(0.0)):
            cut[written] = here + (height / (height - height_ahead)) * (ahead - here)
            written += 1
    for k in range(written):
        polygon[k] = cut[k]
    return written


@wp.func
def minimum_in_face(query: Any, face: DeformableElement, threshold: Real) -> Minimum:
    """Least value on a triangle, if it is below `threshold`; else any value of it.

    Cutting planes through the centre of the region that is left. Source: Levin, On an algorithm for the minimization of
    convex functions, 1965; each cut removes at least 1 - 1/e of the area (Gruenbaum 1960).
    """
    polygon = wp.zeros(shape=wp.static(MOST_CUTS + 4), dtype=Vec2)
    scratch = wp.zeros(shape=wp.static(MOST_CUTS + 4), dtype=Vec2)
    polygon[1] = Vec2(Real(1.0), Real(0.0))
    polygon[2] = Vec2(Real(0.0), Real(1.0))
    count = int(3)
    result = Minimum()
    result.value = Real(wp.inf)
    u = face.q - face.p
    v = face.r - face.p
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
            result.value = value
            result.weights = weights
            result.slope = slope
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
    """Whether the plane below the function at a point of the boundary shows that no point of the triangle is lower."""
    point = point_of(face, at.weights)
    radius = wp.dot(at.weights, face.radius)
    for k in range(3):
        weights = corner_weights(k)
        rise = wp.dot(at.slope.gradient, point_of(face, weights) - point) - wp.dot(weights, face.radius) + radius
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
        start = wp.where(k == 1, slope_q.value, slope_r.value)
        low = Slope()
        low.value = start
        low.gradient = wp.where(k == 1, slope_q.gradient, slope_r.gradient)
        high = Slope()
        high.value = wp.where(k == 1, slope_r.value, slope_p.value)
        high.gradient = wp.where(k == 1, slope_r.gradient, slope_p.gradient)
        side = minimum_on_edge(query, side_of_element(element, k), low, high)
        if side.value < best.value:
            best = side
            best.weights = weights_on_side(side.weights, k)
    best.interior = 0
    best.boundary = best.value
    if is_least_on_boundary(element, best):
        return best
    threshold = wp.min(best.value - element.lower, element.limit)
    inner = minimum_in_face(query, element, threshold)
    if inner.value < best.value - element.lower:
        inner.interior = 1
        inner.boundary = best.value
        return inner
    return best


# Surfaces of convex meshes, meshes and heightfields by edges and faces: samples, triangles, traversals.

# ruff: noqa: F811


@wp.struct
class HullQuery:
    """A convex mesh. half: half extents of its box [m]."""

    surfaces: PolygonSurfaces
    row: int
    half: Vec3


@wp.func
def slope_at(query: HullQuery, point: Vec3) -> Slope:
    """Signed distance of a point and its gradient."""
    sample = sample_polygons(query.surfaces, query.row, query.half, point, Real(wp.inf), Real(0.0))
    result = Slope()
    result.value = sample.distance
    result.gradient = sample.outward
    return result


@wp.func
def sample_surface(surfaces: PolygonSurfaces, row: int, half: Vec3, point: Vec3, limit: Real) -> Sample:
    """Closest point of a mesh, if its signed distance is below `limit` [m]."""
    return sample_polygons(surfaces, row, half, point, limit, Real(0.0))


@wp.func
def sample_surface(surfaces: GridSurfaces, row: int, half: Vec3, point: Vec3, limit: Real) -> Sample:
    """Closest point of a heightfield, if its signed distance is below `limit` [m]."""
    return sample_grid_surface(surfaces, row, half, point, limit)


@wp.func
def triangle_of(surfaces: PolygonSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a mesh."""
    query = TriangleQuery()
    query.p = mesh_corner(surfaces.meshes, number, 0)
    query.q = mesh_corner(surfaces.meshes, number, 1)
    query.r = mesh_corner(surfaces.meshes, number, 2)
    query.normal = surfaces.meshes.arrays[0].face_normal[number]
    return query


@wp.func
def triangle_of(surfaces: GridSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a heightfield."""
    shape = named_triangle(field_of(surfaces.fields, surfaces.field[row]), number)
    query = TriangleQuery()
    query.p = shape.p
    query.q = shape.q
    query.r = shape.r
    query.normal = normal_of(shape)
    return query


@wp.func
def begin_near(surfaces: PolygonSurfaces, row: int, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the first triangle whose box intersects a box of the shape's frame."""
    return begin_in_box(surfaces.meshes, surfaces.mesh[row], low, high)


@wp.func
def next_near(surfaces: PolygonSurfaces, row: int, cursor: TreeCursor, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the next triangle."""
    return next_in_box(surfaces.meshes, surfaces.mesh[row], cursor, low, high)


@wp.func
def begin_near(surfaces: GridSurfaces, row: int, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the first triangle near a box, which is taken as its bounding cube."""
    half = Real(0.5) * (high - low)
    middle = low + half
    grown = wp.max(half[0], wp.max(half[1], half[2]))
    return begin_near_segment(field_of(surfaces.fields, surfaces.field[row]), middle, middle, grown)


@wp.func
def next_near(surfaces: GridSurfaces, row: int, cursor: SegmentCursor, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the next triangle."""
    return next_near_segment(field_of(surfaces.fields, surfaces.field[row]), cursor)


@wp.func
def has_inside(surfaces: PolygonSurfaces, row: int) -> bool:
    """Whether a mesh is closed."""
    return surfaces.meshes.arrays[0].header[surfaces.mesh[row]].is_closed == 1


@wp.func
def has_inside(surfaces: GridSurfaces, row: int) -> bool:
    """A heightfield is a solid."""
    return True


@wp.func
def counts_inside(surfaces: PolygonSurfaces, row: int, face: int) -> bool:
    """Whether the depth of an inner point is at most its distance from a triangle."""
    return True


@wp.func
def counts_inside(surfaces: GridSurfaces, row: int, face: int) -> bool:
    """Whether a triangle is not of the base, which inner points ignore (docs/adr/0026)."""
    return face < base_begins(field_of(surfaces.fields, surfaces.field[row]))
