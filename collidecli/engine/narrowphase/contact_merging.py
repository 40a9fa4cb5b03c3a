"""Merging of sub-pair contacts into the contacts of a pair: unique features or points, sorted by
feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import (
    FALLBACK,
    Candidates,
    ContactRecord,
    features_before,
    is_deeper,
    swap_contacts,
)
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.primitives import primitive_at, radius_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.collider import Bucket, candidate_of
from collidecli.engine.narrowphase.sub_pairs import begin_of, sub_pair_range
from collidecli.engine.runtime.kernel import kernel


@wp.func
def precedes(x: ContactRecord, y: ContactRecord, swapped: bool) -> bool:
    """Order by features; of equal features those that penetrate, then the lower priority value,
    then the smaller separation.

    So a contact that a maximum separation above 0 adds never replaces one that penetrates.
    """
    if features_before(x, y, swapped):
        return True
    if features_before(y, x, swapped):
        return False
    if (x.separation < Real(0.0)) != (y.separation < Real(0.0)):
        return x.separation < y.separation
    if x.priority != y.priority:
        return x.priority < y.priority
    return x.separation < y.separation


def heap_sort(before: Callable[..., Any], name: str) -> Any:
    """Heap sort of `count` contacts from `first` on, as a pair may have thousands. before(x, y,
    swapped): the order."""

    @wp.func(name=f"sift_down_{name}")
    def sift_down(
        contact: wp.array[ContactRecord], first: int, root: int, count: int, swapped: bool
    ):
        at = root
        while 2 * at + 1 < count:
            child = 2 * at + 1
            if child + 1 < count and before(
                contact[first + child], contact[first + child + 1], swapped
            ):
                child += 1
            if not before(contact[first + at], contact[first + child], swapped):
                return
            swap_contacts(contact, first + at, first + child)
            at = child

    @wp.func(name=f"sort_{name}")
    def sort(contact: wp.array[ContactRecord], first: int, count: int, swapped: bool):
        for i in range(count / 2):
            sift_down(contact, first, count / 2 - 1 - i, count, swapped)
        for i in range(count - 1):
            last = count - 1 - i
            swap_contacts(contact, first, first + last)
            sift_down(contact, first, 0, last, swapped)

    return sort


sort_contacts = heap_sort(precedes, "contacts")


@wp.func(inline=False)
def unique_by_feature(
    contact: wp.array[ContactRecord], first: int, count: int, swapped: bool
) -> int:
    """Sorts contacts and keeps the best of those with equal features; returns the count."""
    sort_contacts(contact, first, count, swapped)
    kept = int(0)
    for i in range(count):
        is_new = kept == 0
        if kept > 0:
            is_new = features_before(contact[first + kept - 1], contact[first + i], swapped)
        if is_new:
            contact[first + kept] = contact[first + i]
            kept += 1
    return kept


SAME_POINT = wp.constant(Real(1.0e-9))
"""Distance relative to the smaller shape's size below which both points of two contacts
coincide."""
SAME_NORMAL = wp.constant(Real(1.0e-12))
"""Squared distance of two unit normals below which they are equal: 1e-6 rad."""
ACROSS = wp.constant(Vec3(0.5773, 0.6029, 0.5506))
"""A direction that no row of a grid is perpendicular to: few contacts of a pair have close
coordinates along it."""
FEW_CONTACTS = wp.constant(32)
"""Maximum count of contacts compared pairwise; more are sorted along ACROSS first."""


@wp.func
def coincide(x: ContactRecord, y: ContactRecord, near: Real) -> bool:
    """Whether two contacts of a pair have equal normals and equal points, to `near` [m]."""
    if (
        wp.length_sq(x.normal - y.normal) > SAME_NORMAL
        or wp.length_sq(x.point - y.point) > near * near
    ):
        return False
    return (
        wp.length_sq(x.point + x.separation * x.normal - y.point - y.separation * y.normal)
        <= near * near
    )


@wp.func
def precedes_along(x: ContactRecord, y: ContactRecord, swapped: bool) -> bool:
    """Order by the coordinate along ACROSS."""
    return wp.dot(x.point, ACROSS) < wp.dot(y.point, ACROSS)


sort_along = heap_sort(precedes_along, "along")


@wp.func(inline=False)
def unique_by_point(
    contact: wp.array[ContactRecord], first: int, before: int, near: Real, swapped: bool
) -> int:
    """Keeps one of contacts with equal points and normals: the deepest, and of equals the one with
    the lowest features.

    near: maximum distance of equal points [m]. Returns the remaining count, sorted by feature.
    """
    count = before
    along = count > FEW_CONTACTS
    if along:
        sort_along(contact, first, count, swapped)
    kept = int(0)
    for i in range(count):
        record = contact[first + i]
        level = wp.dot(record.point, ACROSS) - Real(2.0) * near
        k = kept - 1
        twin = int(-1)
        while k >= 0:
            if along and wp.dot(contact[first + k].point, ACROSS) < level:
                break
            if coincide(contact[first + k], record, near):
                twin = k
                break
            k -= 1
        if twin < 0:
            contact[first + kept] = record
            kept += 1
        elif is_deeper(record, contact[first + twin], swapped):
            contact[first + twin] = record
    if along:
        sort_contacts(contact, first, kept, swapped)
    return kept


@wp.struct
class Partition:
    """Contacts of a pair split by priority. count: at the front; deepest: their least separation,
    inf for none."""

    count: int
    deepest: Real


@wp.func
def partition_by_priority(
    contact: wp.array[ContactRecord], first: int, count: int, priority: int
) -> Partition:
    """Moves the contacts whose priority value is below `priority` to the front, in their order."""
    result = Partition()
    result.deepest = Real(wp.inf)
    for i in range(count):
        if contact[first + i].priority < priority:
            result.deepest = wp.min(result.deepest, contact[first + i].separation)
            swap_contacts(contact, first + result.count, first + i)
            result.count += 1
    return result


@wp.func
def record_found(candidates: Candidates, candidate: int, found: int, limit: int):
    """Records a candidate's number of contacts found, and of those kept: at most `limit`, 0 for
    all."""
    candidates.found[candidate] = found
    candidates.count[candidate] = wp.where(limit > 0, wp.min(found, limit), found)


def merge_kernel(select_contacts: Callable[..., Any], merges: bool = False) -> wp.Kernel:
    """Kernel that merges the contacts of sub-pairs into those of their pairs.

    select_contacts(rows, row, swapped, contact, first, count) -> int: moves the contacts that their
    priorities keep to the front and returns their count. row: of the two shapes; swapped: whether
    the second is the pair's a. merges: whether to merge coincident contacts.
    """

    @kernel
    def merge_contacts(
        rows: ShapeRows,
        candidates: Candidates,
        bucket: Bucket,
        parts: int,
        sub_pair_end: wp.array[wp.int32],
        found: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        first_row: int,
        most: int,
    ):
        """Compacts the contacts of a pair's sub-pairs to the front of their rows; one thread a
        candidate.

        sub_pair_end: end of the sub-pairs of each of a candidate's `parts`. bound: of all contacts
            or sub-pairs; where it is 0 no pair has contacts.
        found: number of contacts of a sub-pair in its `most` rows from first_row on; if `most` is 0
        the contacts are contiguous, and `found` is the end of those of each sub-pair.
        """
        thread = wp.tid()
        candidate = candidate_of(bucket, thread)
        if candidate < 0:
            return
        held = wp.vec2i(0, 0)
        if bound[0] > 0:
            held = sub_pair_range(sub_pair_end, thread, parts)
        first = first_row + held[0] * most
        count = int(0)
        if most > 0:
            for sub_pair in range(held[0], held[1]):
                for i in range(found[sub_pair]):
                    contact[first + count] = contact[first_row + sub_pair * most + i]
                    count += 1
        else:
            first += begin_of(found, held[0])
            count = first_row + begin_of(found, held[1]) - first
        if count > 0:
            row = candidates.row[candidate]
            swapped = rows.type[row[0]] > rows.type[row[1]]
            count = select_contacts(rows, row, swapped, contact, first, count)
            count = unique_by_feature(contact, first, count, swapped)
            if wp.static(merges):
                near = SAME_POINT * wp.min(
                    wp.length(rows.size[row[0]]), wp.length(rows.size[row[1]])
                )
                count = unique_by_point(contact, first, count, near, swapped)
        record_found(candidates, candidate, count, bucket.limit)
        candidates.first[candidate] = first
        candidates.stride[candidate] = 1

    return merge_contacts


MIDDLE_INSIDE = wp.constant(3)
"""Priority of the contact of a shape whose middle is inside: it counts where it is deeper than all
others of its pair.
"""
DEEPER = wp.constant(Real(2.0))
"""Factor by which a fallback must be deeper than the other contacts. The exit over the side of a
small triangle is not longer than the exit from the surface around it, apart from the surface's
curvature."""
TOUCHING = wp.constant(Real(1.0e-6))
"""Fraction of a convex shape's size: overlaps that are no deeper are touches, resolved along the
surface's normal."""


@wp.func
def without_fallbacks(
    contact: wp.array[ContactRecord], first: int, count: int, deep: Real, least: Real
) -> int:
    """Drops fallback contacts, except the deepest where it is deeper than all others by more than
    `least` [m], and DEEPER than they are where one of theirs is below `deep` [m]; returns the
    number of contacts left.

    So a pair whose cores cross never has only contacts with their shapes' rounding, nor a depth far
    below that of the crossing; and shapes that touch have no contact along a direction that is in
    no normal cone. A MIDDLE_INSIDE contact is kept where it is the deepest of all.
    """
    counted = partition_by_priority(contact, first, count, FALLBACK)
    kept = int(-1)
    for i in range(counted.count, count):
        limit = counted.deepest
        if contact[first + i].priority < MIDDLE_INSIDE:
            limit = counted.deepest - least
            if counted.deepest < deep:
                limit = wp.min(counted.deepest * DEEPER, limit)
        if kept >= 0:
            limit = wp.min(limit, contact[first + kept].separation)
        if contact[first + i].separation < limit:
            kept = i
    if kept < 0:
        return counted.count
    swap_contacts(contact, first + counted.count, first + kept)
    return counted.count + 1


@wp.func
def keep_of_triangles(
    rows: ShapeRows,
    row: wp.vec2i,
    swapped: bool,
    contact: wp.array[ContactRecord],
    first: int,
    count: int,
) -> int:
    """Applies the rule for a convex shape and the triangles of a surface; returns the number of
    contacts left."""
    convex = wp.where(swapped, row[1], row[0])
    deep = -radius_of(primitive_at(rows.type, rows.size, convex))
    return without_fallbacks(contact, first, count, deep, TOUCHING * wp.length(rows.size[convex]))


@wp.func
def keep_of_surfaces(
    rows: ShapeRows,
    row: wp.vec2i,
    swapped: bool,
    contact: wp.array[ContactRecord],
    first: int,
    count: int,
) -> int:
    """Applies the rule for two surfaces; returns the number of contacts left."""
    return without_fallbacks(contact, first, count, -Real(wp.inf), Real(0.0))


merge_triangles = merge_kernel(keep_of_triangles, merges=True)
merge_surfaces = merge_kernel(keep_of_surfaces, merges=True)
