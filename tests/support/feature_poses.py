"""Poses at which given features of two convex shapes face each other: their distance is known by construction.

A feature point p of a convex shape, with a unit vector n of its normal cone, is a point of support: the shape is in the
half-space n.x <= n.p. Where p_a + d n_a = p_b and n_b = -n_a in one frame, the shapes are exactly d apart for d >= 0,
and for d < 0 they are no deeper than -d.
"""

from __future__ import annotations

import numpy as np

from tests.support.direction_search import tangents
from tests.support.oracle import rotation_of


def quaternion_of(matrix: np.ndarray) -> np.ndarray:
    """Quaternions xyzw float64[P, 4] of rotation matrices [P, 3, 3], by the largest of the four components."""
    m = matrix
    trace = np.einsum("pii->p", m)
    squares = np.stack([1 + 2 * m[:, i, i] - trace for i in range(3)] + [1 + trace], -1)
    out = np.empty((len(m), 4))
    largest = squares.argmax(1)
    for k in range(4):
        rows = largest == k
        n = m[rows]
        if k == 3:
            q = np.stack(
                [n[:, 2, 1] - n[:, 1, 2], n[:, 0, 2] - n[:, 2, 0], n[:, 1, 0] - n[:, 0, 1], 1 + trace[rows]], -1
            )
        else:
            i, j = (k + 1) % 3, (k + 2) % 3
            q = np.empty((len(n), 4))
            q[:, k] = squares[rows, k]
            q[:, i] = n[:, k, i] + n[:, i, k]
            q[:, j] = n[:, k, j] + n[:, j, k]
            q[:, 3] = n[:, j, i] - n[:, i, j]
        out[rows] = q
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def relative_pose(pose_a: np.ndarray, pose_b: np.ndarray) -> np.ndarray:
    """Poses [P, 7] of b in a's frame, of two poses [P, 7] in one frame."""
    x, y = pose_a[:, 3:] * [-1.0, -1.0, -1.0, 1.0], pose_b[:, 3:]
    offset = np.einsum("pji,pj->pi", rotation_of(pose_a), pose_b[:, :3] - pose_a[:, :3])
    vector = x[:, 3:] * y[:, :3] + y[:, 3:] * x[:, :3] + np.cross(x[:, :3], y[:, :3])
    last = x[:, 3] * y[:, 3] - (x[:, :3] * y[:, :3]).sum(1)
    turn = np.concatenate([vector, last[:, None]], 1)
    return np.concatenate([offset, turn / np.linalg.norm(turn, axis=1, keepdims=True)], 1)


def frames(normal: np.ndarray, tangent: np.ndarray | None = None) -> np.ndarray:
    """Right-handed frames [P, 3, 3] with columns tangent, second tangent, normal; `tangent` is made perpendicular."""
    first = tangents(normal)[0]
    if tangent is not None:
        across = tangent - (tangent * normal).sum(1, keepdims=True) * normal
        length = np.linalg.norm(across, axis=1, keepdims=True)
        first = np.where(length > 1e-6, across / np.where(length > 1e-6, length, 1.0), first)
    return np.stack([first, np.cross(normal, first), normal], -1)


def facing_poses(point_a, normal_a, point_b, normal_b, spin, apart, tangent_a=None, tangent_b=None) -> np.ndarray:
    """Poses [P, 7] of b in a's frame at which b's feature lies `apart` [m] above a's along a's normal.

    spin: how far b is turned about the normal [rad]; at 0 the two tangents, where given, are parallel.
    """
    frame_a, frame_b = frames(normal_a, tangent_a), frames(normal_b, tangent_b)
    turned = np.zeros_like(frame_a)
    turned[:, 0, 0], turned[:, 0, 1] = np.cos(spin), np.sin(spin)
    turned[:, 1, 0], turned[:, 1, 1] = np.sin(spin), -np.cos(spin)
    turned[:, 2, 2] = -1.0
    turn = quaternion_of(frame_a @ turned @ np.swapaxes(frame_b, 1, 2))
    pose = np.concatenate([np.zeros((len(turn), 3)), turn], 1)
    on_b = np.einsum("pij,pj->pi", rotation_of(pose), point_b)
    pose[:, :3] = point_a + np.broadcast_to(apart, len(turn))[:, None] * normal_a - on_b
    return pose
