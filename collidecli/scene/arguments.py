"""Checks of the types of the builder's arguments: without them Python fails far from the call."""

from __future__ import annotations

import operator
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
