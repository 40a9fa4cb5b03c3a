"""Links of which one is joined or fixed to the other, and those of them that touch at a depth of
rounding."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from collidecli.analysis.summary import touches_of
from collidecli.engine.device_model import bounding_radius
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.scene.allowed_pairs import are_allowed
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.kinematics import ArticulationKinematics
from collidecli.wording import count

ROUNDING = 1e-6
"""Depth, over the radius of the smaller shape, up to which faces that lie in each other by the
model may overlap: poses of float32 have errors of 6e-8 of their coordinates, which are some ten
times as large as the shape."""
LEAST_SHARE = 0.05
LEAST_CELLS = 2
"""Of the cells of a motion, in which a pair must touch to be named."""


def adjacent_bodies(
    tree: ArticulationKinematics, with_shapes: Collection[str]
) -> set[tuple[str, str]]:
    """Pairs of bodies with shapes of which one is joined or fixed to the other, in the order of the
    tree's bodies, either first. A body without shapes on the way between them does not count."""
    adjacent = set()
    for row, name in enumerate(tree.body_path):
        parent = tree.body_parent[row]
        while parent >= 0 and tree.body_path[parent] not in with_shapes:
            parent = tree.body_parent[parent]
        if parent >= 0 and name in with_shapes:
            above = tree.body_path[parent]
            adjacent |= {(above, name), (name, above)}
    return adjacent


class FlushLinks:
    """Finds the adjacent links of a scene whose shapes touch no deeper than by rounding, block by
    block. cell_count: of the motion."""

    def __init__(self, scene: LoadedScene, cell_count: int) -> None:
        shapes = scene.model.shapes
        self._cell_count = cell_count
        self._of_worlds = "" if scene.model.world_count == 1 else " of the worlds"
        self._shape_count = len(shapes)
        self._names = scene.shape_bodies
        radius = bounding_radius(shapes.type, shapes.size)
        self._keys = _keys_of_adjacent_shapes(scene)
        one, other = np.divmod(self._keys, max(1, self._shape_count))
        self._limit = ROUNDING * np.minimum(radius[one], radius[other]).astype(np.float64)
        self._cells = np.zeros(len(self._keys), np.int64)
        self._is_deep = np.zeros(len(self._keys), bool)

    def add(self, block: ContactBlock) -> None:
        """Adds a block with the columns shape0, shape1 and distance."""
        if not len(self._keys) or not len(block.columns["shape0"]):
            return
        touches = touches_of(block)
        key = touches.shape0.astype(np.int64) * self._shape_count + touches.shape1
        row = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        is_touching = (self._keys[row] == key) & (touches.distance <= 0.0)
        row = row[is_touching]
        distance = touches.distance[is_touching]
        self._cells += np.bincount(row, minlength=len(self._keys))
        self._is_deep[row[distance < -self._limit[row]]] = True

    def notes(self) -> tuple[str, ...]:
        """A warning about the pairs of links that touch so in many cells; none without any."""
        least = max(LEAST_CELLS, LEAST_SHARE * self._cell_count)
        rows = np.flatnonzero((self._cells >= least) & ~self._is_deep)
        cells: dict[tuple[str, str], int] = {}
        for row in rows.tolist():
            one, other = divmod(int(self._keys[row]), self._shape_count)
            pair = self._names[one], self._names[other]
            cells[pair] = max(cells.get(pair, 0), int(self._cells[row]))
        if not cells:
            return ()
        (one, other), most = max(cells.items(), key=lambda of_pair: of_pair[1])
        more = f", as {count(len(cells) - 1)} more such pairs do" if len(cells) > 2 else ""
        more = ", as one more such pair does" if len(cells) == 2 else more
        cells_text = f"{count(self._cell_count)} frames{self._of_worlds}"
        return (
            f"{one} and {other}, of which one is joined or fixed to the other, touch at a depth of"
            f" rounding in {count(most)} of {cells_text}{more}:"
            " --disabled-pairs with the SRDF file of collide matrix, or --self-collisions off,"
            " leaves such pairs out",
        )


def _keys_of_adjacent_shapes(scene: LoadedScene) -> np.ndarray:
    """int64[n], ascending: the pairs of shapes of adjacent links that may touch, as shape0 * number
    of shapes + shape1, the smaller first. Most robots have none, as filters of joints forbid them.
    """
    shapes = scene.model.shapes
    sources = scene.template_import(shapes.template)
    of_link: dict[tuple[int, str], list[int]] = {}
    for row, (source, link) in enumerate(zip(sources, scene.shape_bodies, strict=True)):
        if link and not shapes.is_trigger[row]:
            of_link.setdefault((source, link), []).append(row)
    keys = [np.zeros(0, np.int64)]
    for source, imported in enumerate(scene.imports):
        articulated = imported.articulated
        known = {link for of_source, link in of_link if of_source == source}
        for tree in articulated.articulations if articulated is not None else ():
            for one, other in adjacent_bodies(tree, known):
                rows = np.meshgrid(of_link[source, one], of_link[source, other])
                keys.append((rows[0] * len(shapes) + rows[1])[rows[0] < rows[1]])
    key = np.sort(np.concatenate(keys))
    pairs = np.stack(np.divmod(key, max(1, len(shapes))), axis=1)
    return key[are_allowed(scene.model, pairs)]
