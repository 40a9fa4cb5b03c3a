"""Minimum of a signed distance field along an edge and over a triangle.

Both are sampled in steps of a few voxels; the minimum is then refined, along an edge by golden-section search, over a
triangle by steps down the gradient.
"""

import warp as wp

from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import ELLIPSOID
from collidecli.engine.narrowphase.sdf.fields import Fields, field_at

COARSE_VOXELS = wp.constant(Real(4.0))
MAX_ALONG = wp.constant(64)
MAX_ACROSS = wp.constant(12)
"""Greatest number of steps along an edge, and along a side of a triangle."""
GOLDEN = wp.constant(Real(0.3819660112501051))


@wp.struct
class Probe:
    """A shape tested against a field. row, field_row: rows of the shape and of the field's shape.

    pose: the shape's frame in the field's. spacing: between the first samples [m]. steps: of the refinement.
    """

    row: int
    field_row: int
    pose: Pose
    spacing: Real
    steps: int


@wp.struct
class FieldMinimum:
    """A point of a shape, its frame [m], and the field's value [m] and unit gradient there, the field's frame."""

    point: Vec3
    value: Real
    gradient: Vec3


@wp.func(inline=False)
def evaluate(fields: wp.array[Fields], probe: Probe, point: Vec3) -> FieldMinimum:
    """The field at a point of the probe's triangles; a point of an ellipsoid is first projected to its surface."""
    result = FieldMinimum()
    result.point = point
    if fields[0].type[probe.row] == ELLIPSOID:
        result.point = point / wp.length(wp.cw_div(point, fields[0].size[probe.row]))
    sample = field_at(fields, probe.field_row, wp.transform_point(probe.pose, result.point))
    result.value = sample.value
    result.gradient = sample.gradient
    return result


@wp.func(inline=False)
def minimum_along(fields: wp.array[Fields], probe: Probe, p: Vec3, q: Vec3) -> FieldMinimum:
    """The minimum found between two points, end points excluded.

    Source of the refinement: golden-section search, Kiefer 1953.
    """
    count = wp.clamp(int(wp.length(q - p) / probe.spacing) + 1, 2, MAX_ALONG)
    step = Real(1.0) / Real(count)
    best = FieldMinimum()
    best.value = Real(wp.inf)
    at = Real(0.0)
    for k in range(1, count):
        here = evaluate(fields, probe, p + (Real(k) * step) * (q - p))
        if here.value < best.value:
            best = here
            at = Real(k) * step
    low = at - step
    high = at + step
    left = low + GOLDEN * (high - low)
    right = high - GOLDEN * (high - low)
    on_left = evaluate(fields, probe, p + left * (q - p))
    on_right = evaluate(fields, probe, p + right * (q - p))
    for _ in range(probe.steps):
        if on_left.value <= on_right.value:
            high = right
            right = left
            on_right = on_left
            left = low + GOLDEN * (high - low)
            on_left = evaluate(fields, probe, p + left * (q - p))
        else:
            low = left
            left = right
            on_left = on_right
            right = high - GOLDEN * (high - low)
            on_right = evaluate(fields, probe, p + right * (q - p))
    if on_left.value < best.value:
        best = on_left
    if on_right.value < best.value:
        best = on_right
    return best


@wp.func(inline=False)
def minimum_over(fields: wp.array[Fields], probe: Probe, p: Vec3, q: Vec3, r: Vec3) -> FieldMinimum:
    """The minimum found inside a triangle: of a regular grid of points, then by projected gradient steps."""
    longest = wp.max(wp.length(q - p), wp.max(wp.length(r - q), wp.length(p - r)))
    count = wp.clamp(int(longest / probe.spacing) + 2, 3, MAX_ACROSS)
    best = FieldMinimum()
    best.value = Real(wp.inf)
    of_q = Real(0.0)
    of_r = Real(0.0)
    for i in range(1, count - 1):
        for j in range(1, count - i):
            u = Real(i) / Real(count)
            v = Real(j) / Real(count)
            here = evaluate(fields, probe, p + u * (q - p) + v * (r - p))
            if here.value < best.value:
                best = here
                of_q = u
                of_r = v
    length = longest / Real(count)
    across = wp.cross(q - p, r - p)
    square = wp.dot(across, across)
    for _ in range(probe.steps):
        # The negative gradient, projected to the triangle's plane.
        slope = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), best.gradient)
        slope = slope - (wp.dot(slope, across) / square) * across
        size = wp.length(slope)
        if size > Real(0.0):
            direction = -(length / size) * slope
            u = of_q + wp.dot(wp.cross(direction, r - p), across) / square
            v = of_r + wp.dot(wp.cross(q - p, direction), across) / square
            u = wp.clamp(u, Real(0.0), Real(1.0))
            v = wp.clamp(v, Real(0.0), Real(1.0) - u)
            here = evaluate(fields, probe, p + u * (q - p) + v * (r - p))
            if here.value < best.value:
                best = here
                of_q = u
                of_r = v
            else:
                length = Real(0.5) * length
    return best
