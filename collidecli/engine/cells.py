"""World pose and inflated bounds of every shape in every cell of a chunk, from body poses.

A cell is one world in one frame. An instance is a shape in a cell (see device_model). The instances
of a shape in a block of cells are consecutive (see cell_blocks).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import LANES, MOVED_BY_WORLD, DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE, OUTWARD, ROUNDING
from collidecli.engine.geometry.lanes import COMPOSITION, EPILOGUE, LANE_STEP, LOAD, PRELUDE
from collidecli.engine.geometry.real import CONE, PLANE, Pose
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.joint_poses import JointPoses
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

BOUND_NUMBERS = 10
BOX_NUMBERS = 6
CENTER = wp.constant(0)
RADIUS = wp.constant(3)
LOWER = wp.constant(4)
UPPER = wp.constant(7)
"""Indices of an instance's bounds: centre and radius of its bounding ball, lower and upper corner
of its AABB."""
_VALUES: dict[str, Any] = {
    "PRELUDE": PRELUDE,
    "LOAD": LOAD,
    "COMPOSITION": COMPOSITION,
    "EPILOGUE": EPILOGUE,
}
_VALUES |= {
    "OUTWARD": OUTWARD,
    "ROUNDING": ROUNDING,
    "INFINITE": INFINITE,
    "MOVED_BY_WORLD": MOVED_BY_WORLD,
    "PLANE": PLANE,
    "CONE": CONE,
}
_VALUES |= {
    "LANES": LANES,
    "LANE_STEP": LANE_STEP,
    "BOUND_NUMBERS": BOUND_NUMBERS,
    "BOX_NUMBERS": BOX_NUMBERS,
}
_VALUES |= {"CENTER": CENTER, "RADIUS": RADIUS, "LOWER": LOWER, "UPPER": UPPER}
_VALUES["STORE"] = native(__file__, "store", LANE_STEP=LANE_STEP)
_VALUES["EXTENTS"] = native(__file__, "extents", **{kind.name: int(kind) for kind in ShapeType})
"""Values of the sections of C++."""


@wp.struct
class Instances:
    """All shapes of all cells of a chunk.

    pose: world pose. bound: groups of LANES consecutive instances, the numbers CENTER to UPPER of
    each, inflated by `bounds_inflation` and rounded outwards. block_box: lower and upper corner of
    the box around each slot's bounds in each block, groups of LANES consecutive slots, six numbers
    of each.
    """

    pose: wp.array[Pose]
    bound: wp.array[wp.float32]
    block_box: wp.array[wp.float32]


@wp.struct
class ChunkCells:
    """The cells of a chunk.

    cell_template, cell_world: template and world of each. first_pose: index of each cell's first
    body pose. cell_lane, lane_cell, block_template, block_size: see CellBlocks. shift: a block has
    1 << shift lanes. world_shift, body_shifts: see DeviceModel. shared: 1 where worlds with
    different origins use one recorded world.
    """

    cell_template: wp.array[wp.int32]
    cell_world: wp.array[wp.int32]
    first_pose: wp.array[wp.int32]
    cell_lane: wp.array[wp.int32]
    lane_cell: wp.array[wp.int32]
    block_template: wp.array[wp.int32]
    block_size: wp.array[wp.int32]
    shift: int
    body_pose: wp.array[Pose]
    world_shift: wp.array[Pose]
    body_shifts: wp.array[wp.int32]
    shared: int


@wp.func_native(native(__file__, "place_lanes", **_VALUES))
def place_lanes(
    rows: ShapeRows,
    chunk: ChunkCells,
    instances: Instances,
    row: int,
    first_lane: int,
    first: int,
    count: int,
):
    """Writes world poses and bounds of a shape's instances `first` to `first + count - 1`, lanes
    from `first_lane` on.

    row: of the shape.
    """
    ...


@wp.func_native(native(__file__, "read_ahead"))
def read_ahead(chunk: ChunkCells, first_lane: int, lanes: int, part: int, parts: int):
    """Requests one of `parts` equal parts of the poses of `lanes` lanes from memory; the
    processor's own reading ahead follows fewer lines of addresses than a block has cells."""
    ...


@wp.func_native(native(__file__, "place_empty", **_VALUES))
def place_empty(bound: wp.array[wp.float32], first: int, count: int):
    """Sets inverted boxes, beyond a plane's bounds, for the instances of a slot that is not
    used."""
    ...


@wp.func_native(native(__file__, "bound_block", **_VALUES))
def bound_block(
    bound: wp.array[wp.float32], slot: int, lanes: int, block_box: wp.array[wp.float32]
):
    """Writes the box around the bounds of a slot in all lanes of its block. lanes: 1 or a multiple
    of LANES."""
    ...


MAX_SHIFT = 5
"""Blocks have at most 1 << MAX_SHIFT cells: as many as a 32-bit mask has bits."""
MIN_LANES = 8
"""Blocks have one cell or at least this many."""


@dataclass(frozen=True)
class BlockShape:
    """Size of blocks: 1 << shift cells. of_one_world: whether a block has cells of one world
    only."""

    shift: int = 0
    of_one_world: bool = False

    @property
    def lanes(self) -> int:
        return 1 << self.shift


SINGLE_CELLS = BlockShape()
FULL_BLOCKS = BlockShape(MAX_SHIFT)


@dataclass(frozen=True)
class CellBlocks:
    """Cells of a chunk as lanes of blocks.

    lane_cell: int32[blocks * lanes], cell of each lane; unused lanes at the end of a block have
    that of its first. cell_lane: int32[cells], lane of each cell, counted through all blocks.
    block_template, block_size: int32[blocks], template and used lanes of each block.
    """

    lane_cell: np.ndarray
    cell_lane: np.ndarray
    block_template: np.ndarray
    block_size: np.ndarray


def block_shape(cell_count: int, world_template: np.ndarray, most: BlockShape) -> BlockShape:
    """The blocks of a chunk of `cell_count` cells: up to `most`, and no larger than one block for
    all needs to be.

    world_template: int32[W], template of each world.
    """
    groups = len(world_template) if most.of_one_world else int(world_template.max()) + 1
    cells_each = cell_count // groups
    if cells_each < 2 or most.shift == 0:
        return BlockShape(0, most.of_one_world)
    lanes = max(MIN_LANES, 1 << (cells_each - 1).bit_length())
    return BlockShape(min(most.shift, lanes.bit_length() - 1), most.of_one_world)


def cell_blocks(template: np.ndarray, world: np.ndarray, shape: BlockShape) -> CellBlocks:
    """Blocks of cells with these templates and worlds, both int32[cells] with frames in ascending
    order."""
    count = len(template)
    lanes = shape.lanes
    group = world if shape.of_one_world else template
    order = np.arange(count)
    begins = np.zeros(1, np.int64)
    if lanes > 1 and not (world == world[0]).all():
        order = np.lexsort((world, group))
        begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(begins, append=count)
    blocks = -(-sizes // lanes)
    first_block = np.cumsum(blocks) - blocks
    lane = np.arange(count) - np.repeat(begins - first_block * lanes, sizes)
    lane_cell = np.full(int(blocks.sum()) * lanes, -1, np.int32)
    lane_cell[lane] = order
    by_block = lane_cell.reshape(-1, lanes)
    block_size = (by_block >= 0).sum(axis=1).astype(np.int32)
    by_block[:] = np.where(by_block < 0, by_block[:, :1], by_block)
    cell_lane = np.empty(count, np.int32)
    cell_lane[order] = lane
    return CellBlocks(lane_cell, cell_lane, template[by_block[:, 0]].astype(np.int32), block_size)


LANE_COUNT = wp.constant(LANES)


@dataclass(frozen=True)
class PoseBatch:
    """Body poses of a chunk of consecutive cells.

    first_cell: cell number of the first; cell = frame * world_count + world. cell_count: cells in
    the chunk. first_frame: frame of body_pose[0]. body_pose: float64[frames, recorded worlds, B,
    7], quaternions xyzw. One recorded world is used for all worlds, moved
        by their origins.
    particle_position: float64[frames, recorded worlds, P, 3], or [1, 1, P, 3] of particles that
        rest; None where the model has none.
    joints: of a device's batch, coordinates that it computes the poses from; body_pose then has
        the shape of the poses, and no numbers.
    has_step: bool[frames, worlds], whether the step from a frame to the next is in one episode;
        None where all are. For a sweep the poses have one frame more than the cells, where there is
        one.
    """

    first_cell: int
    cell_count: int
    first_frame: int
    body_pose: np.ndarray
    particle_position: np.ndarray | None = None
    has_step: np.ndarray | None = None
    joints: JointPoses | None = None


def has_step(model: Model, batch: PoseBatch) -> np.ndarray:
    """bool[cells]: the cells of a batch that have a step: a next frame in the batch, and in the
    episode."""
    frame, world = np.divmod(batch.first_cell + np.arange(batch.cell_count), model.world_count)
    frame = frame - batch.first_frame
    stepped = frame + 1 < len(batch.body_pose)
    if batch.has_step is not None:
        stepped &= batch.has_step[np.minimum(frame, len(batch.has_step) - 1), world]
    return stepped


@dataclass(frozen=True)
class Chunk:
    """A batch on a device, with the instances of its cells. lanes: cells of a block."""

    first_cell: int
    cell_count: int
    block_count: int
    lanes: int
    cells: ChunkCells
    instances: Instances


def transform_chunk(
    device_model: DeviceModel,
    batch: PoseBatch,
    workspace: Workspace,
    most: BlockShape = SINGLE_CELLS,
) -> Chunk:
    """Uploads a batch to the device of `device_model`; launches the computation of the instances'
    poses and bounds.

    most: the largest blocks of cells; by default each cell is a block.
    """
    shape = block_shape(batch.cell_count, device_model.model.world_template, most)
    cells, block_count = _upload_cells(batch, device_model, shape, workspace)
    slot_count = block_count * device_model.layout.width
    count = slot_count * shape.lanes
    pose = workspace.array("instance_pose", count, Pose)
    bound = workspace.array("instance_bound", BOUND_NUMBERS * count, wp.float32)
    block_box = workspace.array("block_box", BOX_NUMBERS * slot_count, wp.float32)
    instances = workspace.struct(Instances, pose=pose, bound=bound, block_box=block_box)
    # On a device a thread has one lane, so that consecutive threads access consecutive memory.
    per_thread = 1 if workspace.has_own_memory else shape.lanes
    arguments = [device_model.rows, device_model.layout, cells, per_thread, instances]
    workspace.launch(transform_shapes, count // per_thread, arguments)
    workspace.launch(bound_blocks, slot_count, [shape.shift, instances])
    return Chunk(batch.first_cell, batch.cell_count, block_count, shape.lanes, cells, instances)


def _upload_cells(
    batch: PoseBatch, device_model: DeviceModel, shape: BlockShape, workspace: Workspace
) -> tuple[ChunkCells, int]:
    """Binds the poses on the CPU or uploads them, and sets the layout of the cells; also returns
    the blocks' number."""
    worlds = len(device_model.model.world_template)
    _, recorded_worlds, bodies = batch.body_pose.shape[:3]
    # From the frame of the first cell on, so that all chunks of whole frames have one layout.
    skipped, first = divmod(batch.first_cell - batch.first_frame * worlds, worlds)
    end = skipped + -(-(first + batch.cell_count) // worlds)
    frames = slice(skipped, end)
    joints = None if batch.joints is None else batch.joints.part(skipped, end)
    posed = None
    if joints is not None and workspace.counts.expects:
        from collidecli.engine.device_kinematics import posed_on_device

        posed = posed_on_device(joints, POSES_OF_BODIES, workspace)
    layout = _cell_layout(
        first, batch.cell_count, recorded_worlds, bodies, device_model, shape, workspace
    )
    cells = workspace.struct(
        ChunkCells,
        **(layout.arrays if workspace.has_own_memory else {}),
        shift=shape.shift,
        world_shift=device_model.world_shift,
        body_shifts=device_model.body_shifts,
        shared=int(recorded_worlds == 1 and device_model.model.world_shift is not None),
    )
    if not workspace.has_own_memory:
        for name, values in layout.arrays.items():
            workspace.bind_host_array(ChunkCells, name, values, wp.int32)
    if posed is not None:
        workspace.struct(ChunkCells, body_pose=posed)
    else:
        given = batch.body_pose[frames] if joints is None else joints.poses()
        poses = np.ascontiguousarray(given, np.float64).reshape(-1, 7)
        poses = poses if len(poses) else np.zeros((1, 7))
        workspace.bind_host_array(ChunkCells, "body_pose", poses, Pose)
    return cells, layout.block_count(batch.cell_count)


POSES_OF_BODIES = f"{ChunkCells.__name__}_body_pose"
"""Name of the array of a device that uploaded poses are in, and those of joints."""
HELD_LAYOUTS = 4
"""Of a workspace: whole blocks, a batch's last chunk, and chunks of a run's end."""


@dataclass(frozen=True)
class CellLayout:
    """The arrays of ChunkCells that depend on no pose, for `cell_count` cells: of the host, or in a
    device's memory.

    whole_lanes: lanes of a block if the arrays serve any smaller number of whole blocks as well,
    else 0.
    """

    cell_count: int
    whole_lanes: int
    arrays: dict[str, Any]

    def block_count(self, cells: int) -> int:
        """Blocks of a chunk of `cells` cells."""
        return (
            cells // self.whole_lanes
            if self.whole_lanes
            else self.arrays["block_template"].shape[0]
        )


def _cell_layout(
    first: int,
    count: int,
    recorded_worlds: int,
    bodies: int,
    device_model: DeviceModel,
    shape: BlockShape,
    workspace: Workspace,
) -> CellLayout:
    """The layout of a chunk from cell `first` of its first frame on; reused by later chunks.

    Whole blocks of one world are the beginning of a layout of more cells, so that chunks of
    different sizes share it.
    """
    world_template = device_model.model.world_template
    whole = shape.lanes if len(world_template) == 1 and count % shape.lanes == 0 else 0
    key = (first, 0 if whole else count, recorded_worlds, bodies, shape)
    cached = workspace.cell_layouts.get(key)
    if cached is None or cached.cell_count < count:
        cells = 1 << (count - 1).bit_length() if whole else count
        frame, world = np.divmod(np.arange(first, first + cells), len(world_template))
        blocks = cell_blocks(world_template[world], world, shape)
        arrays = {
            "cell_template": world_template[world],
            "cell_world": world,
            "first_pose": (frame * recorded_worlds + (world if recorded_worlds > 1 else 0))
            * bodies,
            "cell_lane": blocks.cell_lane,
            "lane_cell": blocks.lane_cell,
            "block_template": blocks.block_template,
            "block_size": blocks.block_size,
        }
        arrays = {name: values.astype(np.int32) for name, values in arrays.items()}
        if workspace.has_own_memory:
            arrays = {name: workspace.uploaded(values, wp.int32) for name, values in arrays.items()}
        cached = CellLayout(cells, whole, arrays)
        if len(workspace.cell_layouts) == HELD_LAYOUTS:
            workspace.cell_layouts.clear()
        workspace.cell_layouts[key] = cached
    return cached


@wp.func
def instance_of(chunk: ChunkCells, layout: Layout, cell: int, slot: int) -> int:
    """Instance of a slot in a cell."""
    lane = chunk.cell_lane[cell]
    in_block = lane & ((1 << chunk.shift) - 1)
    return (((lane >> chunk.shift) * layout.width + slot) << chunk.shift) + in_block


@wp.func
def row_of_slot(chunk: ChunkCells, layout: Layout, block_slot: int) -> int:
    """Shape row of a slot, counted through all blocks; -1 for a slot that its template does not
    use."""
    block = block_slot // layout.width
    return layout.slot_row[
        chunk.block_template[block] * layout.width + block_slot - block * layout.width
    ]


@wp.func
def row_of(chunk: ChunkCells, layout: Layout, instance: int) -> int:
    """Shape row of an instance; -1 for a slot that its template does not use."""
    return row_of_slot(chunk, layout, instance >> chunk.shift)


@wp.func
def body_pose_of(chunk: ChunkCells, cell: int, body: int) -> Pose:
    """World pose of a body in a cell."""
    # A return in each branch: for a pose assigned in a branch the compiler stores both in memory
    # and selects an address.
    if chunk.shared != 0 and chunk.body_shifts[body] != 0:
        return (
            chunk.world_shift[chunk.cell_world[cell]]
            * chunk.body_pose[chunk.first_pose[cell] + body]
        )
    return chunk.body_pose[chunk.first_pose[cell] + body]


@kernel
def transform_shapes(
    rows: ShapeRows, layout: Layout, chunk: ChunkCells, per_thread: int, instances: Instances
):
    """One thread per `per_thread` lanes of a slot: poses and bounds; those of an unused slot
    overlap no other."""
    first = wp.tid() * per_thread
    block_slot = first >> chunk.shift
    block = block_slot // layout.width
    lane = first & ((1 << chunk.shift) - 1)
    if per_thread > 1:
        lanes = 1 << chunk.shift
        read_ahead(
            chunk, (block + 1) * lanes, lanes, block_slot - block * layout.width, layout.width
        )
    row = row_of_slot(chunk, layout, block_slot)
    if row < 0:
        place_empty(instances.bound, first, per_thread)
    else:
        place_lanes(rows, chunk, instances, row, (block << chunk.shift) + lane, first, per_thread)


@kernel
def bound_blocks(shift: int, instances: Instances):
    """One thread per slot of a block: the box around the bounds of its lanes."""
    thread = wp.tid()
    bound_block(instances.bound, thread, 1 << shift, instances.block_box)


POSED_SHAPES = (transform_shapes, bound_blocks)
"""The kernels of `transform_chunk`."""
