"""Pairs tested as sub-pairs of which only is wanted whether they have a contact, for `touch_only`.

A kernel decides most pairs from their sub-pairs, in part of the collider's time: it ends at the
first sub-pair that is proven to have a contact. The pairs that it leaves undecided are collided in
full, so that the pairs with a contact are those of the collider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import query_of
from collidecli.engine.contact_record import Candidates
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.narrowphase.collider import (
    Bucket,
    Collider,
    ColliderBatch,
    ContactOutput,
    candidate_of,
)
from collidecli.engine.narrowphase.convex.touch import APART_BY_LIMIT, TOUCHING
from collidecli.engine.narrowphase.sub_pairs import (
    SubPairKernels,
    SubPairs,
    begin_of,
    surface_kernel,
)
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace


def touch_kernel(
    surfaces_type: Any, touch_of_pair: Callable[..., Any], reads_list: bool
) -> wp.Kernel:
    """Kernel that decides which pairs have a contact.

    touch_of_pair(rows, surfaces, query, sub_pair, begin, end) -> int: TOUCHING, APART_BY_LIMIT or
    UNCERTAIN, of a pair with the sub-pairs `begin` up to but excluding `end`, at least one.
    reads_list: whether there are sub-pairs; without them sub_pair, begin and end have no meaning.
    """

    def find_touches(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        surfaces: Any,
        bucket: Bucket,
        parts: int,
        sub_pair: wp.array[wp.vec2i],
        bound: wp.array[wp.int32],
        sub_pair_end: wp.array[wp.int32],
        undecided: wp.array[wp.int32],
    ):
        """Sets `found` of a candidate to 1 or 0, and `undecided` to 1 where that is open; one
        thread a candidate. bound: of the sub-pairs; where it is 0 no pair has any."""
        thread = wp.tid()
        candidate = candidate_of(bucket, thread)
        if candidate < 0:
            undecided[thread] = 0
            return
        begin = int(0)
        end = int(1)
        if wp.static(reads_list):
            end = 0
            if bound[0] > 0:
                begin = begin_of(sub_pair_end, thread * parts)
                end = sub_pair_end[(thread + 1) * parts - 1]
        state = int(APART_BY_LIMIT)
        if begin < end:
            query = query_of(
                rows, margins, instances, candidates.pair[candidate], candidates.row[candidate]
            )
            state = touch_of_pair(rows, surfaces, query, sub_pair, begin, end)
        candidates.found[candidate] = wp.where(state == TOUCHING, 1, 0)
        undecided[thread] = wp.where(state == TOUCHING or state == APART_BY_LIMIT, 0, 1)

    return surface_kernel(find_touches, surfaces_type)


@kernel
def list_undecided(
    bucket: Bucket,
    end: wp.array[wp.int32],
    count: int,
    bound: wp.array[wp.int32],
    undecided: wp.array[wp.int32],
    start: wp.array[wp.int32],
):
    """Lists the candidates that are undecided, none where the bound of their number is 0; one of
    `count` threads a candidate. end: the inclusive scan of their flags. start: of their only
    bucket."""
    thread = wp.tid()
    if thread == 0:
        start[0] = 0
        start[1] = 0
        if bound[0] > 0:
            start[1] = end[count - 1]
    if bound[0] == 0:
        return
    slot = begin_of(end, thread)
    if end[thread] > slot:
        undecided[slot] = candidate_of(bucket, thread)


@dataclass(frozen=True)
class UndecidedPairs:
    """The candidates of a batch that are left to the collider, and their sub-pairs. rows: of their
    contacts."""

    batch: ColliderBatch
    sub_pairs: SubPairs | None
    rows: ElementCount


@dataclass(frozen=True)
class TouchKernels:
    """Kernels that decide whether pairs have a contact. full: those of the collider. touch,
    reads_list: see `touch_kernel`.
    """

    full: SubPairKernels
    touch: wp.Kernel
    reads_list: bool

    @property
    def surfaces(self) -> str:
        """Name of the model's surfaces that the kernels read."""
        return self.full.surfaces

    @property
    def kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition to the collider's own."""
        return [*self.full.kernels, self.touch, list_undecided]

    @property
    def device_kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition on a device with a memory of its own."""
        return self.full.device_kernels

    def find(self, batch: ColliderBatch, workspace: Workspace) -> UndecidedPairs:
        """Decides most pairs of a batch; returns the others."""
        name = batch.collider.name
        counts = workspace.counts
        few = workspace.array("few_sub_pairs", 1, wp.vec2i)
        lists = [1, few, counts.unbounded, batch.order]
        if self.reads_list:
            listed = self.full.find(batch, workspace, counted=False)
            lists = [listed.parts, listed.sub_pair, listed.count.bound, listed.end]
        end = workspace.array(f"{name}_undecided_end", batch.size, wp.int32)
        bound = self.full.bound(batch)
        shared = [*bound.shared, bound.surfaces[self.surfaces]]
        arguments = [*shared, batch.bucket(workspace), *lists, end]
        workspace.launch(self.touch, batch.size, arguments)
        workspace.launch_scan(end, batch.size)
        # Most chunks have none, and then no launches for them.
        count = counts.of(f"{name}_undecided", end, batch.size, spare_for_none=0)
        order = workspace.array(f"{name}_undecided", count.most, wp.int32)
        start = workspace.array(f"{name}_undecided_start", 2, wp.int32)
        left = replace(batch, order=order, start=start, index=0, size=count.most)
        if not count.most:
            return UndecidedPairs(left, None, ElementCount(0, count.bound))
        arguments = [batch.bucket(workspace), end, batch.size, count.bound, order, start]
        workspace.launch(list_undecided, batch.size, arguments)
        sub_pairs = self.full.find(left, workspace)
        return UndecidedPairs(left, sub_pairs, sub_pairs.rows)

    def collide(
        self,
        batch: ColliderBatch,
        sub_pairs: UndecidedPairs,
        out: ContactOutput,
        workspace: Workspace,
    ) -> None:
        """Collides the undecided pairs of a batch."""
        if sub_pairs.sub_pairs is not None:
            self.full.collide(sub_pairs.batch, sub_pairs.sub_pairs, out, workspace)


def touch_collider(full: Collider, touch: wp.Kernel, reads_list: bool) -> Collider:
    """A collider that finds whether there is a contact, by kernel `touch` of `touch_kernel` and
    else by `full`."""
    kernels = full.sub_pair_kernels
    assert isinstance(kernels, SubPairKernels)
    decided = TouchKernels(kernels, touch, reads_list)
    # Depths of regions leave a pair one contact at least.
    return replace(full, name=f"{full.name}_touch", region_depths=None, sub_pair_kernels=decided)
