"""Narrow phase of a chunk: the colliders of a model's pairs of kinds, their surfaces, and their
launches."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from collidecli.elapsed import NOT_RUN, Elapsed, now, since
from collidecli.engine.candidates import CandidateList
from collidecli.engine.cells import Chunk
from collidecli.engine.contact_record import Candidates, ContactBuffer, ContactRecord
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.narrowphase.collider import (
    PER_THREAD,
    Bucket,
    ColliderBatch,
    ColliderTable,
    ContactOutput,
)
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel_loader import is_loaded, load_kernels
from collidecli.engine.runtime.workspace import Workspace

if TYPE_CHECKING:
    from collidecli.engine.geometry.sdf_construction import FieldStore, SdfGrid


@dataclass(frozen=True)
class NarrowPhase:
    """The colliders of a model. max_contacts_per_pair: 0 is no limit. surfaces: arguments of the
    colliders of sub-pairs, by name. field_time: to build or load signed distance fields."""

    device_model: DeviceModel
    table: ColliderTable
    max_contacts_per_pair: int = 0
    surfaces: dict[str, Any] = field(default_factory=dict)
    field_time: Elapsed = NOT_RUN

    @classmethod
    def of(
        cls,
        device_model: DeviceModel,
        table: ColliderTable,
        store: FieldStore | None,
        max_contacts_per_pair: int = 0,
    ) -> NarrowPhase:
        """The narrow phase with its surfaces on the device. store: cache of signed distance
        fields."""
        return cls(
            device_model,
            table,
            max_contacts_per_pair,
            *_upload_surfaces(device_model, table, store),
        )

    def kernels(self) -> list[wp.Kernel]:
        """The kernels of the colliders, by increasing compile time: at first those that pairs of
        surfaces share."""
        table = self.table.colliders
        shared = [kernel for each in table for kernel in each.kernels if kernel is not each.kernel]
        if has_own_memory(self.device_model.device):
            methods = [each.sub_pair_kernels for each in table if each.sub_pair_kernels is not None]
            shared += [kernel for method in methods for kernel in method.device_kernels]
        return [
            *shared,
            *(each.kernel for each in sorted(table, key=lambda each: each.may_be_inexact)),
        ]

    def load_used(self, listed: CandidateList) -> tuple[tuple[float, float], ...]:
        """Compiles the kernels of the colliders that have candidates; begin and end of the time it
        took, if any."""
        sizes = zip(listed.sizes, listed.pair_sizes, strict=True)
        # Without colliders there is one bucket.
        counted = zip(self.table.colliders, sizes, strict=False)
        used = [collider.kernel for collider, counts in counted if any(counts)]
        missing = [
            kernel for kernel in used[::-1] if not is_loaded(kernel, self.device_model.device)
        ]
        if not missing:
            return ()
        begin = time.perf_counter()
        load_kernels(missing, self.device_model.device)
        return ((begin, time.perf_counter()),)

    def measure_surfaces(self) -> None:
        """Sets the surfaces that contain meshes with their clearance; its kernel must be
        compiled."""
        surfaces = self.surfaces
        device_model = self.device_model
        if surfaces.keys() & {"measured_meshes", "meshes_and_heightfields"}:
            from collidecli.engine.geometry.mesh_clearance import measure_clearance

            surfaces["measured_meshes"] = measure_clearance(
                surfaces["meshes"], device_model.model.meshes, device_model.device
            )
        if "measured_solids" in surfaces:
            from collidecli.engine.narrowphase.triangles.heightfield_colliders import measured

            surfaces["measured_solids"] = measured(surfaces["solids"], device_model.device)
        if "meshes_and_heightfields" in surfaces:
            from collidecli.engine.narrowphase.triangles.heightfield_colliders import Surfaces

            both = surfaces["meshes_and_heightfields"] = Surfaces()
            both.meshes = surfaces["measured_meshes"]
            both.heightfields = surfaces["heightfields"]

    def collide(
        self, chunk: Chunk, candidates: Candidates, listed: CandidateList, workspace: Workspace
    ) -> tuple[ContactBuffer, wp.array | None]:
        """Sets the fields of each candidate except `end`; returns the buffer and the count of
        inexact pairs, if any."""
        if listed.count == 0:
            return workspace.struct(ContactBuffer), None
        shared = [self.device_model.rows, self.device_model.margins, chunk.instances, candidates]
        found = self._find_sub_pairs(shared, listed, workspace)
        first_rows = [0, *accumulate(self._needed_rows(listed, found))]
        contact = workspace.array("emitted_contact", first_rows[-1], ContactRecord)
        may_be_inexact = any(
            collider.may_be_inexact and n
            for n, collider in zip(listed.sizes, self.table.colliders, strict=True)
        )
        inexact = (
            workspace.counts.counter("inexact_count")
            if may_be_inexact
            else workspace.array("inexact_count", 1, wp.int32)
        )
        emitted = workspace.struct(ContactBuffer, contact=contact)
        for index, collider in enumerate(self.table.colliders):
            if not listed.sizes[index]:
                continue
            out = ContactOutput(contact, first_rows[index], self.max_contacts_per_pair, inexact)
            if collider.sub_pair_kernels:
                batch, sub_pairs = found[index]
                collider.sub_pair_kernels.collide(batch, sub_pairs, out, workspace)
            else:
                emitted = self._launch(index, shared, listed, chunk.lanes, out, workspace)
        return emitted, inexact if may_be_inexact else None

    def _find_sub_pairs(
        self, shared: list[Any], listed: CandidateList, workspace: Workspace
    ) -> dict[int, tuple[ColliderBatch, Any]]:
        """The candidates of each collider of sub-pairs that has any, and their sub-pairs, by index
        of the collider."""
        found = {}
        for index, collider in enumerate(self.table.colliders):
            size = listed.sizes[index]
            if collider.sub_pair_kernels and size:
                batch = ColliderBatch(
                    collider, shared, self.surfaces, listed.order, listed.start, index, size
                )
                found[index] = batch, collider.sub_pair_kernels.find(batch, workspace)
        return found

    def _needed_rows(
        self, listed: CandidateList, found: dict[int, tuple[ColliderBatch, Any]]
    ) -> list[int]:
        """Rows of the contact buffer that each collider may write."""
        return [
            found[index][1].rows.most if index in found else size * collider.max_contacts
            for index, (size, collider) in enumerate(
                zip(listed.sizes, self.table.colliders, strict=True)
            )
        ]

    def _launch(
        self,
        index: int,
        shared: list[Any],
        listed: CandidateList,
        lanes: int,
        out: ContactOutput,
        workspace: Workspace,
    ) -> ContactBuffer:
        """Launches a collider of whole pairs on its candidates; returns the rows that it writes."""
        collider = self.table.colliders[index]
        size = listed.sizes[index]
        bucket = workspace.struct(
            Bucket,
            order=listed.order,
            start=listed.start,
            index=index,
            pair_index=len(listed.sizes) + 1 + index,
            limit=out.limit,
            inexact=out.inexact,
        )
        emitted = workspace.struct(
            ContactBuffer,
            contact=out.contact,
            start=out.first_row,
            most=collider.max_contacts,
            pair_count=size,
        )
        if collider.by_pairs:
            parts = lanes if workspace.has_own_memory else 1
            of_lanes = [listed.lanes, lanes.bit_length() - 1, parts]
            threads = listed.pair_sizes[index] * parts
            workspace.launch(collider.kernel, threads, [*shared, *of_lanes, bucket, emitted])
            return emitted
        per_thread = 1 if workspace.has_own_memory else PER_THREAD
        threads = -(-size // per_thread)
        workspace.launch(collider.kernel, threads, [*shared, per_thread, bucket, emitted])
        if collider.feature_remapping is not None:
            rows_and_candidates = [self.device_model.rows, shared[3]]
            workspace.launch(
                collider.feature_remapping, size, [*rows_and_candidates, bucket, emitted]
            )
        return emitted


def _upload_surfaces(
    device_model: DeviceModel, table: ColliderTable, store: FieldStore | None
) -> tuple[dict[str, Any], Elapsed]:
    """Further arguments of the colliders of sub-pairs, by name, and the time for signed distance
    fields.

    The clearance of meshes is not measured yet (`NarrowPhase.measure_surfaces`), since that needs
    kernels.
    """
    model = device_model.model
    device = device_model.device
    surfaces: dict[str, Any] = dict.fromkeys(
        collider.sub_pair_kernels.surfaces
        for collider in table.colliders
        if collider.sub_pair_kernels
    )
    if surfaces.keys() & {"meshes", "measured_meshes", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.meshes import upload_meshes

        surfaces["meshes"] = upload_meshes(model.meshes, device)
    if surfaces.keys() & {"heightfields", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        surfaces["heightfields"] = upload_heightfields(model.heightfields, device)
    if surfaces.keys() & {"solids", "measured_solids"}:
        from collidecli.engine.narrowphase.triangles.heightfield_colliders import upload_solids

        surfaces["solids"] = upload_solids(device_model)
    start = now()
    if "fields" in surfaces:
        surfaces["fields"] = _fields(device_model, store)
    return surfaces, since(start)


def _fields(device_model: DeviceModel, store: FieldStore | None) -> wp.array:
    from collidecli.engine.geometry.sdf_construction import field_of
    from collidecli.engine.narrowphase.field_collider import upload_fields

    model = device_model.model
    device = device_model.device
    grids: dict[str, SdfGrid] = {}
    for number, shape in enumerate(model.sdfs):
        if shape.field_key not in grids:
            where = f"shape '{model.shapes.path[int(np.argmax(model.shapes.sdf == number))]}'"
            grids[shape.field_key] = field_of(shape, device, store, where)
    return upload_fields(
        model, device_model.rows, [grids[shape.field_key] for shape in model.sdfs], device
    )
