"""Broad phase over all pairs of slots of a block (nxn), in groups of eight slots: boxes first, then
the filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.cells import (
    BOUND_NUMBERS,
    BOX_NUMBERS,
    CENTER,
    FULL_BLOCKS,
    LANE_COUNT,
    LOWER,
    RADIUS,
    UPPER,
    BlockShape,
    Chunk,
    ChunkCells,
    Instances,
    row_of_slot,
)
from collidecli.engine.device_model import LANES, DeviceModel, Filter, Layout, Margins, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE
from collidecli.engine.geometry.real import (
    CAPSULE,
    EPILOGUE,
    LANE_STEP,
    LOAD,
    PRELUDE,
    SPHERE,
    Pose,
    Real,
    device_array,
)
from collidecli.engine.pair_limits import may_touch, pair_limits
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.workspace import Workspace

# Candidates: in which cells of a block two slots may touch. Balls first, then boxes, then
# half-spaces and capsules.
#
# The bounds of eight consecutive instances, a slot in eight cells, are lanes of vectors.
#
# Bounds are inflated (device_model.bounds_inflation), so their tests do not depend on the pair's
# maximum separation. Two spheres or capsules are candidates only if no plane is found that
# separates them by it.

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""

CAPSULE_SLACK = 1.0e-9
"""Allowance for rounding, relative to the sizes and the distance of a pair: many times that of a
pair collider."""

_VALUES: dict[str, Any] = {
    "PRELUDE": PRELUDE,
    "LOAD": LOAD,
    "EPILOGUE": EPILOGUE,
    "LANE_STEP": LANE_STEP,
}
_VALUES |= {
    "LANES": LANES,
    "BOUND_NUMBERS": BOUND_NUMBERS,
    "BOX_NUMBERS": BOX_NUMBERS,
    "CENTER": CENTER,
}
_VALUES |= {
    "RADIUS": RADIUS,
    "LOWER": LOWER,
    "UPPER": UPPER,
    "RADIUS_SLACK": RADIUS_SLACK,
    "SLACK": SLACK,
}
_VALUES["CAPSULE_SLACK"] = CAPSULE_SLACK
for _name in ("vectors", "bits", "double_bits", "tests", "half_spaces", "capsules"):
    _VALUES[_name.upper()] = native(__file__, _name, **_VALUES)
"""Values of the sections of C++, some of which are sections themselves."""


def _over_lanes(test: str, many: str, one: str) -> str:
    """C++ that returns the bits of all lanes: `test`, then `many` for eight of them, `one` for a
    single lane."""
    return native(__file__, "over_lanes", test=_VALUES[test], many=many, one=one, **_VALUES)


@wp.func_native(
    _over_lanes(
        "TESTS",
        "overlap(Eight{}, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
        "overlap(0.0f, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
    )
)
def overlapping_lanes(
    bound: wp.array[wp.float32], instance0: int, instance1: int, count: int
) -> wp.uint32:
    """Bit k: whether the balls and the boxes of instances `instance0 + k` and `instance1 + k`
    overlap; k < count."""
    ...


@wp.func_native(_over_lanes("HALF_SPACES", "in_front(Eight(0.0f), lane)", "in_front(0.0f, lane)"))
def lanes_in_front(
    bound: wp.array[wp.float32],
    pose: wp.array[Pose],
    plane: int,
    instance: int,
    count: int,
    inflation: wp.float32,
) -> wp.uint32:
    """Bit k: whether the box of instance `instance + k` overlaps the half-space of the plane `plane
    + k`; k < count.

    inflation: of the plane [m].
    """
    ...


@wp.func_native(native(__file__, "lanes_near", **_VALUES))
def lanes_near(
    pose: wp.array[Pose],
    instance0: int,
    instance1: int,
    count: int,
    half_a: Real,
    half_b: Real,
    limit: Real,
) -> wp.uint32:
    """Bit k: whether no plane is found between the capsules `instance0 + k` and `instance1 + k`; k
    < count.

    The plane is perpendicular to the line between the closest points of the segments, as far as one
    pass finds them.

    Args:
        half_a, half_b: half lengths of the segments; 0 for spheres [m].
        limit: least distance between the planes that support the two segments, not negative [m].
    """
    ...


@wp.func
def is_capsule(rows: ShapeRows, row: int) -> bool:
    """Whether a shape is a capsule or a sphere, a capsule without length."""
    return rows.type[row] == CAPSULE or rows.type[row] == SPHERE


@kernel
def test_lanes(
    rows: ShapeRows,
    margins: Margins,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    slots: wp.array[wp.vec2i],
    parts: int,
    mask: wp.array[wp.uint32],
):
    """One thread per pair of slots and part of its lanes: the lanes in which it is a candidate, as
    bits."""
    thread = wp.tid()
    pair = thread // parts
    block = slots[pair][0] // layout.width
    count = (1 << chunk.shift) // parts
    part = thread - pair * parts
    instance0 = (slots[pair][0] << chunk.shift) + part * count
    instance1 = (slots[pair][1] << chunk.shift) + part * count
    bits = overlapping_lanes(instances.bound, instance0, instance1, count)
    if bits != wp.uint32(0):
        row0 = row_of_slot(chunk, layout, slots[pair][0])
        row1 = row_of_slot(chunk, layout, slots[pair][1])
        if rows.radius[row0] >= INFINITE:
            bits = bits & lanes_in_front(
                instances.bound, instances.pose, instance0, instance1, count, rows.inflation[row0]
            )
        if rows.radius[row1] >= INFINITE:
            bits = bits & lanes_in_front(
                instances.bound, instances.pose, instance1, instance0, count, rows.inflation[row1]
            )
        if bits != wp.uint32(0) and is_capsule(rows, row0) and is_capsule(rows, row1):
            limits = pair_limits(margins, row0, row1)
            size0 = rows.size[row0]
            size1 = rows.size[row1]
            limit = wp.max(Real(0.0), size0[0] + size1[0] + limits.margin + limits.gap)
            bits = bits & lanes_near(
                instances.pose, instance0, instance1, count, size0[1], size1[1], limit
            )
    used = (wp.uint32(2) << wp.uint32(chunk.block_size[block] - 1)) - wp.uint32(1)
    bits = (bits << wp.uint32(part * count)) & used
    if parts == 1:
        mask[pair] = bits
    else:
        wp.atomic_or(mask, pair, bits)


def lanes_that_overlap(
    device_model: DeviceModel, chunk: Chunk, slots: wp.array, count: int, workspace: Workspace
) -> BlockPairs:
    """The pairs of slots that a broad phase found, with the cells of their block in which their
    bounds overlap."""
    mask = workspace.array("block_mask", count, wp.uint32)
    # On a device a thread has one lane, so that consecutive threads access consecutive memory.
    parts = chunk.lanes if workspace.has_own_memory else 1
    if parts > 1:
        workspace.fill(mask, 0)
    arguments = [
        device_model.rows,
        device_model.margins,
        device_model.layout,
        chunk.cells,
        chunk.instances,
        slots,
        parts,
        mask,
    ]
    workspace.launch(test_lanes, count * parts, arguments)
    return BlockPairs(slots, mask, count)


# Overlap of the box of one slot with those of a group of eight slots, in a block of cells.
#
# A block's boxes contain the bounds of all its cells (`Instances.block_box`); pairs of slots whose
# boxes do not overlap are apart in every cell of the block. The boxes of eight slots are stored as
# lanes (eight lower x, eight lower y, ...). The loops over lanes are in C++: Warp's own array reads
# wrap and stride each element, which prevents vectorization by the compiler.


@wp.func_native(native(__file__, "box_bits", **_VALUES))
def box_bits(box: wp.array[wp.float32], slot: int, group: int, mask: wp.uint32) -> wp.uint32:
    """Of the slots `mask` of a group, those whose boxes overlap a slot's. A plane's overlaps all.

    slot, group: index of the slot and of the group of eight slots, counted through all blocks.
    """
    ...


@wp.struct
class PairGroups:
    """Pairs of each template as a sparse bit matrix, only the words with set bits.

    start: first entry of each template, one more at the end. entry: slot0; a group, which has the
    slots 8 group to 8 group + 7; and a mask, whose bit k is set where (slot0, 8 group + k) is one
    of the pairs.
    """

    start: wp.array[wp.int32]
    entry: wp.array[wp.vec3i]


def upload_groups(
    device_model: DeviceModel, template_pairs: list[np.ndarray]
) -> tuple[PairGroups, int]:
    """Row pairs of each template (int32[K, 2], first < second) as groups; and the largest number of
    entries of one."""
    device = device_model.device
    counts = []
    keys = []
    masks = []
    stride = device_model.layout.width // LANES
    for rows, row_pairs in zip(device_model.template_rows, template_pairs, strict=True):
        slots = np.searchsorted(rows, row_pairs).astype(np.int64)
        key, entry = np.unique(slots[:, 0] * stride + slots[:, 1] // LANES, return_inverse=True)
        is_pair = np.zeros((len(key), LANES), bool)
        is_pair[entry, slots[:, 1] % LANES] = True
        counts.append(len(key))
        keys.append(key)
        masks.append(is_pair)
    key = np.concatenate(keys)
    is_pair = np.concatenate(masks)
    pairs = PairGroups()
    pairs.start = device_array(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), wp.int32, device
    )
    mask = np.packbits(is_pair, axis=1, bitorder="little")[:, 0]
    entry = np.stack([key // stride, key % stride, mask], axis=1).astype(np.int32)
    pairs.entry = device_array(entry, wp.vec3i, device)
    return pairs, max(counts)


# Count, scan, write over enumerated pairs, with one 32-bit word of hits for each 32 pairs of a
# block.
#
# The count pass tests the bounds of each pair once and sets its bit; the scan of the words' bit
# counts gives each word its range in the output; the write pass reads the bits only. The pairs are
# ordered by block and by slots without a sort.

ENTRIES_PER_WORD = 32 // LANES
"""Groups of pairs per word."""


@wp.func
def bit_count(word: wp.uint32) -> int:
    """Number of set bits (Hacker's Delight, 5-2)."""
    x = word - ((word >> wp.uint32(1)) & wp.uint32(0x55555555))
    x = (x & wp.uint32(0x33333333)) + ((x >> wp.uint32(2)) & wp.uint32(0x33333333))
    x = (x + (x >> wp.uint32(4))) & wp.uint32(0x0F0F0F0F)
    return int((x * wp.uint32(0x01010101)) >> wp.uint32(24))


@wp.struct
class HitWords:
    """word: bits of each 32 pairs. count: set bits of each word. end: inclusive scan of `count`."""

    word: wp.array[wp.uint32]
    count: wp.array[wp.int32]
    end: wp.array[wp.int32]


def hit_words(workspace: Workspace, count: int) -> HitWords:
    """Hit words for `count` words, not set."""
    word = workspace.array("hit_word", count, wp.uint32)
    counts, end = (workspace.array(name, count, wp.int32) for name in ("hit_count", "hit_end"))
    return workspace.struct(HitWords, word=word, count=counts, end=end)


PER_WORD = wp.constant(ENTRIES_PER_WORD)


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
def write_all(width: int, words_per_slot: int, hits: HitWords, slots: wp.array[wp.vec2i]):
    """Write pass, one thread per word: its hits, from its offset on."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
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
        pair_count = workspace.scan(hits.count, count, hits.end)
        slots = workspace.array("block_pair", pair_count, wp.vec2i)
        workspace.launch(write_all, count, [layout.width, words_per_slot, hits, slots])
        return lanes_that_overlap(self.device_model, chunk, slots, pair_count, workspace)

    def kernels(self) -> list[wp.Kernel]:
        return [test_all, write_all, test_lanes]


# Broad phase over a list of the pairs that pass the filter, enumerated once at load; boxes are
# tested per block.


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
    slots: wp.array[wp.vec2i],
):
    """Write pass, one thread per word: its hits, from its offset on."""
    thread = wp.tid()
    word = hits.word[thread]
    if word == wp.uint32(0):
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
        pair_count = workspace.scan(hits.count, count, hits.end)
        slots = workspace.array("block_pair", pair_count, wp.vec2i)
        workspace.launch(write_pairs, count, [layout, chunk.cells, self.pairs, words, hits, slots])
        return lanes_that_overlap(self.device_model, chunk, slots, pair_count, workspace)

    def kernels(self) -> list[wp.Kernel]:
        return [test_pairs, write_pairs, test_lanes]


def explicit(
    device_model: DeviceModel, template_pairs: list[np.ndarray], blocks: BlockShape = FULL_BLOCKS
) -> Explicit:
    """Broad phase over the allowed pairs of each template, int32[K, 2] rows of the model."""
    pairs, most = upload_groups(device_model, template_pairs)
    return Explicit(device_model, pairs, -(-most // ENTRIES_PER_WORD), blocks=blocks)
