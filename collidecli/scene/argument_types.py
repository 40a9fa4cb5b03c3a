"""Types of arguments of Python's calls, by the annotations of their functions."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from inspect import Parameter, isclass
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_words import members_of, shown_value, words_of
from collidecli.scene.patterns import listed
from collidecli.wording import did_you_mean

FLAG = (bool, np.bool_)
REFUSED = object()
"""What `converted` returns for a value of another type."""
_OF_OPTIONS = {"Literal": Literal, "Mapping": Mapping, "Sequence": Sequence, "os": os, "np": np}
"""Names in the annotations that `python.option_parameters` makes."""


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


def checked_argument(name: str, kind: Any, value: object, where: str, fix: str = "") -> Any:
    """The value of an argument as its function takes it: scalars of NumPy as Python's, a sequence
    as a tuple, and a text where a sequence of names is meant as the names between its commas.

    kind: the parameter's type, as of `resolved`. fix: the remedy in place of the words of the type.
    Raises InputError for a value of another type, and for an unknown choice.
    """
    if isinstance(value, np.str_):
        value = str(value)
    found = converted(kind, value)
    if found is REFUSED and isinstance(value, np.ndarray) and not value.ndim:
        found = converted(kind, value.item())
    if found is REFUSED and hasattr(value, "to_host"):
        raise InputError("the contacts are on a device", where, "give contacts.to_host()")
    if found is REFUSED:
        raise InputError(f"{name} is {shown_value(value)}", where, fix or f"give {words_of(kind)}")
    if isinstance(found, str) and kind is not str:
        _check_choice(name, found, choices_of(kind), where)
    return found


def _check_choice(name: str, value: str, choices: tuple[str, ...], where: str) -> None:
    """Raises InputError for a text that is none of the choices, if there are any."""
    if choices and value not in choices:
        advice = f"give one of: {', '.join(filter(None, choices))}"
        raise InputError(f"{name} is {value!r}", where, did_you_mean(value, choices, advice))


def resolved(annotation: Any, module: Mapping[str, Any]) -> Any:
    """The type of an annotation, or of its text. module: the names of its module."""
    if annotation is Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    return eval(annotation, {**_OF_OPTIONS, **module})


@cache
def choices_of(kind: Any) -> tuple[str, ...]:
    """The texts that a type allows; () for a type that allows any text."""
    members = members_of(kind)
    if str in members:
        return ()
    return tuple(
        choice
        for member in members
        if get_origin(member) is Literal
        for choice in get_args(member)
        if isinstance(choice, str)
    )


@cache
def plain_types(kind: Any) -> frozenset[type]:
    """The classes whose values a type takes as they are, which is decided at once."""
    members = members_of(kind)
    found = {member for member in members if member in (bool, int, float, NoneType)}
    found |= {int} if float in members else set()
    found |= {NoneType} if None in members else set()
    found |= {str} if str in members and Sequence[str] not in members else set()
    return frozenset(found)


def converted(kind: Any, value: object) -> Any:
    """A value as `checked_argument` returns it, or REFUSED."""
    if type(value) in plain_types(kind):
        return value
    members = members_of(kind)
    if isinstance(value, str) and str in members:
        return listed(value) if Sequence[str] in members else value
    for member in members:
        found = _of_member(member, value)
        if found is not REFUSED:
            return found
    return REFUSED


def _of_member(kind: Any, value: object) -> Any:
    """See `converted`. kind: a type without alternatives."""
    if kind in _SCALARS:
        is_kind, python_type = _SCALARS[kind]
        return python_type(value) if is_kind(value) else REFUSED
    if kind is Any or isinstance(kind, TypeVar):
        return value
    origin = get_origin(kind) or kind
    if origin is Literal:
        return value if any(type(value) is type(each) for each in get_args(kind)) else REFUSED
    if origin is tuple:
        return _tuple(get_args(kind), value)
    if origin in (Sequence, Iterable):
        return _sequence(get_args(kind)[0], value)
    if origin is Mapping:
        return _mapping(get_args(kind), value)
    return value if _is_instance(origin, value) else REFUSED


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, np.generic) else value


_SCALARS: dict[Any, tuple[Callable[[object], bool], Callable[[Any], Any]]] = {
    bool: (lambda value: isinstance(value, FLAG), bool),
    int: (is_integer, operator.index),
    float: (is_number, _as_float),
    None: (lambda value: value is None, lambda value: value),
    NoneType: (lambda value: value is None, lambda value: value),
}
"""Whether a value is of a scalar type, and that value as Python's, by type."""


def _tuple(kinds: tuple[Any, ...], value: Any) -> Any:
    """The members of a tuple of fixed length, or of any where the second kind is `...`."""
    if not _has_members(value) or isinstance(value, set | frozenset):
        return REFUSED
    if kinds[1:] == (...,):
        return _sequence(kinds[0], value)
    if len(value) != len(kinds):
        return REFUSED
    found = tuple(converted(kind, each) for kind, each in zip(kinds, value, strict=True))
    return REFUSED if any(each is REFUSED for each in found) else found


def _has_members(value: object) -> bool:
    """Whether a value can be iterated, also by numbers alone as Warp's vectors are, and is neither
    a text nor a mapping."""
    if isinstance(value, str | bytes | Mapping):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) or (
        hasattr(value, "__len__") and hasattr(value, "__getitem__")
    )


def _sequence(kind: Any, value: Any) -> Any:
    """The members of anything that can be iterated and is neither a text nor a mapping."""
    if not _has_members(value):
        return REFUSED
    if isinstance(value, set | frozenset) and kind in (int, float):
        return REFUSED  # numbers have an order
    found = tuple(converted(kind, each) for each in value)
    return REFUSED if any(each is REFUSED for each in found) else found


def _mapping(kinds: tuple[Any, ...], value: object) -> Any:
    if not isinstance(value, Mapping):
        return REFUSED
    entries = [(converted(kinds[0], k), converted(kinds[1], value[k])) for k in value]
    refused = any(key is REFUSED or found is REFUSED for key, found in entries)
    return REFUSED if refused else dict(entries)


def _is_instance(kind: Any, value: object) -> bool:
    """Whether a value is of a class, has all members of a protocol, or is an array or what NumPy
    makes an array of."""
    if kind is np.ndarray:
        is_array = any(
            hasattr(value, name) for name in ("__array__", "__cuda_array_interface__", "__dlpack__")
        )
        if isinstance(value, set | frozenset | np.generic):
            return False
        return is_array or _has_members(value)
    if kind is Callable or getattr(kind, "__name__", "") == "Callable":
        return callable(value)
    if kind is os.PathLike:
        return isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    if getattr(kind, "_is_protocol", False):
        own = (name for name in vars(kind) if not name.startswith("_"))
        return all(hasattr(value, name) for name in {*kind.__annotations__, *own})
    if kind is slice:
        return (
            isinstance(value, slice)
            and all(
                each is None or is_integer(each) for each in (value.start, value.stop, value.step)
            )
            and value.step != 0
        )
    return isclass(kind) and isinstance(value, kind)
