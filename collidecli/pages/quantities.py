"""Texts of numbers with units."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from collidecli.wording import count, plural

ResultDict = Mapping[str, Any]
"""A result as a dictionary with the keys of `--json`, see `commands.results.Result.as_dict`; or a
part of one."""


def seconds(value: float) -> str:
    """A duration with three significant digits, in s, ms, us or ns."""
    if value >= 100.0:
        return f"{value:.0f} s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        digits = f"{value * factor:.3g}"
        if float(digits) >= 1.0:
            return f"{digits} {unit}"
    return "0 s" if value == 0.0 else f"{value * 1e9:.3g} ns"


ROUNDING = 1e-12
"""Lengths below this are rounding, and 0 in tables [m]: coordinates of some kilometres are
multiples of 1e-12 m in double precision. Files have them as computed."""


def length(metres: float) -> str:
    """A signed length with four significant digits, in m, mm or µm; 0 below `ROUNDING`."""
    if abs(metres) >= 1e4:
        return f"{metres:.0f} m"
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        digits = f"{metres * factor:.4g}"
        if abs(float(digits)) >= 1.0:
            return f"{digits} {unit}"
    return "0 m" if abs(metres) < ROUNDING else f"{metres:.3g} m"


def length_unit(metres: float) -> tuple[float, str]:
    """(factor, unit) for a length: the largest unit in which it is at least 1."""
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        if metres * factor >= 1.0:
            return factor, unit
    return (1e3, "mm") if metres == 0.0 else (1e9, "nm")


def short_length(metres: float) -> str:
    """A power of ten with its unit, such as 10 µm."""
    factor, unit = length_unit(metres * (1.0 + 1e-9))
    return f"{metres * factor:.3g} {unit}"


def plain(value: float, digits: int = 4) -> str:
    """A number with some significant digits, and no exponent from 1 on: 1 020, 12.35, 1e-05."""
    text = f"{value:.{digits}g}"
    return count(round(value)) if "e+" in text else text


def short_number(value: float) -> str:
    """A count on an axis, such as 12, 3.4k or 5M."""
    for least, factor, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.4g}"


def moment(series: ResultDict, frame_count: int, first: int, last: int | None = None) -> str:
    """Frames and time of the bins from `first` to `last` of a series, as text. frame_count: of all
    bins."""
    starts = [*series["frame"], frame_count]
    low = starts[first]
    high = starts[(first if last is None else last) + 1] - 1
    text = f"frame {low}" if low == high else f"frames {low} to {high}"
    return f"{text}, {plain(series['time'][first])} s"


def gap_range_text(ends: Sequence[float]) -> str:
    """Least and greatest gap of pairs as text."""
    least, most = map(length, ends)
    return f"{most} of each pair" if least == most else f"{least} to {most} of a pair"


def with_prefix(value: float, unit: str) -> str:
    """A quantity of at least zero with four significant digits and a prefix of its unit: 200
    kPa."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m")):
        if value >= 0.99995 * factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def rate(value: float) -> str:
    """A rate with three significant digits, as a whole number above a hundred."""
    return f"{value:.3g}" if value < 99.95 else count(round(value))


def quantity(value: float | str, words: Callable[[float], str]) -> str:
    """A number as text; one that is not finite is a text in a result."""
    return value if isinstance(value, str) else words(value)


def seconds_text(value: float | str | None) -> str:
    """A duration of a result as text; "" without one."""
    return "" if value is None else quantity(value, seconds)


def speed(value: float | None) -> str:
    """A speed as text; "" without one."""
    return "" if value is None else f"{plain(value)} m/s"


def force(newtons: float) -> str:
    """The size of a force, such as 1.2 kN."""
    return with_prefix(newtons, "N")


LEAST_PERCENT = 0.1
"""Of the percentages of tables."""


def percent(fraction: float) -> str:
    """A fraction as a percentage, with the digits that tell it from none and from all."""
    if 0.0 < fraction < LEAST_PERCENT / 200.0:
        return f"under {LEAST_PERCENT} %"
    if 1.0 - LEAST_PERCENT / 200.0 <= fraction < 1.0:
        return f"over {100.0 - LEAST_PERCENT} %"
    return f"{100.0 * fraction:.1f} %"


def shape_counts(types: Mapping[str, int]) -> str:
    """Numbers of shapes by type, the most frequent first: `5 boxes, 1 convex mesh`."""
    ordered = sorted((-number, label.replace("_", " ")) for label, number in types.items())
    return ", ".join(
        plural(-n, name, f"{name}es" if name.endswith(("x", "sh")) else "") for n, name in ordered
    )


_MEASURED = re.compile(r"(-?[0-9.]+) ([mµun]?)(m|s)")
_POWER = {"": 0, "m": -3, "µ": -6, "u": -6, "n": -9}
LEAST_IN_UNIT = 1e-4
"""Least value that a column shows in the unit of its greatest; with a lesser one its cells keep
their units."""


def in_one_unit(cells: list[str]) -> list[str]:
    """The cells of a column with the unit of the greatest value, where all are lengths or all are
    times."""
    measured = {cell: _MEASURED.fullmatch(cell) for cell in cells if cell}
    if len({m and m[3] for m in measured.values()}) != 1 or not all(measured.values()):
        return cells
    parts = {
        cell: (Decimal(m[1]), _POWER[m[2]], f"{m[2]}{m[3]}") for cell, m in measured.items() if m
    }
    power, unit = max(
        ((power, unit) for number, power, unit in parts.values() if number), default=(0, "")
    )
    numbers = {
        cell: number.scaleb(exponent - power) for cell, (number, exponent, _) in parts.items()
    }
    if not unit or any(0 < abs(number) < LEAST_IN_UNIT for number in numbers.values()):
        return cells
    return [cell and f"{numbers[cell].normalize():f} {unit}" for cell in cells]
