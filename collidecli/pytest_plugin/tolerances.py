"""Tolerances of a test as options of `collide diff`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collidecli.errors import InputError
from collidecli.scene.option_values import FRAME_MATCHES
from collidecli.verbs.diff.comparison import limits
from collidecli.wording import did_you_mean

MARKER = "contacts_tolerance"
_LISTS = ("atol", "rtol", "fields", "include", "exclude")
_VALUES = (
    "ignore_shallow",
    "max_missing",
    "max_extra",
    "allow_fraction",
    "pairs_only",
    "match_frames",
)
TOLERANCES = {name: f"--{name.replace('_', '-')}" for name in (*_LISTS, *_VALUES)} | {
    "renames": "--rename"
}
"""Fields of DiffRequest that a test may set, and the corresponding option of `collide diff`."""


def tolerance_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of DiffRequest from the tolerances of a test.

    given: by the names of TOLERANCES; `rename` is a synonym of `renames`. atol and rtol: a number,
    a text such as "normal=0.1deg", a list of those, or a mapping of fields to values, with "" for
    every other field. Raises InputError for another name.
    """
    options: dict[str, Any] = {}
    for key, value in given.items():
        name = "renames" if key == "rename" else key
        if name not in TOLERANCES:
            known = ["rename" if known == "renames" else known for known in TOLERANCES]
            raise InputError(f"'{key}' is no tolerance", MARKER, did_you_mean(key, known))
        options[name] = _checked(key, value) if name in _VALUES else _texts(value)
    for name in ("atol", "rtol"):
        limits(options.get(name, ()), TOLERANCES[name])
    return options


def _checked(name: str, value: Any) -> Any:
    """A value that is not a list. Raises InputError for a value that the option does not accept."""
    if name == "pairs_only":
        good = isinstance(value, bool)
        wanted = "True or False"
    elif name == "match_frames":
        good = value in FRAME_MATCHES
        wanted = f"one of {', '.join(FRAME_MATCHES)}"
    else:
        number = (
            isinstance(value, int) if name.startswith("max_") else isinstance(value, (int, float))
        )
        most = 1.0 if name == "allow_fraction" else math.inf
        good = number and not isinstance(value, bool) and 0 <= value <= most and value < math.inf
        wanted = (
            "a whole number"
            if name.startswith("max_")
            else "a fraction from 0 to 1"
            if most == 1.0
            else "a length"
        )
    if not good:
        raise InputError(f"{name} is {value!r}", MARKER, f"give {wanted}")
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}={item}" if name else str(item) for name, item in value.items()]
    if isinstance(value, (str, int, float)):
        return [str(value)]
    return [str(item) for item in value]


def diff_command(
    baseline: Path, obtained: Path, allowed: Mapping[str, Any], sources: Mapping[str, Any]
) -> str:
    """The command line of `collide diff` with this comparison."""
    words = ["collide", "diff", str(baseline), str(obtained)]
    for name, value in allowed.items():
        option = TOLERANCES[name]
        if value is True:
            words.append(option)
        elif value is not False:
            words += [
                word
                for item in ([value] if name in _VALUES else value)
                for word in (option, str(item))
            ]
    for name, path in sources.items():
        words += [f"--{name.replace('_', '-')}", path]
    return shlex.join(words)
