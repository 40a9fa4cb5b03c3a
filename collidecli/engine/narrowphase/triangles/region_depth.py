"""The depth of two surfaces that overlap: for each region, the least translation that separates it.

A point of one surface that is inside the other by some depth is a lower bound: no shorter translation takes it out. The
translation along the normal of the deepest contact is an upper bound. Where the two agree to ACCURACY, as they do of
shallow contacts, the contacts stay as they are. Otherwise a search over directions begins at the contacts' normals and
at fixed directions of both frames. From each direction tried it goes on to the normals of the triangles that touch
last, which is where the least translation of a convex overlap lies, and at last turns the best one by ever smaller
angles. See docs/adr/0065.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import (
    CROSSING_A,
    CROSSING_B,
    INNER_A,
    INNER_B,
    OF_REGION,
    SPARE,
    ContactRecord,
)
from collidecli.engine.geometry.mesh_nearest import FACE_PLACE
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.triangle_pair import closest_points
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.sub_pairs import PairRows
from collidecli.engine.narrowphase.triangles.convex_triangle import FALLBACK
from collidecli.engine.narrowphase.triangles.direction_search import Search, is_measured, is_of_region, search_all
from collidecli.engine.narrowphase.triangles.mesh_edge import chord_of
from collidecli.engine.narrowphase.triangles.overlap_regions import CAPACITY, add_crossings, add_region
from collidecli.engine.narrowphase.triangles.separating_translation import RECENT, exit_along, is_separated
from collidecli.engine.narrowphase.triangles.surface_pair import (
    OverlapRegion,
    SurfacePair,
    boxes_meet,
    triangles_of_pair,
)
from collidecli.engine.narrowphase.triangles.triangle_queries import feature_on, nearest_on

ACCURACY = wp.constant(Real(1.03))
"""How many times as long as its lower bound a translation may be without a search."""
SHALLOW = wp.constant(Real(0.02))
"""Share of half of the smaller surface's longest side: what separates by so little is not searched further."""
SAME_DEPTH = wp.constant(Real(1.0 + 1.0e-9))
"""Factor below which two depths are one."""
INNER_BALL = wp.constant(Real(1.1))
"""Share of its depth by which an inner point's box extends to all sides: it meets the surface that it is nearest to."""


@wp.func(inline=False)
def region_contact(surfaces: Any, pair: SurfacePair, best: Search) -> ContactRecord:
    """The contact of a region: its translation, at the points that touch last."""
    triangles = triangles_of_pair(surfaces, pair, best.exit.face_a, best.exit.face_b)
    moved = best.exit.translation * best.direction
    triangles.a += moved
    triangles.b += moved
    triangles.c += moved
    points = closest_points(triangles)
    contact = ContactRecord()
    contact.point = points.fixed
    contact.normal = best.direction
    contact.separation = -best.exit.translation
    contact.feature_a = feature_on(surfaces, pair.a, best.exit.face_a, points.part_fixed)
    contact.feature_b = feature_on(surfaces, pair.b, best.exit.face_b, points.part_moving)
    contact.role = OF_REGION
    return contact


@wp.func(inline=False)
def measured_crossing(
    surfaces: Any, pair: SurfacePair, region: OverlapRegion, best: Search, crossing: ContactRecord
) -> ContactRecord:
    """The contact of an end of an edge that crosses an open surface: where it comes out along the region's direction.

    Its separation stays infinite where the end is not behind the surface by as much as the translation, or leaves
    elsewhere than in the region.
    """
    result = crossing
    length = best.exit.translation * SAME_DEPTH + pair.touch
    moved = length * best.direction
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    if crossing.role == CROSSING_A:
        start = wp.transform_point(into_b, crossing.point)
        end = wp.transform_point(into_b, crossing.point - moved)
        part = chord_of(surfaces, pair.b, start, end, Real(0.0))[1]
        leaves = crossing.point - part * moved
        if part <= Real(1.0) and boxes_meet(leaves, leaves, region.low - grown, region.high + grown):
            place = nearest_on(surfaces, pair.b, wp.transform_point(into_b, leaves))
            result.separation = -part * length
            result.normal = best.direction
            result.feature_b = feature_on(surfaces, pair.b, place.face, FACE_PLACE)
            result.kind = 0
            result.role = OF_REGION
    else:
        part = chord_of(surfaces, pair.a, crossing.point, crossing.point + moved, Real(0.0))[1]
        leaves = crossing.point + part * moved
        if part <= Real(1.0) and boxes_meet(leaves, leaves, region.low - grown, region.high + grown):
            place = nearest_on(surfaces, pair.a, leaves)
            result.point = leaves
            result.separation = -part * length
            result.normal = best.direction
            result.feature_a = feature_on(surfaces, pair.a, place.face, FACE_PLACE)
            result.kind = 0
            result.role = OF_REGION
    return result


@wp.func
def emit_spare(rows: PairRows, contact: ContactRecord):
    """Writes a contact into the first spare row; there is one for each region."""
    for i in range(rows.first, rows.end):
        if rows.contact[i].role == SPARE:
            rows.contact[i] = contact
            return


@wp.func(inline=False)
def inner_regions(rows: PairRows, regions: wp.array[OverlapRegion], before: int) -> int:
    """Adds the points that are inside the other surface, each with the ball around it that is; how many there are."""
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
def measure_region(
    surfaces: Any, pair: SurfacePair, regions: wp.array[OverlapRegion], own: wp.vec2i, rows: PairRows
) -> int:
    """Writes the contacts of a region; returns 0 where a bound on the search was hit."""
    region = regions[own[0]]
    recent = wp.zeros(shape=wp.static(RECENT), dtype=wp.vec2i)
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
        if is_separated(surfaces, pair, regions, own, normal, depth + pair.touch):
            stays = deepest
            best.exit.found = 1
            best.exit.translation = depth
        else:
            found = exit_along(surfaces, pair, regions, own, normal, best.exit.translation, recent)
            if found.found == 1:
                best.exit = found
    is_known = stays >= 0 and best.exit.translation <= SHALLOW * pair.size
    if not is_known and (best.exit.found == 0 or best.exit.translation > ACCURACY * lower + pair.touch):
        length = best.exit.translation
        best = search_all(surfaces, pair, regions, own, rows, best, recent)
        if best.exit.translation < length:
            stays = -1
    if best.exit.found == 0:
        return 0
    for i in range(rows.first, rows.end):
        contact = rows.contact[i]
        if not is_measured(contact):
            if contact.role == CROSSING_A or contact.role == CROSSING_B:
                rows.contact[i] = measured_crossing(surfaces, pair, region, best, contact)
        elif is_of_region(pair, region, contact):
            along = wp.dot(contact.normal, best.direction)
            is_deeper = -contact.separation > best.exit.translation * SAME_DEPTH + pair.touch
            if is_deeper or (stays < 0 and along <= Real(0.0)):
                rows.contact[i].separation = Real(wp.inf)
                rows.contact[i].kind = FALLBACK * RANK
    if stays < 0:
        emit_spare(rows, region_contact(surfaces, pair, best))
    else:
        rows.contact[stays].kind = rows.contact[stays].kind % RANK
        rows.contact[stays].role = OF_REGION
    return best.exact


@wp.func
def exchanged(contact: ContactRecord, pose_b_to_a: Pose) -> ContactRecord:
    """A contact of a and b as one of b and a, in b's frame."""
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
    """Makes the contacts of a and b those of b and a."""
    for i in range(rows.first, rows.end):
        if rows.contact[i].separation < Real(wp.inf) or rows.contact[i].role >= CROSSING_A:
            rows.contact[i] = exchanged(rows.contact[i], pose_b_to_a)


@wp.func
def exchanged_pair(pair: SurfacePair) -> SurfacePair:
    """The pair with b as its first surface."""
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
def measure_regions(surfaces: Any, pair: SurfacePair, rows: PairRows) -> int:
    """Makes a pair's contacts those of its regions of overlap; returns 0 where a bound on the search was hit."""
    regions = wp.zeros(shape=wp.static(CAPACITY + 1), dtype=OverlapRegion)
    count = add_crossings(surfaces, pair, regions, 0)
    count = inner_regions(rows, regions, count)
    exact = int(1)
    for k in range(count):
        exact = wp.min(exact, measure_region(surfaces, pair, regions, wp.vec2i(k, count), rows))
    return exact


@wp.func(inline=False)
def measure_meshes(meshes: Meshes, pair: SurfacePair, rows: PairRows) -> int:
    """As `measure_regions`, of two meshes, in the frame of the one with more triangles.

    Which of the two shapes is first in the scene does not decide where the search goes, but where both have as many.
    """
    size_a = meshes.header[pair.a].end_node - meshes.header[pair.a].first_node
    size_b = meshes.header[pair.b].end_node - meshes.header[pair.b].first_node
    if size_a >= size_b:
        return measure_regions(meshes, pair, rows)
    turned = exchanged_pair(pair)
    exchange_rows(rows, pair.pose_b_to_a)
    exact = measure_regions(meshes, turned, rows)
    exchange_rows(rows, turned.pose_b_to_a)
    return exact
