"""What is true of a pair of forms, in float64 and without the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.shape_types import ShapeType
from tests.matrix.forms import TERRAIN, Form
from tests.matrix.nearest import field_of, least_over_triangles
from tests.support.mesh_pairs import crosses, mesh_distance, placed, points_to_triangles
from tests.support.meshes import winding
from tests.support.oracle import rotation_of, signed_distance
from tests.support.supports import HULL, hull_faces


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
