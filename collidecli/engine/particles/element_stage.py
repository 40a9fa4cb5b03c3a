"""Pairs of elements of deformable objects and items near them: traversals of trees, and the rows of
their groups.

A traversal is two kernels of one thread per element and cell for `Workspace.counted`, which write
an element's pairs (thread, item), ascending by item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.ordered_contacts import RowWriter, count_cells
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import ContactGroup, GroupRows, no_rows


@wp.func
def insert_pair(pair: wp.array[wp.vec2i], first: int, end: int, thread: int, item: int):
    """Inserts (thread, item) among the pairs `first` to `end` - 1, which are ordered by item."""
    place = int(end)
    while place > first and pair[wp.max(place - 1, 0)][1] > item:
        pair[place] = pair[place - 1]
        place -= 1
    pair[place] = wp.vec2i(thread, item)


Inputs = tuple[list[Any], int, tuple[np.ndarray, ...]]
"""See `ElementStage.inputs`."""


class ElementStage:
    """Finds the rows of a group from pairs of an element of the particles and an item near it:
    counted by a traversal, written, evaluated, and written to columns. Any number of threads may
    share it.

    group, writers, traversal: set by each subclass. elements: of the template that has most.
    """

    group: ContactGroup
    writers: Mapping[np.dtype, RowWriter]
    traversal: tuple[wp.Kernel, ...]

    def __init__(self, device_model: DeviceModel, elements: int, float_type: np.dtype) -> None:
        self.device_model, self.width, self.float_type = (
            device_model,
            elements,
            np.dtype(float_type),
        )

    def inputs(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int
    ) -> Inputs | None:
        """Arguments of all kernels for `width` elements of each cell's from `begin` on, the largest
        number of pairs of an element, and host arrays that must live until all launches are
        complete; None without rows."""
        raise NotImplementedError

    def evaluate(
        self, arguments: list[Any], pair: wp.array, count: int, workspace: Workspace
    ) -> tuple[list[Any], int, wp.array | None]:
        """Evaluates the pairs that were found: further arguments of the kernel that writes rows,
        which is launched for each pair, the number of rows, and the inclusive scan of the rows of
        each pair, None where each has one."""
        raise NotImplementedError

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        return [count_cells, self.writers[self.float_type].kernel, *self.traversal]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the elements `begin` to `end` of each cell's, and the number of pairs.
        Raises ChunkTooLarge when the scratch memory is too small."""
        width = end - begin
        inputs = self.inputs(chunk, batch, workspace, begin, width)
        if inputs is None:
            return no_rows(self.group, chunk.cell_count, self.float_type), 0
        (arguments, most, host) = inputs
        threads = chunk.cell_count * width
        pair_end, pair, pairs = workspace.counted(
            "element_pair", wp.vec2i, self.traversal, threads, arguments, most
        )
        further, count, row_end = self.evaluate(arguments, pair, pairs, workspace)
        columns = self.writers[self.float_type].write(
            pairs, [*arguments, pair, *further], count, workspace
        )
        if row_end is None:
            ends = workspace.every(pair_end, threads, width)
        else:
            cell_end = workspace.array("element_cell_end", chunk.cell_count, wp.int32)
            ends = [pair_end, width, workspace.counts.unbounded, row_end, cell_end]
            workspace.launch(count_cells, chunk.cell_count, ends)
            ends = workspace.host(cell_end, chunk.cell_count)
        counts = np.diff(ends, prepend=0).astype(np.int64)
        workspace.finish()
        del inputs, host  # all launches are complete
        return GroupRows(counts, columns), pairs
