"""Products of many poses at once: float64[7, n], the components first, x y z qx qy qz qw.

With the components first, every operation is one pass over n contiguous numbers.
"""

from __future__ import annotations

import numpy as np

WXYZ_TO_XYZW = [1, 2, 3, 0]
XYZW_TO_WXYZ = [3, 0, 1, 2]
"""Index of each component in the other order; MuJoCo's is wxyz."""
IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def column(pose: np.ndarray) -> np.ndarray:
    """float64[7, 1] of one pose float64[7], which broadcasts over any number of others."""
    return np.asarray(pose, np.float64).reshape(7, 1)


def compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[7, n]: products a b: b, given in a's frame, in the frame in which a is given; either
    may be [7, 1]."""
    out = np.empty((7, max(a.shape[1], b.shape[1])))
    out[:3] = a[:3] + rotate(a[3:], b[:3])
    out[3:] = multiply(a[3:], b[3:])
    return out


def inverse(a: np.ndarray) -> np.ndarray:
    """float64[7, n]: inverse transforms of poses with unit quaternions."""
    out = np.empty_like(a)
    out[3:6] = -a[3:6]
    out[6] = a[6]
    out[:3] = -rotate(out[3:], a[:3])
    return out


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """float64[4, n]: quaternion products, xyzw; q's rotation first."""
    px, py, pz, pw = p
    qx, qy, qz, qw = q
    return np.stack(
        [
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz,
        ]
    )


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[3, n]: vectors rotated by unit quaternions, xyzw."""
    x, y, z, w = q
    vx, vy, vz = v
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return np.stack(
        [
            vx + w * tx + y * tz - z * ty,
            vy + w * ty + z * tx - x * tz,
            vz + w * tz + x * ty - y * tx,
        ]
    )
