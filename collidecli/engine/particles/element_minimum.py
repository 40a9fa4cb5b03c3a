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

from collidecli.engine.geometry.heightfields import base_begins, field_of, named_triangle
from collidecli.engine.geometry.mesh_points import FACE_PART, nearest_triangle_point
from collidecli.engine.geometry.meshes import mesh_corner
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
    sample_primitive,
    sample_surface,
)

# Functions of surfaces and queries have one overload for each struct: Warp selects by argument
# type.
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


# Surfaces of convex meshes, meshes and heightfields by edges and faces: triangles, traversals.


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


@wp.func
def triangle_of(surfaces: PolygonSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a mesh."""
    return TriangleQuery(
        mesh_corner(surfaces.meshes, number, 0),
        mesh_corner(surfaces.meshes, number, 1),
        mesh_corner(surfaces.meshes, number, 2),
        surfaces.meshes.arrays[0].face_normal[number],
    )


@wp.func
def triangle_of(surfaces: GridSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a heightfield."""
    shape = named_triangle(field_of(surfaces.fields, surfaces.field[row]), number)
    return TriangleQuery(shape.p, shape.q, shape.r, normal_of(shape))


@wp.func
def begin_near(surfaces: PolygonSurfaces, row: int, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the first triangle whose box intersects a box of the shape's frame."""
    return begin_in_box(surfaces.meshes, surfaces.mesh[row], low, high)


@wp.func
def next_near(
    surfaces: PolygonSurfaces, row: int, cursor: TreeCursor, low: Vec3, high: Vec3
) -> TreeCursor:
    """The traversal at the next triangle."""
    return next_in_box(surfaces.meshes, surfaces.mesh[row], cursor, low, high)


@wp.func
def begin_near(surfaces: GridSurfaces, row: int, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the first triangle near a box, which is taken as its bounding cube."""
    half = Real(0.5) * (high - low)
    middle = low + half
    return begin_near_segment(
        field_of(surfaces.fields, surfaces.field[row]), middle, middle, wp.max(half)
    )


@wp.func
def next_near(
    surfaces: GridSurfaces, row: int, cursor: SegmentCursor, low: Vec3, high: Vec3
) -> SegmentCursor:
    """The traversal at the next triangle."""
    return next_near_segment(field_of(surfaces.fields, surfaces.field[row]), cursor)


@wp.func
def has_inside(surfaces: Any, row: int) -> bool:
    """Whether the shape is a solid: all but an open mesh are."""
    return True


@wp.func
def has_inside(surfaces: PolygonSurfaces, row: int) -> bool:
    """Whether a mesh is closed."""
    return surfaces.meshes.arrays[0].header[surfaces.mesh[row]].is_closed == 1


@wp.func
def counts_inside(surfaces: PolygonSurfaces, row: int, face: int) -> bool:
    """Whether the depth of an inner point is at most its distance from a triangle."""
    return True


@wp.func
def counts_inside(surfaces: GridSurfaces, row: int, face: int) -> bool:
    """Whether a triangle is not of the base, which inner points ignore (docs/adr/0026)."""
    return face < base_begins(field_of(surfaces.fields, surfaces.field[row]))


# Minimum over the surface of a mesh or heightfield.
#
# The distance from one triangle is convex, so outside the least one over the triangles near the
# element is exact. Inside, the signed distance is the greatest of the negative distances from all
# triangles: a search over parts of the element, with two bounds for each part. By convexity a
# triangle's distance is at most linear between the part's corners, so two triangles give the least
# value of the greater of two linear functions below it; and the signed distance at a point
# decreases by no more than the way from it.

DEPTH_PRECISION = wp.constant(Real(1.0e-4))
"""Fraction of an element's longest side within which the deepest point is found."""
MOST_WAITING = 128
MOST_HALVINGS = 12
"""Halvings of an element after which a part is not divided any more."""
FACES = 6
"""Triangles that bound a part from below."""
FaceList = wp.types.vector(length=FACES, dtype=wp.int32)


@wp.func
def is_beyond(element: DeformableElement, query: TriangleQuery, distance: Real) -> bool:
    """Whether the box of a triangle, or its plane, is at least `distance` from an element [m]."""
    low = wp.min(element.p, wp.min(element.q, element.r))
    high = wp.max(element.p, wp.max(element.q, element.r))
    off = wp.max(
        wp.min(query.p, wp.min(query.q, query.r)) - high,
        low - wp.max(query.p, wp.max(query.q, query.r)),
    )
    off = wp.max(off, Vec3())
    if wp.length(off) >= distance:
        return True
    p = wp.dot(query.normal, element.p - query.p)
    q = wp.dot(query.normal, element.q - query.p)
    r = wp.dot(query.normal, element.r - query.p)
    return wp.min(p, wp.min(q, r)) >= distance or wp.max(p, wp.max(q, r)) <= -distance


@wp.func(inline=False)
def minimum_at_triangle(query: TriangleQuery, element: DeformableElement) -> Minimum:
    """Least distance from a triangle, less the radius."""
    return convex_minimum(query, element)


@wp.func
def outer_minimum(surfaces: Any, row: int, element: DeformableElement, at_corners: Real) -> Minimum:
    """Least distance without sign from a surface, less the radius, if it is below the element's
    limit. at_corners: least value of the corners [m]."""
    best = Minimum(0, Real(wp.inf), at_corners, Vec3(), Slope())
    radius = wp.max(element.radius)
    reach = element.limit + radius
    grown = Vec3(reach, reach, reach)
    low = wp.min(element.p, wp.min(element.q, element.r)) - grown
    high = wp.max(element.p, wp.max(element.q, element.r)) + grown
    current = element
    current.limit = wp.min(element.limit, at_corners + Real(2.0) * element.lower)
    cursor = begin_near(surfaces, row, low, high)
    while cursor.number >= 0:
        query = triangle_of(surfaces, row, cursor.number)
        if not is_beyond(element, query, current.limit + radius):
            minimum = minimum_at_triangle(query, current)
            best.boundary = wp.min(best.boundary, minimum.boundary)
            if minimum.interior == 1 and minimum.value < best.value:
                best.value = minimum.value
                best.weights = minimum.weights
            current.limit = wp.min(
                element.limit, wp.min(best.value, best.boundary) + Real(2.0) * element.lower
            )
        cursor = next_near(surfaces, row, cursor, low, high)
    return best


@wp.struct
class Part:
    """A part of an element. a, b, c: weights of its corners, b and c equal on an edge. halvings: of
    the element. faces: triangles of the surface that bound its depth, -1 for none. bound: lower
    bound of its values [m]."""

    a: Vec3
    b: Vec3
    c: Vec3
    halvings: int
    faces: FaceList
    bound: Real


@wp.struct
class PartBound:
    """A lower bound of the values on a part, and the weights where its two triangles give it."""

    value: Real
    weights: Vec3


@wp.func
def with_face(part: Part, face: int) -> Part:
    """The part with one more triangle, in place of the one that was added first."""
    for k in range(wp.static(FACES)):
        if part.faces[k] == face:
            return part
    result = part
    for k in range(1, wp.static(FACES)):
        result.faces[wp.static(FACES) - k] = part.faces[wp.static(FACES) - 1 - k]
    result.faces[0] = face
    return result


@wp.func
def bound_of_part(surfaces: Any, row: int, element: DeformableElement, part: Part) -> PartBound:
    """Greatest lower bound of the values on a part by two of its triangles. The least value of the
    greater of two linear functions is at a corner or where they are equal on a side."""
    result = PartBound(-Real(wp.inf), Vec3())
    point_a = point_of(element, part.a)
    point_b = point_of(element, part.b)
    point_c = point_of(element, part.c)
    corners = wp.matrix_from_rows(part.a, part.b, part.c)
    radii = corners * element.radius
    heights = wp.zeros(shape=wp.static(FACES), dtype=Vec3)
    count = int(0)
    for k in range(wp.static(FACES)):
        if part.faces[k] >= 0:
            query = triangle_of(surfaces, row, part.faces[k])
            far = Vec3(
                slope_at(query, point_a).value,
                slope_at(query, point_b).value,
                slope_at(query, point_c).value,
            )
            heights[count] = -far - radii
            count += 1
    for i in range(count):
        for j in range(i, count):
            lowest = PartBound(Real(wp.inf), Vec3())
            for k in range(3):
                height = wp.max(heights[i][k], heights[j][k])
                if height < lowest.value:
                    lowest = PartBound(height, corners[k])
                ahead = (k + 1) % 3
                rise = heights[i][k] - heights[j][k]
                rise_ahead = heights[i][ahead] - heights[j][ahead]
                if rise * rise_ahead < Real(0.0):
                    t = rise / (rise - rise_ahead)
                    height = heights[i][k] + t * (heights[i][ahead] - heights[i][k])
                    if height < lowest.value:
                        lowest = PartBound(height, corners[k] + t * (corners[ahead] - corners[k]))
            if lowest.value > result.value:
                result = lowest
    return result


@wp.func
def quarter_of(part: Part, k: int, count: int) -> Part:
    """Quarter 0 to 3 of a triangular part, half 0 or 1 of an edge's."""
    halvings = part.halvings + 1
    ab = Real(0.5) * (part.a + part.b)
    if count == 2:
        if k == 0:
            return Part(part.a, ab, ab, halvings, part.faces, part.bound)
        return Part(ab, part.b, part.b, halvings, part.faces, part.bound)
    bc = Real(0.5) * (part.b + part.c)
    ca = Real(0.5) * (part.c + part.a)
    if k == 0:
        return Part(part.a, ab, ca, halvings, part.faces, part.bound)
    if k == 1:
        return Part(ab, part.b, bc, halvings, part.faces, part.bound)
    if k == 2:
        return Part(ca, bc, part.c, halvings, part.faces, part.bound)
    return Part(ab, bc, ca, halvings, part.faces, part.bound)


@wp.func
def sample_element(
    surfaces: Any, row: int, half: Vec3, element: DeformableElement, weights: Vec3, limit: Real
) -> Sample:
    """The sample of a point of an element, if its distance is below `limit`; limited by the size of
    the shape."""
    point = point_of(element, weights)
    limited = wp.min(limit, wp.length(point) + Real(4.0) * wp.length(half))
    return sample_surface(surfaces, row, half, point, limited, Real(0.0))


@wp.struct
class Search:
    """A part of an element, the lowest value found so far, and 1 where the part may have a lower
    one."""

    part: Part
    best: Minimum
    divides: int


@wp.func
def begin_search(surfaces: Any, row: int, half: Vec3, element: DeformableElement) -> Search:
    """The whole element, with its corners sampled."""
    whole = Part(
        corner_weights(0),
        corner_weights(1),
        corner_weights(element.count - 1),
        0,
        FaceList(-1),
        -Real(wp.inf),
    )
    search = Search(whole, Minimum(0, Real(wp.inf), Real(0.0), Vec3(), Slope()), 0)
    for k in range(3):
        weights = corner_weights(wp.min(k, element.count - 1))
        sample = sample_element(surfaces, row, half, element, weights, Real(wp.inf))
        search = with_sample(surfaces, row, element, search, weights, sample)
    return search


@wp.func
def with_sample(
    surfaces: Any,
    row: int,
    element: DeformableElement,
    before: Search,
    weights: Vec3,
    sample: Sample,
) -> Search:
    """The search with the value and the triangle of a sample, if there is one."""
    search = before
    if sample.found == 1:
        value = sample.distance - wp.dot(weights, element.radius)
        if value < search.best.value:
            search.best.value = value
            search.best.weights = weights
        if counts_inside(surfaces, row, sample.face):
            search.part = with_face(search.part, sample.face)
    return search


@wp.func
def examined(
    surfaces: Any,
    row: int,
    half: Vec3,
    element: DeformableElement,
    before: Search,
    threshold: Real,
    precision: Real,
) -> Search:
    """The search after samples of a part: at its middle, and where its bound is."""
    search = before
    part = before.part
    middle = (
        Real(0.5) * (part.a + part.b)
        if element.count == 2
        else (part.a + part.b + part.c) / Real(3.0)
    )
    center = point_of(element, middle)
    size = wp.max(
        wp.length(point_of(element, part.a) - center), wp.length(point_of(element, part.b) - center)
    )
    size = wp.max(size, wp.length(point_of(element, part.c) - center)) + element.precision
    search.divides = 0
    sample = sample_element(surfaces, row, half, element, middle, size)
    # Farther outside than its size the part is outside.
    if sample.found == 0 or sample.distance >= size:
        return search
    search = with_sample(surfaces, row, element, search, middle, sample)
    # Without a triangle that counts, all corners are at or below the base of a heightfield: nothing
    # is inside.
    if search.part.faces[0] < 0:
        return search
    lowest = bound_of_part(surfaces, row, element, search.part)
    if lowest.value < wp.min(threshold, search.best.value - precision):
        sample = sample_element(surfaces, row, half, element, lowest.weights, size)
        search = with_sample(surfaces, row, element, search, lowest.weights, sample)
        lowest = bound_of_part(surfaces, row, element, search.part)
    if lowest.value < wp.min(threshold, search.best.value - precision):
        search.divides = 1
    search.part.bound = lowest.value
    return search


@wp.func(inline=False)
def deepest(
    surfaces: Any,
    row: int,
    half: Vec3,
    element: DeformableElement,
    threshold: Real,
    precision: Real,
) -> Minimum:
    """Least value on an element, if it is below `threshold`; else any value. Its corners are
    sampled too. The part of the lowest bound is divided first; with many parts the last one, so
    that no capacity ends the search."""
    waiting = wp.zeros(shape=wp.static(MOST_WAITING), dtype=Part)
    search = begin_search(surfaces, row, half, element)
    waiting[0] = search.part
    count = int(1)
    while count > 0:
        taken = count - 1
        if count < wp.static(MOST_WAITING - 3 * MOST_HALVINGS - 4):
            for k in range(count):
                if waiting[k].bound < waiting[taken].bound:
                    taken = k
        search.part = waiting[taken]
        count -= 1
        waiting[taken] = waiting[count]
        if search.part.bound < wp.min(threshold, search.best.value - precision):
            search = examined(surfaces, row, half, element, search, threshold, precision)
            if search.divides == 1 and search.part.halvings < wp.static(MOST_HALVINGS):
                for k in range(wp.where(element.count == 2, 2, 4)):
                    waiting[count] = quarter_of(search.part, k, element.count)
                    count += 1
    return search.best


@wp.func
def inner_minimum(
    surfaces: Any,
    row: int,
    half: Vec3,
    element: DeformableElement,
    before: Minimum,
    precision: Real,
) -> Minimum:
    """The minimum with the part of an element inside a surface. before: of the part outside, and of
    the corners."""
    result = before
    lower = Real(2.0) * precision
    limit = wp.min(element.limit, result.boundary - lower)
    minimum = deepest(surfaces, row, half, element, limit, precision)
    # Only where the inside is lower than the corners, the sides decide whether its least point is
    # in the interior.
    if minimum.value < limit:
        if element.count == 3:
            for k in range(3):
                side = deepest(
                    surfaces, row, half, side_of_element(element, k), result.boundary, precision
                )
                result.boundary = wp.min(result.boundary, side.value)
        if minimum.value < result.value:
            result.value = minimum.value
            result.weights = minimum.weights
    return result


@wp.func
def surface_minimum(surfaces: Any, row: int, half: Vec3, element: DeformableElement) -> Minimum:
    """Least signed distance from a surface, less the radius, and whether the element's interior is
    lower than its boundary."""
    result = Minimum(0, Real(wp.inf), Real(wp.inf), Vec3(), Slope())
    least_radius = Real(wp.inf)
    inner = bool(False)
    for k in range(3):
        if k < element.count:
            weights = corner_weights(k)
            sample = sample_element(
                surfaces, row, half, element, weights, element.limit + element.radius[k]
            )
            least_radius = wp.min(least_radius, element.radius[k])
            if sample.found == 1:
                result.boundary = wp.min(result.boundary, sample.distance - element.radius[k])
                inner = inner or sample.distance < Real(0.0)
    closed = has_inside(surfaces, row)
    # With one radius no point outside is lower than one inside.
    if not (closed and inner and wp.max(element.radius) == least_radius):
        result = outer_minimum(surfaces, row, element, result.boundary)
    lower = element.lower
    if closed:
        inner = inner or wp.min(result.value, result.boundary) <= element.precision - least_radius
        if inner:
            precision = DEPTH_PRECISION / LOWER * element.lower
            lower = Real(2.0) * precision
            result = inner_minimum(surfaces, row, half, element, result, precision)
    result.interior = 1 if result.value < result.boundary - lower else 0
    return result
