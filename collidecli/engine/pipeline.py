"""Collision pipeline of a chunk: transforms, broad phase, narrow phase, reduction, compaction in canonical order."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.candidates import KERNELS as CANDIDATES
from collidecli.engine.candidates import CandidateList, expand
from collidecli.engine.cell_blocks import BlockShape
from collidecli.engine.cells import Chunk, PoseBatch, bound_blocks, transform_chunk, transform_shapes
from collidecli.engine.contact_record import Candidates, ContactBuffer, ContactRecord, new_candidates, scan_counts
from collidecli.engine.contacts.compaction import COMPACT, compact_contacts, count_cells, keep_deepest, list_contacts
from collidecli.engine.contacts.touches import touching_pairs
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.narrowphase.collider import Bucket, ColliderBatch, ColliderTable
from collidecli.engine.runtime.compilation import is_loaded, load_kernels
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.contact_groups import HYDRO_PATCHES, TOUCHES, ContactGroup, GroupRows, groups_of_parts
from collidecli.scene.contacts import ContactBlock, pair_begins

if TYPE_CHECKING:
    from collidecli.engine.contacts.reduction import Reduction
    from collidecli.engine.hydroelastic.stage import HydroStage

ALWAYS = (count_cells, list_contacts, bound_blocks, *CANDIDATES, transform_shapes)
"""Kernels of every pipeline; on the CPU also `execute_steps`."""
STAGES = ("transforms", "broad_phase", "narrow_phase", "reduction", "order")


class BroadPhase(Protocol):
    """Finds the pairs of slots that may touch in a block of cells, ordered by block, slot0, slot1."""

    @property
    def name(self) -> str: ...

    @property
    def blocks(self) -> BlockShape:
        """The largest blocks for which it is fast."""
        ...

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs: ...

    def kernels(self) -> list[wp.Kernel]: ...


class GroupStage(Protocol):
    """Finds the rows of a group beside the rigid contacts, from the instances of a chunk."""

    @property
    def group(self) -> ContactGroup: ...

    @property
    def width(self) -> int:
        """Units of a cell, such as particles, that are independent of each other."""
        ...

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the units `begin` to `end` of each cell, and the number of their candidates."""
        ...

    def kernels(self) -> list[wp.Kernel]: ...


@dataclass
class ChunkReport:
    """Counts and times of a chunk. seconds: per stage of STAGES. touching_count: candidates with a contact.

    inexact_count: candidates whose depth is an upper bound, since an iteration limit ended the search. missed_count:
    hydroelastic pairs that overlap and whose surface was not found; missed_pair: the shape rows of the first of them.
    start: when the chunk began [s], as of time.perf_counter, and thread: the name of its thread; its stages follow each
    other. compiling: begin and end of each time in which it waited for its colliders' kernels [s], in no stage.
    parts: the reports of which this is the sum, empty if it is of one chunk.
    """

    cell_count: int = 0
    candidate_count: int = 0
    touching_count: int = 0
    contact_count: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    inexact_count: int = 0
    missed_count: int = 0
    missed_pair: tuple[int, int] | None = None
    start: float = field(default=0.0, compare=False)
    thread: str = field(default="", compare=False)
    compiling: tuple[tuple[float, float], ...] = field(default=(), compare=False)
    parts: tuple[ChunkReport, ...] = field(default=(), compare=False)

    def plus(self, other: ChunkReport) -> ChunkReport:
        """Sum of both reports."""
        return ChunkReport(
            cell_count=self.cell_count + other.cell_count,
            candidate_count=self.candidate_count + other.candidate_count,
            touching_count=self.touching_count + other.touching_count,
            contact_count=self.contact_count + other.contact_count,
            seconds={stage: seconds + other.seconds[stage] for stage, seconds in self.seconds.items()},
            inexact_count=self.inexact_count + other.inexact_count,
            missed_count=self.missed_count + other.missed_count,
            missed_pair=min((pair for pair in (self.missed_pair, other.missed_pair) if pair), default=None),
            compiling=self.compiling + other.compiling,
            parts=(*(self.parts or (self,)), *(other.parts or (other,))),
        )


class StageClock:
    """Adds the time of each stage to the report, including the device's work.

    The moments are marked among the launches, in a device's stream or the CPU's queue, and read by `close`, so that no
    stage waits. What Python does for later launches of one queue counts for the first stage in it.
    """

    def __init__(self, report: ChunkReport, workspace: Workspace) -> None:
        self._report, self._workspace = report, workspace
        report.start, report.thread = time.perf_counter(), threading.current_thread().name
        self._last = workspace.mark()
        self._ended: list[tuple[str, Any, Any]] = []

    def end(self, stage: str) -> None:
        now = self._workspace.mark()
        self._ended.append((stage, self._last, now))
        self._last = now

    def skip(self) -> None:
        """Leaves the time since the end of the last stage out."""
        self._last = self._workspace.mark()

    def close(self) -> None:
        """Adds the times; all launches are complete."""
        for stage, begin, end in self._ended:
            self._report.seconds[stage] += self._workspace.seconds_between(begin, end)
        self._ended.clear()


def joining_bytes(result_bytes: int, with_groups: bool = False) -> int:
    """Memory of parts with `result_bytes` while they are joined: one column is doubled.

    Of rigid contacts it is under a quarter; of a group, such as the corners of faces, under three quarters.
    """
    return result_bytes * (7 if with_groups else 5) // 4


def joined_parts(parts: list[ContactBlock]) -> ContactBlock:
    """One block of one cell from blocks of its consecutive candidates; the columns of `parts` are emptied."""
    if len(parts) == 1:
        return parts[0]
    names = list(parts[0].columns)
    columns = {name: np.concatenate([part.columns.pop(name) for part in parts]) for name in names}
    groups = groups_of_parts([part.groups for part in parts])
    return ContactBlock(parts[0].first_cell, sum(part.cell_counts for part in parts), columns, groups)


@dataclass(frozen=True)
class CollisionPipeline:
    """A broad phase and the pair colliders of a model. It has no scratch memory: any number of threads may share it.

    max_contacts_per_pair: 0 is no limit. reduction: None keeps all contacts. surfaces: arguments of the colliders of
    sub-pairs, by name (see pipeline_builder). field_seconds: time to build or load signed distance fields [s].
    hydro: the hydroelastic pairs, which have no other contacts; None for none. notes: warnings about the scene.
    group_stages: of groups beside the rigid contacts. on_demand: the kernel of a collider without sub-pairs is compiled
    when the collider first has a candidate, in no stage's time. touch_only: the group `touches` in place of contacts.
    """

    device_model: DeviceModel
    broad_phase: BroadPhase
    table: ColliderTable
    float_type: np.dtype
    max_contacts_per_pair: int = 0
    reduction: Reduction | None = None
    surfaces: dict[str, Any] = field(default_factory=dict)
    field_seconds: float = 0.0
    hydro: HydroStage | None = None
    notes: tuple[str, ...] = ()
    group_stages: tuple[GroupStage, ...] = ()
    on_demand: bool = False
    touch_only: bool = False

    @property
    def groups(self) -> tuple[ContactGroup, ...]:
        """The groups that the blocks have."""
        hydro = () if self.hydro is None else self.hydro.written
        touches = (TOUCHES,) if self.touch_only else ()
        return (*hydro, *touches, *(stage.group for stage in self.group_stages))

    @property
    def cell_width(self) -> int:
        """Instances of a cell, and units of its groups: a measure of its work."""
        return self.device_model.layout.width + sum(stage.width for stage in self.group_stages)

    @property
    def block_cells(self) -> int:
        """Cells of consecutive frames that fill the broad phase's blocks."""
        return self.broad_phase.blocks.lanes * self.device_model.model.world_count

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of all cells of the batch, in canonical order, and the report.

        Raises ChunkTooLarge when the scratch memory is too small for the batch.
        """
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace, self.broad_phase.blocks)
        clock.end("transforms")
        pairs = self.broad_phase.find(chunk, workspace)
        clock.end("broad_phase")
        block = self._collide_pairs(chunk, pairs, workspace, report, clock)
        for stage in self.group_stages:
            block.groups[stage.group.name], _ = stage.collide_part(chunk, batch, workspace, 0, stage.width)
            clock.end("narrow_phase")
        clock.close()
        return block, report

    def collide_in_parts(self, batch: PoseBatch, memory_limit: int) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of one cell within `memory_limit` bytes of scratch and result, and the report.

        The candidates are collided in parts, as few as the limit allows; a pair's contacts depend on no other pair, and
        the parts are in canonical order. Raises ChunkTooLarge, with the bytes of the whole cell, when the broad phase,
        a single candidate or the contacts do not fit.
        """
        pairs, report = self._host_pairs(batch, memory_limit)
        parts: list[ContactBlock] = []
        done, size, result_bytes = 0, max(1, len(pairs)), 0
        workspace = None
        while done < len(pairs) or not parts:
            left = memory_limit - pairs.nbytes - joining_bytes(result_bytes, self.hydro is not None)
            workspace = workspace or Workspace(self.device_model.device, left, exact=True)
            workspace.memory_limit = left
            part = pairs[done : done + size]
            try:
                block, part_report = self._collide_part(batch, part, workspace)
            except ChunkTooLarge as too_large:
                workspace = None
                if len(part) <= 1:
                    all_bytes = result_bytes * len(pairs) // max(done, 1)
                    results = joining_bytes(all_bytes, self.hydro is not None)
                    raise ChunkTooLarge(pairs.nbytes + results + too_large.needed) from None
                size = len(part) // 2
                continue
            parts.append(block)
            report = report.plus(part_report)
            done += len(part)
            result_bytes += block.nbytes
        block = joined_parts(parts)
        for stage in self.group_stages:
            left = memory_limit - joining_bytes(block.nbytes)
            block.groups[stage.group.name] = self._group_in_parts(stage, batch, left)
        return block, report

    def _group_in_parts(self, stage: GroupStage, batch: PoseBatch, memory_limit: int) -> GroupRows:
        """Rows of a group in one cell within `memory_limit` bytes of scratch and result, found in parts."""
        parts: list[GroupRows] = []
        done, size = 0, stage.width
        while done < stage.width:
            left = memory_limit - joining_bytes(sum(part.nbytes for part in parts), with_groups=True)
            workspace = Workspace(self.device_model.device, left, exact=True)
            try:
                chunk = transform_chunk(self.device_model, batch, workspace)
                parts.append(stage.collide_part(chunk, batch, workspace, done, min(done + size, stage.width))[0])
            except ChunkTooLarge as too_large:
                if size == 1:
                    raise ChunkTooLarge(memory_limit - left + too_large.needed) from None
                size //= 2
                continue
            done += size
        return groups_of_parts([{stage.group.name: part} for part in parts])[stage.group.name]

    def _host_pairs(self, batch: PoseBatch, memory_limit: int) -> tuple[np.ndarray, ChunkReport]:
        """The candidates of a batch of one cell on the host, int32[P, 2] slots; their scratch is free afterwards."""
        workspace = Workspace(self.device_model.device, memory_limit, exact=True)
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        pairs = self.broad_phase.find(chunk, workspace)
        clock.end("broad_phase")
        workspace.check(workspace.bytes + 8 * pairs.count)
        is_candidate = workspace.host(pairs.mask, pairs.count) != 0
        found = workspace.host(pairs.slots, pairs.count).reshape(-1, 2)[is_candidate]
        clock.close()
        return found, report

    def _collide_part(
        self, batch: PoseBatch, pairs: np.ndarray, workspace: Workspace
    ) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of some of the candidates of one cell, and the report without the cell."""
        report = ChunkReport()
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        mask = workspace.uploaded(np.ones(len(pairs), np.uint32), wp.uint32)
        found = BlockPairs(workspace.uploaded(pairs, wp.vec2i), mask, len(pairs))
        block = self._collide_pairs(chunk, found, workspace, report, clock)
        clock.close()
        return block, report

    def _collide_pairs(
        self, chunk: Chunk, pairs: BlockPairs, workspace: Workspace, report: ChunkReport, clock: StageClock
    ) -> ContactBlock:
        """Contacts of the candidates of a chunk; completes the report."""
        split = None
        if self.hydro is not None:
            split = self.hydro.split(chunk, pairs, workspace)
            pairs = split.others
            report.candidate_count += split.hydro.count
        buckets = self.table.of_kinds, self.table.kind_count, max(1, len(self.table.colliders))
        listed = expand(self.device_model, chunk, pairs, buckets, "candidate", workspace)
        if self.on_demand:
            clock.end("narrow_phase")
            workspace.finish()
            report.compiling += self._compile_used(listed)
            clock.skip()
        count = listed.count
        report.candidate_count += count
        candidates = new_candidates(workspace, listed.pair, listed.row, count)
        emitted, inexact = self.narrow_phase(chunk, candidates, listed, workspace)
        if self.touch_only:
            clock.end("narrow_phase")
            block = touching_pairs(chunk, candidates, count, listed.cell_end, self.float_type, workspace)
            report.touching_count = block.groups[TOUCHES.name].row_count
            clock.end("order")
            return block
        scale = None
        if self.reduction is not None:
            clock.end("narrow_phase")
            scale = self.reduction.reduce(
                self.device_model, chunk.instances, candidates, count, emitted.contact, workspace
            )
        # Without a reduction the scan executes with the launches of the colliders, in their stage.
        total, report.inexact_count = scan_counts(workspace, candidates, count, inexact)
        clock.end("narrow_phase" if self.reduction is None else "reduction")
        is_limited = self.max_contacts_per_pair > 0
        block = compact_contacts(
            self.device_model, chunk, candidates, count, listed.cell_end, total, emitted, self.float_type, workspace,
            scale, is_limited,
        )  # fmt: skip
        report.touching_count = int(np.count_nonzero(pair_begins(block)))
        report.contact_count = block.contact_count
        clock.end("order")
        if self.hydro is not None and split is not None:
            block, missed = self.hydro.add_to(block, chunk, split, workspace)
            report.missed_count = len(missed)
            report.missed_pair = min(map(tuple, missed.tolist()), default=None)
            report.contact_count = block.contact_count
            report.touching_count += block.groups[HYDRO_PATCHES.name].row_count
            clock.end("narrow_phase")
        return block

    def _compile_used(self, listed: CandidateList) -> tuple[tuple[float, float], ...]:
        """Compiles the kernels of the colliders that have candidates; begin and end of the time it took, if any."""
        starts = zip(pairwise(listed.starts), pairwise(listed.pair_starts), strict=True)
        # Without colliders there is one bucket.
        counted = zip(self.table.colliders, starts, strict=False)
        used = [collider.kernel for collider, counts in counted if any(begin < end for begin, end in counts)]
        missing = [one for one in used[::-1] if not is_loaded(one, self.device_model.device)]
        if not missing:
            return ()
        begin = time.perf_counter()
        load_kernels(missing, self.device_model.device)
        return ((begin, time.perf_counter()),)

    def kernels(self) -> list[wp.Kernel]:
        """All kernels of this pipeline, by increasing compile time."""
        kernels = [] if has_own_memory(self.device_model.device) else [execute_steps]
        kernels += [*ALWAYS, COMPACT[np.dtype(self.float_type)]]
        for collider in self.table.colliders:
            kernels += collider.sub_pair_kernels.kernels if collider.sub_pair_kernels else []
        if self.max_contacts_per_pair:
            kernels.append(keep_deepest)
        if self.reduction is not None:
            kernels += self.reduction.kernels()
        kernels += dict.fromkeys(
            collider.feature_remapping for collider in self.table.colliders if collider.feature_remapping is not None
        )
        kernels += dict.fromkeys(
            collider.region_depths for collider in self.table.colliders if collider.region_depths is not None
        )
        colliders = sorted(self.table.colliders, key=lambda collider: collider.may_be_inexact)
        kernels += [] if self.hydro is None else self.hydro.kernels()
        kernels += [kernel for stage in self.group_stages for kernel in stage.kernels()]
        return [*dict.fromkeys(kernels), *self.broad_phase.kernels(), *(collider.kernel for collider in colliders)]

    def narrow_phase(
        self, chunk: Chunk, candidates: Candidates, listed: CandidateList, workspace: Workspace
    ) -> tuple[ContactBuffer, wp.array | None]:
        """Sets the fields of each candidate except `end`; returns the buffer and the count of inexact pairs, if any."""
        if listed.count == 0:
            return workspace.struct(ContactBuffer), None
        order, starts = listed.order, listed.starts
        sizes = [end - start for start, end in pairwise(starts)]
        needed = [size * collider.max_contacts for size, collider in zip(sizes, self.table.colliders, strict=True)]
        shared = [self.device_model.rows, self.device_model.margins, chunk.instances, candidates]
        sub_pairs = {}
        for index, collider in enumerate(self.table.colliders):
            if collider.sub_pair_kernels and sizes[index]:
                bucket = ColliderBatch(collider, shared, self.surfaces, order, starts[index], sizes[index])
                sub_pairs[index] = collider.sub_pair_kernels.find(bucket, workspace)
                needed[index] = sub_pairs[index].rows
        first_rows = [0, *accumulate(needed)]
        contact = workspace.array("emitted_contact", first_rows[-1], ContactRecord)
        inexact = workspace.array("inexact_count", 1, wp.int32)
        may_be_inexact = any(
            collider.may_be_inexact and n for n, collider in zip(sizes, self.table.colliders, strict=True)
        )
        if may_be_inexact:
            workspace.fill(inexact, 0)
        limit = self.max_contacts_per_pair
        emitted = workspace.struct(ContactBuffer, contact=contact)
        for index, collider in enumerate(self.table.colliders):
            size, start, first_row = sizes[index], starts[index], first_rows[index]
            if not size:
                continue
            if collider.sub_pair_kernels:
                bucket = ColliderBatch(collider, shared, self.surfaces, order, start, size)
                collider.sub_pair_kernels.collide(
                    bucket, sub_pairs[index], (contact, first_row), limit, inexact, workspace
                )
                continue
            bucket = workspace.struct(
                Bucket,
                order=order,
                start=start,
                first_pair=listed.pair_starts[index],
                limit=limit,
                inexact=inexact,
            )
            emitted = workspace.struct(
                ContactBuffer, contact=contact, start=first_row, most=collider.max_contacts, pair_count=size
            )
            if collider.by_pairs:
                parts = chunk.lanes if workspace.has_own_memory else 1
                count = listed.pair_starts[index + 1] - listed.pair_starts[index]
                of_lanes = [listed.lanes, chunk.lanes.bit_length() - 1, parts]
                workspace.launch(collider.kernel, count * parts, [*shared, *of_lanes, bucket, emitted])
                continue
            workspace.launch(collider.kernel, size, [*shared, bucket, emitted])
            if collider.feature_remapping is not None:
                workspace.launch(
                    collider.feature_remapping, size, [self.device_model.rows, candidates, bucket, emitted]
                )
        return emitted, inexact if may_be_inexact else None
