"""Lowering of the filter schemes to the pairs of deformable objects and shapes that may touch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.filter_rules import ALLOWED, SCHEMES, FilterClass, RuleContext, allow_joints, first_forbidding
from collidecli.scene.mixing import pair_rows
from collidecli.scene.model import (
    GLOBAL_TEMPLATE,
    STATIC_BODY,
    Model,
    PairFilter,
    SceneRecords,
    ShapeRecord,
    may_share_world,
)
from collidecli.scene.particles import DeformableRecord
from collidecli.scene.shape_config import mask_bits, resolved_mask_both
from collidecli.scene.shape_types import ShapeType


def particle_filter(records: SceneRecords) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Filter classes of objects and of shapes, int32[O] and int32[S], and bool[classes, classes] of pairs.

    Signed groups, masks and UsdPhysics groups apply as to two shapes. `has_shape_collision`, bodies, joints and
    articulations do not: particles have no body.
    """
    filtered = {pair for a, b in records.usd_filtered for pair in ((a, b), (b, a))}
    objects = [_class_of(record, False, "has_particle_collision") for record in records.deformables]
    shapes = [_class_of(shape, shape.body < 0, "has_particle_collision") for shape in records.shapes]
    (objects, object_class), (shapes, shape_class) = map(_numbered, (objects, shapes))
    table = first_forbidding((*objects, *shapes), RuleContext(True, frozenset(filtered))) == ALLOWED
    return object_class, shape_class, np.ascontiguousarray(table[: len(objects), len(objects) :])


def _numbered(given: Sequence[FilterClass]) -> tuple[tuple[FilterClass, ...], np.ndarray]:
    """The distinct classes in the order of first use, and the class of each."""
    number = {value: index for index, value in enumerate(dict.fromkeys(given))}
    return tuple(number), np.array([number[value] for value in given], np.int32)


def _class_of(record: DeformableRecord | ShapeRecord, is_static: bool, enabled: str, **further: Any) -> FilterClass:
    """enabled: the attribute that is False for what collides with nothing."""
    cfg, either = record.cfg, record.cfg.mask_either
    disabled = "" if cfg.disabled_rule is None else cfg.disabled_rule or "disabled"
    if not getattr(cfg, enabled):
        disabled = disabled or f"{enabled} = False"
    return FilterClass(
        disabled=disabled or ("group 0" if cfg.collision_group == 0 else ""),
        group=int(cfg.collision_group),
        mask_either=None if either is None else (mask_bits(either[0]), mask_bits(either[1])),
        mask_both=resolved_mask_both(cfg, is_static),
        usd_groups=frozenset((record.scope, name) for name in cfg.usd_groups or ()),
        **further,
    )


# Lowering of the filter schemes' rules to classes, excluded pairs and forced pairs.

LARGE_BODY = 64
"""A body with more shapes is an attribute of their class; the pairs of a smaller body are listed, at most 2016."""
MAX_CLASSES = 16384
"""The table of this many classes takes 256 MiB."""


def lower_filter(records: SceneRecords, static_pairs: bool) -> PairFilter:
    """The pair filter of `records`, whose indices are rows of the model.

    `excluded` omits pairs that the class table forbids and pairs that no world contains.
    Raises InputError for a scene with more than `MAX_CLASSES` classes.
    """
    template = np.array([s.template for s in records.shapes], np.int32)
    shapes_of_body: dict[int, list[int]] = defaultdict(list)
    for row, shape in enumerate(records.shapes):
        shapes_of_body[shape.body].append(row)
    joined = set()
    for joint in records.joints:
        ends = (joint.parent, joint.child)
        if STATIC_BODY not in ends and all(len(shapes_of_body.get(body, [])) > LARGE_BODY for body in ends):
            joined |= {ends, ends[::-1]}
    filtered = {pair for a, b in records.usd_filtered for pair in ((a, b), (b, a))}
    context = RuleContext(static_pairs, frozenset(filtered), frozenset(joined))
    classes, shape_class = _classes(records, shapes_of_body)
    table = first_forbidding(classes, context) == ALLOWED
    excluded, rules = _excluded_pairs(records, shapes_of_body)
    if len(excluded):
        a, b = excluded.T
        of_all = (template[a] == GLOBAL_TEMPLATE) | (template[b] == GLOBAL_TEMPLATE)
        kept = (of_all | (template[a] == template[b])) & table[shape_class[a], shape_class[b]]
        excluded, rules = excluded[kept], [rule for rule, keep in zip(rules, kept, strict=True) if keep]
    return PairFilter(
        shape_class=shape_class,
        class_table=table,
        excluded=excluded,
        excluded_rule=tuple(rules),
        forced=np.array([(p.a, p.b) for p in records.forced_pairs], np.int32).reshape(-1, 2),
        classes=classes,
        context=context,
    )


def _classes(records: SceneRecords, shapes_of_body: dict[int, list[int]]) -> tuple[tuple[FilterClass, ...], np.ndarray]:
    """The distinct classes in order of first use, and int32[S], each shape's."""
    # Ids restart in every template, after the global ones, so that templates share classes.
    templates = [
        next((t for t in (records.bodies[b].template for b in bodies) if t != GLOBAL_TEMPLATE), GLOBAL_TEMPLATE)
        for bodies in records.articulations
    ]
    next_id: dict[int, int] = defaultdict(lambda: templates.count(GLOBAL_TEMPLATE))
    next_id[GLOBAL_TEMPLATE] = 0
    articulation_of_body: dict[int, int] = {}
    for bodies, template in zip(records.articulations, templates, strict=True):
        articulation_of_body |= dict.fromkeys(bodies, next_id[template])
        next_id[template] += 1
    world_joint = {max(j.parent, j.child) for j in records.joints if STATIC_BODY in (j.parent, j.child)}
    given = []
    for shape in records.shapes:
        static = shape.body == STATIC_BODY
        large = not static and len(shapes_of_body[shape.body]) > LARGE_BODY
        of_static_cloud = static and shape.cloud >= 0  # its points are numbered after the bodies
        # Attributes that no rule uses keep their defaults, so that they split no class.
        used_by_joints = large or shape.body in world_joint or (static and bool(world_joint))
        further = {
            "plane": shape.type == ShapeType.PLANE,
            "static": static,
            "articulation": articulation_of_body.get(shape.body, -1),
            "large_body": shape.body if large else len(records.bodies) + shape.cloud if of_static_cloud else -1,
            "world_joint": shape.body in world_joint,
            "filter_parent": bool(shape.cfg.collision_filter_parent) if used_by_joints else True,
        }
        given.append(_class_of(shape, static, "has_shape_collision", **further))
    classes, shape_class = _numbered(given)
    if len(classes) > MAX_CLASSES:
        what = f"the scene has {len(classes)} different combinations of filter attributes, more than {MAX_CLASSES}"
        fix = "give shapes with equal filters equal groups and masks, or split the scene into worlds"
        raise InputError(what, fix=fix)
    return classes, shape_class


def _excluded_pairs(records: SceneRecords, shapes_of_body: dict[int, list[int]]) -> tuple[np.ndarray, list[str]]:
    """int32[K, 2], sorted and unique, and the first rule that excludes each pair: same body, joint, filtered pair."""
    blocks: list[np.ndarray] = []
    rules: list[str] = []
    for body, shapes in shapes_of_body.items():
        if body != STATIC_BODY and 1 < len(shapes) <= LARGE_BODY:
            first, second = np.triu_indices(len(shapes), 1)
            rows = np.array(shapes)
            blocks.append(np.column_stack([rows[first], rows[second]]))
            rules += ["same body"] * len(first)
    for joint in records.joints:
        ends = [shapes_of_body.get(body, []) for body in (joint.parent, joint.child)]
        if STATIC_BODY in (joint.parent, joint.child) or all(len(shapes) > LARGE_BODY for shapes in ends):
            continue  # the class table decides
        kept = [[s for s in shapes if records.shapes[s].cfg.collision_filter_parent] for shapes in ends]
        parents, children = (np.array(shapes, np.int64) for shapes in kept)
        blocks.append(np.column_stack([np.repeat(parents, len(children)), np.tile(children, len(parents))]))
        rules += [joint_rule(records.bodies[joint.parent].key, records.bodies[joint.child].key)] * len(blocks[-1])
    if records.filter_pairs:
        blocks.append(np.array([(p.a, p.b) for p in records.filter_pairs]))
        rules += [p.rule for p in records.filter_pairs]
    if not blocks:
        return np.zeros((0, 2), np.int32), []
    pairs = np.sort(np.concatenate(blocks).astype(np.int64), axis=1)
    _, first_use = np.unique(pairs[:, 0] * len(records.shapes) + pairs[:, 1], return_index=True)
    return pairs[first_use].astype(np.int32), [rules[i] for i in first_use]


def joint_rule(parent: str | None, child: str | None) -> str:
    """Name of the rule that filters the pairs of two joined bodies; None is the static world."""
    if parent is None or child is None:
        return f"joint between body '{parent or child}' and the world"
    return f"joint between bodies '{parent}' and '{child}'"


# The pairs of shapes that the filters allow, as rows of the model, and the rule that decides about two shapes.

BLOCK_ROWS = 256
"""Rows of the pair table computed at a time: 5000 shapes then need a few megabytes besides the result."""


def allowed_pairs(model: Model, template: int) -> np.ndarray:
    """int32[K, 2]: the pairs of shapes that may touch in a world of `template`, rows of the model.

    First < second, lexically sorted. Template -1 gives the pairs of global shapes.
    """
    return np.concatenate([np.zeros((0, 2), np.int32), *_pair_blocks(model, template, True)])


def are_allowed(model: Model, pairs: np.ndarray) -> np.ndarray:
    """bool[n]: whether pairs of rows, int[n, 2] with first < second, may touch."""
    pair_filter, count = model.pair_filter, len(model.shapes)
    classes = pair_filter.shape_class[pairs]
    may = pair_filter.class_table[classes[:, 0], classes[:, 1]]
    key = pairs[:, 0].astype(np.int64) * count + pairs[:, 1]
    for listed, value in ((pair_filter.excluded, False), (pair_filter.forced, True)):
        may[np.isin(key, listed[:, 0].astype(np.int64) * count + listed[:, 1])] = value
    return may


def _pair_blocks(model: Model, template: int, allowed: bool) -> Iterator[np.ndarray]:
    """Yields int32[K, 2]: the pairs of shapes that may touch, or those that may not, as `allowed_pairs` orders them."""
    pair_filter = model.pair_filter
    rows = model.template_shapes(template)
    shape_class = pair_filter.shape_class[rows]
    excluded = _local_pairs(pair_filter.excluded, rows)
    forced = _local_pairs(pair_filter.forced, rows)
    for start in range(0, len(rows), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(rows))
        # Row i of the block pairs only with later shapes, so columns begin at the block's first row.
        may = pair_filter.class_table[shape_class[start:stop, None], shape_class[start:]]
        for pairs, value in ((excluded, False), (forced, True)):
            low, high = np.searchsorted(pairs[:, 0], (start, stop))
            may[pairs[low:high, 0] - start, pairs[low:high, 1] - start] = value
        later = np.arange(start, stop)[:, None] < np.arange(start, len(rows))
        first, second = np.nonzero((may == allowed) & later)
        yield np.stack([rows[first + start], rows[second + start]], axis=1)


def excluded_counts(model: Model, template: int) -> Counter[str]:
    """Number of pairs of shapes that may not touch in a world of `template`, by the first rule that forbids each.

    The rules have the order in which `explain` takes them; one of listed pairs may contain the names of two bodies.
    """
    pair_filter = model.pair_filter
    body, shape_class, shape_count = model.shapes.body, pair_filter.shape_class, len(model.shapes)
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


@dataclass(frozen=True)
class Verdict:
    """Whether two shapes may touch, and the deciding rule."""

    may_touch: bool
    rule: str


def explain(model: Model, shape_a: int, shape_b: int) -> Verdict:
    """The verdict on two rows of `model.shapes`, in either order.

    If several rules forbid a pair, the first of "same body", the schemes in their order, joints and filtered pairs is
    given. Raises InputError for rows outside the model, and for two equal rows.
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
    scheme = SCHEMES[first_forbidding((class_a, class_b), pair_filter.context)[0, 1]]
    if scheme.allow is allow_joints:
        body_a, body_b = (model.shapes.body[row] for row in (a, b))
        return joint_rule(*(None if body == STATIC_BODY else model.bodies.path[body] for body in (body_a, body_b)))
    return scheme.name if scheme.text is None else scheme.text(class_a, class_b, pair_filter.context)


def _find(pairs: np.ndarray, a: int, b: int) -> int | None:
    """Index of (a, b) in lexically sorted pairs, or None."""
    low, high = np.searchsorted(pairs[:, 0], (a, a + 1))
    index = int(low + np.searchsorted(pairs[low:high, 1], b))
    return index if index < high and pairs[index, 1] == b else None


def pair_lengths(model: Model, pair: np.ndarray, name: str) -> np.ndarray:
    """float64[K]: "margin", the sum of both shapes' margins, or "gap" of pairs [m]; a forced pair may have its own."""
    of_shapes = getattr(model.shapes, name)[pair]
    lengths = of_shapes.max(axis=1) if name == "gap" and model.gap_rule == "max" else of_shapes.sum(axis=1)
    forced = getattr(model, f"forced_{name}")
    if not len(forced):
        return lengths
    at = pair_rows(model.pair_filter.forced, len(model.shapes), pair[:, 0], pair[:, 1])
    forced_lengths = np.where(at >= 0, forced[at], np.nan)
    return np.where(np.isnan(forced_lengths), lengths, forced_lengths)


def pair_range(length: np.ndarray, body: np.ndarray, forced: np.ndarray, rule: str) -> tuple[float, float]:
    """Least and largest gap or margin of two shapes, of which one moves, and of forced pairs [m].

    length, body: of shapes. forced: of pairs, NaN without one. rule: "max" or "sum". (0, 0) for less than two shapes.
    """
    count = len(length)
    if count < 2:
        return 0.0, 0.0
    join = np.maximum if rule == "max" else np.add
    moving = np.flatnonzero(body >= 0) if (body >= 0).any() else np.arange(count)
    order = np.argsort(length, kind="stable")
    ends = [join(length[moving], length[np.where(moving == at, other, at)]) for at, other in (order[:2], order[:-3:-1])]
    forced = forced[~np.isnan(forced)]
    return float(np.append(ends[0], forced).min()), float(np.append(ends[1], forced).max())
