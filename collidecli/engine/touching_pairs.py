"""The pairs of shapes that touch, without their contacts, for `touch_only`."""

from typing import Any

import numpy as np
import warp as wp

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
from collidecli.scene.contact_columns import (
    RIGID_COLUMNS,
    TOUCHES,
    ContactBlock,
    GroupRows,
    no_columns,
)


@kernel
def mark_touching(found: wp.array[wp.int32], count: wp.array[wp.int32]):
    """One thread per candidate: 1 if it has a contact, else 0."""
    thread = wp.tid()
    count[thread] = wp.min(found[thread], 1)


def _touching_kernel(columns_type: Any, _: Any) -> wp.Kernel:
    @kernel
    def list_touching(candidates: Candidates, columns: columns_type):
        """One thread per candidate: its shapes, if it touches, in the row that the scan of the
        touching ones says."""
        thread = wp.tid()
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
    count: int,
    candidate_cell_end: wp.array,
    float_type: np.dtype,
    workspace: Workspace,
    destination: ColumnDestination = EVERYTHING,
) -> ContactBlock:
    """A block without contacts, whose group `touches` has the candidates with a contact, in
    canonical order.

    candidates: with `found` set. candidate_cell_end: inclusive scan of the candidates of each cell.
    destination: where columns stay on the device the group has none.
    """
    workspace.launch(mark_touching, count, [candidates.found, candidates.count])
    total = workspace.scan(candidates.count, count, candidates.end)
    unbounded = workspace.counts.unbounded
    every = ColumnDestination(None, destination.kept)
    columns, wanted, arrays = new_columns(TOUCH_ROWS, total, chunk, every, workspace)
    cell_end = arrays["cell_end"]
    cells = [candidate_cell_end, 1, unbounded, candidates.end, cell_end]
    workspace.launch(count_cells, chunk.cell_count, cells)
    workspace.launch(TOUCH_ROWS.kernel, count if total else 0, [candidates, columns])
    rows = ElementCount(total, unbounded)
    counts, copies = finished_columns(wanted, cell_end, rows, chunk, every, workspace)()
    nothing = no_columns(RIGID_COLUMNS, float_type)
    groups = {TOUCHES.name: GroupRows(counts, copies)}
    return ContactBlock(chunk.first_cell, np.zeros(chunk.cell_count, np.int64), nothing, groups)
