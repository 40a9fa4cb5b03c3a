"""Result record of the closest-point functions `nearest_on_<shape>`."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3


@wp.struct
class SurfacePoint:
    """Signed distance of a query point and its closest point on a shape's surface, which is point - distance * outward.

    outward: unit surface normal there, in the shape's frame. distance: negative inside [m]. feature: feature number of
    the shape.
    """

    outward: Vec3
    distance: Real
    feature: int
