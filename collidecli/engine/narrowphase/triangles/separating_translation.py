"""The translation of the second surface of a pair along a direction that separates a region of their overlap.

At a translation, every pair of triangles that crosses within the region gives the translation at which the pair ceases
to overlap (`closest_points.sweep_interval`, a separating axis test). The greatest of these is the next translation,
until no pair crosses. A closed surface may then still contain a part of the other: the translation advances to that at
which the deepest inner point of the region exits.

The frame is that of surface a, a mesh; b moves along the direction.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import (
    CROSSING_A,
    CROSSING_B,
    FALLBACK,
    INNER_B,
    OF_REGION,
    SPARE,
    SPARE_UNTESTED,
    ContactRecord,
)
from collidecli.engine.geometry.closest_points import (
    SAME_EXIT,
    Segment,
    SweepInterval,
    TrianglePair,
    closest_points,
    perpendicular,
    sweep_interval,
)
from collidecli.engine.geometry.meshes import FACE_PART, Meshes
from collidecli.engine.geometry.real import Real, Vec3, array_of
from collidecli.engine.narrowphase.contact_merging import sort_contacts
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.surface import (
    AS_IT_IS,
    begin_in_box,
    boxes_intersect,
    chord_of,
    corner_on,
    feature_on,
    first_exit,
    first_face_of,
    is_within,
    mesh_arrays,
    nearest_on,
    next_in_box,
    surface_clearance,
)
from collidecli.engine.narrowphase.triangles.surface_pair import (
    CAPACITY,
    OverlapRegion,
    SurfacePair,
    add_crossings,
    as_pairs,
    as_regions,
    box_in_b,
    crossing_of_pair,
    exchange_rows,
    exchanged_pair,
    inner_regions,
    nudged,
    triangles_of_pair,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an `and`.
# ruff: noqa: SIM102

as_vectors = array_of(Vec3, "as_vectors")

SAMPLES = wp.constant(5)
"""Number of triangles whose centroids are sampled, see `clear_point`."""


@wp.func(inline=False)
def inner_exit(source: Any, pair: SurfacePair, region: OverlapRegion, direction: Vec3, translation: Real) -> Real:
    """The translation at which the region's inner points exit, if one is still inside; else `translation`.

    Up to that translation the point is inside, independent of crossings.
    """
    result = translation
    length = Real(2.0) * pair.span
    if region.depth_b > Real(0.0) and pair.closed_a == 1:
        point = region.inner_b + translation * direction
        if is_within(source, pair.a, point):
            leaves = chord_of(source, pair.a, point, point + length * direction, Real(0.0), AS_IT_IS)[1]
            result = wp.max(result, translation + leaves * length)
    if region.depth_a > Real(0.0) and pair.closed_b == 1:
        into_b = wp.transform_inverse(pair.pose_b_to_a)
        point = wp.transform_point(into_b, region.inner_a - translation * direction)
        if is_within(source, pair.b, point):
            end = point - length * wp.transform_vector(into_b, direction)
            leaves = chord_of(source, pair.b, point, end, Real(0.0), AS_IT_IS)[1]
            result = wp.max(result, translation + leaves * length)
    return result


@wp.func(inline=False)
def clear_point(source: Any, pair: SurfacePair, of_a: bool, translation: Vec3) -> Vec3:
    """The sample point of one mesh that is farthest from the other surface, in the other's frame.

    The samples are the centroids of SAMPLES triangles. Without crossings, any point that is not on the other surface
    decides on which side of it the whole of a connected mesh is.
    """
    shape = wp.where(of_a, pair.a, pair.b)
    other = wp.where(of_a, pair.b, pair.a)
    meshes = mesh_arrays(source)
    first = meshes.arrays[0].header[shape].first_node
    count = meshes.arrays[0].header[shape].end_node - first
    result = Vec3()
    farthest = Real(-1.0)
    for k in range(SAMPLES):
        node = first + (count * k) / SAMPLES
        while meshes.arrays[0].leaf[node] < 0:
            node += 1
        face = meshes.arrays[0].leaf[node]
        point = (
            corner_on(source, shape, face, 0) + corner_on(source, shape, face, 1) + corner_on(source, shape, face, 2)
        )
        point = point / Real(3.0)
        if of_a:
            point = wp.transform_point(wp.transform_inverse(pair.pose_b_to_a), point - translation)
        else:
            point = wp.transform_point(pair.pose_b_to_a, point) + translation
        square = nearest_on(source, other, point).square
        if square > farthest:
            farthest = square
            result = point
    return result


@wp.func(inline=False)
def engulfed_exit(source: Any, pair: SurfacePair, direction: Vec3, translation: Real) -> Real:
    """The translation at which a mesh that is wholly inside the other exits, if one is; else `translation`.

    Requires that no triangles cross at `translation`.
    """
    result = translation
    length = Real(2.0) * pair.span
    moved = translation * direction
    if pair.closed_a == 1 and pair.b >= 0:
        point = clear_point(source, pair, False, moved)
        if is_within(source, pair.a, point):
            result += chord_of(source, pair.a, point, point + length * direction, Real(0.0), AS_IT_IS)[1] * length
    if pair.closed_b == 1 and result == translation:
        point = clear_point(source, pair, True, moved)
        if is_within(source, pair.b, point):
            along = wp.transform_vector(wp.transform_inverse(pair.pose_b_to_a), direction)
            result += chord_of(source, pair.b, point, point - length * along, Real(0.0), AS_IT_IS)[1] * length
    return result


MAX_ADVANCES = wp.constant(256)
"""Greatest number of translations along one direction; each separates at least one pair of triangles."""
PROBES = wp.constant(2)
"""Translations up to the limit that are probed for a direction before its exit is computed step by step."""
LEVEL = wp.constant(Real(1.0e-9))
"""Sine of the angle up to which a direction is not blocked."""
PERPENDICULAR = wp.constant(Real(1.0e-6))
"""Cosine of the angle of two directions up to which one does not point along the other: the normals of faces at right
angles have a cosine of rounding."""
BACK = wp.constant(Real(8.0))
"""Multiple of `SurfacePair.touch` by which the search steps back from the exit of a point, to find the triangles there.
"""
RECENT = 32
"""Capacity of the cache of pairs of triangles, see `past_recent`."""


@wp.struct
class Exit:
    """The exit of a region along a direction. translation [m]; found: 0 where the exit is not before the limit.

    face_a, face_b: the triangles of a and b that touch last, or -1. axis: the unit normal between them, a to b.
    exact: 0 where the search ended at MAX_ADVANCES.
    """

    translation: Real
    found: int
    face_a: int
    face_b: int
    axis: Vec3
    exact: int


@wp.func
def is_in_region(region: OverlapRegion, moved: Vec3, low: Vec3, high: Vec3) -> bool:
    """Whether a box intersects the box of a region, either fixed to a or moved with b."""
    return boxes_intersect(low, high, region.low, region.high) or boxes_intersect(
        low, high, region.low + moved, region.high + moved
    )


@wp.func
def crossing_box(pair: SurfacePair, triangles: TrianglePair, moved: Vec3) -> Segment:
    """The corners of the box, grown by a touch, of the segment in which two triangles cross after a translation."""
    placed = triangles
    placed.a += moved
    placed.b += moved
    placed.c += moved
    crossing = crossing_of_pair(pair, placed)
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    low = wp.min(crossing.start, crossing.end) - grown
    return Segment(low, wp.max(crossing.start, crossing.end) + grown)


@wp.func
def is_in_others(pair: SurfacePair, moved: Vec3, low: Vec3, high: Vec3) -> bool:
    """Whether a box intersects that of another region than the one that is separated."""
    result = bool(False)
    for k in range(pair.region_count):
        if k != pair.own:
            result = result or is_in_region(pair.regions[k], moved, low, high)
    return result


@wp.func(inline=False)
def is_of_others(
    pair: SurfacePair, triangles: TrianglePair, direction: Vec3, interval: SweepInterval, translation: Real
) -> bool:
    """Whether two triangles that cross at a translation do so in another region, and not in the one to be separated.

    They belong to the region in which they begin to cross: where the region that is separated moves into the box of
    another, its triangles still are its own. Those of another region count once they are outside of its box.
    """
    begins = Real(0.0)
    if interval.start > Real(0.0):
        begins = wp.min(interval.start + pair.touch, translation)
    first = crossing_box(pair, triangles, begins * direction)
    if is_in_region(pair.regions[pair.own], begins * direction, first.start, first.end):
        return False
    if not is_in_others(pair, begins * direction, first.start, first.end):
        return False
    box = crossing_box(pair, triangles, translation * direction)
    return is_in_others(pair, translation * direction, box.start, box.end)


@wp.func
def precede(face_a: int, face_b: int, other_a: int, other_b: int) -> bool:
    """Whether two triangles of a and b have lower numbers than two others."""
    return face_a < other_a or (face_a == other_a and face_b < other_b)


@wp.func(inline=False)
def later_exit(
    source: Any, pair: SurfacePair, direction: Vec3, translation: Real, face_a: int, face_b: int, before: Exit
) -> Exit:
    """The later of `before` and the exit of a pair of triangles, if the pair crosses at a translation.

    Of exits that are equal to SAME_EXIT it has the triangles with the lowest numbers.
    """
    triangles = triangles_of_pair(source, pair, face_a, face_b)
    after = translation + pair.touch
    after = translation + pair.ignored
    same = SAME_EXIT * pair.touch
    least = wp.max(after, before.translation - same)
    interval = sweep_interval(triangles, direction, least, pair.tie)
    if interval.end <= least or interval.start >= after:
        return before
    is_same = before.found == 1 and interval.end <= before.translation + same
    if is_same and interval.end <= before.translation:
        if not precede(face_a, face_b, before.face_a, before.face_b):
            return before
    if pair.region_count > 1:
        if is_of_others(pair, triangles, direction, interval, translation):
            return before
    result = before
    result.translation = wp.max(interval.end, before.translation)
    result.found = 1
    if not is_same or precede(face_a, face_b, before.face_a, before.face_b):
        result.face_a = face_a
        result.face_b = face_b
        result.axis = interval.axis
    return result


@wp.func(inline=False)
def latest_exit(source: Any, pair: SurfacePair, direction: Vec3, translation: Real, limit: Real) -> Exit:
    """The latest exit of all pairs of triangles that cross at a translation; the search ends at an exit >= limit.

    Crossings in other regions do not count, neither where the region is on a nor where it has moved with b. All other
    crossings count, also those with parts of a that b reaches only by its translation.
    """
    latest = Exit()
    latest.exact = 1
    latest.translation = translation + pair.ignored
    moved = translation * direction
    meshes = mesh_arrays(source)
    node = meshes.arrays[0].header[pair.a].first_node
    stop = meshes.arrays[0].header[pair.a].end_node
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    while node < stop and (latest.found == 0 or latest.translation < limit):
        half = Real(0.5) * (meshes.arrays[0].upper[node] - meshes.arrays[0].lower[node])
        middle = wp.transform_point(into_b, meshes.arrays[0].lower[node] + half - moved)
        if surface_clearance(source, pair.b, middle) > wp.length(half) + pair.grown:
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        node += 1
        if face >= 0:
            extent = box_in_b(pair, half)
            low = middle - extent
            high = middle + extent
            cursor = begin_in_box(source, pair.b, low, high)
            while cursor.number >= 0 and (latest.found == 0 or latest.translation < limit):
                latest = later_exit(source, pair, direction, translation, face, cursor.number, latest)
                cursor = next_in_box(source, pair.b, cursor, low, high)
    return latest


@wp.func(inline=False)
def past_recent(source: Any, pair: SurfacePair, direction: Vec3, translation: Real, limit: Real) -> Exit:
    """The translation, from `translation` on, up to which some cached pair of triangles crosses throughout.

    Pairs that crossed along one direction mostly cross along the next: most directions need no BVH traversal.
    """
    last = Exit()
    last.exact = 1
    last.face_a = -1
    last.translation = translation
    before = Real(-1.0)
    while last.translation > before and last.translation < limit:
        before = last.translation
        for k in range(wp.static(RECENT)):
            if pair.recent[k][1] != 0 and last.translation < limit:
                latest = Exit()
                latest.exact = 1
                latest.translation = last.translation + pair.touch
                latest = later_exit(
                    source, pair, direction, last.translation, pair.recent[k][0], pair.recent[k][1] - 1, latest
                )
                if latest.found == 1:
                    last = latest
    return last


@wp.func
def remember(source: Any, pair: SurfacePair, latest: Exit):
    """Caches a pair of triangles, in place of the previous pair in its slot. The face of b is stored plus one.

    The slot depends on the triangles' numbers within their surfaces, so that other shapes of a scene change nothing.
    """
    if latest.found == 1:
        number_a = latest.face_a - first_face_of(source, pair.a)
        number_b = latest.face_b - first_face_of(source, pair.b)
        pair.recent[(number_a * 31 + number_b) % wp.static(RECENT)] = wp.vec2i(latest.face_a, latest.face_b + 1)


@wp.func(inline=False)
def is_separated(source: Any, pair: SurfacePair, direction: Vec3, translation: Real) -> bool:
    """Whether nothing crosses or is inside after a translation of b, apart from other regions."""
    if inner_exit(source, pair, pair.regions[pair.own], direction, translation) > translation + pair.touch:
        return False
    if latest_exit(source, pair, direction, translation, translation).found == 1:
        return False
    return pair.region_count > 1 or engulfed_exit(source, pair, direction, translation) <= translation + pair.touch


@wp.func
def just_before(pair: SurfacePair, translation: Real, least: Real) -> Real:
    """A translation slightly before the given one, at which triangles that separate there still cross; at least
    `least`."""
    before = translation - BACK * pair.touch
    return wp.where(before > least + BACK * pair.touch, before, translation)


@wp.func(inline=False)
def exit_without_crossing(
    source: Any, pair: SurfacePair, region: OverlapRegion, direction: Vec3, translation: Real, limit: Real
) -> Exit:
    """The exit of a region whose points leave at a translation at which no triangles cross, as parallel faces do.

    What follows these faces crosses a little further on: its exit. Else theirs, with the triangles at the inner point.
    """
    result = latest_exit(source, pair, direction, translation + BACK * pair.touch, limit)
    if result.found == 1:
        return result
    result.translation = translation
    if region.depth_a <= Real(0.0) and region.depth_b <= Real(0.0):
        return result
    moved = wp.max(translation - BACK * pair.touch, Real(0.0)) * direction
    point = wp.where(region.depth_b > Real(0.0), region.inner_b + moved, region.inner_a)
    in_b = wp.transform_point(wp.transform_inverse(pair.pose_b_to_a), point - moved)
    result.face_a = nearest_on(source, pair.a, point).face
    result.face_b = nearest_on(source, pair.b, in_b).face
    result.axis = direction
    result.found = wp.where(wp.min(result.face_a, result.face_b) >= 0, 1, 0)
    return result


@wp.func(inline=False)
def exit_to_the_last(
    source: Any, pair: SurfacePair, direction: Vec3, translation: Real, before: Exit
) -> Exit:
    """The exit `before` at a translation, with the triangles that touch last of all that cross just before it.

    The steps of the search end where surfaces overlap by no more than a touch: without these last
    triangles a direction beside the least one would seem shorter by that much. Which triangles the
    search has found last depends on the directions that were tried before.
    """
    result = before
    result.translation = translation
    result.found = 1
    to_the_last = pair
    to_the_last.ignored = Real(0.0)
    start = wp.max(translation - BACK * pair.touch, Real(0.5) * translation)
    latest = latest_exit(source, to_the_last, direction, start, Real(2.0) * pair.span)
    is_at = wp.abs(latest.translation - translation) <= pair.touch
    if latest.found == 1 and is_at:
        result.translation = wp.max(latest.translation, translation)
        result.face_a = latest.face_a
        result.face_b = latest.face_b
        result.axis = latest.axis
    return result


@wp.func(inline=False)
def exit_along(source: Any, pair: SurfacePair, direction: Vec3, limit: Real) -> Exit:
    """The least translation of b along a unit direction that separates a region, if it is shorter than `limit` [m].

    Degenerate: surfaces that only touch, to `pair.touch`, are separated.
    """
    last = Exit()
    last.exact = 1
    last.face_a = -1
    region = pair.regions[pair.own]
    if wp.length_sq(region.front) > Real(0.0):
        if wp.dot(direction, region.front) <= PERPENDICULAR * wp.length(region.front):
            return last
    if wp.dot(direction, pair.blocked) > LEVEL:
        return last
    inner = inner_exit(source, pair, region, direction, Real(0.0))
    if inner >= limit:
        return last
    last = past_recent(source, pair, direction, just_before(pair, inner, Real(0.0)), limit)
    translation = last.translation
    if translation >= limit:
        last.found = 0
        return last
    if limit < pair.span:
        # Most directions are rejected here. At a short translation, separated surfaces may cross again further on.
        is_free = bool(False)
        for k in range(PROBES):
            if not is_free:
                probed = translation + (limit - translation) * (Real(1.0) - Real(k) / Real(PROBES))
                last_exit = latest_exit(source, pair, direction, probed, probed)
                remember(source, pair, last_exit)
                is_free = last_exit.found == 0
        if not is_free:
            last.found = 0
            return last
    for _step in range(MAX_ADVANCES):
        latest = latest_exit(source, pair, direction, translation, limit)
        if latest.found == 1:
            last = latest
            remember(source, pair, latest)
            translation = latest.translation
        else:
            beyond = inner_exit(source, pair, region, direction, translation)
            if beyond <= translation + pair.touch and pair.region_count == 1:
                beyond = engulfed_exit(source, pair, direction, translation)
            if beyond <= translation + pair.touch:
                if last.face_a >= 0:
                    last = exit_to_the_last(source, pair, direction, translation, last)
                    last.found = wp.where(last.translation < limit, 1, 0)
                    return last
                last = exit_without_crossing(source, pair, region, direction, translation, limit)
                if last.found == 0 or last.translation <= translation:
                    return last
                translation = last.translation
            else:
                translation = just_before(pair, beyond, translation)
                last.face_a = -1
        if translation >= limit:
            last.found = 0
            return last
    last.found = 0
    last.exact = 0
    return last


# The depth of a region of overlap, its least translation.
#
# The depth of an inner point is a lower bound: no shorter translation separates it from the other surface. The
# translation along the normal of the deepest contact is an upper bound. Where the two agree to ACCURACY, as for
# shallow contacts, the contacts stay unchanged. Otherwise `search_all` minimises the translation over directions. It
# starts from the contacts' normals, from their successive projections and from fixed directions; from each it
# continues with the normals of the triangles that touch last, along which the least translation of a convex overlap
# lies. It ends with a pattern search of decreasing angles around the best direction. See docs/adr/0065.

NO_LONGER = wp.constant(Real(1.0 - 1.0e-6))
"""Factor by which a translation must be shorter than the best to replace it."""
SAME_DIRECTION = wp.constant(Real(0.99))
"""Cosine of the angle between two contacts' normals above which only the first is tried."""
MAX_NORMALS = 24
"""Greatest number of contacts' normals that are tried: the deepest of each bundle of similar normals."""
PARALLEL = wp.constant(Real(1.0 - 1.0e-12))
"""Cosine above which two unit vectors are equal."""
MAX_FACETS = wp.constant(8)
"""Greatest number of times that the search continues with the normal of the triangles that touch last."""
PROJECTIONS = wp.constant(32)
"""Number of cycles of successive projections onto the half-spaces of the contacts."""
SPREAD = wp.constant(3)
"""The fixed directions are those of a grid on a cube, 2 SPREAD + 1 points per side: 218, some 14 degrees apart."""
NEAR = wp.constant(Real(0.1))
"""Fraction of half of the smaller surface's longest side: where the contacts' normals give a translation no longer than
this, the fixed directions are not tried. Of 360 poses as shallow none has a translation shorter by 2 %."""
FIRST_TURN = wp.constant(Real(0.3))
MAX_TURNS = wp.constant(64)
"""Greatest number of steps of the pattern search."""
LAST_TURN = wp.constant(Real(0.004))
"""First and last angle [rad] of the pattern search: an angle error e lengthens a translation of slope s by e s."""


@wp.struct
class Search:
    """The best translation of a region so far.

    direction: unit, a's frame. is_level: 1 where that is the normal of the triangles that touch last.
    exact: 0 where any exit was not exact.
    """

    direction: Vec3
    exit: Exit
    is_level: int
    exact: int


@wp.func(inline=False)
def try_direction(source: Any, pair: SurfacePair, direction: Vec3, before: Search) -> Search:
    """The shortest of `before`, the translation along a direction, and those along the normals that follow from it.

    Along a normal of the surfaces that touch last a translation may be longer by a touch: of a
    shallow overlap a direction beside the normal is not told apart by its length.
    """
    best = before
    tried = direction
    for _step in range(MAX_FACETS):
        shorter = best.exit.translation * NO_LONGER
        allowed = wp.where(best.is_level == 1, shorter - pair.touch, shorter)
        tried_exit = exit_along(source, pair, tried, wp.max(allowed, shorter + pair.touch))
        best.exact = wp.min(best.exact, tried_exit.exact)
        if tried_exit.found == 0:
            return best
        is_level = wp.dot(tried_exit.axis, tried) > PARALLEL
        if is_level:
            allowed = wp.where(best.is_level == 1, shorter, shorter + pair.touch)
        if tried_exit.translation < allowed:
            best.direction = tried
            best.exit = tried_exit
            best.is_level = wp.where(is_level, 1, 0)
        if is_level:
            return best
        tried = tried_exit.axis
    return best


@wp.func(inline=False)
def refined(source: Any, pair: SurfacePair, before: Search) -> Search:
    """The search after a pattern search around its best direction, with halved angles where no turn shortens it."""
    best = before
    angle = FIRST_TURN
    turns = int(0)
    while angle >= LAST_TURN and turns < MAX_TURNS:
        turns += 1
        u = perpendicular(best.direction)
        v = wp.cross(best.direction, u)
        length = best.exit.translation
        for k in range(9):
            if k != 4 and best.exit.translation == length:
                turn = wp.normalize(Real(k / 3 - 1) * u + Real(k % 3 - 1) * v)
                best = try_direction(source, pair, wp.normalize(best.direction + angle * turn), best)
        if best.exit.translation == length:
            angle = Real(0.5) * angle
    return best


@wp.func
def is_of_region(pair: SurfacePair, contact: ContactRecord) -> bool:
    """Whether a contact's witness points are in the box of the region that is being separated."""
    region = pair.regions[pair.own]
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    other = contact.point + contact.separation * contact.normal
    low = wp.min(contact.point, other) - grown
    high = wp.max(contact.point, other) + grown
    return boxes_intersect(low, high, region.low, region.high)


@wp.func
def is_measured(contact: ContactRecord) -> bool:
    """Whether a contact's separation is that of its features: neither left open for a region nor that of a region."""
    return contact.role <= INNER_B


@wp.func
def has_lower_features(x: ContactRecord, y: ContactRecord) -> bool:
    """Whether a contact's features have lower numbers than another's."""
    return precede(x.feature_a, x.feature_b, y.feature_a, y.feature_b)


@wp.func(inline=False)
def deepest_of_region(pair: SurfacePair, rows: ContactRows, tried: wp.array[Vec3], count: int) -> int:
    """Row of the region's deepest contact whose normal is not among `count` tried ones, -1 for none.

    This order does not depend on the order of the contacts. Of contacts that are equally deep, to a touch, the first is
    the one with the lowest features. Contacts that only touch do not count: which there are depends on the maximum
    separation.
    """
    result = int(-1)
    least = Real(0.0)
    for i in range(rows.first, rows.end):
        contact = rows.contact[i]
        comes_first = contact.separation < least - pair.touch
        if not comes_first and result >= 0 and contact.separation <= least + pair.touch:
            comes_first = has_lower_features(contact, rows.contact[result])
        if comes_first and contact.separation < -pair.touch and is_measured(contact) and is_of_region(pair, contact):
            is_new = bool(True)
            for k in range(count):
                is_new = is_new and wp.dot(tried[k], contact.normal) < SAME_DIRECTION
            if is_new:
                least = wp.min(least, contact.separation)
                result = i
    return result


@wp.func(inline=False)
def search_normals(source: Any, pair: SurfacePair, rows: ContactRows, before: Search) -> Search:
    """The search after trying the normals of the region's contacts."""
    best = before
    tried = wp.zeros(shape=wp.static(MAX_NORMALS), dtype=Vec3)
    count = int(0)
    while count < wp.static(MAX_NORMALS):
        deepest = deepest_of_region(pair, rows, as_vectors(tried), count)
        if deepest < 0:
            return best
        tried[count] = rows.contact[deepest].normal
        best = try_direction(source, pair, tried[count], best)
        count += 1
    return best


@wp.func(inline=False)
def projected_translation(pair: SurfacePair, rows: ContactRows, of_region: bool) -> Vec3:
    """A short translation in the half-spaces of all contacts, each bounded by a plane; zero without contacts [m].

    Cyclic projections onto the half-spaces. of_region: whether only the region's contacts count.
    Source: Bregman 1965, successive projections.
    """
    result = Vec3()
    for _pass in range(PROJECTIONS):
        for i in range(rows.first, rows.end):
            contact = rows.contact[i]
            if contact.separation < -pair.touch and is_measured(contact):
                lacks = -contact.separation - wp.dot(contact.normal, result)
                if lacks > Real(0.0) and (not of_region or is_of_region(pair, contact)):
                    result += lacks * contact.normal
    return result


@wp.func(inline=False)
def search_all(source: Any, pair: SurfacePair, rows: ContactRows, before: Search) -> Search:
    """The least translation over the contacts' normals, their projected translations and, unless it is short, the fixed
    directions, then refined."""
    best = search_normals(source, pair, rows, before)
    for turn in range(2):  # the contacts of the region, then all of the pair
        translation = projected_translation(pair, rows, turn == 0)
        if wp.length_sq(translation) > Real(0.0):
            best = try_direction(source, pair, wp.normalize(translation), best)
    if best.exit.found == 1 and best.exit.translation <= NEAR * pair.size:
        return refined(source, pair, best)
    for x in range(-SPREAD, SPREAD + 1):
        for y in range(-SPREAD, SPREAD + 1):
            for z in range(-SPREAD, SPREAD + 1):
                if wp.max(wp.abs(x), wp.max(wp.abs(y), wp.abs(z))) == SPREAD:
                    spread = wp.normalize(Vec3(Real(x), Real(y), Real(z)))
                    best = try_direction(source, pair, spread, best)
    return refined(source, pair, best)


ACCURACY = wp.constant(Real(1.03))
"""Greatest ratio of a translation to its lower bound without a search."""
SHALLOW = wp.constant(Real(0.02))
"""Fraction of half of the smaller surface's longest side: a translation no longer than this is not searched further."""
SAME_DEPTH = wp.constant(Real(1.0 + 1.0e-9))
"""Factor below which two depths are equal."""


@wp.func(inline=False)
def region_contact(source: Any, pair: SurfacePair, best: Search) -> ContactRecord:
    """The contact of a region: its least translation, at the closest points of the triangles that touch last."""
    triangles = triangles_of_pair(source, pair, best.exit.face_a, best.exit.face_b)
    moved = best.exit.translation * best.direction
    triangles.a += moved
    triangles.b += moved
    triangles.c += moved
    points = closest_points(triangles)
    contact = ContactRecord()
    contact.point = points.fixed
    contact.normal = best.direction
    contact.separation = -best.exit.translation
    contact.feature_a = feature_on(source, pair.a, best.exit.face_a, points.part_fixed)
    contact.feature_b = feature_on(source, pair.b, best.exit.face_b, points.part_moving)
    contact.role = OF_REGION
    return contact


@wp.func(inline=False)
def measured_crossing(
    source: Any, pair: SurfacePair, best: Search, crossing: ContactRecord
) -> ContactRecord:
    """The contact of a point that passes through a surface: its exit along the region's direction.

    Its separation stays infinite where the point is not behind the surface within the translation,
    or is not of the region.
    """
    length = best.exit.translation * SAME_DEPTH + pair.touch
    moved = length * best.direction
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    of_a = crossing.role == CROSSING_A
    other = wp.where(of_a, pair.b, pair.a)
    start = Vec3(crossing.point)
    end = crossing.point + moved
    if of_a:
        start = wp.transform_point(into_b, crossing.point)
        end = wp.transform_point(into_b, crossing.point - moved)
    part = first_exit(source, other, start, end, pair.touch)
    if part > Real(1.0):
        return crossing
    exit_point = crossing.point + wp.where(of_a, -part, part) * moved
    result = crossing
    result.separation = -part * length
    result.normal = best.direction
    if not of_a:
        result.point = exit_point
    if not is_of_region(pair, result):
        return crossing
    closest = nearest_on(source, other, start + part * (end - start))
    feature = feature_on(source, other, closest.face, FACE_PART)
    result.priority = 0
    result.role = OF_REGION
    if of_a:
        result.feature_b = feature
    else:
        result.feature_a = feature
    return result


@wp.func
def emit_spare(rows: ContactRows, contact: ContactRecord):
    """Writes a contact into the first spare row; there is one spare row per region."""
    for i in range(rows.first, rows.end):
        if rows.contact[i].role == SPARE or rows.contact[i].role == SPARE_UNTESTED:
            rows.contact[i] = contact
            return


@wp.func(inline=False)
def measure_region(source: Any, pair: SurfacePair, rows: ContactRows) -> int:
    """Writes the contacts of a region; returns 0 where the search ended at its greatest number of steps."""
    region = pair.regions[pair.own]
    recent = wp.zeros(shape=wp.static(RECENT), dtype=wp.vec2i)
    pair.recent = as_pairs(recent)
    tried = wp.zeros(shape=1, dtype=Vec3)
    deepest = deepest_of_region(pair, rows, as_vectors(tried), 0)
    best = Search()
    best.exact = 1
    lower = wp.max(region.depth_a, region.depth_b)
    stays = int(-1)
    best.exit.translation = Real(2.0) * pair.span
    if deepest >= 0:
        normal = rows.contact[deepest].normal
        depth = -rows.contact[deepest].separation
        best.direction = normal
        if is_separated(source, pair, normal, depth + pair.touch):
            stays = deepest
            best.exit.found = 1
            best.exit.translation = depth
        else:
            tried_exit = exit_along(source, pair, normal, best.exit.translation)
            if tried_exit.found == 1:
                best.exit = tried_exit
    is_known = stays >= 0 and best.exit.translation <= SHALLOW * pair.size
    if not is_known and (best.exit.found == 0 or best.exit.translation > ACCURACY * lower + pair.touch):
        length = best.exit.translation
        best = search_all(source, pair, rows, best)
        if best.exit.translation < length:
            stays = -1
    if best.exit.found == 0:
        return 0
    for i in range(rows.first, rows.end):
        contact = rows.contact[i]
        if not is_measured(contact):
            if contact.role == CROSSING_A or contact.role == CROSSING_B:
                rows.contact[i] = measured_crossing(source, pair, best, contact)
        elif is_of_region(pair, contact):
            along = wp.dot(contact.normal, best.direction)
            is_deeper = -contact.separation > best.exit.translation * SAME_DEPTH + pair.touch
            if is_deeper or (stays < 0 and along <= PERPENDICULAR):
                rows.contact[i].separation = Real(wp.inf)
                rows.contact[i].priority = FALLBACK
    if stays < 0:
        emit_spare(rows, region_contact(source, pair, best))
    else:
        rows.contact[stays].priority = 0
        rows.contact[stays].role = OF_REGION
    return best.exact


@wp.func(inline=False)
def measure_regions(source: Any, pair: SurfacePair, rows: ContactRows) -> int:
    """Replaces a pair's contacts by those of its regions of overlap.

    Returns 0 where the search ended at its greatest number of steps.
    """
    # Rows come in the order of the BVHs, which rounding may choose; projections depend on the order.
    sort_contacts(rows.contact, rows.first, rows.end - rows.first, False)
    regions = wp.zeros(shape=wp.static(CAPACITY + 1), dtype=OverlapRegion)
    crossings = add_crossings(source, pair, as_regions(regions))
    count = inner_regions(rows, as_regions(regions), crossings[0])
    if crossings[1] == 1:
        # Surfaces may pass through each other along sides and vertices of triangles, here or all
        # around. Closed meshes with points in a heightfield leave it by these.
        pair = nudged(pair, rows)
        crossings = add_crossings(source, pair, as_regions(regions))
        count = inner_regions(rows, as_regions(regions), crossings[0])
    pair.regions = as_regions(regions)
    pair.region_count = count
    exact = int(1)
    for k in range(count):
        pair.own = k
        exact = wp.min(exact, measure_region(source, pair, rows))
    return exact


@wp.func(inline=False)
def measure_meshes(meshes: Meshes, pair: SurfacePair, rows: ContactRows) -> int:
    """As `measure_regions`, for two meshes, in the frame of the mesh with more triangles.

    So the search does not depend on the order of the shapes in the scene, unless both have equally many triangles.
    """
    size_a = meshes.arrays[0].header[pair.a].end_node - meshes.arrays[0].header[pair.a].first_node
    size_b = meshes.arrays[0].header[pair.b].end_node - meshes.arrays[0].header[pair.b].first_node
    if size_a >= size_b:
        return measure_regions(meshes, pair, rows)
    turned = exchanged_pair(pair)
    exchange_rows(rows, pair.pose_b_to_a)
    exact = measure_regions(meshes, turned, rows)
    exchange_rows(rows, turned.pose_b_to_a)
    return exact
