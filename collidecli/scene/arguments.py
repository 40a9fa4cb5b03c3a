"""Arguments of Python's calls: checks of their types, without which Python fails far from the call,
and names."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from collidecli.errors import CollideError, InputError
from collidecli.wording import did_you_mean, metres

FLAG = (bool, np.bool_)


def location_of(noun: str, key: str | None, index: int) -> str:
    """The name of a body, shape or world in messages. Raises InputError for a key that is no
    name."""
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
    """Raises InputError for an index outside [lowest, count); `lowest` is -1 where that means all
    or none of them."""
    if not is_integer(index):
        raise InputError(
            f"{noun} is {index!r}", where, f"give the index of a {noun}, a whole number"
        )
    if not lowest <= index < count:
        raise InputError(f"there is no {noun} {index}", where, f"there are {count}, counted from 0")


def check_count(name: str, value: int, where: str) -> None:
    """Raises InputError for a value that is no number of worlds."""
    if not is_integer(value) or not 1 <= value < 1 << 31:
        raise InputError(f"{name} is {value!r}", where, "give an integer of at least 1")


def check_kind(name: str, value: object, kind: type | tuple[type, ...], where: str) -> None:
    """Raises InputError for a value of another type."""
    if not isinstance(value, kind):
        noun = (kind if isinstance(kind, type) else kind[0]).__name__
        raise InputError(
            f"{name} is {value!r}",
            where,
            "give True or False" if kind is FLAG else f"give a {noun}",
        )


def checked_metres(value: object, where: str) -> float:
    """A length as of `metres`. Raises InputError for what is none."""
    try:
        return metres(value)
    except ValueError:
        raise InputError(
            f"{value!r} is not a length", where, 'give metres, or a text such as "2mm"'
        ) from None


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


Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
CONTACTS_IN_MEMORY = "collide_contacts_"
"""Begin of the name of the folder with the temporary file of contacts in memory."""
_REPLACED = (
    (rf"[^\s':]*{CONTACTS_IN_MEMORY}[^\s':]*", "the contacts in memory"),
    (r"(?<![\w-])--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_")),
)
"""Patterns of words of the command line in a message, and the words of Python in their place, in
this order."""
_POSES = (r"(?<![\w/])body_q\b", "recording")
"""The name of the poses of a model, of functions that take them as their recording."""


def python_call(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Decorator of Python's functions: InputError for an unknown keyword, and errors that name
    arguments of Python.

    A function with **options refuses unknown ones itself, see `unknown_argument`.
    """
    known = signature(function).parameters
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values())

    @wraps(function)
    def call(*args: Arguments.args, **given: Arguments.kwargs) -> Returned:
        try:
            for name in () if takes_any else given.keys() - known.keys():
                raise unknown_argument(name, function.__name__, known.keys() - {"self"})
            return function(*args, **given)
        except CollideError as error:
            recording = "recording" if "recording" in known else "trajectory"
            texts = [error.what, error.where, error.fix]
            replaced = [(r"(?<![\w-])-t\b", recording), *_REPLACED]
            if "recording" in known:
                replaced.append(_POSES)
            for pattern, words in replaced:
                texts = [re.sub(pattern, words, text) for text in texts]
            error.what, error.where, error.fix = texts
            error.args = (error.what,)
            raise

    return call


def unknown_argument(name: str, function: str, known: Iterable[str]) -> InputError:
    """The error of a keyword argument that a function does not have."""
    return InputError(f"there is no argument '{name}'", function, did_you_mean(name, known))
