"""How far the second surface of a pair must be moved along a direction until a region of their overlap is gone.

At a translation, every pair of triangles that crosses within the region gives the translation at which that pair ends
to overlap (`triangle_pair.sweep_interval`). The greatest of these is the next translation looked at, until no pair
crosses. A closed surface may then still have what is left of the other inside: the way goes on to where the point of
the region that was deepest inside comes out.

The frame is that of surface a, a mesh; b is moved along the direction.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.triangle_pair import Segment, crossing_segment, sweep_interval
from collidecli.engine.narrowphase.triangles.containment import engulfed_exit, inner_exit
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair
from collidecli.engine.narrowphase.triangles.heightfield_segment_triangles import begin_targets, next_target
from collidecli.engine.narrowphase.triangles.surface_interior import surface_clearance

# ruff: noqa: F811
from collidecli.engine.narrowphase.triangles.surface_pair import (
    OverlapRegion,
    SurfacePair,
    box_in_b,
    boxes_meet,
    triangles_of_pair,
)
from collidecli.engine.narrowphase.triangles.triangle_queries import (
    mesh_arrays,
)

MAX_ADVANCES = wp.constant(256)
"""Translations looked at along one direction; each passes at least one pair of triangles."""

PROBES = wp.constant(2)
"""Translations up to the limit at which a direction is looked at before its exit is computed step by step."""
LEVEL = wp.constant(Real(1.0e-9))
"""Sine of the angle up to which a direction does not go the blocked way."""
BACK = wp.constant(Real(8.0))
"""Times `SurfacePair.touch` by which the search goes back from where a point comes out, to find the triangles there."""
RECENT = 32
"""Pairs of triangles that are remembered, see `past_recent`."""


@wp.struct
class Exit:
    """Where a region ends to overlap along a direction. translation [m]; found: 0 where it does not before the limit.

    face_a, face_b: the triangles that touch last, or -1 of a and b. axis: the unit normal between them, a to b.
    exact: 0 where the number of steps was used up.
    """

    translation: Real
    found: int
    face_a: int
    face_b: int
    axis: Vec3
    exact: int


@wp.func
def is_in_region(region: OverlapRegion, moved: Vec3, low: Vec3, high: Vec3) -> bool:
    """Whether a box meets that of a region, as it stands with a or as it moves with b."""
    return boxes_meet(low, high, region.low, region.high) or boxes_meet(
        low, high, region.low + moved, region.high + moved
    )


@wp.func(inline=False)
def is_of_others(
    pair: SurfacePair, regions: wp.array[OverlapRegion], own: wp.vec2i, moved: Vec3, crossing: Segment
) -> bool:
    """Whether a crossing of triangles is not in the region that is separated, but in another one."""
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    low = wp.min(crossing.start, crossing.end) - grown
    high = wp.max(crossing.start, crossing.end) + grown
    if is_in_region(regions[own[0]], moved, low, high):
        return False
    found = bool(False)
    for k in range(own[1]):
        found = found or (k != own[0] and is_in_region(regions[k], moved, low, high))
    return found


@wp.func(inline=False)
def later_exit(
    surfaces: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    translation: Real,
    face_a: int,
    face_b: int,
    before: Exit,
) -> Exit:
    """`before`, or the exit of a pair of triangles that crosses at a translation, if that is later."""
    triangles = triangles_of_pair(surfaces, pair, face_a, face_b)
    after = translation + pair.touch
    interval = sweep_interval(triangles, direction, wp.max(after, before.translation))
    if interval.end <= after or interval.start >= after or interval.end <= before.translation:
        return before
    if own[1] > 1:
        moved = translation * direction
        triangles.a += moved
        triangles.b += moved
        triangles.c += moved
        if is_of_others(pair, regions, own, moved, crossing_segment(triangles)):
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
    meshes: Meshes,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    translation: Real,
    limit: Real,
    face_a: int,
    low: Vec3,
    high: Vec3,
    before: Exit,
) -> Exit:
    """The latest exit of a triangle of a with those of b in a box of b's frame; any from `limit` on will do."""
    latest = before
    header = meshes.header[pair.b]
    node = header.first_node
    stop = header.end_node
    while node < stop and (latest.found == 0 or latest.translation < limit):
        if not boxes_meet(low, high, meshes.lower[node], meshes.upper[node]):
            node = meshes.skip[node]
            continue
        face = meshes.leaf[node]
        node += 1
        if face >= 0:
            latest = later_exit(meshes, pair, regions, own, direction, translation, face_a, face, latest)
    return latest


@wp.func(inline=False)
def exits_in_box(
    heightfield_pair: HeightfieldPair,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    translation: Real,
    limit: Real,
    face_a: int,
    low: Vec3,
    high: Vec3,
    before: Exit,
) -> Exit:
    """The same where b is a heightfield."""
    latest = before
    half = Real(0.5) * (high - low)
    middle = low + half
    grown = wp.max(half[0], wp.max(half[1], half[2]))
    targets = begin_targets(heightfield_pair.field, middle, middle, grown)
    while targets.number >= 0 and (latest.found == 0 or latest.translation < limit):
        latest = later_exit(
            heightfield_pair, pair, regions, own, direction, translation, face_a, targets.number, latest
        )
        targets = next_target(heightfield_pair.field, targets)
    return latest


@wp.func(inline=False)
def latest_exit(
    surfaces: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    translation: Real,
    limit: Real,
) -> Exit:
    """The latest exit of all pairs of triangles that cross at a translation; any from `limit` on will do.

    Crossings of the other regions do not count, as they stand with a or move with b. All else does: what b runs into on
    its way is not separated either.
    """
    latest = Exit()
    latest.exact = 1
    latest.translation = translation + pair.touch
    moved = translation * direction
    mesh = mesh_arrays(surfaces)
    header = mesh.header[pair.a]
    node = header.first_node
    stop = header.end_node
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    while node < stop and (latest.found == 0 or latest.translation < limit):
        half = Real(0.5) * (mesh.upper[node] - mesh.lower[node])
        middle = wp.transform_point(into_b, mesh.lower[node] + half - moved)
        if surface_clearance(surfaces, pair.b, middle) > wp.length(half) + pair.touch:
            node = mesh.skip[node]
            continue
        face = mesh.leaf[node]
        node += 1
        if face >= 0:
            extent = box_in_b(pair, half)
            latest = exits_in_box(
                surfaces,
                pair,
                regions,
                own,
                direction,
                translation,
                limit,
                face,
                middle - extent,
                middle + extent,
                latest,
            )
    return latest


@wp.func(inline=False)
def past_recent(
    surfaces: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    translation: Real,
    limit: Real,
    recent: wp.array[wp.vec2i],
) -> Exit:
    """The translation up to which one of the remembered pairs of triangles crosses at any time, from `translation` on.

    Pairs that crossed along one direction mostly cross along the next: most directions need no search of the trees.
    """
    last = Exit()
    last.exact = 1
    last.face_a = -1
    last.translation = translation
    before = Real(-1.0)
    while last.translation > before and last.translation < limit:
        before = last.translation
        for k in range(wp.static(RECENT)):
            if recent[k][1] != 0 and last.translation < limit:
                latest = Exit()
                latest.exact = 1
                latest.translation = last.translation + pair.touch
                latest = later_exit(
                    surfaces, pair, regions, own, direction, last.translation, recent[k][0], recent[k][1] - 1, latest
                )
                if latest.found == 1:
                    last = latest
    return last


@wp.func
def remember(surfaces: Any, pair: SurfacePair, recent: wp.array[wp.vec2i], latest: Exit):
    """Remembers a pair of triangles; what stood in its slot is forgotten. A face of b is one more than its number.

    Slots are told by the triangles' numbers within their surfaces, so that the other shapes of a scene change nothing.
    """
    if latest.found == 1:
        mesh = mesh_arrays(surfaces)
        number_a = latest.face_a - mesh.header[pair.a].first_face
        number_b = latest.face_b
        if pair.b >= 0:
            number_b -= mesh.header[pair.b].first_face
        recent[(number_a * 31 + number_b) % wp.static(RECENT)] = wp.vec2i(latest.face_a, latest.face_b + 1)


@wp.func(inline=False)
def is_separated(
    surfaces: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    translation: Real,
) -> bool:
    """Whether nothing crosses or is inside once b is moved, but for other regions."""
    if inner_exit(surfaces, pair, regions[own[0]], direction, translation) > translation + pair.touch:
        return False
    if latest_exit(surfaces, pair, regions, own, direction, translation, translation).found == 1:
        return False
    return own[1] > 1 or engulfed_exit(surfaces, pair, direction, translation) <= translation + pair.touch


@wp.func
def just_before(pair: SurfacePair, translation: Real, least: Real) -> Real:
    """A translation at which the triangles still cross that end to at the one given, where that is beyond `least`."""
    before = translation - BACK * pair.touch
    return wp.where(before > least + BACK * pair.touch, before, translation)


@wp.func(inline=False)
def exit_along(
    surfaces: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    limit: Real,
    recent: wp.array[wp.vec2i],
) -> Exit:
    """The least translation of b along a unit direction that separates a region, if it is shorter than `limit` [m].

    Args:
        own: number of the region, and how many there are. recent: pairs of triangles, see `past_recent`.
    Degenerate: what only touches, to `pair.touch`, is separated.
    """
    last = Exit()
    last.exact = 1
    last.face_a = -1
    region = regions[own[0]]
    if wp.length_sq(region.front) > Real(0.0) and wp.dot(direction, region.front) <= Real(0.0):
        return last
    if wp.dot(direction, pair.blocked) > LEVEL:
        return last
    inner = inner_exit(surfaces, pair, region, direction, Real(0.0))
    if inner >= limit:
        return last
    last = past_recent(surfaces, pair, regions, own, direction, just_before(pair, inner, Real(0.0)), limit, recent)
    translation = last.translation
    if translation >= limit:
        last.found = 0
        return last
    if limit < pair.span:
        # Most directions are given up here. Where the way out is short, what is separated may run into something again.
        is_free = bool(False)
        for k in range(PROBES):
            if not is_free:
                probed = translation + (limit - translation) * (Real(1.0) - Real(k) / Real(PROBES))
                found = latest_exit(surfaces, pair, regions, own, direction, probed, probed)
                remember(surfaces, pair, recent, found)
                is_free = found.found == 0
        if not is_free:
            last.found = 0
            return last
    for _step in range(MAX_ADVANCES):
        latest = latest_exit(surfaces, pair, regions, own, direction, translation, limit)
        if latest.found == 1:
            last = latest
            remember(surfaces, pair, recent, latest)
            translation = latest.translation
        else:
            beyond = inner_exit(surfaces, pair, region, direction, translation)
            if beyond <= translation + pair.touch and own[1] == 1:
                beyond = engulfed_exit(surfaces, pair, direction, translation)
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
