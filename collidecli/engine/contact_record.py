"""Contact record of the narrow phase, the buffers that hold records, and the order of one pair's
contacts.

A collider emits the contacts of a pair to consecutive rows of a contact buffer, in the frame of the
pair's shape a. In memory row i of a pair is at first + i * stride (`Candidates`). The canonical
order is by features, those of shape0 first; shape0 is the shape with the smaller row, and a the
shape whose type is smaller.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

INNER_A = wp.constant(1)
"""Role of a contact whose point is inside b, at its penetration depth: no shorter translation
separates the two."""
INNER_B = wp.constant(2)
"""Role of a contact whose point of b is inside a, at its penetration depth."""
CROSSING_A = wp.constant(3)
"""Role of a point of a whose contact is that of its region: an end of an edge that crosses a
triangle of the open surface b, or a corner that lies on b and passes through it. Its normal and
separation are not set."""
CROSSING_B = wp.constant(4)
"""Role of such a point of b."""
OF_REGION = wp.constant(5)
"""Role of the contact of a region of overlap, whose depth is the region's."""
SPARE = wp.constant(6)
"""Role of a row reserved for a contact that may be found later."""
SPARE_UNTESTED = wp.constant(7)
"""Role of such a row of a pair that may overlap without a contact of its features."""
UNPROVEN = wp.constant(8)
"""Role of a contact of a convex shape and a triangle whose depth need not be the least: of a
triangle with a sharp edge, deeper than the least translation off it; or along a translation off it
that is in no normal cone, so that other triangles may be in its way. See
`convex_triangle.mark_unproven`."""
FALLBACK = wp.constant(2)
"""Priority of a contact that counts only where its pair has no other. 0: a closest point; 1: a
contact along a triangle's normal."""
ANCHOR = wp.constant(-2)
"""Feature of a reduction's anchor contact on both shapes; features of shapes are -1 or more."""


@wp.struct
class ContactRecord:
    """A contact as the narrow phase emits it; one struct, since most rows stay empty.

    point: witness point on a's surface, a's frame [m]. normal: unit, from a to b, a's frame.
    separation: signed distance of the two un-inflated surfaces along normal [m]; b's witness point
    is point + separation * normal. feature_a, feature_b: -1 none. kind: point, edge, face, patch.
    role: one of the roles above, until the contacts of a pair's sub-pairs are merged; 0 a contact.
    priority: 0 for a contact that always counts; a contact of a higher value counts by the rule of
    the collider's merge kernel, see `contact_merging.merge_kernel`. Not read after merging. marks:
    bit set of the reduction (`engine.reduction`); 0 outside it.
    """

    point: Vec3
    normal: Vec3
    separation: Real
    feature_a: int
    feature_b: int
    kind: int
    role: int
    marks: int
    priority: int


@wp.struct
class ContactBuffer:
    """Rows for contacts: `most` consecutive rows for each pair of a batch of `pair_count` pairs.

    Memory layout: first row of every pair, from `start` on, then the second row of every pair, and
    so on. Most pairs have one contact, so reads are then consecutive.
    """

    contact: wp.array[ContactRecord]
    start: int
    most: int
    pair_count: int


@wp.func
def memory_row(out: ContactBuffer, row: int) -> int:
    """Index of a row in `contact`."""
    pair = row // out.most
    return out.start + (row - pair * out.most) * out.pair_count + pair


@wp.func
def emit_contact(
    out: ContactBuffer,
    row: int,
    point: Vec3,
    normal: Vec3,
    separation: Real,
    feature_a: int,
    feature_b: int,
    kind: int,
    priority: int = 0,
):
    """Writes one contact to `row`."""
    contact = ContactRecord()
    contact.point = point
    contact.normal = normal
    contact.separation = separation
    contact.feature_a = feature_a
    contact.feature_b = feature_b
    contact.kind = kind
    contact.priority = priority
    out.contact[memory_row(out, row)] = contact


@wp.func
def set_kind(out: ContactBuffer, row: int, count: int, kind: int):
    """Sets the kind of the contacts in rows row .. row + count - 1; it depends on their number."""
    for i in range(row, row + count):
        out.contact[memory_row(out, i)].kind = kind


@wp.struct
class Candidates:
    """The candidate pairs of a chunk, and the contacts of each.

    pair: the two instances. row: rows of the two shapes. found: emitted contacts. count: contacts
    in the result, fewer where their number is limited. end: inclusive scan of `count`, see
    `scan_counts`: the contacts of candidate i are end[i] - count[i] .. end[i] - 1. first, stride:
    index of the first emitted contact in the contact buffer, and distance to the next.
    """

    pair: wp.array[wp.vec2i]
    row: wp.array[wp.vec2i]
    found: wp.array[wp.int32]
    count: wp.array[wp.int32]
    end: wp.array[wp.int32]
    first: wp.array[wp.int32]
    stride: wp.array[wp.int32]


_ELEMENTS = {
    "found": wp.int32,
    "count": wp.int32,
    "end": wp.int32,
    "first": wp.int32,
    "stride": wp.int32,
}


def new_candidates(workspace: Workspace, pair: wp.array, row: wp.array, count: int) -> Candidates:
    """Candidates over `count` pairs of instances with their rows, the other fields allocated but
    not set."""
    workspace.table("of_candidate", Candidates, count, _ELEMENTS)
    return workspace.struct(Candidates, pair=pair, row=row)


COUNTING_THREADS = 1 << 14
"""Threads of a device that count candidates: each adds once to the number of all."""


@kernel
def count_touching(
    count: wp.array[wp.int32],
    most: int,
    bound: wp.array[wp.int32],
    threads: int,
    touching: wp.array[wp.int32],
):
    """One thread per `threads`-th candidate: adds the number of those with a contact to
    `touching[0]`. There are as many candidates as the lesser of `most` and the bound."""
    found = int(0)
    for candidate in range(wp.tid(), wp.min(most, bound[0]), threads):
        if count[candidate] > 0:
            found += 1
    wp.atomic_add(touching, 0, found)


def scan_counts(workspace: Workspace, candidates: Candidates, count: ElementCount) -> None:
    """Sets `end` of the candidates. On a device those with a contact are counted there, as
    "touching_count": the counts of millions of contacts never cross the bus."""
    workspace.launch_scan(candidates.count, count.most, candidates.end)
    if not workspace.has_own_memory:
        return
    threads = min(count.most, COUNTING_THREADS)
    touching = workspace.counts.counter("touching_count")
    arguments = [candidates.count, count.most, count.bound, threads, touching]
    workspace.launch(count_touching, threads, arguments)


def touching_count(workspace: Workspace, candidates: Candidates, count: int) -> int:
    """Number of the candidates with a contact, on the CPU."""
    return int(np.count_nonzero(workspace.host(candidates.count, count)))


@wp.func
def start_of(end: wp.array[wp.int32], index: int) -> int:
    """Start of an entry's rows, from an inclusive scan of the numbers of rows."""
    if index > 0:
        return end[index - 1]
    return 0


@wp.func
def swap_contacts(contact: wp.array[ContactRecord], i: int, j: int):
    """Exchanges two contacts."""
    other = contact[i]
    contact[i] = contact[j]
    contact[j] = other


@wp.func
def features_before(x: ContactRecord, y: ContactRecord, swapped: bool) -> bool:
    """Whether x precedes y by features, shape0's first; with `swapped` b is shape0."""
    first_x = x.feature_a
    second_x = x.feature_b
    first_y = y.feature_a
    second_y = y.feature_b
    if swapped:
        first_x = x.feature_b
        second_x = x.feature_a
        first_y = y.feature_b
        second_y = y.feature_a
    return first_x < first_y or (first_x == first_y and second_x < second_y)


@wp.func
def is_deeper(x: ContactRecord, y: ContactRecord, swapped: bool) -> bool:
    """Whether x's separation is less than y's; at equal separations, whether x precedes y by
    features."""
    if x.separation != y.separation:
        return x.separation < y.separation
    return features_before(x, y, swapped)


@wp.func
def deepest_to_front(
    contact: wp.array[ContactRecord], first: int, stride: int, count: int, kept: int, swapped: bool
):
    """Selection sort of the `kept` deepest of `count` contacts to the front (`is_deeper`)."""
    for i in range(kept):
        deepest = int(i)
        for j in range(i + 1, count):
            if is_deeper(contact[first + j * stride], contact[first + deepest * stride], swapped):
                deepest = j
        if deepest != i:
            swap_contacts(contact, first + i * stride, first + deepest * stride)


@wp.func
def sift_down_by_features(
    contact: wp.array[ContactRecord], first: int, stride: int, root: int, count: int, swapped: bool
):
    """Restores the max-heap property below `root`; the last contact by features is at the top."""
    parent = root
    while 2 * parent + 1 < count:
        child = 2 * parent + 1
        sibling = wp.min(child + 1, count - 1)
        if features_before(
            contact[first + child * stride], contact[first + sibling * stride], swapped
        ):
            child = sibling
        if not features_before(
            contact[first + parent * stride], contact[first + child * stride], swapped
        ):
            return
        swap_contacts(contact, first + parent * stride, first + child * stride)
        parent = child


@wp.func
def sort_many_by_features(
    contact: wp.array[ContactRecord], first: int, stride: int, count: int, swapped: bool
):
    """Heap sort of a pair's contacts by feature0, then feature1, for thousands of contacts in any
    order."""
    for i in range(count / 2):
        sift_down_by_features(contact, first, stride, count / 2 - 1 - i, count, swapped)
    for i in range(count - 1):
        last = count - 1 - i
        swap_contacts(contact, first, first + last * stride)
        sift_down_by_features(contact, first, stride, 0, last, swapped)
