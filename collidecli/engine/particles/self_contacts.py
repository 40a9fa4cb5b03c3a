"""Contacts of deformable objects with themselves and each other: vertices with triangles, and edges
with edges.

A vertex and a triangle, or two edges, of one world are in contact where their distance is below the
limit and

- they have no particle in common, and none of one is within a number of edges of the other (rings);
- they are of two objects, or their distance at rest is not below the rest distance.

The rows are counted before they are written; their order is by cell, kind and particles.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch
from collidecli.engine.contact_record import start_of
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.bounds import rounded_down, rounded_up
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.triangle_elements import ElementPair, edge_and_edge, vertex_and_face
from collidecli.engine.ordered_contacts import row_writers
from collidecli.engine.pair_limits import float32_limit
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    position_at,
    position_in_cell,
    upload_cloud,
    upload_positions,
)
from collidecli.engine.particles.element_stage import ElementStage, Inputs, insert_pair
from collidecli.engine.particles.elements import Elements, upload_elements
from collidecli.engine.particles.shape_tree import boxes_overlap
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import counted_kernels, kernel
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import SELF_CONTACTS

VERTEX_FACE = wp.constant(0)
EDGE_EDGE = wp.constant(1)


@wp.struct
class SelfScene:
    """Particles and elements of a model. distance: limit of a contact; rest_distance: see the
    module [m]. node_width: nodes of the template with most."""

    cloud: Cloud
    elements: Elements
    node_width: int
    distance: Real
    rest_distance: Real


@wp.struct
class SelfCells:
    """A thread is a vertex or an edge of a cell: thread = cell * width + index, of the elements
    from `begin` on.

    lower, upper: boxes of the nodes of each of `cell_count` cells, `SelfScene.node_width` a cell;
    of steps then those of their next frames, as the entries of `CloudCells.first`. has_step: of
    steps, 1 for a cell with a next frame in its episode. limit: distance of a touch, which is
    `SelfScene.distance` without the tolerance [m].
    """

    begin: int
    width: int
    cell_count: int
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]
    has_step: wp.array[wp.int32]
    limit: Real
    tolerance: Real


@wp.struct
class Element:
    """The vertex or edge of a thread. kind: of its contacts, -1 for none.

    p, q: its particles, equal for a vertex. low, high: its box, grown by the distance [m]. node,
    stop: nodes of the tree of its partners in `Elements`; box: of the first node in `SelfCells`.
    first: of the partners in `Elements`; after: number within the template after which partners
    count.
    """

    kind: int
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
    """One thread per cell and tree, and of steps then per next frame: the boxes of its nodes,
    descendants first."""
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
            corners = wp.vec3i()
            if of_edges == 1:
                edge = scene.elements.edge[header.first_edge + leaf]
                corners = wp.vec3i(edge[0], edge[1], edge[0])
            else:
                corners = scene.elements.triangle[header.first_triangle + leaf]
            a = position_at(scene.cloud, cells, chunk, cell, entry, corners[0])
            b = position_at(scene.cloud, cells, chunk, cell, entry, corners[1])
            c = position_at(scene.cloud, cells, chunk, cell, entry, corners[2])
            part.lower[box + node] = rounded_down(wp.min(a, wp.min(b, c)))
            part.upper[box + node] = rounded_up(wp.max(a, wp.max(b, c)))
        else:
            right = scene.elements.skip[first + node + 1]
            part.lower[box + node] = wp.min(part.lower[box + node + 1], part.lower[box + right])
            part.upper[box + node] = wp.max(part.upper[box + node + 1], part.upper[box + right])
        node -= 1


@wp.func
def element_of(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, part: SelfCells, thread: int
) -> Element:
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
        entry = elements.ring[int(middle)]
        if entry == other:
            return True
        if entry < other:
            low = middle + wp.int64(1)
        else:
            high = middle
    return False


@wp.func
def is_joined(elements: Elements, element: Element, partner: wp.vec3i) -> bool:
    """Whether one of three particles is in the rings of an element's particles."""
    for k in range(3):
        if is_in_ring(elements, element.p, partner[k]):
            return True
        if element.q != element.p:  # noqa: SIM102
            if is_in_ring(elements, element.q, partner[k]):
                return True
    return False


@wp.func
def partner_of(elements: Elements, element: Element, leaf: int) -> wp.vec3i:
    """The particles of the triangle, or of the edge, its first twice, of a leaf."""
    if element.kind == VERTEX_FACE:
        return elements.triangle[element.first + leaf]
    edge = elements.edge[element.first + leaf]
    return wp.vec3i(edge[0], edge[1], edge[0])


@wp.func
def particles_of(element: Element, partner: wp.vec3i) -> wp.vec4i:
    """The four particles of a pair: of a vertex and a triangle, or of two edges."""
    if element.kind == VERTEX_FACE:
        return wp.vec4i(element.p, partner[0], partner[1], partner[2])
    return wp.vec4i(element.p, element.q, partner[0], partner[1])


@wp.func
def pair_of(kind: int, p: Vec3, q: Vec3, r: Vec3, s: Vec3) -> ElementPair:
    """Closest points of the two elements of four particles, see `particles_of`."""
    if kind == VERTEX_FACE:
        return vertex_and_face(p, q, r, s)
    return edge_and_edge(p, q, r, s)


@wp.func
def pair_in_cell(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, cell: int, kind: int, of: wp.vec4i
) -> ElementPair:
    """Closest points of the elements of four particles in a cell."""
    return pair_of(
        kind,
        position_in_cell(scene.cloud, cells, chunk, cell, of[0]),
        position_in_cell(scene.cloud, cells, chunk, cell, of[1]),
        position_in_cell(scene.cloud, cells, chunk, cell, of[2]),
        position_in_cell(scene.cloud, cells, chunk, cell, of[3]),
    )


@wp.func
def is_near_at_rest(scene: SelfScene, kind: int, of: wp.vec4i) -> bool:
    """Whether the elements of four particles are of one object, and nearer than the rest distance
    at rest."""
    owner = scene.elements.owner
    rest = scene.elements.rest
    if owner[of[0]] != owner[of[3]] or scene.rest_distance <= Real(0.0):
        return False
    pair = pair_of(kind, rest[of[0]], rest[of[1]], rest[of[2]], rest[of[3]])
    return pair.square < scene.rest_distance * scene.rest_distance


@wp.func(inline=False)
def is_contact(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, cell: int, element: Element, leaf: int
) -> bool:
    """Whether an element and the triangle or edge of a leaf are in contact."""
    if leaf <= element.after:
        return False
    partner = partner_of(scene.elements, element, leaf)
    if is_joined(scene.elements, element, partner):
        return False
    of = particles_of(element, partner)
    if (
        pair_in_cell(scene, chunk, cells, cell, element.kind, of).square
        >= scene.distance * scene.distance
    ):
        return False
    return not is_near_at_rest(scene, element.kind, of)


def self_traversal(writes: bool, box_of: Any, is_near: Any, is_pair: Any) -> Callable[..., None]:
    """The traversal of the triangles near a vertex, and of the edges after an edge that are near
    it, by leaf.

    box_of: the box of an element in a cell, with `stop`, the end of its nodes. is_near: whether a
    node's box overlaps it. is_pair: whether an element and a leaf are a pair.
    """

    def find_self_pairs(
        scene: SelfScene,
        chunk: ChunkCells,
        cells: CloudCells,
        part: SelfCells,
        end: wp.array[wp.int32],
        pair: wp.array[wp.vec2i],
    ):
        thread = wp.tid()
        first_pair = int(0)
        if wp.static(writes):
            first_pair = start_of(end, thread)
            if first_pair == end[thread]:
                return
        cell = thread // part.width
        element = element_of(scene, chunk, cells, part, thread)
        box = box_of(scene, chunk, cells, part, cell, element)
        count = int(0)
        node = element.node
        while node < box.stop:
            if is_near(scene, part, box, element.box + node - element.node):
                leaf = scene.elements.leaf[node]
                if leaf >= 0:  # noqa: SIM102
                    if is_pair(scene, chunk, cells, cell, element, leaf):
                        if wp.static(writes):
                            insert_pair(pair, first_pair, first_pair + count, thread, leaf)
                        count += 1
                node += 1
            else:
                node = element.node + scene.elements.skip[node]
        if wp.static(not writes):
            end[thread] = count

    return find_self_pairs


@wp.func
def box_in_frame(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    cell: int,
    element: Element,
) -> Element:
    """The element, which has its box in the frame of a cell."""
    return element


@wp.func
def is_near_in_frame(scene: SelfScene, part: SelfCells, element: Element, at: int) -> bool:
    """Whether the box of an element overlaps that of a node of `SelfCells`."""
    return boxes_overlap(element.low, element.high, part.lower[at], part.upper[at])


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def write_self_columns(
        scene: SelfScene,
        chunk: ChunkCells,
        cells: CloudCells,
        part: SelfCells,
        pair: wp.array[wp.vec2i],
        bound: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per contact, as many as the bound; the addition of 0 turns -0 into 0."""
        row = wp.tid()
        if row >= bound[0]:
            return
        thread = pair[row][0]
        element = element_of(scene, chunk, cells, part, thread)
        of = particles_of(element, partner_of(scene.elements, element, pair[row][1]))
        nearest = pair_in_cell(scene, chunk, cells, thread // part.width, element.kind, of)
        columns.kind[row] = wp.uint8(element.kind)
        columns.indices[row] = of
        columns.barycentric[row] = wp.vec4f(nearest.weights) + wp.vec4f()
        columns.distance[row] = wp.float32(wp.sqrt(nearest.square))
        columns.normal[row] = wp.vec3f(nearest.normal) + wp.vec3f()
        columns.point0[row] = point_type(nearest.point0) + point_type()
        columns.point1[row] = point_type(nearest.point1) + point_type()

    return write_self_columns


class SelfStage(ElementStage):
    """Pairs of elements of a model's deformable objects. elements: the trees of the model's
    templates."""

    def __init__(
        self,
        device_model: DeviceModel,
        limits: tuple[float, int, float],
        float_type: np.dtype,
        tolerance: float = 0.0,
    ) -> None:
        """limits: distance, rings and rest distance, see the module. tolerance: they are near at
        this much more [m]."""
        self._limit, rings, rest_distance = limits
        self._tolerance = tolerance
        self._scene = scene = SelfScene()
        scene.elements, width, scene.node_width = upload_elements(device_model, rings)
        super().__init__(device_model, width, float_type)
        scene.cloud = upload_cloud(device_model)
        set_field(scene, "distance", float32_limit(self._limit) + tolerance)
        set_field(scene, "rest_distance", rest_distance)

    def kernels(self) -> list[wp.Kernel]:
        return [fit_element_boxes, *super().kernels()]

    def fitted(
        self,
        chunk: Chunk,
        batch: PoseBatch,
        workspace: Workspace,
        begin: int,
        width: int,
        is_step: np.ndarray | None,
    ) -> Inputs:
        """The arguments of all kernels, with the boxes of all nodes in the frames of the cells;
        with `is_step`, bool[cells], in their next frames too."""
        cells, host = upload_positions(self.device_model, batch, workspace, is_step)
        frames = 1 if is_step is None else 2
        count = chunk.cell_count
        boxes = frames * count * self._scene.node_width
        lower, upper = (
            workspace.array(f"element_{name}", boxes, wp.vec3f) for name in ("lower", "upper")
        )
        part = workspace.struct(
            SelfCells,
            begin=begin,
            width=width,
            cell_count=count,
            lower=lower,
            upper=upper,
            limit=self._limit,
            tolerance=self._tolerance,
        )
        if is_step is not None:
            host = *host, is_step.astype(np.int32)
            workspace.bind_host_array(SelfCells, "has_step", host[-1], wp.int32)
        arguments = [self._scene, chunk.cells, cells, part]
        workspace.launch(fit_element_boxes, 2 * frames * count, arguments)
        return arguments, self._scene.node_width, host


FIND_SELF_CONTACTS = counted_kernels(
    "self_contacts", self_traversal, box_in_frame, is_near_in_frame, is_contact
)
SELF_CONTACT_ROWS = row_writers("SelfColumns", SELF_CONTACTS.columns, _compaction)


class SelfContacts(SelfStage):
    """Contacts of a model's deformable objects with themselves and each other."""

    group = SELF_CONTACTS
    writers = SELF_CONTACT_ROWS
    traversal = FIND_SELF_CONTACTS

    def inputs(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int
    ) -> Inputs:
        return self.fitted(chunk, batch, workspace, begin, width, None)

    def evaluate(
        self, arguments: list[Any], pair: wp.array, count: ElementCount, workspace: Workspace
    ) -> tuple[list[Any], ElementCount, None]:
        return [count.bound], count, None
