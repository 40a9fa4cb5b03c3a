"""The pairs of shapes that touch, without their contacts, for `touch_only`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.candidates import CandidateList
from collidecli.engine.cells import Chunk
from collidecli.engine.column_destination import EVERYTHING, ColumnDestination
from collidecli.engine.contact_record import Candidates
from collidecli.engine.ordered_contacts import (
    RowWriter,
    count_cells,
    finished_columns,
    new_columns,
)
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_blocks import ContactBlock, GroupRows, no_columns
from collidecli.scene.contact_columns import RIGID_COLUMNS, TOUCHES


@kernel
def mark_touching(found: wp.array[wp.int32], bound: wp.array[wp.int32], count: wp.array[wp.int32]):
    """One thread per candidate, as many as the bound: 1 if it has a contact, else 0."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    count[thread] = wp.min(found[thread], 1)


def _touching_kernel(columns_type: Any, _: Any) -> wp.Kernel:
    @kernel
    def list_touching(
        candidates: Candidates,
        candidate_bound: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per candidate, as many as their bound: its shapes, if it touches, in the row
        that the scan of the touching ones says; none where the bound of these is 0."""
        thread = wp.tid()
        if bound[0] == 0 or thread >= candidate_bound[0]:
            return
        if candidates.count[thread] > 0:
            slot = candidates.end[thread] - 1
            columns.shape0[slot] = candidates.row[thread][0]
            columns.shape1[slot] = candidates.row[thread][1]

    return list_touching


TOUCH_ROWS = RowWriter("TouchColumns", TOUCHES.columns, np.dtype(np.float32), _touching_kernel)
KERNELS = (mark_touching, TOUCH_ROWS.kernel)


def touching_pairs(
    chunk: Chunk,
    candidates: Candidates,
    listed: CandidateList,
    float_type: np.dtype,
    workspace: Workspace,
    destination: ColumnDestination = EVERYTHING,
) -> Callable[[], ContactBlock]:
    """Issues the search for the candidates with a contact; the function returned waits for a block
    without contacts, whose group `touches` has them in canonical order.

    candidates: with `found` set. listed: the same candidates. destination: where columns stay on
    the device the group has none. The function raises CountsExceeded as `Workspace.send` does.
    """
    marked = [candidates.found, listed.bound, candidates.count]
    workspace.launch(mark_touching, listed.count, marked)
    workspace.launch_scan(candidates.count, listed.count, candidates.end)
    total = workspace.counts.of(
        "touching", candidates.end, ElementCount(listed.count, listed.bound)
    )
    every = ColumnDestination(None, destination.kept)
    columns, wanted, arrays = new_columns(TOUCH_ROWS, total.most, chunk, every, workspace)
    cell_end = arrays["cell_end"]
    cells = [listed.part_end, listed.parts, listed.bound, candidates.end, cell_end]
    workspace.launch(count_cells, chunk.cell_count, cells)
    touching = [candidates, listed.bound, total.bound, columns]
    workspace.launch(TOUCH_ROWS.kernel, listed.count if total.most else 0, touching)
    finished = finished_columns(wanted, cell_end, total, chunk, every, workspace)

    def block() -> ContactBlock:
        groups = {TOUCHES.name: GroupRows(*finished())}
        nothing = no_columns(RIGID_COLUMNS, float_type)
        no_contacts = np.zeros(chunk.cell_count, np.int64)
        return ContactBlock(chunk.first_cell, no_contacts, nothing, groups)

    return block
