"""Matching of the frames of two contact sets: by step, by time or by index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError


@dataclass(frozen=True)
class FrameAlignment:
    """Matched frames. by: the key. a, b: int64[n], frames, ascending in A. only_a, only_b: unmatched frames."""

    by: str
    a: np.ndarray
    b: np.ndarray
    only_a: np.ndarray
    only_b: np.ndarray


def align_frames(
    step_a: np.ndarray, time_a: np.ndarray, step_b: np.ndarray, time_b: np.ndarray, by: str = ""
) -> FrameAlignment:
    """Frames matched `by` "step", "time" or "index".

    "" selects the first of step and time that is unique in both files and has common values; else the first unique
    one; else the index. Raises InputError for a requested key that is not unique.
    """
    if not by:
        keys = {"step": (step_a, step_b), "time": (time_a, time_b)}
        unique = [name for name, (one, other) in keys.items() if not _repeats(one) and not _repeats(other)]
        shared = [name for name in unique if len(np.intersect1d(*keys[name]))]
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
