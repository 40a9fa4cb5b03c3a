"""The pairs that the filter leaves, worked out once at load, each tested in every cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.broad_phase.candidate import bounds_near, half_space_reaches, pair_reach
from collidecli.engine.broad_phase.hit_words import BITS, WORD_BITS, HitWords, bit_count, hit_words, scan_counts
from collidecli.engine.cells import ChunkCells, Instances
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import PLANE, balls_near
from collidecli.engine.workspace import Workspace


@wp.struct
class PairList:
    """Allowed pairs of each template. start: per template, one more at the end.

    place: the two places, ascending. reach: see pair_reach. plane: 0 none, 1 the first, 2 the second is a plane.
    """

    start: wp.array[wp.int32]
    place: wp.array[wp.vec2i]
    reach: wp.array[wp.float32]
    plane: wp.array[wp.uint8]


@wp.kernel(module="unique", enable_backward=False)
def measure_pairs(rows: ShapeRows, row_pair: wp.array[wp.vec2i], pairs: PairList):
    """One thread a pair: its reach, and whether one of the two is a plane."""
    index = wp.tid()
    row0 = row_pair[index][0]
    row1 = row_pair[index][1]
    pairs.reach[index] = pair_reach(rows, row0, row1)
    plane = wp.uint8(0)
    if rows.type[row0] == PLANE:
        plane = wp.uint8(1)
    elif rows.type[row1] == PLANE:
        plane = wp.uint8(2)
    pairs.plane[index] = plane


@wp.func
def pair_near(pairs: PairList, index: int, instances: Instances, first_instance: int) -> bool:
    """Whether pair `index` comes near in the cell whose instances begin at `first_instance`."""
    instance0 = first_instance + pairs.place[index][0]
    instance1 = first_instance + pairs.place[index][1]
    reach = pairs.reach[index]
    if not balls_near(instances.ball[instance0], instances.ball[instance1], reach):
        return False
    lower0 = instances.lower[instance0]
    upper0 = instances.upper[instance0]
    lower1 = instances.lower[instance1]
    upper1 = instances.upper[instance1]
    if not bounds_near(lower0, upper0, lower1, upper1, reach):
        return False
    plane = int(pairs.plane[index])
    if plane == 1:
        return half_space_reaches(instances.pose[instance0], lower1, upper1, reach)
    if plane == 2:
        return half_space_reaches(instances.pose[instance1], lower0, upper0, reach)
    return True


@wp.kernel(module="unique", enable_backward=False)
def test_pairs(
    layout: Layout, chunk: ChunkCells, instances: Instances, pairs: PairList, words_per_cell: int, hits: HitWords
):
    """One thread a word: 32 pairs of one cell."""
    thread = wp.tid()
    cell = thread // words_per_cell
    template = chunk.cell_template[cell]
    begin = pairs.start[template] + (thread - cell * words_per_cell) * BITS
    end = wp.min(begin + BITS, pairs.start[template + 1])
    word = wp.uint32(0)
    for index in range(begin, end):
        if pair_near(pairs, index, instances, cell * layout.width):
            word = word | (wp.uint32(1) << wp.uint32(index - begin))
    hits.word[thread] = word
    hits.end[thread] = bit_count(word)


@wp.kernel(module="unique", enable_backward=False)
def write_pairs(
    layout: Layout,
    chunk: ChunkCells,
    pairs: PairList,
    words_per_cell: int,
    hits: HitWords,
    candidates: wp.array[wp.vec2i],
):
    """One thread a word: its hits, at its own offset."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
        return
    cell = thread // words_per_cell
    index = pairs.start[chunk.cell_template[cell]] + (thread - cell * words_per_cell) * BITS
    slot = hits.end[thread] - bit_count(word)
    first_instance = cell * layout.width
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            place = pairs.place[index]
            candidates[slot] = wp.vec2i(first_instance + place[0], first_instance + place[1])
            slot += 1
        word = word >> wp.uint32(1)
        index += 1


@dataclass(frozen=True)
class Explicit:
    """Broad phase over a fixed list of pairs. Source: the list is design, the test is candidate.near."""

    device_model: DeviceModel
    pairs: PairList
    words_per_cell: int
    name: str = "explicit"

    def find(self, chunk: ChunkCells, cell_count: int, instances: Instances, workspace: Workspace) -> tuple:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, place0, place1."""
        layout, device = self.device_model.layout, self.device_model.device
        count = cell_count * self.words_per_cell
        hits = hit_words(workspace, count)
        arguments = [layout, chunk, instances, self.pairs, self.words_per_cell, hits]
        wp.launch(test_pairs, count, arguments, device=device)
        found = scan_counts(hits.end, count)
        candidates = workspace.array("candidate", found, wp.vec2i)
        arguments = [layout, chunk, self.pairs, self.words_per_cell, hits, candidates]
        wp.launch(write_pairs, count, arguments, device=device)
        return candidates, found

    def kernels(self) -> list[wp.Kernel]:
        return [measure_pairs, test_pairs, write_pairs]


def upload_pairs(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> PairList:
    """Row pairs of each template (int32[K, 2], sorted) as places on the device."""
    device = device_model.device
    places = [np.searchsorted(rows, pairs) for rows, pairs in zip(device_model.places, template_pairs, strict=True)]
    start = np.concatenate([[0], np.cumsum([len(p) for p in places])]).astype(np.int32)
    count = int(start[-1])
    all_rows = np.concatenate([np.asarray(p, np.int32).reshape(-1, 2) for p in template_pairs])
    all_places = np.concatenate([np.asarray(p, np.int32).reshape(-1, 2) for p in places])
    pairs = PairList()
    pairs.start = wp.array(start, dtype=wp.int32, device=device)
    pairs.place = wp.array(all_places, dtype=wp.vec2i, device=device) if count else wp.zeros(1, wp.vec2i, device=device)
    pairs.reach = wp.zeros(max(count, 1), dtype=wp.float32, device=device)
    pairs.plane = wp.zeros(max(count, 1), dtype=wp.uint8, device=device)
    if count:
        row_pair = wp.array(all_rows, dtype=wp.vec2i, device=device)
        wp.launch(measure_pairs, count, [device_model.rows, row_pair, pairs], device=device)
    return pairs


def explicit(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> Explicit:
    most = max((len(p) for p in template_pairs), default=0)
    return Explicit(device_model, upload_pairs(device_model, template_pairs), -(-most // WORD_BITS))
