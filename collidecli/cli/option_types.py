"""Types of option values: numbers, lengths, durations, lists of names and worlds, sizes of memory."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

from collidecli.scene.arguments import metres

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {f"{letter}{end}": 1024**power for power, letter in enumerate("KMGT", 1) for end in ("IB", "I", "")}


class WholeNumber(click.ParamType):
    """A whole number, at least `least` and, if `most` is given, at most that."""

    name = "n"

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        self._least, self._most = least, most
        self._range = f"of at least {least}" if most is None else f"from {least} to {most}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or number < self._least or (self._most is not None and number > self._most):
            self.fail(f"{value} is not a whole number {self._range}", param, ctx)
        return number


class Number(click.ParamType):
    """A number of a range. name: its metavar. noun, rule: for messages. fits: whether a number is in the range."""

    def __init__(self, name: str, noun: str, rule: str, fits: Callable[[float], bool]) -> None:
        self.name, self._noun, self._rule, self._fits = name, noun, rule, fits

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"'{value}' is not a {self._noun}", param, ctx)
        if not self._fits(number):
            self.fail(f"{value} is not a {self._rule}", param, ctx)
        return number


RATE = Number(
    "rate", "number of frames per second", "rate: it must be finite and above zero", lambda x: 0.0 < x < math.inf
)
DURATION = Number(
    "seconds", "number of seconds", "duration: it must be finite and above zero", lambda x: 0.0 < x < math.inf
)
AREA = Number(
    "area", "number of square metres", "area: it must be finite and at least 0", lambda x: 0.0 <= x < math.inf
)
SHARE = Number("share", "number", "fraction: it must be from 0 to 1", lambda x: 0.0 <= x <= 1.0)


class NameList(click.ParamType):
    """Names separated by commas, as a tuple."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return (
            value if isinstance(value, tuple) else tuple(name.strip() for name in str(value).split(",") if name.strip())
        )


class NumberList(click.ParamType):
    """Finite numbers separated by commas, as a tuple."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(number) for number in str(value).split(","))
        except ValueError:
            self.fail(f"'{value}' is no list of numbers", param, ctx)
        if not all(map(math.isfinite, numbers)):
            self.fail(f"'{value}' contains a number that is not finite", param, ctx)
        return numbers


class MemorySize(click.ParamType):
    """A size in bytes: a number and a unit, as in 512MiB, 4GiB, 4G (equal to 4GiB) or 4GB (4 000 000 000)."""

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


class Threshold(click.ParamType):
    """A finite distance of any sign in metres or with a unit, or "any", which is infinity."""

    name = "distance"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value == "any":
            return math.inf
        try:
            return value if value is math.inf else metres(value)
        except ValueError:
            self.fail(f"'{value}' is neither a length, as 0.002 or 2mm, nor 'any'", param, ctx)


class Length(click.ParamType):
    """A finite number of metres, or a length with a unit: 2mm, 0.5cm, 20um, 0.002. least: None for any sign. fix: of a
    text that is no length."""

    name = "length"

    def __init__(self, least: float | None = None, fix: str = "write metres, as 0.002, or a unit, as 2mm") -> None:
        self._least, self._fix = least, fix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = metres(value)
        except ValueError:
            self.fail(f"'{value}' is not a length: {self._fix}", param, ctx)
        if self._least is not None and found < self._least:
            self.fail(f"'{value}' is a length below {self._least:g}", param, ctx)
        return found


METRES = Length(0.0)


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
