"""Triangles and edges of the deformable objects of each template on a device, in trees of boxes."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.mesh_tree import split_tree
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.runtime.warp_internals import struct_of
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.particles import Particles, canonical_triangles


@wp.struct
class ElementHeader:
    """The elements of a template: first and number of its vertices, triangles and edges in
    `Elements`, and the first and number of nodes of the trees of triangles and edges."""

    first_vertex: int
    vertex_count: int
    first_triangle: int
    first_edge: int
    edge_count: int
    first_triangle_node: int
    triangle_node_count: int
    first_edge_node: int
    edge_node_count: int


@wp.struct
class Elements:
    """Elements of all templates, in the order of their particles.

    vertex: particles of triangles and lines. triangle: from the smallest particle on, in their
    direction. edge: smaller particle first. skip: the node after a node's descendants, from the
    tree's first. leaf: triangle or edge of a leaf, counted within the template; -1 for inner nodes.
    ring_start, ring: particles within the given number of edges of each particle, ascending. rest:
    rest positions. owner: object of each particle.
    """

    header: wp.array[ElementHeader]
    vertex: wp.array[wp.int32]
    triangle: wp.array[wp.vec3i]
    edge: wp.array[wp.vec2i]
    skip: wp.array[wp.int32]
    leaf: wp.array[wp.int32]
    ring_start: wp.array[wp.int64]
    ring: wp.array[wp.int32]
    rest: wp.array[Vec3]
    owner: wp.array[wp.int32]


TYPES = {
    "vertex": wp.int32,
    "triangle": wp.vec3i,
    "edge": wp.vec2i,
    "skip": wp.int32,
    "leaf": wp.int32,
}
"""Types of the arrays of `Elements` that are made template by template."""


def _rings(particles: Particles, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Start of each particle's neighbours, int64[P + 1], and the particles within `count` edges,
    ascending."""
    size = len(particles)
    edge = particles.edge.astype(np.int64)
    step = distinct(
        np.concatenate([edge[:, 0] * size + edge[:, 1], edge[:, 1] * size + edge[:, 0]])
    )
    step_start = np.searchsorted(step // size, np.arange(size + 1))
    neighbour = step % size
    reached = step if count else step[:0]
    for _ in range(count - 1):
        # The neighbours of every particle reached so far.
        particle, last = np.divmod(reached, size)
        counts = step_start[last + 1] - step_start[last]
        before = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum())) + np.repeat(step_start[last] - before, counts)
        reached = distinct(
            np.concatenate([reached, np.repeat(particle, counts) * size + neighbour[at]])
        )
    return np.searchsorted(reached // size, np.arange(size + 1)).astype(np.int64), (
        reached % size
    ).astype(np.int32)


@dataclass
class _ElementTables:
    """Arrays of `Elements` in the making: parts of each, in the order of the templates. counts: of
    elements and nodes so far. vertex_and_edge_count, node_count: of the template with most, at
    least 1."""

    headers: list[tuple[int, ...]] = field(default_factory=list)
    parts: dict[str, list[np.ndarray]] = field(default_factory=lambda: {n: [] for n in TYPES})
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("vertex", "triangle", "edge", "node"), 0)
    )
    vertex_and_edge_count: int = 1
    node_count: int = 1

    def add_template(self, position: np.ndarray, elements: dict[str, np.ndarray]) -> None:
        """Adds a template's vertices, triangles and edges, and a tree each of the last two.

        position: float64[P, 3], rest positions [m].
        """
        middles = (position[elements[name]].mean(axis=1) for name in ("triangle", "edge"))
        trees = [split_tree(middle, np.arange(len(middle)))[:2] for middle in middles]
        nodes = [len(skip) for skip, _ in trees]
        at = self.counts
        counts = (
            at["vertex"],
            len(elements["vertex"]),
            at["triangle"],
            at["edge"],
            len(elements["edge"]),
        )
        self.headers.append((*counts, at["node"], nodes[0], at["node"] + nodes[0], nodes[1]))
        for name in ("vertex", "triangle", "edge"):
            self.parts[name].append(elements[name])
            at[name] += len(elements[name])
        for skip, leaf in trees:
            self.parts["skip"].append(skip)
            self.parts["leaf"].append(leaf)
        at["node"] += sum(nodes)
        self.vertex_and_edge_count = max(
            self.vertex_and_edge_count, len(elements["vertex"]) + len(elements["edge"])
        )
        self.node_count = max(self.node_count, sum(nodes))


def _template_elements(
    particles: Particles, all_triangles: np.ndarray, template: int
) -> dict[str, np.ndarray]:
    """Vertices, triangles and edges of the particles in a template, and of those in all templates.
    all_triangles: canonical, of the model."""
    template_of = particles.template[particles.owner]
    is_present = (template_of == template) | (template_of == GLOBAL_TEMPLATE)
    triangles = all_triangles[is_present[all_triangles[:, 0]]]
    edges = particles.edge
    ends = particles.line[is_present[particles.line[:, 0]]]
    return {
        "triangle": triangles,
        "edge": edges[is_present[edges[:, 0]]],
        "vertex": distinct(np.append(triangles, ends)),
    }


def upload_elements(device_model: DeviceModel, rings: int) -> tuple[Elements, int, int]:
    """The elements of a model's templates on its device; vertices and edges, and nodes, of the
    template with most. rings: of neighbours, in edges; 0 for none."""
    particles = device_model.model.particles
    triangles = canonical_triangles(particles.triangle)
    tables = _ElementTables()
    for template in range(device_model.template_count):
        elements_of = _template_elements(particles, triangles, template)
        tables.add_template(particles.position, elements_of)
    start, ring = _rings(particles, rings)
    elements = Elements()
    put = partial(device_array, device=device_model.device)
    headers = np.array(tables.headers, struct_of(ElementHeader).numpy_dtype())
    elements.header = put(headers, ElementHeader)
    for name, dtype in TYPES.items():
        setattr(elements, name, put(np.concatenate(tables.parts[name]).astype(np.int32), dtype))
    elements.ring_start = put(start, wp.int64)
    elements.ring = put(ring, wp.int32)
    elements.rest = put(particles.position, Vec3)
    elements.owner = put(particles.owner, wp.int32)
    return elements, tables.vertex_and_edge_count, tables.node_count
