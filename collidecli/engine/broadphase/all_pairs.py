"""Broad phase over all pairs of slots of a block (nxn), in groups of eight slots: boxes first, then
the filter."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.broadphase.hit_words import (
    ENTRIES_PER_WORD,
    PER_WORD,
    HitWords,
    bit_count,
    hit_words,
)
from collidecli.engine.broadphase.lane_tests import lanes_that_overlap, test_lanes
from collidecli.engine.broadphase.pair_groups import box_bits
from collidecli.engine.cells import (
    FULL_BLOCKS,
    LANE_COUNT,
    BlockShape,
    Chunk,
    ChunkCells,
    Instances,
    row_of_slot,
)
from collidecli.engine.device_model import LANES, DeviceModel, Filter, Layout
from collidecli.engine.pair_limits import may_touch
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace


@wp.func
def filtered_bits(
    pair_filter: Filter, layout: Layout, chunk: ChunkCells, row0: int, group: int, bits: wp.uint32
) -> wp.uint32:
    """Of the slots `bits` of a group, those whose pair with row0 passes the filter."""
    passed = wp.uint32(0)
    for k in range(LANE_COUNT):
        bit = wp.uint32(1) << wp.uint32(k)
        if (bits & bit) != wp.uint32(0) and may_touch(
            pair_filter, row0, row_of_slot(chunk, layout, group * LANE_COUNT + k)
        ):
            passed = passed | bit
    return passed


@kernel
def test_all(
    pair_filter: Filter,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    words_per_slot: int,
    hits: HitWords,
):
    """Count pass, one thread per word: a slot of a block against the later slots of a few
    groups."""
    thread = wp.tid()
    block_slot0 = thread // words_per_slot
    block = block_slot0 // layout.width
    slot_count = layout.slot_count[chunk.block_template[block]]
    slot0 = block_slot0 - block * layout.width
    first_group = (thread - block_slot0 * words_per_slot) * PER_WORD
    word = wp.uint32(0)
    if slot0 < slot_count:
        own_group = slot0 // LANE_COUNT
        row0 = row_of_slot(chunk, layout, block_slot0)
        end = wp.min(first_group + PER_WORD, (slot_count + LANE_COUNT - 1) // LANE_COUNT)
        for group_in_block in range(wp.max(first_group, own_group), end):
            group = block * (layout.width // LANE_COUNT) + group_in_block
            # Only later slots: not the slot itself and earlier ones of its own group, nor the
            # unused ones of the last.
            used = wp.min(LANE_COUNT, slot_count - group_in_block * LANE_COUNT)
            mask = (wp.uint32(1) << wp.uint32(used)) - wp.uint32(1)
            if group_in_block == own_group:
                mask = mask & ~((wp.uint32(2) << wp.uint32(slot0 % LANE_COUNT)) - wp.uint32(1))
            bits = box_bits(instances.block_box, block_slot0, group, mask)
            if bits != wp.uint32(0):
                bits = filtered_bits(pair_filter, layout, chunk, row0, group, bits)
                word = word | (bits << wp.uint32((group_in_block - first_group) * LANE_COUNT))
    hits.word[thread] = word
    hits.count[thread] = bit_count(word)


@kernel
def write_all(
    width: int,
    words_per_slot: int,
    hits: HitWords,
    bound: wp.array[wp.int32],
    slots: wp.array[wp.vec2i],
):
    """Write pass, one thread per word: its hits, from its offset on; none if `slots` has too few
    elements, where the bound is 0."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0) or bound[0] == 0:
        return
    block_slot0 = thread // words_per_slot
    first_slot = (thread - block_slot0 * words_per_slot) * PER_WORD * LANE_COUNT
    block_slot1 = (block_slot0 // width) * width + first_slot
    output = hits.end[thread] - hits.count[thread]
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            slots[output] = wp.vec2i(block_slot0, block_slot1)
            output += 1
        word = word >> wp.uint32(1)
        block_slot1 += 1


@dataclass(frozen=True)
class AllPairs:
    """Broad phase that tests every pair of slots of a block."""

    device_model: DeviceModel
    name: str = "nxn"
    blocks: BlockShape = FULL_BLOCKS

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs:
        """Pairs of slots of a chunk, with the cells in which they are candidates."""
        layout = self.device_model.layout
        words_per_slot = -(-layout.width // (ENTRIES_PER_WORD * LANES))
        count = chunk.block_count * layout.width * words_per_slot
        hits = hit_words(workspace, count)
        arguments = [
            self.device_model.pair_filter,
            layout,
            chunk.cells,
            chunk.instances,
            words_per_slot,
            hits,
        ]
        workspace.launch(test_all, count, arguments)
        workspace.launch_scan(hits.count, count, hits.end)
        pairs = workspace.counts.of("block_pair", hits.end, count)
        slots = workspace.array("block_pair", pairs.most, wp.vec2i)
        arguments = [layout.width, words_per_slot, hits, pairs.bound, slots]
        workspace.launch(write_all, count, arguments)
        return lanes_that_overlap(self.device_model, chunk, slots, pairs, workspace)

    def kernels(self) -> list[wp.Kernel]:
        return [test_all, write_all, test_lanes]
