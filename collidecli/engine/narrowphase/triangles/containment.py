"""Containment of one surface in the other without crossings, and the translation at which it ends."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.surface_interior import chord_of, is_within, nearest_on
from collidecli.engine.narrowphase.triangles.surface_pair import OverlapRegion, SurfacePair
from collidecli.engine.narrowphase.triangles.triangle_source import corner_on, mesh_arrays

SAMPLES = wp.constant(5)
"""Number of triangles whose centroids are sampled, see `clear_point`."""


@wp.func(inline=False)
def inner_exit(source: Any, pair: SurfacePair, region: OverlapRegion, direction: Vec3, translation: Real) -> Real:
    """The translation at which the region's inner points exit, if one is still inside; else `translation`.

    Up to that translation the point is inside, independent of crossings.
    """
    result = translation
    length = Real(2.0) * pair.span
    if region.depth_b > Real(0.0) and pair.closed_a == 1:
        point = region.inner_b + translation * direction
        if is_within(source, pair.a, point):
            leaves = chord_of(source, pair.a, point, point + length * direction, Real(0.0))[1]
            result = wp.max(result, translation + leaves * length)
    if region.depth_a > Real(0.0) and pair.closed_b == 1:
        into_b = wp.transform_inverse(pair.pose_b_to_a)
        point = wp.transform_point(into_b, region.inner_a - translation * direction)
        if is_within(source, pair.b, point):
            end = point - length * wp.transform_vector(into_b, direction)
            leaves = chord_of(source, pair.b, point, end, Real(0.0))[1]
            result = wp.max(result, translation + leaves * length)
    return result


@wp.func(inline=False)
def clear_point(source: Any, pair: SurfacePair, of_a: bool, translation: Vec3) -> Vec3:
    """The sample point of one mesh that is farthest from the other surface, in the other's frame.

    The samples are the centroids of SAMPLES triangles. Without crossings, any point that is not on the other surface
    decides on which side of it the whole of a connected mesh is.
    """
    own = wp.where(of_a, pair.a, pair.b)
    other = wp.where(of_a, pair.b, pair.a)
    meshes = mesh_arrays(source)
    first = meshes.header[own].first_node
    count = meshes.header[own].end_node - first
    result = Vec3()
    farthest = Real(-1.0)
    for k in range(SAMPLES):
        node = first + (count * k) / SAMPLES
        while meshes.leaf[node] < 0:
            node += 1
        face = meshes.leaf[node]
        point = corner_on(source, own, face, 0) + corner_on(source, own, face, 1) + corner_on(source, own, face, 2)
        point = point / Real(3.0)
        if of_a:
            point = wp.transform_point(wp.transform_inverse(pair.pose_b_to_a), point - translation)
        else:
            point = wp.transform_point(pair.pose_b_to_a, point) + translation
        square = nearest_on(source, other, point).square
        if square > farthest:
            farthest = square
            result = point
    return result


@wp.func(inline=False)
def engulfed_exit(source: Any, pair: SurfacePair, direction: Vec3, translation: Real) -> Real:
    """The translation at which a mesh that is wholly inside the other exits, if one is; else `translation`.

    Requires that no triangles cross at `translation`.
    """
    result = translation
    length = Real(2.0) * pair.span
    moved = translation * direction
    if pair.closed_a == 1 and pair.b >= 0:
        point = clear_point(source, pair, False, moved)
        if is_within(source, pair.a, point):
            result += chord_of(source, pair.a, point, point + length * direction, Real(0.0))[1] * length
    if pair.closed_b == 1 and result == translation:
        point = clear_point(source, pair, True, moved)
        if is_within(source, pair.b, point):
            along = wp.transform_vector(wp.transform_inverse(pair.pose_b_to_a), direction)
            result += chord_of(source, pair.b, point, point - length * along, Real(0.0))[1] * length
    return result
