"""The times of a recording's frames: as recorded, or from a given frame rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError

SAME_TIME = 1e-6
"""Tolerance of equal times, relative, absolute [s] below one second; float32 resolves times to 1e-7."""

GIVE_RATE = "give the rate with --fps"


def rate_time(frame_count: int, fps: float | None, where: str) -> np.ndarray:
    """float64[frame_count] [s]: frames at `fps` per second from 0. Raises InputError: no rate, or not above zero."""
    if fps is None:
        raise InputError("the recording contains no times", where, GIVE_RATE)
    if not (np.isfinite(fps) and fps > 0.0):
        raise InputError(f"the rate is {fps:g} frames per second", where, "give a number above zero")
    return np.arange(frame_count) / fps


def checked_time(time: np.ndarray, where: str) -> np.ndarray:
    """float64[F], the times of a recording [s]. Raises InputError with the frame: not finite, or decreasing."""
    time = np.asarray(time, np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(f"the time is {time[frame]:g}", f"{where}, frame {frame}", GIVE_RATE)
    decreasing = np.diff(time) < 0.0
    if decreasing.any():
        frame = int(np.argmax(decreasing)) + 1
        raise InputError(
            f"time decreases from {time[frame - 1]:.9g} to {time[frame]:.9g}", f"{where}, frame {frame}", GIVE_RATE
        )
    return time


def shared_time(times: Sequence[np.ndarray], locations: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The common times of frames that were recorded in several worlds, and warnings.

    times: float64[F_w] of each world [s]; they may differ in length, and the longest is returned. locations: of each,
    for messages. Where clocks differ by a constant, time counts from each world's first frame, with a warning.
    Raises InputError with location and frame: a time not finite or decreasing, or time steps that differ.
    """
    checked = [checked_time(time, where) for time, where in zip(times, locations, strict=True)]
    longest = max(checked, key=len)
    if all(_first_difference(time, longest) is None for time in checked):
        return longest, ()
    since = longest - longest[0]
    for time, where in zip(checked, locations, strict=True):
        frame = _first_difference(time - time[0], since)
        if frame is not None:
            raise step_mismatch(time[frame] - time[0], since[frame], f"{where}, frame {frame}")
    return since, ("the worlds' clocks differ; time counts from each world's first frame",)


def step_mismatch(time: float, expected: float, where: str) -> InputError:
    """The error for a frame whose times [s] after the first frame differ between two worlds."""
    what = f"the worlds' times differ: {time:.9g} s after the first frame here, {expected:.9g} s in another world"
    return InputError(what, where, GIVE_RATE)


def _first_difference(time: np.ndarray, other: np.ndarray) -> int | None:
    """The first frame at which `time` and `other` differ, or None; `other` is at least as long."""
    differs = np.abs(time - other[: len(time)]) > SAME_TIME * np.maximum(1.0, np.abs(time))
    return int(np.argmax(differs)) if differs.any() else None
