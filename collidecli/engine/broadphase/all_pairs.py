"""Broad phase over all pairs of slots of a block (nxn), in groups of eight slots: boxes first, then the filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.candidates import may_touch, pair_limits
from collidecli.engine.cells import (
    FULL_BLOCKS,
    LANE_COUNT,
    BlockPairs,
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
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.shape_lanes import BOUND_NUMBERS, BOX_NUMBERS, CENTER, LOWER, RADIUS, UPPER

# Candidates: in which cells of a block two slots may touch. Balls first, then boxes, then half-spaces and capsules.
#
# The bounds of eight consecutive instances, a slot in eight cells, are lanes of vectors.
#
# Bounds are inflated (device_model.bounds_inflation), so their tests do not depend on the pair's maximum separation.
# Two spheres or capsules are candidates only if no plane is found that separates them by it.

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""

CAPSULE_SLACK = 1.0e-9
"""Allowance for rounding, relative to the sizes and the distance of a pair: many times that of a pair collider."""

VECTORS = f"""{PRELUDE}
#if defined(VECTOR_LANES)
    typedef float Eight __attribute__((ext_vector_type({LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type({LANES})));
#endif
    const auto numbers_of = [&](int instance) {{
        return bound.data + (instance / {LANES}) * {BOUND_NUMBERS * LANES} + instance % {LANES};
    }};
"""

BITS = """
    const auto bits = [](auto condition) -> unsigned int {
        if constexpr (sizeof(condition) <= sizeof(int))
            return condition ? 1u : 0u;
#if defined(VECTOR_LANES)
        else
            return __builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags));
#endif
    };
"""

DOUBLE_BITS = """
    const auto bits = [](auto condition) -> unsigned int {
        if constexpr (sizeof(condition) <= sizeof(int)) {
            return condition ? 1u : 0u;
        }
#if defined(VECTOR_LANES)
        else {
            typedef bool Flags __attribute__((ext_vector_type(4)));
            return (unsigned int)__builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags)) & 15u;
        }
#endif
    };
"""

TESTS = f"""{BITS}
    // Bit k: whether the bounds of lane k overlap; `one` and `other` are the first lanes of both instances.
    const auto overlap = [&](auto zero, const float* one, const float* other) {{
        typedef decltype(zero) Many;
        const auto read = [](const float* number, int k) {{ return *(const Many*)(number + k * {LANES}); }};
        const Many x = read(one, {CENTER}) - read(other, {CENTER});
        const Many y = read(one, {CENTER + 1}) - read(other, {CENTER + 1});
        const Many z = read(one, {CENTER + 2}) - read(other, {CENTER + 2});
        const Many r = (read(one, {RADIUS}) + read(other, {RADIUS})) * {float(RADIUS_SLACK)!r}f;
        const unsigned int balls = bits(x * x + y * y + z * z < r * r);
        if (balls == 0)
            return 0u;
        const auto below = bits(read(one, {LOWER}) < read(other, {UPPER}))
            & bits(read(one, {LOWER + 1}) < read(other, {UPPER + 1}))
            & bits(read(one, {LOWER + 2}) < read(other, {UPPER + 2}));
        const auto above = bits(read(one, {UPPER}) > read(other, {LOWER}))
            & bits(read(one, {UPPER + 1}) > read(other, {LOWER + 1}))
            & bits(read(one, {UPPER + 2}) > read(other, {LOWER + 2}));
        return balls & below & above;
    }};
"""

HALF_SPACES = f"""{BITS}
    // Bit k: whether the box of lane k overlaps the half-space of the plane.
    const auto in_front = [&](auto zero, int lane) {{
        typedef decltype(zero) Many;
        constexpr int step = sizeof(Many) / sizeof(float);
        float normals[3][step];
        for (int k = 0; k < step; ++k) {{
            const double* q = (const double*)(pose.data + plane + lane + k) + 3;
            normals[0][k] = (float)(2.0 * (q[0] * q[2] + q[1] * q[3]));
            normals[1][k] = (float)(2.0 * (q[1] * q[2] - q[0] * q[3]));
            normals[2][k] = (float)(1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]));
        }}
        const auto read = [](const float* number, int k) {{ return *(const Many*)(number + k * {LANES}); }};
        const float* point = numbers_of(plane + lane);
        const float* box = numbers_of(instance + lane);
        Many from[3], normal[3];
        Many near = zero, rounding = zero;
        for (int k = 0; k < 3; ++k) {{
            normal[k] = *(const Many*)normals[k];
            const Many center = read(point, {CENTER} + k);
            // The corner of the box farthest into the half-space.
            from[k] = (normal[k] > 0.0f ? read(box, {LOWER} + k) : read(box, {UPPER} + k)) - center;
            near = near + MAGNITUDE(center);
            rounding = rounding + MAGNITUDE(from[k]);
        }}
        near = inflation + {float(SLACK)!r}f * near;
        rounding = rounding * {float(SLACK)!r}f;
        return bits(normal[0] * from[0] + normal[1] * from[1] + normal[2] * from[2] - rounding < near);
    }};
"""


def _over_lanes(test: str, many: str, one: str) -> str:
    """C++ that returns the bits of all lanes: `test`, then `many` for eight of them, `one` for a single lane."""
    return f"""{VECTORS}{test}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + {LANES} <= count; lane += {LANES})
        found |= {many} << lane;
#endif
    for (; lane < count; ++lane)
        found |= {one} << lane;
{EPILOGUE}
    return found;
"""


@wp.func_native(
    _over_lanes(
        TESTS,
        "overlap(Eight{}, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
        "overlap(0.0f, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
    )
)
def overlapping_lanes(bound: wp.array[wp.float32], instance0: int, instance1: int, count: int) -> wp.uint32:
    """Bit k: whether the balls and the boxes of instances `instance0 + k` and `instance1 + k` overlap; k < count."""
    ...


@wp.func_native(_over_lanes(HALF_SPACES, "in_front(Eight(0.0f), lane)", "in_front(0.0f, lane)"))
def lanes_in_front(
    bound: wp.array[wp.float32], pose: wp.array[Pose], plane: int, instance: int, count: int, inflation: wp.float32
) -> wp.uint32:
    """Bit k: whether the box of instance `instance + k` overlaps the half-space of the plane `plane + k`; k < count.

    inflation: of the plane [m].
    """
    ...


CAPSULES = f"""{LOAD}
    // Whether two capsules may be nearer than `limit`, the radii included, in the lanes from `lane` on.
    const auto near = [&](auto number, int lane) {{
        typedef decltype(number) Many;
        constexpr int step = sizeof(Many) / sizeof(double);
        const double *of_a[step], *of_b[step];
        for (int k = 0; k < step; ++k) {{
            of_a[k] = (const double*)(pose.data + instance0 + lane + k);
            of_b[k] = (const double*)(pose.data + instance1 + lane + k);
        }}
        Many a[7], b[7], from[3], axis_a[3], axis_b[3], normal[3];
        load(a, of_a);
        load(b, of_b);
        const auto set_axis = [](const Many* q, Many* axis) {{
            axis[0] = 2.0 * (q[0] * q[2] + q[1] * q[3]);
            axis[1] = 2.0 * (q[1] * q[2] - q[0] * q[3]);
            axis[2] = 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]);
        }};
        const auto dot = [](const Many* x, const Many* y) {{ return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; }};
        const auto clamp = [](Many x, double most) {{
            const Many zero = x - x;
            return GREATER(zero - most, LESSER(zero + most, x));
        }};
        set_axis(a + 3, axis_a);
        set_axis(b + 3, axis_b);
        for (int k = 0; k < 3; ++k)
            from[k] = b[k] - a[k];
        const Many zero = from[0] - from[0];
        const Many cosine = dot(axis_a, axis_b), along_a = dot(axis_a, from), along_b = dot(axis_b, from);
        // Closest points of the segments, nearly: any direction gives a valid bound.
        Many on_a = clamp((along_a - cosine * along_b) / GREATER(1.0 - cosine * cosine, zero + 1.0e-9), half_a);
        const Many on_b = clamp(on_a * cosine - along_b, half_b);
        on_a = clamp(along_a + on_b * cosine, half_a);
        for (int k = 0; k < 3; ++k)
            normal[k] = from[k] + on_b * axis_b[k] - on_a * axis_a[k];
        const Many height = dot(normal, from) - half_a * MAGNITUDE(dot(normal, axis_a))
            - half_b * MAGNITUDE(dot(normal, axis_b));
        const Many scale = MAGNITUDE(from[0]) + MAGNITUDE(from[1]) + MAGNITUDE(from[2]) + (half_a + half_b + limit);
        const Many least = limit + {CAPSULE_SLACK!r} * scale;
        return bits((height <= 0.0) | (height * height <= least * least * dot(normal, normal)));
    }};
"""


@wp.func_native(
    f"""{PRELUDE}{DOUBLE_BITS}{CAPSULES}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + {LANE_STEP} <= count; lane += {LANE_STEP})
        found |= near(Doubles{{}}, lane) << lane;
#endif
    for (; lane < count; ++lane)
        found |= near(0.0, lane) << lane;
{EPILOGUE}
    return found;
"""
)
def lanes_near(
    pose: wp.array[Pose], instance0: int, instance1: int, count: int, half_a: Real, half_b: Real, limit: Real
) -> wp.uint32:
    """Bit k: whether no plane is found between the capsules `instance0 + k` and `instance1 + k`; k < count.

    The plane is perpendicular to the line between the closest points of the segments, as far as one pass finds them.

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
    """One thread per pair of slots and part of its lanes: the lanes in which it is a candidate, as bits."""
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
            bits = bits & lanes_near(instances.pose, instance0, instance1, count, size0[1], size1[1], limit)
    used = (wp.uint32(2) << wp.uint32(chunk.block_size[block] - 1)) - wp.uint32(1)
    bits = (bits << wp.uint32(part * count)) & used
    if parts == 1:
        mask[pair] = bits
    else:
        wp.atomic_or(mask, pair, bits)


def lanes_that_overlap(
    device_model: DeviceModel, chunk: Chunk, slots: wp.array, count: int, workspace: Workspace
) -> BlockPairs:
    """The pairs of slots that a broad phase found, with the cells of their block in which their bounds overlap."""
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
# A block's boxes contain the bounds of all its cells (`Instances.block_box`); pairs of slots whose boxes do not
# overlap are apart in every cell of the block. The boxes of eight slots are stored as lanes (eight lower x, eight
# lower y, ...). The loops over lanes are in C++: Warp's own array reads wrap and stride each element, which prevents
# vectorization by the compiler.


@wp.func_native(
    f"""
    const float* one = box.data + (slot / {LANES}) * {BOX_NUMBERS * LANES} + slot % {LANES};
    const float* eight = box.data + group * {BOX_NUMBERS * LANES};
    unsigned int overlap = 0;
#if defined(__clang__) && !defined(__CUDA_ARCH__) && !defined(SCALAR_LANES)
    typedef float Lanes __attribute__((ext_vector_type({LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type({LANES})));
    #define EIGHT(number) (*(const Lanes*)(eight + (number) * {LANES}))
    const auto below = (EIGHT(0) < one[{3 * LANES}]) & (EIGHT(1) < one[{4 * LANES}]) & (EIGHT(2) < one[{5 * LANES}]);
    const auto above = (EIGHT(3) > one[0]) & (EIGHT(4) > one[{LANES}]) & (EIGHT(5) > one[{2 * LANES}]);
    // A conversion to a vector of bits is one instruction; a loop over the lanes gathers the bits in five.
    overlap = __builtin_bit_cast(unsigned char, __builtin_convertvector(below & above, Flags));
    #undef EIGHT
#else
    for (int k = 0; k < {LANES}; ++k) {{
        bool overlaps = true;
        for (int axis = 0; axis < 3; ++axis)
            overlaps &= eight[axis * {LANES} + k] < one[(axis + 3) * {LANES}]
                & eight[(axis + 3) * {LANES} + k] > one[axis * {LANES}];
        overlap |= (unsigned int)overlaps << k;
    }}
#endif
    return overlap & mask;
"""
)
def box_bits(box: wp.array[wp.float32], slot: int, group: int, mask: wp.uint32) -> wp.uint32:
    """Of the slots `mask` of a group, those whose boxes overlap a slot's. A plane's overlaps all.

    slot, group: index of the slot and of the group of eight slots, counted through all blocks.
    """
    ...


@wp.struct
class PairGroups:
    """Pairs of each template as a sparse bit matrix, only the words with set bits.

    start: first entry of each template, one more at the end. entry: slot0; a group, which has the slots 8 group to
    8 group + 7; and a mask, whose bit k is set where (slot0, 8 group + k) is one of the pairs.
    """

    start: wp.array[wp.int32]
    entry: wp.array[wp.vec3i]


def upload_groups(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> tuple[PairGroups, int]:
    """Row pairs of each template (int32[K, 2], first < second) as groups; and the largest number of entries of one."""
    device = device_model.device
    counts, keys, masks = [], [], []
    stride = device_model.layout.width // LANES
    for rows, row_pairs in zip(device_model.template_rows, template_pairs, strict=True):
        slots = np.searchsorted(rows, row_pairs).astype(np.int64)
        key, entry = np.unique(slots[:, 0] * stride + slots[:, 1] // LANES, return_inverse=True)
        is_pair = np.zeros((len(key), LANES), bool)
        is_pair[entry, slots[:, 1] % LANES] = True
        counts.append(len(key))
        keys.append(key)
        masks.append(is_pair)
    key, is_pair = np.concatenate(keys), np.concatenate(masks)
    pairs = PairGroups()
    pairs.start = device_array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), wp.int32, device)
    mask = np.packbits(is_pair, axis=1, bitorder="little")[:, 0]
    entry = np.stack([key // stride, key % stride, mask], axis=1).astype(np.int32)
    pairs.entry = device_array(entry, wp.vec3i, device)
    return pairs, max(counts)


# Count, scan, write over enumerated pairs, with one 32-bit word of hits for each 32 pairs of a block.
#
# The count pass tests the bounds of each pair once and sets its bit; the scan of the words' bit counts gives each word
# its range in the output; the write pass reads the bits only. The pairs are ordered by block and by slots without a
# sort.

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
    pair_filter: Filter, layout: Layout, chunk: ChunkCells, instances: Instances, words_per_slot: int, hits: HitWords
):
    """Count pass, one thread per word: a slot of a block against the later slots of a few groups."""
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
            # Only later slots: not the slot itself and earlier ones of its own group, nor the unused ones of the last.
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
        arguments = [self.device_model.pair_filter, layout, chunk.cells, chunk.instances, words_per_slot, hits]
        workspace.launch(test_all, count, arguments)
        found = workspace.scan(hits.count, count, hits.end)
        slots = workspace.array("block_pair", found, wp.vec2i)
        workspace.launch(write_all, count, [layout.width, words_per_slot, hits, slots])
        return lanes_that_overlap(self.device_model, chunk, slots, found, workspace)

    def kernels(self) -> list[wp.Kernel]:
        return [test_all, write_all, test_lanes]


# Broad phase over a list of the pairs that pass the filter, enumerated once at load; boxes are tested per block.


@kernel
def test_pairs(
    layout: Layout, chunk: ChunkCells, instances: Instances, pairs: PairGroups, words_per_block: int, hits: HitWords
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
        bits = box_bits(instances.block_box, first_slot + entry[0], first_group + entry[1], wp.uint32(entry[2]))
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
        layout, words = self.device_model.layout, self.words_per_block
        count = chunk.block_count * words
        hits = hit_words(workspace, count)
        workspace.launch(test_pairs, count, [layout, chunk.cells, chunk.instances, self.pairs, words, hits])
        found = workspace.scan(hits.count, count, hits.end)
        slots = workspace.array("block_pair", found, wp.vec2i)
        workspace.launch(write_pairs, count, [layout, chunk.cells, self.pairs, words, hits, slots])
        return lanes_that_overlap(self.device_model, chunk, slots, found, workspace)

    def kernels(self) -> list[wp.Kernel]:
        return [test_pairs, write_pairs, test_lanes]


def explicit(device_model: DeviceModel, template_pairs: list[np.ndarray], blocks: BlockShape = FULL_BLOCKS) -> Explicit:
    """Broad phase over the allowed pairs of each template, int32[K, 2] rows of the model."""
    pairs, most = upload_groups(device_model, template_pairs)
    return Explicit(device_model, pairs, -(-most // ENTRIES_PER_WORD), blocks=blocks)
