"""Pairs of elements of deformable objects and items near them: traversals of trees, and the rows of
their groups.

A traversal is two kernels of one thread per element and cell for `Workspace.counted`, which write
an element's pairs (thread, item), ascending by item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.column_destination import EVERYTHING
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.ordered_contacts import (
    RowWriter,
    count_cells,
    finished_columns,
    new_columns,
)
from collidecli.engine.runtime.chunk_counts import ElementCount, clear_exceeded, mark_overflow
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_blocks import GroupRows, no_rows
from collidecli.scene.contact_columns import ContactGroup


@wp.func
def insert_pair(pair: wp.array[wp.vec2i], first: int, end: int, thread: int, item: int):
    """Inserts (thread, item) among the pairs `first` to `end` - 1, which are ordered by item."""
    place = int(end)
    while place > first and pair[wp.max(place - 1, 0)][1] > item:
        pair[place] = pair[place - 1]
        place -= 1
    pair[place] = wp.vec2i(thread, item)


@kernel
def end_cells(end: wp.array[wp.int32], width: int, cell_end: wp.array[wp.int32]):
    """One thread per cell: the end of the pairs of its `width` elements."""
    cell = wp.tid()
    cell_end[cell] = end[(cell + 1) * width - 1]


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
        self.device_model = device_model
        self.width = elements
        self.float_type = np.dtype(float_type)

    def inputs(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int
    ) -> Inputs | None:
        """Arguments of all kernels for `width` elements of each cell's from `begin` on, the largest
        number of pairs of an element, and host arrays that must live until all launches are
        complete; None without rows."""
        raise NotImplementedError

    def evaluate(
        self, arguments: list[Any], pair: wp.array, count: ElementCount, workspace: Workspace
    ) -> tuple[list[Any], ElementCount, wp.array | None]:
        """Evaluates the pairs that were found: further arguments of the kernel that writes rows,
        which is launched for each pair, the number of rows, and the inclusive scan of the rows of
        each pair, None where each has one."""
        raise NotImplementedError

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        bounds = [mark_overflow, clear_exceeded]
        on_device = bounds if has_own_memory(self.device_model.device) else []
        writer = self.writers[self.float_type]
        return [*on_device, count_cells, end_cells, writer.kernel, *self.traversal]

    def issue_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> Callable[[], GroupRows]:
        """Issues the search for the rows of the elements `begin` to `end` of each cell's; the
        function returned waits for them. Raises ChunkTooLarge when the scratch memory is too small;
        the function raises CountsExceeded as `Workspace.send` does."""
        width = end - begin
        inputs = self.inputs(chunk, batch, workspace, begin, width)
        if inputs is None:
            nothing = no_rows(self.group, chunk.cell_count, self.float_type)
            return lambda: nothing
        (arguments, most, host) = inputs
        threads = chunk.cell_count * width
        pair_end, pair, pairs = workspace.counted(
            "element_pair",
            wp.vec2i,
            self.traversal,
            threads,
            arguments,
            most,
            f"{self.group.name}_pair",
        )
        further, total, row_end = self.evaluate(arguments, pair, pairs, workspace)
        writer = self.writers[self.float_type]
        columns, wanted, arrays = new_columns(writer, total.most, chunk, EVERYTHING, workspace)
        cell_end = arrays["cell_end"]
        if row_end is None:
            workspace.launch(end_cells, chunk.cell_count, [pair_end, width, cell_end])
        else:
            ends = [pair_end, width, pairs.bound, row_end, cell_end]
            workspace.launch(count_cells, chunk.cell_count, ends)
        workspace.launch(
            writer.kernel, pairs.most if total.most else 0, [*arguments, pair, *further, columns]
        )
        finished = finished_columns(wanted, cell_end, total, chunk, EVERYTHING, workspace)
        return partial(_finished_rows, finished, host)


def _finished_rows(
    finished: Callable[[], tuple[np.ndarray, dict[str, np.ndarray]]], host: tuple[np.ndarray, ...]
) -> GroupRows:
    """The rows, when all launches are complete; host: arrays that live until then."""
    return GroupRows(*finished())
