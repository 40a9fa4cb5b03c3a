"""Words for values and types of arguments, in messages about Python's calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

LONGEST_VALUE = 60
"""Characters of a value in a message."""
_SINGLE = {
    bool: ("True or False", "flags"),
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("a text", "texts"),
    os.PathLike: ("a path", "paths"),
    NoneType: ("None", ""),
    slice: ("a slice", ""),
    np.ndarray: ("an array", "arrays"),
    Callable: ("a function", ""),
}
"""Words for one value of a type, and for several."""


@cache
def members_of(kind: Any) -> tuple[Any, ...]:
    """The alternatives of a type, sequences last; a type without alternatives is its only one."""
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    members = [member for each in get_args(kind) for member in members_of(each)]
    # A class of contacts can be iterated, and is no sequence of paths.
    return tuple(sorted(members, key=_is_sequence))


def _is_sequence(kind: Any) -> bool:
    return get_origin(kind) is Sequence


def shown_value(value: object) -> str:
    """A value in a message, on one line and shortened; of an object the class."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype}{list(value.shape)}"
    plain = (str, bytes, bool, int, float, complex, NoneType, slice, list, tuple, dict, set)
    if not isinstance(value, plain):
        return _with_article(type(value).__name__)
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def words_of(kind: Any) -> str:
    """What to give for a type, such as "an integer or None"."""
    words = list(dict.fromkeys(map(_words, _told(kind))))
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _told(kind: Any) -> list[Any]:
    """The alternatives of a type that words name: the text of a path is a path."""
    members = members_of(kind)
    is_path = any((get_origin(member) or member) is os.PathLike for member in members)
    return [member for member in members if not (is_path and member is str)]


def _words(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if kind in (None, NoneType):
        return "None"
    if origin is Literal:
        return ", ".join(repr(choice) for choice in get_args(kind) if choice != "")
    if origin in (Sequence, Iterable):
        return f"a sequence of {_several(get_args(kind)[0])}"
    if origin is tuple:
        return _tuple_words(get_args(kind))
    if origin is Mapping:
        return f"a mapping of {_several(get_args(kind)[0])} to {_several(get_args(kind)[1])}"
    if origin in _SINGLE:
        return _SINGLE[origin][0]
    return _with_article(getattr(origin, "__name__", str(origin)))


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _tuple_words(kinds: tuple[Any, ...]) -> str:
    if kinds[1:] == (...,):
        return f"a sequence of {_several(kinds[0])}"
    if len(kinds) == 2:
        return f"a pair of {_several(kinds[0])}"
    return f"{len(kinds)} {_several(kinds[0])}"


def _several(kind: Any) -> str:
    """The plural of a type's words."""
    words = []
    for member in _told(kind):
        origin = get_origin(member) or member
        if origin is tuple:
            words.append(f"pairs of {_several(get_args(member)[0])}")
        else:
            words.append(_SINGLE[origin][1] if origin in _SINGLE else f"{_words(member)}")
    return " or ".join(dict.fromkeys(words))
