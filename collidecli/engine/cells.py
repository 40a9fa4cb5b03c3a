"""From body poses to the pose and the bounds of every shape in every cell of a chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.device_model import Layout, ShapeRows
from collidecli.engine.geometry.bounds import bounding_ball, write_bounds
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
    """Every shape of every cell of a chunk. ball: centre and radius of its bounding sphere, the radius rounded up."""

    pose: wp.array[Pose]
    ball: wp.array[wp.vec4f]
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@wp.struct
class ChunkCells:
    """The cells of a chunk. cell_template: the template of each. first_pose: where each cell's body poses begin."""

    cell_template: wp.array[wp.int32]
    first_pose: wp.array[wp.int32]
    body_pose: wp.array[Pose]


def chunk_cells(batch: PoseBatch, world_template: np.ndarray, device: wp.Device) -> ChunkCells:
    """Puts a batch on a device; on the CPU its poses are used where they are."""
    _, recorded_worlds, bodies = batch.body_pose.shape[:3]
    number = np.arange(batch.first_cell, batch.first_cell + batch.cell_count)
    frame, world = np.divmod(number, len(world_template))
    recorded_world = world if recorded_worlds > 1 else 0
    first_pose = ((frame - batch.first_frame) * recorded_worlds + recorded_world) * bodies
    poses = np.ascontiguousarray(batch.body_pose, np.float64).reshape(-1, 7)
    chunk = ChunkCells()
    chunk.cell_template = wp.array(world_template[world].astype(np.int32), dtype=wp.int32, device=device)
    chunk.first_pose = wp.array(first_pose.astype(np.int32), dtype=wp.int32, device=device)
    chunk.body_pose = wp.array(poses if len(poses) else np.zeros((1, 7)), dtype=Pose, device=device, copy=False)
    return chunk


@wp.func
def row_of(chunk: ChunkCells, layout: Layout, instance: int) -> int:
    """Shape row of an instance; -1 for a place that its template does not use."""
    cell = instance // layout.width
    return layout.place_row[chunk.cell_template[cell] * layout.width + instance - cell * layout.width]


@wp.func
def body_pose_of(chunk: ChunkCells, cell: int, body: int) -> Pose:
    """World pose of a body in a cell."""
    return chunk.body_pose[chunk.first_pose[cell] + body]


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
        pose = body_pose_of(chunk, instance // layout.width, body) * pose
    instances.pose[instance] = pose
    instances.ball[instance] = bounding_ball(wp.transform_get_translation(pose), rows.radius[row])
    write_bounds(rows.type[row], rows.size[row], pose, instances.lower, instances.upper, instance)
