"""The least translation that separates a convex shape from a triangle surface, per region of
overlap.

Contacts with single triangles do not give the translation that separates a shape from all of them.
After the contacts of a pair are merged and some overlap deeply, the deepest is verified: the shape,
moved along its normal by its depth, must be free, and the depth of a point of one body inside the
other is a lower bound for every translation. Otherwise directions are searched: normals of contacts
and of nearby triangles, and a fixed set. The best are refined by sequential quadratic programming,
in which each triangle that was exited last along a direction gives a plane, and the point of least
norm in the half-spaces of all planes is the next translation; and by a pattern search.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import Query, query_of
from collidecli.engine.contact_record import (
    FALLBACK,
    OF_REGION,
    UNPROVEN,
    Candidates,
    ContactRecord,
    swap_contacts,
)
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.bounds import bounding_box, local_half_extents
from collidecli.engine.geometry.hulls import FACE_ROW, HullShape, hull_number, hull_point
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Primitive, Vertex, middle_of
from collidecli.engine.geometry.real import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    Real,
    Vec2,
    Vec3,
    array_of,
)
from collidecli.engine.narrowphase.collider import Bucket, candidate_of
from collidecli.engine.narrowphase.contact_merging import record_found, unique_by_feature
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.convex.features import feature_at, triangle_feature_at
from collidecli.engine.narrowphase.convex.gjk import nearest_of_difference
from collidecli.engine.narrowphase.convex.penetration import WITNESS_GAP, minkowski_difference
from collidecli.engine.narrowphase.sub_pairs import sub_pair_range, surface_kernel
from collidecli.engine.narrowphase.triangles.convex_surface import (
    allowed_direction,
    begin_near,
    corners_of,
    depth_inside,
    has_nearer,
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
    with_last_triangle,
)

# ruff: noqa: F811

as_ints = array_of(int, "as_ints")
as_regions = array_of(Region, "as_regions_of_overlap")
as_vectors = array_of(Vec3, "as_vectors")

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
NARROW_COSINE = wp.constant(Real(0.99995))
"""Cosine of NARROWEST."""
AROUND = wp.constant(6)
"""Directions around the best that each step tries."""
SIXTH = wp.constant(Real(1.0 / 6.0))
RADIAN = wp.constant(Real(0.15915494309189535))
"""Turns between these directions, and by which they rotate with each try."""
TRIES = wp.constant(72)
"""Greatest number of directions of a pattern search."""
BEHIND = wp.constant(Real(1.1))
"""A pattern search ends at a halved step where its translation is this many times that of the best
of all."""
SHORTER = wp.constant(Real(1.0 - 1.0e-6))
"""Factor below which a translation is shorter than another. Of equal ones the first stays: by
symmetry several directions have translations that differ by rounding."""
TIED = wp.constant(Real(2.0))
"""Touches by which a translation is shorter than another. Each leaves overlaps of up to a touch:
faces in one plane, a few touches deep, would else have a tilted normal that leaves a part of their
overlap."""
GAIN = wp.constant(Real(0.999))
"""A refinement ends where its bound is above this fraction of the best."""


@wp.struct
class Plane:
    """A half-space: a translation x with normal.x >= height exits triangle `number`; the shape's
    frame."""

    normal: Vec3
    height: Real
    number: int


@wp.func
def on_circle(turns: Real) -> Vec2:
    """A point of the unit circle after a number of turns, slightly faster in the middle of each
    quarter.

    By a rational parametrisation: the last bit of sine and cosine depends on the processor's
    library.
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
def is_shorter(sweep: Sweep, t: Real, before: Real) -> bool:
    """Whether a translation `t` is shorter than another by more than the error of both [m]."""
    return t < SHORTER * before - TIED * sweep.touch


@wp.func
def better(sweep: Sweep, before: FreeAt, free: FreeAt) -> FreeAt:
    """The shorter of the best translation so far and another; exact if both are."""
    result = before
    if is_shorter(sweep, free.t, before.t):
        result = free
    result.exact = wp.min(before.exact, free.exact)
    return result


@wp.func
def allowed_in(pair: Any, surface: Any, direction: Vec3) -> Vec3:
    """`allowed_direction` for a direction of the shape's frame."""
    return pair.rotation * allowed_direction(surface, wp.transpose(pair.rotation) * direction)


@wp.func
def is_unlike(directions: wp.array[Vec3], count: int, direction: Vec3) -> bool:
    """Whether none of `count` directions is similar."""
    result = bool(True)
    for k in range(count):
        result = result and wp.dot(directions[k], direction) <= SAME_DIRECTION
    return result


@wp.func
def add_direction(directions: wp.array[Vec3], count: int, direction: Vec3) -> int:
    """Adds a direction to those to be tried, unless one is similar; returns their number."""
    if not is_unlike(directions, count, direction):
        return count
    directions[count] = direction
    return count + 1


@wp.func(inline=False)
def add_normals(
    pair: Any, surface: Any, sweep: Sweep, directions: wp.array[Vec3], before: int
) -> int:
    """Adds up to CROSSED normals of the triangles near the shape; returns the number of directions.

    In the order of the triangles' numbers each whose normal is like none before it: a tree gives
    them in an order that rounding may choose.
    """
    count = before
    while count < before + wp.static(CROSSED):
        lowest = int(-1)
        cursor = begin_near(surface, sweep.lower, sweep.upper)
        while cursor.number >= 0:
            for turn in range(2 - surface.closed):
                number = 2 * cursor.number + turn
                if lowest < 0 or number < lowest:
                    normal = pair.rotation * corners_of(surface, cursor.number).normal
                    direction = allowed_in(pair, surface, wp.where(turn == 0, normal, -normal))
                    if is_unlike(directions, count, direction):
                        lowest = number
                        directions[count] = direction
            cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
        if lowest < 0:
            return count
        count += 1
    return count


@wp.func
def add_plane(planes: wp.array[Plane], before: int, free: FreeAt) -> int:
    """Adds the plane of the triangle that was exited last, in place of its former plane or, of too
    many, the oldest."""
    count = before
    for k in range(before):
        if planes[k].number == free.number and count == before:
            count = before - 1
            for i in range(k, before - 1):
                planes[i] = planes[i + 1]
    if count == wp.static(PLANES):
        count -= 1
        for i in range(wp.static(PLANES - 1)):
            planes[i] = planes[i + 1]
    planes[count] = Plane(free.normal, free.t * wp.dot(free.normal, free.direction), free.number)
    return count + 1


@wp.func
def shorter_beyond(planes: wp.array[Plane], count: int, slack: Real, best: Vec3, x: Vec3) -> Vec3:
    """Translation x where it is shorter than the best and in all half-spaces, to `slack` [m]; else
    the best."""
    if not wp.length_sq(x) < SHORTER * wp.length_sq(best):
        return best
    for k in range(count):
        if wp.dot(planes[k].normal, x) < planes[k].height - slack:
            return best
    return x


@wp.func(inline=False)
def nearest_beyond(planes: wp.array[Plane], count: int, slack: Real) -> Vec3:
    """The shortest translation in all half-spaces, by enumeration of up to three active planes;
    infinite for none."""
    best = Vec3(Real(wp.inf), Real(0.0), Real(0.0))
    for i in range(count):
        u = planes[i].normal
        best = shorter_beyond(planes, count, slack, best, planes[i].height * u)
        for j in range(i):
            v = planes[j].normal
            cosine = wp.dot(u, v)
            sine_square = Real(1.0) - cosine * cosine
            if sine_square < Real(1.0e-12):
                continue
            of_u = (planes[i].height - cosine * planes[j].height) / sine_square
            of_v = (planes[j].height - cosine * planes[i].height) / sine_square
            best = shorter_beyond(planes, count, slack, best, of_u * u + of_v * v)
            for k in range(j):
                w = planes[k].normal
                volume = wp.dot(u, wp.cross(v, w))
                if wp.abs(volume) >= Real(1.0e-9):
                    x = planes[i].height * wp.cross(v, w) + planes[j].height * wp.cross(w, u)
                    x = (x + planes[k].height * wp.cross(u, v)) / volume
                    best = shorter_beyond(planes, count, slack, best, x)
    return best


@wp.func(inline=False)
def refine(pair: Any, surface: Any, sweep: Sweep, before: FreeAt, start: Vec3) -> FreeAt:
    """The best translation after refining a direction by sequential quadratic programming."""
    best = before
    planes = wp.zeros(shape=wp.static(PLANES), dtype=Plane)
    count = int(0)
    direction = start
    for _step in range(STEPS):
        # Without a limit: which triangle is exited at a limit depends on the order in which the
        # surface gives them.
        free = first_free(pair, surface, sweep, direction, Real(wp.inf))
        best = better(sweep, best, free)
        if free.number < 0 or free.t == Real(wp.inf):
            return best
        free = with_last_triangle(pair, surface, sweep, free)
        count = add_plane(planes, count, free)
        x = nearest_beyond(planes, count, sweep.touch)
        length = wp.length(x)
        if length <= Real(0.0) or length >= best.t * GAIN:
            return best
        after = allowed_in(pair, surface, x / length)
        if wp.dot(after, direction) > Real(1.0) - Real(1.0e-12):
            return best
        direction = after
    return best


@wp.func(inline=False)
def pattern_search(
    pair: Any, surface: Any, sweep: Sweep, before: FreeAt, start: Vec3, length: Real
) -> FreeAt:
    """The best translation after a pattern search around direction `start`. length: translation
    along `start` [m]."""
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
            free = first_free(pair, surface, sweep, allowed_in(pair, surface, turned), least)
            best = better(sweep, best, free)
            if is_shorter(sweep, free.t, least):
                least = free.t
                after = free.direction
                improved = True
        tries += AROUND
        direction = after
        if not improved:
            step = Real(0.5) * step
            if least > BEHIND * best.t:
                return best
    return best


@wp.func(inline=False)
def leads_to(
    pair: Any,
    surface: Any,
    sweep: Sweep,
    direction: Vec3,
    limit: Real,
    starts: wp.array[Vec3],
    started: int,
) -> bool:
    """Whether the first step of `refine` from a direction is one of the directions that were
    refined before."""
    last = with_last_triangle(
        pair, surface, sweep, first_free(pair, surface, sweep, direction, limit)
    )
    result = bool(False)
    for i in range(started):
        result = result or wp.dot(starts[i], allowed_in(pair, surface, last.normal)) > NARROW_COSINE
    return result


@wp.func(inline=False)
def search(
    pair: Any, surface: Any, sweep: Sweep, before: FreeAt, directions: wp.array[Vec3], given: int
) -> FreeAt:
    """The least translation over directions. directions: capacity DIRECTIONS; the first `given` are
    set and tried."""
    best = before
    count = add_normals(pair, surface, sweep, directions, given)
    for k in range(wp.static(SPREAD)):
        if count < wp.static(DIRECTIONS):
            direction = allowed_in(pair, surface, pair.rotation * spread_direction(k))
            count = add_direction(directions, count, direction)
    length = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Real)
    for k in range(count):
        free = first_free(pair, surface, sweep, directions[k], best.t * NEARBY)
        length[k] = free.t
        best = better(sweep, best, free)
    limit = best.t * NEARBY
    starts = wp.zeros(shape=wp.static(int(STARTS)), dtype=Vec3)
    started = int(0)
    best = refine(pair, surface, sweep, best, best.direction)
    while started < STARTS:
        least = limit
        chosen = int(-1)
        for k in range(count):
            apart = length[k] < SHORTER * least
            for i in range(started):
                apart = apart and wp.dot(starts[i], directions[k]) < APART
            if apart:
                least = length[k]
                chosen = k
        if chosen < 0:
            break
        if leads_to(pair, surface, sweep, directions[chosen], limit, as_vectors(starts), started):
            length[chosen] = Real(wp.inf)
            continue
        starts[started] = directions[chosen]
        started += 1
        best = refine(pair, surface, sweep, best, directions[chosen])
        best = pattern_search(pair, surface, sweep, best, directions[chosen], length[chosen])
    return pattern_search(pair, surface, sweep, best, best.direction, best.t)


SHALLOW = wp.constant(Real(0.05))
"""Fraction of the shape's least half extent, or the surface's largest where that is less: overlaps
that are no deeper keep the contacts of single triangles. Measured: all of 56 such poses within 2 %
of the least translation."""
TOUCHING = wp.constant(Real(1.0e-6))
"""Fraction above which contacts of one-sided surfaces are tested: one with one triangle may lead
behind another. Up to SHALLOW those that nearly separate are lengthened and not searched."""
WITHIN = wp.constant(Real(1.02))
"""A translation along a contact's normal is accepted up to this multiple of the lower bound of all
translations."""
ALIKE = wp.constant(Real(0.9))
"""Cosine between two contacts' normals below which they may be in two regions."""
EQUAL_DEPTH = wp.constant(Real(1.0e-6))
"""Fraction of the smaller size: depths that differ by no more are equal."""


@wp.func
def depth_in_shape(shape: Primitive, point: Vec3) -> Real:
    """Depth of a point inside a primitive [m]; 0 or less outside. Exact except for ellipsoids: a
    lower bound."""
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
        corner = hull_point(
            shape, shape.vertex + hull_number(shape, shape.face + face * FACE_ROW + 1)
        )
        least = wp.min(least, wp.dot(normal, corner - point))
    return least


@wp.func(inline=False)
def contact_of(pair: Any, surface: Any, sweep: Sweep, best: FreeAt) -> ContactRecord:
    """The contact of a translation: the point at which the shape, after it, touches the surface."""
    contact = ContactRecord()
    contact.role = OF_REGION
    contact.normal = -best.direction
    contact.separation = -best.t
    difference = pair
    difference.b = corners_of(surface, best.number)
    difference.position = (
        pair.position - best.t * best.direction - WITNESS_GAP * sweep.size * best.normal
    )
    simplex = wp.zeros(shape=4, dtype=Vertex)
    nearest = nearest_of_difference(difference, -best.normal, Real(wp.inf), simplex)
    contact.point = nearest.on_a + pair.radius_a * nearest.normal
    foot = wp.transpose(pair.rotation) * (contact.point + best.t * best.direction - pair.position)
    contact.feature_a = feature_at(pair.a, contact.point, nearest.normal)
    contact.feature_b = triangle_feature_at(named_of(surface, best.number), foot)
    return contact


@wp.struct
class PairContacts:
    """The merged contacts of a pair: `count` rows from `first` on, of `capacity`.

    changed: 1 where any is new. exact: 0 where a depth is only an upper bound.
    """

    contact: wp.array[ContactRecord]
    first: int
    count: int
    capacity: int
    changed: int
    exact: int


@wp.func
def is_of_region(sweep: Sweep, contact: ContactRecord) -> bool:
    """Whether the sweep's region is the one closest to the midpoint of a contact's witness points.

    The contact of a region that was settled before is of no other.
    """
    if sweep.region_count < 2:
        return True
    if contact.role == OF_REGION:
        return False
    point = contact.point + Real(0.5) * contact.separation * contact.normal
    nearest = int(0)
    least = Real(wp.inf)
    for k in range(sweep.region_count):
        off = point - wp.max(sweep.regions[k].lower, wp.min(sweep.regions[k].upper, point))
        if wp.length_sq(off) < least:
            least = wp.length_sq(off)
            nearest = k
    return nearest == sweep.own


@wp.func
def deepest_of_region(sweep: Sweep, rows: PairContacts) -> int:
    """Row of the deepest contact of the sweep's region, -1 where none is negative; of equal depths
    the first row."""
    deepest = int(-1)
    least = Real(0.0)
    for i in range(rows.first, rows.first + rows.count):
        if rows.contact[i].separation * SHORTER < least and is_of_region(sweep, rows.contact[i]):
            least = rows.contact[i].separation
            deepest = i
    return deepest


@wp.func(inline=False)
def lower_bound(pair: Any, surface: Any, sweep: Sweep, rows: PairContacts, depth: Real) -> Real:
    """Lower bound of every separating translation [m]: the greatest depth of a witness of a deep
    contact in the other body. depth: of the deepest contact [m].
    """
    bound = Real(0.0)
    for i in range(rows.first, rows.first + rows.count):
        contact = rows.contact[i]
        if contact.separation * WITHIN <= -depth:
            bound = wp.max(
                bound,
                depth_inside(
                    surface, wp.transpose(pair.rotation) * (contact.point - pair.position)
                ),
            )
            foot = contact.point + contact.separation * contact.normal
            of_b = depth_in_shape(pair.a, foot)
            in_surface = wp.transpose(pair.rotation) * (foot - pair.position)
            # The foot of a contact along a normal may be beside its triangle, off the surface.
            if of_b > bound and has_nearer(surface, in_surface, EQUAL_DEPTH * sweep.size, Vec3()):
                bound = of_b
    return bound


@wp.func(inline=False)
def least_translation(
    pair: Any, surface: Any, sweep: Sweep, rows: PairContacts, deepest: int
) -> FreeAt:
    """The least translation that separates the sweep's region, infinite where none is found.

    deepest: row of the region's deepest contact, -1 for none; a translation along its normal that
    is near a lower bound of all needs no search.
    """
    best = FreeAt()
    best.t = Real(wp.inf)
    best.exact = 1
    bound = Real(0.0)
    if deepest >= 0:
        depth = -rows.contact[deepest].separation
        bound = lower_bound(pair, surface, sweep, rows, depth)
        best.direction = allowed_in(pair, surface, -rows.contact[deepest].normal)
        best = better(sweep, best, first_free(pair, surface, sweep, best.direction, Real(wp.inf)))
        if best.t < bound * (Real(1.0) - EQUAL_DEPTH):
            # Less than a lower bound: other parts of the surface must be exited too.
            sweep.in_region = 0
            best.t = Real(wp.inf)
            best = better(
                sweep, best, first_free(pair, surface, sweep, best.direction, Real(wp.inf))
            )
        if best.t <= bound * WITHIN or (depth <= sweep.shallow and best.t <= depth * WITHIN):
            return best
    directions = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Vec3)
    given = int(0)
    for i in range(rows.first, rows.first + rows.count):
        if rows.contact[i].separation < Real(0.0) and given < wp.static(FROM_CONTACTS):
            given = add_direction(
                directions, given, allowed_in(pair, surface, -rows.contact[i].normal)
            )
    best = search(pair, surface, sweep, best, as_vectors(directions), given)
    if best.t < bound * (Real(1.0) - EQUAL_DEPTH):
        sweep.in_region = 0
        best.t = Real(wp.inf)
        best = search(pair, surface, sweep, best, as_vectors(directions), given)
    return best


@wp.func
def without_deeper(sweep: Sweep, rows: PairContacts, kept: int) -> PairContacts:
    """The contacts without those of the sweep's region that are deeper than the one in row
    `kept`."""
    row = kept
    least = rows.contact[kept].separation - sweep.touch
    i = rows.first
    while i < rows.first + rows.count:
        if i != row and rows.contact[i].separation < least and is_of_region(sweep, rows.contact[i]):
            rows.count -= 1
            if rows.first + rows.count == row:
                row = i
            swap_contacts(rows.contact, i, rows.first + rows.count)
        else:
            i += 1
    return rows


@wp.func
def without_unproven(sweep: Sweep, before: PairContacts) -> PairContacts:
    """The contacts of a pair whose shape overlaps nothing of the sweep's region by more than a
    touch.

    Those of the region with a depth that EPA has not proved are dropped; the last contact of the
    pair has depth 0.
    """
    result = before
    i = result.first
    while i < result.first + result.count:
        contact = result.contact[i]
        is_wrong = (
            contact.role == UNPROVEN
            and contact.separation < -sweep.touch
            and is_of_region(sweep, contact)
        )
        if is_wrong and result.count == 1:
            result.contact[i].separation = Real(0.0)
        if is_wrong:
            result.changed = 1
        if is_wrong and result.count > 1:
            result.count -= 1
            swap_contacts(result.contact, i, result.first + result.count)
        else:
            i += 1
    return result


@wp.func(inline=False)
def settle_region(pair: Any, surface: Any, sweep: Sweep, before: PairContacts) -> PairContacts:
    """Replaces the deepest contact of the sweep's region by that of the least translation; drops
    deeper contacts."""
    result = before
    row = deepest_of_region(sweep, before)
    best = least_translation(pair, surface, sweep, before, row)
    result.exact = wp.min(result.exact, best.exact)
    if best.number < 0 and best.t == Real(0.0):
        return without_unproven(sweep, result)
    if best.number < 0 or best.t == Real(wp.inf):
        return result
    if row >= 0:
        is_parallel = wp.dot(best.direction, before.contact[row].normal) < Real(1.0e-12) - Real(1.0)
        if (
            is_parallel
            and wp.abs(best.t + before.contact[row].separation) <= EQUAL_DEPTH * sweep.size
        ):
            result.contact[row].role = OF_REGION
            return result
    else:
        if before.count >= before.capacity:
            result.exact = 0
            return result
        row = before.first + before.count
        result.count += 1
    best = with_last_triangle(pair, surface, sweep, best)
    result.contact[row] = contact_of(pair, surface, sweep, best)
    result.changed = 1
    return without_deeper(sweep, result, row)


@wp.func
def has_unlike_normals(sweep: Sweep, rows: PairContacts) -> bool:
    """Whether a contact that overlaps has another normal than the deepest."""
    deepest = deepest_of_region(sweep, rows)
    for i in range(rows.first, rows.first + rows.count):
        contact = rows.contact[i]
        if (
            contact.separation < Real(0.0)
            and wp.dot(contact.normal, rows.contact[deepest].normal) < ALIKE
        ):
            return True
    return False


@wp.func
def sweep_of(a: Any, surface: Any, query: Query, size_b: Vec3) -> Sweep:
    """The sweep of a convex shape against a surface of half extents size_b [m], without its arrays
    and regions."""
    sweep = Sweep()
    sweep.half = local_half_extents(a.type, a.size)
    sweep.size = wp.min(wp.length(a.size), wp.length(size_b))
    sweep.touch = LEAST_OVERLAP * wp.max(wp.length(a.size), wp.length(size_b))
    if is_one_sided(surface):
        sweep.shallow = SHALLOW * wp.min(wp.min(sweep.half), wp.max(size_b))
    pose = wp.transform_inverse(query.pose_b_to_a)
    box = bounding_box(a.type, a.size, pose, sweep.touch)
    sweep.lower = box.lower
    sweep.upper = box.upper
    sweep.middle = wp.transform_point(pose, middle_of(a))
    sweep.region_count = 1
    return sweep


@wp.func(inline=False)
def settle_pair(
    a: Any, surface: Any, query: Query, size_b: Vec3, is_proven: bool, before: PairContacts
) -> PairContacts:
    """Replaces the deepest contact of each region of a pair by that of the least translation.
    size_b: as `sweep_of`.

    is_proven: whether a shallow contact that nearly separates needs no search.
    """
    pair = minkowski_difference(a, TriangleShape(), query.pose_b_to_a)
    sweep = sweep_of(a, surface, query, size_b)
    if not is_proven:
        sweep.shallow = Real(0.0)
    recent = wp.zeros(shape=wp.static(RECENT), dtype=int)
    for k in range(wp.static(RECENT)):
        recent[k] = -1
    regions = wp.zeros(shape=wp.static(MAX_REGIONS), dtype=Region)
    sweep.recent = as_ints(recent)
    sweep.regions = as_regions(regions)
    # Where the middle of the shape is inside the solid, the overlap is taken as one region.
    if has_unlike_normals(sweep, before) and depth_inside(surface, sweep.middle) <= Real(0.0):
        sweep.region_count = wp.max(find_regions(pair, surface, sweep), 1)
    sweep.in_region = wp.where(sweep.region_count > 1, 1, 0)
    result = before
    for own in range(sweep.region_count):
        sweep.own = own
        result = settle_region(pair, surface, sweep, result)
    return result


@wp.struct
class FoundDepths:
    """Least separations of a pair's merged contacts [m], at most 0. nearest: of all. unproven: of
    those whose depth EPA has not proved. only_fallback: 1 where one of these is a fallback."""

    nearest: Real
    unproven: Real
    only_fallback: int


@wp.func
def found_depths(rows: PairContacts) -> FoundDepths:
    """The least separations of the contacts of a pair."""
    result = FoundDepths(Real(0.0), Real(0.0), 0)
    for i in range(rows.first, rows.first + rows.count):
        result.nearest = wp.min(result.nearest, rows.contact[i].separation)
        if rows.contact[i].role == UNPROVEN:
            result.unproven = wp.min(result.unproven, rows.contact[i].separation)
            if rows.contact[i].priority >= FALLBACK:
                result.only_fallback = 1
    return result


def settle_kernel(
    surfaces_type: Any, surface_of: Callable[..., Any], shape_a: Callable[..., Any]
) -> wp.Kernel:
    """The kernel that replaces depths of pairs of a convex shape and a surface by those of their
    regions.

    surface_of(rows, surfaces, query): the surface of a pair. shape_a: `primitive_of` or `hull_of`.
    """

    def settle_depths(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        bucket: Bucket,
        parts: int,
        sub_pair_end: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        most: int,
    ):
        """One thread per candidate of a bucket, whose contacts are merged, in `most` rows per
        sub-pair."""
        thread = wp.tid()
        candidate = candidate_of(bucket, thread)
        if candidate < 0:
            return
        held = sub_pair_range(sub_pair_end, thread, parts)
        count = candidates.found[candidate]
        before = PairContacts(
            contact, candidates.first[candidate], count, most * (held[1] - held[0]), 0, 1
        )
        depths = found_depths(before)
        if depths.nearest < Real(0.0):
            query = query_of(
                rows, margins, instances, candidates.pair[candidate], candidates.row[candidate]
            )
            a = shape_a(rows, query.row_a)
            surface = surface_of(rows, surfaces, query)
            size_b = rows.size[query.row_b]
            least = wp.min(wp.min(local_half_extents(a.type, a.size)), wp.max(size_b))
            # A contact with a triangle at a sharp edge need not be the least translation, however
            # shallow. Touches are settled along the surface's normals: their directions are
            # rounding.
            is_proven = (
                depths.unproven >= -TOUCHING * wp.max(wp.length(a.size), wp.length(size_b))
                and depths.only_fallback == 0
            )
            if (
                not is_proven
                or depths.nearest < -wp.where(is_one_sided(surface), TOUCHING, SHALLOW) * least
            ):
                settled = settle_pair(a, surface, query, size_b, is_proven, before)
                if settled.exact == 0:
                    wp.atomic_add(bucket.inexact, 0, 1)
                if settled.changed == 1:
                    row = candidates.row[candidate]
                    swapped = rows.type[row[0]] > rows.type[row[1]]
                    count = unique_by_feature(contact, before.first, settled.count, swapped)
                    record_found(candidates, candidate, count, bucket.limit)

    return surface_kernel(settle_depths, surfaces_type)
