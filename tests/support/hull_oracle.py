"""Distances of convex meshes without any search: Qhull's facets of a Minkowski difference; float64
NumPy.

A sphere and a capsule are a point and a segment with a radius, so with boxes and convex meshes they
are all polytopes. For cylinders, cones and ellipsoids there is no such list of facets: there a
direction proves a distance, see `proven`.
"""

from itertools import product

import numpy as np
from scipy.spatial import ConvexHull

from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.shape_types import ShapeType
from tests.support.hydroelastic import moved
from tests.support.meshes import triangle_distances
from tests.support.oracle import rotation_of
from tests.support.supports import support_height

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))
POLYTOPES = (ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.BOX, ShapeType.CONVEX_MESH)


def placed(model: Model, pose: np.ndarray, row: int) -> np.ndarray:
    """World pose [7] of a shape, bodies at pose [B, 7]; as position, quaternion xyzw."""
    own = model.shapes.pose[row]
    body = int(model.shapes.body[row])
    if body == STATIC_BODY:
        return own
    return moved(own, pose[body, 3:], pose[body, :3])


def core(model: Model, pose: np.ndarray, row: int) -> tuple[np.ndarray, float]:
    """Points in the world whose hull, with a radius around it, is the shape; for one of
    POLYTOPES."""
    size = model.shapes.size[row]
    kind = ShapeType(model.shapes.type[row])
    if kind == ShapeType.CONVEX_MESH:
        points = model.hulls[model.shapes.hull[row]].vertex
        radius = 0.0
    elif kind == ShapeType.BOX:
        points = CUBE * size
        radius = 0.0
    elif kind == ShapeType.CAPSULE:
        points = np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]])
        radius = float(size[0])
    else:
        points = np.zeros((1, 3))
        radius = float(size[0])
    world = placed(model, pose, row)
    return points @ rotation_of(world).T + world[:3], radius


def polytope_distance(p: np.ndarray, q: np.ndarray) -> float:
    """Signed distance of the hulls of points p and q, by every facet of their Minkowski
    difference."""
    difference = (q[:, None] - p[None]).reshape(-1, 3)
    scale = np.abs(difference - difference.mean(0)).max()
    hull = ConvexHull(difference / scale)
    offset = hull.equations[:, 3]
    if offset.max() <= 0.0:
        return float(offset.max() * scale)
    corners = hull.points[hull.simplices[offset > 0.0]]
    return float(triangle_distances(np.zeros((1, 3)), corners)[0] * scale)


def low_and_high(
    model: Model, pose: np.ndarray, row: int, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least and most of direction . x over a shape in the world, for unit directions [n, 3]."""
    world = placed(model, pose, row)
    kind = ShapeType(model.shapes.type[row])
    middle = direction @ world[:3]
    own = direction @ rotation_of(world)
    if kind == ShapeType.PLANE:
        along = own[:, 2] > 1.0 - 1e-12
        return np.full(len(own), -np.inf), np.where(along, middle, np.inf)
    if kind == ShapeType.CONVEX_MESH:
        heights = own @ model.hulls[model.shapes.hull[row]].vertex.T
        return middle + heights.min(1), middle + heights.max(1)
    size = model.shapes.size[row][None]
    return middle - support_height(kind, size, -own[None])[0], middle + support_height(
        kind, size, own[None]
    )[0]


def proven(
    model: Model, pose: np.ndarray, row0: int, row1: int, direction: np.ndarray
) -> np.ndarray:
    """Gap of two shapes along unit directions [n, 3] from the first to the second: never more than
    their distance."""
    return (
        low_and_high(model, pose, row1, direction)[0]
        - low_and_high(model, pose, row0, direction)[1]
    )
