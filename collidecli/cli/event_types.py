"""Types of option values of `collide events`: thresholds, pauses, lists of worlds."""

from __future__ import annotations

import math
from typing import Any

import click

SECONDS = (("ms", 1e-3), ("us", 1e-6), ("s", 1.0))
"""Units of time and their values [s]; ms and us precede s, as they end with it."""


class Threshold(click.ParamType):
    """A finite distance of any sign [m], or "any", which is infinity."""

    name = "distance"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value == "any":
            return math.inf
        try:
            distance = float(value)
        except ValueError:
            distance = math.nan
        if value is not math.inf and not math.isfinite(distance):
            self.fail(f"'{value}' is neither a number of metres nor 'any'", param, ctx)
        return distance


class Pause(click.ParamType):
    """A number of frames, as 3, or a time, as 0.05s or 50ms; becomes (frames, seconds), of which one is None."""

    name = "pause"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, float | None]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        for ending, unit in SECONDS:
            if text.endswith(ending):
                try:
                    seconds = float(text.removesuffix(ending)) * unit
                except ValueError:
                    seconds = math.nan
                if math.isfinite(seconds) and seconds >= 0.0:
                    return None, seconds
                self.fail(f"'{text}' is not a time of at least 0 s", param, ctx)
        if not text.isdecimal():
            self.fail(f"'{text}' is neither a number of frames, as 3, nor a time, as 0.05s", param, ctx)
        return int(text), None


class WorldNumbers(click.ParamType):
    """Whole numbers of at least 0, separated by commas, as a tuple."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        numbers = [text.strip() for text in str(value).split(",")]
        if not all(number.isdecimal() for number in numbers):
            self.fail(f"'{value}' is no list of worlds: write their numbers with commas, as 0,3", param, ctx)
        return tuple(int(number) for number in numbers)
