"""By how much, and from when, the recorded positions of joints differ in two motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.analysis.pose_differences import NONE, chord_of_quaternions

QUATERNION = 4
"""Numbers of a position that is a quaternion."""


class JointDifferences:
    """Differences of the positions of n joints over frames.

    first: int64[n], number of the first frame in which a joint's position differs, -1 for none;
    world: int64[n], the first world in which it does then. most: float64[n], the greatest
    difference [m or rad]; of a quaternion the angle of the rotation between both. A joint that a
    world does not record, NaN in both, does not differ; one that it records in one motion alone
    differs by NaN, which is no greatest difference.
    """

    def __init__(self, count: int) -> None:
        self.first = np.full(count, NONE)
        self.world = np.full(count, NONE)
        self.most = np.zeros(count)

    def add(self, first: int, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> None:
        """Adds frames `first` and following. a, b: of each joint float64[n, W, k]."""
        for row, (one, other) in enumerate(zip(a, b, strict=True)):
            size = _differences(one, other)
            differs = (size > 0.0) | (np.isnan(one).any(axis=-1) != np.isnan(other).any(axis=-1))
            if not differs.any():
                continue
            if self.first[row] == NONE:
                frame = int(differs.any(axis=1).argmax())
                self.first[row] = first + frame
                self.world[row] = int(differs[frame].argmax())
            self.most[row] = max(self.most[row], np.nan_to_num(size).max())


def _differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[n, W]: sizes of the differences."""
    if a.shape[-1] != QUATERNION:
        return np.abs(a - b).max(axis=-1)
    units = [q / np.linalg.norm(q, axis=-1, keepdims=True) for q in (a, b)]
    chord = chord_of_quaternions(*units)
    equal = (a == b).all(axis=-1) | (a == -b).all(axis=-1)
    return np.where(equal, 0.0, 4.0 * np.arcsin(np.minimum(chord / 2.0, 1.0)))
