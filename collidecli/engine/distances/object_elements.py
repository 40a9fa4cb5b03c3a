"""Elements of particle objects for their distances from each other: segments, and trees of
targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class OfObjects:
    """Rows of each object, one object after another.

    rows: int32[n, ...]. first, count: int64[O].
    """

    rows: np.ndarray
    first: np.ndarray
    count: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[np.ndarray]) -> OfObjects:
        count = np.array([len(part) for part in parts], np.int64)
        return cls(np.concatenate(parts).astype(np.int32), np.cumsum(count) - count, count)

    def of(self, owner: np.ndarray, most: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Entries of `owner`, int64[n], and the rows of each of these objects; of an object with
        more than `most` about as many as that, at equal steps, if `most` is not 0."""
        count = self.count[owner]
        step = np.maximum(1, count // most) if most else np.ones_like(count)
        count = -(-count // step)
        entry = np.repeat(np.arange(len(owner)), count)
        number = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        return entry, self.rows[self.first[owner][entry] + step[entry] * number]


class ObjectElements:
    """The active elements of a model's particle objects, on the host.

    segment: int32[n, 2], the edges of each object, and its particles without any, twice. target:
    int32[n, 3], the triangles, lines and particles without either, as of `ObjectTrees`. particle:
    int32[n], the active ones. spread: float64[O], greatest difference of two radii within an
    element [m]. largest: float64[O], greatest radius [m]. is_solid, has_edges, has_triangles:
    bool[O]. Distances from an object are those from all of its targets, which have every point of
    its segments.
    """

    def __init__(self, particles: Particles) -> None:
        triangles = canonical_triangles(particles.triangle)
        edges = particles.edge
        self.radius = particles.radius
        self.position = particles.position
        self.is_solid = np.array([kind == SOFT for kind in particles.kind], bool)
        segments = []
        targets = []
        own = [_own(particles, owner) for owner in range(len(particles.path))]
        for is_own in own:
            sides, faces, lines = (
                each[is_own[each].all(axis=1)] for each in (edges, triangles, particles.line)
            )
            alone = is_own.copy()
            alone[sides.ravel()] = False
            points = np.flatnonzero(alone)[:, None]
            segments.append(np.concatenate([sides, points[:, [0, 0]]]))
            targets.append(np.concatenate([faces, lines[:, [0, 1, 1]], points[:, [0, 0, 0]]]))
        self.particle = OfObjects.joined([np.flatnonzero(is_own) for is_own in own])
        self.segment = OfObjects.joined(segments)
        self.target = OfObjects.joined(targets)
        self.largest = np.array([self.radius[is_own].max(initial=0.0) for is_own in own])
        self.has_edges = np.array([bool((s[:, 0] != s[:, 1]).any()) for s in segments], bool)
        self.has_triangles = np.array([bool((t[:, 1] != t[:, 2]).any()) for t in targets], bool)
        self.spread = np.array([self._spread(target) for target in targets])

    def _spread(self, target: np.ndarray) -> float:
        radius = self.radius[target]
        return float((radius.max(axis=1) - radius.min(axis=1)).max(initial=0.0))

    def upload(self, device: wp.Device) -> ObjectTrees:
        """The trees on a device, by the positions at rest."""
        trees = ObjectTrees()
        put = partial(device_array, device=device)
        nodes = []
        middle = self.position[self.target.rows].mean(axis=1)
        for own in np.split(middle, self.target.first[1:]):
            nodes.append(split_tree(own, np.arange(len(own)))[:2])
        self.node_count = np.array([len(skip) for skip, _ in nodes])
        counts = {"target": self.target.count, "node": self.node_count}
        for name, count in counts.items():
            first = np.cumsum(count) - count
            setattr(trees, f"first_{name}", put(first.astype(np.int32), wp.int32))
            setattr(trees, f"{name}_count", put(count.astype(np.int32), wp.int32))
        trees.target = put(self.target.rows, wp.vec3i)
        for k, name in enumerate(("skip", "leaf")):
            values = np.concatenate([node[k] for node in nodes]).astype(np.int32)
            setattr(trees, name, put(values, wp.int32))
        trees.radius = put(self.radius, Real)
        trees.largest = put(self.largest, Real)
        return trees


def _own(particles: Particles, owner: int) -> np.ndarray:
    """bool[P]: the active particles of an object."""
    return (particles.owner == owner) & particles.active
