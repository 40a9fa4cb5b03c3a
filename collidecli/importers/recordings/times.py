"""The times of a recording's frames, recorded or from a frame rate; its demonstrations and their
common length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.content import h5_damage
from collidecli.importers.recordings.recording import Recording
from collidecli.scene.name_patterns import is_expression, matcher
from collidecli.scene.options import RecordingOptions
from collidecli.storage.process_activity import structure
from collidecli.wording import in_order

SAME_TIME = 1e-6
"""Tolerance of equal times, relative, absolute [s] below one second; float32 resolves times to
1e-7."""
GIVE_RATE = "give the rate with --fps"
SECONDS = f"are they in seconds? else {GIVE_RATE}"
LONG_STEP = 5.0
"""Median step of times without a unit [s] from which a warning is given: recordings have more
frames a second, and milliseconds and nanoseconds are far above."""


def rate_time(frame_count: int, fps: float | None, where: str) -> np.ndarray:
    """float64[frame_count] [s]: frames at `fps` per second from 0. Raises InputError: no rate, or
    not above zero."""
    if fps is None:
        raise InputError("the recording contains no times", where, GIVE_RATE)
    if not (np.isfinite(fps) and fps > 0.0):
        raise InputError(
            f"the rate is {fps:g} frames per second", where, "give a number above zero"
        )
    if not math.isfinite(frame_count / fps):
        what = f"at {fps:g} frames per second, {frame_count} frames end at no finite time"
        raise InputError(what, where, "give a larger rate")
    return np.arange(frame_count) / fps


def checked_time(time: np.ndarray, where: str) -> np.ndarray:
    """float64[F], the times of a recording [s]. Raises InputError with the frame: not finite, or
    decreasing."""
    time = np.asarray(time, np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(f"the time is {time[frame]:g}", f"{where}, frame {frame}", GIVE_RATE)
    decreasing = np.diff(time) < 0.0
    if decreasing.any():
        frame = int(np.argmax(decreasing)) + 1
        what = f"time decreases from {time[frame - 1]:.9g} to {time[frame]:.9g}"
        raise InputError(what, f"{where}, frame {frame}", GIVE_RATE)
    return time


def long_step_warnings(time: np.ndarray, where: str, advice: str = SECONDS) -> tuple[str, ...]:
    """A warning of times that may be in another unit than seconds. time: float64[F] [s]."""
    step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    return (f"{where}: steps are {step:g} s; {advice}",) if step > LONG_STEP else ()


def shared_time(
    times: Sequence[np.ndarray], locations: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The common times of frames that were recorded in several worlds, and warnings.

    times: float64[F_w] of each world [s]; they may differ in length, and the longest is returned.
    locations: of each, for messages. Where clocks differ by a constant, time counts from each
    world's first frame, with a warning. Raises InputError with location and frame: a time not
    finite or decreasing, or time steps that differ.
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
    what = (
        f"the worlds' times differ: {time:.9g} s after the first frame here, {expected:.9g} s in"
        " another world"
    )
    return InputError(what, where, GIVE_RATE)


def _first_difference(time: np.ndarray, other: np.ndarray) -> int | None:
    """The first frame at which `time` and `other` differ, or None; `other` is at least as long."""
    differs = np.abs(time - other[: len(time)]) > SAME_TIME * np.maximum(1.0, np.abs(time))
    return int(np.argmax(differs)) if differs.any() else None


_NAMED = 5
_NAMED = 5
RANGE = ".."
"""Demonstrations in messages; separator of the first and last one of a range."""
UNEVEN = "--demos, or --uneven-demos: their lengths differ"
"""Of `RecordingDescription.needs`."""


class DemonstrationRecording(Recording):
    """A recording of demonstrations, of which each is a world. where: file and group, for
    messages."""

    where: str

    def stored(self) -> Sequence[str]:
        """Names of the demonstrations in the file."""
        raise NotImplementedError

    def world_count(self, options: RecordingOptions) -> int | None:
        return len(self.chosen(options))

    def demos(self, options: RecordingOptions) -> tuple[str, ...]:
        return tuple(self.chosen(options))

    def chosen(self, options: RecordingOptions) -> list[str]:
        """The demonstrations of --demos, in its order and each once; without it all stored ones in
        numeric order.

        An entry is a name, a pattern with `*`, `?` or `[...]`, a range `FIRST..LAST` in numeric
        order, or the name of a mask of the file. Raises InputError: an entry that selects nothing,
        a name that is given twice, or a file without demonstrations.
        """
        ordered = in_order(self.stored())
        if not ordered:
            raise InputError(
                "the recording has no demonstrations", self.where, "record at least one"
            )
        for entry, count in Counter(options.demos).items():
            if count > 1:
                raise InputError(
                    f"demonstration '{entry}' is given twice", "--demos", "give each once"
                )
        names = [name for entry in options.demos for name in self._selected(entry, ordered)]
        return list(dict.fromkeys(names)) if options.demos else ordered

    def _selected(self, entry: str, ordered: Sequence[str]) -> Sequence[str]:
        """The demonstrations that an entry of --demos selects. Raises InputError for none."""
        if entry in ordered:
            return [entry]
        first, dots, last = entry.partition(RANGE)
        if dots and not is_expression(entry):
            for name in (first, last):
                if name not in ordered:
                    raise self._no_demonstration(name, ordered)
            names = ordered[ordered.index(first) : ordered.index(last) + 1]
            if not names:
                raise InputError(
                    f"the range '{entry}' is descending", "--demos", f"write {last}{RANGE}{first}"
                )
            return names
        names = [*filter(matcher(entry, "--demos"), ordered)]
        if names:
            return names
        masked = self._masked(entry)
        if masked is None:
            raise self._no_demonstration(entry, ordered)
        for name in masked:
            if name not in ordered:
                what = (
                    f"the mask '{entry}' names the demonstration '{name}', which the file does not"
                    " have"
                )
                raise InputError(what, self.where, "name demonstrations that exist")
        if not masked:
            raise InputError(
                f"the mask '{entry}' is empty",
                self.where,
                "choose another one, or name demonstrations",
            )
        return in_order(masked)

    def _masked(self, name: str) -> list[str] | None:
        """The demonstrations in the dataset `mask/<name>` of robomimic; None if there is no such
        mask."""
        if self.content.h5 is None:
            return None
        with h5_damage(self.content.path), structure():
            masks = self.content.h5.get("mask")
            mask = masks.get(name) if isinstance(masks, h5py.Group) else None
            if mask is None:
                return None
            if not isinstance(mask, h5py.Dataset) or mask.ndim != 1 or mask.dtype.kind not in "OSU":
                where = f"{self.content.path}: /mask/{name}"
                raise InputError(
                    "the mask is not a list of names", where, "write it as an array of strings"
                )
            return [
                text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
                for text in mask[()]
            ]

    def _no_demonstration(self, entry: str, ordered: Sequence[str]) -> InputError:
        close = get_close_matches(entry, ordered, n=_NAMED) or list(ordered[:_NAMED])
        more = f", of {len(ordered)}" if len(ordered) > len(close) else ""
        patterns = "patterns such as demo_*, ranges such as demo_0..demo_9, and masks"
        fix = f"--demos takes {', '.join(close)}{more}; {patterns}"
        return InputError(f"there is no demonstration '{entry}'", self.where, fix)


def shared_length(lengths: Mapping[str, int], options: RecordingOptions, where: str) -> int:
    """Frames of a motion of demonstrations. Raises InputError: one without frames, or unequal ones
    without option."""
    empty = [name for name, length in lengths.items() if length == 0]
    if empty:
        raise InputError(
            "the demonstration has no frames", f"{where}/{empty[0]}", "exclude it with --demos"
        )
    least = min(lengths.values())
    most = max(lengths.values())
    if least == most or options.uneven_demos == "hold":
        return most
    if options.uneven_demos == "cut":
        return least
    shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:_NAMED])
    more = f" and {len(lengths) - _NAMED} more" if len(lengths) > _NAMED else ""
    what = (
        f"the demonstrations have {least} to {most} frames ({shown}{more}), and worlds need equal"
        " numbers"
    )
    fix = (
        "select some with --demos, or give --uneven-demos cut (all end with the shortest) or"
        " --uneven-demos hold"
    )
    raise InputError(what, where, f"{fix} (each keeps all of its frames)")
