"""All pairs of a cell (nxn): bounds first, then the filter."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.broad_phase.candidate import may_touch, near, pair_reach
from collidecli.engine.broad_phase.hit_words import BITS, WORD_BITS, HitWords, bit_count, hit_words, scan_counts
from collidecli.engine.cells import ChunkCells, Instances
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.workspace import Workspace


@wp.kernel(module="unique", enable_backward=False)
def test_all(
    rows: ShapeRows, layout: Layout, chunk: ChunkCells, instances: Instances, words_per_place: int, hits: HitWords
):
    """One thread a word: a place against 32 consecutive places, those behind it."""
    thread = wp.tid()
    instance0 = thread // words_per_place
    cell = instance0 // layout.width
    template = chunk.cell_template[cell]
    place_count = layout.place_count[template]
    first_instance = cell * layout.width
    place0 = instance0 - first_instance
    begin = (thread - instance0 * words_per_place) * BITS
    end = wp.min(begin + BITS, place_count)
    word = wp.uint32(0)
    if place0 < place_count:
        row0 = layout.place_row[template * layout.width + place0]
        for place1 in range(wp.max(begin, place0 + 1), end):
            row1 = layout.place_row[template * layout.width + place1]
            reach = pair_reach(rows, row0, row1)
            if near(rows, instances, instance0, first_instance + place1, row0, row1, reach) and may_touch(
                rows, row0, row1
            ):
                word = word | (wp.uint32(1) << wp.uint32(place1 - begin))
    hits.word[thread] = word
    hits.end[thread] = bit_count(word)


@wp.kernel(module="unique", enable_backward=False)
def write_all(width: int, words_per_place: int, hits: HitWords, candidates: wp.array[wp.vec2i]):
    """One thread a word: its hits, at its own offset."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
        return
    instance0 = thread // words_per_place
    instance1 = (instance0 // width) * width + (thread - instance0 * words_per_place) * BITS
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

    def find(self, chunk: ChunkCells, cell_count: int, instances: Instances, workspace: Workspace) -> tuple:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, place0, place1."""
        layout, device = self.device_model.layout, self.device_model.device
        words_per_place = -(-layout.width // WORD_BITS)
        count = cell_count * layout.width * words_per_place
        hits = hit_words(workspace, count)
        arguments = [self.device_model.rows, layout, chunk, instances, words_per_place, hits]
        wp.launch(test_all, count, arguments, device=device)
        found = scan_counts(hits.end, count)
        candidates = workspace.array("candidate", found, wp.vec2i)
        wp.launch(write_all, count, [layout.width, words_per_place, hits, candidates], device=device)
        return candidates, found

    def kernels(self) -> list[wp.Kernel]:
        return [test_all, write_all]
