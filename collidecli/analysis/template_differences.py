"""The attributes in which each template of a set of worlds differs from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Difference = dict[str, Any]
"""what, a, b: an attribute, its value in the reference and in the template."""
MOST_VALUES = 3
"""Shapes of which an attribute's values are listed."""


def template_rows(
    paths: Sequence[str],
    template: np.ndarray,
    world_template: np.ndarray,
    differences: Callable[[int, int], list[Difference]],
    names: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """A row for each template, compared with the one of the most worlds, the first of equal ones.

    paths, template: of each shape; -1 in every world. world_template: int[W]. differences: of two
    rows of shapes with one path. Each row has `template`, `worlds`, `world` (its first),
    `reference` (the template that it is compared with, None for that one), and `differences`: for
    each attribute `what`, the number of `shapes` that differ in it, and `examples` with path, a, b.
    A shape that only one of the two has is a "missing shape" or an "extra shape". names: of each
    shape, equal for those that are compared, None for `paths`; examples have the path in the
    reference, and that of an extra shape.
    """
    numbers, worlds = np.unique(world_template, return_counts=True)
    if not len(numbers):
        return []
    reference = int(numbers[np.argmax(worlds)])
    names = paths if names is None else names
    of_reference = _rows_by_name(names, template, reference)
    rows = []
    for number, world_count in zip(numbers.tolist(), worlds.tolist(), strict=True):
        rows.append(
            {
                "template": number,
                "worlds": world_count,
                "world": int(np.argmax(world_template == number)),
                "reference": None if number == reference else reference,
                "differences": []
                if number == reference
                else _grouped(
                    paths, of_reference, _rows_by_name(names, template, number), differences
                ),
            }
        )
    return rows


def _rows_by_name(names: Sequence[str], template: np.ndarray, number: int) -> dict[str, int]:
    return {names[row]: row for row in np.flatnonzero(template == number).tolist()}


def _grouped(
    paths: Sequence[str],
    first: Mapping[str, int],
    second: Mapping[str, int],
    differences: Callable[[int, int], list[Difference]],
) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys((*first, *second)):
        path = paths[first[name] if name in first else second[name]]
        if name not in second or name not in first:
            what = "missing" if name not in second else "extra"
            listed = [{"what": f"{what} shape", "a": name in first, "b": name in second}]
        else:
            listed = differences(first[name], second[name])
        for one in listed:
            group = found.setdefault(
                one["what"], {"what": one["what"], "shapes": 0, "examples": []}
            )
            group["shapes"] += 1
            if len(group["examples"]) < MOST_VALUES:
                group["examples"].append({"path": path, "a": one["a"], "b": one["b"]})
    return sorted(found.values(), key=lambda group: (-group["shapes"], group["what"]))


def column_differences(
    columns: Mapping[str, Sequence[Any]], first: int, second: int
) -> list[Difference]:
    """Differences of two rows of a table. columns: values by name; NaN equals NaN, in lists too."""
    listed = []
    for name, values in columns.items():
        a, b = values[first], values[second]
        if repr(a) != repr(b):
            listed.append({"what": name, "a": a, "b": b})
    return listed
