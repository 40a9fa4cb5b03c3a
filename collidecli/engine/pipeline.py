"""Collision pipeline of a chunk: transforms, broad phase, narrow phase, reduction, compaction in
canonical order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.broadphase.choice import BroadPhase
from collidecli.engine.candidates import KERNELS as EXPANSION
from collidecli.engine.candidates import CandidateList, counts_of_cells, expand
from collidecli.engine.cells import (
    POSED_SHAPES,
    Chunk,
    PoseBatch,
    transform_chunk,
)
from collidecli.engine.chunk_report import ChunkReport, StageClock
from collidecli.engine.column_destination import EVERYTHING, ColumnDestination
from collidecli.engine.contact_record import (
    Candidates,
    count_touching,
    new_candidates,
    scan_counts,
    touching_count,
)
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.group_stage import GroupStage, joining_bytes, rows_within
from collidecli.engine.joint_kinematics import UNPOSED
from collidecli.engine.narrowphase.narrow_phase import NarrowPhase
from collidecli.engine.ordered_contacts import (
    CONTACT_ROWS,
    compact_contacts,
    count_cells,
    keep_deepest,
    list_contacts,
)
from collidecli.engine.runtime.chunk_counts import CountsExceeded, ElementCount, bound_count
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.sent_columns import send_sections
from collidecli.engine.runtime.workspace import (
    ChunkTooLarge,
    Workspace,
    parts_that_fit,
    queue_kernels,
)
from collidecli.scene.contact_blocks import (
    ContactBlock,
    groups_of_parts,
)
from collidecli.scene.contact_columns import HYDRO_PATCHES, PAIR_TABLES, TOUCHES, ContactGroup

if TYPE_CHECKING:
    from collidecli.engine.hydroelastic.stage import HydroStage
    from collidecli.engine.reduction import Reduction

ALWAYS = (count_cells, list_contacts, *EXPANSION, *POSED_SHAPES)
"""Kernels of every pipeline; beside those of the queue."""


def joined_parts(parts: list[ContactBlock]) -> ContactBlock:
    """One block of one cell from blocks of its consecutive candidates; the columns of `parts` are
    emptied."""
    if len(parts) == 1:
        return parts[0]
    names = list(parts[0].columns)
    columns = {name: np.concatenate([part.columns.pop(name) for part in parts]) for name in names}
    groups = groups_of_parts([part.groups for part in parts])
    cell_counts = np.add.reduce([part.cell_counts for part in parts])
    return ContactBlock(parts[0].first_cell, cell_counts, columns, groups)


@dataclass(frozen=True)
class CollisionPipeline:
    """A broad phase and the pair colliders of a model. It has no scratch memory: any number of
    threads may share it.

    reduction: None keeps all contacts. hydro: the hydroelastic pairs, which have no other contacts;
    None for none. notes: warnings about the scene. group_stages: of groups beside the rigid
    contacts. on_demand: the kernel of a collider without sub-pairs is compiled when the collider
    first has a candidate, in no stage's time. touch_only: the group `touches` in place of contacts.
    candidates_only: the group `candidates` in place of them, without a narrow phase.
    listing_seconds: time of listing the pairs that may touch [s]. destination: of the columns of
    contacts. counts_cells: the reports have the number of candidates of each cell.
    """

    device_model: DeviceModel
    broad_phase: BroadPhase
    narrow_phase: NarrowPhase
    float_type: np.dtype
    reduction: Reduction | None = None
    hydro: HydroStage | None = None
    notes: tuple[str, ...] = ()
    group_stages: tuple[GroupStage, ...] = ()
    on_demand: bool = False
    touch_only: bool = False
    listing_seconds: float = 0.0
    destination: ColumnDestination = EVERYTHING
    counts_cells: bool = False
    candidates_only: bool = False

    @property
    def groups(self) -> tuple[ContactGroup, ...]:
        """The groups that the blocks have."""
        hydro = () if self.hydro is None else self.hydro.written
        alone = {"touch_only": self.touch_only, "candidates_only": self.candidates_only}
        pairs = (PAIR_TABLES[name] for name, is_given in alone.items() if is_given)
        return (*hydro, *pairs, *(stage.group for stage in self.group_stages))

    @property
    def cell_width(self) -> int:
        """Instances of a cell, and units of its groups: a measure of its work."""
        return self.device_model.layout.width + sum(stage.width for stage in self.group_stages)

    @property
    def row_bytes(self) -> int:
        """Size of a contact with all its columns [bytes]."""
        return CONTACT_ROWS[np.dtype(self.float_type)].row_bytes

    @property
    def expects_counts(self) -> bool:
        """Whether the numbers of elements of a chunk may be those of the last: not where the
        host, or columns that stay on the device use them."""
        return self.destination.kept is None and not self.counts_cells

    @property
    def block_cells(self) -> int:
        """Cells of consecutive frames that fill the broad phase's blocks."""
        return self.broad_phase.blocks.lanes * self.device_model.model.world_count

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of all cells of the batch, in canonical order, and the report.

        On a device the numbers of elements of the last chunk are expected; where one is larger, or
        there is no memory for a margin, the chunk is computed again with exact numbers.
        Raises ChunkTooLarge when the scratch memory is too small for the batch.
        """
        counts = workspace.counts
        counts.begin(batch.cell_count, self.expects_counts)
        if counts.expects:
            try:
                return self._collide(batch, workspace)
            except CountsExceeded as exceeded:
                if exceeded.name == UNPOSED and batch.joints is not None:
                    batch.joints.needs_host.set()
            except ChunkTooLarge:
                counts.refuse()
            counts.begin(batch.cell_count)
        return self._collide(batch, workspace)

    def _collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        """`collide` with the numbers of elements that the workspace expects or reads."""
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace, self.broad_phase.blocks)
        clock.end("transforms")
        pairs = self.broad_phase.find(chunk, workspace)
        clock.end("broad_phase")
        contacts = self._issue_pairs(chunk, pairs, workspace, report, clock)
        groups = {}
        for stage in self.group_stages:
            groups[stage.group.name] = stage.issue_part(chunk, batch, workspace, 0, stage.width)
            clock.end("narrow_phase")
        block = contacts()
        block.groups.update({name: rows() for name, rows in groups.items()})
        clock.close()
        workspace.counts.keep()
        return block, report

    def collide_in_parts(
        self, batch: PoseBatch, memory_limit: int
    ) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of one cell within `memory_limit` bytes of scratch and result, and the report.

        The candidates are collided in parts, as few as the limit allows; a pair's contacts depend
        on no other pair, and the parts are in canonical order. Raises ChunkTooLarge, with the bytes
        of the whole cell, when the broad phase, a single candidate or the contacts do not fit.
        """
        pairs, report = self._host_pairs(batch, memory_limit)
        with_groups = self.hydro is not None or self.candidates_only
        result_bytes = 0
        workspace = None

        def collide(begin: int, end: int) -> tuple[ContactBlock, ChunkReport]:
            nonlocal workspace, result_bytes
            left = memory_limit - pairs.nbytes - joining_bytes(result_bytes, with_groups)
            workspace = workspace or Workspace(self.device_model.device, left, exact=True)
            workspace.memory_limit = left
            try:
                with workspace.device_errors():
                    block, part_report = self._collide_part(batch, pairs[begin:end], workspace)
            except ChunkTooLarge as too_large:
                workspace = None
                results = joining_bytes(result_bytes * len(pairs) // max(begin, 1), with_groups)
                raise ChunkTooLarge(pairs.nbytes + results + too_large.needed) from None
            result_bytes += block.nbytes
            return block, part_report

        parts = parts_that_fit(len(pairs), collide)
        block = joined_parts([part for part, _ in parts])
        for stage in self.group_stages:
            left = memory_limit - joining_bytes(block.nbytes)
            block.groups[stage.group.name] = rows_within(stage, self.device_model, batch, left)
        total = reduce(ChunkReport.plus, (part_report for _, part_report in parts), report)
        if self.counts_cells:
            # The parts are of one cell.
            total.cell_candidates = np.array([total.candidate_count], np.int64)
        return block, total

    def _host_pairs(self, batch: PoseBatch, memory_limit: int) -> tuple[np.ndarray, ChunkReport]:
        """The candidates of a batch of one cell on the host, int32[P, 2] slots; their scratch is
        free afterwards."""
        workspace = Workspace(self.device_model.device, memory_limit, exact=True)
        workspace.counts.begin(batch.cell_count)
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        pairs = self.broad_phase.find(chunk, workspace)
        clock.end("broad_phase")
        workspace.check(workspace.bytes + 8 * pairs.count)
        is_candidate = workspace.host(pairs.mask, pairs.count) != 0
        candidates = workspace.host(pairs.slots, pairs.count).reshape(-1, 2)[is_candidate]
        clock.close()
        return candidates, report

    def _collide_part(
        self, batch: PoseBatch, pairs: np.ndarray, workspace: Workspace
    ) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of some of the candidates of one cell, and the report without the cell."""
        workspace.counts.begin(batch.cell_count)
        report = ChunkReport()
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        mask = workspace.uploaded(np.ones(len(pairs), np.uint32), wp.uint32)
        block_pairs = BlockPairs(workspace.uploaded(pairs, wp.vec2i), mask, len(pairs))
        block = self._issue_pairs(chunk, block_pairs, workspace, report, clock)()
        clock.close()
        return block, report

    def _issue_pairs(
        self,
        chunk: Chunk,
        pairs: BlockPairs,
        workspace: Workspace,
        report: ChunkReport,
        clock: StageClock,
    ) -> Callable[[], ContactBlock]:
        """Issues the search for the contacts of the candidates of a chunk; the function returned
        waits for them and completes the report."""
        listed, hydro = self._list_candidates(chunk, pairs, workspace, report, clock)
        lists = [listed] if hydro is None else [hydro, listed]
        if self.candidates_only:
            return self._issue_candidates(chunk, listed, workspace, report, clock)
        count = ElementCount(listed.count, listed.bound)
        candidates = new_candidates(workspace, listed.pair, listed.row, listed.count)
        emitted, inexact = self.narrow_phase.collide(chunk, candidates, listed, workspace)
        if self.touch_only:
            clock.end("narrow_phase")
            return self._issue_touches(chunk, candidates, lists, workspace, report, clock)
        scale = self._reduce(chunk, candidates, count, emitted.contact, workspace, clock)
        # Without a reduction the scan executes with the launches of the colliders, in their stage.
        scan_counts(workspace, candidates, count)
        total = workspace.counts.of("contact", candidates.end, count)
        if not workspace.has_own_memory:
            report.touching_count = touching_count(workspace, candidates, listed.count)
            report.inexact_count = 0 if inexact is None else workspace.last(inexact, 1)
        clock.end("narrow_phase" if self.reduction is None else "reduction")
        is_limited = self.narrow_phase.max_contacts_per_pair > 0
        complete_block = compact_contacts(
            self.device_model,
            chunk,
            candidates,
            listed,
            total,
            emitted,
            self.float_type,
            workspace,
            scale,
            is_limited,
            self.destination,
        )
        clock.end("order")
        add_surfaces = None
        if self.hydro is not None and hydro is not None:
            add_surfaces = self.hydro.issue(chunk, hydro, workspace)
            clock.end("narrow_phase")

        def contacts() -> ContactBlock:
            block = complete_block()
            report.contact_count = total.most
            _add_counts(report, lists, workspace)
            if add_surfaces is not None:
                block = _with_surfaces(block, add_surfaces, report)
                clock.end("narrow_phase")
            return block

        return contacts

    def _reduce(
        self,
        chunk: Chunk,
        candidates: Candidates,
        count: ElementCount,
        contact: wp.array,
        workspace: Workspace,
        clock: StageClock,
    ) -> wp.array | None:
        """Reduces the contacts in place. Returns their friction scales where moments match."""
        if self.reduction is None:
            return None
        clock.end("narrow_phase")
        return self.reduction.reduce(
            self.device_model, chunk.instances, candidates, count, contact, workspace
        )

    def _issue_touches(
        self,
        chunk: Chunk,
        candidates: Candidates,
        lists: list[CandidateList],
        workspace: Workspace,
        report: ChunkReport,
        clock: StageClock,
    ) -> Callable[[], ContactBlock]:
        """Issues the search for the candidates that touch; the function returned waits for them and
        completes the report. lists: those of the colliders first."""
        from collidecli.engine.touching_pairs import touching_pairs

        rows = touching_pairs(
            chunk, candidates, lists[0], self.float_type, workspace, self.destination
        )
        clock.end("order")

        def block() -> ContactBlock:
            found = rows()
            report.candidate_count += candidate_count(lists, workspace)
            report.touching_count = found.groups[TOUCHES.name].row_count
            return found

        return block

    def _issue_candidates(
        self,
        chunk: Chunk,
        listed: CandidateList,
        workspace: Workspace,
        report: ChunkReport,
        clock: StageClock,
    ) -> Callable[[], ContactBlock]:
        """Issues the copy of the candidates of a chunk; the function returned waits for them and
        completes the report."""
        from collidecli.engine.candidate_rows import candidate_rows

        rows = candidate_rows(chunk, listed, self.float_type, workspace, self.destination)
        clock.end("order")

        def block() -> ContactBlock:
            found = rows()
            report.candidate_count += candidate_count([listed], workspace)
            report.has_narrow_phase = False
            return found

        return block

    def _list_candidates(
        self,
        chunk: Chunk,
        pairs: BlockPairs,
        workspace: Workspace,
        report: ChunkReport,
        clock: StageClock,
    ) -> tuple[CandidateList, CandidateList | None]:
        """The candidates of the colliders, whose kernels are loaded, and the hydroelastic ones,
        None where no shape is; adds those of each cell to the report, if they are counted."""
        hydro = None
        if self.hydro is not None:
            hydro, pairs = self.hydro.split(chunk, pairs, workspace)
        table = self.narrow_phase.table
        buckets = table.of_kinds, table.kind_count, max(1, len(table.colliders))
        listed = expand(self.device_model, chunk, pairs, buckets, "candidate", workspace)
        if self.on_demand:
            clock.end("narrow_phase")
            if listed.is_known:
                workspace.finish()
            # Colliders of which earlier chunks had candidates are loaded.
            report.compiling += self.narrow_phase.load_used(listed)
            clock.skip()
        if self.counts_cells:
            lists = [listed] if hydro is None else [hydro, listed]
            report.cell_candidates = counts_of_cells(lists, chunk.cell_count, workspace)
        return listed, hydro

    def kernels(self) -> list[wp.Kernel]:
        """All kernels of this pipeline, by increasing compile time."""
        on_device = has_own_memory(self.device_model.device)
        kernels = _device_kernels() if on_device else []
        kernels += [
            *queue_kernels(self.device_model.device),
            *ALWAYS,
            CONTACT_ROWS[np.dtype(self.float_type)].kernel,
        ]
        kernels += self._kernels_of_pairs()
        kernels += [keep_deepest] if self.narrow_phase.max_contacts_per_pair else []
        kernels += [] if self.reduction is None else self.reduction.kernels()
        kernels += [] if self.hydro is None else self.hydro.kernels()
        kernels += [kernel for stage in self.group_stages for kernel in stage.kernels()]
        kernels += [*self.broad_phase.kernels(), *self.narrow_phase.kernels()]
        return list(dict.fromkeys(kernels))

    def _kernels_of_pairs(self) -> list[wp.Kernel]:
        """The kernels of results without contacts; other pipelines are spared their
        declaration."""
        if self.touch_only:
            from collidecli.engine import touching_pairs

            return [*touching_pairs.KERNELS]
        if self.candidates_only:
            from collidecli.engine import candidate_rows

            return [*candidate_rows.KERNELS]
        return []


def _device_kernels() -> list[wp.Kernel]:
    """Kernels of every pipeline on a device."""
    from collidecli.engine.device_kinematics import pose_configurations

    return [count_touching, bound_count, send_sections, pose_configurations]


def candidate_count(lists: Sequence[CandidateList], workspace: Workspace) -> int:
    """Number of the candidates of a chunk that is complete, in all lists."""
    numbers = workspace.counts.numbers
    return sum(
        listed.count if listed.is_known else sum(numbers[listed.name][: len(listed.sizes)])
        for listed in lists
    )


def _with_surfaces(
    block: ContactBlock,
    add_surfaces: Callable[[ContactBlock], tuple[ContactBlock, np.ndarray]],
    report: ChunkReport,
) -> ContactBlock:
    """A block with its hydroelastic surfaces, whose numbers are added to the report.

    add_surfaces: see `HydroStage.issue`.
    """
    block, missed = add_surfaces(block)
    report.missed_count = len(missed)
    report.missed_pair = min(map(tuple, missed.tolist()), default=None)
    report.contact_count = block.contact_count
    report.touching_count += block.groups[HYDRO_PATCHES.name].row_count
    return block


def _add_counts(report: ChunkReport, lists: Sequence[CandidateList], workspace: Workspace) -> None:
    """Adds the numbers of candidates, and of a device those of its kernels, to the report of a
    chunk whose contacts are complete."""
    numbers = workspace.counts.numbers
    if workspace.has_own_memory:
        report.contact_count = numbers.get("contact", [report.contact_count])[0]
        report.touching_count = numbers.get("touching_count", [0])[0]
        report.inexact_count = numbers.get("inexact_count", [0])[0]
    report.candidate_count += candidate_count(lists, workspace)
