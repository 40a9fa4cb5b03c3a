"""The times of a recording's frames: as recorded, or of a rate that is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError

SAME_TIME = 1e-6
"""Relative, and [s] below one second: times that differ by less are one; float32 holds times to 1e-7."""

GIVE_RATE = "give the rate with --fps"


def rate_time(frame_count: int, fps: float | None, where: str) -> np.ndarray:
    """float64[frame_count] [s]: frames at `fps` a second from 0. Raises InputError: no rate, or none above zero."""
    if fps is None:
        raise InputError("the recording does not say when its frames are", where, GIVE_RATE)
    if not (np.isfinite(fps) and fps > 0.0):
        raise InputError(f"the rate is {fps:g} frames a second", where, "give a number above zero")
    return np.arange(frame_count) / fps


def checked_time(time: np.ndarray, where: str) -> np.ndarray:
    """float64[F], the times of a recording [s]. Raises InputError naming the frame: not finite, or running back."""
    time = np.asarray(time, np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(f"the time is {time[frame]:g}", f"{where}, frame {frame}", GIVE_RATE)
    back = np.diff(time) < 0.0
    if back.any():
        frame = int(np.argmax(back)) + 1
        raise InputError(
            f"time runs back from {time[frame - 1]:.9g} to {time[frame]:.9g}", f"{where}, frame {frame}", GIVE_RATE
        )
    return time


def shared_time(times: Sequence[np.ndarray], places: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The one time of frames that were recorded in several worlds, and what there is to warn of.

    times: float64[F_w] of each world [s]; they may differ in length, and the longest is the answer. places: of each,
    for messages. Worlds whose clocks differ by a constant count from their own first frame, with a warning.
    Raises InputError naming place and frame: a time not finite or running back, or worlds that do not keep step.
    """
    checked = [checked_time(time, where) for time, where in zip(times, places, strict=True)]
    longest = max(checked, key=len)
    if all(_first_difference(time, longest) is None for time in checked):
        return longest, ()
    since = longest - longest[0]
    for time, where in zip(checked, places, strict=True):
        frame = _first_difference(time - time[0], since)
        if frame is not None:
            raise out_of_step(time[frame] - time[0], since[frame], f"{where}, frame {frame}")
    return since, ("the worlds' clocks differ; time counts from each world's first frame",)


def out_of_step(here: float, elsewhere: float, where: str) -> InputError:
    """The error to raise where a frame stands at different times [s] after the first frames of two worlds."""
    what = f"the worlds do not keep step: {here:.9g} s after the first frame here, {elsewhere:.9g} s elsewhere"
    return InputError(what, where, GIVE_RATE)


def _first_difference(time: np.ndarray, other: np.ndarray) -> int | None:
    """The first frame of `time` at which `other`, which is as long at least, is another time."""
    differs = np.abs(time - other[: len(time)]) > SAME_TIME * np.maximum(1.0, np.abs(time))
    return int(np.argmax(differs)) if differs.any() else None
