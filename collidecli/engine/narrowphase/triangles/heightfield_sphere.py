"""Collision of a sphere and one triangle of a heightfield: the closest point to its centre, in closed form."""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.support import Primitive
from collidecli.engine.narrowphase.convex.triangle_features import triangle_feature_at
from collidecli.engine.narrowphase.triangles.convex_triangle import NEARER
from collidecli.engine.narrowphase.triangles.heightfield_query_bounds import AT_SURFACE, nearest_on_triangle
from collidecli.engine.narrowphase.triangles.normal_cones import has_nearer, normal_cone_at


@wp.func
def collide_sphere_triangle(
    a: Primitive,
    b: TriangleShape,
    field: Any,
    mesh: int,
    closed: int,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """The contact of a sphere with a triangle, where the direction between them is in the normal cone of the surface.

    Arguments and result as `convex_triangle.collide_convex_triangle`. Degenerate: for a centre on the triangle the
    normal is the triangle's.
    """
    radius = a.size[0]
    center = wp.transform_point(wp.transform_inverse(pose_b_to_a), Vec3())
    foot = nearest_on_triangle(b, center)
    distance = wp.length(center - foot)
    if distance - radius >= max_separation:
        return 0
    direction = b.normal
    if distance > AT_SURFACE * radius:
        direction = (center - foot) / distance
    normal_cone = normal_cone_at(field, b, foot, direction)
    if normal_cone.belongs == 0:
        return 0
    separation = distance - radius
    if wp.dot(direction, normal_cone.outward) < Real(0.0):
        if has_nearer(field, mesh, center, distance * NEARER, Vec3()):
            return 0
        separation = -distance - radius
        direction = -direction
    normal = -wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), direction)
    emit_contact(out, row, radius * normal, normal, separation, -1, triangle_feature_at(b, foot), 0)
    return 1
