"""Sums over the faces of each pair."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.ordered_by_pair import first_of_pair
from collidecli.engine.hydroelastic.pairs import HydroPair
from collidecli.engine.hydroelastic.polygon_faces import HydroFace, PatchSums, with_face, with_sums
from collidecli.engine.runtime.kernel import kernel


@wp.struct
class HydroPatch:
    """Sums over a pair's faces, in the world: see `HYDRO_PATCHES`."""

    face_count: int
    area: Real
    force: Vec3
    center: Vec3
    torque: Vec3
    depth: Real


@wp.func
def patch_of(pair: HydroPair, sums: PatchSums) -> HydroPatch:
    """The patch of a pair, in the world."""
    result = HydroPatch()
    result.face_count = sums.face_count
    result.area = sums.area
    result.depth = sums.depth
    if sums.face_count > 0:
        center = sums.area_moment / sums.area
        if sums.pressure > Real(0.0):
            center = sums.pressure_moment / sums.pressure
        rotation = wp.transform_get_rotation(pair.world)
        result.torque = wp.quat_rotate(rotation, sums.torque - wp.cross(center, sums.force))
        result.force = wp.quat_rotate(rotation, sums.force)
        result.center = wp.transform_point(pair.world, center)
    return result


@kernel
def sum_faces(
    hydro: wp.array[HydroPair],
    face: wp.array[HydroFace],
    most: int,
    bound: wp.array[wp.int32],
    patch: wp.array[HydroPatch],
):
    """One thread a pair: its patch, by sums in the order of the faces. There are as many faces as
    the lesser of `most` and the bound."""
    thread = wp.tid()
    count = wp.min(most, bound[0])
    sums = PatchSums()
    for k in range(first_of_pair(face, count, thread), first_of_pair(face, count, thread + 1)):
        sums = with_face(sums, face[k])
    patch[thread] = patch_of(hydro[thread], sums)


@kernel
def sum_parts(
    hydro: wp.array[HydroPair],
    part: wp.array[PatchSums],
    most: int,
    bound: wp.array[wp.int32],
    patch: wp.array[HydroPatch],
):
    """One thread a pair: its patch, by sums in the order of its parts; unchanged if it has none.
    There are as many parts as the lesser of `most` and the bound."""
    thread = wp.tid()
    count = wp.min(most, bound[0])
    first = first_of_pair(part, count, thread)
    end = first_of_pair(part, count, thread + 1)
    if first == end:
        return
    sums = PatchSums()
    for k in range(first, end):
        sums = with_sums(sums, part[k])
    patch[thread] = patch_of(hydro[thread], sums)


@kernel
def move_faces(hydro: wp.array[HydroPair], face: wp.array[HydroFace], bound: wp.array[wp.int32]):
    """One thread per face, as many as the bound: its normal in the world, and in `area_moment` its
    centroid in the world."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    if face[thread].count > 0:
        world = hydro[face[thread].pair].world
        face[thread].area_moment = wp.transform_point(
            world, face[thread].area_moment / face[thread].area
        )
        rotation = wp.transform_get_rotation(world)
        face[thread].normal = wp.quat_rotate(rotation, face[thread].normal)
        face[thread].pressure_slope = wp.quat_rotate(rotation, face[thread].pressure_slope)
