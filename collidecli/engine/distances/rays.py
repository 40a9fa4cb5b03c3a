"""First crossings of rays with the surfaces of shapes of any type, in cells of a motion."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.distances.probes import (
    CULL_ROUNDING,
    Partners,
    Placement,
    ProbePlan,
    ProbePoints,
    Prober,
    is_in_cell,
    offset_from_shape,
    placed_probe,
    pose_in_cell,
)
from collidecli.engine.geometry.line_crossings import line_crosses_triangle
from collidecli.engine.geometry.meshes import Meshes, mesh_corner
from collidecli.engine.geometry.ray_primitives import primitive_interval
from collidecli.engine.geometry.real import PLANE, UP, Real, Vec3
from collidecli.engine.hydroelastic.solids import Solids
from collidecli.engine.runtime.kernel import kernel

ON_SURFACE = wp.constant(Real(1.0e-12))
"""A ray that starts this near a surface, relative to the shape's radius and the start's distance
from its centre, starts on it."""


@wp.struct
class RayHit:
    """The first crossing of a ray with a surface. distance: along the ray [m], infinite for none.
    normal: unit, outward."""

    distance: Real
    normal: Vec3


@wp.func
def nearer_of_interval(
    begin: Real, end: Real, begin_normal: Vec3, end_normal: Vec3, before: Real
) -> RayHit:
    """The first end of an interval that is at or after -before, the ray's start less rounding."""
    if begin <= end:
        if begin >= -before:
            return RayHit(begin, begin_normal)
        if end >= -before:
            return RayHit(end, end_normal)
    return RayHit(Real(wp.inf), Vec3())


@wp.func
def line_misses_box(lower: Vec3, upper: Vec3, start: Vec3, along: Vec3, most: Real) -> bool:
    """Whether no point of a ray up to parameter `most` is in a box. start: parameter 0; parameters
    may be negative."""
    begin = -Real(wp.inf)
    end = most
    for axis in range(3):
        if along[axis] == Real(0.0):
            if start[axis] < lower[axis] or start[axis] > upper[axis]:
                return True
        else:
            one = (lower[axis] - start[axis]) / along[axis]
            other = (upper[axis] - start[axis]) / along[axis]
            begin = wp.max(begin, wp.min(one, other))
            end = wp.min(end, wp.max(one, other))
    return begin > end


@wp.func
def mesh_hit(meshes: Meshes, mesh: int, start: Vec3, along: Vec3, least: Real) -> RayHit:
    """The first crossing of a line with a mesh's triangles at a parameter of at least `least`.

    Which triangles are crossed is exact (`line_crossings`): a line through an edge or a vertex
    crosses one of the triangles around it. The parameter is within the triangle's extent along the
    line, also where the two are nearly parallel."""
    best = RayHit(Real(wp.inf), Vec3())
    node = meshes.arrays[0].header[mesh].first_node
    stop = meshes.arrays[0].header[mesh].end_node
    while node < stop:
        lower = meshes.arrays[0].lower[node]
        upper = meshes.arrays[0].upper[node]
        if line_misses_box(lower, upper, start, along, best.distance):
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        if face >= 0:
            p = mesh_corner(meshes, face, 0)
            q = mesh_corner(meshes, face, 1)
            r = mesh_corner(meshes, face, 2)
            if line_crosses_triangle(start, along, p, q, r):
                normal = meshes.arrays[0].face_normal[face]
                to_p = wp.dot(p - start, along)
                to_q = wp.dot(q - start, along)
                to_r = wp.dot(r - start, along)
                t = wp.dot(p - start, normal) / wp.dot(along, normal)
                low = wp.min(to_p, wp.min(to_q, to_r))
                high = wp.max(to_p, wp.max(to_q, to_r))
                t = wp.max(low, wp.min(high, t))
                if t >= least and t < best.distance:
                    best = RayHit(t, normal)
        node += 1
    return best


@wp.func
def plane_hit(start: Vec3, along: Vec3) -> RayHit:
    """The crossing of a ray with the plane z = 0, from either side."""
    height = start[2]
    if wp.abs(height) <= ON_SURFACE * wp.length(start):
        return RayHit(Real(0.0), UP)
    if height * along[2] < Real(0.0):
        return RayHit(-height / along[2], UP)
    return RayHit(Real(wp.inf), Vec3())


def hit_function(with_meshes: bool) -> Any:
    """shape_hit(solids, row, start, along) -> RayHit, with the code of meshes and hulls or
    without."""

    @wp.func
    def shape_hit(solids: Solids, row: int, start: Vec3, along: Vec3) -> RayHit:
        """The first crossing of a ray in the frame of a shape, whose distance may be negative by
        rounding."""
        if solids.rows.type[row] == PLANE:
            return plane_hit(start, along)
        radius = Real(solids.rows.radius[row])
        nearest = -wp.dot(start, along)
        middle = start + nearest * along
        slack = ON_SURFACE * (radius + wp.length(start))
        if wp.length(middle) > radius + slack or nearest < -radius - slack:
            return RayHit(Real(wp.inf), Vec3())
        before = nearest + slack
        hit = RayHit()
        if wp.static(with_meshes):
            mesh = solids.mesh[row]
            if mesh >= 0:
                hit = mesh_hit(solids.meshes, mesh, middle, along, -before)
                hit.distance = hit.distance + nearest
                return hit
        inside = primitive_interval(solids.rows.type[row], solids.rows.size[row], middle, along)
        hit = nearer_of_interval(
            inside.begin, inside.end, inside.begin_normal, inside.end_normal, before
        )
        hit.distance = hit.distance + nearest
        return hit

    return shape_hit


@cache
def ray_kernel(with_meshes: bool) -> wp.Kernel:
    """The kernel, with the code of meshes and hulls or without."""
    shape_hit = hit_function(with_meshes)

    @kernel
    def cast_rays(
        solids: Solids,
        partners: Partners,
        points: ProbePoints,
        placed: Placement,
        value: wp.array[Real],
        nearest: wp.array[int],
        normal: wp.array[Vec3],
    ):
        """One thread per cell and ray: the first crossing with a surface of its partners, the row
        of the shape, the first of equally near ones, and its outward normal in the world; infinite,
        -1 and 0 for none."""
        thread = wp.tid()
        count = points.point.shape[0]
        cell = thread / count
        number = thread % count
        best = RayHit(Real(wp.inf), Vec3())
        best_row = int(-1)
        probe = placed_probe(partners, points, placed, cell, number)
        frame = placed.frame_pose[cell * placed.frame_count + points.frame[number]]
        along = wp.quat_rotate(wp.transform_get_rotation(frame), points.along[number])
        for at in range(probe.first, probe.end):
            row = partners.row[at]
            if is_in_cell(partners, placed, row, cell):
                pose = pose_in_cell(placed, row, cell)
                off = offset_from_shape(probe, pose)
                radius = Real(solids.rows.radius[row])
                apart = wp.length(off)
                if not (apart - radius - CULL_ROUNDING * (apart + radius) > best.distance):
                    turn = wp.transform_get_rotation(pose)
                    start = wp.quat_rotate_inv(turn, off)
                    local = wp.normalize(wp.quat_rotate_inv(turn, along))
                    hit = shape_hit(solids, row, start, local)
                    hit.distance = wp.max(hit.distance, Real(0.0))
                    if hit.distance < best.distance:
                        best = RayHit(hit.distance, wp.quat_rotate(turn, hit.normal))
                        best_row = row
        value[thread] = best.distance
        nearest[thread] = best_row
        normal[thread] = best.normal

    return cast_rays


class RayCaster(Prober):
    """Measures the first crossings of the rays of a plan. Any number of threads may share it."""

    def __init__(
        self, plan: ProbePlan, points: np.ndarray, along: np.ndarray, device: wp.Device
    ) -> None:
        """points, along: float64[V, 3], starts [m] and unit directions in their frames of the
        plan."""
        super().__init__(plan, points, device, ray_kernel, along)

    def measure(
        self, shape_pose: np.ndarray, frame_pose: np.ndarray, template: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """float64[C, V], distances along the rays [m], infinite for none; int32[C, V], rows of the
        shapes, -1 for none; float64[C, V, 3], outward normals in the world. See
        `PointDistances.measure`."""
        fields = (("distance", Real), ("nearest", wp.int32), ("normal", Vec3))
        distance, nearest, normal = self.run(shape_pose, frame_pose, template, fields)
        return distance, nearest, normal
