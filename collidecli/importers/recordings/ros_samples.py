"""Samples of one source over time, and their interpolation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.ros_messages import OTHER_CLOCK, seconds
from collidecli.numerics.pose_columns import multiply
from collidecli.numerics.products import norm
from collidecli.numerics.trigonometry import atan2, sincos


@dataclass(frozen=True)
class Samples:
    """Values of one source over time.

    what: the source, for messages. time: int64[n] [ns], increasing. values: float64[n, k]. number:
    int64[n], of the messages. part: int64[n], number of the part without gaps of each.
    """

    what: str
    time: np.ndarray
    values: np.ndarray
    number: np.ndarray
    part: np.ndarray

    @classmethod
    def of(
        cls,
        what: str,
        time: np.ndarray,
        values: np.ndarray,
        number: np.ndarray,
        window: tuple[int, int, int],
        gap: int,
    ) -> Samples:
        """Checked samples in the order of the messages.

        window: the time from which messages count, first and last time of use [ns]. Frames at its
        ends lie between messages: the one before it and the one after it are used too. gap: longest
        time [ns] between samples that follow each other. Raises InputError, with message and time,
        for a value that is not finite, a time before that of the message before it, and two samples
        of one time that differ.
        """
        inside = _with_neighbours(time, values, window[1], window[2])
        if not inside.any():
            first, last = (
                seconds(nanoseconds - window[0]) for nanoseconds in (time.min(), time.max())
            )
            fix = f"choose from {first} s to {last} s with --from and --to"
            raise InputError("has no message in the chosen time", what, fix)
        time = time[inside]
        values = values[inside]
        number = number[inside]
        finite = np.asarray(np.isfinite(values).all(axis=1))
        step = np.diff(time, prepend=time[0] - 1)
        same = np.append(False, (step[1:] == 0) & (values[1:] == values[:-1]).all(axis=1))
        for row in np.flatnonzero(~finite | ((step <= 0) & ~same))[:1]:
            where = f"{what}, message {number[row]} at {seconds(time[row] - window[0])} s"
            if not finite[row]:
                bad_value = float(values[row][~np.isfinite(values[row])][0])
                raise InputError(
                    f"a value is {bad_value:g}", where, "leave the message out with --from and --to"
                )
            before = f"message {number[row - 1]} at {seconds(time[row - 1] - window[0])} s"
            raise InputError(
                f"{'goes back from' if step[row] else 'repeats'} {before}", where, OTHER_CLOCK
            )
        time = time[~same]
        values = values[~same]
        number = number[~same]
        return cls(what, time, values, number, np.append(0, np.cumsum(np.diff(time) > gap)))

    def parts_at(self, times: np.ndarray) -> np.ndarray:
        """int64[n]: the part of each time; -1 for one that is in a gap, or before or after all
        samples."""
        low, high, u = self._around(times)
        inside = (
            (times >= self.time[0])
            & (times <= self.time[-1])
            & ((u == 0.0) | (self.part[low] == self.part[high]))
        )
        return np.where(inside, self.part[low], -1)

    def _around(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the samples before and after each time, and where it is between them, 0 to 1."""
        low = np.clip(np.searchsorted(self.time, times, "right") - 1, 0, None)
        high = np.minimum(low + 1, len(self.time) - 1)
        step = self.time[high] - self.time[low]
        return low, high, np.where(step > 0, (times - self.time[low]) / np.maximum(step, 1), 0.0)

    def at(self, times: np.ndarray, angles: np.ndarray | None = None) -> np.ndarray:
        """float64[n, k] at covered times, in straight lines; angles: bool[k], numbers that take the
        shorter arc."""
        low, high, u = self._around(times)
        step = self.values[high] - self.values[low]
        if angles is not None:
            step[:, angles] -= 2.0 * np.pi * np.rint(step[:, angles] / (2.0 * np.pi))
        return self.values[low] + u[:, None] * step

    def poses_at(self, times: np.ndarray) -> np.ndarray:
        """float64[n, 7] at covered times of samples that are poses: straight lines, and rotations
        by slerp."""
        low, high, u = self._around(times)
        out = self.at(times)
        out[:, 3:] = slerp(u, self.values[low, 3:], self.values[high, 3:])
        return out


def _with_neighbours(time: np.ndarray, values: np.ndarray, first: int, last: int) -> np.ndarray:
    """bool[n]: the samples from `first` to `last` [ns], and the nearest one before and after.

    A neighbour is left out where it is not finite, or not in the order of the messages; without
    samples inside, both neighbours are needed.
    """
    inside = (time >= first) & (time <= last)
    rows = np.flatnonzero(inside)
    if len(rows):
        before = rows[0] - 1
        after = rows[-1] + 1
    else:
        before = int(np.searchsorted(np.maximum.accumulate(time), first)) - 1
        after = before + 1
    usable = [
        row
        for row, ascends in (
            (before, before >= 0 and time[before] < first),
            (after, after < len(time) and time[after] > last),
        )
        if ascends and np.isfinite(values[row]).all()
    ]
    if len(rows) or len(usable) == 2:
        inside[usable] = True
    return inside


def slerp(u: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float64[n, 4]: unit quaternions xyzw [n, 4] interpolated on the shorter arc at parameters u
    [n]."""
    p = np.ascontiguousarray(first.T)
    q = np.ascontiguousarray(second.T)
    turn = multiply(np.concatenate([-p[:3], p[3:]]), q)
    turn = np.where(turn[3] < 0.0, -turn, turn)
    length = norm(turn[:3].T)
    sine, cosine = sincos(u * atan2(length, turn[3]))
    factor = np.where(length > 0.0, sine / np.where(length > 0.0, length, 1.0), u)
    part = multiply(p, np.concatenate([turn[:3] * factor, cosine[None]])).T
    return np.where((u > 0.0)[:, None], part, first)
