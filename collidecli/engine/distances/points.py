"""Least signed distances of points from shapes of any type, in cells of a motion."""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from collidecli.engine.distances.probes import (
    CULL_ROUNDING,
    Partners,
    PlacedProbe,
    Placement,
    ProbePlan,
    ProbePoints,
    Prober,
    is_in_cell,
    offset_from_shape,
    placed_probe,
    pose_in_cell,
)
from collidecli.engine.geometry.real import Real
from collidecli.engine.hydroelastic.solids import Solids, distance_function
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.scene.model import Model
from collidecli.scene.poses import IDENTITY_POSE


@wp.func
def bound_by_balls(
    solids: Solids, partners: Partners, placed: Placement, probe: PlacedProbe, cell: int
) -> Real:
    """Upper bound of a point's least distance from its partners less margins [m], by the farthest
    points of their bounding balls; infinite without partners."""
    bound = Real(wp.inf)
    for at in range(probe.first, probe.end):
        row = partners.row[at]
        if is_in_cell(partners, placed, row, cell):
            apart = wp.length(offset_from_shape(probe, pose_in_cell(placed, row, cell)))
            most = apart + Real(solids.rows.radius[row]) - partners.margin[at]
            bound = wp.min(bound, most + CULL_ROUNDING * wp.abs(most))
    return bound


@cache
def point_kernel(with_meshes: bool) -> wp.Kernel:
    """The kernel, with the code of meshes and hulls or without."""
    distance = distance_function(with_meshes, False)

    @kernel
    def measure_points(
        solids: Solids,
        partners: Partners,
        points: ProbePoints,
        placed: Placement,
        value: wp.array[Real],
        nearest: wp.array[int],
    ):
        """One thread per cell and point: the least distance from its partners less margins, and the
        row of the shape, the first of equally near ones; infinite and -1 for none.

        A shape whose bounding ball is farther than the farthest point of another one's is left
        out."""
        thread = wp.tid()
        count = points.point.shape[0]
        cell = thread / count
        number = thread % count
        best = Real(wp.inf)
        best_row = int(-1)
        probe = placed_probe(partners, points, placed, cell, number)
        bound = bound_by_balls(solids, partners, placed, probe, cell)
        for at in range(probe.first, probe.end):
            row = partners.row[at]
            if is_in_cell(partners, placed, row, cell):
                pose = pose_in_cell(placed, row, cell)
                off = offset_from_shape(probe, pose)
                apart = wp.length(off)
                radius = Real(solids.rows.radius[row])
                least = apart - radius - partners.margin[at]
                slack = CULL_ROUNDING * (apart + radius + wp.abs(partners.margin[at]))
                if not (least - slack > wp.min(best, bound)):
                    local = wp.quat_rotate_inv(wp.transform_get_rotation(pose), off)
                    found = distance(solids, row, local).value
                    if partners.has_inside[row] == 0:
                        found = wp.abs(found)
                    found = found - partners.margin[at]
                    if found < best:
                        best = found
                        best_row = row
        value[thread] = best
        nearest[thread] = best_row

    return measure_points


class PointDistances(Prober):
    """Measures least distances of the points of a plan. Any number of threads may share it."""

    def __init__(self, plan: ProbePlan, points: np.ndarray, device: wp.Device) -> None:
        """points: float64[V, 3], each in its frame of the plan [m]."""
        super().__init__(plan, points, device, point_kernel)

    def measure(
        self, shape_pose: np.ndarray, frame_pose: np.ndarray, template: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64[C, V], the distances [m], infinite for none; int32[C, V], rows of the nearest
        shapes, -1 for none.

        Args:
            shape_pose: float64[C, S, 7], world poses of all shapes in C cells.
            frame_pose: float64[C, O, 7], of the plan's frames; NaN where a cell lacks one.
            template: int[C], of each cell's world.
        """
        fields = (("distance", Real), ("nearest", wp.int32))
        distance, nearest = self.run(shape_pose, frame_pose, template, fields)
        return distance, nearest


@one_at_a_time
def point_distances(model: Model, row: int, points: np.ndarray, device: wp.Device) -> np.ndarray:
    """float64[n]: signed distances of points [n, 3], in a shape's frame, from its surface [m];
    negative inside. row: of a shape of any type. Not negative for an open mesh, which has no
    inside."""
    points = np.asarray(points, np.float64).reshape(-1, 3)
    zeros = np.zeros(len(points), np.int32)
    plan = ProbePlan(
        model, zeros, zeros, np.array([0, 1]), np.array([row]), np.zeros(1), every_template=True
    )
    identity = np.array([[IDENTITY_POSE]])
    placed = np.tile(identity, (1, len(model.shapes), 1))
    measure = PointDistances(plan, points, device).measure
    return measure(placed, identity, np.zeros(1, np.int32))[0][0]
