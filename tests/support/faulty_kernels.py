"""Kernels with faults, each of which is right where threads run one after the other, in ascending order.

To be imported after `checked_launches.install`, as all kernels.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.broadphase.hit_words import HitWords
from collidecli.engine.runtime.kernel import kernel


@kernel
def every_candidate_writes(
    width: int,
    cell_count: int,
    candidate_count: int,
    candidates: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """Not the last candidate of a cell alone."""
    thread = wp.tid()
    for c in range(candidates[thread][0] // width, cell_count):
        cell_end[c] = end[thread]


@kernel
def reads_before_it_writes(
    width: int,
    cell_count: int,
    candidate_count: int,
    candidates: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """The previous chunk's ends, which the result does not depend on."""
    thread = wp.tid()
    if thread == candidate_count - 1:
        for c in range(cell_count):
            cell_end[c] = wp.min(cell_end[c], 0)
    if thread == candidate_count - 1:
        for k in range(candidate_count):
            cell_end[candidates[k][0] // width] = end[k]
        for c in range(1, cell_count):
            cell_end[c] = wp.max(cell_end[c - 1], cell_end[c])


@kernel
def writes_one_too_many(
    width: int,
    cell_count: int,
    candidate_count: int,
    candidates: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """The end of a cell behind the last one."""
    thread = wp.tid()
    if thread == candidate_count - 1:
        for c in range(cell_count + 1):
            cell_end[c] = 0
        for k in range(candidate_count):
            cell_end[candidates[k][0] // width] = end[k]
        for c in range(1, cell_count):
            cell_end[c] = wp.max(cell_end[c - 1], cell_end[c])


@kernel
def writes_where_there_is_space(width: int, words_per_slot: int, hits: HitWords, candidates: wp.array[wp.vec2i]):
    """Slots of the list of candidates are taken by an atomic counter, from the last one on."""
    thread = wp.tid()
    word = hits.word[thread]
    instance0 = thread // words_per_slot
    instance1 = (instance0 // width) * width + (thread - instance0 * words_per_slot) * 32
    total = hits.end.shape[0] - 1
    while word != wp.uint32(0):
        if (word & wp.uint32(1)) != wp.uint32(0):
            candidates[wp.atomic_add(hits.end, total, -1) - 1] = wp.vec2i(instance0, instance1)
        word = word >> wp.uint32(1)
        instance1 += 1


CELLS = "collidecli.engine.contacts.compaction", "count_cells"
FAULTS: dict[str, tuple[str, str, Any]] = {
    "race": (*CELLS, every_candidate_writes),
    "uninitialized": (*CELLS, reads_before_it_writes),
    "beyond": (*CELLS, writes_one_too_many),
    "order": ("collidecli.engine.broadphase.all_pairs", "write_all", writes_where_there_is_space),
}
"""Module and name of the kernel that each fault replaces, and the faulty one."""
