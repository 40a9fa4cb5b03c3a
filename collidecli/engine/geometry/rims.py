"""Points of the circular rims of cylinders and cones."""

import warp as wp

from collidecli.engine.geometry.real import Quat, Real, Vec3


@wp.func
def lowest_on_rim(rotation: Quat, axis: Vec3) -> Vec3:
    """Unit direction from a rim's centre to its lowest point (smallest z); perpendicular to the rim's axis.

    Args:
        rotation: the shape's frame in the frame whose z is up.
        axis: its z axis there, unit.
    Degenerate: a rim that lies level has the shape's own +x.
    """
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if flatness > Real(0.0):
        # -z less its part along the axis, divided by its length, which is flatness.
        scale = axis[2] / flatness
        return Vec3(scale * axis[0], scale * axis[1], -flatness)
    return wp.quat_rotate(rotation, Vec3(Real(1.0), Real(0.0), Real(0.0)))
