"""From staged contacts to the columns of the contact set, in canonical order."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.broad_phase.candidate import pair_limits
from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import ChunkCells, Instances, PoseBatch, body_pose_of, row_of
from collidecli.engine.device_model import Layout, ShapeRows
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.narrow_phase.staging import Staging
from collidecli.engine.workspace import Workspace
from collidecli.model.contacts import RIGID_COLUMNS, ContactBlock


@wp.kernel(module="unique", enable_backward=False)
def count_cells(
    width: int,
    cell_count: int,
    candidate_count: int,
    candidates: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """One thread a candidate: if it is the last of its cell, the contacts up to the end of each cell before the next."""
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


@wp.func
def offset_in_body(rows: ShapeRows, chunk: ChunkCells, cell: int, row: int, point_world: Vec3) -> wp.vec3f:
    """A world point in the frame of the shape's body, in world for a static shape."""
    body = rows.body[row]
    if body < 0:
        return wp.vec3f(point_world)
    pose = body_pose_of(chunk, cell, body)
    offset = point_world - wp.transform_get_translation(pose)
    return wp.vec3f(wp.quat_rotate_inv(wp.transform_get_rotation(pose), offset))


def compaction_kernel(point_type: Any) -> wp.Kernel:
    """The kernel that writes the columns; `point_type` is vec3f or vec3d, as the motion was recorded."""

    @wp.kernel(module="unique", enable_backward=False)
    def compact(
        rows: ShapeRows,
        layout: Layout,
        chunk: ChunkCells,
        instances: Instances,
        candidates: wp.array[wp.vec2i],
        first: wp.array[wp.int32],
        stride: wp.array[wp.int32],
        end: wp.array[wp.int32],
        staged: Staging,
        shape0: wp.array[wp.int32],
        shape1: wp.array[wp.int32],
        distance: wp.array[wp.float32],
        normal: wp.array[wp.vec3f],
        point0: wp.array[point_type],
        point1: wp.array[point_type],
        offset0: wp.array[wp.vec3f],
        offset1: wp.array[wp.vec3f],
        feature0: wp.array[wp.int32],
        feature1: wp.array[wp.int32],
        kind: wp.array[wp.uint8],
    ):
        """One thread a candidate: its contacts, at its own offset, in world."""
        thread = wp.tid()
        slot = int(0)
        if thread > 0:
            slot = end[thread - 1]
        count = end[thread] - slot
        if count == 0:
            return
        pair = candidates[thread]
        row0 = row_of(chunk, layout, pair[0])
        row1 = row_of(chunk, layout, pair[1])
        margin = pair_limits(rows, row0, row1).margin
        swapped = rows.type[row0] > rows.type[row1]
        pose_a_to_world = instances.pose[pair[0]]
        if swapped:
            pose_a_to_world = instances.pose[pair[1]]
        cell = pair[0] // layout.width
        for i in range(count):
            contact = staged.contact[first[thread] + i * stride[thread]]
            normal_world = wp.transform_vector(pose_a_to_world, contact.normal)
            point_a = wp.transform_point(pose_a_to_world, contact.point)
            point_b = point_a + contact.separation * normal_world
            at = slot + i
            shape0[at] = row0
            shape1[at] = row1
            distance[at] = wp.float32(contact.separation - margin)
            kind[at] = wp.uint8(contact.kind)
            if swapped:
                normal[at] = wp.vec3f(-normal_world)
                point0[at] = point_type(point_b)
                point1[at] = point_type(point_a)
                offset0[at] = offset_in_body(rows, chunk, cell, row0, point_b)
                offset1[at] = offset_in_body(rows, chunk, cell, row1, point_a)
                feature0[at] = contact.feature_b
                feature1[at] = contact.feature_a
            else:
                normal[at] = wp.vec3f(normal_world)
                point0[at] = point_type(point_a)
                point1[at] = point_type(point_b)
                offset0[at] = offset_in_body(rows, chunk, cell, row0, point_a)
                offset1[at] = offset_in_body(rows, chunk, cell, row1, point_b)
                feature0[at] = contact.feature_a
                feature1[at] = contact.feature_b

    return compact


COMPACT = {
    np.dtype(np.float32): compaction_kernel(wp.vec3f),
    np.dtype(np.float64): compaction_kernel(wp.vec3d),
}
_VECTOR = {np.dtype(np.float32): wp.vec3f, np.dtype(np.float64): wp.vec3d}


def row_bytes(float_type: np.dtype) -> int:
    """Bytes of one contact in all columns."""
    return sum(column.dtype_for(float_type).itemsize * column.width for column in RIGID_COLUMNS)


def compact_contacts(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    batch: PoseBatch,
    instances: Instances,
    candidates: wp.array,
    candidate_count: int,
    count: wp.array,
    first: wp.array,
    stride: wp.array,
    staged: Staging,
    float_type: np.dtype,
    workspace: Workspace,
) -> ContactBlock:
    """The chunk's contacts as host arrays of their own, exactly sized."""
    device, cell_count = workspace.device, batch.cell_count
    total = scan_counts(count, candidate_count)
    workspace.check(total * row_bytes(float_type))
    cell_end = workspace.array("cell_end", cell_count, wp.int32)
    if candidate_count:
        arguments = [layout.width, cell_count, candidate_count, candidates, count, cell_end]
        wp.launch(count_cells, candidate_count, arguments, device=device)
    else:
        cell_end.zero_()
    columns = {}
    for column in RIGID_COLUMNS:
        dtype = column.dtype_for(float_type)
        scalar = wp.dtype_from_numpy(dtype)
        columns[column.name] = wp.empty(
            total, dtype=scalar if column.width == 1 else _VECTOR[np.dtype(dtype)], device=device
        )
    arguments = [rows, layout, chunk, instances, candidates, first, stride, count, staged, *columns.values()]
    wp.launch(COMPACT[np.dtype(float_type)], candidate_count, arguments, device=device)
    ends = cell_end[:cell_count].numpy()
    return ContactBlock(
        first_cell=batch.first_cell,
        cell_counts=np.diff(ends, prepend=0).astype(np.int64),
        columns={name: values.numpy() for name, values in columns.items()},
    )
