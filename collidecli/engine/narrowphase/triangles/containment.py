"""What of two surfaces is wholly inside the other where no triangles cross, and where it comes out."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.mesh_edge import chord_of
from collidecli.engine.narrowphase.triangles.surface_interior import is_within, nearest_square
from collidecli.engine.narrowphase.triangles.surface_pair import OverlapRegion, SurfacePair
from collidecli.engine.narrowphase.triangles.triangle_queries import corner_on, mesh_arrays

SAMPLES = wp.constant(5)
"""Triangles of a mesh of which one is off the other's surface, see `clear_point`."""


@wp.func(inline=False)
def inner_exit(surfaces: Any, pair: SurfacePair, region: OverlapRegion, direction: Vec3, translation: Real) -> Real:
    """The translation at which the region's inner points come out, if one is still inside; else `translation`.

    Until then that point is inside, whatever crosses.
    """
    result = translation
    length = Real(2.0) * pair.span
    if region.depth_b > Real(0.0) and pair.closed_a == 1:
        point = region.inner_b + translation * direction
        if is_within(surfaces, pair.a, point):
            leaves = chord_of(surfaces, pair.a, point, point + length * direction, Real(0.0))[1]
            result = wp.max(result, translation + leaves * length)
    if region.depth_a > Real(0.0) and pair.closed_b == 1:
        into_b = wp.transform_inverse(pair.pose_b_to_a)
        point = wp.transform_point(into_b, region.inner_a - translation * direction)
        if is_within(surfaces, pair.b, point):
            end = point - length * wp.transform_vector(into_b, direction)
            leaves = chord_of(surfaces, pair.b, point, end, Real(0.0))[1]
            result = wp.max(result, translation + leaves * length)
    return result


@wp.func(inline=False)
def clear_point(surfaces: Any, pair: SurfacePair, of_a: bool, translation: Vec3) -> Vec3:
    """Of points of one mesh, in the other surface's frame, that which is farthest from the other's surface.

    The middles of SAMPLES triangles; where nothing crosses, any point that is not on the other's surface tells on which
    side of it the whole of a connected mesh is.
    """
    own = wp.where(of_a, pair.a, pair.b)
    other = wp.where(of_a, pair.b, pair.a)
    mesh = mesh_arrays(surfaces)
    first = mesh.header[own].first_node
    count = mesh.header[own].end_node - first
    result = Vec3()
    farthest = Real(-1.0)
    for k in range(SAMPLES):
        node = first + (count * k) / SAMPLES
        while mesh.leaf[node] < 0:
            node += 1
        face = mesh.leaf[node]
        point = (
            corner_on(surfaces, own, face, 0) + corner_on(surfaces, own, face, 1) + corner_on(surfaces, own, face, 2)
        )
        point = point / Real(3.0)
        if of_a:
            point = wp.transform_point(wp.transform_inverse(pair.pose_b_to_a), point - translation)
        else:
            point = wp.transform_point(pair.pose_b_to_a, point) + translation
        square = nearest_square(surfaces, other, point)
        if square > farthest:
            farthest = square
            result = point
    return result


@wp.func(inline=False)
def engulfed_exit(surfaces: Any, pair: SurfacePair, direction: Vec3, translation: Real) -> Real:
    """Where nothing crosses: the translation at which a mesh that is wholly inside the other comes out, if one is; else
    `translation`."""
    result = translation
    length = Real(2.0) * pair.span
    moved = translation * direction
    if pair.closed_a == 1 and pair.b >= 0:
        point = clear_point(surfaces, pair, False, moved)
        if is_within(surfaces, pair.a, point):
            result += chord_of(surfaces, pair.a, point, point + length * direction, Real(0.0))[1] * length
    if pair.closed_b == 1 and result == translation:
        point = clear_point(surfaces, pair, True, moved)
        if is_within(surfaces, pair.b, point):
            way = wp.transform_vector(wp.transform_inverse(pair.pose_b_to_a), direction)
            result += chord_of(surfaces, pair.b, point, point - length * way, Real(0.0))[1] * length
    return result
