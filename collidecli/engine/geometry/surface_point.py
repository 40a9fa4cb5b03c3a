"""What is said of the point of a shape's surface that is nearest to another point."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3


@wp.struct
class SurfacePoint:
    """Where a point stands to a shape; the nearest point of the surface is point - distance * outward.

    outward: unit normal of the surface there, shape's frame. distance: signed, negative inside [m]. feature: the
    shape's own.
    """

    outward: Vec3
    distance: Real
    feature: int
