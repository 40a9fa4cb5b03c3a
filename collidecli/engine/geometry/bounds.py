"""Axis-aligned bounding boxes: tight in float64, then rounded outwards to float32."""

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.geometry.meshes import Meshes, is_inside_mesh, meshes_of, nearest_mesh_point
from collidecli.engine.geometry.real import UP, Pose, Quat, Real, Vec3, referenced
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh

OUTWARD = wp.constant(wp.float32(2.0e-7))
"""Relative widening of a float32 bound: exceeds the rounding of float64 to float32 plus one
subtraction."""
INFINITE = wp.constant(wp.float32(1.0e38))


@wp.func
def disc_extent(axis: Vec3, radius: Real) -> Vec3:
    """Half extents of a disc's bounding box; `axis` is the disc's unit normal."""
    square = Vec3(Real(1.0), Real(1.0), Real(1.0)) - wp.cw_mul(axis, axis)
    return radius * Vec3(
        wp.sqrt(wp.max(Real(0.0), square[0])),
        wp.sqrt(wp.max(Real(0.0), square[1])),
        wp.sqrt(wp.max(Real(0.0), square[2])),
    )


@wp.func
def quat_x(q: Quat) -> Vec3:
    """x axis of a frame rotated by a unit quaternion: 9 products instead of the 30 of a general
    rotation."""
    two = Real(2.0)
    return Vec3(
        Real(1.0) - two * (q[1] * q[1] + q[2] * q[2]),
        two * (q[0] * q[1] + q[2] * q[3]),
        two * (q[0] * q[2] - q[1] * q[3]),
    )


@wp.func
def quat_y(q: Quat) -> Vec3:
    """y axis of a frame rotated by a unit quaternion."""
    two = Real(2.0)
    return Vec3(
        two * (q[0] * q[1] - q[2] * q[3]),
        Real(1.0) - two * (q[0] * q[0] + q[2] * q[2]),
        two * (q[1] * q[2] + q[0] * q[3]),
    )


@wp.func
def quat_z(q: Quat) -> Vec3:
    """z axis of a frame rotated by a unit quaternion."""
    two = Real(2.0)
    return Vec3(
        two * (q[0] * q[2] + q[1] * q[3]),
        two * (q[1] * q[2] - q[0] * q[3]),
        Real(1.0) - two * (q[0] * q[0] + q[1] * q[1]),
    )


@wp.func
def local_half_extents(shape_type: int, size: Vec3) -> Vec3:
    """Half extents of the box of a shape about its origin, in its frame [m]; infinite for a
    plane."""
    if shape_type == ShapeType.PLANE:
        return Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
    if shape_type == ShapeType.SPHERE:
        return Vec3(size[0], size[0], size[0])
    if shape_type == ShapeType.CAPSULE:
        return Vec3(size[0], size[0], size[0] + size[1])
    if shape_type == ShapeType.CYLINDER or shape_type == ShapeType.CONE:
        return Vec3(size[0], size[0], size[1])
    return size


@wp.func
def half_extent(shape_type: int, size: Vec3, rotation: Quat) -> Vec3:
    """Half extents of the bounding box of a shape symmetric about its origin (every type but plane
    and cone)."""
    radius = Vec3(size[0], size[0], size[0])
    if shape_type == ShapeType.SPHERE:
        return radius
    z = quat_z(rotation)
    if shape_type == ShapeType.CAPSULE:
        return size[1] * wp.abs(z) + radius
    if shape_type == ShapeType.CYLINDER:
        return size[1] * wp.abs(z) + disc_extent(z, size[0])
    x = size[0] * quat_x(rotation)
    y = size[1] * quat_y(rotation)
    z = size[2] * z
    if shape_type != ShapeType.ELLIPSOID:
        return wp.abs(x) + wp.abs(y) + wp.abs(z)
    square = wp.cw_mul(x, x) + wp.cw_mul(y, y) + wp.cw_mul(z, z)
    return Vec3(wp.sqrt(square[0]), wp.sqrt(square[1]), wp.sqrt(square[2]))


@wp.func
def rounded_down(x: Vec3) -> wp.vec3f:
    """Float32 corner that is nowhere above x."""
    low = wp.vec3f(x)
    return low - OUTWARD * wp.abs(low)


@wp.func
def rounded_up(x: Vec3) -> wp.vec3f:
    """Float32 corner that is nowhere below x."""
    high = wp.vec3f(x)
    return high + OUTWARD * wp.abs(high)


@wp.struct
class Box:
    """Lowest and highest world coordinates [m]."""

    lower: Vec3
    upper: Vec3


@wp.func
def bounding_box(shape_type: int, size: Vec3, pose_to_world: Pose, inflation: Real) -> Box:
    """Axis-aligned bounding box of a shape, grown by `inflation` on every side; unbounded for a
    plane."""
    if shape_type == ShapeType.PLANE:
        everywhere = Vec3(Real(INFINITE), Real(INFINITE), Real(INFINITE))
        return Box(-everywhere, everywhere)
    center = wp.transform_get_translation(pose_to_world)
    rotation = wp.transform_get_rotation(pose_to_world)
    grown = Vec3(inflation, inflation, inflation)
    if shape_type == ShapeType.CONE:
        axis = quat_z(rotation)
        base = disc_extent(axis, size[0])
        lower = center + wp.min(size[1] * axis, -size[1] * axis - base) - grown
        return Box(lower, center + wp.max(size[1] * axis, -size[1] * axis + base) + grown)
    extent = half_extent(shape_type, size, rotation) + grown
    return Box(center - extent, center + extent)


@wp.struct
class ShapeBounds:
    """Bounds of a shape grown by the maximum separation, in the frame of a mesh [m].

    lower, upper: AABB. normal, height: of a plane, the half-space normal.x <= height; the normal of
    other shapes is zero. first, end: nodes of the mesh's BVH.
    """

    lower: Vec3
    upper: Vec3
    normal: Vec3
    height: Real
    first: int
    end: int


@wp.func
def box_of_shape(shape_type: int, size: Vec3, pose: Pose, max_separation: Real) -> ShapeBounds:
    """Bounds of a shape at a pose in the mesh's frame; the BVH is left unset."""
    bounds = ShapeBounds()
    box = bounding_box(shape_type, size, pose, max_separation)
    # Grown by more than the rounding error of the pose.
    position = wp.abs(wp.transform_get_translation(pose))
    slack = Real(1.0e-12) * (position[0] + position[1] + position[2])
    bounds.lower = box.lower - Vec3(slack, slack, slack)
    bounds.upper = box.upper + Vec3(slack, slack, slack)
    if shape_type == ShapeType.PLANE:
        bounds.normal = wp.transform_vector(pose, UP)
        bounds.height = (
            wp.dot(bounds.normal, wp.transform_get_translation(pose)) + max_separation + slack
        )
    return bounds


@wp.func
def box_intersects(bounds: ShapeBounds, meshes: Meshes, node: int) -> bool:
    """Whether a node of the BVH intersects the bounds."""
    lower = meshes.arrays[0].lower[node]
    upper = meshes.arrays[0].upper[node]
    for axis in range(3):
        if lower[axis] > bounds.upper[axis] or upper[axis] < bounds.lower[axis]:
            return False
    lowest = wp.min(wp.cw_mul(bounds.normal, lower), wp.cw_mul(bounds.normal, upper))
    return lowest[0] + lowest[1] + lowest[2] <= bounds.height


# Distances of boxes in two frames, for traversals of two trees.


@wp.struct
class BoxFrames:
    """The frames of two trees: rotation of b's frame in a's with its transpose, and the absolute
    values of both."""

    rotation: wp.mat33d
    inverse: wp.mat33d
    spread: wp.mat33d
    inverse_spread: wp.mat33d
    position: Vec3


@wp.func
def box_frames(pose_b_to_a: Pose) -> BoxFrames:
    """The frames of two trees."""
    frames = BoxFrames()
    frames.rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    frames.inverse = wp.transpose(frames.rotation)
    for i in range(3):
        for j in range(3):
            frames.spread[i, j] = wp.abs(frames.rotation[i, j])
    frames.inverse_spread = wp.transpose(frames.spread)
    frames.position = wp.transform_get_translation(pose_b_to_a)
    return frames


@wp.func
def distance_of_boxes(off: Vec3, half_sum: Vec3) -> Real:
    """Distance of two parallel boxes whose centres are `off` apart, 0 where they overlap [m]."""
    return wp.length(wp.max(wp.abs(off) - half_sum, Vec3()))


@wp.func
def distance_along_axes(off: Vec3, half_a: Vec3, half_b: Vec3, frames: BoxFrames) -> Real:
    """Lower bound of the distance of two boxes, along the axes of both frames [m]. off: of their
    centres, frame a."""
    of_a = distance_of_boxes(off, half_a + frames.spread * half_b)
    return wp.max(
        of_a, distance_of_boxes(frames.inverse * off, frames.inverse_spread * half_a + half_b)
    )


# Lower and upper bounds of the distance to a mesh, from a coarse grid of distances around it.
#
# A distance function has the Lipschitz constant 1, so the distance at a cell's centre bounds the
# distance at every point. Queries far from the surface skip the tree traversal; other traversals
# start with an upper bound.

CELLS = 16
"""Cells along a mesh's longest side; one more cell is added at either end. Finer grids cost more in
cache misses than they save in traversals."""
ROUNDING = wp.constant(Real(1.0e-6))
"""Relative widening of the bounds: float32 stores distances to 6e-8."""


@wp.struct
class Clearance:
    """Bounds of the distance from a point to a mesh.

    square: squared upper bound of the distance to the closest surface point [m^2]. free: radius of
    a ball around the point that is outside a closed surface, and disjoint from an open one [m]; not
    positive where no such ball is established. empty: radius of a ball around the point that
    contains no part of a triangle [m], if positive.
    """

    square: Real
    free: Real
    empty: Real


@wp.func
def clearance_at(meshes: Meshes, mesh: int, point: Vec3) -> Clearance:
    """Bounds from the grid of a mesh at a point in the frame of the mesh."""
    low = meshes.arrays[0].grid_box[2 * mesh]
    high = meshes.arrays[0].grid_box[2 * mesh + 1]
    first = meshes.arrays[0].grid[4 * mesh]
    x = meshes.arrays[0].grid[4 * mesh + 1]
    y = meshes.arrays[0].grid[4 * mesh + 2]
    z = meshes.arrays[0].grid[4 * mesh + 3]
    width = (high[0] - low[0]) / Real(x)
    off = (point - low) / width
    i = int(wp.clamp(off[0], Real(0.0), Real(x) - Real(0.5)))
    j = int(wp.clamp(off[1], Real(0.0), Real(y) - Real(0.5)))
    k = int(wp.clamp(off[2], Real(0.0), Real(z) - Real(0.5)))
    middle = low + width * (Vec3(Real(i), Real(j), Real(k)) + Vec3(Real(0.5), Real(0.5), Real(0.5)))
    away = wp.length(point - middle)
    value = Real(meshes.arrays[0].clear[first + (i * y + j) * z + k])
    result = Clearance()
    most = (wp.abs(value) + away) * (Real(1.0) + ROUNDING) + ROUNDING * width
    result.square = most * most
    # The grid's box contains the surface with a margin.
    beyond = wp.length(point - wp.max(low, wp.min(high, point)))
    slack = away + ROUNDING * (wp.abs(value) + width)
    result.free = wp.max(value - slack, beyond)
    result.empty = wp.max(wp.abs(value) - slack, beyond)
    return result


@kernel
def measure_grid(
    meshes: Meshes,
    mesh: int,
    low: Vec3,
    width: Real,
    y: int,
    z: int,
    distance: wp.array[wp.float32],
):
    """Writes the distance at each cell's centre, negative inside a closed mesh [m]; one thread a
    cell."""
    thread = wp.tid()
    cell = Vec3(Real(thread / (y * z)), Real((thread / z) % y), Real(thread % z))
    point = low + width * (cell + Vec3(Real(0.5), Real(0.5), Real(0.5)))
    nearest = nearest_mesh_point(meshes, mesh, point)
    signed = wp.sqrt(nearest.square)
    if meshes.arrays[0].header[mesh].is_closed == 1 and is_inside_mesh(
        meshes, mesh, point, nearest
    ):
        signed = -signed
    distance[thread] = wp.float32(signed)


def measure_clearance(meshes: Meshes, shapes: Sequence[TriangleMesh], device: wp.Device) -> Meshes:
    """`meshes`, the device arrays of `shapes`, with grids.

    The sign of a closed mesh is determined from outside: a cell is free if a chain of surface-free
    balls connects it to the border of the grid. Regions enclosed by a self-intersecting mesh are
    therefore not free.
    """
    grid_box = []
    grid = []
    values = []
    first = 0
    for mesh, solid in enumerate(shapes):
        low = solid.vertex.min(axis=0)
        high = solid.vertex.max(axis=0)
        width = float((high - low).max()) / CELLS
        shape = np.maximum(np.ceil((high - low) / width - 1e-9).astype(int), 1) + 2
        corner = 0.5 * (low + high) - 0.5 * width * shape
        distance = wp.empty(int(shape.prod()), dtype=wp.float32, device=device)  # pyright: ignore[reportArgumentType]
        arguments = [
            meshes,
            mesh,
            Vec3(*corner),
            Real(width),
            int(shape[1]),
            int(shape[2]),
            distance,
        ]
        wp.launch(measure_grid, len(distance), arguments, device=device)
        measured = distance.numpy().reshape(shape)
        values.append((_outside(measured, width) if solid.is_closed else measured).reshape(-1))
        grid_box += [corner, corner + width * shape]
        grid += [first, *shape]
        first += measured.size
    arrays = referenced(meshes.arrays)
    arrays.clear = wp.array(np.concatenate(values), dtype=wp.float32, device=device)
    arrays.grid_box = wp.array(np.array(grid_box), dtype=Vec3, device=device)
    arrays.grid = wp.array(np.array(grid, np.int32), dtype=wp.int32, device=device)
    return meshes_of(arrays, device)


def _outside(distance: np.ndarray, width: float) -> np.ndarray:
    """Distances at the cells' centres, negated where no chain of surface-free balls leads to the
    border of the grid."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    number = np.arange(distance.size).reshape(distance.shape)
    links: list[tuple[np.ndarray, np.ndarray]] = []
    for axis in range(3):
        a, b = (
            np.take(number, range(k, k + number.shape[axis] - 1), axis).reshape(-1) for k in (0, 1)
        )
        near = distance.reshape(-1)
        # Overlapping balls around both centres: the segment between the centres does not cross the
        # surface.
        free = (near[a] > 0.0) & (near[b] > 0.0) & (near[a] + near[b] > 1.0001 * width)
        links.append((a[free], b[free]))
    a, b = (np.concatenate(ends) for ends in zip(*links, strict=True))
    graph = coo_matrix((np.ones(len(a)), (a, b)), shape=(distance.size, distance.size))
    label = connected_components(graph, directed=False)[1].reshape(distance.shape)
    rim = np.ones(distance.shape, bool)
    rim[1:-1, 1:-1, 1:-1] = False
    reached = np.isin(label, np.unique(label[rim & (distance > 0.0)])) & (distance > 0.0)
    return np.where(reached, distance, -np.abs(distance))
