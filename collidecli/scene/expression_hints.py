"""The remedy for a regular expression that is given where a glob is expected."""

from __future__ import annotations

import re
from collections.abc import Iterable

from collidecli.scene.name_patterns import EXPRESSION, is_expression

_OF_EXPRESSIONS = re.compile(r"\.[*+?{]|[\\^$|()+]|\][*+?{]")
"""What regular expressions have, and globs and paths rarely."""


def expression_fix(pattern: str, names: Iterable[str]) -> str:
    """The remedy for a glob that has no match and is a regular expression that matches a name, or
    looks like one; "" for other patterns."""
    if is_expression(pattern) or not _OF_EXPRESSIONS.search(pattern):
        return ""
    text = pattern.removeprefix("^").removesuffix("$")
    try:
        matches = any(map(re.compile(text).fullmatch, names))
    except (re.error, OverflowError, RecursionError):
        return ""
    if not matches and not re.search(r"\.[*+]", text):
        return ""
    what = "a pattern is a glob, in which . is a point"
    return f"{what}: write the regular expression as '{EXPRESSION}{text}'"
