"""Tables of worlds and templates, and what a path stands for in a set of many worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collidecli.analysis.world_totals import OUTLIER_SCORE
from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import Column, pair_columns
from collidecli.wording import count, plural

NOTHING_STORED = (
    "nothing in this file; sizes, poses and meshes, which only the scene has, may differ"
)
"""Of templates that are equal in all that a contact set has of shapes."""
NOTHING_OF_SHAPES = "no shape; bodies, joints or filters may differ, which are not compared"
"""Of templates of a scene that are equal in all that a scene has of shapes."""
MOST_SCORE = 100
"""Greatest score that a table states."""
ORIGINS = {"template": "its template", "all worlds": "all templates"}
"""Words for the worlds with which one is compared."""
MISSED_COLUMN: Column = ("in no frame", "right", lambda row: count(row["missed_touches"]))
"""Touches between frames that no frame has, of a set with a sweep."""
WORLD_COLUMNS: list[Column] = [
    ("world", "left", lambda row: str(row["world"])),
    ("template", "right", lambda row: str(row["template"])),
    ("contacts", "right", lambda row: count(row["contacts"])),
    ("touches", "right", lambda row: count(row["touches"])),
    ("deepest", "right", lambda row: depth_text(row["deepest"])),
    ("frame", "right", lambda row: str(row["frame"]) if row["frame"] >= 0 else ""),
    ("differing touches", "right", lambda row: count(row["differing_touches"])),
    ("outlier", "left", lambda row: outlier_text(row) if row["outlier"] else ""),
]
"""Of rows of `WorldTotals`; see `world_columns`."""
DIFFERING_COLUMNS: list[Column] = [
    ("against most worlds of", "left", lambda row: ORIGINS[row["differing_from"]]),
    ("difference", "left", lambda row: frames_text(row)),
    ("first in frame", "right", lambda row: str(row["first_frame"])),
]
"""Of `differing_rows`, after the world and the pair."""
TEMPLATE_COLUMNS: list[Column] = [
    ("template", "right", lambda row: str(row["template"])),
    ("worlds", "right", lambda row: count(row["worlds"])),
    ("first", "right", lambda row: str(row["world"])),
    ("differs in", "left", lambda row: differences_text(row) or NOTHING_STORED),
]
"""Of `template_rows` of a contact set."""
SCENE_TEMPLATE_COLUMNS: list[Column] = [
    *TEMPLATE_COLUMNS[:-1],
    ("differs in", "left", lambda row: differences_text(row) or NOTHING_OF_SHAPES),
]
"""Of `template_rows` of a scene, which has the sizes, poses and meshes of its shapes."""


def world_columns(rows: Sequence[ResultDict]) -> list[Column]:
    """WORLD_COLUMNS, with MISSED_COLUMN behind the touches for rows of a set with a sweep."""
    if not any("missed_touches" in row for row in rows):
        return WORLD_COLUMNS
    place = [name for name, *_ in WORLD_COLUMNS].index("touches") + 1
    return [*WORLD_COLUMNS[:place], MISSED_COLUMN, *WORLD_COLUMNS[place:]]


def score_text(score: float) -> str:
    """A score of `WorldTotals`; where most worlds are equal to rounding, it may be any number."""
    return f"{score:.1f} deviations" if score < MOST_SCORE else f"over {MOST_SCORE} deviations"


def differing_columns(narrow: int) -> list[Column]:
    """Of `differing_rows`. narrow: both shapes in one column."""
    world: Column = ("world", "left", lambda row: str(row["world"]))
    return [world, *pair_columns(narrow), *DIFFERING_COLUMNS]


def differing_rows(worlds: Sequence[ResultDict]) -> list[ResultDict]:
    """The pairs that differ the most of each of the worlds that are outliers in differing
    touches. worlds: rows of `WorldTotals`."""
    return [
        {"world": row["world"], "differing_from": row["differing_from"], **pair}
        for row in worlds
        if row["differing_score"] > OUTLIER_SCORE
        for pair in row["differing_pairs"]
    ]


def frames_text(pair: ResultDict) -> str:
    """In how many frames a pair touches otherwise than in most worlds."""
    fewer = pair["fewer"]
    more = pair["more"]
    if fewer and more:
        return f"touches in other frames: {count(fewer)} fewer, {count(more)} more"
    words = f"{plural(fewer, 'frame')} fewer" if fewer else f"{plural(more, 'frame')} more"
    return f"touches in {words}"


def outlier_text(row: ResultDict) -> str:
    """How far an outlier is from the median of the worlds, in what, and that median."""
    median = row["median"]
    middle = length(median) if row["score_of"] == "depth" else f"{median:g}"
    quantity = row["score_of"].replace("_", " ")
    return f"{score_text(row['score'])} in {quantity}, median {middle}"


def depth_text(distance: float | None) -> str:
    """Depth of an overlap, or the distance of shapes that are apart; "" where it is not known."""
    if distance is None:
        return ""
    return length(-distance) if distance <= 0.0 else f"{length(distance)} apart"


def differences_text(row: ResultDict) -> str:
    """The attributes in which a template differs from the reference, one a line; "" for none."""
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
    return "\n".join(lines)


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
