"""Contacts of deformable objects with themselves and each other: vertices with triangles, and edges with edges.

A vertex and a triangle, or two edges, of one world are in contact where their distance is below the limit and

- they have no particle in common, and none of one is within a number of edges of the other (rings);
- they are of two objects, or their distance at rest is not below the rest distance.

The rows are counted before they are written; their order is by cell, kind and particles.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.bounds import rounded_down, rounded_up
from collidecli.engine.geometry.closest_points import ElementPair, edge_and_edge, vertex_and_face
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    position_at,
    position_in_cell,
    upload_cloud,
    upload_positions,
)
from collidecli.engine.particles.elements import Elements, upload_elements
from collidecli.engine.particles.surfaces import boxes_overlap
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_internals import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.tables import SELF_CONTACTS, ContactGroup, GroupRows

# Kernels of the contacts of deformable objects with themselves, see `self_contacts`.

VERTEX_FACE = wp.constant(0)
EDGE_EDGE = wp.constant(1)


@wp.struct
class SelfScene:
    """Particles and elements of a model. distance: limit of a contact; rest_distance: see the module [m].

    node_width: nodes of the template with most.
    """

    cloud: Cloud
    elements: Elements
    node_width: int
    distance: Real
    rest_distance: Real


@wp.struct
class SelfCells:
    """A thread is a vertex or an edge of a cell: thread = cell * width + index, of the elements from `begin` on.

    lower, upper: boxes of the nodes of each of `cell_count` cells, `SelfScene.node_width` a cell; of steps then those
    of their next frames, as the entries of `CloudCells.first`.
    """

    begin: int
    width: int
    cell_count: int
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@wp.struct
class Element:
    """The vertex or edge of a thread. kind: of its contacts, -1 for none. number: of the vertex or edge in `Elements`.

    p, q: its particles, equal for a vertex. low, high: its box, grown by the distance [m]. node, stop: nodes of the
    tree of its partners in `Elements`; box: of the first node in `SelfCells`. first: of the partners in `Elements`;
    after: number within the template after which partners count.
    """

    kind: int
    number: int
    p: int
    q: int
    low: Vec3
    high: Vec3
    node: int
    stop: int
    box: int
    first: int
    after: int


@kernel
def fit_element_boxes(scene: SelfScene, chunk: ChunkCells, cells: CloudCells, part: SelfCells):
    """One thread per cell and tree, and of steps then per next frame: the boxes of its nodes, descendants first."""
    thread = wp.tid()
    entry = thread // 2
    cell = entry % part.cell_count
    of_edges = thread - 2 * entry
    template = chunk.cell_template[cell]
    header = scene.elements.header[template]
    first = header.first_triangle_node
    count = header.triangle_node_count
    box = entry * scene.node_width
    if of_edges == 1:
        box += count
        first = header.first_edge_node
        count = header.edge_node_count
    node = count - 1
    while node >= 0:
        leaf = scene.elements.leaf[first + node]
        if leaf >= 0:
            p = int(0)
            q = int(0)
            r = int(0)
            if of_edges == 1:
                edge = scene.elements.edge[header.first_edge + leaf]
                p = edge[0]
                q = edge[1]
                r = p
            else:
                triangle = scene.elements.triangle[header.first_triangle + leaf]
                p = triangle[0]
                q = triangle[1]
                r = triangle[2]
            a = position_at(scene.cloud, cells, chunk, cell, entry, p)
            b = position_at(scene.cloud, cells, chunk, cell, entry, q)
            c = position_at(scene.cloud, cells, chunk, cell, entry, r)
            part.lower[box + node] = rounded_down(wp.min(a, wp.min(b, c)))
            part.upper[box + node] = rounded_up(wp.max(a, wp.max(b, c)))
        else:
            right = scene.elements.skip[first + node + 1]
            part.lower[box + node] = wp.min(part.lower[box + node + 1], part.lower[box + right])
            part.upper[box + node] = wp.max(part.upper[box + node + 1], part.upper[box + right])
        node -= 1


@wp.func
def element_of(scene: SelfScene, chunk: ChunkCells, cells: CloudCells, part: SelfCells, thread: int) -> Element:
    """The vertex or edge of a thread."""
    cell = thread // part.width
    index = part.begin + thread - cell * part.width
    header = scene.elements.header[chunk.cell_template[cell]]
    element = Element()
    element.kind = -1
    element.box = cell * scene.node_width
    element.after = -1
    if index < header.vertex_count:
        element.kind = VERTEX_FACE
        element.p = scene.elements.vertex[header.first_vertex + index]
        element.q = element.p
        element.node = header.first_triangle_node
        element.stop = element.node + header.triangle_node_count
        element.first = header.first_triangle
    elif index < header.vertex_count + header.edge_count:
        element.kind = EDGE_EDGE
        element.after = index - header.vertex_count
        element.p = scene.elements.edge[header.first_edge + element.after][0]
        element.q = scene.elements.edge[header.first_edge + element.after][1]
        element.box += header.triangle_node_count
        element.node = header.first_edge_node
        element.stop = element.node + header.edge_node_count
        element.first = header.first_edge
    if element.kind >= 0:
        a = position_in_cell(scene.cloud, cells, chunk, cell, element.p)
        b = position_in_cell(scene.cloud, cells, chunk, cell, element.q)
        grown = Vec3(scene.distance, scene.distance, scene.distance)
        element.low = wp.min(a, b) - grown
        element.high = wp.max(a, b) + grown
    return element


@wp.func
def is_in_ring(elements: Elements, particle: int, other: int) -> bool:
    """Whether two particles are equal or within the rings of each other."""
    if particle == other:
        return True
    low = wp.int64(elements.ring_start[particle])
    high = wp.int64(elements.ring_start[particle + 1])
    while low < high:
        middle = (low + high) // wp.int64(2)
        found = elements.ring[int(middle)]
        if found == other:
            return True
        if found < other:
            low = middle + wp.int64(1)
        else:
            high = middle
    return False


@wp.func
def is_joined(elements: Elements, element: Element, a: int, b: int, c: int) -> bool:
    """Whether one of three particles is in the rings of an element's particles."""
    if is_in_ring(elements, element.p, a) or is_in_ring(elements, element.p, b) or is_in_ring(elements, element.p, c):
        return True
    if element.q == element.p:
        return False
    return (
        is_in_ring(elements, element.q, a) or is_in_ring(elements, element.q, b) or is_in_ring(elements, element.q, c)
    )


@wp.func
def partner_of(elements: Elements, element: Element, leaf: int) -> wp.vec3i:
    """The particles of the triangle, or of the edge, its first twice, of a leaf."""
    if element.kind == VERTEX_FACE:
        return elements.triangle[element.first + leaf]
    edge = elements.edge[element.first + leaf]
    return wp.vec3i(edge[0], edge[1], edge[0])


@wp.func
def pair_in_cell(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, cell: int, element: Element, partner: wp.vec3i
) -> ElementPair:
    """Closest points of an element and its partner in a cell."""
    p = position_in_cell(scene.cloud, cells, chunk, cell, element.p)
    a = position_in_cell(scene.cloud, cells, chunk, cell, partner[0])
    b = position_in_cell(scene.cloud, cells, chunk, cell, partner[1])
    if element.kind == VERTEX_FACE:
        c = position_in_cell(scene.cloud, cells, chunk, cell, partner[2])
        return vertex_and_face(p, a, b, c)
    return edge_and_edge(p, position_in_cell(scene.cloud, cells, chunk, cell, element.q), a, b)


@wp.func
def is_near_at_rest(scene: SelfScene, element: Element, partner: wp.vec3i) -> bool:
    """Whether an element and its partner are of one object, and nearer than the rest distance at rest."""
    elements = scene.elements
    if elements.owner[element.p] != elements.owner[partner[0]] or scene.rest_distance <= Real(0.0):
        return False
    p = elements.rest[element.p]
    a = elements.rest[partner[0]]
    b = elements.rest[partner[1]]
    pair = ElementPair()
    if element.kind == VERTEX_FACE:
        pair = vertex_and_face(p, a, b, elements.rest[partner[2]])
    else:
        pair = edge_and_edge(p, elements.rest[element.q], a, b)
    return pair.square < scene.rest_distance * scene.rest_distance


@wp.func(inline=False)
def is_contact(scene: SelfScene, chunk: ChunkCells, cells: CloudCells, cell: int, element: Element, leaf: int) -> bool:
    """Whether an element and the triangle or edge of a leaf are in contact."""
    if leaf <= element.after:
        return False
    partner = partner_of(scene.elements, element, leaf)
    if is_joined(scene.elements, element, partner[0], partner[1], partner[2]):
        return False
    if pair_in_cell(scene, chunk, cells, cell, element, partner).square >= scene.distance * scene.distance:
        return False
    return not is_near_at_rest(scene, element, partner)


@kernel
def count_self_contacts(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, part: SelfCells, found: wp.array[wp.int32]
):
    """One thread per vertex and edge of a cell: its number of contacts, with edges after it."""
    thread = wp.tid()
    element = element_of(scene, chunk, cells, part, thread)
    count = int(0)
    node = element.node
    while node < element.stop:
        at = element.box + node - element.node
        if boxes_overlap(element.low, element.high, part.lower[at], part.upper[at]):
            leaf = scene.elements.leaf[node]
            if leaf >= 0:  # noqa: SIM102
                if is_contact(scene, chunk, cells, thread // part.width, element, leaf):
                    count += 1
            node += 1
        else:
            node = element.node + scene.elements.skip[node]
    found[thread] = count


@kernel
def write_self_contacts(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    end: wp.array[wp.int32],
    pair: wp.array[wp.vec2i],
):
    """One thread per vertex and edge of a cell: its contacts (thread, leaf), ascending by leaf.

    end: inclusive scan of their numbers.
    """
    thread = wp.tid()
    first_pair = int(0)
    if thread > 0:
        first_pair = end[thread - 1]
    if first_pair == end[thread]:
        return
    element = element_of(scene, chunk, cells, part, thread)
    node = element.node
    written = int(first_pair)
    while node < element.stop:
        at = element.box + node - element.node
        if boxes_overlap(element.low, element.high, part.lower[at], part.upper[at]):
            leaf = scene.elements.leaf[node]
            if leaf >= 0:  # noqa: SIM102
                if is_contact(scene, chunk, cells, thread // part.width, element, leaf):
                    # Insertion sort.
                    place = int(written)
                    while place > first_pair and pair[wp.max(place - 1, 0)][1] > leaf:
                        pair[place] = pair[place - 1]
                        place -= 1
                    pair[place] = wp.vec2i(thread, leaf)
                    written += 1
            node += 1
        else:
            node = element.node + scene.elements.skip[node]


@wp.struct
class SelfColumns32:
    """Columns of `SELF_CONTACTS`, points in float32."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec4i]
    barycentric: wp.array[wp.vec4f]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point0: wp.array[wp.vec3f]
    point1: wp.array[wp.vec3f]


@wp.struct
class SelfColumns64:
    """Columns of `SELF_CONTACTS`, points in float64."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec4i]
    barycentric: wp.array[wp.vec4f]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point0: wp.array[wp.vec3d]
    point1: wp.array[wp.vec3d]


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def write_self_columns(
        scene: SelfScene,
        chunk: ChunkCells,
        cells: CloudCells,
        part: SelfCells,
        pair: wp.array[wp.vec2i],
        columns: columns_type,
    ):
        """One thread per contact; the addition of 0 turns -0 into 0."""
        row = wp.tid()
        thread = pair[row][0]
        element = element_of(scene, chunk, cells, part, thread)
        partner = partner_of(scene.elements, element, pair[row][1])
        found = pair_in_cell(scene, chunk, cells, thread // part.width, element, partner)
        columns.kind[row] = wp.uint8(element.kind)
        if element.kind == VERTEX_FACE:
            columns.indices[row] = wp.vec4i(element.p, partner[0], partner[1], partner[2])
        else:
            columns.indices[row] = wp.vec4i(element.p, element.q, partner[0], partner[1])
        columns.barycentric[row] = wp.vec4f(found.weights) + wp.vec4f()
        columns.distance[row] = wp.float32(wp.sqrt(found.square))
        columns.normal[row] = wp.vec3f(found.normal) + wp.vec3f()
        columns.point0[row] = point_type(found.point0) + point_type()
        columns.point1[row] = point_type(found.point1) + point_type()

    return write_self_columns


_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
WRITE_COLUMNS = {
    _FLOAT32: _compaction(SelfColumns32, wp.vec3f),
    _FLOAT64: _compaction(SelfColumns64, wp.vec3d),
}
_COLUMNS = {_FLOAT32: SelfColumns32, _FLOAT64: SelfColumns64}
_VECTORS = {
    (_FLOAT32, 3): wp.vec3f, (_FLOAT64, 3): wp.vec3d, (np.dtype(np.int32), 4): wp.vec4i, (_FLOAT32, 4): wp.vec4f
}  # fmt: skip


@cache
def _elements(float_type: np.dtype) -> dict[str, Any]:
    """Warp element type of each column."""
    types = {column.name: (column.dtype_for(float_type), column.width) for column in SELF_CONTACTS.columns}
    return {
        name: wp.dtype_from_numpy(dtype) if width == 1 else _VECTORS[dtype, width]
        for name, (dtype, width) in types.items()
    }


@dataclass(frozen=True)
class SelfContacts:
    """Contacts of a model's deformable objects with themselves and each other. Any number of threads may share it.

    element_width: vertices and edges of the template with most.
    """

    device_model: DeviceModel
    scene: SelfScene
    element_width: int
    node_width: int
    float_type: np.dtype

    @property
    def group(self) -> ContactGroup:
        return SELF_CONTACTS

    @property
    def width(self) -> int:
        """Vertices and edges of the template with most."""
        return self.element_width

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        own = [fit_element_boxes, WRITE_COLUMNS[self.float_type]]
        return [*own, count_self_contacts, write_self_contacts]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the vertices and edges `begin` to `end` of each cell's, and their number.

        Raises ChunkTooLarge when the scratch memory is too small.
        """
        cells, held = upload_positions(self.device_model, batch, chunk, workspace)
        boxes = chunk.cell_count * self.node_width
        lower, upper = (workspace.array(f"element_{name}", boxes, wp.vec3f) for name in ("lower", "upper"))
        width = end - begin
        threads = chunk.cell_count * width
        found = workspace.array("self_found", threads, wp.int32)
        part = workspace.struct(
            SelfCells, begin=begin, width=width, cell_count=chunk.cell_count, lower=lower, upper=upper
        )
        shared = [self.scene, chunk.cells, cells, part]
        workspace.launch(fit_element_boxes, 2 * chunk.cell_count, shared)
        workspace.launch(count_self_contacts, threads, [*shared, found])
        if threads * self.node_width > INDEX_LIMIT:  # the scan's int32 could overflow
            total = int(workspace.host(found, threads).sum(dtype=np.int64))
            if total > INDEX_LIMIT:
                raise ChunkTooLarge(total * 8)
        total = workspace.scan(found, threads)
        size = sum(column.width * column.dtype_for(self.float_type).itemsize for column in SELF_CONTACTS.columns)
        workspace.check(total * size)
        pair = workspace.array("self_pair", total, wp.vec2i)
        workspace.launch(write_self_contacts, threads if total else 0, [*shared, found, pair])
        columns, arrays = workspace.table("self", _COLUMNS[self.float_type], total, _elements(self.float_type))
        workspace.launch(WRITE_COLUMNS[self.float_type], total, [*shared, pair, columns])
        counts = np.zeros(chunk.cell_count, np.int64)
        if threads:
            ends = workspace.host(found, threads)[width - 1 :: width]
            counts = np.diff(ends, prepend=0).astype(np.int64)
        # Copies, since the next chunk reuses the scratch.
        copies = {name: workspace.copied(array, total) for name, array in arrays.items()}
        workspace.finish()
        del held  # all launches are complete
        return GroupRows(counts, copies), total


def self_contacts_of(
    device_model: DeviceModel, distance: float, rings: int, rest_distance: float, float_type: np.dtype
) -> SelfContacts:
    """The contacts of a model's objects with themselves. distance, rest_distance: see the module [m]."""
    uploaded = upload_elements(device_model, rings)
    scene = SelfScene()
    scene.cloud, scene.elements = upload_cloud(device_model), uploaded.elements
    scene.node_width, scene.distance, scene.rest_distance = uploaded.node_width, distance, rest_distance
    return SelfContacts(device_model, scene, uploaded.width, uploaded.node_width, np.dtype(float_type))
