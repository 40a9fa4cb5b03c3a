"""The least translation that separates a convex shape from a triangle surface, per region of overlap.

Contacts with single triangles do not give the translation that separates a shape from all of them. After the contacts
of a pair are merged and some overlap deeply, the deepest is verified: the shape, moved along its normal by its depth,
must be free, and the depth of a point of one body inside the other is a lower bound for every translation. Otherwise
directions are searched: normals of contacts and of nearby triangles, and a fixed set. The best are refined by
sequential quadratic programming, in which each triangle that was exited last along a direction gives a plane, and the
point of least norm in the half-spaces of all planes is the next translation; and by a pattern search.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.candidates import Query, query_of
from collidecli.engine.cells import Instances
from collidecli.engine.contact_record import Candidates, ContactRecord, swap_contacts
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.bounds import bounding_box, local_half_extents
from collidecli.engine.geometry.hulls import FACE_ROW, HullShape, hull_number, hull_point
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Primitive, Vertex, middle_of
from collidecli.engine.geometry.real import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, Real, Vec2, Vec3
from collidecli.engine.narrowphase.contact_merging import unique_by_feature
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.convex.features import feature_at, triangle_feature_at
from collidecli.engine.narrowphase.convex.gjk import nearest_of_difference
from collidecli.engine.narrowphase.convex.penetration import WITNESS_GAP, minkowski_difference
from collidecli.engine.narrowphase.triangles.convex_surface import (
    allowed_direction,
    begin_near,
    corners_of,
    depth_inside,
    is_one_sided,
    named_of,
    next_near,
)
from collidecli.engine.narrowphase.triangles.convex_sweep import (
    LEAST_OVERLAP,
    MAX_REGIONS,
    RECENT,
    FreeAt,
    Region,
    Sweep,
    find_regions,
    first_free,
)
from collidecli.engine.runtime.kernel import kernel

# Search over directions for the least free translation of a convex shape; see `convex_least_translation`.

# ruff: noqa: SIM110

SPREAD = 92
"""Number of directions of the fixed set, on a Fibonacci spiral."""
GOLDEN = wp.constant(Real(0.3819660112501051))
"""Turns from one point of the spiral to the next."""
CROSSED = 32
"""Greatest number of normals of crossed triangles that are tried."""
FROM_CONTACTS = 16
"""Greatest number of normals of contacts that are tried."""
DIRECTIONS = SPREAD + CROSSED + FROM_CONTACTS + 2
SAME_DIRECTION = wp.constant(Real(0.97))
"""Cosine above which two tried directions count as equal."""
NEARBY = wp.constant(Real(1.3))
"""Multiple of the best translation up to which a direction is followed for refinement."""
STARTS = wp.constant(4)
"""Number of directions that are refined."""
APART = wp.constant(Real(0.9))
"""Cosine below which two of these are distinct."""
STEPS = wp.constant(16)
"""Greatest number of steps of sequential quadratic programming from each."""
PLANES = 6
"""Greatest number of planes that are kept, the last of each triangle."""
WIDEST = wp.constant(Real(0.24))
NARROWEST = wp.constant(Real(0.01))
"""First and last step of the pattern search [rad]."""
AROUND = wp.constant(6)
"""Directions around the best that each step tries."""
SIXTH = wp.constant(Real(1.0 / 6.0))
RADIAN = wp.constant(Real(0.15915494309189535))
"""Turns between these directions, and by which they rotate with each try."""
TRIES = wp.constant(72)
"""Greatest number of directions of a pattern search."""
BEHIND = wp.constant(Real(1.1))
"""A pattern search ends at a halved step where its translation is this many times that of the best of all."""
GAIN = wp.constant(Real(0.999))
"""A refinement ends where its bound is above this fraction of the best."""


@wp.struct
class Least:
    """The best translation so far. t: length [m]; direction: unit, the shape's frame; number, normal, exact: as in
    `FreeAt`."""

    t: Real
    direction: Vec3
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Plane:
    """A half-space: a translation x with normal.x >= height exits triangle `number`; the shape's frame."""

    normal: Vec3
    height: Real
    number: int


@wp.func
def on_circle(turns: Real) -> Vec2:
    """A point of the unit circle after a number of turns, slightly faster in the middle of each quarter.

    By a rational parametrisation: the last bit of sine and cosine depends on the processor's library.
    """
    quarters = Real(4.0) * (turns - wp.floor(turns))
    whole = int(quarters)
    part = quarters - Real(whole)
    x = (Real(1.0) - part * part) / (Real(1.0) + part * part)
    y = Real(2.0) * part / (Real(1.0) + part * part)
    if whole % 4 == 1:
        return Vec2(-y, x)
    if whole % 4 == 2:
        return Vec2(-x, -y)
    if whole % 4 == 3:
        return Vec2(y, -x)
    return Vec2(x, y)


@wp.func
def spread_direction(k: int) -> Vec3:
    """Direction k of the fixed set."""
    z = Real(1.0) - (Real(2.0) * Real(k) + Real(1.0)) / Real(wp.static(SPREAD))
    across = wp.sqrt(wp.max(Real(0.0), Real(1.0) - z * z))
    point = on_circle(GOLDEN * Real(k))
    return Vec3(across * point[0], across * point[1], z)


@wp.func
def better(before: Least, found: FreeAt, direction: Vec3) -> Least:
    """The shorter of the best translation so far and that along a direction."""
    best = before
    if found.t < before.t:
        best.t = found.t
        best.direction = direction
        best.number = found.number
        best.normal = found.normal
        best.exact = found.exact
    return best


@wp.func
def allowed_in(surface: Any, sweep: Sweep, direction: Vec3) -> Vec3:
    """`allowed_direction` for a direction of the shape's frame."""
    return sweep.rotation * allowed_direction(surface, wp.transpose(sweep.rotation) * direction)


@wp.func
def add_direction(directions: wp.array[Vec3], count: int, direction: Vec3) -> int:
    """Adds a direction to those to be tried, unless one is similar; returns their number."""
    for k in range(count):
        if wp.dot(directions[k], direction) > SAME_DIRECTION:
            return count
    directions[count] = direction
    return count + 1


@wp.func
def add_plane(planes: wp.array[Plane], before: int, found: FreeAt, direction: Vec3) -> int:
    """Adds the plane of the triangle that was exited last, in place of its former plane or, of too many, the oldest."""
    plane = Plane()
    plane.normal = found.normal
    plane.height = found.t * wp.dot(found.normal, direction)
    plane.number = found.number
    count = before
    for k in range(before):
        if planes[k].number == plane.number and count == before:
            count = before - 1
            for i in range(k, before - 1):
                planes[i] = planes[i + 1]
    if count == wp.static(PLANES):
        count -= 1
        for i in range(wp.static(PLANES - 1)):
            planes[i] = planes[i + 1]
    planes[count] = plane
    return count + 1


@wp.func
def holds_all(planes: wp.array[Plane], count: int, x: Vec3, slack: Real) -> bool:
    """Whether a translation is in all half-spaces, to `slack` [m]."""
    for k in range(count):
        if wp.dot(planes[k].normal, x) < planes[k].height - slack:
            return False
    return True


@wp.func(inline=False)
def nearest_beyond(planes: wp.array[Plane], count: int, slack: Real) -> Vec3:
    """The shortest translation in all half-spaces, by enumeration of up to three active planes; zero for none."""
    best = Vec3()
    square = Real(wp.inf)
    for i in range(count):
        x = planes[i].height * planes[i].normal
        if wp.length_sq(x) < square and holds_all(planes, count, x, slack):
            best = x
            square = wp.length_sq(x)
        for j in range(i):
            u = planes[i].normal
            v = planes[j].normal
            cosine = wp.dot(u, v)
            sine_square = Real(1.0) - cosine * cosine
            if sine_square < Real(1.0e-12):
                continue
            of_u = (planes[i].height - cosine * planes[j].height) / sine_square
            of_v = (planes[j].height - cosine * planes[i].height) / sine_square
            x = of_u * u + of_v * v
            if wp.length_sq(x) < square and holds_all(planes, count, x, slack):
                best = x
                square = wp.length_sq(x)
            for k in range(j):
                w = planes[k].normal
                volume = wp.dot(u, wp.cross(v, w))
                if wp.abs(volume) < Real(1.0e-9):
                    continue
                x = planes[i].height * wp.cross(v, w) + planes[j].height * wp.cross(w, u)
                x = (x + planes[k].height * wp.cross(u, v)) / volume
                if wp.length_sq(x) < square and holds_all(planes, count, x, slack):
                    best = x
                    square = wp.length_sq(x)
    return best


@wp.func(inline=False)
def refine(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    start: Vec3,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The best translation after refining a direction by sequential quadratic programming."""
    best = before
    planes = wp.zeros(shape=wp.static(PLANES), dtype=Plane)
    count = int(0)
    direction = start
    limit = best.t * NEARBY
    for _step in range(STEPS):
        found = first_free(a, pair, surface, sweep, direction, limit, recent, simplex)
        best = better(best, found, direction)
        limit = wp.min(limit, wp.max(found.t, best.t))
        if found.number < 0:
            return best
        count = add_plane(planes, count, found, direction)
        x = nearest_beyond(planes, count, sweep.touch)
        length = wp.length(x)
        if length <= Real(0.0) or length >= best.t * GAIN:
            return best
        after = allowed_in(surface, sweep, x / length)
        if wp.dot(after, direction) > Real(1.0) - Real(1.0e-12):
            return best
        direction = after
    return best


@wp.func(inline=False)
def pattern_search(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    start: Vec3,
    length: Real,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The best translation after a pattern search around direction `start`. length: translation along `start` [m]."""
    best = before
    direction = start
    least = length
    step = WIDEST
    tries = int(0)
    while step > NARROWEST and tries < TRIES:
        first = any_tangent(direction)
        second = wp.cross(direction, first)
        after = direction
        improved = bool(False)
        for k in range(AROUND):
            point = on_circle(SIXTH * Real(k) + RADIAN * Real(tries))
            turned = wp.normalize(direction + step * (point[0] * first + point[1] * second))
            tried = allowed_in(surface, sweep, turned)
            found = first_free(a, pair, surface, sweep, tried, least, recent, simplex)
            if found.t < least:
                least = found.t
                after = tried
                improved = True
                best = better(best, found, tried)
        tries += AROUND
        direction = after
        if not improved:
            step = Real(0.5) * step
            if least > BEHIND * best.t:
                return best
    return best


@wp.func
def as_vectors(scratch: wp.array[Vec3]) -> wp.array[Vec3]:
    """Local array as an array of any length, of which a function gets the address and not a copy."""
    return scratch


@wp.func(inline=False)
def search(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    directions: wp.array[Vec3],
    given: int,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The least translation over directions. directions: capacity DIRECTIONS; the first `given` are set and tried."""
    best = before
    count = given
    difference = pair
    crossed = int(0)
    cursor = begin_near(surface, sweep.lower, sweep.upper)
    while cursor.number >= 0 and crossed < wp.static(CROSSED):
        difference.b = corners_of(surface, cursor.number)
        for turn in range(2 - surface.closed):
            normal = wp.where(turn == 0, difference.b.normal, -difference.b.normal)
            after = add_direction(directions, count, allowed_in(surface, sweep, sweep.rotation * normal))
            crossed += after - count
            count = after
        cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
    for k in range(wp.static(SPREAD)):
        if count < wp.static(DIRECTIONS):
            count = add_direction(directions, count, allowed_in(surface, sweep, sweep.rotation * spread_direction(k)))
    length = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Real)
    for k in range(count):
        found = first_free(a, pair, surface, sweep, directions[k], best.t * NEARBY, recent, simplex)
        length[k] = found.t
        best = better(best, found, directions[k])
    limit = best.t * NEARBY
    starts = wp.zeros(shape=wp.static(int(STARTS)), dtype=Vec3)
    started = int(0)
    best = refine(a, pair, surface, sweep, best, best.direction, recent, simplex)
    while started < STARTS:
        least = limit
        chosen = int(-1)
        for k in range(count):
            apart = length[k] < least
            for i in range(started):
                apart = apart and wp.dot(starts[i], directions[k]) < APART
            if apart:
                least = length[k]
                chosen = k
        if chosen < 0:
            break
        starts[started] = directions[chosen]
        started += 1
        best = refine(a, pair, surface, sweep, best, directions[chosen], recent, simplex)
        best = pattern_search(a, pair, surface, sweep, best, directions[chosen], length[chosen], recent, simplex)
    return pattern_search(a, pair, surface, sweep, best, best.direction, best.t, recent, simplex)


# ruff: noqa: F811

SHALLOW = wp.constant(Real(0.05))
"""Fraction of the shape's least half extent, or the surface's largest where that is less: overlaps that are no deeper
keep the contacts of single triangles. Measured: all of 56 such poses within 2 % of the least translation."""
TOUCHING = wp.constant(Real(1.0e-6))
"""Fraction above which contacts of one-sided surfaces are tested: one with one triangle may lead behind another. Up to
SHALLOW those that nearly separate are lengthened and not searched."""
WITHIN = wp.constant(Real(1.02))
"""A translation along a contact's normal is accepted up to this multiple of the lower bound of all translations."""
ALIKE = wp.constant(Real(0.9))
"""Cosine between two contacts' normals below which they may be in two regions."""
EQUAL_DEPTH = wp.constant(Real(1.0e-6))
"""Fraction of the smaller size: depths that differ by no more are equal."""


@wp.func
def depth_in_shape(shape: Primitive, point: Vec3) -> Real:
    """Depth of a point inside a primitive [m]; 0 or less outside. Exact except for ellipsoids: a lower bound."""
    size = shape.size
    across = wp.sqrt(point[0] * point[0] + point[1] * point[1])
    if shape.type == BOX:
        beside = size - wp.abs(point)
        return wp.min(beside[0], wp.min(beside[1], beside[2]))
    if shape.type == CYLINDER:
        return wp.min(size[0] - across, size[1] - wp.abs(point[2]))
    if shape.type == CONE:
        slant = wp.sqrt(size[0] * size[0] + Real(4.0) * size[1] * size[1])
        to_side = (size[0] * (size[1] - point[2]) - Real(2.0) * size[1] * across) / slant
        return wp.min(point[2] + size[1], to_side)
    if shape.type == ELLIPSOID:
        scaled = wp.length(wp.cw_div(point, size))
        return (Real(1.0) - scaled) * wp.min(size[0], wp.min(size[1], size[2]))
    if shape.type == CAPSULE:
        on_axis = Vec3(Real(0.0), Real(0.0), wp.clamp(point[2], -size[1], size[1]))
        return size[0] - wp.length(point - on_axis)
    return size[0] - wp.length(point)


@wp.func
def depth_in_shape(shape: HullShape, point: Vec3) -> Real:
    """Depth of a point inside a hull [m]; negative outside."""
    least = Real(wp.inf)
    for face in range(shape.face_count):
        normal = hull_point(shape, shape.normal + face)
        corner = hull_point(shape, shape.vertex + hull_number(shape, shape.face + face * FACE_ROW + 1))
        least = wp.min(least, wp.dot(normal, corner - point))
    return least


@wp.func(inline=False)
def contact_of(a: Any, pair: Any, surface: Any, sweep: Sweep, best: Least, simplex: wp.array[Vertex]) -> ContactRecord:
    """The contact of a translation: the point at which the shape, after it, touches the surface."""
    contact = ContactRecord()
    contact.normal = -best.direction
    contact.separation = -best.t
    difference = pair
    triangle = named_of(surface, best.number)
    difference.b = corners_of(surface, best.number)
    difference.position = pair.position - best.t * best.direction - WITNESS_GAP * sweep.size * best.normal
    nearest = nearest_of_difference(difference, -best.normal, Real(wp.inf), simplex)
    contact.point = nearest.on_a + pair.radius_a * nearest.normal
    foot = wp.transpose(pair.rotation) * (contact.point + best.t * best.direction - pair.position)
    contact.feature_a = feature_at(a, contact.point, nearest.normal)
    contact.feature_b = triangle_feature_at(triangle, foot)
    return contact


@wp.func
def lower_bound(a: Any, pair: Any, surface: Any, contact: ContactRecord) -> Real:
    """Lower bound of every separating translation: the greater depth of a contact's witnesses in the other body [m]."""
    on_a = wp.transpose(pair.rotation) * (contact.point - pair.position)
    of_a = depth_inside(surface, on_a)
    return wp.max(of_a, depth_in_shape(a, contact.point + contact.separation * contact.normal))


@wp.func
def region_of(regions: wp.array[Region], count: int, contact: ContactRecord) -> int:
    """The region closest to the midpoint of a contact's witness points."""
    point = contact.point + Real(0.5) * contact.separation * contact.normal
    nearest = int(0)
    least = Real(wp.inf)
    for k in range(count):
        off = point - wp.max(regions[k].lower, wp.min(regions[k].upper, point))
        if wp.length_sq(off) < least:
            least = wp.length_sq(off)
            nearest = k
    return nearest


@wp.struct
class Written:
    """The state of a pair's contacts. count: their number. changed: 1 where any is new. exact: as in `FreeAt`."""

    count: int
    changed: int
    exact: int


@wp.func(inline=False)
def settle_region(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    regions: wp.array[Region],
    region_count: int,
    region: int,
    contact: wp.array[ContactRecord],
    first: int,
    before: Written,
    capacity: int,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Written:
    """Replaces the deepest contact of a region by that of the least translation, and drops deeper contacts.

    region: its index, of region_count; with at most one region every contact of the pair is in it. capacity: rows of
    the pair.
    """
    result = before
    near = sweep
    deepest = int(-1)
    bound = Real(0.0)
    for i in range(first, first + before.count):
        counts = contact[i].separation < Real(0.0)
        if counts and region_count >= 2:
            counts = region_of(regions, region_count, contact[i]) == region
        if counts and (deepest < 0 or contact[i].separation < contact[wp.max(deepest, 0)].separation):
            deepest = i
    best = Least()
    best.t = Real(wp.inf)
    best.exact = 1
    is_enough = bool(False)
    if deepest >= 0:
        depth = -contact[deepest].separation
        for i in range(first, first + before.count):
            if contact[i].separation * WITHIN <= -depth:
                bound = wp.max(bound, lower_bound(a, pair, surface, contact[i]))
        best.direction = allowed_in(surface, sweep, -contact[deepest].normal)
        best = better(
            best, first_free(a, pair, surface, sweep, best.direction, Real(wp.inf), recent, simplex), best.direction
        )
        if best.t < bound * (Real(1.0) - EQUAL_DEPTH):
            # Less than a lower bound: other parts of the surface must be exited too.
            near.in_region = 0
            best.t = Real(wp.inf)
            free = first_free(a, pair, surface, near, best.direction, Real(wp.inf), recent, simplex)
            best = better(best, free, best.direction)
        along = wp.dot(best.direction, contact[deepest].normal) < Real(-1.0 + 1.0e-12)
        is_enough = best.t <= bound * WITHIN or (depth <= sweep.shallow and best.t <= depth * WITHIN)
        if is_enough and along and wp.abs(best.t - depth) <= EQUAL_DEPTH * sweep.size:
            return result
    if not is_enough:
        directions = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Vec3)
        given = int(0)
        for i in range(first, first + before.count):
            if contact[i].separation < Real(0.0) and given < wp.static(FROM_CONTACTS):
                given = add_direction(directions, given, allowed_in(surface, sweep, -contact[i].normal))
        best = search(a, pair, surface, near, best, as_vectors(directions), given, recent, simplex)
        if best.t < bound * (Real(1.0) - EQUAL_DEPTH):
            near.in_region = 0
            best.t = Real(wp.inf)
            best = search(a, pair, surface, near, best, as_vectors(directions), given, recent, simplex)
    if best.number < 0 or best.t == Real(wp.inf):
        result.exact = wp.min(result.exact, best.exact)
        return result
    result.exact = wp.min(result.exact, best.exact)
    if deepest >= 0:
        depth = -contact[deepest].separation
        same = wp.dot(best.direction, contact[deepest].normal) < Real(-1.0 + 1.0e-12)
        if same and wp.abs(best.t - depth) <= EQUAL_DEPTH * sweep.size:
            return result
    elif before.count < capacity:
        deepest = first + before.count
        result.count += 1
    else:
        result.exact = 0
        return result
    contact[deepest] = contact_of(a, pair, surface, sweep, best, simplex)
    result.changed = 1
    i = first
    while i < first + result.count:
        drops = i != deepest and contact[i].separation < -best.t
        if drops and region_count >= 2:
            drops = region_of(regions, region_count, contact[i]) == region
        if drops:
            result.count -= 1
            if first + result.count == deepest:
                deepest = i
            swap_contacts(contact, i, first + result.count)
        else:
            i += 1
    return result


@wp.func(inline=False)
def settle_pair(
    a: Any,
    surface: Any,
    query: Query,
    size: Real,
    scale: Real,
    shallow: Real,
    contact: wp.array[ContactRecord],
    first: int,
    count: int,
    capacity: int,
) -> Written:
    """Replaces the deepest contact of each region of a pair by that of the least translation.

    size, scale: of the smaller and the larger of the two [m]. shallow: as in `Sweep`. contact: the
    pair's contacts are `count` from `first` on.
    """
    pair = minkowski_difference(a, TriangleShape(), query.pose_b_to_a)
    sweep = Sweep()
    sweep.rotation = pair.rotation
    sweep.position = pair.position
    pose = wp.transform_inverse(query.pose_b_to_a)
    box = bounding_box(a.type, a.size, pose, LEAST_OVERLAP * scale)
    sweep.lower = box.lower
    sweep.upper = box.upper
    sweep.half = local_half_extents(a.type, a.size)
    sweep.middle = wp.transform_point(pose, middle_of(a))
    sweep.touch = LEAST_OVERLAP * scale
    sweep.size = size
    sweep.shallow = shallow
    simplex = wp.zeros(shape=4, dtype=Vertex)
    recent = wp.zeros(shape=wp.static(RECENT), dtype=int)
    for k in range(wp.static(RECENT)):
        recent[k] = -1
    result = Written()
    result.count = count
    result.exact = 1
    regions = wp.zeros(shape=wp.static(MAX_REGIONS), dtype=Region)
    region_count = int(1)
    # Where the middle of the shape is inside the solid, the overlap is taken as one region.
    is_inside = depth_inside(surface, sweep.middle) > Real(0.0)
    deepest = first
    for i in range(first, first + count):
        if contact[i].separation < contact[deepest].separation:
            deepest = i
    for i in range(first, first + count):
        is_alike = contact[i].separation >= Real(0.0) or wp.dot(contact[i].normal, contact[deepest].normal) >= ALIKE
        if not is_alike and not is_inside:
            region_count = 2
    if region_count == 2:
        region_count = find_regions(a, pair, surface, sweep, regions, simplex)
    if region_count < 2:
        return settle_region(a, pair, surface, sweep, regions, 1, 0, contact, first, result, capacity, recent, simplex)
    sweep.in_region = 1
    for region in range(region_count):
        sweep.region = regions[region]
        result = settle_region(
            a, pair, surface, sweep, regions, region_count, region, contact, first, result, capacity, recent, simplex
        )
    return result


@wp.func
def least_extent(a: Any, other: Vec3) -> Real:
    """The shape's least half extent, or the largest of the surface's, `other`, if that is less [m]."""
    extents = local_half_extents(a.type, a.size)
    return wp.min(wp.min(extents[0], wp.min(extents[1], extents[2])), wp.max(other[0], wp.max(other[1], other[2])))


@wp.func
def sub_pairs_of(sub_pair_end: wp.array[wp.int32], thread: int, parts: int) -> int:
    """The number of sub-pairs of a candidate, found by `parts` threads."""
    begin = int(0)
    if thread > 0:
        begin = sub_pair_end[thread * parts - 1]
    return sub_pair_end[(thread + 1) * parts - 1] - begin


def settle_kernel(surfaces_type: Any, surface_of: Callable[..., Any], shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel that replaces depths of pairs of a convex shape and a surface by those of their regions.

    surface_of(rows, surfaces, query): the surface of a pair. shape_a: `primitive_of` or `hull_of`.
    """

    def settle_depths(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        order: wp.array[wp.int32],
        start: int,
        parts: int,
        sub_pair_end: wp.array[wp.int32],
        limit: int,
        inexact: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        most: int,
    ):
        """One thread per candidate of a bucket, whose contacts are merged, in `most` rows per sub-pair."""
        thread = wp.tid()
        candidate = order[start + thread]
        count = candidates.found[candidate]
        first = candidates.first[candidate]
        nearest = Real(0.0)
        for i in range(first, first + count):
            nearest = wp.min(nearest, contact[i].separation)
        if nearest < Real(0.0):
            query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
            a = shape_a(rows, query.row_a)
            surface = surface_of(rows, surfaces, query)
            least = least_extent(a, rows.size[query.row_b])
            if nearest >= -wp.where(is_one_sided(surface), TOUCHING, SHALLOW) * least:
                return
            shallow = wp.where(is_one_sided(surface), SHALLOW * least, Real(0.0))
            capacity = most * sub_pairs_of(sub_pair_end, thread, parts)
            size_a = wp.length(rows.size[query.row_a])
            size_b = wp.length(rows.size[query.row_b])
            written = settle_pair(
                a,
                surface,
                query,
                wp.min(size_a, size_b),
                wp.max(size_a, size_b),
                shallow,
                contact,
                first,
                count,
                capacity,
            )
            if written.exact == 0:
                wp.atomic_add(inexact, 0, 1)
            if written.changed == 1:
                row = candidates.row[candidate]
                swapped = rows.type[row[0]] > rows.type[row[1]]
                count = unique_by_feature(contact, first, written.count, swapped)
                candidates.found[candidate] = count
                candidates.count[candidate] = wp.where(limit > 0, wp.min(count, limit), count)

    settle_depths.__annotations__["surfaces"] = surfaces_type
    return kernel(settle_depths)
