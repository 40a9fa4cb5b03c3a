"""The pairs of shapes that the filters allow, as rows of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from collidecli.scene.filter_rules import ALLOWED, SCHEMES, first_forbidding
from collidecli.scene.mixing import pair_rows
from collidecli.scene.model import STATIC_BODY, Model

BLOCK_ROWS = 256
"""Rows of the pair table computed at a time: 5000 shapes then need a few megabytes besides the
result."""


def allowed_pairs(model: Model, template: int) -> np.ndarray:
    """int32[K, 2]: the pairs of shapes that may touch in a world of `template`, rows of the model.

    First < second, lexically sorted. Template -1 gives the pairs of global shapes.
    """
    return np.concatenate([np.zeros((0, 2), np.int32), *_pair_blocks(model, template, True)])


def allowed_blocks(model: Model, template: int) -> Iterator[np.ndarray]:
    """Yields int32[K, 2]: the pairs of `allowed_pairs`, some rows of the model at a time."""
    return _pair_blocks(model, template, True)


def has_pairs(model: Model) -> bool:
    """Whether any pair of shapes may touch, in any world."""
    templates = range(int(model.world_template.max(initial=0)) + 1)
    return any(len(block) for t in templates for block in _pair_blocks(model, t, True))


def are_allowed(model: Model, pairs: np.ndarray) -> np.ndarray:
    """bool[n]: whether pairs of rows, int[n, 2] with first < second, may touch."""
    pair_filter = model.pair_filter
    count = len(model.shapes)
    classes = pair_filter.shape_class[pairs]
    may = pair_filter.class_table[classes[:, 0], classes[:, 1]]
    key = pairs[:, 0].astype(np.int64) * count + pairs[:, 1]
    for listed, value in ((pair_filter.excluded, False), (pair_filter.forced, True)):
        of_listed = np.sort(listed[:, 0].astype(np.int64) * count + listed[:, 1], kind="stable")
        if len(of_listed):
            at = np.minimum(np.searchsorted(of_listed, key), len(of_listed) - 1)
            may[of_listed[at] == key] = value
    return may


def _pair_blocks(model: Model, template: int, allowed: bool) -> Iterator[np.ndarray]:
    """Yields int32[K, 2]: the pairs of shapes that may touch, or those that may not, as
    `allowed_pairs` orders them."""
    pair_filter = model.pair_filter
    rows = model.template_shapes(template)
    shape_class = pair_filter.shape_class[rows]
    excluded = _local_pairs(pair_filter.excluded, rows)
    forced = _local_pairs(pair_filter.forced, rows)
    for start in range(0, len(rows), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(rows))
        # Row i of the block pairs only with later shapes, so columns begin at the block's first
        # row.
        may = pair_filter.class_table[shape_class[start:stop, None], shape_class[start:]]
        for pairs, value in ((excluded, False), (forced, True)):
            low, high = np.searchsorted(pairs[:, 0], (start, stop))
            may[pairs[low:high, 0] - start, pairs[low:high, 1] - start] = value
        later = np.arange(start, stop)[:, None] < np.arange(start, len(rows))
        first, second = np.nonzero((may == allowed) & later)
        yield np.stack([rows[first + start], rows[second + start]], axis=1)


def excluded_counts(model: Model, template: int) -> Counter[str]:
    """Number of pairs of shapes that may not touch in a world of `template`, by the first rule that
    forbids each.

    The rules have the order in which `explain` takes them; one of listed pairs may contain the
    names of two bodies.
    """
    pair_filter = model.pair_filter
    body = model.shapes.body
    shape_class = pair_filter.shape_class
    shape_count = len(model.shapes)
    first_rule = first_forbidding(pair_filter.classes, pair_filter.context)
    excluded = pair_filter.excluded[:, 0] * np.int64(shape_count) + pair_filter.excluded[:, 1]
    counts: Counter[str] = Counter({"same body": 0} | {scheme.name: 0 for scheme in SCHEMES})
    for pairs in _pair_blocks(model, template, False):
        on_one = (body[pairs[:, 0]] == body[pairs[:, 1]]) & (body[pairs[:, 0]] != STATIC_BODY)
        a, b = pairs[~on_one].T.astype(np.int64)
        index = first_rule[shape_class[a], shape_class[b]]
        counts["same body"] += int(on_one.sum())
        for scheme, number in zip(SCHEMES, np.bincount(index, minlength=ALLOWED), strict=False):
            counts[scheme.name] += int(number)
        listed = np.searchsorted(excluded, (a * shape_count + b)[index == ALLOWED])
        counts.update(pair_filter.excluded_rule[row] for row in listed.tolist())
    return +counts


def _local_pairs(pairs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    if not len(pairs) or not len(rows):
        return np.zeros((0, 2), np.int64)
    index = np.searchsorted(rows, pairs)
    is_pair = (rows[np.minimum(index, len(rows) - 1)] == pairs).all(axis=1)
    return index[is_pair]


def pair_lengths(model: Model, pair: np.ndarray, name: str) -> np.ndarray:
    """float64[K]: "margin", the sum of both shapes' margins, or "gap" of pairs [m]; a forced pair
    may have its own."""
    of_shapes = getattr(model.shapes, name)
    join = np.maximum if name == "gap" and model.gap_rule == "max" else np.add
    lengths = join(of_shapes[pair[:, 0]], of_shapes[pair[:, 1]])
    forced = getattr(model, f"forced_{name}")
    if not len(forced):
        return lengths
    at = pair_rows(model.pair_filter.forced, len(model.shapes), pair[:, 0], pair[:, 1])
    forced_lengths = np.where(at >= 0, forced[at], np.nan)
    return np.where(np.isnan(forced_lengths), lengths, forced_lengths)


def pair_range(
    length: np.ndarray, body: np.ndarray, forced: np.ndarray, rule: str
) -> tuple[float, float]:
    """Least and largest gap or margin of two shapes, of which one moves, and of forced pairs [m].

    length, body: of shapes. forced: of pairs, NaN without one. rule: "max" or "sum". (0, 0) for
    less than two shapes.
    """
    count = len(length)
    if count < 2:
        return 0.0, 0.0
    join = np.maximum if rule == "max" else np.add
    moving = np.flatnonzero(body >= 0) if (body >= 0).any() else np.arange(count)
    order = np.argsort(length, kind="stable")
    ends = [
        join(length[moving], length[np.where(moving == at, other, at)])
        for at, other in (order[:2], order[:-3:-1])
    ]
    forced = forced[~np.isnan(forced)]
    return float(np.append(ends[0], forced).min()), float(np.append(ends[1], forced).max())
