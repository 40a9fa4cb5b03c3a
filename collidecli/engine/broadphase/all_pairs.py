"""All pairs of a cell (nxn): bounds first, then the filter."""

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
    lists: Filter, layout: Layout, chunk: ChunkCells, row0: int, block: int, bits: wp.uint32
) -> wp.uint32:
    """Of `bits`, those lanes that the filter lets touch the instance."""
    passed = wp.uint32(0)
    for k in range(LANE_COUNT):
        bit = wp.uint32(1) << wp.uint32(k)
        if (bits & bit) != wp.uint32(0) and may_touch(lists, row0, row_of(chunk, layout, block * LANE_COUNT + k)):
            passed = passed | bit
    return passed


@kernel
def test_all(
    rows: ShapeRows,
    lists: Filter,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    words_per_place: int,
    hits: HitWords,
):
    """One thread a word: a place against the places of a few blocks, those behind it."""
    thread = wp.tid()
    instance0 = thread // words_per_place
    cell = instance0 // layout.width
    place_count = layout.place_count[chunk.cell_template[cell]]
    place0 = instance0 - cell * layout.width
    first_block = (thread - instance0 * words_per_place) * PER_WORD
    word = wp.uint32(0)
    if place0 < place_count:
        own_block = place0 // LANE_COUNT
        row0 = row_of(chunk, layout, instance0)
        end = wp.min(first_block + PER_WORD, (place_count + LANE_COUNT - 1) // LANE_COUNT)
        for place_block in range(wp.max(first_block, own_block), end):
            block = cell * (layout.width // LANE_COUNT) + place_block
            # Only the places behind this one: in its own block, its lane and those before it are not asked for. Nor are
            # those of the last block that hold no shape.
            used = wp.min(LANE_COUNT, place_count - place_block * LANE_COUNT)
            asked = (wp.uint32(1) << wp.uint32(used)) - wp.uint32(1)
            if place_block == own_block:
                asked = asked & ~((wp.uint32(2) << wp.uint32(place0 % LANE_COUNT)) - wp.uint32(1))
            bits = overlap_bits(rows, layout, chunk, instances, instance0, block, asked)
            if bits != wp.uint32(0):
                bits = filtered_bits(lists, layout, chunk, row0, block, bits)
                word = word | (bits << wp.uint32((place_block - first_block) * LANE_COUNT))
    hits.word[thread] = word
    hits.end[thread] = bit_count(word)


@kernel
def write_all(width: int, words_per_place: int, hits: HitWords, candidates: wp.array[wp.vec2i]):
    """One thread a word: its hits, at its own offset."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
        return
    instance0 = thread // words_per_place
    first_place = (thread - instance0 * words_per_place) * PER_WORD * LANE_COUNT
    instance1 = (instance0 // width) * width + first_place
    slot = hits.end[thread] - bit_count(word)
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            candidates[slot] = wp.vec2i(instance0, instance1)
            slot += 1
        word = word >> wp.uint32(1)
        instance1 += 1


@dataclass(frozen=True)
class AllPairs:
    """Broad phase that tests every pair of a cell."""

    device_model: DeviceModel
    name: str = "nxn"

    def find(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, int]:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, place0, place1."""
        layout = self.device_model.layout
        words_per_place = -(-layout.width // (ENTRIES_PER_WORD * LANES))
        count = chunk.cell_count * layout.width * words_per_place
        hits = hit_words(workspace, count)
        model, lists = self.device_model, self.device_model.pair_filter
        arguments = [model.rows, lists, layout, chunk.cells, chunk.instances, words_per_place, hits]
        workspace.launch(test_all, count, arguments)
        found = workspace.scan(hits.end, count)
        candidates = workspace.array("candidate", found, wp.vec2i)
        workspace.launch(write_all, count, [layout.width, words_per_place, hits, candidates])
        return candidates, found

    def kernels(self) -> list[wp.Kernel]:
        return [test_all, write_all]
