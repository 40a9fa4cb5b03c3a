"""How far the points of one set are from the nearest of another, without SciPy, whose import takes
0.2 s."""

from __future__ import annotations

import numpy as np

from collidecli.numerics.products import norm


def greatest_distance_to_nearest(a: np.ndarray, b: np.ndarray) -> float:
    """The greatest distance of a point of one set to the nearest of the other (Hausdorff) [m].

    a, b: float64[n, 3], n at least 1; equal numbers, and fast where points of one row are near each
    other.
    """
    axis = int(np.argmax(np.ptp(a, axis=0)))
    return max(_greatest(a, b, axis), _greatest(b, a, axis))


def _greatest(points: np.ndarray, others: np.ndarray, axis: int) -> float:
    """The greatest distance of `points` to the nearest of `others`.

    Others are sorted along an axis. From each point's place the search proceeds to both sides until
    they are farther along the axis alone than the nearest one so far, at first that of its row.
    """
    nearest = norm(points - others)
    others = others[np.argsort(others[:, axis], kind="stable")]
    place = np.searchsorted(others[:, axis], points[:, axis])
    for side, start in ((1, place), (-1, place - 1)):
        row = np.flatnonzero(nearest > 0.0)
        at = start[row]
        while len(row):
            is_there = (at >= 0) & (at < len(others))
            row = row[is_there]
            at = at[is_there]
            is_near = np.abs(others[at, axis] - points[row, axis]) < nearest[row]
            row = row[is_near]
            at = at[is_near]
            distance = norm(points[row] - others[at])
            nearest[row] = np.minimum(nearest[row], distance)
            at = at + side
    return float(nearest.max())
