"""The times of a recording's frames, recorded or from a frame rate; its demonstrations and their common length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.run_options import RecordingOptions

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


_NAMED = 5


def in_order(names: Iterable[str]) -> list[str]:
    """Names with their numbers in numeric order: demo_2 before demo_10."""
    return sorted(names, key=lambda name: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)])


def chosen_demos(stored: Sequence[str], options: RecordingOptions, where: str) -> list[str]:
    """The demonstrations of --demos, in its order; without it all stored ones in numeric order.

    Raises InputError: one that is not stored, or that is given twice, or a file that has none.
    """
    if not stored:
        raise InputError("the recording has no demonstrations", where, "record at least one")
    if not options.demos:
        return in_order(stored)
    for name, count in Counter(options.demos).items():
        if name not in stored:
            close = get_close_matches(name, stored, n=_NAMED) or in_order(stored)[:_NAMED]
            more = f", of {len(stored)}" if len(stored) > len(close) else ""
            raise InputError(f"there is no demonstration '{name}'", where, f"--demos takes {', '.join(close)}{more}")
        if count > 1:
            raise InputError(f"demonstration '{name}' is given twice", "--demos", "give each once")
    return list(options.demos)


def shared_length(lengths: Mapping[str, int], options: RecordingOptions, where: str) -> int:
    """Number of frames of a motion in which each demonstration is a world.

    Raises InputError: one without frames, or lengths that differ where --uneven-demos is not given.
    """
    empty = [name for name, length in lengths.items() if length == 0]
    if empty:
        raise InputError("the demonstration has no frames", f"{where}/{empty[0]}", "exclude it with --demos")
    least, most = min(lengths.values()), max(lengths.values())
    if least == most or options.uneven_demos == "hold":
        return most
    if options.uneven_demos == "cut":
        return least
    shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:_NAMED])
    more = f" and {len(lengths) - _NAMED} more" if len(lengths) > _NAMED else ""
    raise InputError(
        f"the demonstrations have {least} to {most} frames ({shown}{more}), and worlds need equal numbers",
        where,
        "select some with --demos, or give --uneven-demos cut (all end with the shortest) or --uneven-demos hold (each "
        "keeps its last pose until the longest ends)",
    )
