"""Sphere and ellipsoid."""

import warp as wp

from collidecli.engine.geometry.nearest_on_primitive import nearest_on_ellipsoid
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sphere_surface import sphere_collider

MAX_CONTACTS = 1


@wp.func
def _bounding_radius(size: Vec3) -> Real:
    return wp.max(size[0], wp.max(size[1], size[2]))


collide_sphere_ellipsoid = sphere_collider(nearest_on_ellipsoid, _bounding_radius, "collide_sphere_ellipsoid")
"""Contact of a sphere and an ellipsoid: arguments and result as in `sphere_collider`.

size_b: semi-axes along x, y, z [m]. Features of b: -1.
Degenerate: see `nearest_on_ellipsoid`: a coincident centre is separated along the shortest axis.
"""
