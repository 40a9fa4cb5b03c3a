"""Exact signed distances along rows of points, which fill the grids."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import warp as wp

from collidecli.engine.geometry.nearest_on_primitive import surface_point
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.signed_distance import SdfShape, box_of
from collidecli.system_resources import processor_count

ROWS_AT_ONCE = 1 << 15
"""Rows of one launch: limits the memory besides the grid, and gives the threads equal loads."""
SURE = wp.constant(wp.float32(1.0 + 1.0e-4))
"""Two points of a row have equal signs if the sum of their distances exceeds their spacing by this factor."""
ACCURACY = wp.constant(wp.float32(2.0))
"""Accuracy of Warp's winding numbers: dipoles approximate triangles farther than this multiple of their size."""
HALF = wp.constant(wp.float32(0.5))


class Distances(Protocol):
    """Signed distances to one surface."""

    def rows(self, start: np.ndarray, count: int, step: float, bound: np.ndarray) -> np.ndarray:
        """float32[R, count]: signed distances at start[R, 3] + k (step, 0, 0) [m].

        bound: float64[R], upper bound of the row's unsigned distances [m].
        """
        ...


@kernel
def fill_rows_of_primitive(
    shape_type: int, size: Vec3, start: wp.array[Vec3], count: int, step: Real, out: wp.array[wp.float32]
):
    """Signed distances of a primitive; one thread a row."""
    row = wp.tid()
    for k in range(count):
        point = start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0))
        out[row * count + k] = wp.float32(surface_point(shape_type, size, point).distance)


@wp.func
def sign_at(mesh: wp.uint64, point: wp.vec3f, distance: wp.float32) -> wp.float32:
    """-1 if the winding number around a point is above a half, else 1. distance: unsigned distance of the point."""
    max_separation = distance * SURE + wp.float32(1.0e-6)
    return wp.mesh_query_point_sign_winding_number(mesh, point, max_separation, ACCURACY, HALF).sign


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

    mesh: the boundary triangles, which give the distances. solid: all triangles, which give the signs.
    The winding number of a closed mesh changes at its surface only: a point takes the sign of the previous point if the
    surface cannot pass between them. That of an open mesh also changes elsewhere, but slowly: points take the sign of
    the previous point if the signs at the row's ends agree.
    Source: Barill and others, Fast winding numbers for soups and clouds, 2018.
    """
    row = wp.tid()
    unlike = bool(False)
    for k in range(count):
        point = wp.vec3f(start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0)))
        distance = bound[row]
        nearest = wp.mesh_query_point_no_sign(mesh, point, distance)
        if nearest.result:
            distance = wp.length(point - wp.mesh_eval_position(mesh, nearest.face, nearest.u, nearest.v))
        out[row * count + k] = distance
    if closed == 0:
        end = wp.vec3f(start[row] + Vec3(Real(count - 1) * step, Real(0.0), Real(0.0)))
        unlike = sign_at(solid, wp.vec3f(start[row]), out[row * count]) != sign_at(
            solid, end, out[row * count + count - 1]
        )
    sign = wp.float32(1.0)
    before = wp.float32(0.0)
    for k in range(count):
        distance = out[row * count + k]
        if unlike or k == 0 or before + distance <= wp.float32(step) * SURE:
            point = wp.vec3f(start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0)))
            sign = sign_at(solid, point, distance)
        before = distance
        out[row * count + k] = sign * distance


class PrimitiveDistances:
    """Distances of a primitive, in closed form."""

    def __init__(self, shape: SdfShape, device: wp.Device) -> None:
        self._shape, self._device = shape, device

    def rows(self, start: np.ndarray, count: int, step: float, bound: np.ndarray) -> np.ndarray:
        def fill(begin: int, end: int, out: wp.array) -> None:
            points = wp.array(start[begin:end], dtype=Vec3, device=self._device)
            arguments = [int(self._shape.type), Vec3(*self._shape.size), points, count, step, out]
            wp.launch(fill_rows_of_primitive, end - begin, arguments, device=self._device)

        return _in_parts(fill, len(start), count, self._device)


class MeshDistances:
    """Distances of a mesh, in float32 and in units of the mesh's size: `wp.Mesh` supports float32 only."""

    def __init__(self, shape: SdfShape, device: wp.Device) -> None:
        assert shape.surface is not None
        surface = shape.surface
        self._device, self._closed = device, int(surface.is_closed)
        self._unit = float(box_of(shape.type, shape.size).max())
        points = wp.array(surface.vertex / self._unit, dtype=wp.vec3f, device=device)
        corners = wp.array(np.ascontiguousarray(surface.face).ravel(), dtype=wp.int32, device=device)
        self._solid = self._seen = wp.Mesh(points, corners, support_winding_number=True)
        hidden = surface.hidden
        if hidden.any() and not hidden.all():
            corners = wp.array(surface.face[~hidden].ravel(), dtype=wp.int32, device=device)
            self._seen = wp.Mesh(points, corners)

    def rows(self, start: np.ndarray, count: int, step: float, bound: np.ndarray) -> np.ndarray:
        unit = self._unit

        def fill(begin: int, end: int, out: wp.array) -> None:
            points = wp.array(start[begin:end] / unit, dtype=Vec3, device=self._device)
            # Slightly above the bound, to allow for rounding.
            bounds = wp.array(bound[begin:end] / unit * 1.0001 + 1e-6, dtype=wp.float32, device=self._device)
            arguments = [self._seen.id, self._solid.id, self._closed, points, bounds, count, step / unit, out]
            wp.launch(fill_rows_of_mesh, end - begin, arguments, device=self._device)

        return _in_parts(fill, len(start), count, self._device) * np.float32(unit)


def distances_of(shape: SdfShape, device: wp.Device) -> Distances:
    """Exact distances of a shape's surface; loads the kernel's module."""
    kernel = fill_rows_of_primitive if shape.surface is None else fill_rows_of_mesh
    wp.load_module(kernel.module, device=device)
    return PrimitiveDistances(shape, device) if shape.surface is None else MeshDistances(shape, device)


def _in_parts(fill: Any, row_count: int, count: int, device: wp.Device) -> np.ndarray:
    """Rows filled in batches; on the CPU with one thread a core, as a kernel launch there uses one core."""
    result = np.empty((row_count, count), np.float32)

    def one(begin: int) -> None:
        end = min(begin + ROWS_AT_ONCE, row_count)
        out = wp.empty((end - begin) * count, dtype=wp.float32, device=device)
        fill(begin, end, out)
        result[begin:end] = out.numpy().reshape(-1, count)

    begins = range(0, row_count, ROWS_AT_ONCE)
    if device.is_cpu and len(begins) > 1:
        one(begins[0])  # loads the kernel, which two threads must not do at once
        with ThreadPoolExecutor(processor_count()) as pool:
            list(pool.map(one, begins[1:]))
    else:
        for begin in begins:
            one(begin)
    return result
