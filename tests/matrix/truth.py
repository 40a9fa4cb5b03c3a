"""Distances and depths of pairs of shapes by oracles in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from collidecli.scene.shape_types import ShapeType
from tests.matrix.forms import TERRAIN, Form
from tests.support.mesh_pairs import crosses, mesh_distance, placed, points_to_triangles
from tests.support.meshes import winding
from tests.support.oracle import rotation_of, signed_distance
from tests.support.supports import HULL, hull_faces, surface_residual

# Signed distances of points from convex solids, and of triangles by a search over each; float64 NumPy.

GOLDEN = 0.5 * (5**0.5 - 1)
STEPS = 32
"""Of a golden section, which leave 2e-7 of the side of a triangle."""
NEWTON_STEPS = 12
TINY = 1e-9
"""Coordinates nearer to a plane of symmetry than this are moved there: nothing else is off by more."""

Field = Callable[[np.ndarray], np.ndarray]


def field_of(shape_type: ShapeType, size: np.ndarray) -> Field:
    """The signed distance of points [..., 3] from a convex shape in its own frame: negative inside, and convex.

    Outside a convex mesh it is that from the planes of its faces, which is less, but above 0.
    """
    if shape_type == ShapeType.CONVEX_MESH:
        return _hull_field(size)
    if shape_type == ShapeType.ELLIPSOID:
        return lambda points: _ellipsoid(points.reshape(-1, 3), size).reshape(points.shape[:-1])

    def field(points: np.ndarray) -> np.ndarray:
        flat = points.reshape(-1, 3)
        sizes = np.broadcast_to(size, (len(flat), 3))
        return surface_residual(shape_type, sizes, flat).reshape(points.shape[:-1])

    return field


def _hull_field(size: np.ndarray) -> Field:
    planes = ConvexHull(HULL * size).equations
    return lambda points: (points @ planes[:, :3].T + planes[:, 3]).max(-1)


def _ellipsoid(points: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The nearest point is e² y / (t + e²) for the one root t > -min(e²) of sum (e y / (t + e²))² = 1 (Eberly).

    Newton's method on that convex function, from where one of its terms alone is 1, never passes the root.
    """
    y, square = np.maximum(np.abs(points), TINY), size**2
    t = (size * y - square).max(1)
    for _ in range(NEWTON_STEPS):
        part = size * y / (t[:, None] + square)
        t = t + 0.5 * ((part**2).sum(1) - 1.0) / (part**2 / (t[:, None] + square)).sum(1)
    foot = square * y / (t[:, None] + square)
    distance = np.linalg.norm(foot - y, axis=1)
    return np.where(((y / size) ** 2).sum(1) < 1.0, -distance, distance)


def least_over_triangles(field: Field, corners: np.ndarray, owner: np.ndarray, count: int) -> np.ndarray:
    """float64[count]: the least of a convex field over the triangles [n, 3, 3] of each owner.

    A convex function has one minimum over a triangle, which a golden section within a golden section finds. field:
    no steeper than 1, so that triangles far from the best are passed over.
    """
    middle = corners.mean(1)
    max_separation = np.linalg.norm(corners - middle[:, None], axis=2).max(1)
    at_middle, at_corners = field(middle), field(corners).min(1)
    best = np.full(count, np.inf)
    np.minimum.at(best, owner, np.minimum(at_middle, at_corners))
    near = at_middle - max_separation <= best[owner]
    a, b, c = (corners[near, k] for k in range(3))

    def along(s: np.ndarray) -> np.ndarray:
        start, end = a + s[:, None] * (b - a), a + s[:, None] * (c - a)
        return _golden(lambda t: field(start + t[:, None] * (end - start)), len(s))

    np.minimum.at(best, owner[near], _golden(along, len(a)))
    return best


def _golden(value: Field, count: int) -> np.ndarray:
    """The least of convex functions over [0, 1], one a row."""
    low, high = np.zeros(count), np.ones(count)
    least = np.minimum(value(low), value(high))
    x, y = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_x, at_y = value(x), value(y)
    for _ in range(STEPS):
        least = np.minimum(least, np.minimum(at_x, at_y))
        left = at_x <= at_y
        low, high = np.where(left, low, x), np.where(left, y, high)
        fresh = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_fresh = value(fresh)
        x, y = np.where(left, fresh, y), np.where(left, x, fresh)
        at_x, at_y = np.where(left, at_fresh, at_y), np.where(left, at_x, at_fresh)
    return least


# What is true of a pair of forms, in float64 and without the engine.


@dataclass(frozen=True)
class Truth:
    """Of P poses. distance: float64[P], that of the solids where they are apart, else not above 0.

    is_exact: bool[P], whether `distance` is the signed distance where they overlap too; else there
    -distance is how deep the deepest place of one of the surfaces is inside the other solid, which is never more than
    the least translation that parts them.
    """

    distance: np.ndarray
    is_exact: np.ndarray


def truth_of(first: Form, second: Form, poses: np.ndarray) -> Truth:
    """poses: float64[P, 2, 7] of the two, in the world; x y z, quaternion xyzw."""
    if first.is_convex and second.is_convex:
        relative = in_frame_of(poses[:, 0], poses[:, 1])
        distance, _ = signed_distance(first.type, first.full_size, second.type, second.full_size, relative)
        return Truth(distance, np.ones(len(poses), bool))
    if first.type == ShapeType.PLANE:
        return _over_plane(second, poses)
    if first.is_convex:
        return _convex_and_solid(first, second, poses)
    return _two_solids(first, second, poses)


def in_frame_of(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """float64[P, 7]: poses `inner` in the frames of `outer`."""
    turn = rotation_of(outer)
    place = np.einsum("pji,pj->pi", turn, inner[:, :3] - outer[:, :3])
    v, w = -outer[:, 3:6], outer[:, 6:]
    u, t = inner[:, 3:6], inner[:, 6:]
    vector = w * u + t * v + np.cross(v, u)
    return np.concatenate([place, vector, w * t - (v * u).sum(1, keepdims=True)], axis=1)


def _over_plane(form: Form, poses: np.ndarray) -> Truth:
    """The lowest vertex."""
    assert form.mesh is not None
    relative = in_frame_of(poses[:, 0], poses[:, 1])
    heights = np.einsum("pj,vj->pv", rotation_of(relative)[:, 2], form.mesh[0]) + relative[:, 2:3]
    return Truth(heights.min(1), np.ones(len(poses), bool))


def _convex_and_solid(convex: Form, solid: Form, poses: np.ndarray) -> Truth:
    """Outside, the least over the solid's triangles; a sphere's centre has an exact signed distance inside too."""
    assert solid.mesh is not None
    vertices, faces = solid.mesh
    count = len(poses)
    relative = in_frame_of(poses[:, 0], poses[:, 1])
    vertices_there = np.einsum("pij,vj->pvi", rotation_of(relative), vertices) + relative[:, None, :3]
    corners = vertices_there[:, faces]
    field = field_of(convex.type, convex.full_size)
    least = least_over_triangles(field, corners.reshape(-1, 3, 3), np.repeat(np.arange(count), len(faces)), count)
    if convex.type == ShapeType.CONVEX_MESH:
        own = (HULL * convex.size)[hull_faces()]
        least = np.array([mesh_distance(own, corners[k]) if value > 0.0 else value for k, value in enumerate(least)])
    middle = in_frame_of(poses[:, 1], poses[:, 0])[:, :3]
    inside = np.array([_is_inside(solid, point) for point in middle])
    depth = np.array([_way_out(solid, point) for point in middle])
    if convex.type == ShapeType.SPHERE:
        return Truth(np.where(inside, -depth - convex.size[0], least), np.ones(count, bool))
    if solid.has_field:
        # Contacts are of vertices there, and of the convex shape's own places in the field.
        floor = np.minimum(field(vertices_there).min(1), 0.0)
        return Truth(np.where((least > 0.0) & ~inside, least, floor), (least > 0.0) & ~inside)
    # Its middle inside, all of it has as far to go as the middle has.
    return Truth(np.where(inside, np.minimum(-depth, np.minimum(least, 0.0)), least), ~inside & (least > 0.0))


def _is_inside(solid: Form, point: np.ndarray) -> bool:
    if solid.type == ShapeType.HEIGHTFIELD:
        return TERRAIN.is_inside(point)
    assert solid.mesh is not None
    vertices, faces = solid.mesh
    return winding(vertices[faces], point) > 0.5


def _way_out(solid: Form, point: np.ndarray) -> float:
    """From a point inside to the surface; that of a heightfield is without its base."""
    if solid.type == ShapeType.HEIGHTFIELD:
        return -TERRAIN.signed_distance(point)
    assert solid.mesh is not None
    vertices, faces = solid.mesh
    return float(points_to_triangles(point[None], vertices[faces])[0])


def _two_solids(first: Form, second: Form, poses: np.ndarray) -> Truth:
    """Outside, the surfaces' distance; else the deepest vertex of either in the other."""
    assert first.mesh is not None
    assert second.mesh is not None
    distance = np.empty(len(poses))
    for k, (pose_a, pose_b) in enumerate(poses):
        a, b = placed(first.mesh, pose_a), placed(second.mesh, pose_b)
        apart = mesh_distance(a, b)
        deep = max(_deepest(a, b), _deepest(b, a))
        distance[k] = -deep if deep > 0.0 or crosses(a, b) or crosses(b, a) else apart
    return Truth(distance, distance > 0.0)


def _deepest(corners_a: np.ndarray, corners_b: np.ndarray) -> float:
    """How deep the deepest vertex of a is inside closed b; 0 where none is."""
    points = np.unique(corners_a.reshape(-1, 3), axis=0)
    inside = np.array([winding(corners_b, point) > 0.5 for point in points], bool)
    return float(points_to_triangles(points[inside], corners_b).max()) if inside.any() else 0.0
