"""How far a mesh's surface is at least from any point, read from a coarse grid of distances around it.

A distance changes by no more than the way that is gone, so the distance of a cell's middle bounds that of every point:
what is far from a surface is passed over without a search, and a search begins with a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from collidecli.engine.geometry.mesh_nearest import is_inside_mesh, nearest_place
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.triangle_mesh import TriangleMesh

CELLS = 16
"""Cells along a mesh's longest side, besides one that is added at either end. Finer grids keep more out of the caches
than they pass over."""
ROUNDING = wp.constant(Real(1.0e-6))
"""Share by which bounds are widened: float32 keeps distances to 6e-8."""


@wp.struct
class Clearance:
    """square: no place of the surface that is nearest to the point is farther than its root [m^2].

    free: a ball of this radius around the point is on the outer side of a closed surface, and off an open one [m];
    not positive where that is not known.
    empty: a ball of this radius around the point meets no triangle [m], where it is above 0.
    """

    square: Real
    free: Real
    empty: Real


@wp.func
def clearance_at(meshes: Meshes, mesh: int, point: Vec3) -> Clearance:
    """What the grid of a mesh tells of a point of the mesh's frame."""
    low = meshes.grid_box[2 * mesh]
    high = meshes.grid_box[2 * mesh + 1]
    first = meshes.grid[4 * mesh]
    x = meshes.grid[4 * mesh + 1]
    y = meshes.grid[4 * mesh + 2]
    z = meshes.grid[4 * mesh + 3]
    width = (high[0] - low[0]) / Real(x)
    off = (point - low) / width
    i = int(wp.clamp(off[0], Real(0.0), Real(x) - Real(0.5)))
    j = int(wp.clamp(off[1], Real(0.0), Real(y) - Real(0.5)))
    k = int(wp.clamp(off[2], Real(0.0), Real(z) - Real(0.5)))
    middle = low + width * (Vec3(Real(i), Real(j), Real(k)) + Vec3(Real(0.5), Real(0.5), Real(0.5)))
    away = wp.length(point - middle)
    value = Real(meshes.clear[first + (i * y + j) * z + k])
    result = Clearance()
    most = (wp.abs(value) + away) * (Real(1.0) + ROUNDING) + ROUNDING * width
    result.square = most * most
    # The grid's box holds the surface with room to spare.
    beyond = wp.length(point - wp.max(low, wp.min(high, point)))
    slack = away + ROUNDING * (wp.abs(value) + width)
    result.free = wp.max(value - slack, beyond)
    result.empty = wp.max(wp.abs(value) - slack, beyond)
    return result


@kernel
def measure_grid(meshes: Meshes, mesh: int, low: Vec3, width: Real, y: int, z: int, distance: wp.array[wp.float32]):
    """One thread a cell: the distance of its middle, negative where that is inside a closed mesh [m]."""
    thread = wp.tid()
    cell = Vec3(Real(thread / (y * z)), Real((thread / z) % y), Real(thread % z))
    point = low + width * (cell + Vec3(Real(0.5), Real(0.5), Real(0.5)))
    place = nearest_place(meshes, mesh, point)
    found = wp.sqrt(place.square)
    if meshes.header[mesh].is_closed == 1 and is_inside_mesh(meshes, mesh, point, place):
        found = -found
    distance[thread] = wp.float32(found)


def measure_clearance(meshes: Meshes, shapes: Sequence[TriangleMesh], device: wp.Device) -> Meshes:
    """`meshes`, which are those of `shapes`, with their grids.

    The sign of a closed mesh is taken from outside: a cell counts as free where balls without surface lead there from
    beyond the box, so that meshes that cross themselves hide nothing.
    """
    grid_box, grid, values, first = [], [], [], 0
    for mesh, solid in enumerate(shapes):
        low, high = solid.vertex.min(axis=0), solid.vertex.max(axis=0)
        width = float((high - low).max()) / CELLS
        shape = np.maximum(np.ceil((high - low) / width - 1e-9).astype(int), 1) + 2
        corner = 0.5 * (low + high) - 0.5 * width * shape
        distance = wp.empty(int(shape.prod()), dtype=wp.float32, device=device)
        arguments = [meshes, mesh, Vec3(*corner), Real(width), int(shape[1]), int(shape[2]), distance]
        wp.launch(measure_grid, len(distance), arguments, device=device)
        measured = distance.numpy().reshape(shape)
        values.append((_outside(measured, width) if solid.is_closed else measured).reshape(-1))
        grid_box += [corner, corner + width * shape]
        grid += [first, *shape]
        first += measured.size
    meshes.clear = wp.array(np.concatenate(values), dtype=wp.float32, device=device)
    meshes.grid_box = wp.array(np.array(grid_box), dtype=Vec3, device=device)
    meshes.grid = wp.array(np.array(grid, np.int32), dtype=wp.int32, device=device)
    return meshes


def _outside(distance: np.ndarray, width: float) -> np.ndarray:
    """Distances of cells' middles, made negative where no free way from the outermost cells is known."""
    number = np.arange(distance.size).reshape(distance.shape)
    links: list[tuple[np.ndarray, np.ndarray]] = []
    for axis in range(3):
        a, b = (np.take(number, range(k, k + number.shape[axis] - 1), axis).reshape(-1) for k in (0, 1))
        near = distance.reshape(-1)
        # Balls around both middles meet: the line between these is free.
        free = (near[a] > 0.0) & (near[b] > 0.0) & (near[a] + near[b] > 1.0001 * width)
        links.append((a[free], b[free]))
    a, b = (np.concatenate(ends) for ends in zip(*links, strict=True))
    graph = coo_matrix((np.ones(len(a)), (a, b)), shape=(distance.size, distance.size))
    label = connected_components(graph, directed=False)[1].reshape(distance.shape)
    rim = np.ones(distance.shape, bool)
    rim[1:-1, 1:-1, 1:-1] = False
    reached = np.isin(label, np.unique(label[rim & (distance > 0.0)])) & (distance > 0.0)
    return np.where(reached, distance, -np.abs(distance))
