"""Which frame of one contact set is which of another: by step, by time or by index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError


@dataclass(frozen=True)
class FrameAlignment:
    """by: the way. a, b: int64[n], the same frames, ascending in A. only_a, only_b: frames without a partner."""

    by: str
    a: np.ndarray
    b: np.ndarray
    only_a: np.ndarray
    only_b: np.ndarray


def align_frames(
    step_a: np.ndarray, time_a: np.ndarray, step_b: np.ndarray, time_b: np.ndarray, by: str = ""
) -> FrameAlignment:
    """Frames matched `by` "step", "time" or "index".

    "" takes the first of step and time that repeats in neither file and that they share at all.

    Where neither is, frames go by step, or by index where steps repeat. Raises InputError where frames are to be
    matched by something that repeats.
    """
    if not by:
        keys = {"step": (step_a, step_b), "time": (time_a, time_b)}
        unique = [way for way, (one, other) in keys.items() if not _repeats(one) and not _repeats(other)]
        shared = [way for way in unique if len(np.intersect1d(*keys[way]))]
        by = (shared or unique or ["index"])[0]
    if by == "index":
        a, b = np.arange(len(step_a)), np.arange(len(step_b))
    else:
        a, b = (step_a, step_b) if by == "step" else (time_a, time_b)
        for name, key in (("the first file", a), ("the second file", b)):
            if _repeats(key):
                raise InputError(f"frames of {name} have the same {by}", f"/time/{by}", "match frames by index")
    _, rows_a, rows_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    order = np.argsort(rows_a)
    rows_a, rows_b = rows_a[order], rows_b[order]
    only_a = np.setdiff1d(np.arange(len(step_a)), rows_a)
    only_b = np.setdiff1d(np.arange(len(step_b)), rows_b)
    return FrameAlignment(by, rows_a, rows_b, only_a, only_b)


def _repeats(values: np.ndarray) -> bool:
    return len(np.unique(values)) < len(values)
