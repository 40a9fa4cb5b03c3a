"""The candidates of the broad phase as rows of a contact set, for `candidates_only`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.candidates import CandidateList
from collidecli.engine.cells import Chunk
from collidecli.engine.column_destination import EVERYTHING, ColumnDestination
from collidecli.engine.ordered_contacts import RowWriter, finished_columns, new_columns
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_blocks import ContactBlock, GroupRows, no_columns
from collidecli.scene.contact_columns import CANDIDATES, RIGID_COLUMNS


@kernel
def end_cells(
    part_end: wp.array[wp.int32],
    parts: int,
    bound: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """One thread per cell: the end of its candidates, from the ends of those of each of its
    `parts`; none where the bound of all is 0."""
    cell = wp.tid()
    cell_end[cell] = 0
    if bound[0] > 0:
        cell_end[cell] = part_end[(cell + 1) * parts - 1]


def _candidates_kernel(columns_type: Any, _: Any) -> wp.Kernel:
    @kernel
    def list_candidates(
        row: wp.array[wp.vec2i],
        row_bound: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per candidate, as many as both bounds: its shapes."""
        thread = wp.tid()
        if thread >= row_bound[0] or thread >= bound[0]:
            return
        columns.shape0[thread] = row[thread][0]
        columns.shape1[thread] = row[thread][1]

    return list_candidates


CANDIDATE_ROWS = RowWriter(
    "CandidateColumns", CANDIDATES.columns, np.dtype(np.float32), _candidates_kernel
)
KERNELS = (end_cells, CANDIDATE_ROWS.kernel)


def candidate_rows(
    chunk: Chunk,
    listed: CandidateList,
    float_type: np.dtype,
    workspace: Workspace,
    destination: ColumnDestination = EVERYTHING,
) -> Callable[[], ContactBlock]:
    """Issues the copy of the candidates of a chunk; the function returned waits for a block without
    contacts, whose group `candidates` has them in canonical order.

    destination: where columns stay on the device the group has none. The function raises
    CountsExceeded as `Workspace.send` does.
    """
    ends = listed.parts * chunk.cell_count
    total = workspace.counts.of("listed_candidate", listed.part_end, ends)
    every = ColumnDestination(None, destination.kept)
    columns, wanted, arrays = new_columns(CANDIDATE_ROWS, total.most, chunk, every, workspace)
    cell_end = arrays["cell_end"]
    workspace.launch(
        end_cells, chunk.cell_count, [listed.part_end, listed.parts, total.bound, cell_end]
    )
    arguments = [listed.row, listed.bound, total.bound, columns]
    workspace.launch(CANDIDATE_ROWS.kernel, total.most, arguments)
    finished = finished_columns(wanted, cell_end, total, chunk, every, workspace)

    def block() -> ContactBlock:
        groups = {CANDIDATES.name: GroupRows(*finished())}
        nothing = no_columns(RIGID_COLUMNS, float_type)
        no_contacts = np.zeros(chunk.cell_count, np.int64)
        return ContactBlock(chunk.first_cell, no_contacts, nothing, groups)

    return block
