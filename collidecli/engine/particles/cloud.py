"""Particles of a model and their positions in cells."""

from __future__ import annotations

from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.particles import EVERY_TEMPLATE, Particles, canonical_triangles


@wp.struct
class Cloud:
    """Particles, by row.

    width: vertices, edges and faces of the template that has most. element: their particles in each
    template, `width` a template: vertices, (row, -1, -1); edges, (row, row, -1); faces; each in
    ascending order; -1 beyond. moves: 1 for particles that move with the origin of their world.
    body: row of the body that each moves with, or -1. object_class, shape_class, class_table,
    class_count: filter classes of particles and shapes, and the pairs that may touch, `class_count`
    a row.
    """

    width: int
    element: wp.array[wp.vec3i]
    radius: wp.array[Real]
    moves: wp.array[wp.int32]
    body: wp.array[wp.int32]
    object_class: wp.array[wp.int32]
    shape_class: wp.array[wp.int32]
    class_count: int
    class_table: wp.array[wp.uint8]


@wp.struct
class CloudCells:
    """Recorded positions of the particles in the frames of a chunk.

    first: index of each cell's first particle; of steps then that of its next frame, its own where
    there is none. shared: 1 where worlds with different origins have the positions of one.
    """

    position: wp.array[Vec3]
    first: wp.array[wp.int64]
    shared: int


@wp.func
def position_at(
    cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, entry: int, particle: int
) -> Vec3:
    """World position of a particle in a cell, or in its next frame, by the entry of
    `CloudCells.first`."""
    point = cells.position[int(cells.first[entry]) + particle]
    if cells.shared != 0 and cloud.moves[particle] != 0:
        return wp.transform_point(chunk.world_shift[chunk.cell_world[cell]], point)
    return point


@wp.func
def position_in_cell(
    cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, particle: int
) -> Vec3:
    """World position of a particle in a cell."""
    return position_at(cloud, cells, chunk, cell, cell, particle)


@wp.func
def may_touch(cloud: Cloud, particle: int, shape: int, body: int) -> bool:
    """Whether the filters let a particle touch a shape of a body."""
    if body >= 0 and cloud.body[particle] == body:
        return False
    row = cloud.object_class[particle] * cloud.class_count + cloud.shape_class[shape]
    return cloud.class_table[row] != wp.uint8(0)


def active_items(particles: Particles, template: int, items: np.ndarray | None) -> np.ndarray:
    """int32[n, k]: the items, rows of k particles, of which all are active in a template; None is
    each particle."""
    rows = particles.of_template(template)
    rows = rows[particles.active[rows]]
    if items is None:
        return rows[:, None]
    is_active = np.zeros(len(particles), bool)
    is_active[rows] = True
    return items[is_active[items].all(axis=1)]


def upload_cloud(device_model: DeviceModel, with_all: bool = False) -> Cloud:
    """The particles of a model on its device. with_all: with edges and faces."""
    particles = device_model.model.particles
    put = partial(device_array, device=device_model.device)
    items = (None, particles.edge, canonical_triangles(particles.triangle)) if with_all else (None,)
    of_templates = []
    for template in range(device_model.template_count):
        parts = [active_items(particles, template, rows) for rows in items]
        filled = [
            np.pad(rows, ((0, 0), (0, 3 - rows.shape[1])), constant_values=-1) for rows in parts
        ]
        of_templates.append(np.concatenate(filled))
    cloud = Cloud()
    cloud.width = max(1, *(len(rows) for rows in of_templates))
    padded = np.full((len(of_templates), cloud.width, 3), -1, np.int32)
    for template, rows in enumerate(of_templates):
        padded[template, : len(rows)] = rows
    cloud.element = put(padded.reshape(-1, 3), wp.vec3i)
    cloud.radius = put(particles.radius, Real)
    cloud.moves = put(
        (particles.template[particles.owner] != EVERY_TEMPLATE).astype(np.int32), wp.int32
    )
    cloud.body = put(particles.body, wp.int32)
    cloud.object_class = put(particles.object_class[particles.owner], wp.int32)
    cloud.shape_class = put(particles.shape_class, wp.int32)
    cloud.class_count = particles.class_table.shape[1]
    cloud.class_table = put(particles.class_table.astype(np.uint8).ravel(), wp.uint8)
    return cloud


def upload_positions(
    device_model: DeviceModel,
    batch: PoseBatch,
    workspace: Workspace,
    is_step: np.ndarray | None = None,
) -> tuple[CloudCells, tuple[np.ndarray, ...]]:
    """The positions of a chunk, and the host arrays that must live as long; on the CPU they are not
    copied. is_step: bool[cells], which cells have a next frame, whose positions follow; the others
    have their own there."""
    assert batch.particle_position is not None
    model = device_model.model
    frames, recorded_worlds, particles = batch.particle_position.shape[:3]
    frame, world = np.divmod(batch.first_cell + np.arange(batch.cell_count), model.world_count)
    frame = frame - batch.first_frame
    if is_step is not None:
        frame = np.concatenate([frame, frame + is_step])
        world = np.tile(world, 2)
    if frames == 1:
        frame = np.zeros_like(frame)
    first_frame = int(frame.min())
    of_world = world if recorded_worlds > 1 else 0
    starts = (((frame - first_frame) * recorded_worlds + of_world) * particles).astype(np.int64)
    used = batch.particle_position[first_frame : int(frame.max()) + 1]
    used = np.ascontiguousarray(used, np.float64).reshape(-1, 3)
    assert len(starts) == 0 or int(starts.max()) + particles <= len(used)
    shared = recorded_worlds == 1 and model.world_shift is not None
    cells = workspace.struct(CloudCells, shared=int(shared))
    workspace.bind_host_array(CloudCells, "position", used, Vec3)
    workspace.bind_host_array(CloudCells, "first", starts, wp.int64)
    return cells, (used, starts)
