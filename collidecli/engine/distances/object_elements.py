"""Elements of particle objects for their distances from each other: segments, and trees of
targets."""

from __future__ import annotations

from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.mesh_tree import split_tree
from collidecli.engine.geometry.real import Real
from collidecli.scene.particles import SOFT, Particles, canonical_triangles


@wp.struct
class ObjectTrees:
    """A tree of the targets of each object.

    radius: of each particle [m]. target: particles of triangles; the last one is repeated in a line
    and in a point. skip, leaf: of the nodes of all trees; the node after a node's descendants, from
    the tree's first, and the target of a leaf, -1 for inner nodes. first_target, target_count,
    first_node, node_count: of each object. largest: its greatest radius [m].
    """

    radius: wp.array[Real]
    target: wp.array[wp.vec3i]
    skip: wp.array[wp.int32]
    leaf: wp.array[wp.int32]
    first_target: wp.array[wp.int32]
    target_count: wp.array[wp.int32]
    first_node: wp.array[wp.int32]
    node_count: wp.array[wp.int32]
    largest: wp.array[Real]


class ObjectElements:
    """The active elements of a model's particle objects, on the host.

    segment: int32[n, 2] of each object, its edges, and particles without any, twice. target:
    int32[n, 3] of each object, its triangles, lines and particles without either, as of
    `ObjectTrees`. particle: int32[n] of each object, its active ones. spread: float64[O], greatest
    difference of two radii within an element [m]. largest: float64[O], greatest radius [m].
    is_solid, has_edges, has_triangles: bool[O]. Distances from an object are those from all of its
    targets, which have every point of its segments.
    """

    def __init__(self, particles: Particles) -> None:
        triangles = canonical_triangles(particles.triangle)
        edges = particles.edge
        self.radius = particles.radius
        self.position = particles.position
        self.is_solid = np.array([kind == SOFT for kind in particles.kind], bool)
        objects = range(len(particles.path))
        self.particle = [
            np.flatnonzero(_own(particles, owner)).astype(np.int32) for owner in objects
        ]
        self.segment: list[np.ndarray] = []
        self.target: list[np.ndarray] = []
        for owner in objects:
            is_own = _own(particles, owner)
            of_object = [each[is_own[each].all(axis=1)] for each in (edges, triangles)]
            lines = particles.line[is_own[particles.line].all(axis=1)]
            alone = is_own.copy()
            alone[of_object[0].ravel()] = False
            points = np.flatnonzero(alone).astype(np.int32)[:, None]
            self.segment.append(np.concatenate([of_object[0], points[:, [0, 0]]]))
            self.target.append(
                np.concatenate([of_object[1], lines[:, [0, 1, 1]], points[:, [0, 0, 0]]])
            )
        self.largest = np.array([self.radius[rows].max(initial=0.0) for rows in self.particle])
        self.has_edges = np.array([bool((s[:, 0] != s[:, 1]).any()) for s in self.segment], bool)
        self.has_triangles = np.array(
            [bool((target[:, 1] != target[:, 2]).any()) for target in self.target], bool
        )
        self.spread = np.array([self._spread(target) for target in self.target])

    def _spread(self, target: np.ndarray) -> float:
        radius = self.radius[target]
        return float((radius.max(axis=1) - radius.min(axis=1)).max(initial=0.0))

    def upload(self, device: wp.Device) -> ObjectTrees:
        """The trees on a device, by the positions at rest."""
        trees = ObjectTrees()
        put = partial(device_array, device=device)
        nodes = []
        for target in self.target:
            middle = self.position[target].mean(axis=1)
            nodes.append(split_tree(middle, np.arange(len(middle)))[:2])
        counts = {
            "target": np.array([len(target) for target in self.target]),
            "node": np.array([len(skip) for skip, _ in nodes]),
        }
        for name, count in counts.items():
            first = np.cumsum(count) - count
            setattr(trees, f"first_{name}", put(first.astype(np.int32), wp.int32))
            setattr(trees, f"{name}_count", put(count.astype(np.int32), wp.int32))
        self.node_count = counts["node"]
        trees.target = put(np.concatenate(self.target).astype(np.int32), wp.vec3i)
        for k, name in enumerate(("skip", "leaf")):
            values = np.concatenate([node[k] for node in nodes]).astype(np.int32)
            setattr(trees, name, put(values, wp.int32))
        trees.radius = put(self.radius, Real)
        trees.largest = put(self.largest, Real)
        return trees


def _own(particles: Particles, owner: int) -> np.ndarray:
    """bool[P]: the active particles of an object."""
    return (particles.owner == owner) & particles.active
