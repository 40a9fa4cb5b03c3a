"""Exact signed distances along rows of points, which fill the grids of signed distance fields."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.geometry.nearest_on_primitive import surface_point
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.scene.sdf_options import SdfShape
from collidecli.scene.solids import half_extents
from collidecli.system import processor_count

ROWS_AT_ONCE = 1 << 15
"""Rows of one launch: limits the memory besides the grid, and gives the threads equal loads."""
SURE = wp.constant(wp.float32(1.0 + 1.0e-4))
"""Two points of a row have equal signs if the sum of their distances exceeds their spacing by this
factor."""
ACCURACY = wp.constant(wp.float32(2.0))
"""Accuracy of Warp's winding numbers: dipoles approximate triangles farther than this multiple of
their size."""
HALF = wp.constant(wp.float32(0.5))


@kernel
def fill_rows_of_primitive(
    shape_type: int,
    size: Vec3,
    start: wp.array[Vec3],
    bound: wp.array[wp.float32],
    count: int,
    step: Real,
    out: wp.array[wp.float32],
):
    """Signed distances of a primitive; one thread a row. The bound is that of other surfaces."""
    row = wp.tid()
    for k in range(count):
        point = start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0))
        out[row * count + k] = wp.float32(surface_point(shape_type, size, point).distance)


@kernel
def fill_rows_of_mesh(
    mesh: wp.uint64,
    solid: wp.uint64,
    closed: int,
    start: wp.array[Vec3],
    bound: wp.array[wp.float32],
    count: int,
    step: Real,
    out: wp.array[wp.float32],
):
    """Unsigned distances, and signs by generalized winding numbers; one thread a row.

    mesh: the boundary triangles, which give the distances. solid: all triangles, which give the
    signs. The winding number of a closed mesh changes at its surface only: a point takes the sign
    of the previous point if the surface cannot pass between them. That of an open mesh also changes
    elsewhere, at its openings. Source: Barill and others, Fast winding numbers for soups and
    clouds, 2018.
    """
    row = wp.tid()
    for k in range(count):
        point = wp.vec3f(start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0)))
        distance = bound[row]
        nearest = wp.mesh_query_point_no_sign(mesh, point, distance)
        if nearest.result:
            distance = wp.length(
                point - wp.mesh_eval_position(mesh, nearest.face, nearest.u, nearest.v)
            )
        out[row * count + k] = distance
    sign = wp.float32(1.0)
    before = wp.float32(0.0)
    for k in range(count):
        distance = out[row * count + k]
        if closed == 0 or k == 0 or before + distance <= wp.float32(step) * SURE:
            point = wp.vec3f(start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0)))
            around = distance * SURE + wp.float32(1.0e-6)
            sign = wp.mesh_query_point_sign_winding_number(
                solid, point, around, ACCURACY, HALF
            ).sign
        before = distance
        out[row * count + k] = sign * distance


@dataclass(frozen=True)
class Distances:
    """Signed distances to one surface, by a kernel with one thread a row.

    arguments: the first ones of the kernel. unit: length that is 1 in the kernel [m]. meshes: what
    the arguments name.
    """

    kernel: wp.Kernel
    arguments: list[Any]
    device: wp.Device
    unit: float = 1.0
    meshes: tuple[wp.Mesh, ...] = ()

    def rows(self, start: np.ndarray, count: int, step: float, bound: np.ndarray) -> np.ndarray:
        """float32[R, count]: signed distances at start[R, 3] + k (step, 0, 0) [m].

        bound: float64[R], upper bound of the row's unsigned distances [m]. Rows are filled in
        batches; on the CPU with one thread a core, as a kernel launch there uses one core.
        """
        result = np.empty((len(start), count), np.float32)

        def fill(begin: int) -> None:
            end = min(begin + ROWS_AT_ONCE, len(start))
            points = wp.array(start[begin:end] / self.unit, dtype=Vec3, device=self.device)
            # Slightly above the bound, to allow for rounding.
            bounds = wp.array(
                bound[begin:end] / self.unit * 1.0001 + 1e-6, dtype=wp.float32, device=self.device
            )
            out: Any = wp.empty((end - begin) * count, dtype=wp.float32, device=self.device)  # pyright: ignore[reportArgumentType]
            arguments = [*self.arguments, points, bounds, count, step / self.unit, out]
            wp.launch(self.kernel, end - begin, arguments, device=self.device)
            result[begin:end] = out.numpy().reshape(-1, count)

        begins = range(0, len(start), ROWS_AT_ONCE)
        if self.device.is_cpu and len(begins) > 1:
            with ThreadPoolExecutor(processor_count()) as pool:
                list(pool.map(fill, begins))
        else:
            for begin in begins:
                fill(begin)
        return result * np.float32(self.unit)


def distances_of(shape: SdfShape, device: wp.Device) -> Distances:
    """Exact distances of a shape's surface; loads the kernel's module.

    Those of a mesh are in float32 and in units of the mesh's size: `wp.Mesh` supports float32 only.
    """
    surface = shape.surface
    kernel = fill_rows_of_primitive if surface is None else fill_rows_of_mesh
    load_kernels([kernel], device)
    if surface is None:
        return Distances(kernel, [int(shape.type), Vec3(*shape.size[:3])], device)
    unit = float(half_extents(shape.type, shape.size).max())
    points = wp.array(surface.vertex / unit, dtype=wp.vec3f, device=device)
    corners = wp.array(np.ascontiguousarray(surface.face).ravel(), dtype=wp.int32, device=device)
    solid = seen = wp.Mesh(points, corners, support_winding_number=True)
    if surface.hidden.any() and not surface.hidden.all():
        corners = wp.array(surface.face[~surface.hidden].ravel(), dtype=wp.int32, device=device)
        seen = wp.Mesh(points, corners)
    return Distances(
        kernel, [seen.id, solid.id, int(surface.is_closed)], device, unit, (seen, solid)
    )
