"""Contact of a convex shape whose origin is inside a closed surface, with the triangle closest to the origin."""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.mesh_nearest import feature_of_mesh_point, mesh_point_on_triangle, outward_at
from collidecli.engine.geometry.meshes import Meshes, TriangleShape
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import SPHERE
from collidecli.engine.geometry.support import Primitive, support_point
from collidecli.engine.narrowphase.convex.features import feature_at
from collidecli.engine.narrowphase.convex.triangle_features import triangle_feature_at
from collidecli.engine.narrowphase.triangles.contact_priority import FALLBACK, ORIGIN_INSIDE
from collidecli.engine.narrowphase.triangles.heightfield_query_bounds import (
    AT_SURFACE,
    middle_of_hull,
    nearest_on_triangle,
)

# ruff: noqa: F811


@wp.func(inline=False)
def origin_inside_mesh(
    a: Any, meshes: Meshes, mesh: int, face: int, pose_b_to_a: Pose, out: ContactBuffer, row: int
) -> int:
    """Writes the contact of a shape whose origin is inside a closed mesh; returns 1, the number of contacts.

    Its normal is the direction from the closest point of the mesh, on triangle `face`, to the origin; its depth is that
    of the shape's farthest point behind the plane through the closest point. It counts where it is deeper than all
    others of the pair. Degenerate: for an origin on the surface the normal is the surface's.
    """
    origin = wp.transform_get_translation(wp.transform_inverse(pose_b_to_a))
    closest = mesh_point_on_triangle(meshes, face, origin)
    outward = closest.point - origin
    if wp.length(outward) > Real(0.0):
        outward = wp.normalize(outward)
    else:
        outward = wp.normalize(outward_at(meshes, face, closest.part))
    normal = -wp.transform_vector(pose_b_to_a, outward)
    point = support_point(a, normal)
    separation = wp.dot(wp.transform_point(pose_b_to_a, closest.point) - point, normal)
    code = feature_of_mesh_point(meshes, mesh, face, closest.part)
    emit_contact(out, row, point, normal, separation, feature_at(a, point, normal), code, 0, ORIGIN_INSIDE)
    return 1


@wp.func
def middle_of(shape: Primitive) -> Vec3:
    """An interior point of a primitive, its own frame [m]."""
    return Vec3()


@wp.func
def middle_of(shape: HullShape) -> Vec3:
    """An interior point of a hull, its own frame [m]."""
    return middle_of_hull(shape)


@wp.func
def origin_inside_heightfield(a: Any, b: TriangleShape, pose_b_to_a: Pose, out: ContactBuffer, row: int) -> int:
    """Writes the contact of a shape whose middle is inside a heightfield with the triangle closest to the middle.

    Its normal is the direction between the middle and the closest point; its depth is that of the shape's farthest
    point behind the plane through the closest point. It is a fallback, except for spheres, whose depth it is. Returns
    1.
    """
    middle = wp.transform_point(wp.transform_inverse(pose_b_to_a), middle_of(a))
    foot = nearest_on_triangle(b, middle)
    outward = foot - middle
    if wp.length(outward) < AT_SURFACE * wp.max(b.size[0], wp.max(b.size[1], b.size[2])):
        outward = b.normal
    outward = wp.normalize(outward)
    normal = -wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), outward)
    point = support_point(a, normal)
    separation = wp.dot(wp.transform_point(pose_b_to_a, foot) - point, normal)
    priority = wp.where(a.type == SPHERE, 0, FALLBACK)
    code = triangle_feature_at(b, foot)
    emit_contact(out, row, point, normal, separation, feature_at(a, point, normal), code, 0, priority)
    return 1
