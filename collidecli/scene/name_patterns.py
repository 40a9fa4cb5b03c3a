"""Patterns of names: globs, and regular expressions that begin with `re:`."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache, partial

from collidecli.errors import InputError

EXPRESSION = "re:"
"""Begin of a pattern that is a regular expression."""
_WILDCARDS = "*?["
_BRACKETS = {"(": ")", "{": "}"}


def is_expression(pattern: str) -> bool:
    """Whether a pattern is a regular expression."""
    return pattern.startswith(EXPRESSION)


def has_wildcards(text: str) -> bool:
    """Whether a text is a pattern that may match other texts than itself."""
    return is_expression(text) or any(letter in text for letter in _WILDCARDS)


def matcher(pattern: str, where: str) -> Callable[[str], bool]:
    """The test whether a whole name matches a pattern.

    Args:
        pattern: a glob with `*` (any text, slashes too), `?` (one character) and `[...]` (one of
            them, or with `[!...]` none of them); or after `re:` a regular expression of Python's
            module `re`. Case counts in both.
        where: the option, for messages.
    Raises InputError for what is no regular expression.
    """
    if not is_expression(pattern):
        return partial(fnmatchcase, pat=pattern)
    expression = compiled(pattern, where)
    return lambda name: expression.fullmatch(name) is not None


def compiled(pattern: str, where: str) -> re.Pattern[str]:
    """The regular expression of a pattern that begins with `re:`. Raises InputError for what is
    none."""
    try:
        return _compiled(pattern.removeprefix(EXPRESSION))
    except (re.error, OverflowError, RecursionError) as error:
        what = f"'{pattern}' is no regular expression: {error}"
        fix = f"write one of Python's module re after {EXPRESSION}, or a glob such as '*hand*'"
        raise InputError(what, where, fix) from None


@lru_cache(512)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def path_patterns(pattern: str) -> list[str]:
    """The patterns of the names of a path between its slashes. After `re:` each name is a regular
    expression, so that neither an expression nor a wildcard matches a slash."""
    if not is_expression(pattern):
        return pattern.split("/")
    names = pattern.removeprefix(EXPRESSION).split("/")
    return [name if re.escape(name) == name else EXPRESSION + name for name in names]


def split_patterns(text: str) -> list[str]:
    """The patterns of a list with commas, without the spaces around them.

    A comma in brackets of a regular expression, or after a backslash, is part of it:
    `re:arm{1,2},hand*` are two patterns. Where a bracket is not closed, the rest of the text is one
    pattern, which `matcher` refuses.
    """
    patterns = []
    rest = text
    while rest is not None:
        start = rest.lstrip()
        end = _expression_end(start) if is_expression(start) else start.find(",")
        patterns.append((start if end < 0 else start[:end]).strip())
        rest = None if end < 0 else start[end + 1 :]
    return patterns


def _expression_end(text: str) -> int:
    """Index of the comma that ends a regular expression at the begin of a text; -1 without one."""
    closing: list[str] = []
    class_start = -1  # of the characters of [...], in which brackets are characters
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            at += 1
        elif class_start >= 0:
            # a ] at the begin of a class is one of its characters
            if letter == "]" and at > class_start:
                class_start = -1
        elif letter == "[":
            class_start = at + (2 if text[at + 1 : at + 2] == "^" else 1)
        elif letter in _BRACKETS:
            closing.append(_BRACKETS[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter == "," and not closing:
            return at
        at += 1
    return -1
