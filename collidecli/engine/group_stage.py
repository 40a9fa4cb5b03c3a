"""Stages that find the rows of a group beside the rigid contacts, in parts that fit in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

import warp as wp

from collidecli.engine.cells import (
    Chunk,
    PoseBatch,
    transform_chunk,
)
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace, parts_that_fit
from collidecli.scene.contact_blocks import (
    GroupRows,
    consecutive_groups,
    groups_of_parts,
)
from collidecli.scene.contact_columns import ContactGroup


class GroupStage(Protocol):
    """Finds the rows of a group beside the rigid contacts, from the instances of a chunk."""

    @property
    def group(self) -> ContactGroup: ...

    @property
    def width(self) -> int:
        """Units of a cell, such as particles, that are independent of each other."""
        ...

    def issue_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> Callable[[], GroupRows]:
        """Issues the search for the rows of the units `begin` to `end` of each cell; the function
        returned waits for them."""
        ...

    def kernels(self) -> list[wp.Kernel]: ...


@runtime_checkable
class ReducedStage(Protocol):
    """A stage that keeps some of the rows of a cell. reduced: the rows that are kept of those of
    all parts of a cell, each of which is reduced."""

    def reduced(self, rows: GroupRows) -> GroupRows: ...


def joining_bytes(result_bytes: int, with_groups: bool = False) -> int:
    """Memory of parts with `result_bytes` while they are joined: one column is doubled, of rigid
    contacts under a quarter; of a group, such as the corners of faces, under three quarters."""
    return result_bytes * (7 if with_groups else 5) // 4


def rows_within(
    stage: GroupStage, device_model: DeviceModel, batch: PoseBatch, memory_limit: int
) -> GroupRows:
    """Rows of a group in a batch within `memory_limit` bytes of scratch and result.

    The cells, and the units of one cell, are collided in as few parts as the limit allows. Raises
    ChunkTooLarge, with the bytes that are needed, where a single unit does not fit.
    """
    name = stage.group.name
    result_bytes = 0

    def of_cells(first: int, last: int) -> GroupRows:
        cells = replace(batch, first_cell=batch.first_cell + first, cell_count=last - first)

        def of_units(begin: int, end: int) -> GroupRows:
            nonlocal result_bytes
            left = memory_limit - joining_bytes(result_bytes, with_groups=True)
            workspace = Workspace(device_model.device, left, exact=True)
            try:
                chunk = transform_chunk(device_model, cells, workspace)
                rows = stage.issue_part(chunk, cells, workspace, begin, end)()
            except ChunkTooLarge as too_large:
                raise ChunkTooLarge(memory_limit - left + too_large.needed) from None
            result_bytes += rows.nbytes
            return rows

        if cells.cell_count > 1:
            return of_units(0, stage.width)
        parts = [{name: part} for part in parts_that_fit(stage.width, of_units)]
        rows = groups_of_parts(parts)[name]
        return stage.reduced(rows) if isinstance(stage, ReducedStage) else rows

    return consecutive_groups(
        [{name: part} for part in parts_that_fit(batch.cell_count, of_cells)]
    )[name]
