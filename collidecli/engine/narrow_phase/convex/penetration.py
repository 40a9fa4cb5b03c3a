"""How far apart two convex shapes are, or how deep they overlap: the one question of the general narrow phase."""

import warp as wp

from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.support import Cores, Vertex, core_radius
from collidecli.engine.narrow_phase.convex.epa import depth_of_cores
from collidecli.engine.narrow_phase.convex.gjk import BEYOND_REACH, OVERLAP, nearest_of_cores

METHOD_EPA = wp.constant(0)
METHOD_MPR = wp.constant(1)


@wp.struct
class Separation:
    """Signed distance of two shapes [m], the unit normal from a to b that attains it, and a's witness, in a's frame.

    b's witness is point_a + separation * normal. exact: 0 when `separation` is only known to be at least the reach
    (normal and point are then rough), or when a limit stopped the search for the depth; otherwise 1.
    """

    separation: Real
    normal: Vec3
    point_a: Vec3
    exact: int


@wp.func
def separate(
    type_a: int, size_a: Vec3, type_b: int, size_b: Vec3, pose_b_to_a: Pose, reach: Real, method: int
) -> Separation:
    """Signed distance, normal and witness of two convex shapes.

    Args:
        type_a, type_b: `ShapeType`, any but plane. size_a, size_b: as `ShapeType` says [m].
        pose_b_to_a: b's frame in a's.
        reach: the search ends once the separation is known to be at least this [m].
        method: METHOD_EPA for the exact depth, METHOD_MPR for an approximate one.
    """
    cores = Cores()
    cores.type_a = type_a
    cores.type_b = type_b
    cores.size_a = size_a
    cores.size_b = size_b
    cores.radius_a = core_radius(type_a, size_a)
    cores.radius_b = core_radius(type_b, size_b)
    cores.rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    cores.position = wp.transform_get_translation(pose_b_to_a)
    radii = cores.radius_a + cores.radius_b
    simplex = wp.zeros(shape=4, dtype=Vertex)
    nearest = nearest_of_cores(cores, reach + radii, simplex)
    result = Separation()
    result.exact = 1
    if nearest.state == BEYOND_REACH:
        result.exact = 0
    if nearest.state == OVERLAP:
        depth = depth_of_cores(cores, simplex, nearest.count)
        result.separation = -depth.depth - radii
        result.normal = depth.normal
        result.point_a = depth.on_a + cores.radius_a * depth.normal
        result.exact = depth.exact
        return result
    result.separation = nearest.distance - radii
    result.normal = nearest.normal
    result.point_a = nearest.on_a + cores.radius_a * nearest.normal
    return result
