"""Sphere and any shape with a closed-form closest point."""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3


def sphere_collider(nearest_point: Callable[..., Any], bounding_radius: Callable[..., Any], name: str) -> Any:
    """Collider of a sphere and a shape b: contact at the point of b's surface closest to the sphere's centre.

    Args:
        nearest_point: (size, point) -> `SurfacePoint` of b. bounding_radius: (size) -> radius of b about its
            origin [m].
        name: of the collider.
    Returns:
        Warp function with these arguments and result.
        size_a: (radius, 0, 0) [m]. size_b: size of b.
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
        Result: number of contacts written, 0 or 1.
    """

    @wp.func(name=name)
    def collide_sphere(
        size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
    ) -> int:
        center = wp.transform_get_translation(pose_b_to_a)
        radius = size_a[0]
        bound = radius + max_separation + bounding_radius(size_b)
        if bound <= Real(0.0) or wp.dot(center, center) >= bound * bound:
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
