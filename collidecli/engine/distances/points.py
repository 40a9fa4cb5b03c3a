"""Signed distances of points from one shape of any type."""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from collidecli.engine.device_model import upload_model
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.solids import Solids, distance_function, upload_solids
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType


@cache
def point_kernel(with_meshes: bool) -> wp.Kernel:
    """The kernel, with the code of meshes and hulls or without."""
    distance = distance_function(with_meshes, False)

    @kernel
    def measure_points(
        solids: Solids, row: int, has_inside: int, point: wp.array[Vec3], value: wp.array[Real]
    ):
        """One thread per point."""
        thread = wp.tid()
        nearest = distance(solids, row, point[thread])
        value[thread] = wp.where(has_inside == 1, nearest.value, wp.abs(nearest.value))

    return measure_points


@one_at_a_time
def point_distances(model: Model, row: int, points: np.ndarray, device: wp.Device) -> np.ndarray:
    """float64[n]: signed distances of points [n, 3], in a shape's frame, from its surface [m];
    negative inside. row: of a shape of any type but heightfield. Not negative for an open mesh,
    which has no inside."""
    shape_type = model.shapes.type[row]
    with_meshes = shape_type in (ShapeType.MESH, ShapeType.CONVEX_MESH)
    has_inside = int(shape_type != ShapeType.MESH or model.meshes[model.shapes.mesh[row]].is_closed)
    device_model = upload_model(model, device)
    sampled = np.zeros(len(model.shapes), bool)
    sampled[row] = True
    measure = point_kernel(with_meshes)
    load_kernels([measure], device)
    value = wp.empty(max(1, len(points)), dtype=Real, device=device)  # pyright: ignore[reportArgumentType]
    if len(points):
        given = wp.array(np.ascontiguousarray(points, np.float64), dtype=Vec3, device=device)
        arguments = [upload_solids(device_model, sampled), row, has_inside, given, value]
        wp.launch(measure, len(points), arguments, device=device)
    return value.numpy()[: len(points)]
