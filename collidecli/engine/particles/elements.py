"""Triangles and edges of the deformable objects of each template on a device, in trees of boxes."""

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


def upload_elements(device_model: DeviceModel, rings: int) -> tuple[Elements, int, int]:
    """The elements of a model's templates on its device; vertices and edges, and nodes, of the
    template with most. rings: of neighbours, in edges; 0 for none."""
    particles = device_model.model.particles
    device = device_model.device
    template_of = particles.template[particles.owner]
    triangles = canonical_triangles(particles.triangle)
    edges = particles.edge
    parts: dict[str, list[np.ndarray]] = {
        name: [] for name in ("vertex", "triangle", "edge", "skip", "leaf")
    }
    headers = []
    at = dict.fromkeys(("vertex", "triangle", "edge", "node"), 0)
    width = node_width = 1
    for template in range(device_model.template_count):
        is_present = (template_of == template) | (template_of == GLOBAL_TEMPLATE)
        of_template = {
            "triangle": triangles[is_present[triangles[:, 0]]],
            "edge": edges[is_present[edges[:, 0]]],
        }
        ends = particles.line[is_present[particles.line[:, 0]]]
        of_template["vertex"] = distinct(np.append(of_template["triangle"], ends))
        middles = (
            particles.position[of_template[name]].mean(axis=1) for name in ("triangle", "edge")
        )
        trees = [split_tree(middle, np.arange(len(middle)))[:2] for middle in middles]
        nodes = [len(skip) for skip, _ in trees]
        counts = (
            at["vertex"],
            len(of_template["vertex"]),
            at["triangle"],
            at["edge"],
            len(of_template["edge"]),
        )
        headers.append((*counts, at["node"], nodes[0], at["node"] + nodes[0], nodes[1]))
        for name in ("vertex", "triangle", "edge"):
            parts[name].append(of_template[name])
            at[name] += len(of_template[name])
        for skip, leaf in trees:
            parts["skip"].append(skip)
            parts["leaf"].append(leaf)
        at["node"] += sum(nodes)
        width = max(width, len(of_template["vertex"]) + len(of_template["edge"]))
        node_width = max(node_width, sum(nodes))
    start, ring = _rings(particles, rings)
    elements = Elements()
    put = partial(device_array, device=device)
    elements.header = put(np.array(headers, struct_of(ElementHeader).numpy_dtype()), ElementHeader)
    kinds = {
        "vertex": wp.int32,
        "triangle": wp.vec3i,
        "edge": wp.vec2i,
        "skip": wp.int32,
        "leaf": wp.int32,
    }
    for name, dtype in kinds.items():
        setattr(elements, name, put(np.concatenate(parts[name]).astype(np.int32), dtype))
    elements.ring_start = put(start, wp.int64)
    elements.ring = put(ring, wp.int32)
    elements.rest = put(particles.position, Vec3)
    elements.owner = put(particles.owner, wp.int32)
    return elements, width, node_width
