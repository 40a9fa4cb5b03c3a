"""Distances of boxes in two frames, for traversals of two trees."""

import warp as wp

from collidecli.engine.geometry.real import Pose, Real, Vec3


@wp.struct
class BoxFrames:
    """The frames of two trees: rotation of b's frame in a's with its transpose, and the absolute
    values of both."""

    rotation: wp.mat33d
    inverse: wp.mat33d
    spread: wp.mat33d
    inverse_spread: wp.mat33d
    position: Vec3


@wp.func
def box_frames(pose_b_to_a: Pose) -> BoxFrames:
    """The frames of two trees."""
    frames = BoxFrames()
    frames.rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    frames.inverse = wp.transpose(frames.rotation)
    for i in range(3):
        for j in range(3):
            frames.spread[i, j] = wp.abs(frames.rotation[i, j])
    frames.inverse_spread = wp.transpose(frames.spread)
    frames.position = wp.transform_get_translation(pose_b_to_a)
    return frames


@wp.func
def distance_of_boxes(off: Vec3, half_sum: Vec3) -> Real:
    """Distance of two parallel boxes whose centres are `off` apart, 0 where they overlap [m]."""
    return wp.length(wp.max(wp.abs(off) - half_sum, Vec3()))


@wp.func
def distance_along_axes(off: Vec3, half_a: Vec3, half_b: Vec3, frames: BoxFrames) -> Real:
    """Lower bound of the distance of two boxes, along the axes of both frames [m]. off: of their
    centres, frame a."""
    of_a = distance_of_boxes(off, half_a + frames.spread * half_b)
    return wp.max(
        of_a, distance_of_boxes(frames.inverse * off, frames.inverse_spread * half_a + half_b)
    )
