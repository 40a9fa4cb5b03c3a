"""Colliders of a sphere and each primitive: one contact, at the point of b's surface closest to its
centre.

Every collider here has these arguments and result:

Args:
    size_a: (radius, 0, 0) [m].
    size_b: size of b, see `ShapeType` [m].
    pose_b_to_a: pose of b in a's frame.
    max_separation: contacts with at least this separation are omitted [m].
    out, row: contacts are written to rows `row` and up; a's feature is -1.
Returns:
    number of contacts written.

`sphere_collider` takes the radius of b as a function, declared for each type: `wp.length` named
outside of a kernel would register all functions of Warp in every run.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry import nearest_on_primitive
from collidecli.engine.geometry.real import UP, Pose, Real, Vec3
from collidecli.engine.geometry.segments import (
    END_HIGH,
    END_LOW,
    SIDE,
    TOUCHING,
    away_from_axis,
)


@wp.func
def collide_sphere_sphere(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contact of two spheres: the points of each on the line of centres.

    Degenerate: coincident centres give the normal +z of a.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    center_distance = wp.length(center_b)
    separation = center_distance - size_a[0] - size_b[0]
    if separation >= max_separation:
        return 0
    normal = center_b / center_distance if center_distance > Real(0.0) else UP
    emit_contact(out, row, size_a[0] * normal, normal, separation, -1, -1, 0)
    return 1


@wp.func
def collide_sphere_capsule(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contact of a sphere and a capsule: closest point of the capsule's inner segment to the
    sphere's centre.

    Features of b: 0 its end at -z, 1 its end at +z, 2 its side. Degenerate: a centre on the segment
    leaves along +x of the capsule, as it does from a cylinder's axis: the normal is the capsule's
    -x.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radii = size_a[0] + size_b[0]
    bound = radii + max_separation + size_b[1]
    if bound <= Real(0.0) or wp.dot(center, center) > bound * bound:
        return 0
    rotation = wp.transform_get_rotation(pose_b_to_a)
    in_b = -wp.quat_rotate_inv(rotation, center)
    z = wp.clamp(in_b[2], -size_b[1], size_b[1])
    feature = SIDE
    if z != in_b[2]:
        feature = END_HIGH if z > Real(0.0) else END_LOW
    outward = Vec3(in_b[0], in_b[1], in_b[2] - z)
    core_distance = wp.length(outward)
    separation = core_distance - radii
    if separation >= max_separation:
        return 0
    outward = (
        outward / core_distance if core_distance > TOUCHING * size_b[1] else away_from_axis(in_b)
    )
    normal = -wp.quat_rotate(rotation, outward)
    emit_contact(out, row, size_a[0] * normal, normal, separation, -1, feature, 0)
    return 1


def sphere_collider(
    nearest_point: Callable[..., Any], bounding_radius: Callable[..., Any], name: str
) -> Any:
    """Collider of a sphere and a shape b: contact at the point of b's surface closest to the
    sphere's centre.

    Args:
        nearest_point: (size, point) -> `SurfacePoint` of b. bounding_radius: (size) -> radius of b
            about its origin [m].
        name: of the collider.
    """

    @wp.func(name=name)
    def collide_sphere(
        size_a: Vec3,
        size_b: Vec3,
        pose_b_to_a: Pose,
        max_separation: Real,
        out: ContactBuffer,
        row: int,
    ) -> int:
        center = wp.transform_get_translation(pose_b_to_a)
        radius = size_a[0]
        bound = radius + max_separation + bounding_radius(size_b)
        if bound <= Real(0.0) or wp.dot(center, center) > bound * bound:
            return 0
        rotation = wp.transform_get_rotation(pose_b_to_a)
        nearest = nearest_point(size_b, -wp.quat_rotate_inv(rotation, center))
        separation = nearest.distance - radius
        if separation >= max_separation:
            return 0
        normal = -wp.quat_rotate(rotation, nearest.outward)
        emit_contact(out, row, radius * normal, normal, separation, -1, nearest.feature, 0)
        return 1

    return collide_sphere


@wp.func
def _radius_of_box(size: Vec3) -> Real:
    return wp.length(size)


@wp.func
def _radius_of_round(size: Vec3) -> Real:
    return wp.sqrt(size[0] * size[0] + size[1] * size[1])


@wp.func
def _radius_of_ellipsoid(size: Vec3) -> Real:
    return wp.max(size)


collide_sphere_box = sphere_collider(
    nearest_on_primitive.nearest_on_box, _radius_of_box, "collide_sphere_box"
)
collide_sphere_cylinder = sphere_collider(
    nearest_on_primitive.nearest_on_cylinder, _radius_of_round, "collide_sphere_cylinder"
)
collide_sphere_cone = sphere_collider(
    nearest_on_primitive.nearest_on_cone, _radius_of_round, "collide_sphere_cone"
)
collide_sphere_ellipsoid = sphere_collider(
    nearest_on_primitive.nearest_on_ellipsoid, _radius_of_ellipsoid, "collide_sphere_ellipsoid"
)
"""Contact of a sphere and a box, cylinder, cone or ellipsoid; features of b and degenerate
positions of the centre are those of the closest point of b's surface."""
