"""Points of the circular rims of cylinders and cones."""

import warp as wp

from collidecli.engine.geometry.real import Quat, Real, Vec3


@wp.func
def lowest_on_rim(rotation: Quat, axis: Vec3) -> Vec3:
    """Unit direction from a rim's centre to its lowest point (smallest z); perpendicular to the rim's axis.

    Args:
        rotation: rotation of the shape's frame in the frame whose z is up.
        axis: unit z axis of the shape in that frame.
    Degenerate: a horizontal rim gives the shape's own +x.
    """
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if flatness > Real(0.0):
        # -z minus its component along the axis, divided by its length `flatness`.
        scale = axis[2] / flatness
        return Vec3(scale * axis[0], scale * axis[1], -flatness)
    return wp.quat_rotate(rotation, Vec3(Real(1.0), Real(0.0), Real(0.0)))
