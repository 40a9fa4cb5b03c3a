"""The collision pipeline: from a chunk of body poses to its contacts, one stage after another."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch, place_chunk, place_shapes
from collidecli.engine.contact_buffer import Candidates, ContactBuffer, ContactRecord, new_candidates
from collidecli.engine.contacts.compaction import COMPACT, compact_contacts, count_cells
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.narrowphase.collider import Bucket, ColliderBatch, ColliderTable
from collidecli.engine.narrowphase.partition import count_buckets, partition, write_buckets
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contacts import ContactBlock

if TYPE_CHECKING:
    from collidecli.engine.contacts.reduction import Reduction

ALWAYS = (write_buckets, count_cells, count_buckets, place_shapes)
"""Kernels that every pipeline launches; on the CPU `execute_steps` besides."""
STAGES = ("transforms", "broad_phase", "narrow_phase", "reduction", "order")


class BroadPhase(Protocol):
    """Finds a chunk's candidates: pairs of instances that may touch, ordered by cell, place0, place1."""

    @property
    def name(self) -> str: ...

    def find(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, int]: ...

    def kernels(self) -> list[wp.Kernel]: ...


@dataclass
class ChunkReport:
    """What a chunk cost. seconds: per stage of STAGES. touching_count: candidates that gave a contact.

    inexact_count: candidates whose depth is an upper bound, as a limit ended the search for it.
    """

    cell_count: int = 0
    candidate_count: int = 0
    touching_count: int = 0
    contact_count: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    inexact_count: int = 0

    def plus(self, other: ChunkReport) -> ChunkReport:
        """What both cost together."""
        return ChunkReport(
            cell_count=self.cell_count + other.cell_count,
            candidate_count=self.candidate_count + other.candidate_count,
            touching_count=self.touching_count + other.touching_count,
            contact_count=self.contact_count + other.contact_count,
            seconds={stage: seconds + other.seconds[stage] for stage, seconds in self.seconds.items()},
            inexact_count=self.inexact_count + other.inexact_count,
        )


class StageClock:
    """Adds the time between calls to the stage that just ended, the device's work included."""

    def __init__(self, report: ChunkReport, workspace: Workspace) -> None:
        self._report, self._workspace = report, workspace
        self._last = time.perf_counter()

    def end(self, stage: str) -> None:
        self._workspace.finish()
        now = time.perf_counter()
        self._report.seconds[stage] += now - self._last
        self._last = now


def _grows(ends: np.ndarray) -> int:
    """How many of scanned counts were not zero."""
    return int(np.count_nonzero(ends[1:] != ends[:-1])) + int(ends[:1].any())


@dataclass(frozen=True)
class CollisionPipeline:
    """A broad phase and the rooms of a model's pairs of types. Holds no scratch: any number of threads may share it.

    max_contacts_per_pair: 0 is no limit. reduction: None keeps every contact. surfaces: what rooms of pairs in pieces
    read, see `build`. field_seconds: what building signed distance fields, or finding them, took.
    """

    device_model: DeviceModel
    broad_phase: BroadPhase
    table: ColliderTable
    float_type: np.dtype
    max_contacts_per_pair: int = 0
    reduction: Reduction | None = None
    surfaces: dict[str, Any] = field(default_factory=dict)
    field_seconds: float = 0.0

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of every cell of the batch, in canonical order, and what they cost.

        Raises ChunkTooLarge when the scratch memory does not suffice; fewer cells at a time may.
        """
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = place_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        pair, count = self.broad_phase.find(chunk, workspace)
        report.candidate_count = count
        clock.end("broad_phase")
        candidates = new_candidates(workspace, pair, count)
        staged, report.inexact_count = self._narrow_phase(chunk, candidates, count, workspace)
        scale = None
        if self.reduction is None:  # made with the rooms' launches, and counted with them
            total = workspace.scan(candidates.count, count)
            clock.end("narrow_phase")
        else:
            clock.end("narrow_phase")
            scale = self.reduction.reduce(
                self.device_model, chunk.instances, candidates, count, staged.contact, workspace
            )
            total = workspace.scan(candidates.count, count)
            clock.end("reduction")
        block = compact_contacts(
            self.device_model, chunk, candidates, count, total, staged, self.float_type, workspace, scale
        )
        report.touching_count = _grows(workspace.host(candidates.count, count))
        report.contact_count = block.contact_count
        clock.end("order")
        return block, report

    def kernels(self) -> list[wp.Kernel]:
        """Every kernel that a run of this pipeline launches; the longer one takes to compile, the later it stands."""
        shared = [execute_steps] if self.device_model.device.is_cpu else []
        shared += [*ALWAYS, COMPACT[np.dtype(self.float_type)]]
        for collider in self.table.colliders:
            shared += collider.kind.kernels if collider.kind else []
        if self.reduction is not None:
            shared += self.reduction.kernels()
        shared += dict.fromkeys(collider.naming for collider in self.table.colliders if collider.naming is not None)
        shared += dict.fromkeys(collider.settle for collider in self.table.colliders if collider.settle is not None)
        colliders = sorted(self.table.colliders, key=lambda collider: collider.may_be_inexact)
        return [*shared, *self.broad_phase.kernels(), *(collider.kernel for collider in colliders)]

    def _narrow_phase(
        self, chunk: Chunk, candidates: Candidates, count: int, workspace: Workspace
    ) -> tuple[ContactBuffer, int]:
        """Fills in what is found of each candidate; returns the staged contacts, and how many pairs are inexact."""
        if count == 0:
            return workspace.struct(ContactBuffer), 0
        order, starts = partition(self.device_model, chunk, candidates, count, self.table, workspace)
        sizes = [end - start for start, end in pairwise(starts)]
        needed = [size * collider.max_contacts for size, collider in zip(sizes, self.table.colliders, strict=True)]
        shared = [self.device_model.rows, self.device_model.margins, chunk.instances, candidates]
        sub_pairs = {}
        for index, collider in enumerate(self.table.colliders):
            if collider.kind and sizes[index]:
                bucket = ColliderBatch(collider, shared, self.surfaces, order, starts[index], sizes[index])
                sub_pairs[index] = collider.kind.find(bucket, workspace)
                needed[index] = sub_pairs[index].rows
        first_rows = [0, *accumulate(needed)]
        contact = workspace.array("staged_contact", first_rows[-1], ContactRecord)
        inexact = workspace.array("inexact_count", 1, wp.int32)
        may_be_inexact = any(
            collider.may_be_inexact and n for n, collider in zip(sizes, self.table.colliders, strict=True)
        )
        if may_be_inexact:
            workspace.fill(inexact, 0)
        limit = self.max_contacts_per_pair
        staged = workspace.struct(ContactBuffer, contact=contact)
        for index, collider in enumerate(self.table.colliders):
            size, start, first_row = sizes[index], starts[index], first_rows[index]
            if collider.kind and size:
                bucket = ColliderBatch(collider, shared, self.surfaces, order, start, size)
                collider.kind.collide(bucket, sub_pairs[index], (contact, first_row), limit, inexact, workspace)
                continue
            bucket = workspace.struct(Bucket, order=order, start=start, limit=limit, inexact=inexact)
            staged = workspace.struct(
                ContactBuffer, contact=contact, start=first_row, most=collider.max_contacts, pair_count=size
            )
            workspace.launch(collider.kernel, size, [*shared, bucket, staged])
            if collider.naming is not None:
                workspace.launch(collider.naming, size, [self.device_model.rows, candidates, bucket, staged])
        return staged, workspace.last(inexact, 1) if may_be_inexact else 0
