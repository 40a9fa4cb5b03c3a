"""The particles of a model on a device, and their positions in the cells of a chunk."""

from __future__ import annotations

from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.particles import EVERY_TEMPLATE, Particles, canonical_triangles


@wp.struct
class Cloud:
    """Particles, by row.

    width: vertices, edges and faces of the template that has most. element: their particles in each template, `width` a
    template: vertices, (row, -1, -1); edges, (row, row, -1); faces; each in ascending order; -1 beyond.
    moves: 1 for particles that move with the origin of their world.
    body: row of the body that each moves with, or -1. object_class, shape_class, class_table, class_count: filter
    classes of particles and shapes, and the pairs that may touch, `class_count` a row.
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

    first: index of each cell's first particle; of steps then that of its next frame, its own where there is none.
    shared: 1 where worlds with different origins have the positions of one.
    """

    position: wp.array[Vec3]
    first: wp.array[wp.int64]
    shared: int


@wp.func
def position_in_cell(cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, particle: int) -> Vec3:
    """World position of a particle in a cell."""
    point = cells.position[int(cells.first[cell]) + particle]
    if cells.shared != 0 and cloud.moves[particle] != 0:
        return wp.transform_point(chunk.world_shift[chunk.cell_world[cell]], point)
    return point


@wp.func
def position_at(cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, entry: int, particle: int) -> Vec3:
    """World position of a particle in a cell, or in its next frame, by the entry of `CloudCells.first`."""
    point = cells.position[int(cells.first[entry]) + particle]
    if cells.shared != 0 and cloud.moves[particle] != 0:
        return wp.transform_point(chunk.world_shift[chunk.cell_world[cell]], point)
    return point


@wp.func
def may_touch(cloud: Cloud, particle: int, shape: int, body: int) -> bool:
    """Whether the filters let a particle touch a shape of a body."""
    if body >= 0 and cloud.body[particle] == body:
        return False
    row = cloud.object_class[particle] * cloud.class_count + cloud.shape_class[shape]
    return cloud.class_table[row] != wp.uint8(0)


def _put(device: wp.Device, values: np.ndarray, dtype: object) -> wp.array:
    # Warp passes no array of length zero by pointer: one unused element instead.
    filled = values if len(values) else np.zeros((1, *values.shape[1:]), values.dtype)
    return wp.array(np.ascontiguousarray(filled), dtype=dtype, device=device)


def _template_elements(particles: Particles, template: int, with_all: bool) -> np.ndarray:
    """int32[n, 3]: active vertices of a template, and with `with_all` edges and faces of active vertices."""
    rows = particles.of_template(template)
    rows = rows[particles.active[rows]]
    parts = [rows[:, None]]
    if with_all:
        held = np.zeros(len(particles), bool)
        held[rows] = True
        parts += [each[held[each].all(axis=1)] for each in (particles.edge, canonical_triangles(particles.triangle))]
    filled = [np.pad(each, ((0, 0), (0, 3 - each.shape[1])), constant_values=-1) for each in parts]
    return np.concatenate(filled).astype(np.int32)


def upload_cloud(device_model: DeviceModel, with_all: bool = False) -> Cloud:
    """The particles of a model on its device. with_all: with edges and faces."""
    particles, put = device_model.model.particles, partial(_put, device_model.device)
    held = [_template_elements(particles, template, with_all) for template in range(device_model.template_count)]
    cloud = Cloud()
    cloud.width = max(1, *(len(each) for each in held))
    padded = np.full((len(held), cloud.width, 3), -1, np.int32)
    for template, each in enumerate(held):
        padded[template, : len(each)] = each
    cloud.element = put(padded.reshape(-1, 3), wp.vec3i)
    cloud.radius = put(particles.radius, Real)
    cloud.moves = put((particles.template[particles.owner] != EVERY_TEMPLATE).astype(np.int32), wp.int32)
    cloud.body = put(particles.body, wp.int32)
    cloud.object_class = put(particles.object_class[particles.owner], wp.int32)
    cloud.shape_class = put(particles.shape_class, wp.int32)
    cloud.class_count = particles.class_table.shape[1]
    cloud.class_table = put(particles.class_table.astype(np.uint8).ravel(), wp.uint8)
    return cloud


def upload_positions(
    device_model: DeviceModel, batch: PoseBatch, chunk: Chunk, workspace: Workspace
) -> tuple[CloudCells, tuple[np.ndarray, ...]]:
    """The positions of a chunk, and the host arrays that must live as long; on the CPU they are not copied."""
    assert batch.particle_position is not None
    worlds = len(device_model.model.world_template)
    frames, recorded_worlds, particles = batch.particle_position.shape[:3]
    skipped, first = divmod(batch.first_cell - batch.first_frame * worlds, worlds)
    frame, world = np.divmod(np.arange(first, first + chunk.cell_count), worlds)
    if frames == 1:
        skipped, frame = 0, np.zeros_like(frame)
    starts = ((frame * recorded_worlds + (world if recorded_worlds > 1 else 0)) * particles).astype(np.int64)
    used = batch.particle_position[skipped : skipped + int(frame[-1]) + 1]
    used = np.ascontiguousarray(used, np.float64).reshape(-1, 3)
    shared = recorded_worlds == 1 and device_model.model.world_shift is not None
    held = workspace.struct(CloudCells, shared=int(shared))
    workspace.bind_host_array(CloudCells, "position", used, Vec3)
    workspace.bind_host_array(CloudCells, "first", starts, wp.int64)
    return held, (used, starts)


@kernel
def end_cells(
    width: int,
    cell_count: int,
    candidate_count: int,
    candidates: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """One thread per candidate: the last of a cell writes the contacts' end of its cell and of empty cells after it.

    candidates: ordered by cell; the cell of each is its first number / width. end: inclusive scan of the contacts per
    candidate.
    """
    thread = wp.tid()
    cell = candidates[thread][0] // width
    next_cell = cell_count
    if thread + 1 < candidate_count:
        next_cell = candidates[thread + 1][0] // width
    for c in range(cell, next_cell):
        cell_end[c] = end[thread]
    if thread == 0:
        for c in range(cell):
            cell_end[c] = 0
