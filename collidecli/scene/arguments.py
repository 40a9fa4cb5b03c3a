"""What callers hand to the builder, checked for its kind: Python takes anything, and would fail far from the call."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from collidecli.errors import InputError

FLAG = (bool, np.bool_)


def place_named(noun: str, key: str | None, index: int) -> str:
    """What messages call a body or shape. Raises InputError for a key that is no name."""
    if key is None:
        return f"{noun} {index}"
    if not isinstance(key, str) or not key:
        raise InputError(f"key is {key!r}", f"{noun} {index}", "give a name that is not empty")
    return f"{noun} '{key}'"


def is_integer(value: object) -> bool:
    """Whether it is a whole number, of Python or NumPy, and no flag."""
    try:
        operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return False
    return not isinstance(value, FLAG)


def is_number(value: object) -> bool:
    """Whether it is one real number, of Python or NumPy, and no flag; NaN is one."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def check_index(index: int, count: int, noun: str, where: str, lowest: int = 0) -> None:
    """Raises InputError for what is no index of `count` things; `lowest` is -1 where that means all or none of them."""
    if not is_integer(index):
        raise InputError(f"{noun} is {index!r}", where, f"give the index of a {noun}, a whole number")
    if not lowest <= index < count:
        raise InputError(f"there is no {noun} {index}", where, f"there are {count}, counted from 0")


def check_count(name: str, value: int, where: str) -> None:
    """Raises InputError for what is no number of worlds."""
    if not is_integer(value) or not 1 <= value < 1 << 31:
        raise InputError(f"{name} is {value!r}", where, "ask for at least one world, a whole number")


def check_kind(name: str, value: object, kind: type | tuple[type, ...], where: str) -> None:
    """Raises InputError for a value of another type."""
    if not isinstance(value, kind):
        wanted = (
            "True or False" if kind is FLAG else f"a {kind.__name__ if isinstance(kind, type) else kind[0].__name__}"
        )
        raise InputError(f"{name} is {value!r}", where, f"give {wanted}")


def float_array(name: str, values: Any, where: str) -> np.ndarray:
    """float64[...], a new array. Raises InputError for what is not made of numbers."""
    try:
        array = np.array(values)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    # As objects NumPy would take None for NaN, and a text for the number that it spells.
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is {values!r}", where, "give numbers")
    return array.astype(np.float64, copy=False)
