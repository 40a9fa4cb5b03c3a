"""Arguments of Python's calls: checks of their types, without which Python fails far from the call,
and names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, getattr_static, isfunction, signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from collidecli.errors import CollideError, InputError
from collidecli.scene.argument_types import FLAG, checked_argument, is_integer, resolved
from collidecli.wording import did_you_mean, metres


def location_of(noun: str, key: str | None, index: int) -> str:
    """The name of a body, shape or world in messages. Raises InputError for a key that is no
    name."""
    if key is None:
        return f"{noun} {index}"
    if not isinstance(key, str) or not key:
        raise InputError(f"key is {key!r}", f"{noun} {index}", "give a name that is not empty")
    return f"{noun} '{key}'"


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
Kind = TypeVar("Kind")
CHECKED = "has_checked_arguments"
"""Attribute of functions that `python_call` has decorated."""
CONTACTS_IN_MEMORY = "collide_contacts_"
"""Begin of the name of the folder with the temporary file of contacts in memory."""
_REPLACED = (
    (rf"[^\s':]*{CONTACTS_IN_MEMORY}[^\s':]*", "the contacts in memory"),
    (r"\b(a|the) recording with -t\b", r"\1 recording"),
    (r"(?<![\w-])--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_")),
)
"""Patterns of words of the command line in a message, and the words of Python in their place, in
this order."""
_POSES = (r"(?<![\w/])body_q\b", "recording")
"""The name of the poses of a model, of functions that take them as their recording."""
_REMEDIES = {
    "allow": 'give pairs, such as [("hand*", "cup*")]',
    "between": 'give two patterns, such as ["hand*", "cup*"]',
    "keep_on_device": 'give True, or names of columns, such as ["distance"]',
    "merge_gap": "give an integer, a number of frames; for a time give merge_seconds=0.02",
    "merge_seconds": "give a number of seconds, such as 0.02, or None",
    "model": "give a result of ModelBuilder.finalize(); collidecli.run takes files",
}
"""Remedies of arguments for which the words of the type do not suffice, by name."""


def python_call(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Decorator of Python's functions: InputError for an unknown keyword and for a value of another
    type than the argument's annotation, and errors that name arguments of Python.

    A function with **options refuses unknown ones itself, see `unknown_argument`.
    """
    known = signature(function).parameters
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values())
    module = vars(sys.modules[function.__module__])
    name = function.__name__

    parameters = list(known.values())
    kinds: dict[str, Any] = {}  # of the arguments that were given before

    def positional(count: int) -> list[Parameter]:
        """The parameters of the first arguments."""
        found = parameters[:count]
        several = found and found[-1].kind is Parameter.VAR_POSITIONAL
        return found + found[-1:] * (count - len(found)) if several else found

    def check(parameter: Parameter, value: object) -> Any:
        key = parameter.name
        if key not in kinds:
            kinds[key] = resolved(parameter.annotation, module)
        return checked_argument(key, kinds[key], value, name, _REMEDIES.get(key, ""))

    @wraps(function)
    def call(*args: Arguments.args, **given: Arguments.kwargs) -> Returned:
        try:
            for unknown in () if takes_any else given.keys() - known.keys():
                raise unknown_argument(unknown, name, known.keys() - {"self"})
            checked = list(map(check, positional(len(args)), args))
            named = {
                key: check(known[key], value) if key in known else value
                for key, value in given.items()
            }
            # more positional arguments than there are raise Python's TypeError
            return function(*checked, *args[len(checked) :], **named)  # pyright: ignore
        except CollideError as error:
            _name_python_arguments(error, "recording" in known)
            raise

    vars(call)[CHECKED] = True
    return call


def python_methods(kind: type[Kind]) -> type[Kind]:
    """Decorator of Python's classes: their public methods with arguments are as of `python_call`,
    those of their base classes too."""
    for name in dir(kind):
        found = getattr_static(kind, name)
        method = getattr(found, "__func__", found)
        if name.startswith("_") or not isfunction(method) or CHECKED in vars(method):
            continue
        if len(signature(method).parameters) > 1:
            checked = python_call(method)
            setattr(kind, name, classmethod(checked) if found is not method else checked)
    return kind


def _name_python_arguments(error: CollideError, takes_recording: bool) -> None:
    """Replaces words of the command line in the texts of an error."""
    recording = "recording" if takes_recording else "trajectory"
    texts = [error.what, error.where, error.fix]
    replaced = [*_REPLACED, (r"\bwith -t\b", f"as {recording}"), (r"(?<![\w-])-t\b", recording)]
    if takes_recording:
        replaced.append(_POSES)
    for pattern, words in replaced:
        texts = [re.sub(pattern, words, text) for text in texts]
    error.what, error.where, error.fix = texts
    error.args = (error.what,)


def unknown_argument(name: str, function: str, known: Iterable[str]) -> InputError:
    """The error of a keyword argument that a function does not have."""
    return InputError(f"there is no argument '{name}'", function, did_you_mean(name, known))
