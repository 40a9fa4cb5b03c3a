"""A place on a surface of triangles, and whether a direction belongs to it; see `surface`."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3

RISE = wp.constant(Real(1.0e-5))
"""Sine by which a triangle may rise along a direction that belongs: GJK's are good to 1e-6."""


@wp.struct
class NormalCone:
    """belongs: 1 where the direction does. outward: a vector on the surface's outer side there, not unit."""

    belongs: int
    outward: Vec3
