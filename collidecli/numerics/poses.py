"""Poses with the components last, float64[..., 7], the layout of storage.

Their sums are in another order than those of `pose_columns`, and so their last bits: contact sets
depend on both.
"""

from __future__ import annotations

import numpy as np

from collidecli.numerics.products import cross


def compose_poses(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[..., 7]: the product a b: b, given in a's frame, in the frame in which a is given;
    shapes are broadcast.

    A translation a adds its position and changes no bit of the rotation.
    """
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    p = a[..., 3:]
    q = b[..., 3:]
    out[..., :3] = moved_points(a, b[..., :3])
    pv = p[..., :3]
    pw = p[..., 3:]
    qv = q[..., :3]
    qw = q[..., 3:]
    out[..., 3:6] = pw * qv + qw * pv + cross(pv, qv)
    out[..., 6] = pw[..., 0] * qw[..., 0] - (pv * qv).sum(-1)
    return out


def compose_as_kernels(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[..., 7]: the product a b with the bits of `COMPOSITION` in engine/geometry/real.h.

    Of nearly equal exits a search may take another one after a difference of the last bit.
    """
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    p = a[..., 3:6]
    w = a[..., 6:]
    q = b[..., 3:6]
    u = b[..., 6:]
    twice = 2.0 * sum(p[..., k : k + 1] * b[..., k : k + 1] for k in range(3))
    out[..., :3] = (
        b[..., :3] * (2.0 * w * w - 1.0) + p * twice + cross(p, b[..., :3]) * w * 2.0 + a[..., :3]
    )
    out[..., 3:6] = (
        w * q
        + u * p
        + p[..., [1, 2, 0]] * q[..., [2, 0, 1]]
        - q[..., [1, 2, 0]] * p[..., [2, 0, 1]]
    )
    out[..., 6:] = (
        w * u - p[..., :1] * q[..., :1] - p[..., 1:2] * q[..., 1:2] - p[..., 2:] * q[..., 2:]
    )
    return out


def points_in_frames_as_kernels(poses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[..., 3]: points in the frames `poses`, both given in one frame, with the bits of
    Warp's `quat_rotate_inv` of their offsets from the frames' origins."""
    offset = points - poses[..., :3]
    q = poses[..., 3:6]
    w = poses[..., 6:]
    along = 2.0 * sum(q[..., k : k + 1] * offset[..., k : k + 1] for k in range(3))
    return offset * (2.0 * w * w - 1.0) + q * along - cross(q, offset) * w * 2.0


def inverse_poses(a: np.ndarray) -> np.ndarray:
    """float64[..., 7]: inverse transforms."""
    out = np.concatenate([a[..., :3], -a[..., 3:6], a[..., 6:]], axis=-1)
    out[..., :3] = -rotated(out[..., 3:], a[..., :3])
    return out


def moved_points(poses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[..., 3]: points of poses' frames in the frames in which the poses are given; shapes
    are broadcast."""
    return poses[..., :3] + rotated(poses[..., 3:], points)


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[..., 3]: vectors rotated by unit quaternions float64[..., 4], xyzw; shapes are
    broadcast."""
    twice = 2.0 * cross(q[..., :3], v)
    return v + q[..., 3:] * twice + cross(q[..., :3], twice)
