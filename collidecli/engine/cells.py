"""World pose and inflated bounds of every shape in every cell of a chunk, from body poses.

A cell is one world in one frame. An instance is a shape in a cell (see device_model).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.device_model import LANES, MOVED_BY_WORLD, DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE, ball_radius, bounding_box, rounded_down, rounded_up
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

LANE_COUNT = wp.constant(LANES)
WITH_WORLD = wp.constant(MOVED_BY_WORLD)
BOUND_NUMBERS = 10
NUMBERS = wp.constant(BOUND_NUMBERS)
CENTER = wp.constant(0)
RADIUS = wp.constant(3)
LOWER = wp.constant(4)
UPPER = wp.constant(7)
"""Indices of an instance's bounds: centre and radius of its bounding ball, lower and upper corner of its AABB."""


@dataclass(frozen=True)
class PoseBatch:
    """Body poses of a chunk of consecutive cells.

    first_cell: cell number of the first; cell = frame * world_count + world. cell_count: cells in the chunk.
    first_frame: frame of body_pose[0]. body_pose: float64[frames, recorded worlds, B, 7], quaternions xyzw. One
    recorded world is used for all worlds, moved
        by their origins.
    particle_position: float64[frames, recorded worlds, P, 3], or [1, 1, P, 3] of particles that rest; None where the
        model has none.
    """

    first_cell: int
    cell_count: int
    first_frame: int
    body_pose: np.ndarray
    particle_position: np.ndarray | None = None


@wp.struct
class Instances:
    """All shapes of all cells of a chunk.

    pose: world pose. bound: blocks of LANES consecutive instances, NUMBERS values of each (CENTER to UPPER), inflated
    by `bounds_inflation` and rounded outwards; see `bound_index`.
    """

    pose: wp.array[Pose]
    bound: wp.array[wp.float32]


def new_instances(workspace: Workspace, count: int) -> Instances:
    """`count` instances, a multiple of LANES; not set."""
    pose = workspace.array("instance_pose", count, Pose)
    bound = workspace.array("instance_bound", BOUND_NUMBERS * count, wp.float32)
    return workspace.struct(Instances, pose=pose, bound=bound)


@wp.func
def bound_index(instance: int, number: int) -> int:
    """Index in `Instances.bound` of a number of an instance's bounds."""
    return ((instance // LANE_COUNT) * NUMBERS + number) * LANE_COUNT + instance % LANE_COUNT


@wp.func
def bound_vector(instances: Instances, instance: int, number: int) -> wp.vec3f:
    """Vector of an instance's bounds: CENTER, LOWER or UPPER."""
    at = bound_index(instance, number)
    return wp.vec3f(instances.bound[at], instances.bound[at + LANE_COUNT], instances.bound[at + 2 * LANE_COUNT])


@wp.func_native(
    f"""
    float* number = bound.data + (instance / {LANES}) * {BOUND_NUMBERS * LANES} + instance % {LANES};
    for (int axis = 0; axis < 3; ++axis) {{
        number[({CENTER} + axis) * {LANES}] = center[axis];
        number[({LOWER} + axis) * {LANES}] = lower[axis];
        number[({UPPER} + axis) * {LANES}] = upper[axis];
    }}
    number[{RADIUS * LANES}] = radius;
"""
)
def set_bounds(
    bound: wp.array[wp.float32],
    instance: int,
    center: wp.vec3f,
    radius: wp.float32,
    lower: wp.vec3f,
    upper: wp.vec3f,
):
    """Writes an instance's bounds; in C++, since Warp's own array writes wrap and stride each element."""
    ...


@wp.struct
class ChunkCells:
    """The cells of a chunk.

    cell_template, cell_world: template and world of each. first_pose: index of each cell's first body pose.
    world_shift, body_shifts: see DeviceModel. shared: 1 where worlds with different origins use one recorded world.
    """

    cell_template: wp.array[wp.int32]
    cell_world: wp.array[wp.int32]
    first_pose: wp.array[wp.int32]
    body_pose: wp.array[Pose]
    world_shift: wp.array[Pose]
    body_shifts: wp.array[wp.int32]
    shared: int


@dataclass(frozen=True)
class Chunk:
    """A batch on a device, with the instances of its cells."""

    first_cell: int
    cell_count: int
    cells: ChunkCells
    instances: Instances


def transform_chunk(device_model: DeviceModel, batch: PoseBatch, workspace: Workspace) -> Chunk:
    """Uploads a batch to the device of `device_model`; launches the computation of the instances' poses and bounds."""
    cells = _upload_cells(batch, device_model, workspace)
    count = batch.cell_count * device_model.layout.width
    instances = new_instances(workspace, count)
    workspace.launch(transform_shapes, count // LANES, [device_model.rows, device_model.layout, cells, instances])
    return Chunk(batch.first_cell, batch.cell_count, cells, instances)


def _upload_cells(batch: PoseBatch, device_model: DeviceModel, workspace: Workspace) -> ChunkCells:
    """Binds the poses on the CPU or uploads them, and sets the layout of the cells."""
    worlds = len(device_model.model.world_template)
    _, recorded_worlds, bodies = batch.body_pose.shape[:3]
    # From the frame of the first cell on, so that all chunks of whole frames have one layout.
    skipped, first = divmod(batch.first_cell - batch.first_frame * worlds, worlds)
    end = skipped + -(-(first + batch.cell_count) // worlds)
    poses = np.ascontiguousarray(batch.body_pose[skipped:end], np.float64).reshape(-1, 7)
    cell_template, cell_world, first_pose = _cell_layout(
        first, batch.cell_count, recorded_worlds, bodies, device_model, workspace
    )
    cells = workspace.struct(
        ChunkCells,
        cell_template=cell_template,
        cell_world=cell_world,
        first_pose=first_pose,
        world_shift=device_model.world_shift,
        body_shifts=device_model.body_shifts,
        shared=int(recorded_worlds == 1 and device_model.model.world_shift is not None),
    )
    workspace.bind_host_array(ChunkCells, "body_pose", poses if len(poses) else np.zeros((1, 7)), Pose)
    return cells


def _cell_layout(
    first: int, count: int, recorded_worlds: int, bodies: int, device_model: DeviceModel, workspace: Workspace
) -> tuple[wp.array, ...]:
    """Template, world and first pose of at least `count` cells, from cell `first` of the first frame on; cached."""
    key = (first, recorded_worlds, bodies)
    if workspace.cell_layout is None or workspace.cell_layout[0] != key or workspace.cell_layout[1][0].shape[0] < count:
        workspace.finish()
        world_template = device_model.model.world_template
        frame, world = np.divmod(np.arange(first, first + count), len(world_template))
        first_pose = (frame * recorded_worlds + (world if recorded_worlds > 1 else 0)) * bodies
        arrays = (world_template[world].astype(np.int32), world.astype(np.int32), first_pose.astype(np.int32))
        workspace.cell_layout = (
            key,
            tuple(workspace.uploaded(values, wp.int32) for values in arrays),
        )
    return workspace.cell_layout[1]


@wp.func
def row_of(chunk: ChunkCells, layout: Layout, instance: int) -> int:
    """Shape row of an instance; -1 for a slot that its template does not use."""
    cell = instance // layout.width
    return layout.slot_row[chunk.cell_template[cell] * layout.width + instance - cell * layout.width]


@wp.func
def body_pose_of(chunk: ChunkCells, cell: int, body: int) -> Pose:
    """World pose of a body in a cell."""
    # A return in each branch: for a pose assigned in a branch the compiler stores both in memory and selects an
    # address.
    if chunk.shared != 0 and chunk.body_shifts[body] != 0:
        return chunk.world_shift[chunk.cell_world[cell]] * chunk.body_pose[chunk.first_pose[cell] + body]
    return chunk.body_pose[chunk.first_pose[cell] + body]


@wp.func
def shape_pose_of(rows: ShapeRows, chunk: ChunkCells, cell: int, row: int) -> Pose:
    """World pose of a shape in a cell."""
    body = rows.body[row]
    if body >= 0:
        return body_pose_of(chunk, cell, body) * rows.pose[row]
    if body == WITH_WORLD:
        return chunk.world_shift[chunk.cell_world[cell]] * rows.pose[row]
    return rows.pose[row]


@wp.func
def transform_shape(rows: ShapeRows, chunk: ChunkCells, cell: int, row: int, instance: int, instances: Instances):
    """Writes the world pose and the bounds of a shape in a cell."""
    pose = shape_pose_of(rows, chunk, cell, row)
    instances.pose[instance] = pose
    inflation = rows.inflation[row]
    center = wp.vec3f(wp.transform_get_translation(pose))
    radius = ball_radius(center, rows.radius[row] + inflation)
    box = bounding_box(rows.type[row], rows.size[row], pose, Real(inflation))
    set_bounds(instances.bound, instance, center, radius, rounded_down(box.lower), rounded_up(box.upper))


@kernel
def transform_shapes(rows: ShapeRows, layout: Layout, chunk: ChunkCells, instances: Instances):
    """One thread per LANES slots of a cell: poses and bounds of their instances. An unused slot overlaps no other."""
    first = wp.tid() * LANE_COUNT
    cell = first // layout.width
    first_slot = chunk.cell_template[cell] * layout.width + first - cell * layout.width
    lane = int(0)
    while lane < LANE_COUNT:
        row = layout.slot_row[first_slot + lane]
        if row >= 0:
            transform_shape(rows, chunk, cell, row, first + lane, instances)
        else:
            # An inverted box, beyond a plane's bounds: it overlaps nothing.
            empty = wp.vec3f(INFINITE, INFINITE, INFINITE) * wp.float32(2.0)
            set_bounds(instances.bound, first + lane, empty, wp.float32(0.0), empty, -empty)
        lane += 1
