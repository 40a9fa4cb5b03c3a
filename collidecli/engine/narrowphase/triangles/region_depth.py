"""The depth of two surfaces that overlap: for each region, the least translation that separates it.

The depth of an inner point is a lower bound: no shorter translation separates it from the other surface. The
translation along the normal of the deepest contact is an upper bound. Where the two agree to ACCURACY, as for shallow
contacts, the contacts stay unchanged. Otherwise `search_all` minimises the translation over directions. It starts
from the contacts' normals, from their successive projections and from fixed directions; from each it continues with the
normals of the triangles that touch last, along which the least translation of a convex overlap lies. It ends with a
pattern search of decreasing angles around the best direction. See docs/adr/0065.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import CROSSING_A, CROSSING_B, INNER_A, INNER_B, OF_REGION, SPARE, ContactRecord
from collidecli.engine.geometry.mesh_nearest import FACE_PART
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.segments import perpendicular
from collidecli.engine.geometry.triangle_pair import closest_points
from collidecli.engine.narrowphase.contact_merging import FALLBACK
from collidecli.engine.narrowphase.sub_pairs import PairRows
from collidecli.engine.narrowphase.triangles.separating_translation import RECENT, Exit, exit_along, is_separated
from collidecli.engine.narrowphase.triangles.surface_interior import chord_of, nearest_on
from collidecli.engine.narrowphase.triangles.surface_pair import (
    CAPACITY,
    OverlapRegion,
    SurfacePair,
    add_crossings,
    add_region,
    as_pairs,
    as_regions,
    triangles_of_pair,
)
from collidecli.engine.narrowphase.triangles.triangle_source import boxes_intersect, feature_on

NO_LONGER = wp.constant(Real(1.0 - 1.0e-6))
"""Factor by which a translation must be shorter than the best to replace it."""
SAME_DIRECTION = wp.constant(Real(0.99))
"""Cosine of the angle between two contacts' normals above which only the first is tried."""
MAX_NORMALS = 24
"""Greatest number of contacts' normals that are tried: the deepest of each bundle of similar normals."""
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
    """The best translation of a region so far. direction: unit, a's frame. exact: 0 where any exit was not exact."""

    direction: Vec3
    exit: Exit
    exact: int


@wp.func(inline=False)
def try_direction(source: Any, pair: SurfacePair, direction: Vec3, before: Search) -> Search:
    """The shortest of `before`, the translation along a direction, and those along the normals that follow from it."""
    best = before
    tried = direction
    for _step in range(MAX_FACETS):
        found = exit_along(source, pair, tried, best.exit.translation * NO_LONGER)
        best.exact = wp.min(best.exact, found.exact)
        if found.found == 0:
            return best
        best.direction = tried
        best.exit = found
        if wp.dot(found.axis, tried) > Real(1.0 - 1.0e-12):
            return best
        tried = found.axis
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
def is_of_region(pair: SurfacePair, region: OverlapRegion, contact: ContactRecord) -> bool:
    """Whether a contact's witness points are in the box of a region."""
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    other = contact.point + contact.separation * contact.normal
    low = wp.min(contact.point, other) - grown
    high = wp.max(contact.point, other) + grown
    return boxes_intersect(low, high, region.low, region.high)


@wp.func
def is_measured(contact: ContactRecord) -> bool:
    """Whether a contact's separation is that of its features: neither left open for a region nor that of a region."""
    return contact.role <= INNER_B


@wp.func(inline=False)
def search_normals(source: Any, pair: SurfacePair, rows: PairRows, before: Search) -> Search:
    """The search after trying the normals of the region's contacts."""
    best = before
    tried = wp.zeros(shape=wp.static(MAX_NORMALS), dtype=Vec3)
    count = int(0)
    while count < wp.static(MAX_NORMALS):
        # The deepest whose normal is not yet tried: this order does not depend on the order of the contacts.
        # Contacts that only touch are not tried: which there are depends on the maximum separation.
        deepest = int(-1)
        least = -pair.touch
        for i in range(rows.first, rows.end):
            contact = rows.contact[i]
            if (
                contact.separation < least
                and is_measured(contact)
                and is_of_region(pair, pair.regions[pair.own], contact)
            ):
                is_new = bool(True)
                for k in range(count):
                    is_new = is_new and wp.dot(tried[k], contact.normal) < SAME_DIRECTION
                if is_new:
                    least = contact.separation
                    deepest = i
        if deepest < 0:
            return best
        tried[count] = rows.contact[deepest].normal
        best = try_direction(source, pair, tried[count], best)
        count += 1
    return best


@wp.func(inline=False)
def projected_translation(pair: SurfacePair, region: OverlapRegion, rows: PairRows, of_region: bool) -> Vec3:
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
                if lacks > Real(0.0) and (not of_region or is_of_region(pair, region, contact)):
                    result += lacks * contact.normal
    return result


@wp.func(inline=False)
def search_projections(source: Any, pair: SurfacePair, rows: PairRows, before: Search) -> Search:
    """The search after trying the projected translations of the region's contacts and of all contacts of the pair."""
    best = before
    for turn in range(2):
        translation = projected_translation(pair, pair.regions[pair.own], rows, turn == 0)
        if wp.length_sq(translation) > Real(0.0):
            best = try_direction(source, pair, wp.normalize(translation), best)
    return best


@wp.func(inline=False)
def search_all(source: Any, pair: SurfacePair, rows: PairRows, before: Search) -> Search:
    """The least translation over the contacts' normals and, unless it is short, the fixed directions, then refined."""
    best = search_normals(source, pair, rows, before)
    best = search_projections(source, pair, rows, best)
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
INNER_BALL = wp.constant(Real(1.1))
"""Half extent of an inner point's box, as a multiple of its depth: the box intersects the surface closest to it."""


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
    source: Any, pair: SurfacePair, region: OverlapRegion, best: Search, crossing: ContactRecord
) -> ContactRecord:
    """The contact of an end of an edge that crosses an open surface: its exit point along the region's direction.

    Its separation stays infinite where the end is not behind the surface within the translation, or exits outside the
    region.
    """
    result = crossing
    length = best.exit.translation * SAME_DEPTH + pair.touch
    moved = length * best.direction
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    if crossing.role == CROSSING_A:
        start = wp.transform_point(into_b, crossing.point)
        end = wp.transform_point(into_b, crossing.point - moved)
        part = chord_of(source, pair.b, start, end, Real(0.0))[1]
        exit_point = crossing.point - part * moved
        if part <= Real(1.0) and boxes_intersect(exit_point, exit_point, region.low - grown, region.high + grown):
            closest = nearest_on(source, pair.b, wp.transform_point(into_b, exit_point))
            result.separation = -part * length
            result.normal = best.direction
            result.feature_b = feature_on(source, pair.b, closest.face, FACE_PART)
            result.priority = 0
            result.role = OF_REGION
    else:
        part = chord_of(source, pair.a, crossing.point, crossing.point + moved, Real(0.0))[1]
        exit_point = crossing.point + part * moved
        if part <= Real(1.0) and boxes_intersect(exit_point, exit_point, region.low - grown, region.high + grown):
            closest = nearest_on(source, pair.a, exit_point)
            result.point = exit_point
            result.separation = -part * length
            result.normal = best.direction
            result.feature_a = feature_on(source, pair.a, closest.face, FACE_PART)
            result.priority = 0
            result.role = OF_REGION
    return result


@wp.func
def emit_spare(rows: PairRows, contact: ContactRecord):
    """Writes a contact into the first spare row; there is one spare row per region."""
    for i in range(rows.first, rows.end):
        if rows.contact[i].role == SPARE:
            rows.contact[i] = contact
            return


@wp.func(inline=False)
def inner_regions(rows: PairRows, regions: wp.array[OverlapRegion], before: int) -> int:
    """Adds the points inside the other surface, each with the box of a ball; returns the number of regions."""
    count = before
    for i in range(rows.first, rows.end):
        contact = rows.contact[i]
        if contact.role == INNER_A or contact.role == INNER_B:
            region = OverlapRegion()
            point = contact.point
            if contact.role == INNER_A:
                region.inner_a = point
                region.depth_a = -contact.separation
            else:
                point = contact.point + contact.separation * contact.normal
                region.inner_b = point
                region.depth_b = -contact.separation
            radius = -INNER_BALL * contact.separation
            region.low = point - Vec3(radius, radius, radius)
            region.high = point + Vec3(radius, radius, radius)
            count = add_region(regions, count, region)
    return count


@wp.func(inline=False)
def deepest_of_region(pair: SurfacePair, region: OverlapRegion, rows: PairRows) -> int:
    """Row of the deepest contact of a region, -1 for none."""
    result = int(-1)
    least = Real(0.0)
    for i in range(rows.first, rows.end):
        contact = rows.contact[i]
        if contact.separation < least and is_measured(contact) and is_of_region(pair, region, contact):
            least = contact.separation
            result = i
    return result


@wp.func(inline=False)
def measure_region(source: Any, pair: SurfacePair, rows: PairRows) -> int:
    """Writes the contacts of a region; returns 0 where the search ended at its greatest number of steps."""
    region = pair.regions[pair.own]
    recent = wp.zeros(shape=wp.static(RECENT), dtype=wp.vec2i)
    pair.recent = as_pairs(recent)
    deepest = deepest_of_region(pair, region, rows)
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
            found = exit_along(source, pair, normal, best.exit.translation)
            if found.found == 1:
                best.exit = found
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
                rows.contact[i] = measured_crossing(source, pair, region, best, contact)
        elif is_of_region(pair, region, contact):
            along = wp.dot(contact.normal, best.direction)
            is_deeper = -contact.separation > best.exit.translation * SAME_DEPTH + pair.touch
            if is_deeper or (stays < 0 and along <= Real(0.0)):
                rows.contact[i].separation = Real(wp.inf)
                rows.contact[i].priority = FALLBACK
    if stays < 0:
        emit_spare(rows, region_contact(source, pair, best))
    else:
        rows.contact[stays].priority = 0
        rows.contact[stays].role = OF_REGION
    return best.exact


@wp.func
def exchanged(contact: ContactRecord, pose_b_to_a: Pose) -> ContactRecord:
    """A contact of a and b as a contact of b and a, in b's frame."""
    result = contact
    into_b = wp.transform_inverse(pose_b_to_a)
    point = contact.point
    if contact.role < CROSSING_A or contact.role == OF_REGION:
        point += contact.separation * contact.normal
        result.normal = -wp.transform_vector(into_b, contact.normal)
    result.point = wp.transform_point(into_b, point)
    result.feature_a = contact.feature_b
    result.feature_b = contact.feature_a
    if contact.role == INNER_A or contact.role == CROSSING_A:
        result.role = contact.role + 1
    if contact.role == INNER_B or contact.role == CROSSING_B:
        result.role = contact.role - 1
    return result


@wp.func(inline=False)
def exchange_rows(rows: PairRows, pose_b_to_a: Pose):
    """Exchanges a and b in all contacts of a pair."""
    for i in range(rows.first, rows.end):
        if rows.contact[i].separation < Real(wp.inf) or rows.contact[i].role >= CROSSING_A:
            rows.contact[i] = exchanged(rows.contact[i], pose_b_to_a)


@wp.func
def exchanged_pair(pair: SurfacePair) -> SurfacePair:
    """The pair with a and b exchanged."""
    result = pair
    result.a = pair.b
    result.b = pair.a
    result.pose_b_to_a = wp.transform_inverse(pair.pose_b_to_a)
    result.turn = wp.transpose(pair.turn)
    result.closed_a = pair.closed_b
    result.closed_b = pair.closed_a
    result.front_a = pair.front_b
    result.front_b = pair.front_a
    return result


@wp.func(inline=False)
def measure_regions(source: Any, pair: SurfacePair, rows: PairRows) -> int:
    """Replaces a pair's contacts by those of its regions of overlap.

    Returns 0 where the search ended at its greatest number of steps.
    """
    regions = wp.zeros(shape=wp.static(CAPACITY + 1), dtype=OverlapRegion)
    count = add_crossings(source, pair, as_regions(regions), 0)
    count = inner_regions(rows, as_regions(regions), count)
    pair.regions = as_regions(regions)
    pair.region_count = count
    exact = int(1)
    for k in range(count):
        pair.own = k
        exact = wp.min(exact, measure_region(source, pair, rows))
    return exact


@wp.func(inline=False)
def measure_meshes(meshes: Meshes, pair: SurfacePair, rows: PairRows) -> int:
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
