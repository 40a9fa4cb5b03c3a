"""Pairs tested as sub-pairs, such as the triangles of a mesh: sub-pairs are counted, written,
collided and merged.

A collider's `SubPairKernels` defines the sub-pairs of a pair and which of their contacts are kept;
the collider's kernel computes the contacts of a sub-pair. The functions are inlined: a call would
copy the rows and surfaces, 2.5 kilobytes and more.

Scenes without such colliders do not import this module: defining its kernels takes half of a short
run's start-up time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import query_of
from collidecli.engine.contact_record import (
    CROSSING_A,
    CROSSING_B,
    FALLBACK,
    SPARE_UNTESTED,
    Candidates,
    ContactBuffer,
    ContactRecord,
)
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.narrowphase import lane_meshes
from collidecli.engine.narrowphase.collider import (
    INEXACT,
    Bucket,
    ColliderBatch,
    ContactOutput,
    candidate_of,
)
from collidecli.engine.narrowphase.lane_meshes import (
    LANES,
    LaneMeshes,
    LaneSlot,
    synchronize_lanes,
)
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

FEW = wp.constant(8)
"""Sub-pairs stored in the counting pass: most candidates have no more and need only one search."""
CACHED = wp.constant(2)
"""Contacts of a sub-pair stored in the counting pass, for colliders that count contacts first."""


@wp.struct
class SubPairList:
    """Slots of a candidate's sub-pairs: from `first` up to but excluding `end`; more are only
    counted. writes: 1 in the second pass, when the count is known and the slots are final.
    """

    sub_pair: wp.array[wp.vec2i]
    candidate: int
    first: int
    end: int
    writes: int


@wp.struct
class ContactRows:
    """Rows of the contacts of a sub-pair or a pair: from `first` up to but excluding `end`.

    Of a sub-pair: more contacts are only counted.
    """

    contact: wp.array[ContactRecord]
    first: int
    end: int


@wp.func
def begin_of(end: wp.array[wp.int32], index: int) -> int:
    """Where entry `index` begins, from the inclusive scan of the counts: the end of the entry
    before it."""
    if index == 0:
        return 0
    return end[index - 1]


@wp.func
def sub_pair_range(sub_pair_end: wp.array[wp.int32], thread: int, parts: int) -> wp.vec2i:
    """Begin and end of a candidate's sub-pairs, of which `parts` threads found a part each."""
    return wp.vec2i(begin_of(sub_pair_end, thread * parts), sub_pair_end[(thread + 1) * parts - 1])


@wp.func
def append_sub_pair(out: SubPairList, count: int, number: int) -> int:
    """Appends sub-pair `count` of a candidate if a slot is left; returns the new count."""
    if out.first + count < out.end:
        out.sub_pair[out.first + count] = wp.vec2i(out.candidate, number)
    return count + 1


@wp.func
def part_of_side(part: int, parts: int, side: int) -> wp.vec2i:
    """Which part of the triangles of side 0 or 1 a thread searches, and of how many parts; 0 of 0
    for none.

    Half of the threads have side 0, the others side 1, so that the sub-pairs of all threads in a
    row are in the order of one thread. A single thread has both sides.
    """
    if parts == 1:
        return wp.vec2i(0, 1)
    half = parts / 2
    if side == 0 and part < half:
        return wp.vec2i(part, half)
    if side == 1 and part >= half:
        return wp.vec2i(part - half, parts - half)
    return wp.vec2i(0, 0)


@wp.func
def has_all(out: SubPairList, count: int) -> bool:
    """Whether all sub-pairs are written, so that the search can end."""
    return out.writes == 1 and out.first + count == out.end


def search_kernel(surfaces_type: Any, sub_pairs_of: Callable[..., Any]) -> wp.Kernel:
    """Kernel that finds sub-pairs.

    sub_pairs_of(rows, surfaces, query, part, parts, out) -> int: appends the sub-pairs of a pair,
    or of one of `parts` parts of it, in an order determined by the pair alone; returns their count.
    """

    def find_sub_pairs(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        bucket: Bucket,
        parts: int,
        end: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        sub_pair: wp.array[wp.vec2i],
        writes: int,
    ):
        """Counts sub-pairs and stores the first FEW; after the scan of the counts, writes all
        sub-pairs of candidates with more. `parts` threads a candidate.

        bound: of all sub-pairs when they are written; none are where it is 0.
        """
        thread = wp.tid()
        candidate = candidate_of(bucket, thread / parts)
        if candidate < 0 or bound[0] == 0:
            if writes == 0:
                end[thread] = 0
            return
        out = SubPairList()
        out.sub_pair = sub_pair
        out.candidate = candidate
        out.first = thread * FEW
        out.end = out.first + FEW
        out.writes = writes
        if writes == 1:
            out.first = begin_of(end, thread)
            out.end = end[thread]
            if out.end - out.first <= FEW:
                return
        query = query_of(
            rows, margins, instances, candidates.pair[out.candidate], candidates.row[out.candidate]
        )
        count = sub_pairs_of(rows, surfaces, query, thread % parts, parts, out)
        if writes == 0:
            end[thread] = count

    return surface_kernel(find_sub_pairs, surfaces_type)


def sub_pair_kernel(surfaces_type: Any, collide_sub_pair: Callable[..., Any]) -> wp.Kernel:
    """Kernel of sub-pairs with a limited number of contacts.

    collide_sub_pair(rows, surfaces, query, number, out, row) -> int: writes the contacts of a
    sub-pair from `row` on; returns their count, plus INEXACT if a depth is an upper bound.
    """

    def collide_sub_pairs(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        sub_pair: wp.array[wp.vec2i],
        bound: wp.array[wp.int32],
        most: int,
        inexact: wp.array[wp.int32],
        out: ContactBuffer,
        sub_pair_found: wp.array[wp.int32],
    ):
        """Contacts of one sub-pair a thread, as many as the bound."""
        thread = wp.tid()
        if thread >= bound[0]:
            return
        candidate = sub_pair[thread][0]
        query = query_of(
            rows, margins, instances, candidates.pair[candidate], candidates.row[candidate]
        )
        count = collide_sub_pair(rows, surfaces, query, sub_pair[thread][1], out, thread * most)
        if count >= INEXACT:
            count -= INEXACT
            wp.atomic_add(inexact, 0, 1)
        sub_pair_found[thread] = count

    return surface_kernel(collide_sub_pairs, surfaces_type)


def counted_kernel(surfaces_type: Any, contacts_of: Callable[..., Any]) -> wp.Kernel:
    """Kernel of sub-pairs with any number of contacts.

    contacts_of(rows, surfaces, query, number, out: ContactRows) -> int: writes the contacts of a
    sub-pair while rows are left; returns their count.
    """

    def collide_sub_pairs(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        sub_pair: wp.array[wp.vec2i],
        bound: wp.array[wp.int32],
        end: wp.array[wp.int32],
        cached: wp.array[ContactRecord],
        row_bound: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        first_row: int,
        writes: int,
    ):
        """Counts a sub-pair's contacts or, after the scan of the counts, writes them from first_row
        on; one thread a sub-pair, as many as the bound.

        cached: the first CACHED contacts of each sub-pair, from the counting pass. row_bound: of
        all contacts when they are written; none are where it is 0.
        """
        thread = wp.tid()
        if thread >= bound[0] or row_bound[0] == 0:
            return
        out = ContactRows()
        out.contact = cached
        out.first = thread * CACHED
        out.end = out.first + CACHED
        if writes == 1:
            begin = begin_of(end, thread)
            if end[thread] - begin <= CACHED:
                for i in range(end[thread] - begin):
                    contact[first_row + begin + i] = cached[thread * CACHED + i]
                return
            out.contact = contact
            out.first = first_row + begin
            out.end = first_row + end[thread]
        candidate = sub_pair[thread][0]
        query = query_of(
            rows, margins, instances, candidates.pair[candidate], candidates.row[candidate]
        )
        count = contacts_of(rows, surfaces, query, sub_pair[thread][1], out)
        if writes == 0:
            end[thread] = count

    return surface_kernel(collide_sub_pairs, surfaces_type)


TOUCHES = wp.constant(Real(1.0e-9))
"""Fraction of the larger surface's size: surfaces this close touch, and points this close to an
edge or vertex lie on it."""
NEAR = wp.constant(Real(2.0))
"""Multiple of a touch: two surfaces have contacts up to this separation, whatever the gap, until
their overlap is measured. Surfaces that touch may overlap: equal solids at one pose have no point
inside each other."""


@wp.func
def may_overlap(rows: ContactRows, touch: Real) -> bool:
    """Whether a pair has a contact that its overlap decides: one nearer than `touch` [m], or a
    crossing."""
    result = bool(False)
    for i in range(rows.first, rows.end):
        role = rows.contact[i].role
        result = result or rows.contact[i].separation < touch or role == SPARE_UNTESTED
        result = result or role == CROSSING_A or role == CROSSING_B
    return result


@wp.func
def omit_contact(contact: wp.array[ContactRecord], row: int):
    """Makes a contact one that the merge omits."""
    contact[row].separation = Real(wp.inf)
    contact[row].priority = FALLBACK


def overlap_kernel(surfaces_type: Any, measure: Callable[..., Any]) -> wp.Kernel:
    """Kernel that computes the penetration depth of overlapping pairs from the contacts of their
    sub-pairs.

    measure(rows, surfaces, query, out: ContactRows) -> int: changes the contacts of a pair in
    place; returns 0 if a depth is an upper bound.
    """

    def measure_overlaps(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        bucket: Bucket,
        parts: int,
        sub_pair_end: wp.array[wp.int32],
        row_end: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        first_row: int,
    ):
        """Depths of a candidate whose contacts are contiguous from first_row on, in the layout of
        the merge; one thread a candidate, none where the bound of all contacts is 0.
        """
        thread = wp.tid()
        candidate = candidate_of(bucket, thread)
        if candidate < 0 or bound[0] == 0:
            return
        held = sub_pair_range(sub_pair_end, thread, parts)
        out = ContactRows(
            contact, first_row + begin_of(row_end, held[0]), first_row + begin_of(row_end, held[1])
        )
        row = candidates.row[candidate]
        touch = NEAR * TOUCHES * wp.max(wp.max(rows.size[row[0]], rows.size[row[1]]))
        if may_overlap(out, touch):
            query = query_of(
                rows, margins, instances, candidates.pair[candidate], candidates.row[candidate]
            )
            if measure(rows, surfaces, query, out) == 0:
                wp.atomic_add(bucket.inexact, 0, 1)
            for i in range(out.first, out.end):
                if contact[i].separation >= query.max_separation:
                    omit_contact(contact, i)

    return surface_kernel(measure_overlaps, surfaces_type)


def lane_overlap_kernel(surfaces_type: Any, measure: Callable[..., Any]) -> wp.Kernel:
    """The kernel of `overlap_kernel` for the lanes of `lane_meshes`.

    measure(rows, surfaces, query, out: ContactRows, lanes: LaneMeshes) -> int: as that of
    `overlap_kernel`, executed by all threads of a pair; lanes: without the meshes.
    """

    def measure_overlaps_by_lanes(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        bucket: Bucket,
        parts: int,
        sub_pair_end: wp.array[wp.int32],
        row_end: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        first_row: int,
        slot: wp.array[LaneSlot],
        threads: int,
        factor: int,
        shift: int,
    ):
        """Depths of a candidate by `threads` threads, LANES or 1; slot: LANES a candidate; factor,
        shift: see `lane_meshes.LANE_ORDER`.
        """
        thread = wp.tid()
        index = thread / threads
        candidate = candidate_of(bucket, index)
        if candidate < 0 or bound[0] == 0:
            return
        lanes = LaneMeshes()
        lanes.slot = slot
        lanes.begin = index * wp.static(LANES)
        lanes.first = thread % threads
        lanes.step = threads
        lanes.factor = factor
        lanes.shift = shift
        held = sub_pair_range(sub_pair_end, index, parts)
        out = ContactRows(
            contact, first_row + begin_of(row_end, held[0]), first_row + begin_of(row_end, held[1])
        )
        row = candidates.row[candidate]
        touch = NEAR * TOUCHES * wp.max(wp.max(rows.size[row[0]], rows.size[row[1]]))
        if may_overlap(out, touch):
            query = query_of(
                rows, margins, instances, candidates.pair[candidate], candidates.row[candidate]
            )
            if measure(rows, surfaces, query, out, lanes) == 0 and lanes.first == 0:
                wp.atomic_add(bucket.inexact, 0, 1)
            synchronize_lanes()
            for i in range(out.first + lanes.first, out.end, threads):
                if contact[i].separation >= query.max_separation:
                    omit_contact(contact, i)

    return surface_kernel(measure_overlaps_by_lanes, surfaces_type)


@wp.func
def spare_rows(out: ContactRows, count: int, priority: int, role: int) -> int:
    """Appends `count` unused rows, which `overlap_kernel` may fill with contacts; returns
    `count`."""
    for i in range(count):
        if out.first + i < out.end:
            contact = ContactRecord()
            contact.separation = Real(wp.inf)
            contact.priority = priority
            contact.role = role
            out.contact[out.first + i] = contact
    return count


def surface_kernel(function: Callable[..., Any], surfaces_type: Any) -> wp.Kernel:
    """The kernel of a function with an argument `surfaces` of a type."""
    function.__annotations__["surfaces"] = surfaces_type
    return kernel(function)


@kernel
def copy_sub_pairs(
    end: wp.array[wp.int32],
    few: wp.array[wp.vec2i],
    bound: wp.array[wp.int32],
    sub_pair: wp.array[wp.vec2i],
    most: wp.array[wp.int32],
):
    """Copies the sub-pairs stored in the counting pass, none where the bound of all is 0; most: the
    largest count. Threads as in the search."""
    thread = wp.tid()
    if bound[0] == 0:
        return
    slot = begin_of(end, thread)
    count = end[thread] - slot
    if count <= FEW:
        for k in range(count):
            sub_pair[slot + k] = few[thread * FEW + k]
    else:
        wp.atomic_max(most, 0, count)


@dataclass(frozen=True)
class SubPairs:
    """Sub-pairs of a batch. sub_pair: vec2i, candidate and the number assigned by the search.

    end: end of the sub-pairs of each search thread, `parts` threads a candidate. rows: of their
    contacts; of sub-pairs with a limited number of contacts the bound is that of the sub-pairs.
    row_end, cached: where contacts are counted first, the end of each sub-pair's rows, and the
    first contacts of each.
    """

    sub_pair: wp.array
    end: wp.array
    count: ElementCount
    parts: int
    rows: ElementCount
    row_end: wp.array | None = None
    cached: wp.array | None = None


@dataclass(frozen=True)
class SubPairKernels:
    """Kernels that collide the pairs of some colliders by sub-pairs.

    surfaces: name of the model's surfaces that the kernels read. search, merge: kernels of
    `search_kernel` and `merge_kernel`. parts_on_cuda: threads of one candidate's search on a GPU; a
    CPU uses one. others: kernels that prepare the surfaces. overlap: kernel of `overlap_kernel`.
    lane_overlap: of `lane_overlap_kernel`, in its place on a device with a memory of its own.
    """

    name: str
    surfaces: str
    search: wp.Kernel
    merge: wp.Kernel
    parts_on_cuda: int = 1
    others: tuple[wp.Kernel, ...] = ()
    overlap: wp.Kernel | None = None
    lane_overlap: wp.Kernel | None = None

    @property
    def kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition to the collider's own."""
        kernels = [self.search, copy_sub_pairs, self.merge, *self.others]
        return [*kernels, self.overlap] if self.overlap else kernels

    @property
    def device_kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition on a device with a memory of its own."""
        return [self.lane_overlap] if self.lane_overlap else []

    def bound(self, batch: ColliderBatch) -> ColliderBatch:
        """The batch with the rows and surfaces that the kernels read."""
        return batch

    def find(self, batch: ColliderBatch, workspace: Workspace, counted: bool = True) -> SubPairs:
        """Sub-pairs of a batch; counted: with the number of rows of their contacts."""
        batch = self.bound(batch)
        collider = batch.collider
        counts = workspace.counts
        name = collider.name if counted else f"{collider.name}_listed"
        parts = self.parts_on_cuda if workspace.has_own_memory else 1
        threads = batch.size * parts
        end = workspace.array(f"{collider.name}_end", threads, wp.int32)
        few = workspace.array("few_sub_pairs", threads * int(FEW), wp.vec2i)
        shared = [*batch.shared, batch.surfaces[self.surfaces]]
        searched = [*shared, batch.bucket(workspace), parts, end, counts.unbounded, few, 0]
        workspace.launch(self.search, threads, searched)
        workspace.launch_scan(end, threads)
        found = counts.of(f"{name}_sub_pair", end, threads)
        sub_pair = workspace.array(f"{collider.name}_sub_pair", found.most, wp.vec2i)
        most = counts.counter(f"{name}_most_sub_pairs")
        workspace.launch(copy_sub_pairs, threads, [end, few, found.bound, sub_pair, most])
        # On a heightfield, a pass over all candidates would take a tenth of the counting pass's
        # time.
        if counts.is_expected(f"{name}_sub_pair") or workspace.last(most, 1) > int(FEW):
            searched = [*shared, batch.bucket(workspace), parts, end, found.bound, sub_pair, 1]
            workspace.launch(self.search, threads, searched)
        if collider.max_contacts > 0 or not counted:
            rows = ElementCount(found.most * collider.max_contacts, found.bound)
            return SubPairs(sub_pair, end, found, parts, rows)
        row_end = workspace.array(f"{collider.name}_row_end", found.most, wp.int32)
        cached = workspace.array(f"{collider.name}_held", found.most * int(CACHED), ContactRecord)
        contact = workspace.array("emitted_contact", 1, ContactRecord)
        arguments = [*shared, sub_pair, found.bound, row_end, cached, counts.unbounded]
        workspace.launch(collider.kernel, found.most, [*arguments, contact, 0, 0])
        workspace.launch_scan(row_end, found.most)
        rows = counts.of(f"{name}_row", row_end, found)
        return SubPairs(sub_pair, end, found, parts, rows, row_end, cached)

    def collide(
        self, batch: ColliderBatch, sub_pairs: SubPairs, out: ContactOutput, workspace: Workspace
    ) -> None:
        """Emits the contacts of a batch's sub-pairs, merged by candidate."""
        batch = self.bound(batch)
        contact = out.contact
        first_row = out.first_row
        collider = batch.collider
        most = collider.max_contacts
        count = sub_pairs.count
        shared = [*batch.shared, batch.surfaces[self.surfaces]]
        arguments = [*shared, sub_pairs.sub_pair, count.bound]
        if sub_pairs.row_end is not None:
            contact_counts = sub_pairs.row_end
            arguments += [contact_counts, sub_pairs.cached, sub_pairs.rows.bound]
            arguments += [contact, first_row, 1]
        else:
            contact_counts = workspace.array("sub_pair_found", count.most, wp.int32)
            # Rows are contiguous: those of a sub-pair, and of a candidate's sub-pairs, follow each
            # other.
            buffer = workspace.struct(
                ContactBuffer, contact=contact, start=first_row, most=1, pair_count=1
            )
            arguments += [most, out.inexact, buffer, contact_counts]
        workspace.launch(collider.kernel, count.most, arguments)
        bucket = batch.bucket(workspace, limit=out.limit, inexact=out.inexact)
        ranges = [bucket, sub_pairs.parts, sub_pairs.end]
        of_rows = [contact_counts, sub_pairs.rows.bound, contact, first_row]
        if self.overlap is not None:
            arguments = [*shared, *ranges, *of_rows]
            if self.lane_overlap is not None and workspace.has_own_memory:
                slot = workspace.array("lane_slot", batch.size * LANES, LaneSlot)
                threads = LANES if workspace.device.is_cuda else 1
                workspace.launch(
                    self.lane_overlap,
                    batch.size * threads,
                    [*arguments, slot, threads, *lane_meshes.LANE_ORDER],
                )
            else:
                workspace.launch(self.overlap, batch.size, arguments)
        rows, _, _, candidates = batch.shared
        workspace.launch(self.merge, batch.size, [rows, candidates, *ranges, *of_rows, most])
        if collider.region_depths is not None:
            arguments = [*shared, *ranges, contact, most]
            workspace.launch(collider.region_depths, batch.size, arguments)
