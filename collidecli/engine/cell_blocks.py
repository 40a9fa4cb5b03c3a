"""Blocks of cells: cells of one template whose instances of a shape are consecutive in memory, as lanes.

In a block the cell is the fastest index: instance = (block * width + slot) * lanes + lane. Transforms, bounds and pair
tests are executed for several lanes at once, and the broad phase tests the boxes of whole blocks first. A block has
consecutive frames of one world where a chunk has enough of them, else cells of several worlds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MAX_SHIFT = 5
"""Blocks have at most 1 << MAX_SHIFT cells: as many as a 32-bit mask has bits."""
MIN_LANES = 8
"""Blocks have one cell or at least this many."""


@dataclass(frozen=True)
class BlockShape:
    """Size of blocks: 1 << shift cells. of_one_world: whether a block has cells of one world only."""

    shift: int = 0
    of_one_world: bool = False

    @property
    def lanes(self) -> int:
        return 1 << self.shift


SINGLE_CELLS = BlockShape()
FULL_BLOCKS = BlockShape(MAX_SHIFT)


@dataclass(frozen=True)
class CellBlocks:
    """Cells of a chunk as lanes of blocks.

    lane_cell: int32[blocks * lanes], cell of each lane; unused lanes at the end of a block have that of its first.
    cell_lane: int32[cells], lane of each cell, counted through all blocks. block_template, block_size: int32[blocks],
    template and used lanes of each block.
    """

    lane_cell: np.ndarray
    cell_lane: np.ndarray
    block_template: np.ndarray
    block_size: np.ndarray


def block_shape(cell_count: int, world_template: np.ndarray, most: BlockShape) -> BlockShape:
    """The blocks of a chunk of `cell_count` cells: up to `most`, and no larger than one block for all needs to be.

    world_template: int32[W], template of each world.
    """
    groups = len(world_template) if most.of_one_world else int(world_template.max()) + 1
    each = cell_count // groups
    if each < 2 or most.shift == 0:
        return BlockShape(0, most.of_one_world)
    lanes = max(MIN_LANES, 1 << (each - 1).bit_length())
    return BlockShape(min(most.shift, lanes.bit_length() - 1), most.of_one_world)


def cell_blocks(template: np.ndarray, world: np.ndarray, shape: BlockShape) -> CellBlocks:
    """Blocks of cells with these templates and worlds, both int32[cells] with frames in ascending order."""
    count, lanes = len(template), shape.lanes
    group = world if shape.of_one_world else template
    order, begins = np.arange(count), np.zeros(1, np.int64)
    if lanes > 1 and not (world == world[0]).all():
        order = np.lexsort((world, group))
        begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(begins, append=count)
    blocks = -(-sizes // lanes)
    first_block = np.cumsum(blocks) - blocks
    lane = np.arange(count) - np.repeat(begins - first_block * lanes, sizes)
    lane_cell = np.full(int(blocks.sum()) * lanes, -1, np.int32)
    lane_cell[lane] = order
    by_block = lane_cell.reshape(-1, lanes)
    block_size = (by_block >= 0).sum(axis=1).astype(np.int32)
    by_block[:] = np.where(by_block < 0, by_block[:, :1], by_block)
    cell_lane = np.empty(count, np.int32)
    cell_lane[order] = lane
    return CellBlocks(lane_cell, cell_lane, template[by_block[:, 0]].astype(np.int32), block_size)
