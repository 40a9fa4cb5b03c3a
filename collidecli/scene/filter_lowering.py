"""Lowering of the filter schemes' rules to classes, excluded pairs and forced pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.filter_rules import FilterClass, RuleContext, class_table
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, PairFilter
from collidecli.scene.scene_records import SceneRecords, ShapeRecord
from collidecli.scene.shape_config import mask_bits, resolved_mask_both
from collidecli.scene.shape_types import ShapeType

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
    shapes_of_body = _shapes_of_body(records)
    context = _rule_context(records, shapes_of_body, static_pairs)
    classes, shape_class = _classes(records, shapes_of_body)
    table = class_table(classes, context)
    excluded, rules = _excluded_pairs(records, shapes_of_body)
    if len(excluded):
        a, b = excluded.T
        in_one_world = (
            (template[a] == template[b]) | (template[a] == GLOBAL_TEMPLATE) | (template[b] == GLOBAL_TEMPLATE)
        )
        kept = in_one_world & table[shape_class[a], shape_class[b]]
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


def _shapes_of_body(records: SceneRecords) -> dict[int, list[int]]:
    """Rows of each body's shapes, the static world's under -1."""
    shapes_of_body: dict[int, list[int]] = defaultdict(list)
    for row, shape in enumerate(records.shapes):
        shapes_of_body[shape.body].append(row)
    return shapes_of_body


def _is_large(shapes: list[int]) -> bool:
    return len(shapes) > LARGE_BODY


def _rule_context(records: SceneRecords, shapes_of_body: dict[int, list[int]], static_pairs: bool) -> RuleContext:
    joined = set()
    for joint in records.joints:
        ends = (joint.parent, joint.child)
        if STATIC_BODY not in ends and all(_is_large(shapes_of_body.get(body, [])) for body in ends):
            joined |= {ends, ends[::-1]}
    filtered = {pair for a, b in records.usd_filtered for pair in ((a, b), (b, a))}
    return RuleContext(static_pairs, frozenset(filtered), frozenset(joined))


def _classes(records: SceneRecords, shapes_of_body: dict[int, list[int]]) -> tuple[tuple[FilterClass, ...], np.ndarray]:
    """The distinct classes in order of first use, and int32[S], each shape's."""
    articulation_of_body = _articulation_ids(records)
    world_joint = {max(j.parent, j.child) for j in records.joints if STATIC_BODY in (j.parent, j.child)}
    id_of: dict[FilterClass, int] = {}
    shape_class = np.zeros(len(records.shapes), np.int32)
    for row, shape in enumerate(records.shapes):
        static = shape.body == STATIC_BODY
        large = not static and _is_large(shapes_of_body[shape.body])
        # Attributes that no rule uses keep their defaults, so that they split no class.
        used_by_joints = large or shape.body in world_joint or (static and bool(world_joint))
        cfg = shape.cfg
        key = FilterClass(
            plane=shape.type == ShapeType.PLANE,
            static=static,
            disabled=_disabled_rule(shape),
            group=int(cfg.collision_group),
            mask_either=None if cfg.mask_either is None else _bits(cfg.mask_either),
            mask_both=resolved_mask_both(cfg, static),
            usd_groups=frozenset((shape.scope, name) for name in cfg.usd_groups or ()),
            articulation=articulation_of_body.get(shape.body, -1),
            large_body=shape.body if large else _static_cloud(records, shape),
            world_joint=shape.body in world_joint,
            filter_parent=bool(cfg.collision_filter_parent) if used_by_joints else True,
        )
        shape_class[row] = id_of.setdefault(key, len(id_of))
    if len(id_of) > MAX_CLASSES:
        raise InputError(
            f"the scene has {len(id_of)} different combinations of filter attributes, more than {MAX_CLASSES}",
            fix="give shapes with equal filters equal groups and masks, or split the scene into worlds",
        )
    return tuple(id_of), shape_class


def _static_cloud(records: SceneRecords, shape: ShapeRecord) -> int:
    """Number of the point cloud of a static shape, after those of bodies; -1 for none."""
    return len(records.bodies) + shape.cloud if shape.body == STATIC_BODY and shape.cloud >= 0 else -1


def _disabled_rule(shape: ShapeRecord) -> str:
    cfg = shape.cfg
    if cfg.disabled_rule is not None:
        return cfg.disabled_rule or "disabled"
    if not cfg.has_shape_collision:
        return "has_shape_collision = False"
    return "group 0" if cfg.collision_group == 0 else ""


def _bits(masks: tuple[int, int]) -> tuple[int, int]:
    return mask_bits(masks[0]), mask_bits(masks[1])


def _articulation_ids(records: SceneRecords) -> dict[int, int]:
    """Id by body row; ids restart in every template, after the global ones, so that templates share classes."""
    templates = [
        next((t for t in (records.bodies[b].template for b in bodies) if t != GLOBAL_TEMPLATE), GLOBAL_TEMPLATE)
        for bodies in records.articulations
    ]
    next_id: dict[int, int] = defaultdict(lambda: templates.count(GLOBAL_TEMPLATE))
    next_id[GLOBAL_TEMPLATE] = 0
    ids: dict[int, int] = {}
    for bodies, template in zip(records.articulations, templates, strict=True):
        ids |= dict.fromkeys(bodies, next_id[template])
        next_id[template] += 1
    return ids


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
    for pairs, rule in _joint_pairs(records, shapes_of_body):
        blocks.append(pairs)
        rules += [rule] * len(pairs)
    if records.filter_pairs:
        blocks.append(np.array([(p.a, p.b) for p in records.filter_pairs]))
        rules += [p.rule for p in records.filter_pairs]
    if not blocks:
        return np.zeros((0, 2), np.int32), []
    pairs = np.sort(np.concatenate(blocks).astype(np.int64), axis=1)
    _, first_use = np.unique(pairs[:, 0] * len(records.shapes) + pairs[:, 1], return_index=True)
    return pairs[first_use].astype(np.int32), [rules[i] for i in first_use]


def _joint_pairs(records: SceneRecords, shapes_of_body: dict[int, list[int]]) -> Iterator[tuple[np.ndarray, str]]:
    """Yields (pairs int[K, 2], rule) of each joint that the class table does not decide."""
    for joint in records.joints:
        ends = [shapes_of_body.get(body, []) for body in (joint.parent, joint.child)]
        if STATIC_BODY in (joint.parent, joint.child) or all(_is_large(shapes) for shapes in ends):
            continue
        parents, children = (
            np.array([s for s in shapes if records.shapes[s].cfg.collision_filter_parent], np.int64) for shapes in ends
        )
        pairs = np.column_stack([np.repeat(parents, len(children)), np.tile(children, len(parents))])
        yield pairs, joint_rule(records.bodies[joint.parent].key, records.bodies[joint.child].key)


def joint_rule(parent: str | None, child: str | None) -> str:
    """Name of the rule that filters the pairs of two joined bodies; None is the static world."""
    if parent is None or child is None:
        return f"joint between body '{parent or child}' and the world"
    return f"joint between bodies '{parent}' and '{child}'"
