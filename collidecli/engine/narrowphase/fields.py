"""Every shape as a signed distance field: its grid where it has one, else the exact distance to its
surface.

The minimum of a field along an edge or over a triangle is sampled in steps of a few voxels, then
refined: along an edge by golden-section search, over a triangle by steps down the gradient.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.geometry.mesh_points import is_inside_mesh, nearest_mesh_point, outward_at
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.nearest_on_primitive import surface_point
from collidecli.engine.geometry.real import CONVEX_MESH, ELLIPSOID, Pose, Real, Vec3
from collidecli.engine.geometry.sdf_grids import FieldSample, SdfGrids, sample_grid

LEVEL = wp.constant(Real(1.0e-6))
"""Length of a gradient below which it has no direction, as in the middle of a cell of equal
values."""


@wp.struct
class Fields:
    """The shapes, by row, for pairs with a signed distance field; their grids and surfaces.

    type, size: as in `ShapeRows`. grid: index in `grids`, or -1. facet: index in `meshes` of the
    shape's triangles, or -1. steps: of the search along edges against the field. half: half extents
    of the shape's box [m].

    Functions take it by reference, see `by_reference`.
    """

    type: wp.array[wp.int32]
    size: wp.array[Vec3]
    grid: wp.array[wp.int32]
    facet: wp.array[wp.int32]
    steps: wp.array[wp.int32]
    half: wp.array[Vec3]
    grids: SdfGrids
    meshes: Meshes


@wp.func(inline=False)
def exact_field(fields: wp.array[Fields], row: int, point: Vec3) -> FieldSample:
    """Exact distance and unit gradient of a shape's surface; both sides of an open mesh are
    outside."""
    result = FieldSample()
    result.inside = 1
    if fields[0].type[row] < CONVEX_MESH:
        nearest = surface_point(fields[0].type[row], fields[0].size[row], point)
        result.value = nearest.distance
        result.gradient = nearest.outward
        return result
    mesh = fields[0].facet[row]
    closest = nearest_mesh_point(fields[0].meshes, mesh, point)
    result.value = wp.sqrt(closest.square)
    if result.value > Real(0.0):
        result.gradient = (point - closest.point) / result.value
    else:
        result.gradient = wp.normalize(outward_at(fields[0].meshes, closest.face, closest.part))
    inside = fields[0].meshes.arrays[0].header[mesh].is_closed == 1
    if inside:
        inside = is_inside_mesh(fields[0].meshes, mesh, point, closest)
    if inside:
        result.value = -result.value
        result.gradient = -result.gradient
    return result


@wp.func(inline=False)
def field_at(fields: wp.array[Fields], row: int, point: Vec3) -> FieldSample:
    """Distance and unit gradient of the field of a row at a point of its frame.

    Degenerate: where the grid has no gradient, the exact gradient of the surface.
    """
    if fields[0].grid[row] >= 0:
        sample = sample_grid(fields[0].grids, fields[0].grid[row], point)
        if sample.inside == 1:
            length = wp.length(sample.gradient)
            if length > LEVEL:
                sample.gradient = sample.gradient / length
            else:
                sample.gradient = exact_field(fields, row, point).gradient
            return sample
        outside = exact_field(fields, row, point)
        if outside.value < Real(0.0):  # nothing beyond the grid is inside, for any winding number
            outside.value = -outside.value
            outside.gradient = -outside.gradient
        return outside
    return exact_field(fields, row, point)


@wp.func(inline=False)
def field_is_beyond(fields: wp.array[Fields], row: int, point: Vec3, distance: Real) -> bool:
    """Whether the field of a row is certainly above `distance` [m] at a point, without a search of
    its surface."""
    half = fields[0].half[row]
    off = point - wp.max(-half, wp.min(half, point))
    if wp.dot(off, off) > wp.max(distance, Real(0.0)) * wp.max(distance, Real(0.0)):
        return True
    if fields[0].grid[row] < 0:
        return False
    sample = sample_grid(fields[0].grids, fields[0].grid[row], point)
    # Twice the error bound of a value, see build.
    return (
        sample.inside == 1
        and sample.value - Real(2.0) * fields[0].grids.voxel[fields[0].grid[row]] > distance
    )


COARSE_VOXELS = wp.constant(Real(4.0))
"""Between the first samples."""
MAX_ALONG = wp.constant(64)
MAX_ACROSS = wp.constant(12)
"""Greatest number of steps along an edge, and along a side of a triangle."""
GOLDEN = wp.constant(Real(0.3819660112501051))


@wp.struct
class Probe:
    """A shape tested against a field. row, field_row: rows of the shape and of the field's shape.

    of_a: whether the shape is a of its pair. pose: the shape's frame in the field's. voxel: of the
    field, or of the shape's own where it has no grid [m]. steps: of the refinement. max_separation:
    of a contact [m]. mesh: of the shape's triangles, -1 for none; closed: whether it is closed.
    """

    row: int
    field_row: int
    of_a: bool
    pose: Pose
    voxel: Real
    steps: int
    max_separation: Real
    mesh: int
    closed: bool


@wp.struct
class FieldMinimum:
    """A point of a shape, its frame [m], and the field's value [m] and unit gradient there, the
    field's frame."""

    point: Vec3
    value: Real
    gradient: Vec3


@wp.func(inline=False)
def evaluate(fields: wp.array[Fields], probe: Probe, point: Vec3) -> FieldMinimum:
    """The field at a point of the probe's triangles; a point of an ellipsoid is first projected to
    its surface."""
    result = FieldMinimum()
    result.point = point
    if fields[0].type[probe.row] == ELLIPSOID:
        result.point = point / wp.length(wp.cw_div(point, fields[0].size[probe.row]))
    sample = field_at(fields, probe.field_row, wp.transform_point(probe.pose, result.point))
    result.value = sample.value
    result.gradient = sample.gradient
    return result


@wp.func(inline=False)
def minimum_along(fields: wp.array[Fields], probe: Probe, p: Vec3, q: Vec3) -> FieldMinimum:
    """The minimum found between two points, end points excluded.

    Source of the refinement: golden-section search, Kiefer 1953.
    """
    count = wp.clamp(int(wp.length(q - p) / (COARSE_VOXELS * probe.voxel)) + 1, 2, MAX_ALONG)
    step = Real(1.0) / Real(count)
    best = FieldMinimum()
    best.value = Real(wp.inf)
    at = Real(0.0)
    for k in range(1, count):
        sample = evaluate(fields, probe, p + (Real(k) * step) * (q - p))
        if sample.value < best.value:
            best = sample
            at = Real(k) * step
    low = at - step
    high = at + step
    left = low + GOLDEN * (high - low)
    right = high - GOLDEN * (high - low)
    on_left = evaluate(fields, probe, p + left * (q - p))
    on_right = evaluate(fields, probe, p + right * (q - p))
    for _ in range(probe.steps):
        if on_left.value <= on_right.value:
            high = right
            right = left
            on_right = on_left
            left = low + GOLDEN * (high - low)
            on_left = evaluate(fields, probe, p + left * (q - p))
        else:
            low = left
            left = right
            on_left = on_right
            right = high - GOLDEN * (high - low)
            on_right = evaluate(fields, probe, p + right * (q - p))
    if on_left.value < best.value:
        best = on_left
    if on_right.value < best.value:
        best = on_right
    return best


@wp.func(inline=False)
def minimum_over(fields: wp.array[Fields], probe: Probe, p: Vec3, q: Vec3, r: Vec3) -> FieldMinimum:
    """The minimum found inside a triangle: of a regular grid of points, then by projected gradient
    steps."""
    longest = wp.max(wp.length(q - p), wp.max(wp.length(r - q), wp.length(p - r)))
    count = wp.clamp(int(longest / (COARSE_VOXELS * probe.voxel)) + 2, 3, MAX_ACROSS)
    best = FieldMinimum()
    best.value = Real(wp.inf)
    of_q = Real(0.0)
    of_r = Real(0.0)
    for i in range(1, count - 1):
        for j in range(1, count - i):
            u = Real(i) / Real(count)
            v = Real(j) / Real(count)
            sample = evaluate(fields, probe, p + u * (q - p) + v * (r - p))
            if sample.value < best.value:
                best = sample
                of_q = u
                of_r = v
    length = longest / Real(count)
    across = wp.cross(q - p, r - p)
    square = wp.dot(across, across)
    for _ in range(probe.steps):
        # The negative gradient, projected to the triangle's plane.
        slope = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), best.gradient)
        slope = slope - (wp.dot(slope, across) / square) * across
        size = wp.length(slope)
        if size > Real(0.0):
            direction = -(length / size) * slope
            u = of_q + wp.dot(wp.cross(direction, r - p), across) / square
            v = of_r + wp.dot(wp.cross(q - p, direction), across) / square
            u = wp.clamp(u, Real(0.0), Real(1.0))
            v = wp.clamp(v, Real(0.0), Real(1.0) - u)
            sample = evaluate(fields, probe, p + u * (q - p) + v * (r - p))
            if sample.value < best.value:
                best = sample
                of_q = u
                of_r = v
            else:
                length = Real(0.5) * length
    return best
