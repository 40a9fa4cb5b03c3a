"""The shapes or bodies that all differing pairs of two contact sets have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.shape_differences import shape_differences
from collidecli.storage.contact_sets.reader import ContactSet

if TYPE_CHECKING:
    from collidecli.scene.model import Model
    from collidecli.verbs.diff.comparison import Comparison

LEAST_PAIRS = 2
"""Of one pair, both shapes are in all: that says nothing."""
MOST_SHAPES = 4
"""Shapes of a body whose differences are listed."""
SHAPE = "shape"
BODY = "body"


def common_of_pairs(compared: Comparison, a: ContactSet, b: ContactSet) -> dict[str, Any] | None:
    """What all differing pairs of shapes have in common: "pairs", their number, and "items", each
    with `kind`, `path` and `differences` between the scenes of the two sets, each with `path`,
    `what`, `a` and `b`. `scenes` says in words why the scenes were not compared, or that the common
    shapes are equal in them; "" where there are differences.

    None for fewer than LEAST_PAIRS pairs, or without a common shape or body. The scenes are those
    that the request names, or next to the sets, whose files have the recorded hash.
    """
    pairs = list(compared.contacts.pairs)
    if len(pairs) < LEAST_PAIRS:
        return None
    owners = _bodies(compared, a, b)
    items = _common(pairs, compared.model.shapes.names, owners)
    if not items:
        return None
    models, words = _scenes(compared, a, b)
    for item in items:
        item["differences"] = [
            {"path": path, **difference}
            for path in item.pop("shapes")
            for difference in _differences(path, models or ())
        ]
    if models and not any(item["differences"] for item in items):
        words = "its shapes are equal in the scenes of A and B: their motions or runs differ"
    return {"pairs": len(pairs), "items": items, "scenes": words}


def _bodies(compared: Comparison, a: ContactSet, b: ContactSet) -> list[str]:
    """The path of the body of each shape by number, "" of a static one."""
    aligned = compared.model.shapes
    owners = [""] * len(aligned.names)
    for contacts, numbers in ((b, aligned.number_b), (a, aligned.number_a)):
        for number, body in zip(numbers.tolist(), contacts.shapes.body.tolist(), strict=True):
            owners[number] = contacts.body_path[body] if body >= 0 else ""
    return owners


def _common(
    pairs: Sequence[tuple[int, int]], names: Sequence[str], owners: Sequence[str]
) -> list[dict[str, Any]]:
    """The shapes that every pair has, else the bodies; with the paths of their shapes."""
    in_all = set(pairs[0]).intersection(*pairs[1:])
    if in_all:
        paths = [names[number] for number in sorted(in_all)]
        return [{"kind": SHAPE, "path": path, "shapes": [path]} for path in paths]
    of_pairs = [{owners[one], owners[other]} - {""} for one, other in pairs]
    bodies = sorted(set.intersection(*of_pairs))
    touched = {number for pair in pairs for number in pair}
    return [
        {
            "kind": BODY,
            "path": body,
            "shapes": [names[number] for number in sorted(touched) if owners[number] == body][
                :MOST_SHAPES
            ],
        }
        for body in bodies
    ]


def _scenes(
    compared: Comparison, a: ContactSet, b: ContactSet
) -> tuple[tuple[Model, Model] | None, str]:
    """The models of both scenes, or None and why they are not compared."""
    if a.scene_sha256 == b.scene_sha256:
        return None, "the scenes of A and B are equal files"
    # Not at the start: equal sets are compared without the importers.
    from collidecli.motions.sources import found_scene

    models = []
    request = compared.request
    for name, contacts, given in (("A", a, request.scene_a), ("B", b, request.scene_b)):
        scene, reason = found_scene(contacts, given)
        if scene is None:
            option = f"--scene-{name.lower()}"
            if not reason:
                words = f"the scene of {name}, {contacts.scene}, is not beside {_file(contacts)}"
            elif given:
                words = f"the scene of {name} is not what {option} names: {reason}"
            else:
                words = f"the scene of {name}, {contacts.scene}, is not found: {reason}"
            return None, words if given else f"{words}; {option} names it"
        models.append(scene.model)
    return (models[0], models[1]), ""


def _file(contacts: ContactSet) -> str:
    return Path(contacts.path).name


def _differences(path: str, models: Iterable[Model]) -> list[dict[str, Any]]:
    """Differences of the first shape of this path; none if one of the scenes lacks it."""
    found = [(model, row) for model in models if (row := _row(model, path)) is not None]
    return shape_differences(*found) if len(found) == 2 else []


def _row(model: Model, path: str) -> int | None:
    rows = np.flatnonzero(np.array(model.shapes.path, object) == path)
    return int(rows[0]) if len(rows) else None
