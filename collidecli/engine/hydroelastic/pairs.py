"""Hydroelastic pairs of a chunk: separation from the other candidates, and their common data."""

from __future__ import annotations

import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, row_of, row_of_slot
from collidecli.engine.collider_query import relative_pose
from collidecli.engine.device_model import Layout, Margins, ShapeRows
from collidecli.engine.geometry.bounds import local_half_extents
from collidecli.engine.geometry.real import PLANE, UP, Pose, Real, Vec3
from collidecli.engine.hydroelastic.pressure_fields import PressureFields
from collidecli.engine.pair_limits import forced_index
from collidecli.engine.runtime.kernel import kernel

POLYTOPES = wp.constant(1)
"""Method of a pair of convex polytopes without margins: exact clipping of cells."""
VOXELS = wp.constant(2)
"""Method of every other pair: sampling of the distances on a grid."""
ROUNDING = wp.constant(Real(1.0e-9))
"""Relative allowance for rounding in bounds."""


@wp.struct
class HydroPair:
    """A hydroelastic pair. Everything is in the reference frame, that of the shape with the shorter
    longest side.

    row0, row1: shape rows. method: POLYTOPES, VOXELS, or 0 for shapes whose boxes do not overlap.
    sign: 1 where the reference shape is shape 0, else -1. world: pose of the reference frame in the
    world. pose0, pose1: of the shapes; one is the identity. weight0, weight1: the surface is where
    weight0 phi0 = weight1 phi1; they add up to 1, and a rigid shape has 1. soft: the shape whose
    depth gives the pressure, and stiffness its own [N/m^3]. rigid: 0, 1 or -1 for none. stiffness0,
    stiffness1: of both shapes; those of a pair with a rigid shape are equal to `stiffness` [N/m^3].
    margin0, margin1: inflation of the shapes [m]. sink: upper bound of the sum of depths on the
    surface [m]. lower, upper: box that contains the surface. half: half extents of the reference
    shape's box, with its margin, and size their length [m].
    """

    row0: int
    row1: int
    method: int
    sign: Real
    world: Pose
    pose0: Pose
    pose1: Pose
    weight0: Real
    weight1: Real
    soft: int
    stiffness: Real
    rigid: int
    stiffness0: Real
    stiffness1: Real
    margin0: Real
    margin1: Real
    sink: Real
    lower: Vec3
    upper: Vec3
    half: Vec3
    size: Real


@kernel
def split_masks(
    layout: Layout,
    chunk: ChunkCells,
    fields: PressureFields,
    slots: wp.array[wp.vec2i],
    mask: wp.array[wp.uint32],
    bound: wp.array[wp.int32],
    hydro_mask: wp.array[wp.uint32],
    other_mask: wp.array[wp.uint32],
):
    """One thread per pair of slots, as many as the bound: its lanes go to `hydro_mask` where both
    shapes have a pressure field and one of them is compliant, else to `other_mask`."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    stiffness0 = fields.stiffness[row_of_slot(chunk, layout, slots[thread][0])]
    stiffness1 = fields.stiffness[row_of_slot(chunk, layout, slots[thread][1])]
    least = wp.min(stiffness0, stiffness1)
    is_hydro = least > Real(0.0) and wp.isfinite(least)
    hydro_mask[thread] = wp.where(is_hydro, mask[thread], wp.uint32(0))
    other_mask[thread] = wp.where(is_hydro, wp.uint32(0), mask[thread])


@wp.func
def rotated_half(pose: Pose, half: Vec3) -> Vec3:
    """Half extents of the box around a rotated box."""
    rotation = wp.transform_get_rotation(pose)
    x = wp.abs(wp.quat_rotate(rotation, Vec3(half[0], Real(0.0), Real(0.0))))
    y = wp.abs(wp.quat_rotate(rotation, Vec3(Real(0.0), half[1], Real(0.0))))
    z = wp.abs(wp.quat_rotate(rotation, Vec3(Real(0.0), Real(0.0), half[2])))
    return x + y + z


@wp.func
def bound_overlap(
    other_is_plane: bool, pair: HydroPair, other_half: Vec3, other: Pose
) -> HydroPair:
    """Sets the box of the surface, `sink`, and method 0 where the boxes do not overlap.

    other_half, other: box of the shape that is not the reference, inflated by its margin, and its
    pose.
    """
    result = pair
    half = pair.half
    result.lower = -half
    result.upper = half
    if other_is_plane:
        normal = wp.quat_rotate(wp.transform_get_rotation(other), UP)
        margin = wp.where(pair.sign > Real(0.0), pair.margin1, pair.margin0)
        height = -wp.dot(normal, wp.transform_get_translation(other)) - margin
        result.sink = wp.dot(wp.abs(normal), half) - height
    else:
        middle = wp.transform_get_translation(other)
        reach = rotated_half(other, other_half)
        below = middle + reach + half
        above = half - middle + reach
        result.sink = wp.min(wp.min(below, above))
        result.lower = wp.max(-half, middle - reach)
        result.upper = wp.min(half, middle + reach)
    result.sink = result.sink * (Real(1.0) + ROUNDING)
    if result.sink <= Real(0.0):
        result.method = 0
    return result


@wp.func
def stiffness_of_pair(pair: HydroPair, stiffness0: Real, stiffness1: Real) -> HydroPair:
    """Sets the weights, the soft and the rigid shape."""
    result = pair
    result.soft = wp.where(stiffness1 < stiffness0, 1, 0)
    result.stiffness = wp.min(stiffness0, stiffness1)
    result.stiffness0 = result.stiffness
    result.stiffness1 = result.stiffness
    if wp.isinf(stiffness0):
        result.rigid = 0
        result.weight0 = Real(1.0)
    elif wp.isinf(stiffness1):
        result.rigid = 1
        result.weight1 = Real(1.0)
    else:
        result.rigid = -1
        result.weight0 = stiffness0 / (stiffness0 + stiffness1)
        result.weight1 = stiffness1 / (stiffness0 + stiffness1)
        result.stiffness0 = stiffness0
        result.stiffness1 = stiffness1
    return result


@wp.func
def uses_second_frame(
    rows: ShapeRows, fields: PressureFields, row0: int, row1: int, half0: Vec3, half1: Vec3
) -> bool:
    """Whether the frame of a pair is that of its second shape: the smaller one. half0, half1: half
    extents of both [m]. Of equal boxes the type and the stiffness decide, which do not depend on
    the order in the file."""
    if half0 == half1:
        is_stiffer = (
            rows.type[row0] == rows.type[row1] and fields.stiffness[row1] > fields.stiffness[row0]
        )
        return rows.type[row1] < rows.type[row0] or is_stiffer
    if wp.max(half1) == wp.max(half0):
        return wp.length_sq(half1) < wp.length_sq(half0)
    return wp.max(half1) < wp.max(half0)


@kernel
def prepare_pairs(
    rows: ShapeRows,
    margins: Margins,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    fields: PressureFields,
    pair: wp.array[wp.vec2i],
    bound: wp.array[wp.int32],
    hydro: wp.array[HydroPair],
):
    """One thread a hydroelastic pair: its frame, weights, method and bounds. Beyond the bound are
    pairs that do not overlap."""
    thread = wp.tid()
    if thread >= bound[0]:
        hydro[thread] = HydroPair()
        return
    row0 = row_of(chunk, layout, pair[thread][0])
    row1 = row_of(chunk, layout, pair[thread][1])
    result = stiffness_of_pair(HydroPair(), fields.stiffness[row0], fields.stiffness[row1])
    result.row0 = row0
    result.row1 = row1
    result.margin0 = margins.margin[row0]
    result.margin1 = margins.margin[row1]
    forced = forced_index(margins.forced_start, margins.forced, row0, row1)
    if forced >= 0 and not wp.isnan(margins.forced_margin[wp.max(forced, 0)]):
        result.margin0 = Real(0.5) * margins.forced_margin[forced]
        result.margin1 = result.margin0
    inflated = result.margin0 > Real(0.0) or result.margin1 > Real(0.0)
    result.method = VOXELS
    if fields.polytope[row0] >= 0 and fields.polytope[row1] >= 0 and not inflated:
        result.method = POLYTOPES
    half0 = local_half_extents(rows.type[row0], rows.size[row0]) + Vec3(
        result.margin0, result.margin0, result.margin0
    )
    half1 = local_half_extents(rows.type[row1], rows.size[row1]) + Vec3(
        result.margin1, result.margin1, result.margin1
    )
    pose0 = instances.pose[pair[thread][0]]
    pose1 = instances.pose[pair[thread][1]]
    second = uses_second_frame(rows, fields, row0, row1, half0, half1)
    result.sign = wp.where(second, Real(-1.0), Real(1.0))
    result.world = wp.where(second, pose1, pose0)
    result.pose0 = relative_pose(result.world, pose0)
    result.pose1 = relative_pose(result.world, pose1)
    identity = wp.transform_identity(dtype=Real)
    if second:
        result.pose1 = identity
    else:
        result.pose0 = identity
    result.half = wp.where(second, half1, half0)
    result.size = wp.length(result.half)
    is_plane = rows.type[wp.where(second, row0, row1)] == PLANE
    other_half = wp.where(second, half0, half1)
    hydro[thread] = bound_overlap(
        is_plane, result, other_half, wp.where(second, result.pose0, result.pose1)
    )
