"""From body poses to the pose and the bounds of every shape in every cell of a chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.device_model import Layout, ShapeRows
from collidecli.engine.geometry.bounds import lower_bound, upper_bound
from collidecli.engine.geometry.real import Pose


@dataclass(frozen=True)
class PoseBatch:
    """Body poses of a chunk of consecutive cells.

    first_cell: cell number of the first; cell = frame * world_count + world.
    cell_count: cells in the chunk.
    first_frame: frame of body_pose[0].
    body_pose: float64[frames, recorded worlds, B, 7], xyzw; one recorded world serves all.
    """

    first_cell: int
    cell_count: int
    first_frame: int
    body_pose: np.ndarray


@wp.struct
class Instances:
    """Every shape of every cell of a chunk."""

    pose: wp.array[Pose]
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@wp.struct
class ChunkCells:
    """Which cells a chunk holds and where their body poses stand."""

    first_cell: wp.int64
    first_frame: int
    recorded_world_count: int
    body_count: int
    body_pose: wp.array[Pose]


@wp.func
def world_of(chunk: ChunkCells, layout: Layout, cell: int) -> int:
    return int((chunk.first_cell + wp.int64(cell)) % wp.int64(layout.world_count))


@wp.func
def template_of(chunk: ChunkCells, layout: Layout, cell: int) -> int:
    return layout.world_template[world_of(chunk, layout, cell)]


@wp.func
def row_of(chunk: ChunkCells, layout: Layout, instance: int) -> int:
    """Shape row of an instance; -1 for a place that its template does not use."""
    cell = instance // layout.width
    template = template_of(chunk, layout, cell)
    return layout.place_row[template * layout.width + instance - cell * layout.width]


@wp.func
def body_pose_of(chunk: ChunkCells, layout: Layout, cell: int, body: int) -> Pose:
    """World pose of a body in a cell."""
    number = chunk.first_cell + wp.int64(cell)
    frame = int(number / wp.int64(layout.world_count)) - chunk.first_frame
    world = int(0)
    if chunk.recorded_world_count > 1:
        world = int(number % wp.int64(layout.world_count))
    return chunk.body_pose[(frame * chunk.recorded_world_count + world) * chunk.body_count + body]


@wp.kernel(module="unique", enable_backward=False)
def place_shapes(rows: ShapeRows, layout: Layout, chunk: ChunkCells, instances: Instances):
    """One thread an instance: its world pose and bounds."""
    instance = wp.tid()
    row = row_of(chunk, layout, instance)
    if row < 0:
        return
    pose = rows.pose[row]
    body = rows.body[row]
    if body >= 0:
        pose = body_pose_of(chunk, layout, instance // layout.width, body) * pose
    instances.pose[instance] = pose
    shape_type = rows.type[row]
    size = rows.size[row]
    instances.lower[instance] = lower_bound(shape_type, size, pose)
    instances.upper[instance] = upper_bound(shape_type, size, pose)
