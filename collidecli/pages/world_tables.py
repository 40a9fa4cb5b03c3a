"""Tables of worlds and templates, and what a path stands for in a set of many worlds."""

from __future__ import annotations

from typing import Any

from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import Column
from collidecli.wording import count, plural

MOST_SCORE = 100
"""Greatest score that a table states."""
WORLD_COLUMNS: list[Column] = [
    ("world", "left", lambda row: str(row["world"])),
    ("template", "right", lambda row: str(row["template"])),
    ("contacts", "right", lambda row: count(row["contacts"])),
    ("touches", "right", lambda row: count(row["touches"])),
    ("deepest", "right", lambda row: depth_text(row["deepest"])),
    ("frame", "right", lambda row: str(row["frame"]) if row["frame"] >= 0 else ""),
    ("outlier", "left", lambda row: outlier_text(row) if row["outlier"] else ""),
]
"""Of rows of `WorldTotals`."""
TEMPLATE_COLUMNS: list[Column] = [
    ("template", "right", lambda row: str(row["template"])),
    ("worlds", "right", lambda row: count(row["worlds"])),
    ("first", "right", lambda row: str(row["world"])),
    ("differs in", "left", lambda row: differences_text(row)),
]
"""Of `template_rows`."""


def score_text(score: float) -> str:
    """A score of `WorldTotals`; where most worlds are equal to rounding, it may be any number."""
    return f"{score:.1f} deviations" if score < MOST_SCORE else f"over {MOST_SCORE} deviations"


def outlier_text(row: ResultDict) -> str:
    """How far an outlier is from the median of all worlds, in what, and that median."""
    median = row["median"]
    middle = length(median) if row["score_of"] == "depth" else f"{median:g}"
    return f"{score_text(row['score'])} in {row['score_of']}, median {middle}"


def depth_text(distance: float | None) -> str:
    """Depth of an overlap, or the distance of shapes that are apart; "" where it is not known."""
    if distance is None:
        return ""
    return length(-distance) if distance <= 0.0 else f"{length(distance)} apart"


def differences_text(row: ResultDict) -> str:
    """The attributes in which a template differs from the reference, one a line."""
    if row["reference"] is None:
        return "reference: the most worlds have it"
    lines = []
    for group in row["differences"]:
        example = group["examples"][0]
        more = f", and {plural(group['shapes'] - 1, 'more shape')}" if group["shapes"] > 1 else ""
        if group["what"].endswith(" shape"):
            lines.append(f"{group['what']}: {example['path']}{more}")
            continue
        values = f"{_value(example['b'])} in place of {_value(example['a'])}"
        lines.append(f"{group['what']} of {example['path']}: {values}{more}")
    return "\n".join(lines) or "no attribute that this file has"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_value, value))})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def path_words(worlds: int, templates: int) -> str:
    """What a path in a table stands for; "" with one world."""
    if worlds < 2:
        return ""
    words = f"a path stands for its shape in each of {plural(worlds, 'world')}"
    if templates > 1:
        words += f", of {plural(templates, 'template')}, which may differ in it"
    return words
