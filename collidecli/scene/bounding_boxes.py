"""Axis-aligned bounding boxes of shapes, exact to rounding."""

from __future__ import annotations

import numpy as np

from collidecli.numerics.poses import rotated
from collidecli.numerics.products import norm
from collidecli.scene.distinct_values import distinct
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import support_heights

MAX_COORDINATES = 1 << 22
"""Coordinates of turned vertices that are in memory at once."""


def bounding_boxes(model: Model, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64[n, S, 3] twice: the least and greatest coordinates of shapes in the world [m], of
    their surfaces without margins; infinite of a plane.

    placed: float64[n, S, 7], poses of all shapes.
    """
    shapes = model.shapes
    turns = placed[..., 3:] / norm(placed[..., 3:])[..., None]
    lower = np.empty((*placed.shape[:2], 3))
    upper = np.empty_like(lower)
    for axis in range(3):
        along = np.zeros(3)
        along[axis] = 1.0
        direction = rotated(turns * (-1.0, -1.0, -1.0, 1.0), along)
        lower[..., axis] = -_heights(model, -direction)
        upper[..., axis] = _heights(model, direction)
    for row in range(len(shapes)):
        points = _vertices(model, row)
        if points is not None:
            lower[:, row], upper[:, row] = _turned_range(points, turns[:, row])
    is_plane = shapes.type == ShapeType.PLANE
    lower[:, is_plane] = -np.inf
    upper[:, is_plane] = np.inf
    return lower + placed[..., :3], upper + placed[..., :3]


def _heights(model: Model, direction: np.ndarray) -> np.ndarray:
    """float64[n, S]: greatest height of each shape along its own direction[n, S, 3], in its
    frame."""
    count = len(direction)
    found = support_heights(
        np.tile(model.shapes.type, count),
        np.tile(model.shapes.size, (count, 1)).astype(np.float64),
        direction.reshape(-1, 3),
    )
    return found.reshape(direction.shape[:2])


def _vertices(model: Model, row: int) -> np.ndarray | None:
    """float64[V, 3]: the vertices of a hull, a mesh or a heightfield's solid; None for another
    shape."""
    shapes = model.shapes
    if shapes.hull[row] >= 0:
        return model.hulls[shapes.hull[row]].vertex
    if shapes.heightfield[row] >= 0:
        return solid_mesh(model.heightfields[shapes.heightfield[row]]).vertex
    if shapes.mesh[row] < 0:
        return None
    mesh = model.meshes[shapes.mesh[row]]
    return mesh.vertex[distinct(mesh.face)]


def _turned_range(points: np.ndarray, turns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64[n, 3] twice: the least and greatest coordinates of points[V, 3], turned by each of
    turns[n, 4]."""
    lower = np.empty((len(turns), 3))
    upper = np.empty_like(lower)
    step = max(1, MAX_COORDINATES // (3 * len(points)))
    for start in range(0, len(turns), step):
        part = slice(start, start + step)
        turned = rotated(turns[part, None], points)
        lower[part] = turned.min(axis=1)
        upper[part] = turned.max(axis=1)
    return lower, upper
