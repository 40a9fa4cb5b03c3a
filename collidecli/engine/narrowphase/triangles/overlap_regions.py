"""The regions in which two surfaces overlap, each as a box around what crosses or is inside there.

Boxes that meet are one region. The list is bounded: where it is full, the two boxes whose common box is the smallest
become one. So no overlap is lost; regions that lie close to each other may be separated together.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.triangle_pair import crossing_segment, overlap_of_projections
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair
from collidecli.engine.narrowphase.triangles.heightfield_segment_triangles import begin_targets, next_target
from collidecli.engine.narrowphase.triangles.surface_interior import surface_clearance
from collidecli.engine.narrowphase.triangles.surface_pair import (
    OverlapRegion,
    SurfacePair,
    box_in_b,
    boxes_meet,
    triangles_of_pair,
)
from collidecli.engine.narrowphase.triangles.triangle_queries import mesh_arrays

# ruff: noqa: F811

CAPACITY = 16
"""Regions that a pair may have."""


@wp.func
def _merged(x: OverlapRegion, y: OverlapRegion) -> OverlapRegion:
    """Both regions as one."""
    result = x
    result.low = wp.min(x.low, y.low)
    result.high = wp.max(x.high, y.high)
    result.front = x.front + y.front
    if y.depth_a > x.depth_a:
        result.depth_a = y.depth_a
        result.inner_a = y.inner_a
    if y.depth_b > x.depth_b:
        result.depth_b = y.depth_b
        result.inner_b = y.inner_b
    return result


@wp.func
def _added(regions: wp.array[OverlapRegion], count: int, added: OverlapRegion) -> int:
    """Merges a region with those that it meets and stores the result last; returns how many there are then."""
    held = added
    kept = int(count)
    i = int(0)
    while i < kept:
        if boxes_meet(held.low, held.high, regions[i].low, regions[i].high):
            held = _merged(held, regions[i])
            kept -= 1
            regions[i] = regions[kept]
            # The box has grown: it may meet what it did not meet before.
            i = 0
        else:
            i += 1
    regions[kept] = held
    return kept + 1


@wp.func(inline=False)
def add_region(regions: wp.array[OverlapRegion], count: int, added: OverlapRegion) -> int:
    """Merges a region with those that it meets, and with the nearest if there are too many; returns how many there are.

    regions: CAPACITY of them, and one element more.
    """
    kept = _added(regions, count, added)
    if kept <= wp.static(CAPACITY):
        return kept
    held = regions[wp.static(CAPACITY)]
    nearest = int(0)
    least = Real(wp.inf)
    for k in range(wp.static(CAPACITY)):
        size = wp.length_sq(wp.max(held.high, regions[k].high) - wp.min(held.low, regions[k].low))
        if size < least:
            least = size
            nearest = k
    held = _merged(held, regions[nearest])
    regions[nearest] = regions[wp.static(CAPACITY - 1)]
    return _added(regions, wp.static(CAPACITY - 1), held)


@wp.func(inline=False)
def add_crossing(
    surfaces: Any, pair: SurfacePair, face_a: int, face_b: int, regions: wp.array[OverlapRegion], count: int
) -> int:
    """Adds the segment in which two triangles cross, if they do; returns how many regions there are then."""
    triangles = triangles_of_pair(surfaces, pair, face_a, face_b)
    if overlap_of_projections(triangles, pair.touch) <= pair.touch:
        return count
    common = crossing_segment(triangles)
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    region = OverlapRegion()
    region.low = wp.min(common.start, common.end) - grown
    region.high = wp.max(common.start, common.end) + grown
    weight = wp.length(common.end - common.start)
    if pair.front_a == 1 and pair.closed_a == 0:
        region.front += weight * triangles.normal_pqr
    if pair.front_b == 1 and pair.closed_b == 0:
        region.front -= weight * triangles.normal_abc
    return add_region(regions, count, region)


@wp.func(inline=False)
def crossings_in_box(
    meshes: Meshes, pair: SurfacePair, face_a: int, low: Vec3, high: Vec3, regions: wp.array[OverlapRegion], before: int
) -> int:
    """Adds the crossings of a triangle of a with those of b in a box of b's frame; returns the number of regions."""
    count = before
    header = meshes.header[pair.b]
    node = header.first_node
    stop = header.end_node
    while node < stop:
        if not boxes_meet(low, high, meshes.lower[node], meshes.upper[node]):
            node = meshes.skip[node]
            continue
        face = meshes.leaf[node]
        node += 1
        if face >= 0:
            count = add_crossing(meshes, pair, face_a, face, regions, count)
    return count


@wp.func(inline=False)
def crossings_in_box(
    heightfield_pair: HeightfieldPair,
    pair: SurfacePair,
    face_a: int,
    low: Vec3,
    high: Vec3,
    regions: wp.array[OverlapRegion],
    before: int,
) -> int:
    """The same where b is a heightfield."""
    count = before
    half = Real(0.5) * (high - low)
    middle = low + half
    targets = begin_targets(heightfield_pair.field, middle, middle, wp.max(half[0], wp.max(half[1], half[2])))
    while targets.number >= 0:
        count = add_crossing(heightfield_pair, pair, face_a, targets.number, regions, count)
        targets = next_target(heightfield_pair.field, targets)
    return count


@wp.func(inline=False)
def add_crossings(surfaces: Any, pair: SurfacePair, regions: wp.array[OverlapRegion], before: int) -> int:
    """Adds every crossing of a triangle of a with one of b; returns how many regions there are then."""
    count = before
    mesh = mesh_arrays(surfaces)
    header = mesh.header[pair.a]
    node = header.first_node
    stop = header.end_node
    into_b = wp.transform_inverse(pair.pose_b_to_a)
    while node < stop:
        half = Real(0.5) * (mesh.upper[node] - mesh.lower[node])
        middle = wp.transform_point(into_b, mesh.lower[node] + half)
        if surface_clearance(surfaces, pair.b, middle) > wp.length(half) + pair.touch:
            node = mesh.skip[node]
            continue
        face = mesh.leaf[node]
        node += 1
        if face >= 0:
            extent = box_in_b(pair, half)
            count = crossings_in_box(surfaces, pair, face, middle - extent, middle + extent, regions, count)
    return count
