"""Depths of the contacts of a convex shape with a surface of triangles: those of the least
translation that separates each region of their overlap.

Contacts with single triangles do not give the translation that separates a shape from all of them.
After the contacts of a pair are merged and some overlap deeply, the deepest is verified: the shape,
moved along its normal by its depth, must be free, and the depth of a point of one body inside the
other is a lower bound for every translation. Otherwise directions are searched, see
`convex_least_translation`.
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
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Vertex, middle_of
from collidecli.engine.geometry.real import (
    Real,
    Vec3,
)
from collidecli.engine.narrowphase.collider import Bucket, candidate_of
from collidecli.engine.narrowphase.contact_merging import record_found, unique_by_feature
from collidecli.engine.narrowphase.convex.features import feature_at, triangle_feature_at
from collidecli.engine.narrowphase.convex.gjk import nearest_of_difference
from collidecli.engine.narrowphase.convex.penetration import WITNESS_GAP, minkowski_difference
from collidecli.engine.narrowphase.sub_pairs import sub_pair_range, surface_kernel
from collidecli.engine.narrowphase.triangles.convex_least_translation import (
    DIRECTIONS,
    FROM_CONTACTS,
    SHORTER,
    add_direction,
    allowed_in,
    as_ints,
    as_regions,
    as_vectors,
    better,
    search,
)
from collidecli.engine.narrowphase.triangles.convex_surface import (
    corners_of,
    depth_inside,
    has_nearer,
    is_one_sided,
    named_of,
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
from collidecli.engine.narrowphase.triangles.depth_in_shape import depth_in_shape

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
