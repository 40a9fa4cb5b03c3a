"""Compaction of a chunk's emitted contacts to the columns of the contact set, in canonical order and world frame."""

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, body_pose_of, cell_of
from collidecli.engine.contact_record import (
    ANCHOR,
    Candidates,
    ContactBuffer,
    ContactRecord,
    deepest_to_front,
    sort_by_features,
)
from collidecli.engine.device_model import DeviceModel, Layout, Margins, ShapeRows
from collidecli.engine.geometry.real import Pose, Vec3
from collidecli.engine.pair_filter import pair_limits
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contacts import FRICTION_SCALE, RIGID_COLUMNS, ContactBlock


@kernel
def count_cells(candidate_end: wp.array[wp.int32], end: wp.array[wp.int32], cell_end: wp.array[wp.int32]):
    """One thread per cell: the end of its contacts, from the ends of its candidates and of their contacts."""
    cell = wp.tid()
    last = candidate_end[cell] - 1
    cell_end[cell] = 0
    if last >= 0:
        cell_end[cell] = end[last]


@wp.func
def offset_in_body(rows: ShapeRows, chunk: ChunkCells, cell: int, row: int, point_world: Vec3) -> wp.vec3f:
    """A world point in the frame of the shape's body; unchanged for a static shape."""
    body = rows.body[row]
    if body < 0:
        return wp.vec3f(point_world)
    pose = body_pose_of(chunk, cell, body)
    offset = point_world - wp.transform_get_translation(pose)
    return wp.vec3f(wp.quat_rotate_inv(wp.transform_get_rotation(pose), offset))


@wp.struct
class WorldContact:
    """A contact in world, shape0 and shape1 in the order of rows."""

    normal: Vec3
    point0: Vec3
    point1: Vec3
    feature0: int
    feature1: int


@wp.func
def in_world(contact: ContactRecord, pose_a_to_world: Pose, swapped: bool) -> WorldContact:
    """An emitted contact in world; with `swapped` b is shape0."""
    found = WorldContact()
    found.normal = wp.transform_vector(pose_a_to_world, contact.normal)
    found.point0 = wp.transform_point(pose_a_to_world, contact.point)
    found.point1 = found.point0 + contact.separation * found.normal
    found.feature0 = contact.feature_a
    found.feature1 = contact.feature_b
    if swapped:
        point_b = found.point1
        found.point1 = found.point0
        found.point0 = point_b
        found.normal = -found.normal
        found.feature0 = contact.feature_b
        found.feature1 = contact.feature_a
    return found


@wp.struct
class Columns32:
    """The columns of the contact set (scene.contacts.RIGID_COLUMNS), points in float32."""

    shape0: wp.array[wp.int32]
    shape1: wp.array[wp.int32]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point0: wp.array[wp.vec3f]
    point1: wp.array[wp.vec3f]
    offset0: wp.array[wp.vec3f]
    offset1: wp.array[wp.vec3f]
    feature0: wp.array[wp.int32]
    feature1: wp.array[wp.int32]
    kind: wp.array[wp.uint8]


@wp.struct
class Columns64:
    """The columns of the contact set (scene.contacts.RIGID_COLUMNS), points in float64."""

    shape0: wp.array[wp.int32]
    shape1: wp.array[wp.int32]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point0: wp.array[wp.vec3d]
    point1: wp.array[wp.vec3d]
    offset0: wp.array[wp.vec3f]
    offset1: wp.array[wp.vec3f]
    feature0: wp.array[wp.int32]
    feature1: wp.array[wp.int32]
    kind: wp.array[wp.uint8]


def compaction_kernel(columns_type: Any, point_type: Any) -> wp.Kernel:
    """The kernel that writes the columns; `point_type` is the float type of the recorded motion."""

    @kernel
    def compact(
        rows: ShapeRows,
        margins: Margins,
        layout: Layout,
        chunk: ChunkCells,
        instances: Instances,
        candidates: Candidates,
        emitted: ContactBuffer,
        columns: columns_type,
    ):
        """One thread per candidate: its contacts at its offset, in world; the addition of 0 turns -0 into 0."""
        thread = wp.tid()
        count = candidates.count[thread]
        if count == 0:
            return
        first_slot = candidates.end[thread] - count
        first = candidates.first[thread]
        stride = candidates.stride[thread]
        pair = candidates.pair[thread]
        row0 = candidates.row[thread][0]
        row1 = candidates.row[thread][1]
        margin = pair_limits(margins, row0, row1).margin
        swapped = rows.type[row0] > rows.type[row1]
        instance_a = pair[0]
        if swapped:
            instance_a = pair[1]
        pose_a_to_world = instances.pose[instance_a]
        if candidates.found[thread] > count:
            deepest_to_front(emitted.contact, first, stride, candidates.found[thread], count, swapped)
        if count > 1:
            sort_by_features(emitted.contact, first, stride, count, swapped)
        cell = cell_of(chunk, layout, pair[0])
        for i in range(count):
            contact = emitted.contact[first + i * stride]
            found = in_world(contact, pose_a_to_world, swapped)
            slot = first_slot + i
            columns.shape0[slot] = row0
            columns.shape1[slot] = row1
            columns.distance[slot] = wp.float32(contact.separation - margin) + wp.float32(0.0)
            columns.normal[slot] = wp.vec3f(found.normal) + wp.vec3f()
            columns.point0[slot] = point_type(found.point0) + point_type()
            columns.point1[slot] = point_type(found.point1) + point_type()
            columns.offset0[slot] = offset_in_body(rows, chunk, cell, row0, found.point0) + wp.vec3f()
            columns.offset1[slot] = offset_in_body(rows, chunk, cell, row1, found.point1) + wp.vec3f()
            columns.feature0[slot] = found.feature0
            columns.feature1[slot] = found.feature1
            columns.kind[slot] = wp.uint8(contact.kind)

    return compact


@kernel
def write_scales(
    end: wp.array[wp.int32],
    scale: wp.array[wp.vec2f],
    feature0: wp.array[wp.int32],
    friction_scale: wp.array[wp.float32],
):
    """One thread per candidate: the friction scale of each of its contacts. end: inclusive scan of the contacts."""
    thread = wp.tid()
    first_slot = int(0)
    if thread > 0:
        first_slot = end[thread - 1]
    for slot in range(first_slot, end[thread]):
        friction_scale[slot] = wp.where(feature0[slot] == ANCHOR, scale[thread][1], scale[thread][0])


COMPACT = {
    np.dtype(np.float32): compaction_kernel(Columns32, wp.vec3f),
    np.dtype(np.float64): compaction_kernel(Columns64, wp.vec3d),
}
_COLUMNS = {np.dtype(np.float32): Columns32, np.dtype(np.float64): Columns64}
_VECTOR = {np.dtype(np.float32): wp.vec3f, np.dtype(np.float64): wp.vec3d}


def row_bytes(float_type: np.dtype) -> int:
    """Size of one contact in all columns [bytes]."""
    return sum(column.width * column.dtype_for(float_type).itemsize for column in RIGID_COLUMNS)


def compact_contacts(
    device_model: DeviceModel,
    chunk: Chunk,
    candidates: Candidates,
    candidate_count: int,
    candidate_cell_end: wp.array,
    total: int,
    emitted: ContactBuffer,
    float_type: np.dtype,
    workspace: Workspace,
    scale: wp.array | None = None,
) -> ContactBlock:
    """The chunk's contacts as exactly sized host arrays.

    candidates: with `end` set. candidate_cell_end: inclusive scan of the candidates of each cell.
    total: contacts of all candidates. scale: friction scales where moments are matched,
    vec2f per candidate; written as a further column.
    """
    layout, float_type = device_model.layout, np.dtype(float_type)
    workspace.check(total * row_bytes(float_type))
    others = {"cell_end": (chunk.cell_count, wp.int32)}
    if scale is not None:
        others[FRICTION_SCALE.name] = (total, wp.float32)
    columns, arrays = workspace.packed_table("column", _COLUMNS[float_type], total, _elements(float_type), others)
    cell_end = arrays.pop("cell_end")
    workspace.launch(count_cells, chunk.cell_count, [candidate_cell_end, candidates.end, cell_end])
    rows, margins = device_model.rows, device_model.margins
    arguments = [rows, margins, layout, chunk.cells, chunk.instances, candidates, emitted, columns]
    workspace.launch(COMPACT[float_type], candidate_count, arguments)
    if scale is not None:
        scales = [candidates.end, scale, arrays["feature0"], arrays[FRICTION_SCALE.name]]
        workspace.launch(write_scales, candidate_count, scales)
    wanted = {name: (array, total) for name, array in arrays.items()}
    copies = workspace.download({**wanted, "cell_end": (cell_end, chunk.cell_count)})
    counts = np.diff(copies.pop("cell_end"), prepend=0).astype(np.int64)
    return ContactBlock(chunk.first_cell, counts, copies)


@cache
def _elements(float_type: np.dtype) -> dict[str, Any]:
    """Warp element type of each column."""
    return {
        column.name: wp.dtype_from_numpy(column.dtype_for(float_type))
        if column.width == 1
        else _VECTOR[column.dtype_for(float_type)]
        for column in RIGID_COLUMNS
    }
