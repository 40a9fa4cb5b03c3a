"""The shapes or bodies that all differing pairs of two contact sets have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collidecli.verbs.diff.scene_changes import BODY, SHAPE

if TYPE_CHECKING:
    from collidecli.verbs.diff.causes import Causes
    from collidecli.verbs.diff.comparison import Comparison

LEAST_PAIRS = 2
"""Of one pair, both shapes are in all: that says nothing."""
MOST_SHAPES = 4
"""Shapes of a body whose differences are listed."""


def common_of_pairs(compared: Comparison, causes: Causes | None) -> dict[str, Any] | None:
    """What all differing pairs of shapes have in common: "pairs", their number, and "items", each
    with `kind`, `path` and `differences` between the scenes of the two sets, each with `path`,
    `what`, `a` and `b`. `scenes` says in words why the scenes were not compared, or that the common
    shapes are equal in them; "" where there are differences.

    None for fewer than LEAST_PAIRS pairs, or without a common shape or body.
    """
    pairs = list(compared.contacts.pairs)
    if len(pairs) < LEAST_PAIRS or causes is None:
        return None
    names = compared.model.shapes.names
    items = _common(pairs, names, causes.owners)
    if not items:
        return None
    for item in items:
        item["differences"] = [
            {"path": names[number], **difference}
            for number in item.pop("shapes")
            for difference in causes.scenes.of_shape.get(number, ())
        ]
    words = causes.scenes.reason
    if not words and not any(item["differences"] for item in items):
        words = "its shapes are equal in the scenes of A and B: their motions or runs differ"
    return {"pairs": len(pairs), "items": items, "scenes": words}


def _common(
    pairs: Sequence[tuple[int, int]], names: Sequence[str], owners: Sequence[str]
) -> list[dict[str, Any]]:
    """The shapes that every pair has, else the bodies; with the numbers of their shapes."""
    in_all = set(pairs[0]).intersection(*pairs[1:])
    if in_all:
        return [
            {"kind": SHAPE, "path": names[number], "shapes": [number]} for number in sorted(in_all)
        ]
    of_pairs = [{owners[one], owners[other]} - {""} for one, other in pairs]
    bodies = sorted(set.intersection(*of_pairs))
    touched = {number for pair in pairs for number in pair}
    return [
        {
            "kind": BODY,
            "path": body,
            "shapes": [number for number in sorted(touched) if owners[number] == body][
                :MOST_SHAPES
            ],
        }
        for body in bodies
    ]
