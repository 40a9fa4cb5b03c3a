"""Counts and sizes in words, the same in messages and in tables."""

from __future__ import annotations


def count(number: int) -> str:
    """With a thin grouping that copies well: 12 345 678."""
    return f"{number:,}".replace(",", " ")


def plural(number: int, noun: str, several: str = "") -> str:
    """A number and its noun, in the plural where it is not one. several: that plural, if it does not just add an s."""
    return f"{count(number)} {noun if number == 1 else several or noun + 's'}"


def numbered(number: int, noun: str) -> str:
    """So many things that are counted from 0: `frames 0 to 9`, `only world 0`, `no frames`."""
    if number < 2:
        return f"only {noun} 0" if number else f"no {noun}s"
    return f"{noun}s 0 to {number - 1}"


def memory(size: int) -> str:
    """A size in bytes, with the unit that suits it."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 999.5:
            return f"{value:.3g} {unit}" if unit != "B" else f"{size} B"
        value /= 1024.0
    return f"{value:.3g} GiB" if value < 999.5 else f"{count(round(value))} GiB"
