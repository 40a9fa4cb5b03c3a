"""Broad phase over a list of the pairs that pass the filter, enumerated once at load; boxes are
tested per block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
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
from collidecli.engine.broadphase.pair_groups import PairGroups, box_bits, upload_groups
from collidecli.engine.cells import (
    FULL_BLOCKS,
    LANE_COUNT,
    BlockShape,
    Chunk,
    ChunkCells,
    Instances,
)
from collidecli.engine.device_model import DeviceModel, Layout
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace


@kernel
def test_pairs(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    pairs: PairGroups,
    words_per_block: int,
    hits: HitWords,
):
    """Count pass, one thread per word: the pairs of a few entries in one block."""
    thread = wp.tid()
    block = thread // words_per_block
    template = chunk.block_template[block]
    begin = pairs.start[template] + (thread - block * words_per_block) * PER_WORD
    end = wp.min(begin + PER_WORD, pairs.start[template + 1])
    first_slot = block * layout.width
    first_group = first_slot // LANE_COUNT
    word = wp.uint32(0)
    for index in range(begin, end):
        entry = pairs.entry[index]
        bits = box_bits(
            instances.block_box, first_slot + entry[0], first_group + entry[1], wp.uint32(entry[2])
        )
        word = word | (bits << wp.uint32((index - begin) * LANE_COUNT))
    hits.word[thread] = word
    hits.count[thread] = bit_count(word)


@kernel
def write_pairs(
    layout: Layout,
    chunk: ChunkCells,
    pairs: PairGroups,
    words_per_block: int,
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
    block = thread // words_per_block
    begin = pairs.start[chunk.block_template[block]] + (thread - block * words_per_block) * PER_WORD
    output = hits.end[thread] - hits.count[thread]
    first_slot = block * layout.width
    bit = int(0)
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            slot0_and_group = pairs.entry[begin + bit // LANE_COUNT]
            slot1 = slot0_and_group[1] * LANE_COUNT + bit % LANE_COUNT
            slots[output] = wp.vec2i(first_slot + slot0_and_group[0], first_slot + slot1)
            output += 1
        word = word >> wp.uint32(1)
        bit += 1


@dataclass(frozen=True)
class Explicit:
    """Broad phase over a fixed list of pairs."""

    device_model: DeviceModel
    pairs: PairGroups
    words_per_block: int
    name: str = "explicit"
    blocks: BlockShape = FULL_BLOCKS

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs:
        """Pairs of slots of a chunk, with the cells in which they are candidates."""
        layout = self.device_model.layout
        words = self.words_per_block
        count = chunk.block_count * words
        hits = hit_words(workspace, count)
        workspace.launch(
            test_pairs, count, [layout, chunk.cells, chunk.instances, self.pairs, words, hits]
        )
        workspace.launch_scan(hits.count, count, hits.end)
        pairs = workspace.counts.of("block_pair", hits.end, count)
        slots = workspace.array("block_pair", pairs.most, wp.vec2i)
        arguments = [layout, chunk.cells, self.pairs, words, hits, pairs.bound, slots]
        workspace.launch(write_pairs, count, arguments)
        return lanes_that_overlap(self.device_model, chunk, slots, pairs, workspace)

    def kernels(self) -> list[wp.Kernel]:
        return [test_pairs, write_pairs, test_lanes]


def explicit(
    device_model: DeviceModel, template_pairs: list[np.ndarray], blocks: BlockShape = FULL_BLOCKS
) -> Explicit:
    """Broad phase over the allowed pairs of each template, int32[K, 2] rows of the model."""
    pairs, most = upload_groups(device_model, template_pairs)
    return Explicit(device_model, pairs, -(-most // ENTRIES_PER_WORD), blocks=blocks)
