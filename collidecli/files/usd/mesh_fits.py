"""Shapes that stand for a mesh: its hull, a box or sphere about it, its triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.files.usd.mesh_content import MeshContent
from collidecli.model.convex_hull import ConvexHull, convex_hull
from collidecli.model.hull_points import hull_points
from collidecli.model.shape_types import ShapeType, checked_size
from collidecli.model.triangle_mesh import TriangleMesh, triangle_mesh

HULL, CUBE, SPHERE, TRIANGLES = "convexHull", "boundingCube", "boundingSphere", "none"


@dataclass(frozen=True)
class Fitted:
    """A shape in the shape's frame: its centre there [m]. A hull and a mesh have their own centres."""

    type: ShapeType
    size: tuple[float, ...]
    center: np.ndarray
    hull: ConvexHull | None = None
    mesh: TriangleMesh | None = None


def fitted(content: MeshContent, approximation: str, to_metres: np.ndarray, where: str) -> Fitted:
    """The shape for a mesh under an approximation that is handled.

    to_metres: float64[3, 3], the prim's stretch into the shape's frame, a reflection included, and the stage's unit.
    Raises InputError, naming the prim, for a mesh without volume or area, and faces that cross themselves.
    """
    point = content.point
    if approximation == CUBE:
        low, high = point.min(axis=0), point.max(axis=0)
        half = 0.5 * (high - low) * np.linalg.norm(to_metres, axis=0)
        found = Fitted(ShapeType.BOX, tuple(half.tolist()), to_metres @ (0.5 * (low + high)))
    elif approximation == SPHERE:
        center, radius = bounding_sphere(point @ to_metres.T)
        found = Fitted(ShapeType.SPHERE, (radius,), center)
    elif approximation == HULL:
        hull = convex_hull(hull_points(point @ to_metres.T, where), where)
        found = Fitted(ShapeType.CONVEX_MESH, tuple(hull.half_extents.tolist()), np.zeros(3), hull)
    else:
        mesh = triangle_mesh(point @ to_metres.T, wound(content.triangle, to_metres), where)
        found = Fitted(ShapeType.MESH, tuple(mesh.half_extents.tolist()), np.zeros(3), mesh=mesh)
    checked_size(found.type, found.size, where)
    return found


def wound(triangle: np.ndarray, to_metres: np.ndarray) -> np.ndarray:
    """Triangles, counterclockwise from outside again where a reflection has turned them round."""
    return triangle[:, ::-1] if np.linalg.slogdet(to_metres)[0] < 0.0 else triangle


def bounding_sphere(point: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a sphere about points [n, 3], in general not the smallest; the radius may be zero.

    It begins about the two points farthest apart of those that are extreme along the axes, and grows by each point, in
    their order, that is outside. This is the sphere of PhysX.
    Source: Ritter 1990, in the form of Ericson 2005, 4.3.2.
    """
    ends = point[np.argmin(point, axis=0)], point[np.argmax(point, axis=0)]
    axis = int(np.argmax(((ends[1] - ends[0]) ** 2).sum(axis=1)))
    center = 0.5 * (ends[0][axis] + ends[1][axis])
    radius = float(np.linalg.norm(ends[1][axis] - center))
    step, start = 1 << 16, 0
    while start < len(point):
        distance = np.linalg.norm(point[start : start + step] - center, axis=1)
        outside = np.flatnonzero(distance > radius)
        if not len(outside):
            start += step
            continue
        first = int(outside[0])
        grown = 0.5 * (radius + float(distance[first]))
        center = center + (grown - radius) / float(distance[first]) * (point[start + first] - center)
        radius, start = grown, start + first + 1
    return center, radius
