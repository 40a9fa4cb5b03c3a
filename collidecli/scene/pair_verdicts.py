"""The rule that decides whether two shapes are a pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.filter_lowering import joint_rule
from collidecli.scene.filter_rules import SCHEMES, allow_joints, first_forbidding
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.records import may_share_world


@dataclass(frozen=True)
class Verdict:
    """Whether two shapes may touch, and the deciding rule."""

    may_touch: bool
    rule: str


def explain(model: Model, shape_a: int, shape_b: int) -> Verdict:
    """The verdict on two rows of `model.shapes`, in either order.

    If several rules forbid a pair, the first of "same body", the schemes in their order, joints and
    filtered pairs is given. Raises InputError for rows outside the model, and for two equal rows.
    """
    for row in (shape_a, shape_b):
        if not 0 <= row < len(model.shapes):
            raise InputError(
                f"there is no shape {row}", fix=f"the scene has {len(model.shapes)}, counted from 0"
            )
    if shape_a == shape_b:
        raise InputError(f"both shapes are shape {shape_a}", fix="give two different shapes")
    a, b = sorted((int(shape_a), int(shape_b)))
    shapes = model.shapes
    pair_filter = model.pair_filter
    if not may_share_world(int(shapes.template[a]), int(shapes.template[b])):
        return Verdict(False, "different worlds")
    if _find(pair_filter.forced, a, b) is not None:
        return Verdict(True, "forced pair")
    class_a = pair_filter.shape_class[a]
    class_b = pair_filter.shape_class[b]
    excluded = _find(pair_filter.excluded, a, b)
    allowed = bool(pair_filter.class_table[class_a, class_b])
    if allowed and excluded is None:
        return Verdict(True, "no rule forbids it")
    if shapes.body[a] == shapes.body[b] != STATIC_BODY:
        return Verdict(False, "same body")
    if excluded is not None and allowed:
        return Verdict(False, pair_filter.excluded_rule[excluded])
    return Verdict(False, _class_rule(model, a, b))


def _class_rule(model: Model, a: int, b: int) -> str:
    pair_filter = model.pair_filter
    if not pair_filter.classes:
        return "filter classes"
    class_a, class_b = (pair_filter.classes[pair_filter.shape_class[row]] for row in (a, b))
    scheme = SCHEMES[first_forbidding((class_a, class_b), pair_filter.context)[0, 1]]
    if scheme.allow is allow_joints:
        body_a, body_b = (model.shapes.body[row] for row in (a, b))
        return joint_rule(
            *(None if body == STATIC_BODY else model.bodies.path[body] for body in (body_a, body_b))
        )
    return (
        scheme.name if scheme.text is None else scheme.text(class_a, class_b, pair_filter.context)
    )


def _find(pairs: np.ndarray, a: int, b: int) -> int | None:
    """Index of (a, b) in lexically sorted pairs, or None."""
    low, high = np.searchsorted(pairs[:, 0], (a, a + 1))
    index = int(low + np.searchsorted(pairs[low:high, 1], b))
    return index if index < high and pairs[index, 1] == b else None
