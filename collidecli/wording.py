"""Words for counts, sizes, lengths and lists of names, for messages and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

NAMES_SHOWN = 12
LENGTH_UNITS = (("mm", 1e3), ("cm", 1e2), ("µm", 1e6), ("μm", 1e6), ("um", 1e6), ("m", 1.0))
"""Units of lengths and their number in a metre; m is last, as the others end with it. µ has two
code points."""


def count(number: int) -> str:
    """A number with its digits in groups of three: 12 345 678."""
    return f"{number:,}".replace(",", " ")


def plural(number: int, noun: str, several: str = "") -> str:
    """A number and its noun, in the plural unless the number is 1. several: the plural, if it is
    not the noun and s."""
    return f"{count(number)} {noun if number == 1 else several or noun + 's'}"


def part_of(listed: int, number: int, noun: str) -> str:
    """Some of a number of things: `2 of 7 pairs`; without `of` where they are all: `7 pairs`."""
    every = plural(number, noun)
    return every if listed == number else f"{count(listed)} of {every}"


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
        number = float(value)
        unit = 1.0
    else:
        text = str(value).strip()
        ending, unit = next(
            ((ending, unit) for ending, unit in LENGTH_UNITS if text.endswith(ending)), ("", 1.0)
        )
        number = float(text.removesuffix(ending))
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number / unit


def in_order(names: Iterable[str]) -> list[str]:
    """Names with their numbers in numeric order: demo_2 before demo_10."""
    return sorted(names, key=number_parts)


def number_parts(name: str) -> list[int | str]:
    """The texts and numbers that a name consists of, texts first: a key by which numbers are in
    numeric order."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str | None = None, shown: int = 1
) -> str:
    """The remedy for an unknown name: the most similar names, whole or in their part after the last
    slash.

    otherwise: the remedy if none is similar; None is a list of all.
    """
    # imported only for a message, as the command line starts without it
    from difflib import get_close_matches

    named = (
        {word.rsplit("/", 1)[-1]: word for word in reversed(in_order(known))}
        if "/" not in name
        else {}
    )
    named |= {word: word for word in known}
    close = dict.fromkeys(named[word] for word in get_close_matches(name, named, n=shown))
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known here: {', '.join(sorted(known))}" if otherwise is None else otherwise


def first_and_count(names: Sequence[str]) -> str:
    """The first of some names, and the number of the others."""
    return names[0] + (f" and {count(len(names) - 1)} more" if len(names) > 1 else "")


def some_names(names: Sequence[str]) -> str:
    """Up to `NAMES_SHOWN` names in quotes, and the number of the others."""
    shown = ", ".join(f"'{name}'" for name in names[:NAMES_SHOWN])
    return shown + (
        f" and {count(len(names) - NAMES_SHOWN)} more" if len(names) > NAMES_SHOWN else ""
    )
