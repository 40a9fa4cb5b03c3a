"""Broad phase over a list of the pairs that pass the filter, enumerated once at load; bounds are tested per cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.broadphase.eight_wide_bounds import PairBlocks, entry_bits, upload_blocks
from collidecli.engine.broadphase.hit_words import ENTRIES_PER_WORD, HitWords, bit_count, hit_words
from collidecli.engine.cells import LANE_COUNT, Chunk, ChunkCells, Instances
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

PER_WORD = wp.constant(ENTRIES_PER_WORD)


@kernel
def test_pairs(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    pairs: PairBlocks,
    words_per_cell: int,
    hits: HitWords,
):
    """Count pass, one thread per word: the pairs of a few entries in one cell."""
    thread = wp.tid()
    cell = thread // words_per_cell
    template = chunk.cell_template[cell]
    begin = pairs.start[template] + (thread - cell * words_per_cell) * PER_WORD
    end = wp.min(begin + PER_WORD, pairs.start[template + 1])
    word = wp.uint32(0)
    for entry in range(begin, end):
        bits = entry_bits(rows, layout, chunk, instances, pairs, entry, cell * layout.width)
        word = word | (bits << wp.uint32((entry - begin) * LANE_COUNT))
    hits.word[thread] = word
    hits.count[thread] = bit_count(word)


@kernel
def write_pairs(
    layout: Layout,
    chunk: ChunkCells,
    pairs: PairBlocks,
    words_per_cell: int,
    hits: HitWords,
    candidates: wp.array[wp.vec2i],
):
    """Write pass, one thread per word: its hits, from its offset on."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
        return
    cell = thread // words_per_cell
    begin = pairs.start[chunk.cell_template[cell]] + (thread - cell * words_per_cell) * PER_WORD
    output = hits.end[thread] - hits.count[thread]
    first_instance = cell * layout.width
    bit = int(0)
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            slot0_and_block = pairs.entry[begin + bit // LANE_COUNT]
            slot1 = slot0_and_block[1] * LANE_COUNT + bit % LANE_COUNT
            candidates[output] = wp.vec2i(first_instance + slot0_and_block[0], first_instance + slot1)
            output += 1
        word = word >> wp.uint32(1)
        bit += 1


@dataclass(frozen=True)
class Explicit:
    """Broad phase over a fixed list of pairs."""

    device_model: DeviceModel
    pairs: PairBlocks
    words_per_cell: int
    name: str = "explicit"

    def find(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, int]:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, slot0, slot1."""
        rows, layout = self.device_model.rows, self.device_model.layout
        count = chunk.cell_count * self.words_per_cell
        hits = hit_words(workspace, count)
        arguments = [rows, layout, chunk.cells, chunk.instances, self.pairs, self.words_per_cell, hits]
        workspace.launch(test_pairs, count, arguments)
        found = workspace.scan(hits.count, count, hits.end)
        candidates = workspace.array("candidate", found, wp.vec2i)
        arguments = [layout, chunk.cells, self.pairs, self.words_per_cell, hits, candidates]
        workspace.launch(write_pairs, count, arguments)
        return candidates, found

    def kernels(self) -> list[wp.Kernel]:
        return [test_pairs, write_pairs]


def explicit(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> Explicit:
    """Broad phase over the allowed pairs of each template, int32[K, 2] rows of the model."""
    pairs, most = upload_blocks(device_model, template_pairs)
    return Explicit(device_model, pairs, -(-most // ENTRIES_PER_WORD))
