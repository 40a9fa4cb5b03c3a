"""Contacts of deformable objects with themselves between recorded frames: the rows of the group `self_sweep`.

The pairs, their exclusions and their order are those of the contacts in frames (`self_contacts`). A pair is a candidate
if the boxes of its elements, whose corners move in straight lines, overlap at any time of the step. The candidates are
counted before they are written, and each is then advanced through its step by one thread.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch, transform_chunk
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.particles.cloud import CloudCells, position_at, position_in_cell, upload_cloud
from collidecli.engine.particles.elements import upload_elements
from collidecli.engine.particles.self_contacts import SelfCells, SelfScene, element_of, fit_element_boxes, partner_of
from collidecli.engine.particles.self_sweep import (
    SelfSteps,
    SelfTouch,
    count_self_steps,
    nearest_at,
    particles_of,
    step_of,
    sweep_self_steps,
    write_self_steps,
)
from collidecli.engine.particles.swept_points import TOUCH
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel import kernel, load_kernels
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.warp_internals import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.engine.sweep.steps import has_step
from collidecli.scene.tables import SELF_SWEEP, ContactGroup, GroupRows, consecutive_groups, groups_of_parts, no_rows


@wp.struct
class SelfSweepColumns32:
    """Columns of `SELF_SWEEP`, points in float32."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec4i]
    barycentric: wp.array[wp.vec4f]
    status: wp.array[wp.uint8]
    tunnel: wp.array[wp.uint8]
    enter: wp.array[Real]
    leave: wp.array[Real]
    least: wp.array[Real]
    least_bound: wp.array[Real]
    point0: wp.array[wp.vec3f]
    point1: wp.array[wp.vec3f]
    normal: wp.array[wp.vec3f]


@wp.struct
class SelfSweepColumns64:
    """Columns of `SELF_SWEEP`, points in float64."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec4i]
    barycentric: wp.array[wp.vec4f]
    status: wp.array[wp.uint8]
    tunnel: wp.array[wp.uint8]
    enter: wp.array[Real]
    leave: wp.array[Real]
    least: wp.array[Real]
    least_bound: wp.array[Real]
    point0: wp.array[wp.vec3d]
    point1: wp.array[wp.vec3d]
    normal: wp.array[wp.vec3f]


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def write_self_touches(
        scene: SelfScene,
        chunk: ChunkCells,
        cells: CloudCells,
        part: SelfCells,
        pair: wp.array[wp.vec2i],
        touch: wp.array[SelfTouch],
        end: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per pair: its row, unless it is clear; the addition of 0 turns -0 into 0.

        end: inclusive scan of the rows of the pairs.
        """
        index = wp.tid()
        row = end[index] - 1
        before = int(-1)
        if index > 0:
            before = end[index - 1] - 1
        if row == before:
            return
        found = touch[index]
        thread = pair[index][0]
        cell = thread // part.width
        element = element_of(scene, chunk, cells, part, thread)
        of = particles_of(element, partner_of(scene.elements, element, pair[index][1]))
        step = step_of(scene, chunk, cells, part, cell, element.kind, of)
        near = nearest_at(step, found.enter)
        first = position_in_cell(scene.cloud, cells, chunk, cell, of[0])
        first += found.enter * (position_at(scene.cloud, cells, chunk, cell, cell + part.cell_count, of[0]) - first)
        is_between = found.status == TOUCH and found.enter > Real(0.0) and found.leave < Real(1.0)
        columns.kind[row] = wp.uint8(element.kind)
        columns.indices[row] = of
        columns.barycentric[row] = wp.vec4f(near.weights) + wp.vec4f()
        columns.status[row] = wp.uint8(found.status)
        columns.tunnel[row] = wp.uint8(wp.where(is_between, 1, 0))
        columns.enter[row] = found.enter
        columns.leave[row] = found.leave
        columns.least[row] = found.least
        columns.least_bound[row] = found.least_bound
        columns.point0[row] = point_type(first + near.point0) + point_type()
        columns.point1[row] = point_type(first + near.point1) + point_type()
        columns.normal[row] = wp.vec3f(near.normal) + wp.vec3f()

    return write_self_touches


_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
WRITE_TOUCHES = {
    _FLOAT32: _compaction(SelfSweepColumns32, wp.vec3f),
    _FLOAT64: _compaction(SelfSweepColumns64, wp.vec3d),
}
_COLUMNS = {_FLOAT32: SelfSweepColumns32, _FLOAT64: SelfSweepColumns64}
_VECTORS = {
    (_FLOAT32, 3): wp.vec3f, (_FLOAT64, 3): wp.vec3d, (np.dtype(np.int32), 4): wp.vec4i, (_FLOAT32, 4): wp.vec4f
}  # fmt: skip


@cache
def _elements(float_type: np.dtype) -> dict[str, Any]:
    """Warp element type of each column."""
    types = {column.name: (column.dtype_for(float_type), column.width) for column in SELF_SWEEP.columns}
    return {
        name: wp.dtype_from_numpy(dtype) if width == 1 else _VECTORS[dtype, width]
        for name, (dtype, width) in types.items()
    }


@dataclass(frozen=True)
class SelfSweepStage:
    """Finds the touches of a model's deformable objects with themselves and each other between frames.

    Any number of threads may share it. limit: distance of a touch [m]. tolerance: they touch at this much more too [m].
    element_width: vertices and edges of the template with most.
    """

    device_model: DeviceModel
    scene: SelfScene
    limit: float
    tolerance: float
    element_width: int
    node_width: int
    float_type: np.dtype

    def kernels(self) -> list[wp.Kernel]:
        """None: they are loaded with the stage."""
        return []

    @property
    def group(self) -> ContactGroup:
        return SELF_SWEEP

    @property
    def width(self) -> int:
        """Vertices and edges of the template with most."""
        return self.element_width

    def sweep(self, batch: PoseBatch, memory_limit: int) -> GroupRows:
        """The rows of the steps that begin in the cells of a batch, within `memory_limit` bytes of scratch memory.

        Cells, and the elements of one cell, are halved until they fit. Raises ChunkTooLarge where that does not help.
        """
        return self._within(batch, memory_limit, 0, self.width)

    def _within(self, batch: PoseBatch, memory_limit: int, begin: int, end: int) -> GroupRows:
        try:
            workspace = Workspace(self.device_model.device, memory_limit, exact=True)
            chunk = transform_chunk(self.device_model, batch, workspace)
            return self.collide_part(chunk, batch, workspace, begin, end)[0]
        except ChunkTooLarge:
            if batch.cell_count == 1 and end - begin <= 1:
                raise
        if batch.cell_count > 1:
            half = batch.cell_count // 2
            first = replace(batch, cell_count=half)
            other = replace(batch, first_cell=batch.first_cell + half, cell_count=batch.cell_count - half)
            parts = [self._within(each, memory_limit, begin, end) for each in (first, other)]
            return consecutive_groups([{SELF_SWEEP.name: part} for part in parts])[SELF_SWEEP.name]
        middle = (begin + end) // 2
        parts = [self._within(batch, memory_limit, *each) for each in ((begin, middle), (middle, end))]
        return groups_of_parts([{SELF_SWEEP.name: part} for part in parts])[SELF_SWEEP.name]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the vertices and edges `begin` to `end` of each cell's, and the number of their candidates.

        Raises ChunkTooLarge when the scratch memory is too small.
        """
        is_step = has_step(self.device_model.model, batch)
        if not is_step.any():
            return no_rows(SELF_SWEEP, chunk.cell_count, self.float_type), 0
        cells, held = _upload_steps(self.device_model, batch, is_step, workspace)
        boxes = 2 * chunk.cell_count * self.node_width
        lower, upper = (workspace.array(f"element_{name}", boxes, wp.vec3f) for name in ("lower", "upper"))
        width = end - begin
        threads = chunk.cell_count * width
        found = workspace.array("self_found", threads, wp.int32)
        count = chunk.cell_count
        part = workspace.struct(SelfCells, begin=begin, width=width, cell_count=count, lower=lower, upper=upper)
        steps = workspace.struct(SelfSteps, limit=self.limit, tolerance=self.tolerance)
        marks = is_step.astype(np.int32)
        workspace.bind_host_array(SelfSteps, "has_step", marks, wp.int32)
        scene = [self.scene, chunk.cells, cells, part]
        workspace.launch(fit_element_boxes, 4 * chunk.cell_count, scene)
        workspace.launch(count_self_steps, threads, [*scene, steps, found])
        if threads * self.node_width > INDEX_LIMIT:  # the scan's int32 could overflow
            total = int(workspace.host(found, threads).sum(dtype=np.int64))
            if total > INDEX_LIMIT:
                raise ChunkTooLarge(total * 8)
        total = workspace.scan(found, threads)
        pair = workspace.array("self_pair", total, wp.vec2i)
        touch = workspace.array("self_touch", total, SelfTouch)
        kept = workspace.array("self_kept", total, wp.int32)
        workspace.launch(write_self_steps, threads if total else 0, [*scene, steps, found, pair])
        workspace.launch(sweep_self_steps, total, [*scene, steps, pair, touch, kept])
        rows = workspace.scan(kept, total)
        size = sum(column.width * column.dtype_for(self.float_type).itemsize for column in SELF_SWEEP.columns)
        workspace.check(rows * size)
        columns, arrays = workspace.table("self_sweep", _COLUMNS[self.float_type], rows, _elements(self.float_type))
        arguments = [*scene, pair, touch, kept, columns]
        workspace.launch(WRITE_TOUCHES[self.float_type], total if rows else 0, arguments)
        counts = np.zeros(chunk.cell_count, np.int64)
        if rows:
            ends = workspace.host(found, threads)[width - 1 :: width].astype(np.int64)
            ends = np.concatenate([[0], workspace.host(kept, total)])[ends]
            counts = np.diff(ends, prepend=0).astype(np.int64)
        # Copies, since the next chunk reuses the scratch.
        copies = {name: workspace.copied(array, rows) for name, array in arrays.items()}
        workspace.finish()
        del held, marks  # all launches are complete
        return GroupRows(counts, copies), total


def _upload_steps(
    device_model: DeviceModel, batch: PoseBatch, is_step: np.ndarray, workspace: Workspace
) -> tuple[CloudCells, tuple[np.ndarray, ...]]:
    """The positions of cells and of their next frames, and the host arrays that must live as long.

    is_step: bool[cells], which cells have a next frame; the others have their own positions in its place.
    """
    assert batch.particle_position is not None
    model = device_model.model
    frames, recorded_worlds, particles = batch.particle_position.shape[:3]
    frame, world = np.divmod(batch.first_cell + np.arange(batch.cell_count), model.world_count)
    frame = frame - batch.first_frame
    frame = np.concatenate([frame, frame + is_step]) if frames > 1 else np.zeros(2 * len(frame), np.int64)
    world = np.tile(world, 2) if recorded_worlds > 1 else np.zeros_like(frame)
    low, high = int(frame.min()), int(frame.max())
    starts = (((frame - low) * recorded_worlds + world) * particles).astype(np.int64)
    used = np.ascontiguousarray(batch.particle_position[low : high + 1], np.float64).reshape(-1, 3)
    shared = recorded_worlds == 1 and model.world_shift is not None
    held = workspace.struct(CloudCells, shared=int(shared))
    workspace.bind_host_array(CloudCells, "position", used, Vec3)
    workspace.bind_host_array(CloudCells, "first", starts, wp.int64)
    return held, (used, starts)


def self_sweep_stage(
    device_model: DeviceModel,
    limit: float,
    rings: int,
    rest_distance: float,
    tolerance: float,
    float_type: np.dtype,
) -> SelfSweepStage:
    """The sweep of a model's objects with themselves. limit, rings, rest_distance: see `self_contacts_of`."""
    uploaded = upload_elements(device_model, rings)
    scene = SelfScene()
    scene.cloud, scene.elements = upload_cloud(device_model), uploaded.elements
    scene.node_width, scene.distance, scene.rest_distance = uploaded.node_width, limit + tolerance, rest_distance
    float_type = np.dtype(float_type)
    queue = [] if has_own_memory(device_model.device) else [execute_steps]
    own = [fit_element_boxes, WRITE_TOUCHES[float_type], count_self_steps, write_self_steps, sweep_self_steps]
    load_kernels([*queue, *own], device_model.device)
    return SelfSweepStage(device_model, scene, limit, tolerance, uploaded.width, uploaded.node_width, float_type)
