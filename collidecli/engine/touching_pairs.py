"""The pairs of shapes that touch, without their contacts, for `touch_only`."""

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk
from collidecli.engine.contact_record import Candidates
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import (
    RIGID_COLUMNS,
    TOUCHES,
    ContactBlock,
    GroupRows,
    no_columns,
)


def touching_pairs(
    chunk: Chunk,
    candidates: Candidates,
    count: int,
    cell_end: wp.array,
    float_type: np.dtype,
    workspace: Workspace,
) -> ContactBlock:
    """A block without contacts, whose group `touches` has the candidates with a contact, in
    canonical order.

    candidates: with `found` set. cell_end: inclusive scan of the candidates of each cell.
    """
    wanted = {"found": (candidates.found, count), "row": (candidates.row, count)}
    arrays = workspace.download({**wanted, "cell_end": (cell_end, chunk.cell_count)})
    touching = np.flatnonzero(arrays["found"])
    ends = np.searchsorted(touching, arrays["cell_end"])
    counts = np.diff(ends, prepend=0).astype(np.int64)
    shapes = arrays["row"].reshape(-1, 2)[touching]
    columns = {f"shape{side}": np.ascontiguousarray(shapes[:, side]) for side in (0, 1)}
    nothing = no_columns(RIGID_COLUMNS, float_type)
    groups = {TOUCHES.name: GroupRows(counts, columns)}
    return ContactBlock(chunk.first_cell, np.zeros(chunk.cell_count, np.int64), nothing, groups)
