"""A convex shape whose middle is inside a heightfield: out through the triangle nearest to that."""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Pose, Vec3
from collidecli.engine.geometry.shape_codes import SPHERE
from collidecli.engine.geometry.support import Primitive, support_point
from collidecli.engine.narrowphase.convex.features import feature_at
from collidecli.engine.narrowphase.convex.triangle_features import triangle_feature_at
from collidecli.engine.narrowphase.triangles.contact_priority import FALLBACK
from collidecli.engine.narrowphase.triangles.heightfield_query_bounds import middle_of_hull
from collidecli.engine.narrowphase.triangles.triangle_closest_point import AT_SURFACE, nearest_on_triangle

# ruff: noqa: F811


@wp.func
def middle_of(shape: Primitive) -> Vec3:
    """A point within a shape, its own frame [m]."""
    return Vec3()


@wp.func
def middle_of(shape: HullShape) -> Vec3:
    """The same of a hull."""
    return middle_of_hull(shape)


@wp.func
def collide_origin_inside(a: Any, b: TriangleShape, pose_b_to_a: Pose, out: ContactBuffer, row: int) -> int:
    """The contact of a shape with the triangle that its middle, which is inside, is nearest to.

    Its normal is the way from the middle to the triangle; its depth is that of the shape's farthest point behind the
    plane through the nearest point. It counts where the pair has no other, save of spheres, whose depth it is.
    """
    middle = wp.transform_point(wp.transform_inverse(pose_b_to_a), middle_of(a))
    foot = nearest_on_triangle(b, middle)
    way = foot - middle
    if wp.length(way) < AT_SURFACE * wp.max(b.size[0], wp.max(b.size[1], b.size[2])):
        way = b.normal
    way = wp.normalize(way)
    normal = -wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), way)
    point = support_point(a, normal)
    separation = wp.dot(wp.transform_point(pose_b_to_a, foot) - point, normal)
    priority = wp.where(a.type == SPHERE, 0, FALLBACK)
    code = triangle_feature_at(b, foot)
    emit_contact(out, row, point, normal, separation, feature_at(a, point, normal), code, 0, priority)
    return 1
