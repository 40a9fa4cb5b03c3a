"""Sphere and cone."""

import warp as wp

from collidecli.engine.geometry.nearest_on_primitive import nearest_on_cone
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sphere_surface import sphere_collider

MAX_CONTACTS = 1


@wp.func
def _bounding_radius(size: Vec3) -> Real:
    return wp.sqrt(size[0] * size[0] + size[1] * size[1])


collide_sphere_cone = sphere_collider(nearest_on_cone, _bounding_radius, "collide_sphere_cone")
"""Contact of a sphere and a cone: arguments and result as in `sphere_collider`.

size_b: (base radius, half height, 0) [m]. Features of b: 0 base, 1 side, 2 rim, 3 apex.
Degenerate: a centre on the axis closest to the side is separated along the side normal at +x of the cone.
"""
