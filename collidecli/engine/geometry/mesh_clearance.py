"""Lower and upper bounds of the distance to a mesh, from a coarse grid of distances around it.

A distance function has the Lipschitz constant 1, so the distance at a cell's centre bounds the
distance at every point. Queries far from the surface skip the tree traversal; other traversals
start with an upper bound.
"""

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import referenced
from collidecli.engine.geometry.mesh_points import is_inside_mesh, nearest_mesh_point
from collidecli.engine.geometry.meshes import Meshes, meshes_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.connected_parts import connected_parts
from collidecli.scene.distinct_values import distinct
from collidecli.scene.triangle_mesh import TriangleMesh

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
    label = connected_parts(a, b, distance.size).reshape(distance.shape)
    rim = np.ones(distance.shape, bool)
    rim[1:-1, 1:-1, 1:-1] = False
    reached = np.isin(label, distinct(label[rim & (distance > 0.0)])) & (distance > 0.0)
    return np.where(reached, distance, -np.abs(distance))
