"""Candidates of a chunk in canonical order, from pairs of slots with the lanes of their blocks:
count, scan, write.

Candidates are ordered by cell, slot0, slot1. A second list has their indices ordered by bucket (the
collider of the pair), block and pair, and of one pair by lane: consecutive frames of a pair are
consecutive in it, so that a collider's branches and reads are nearly equal from one to the next.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.cells import (
    BIT_FUNCTIONS,
    BOUND_NUMBERS,
    LOWER,
    MAX_SHIFT,
    MIN_LANES,
    UPPER,
    BlockPairs,
    BlockShape,
    Chunk,
    ChunkCells,
    Instances,
    PairLanes,
    PoseBatch,
    transform_chunk,
)
from collidecli.engine.device_model import LANES, DeviceModel, Filter, Layout, Margins, ShapeRows
from collidecli.engine.geometry.hulls import HullShape, hull_shape
from collidecli.engine.geometry.primitives import Primitive
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.workspace import Workspace
from collidecli.numerics.poses import compose_poses
from collidecli.scene.model import Model
from collidecli.scene.poses import first_worlds
from collidecli.scene.shape_types import ShapeType

PAIRS_OF_THREAD = 16
MOST_PARTS = 1024
"""On a device: least pairs of slots of a part, and most parts of a block; other numbers were not
measured."""


@wp.struct
class Buckets:
    """Bucket of each ordered pair of kinds, and the scanned counts of candidates.

    The pairs of a block are counted in `parts` consecutive parts. of_kinds: kind_count x
    kind_count. end: of candidates, bucket_count x part_count, then of pairs of slots as many; then
    the inclusive scan of both. part_count: parts of all blocks. cell_end: candidates of each part
    of each cell, then inclusive scan.
    """

    of_kinds: wp.array[wp.int32]
    kind_count: int
    bucket_count: int
    parts: int
    part_count: int
    end: wp.array[wp.int32]
    cell_end: wp.array[wp.int32]


@kernel
def end_blocks(width: int, block_count: int, pair_count: int, pairs: PairLanes):
    """One thread per pair: the last of a block writes the end of its block's pairs and of empty
    blocks after it."""
    thread = wp.tid()
    block = pairs.slots[thread][0] // width
    next_block = pairs.slots[thread + 1][0] // width if thread + 1 < pair_count else block_count
    for b in range(block, next_block):
        pairs.end[b] = thread + 1
    if thread == 0:
        for b in range(block):
            pairs.end[b] = 0


PAIRS_OF_PART = """
    const int parts = buckets.parts;
    const int part_count = buckets.part_count, bucket_count = buckets.bucket_count;
    const int block = part / parts;
    const int from = block == 0 ? 0 : pairs.end.data[block - 1];
    const wp::int64 of_block = pairs.end.data[block] - from, number = part - block * parts;
    const int begin = from + (int)(of_block * number / parts);
    const int end_of_part = from + (int)(of_block * (number + 1) / parts);
"""
"""C++: the pairs `begin` to `end_of_part` - 1 of a part of a block."""


@wp.func_native(
    native(__file__, "count_of_part", BIT_FUNCTIONS=BIT_FUNCTIONS, PAIRS_OF_PART=PAIRS_OF_PART)
)
def count_of_part(
    kind: wp.array[wp.int32],
    layout: Layout,
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    part: int,
):
    """Counts the candidates of a part of a block by bucket and by cell, and completes its pairs."""
    ...


@kernel
def count_lanes(
    kind: wp.array[wp.int32], layout: Layout, chunk: ChunkCells, pairs: PairLanes, buckets: Buckets
):
    """One thread per part of a block: its candidates, counted by bucket and by cell."""
    count_of_part(kind, layout, chunk, pairs, buckets, wp.tid())


@wp.func_native(
    native(__file__, "write_part", BIT_FUNCTIONS=BIT_FUNCTIONS, PAIRS_OF_PART=PAIRS_OF_PART)
)
def write_part(
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    part: int,
    first: int,
    last: int,
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """Writes the candidates of lanes `first` to `last - 1` of a part of a block."""
    ...


@kernel
def write_lanes(
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    lane_parts: int,
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """One thread per `lane_parts`-th of the lanes of a part: its candidates, and their indices by
    bucket."""
    thread = wp.tid()
    part = thread // lane_parts
    count = (1 << chunk.shift) // lane_parts
    first = (thread - part * lane_parts) * count
    last = wp.min(first + count, chunk.block_size[part // buckets.parts])
    if first < last:
        write_part(chunk, pairs, buckets, part, first, last, pair, row, order)


@dataclass(frozen=True)
class CandidateList:
    """Candidates in canonical order. pair: vec2i, both instances. row: vec2i, rows of both shapes.

    order: their indices by bucket. starts: first index of each bucket in `order`, one more at the
    end. cell_end: inclusive scan of the candidates of each cell. lanes: the pairs of slots.
    pair_starts: as `starts`, of the pairs in `lanes.order`.
    """

    pair: wp.array
    row: wp.array
    order: wp.array
    starts: list[int]
    cell_end: wp.array
    lanes: PairLanes
    pair_starts: list[int]

    @property
    def count(self) -> int:
        return self.starts[-1]


def expand(
    device_model: DeviceModel,
    chunk: Chunk,
    block_pairs: BlockPairs,
    buckets: tuple[wp.array, int, int],
    prefix: str,
    workspace: Workspace,
) -> CandidateList:
    """The candidates of pairs of slots.

    Args:
        buckets: bucket of each ordered pair of kinds, number of kinds, number of buckets.
        prefix: of the names of the candidates' arrays in the workspace.
    """
    layout = device_model.layout
    block_count = chunk.block_count
    count = block_pairs.count
    of_kinds, kind_count, bucket_count = buckets
    integers = dict.fromkeys(("first", "order"), (count, wp.int32))
    elements = {**integers, "end": (block_count, wp.int32), "bucket": (count, wp.uint8)}
    elements |= dict.fromkeys(("row", "before"), (count, wp.vec2i))
    arrays = {
        name: workspace.array(f"pair_{name}", *shape_and_type)
        for name, shape_and_type in elements.items()
    }
    pairs = workspace.struct(PairLanes, slots=block_pairs.slots, mask=block_pairs.mask, **arrays)
    # On a device a thread has one lane of some of a block's pairs: there are few blocks, of many
    # pairs.
    parts = 1
    lane_parts = 1
    if workspace.has_own_memory:
        parts = min(max(count // (PAIRS_OF_THREAD * block_count), 1), MOST_PARTS)
        lane_parts = chunk.lanes
    part_count = parts * block_count
    end_count = 2 * bucket_count * part_count
    end = workspace.array("bucket_end", end_count, wp.int32)
    part_end = workspace.array(f"{prefix}_cell_end", parts * chunk.cell_count, wp.int32)
    filled = workspace.struct(
        Buckets,
        of_kinds=of_kinds,
        kind_count=kind_count,
        bucket_count=bucket_count,
        parts=parts,
        part_count=part_count,
        end=end,
        cell_end=part_end,
    )
    if count:
        workspace.launch(end_blocks, count, [layout.width, block_count, count, pairs])
    else:
        workspace.fill(arrays["end"], 0)
    arguments = [device_model.rows.kind, layout, chunk.cells, pairs, filled]
    workspace.launch(count_lanes, part_count, arguments)
    workspace.launch_scan(part_end, parts * chunk.cell_count)
    workspace.launch_scan(end, end_count)
    # The scan's last part of each bucket is the bucket's end, and of each cell the cell's.
    ends = [0, *workspace.every(end, end_count, part_count)]
    cell_end = part_end
    if parts > 1:
        cell_end = workspace.array(f"{prefix}_whole_cell_end", chunk.cell_count, wp.int32)
        last = part_end[parts - 1 : parts * chunk.cell_count : parts]
        wp.copy(cell_end[: chunk.cell_count], last)  # pyright: ignore[reportArgumentType]
    starts = ends[: bucket_count + 1]
    pair_starts = [number - starts[-1] for number in ends[bucket_count:]]
    pair, row = (
        workspace.array(f"{prefix}_{name}", starts[-1], wp.vec2i) for name in ("pair", "row")
    )
    order = workspace.array(f"{prefix}_order", starts[-1], wp.int32)
    shared = [chunk.cells, pairs, filled, lane_parts, pair, row, order]
    workspace.launch(write_lanes, part_count * lane_parts, shared)
    return CandidateList(pair, row, order, starts, cell_end, pairs, pair_starts)


KERNELS = (end_blocks, count_lanes, write_lanes)
"""Kernels of `expand`."""


# Pair filter, margin and gap of a pair of rows.
#
# A pair of instances is a candidate if it passes the filter and its inflated bounds overlap. Bounds
# are a ball and a box, or a half-space for a plane. Each is inflated by its shape's part of the
# largest maximum separation of any of its pairs (device_model.bounds_inflation), so shapes whose
# bounds do not overlap are farther apart than their maximum separation. All broad phases use one
# filter and the same numbers for bounds, so all find the same candidates.


@wp.func
def find_sorted(values: wp.array[wp.int32], begin: int, end: int, wanted: int) -> int:
    """Index of `wanted` in the ascending values[begin:end]; -1 if absent."""
    low = begin
    high = end
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == wanted else -1


@wp.func
def forced_index(
    start: wp.array[wp.int32], forced: wp.array[wp.int32], row0: int, row1: int
) -> int:
    """Index of the forced pair (row0 < row1); -1 if it is not forced."""
    begin = start[row0]
    end = start[row0 + 1]
    return -1 if begin == end else find_sorted(forced, begin, end, row1)


@wp.func
def may_touch(pair_filter: Filter, row0: int, row1: int) -> bool:
    """Whether a pair of shapes (row0 < row1) passes the filter."""
    class0 = pair_filter.shape_class[row0]
    class1 = pair_filter.shape_class[row1]
    if pair_filter.class_table[class0 * pair_filter.class_count + class1] != wp.uint8(0):
        begin = pair_filter.excluded_start[row0]
        end = pair_filter.excluded_start[row0 + 1]
        if begin == end or find_sorted(pair_filter.excluded, begin, end, row1) < 0:
            return True
    return forced_index(pair_filter.forced_start, pair_filter.forced, row0, row1) >= 0


@wp.struct
class PairLimits:
    """margin: sum of both surfaces' inflations [m]. gap: distance of the inflated surfaces up to
    which contacts are reported [m]."""

    margin: Real
    gap: Real


@wp.func
def pair_limits(margins: Margins, row0: int, row1: int) -> PairLimits:
    """Margin and gap of a pair (row0 < row1); those of a forced pair, where given, override its
    shapes'."""
    limits = PairLimits(
        margins.margin[row0] + margins.margin[row1], wp.max(margins.gap[row0], margins.gap[row1])
    )
    if margins.gap_is_sum != 0:
        limits.gap = margins.gap[row0] + margins.gap[row1]
    forced = forced_index(margins.forced_start, margins.forced, row0, row1)
    if forced >= 0:
        if not wp.isnan(margins.forced_margin[forced]):
            limits.margin = margins.forced_margin[forced]
        if not wp.isnan(margins.forced_gap[forced]):
            limits.gap = margins.forced_gap[forced]
    return limits


# Query of a pair collider: the two shapes in type order and their relative pose.


@wp.struct
class Query:
    """Input of a pair collider; a is the shape whose type is smaller.

    max_separation: separation up to which contacts are reported, margin + gap [m].
    """

    row_a: int
    row_b: int
    pose_b_to_a: Pose
    max_separation: Real


@wp.func
def relative_pose(pose_a: Pose, pose_b: Pose) -> Pose:
    """Pose of frame b in frame a, from both poses in a common frame."""
    rotation_a = wp.transform_get_rotation(pose_a)
    offset = wp.transform_get_translation(pose_b) - wp.transform_get_translation(pose_a)
    return Pose(
        wp.quat_rotate_inv(rotation_a, offset),
        wp.quat_inverse(rotation_a) * wp.transform_get_rotation(pose_b),
    )


@wp.struct
class RowPair:
    """The two shapes of a pair in type order; a is the one whose type is smaller.

    swapped: whether a is shape1. max_separation: separation up to which contacts are reported,
    margin + gap [m].
    """

    row_a: int
    row_b: int
    swapped: bool
    max_separation: Real


@wp.func
def row_pair(rows: ShapeRows, margins: Margins, row: wp.vec2i) -> RowPair:
    """The pair of rows (shape0, shape1)."""
    result = RowPair()
    limits = pair_limits(margins, row[0], row[1])
    result.max_separation = limits.gap + limits.margin
    result.swapped = rows.type[row[0]] > rows.type[row[1]]
    result.row_a = wp.where(result.swapped, row[1], row[0])
    result.row_b = wp.where(result.swapped, row[0], row[1])
    return result


@wp.func
def query_of(
    rows: ShapeRows, margins: Margins, instances: Instances, pair: wp.vec2i, row: wp.vec2i
) -> Query:
    """Query of a pair of instances; the relative pose is computed in float64."""
    of_rows = row_pair(rows, margins, row)
    query = Query()
    query.row_a = of_rows.row_a
    query.row_b = of_rows.row_b
    query.max_separation = of_rows.max_separation
    if of_rows.swapped:
        query.pose_b_to_a = relative_pose(instances.pose[pair[1]], instances.pose[pair[0]])
    else:
        query.pose_b_to_a = relative_pose(instances.pose[pair[0]], instances.pose[pair[1]])
    return query


@wp.func
def primitive_of(rows: ShapeRows, row: int) -> Primitive:
    """Primitive of a row."""
    return Primitive(rows.type[row], rows.size[row])


@wp.func
def hull_of(rows: ShapeRows, row: int) -> HullShape:
    """Hull of a row."""
    return hull_shape(rows.hulls, rows.hull[row], rows.type[row], rows.size[row])


# Inflated bounds of every shape over a sample of the motion, and what follows for broad phases.

MOVED_IN_A_BLOCK = 0.5
FAST_SHAPES = 0.75
"""A block has as many frames as this part of the shapes needs to move by MOVED_IN_A_BLOCK of its
extent; the two numbers affect the speed alone, and others were not measured."""


def sample_bounds(
    device_model: DeviceModel, sample_poses: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper inflated bounds, float64[samples, S, 3] [m], of each row in the first world
    of its template.

    sample_poses: float64[samples, recorded worlds, B, 7].
    """
    model = device_model.model
    device = device_model.device
    layout = device_model.layout
    samples = len(sample_poses)
    shape = (samples, len(model.shapes), 3)
    lower = np.zeros(shape)
    upper = np.zeros(shape)
    workspace = Workspace(device, 1 << 62)
    for template, rows in enumerate(device_model.template_rows):
        world = int(np.flatnonzero(model.world_template == template)[0])
        for sample in range(samples):
            batch = PoseBatch(sample * model.world_count + world, 1, 0, sample_poses)
            instances = transform_chunk(device_model, batch, workspace).instances
            bound = workspace.host(instances.bound, BOUND_NUMBERS * layout.width).reshape(
                -1, BOUND_NUMBERS, LANES
            )
            of_shape = bound.transpose(0, 2, 1).reshape(-1, BOUND_NUMBERS)[: len(rows)]
            lower[sample, rows] = of_shape[:, int(LOWER) : int(LOWER) + 3]
            upper[sample, rows] = of_shape[:, int(UPPER) : int(UPPER) + 3]
    return lower, upper


def world_offset(model: Model, sample_poses: np.ndarray) -> np.ndarray:
    """float64[W, 3]: offset of each world from the first world of its template [m].

    The position of a world is the median of the positions of its template's bodies over the sample,
    or its origin without bodies.
    """
    first = first_worlds(model.world_template)
    offset = np.zeros((model.world_count, 3))
    for world in np.flatnonzero(first != np.arange(model.world_count)):
        in_template = model.bodies.template == model.world_template[world]
        recorded = sample_poses.shape[1] > 1 and in_template.any()
        middle = np.array(model.world_pose[first[world]])
        if in_template.any():
            of_first = sample_poses[:, first[world] if recorded else 0, in_template, :3]
            middle[:3] = np.median(of_first, axis=(0, 1))
        if recorded:
            offset[world] = (
                np.median(sample_poses[:, world, in_template, :3], axis=(0, 1)) - middle[:3]
            )
        elif model.world_shift is not None:
            offset[world] = compose_poses(model.world_shift[world], middle)[:3] - middle[:3]
    return offset


def blocks_of_motion(
    model: Model, lower: np.ndarray, upper: np.ndarray, of_one_world: bool
) -> BlockShape:
    """Blocks of as many frames as most shapes need for half of their extent.

    Boxes around more frames overlap so often that the tests of single frames cost more than the
    boxes save.

    Args:
        lower, upper: float64[samples, S, 3], bounds in pairs of consecutive frames [m].
    """
    finite = model.shapes.type != ShapeType.PLANE
    shift = MAX_SHIFT
    if len(lower) > 1 and finite.any():
        pairs = len(lower) // 2 * 2
        step = np.abs(
            np.diff(lower[:pairs, finite].reshape(-1, 2, int(finite.sum()), 3), axis=1)
        ).max(axis=(0, 1, 3))
        extent = (upper - lower)[:, finite].mean(axis=(0, 2))
        part = np.quantile(step / np.maximum(extent, 1e-30), FAST_SHAPES)
        while 1 << shift > MIN_LANES and part * (1 << shift) > MOVED_IN_A_BLOCK:
            shift -= 1
    return BlockShape(shift, of_one_world)
