"""The depth of two surfaces that overlap: the least translation that separates each region of their
overlap.

The depth of an inner point is a lower bound: no shorter translation separates it from the other
surface. The translation along the normal of the deepest contact is an upper bound. Where the two
agree to ACCURACY, as for shallow contacts, the contacts stay unchanged. Otherwise `search_all`
minimises the translation over directions. It starts from the contacts' normals, from their
successive projections and from fixed directions; from each it continues with the normals of the
triangles that touch last, along which the least translation of a convex overlap lies. It ends with
a pattern search of decreasing angles around the best direction. See docs/adr/0065.

The frame is that of surface a, a mesh; b moves. Cheap conditions precede expensive ones in nested
ifs: Warp may evaluate both operands of an `and`.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import (
    CROSSING_A,
    CROSSING_B,
    FALLBACK,
    INNER_A,
    INNER_B,
    OF_REGION,
    SPARE,
    SPARE_UNTESTED,
    ContactRecord,
)
from collidecli.engine.geometry.closest_points import (
    SAME_EXIT,
    closest_points,
    overlap_of_projections,
)
from collidecli.engine.geometry.mesh_points import FACE_PART
from collidecli.engine.geometry.real import Real, Vec3, array_of
from collidecli.engine.geometry.segments import perpendicular
from collidecli.engine.narrowphase.contact_merging import sort_contacts
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.separating_translation import (
    PARALLEL,
    PERPENDICULAR,
    RECENT,
    Exit,
    exit_along,
    is_level,
    is_separated,
    precede,
)
from collidecli.engine.narrowphase.triangles.surface import (
    await_threads,
    begin_in_box,
    boxes_intersect,
    feature_on,
    first_exit,
    first_face_of,
    first_row_of_thread,
    mesh_arrays,
    nearest_on,
    next_in_box,
    rows_step,
    surface_clearance,
)
from collidecli.engine.narrowphase.triangles.surface_pair import (
    CAPACITY,
    OverlapRegion,
    SurfacePair,
    add_crossings,
    apart_margin,
    are_apart_by_planes,
    as_pairs,
    as_regions,
    box_of_placed,
    crossing_of_pair,
    exchange_rows,
    exchanged_pair,
    inner_regions,
    nudged,
    opposite_nudge,
    placed_in_b,
    triangles_of_pair,
)

as_vectors = array_of(Vec3, "as_vectors")
as_numbers = array_of(int, "as_numbers")

NO_LONGER = wp.constant(Real(1.0 - 1.0e-6))
"""Factor by which a translation must be shorter than the best to replace it."""
SAME_DIRECTION = wp.constant(Real(0.99))
"""Cosine of the angle between two contacts' normals above which only the first is tried."""
MAX_NORMALS = 24
"""Greatest number of contacts' normals that are tried: the deepest of each bundle of similar
normals."""
MAX_FACETS = wp.constant(8)
"""Greatest number of times that the search continues with the normal of the triangles that touch
last."""
IF_SHORTER = wp.constant(Real(1.0))
IF_SIMILAR = wp.constant(Real(1.5))
"""Multiples of the shortest translation up to which the normals that follow from a direction are
tried. Of the few directions that the pair's own features give, those that are somewhat longer lead
to a shortest one that no feature has."""
PROJECTIONS = wp.constant(32)
"""Number of cycles of successive projections onto the half-spaces of the contacts."""
SPREAD = wp.constant(3)
"""The fixed directions are those of a grid on a cube, 2 SPREAD + 1 points per side: 218, some 14
degrees apart."""
NEAR = wp.constant(Real(0.1))
"""Fraction of half of the smaller surface's longest side: where the contacts' normals give a
translation no longer than this, the fixed directions are not tried. Of 360 poses as shallow none
has a translation shorter by 2 %."""
FIRST_TURN = wp.constant(Real(0.3))
MAX_TURNS = wp.constant(64)
"""Greatest number of steps of the pattern search."""
LAST_TURN = wp.constant(Real(0.004))
"""First and last angle [rad] of the pattern search: an angle error e lengthens a translation of
slope s by e s."""


@wp.struct
class Search:
    """The best translation of a region so far.

    direction: unit, a's frame. is_level: 1 where that is the normal of the triangles that touch
    last. exact: 0 where any exit was not exact.
    """

    direction: Vec3
    exit: Exit
    is_level: int
    exact: int


@wp.func(inline=False)
def try_direction(
    source: Any, pair: SurfacePair, direction: Vec3, reach: Real, before: Search
) -> Search:
    """The shortest of `before`, the translation along a direction, and those along the normals that
    follow from it.

    reach: IF_SHORTER or IF_SIMILAR.

    Along a normal of the surfaces that touch last a translation may be longer by a touch: of a
    shallow overlap a direction beside the normal is not told apart by its length.
    """
    best = before
    tried = direction
    for _step in range(MAX_FACETS):
        shorter = best.exit.translation * NO_LONGER
        no_longer = best.exit.translation + pair.touch
        limit = wp.max(no_longer, reach * best.exit.translation)
        tried_exit = exit_along(source, pair, tried, limit)
        best.exact = wp.min(best.exact, tried_exit.exact)
        if tried_exit.found == 0:
            return best
        is_normal = is_level(tried, tried_exit.axis)
        allowed = shorter
        if is_normal and best.is_level == 0:
            allowed = no_longer
        if not is_normal and best.is_level == 1:
            allowed = shorter - pair.touch
        if tried_exit.translation < allowed:
            best.direction = tried
            best.exit = tried_exit
            best.is_level = wp.where(is_normal, 1, 0)
        if is_normal:
            return best
        tried = tried_exit.axis
    return best


@wp.func(inline=False)
def refined(source: Any, pair: SurfacePair, before: Search) -> Search:
    """The search after a pattern search around its best direction, with halved angles where no turn
    shortens it."""
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
                best = try_direction(
                    source, pair, wp.normalize(best.direction + angle * turn), IF_SHORTER, best
                )
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
    """Whether a contact's separation is that of its features: neither left open for a region nor
    that of a region."""
    return contact.role <= INNER_B


@wp.func
def has_lower_features(x: ContactRecord, y: ContactRecord) -> bool:
    """Whether a contact's features have lower numbers than another's."""
    return precede(x.feature_a, x.feature_b, y.feature_a, y.feature_b)


@wp.func(inline=False)
def deepest_of_region(
    pair: SurfacePair, rows: ContactRows, tried: wp.array[Vec3], count: int
) -> int:
    """Row of the region's deepest contact whose normal is not among `count` tried ones, -1 for
    none.

    This order does not depend on the order of the contacts. Of contacts that are equally deep, to
    SAME_EXIT, the first is the one with the lowest features. Contacts that only touch do not count:
    which there are depends on the maximum separation.
    """
    result = int(-1)
    least = Real(0.0)
    same = SAME_EXIT * pair.touch
    for i in range(rows.first, rows.end):
        contact = rows.contact[i]
        comes_first = contact.separation < least - same
        if not comes_first and result >= 0 and contact.separation <= least + same:
            comes_first = has_lower_features(contact, rows.contact[result])
        if (
            comes_first
            and contact.separation < -pair.touch
            and is_measured(contact)
            and is_of_region(pair, contact)
        ):
            is_new = bool(True)
            for k in range(count):
                is_new = is_new and wp.dot(tried[k], contact.normal) < SAME_DIRECTION
            if is_new:
                least = wp.min(least, contact.separation)
                result = i
    return result


@wp.func(inline=False)
def search_normals(
    source: Any, pair: SurfacePair, rows: ContactRows, tried: wp.array[Vec3], before: Search
) -> Search:
    """The search after trying the normals of the region's contacts.

    tried: Vec3[MAX_NORMALS], zeros; it has these normals afterwards.
    """
    best = before
    count = int(0)
    while count < wp.static(MAX_NORMALS):
        deepest = deepest_of_region(pair, rows, tried, count)
        if deepest < 0:
            return best
        tried[count] = rows.contact[deepest].normal
        best = try_direction(source, pair, tried[count], IF_SIMILAR, best)
        count += 1
    return best


@wp.func
def is_among(directions: wp.array[Vec3], direction: Vec3) -> bool:
    """Whether a unit vector is equal to one of MAX_NORMALS directions, of which unused ones are
    zero."""
    result = bool(False)
    for k in range(wp.static(MAX_NORMALS)):
        result = result or wp.dot(directions[k], direction) > PARALLEL
    return result


@wp.struct
class FaceNormals:
    """Directions along which triangles of a region are exited through their faces, no two of them
    similar.

    direction: unit, a's frame. number: of the triangle, by which they are sorted. count: of
    directions.
    """

    direction: wp.array[Vec3]
    number: wp.array[int]
    count: int


@wp.func
def add_face_normal(before: FaceNormals, direction: Vec3, number: int) -> FaceNormals:
    """The list with a direction in the order of numbers; of similar directions the one with the
    lowest number stays.

    Of more than MAX_NORMALS directions those with the lowest numbers stay.
    """
    result = before
    at = before.count
    for k in range(before.count):
        if wp.dot(before.direction[k], direction) >= SAME_DIRECTION and at == before.count:
            if number >= before.number[k]:
                return result
            at = k
    if at == before.count:
        if at < wp.static(MAX_NORMALS):
            result.count += 1
        elif number >= before.number[at - 1]:
            return result
        else:
            at -= 1
    while at > 0 and before.number[wp.max(at - 1, 0)] > number:
        before.direction[at] = before.direction[at - 1]
        before.number[at] = before.number[at - 1]
        at -= 1
    before.direction[at] = direction
    before.number[at] = number
    return result


@wp.func(inline=False)
def add_normals_of_crossing(
    source: Any, pair: SurfacePair, face_a: int, face_b: int, before: FaceNormals
) -> FaceNormals:
    """The list with the normals of two triangles, if they cross in the region that is being
    separated."""
    triangles = triangles_of_pair(source, pair, face_a, face_b)
    if overlap_of_projections(triangles, pair.touch, pair.tie) <= pair.touch:
        return before
    common = crossing_of_pair(pair, triangles)
    region = pair.regions[pair.own]
    low = wp.min(common.start, common.end)
    high = wp.max(common.start, common.end)
    if not boxes_intersect(low, high, region.low, region.high):
        return before
    result = before
    # An open surface may be exited to either side of a triangle.
    for turn in range(2):
        sign = Real(1 - 2 * turn)
        if turn == 0 or (pair.closed_a == 0 and pair.front_a == 0):
            number = 4 * (face_a - first_face_of(source, pair.a)) + turn
            result = add_face_normal(result, sign * triangles.normal_pqr, number)
        if turn == 0 or (pair.closed_b == 0 and pair.front_b == 0):
            number = 4 * (face_b - first_face_of(source, pair.b)) + 2 + turn
            result = add_face_normal(result, -sign * triangles.normal_abc, number)
    return result


@wp.func(inline=False)
def search_faces(source: Any, pair: SurfacePair, tried: wp.array[Vec3], before: Search) -> Search:
    """The search after trying the normals of the triangles that cross in the region, but for those
    that were tried before.

    A convex overlap is left along a face of either surface or across an edge of each. Where edges
    alone have crossed, no contact has a face's normal.
    """
    directions = wp.zeros(shape=wp.static(MAX_NORMALS), dtype=Vec3)
    numbers = wp.zeros(shape=wp.static(MAX_NORMALS), dtype=int)
    normals = FaceNormals(as_vectors(directions), as_numbers(numbers), 0)
    meshes = mesh_arrays(source)
    node = meshes.arrays[0].header[pair.a].first_node
    stop = meshes.arrays[0].header[pair.a].end_node
    region = pair.regions[pair.own]
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    margin = apart_margin(pair)
    while node < stop:
        lower = meshes.arrays[0].lower[node]
        upper = meshes.arrays[0].upper[node]
        half = Real(0.5) * (upper - lower)
        middle = wp.transform_point(into_b, lower + half)
        is_apart = surface_clearance(source, pair.b, middle) > wp.length(half) + pair.grown
        if is_apart or not boxes_intersect(lower, upper, region.low, region.high):
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        node += 1
        if face >= 0:
            placed = placed_in_b(source, pair, face, Vec3())
            box = box_of_placed(pair, placed)
            cursor = begin_in_box(source, pair.b, box.start, box.end)
            while cursor.number >= 0:
                if not are_apart_by_planes(source, pair, placed, cursor.number, margin):
                    normals = add_normals_of_crossing(source, pair, face, cursor.number, normals)
                cursor = next_in_box(source, pair.b, cursor, box.start, box.end)
    best = before
    for k in range(normals.count):
        if not is_among(tried, normals.direction[k]):
            best = try_direction(source, pair, normals.direction[k], IF_SIMILAR, best)
    return best


@wp.func(inline=False)
def search_features(source: Any, pair: SurfacePair, rows: ContactRows, before: Search) -> Search:
    """The search after trying the normals of the region's contacts, and of its triangles that
    cross."""
    normals = wp.zeros(shape=wp.static(MAX_NORMALS), dtype=Vec3)
    tried = as_vectors(normals)
    best = search_normals(source, pair, rows, tried, before)
    return search_faces(source, pair, tried, best)


@wp.func(inline=False)
def projected_translation(pair: SurfacePair, rows: ContactRows, of_region: bool) -> Vec3:
    """A short translation in the half-spaces of all contacts, each bounded by a plane; zero without
    contacts [m].

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
    """The least translation over the contacts' normals, their projected translations and, unless it
    is short, the fixed directions, then refined."""
    best = search_features(source, pair, rows, before)
    for turn in range(2):  # the contacts of the region, then all of the pair
        translation = projected_translation(pair, rows, turn == 0)
        if wp.length_sq(translation) > Real(0.0):
            best = try_direction(source, pair, wp.normalize(translation), IF_SIMILAR, best)
    if best.exit.found == 1 and best.exit.translation <= NEAR * pair.size:
        return refined(source, pair, best)
    for x in range(-SPREAD, SPREAD + 1):
        for y in range(-SPREAD, SPREAD + 1):
            for z in range(-SPREAD, SPREAD + 1):
                if wp.max(wp.abs(x), wp.max(wp.abs(y), wp.abs(z))) == SPREAD:
                    spread = wp.normalize(Vec3(Real(x), Real(y), Real(z)))
                    best = try_direction(source, pair, spread, IF_SHORTER, best)
    return refined(source, pair, best)


ACCURACY = wp.constant(Real(1.03))
"""Greatest ratio of a translation to its lower bound without a search."""
SHALLOW = wp.constant(Real(0.02))
"""Fraction of half of the smaller surface's longest side: a translation no longer than this is not
searched further."""
NEARLY = wp.constant(Real(2.0))
"""Touches by which a translation along the deepest contact's normal may be longer than that contact
is deep: edges beside a corner that has no depth of its own, or surfaces that are not quite
parallel."""
SAME_DEPTH = wp.constant(Real(1.0 + 1.0e-9))
"""Factor below which two depths are equal."""


@wp.func(inline=False)
def region_contact(source: Any, pair: SurfacePair, best: Search) -> ContactRecord:
    """The contact of a region: its least translation, at the closest points of the triangles that
    touch last."""
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
def is_inner_of_open(pair: SurfacePair, contact: ContactRecord) -> bool:
    """Whether a contact is that of a point of an open surface inside the other.

    Beside a wall of the other it has the wall's normal, though the surface is left across it.
    """
    return (contact.role == INNER_A and pair.closed_a == 0) or (
        contact.role == INNER_B and pair.closed_b == 0
    )


@wp.func
def as_crossing(unmeasured: ContactRecord, contact: ContactRecord) -> ContactRecord:
    """A contact without separation as that of its point, which passes through the other surface."""
    result = unmeasured
    if contact.role == INNER_A:
        result.role = CROSSING_A
    else:
        result.role = CROSSING_B
        result.point = contact.point + contact.separation * contact.normal
    return result


@wp.func
def emit_spare(rows: ContactRows, contact: ContactRecord):
    """Writes a contact into the first spare row; there is one spare row per region."""
    for i in range(rows.first, rows.end):
        if rows.contact[i].role == SPARE or rows.contact[i].role == SPARE_UNTESTED:
            rows.contact[i] = contact
            return


@wp.func
def settle_row(
    source: Any, pair: SurfacePair, rows: ContactRows, i: int, best: Search, is_changed: bool
):
    """Gives the contact of row `i` the depth of the region's translation, or takes it out of the
    contacts by an infinite separation.

    is_changed: whether the region's contact is none of those found before; contacts that are not
    along its direction are then left by that translation too.
    """
    contact = rows.contact[i]
    if not is_measured(contact):
        if contact.role == CROSSING_A or contact.role == CROSSING_B:
            rows.contact[i] = measured_crossing(source, pair, best, contact)
    elif is_of_region(pair, contact):
        along = wp.dot(contact.normal, best.direction)
        is_deeper = -contact.separation > best.exit.translation * SAME_DEPTH + pair.touch
        if is_deeper or (is_changed and along <= PERPENDICULAR):
            rows.contact[i].separation = Real(wp.inf)
            rows.contact[i].priority = FALLBACK
            if is_inner_of_open(pair, contact):
                rows.contact[i] = measured_crossing(
                    source, pair, best, as_crossing(rows.contact[i], contact)
                )


@wp.func(inline=False)
def measure_region(source: Any, pair: SurfacePair, rows: ContactRows) -> int:
    """Writes the contacts of a region; returns 0 where the search ended at its greatest number of
    steps."""
    region = pair.regions[pair.own]
    recent = wp.zeros(shape=wp.static(RECENT), dtype=wp.vec2i)
    pair.recent = as_pairs(recent)
    tried = wp.zeros(shape=1, dtype=Vec3)
    deepest = deepest_of_region(pair, rows, as_vectors(tried), 0)
    best = Search()
    best.exact = 1
    lower = wp.max(region.depth_a, region.depth_b)
    stays = int(-1)
    depth = Real(0.0)
    best.exit.translation = Real(2.0) * pair.span
    if deepest >= 0:
        normal = rows.contact[deepest].normal
        depth = -rows.contact[deepest].separation
        best.direction = normal
        if is_separated(source, pair, normal, depth):
            stays = deepest
            best.is_level = 1
            best.exit.found = 1
            best.exit.translation = depth
        else:
            tried_exit = exit_along(source, pair, normal, best.exit.translation)
            if tried_exit.found == 1:
                best.exit = tried_exit
    is_own_depth = best.exit.found == 1 and best.exit.translation <= depth + NEARLY * pair.touch
    is_shallow = is_own_depth and best.exit.translation <= SHALLOW * pair.size
    if best.exit.found == 0 or best.exit.translation > ACCURACY * lower + pair.touch:
        length = best.exit.translation
        if is_shallow:
            best = search_features(source, pair, rows, best)
        else:
            best = search_all(source, pair, rows, best)
        if best.exit.translation < length:
            stays = -1
    if best.exit.found == 0:
        return 0
    await_threads(source)
    for i in range(rows.first + first_row_of_thread(source), rows.end, rows_step(source)):
        settle_row(source, pair, rows, i, best, stays < 0)
    await_threads(source)
    if first_row_of_thread(source) == 0:
        if stays < 0:
            emit_spare(rows, region_contact(source, pair, best))
        else:
            rows.contact[stays].priority = 0
            rows.contact[stays].role = OF_REGION
    await_threads(source)
    return best.exact


@wp.func(inline=False)
def measure_regions(source: Any, pair: SurfacePair, rows: ContactRows) -> int:
    """Replaces a pair's contacts by those of its regions of overlap.

    Returns 0 where the search ended at its greatest number of steps.
    """
    # Rows come in the order of the BVHs, which rounding may choose; projections depend on the
    # order.
    await_threads(source)
    if first_row_of_thread(source) == 0:
        sort_contacts(rows.contact, rows.first, rows.end - rows.first, False)
    await_threads(source)
    regions = wp.zeros(shape=wp.static(CAPACITY + 1), dtype=OverlapRegion)
    crossings = add_crossings(source, pair, as_regions(regions))
    count = inner_regions(rows, as_regions(regions), crossings[0])
    if crossings[1] == 1:
        # Surfaces may pass through each other along sides and vertices of triangles, here or all
        # around. Closed meshes with points in a heightfield leave it by these.
        pair = nudged(pair, rows)
        crossings = add_crossings(source, pair, as_regions(regions))
        if crossings[0] > 0:
            # Surfaces that pass through each other do so after any small translation.
            back = opposite_nudge(pair)
            crossings = add_crossings(source, back, as_regions(regions))
            if crossings[0] == 0:
                pair = back
            else:
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
def measure_meshes(source: Any, pair: SurfacePair, rows: ContactRows) -> int:
    """As `measure_regions`, for two meshes, in the frame of the mesh with more triangles.

    So the search does not depend on the order of the shapes in the scene, unless both have equally
    many triangles.
    """
    meshes = mesh_arrays(source)
    size_a = meshes.arrays[0].header[pair.a].end_node - meshes.arrays[0].header[pair.a].first_node
    size_b = meshes.arrays[0].header[pair.b].end_node - meshes.arrays[0].header[pair.b].first_node
    if size_a >= size_b:
        return measure_regions(source, pair, rows)
    turned = exchanged_pair(pair)
    first = first_row_of_thread(source)
    step = rows_step(source)
    await_threads(source)
    exchange_rows(rows, pair.pose_b_to_a, first, step)
    exact = measure_regions(source, turned, rows)
    exchange_rows(rows, turned.pose_b_to_a, first, step)
    await_threads(source)
    return exact
