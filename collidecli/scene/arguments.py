"""Checks of the types of the builder's arguments: without them Python fails far from the call."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from collidecli.errors import InputError

FLAG = (bool, np.bool_)


def location_of(noun: str, key: str | None, index: int) -> str:
    """The name of a body, shape or world in messages. Raises InputError for a key that is no name."""
    if key is None:
        return f"{noun} {index}"
    if not isinstance(key, str) or not key:
        raise InputError(f"key is {key!r}", f"{noun} {index}", "give a name that is not empty")
    return f"{noun} '{key}'"


def is_integer(value: object) -> bool:
    """Whether a value is an integer of Python or NumPy, and not a bool."""
    try:
        operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return False
    return not isinstance(value, FLAG)


def is_number(value: object) -> bool:
    """Whether a value is a real scalar of Python or NumPy, and not a bool; NaN is one."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def check_index(index: int, count: int, noun: str, where: str, lowest: int = 0) -> None:
    """Raises InputError for an index outside [lowest, count); `lowest` is -1 where that means all or none of them."""
    if not is_integer(index):
        raise InputError(f"{noun} is {index!r}", where, f"give the index of a {noun}, a whole number")
    if not lowest <= index < count:
        raise InputError(f"there is no {noun} {index}", where, f"there are {count}, counted from 0")


def check_count(name: str, value: int, where: str) -> None:
    """Raises InputError for a value that is no number of worlds."""
    if not is_integer(value) or not 1 <= value < 1 << 31:
        raise InputError(f"{name} is {value!r}", where, "give an integer of at least 1")


def check_kind(name: str, value: object, kind: type | tuple[type, ...], where: str) -> None:
    """Raises InputError for a value of another type."""
    if not isinstance(value, kind):
        wanted = (
            "True or False" if kind is FLAG else f"a {kind.__name__ if isinstance(kind, type) else kind[0].__name__}"
        )
        raise InputError(f"{name} is {value!r}", where, f"give {wanted}")


def float_array(name: str, values: Any, where: str) -> np.ndarray:
    """float64[...], a new array. Raises InputError for values that are not numbers."""
    try:
        array = np.array(values)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    # Of objects NumPy converts None to NaN, and a text to the number that it spells.
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is {values!r}", where, "give numbers")
    return array.astype(np.float64, copy=False)


# Text of counts, sizes and lists of names, for messages and tables.

NAMES_SHOWN = 12
LENGTH_UNITS = (("mm", 1e3), ("cm", 1e2), ("um", 1e6), ("m", 1.0))
"""Units of lengths and their number in a metre; m is last, as the others end with it."""


def count(number: int) -> str:
    """A number with its digits in groups of three: 12 345 678."""
    return f"{number:,}".replace(",", " ")


def plural(number: int, noun: str, several: str = "") -> str:
    """A number and its noun, in the plural unless the number is 1. several: the plural, if it is not the noun and s."""
    return f"{count(number)} {noun if number == 1 else several or noun + 's'}"


def numbered(number: int, noun: str) -> str:
    """The range of `number` indices from 0: `frames 0 to 9`, `only world 0`, `no frames`."""
    if number < 2:
        return f"only {noun} 0" if number else f"no {noun}s"
    return f"{noun}s 0 to {number - 1}"


def memory(size: int) -> str:
    """A size in bytes, with its unit."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 999.5:
            return f"{value:.3g} {unit}" if unit != "B" else f"{size} B"
        value /= 1024.0
    return f"{value:.3g} GiB" if value < 999.5 else f"{count(round(value))} GiB"


def metres(value: object) -> float:
    """A length [m] from a number, or from a text with one of LENGTH_UNITS or none: "2mm", "0.002".

    Raises ValueError for another text, and for a number that is not finite.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number, unit = float(value), 1.0
    else:
        text = str(value).strip()
        ending, unit = next(((ending, unit) for ending, unit in LENGTH_UNITS if text.endswith(ending)), ("", 1.0))
        number = float(text.removesuffix(ending))
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number / unit


def some_names(names: Sequence[str]) -> str:
    """Up to `NAMES_SHOWN` names in quotes, and the number of the others."""
    shown = ", ".join(f"'{name}'" for name in names[:NAMES_SHOWN])
    return shown + (f" and {count(len(names) - NAMES_SHOWN)} more" if len(names) > NAMES_SHOWN else "")
