"""Sphere and cylinder."""

import warp as wp

from collidecli.engine.geometry.nearest_on_primitive import nearest_on_cylinder
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sphere_surface import sphere_collider

MAX_CONTACTS = 1


@wp.func
def _bounding_radius(size: Vec3) -> Real:
    return wp.sqrt(size[0] * size[0] + size[1] * size[1])


collide_sphere_cylinder = sphere_collider(nearest_on_cylinder, _bounding_radius, "collide_sphere_cylinder")
"""Contact of a sphere and a cylinder: arguments and result as in `sphere_collider`.

size_b: (radius, half height, 0) [m]. Features of b: 0, 1 caps at -z, +z; 2 side; 3, 4 rims at -z, +z.
Degenerate: a centre on the axis closest to the side is separated along +x of the cylinder; one midway between the caps
through the cap at +z.
"""
