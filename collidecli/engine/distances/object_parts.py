"""The particles, edges and faces of particle objects that may touch a shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from collidecli.engine.particles.cloud import active_items
from collidecli.numerics.products import norm
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.particles import canonical_triangles


def longest_side(corners: np.ndarray) -> np.ndarray:
    """float64[...]: longest side of edges or triangles [..., k, 3]."""
    return norm(corners - np.roll(corners, 1, axis=-2)).max(axis=-1)


@dataclass(frozen=True)
class ObjectParts:
    """The parts of an object in a template.

    particle: int64[V], rows of its active particles. thread: int64[V], their places in
    `Cloud.element`. elements: of edges, then of faces, corners as entries of `particle`, int64[n,
    k], places int64[n], and the number of elements before them.
    """

    particle: np.ndarray
    thread: np.ndarray
    elements: tuple[tuple[np.ndarray, np.ndarray, int], ...]

    def longest_sides(self, position: np.ndarray) -> np.ndarray:
        """float64[n]: the longest side of an edge at positions [n, V, 3] of the particles; edges
        are the sides of the faces."""
        longest = np.zeros(len(position))
        edge = self.elements[0][0]
        if len(edge):
            for row, points in enumerate(position):
                longest[row] = longest_side(points[edge]).max()
        return longest

    def indices(self, is_element: np.ndarray, part: np.ndarray) -> np.ndarray:
        """int32[n, 3]: particles of parts, -1 none. part: int64[n], entries of `particle`, or of
        all elements."""
        found = np.full((len(part), 3), -1, np.int32)
        found[~is_element, 0] = self.particle[part[~is_element]]
        for corner, _, first in self.elements:
            of_kind = is_element & (part >= first) & (part < first + len(corner))
            found[of_kind, : corner.shape[1]] = self.particle[corner[part[of_kind] - first]]
        return found


class PartsOfObjects:
    """The parts of a model's objects."""

    def __init__(self, model: Model) -> None:
        self._model = model
        particles = model.particles
        elements = (None, particles.edge, canonical_triangles(particles.triangle))
        templates = range(int(model.world_template.max(initial=0)) + 1)
        self._items = [
            [active_items(particles, template, rows) for rows in elements] for template in templates
        ]
        self._held = cache(self._parts)

    def of(self, template: int, owner: int, shape: int) -> ObjectParts:
        """The parts of an object in a world of a template, without those that move with the body of
        a shape."""
        return self._held(template, owner, int(self._model.shapes.body[shape]))

    def _parts(self, template: int, owner: int, body: int) -> ObjectParts:
        particles = self._model.particles
        is_own = particles.owner == owner
        if body != STATIC_BODY:
            is_own &= particles.body != body
        found = []
        before = 0
        for items in self._items[template]:
            chosen = np.flatnonzero(np.logical_and.reduce(is_own[items], axis=1))
            found.append((items[chosen].astype(np.int64), before + chosen))
            before += len(items)
        particle = found[0][0][:, 0]
        elements = []
        first = 0
        for items, thread in found[1:]:
            elements.append((np.searchsorted(particle, items), thread, first))
            first += len(items)
        return ObjectParts(particle, found[0][1], tuple(elements))
