"""Sphere and box."""

import warp as wp

from collidecli.engine.geometry.nearest_on_primitive import nearest_on_box
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sphere_surface import sphere_collider

MAX_CONTACTS = 1


@wp.func
def _bounding_radius(size: Vec3) -> Real:
    return wp.length(size)


collide_sphere_box = sphere_collider(nearest_on_box, _bounding_radius, "collide_sphere_box")
"""Contact of a sphere and a box: arguments and result as in `sphere_collider`.

size_b: half extents along x, y, z [m]. Features of b: `box_feature`.
Degenerate: see `nearest_on_box`: a centre inside is separated through the closest face.
"""
