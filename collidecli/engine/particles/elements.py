"""Triangles and edges of the deformable objects of each template on a device, and their bounding volume hierarchies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.mesh_tree import split_tree
from collidecli.engine.geometry.real import Vec3
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.particles import Particles, canonical_triangles


@wp.struct
class ElementHeader:
    """The elements of a template: first and number of its vertices, triangles and edges in `Elements`, and the first
    and number of nodes of the trees of triangles and edges."""

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

    vertex: particles of triangles. triangle: from the smallest particle on, in their direction. edge: smaller particle
    first. skip: the node after a node's descendants, from the tree's first. leaf: triangle or edge of a leaf, counted
    within the template; -1 for inner nodes.
    ring_start, ring: particles within the given number of edges of each particle, ascending. rest: rest positions.
    owner: object of each particle.
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


@dataclass(frozen=True)
class UploadedElements:
    """The elements of a model. width: vertices and edges, node_width: nodes, of the template with most."""

    elements: Elements
    width: int
    node_width: int


def _rings(particles: Particles, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Start of each particle's neighbours, int64[P + 1], and the particles within `count` edges, ascending."""
    size, edge = len(particles), particles.edge.astype(np.int64)
    step = np.unique(np.concatenate([edge[:, 0] * size + edge[:, 1], edge[:, 1] * size + edge[:, 0]]))
    step_start, neighbour = np.searchsorted(step // size, np.arange(size + 1)), step % size
    reached = step if count else step[:0]
    for _ in range(count - 1):
        # The neighbours of every particle reached so far.
        particle, last = np.divmod(reached, size)
        found = step_start[last + 1] - step_start[last]
        before = np.cumsum(found) - found
        at = np.arange(int(found.sum())) + np.repeat(step_start[last] - before, found)
        reached = np.unique(np.concatenate([reached, np.repeat(particle, found) * size + neighbour[at]]))
    return np.searchsorted(reached // size, np.arange(size + 1)).astype(np.int64), (reached % size).astype(np.int32)


def upload_elements(device_model: DeviceModel, rings: int) -> UploadedElements:
    """The elements of a model's templates on its device. rings: of neighbours, in edges; 0 for none."""
    particles, device = device_model.model.particles, device_model.device
    template_of = particles.template[particles.owner]
    triangles, edges = canonical_triangles(particles.triangle), particles.edge
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("vertex", "triangle", "edge", "skip", "leaf")}
    headers, at = [], dict.fromkeys(("vertex", "triangle", "edge", "node"), 0)
    width = node_width = 1
    for template in range(device_model.template_count):
        held = (template_of == template) | (template_of == GLOBAL_TEMPLATE)
        own = {"triangle": triangles[held[triangles[:, 0]]], "edge": edges[held[edges[:, 0]]]}
        own["vertex"] = np.unique(own["triangle"])
        trees = [_tree(particles.position[own[name]].mean(axis=1)) for name in ("triangle", "edge")]
        nodes = [len(skip) for skip, _ in trees]
        counts = at["vertex"], len(own["vertex"]), at["triangle"], at["edge"], len(own["edge"])
        headers.append((*counts, at["node"], nodes[0], at["node"] + nodes[0], nodes[1]))
        for name in ("vertex", "triangle", "edge"):
            parts[name].append(own[name])
            at[name] += len(own[name])
        for skip, leaf in trees:
            parts["skip"].append(skip)
            parts["leaf"].append(leaf)
        at["node"] += sum(nodes)
        width = max(width, len(own["vertex"]) + len(own["edge"]))
        node_width = max(node_width, sum(nodes))
    start, ring = _rings(particles, rings)
    elements = Elements()
    elements.header = wp.array(np.array(headers, ElementHeader.numpy_dtype()), dtype=ElementHeader, device=device)
    for name, dtype, shape in (
        ("vertex", wp.int32, ()), ("triangle", wp.vec3i, (3,)), ("edge", wp.vec2i, (2,)), ("skip", wp.int32, ()),
        ("leaf", wp.int32, ()),
    ):  # fmt: skip
        # Warp kernels take no array of length zero, so one unused element is appended.
        values = np.concatenate([*parts[name], np.zeros((1, *shape))]).astype(np.int32)
        setattr(elements, name, wp.array(values, dtype=dtype, device=device))
    elements.ring_start = wp.array(start, dtype=wp.int64, device=device)
    elements.ring = wp.array(np.append(ring, 0).astype(np.int32), dtype=wp.int32, device=device)
    elements.rest = wp.array(particles.position, dtype=Vec3, device=device)
    elements.owner = wp.array(particles.owner, dtype=wp.int32, device=device)
    return UploadedElements(elements, width, node_width)


def _tree(middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Skip and leaf of each node of the tree of elements with these centres; none without elements."""
    if not len(middle):
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    skip, item, _ = split_tree(middle, np.arange(len(middle)))
    return skip, item
