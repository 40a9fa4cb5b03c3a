"""Broad phase over all pairs of a cell (nxn), in blocks of eight slots: bounds first, then the filter."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.broadphase.eight_wide_bounds import overlap_bits
from collidecli.engine.broadphase.hit_words import ENTRIES_PER_WORD, HitWords, bit_count, hit_words
from collidecli.engine.cells import LANE_COUNT, Chunk, ChunkCells, Instances, row_of
from collidecli.engine.device_model import LANES, DeviceModel, Filter, Layout, ShapeRows
from collidecli.engine.pair_filter import may_touch
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

PER_WORD = wp.constant(ENTRIES_PER_WORD)


@wp.func
def filtered_bits(
    pair_filter: Filter, layout: Layout, chunk: ChunkCells, row0: int, block: int, bits: wp.uint32
) -> wp.uint32:
    """Of the lanes `bits` of a block, those whose pair with row0 passes the filter."""
    passed = wp.uint32(0)
    for k in range(LANE_COUNT):
        bit = wp.uint32(1) << wp.uint32(k)
        if (bits & bit) != wp.uint32(0) and may_touch(pair_filter, row0, row_of(chunk, layout, block * LANE_COUNT + k)):
            passed = passed | bit
    return passed


@kernel
def test_all(
    rows: ShapeRows,
    pair_filter: Filter,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    words_per_slot: int,
    hits: HitWords,
):
    """Count pass, one thread per word: a slot against the later slots of a few blocks."""
    thread = wp.tid()
    instance0 = thread // words_per_slot
    cell = instance0 // layout.width
    slot_count = layout.slot_count[chunk.cell_template[cell]]
    slot0 = instance0 - cell * layout.width
    first_block = (thread - instance0 * words_per_slot) * PER_WORD
    word = wp.uint32(0)
    if slot0 < slot_count:
        own_block = slot0 // LANE_COUNT
        row0 = row_of(chunk, layout, instance0)
        end = wp.min(first_block + PER_WORD, (slot_count + LANE_COUNT - 1) // LANE_COUNT)
        for block_in_cell in range(wp.max(first_block, own_block), end):
            block = cell * (layout.width // LANE_COUNT) + block_in_cell
            # Only later slots: not the slot itself and earlier lanes of its own block, nor the unused lanes of the
            # last.
            used = wp.min(LANE_COUNT, slot_count - block_in_cell * LANE_COUNT)
            mask = (wp.uint32(1) << wp.uint32(used)) - wp.uint32(1)
            if block_in_cell == own_block:
                mask = mask & ~((wp.uint32(2) << wp.uint32(slot0 % LANE_COUNT)) - wp.uint32(1))
            bits = overlap_bits(rows, layout, chunk, instances, instance0, block, mask)
            if bits != wp.uint32(0):
                bits = filtered_bits(pair_filter, layout, chunk, row0, block, bits)
                word = word | (bits << wp.uint32((block_in_cell - first_block) * LANE_COUNT))
    hits.word[thread] = word
    hits.count[thread] = bit_count(word)


@kernel
def write_all(width: int, words_per_slot: int, hits: HitWords, candidates: wp.array[wp.vec2i]):
    """Write pass, one thread per word: its hits, from its offset on."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
        return
    instance0 = thread // words_per_slot
    first_slot = (thread - instance0 * words_per_slot) * PER_WORD * LANE_COUNT
    instance1 = (instance0 // width) * width + first_slot
    output = hits.end[thread] - hits.count[thread]
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            candidates[output] = wp.vec2i(instance0, instance1)
            output += 1
        word = word >> wp.uint32(1)
        instance1 += 1


@dataclass(frozen=True)
class AllPairs:
    """Broad phase that tests every pair of a cell."""

    device_model: DeviceModel
    name: str = "nxn"

    def find(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, int]:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, slot0, slot1."""
        layout = self.device_model.layout
        words_per_slot = -(-layout.width // (ENTRIES_PER_WORD * LANES))
        count = chunk.cell_count * layout.width * words_per_slot
        hits = hit_words(workspace, count)
        model, pair_filter = self.device_model, self.device_model.pair_filter
        arguments = [model.rows, pair_filter, layout, chunk.cells, chunk.instances, words_per_slot, hits]
        workspace.launch(test_all, count, arguments)
        found = workspace.scan(hits.count, count, hits.end)
        candidates = workspace.array("candidate", found, wp.vec2i)
        workspace.launch(write_all, count, [layout.width, words_per_slot, hits, candidates])
        return candidates, found

    def kernels(self) -> list[wp.Kernel]:
        return [test_all, write_all]
