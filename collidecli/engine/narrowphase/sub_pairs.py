"""Pairs that are tested in pieces, as the triangles of a mesh: pieces counted and written, each collided, and joined.

A kind of rooms says which pieces a pair has and which of their contacts count; its rooms say what a piece gives. These
functions are inlined: called, each would be handed copies of the rows and surfaces, 2.5 kilobytes and more.

Scenes without such rooms do not import this: defining its kernels would take half of a short run's start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.contact_record import CROSSING_A, CROSSING_B, SPARE, Candidates, ContactBuffer, ContactRecord
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.narrowphase.collider import ColliderBatch
from collidecli.engine.pair_query import query_of
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

FEW = wp.constant(8)
"""Pieces that are kept when they are counted: many candidates have no more, and are then looked through once."""
HELD = wp.constant(2)
"""The same of the contacts of a piece, where these are counted."""
INEXACT = wp.constant(1 << 16)
"""On top of the count of a piece's contacts where a depth is an upper bound."""


@wp.struct
class SubPairList:
    """Where a candidate's pieces are noted: from `first` to before `end`; more are counted only. writes: 1 where they
    have been counted, and this is where all of them go."""

    sub_pair: wp.array[wp.vec2i]
    candidate: int
    first: int
    end: int
    writes: int


@wp.struct
class ContactRows:
    """Where a piece's contacts go: rows from `first` to before `end`; more are counted only."""

    contact: wp.array[ContactRecord]
    first: int
    end: int


@wp.struct
class PairRows:
    """The contacts of a pair's pieces: rows from `first` to before `end`."""

    contact: wp.array[ContactRecord]
    first: int
    end: int


@wp.func
def append_sub_pair(out: SubPairList, found: int, number: int) -> int:
    """Notes piece `found` of a candidate where there is room; returns how many there are then."""
    if out.first + found < out.end:
        out.sub_pair[out.first + found] = wp.vec2i(out.candidate, number)
    return found + 1


@wp.func
def has_all(out: SubPairList, found: int) -> bool:
    """Whether all pieces have been written: what is left need not be looked for."""
    return out.writes == 1 and out.first + found == out.end


def search_kernel(surfaces_type: Any, sub_pairs_of: Callable[..., Any]) -> wp.Kernel:
    """The kernel that finds pieces.

    sub_pairs_of(rows, surfaces, query, part, parts, out) -> int: notes the pieces of a pair, or those of one of `parts`
    shares of it, in an order that the pair alone determines; returns how many.
    """

    def find_sub_pairs(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        order: wp.array[wp.int32],
        start: int,
        parts: int,
        end: wp.array[wp.int32],
        sub_pair: wp.array[wp.vec2i],
        writes: int,
    ):
        """`parts` threads a candidate of a bucket: how many pieces, the first FEW noted; or, once that is scanned, all
        pieces of those with more."""
        thread = wp.tid()
        out = SubPairList()
        out.sub_pair = sub_pair
        out.candidate = order[start + thread / parts]
        out.first = thread * FEW
        out.end = out.first + FEW
        out.writes = writes
        if writes == 1:
            out.first = 0
            if thread > 0:
                out.first = end[thread - 1]
            out.end = end[thread]
            if out.end - out.first <= FEW:
                return
        query = query_of(rows, margins, instances, candidates.pair[out.candidate], candidates.row[out.candidate])
        found = sub_pairs_of(rows, surfaces, query, thread % parts, parts, out)
        if writes == 0:
            end[thread] = found

    return _kernel(find_sub_pairs, surfaces_type)


def sub_pair_kernel(surfaces_type: Any, collide_sub_pair: Callable[..., Any]) -> wp.Kernel:
    """The kernel of pieces that have a limited number of contacts each.

    collide_sub_pair(rows, surfaces, query, number, out, row) -> int: writes the contacts of a sub-pair from `row` on;
    returns how many, INEXACT on top where a depth is an upper bound.
    """

    def collide_sub_pairs(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        sub_pair: wp.array[wp.vec2i],
        most: int,
        inexact: wp.array[wp.int32],
        out: ContactBuffer,
        sub_pair_found: wp.array[wp.int32],
    ):
        """One thread a piece."""
        thread = wp.tid()
        candidate = sub_pair[thread][0]
        query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
        found = collide_sub_pair(rows, surfaces, query, sub_pair[thread][1], out, thread * most)
        if found >= INEXACT:
            found -= INEXACT
            wp.atomic_add(inexact, 0, 1)
        sub_pair_found[thread] = found

    return _kernel(collide_sub_pairs, surfaces_type)


def counted_kernel(surfaces_type: Any, contacts_of: Callable[..., Any]) -> wp.Kernel:
    """The kernel of pieces that may have any number of contacts.

    contacts_of(rows, surfaces, query, number, out: ContactRows) -> int: writes the contacts of a piece as far as there
    is room; returns how many there are.
    """

    def collide_sub_pairs(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        sub_pair: wp.array[wp.vec2i],
        end: wp.array[wp.int32],
        held: wp.array[ContactRecord],
        contact: wp.array[ContactRecord],
        first_row: int,
        writes: int,
    ):
        """One thread a piece: counts its contacts, or, once the counts are scanned, writes them from first_row on.

        held: the first HELD of each piece, from the pass that counts.
        """
        thread = wp.tid()
        out = ContactRows()
        out.contact = held
        out.first = thread * HELD
        out.end = out.first + HELD
        if writes == 1:
            begin = int(0)
            if thread > 0:
                begin = end[thread - 1]
            if end[thread] - begin <= HELD:
                for i in range(end[thread] - begin):
                    contact[first_row + begin + i] = held[thread * HELD + i]
                return
            out.contact = contact
            out.first = first_row + begin
            out.end = first_row + end[thread]
        candidate = sub_pair[thread][0]
        query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
        found = contacts_of(rows, surfaces, query, sub_pair[thread][1], out)
        if writes == 0:
            end[thread] = found

    return _kernel(collide_sub_pairs, surfaces_type)


def overlap_kernel(surfaces_type: Any, measure: Callable[..., Any]) -> wp.Kernel:
    """The kernel that measures the depth of the pairs that overlap, once the contacts of their pieces are known.

    measure(rows, surfaces, query, out: PairRows) -> int: changes the contacts of a pair in place; 0 where a depth is an
    upper bound.
    """

    def measure_overlaps(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        order: wp.array[wp.int32],
        start: int,
        parts: int,
        sub_pair_end: wp.array[wp.int32],
        found: wp.array[wp.int32],
        contact: wp.array[ContactRecord],
        first_row: int,
        inexact: wp.array[wp.int32],
    ):
        """One thread a candidate of a bucket, whose contacts stand together from first_row on, as the join has them."""
        thread = wp.tid()
        candidate = order[start + thread]
        begin = int(0)
        if thread > 0:
            begin = sub_pair_end[thread * parts - 1]
        end = sub_pair_end[(thread + 1) * parts - 1]
        out = PairRows()
        out.contact = contact
        out.first = first_row
        out.end = first_row
        if begin > 0:
            out.first += found[begin - 1]
        if end > 0:
            out.end += found[end - 1]
        overlaps = bool(False)
        for i in range(out.first, out.end):
            role = contact[i].role
            overlaps = overlaps or contact[i].separation < Real(0.0) or role == CROSSING_A or role == CROSSING_B
        if overlaps:
            query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
            if measure(rows, surfaces, query, out) == 0:
                wp.atomic_add(inexact, 0, 1)

    return _kernel(measure_overlaps, surfaces_type)


@wp.func
def spare_rows(out: ContactRows, count: int, kind: int) -> int:
    """Writes `count` rows that are no contacts, into which `overlap_kernel` may put some; returns `count`."""
    for i in range(count):
        if out.first + i < out.end:
            contact = ContactRecord()
            contact.separation = Real(wp.inf)
            contact.kind = kind
            contact.role = SPARE
            out.contact[out.first + i] = contact
    return count


def _kernel(function: Callable[..., Any], surfaces_type: Any) -> wp.Kernel:
    function.__annotations__["surfaces"] = surfaces_type
    return kernel(function)


@kernel
def copy_sub_pairs(
    end: wp.array[wp.int32], few: wp.array[wp.vec2i], sub_pair: wp.array[wp.vec2i], most: wp.array[wp.int32]
):
    """One thread as in the search: the pieces that were noted when they were counted; most: the largest count."""
    thread = wp.tid()
    slot = int(0)
    if thread > 0:
        slot = end[thread - 1]
    count = end[thread] - slot
    if count <= FEW:
        for k in range(count):
            sub_pair[slot + k] = few[thread * FEW + k]
    else:
        wp.atomic_max(most, 0, count)


@dataclass(frozen=True)
class SubPairs:
    """Of a bucket's candidates. piece: vec2i, candidate and the number that the search gave the piece.

    end: where those of each of the search's threads end, `parts` of them a candidate. rows: that their contacts take.
    row_end, held: where the contacts are counted, the end of each piece's rows, and the first of each.
    """

    sub_pair: wp.array
    end: wp.array
    count: int
    parts: int
    rows: int
    row_end: wp.array | None = None
    held: wp.array | None = None


@dataclass(frozen=True)
class SubPairKernels:
    """How the pairs of some rooms are tested in pieces.

    surfaces: which surfaces of the model the kernels read, by name. search, join: kernels of `search_kernel` and
    `merge_kernel`. parts_on_cuda: threads that share a candidate's search where there are many cores; a core of its own
    goes through all of it in one. others: kernels that prepare the surfaces. overlap: one of `overlap_kernel`.
    """

    name: str
    surfaces: str
    search: wp.Kernel
    join: wp.Kernel
    parts_on_cuda: int = 1
    others: tuple[wp.Kernel, ...] = ()
    overlap: wp.Kernel | None = None

    @property
    def kernels(self) -> list[wp.Kernel]:
        """What is launched besides a room's own."""
        kernels = [self.search, copy_sub_pairs, self.join, *self.others]
        return [*kernels, self.overlap] if self.overlap else kernels

    def find(self, bucket: ColliderBatch, workspace: Workspace) -> SubPairs:
        """The pieces of a bucket."""
        collider, shared = bucket.collider, bucket.shared
        parts = 1 if workspace.device.is_cpu else self.parts_on_cuda
        threads = bucket.size * parts
        end = workspace.array(f"{collider.name}_end", threads, wp.int32)
        few = workspace.array("few_pieces", threads * int(FEW), wp.vec2i)
        arguments = [*shared, bucket.surfaces[self.surfaces], bucket.order, bucket.start, parts, end]
        workspace.launch(self.search, threads, [*arguments, few, 0])
        count = workspace.scan(end, threads)
        sub_pair = workspace.array(f"{collider.name}_piece", count, wp.vec2i)
        most = workspace.array("most_pieces", 1, wp.int32)
        workspace.fill(most, 0)
        workspace.launch(copy_sub_pairs, threads, [end, few, sub_pair, most])
        # Even to pass over all candidates would take a tenth of what counting takes on a heightfield.
        if workspace.last(most, 1) > int(FEW):
            workspace.launch(self.search, threads, [*arguments, sub_pair, 1])
        if collider.max_contacts > 0:
            return SubPairs(sub_pair, end, count, parts, count * collider.max_contacts)
        row_end = workspace.array(f"{collider.name}_row_end", count, wp.int32)
        held = workspace.array(f"{collider.name}_held", count * int(HELD), ContactRecord)
        contact = workspace.array("emitted_contact", 1, ContactRecord)
        arguments = [*shared, bucket.surfaces[self.surfaces], sub_pair, row_end, held, contact, 0, 0]
        workspace.launch(collider.kernel, count, arguments)
        return SubPairs(sub_pair, end, count, parts, workspace.scan(row_end, count), row_end, held)

    def collide(
        self,
        bucket: ColliderBatch,
        sub_pairs: SubPairs,
        staged: tuple[wp.array, int],
        limit: int,
        inexact: wp.array,
        workspace: Workspace,
    ) -> None:
        """Contacts of a bucket's pieces, joined to those of its candidates.

        staged: where contacts go, and the first row. limit: contacts that a pair may keep, 0 all.
        """
        (contact, first_row), collider, shared, most = (
            staged,
            bucket.collider,
            bucket.shared,
            bucket.collider.max_contacts,
        )
        surfaces = bucket.surfaces[self.surfaces]
        if sub_pairs.row_end is not None:
            found = sub_pairs.row_end
            arguments = [*shared, surfaces, sub_pairs.sub_pair, found, sub_pairs.held, contact, first_row, 1]
        else:
            found = workspace.array("sub_pair_found", sub_pairs.count, wp.int32)
            # Rows one after another: those of a piece, and of a candidate's pieces, stand together.
            out = workspace.struct(ContactBuffer, contact=contact, start=first_row, most=1, pair_count=1)
            arguments = [*shared, surfaces, sub_pairs.sub_pair, most, inexact, out, found]
        workspace.launch(collider.kernel, sub_pairs.count, arguments)
        if self.overlap is not None:
            arguments = [*shared, surfaces, bucket.order, bucket.start, sub_pairs.parts, sub_pairs.end, found]
            workspace.launch(self.overlap, bucket.size, [*arguments, contact, first_row, inexact])
        rows, _, _, candidates = shared
        arguments = [rows, candidates, bucket.order, bucket.start, limit, sub_pairs.parts, sub_pairs.end, found]
        workspace.launch(self.join, bucket.size, [*arguments, contact, first_row, most])
        if collider.settle is not None:
            arguments = [*shared, surfaces, bucket.order, bucket.start, sub_pairs.parts, sub_pairs.end, limit, inexact]
            workspace.launch(collider.settle, bucket.size, [*arguments, contact, most])
