"""The particles of a model on a device, their positions in the cells of a chunk, and stages that find their pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch
from collidecli.engine.contacts.compaction import RowWriter, count_cells
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Real, Vec3, device_array
from collidecli.engine.runtime.warp_internals import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.particles import EVERY_TEMPLATE, Particles, canonical_triangles
from collidecli.scene.tables import ContactGroup, GroupRows, no_rows


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
def position_at(cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, entry: int, particle: int) -> Vec3:
    """World position of a particle in a cell, or in its next frame, by the entry of `CloudCells.first`."""
    point = cells.position[int(cells.first[entry]) + particle]
    if cells.shared != 0 and cloud.moves[particle] != 0:
        return wp.transform_point(chunk.world_shift[chunk.cell_world[cell]], point)
    return point


@wp.func
def position_in_cell(cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, particle: int) -> Vec3:
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
    """int32[n, k]: the items, rows of k particles, of which all are active in a template; None is each particle."""
    rows = particles.of_template(template)
    rows = rows[particles.active[rows]]
    if items is None:
        return rows[:, None]
    held = np.zeros(len(particles), bool)
    held[rows] = True
    return items[held[items].all(axis=1)]


def _template_elements(particles: Particles, template: int, with_all: bool) -> np.ndarray:
    """int32[n, 3]: active vertices of a template, and with `with_all` edges and faces of active vertices."""
    items = (None, particles.edge, canonical_triangles(particles.triangle)) if with_all else (None,)
    parts = [active_items(particles, template, each) for each in items]
    filled = [np.pad(each, ((0, 0), (0, 3 - each.shape[1])), constant_values=-1) for each in parts]
    return np.concatenate(filled).astype(np.int32)


def upload_cloud(device_model: DeviceModel, with_all: bool = False) -> Cloud:
    """The particles of a model on its device. with_all: with edges and faces."""
    particles, put = device_model.model.particles, partial(device_array, device=device_model.device)
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
    device_model: DeviceModel, batch: PoseBatch, workspace: Workspace, is_step: np.ndarray | None = None
) -> tuple[CloudCells, tuple[np.ndarray, ...]]:
    """The positions of a chunk, and the host arrays that must live as long; on the CPU they are not copied.

    is_step: bool[cells], which cells have a next frame, whose positions are wanted too; the others have their own in
    its place.
    """
    assert batch.particle_position is not None
    model = device_model.model
    frames, recorded_worlds, particles = batch.particle_position.shape[:3]
    frame, world = np.divmod(batch.first_cell + np.arange(batch.cell_count), model.world_count)
    frame = frame - batch.first_frame
    if is_step is not None:
        frame, world = np.concatenate([frame, frame + is_step]), np.tile(world, 2)
    if frames == 1:
        frame = np.zeros_like(frame)
    first_frame = int(frame.min())
    of_world = world if recorded_worlds > 1 else 0
    starts = (((frame - first_frame) * recorded_worlds + of_world) * particles).astype(np.int64)
    used = batch.particle_position[first_frame : int(frame.max()) + 1]
    used = np.ascontiguousarray(used, np.float64).reshape(-1, 3)
    shared = recorded_worlds == 1 and model.world_shift is not None
    cells = workspace.struct(CloudCells, shared=int(shared))
    workspace.bind_host_array(CloudCells, "position", used, Vec3)
    workspace.bind_host_array(CloudCells, "first", starts, wp.int64)
    return cells, (used, starts)


# Pairs of elements of deformable objects and items near them: traversals of trees, and the rows of their groups.
#
# A traversal is a kernel of one thread per element and cell that is launched twice. Its last arguments are `end`,
# `pair` and `writes`: at first it writes the number of an element's pairs to `end`, and with `writes` 1, when `end` is
# the inclusive scan of these numbers, the pairs themselves, (thread, item), ascending by item.


@wp.func
def insert_pair(pair: wp.array[wp.vec2i], first: int, end: int, thread: int, item: int):
    """Inserts (thread, item) among the pairs `first` to `end` - 1, which are ordered by item."""
    place = int(end)
    while place > first and pair[wp.max(place - 1, 0)][1] > item:
        pair[place] = pair[place - 1]
        place -= 1
    pair[place] = wp.vec2i(thread, item)


@dataclass(frozen=True)
class Inputs:
    """Arguments of all kernels of a stage in a chunk. most: largest number of pairs of an element.

    host: arrays that must live until all launches are complete.
    """

    arguments: list[Any]
    most: int
    host: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class PairRows:
    """Results of the kernels of the pairs of a chunk. arguments: further ones of the kernel that writes rows, which is
    launched for each pair. count: of rows. end: inclusive scan of the rows of each pair, None where each has one."""

    arguments: list[Any]
    count: int
    end: wp.array | None = None


class ElementStage:
    """Finds the rows of a group from pairs of an element of the particles and an item near it: counted by a traversal,
    written, evaluated, and written to columns. Any number of threads may share it.

    group, writers, traversal: set by each subclass. elements: of the template that has most.
    """

    group: ContactGroup
    writers: Mapping[np.dtype, RowWriter]
    traversal: wp.Kernel

    def __init__(self, device_model: DeviceModel, elements: int, float_type: np.dtype) -> None:
        self.device_model, self.width, self.float_type = device_model, elements, np.dtype(float_type)

    def inputs(self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int) -> Inputs | None:
        """The arguments of the kernels for `width` elements of each cell's from `begin` on; None without rows."""
        raise NotImplementedError

    def evaluate(self, arguments: list[Any], pair: wp.array, count: int, workspace: Workspace) -> PairRows:
        """The rows of the pairs that were found."""
        raise NotImplementedError

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        return [count_cells, self.writers[self.float_type].kernel, self.traversal]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the elements `begin` to `end` of each cell's, and the number of pairs.

        Raises ChunkTooLarge when the scratch memory is too small.
        """
        width = end - begin
        inputs = self.inputs(chunk, batch, workspace, begin, width)
        if inputs is None:
            return no_rows(self.group, chunk.cell_count, self.float_type), 0
        arguments, threads = inputs.arguments, chunk.cell_count * width
        pair_end, pair, pairs = self._pairs(inputs, threads, workspace)
        rows = self.evaluate(arguments, pair, pairs, workspace)
        writer = self.writers[self.float_type]
        columns = writer.write(pairs, [*arguments, pair, *rows.arguments], rows.count, workspace)
        if rows.end is None:
            ends = workspace.every(pair_end, threads, width)
        else:
            cell_end = workspace.array("element_cell_end", chunk.cell_count, wp.int32)
            workspace.launch(count_cells, chunk.cell_count, [pair_end, width, rows.end, cell_end])
            ends = workspace.host(cell_end, chunk.cell_count)
        counts = np.diff(ends, prepend=0).astype(np.int64)
        workspace.finish()
        del inputs  # all launches are complete
        return GroupRows(counts, columns), pairs

    def _pairs(self, inputs: Inputs, threads: int, workspace: Workspace) -> tuple[wp.array, wp.array, int]:
        """Inclusive scan of the pairs of each thread, the pairs, and their number."""
        end = workspace.array("element_end", threads, wp.int32)
        pair = workspace.array("element_pair", 1, wp.vec2i)
        workspace.launch(self.traversal, threads, [*inputs.arguments, end, pair, 0])
        if threads * inputs.most > INDEX_LIMIT:  # the scan's int32 could overflow
            total = int(workspace.host(end, threads).sum(dtype=np.int64))
            if total > INDEX_LIMIT:
                raise ChunkTooLarge(total * 8)
        total = workspace.scan(end, threads)
        pair = workspace.array("element_pair", total, wp.vec2i)
        workspace.launch(self.traversal, threads if total else 0, [*inputs.arguments, end, pair, 1])
        return end, pair, total
