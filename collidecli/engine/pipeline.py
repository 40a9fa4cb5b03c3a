"""The collision pipeline: from a chunk of body poses to its contacts, one stage after another."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, PoseBatch, chunk_cells, new_instances, place_shapes
from collidecli.engine.contact.compact import COMPACT, compact_contacts, count_cells
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.narrow_phase.dispatch import Bucket, Room
from collidecli.engine.narrow_phase.partition import count_buckets, partition, write_buckets
from collidecli.engine.narrow_phase.staging import StagedContact, Staging
from collidecli.engine.workspace import Workspace
from collidecli.model.contacts import ContactBlock

STAGES = ("transforms", "broad_phase", "narrow_phase", "order")


class BroadPhase(Protocol):
    """Finds a chunk's candidates: pairs of instances that may touch, ordered by cell, place0, place1."""

    @property
    def name(self) -> str: ...

    def find(
        self, chunk: ChunkCells, cell_count: int, instances: Instances, workspace: Workspace
    ) -> tuple[wp.array, int]: ...

    def kernels(self) -> list[wp.Kernel]: ...


@dataclass
class ChunkReport:
    """What a chunk cost. seconds: per stage of STAGES. touching_count: candidates that gave a contact."""

    cell_count: int = 0
    candidate_count: int = 0
    touching_count: int = 0
    contact_count: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))


class StageClock:
    """Adds the time between calls to the stage that just ended, the device's work included."""

    def __init__(self, report: ChunkReport, device: wp.Device) -> None:
        self._report, self._device = report, device
        self._last = time.perf_counter()

    def end(self, stage: str) -> None:
        if self._device.is_cuda:
            wp.synchronize_stream(self._device.stream)
        now = time.perf_counter()
        self._report.seconds[stage] += now - self._last
        self._last = now


@dataclass(frozen=True)
class CollisionPipeline:
    """A broad phase and the rooms of a model's pairs of types. Holds no scratch: any number of threads may share it.

    room_of_types: int32[T * T] on the device, see needed_rooms.
    max_contacts_per_pair: 0 is no limit.
    """

    device_model: DeviceModel
    broad_phase: BroadPhase
    rooms: list[Room]
    room_of_types: wp.array
    float_type: np.dtype
    max_contacts_per_pair: int = 0

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of every cell of the batch, in canonical order, and what they cost.

        Raises ChunkTooLarge when the scratch memory does not suffice; fewer cells at a time may.
        """
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace.device)
        chunk = chunk_cells(batch, self.device_model.model.world_template, workspace.device)
        instances = self.place(chunk, batch.cell_count, workspace)
        clock.end("transforms")
        candidates, candidate_count = self.broad_phase.find(chunk, batch.cell_count, instances, workspace)
        clock.end("broad_phase")
        count, first, stride, staged = self._narrow_phase(chunk, instances, candidates, candidate_count, workspace)
        if candidate_count:
            report.touching_count = int(np.count_nonzero(count[:candidate_count].numpy()))
        clock.end("narrow_phase")
        model = self.device_model
        block = compact_contacts(
            model.rows,
            model.layout,
            chunk,
            batch,
            instances,
            candidates,
            candidate_count,
            count,
            first,
            stride,
            staged,
            self.float_type,
            workspace,
        )
        clock.end("order")
        report.candidate_count, report.contact_count = candidate_count, block.contact_count
        return block, report

    def place(self, chunk: ChunkCells, cell_count: int, workspace: Workspace) -> Instances:
        """Pose and bounds of every shape of every cell."""
        count = cell_count * self.device_model.layout.width
        instances = new_instances(workspace, count)
        arguments = [self.device_model.rows, self.device_model.layout, chunk, instances]
        wp.launch(place_shapes, count, arguments, device=workspace.device)
        return instances

    def kernels(self) -> list[wp.Kernel]:
        """Every kernel that a run of this pipeline launches."""
        shared = [place_shapes, count_buckets, write_buckets, count_cells, COMPACT[np.dtype(self.float_type)]]
        return [*shared, *self.broad_phase.kernels(), *(room.kernel for room in self.rooms)]

    def _narrow_phase(
        self,
        chunk: ChunkCells,
        instances: Instances,
        candidates: wp.array,
        candidate_count: int,
        workspace: Workspace,
    ) -> tuple[wp.array, wp.array, wp.array, Staging]:
        """Contacts per candidate, where its first stands in the staging and how far apart they are, and the staging."""
        count = workspace.array("contact_count", candidate_count, wp.int32)
        first = workspace.array("contact_first", candidate_count, wp.int32)
        stride = workspace.array("contact_stride", candidate_count, wp.int32)
        if candidate_count == 0:
            return count, first, stride, Staging()
        rows, layout = self.device_model.rows, self.device_model.layout
        order, starts = partition(
            rows,
            layout,
            chunk,
            candidates,
            candidate_count,
            self.room_of_types,
            len(self.device_model_types()),
            len(self.rooms),
            workspace,
        )
        sizes = np.diff(starts)
        most = np.array([room.max_contacts for room in self.rooms])
        first_rows = np.concatenate([[0], np.cumsum(sizes * most)])
        staged = Staging()
        staged.contact = workspace.array("staged_contact", int(first_rows[-1]), StagedContact)
        for index, room in enumerate(self.rooms):
            if sizes[index] == 0:
                continue
            bucket = Bucket()
            bucket.candidates, bucket.order, bucket.start = candidates, order, int(starts[index])
            bucket.count, bucket.first, bucket.stride = count, first, stride
            bucket.limit = self.max_contacts_per_pair
            staged.start, staged.most = int(first_rows[index]), room.max_contacts
            staged.pair_count = int(sizes[index])
            arguments = [rows, layout, chunk, instances, bucket, staged]
            wp.launch(room.kernel, int(sizes[index]), arguments, device=workspace.device)
        return count, first, stride, staged

    def device_model_types(self) -> range:
        """Rows of the room table: one a shape type."""
        return range(round(len(self.room_of_types) ** 0.5))
