"""Types of the values of options on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

from collidecli.cli.streams import streams_of
from collidecli.scene import option_values
from collidecli.scene.name_patterns import split_patterns
from collidecli.wording import metres

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {
    f"{letter}{end}": 1024**power
    for power, letter in enumerate("KMGT", 1)
    for end in ("IB", "I", "")
}


MOST_WHOLE = 2**63 - 1
"""Largest integer of HDF5's and NumPy's 64 bits."""


class WholeNumber(click.ParamType):
    """A whole number, at least `least` and at most `most`, which files can hold."""

    name = "n"

    def __init__(self, least: int = 1, most: int = MOST_WHOLE) -> None:
        self._least = least
        self._most = most
        self._range = f"from {least} to {most}"
        if most == MOST_WHOLE:
            self._range = f"of at least {least}, below 2^63"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or not self._least <= number <= self._most:
            self.fail(f"{value} is not a whole number {self._range}", param, ctx)
        return number


class Number(click.ParamType):
    """A number of a range. name: its metavar. noun, rule: for messages. fits: whether a number is
    in the range. unit: that may follow it.
    """

    def __init__(
        self, name: str, noun: str, rule: str, fits: Callable[[float], bool], unit: str = ""
    ) -> None:
        self.name = name
        self._noun = noun
        self._rule = rule
        self._fits = fits
        self._unit = unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(str(value).removesuffix(self._unit))
        except ValueError:
            self.fail(f"'{value}' is not a {self._noun}", param, ctx)
        if not self._fits(number):
            self.fail(f"{value} is not a {self._rule}", param, ctx)
        return number


RATE = Number(
    "rate",
    "number of frames per second",
    "rate: it must be finite and above zero",
    lambda x: 0.0 < x < math.inf,
)
DURATION = Number(
    "seconds",
    "number of seconds",
    "duration: it must be finite and above zero",
    lambda x: 0.0 < x < math.inf,
)
AREA = Number(
    "area",
    "number of square metres",
    "area: it must be finite and at least 0",
    lambda x: 0.0 <= x < math.inf,
)
STIFFNESS = Number(
    "N/m",
    "number of newtons per metre",
    "stiffness: it must be finite and above zero",
    lambda x: 0.0 < x < math.inf,
    "N/m",
)
DEGREES = Number(
    "angle",
    "number of degrees",
    "number of degrees of at least 0",
    lambda x: 0.0 <= x < math.inf,
    "deg",
)
SHARE = Number("share", "number", "fraction: it must be from 0 to 1", lambda x: 0.0 <= x <= 1.0)


class ListOf(click.ParamType):
    """Values separated by commas, as a tuple. name: its metavar. item: a value from its text, or
    ValueError; fault: of a text with one that is none."""

    def __init__(self, name: str, item: Callable[[str], Any], fault: str = "") -> None:
        self.name = name
        self._item = item
        self._fault = fault

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(
                self._item(text) for text in split_patterns(str(value)) if text or self._fault
            )
        except ValueError:
            self.fail(f"'{value}' is no list of {self._fault}", param, ctx)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _world(text: str) -> int:
    if not text.isdecimal():
        raise ValueError
    return int(text)


NAMES = ListOf("names", str)
NUMBERS = ListOf("numbers", _finite, "numbers that are finite")
WORLDS = ListOf("numbers", _world, "worlds: write their numbers with commas, as 0,3")


class PatternPair(click.ParamType):
    """Two patterns "A,B", as a tuple. "A B" is of earlier versions, and gives a note."""

    name = "pattern,pattern"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        parts = split_patterns(value) if isinstance(value, str) else value
        is_old = isinstance(value, str) and len(parts) == 1
        parts = tuple(value.split() if is_old else filter(None, parts))
        if len(parts) != 2:
            self.fail(f"'{value}' is not two patterns; write 'A,B'", param, ctx)
        if is_old and param is not None and ctx is not None:
            streams_of(ctx).warn(
                f"{param.opts[-1]}: write '{','.join(parts)}'; the next version refuses a space"
            )
        return parts


class MemorySize(click.ParamType):
    """A size in bytes: a number and a unit, as in 512MiB, 4GiB, 4G (equal to 4GiB) or 4GB (4 000
    000 000)."""

    name = "size"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        parts = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(value))
        unit = parts and _UNITS.get(parts[2].upper())
        if not parts or not unit:
            self.fail(f"'{value}' is not a memory size; write 512MiB or 4GiB", param, ctx)
        size = int(float(parts[1]) * unit)
        if size < self._least:
            self.fail(f"'{value}' is too small", param, ctx)
        return size


SECONDS = (("ms", 1e-3), ("us", 1e-6), ("s", 1.0))
"""Units of time and their values [s]; ms and us precede s, as they end with it."""


class Length(click.ParamType):
    """A finite number of metres, or a length with a unit: 2mm, 0.5cm, 20µm, 0.002. least: None for
    any sign. fix: of a text that is no length."""

    name = "length"

    def __init__(
        self, least: float | None = None, fix: str = "write metres, as 0.002, or a unit, as 2mm"
    ) -> None:
        self._least = least
        self._fix = fix

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            length = metres(value)
        except ValueError:
            self.fail(f"'{value}' is not a length: {self._fix}", param, ctx)
        if self._least is not None and length < self._least:
            self.fail(f"'{value}' is a length below {self._least:g}", param, ctx)
        return length


class Threshold(Length):
    """A finite distance of any sign in metres or with a unit, or "any", which is infinity."""

    name = "distance"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        return math.inf if value in ("any", math.inf) else super().convert(value, param, ctx)


METRES = Length(0.0)


class Pause(click.ParamType):
    """A number of frames, as 3, or a time, as 0.05s or 50ms; becomes (frames, seconds), of which
    one is None."""

    name = "pause"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, float | None]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text.isdecimal():
            return int(text), None
        ending, unit = next((known for known in SECONDS if text.endswith(known[0])), ("", 0.0))
        try:
            seconds = float(text.removesuffix(ending)) * unit if ending else math.nan
        except ValueError:
            seconds = math.nan
        if not (math.isfinite(seconds) and seconds >= 0.0):
            self.fail(
                f"'{text}' is neither a number of frames, as 3, nor a time of at least 0 s, as"
                " 0.05s",
                param,
                ctx,
            )
        return None, seconds


KINDS: dict[str, click.ParamType] = {
    "length": METRES,
    "count": WholeNumber(least=0),
    "whole": WholeNumber(least=0),
    "resolution": WholeNumber(option_values.LEAST_RESOLUTION, option_values.RESOLUTION_LIMIT),
    "stiffness": Number("K", "number", "stiffness: it must be above zero", lambda x: x > 0.0),
    "share": SHARE,
    "area": AREA,
    "rate": RATE,
    "angle": DEGREES,
    "duration": DURATION,
    "names": NAMES,
    "pairs": PatternPair(),
    "numbers": NUMBERS,
    "seconds": Number(
        "seconds", "number of seconds", "time: it must be at least 0", lambda x: 0.0 <= x < math.inf
    ),
    "size": MemorySize(least=0),
    "limit": MemorySize(least=0),
}
"""Types of the values of declared options, by `Option.kind`."""
