"""Texts of touches between frames."""

from __future__ import annotations

import math
from collections.abc import Callable

from collidecli.pages.quantities import length

PART_OF_STEP = 1000
"""Parts of a step that times between frames are shown to."""
MOST_DECIMALS = 9
"""Of times [s]."""
LEAST_DECIMALS = 9
"""Of least distances [m]: below them is the rounding of poses."""


def time_text(begin: float | None, last: float | None, steps: int) -> Callable[[float], str]:
    """A function that returns a time [s] as text, with the decimals of a PART_OF_STEP of the mean
    step.

    A time is as exact as the sweep's tolerance over the speed of the pair, which is not recorded;
    JSON has all digits. begin, last: times of the first and last frame; None without one. steps:
    between them.
    """
    decimals = _decimals(((last or 0.0) - (begin or 0.0)) / max(steps, 1))
    return lambda seconds: f"{seconds:.{decimals}f} s"


def _decimals(step: float) -> int:
    if not step > 0.0:
        return MOST_DECIMALS
    return min(max(math.floor(-math.log10(step / PART_OF_STEP)), 0), MOST_DECIMALS)


def least_text(metres: float) -> str:
    """The least distance of a touch."""
    return length(round(metres, LEAST_DECIMALS))
