"""Minimum over the surface of a mesh or heightfield.

The distance from one triangle is convex, so outside the least one over the triangles near the
element is exact. Inside, the signed distance is the greatest of the negative distances from all
triangles: a search over parts of the element, with two bounds for each part. By convexity a
triangle's distance is at most linear between the part's corners, so two triangles give the least
value of the greater of two linear functions below it; and the signed distance at a point decreases
by no more than the way from it.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.particles.element_minimum import (
    LOWER,
    DeformableElement,
    Minimum,
    Slope,
    TriangleQuery,
    convex_minimum,
    corner_weights,
    point_of,
    side_of_element,
    slope_at,
)
from collidecli.engine.particles.element_surfaces import (
    begin_near,
    counts_inside,
    has_inside,
    next_near,
    triangle_of,
)
from collidecli.engine.particles.surfaces import Sample, sample_surface

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
