"""The translation of the second surface of a pair along a direction that separates a region of their overlap.

At a translation, every pair of triangles that crosses within the region gives the translation at which the pair ceases
to overlap (`triangle_pair.sweep_interval`, a separating axis test). The greatest of these is the next translation,
until no pair crosses. A closed surface may then still contain a part of the other: the translation advances to that at
which the deepest inner point of the region exits.

The frame is that of surface a, a mesh; b moves along the direction.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.triangle_pair import Segment, crossing_segment, sweep_interval
from collidecli.engine.narrowphase.triangles.surface_interior import chord_of, is_within, nearest_on, surface_clearance
from collidecli.engine.narrowphase.triangles.surface_pair import OverlapRegion, SurfacePair, box_in_b, triangles_of_pair
from collidecli.engine.narrowphase.triangles.triangle_source import (
    begin_in_box,
    boxes_intersect,
    corner_on,
    first_face_of,
    mesh_arrays,
    next_in_box,
)

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
            leaves = chord_of(source, pair.a, point, point + length * direction, Real(0.0))[1]
            result = wp.max(result, translation + leaves * length)
    if region.depth_a > Real(0.0) and pair.closed_b == 1:
        into_b = wp.transform_inverse(pair.pose_b_to_a)
        point = wp.transform_point(into_b, region.inner_a - translation * direction)
        if is_within(source, pair.b, point):
            end = point - length * wp.transform_vector(into_b, direction)
            leaves = chord_of(source, pair.b, point, end, Real(0.0))[1]
            result = wp.max(result, translation + leaves * length)
    return result


@wp.func(inline=False)
def clear_point(source: Any, pair: SurfacePair, of_a: bool, translation: Vec3) -> Vec3:
    """The sample point of one mesh that is farthest from the other surface, in the other's frame.

    The samples are the centroids of SAMPLES triangles. Without crossings, any point that is not on the other surface
    decides on which side of it the whole of a connected mesh is.
    """
    own = wp.where(of_a, pair.a, pair.b)
    other = wp.where(of_a, pair.b, pair.a)
    meshes = mesh_arrays(source)
    first = meshes.arrays[0].header[own].first_node
    count = meshes.arrays[0].header[own].end_node - first
    result = Vec3()
    farthest = Real(-1.0)
    for k in range(SAMPLES):
        node = first + (count * k) / SAMPLES
        while meshes.arrays[0].leaf[node] < 0:
            node += 1
        face = meshes.arrays[0].leaf[node]
        point = corner_on(source, own, face, 0) + corner_on(source, own, face, 1) + corner_on(source, own, face, 2)
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
            result += chord_of(source, pair.a, point, point + length * direction, Real(0.0))[1] * length
    if pair.closed_b == 1 and result == translation:
        point = clear_point(source, pair, True, moved)
        if is_within(source, pair.b, point):
            along = wp.transform_vector(wp.transform_inverse(pair.pose_b_to_a), direction)
            result += chord_of(source, pair.b, point, point - length * along, Real(0.0))[1] * length
    return result


MAX_ADVANCES = wp.constant(256)
"""Greatest number of translations along one direction; each separates at least one pair of triangles."""
PROBES = wp.constant(2)
"""Translations up to the limit that are probed for a direction before its exit is computed step by step."""
LEVEL = wp.constant(Real(1.0e-9))
"""Sine of the angle up to which a direction is not blocked."""
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


@wp.func(inline=False)
def is_of_others(pair: SurfacePair, moved: Vec3, crossing: Segment) -> bool:
    """Whether a crossing of triangles is outside the region that is being separated and in another one."""
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    low = wp.min(crossing.start, crossing.end) - grown
    high = wp.max(crossing.start, crossing.end) + grown
    if is_in_region(pair.regions[pair.own], moved, low, high):
        return False
    found = bool(False)
    for k in range(pair.region_count):
        found = found or (k != pair.own and is_in_region(pair.regions[k], moved, low, high))
    return found


@wp.func(inline=False)
def later_exit(
    source: Any, pair: SurfacePair, direction: Vec3, translation: Real, face_a: int, face_b: int, before: Exit
) -> Exit:
    """The later of `before` and the exit of a pair of triangles, if the pair crosses at a translation."""
    triangles = triangles_of_pair(source, pair, face_a, face_b)
    after = translation + pair.touch
    interval = sweep_interval(triangles, direction, wp.max(after, before.translation))
    if interval.end <= after or interval.start >= after or interval.end <= before.translation:
        return before
    if pair.region_count > 1:
        moved = translation * direction
        triangles.a += moved
        triangles.b += moved
        triangles.c += moved
        if is_of_others(pair, moved, crossing_segment(triangles)):
            return before
    result = Exit()
    result.translation = interval.end
    result.found = 1
    result.face_a = face_a
    result.face_b = face_b
    result.axis = interval.axis
    result.exact = before.exact
    return result


@wp.func(inline=False)
def exits_in_box(
    source: Any,
    pair: SurfacePair,
    direction: Vec3,
    translation: Real,
    limit: Real,
    face: int,
    low: Vec3,
    high: Vec3,
    before: Exit,
) -> Exit:
    """The latest exit of a triangle of a from the triangles of b in a box of b's frame; ends at an exit >= limit."""
    latest = before
    cursor = begin_in_box(source, pair.b, low, high)
    while cursor.number >= 0 and (latest.found == 0 or latest.translation < limit):
        latest = later_exit(source, pair, direction, translation, face, cursor.number, latest)
        cursor = next_in_box(source, pair.b, cursor, low, high)
    return latest


@wp.func(inline=False)
def latest_exit(source: Any, pair: SurfacePair, direction: Vec3, translation: Real, limit: Real) -> Exit:
    """The latest exit of all pairs of triangles that cross at a translation; the search ends at an exit >= limit.

    Crossings in other regions do not count, neither where the region is on a nor where it has moved with b. All other
    crossings count, also those with parts of a that b reaches only by its translation.
    """
    latest = Exit()
    latest.exact = 1
    latest.translation = translation + pair.touch
    moved = translation * direction
    meshes = mesh_arrays(source)
    node = meshes.arrays[0].header[pair.a].first_node
    stop = meshes.arrays[0].header[pair.a].end_node
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    while node < stop and (latest.found == 0 or latest.translation < limit):
        half = Real(0.5) * (meshes.arrays[0].upper[node] - meshes.arrays[0].lower[node])
        middle = wp.transform_point(into_b, meshes.arrays[0].lower[node] + half - moved)
        if surface_clearance(source, pair.b, middle) > wp.length(half) + pair.touch:
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        node += 1
        if face >= 0:
            extent = box_in_b(pair, half)
            low = middle - extent
            high = middle + extent
            latest = exits_in_box(source, pair, direction, translation, limit, face, low, high, latest)
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
def exit_along(source: Any, pair: SurfacePair, direction: Vec3, limit: Real) -> Exit:
    """The least translation of b along a unit direction that separates a region, if it is shorter than `limit` [m].

    Args:
    Degenerate: surfaces that only touch, to `pair.touch`, are separated.
    """
    last = Exit()
    last.exact = 1
    last.face_a = -1
    region = pair.regions[pair.own]
    if wp.length_sq(region.front) > Real(0.0) and wp.dot(direction, region.front) <= Real(0.0):
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
                found = latest_exit(source, pair, direction, probed, probed)
                remember(source, pair, found)
                is_free = found.found == 0
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
                last.found = wp.where(last.face_a >= 0, 1, 0)
                last.translation = translation
                return last
            translation = just_before(pair, beyond, translation)
            last.face_a = -1
        if translation >= limit:
            last.found = 0
            return last
    last.found = 0
    last.exact = 0
    return last
