"""Values of a comparison as text."""

from __future__ import annotations

from typing import Any

from collidecli.analysis.deviations import IDENTIFIERS
from collidecli.pages.quantities import ResultDict, length, plain
from collidecli.wording import plural


def largest_deviation(field: ResultDict) -> str:
    """The largest deviation of a field, as text; "" of a column of identifiers, which has no
    amount."""
    return "" if field["name"] in IDENTIFIERS else deviation(field["largest"], field["unit"])


def worst_words(field: ResultDict, where: str) -> str:
    """A field's contact with the largest deviation, at a place, and both its values; of a column of
    identifiers that they differ, with both values of one contact."""
    values = both_values(field["worst"])
    if field["name"] not in IDENTIFIERS:
        return f"{field['name']}: largest at {where}: {values}"
    number = plural(field["differing"], "contact")
    noun = "the feature's number" if field["name"].startswith("feature") else "the value"
    return f"{field['name']}: {noun} differs in {number}, one at {where}: {values}"


def deviation(value: Any, unit: str) -> str:
    """A deviation with its unit, as text."""
    if isinstance(value, str):
        return value
    if unit == "m":
        return length(value) if value >= 1e-6 or value == 0.0 else f"{value:.3g} m"
    return f"{plain(value, 3)} {unit}".strip()


def both_values(difference: ResultDict) -> str:
    """The values `a` and `b` of a difference, with digits enough to tell them apart."""
    texts = [[short(difference[name], digits) for name in ("a", "b")] for digits in range(6, 18)]
    a, b = next((both for both in texts if both[0] != both[1]), texts[0])
    return f"{a} in A, {b} in B"


def short(value: Any, digits: int = 6) -> str:
    """A value as short text."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(short(item, digits) for item in value)})"
    return (
        f"{value:.{digits}g}" if isinstance(value, float) else "none" if value == "" else str(value)
    )
