"""The pairs of shapes that the filters allow, as rows of the model, and the rule that decides about two shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.filter_lowering import joint_rule
from collidecli.scene.filter_rules import allow_joints, first_forbidding
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.scene_records import may_share_world

BLOCK_ROWS = 256
"""Rows of the pair table computed at a time: 5000 shapes then need a few megabytes besides the result."""


def allowed_pairs(model: Model, template: int) -> np.ndarray:
    """int32[K, 2]: the pairs of shapes that may touch in a world of `template`, rows of the model.

    First < second, lexically sorted. Template -1 gives the pairs of global shapes.
    """
    pair_filter = model.pair_filter
    rows = model.template_shapes(template)
    shape_class = pair_filter.shape_class[rows]
    excluded = _local_pairs(pair_filter.excluded, rows)
    forced = _local_pairs(pair_filter.forced, rows)
    blocks = [np.zeros((0, 2), np.int32)]
    for start in range(0, len(rows), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(rows))
        # Row i of the block pairs only with later shapes, so columns begin at the block's first row.
        may = pair_filter.class_table[shape_class[start:stop, None], shape_class[start:]]
        may &= np.arange(start, stop)[:, None] < np.arange(start, len(rows))
        for pairs, value in ((excluded, False), (forced, True)):
            low, high = np.searchsorted(pairs[:, 0], (start, stop))
            may[pairs[low:high, 0] - start, pairs[low:high, 1] - start] = value
        first, second = np.nonzero(may)
        blocks.append(np.stack([rows[first + start], rows[second + start]], axis=1))
    return np.concatenate(blocks)


def _local_pairs(pairs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The pairs with both shapes among the ascending `rows`, as indices into `rows`."""
    if not len(pairs) or not len(rows):
        return np.zeros((0, 2), np.int64)
    index = np.searchsorted(rows, pairs)
    found = (rows[np.minimum(index, len(rows) - 1)] == pairs).all(axis=1)
    return index[found]


@dataclass(frozen=True)
class Verdict:
    """Whether two shapes may touch, and the deciding rule."""

    may_touch: bool
    rule: str


def explain(model: Model, shape_a: int, shape_b: int) -> Verdict:
    """The verdict on two rows of `model.shapes`, in either order.

    If several rules forbid a pair, the result has the first: same body, then the schemes in their order, then joints,
    then filtered pairs. Raises InputError for rows outside the model, and for two equal rows.
    """
    for row in (shape_a, shape_b):
        if not 0 <= row < len(model.shapes):
            raise InputError(f"there is no shape {row}", fix=f"the scene has {len(model.shapes)}, counted from 0")
    if shape_a == shape_b:
        raise InputError(f"both shapes are shape {shape_a}", fix="give two different shapes")
    a, b = sorted((int(shape_a), int(shape_b)))
    shapes, pair_filter = model.shapes, model.pair_filter
    if not may_share_world(int(shapes.template[a]), int(shapes.template[b])):
        return Verdict(False, "different worlds")
    if _find(pair_filter.forced, a, b) is not None:
        return Verdict(True, "forced pair")
    class_a, class_b = pair_filter.shape_class[a], pair_filter.shape_class[b]
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
    scheme = first_forbidding(class_a, class_b, pair_filter.context)
    assert scheme is not None, "the class table forbids a pair that no scheme forbids"
    if scheme.allow is allow_joints:
        body_a, body_b = (model.shapes.body[row] for row in (a, b))
        return joint_rule(*(None if body == STATIC_BODY else model.bodies.path[body] for body in (body_a, body_b)))
    return scheme.text(class_a, class_b, pair_filter.context)


def _find(pairs: np.ndarray, a: int, b: int) -> int | None:
    """Index of (a, b) in lexically sorted pairs, or None."""
    low, high = np.searchsorted(pairs[:, 0], (a, a + 1))
    index = int(low + np.searchsorted(pairs[low:high, 1], b))
    return index if index < high and pairs[index, 1] == b else None
