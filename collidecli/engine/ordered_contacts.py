"""Compaction of a chunk's emitted contacts to the columns of the contact set, in canonical order
and world frame."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.candidates import CandidateList
from collidecli.engine.cells import Chunk, ChunkCells, Instances, body_pose_of
from collidecli.engine.column_destination import EVERYTHING, ColumnDestination
from collidecli.engine.contact_record import ANCHOR, Candidates, ContactBuffer, deepest_to_front
from collidecli.engine.device_model import DeviceModel, Layout, Margins, ShapeRows
from collidecli.engine.geometry.lanes import (
    COMPOSITION,
    EPILOGUE,
    LANE_STEP,
    LOAD,
    PRELUDE,
    ROTATION,
)
from collidecli.engine.geometry.real import Real, Vec3, struct_type
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import FRICTION_SCALE, RIGID_COLUMNS, Column

PER_THREAD = 256
"""Candidates or contacts of one thread on the CPU: many vectors of lanes."""
AHEAD = 8
"""Contacts between one that is written and one whose record is requested from memory."""
CANDIDATES_AHEAD = 12
"""Candidates between one whose contacts are ordered and one whose records are requested."""
_VECTORS = {
    (np.dtype(np.float32), 3): wp.vec3f,
    (np.dtype(np.float64), 3): wp.vec3d,
    (np.dtype(np.float32), 4): wp.vec4f,
    (np.dtype(np.int32), 3): wp.vec3i,
    (np.dtype(np.int32), 4): wp.vec4i,
}


class RowWriter:
    """Columns of a table on a device, and the kernel that writes its rows, for recorded motions of
    one float type.

    name: of the Warp struct with an array a column, and prefix of its arrays' names in workspaces.
    elements: Warp type of the rows of each column. row_bytes: size of a row [bytes]. kernel_of: the
    kernel, whose last argument is the struct, by the struct and the type of the points of the
    motion.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        float_type: np.dtype,
        kernel_of: Callable[[Any, Any], wp.Kernel],
    ) -> None:
        types = {column.name: (column.dtype_for(float_type), column.width) for column in columns}
        self.name = f"{name}{8 * float_type.itemsize}"
        self.elements: dict[str, Any] = {
            key: wp.dtype_from_numpy(dtype) if width == 1 else _VECTORS[dtype, width]
            for key, (dtype, width) in types.items()
        }
        fields = {key: wp.array[element] for key, element in self.elements.items()}
        self.struct: Any = struct_type(self.name, fields, __name__)
        self.row_bytes = sum(width * dtype.itemsize for dtype, width in types.values())
        self.kernel = kernel_of(self.struct, _VECTORS[float_type, 3])


def row_writers(
    name: str, columns: Sequence[Column], kernel_of: Callable[[Any, Any], wp.Kernel]
) -> dict[np.dtype, RowWriter]:
    """The writer of a table for each float type of recorded motions."""
    types = np.dtype(np.float32), np.dtype(np.float64)
    return {float_type: RowWriter(name, columns, float_type, kernel_of) for float_type in types}


@kernel
def count_cells(
    candidate_end: wp.array[wp.int32],
    width: int,
    bound: wp.array[wp.int32],
    end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
):
    """One thread per cell: the end of its contacts, from the ends of the candidates of each of its
    `width` units and of the contacts of each candidate. Without candidates where the bound of their
    number is 0."""
    cell = wp.tid()
    last = candidate_end[(cell + 1) * width - 1] - 1
    cell_end[cell] = 0
    if last >= 0 and bound[0] > 0:
        cell_end[cell] = end[last]


@wp.func
def offset_in_body(
    rows: ShapeRows, chunk: ChunkCells, cell: int, row: int, point_world: Vec3
) -> wp.vec3f:
    """A world point in the frame of the shape's body; unchanged for a static shape."""
    body = rows.body[row]
    if body < 0:
        return wp.vec3f(point_world)
    pose = body_pose_of(chunk, cell, body)
    offset = point_world - wp.transform_get_translation(pose)
    return wp.vec3f(wp.quat_rotate_inv(wp.transform_get_rotation(pose), offset))


@wp.struct
class ContactSources:
    """Where each contact of a chunk comes from, by its slot in the columns.

    record: index in the contact buffer. candidate: of each. margin: sum of both surfaces'
    inflations [m].
    """

    record: wp.array[wp.int32]
    candidate: wp.array[wp.int32]
    margin: wp.array[Real]


_SOURCES = {"record": wp.int32, "candidate": wp.int32, "margin": Real}


@kernel
def keep_deepest(
    rows: ShapeRows, candidates: Candidates, bound: wp.array[wp.int32], emitted: ContactBuffer
):
    """One thread per candidate, as many as the bound: moves the contacts that are kept, the
    deepest, to the front of its rows."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    count = candidates.count[thread]
    if candidates.found[thread] > count:
        swapped = rows.type[candidates.row[thread][0]] > rows.type[candidates.row[thread][1]]
        first = candidates.first[thread]
        stride = candidates.stride[thread]
        deepest_to_front(emitted.contact, first, stride, candidates.found[thread], count, swapped)


@wp.func_native(native(__file__, "list_sources", AHEAD=CANDIDATES_AHEAD))
def list_sources(
    rows: ShapeRows,
    margins: Margins,
    candidates: Candidates,
    emitted: ContactBuffer,
    sources: ContactSources,
    begin: int,
    last: int,
):
    """Writes the sources of the contacts of candidates `begin` to `last - 1`, those of each ordered
    by features."""
    ...


@kernel
def list_contacts(
    rows: ShapeRows,
    margins: Margins,
    candidates: Candidates,
    emitted: ContactBuffer,
    sources: ContactSources,
    per_thread: int,
    candidate_count: int,
    candidate_bound: wp.array[wp.int32],
    bound: wp.array[wp.int32],
):
    """One thread per `per_thread` candidates: the sources of their contacts, at their offset in the
    columns; none where the bound of the contacts is 0."""
    if bound[0] == 0:
        return
    begin = wp.tid() * per_thread
    last = wp.min(wp.min(begin + per_thread, candidate_count), candidate_bound[0])
    list_sources(rows, margins, candidates, emitted, sources, begin, last)


ADDRESSES = native(__file__, "addresses", AHEAD=AHEAD)
"""Begin of `write(zero, slot)`: addresses of the record, the pose of a and the bodies of both
sides, of each lane."""
SIDES = native(__file__, "sides")
"""Normal, points and offsets of both sides."""
STORES = native(__file__, "stores")
"""End of `write`: the columns of each lane."""
HAS_ALL = " && ".join(f"columns.{column.name}.data" for column in RIGID_COLUMNS)
"""C++ that tells whether every column has an array."""
LOOPS = native(__file__, "loops", HAS_ALL=HAS_ALL, LANE_STEP=LANE_STEP)
"""Writes the rows of one thread."""
WRITING = "".join((PRELUDE, LOAD, COMPOSITION, ROTATION, ADDRESSES, SIDES, STORES, LOOPS, EPILOGUE))
"""C++ of `write_contacts`."""


def compaction_kernel(columns_type: Any, _: Any) -> wp.Kernel:
    """The kernel that writes the columns; those without an array are left out."""

    @wp.func_native(WRITING)
    def write_contacts(
        rows: ShapeRows,
        chunk: ChunkCells,
        instances: Instances,
        candidates: Candidates,
        emitted: ContactBuffer,
        sources: ContactSources,
        columns: columns_type,
        width: int,
        first: int,
        last: int,
    ):
        """Writes the columns of the contacts in slots `first` to `last - 1`, in world; shape0,
        shape1 in row order."""
        ...

    @kernel
    def compact(
        rows: ShapeRows,
        layout: Layout,
        chunk: ChunkCells,
        instances: Instances,
        candidates: Candidates,
        emitted: ContactBuffer,
        sources: ContactSources,
        per_thread: int,
        total: int,
        bound: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per `per_thread` contacts, of which there are `total` or as many as the
        bound."""
        first = wp.tid() * per_thread
        last = wp.min(wp.min(first + per_thread, total), bound[0])
        write_contacts(
            rows, chunk, instances, candidates, emitted, sources, columns, layout.width, first, last
        )

    return compact


@kernel
def write_scales(
    end: wp.array[wp.int32],
    candidate_bound: wp.array[wp.int32],
    bound: wp.array[wp.int32],
    scale: wp.array[wp.vec2f],
    feature0: wp.array[wp.int32],
    friction_scale: wp.array[wp.float32],
):
    """One thread per candidate, as many as their bound: the friction scale of each of its contacts;
    none where the bound of these is 0. end: inclusive scan of the contacts."""
    thread = wp.tid()
    if bound[0] == 0 or thread >= candidate_bound[0]:
        return
    first_slot = end[thread - 1] if thread > 0 else 0
    for slot in range(first_slot, end[thread]):
        friction_scale[slot] = wp.where(
            feature0[slot] == ANCHOR, scale[thread][1], scale[thread][0]
        )


CONTACT_ROWS = row_writers("Columns", RIGID_COLUMNS, compaction_kernel)


def new_columns(
    writer: RowWriter,
    total: int,
    chunk: Chunk,
    destination: ColumnDestination,
    workspace: Workspace,
    scaled: bool = False,
) -> tuple[Any, dict[str, Any], dict[str, wp.array]]:
    """The struct of a writer for `total` rows, the arrays of the columns that are wanted, by name,
    and all arrays, with "cell_end" int32[cells]; without values.

    scaled: with the friction scales, if these are wanted, and the features that they depend on.
    On a device, and where columns are kept, the struct has no arrays of other columns. On the CPU,
    where all columns are wanted, the arrays are those of the result, of NumPy. Raises
    ChunkTooLarge where the wanted columns exceed the limit.
    """
    names = [name for name in writer.elements if destination.has(name)]
    others: dict[str, Any] = {FRICTION_SCALE.name: wp.float32} if scaled else {}
    written = [*names, *({"feature0"} - set(names) if scaled else ())]
    sizes = map(wp.types.type_size_in_bytes, map(writer.elements.__getitem__, names))
    workspace.check(total * sum(sizes))
    kept = destination.kept
    is_whole = len(names) == len(writer.elements) and not scaled
    if is_whole and kept is None and not workspace.has_own_memory:
        columns, results = workspace.result_table(writer.struct, total, writer.elements)
        cell_end = workspace.array(f"{writer.name}_cell_end", chunk.cell_count, wp.int32)
        return columns, results, {"cell_end": cell_end}
    if kept is None:
        lengths = {name: (total, element) for name, element in others.items()}
        lengths["cell_end"] = (chunk.cell_count, wp.int32)
        columns, arrays = workspace.packed_table(
            writer.name, writer.struct, total, writer.elements, lengths, written
        )
    else:
        elements = {**{name: writer.elements[name] for name in written}, **others}
        arrays = {name: kept.new(total, element) for name, element in elements.items()}
        arrays["cell_end"] = workspace.array("kept_cell_end", chunk.cell_count, wp.int32)
        fields = {name: arrays.get(name) for name in writer.elements}
        columns = workspace.struct(writer.struct, **fields)
    return columns, {name: arrays[name] for name in (*names, *others)}, arrays


def finished_columns(
    wanted: Mapping[str, Any],
    cell_end: wp.array,
    total: ElementCount,
    chunk: Chunk,
    destination: ColumnDestination,
    workspace: Workspace,
) -> Callable[[], tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Issues the copies of the wanted columns to the host, none where they are kept. The function
    returned waits for int64[cells], rows of each cell, and the columns.

    cell_end: as of `new_columns`. total: of all rows, known where the columns are kept. The
    function raises CountsExceeded as `Workspace.send` does.
    """
    columns = {name: (array, total.most) for name, array in wanted.items()}
    to_host = columns if destination.kept is None else {}
    received = workspace.send(to_host, {"cell_end": (cell_end, chunk.cell_count)}, total)

    def finished() -> tuple[np.ndarray, dict[str, np.ndarray]]:
        copies = received()
        cell_end = copies.pop("cell_end")
        counts = cell_end.astype(np.int64)
        counts[1:] -= cell_end[:-1]
        if destination.kept is not None:
            destination.kept.add(chunk.first_cell, total.most, wanted)
        return counts, copies

    return finished


def compact_contacts(
    device_model: DeviceModel,
    chunk: Chunk,
    candidates: Candidates,
    listed: CandidateList,
    total: ElementCount,
    emitted: ContactBuffer,
    float_type: np.dtype,
    workspace: Workspace,
    scale: wp.array | None = None,
    limited: bool = False,
    destination: ColumnDestination = EVERYTHING,
) -> Callable[[], ContactBlock]:
    """Issues the compaction of the chunk's contacts to exactly sized host arrays, of the columns
    that are wanted; the function returned waits for them.

    candidates: with `end` set. listed: the same candidates. total: of all contacts. scale: friction
    scales where moments are matched, vec2f per candidate; written as a further column. limited:
    whether some emitted contacts may not be kept. destination: where columns stay on the device the
    block has none. The function raises CountsExceeded as `Workspace.send` does.
    """
    writer = CONTACT_ROWS[np.dtype(float_type)]
    scaled = scale is not None and destination.has(FRICTION_SCALE.name)
    columns, wanted, arrays = new_columns(writer, total.most, chunk, destination, workspace, scaled)
    cell_end = arrays["cell_end"]
    ends = [listed.part_end, listed.parts, listed.bound, candidates.end, cell_end]
    workspace.launch(count_cells, chunk.cell_count, ends)
    rows = device_model.rows
    if limited:
        workspace.launch(keep_deepest, listed.count, [rows, candidates, listed.bound, emitted])
    sources, _ = workspace.table("contact_source", ContactSources, total.most, _SOURCES)
    per_thread = 1 if workspace.has_own_memory else PER_THREAD
    arguments = [rows, device_model.margins, candidates, emitted, sources, per_thread]
    arguments += [listed.count, listed.bound, total.bound]
    workspace.launch(list_contacts, -(-listed.count // per_thread), arguments)
    arguments = [rows, device_model.layout, chunk.cells, chunk.instances, candidates, emitted]
    arguments += [sources, per_thread, total.most, total.bound, columns]
    workspace.launch(writer.kernel, -(-total.most // per_thread), arguments)
    if scaled:
        scales = [candidates.end, listed.bound, total.bound, scale]
        scales += [arrays["feature0"], arrays[FRICTION_SCALE.name]]
        workspace.launch(write_scales, listed.count, scales)
    finished = finished_columns(wanted, cell_end, total, chunk, destination, workspace)

    def block() -> ContactBlock:
        return ContactBlock(chunk.first_cell, *finished())

    return block
