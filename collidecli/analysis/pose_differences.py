"""By how much, and from when, the poses of bodies differ in two motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.numerics.poses import compose_poses, inverse_poses

NONE = -1
ROUNDINGS = 64.0
"""Unit roundoffs by which a pose relative to a parent may differ through rounding of both poses: of
each coordinate a few, in the product of two poses some ten, and up to five times as many for the
lever between the two origins."""


class PoseDifferences:
    """Differences of the poses of matched bodies over frames.

    first: int64[B], number of the first frame whose pose differs, -1 for none; world: int64[B], the
    first world in which it does. distance: float64[B], greatest distance of the two origins [m].
    angle: float64[B], greatest angle between the two orientations [rad]. moves_alone: bool[B], the
    pose relative to the parent differs by more than rounding, or no ancestor's pose differs.
    differing_frames: number of frames in which any pose differs.
    """

    def __init__(self, parent: Sequence[int], present: np.ndarray, epsilon: float) -> None:
        """parent: row of each body's parent, -1 for none. present: bool[W, B], bodies that a world
        has. epsilon: unit roundoff of the recorded poses."""
        count = len(parent)
        self._parent = np.array(parent, np.int64).reshape(count)
        self._present = present
        self._tolerance = ROUNDINGS * epsilon
        self.first = np.full(count, NONE)
        self.world = np.full(count, NONE)
        self.distance = np.zeros(count)
        self.angle = np.zeros(count)
        self.differing_frames = 0
        self._apart_from_parent = np.zeros(count, bool)

    def add(self, first: int, a: np.ndarray, b: np.ndarray) -> None:
        """Adds frames `first` and following. a, b: float64[n, W, B, 7], world poses, xyzw."""
        distance, chord = _distance_and_chord(a, b)
        differs = ((a[..., :3] != b[..., :3]).any(axis=-1) | (chord > 0.0)) & self._present
        self.differing_frames += int(differs.any(axis=(1, 2)).sum())
        new = np.flatnonzero(differs.any(axis=(0, 1)) & (self.first == NONE))
        in_frame = differs[:, :, new].any(axis=1)
        frame = in_frame.argmax(axis=0)
        self.first[new] = first + frame
        self.world[new] = differs[frame, :, new].argmax(axis=1)
        angle = 4.0 * np.arcsin(np.minimum(chord / 2.0, 1.0))
        for most, values in ((self.distance, distance), (self.angle, angle)):
            np.maximum(most, np.where(differs, values, 0.0).max(axis=(0, 1), initial=0.0), out=most)
        self._add_relative(a, b, differs)

    def _add_relative(self, a: np.ndarray, b: np.ndarray, differs: np.ndarray) -> None:
        rows = np.flatnonzero(self._parent >= 0)
        parents = self._parent[rows]
        relative = [
            compose_poses(inverse_poses(poses[:, :, parents]), poses[:, :, rows])
            for poses in (a, b)
        ]
        distance, chord = _distance_and_chord(*relative)
        scale = max(1.0, *(float(np.abs(poses[..., :3]).max(initial=0.0)) for poses in (a, b)))
        apart = (distance > self._tolerance * scale) | (chord > self._tolerance)
        self._apart_from_parent[rows] |= (apart & differs[:, :, rows]).any(axis=(0, 1))

    @property
    def moves_alone(self) -> np.ndarray:
        return self._apart_from_parent | ((self.first != NONE) & ~self._has_moved_ancestor())

    def _has_moved_ancestor(self) -> np.ndarray:
        found = np.zeros(len(self.first), bool)
        for row in range(len(found)):
            above = int(self._parent[row])
            while above >= 0 and not found[row]:
                found[row] = self.first[above] != NONE
                above = int(self._parent[above])
        return found


def _distance_and_chord(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of the origins [m], and of the unit quaternions up to their sign, of which four
    times the arcsine of half is the angle."""
    distance = np.linalg.norm(a[..., :3] - b[..., :3], axis=-1)
    return distance, chord_of_quaternions(a[..., 3:], b[..., 3:])


def chord_of_quaternions(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[...]: distance of unit quaternions up to their sign; four times the arcsine of half
    is the angle of the rotation between them."""
    return np.minimum(*(np.linalg.norm(a + sign * b, axis=-1) for sign in (-1.0, 1.0)))
