"""A contact map in a view: the triangles of the measured shapes, coloured by the distance of the
measured point that is nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.numerics.poses import moved_points
from collidecli.pages.view.colours import GAP, depth_colours
from collidecli.pages.view.map_file import ContactMap
from collidecli.pages.view.meshes import shape_groups
from collidecli.scene.distinct_values import common, distinct
from collidecli.scene.model import Model

STEPS = 8
"""Number of colours of distances, and of depths."""
LEVELS = 1 + 2 * STEPS
"""Colours of triangles: 0 is farther than the range, or has no distance; 1 to STEPS a distance from
the range to 0; the others a depth from 0 on."""
FARTHER = (205, 211, 219)
FAR = (214, 238, 246)
DEFAULT_RANGE = 0.05
"""Distance at which the colours of a map without a threshold end [m]."""
EDGE = 0.7
"""Longest edge of a triangle relative to the mean distance of the points of its shape."""
MOST_TRIANGLES = 60_000
"""Of all shapes of a map, unless their meshes have more."""
BLOCK = 64
"""Frames that are read together."""


def level_colours() -> list[tuple[int, int, int]]:
    """Colours of the levels of a map."""
    share = np.linspace(0.0, 1.0, STEPS)[:, None]
    near = np.rint((1.0 - share) * FAR + share * GAP).astype(int)
    deep = depth_colours(np.arange(float(STEPS)), STEPS - 1.0)
    return [FARTHER, *((r, g, b) for r, g, b in [*near.tolist(), *deep.tolist()])]


def levels(distance: np.ndarray, reach: float, deepest: float) -> np.ndarray:
    """uint8: numbers of the colours of distances [m]. reach: where they end. deepest: depth of the
    last colour [m]; 0 for a set without depths."""
    distance = distance.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.minimum(STEPS * (1.0 - distance / reach), STEPS - 1.0)
        depth = np.minimum(STEPS * -distance / deepest, STEPS - 1.0) if deepest > 0.0 else 0.0
        found = np.where(distance > 0.0, 1.0 + near, 1.0 + STEPS + depth)
        return np.where(distance < reach, found, 0.0).astype(np.uint8)


@dataclass(frozen=True)
class MapTriangles:
    """Triangles of the measured shapes of a template.

    corner: float32[T, 3, 3], in the frame of their shape [m]. row: int32[T], of the shape. point:
    int32[T], rows of `points`. points: int64[n], the points of the map that belong to the shapes.
    """

    corner: np.ndarray
    row: np.ndarray
    point: np.ndarray
    points: np.ndarray


class ViewMap:
    """A contact map for the frames of a view. reach: distance at which its colours end [m]. rows:
    int64[n], the measured shapes of the model. point_count: of the map."""

    def __init__(
        self, contact_map: ContactMap, model: Model, frame_of: np.ndarray, reach: float
    ) -> None:
        """frame_of: frame of the map for each frame of the view."""
        self.reach = reach
        self.rows = distinct(contact_map.point_shape)
        self.point_count = len(contact_map.point)
        self._map = contact_map
        self._model = model
        self._frame_of = frame_of
        self._triangles: dict[int, MapTriangles] = {}

    def of_template(self, template: int) -> MapTriangles:
        """The triangles of a template."""
        if template not in self._triangles:
            self._triangles[template] = self._coloured(template)
        return self._triangles[template]

    def levels(self, world: int, deepest: float, frames: range | None = None) -> np.ndarray:
        """uint8[n, K]: numbers of the colours of a world's points in frames of the view; None is
        all."""
        points = self.of_template(int(self._model.world_template[world])).points
        frame_of = self._frame_of
        if frames is not None:
            frame_of = frame_of[frames.start : frames.stop]
        found = np.empty((len(points), len(frame_of)), np.uint8)
        for begin in range(0, len(frame_of), BLOCK):
            wanted = frame_of[begin : begin + BLOCK]
            first = int(wanted.min())
            distance = self._map.distance(first, int(wanted.max()) + 1, world)
            values = distance[wanted - first][:, points]
            found[:, begin : begin + BLOCK] = levels(values, self.reach, deepest).T
        return found

    def _coloured(self, template: int) -> MapTriangles:
        from scipy.spatial import KDTree

        model = self._model
        rows = common(self.rows, model.template_shapes(template))
        points = np.flatnonzero(np.isin(self._map.point_shape, rows))
        corners = [np.zeros((0, 3, 3))]
        owners = [np.zeros(0, int)]
        nearest = [np.zeros(0, int)]
        for group in (each.of_rows(rows) for each in shape_groups(model, len(model.shapes))):
            for row, scale in zip(group.rows.tolist(), group.scale, strict=True):
                own = np.flatnonzero(self._map.point_shape[points] == row)
                corner = (group.mesh.vertex.astype(float) * scale)[group.mesh.face.astype(int)]
                corner = refined(corner, len(own), MOST_TRIANGLES // len(rows))
                in_body = moved_points(model.shapes.pose[row], corner.mean(axis=1))
                corners.append(corner)
                owners.append(np.full(len(corner), row))
                nearest.append(own[KDTree(self._map.point[points[own]]).query(in_body)[1]])
        return MapTriangles(
            np.concatenate(corners).astype(np.float32),
            np.concatenate(owners).astype(np.int32),
            np.concatenate(nearest).astype(np.int32),
            points,
        )


def refined(corner: np.ndarray, point_count: int, most: int) -> np.ndarray:
    """float64[t, 3, 3]: triangles whose longest edges are halved until each is short for its number
    of points, or there are `most`."""
    across = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    area = 0.5 * float(np.linalg.norm(across, axis=1).sum())
    longest = EDGE * np.sqrt(area / max(point_count, 1))
    while True:
        length = np.linalg.norm(corner - np.roll(corner, -1, axis=1), axis=2)
        long = length.max(axis=1, initial=0.0) > longest
        if not long.any() or len(corner) + int(long.sum()) > most:
            return corner
        halved = corner[long]
        turn = (length[long].argmax(axis=1)[:, None] + np.arange(3)) % 3
        a, b, c = np.take_along_axis(halved, turn[:, :, None], axis=1).transpose(1, 0, 2)
        middle = 0.5 * (a + b)
        halves = [np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)]
        corner = np.concatenate([corner[~long], *halves])


def frames_in_map(contact_map: ContactMap, time: Sequence[float], step: Sequence[int]) -> list[int]:
    """Frame of the map with each time and step; -1 for one that it does not have."""
    keys = zip(contact_map.time.tolist(), contact_map.step.tolist(), strict=True)
    frame_at = {key: n for n, key in reversed(list(enumerate(keys)))}
    return [frame_at.get(key, -1) for key in zip(time, step, strict=True)]
