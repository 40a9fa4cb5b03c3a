"""The part of a polygon of equal pressures that has pressure, and its `HydroFace`."""

from __future__ import annotations

import warp as wp

from collidecli.engine.geometry.real import Vec3
from collidecli.engine.hydroelastic.pairs import HydroPair
from collidecli.engine.hydroelastic.polygon import (
    IN_PLANE,
    Clipped,
    HydroFace,
    LinearField,
    clip_polygon,
    effective_gradient,
    integrated,
)


@wp.func
def soft_distance(pair: HydroPair, phi0: LinearField, phi1: LinearField) -> LinearField:
    """Distance from the shape whose depth gives the pressure."""
    if pair.soft == 1:
        return phi1
    return phi0


@wp.func
def clip_by_depth(
    pair: HydroPair, phi0: LinearField, phi1: LinearField, corner: wp.array[Vec3], polygon: Clipped
) -> Clipped:
    """The part of a polygon inside the soft shape; count 0 where all of it is in that shape's surface."""
    depth = soft_distance(pair, phi0, phi1)
    result = clip_polygon(corner, polygon, depth.slope, -depth.value, IN_PLANE * pair.size)
    if result.in_plane == 1:
        result.count = 0
    return result


@wp.func
def face_of_polygon(
    pair: HydroPair,
    phi0: LinearField,
    phi1: LinearField,
    normal: Vec3,
    corner: wp.array[Vec3],
    polygon: Clipped,
) -> HydroFace:
    """The face of a polygon in which both distances are linear; count 0 without area, or without depth but rounding.

    normal: unit, from shape 0 to shape 1.
    """
    depth = soft_distance(pair, phi0, phi1)
    pressure = LinearField()
    pressure.slope = -pair.stiffness * depth.slope
    pressure.value = -pair.stiffness * depth.value
    separation = LinearField()
    separation.slope = phi0.slope + phi1.slope
    separation.value = phi0.value + phi1.value
    face = integrated(corner, polygon.source, polygon.count, normal, pressure, separation)
    if face.depth > -IN_PLANE * pair.size:  # slivers where surfaces touch
        face.count = 0
    gradient0 = pair.stiffness0 * wp.dot(phi0.slope, normal)
    gradient1 = -pair.stiffness1 * wp.dot(phi1.slope, normal)
    face.gradient = effective_gradient(gradient0, gradient1, pair.rigid)
    face.first_corner = polygon.source
    return face
