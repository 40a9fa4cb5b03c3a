"""Kernels with faults, each of which is right where threads run one after the other, in ascending
order.

To be imported after `checked_launches.install`, as all kernels.
"""

from typing import Any

import warp as wp

from collidecli.engine.broadphase.hit_words import HitWords, bit_count
from collidecli.engine.runtime.kernel import kernel


@wp.func
def end_of_cell(
    candidate_end: wp.array[wp.int32], width: int, end: wp.array[wp.int32], cell: int
) -> int:
    """What `count_cells` writes for a cell."""
    last = candidate_end[(cell + 1) * width - 1] - 1
    if last < 0:
        return 0
    return end[last]


@kernel
def every_cell_writes(
    candidate_end: wp.array[wp.int32],
    width: int,
    bound: wp.array[wp.int32],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """Not its own end alone, also those of later cells."""
    cell = wp.tid()
    for c in range(cell, cell_end.shape[0]):
        cell_end[c] = end_of_cell(candidate_end, width, end, cell)


@kernel
def reads_before_it_writes(
    candidate_end: wp.array[wp.int32],
    width: int,
    bound: wp.array[wp.int32],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """The previous chunk's end, which the result does not depend on."""
    cell = wp.tid()
    before = wp.min(cell_end[cell], 0)
    cell_end[cell] = wp.max(before, end_of_cell(candidate_end, width, end, cell))


@kernel
def writes_one_too_many(
    candidate_end: wp.array[wp.int32],
    width: int,
    bound: wp.array[wp.int32],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """The end of a cell behind the last one."""
    cell = wp.tid()
    cell_end[cell] = end_of_cell(candidate_end, width, end, cell)
    if cell == cell_end.shape[0] - 1:
        cell_end[cell + 1] = 0


@kernel
def writes_by_turns(
    width: int,
    words_per_slot: int,
    hits: HitWords,
    bound: wp.array[wp.int32],
    slots: wp.array[wp.vec2i],
):
    """A thread whose turn is not its number writes the pairs of its word from the last to the
    first."""
    thread = wp.tid()
    word = hits.word[thread]
    turn = wp.atomic_add(hits.count, 0, 1) - bit_count(hits.word[0])
    slot0 = thread // words_per_slot
    slot1 = (slot0 // width) * width + (thread - slot0 * words_per_slot) * 32
    end = hits.end[thread]
    output = end - bit_count(word)
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            if turn == thread:
                slots[output] = wp.vec2i(slot0, slot1)
            else:
                slots[end - 1] = wp.vec2i(slot0, slot1)
            output += 1
            end -= 1
        word = word >> wp.uint32(1)
        slot1 += 1


CELLS = "collidecli.engine.ordered_contacts", "count_cells"
FAULTS: dict[str, tuple[str, str, Any]] = {
    "race": (*CELLS, every_cell_writes),
    "uninitialized": (*CELLS, reads_before_it_writes),
    "beyond": (*CELLS, writes_one_too_many),
    "order": ("collidecli.engine.broadphase.all_pairs", "write_all", writes_by_turns),
}
"""Module and name of the kernel that each fault replaces, and the faulty one."""
