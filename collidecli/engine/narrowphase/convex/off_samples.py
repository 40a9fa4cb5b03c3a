"""Overlap of a face that is represented by points of its outline, outside of their polygon."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import support_point
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.contact_frame import (
    ON_BORDER,
    ContactFrame,
    closest_on_outline,
    frame_of_contact,
    height_on_line,
    is_beside,
    lifted_from_frame,
    project_on_frame,
    slope_of,
)
from collidecli.engine.narrowphase.convex.feature_types import (
    FACE,
    LINE,
    MAX_CODES,
    RIM_COUNT,
    Feature,
    is_sampled,
)
from collidecli.engine.narrowphase.convex.features import feature_corners, is_on_face


@wp.struct
class OffSamples:
    """A common point of two footprints; found: 1 if there is one. point: on a, in a's frame;
    separation there [m]."""

    point: Vec3
    separation: Real
    found: int


@wp.func(inline=False)
def overlap_off_samples(
    shape_a: Any,
    shape_b: Any,
    pose_b_to_a: Pose,
    normal: Vec3,
    normal_in_b: Vec3,
    feature_a: Feature,
    feature_b: Feature,
) -> OffSamples:
    """A point common to two features of which one is sampled (`is_sampled`), whose polygons do not
    overlap.

    The point of the other feature that is closest to the sampled face's middle; of two sampled
    faces whose overlap contains no such point, a point on the line of their middles. They move
    about as far as the bodies do, unlike the witness of a search, which is any point of the overlap
    if the faces are parallel. Arguments as those of `overlap_contacts`.
    """
    a = feature_a
    b = feature_b
    corner_a = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    corner_b = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    code = wp.zeros(shape=MAX_CODES, dtype=int)
    contact_frame = frame_of_contact(shape_a, shape_b, pose_b_to_a, Real(wp.inf), normal)
    feature_corners(shape_a, a, normal, corner_a, code)
    feature_corners(shape_b, b, -normal_in_b, corner_b, code)
    project_on_frame(contact_frame, normal_in_b, a, corner_a, b, corner_b)
    b.normal = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), b.normal)
    result = OffSamples()
    if is_sampled(a):
        p = closest_on_outline(corner_b, b.count, _middle(corner_a, a.count))
        result = _off_samples_at(
            contact_frame, shape_a, shape_b, feature_a, feature_b, b.normal, corner_a, corner_b, p
        )
    if result.found == 0 and is_sampled(b):
        p = closest_on_outline(corner_a, a.count, _middle(corner_b, b.count))
        result = _off_samples_at(
            contact_frame, shape_a, shape_b, feature_a, feature_b, b.normal, corner_a, corner_b, p
        )
    if result.found == 0 and is_sampled(a) and is_sampled(b):
        p = _between_outlines(
            contact_frame, shape_a, shape_b, _middle(corner_a, a.count), _middle(corner_b, b.count)
        )
        result = _off_samples_at(
            contact_frame, shape_a, shape_b, feature_a, feature_b, b.normal, corner_a, corner_b, p
        )
    return result


@wp.func
def _off_samples_at(
    contact_frame: ContactFrame,
    shape_a: Any,
    shape_b: Any,
    a: Feature,
    b: Feature,
    normal_b: Vec3,
    corner_a: wp.array[Vec3],
    corner_b: wp.array[Vec3],
    p: Vec3,
) -> OffSamples:
    """The common point at footprint p, found if it is on each of the faces. normal_b: of b's face,
    in a's frame."""
    height_a = _height_at(contact_frame, shape_a, True, a, a.normal, corner_a, p)
    height_b = _height_at(contact_frame, shape_b, False, b, normal_b, corner_b, p)
    result = OffSamples(
        lifted_from_frame(contact_frame, p[0], p[1], height_a), height_b - height_a, 1
    )
    near = ON_BORDER * wp.max(wp.max(shape_a.size), wp.max(shape_b.size))
    if a.kind == FACE and not is_on_face(shape_a, a.normal, result.point, near):
        result.found = 0
    on_b = result.point + result.separation * contact_frame.normal
    on_b = wp.transform_point(wp.transform_inverse(contact_frame.pose_b_to_a), on_b)
    if b.kind == FACE and not is_on_face(shape_b, b.normal, on_b, near):
        result.found = 0
    return result


@wp.func
def _between_outlines(
    contact_frame: ContactFrame, shape_a: Any, shape_b: Any, middle_a: Vec3, middle_b: Vec3
) -> Vec3:
    """Footprint on the line of two faces' middles, midway between the ends of a toward b and of b
    toward a."""
    rotation = wp.transform_get_rotation(contact_frame.pose_b_to_a)
    apart = is_beside(middle_a, middle_b)
    x, y = (middle_b[0] - middle_a[0]) / apart, (middle_b[1] - middle_a[1]) / apart
    toward_b = x * contact_frame.u + y * contact_frame.v
    # The support point along the sum of the face's normal and the line is on the face's outline.
    end_a = wp.dot(support_point(shape_a, contact_frame.normal + toward_b), toward_b)
    on_b = support_point(shape_b, -wp.quat_rotate_inv(rotation, contact_frame.normal + toward_b))
    end_b = wp.dot(wp.transform_point(contact_frame.pose_b_to_a, on_b), toward_b)
    along = Real(0.5) * (end_a + end_b) - (x * middle_a[0] + y * middle_a[1])
    return middle_a + Vec3(along * x, along * y, Real(0.0))


@wp.func
def _middle(corner: wp.array[Vec3], count: int) -> Vec3:
    total = Vec3()
    for k in range(count):
        total += corner[k]
    return total / Real(count)


@wp.func
def _height_at(
    contact_frame: ContactFrame,
    shape: Any,
    of_a: bool,
    feature: Feature,
    face_normal: Vec3,
    corner: wp.array[Vec3],
    p: Vec3,
) -> Real:
    """Height of a feature's surface at footprint p; p is on a line, or its height is not used.

    face_normal: a face's, in a's frame.
    """
    if feature.kind == LINE:
        return height_on_line(contact_frame, shape, of_a, feature, p, p[2], Real(0.0))
    slope = slope_of(contact_frame, face_normal)
    at = corner[0]
    return at[2] - slope[0] * (p[0] - at[0]) - slope[1] * (p[1] - at[1])
