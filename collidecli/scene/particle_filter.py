"""Lowering of the filter schemes to the pairs of deformable objects and shapes that may touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.scene.filter_rules import FilterClass, RuleContext, class_table
from collidecli.scene.particles import DeformableRecord
from collidecli.scene.scene_records import SceneRecords, ShapeRecord
from collidecli.scene.shape_config import mask_bits, resolved_mask_both


def particle_filter(records: SceneRecords) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Filter classes of objects and of shapes, int32[O] and int32[S], and bool[classes, classes] of pairs.

    Signed groups, masks and UsdPhysics groups apply as to two shapes. `has_shape_collision`, bodies, joints and
    articulations do not: particles have no body.
    """
    filtered = {pair for a, b in records.usd_filtered for pair in ((a, b), (b, a))}
    objects, object_class = _classes([_class_of(record, False) for record in records.deformables])
    shapes, shape_class = _classes([_class_of(shape, shape.body < 0) for shape in records.shapes])
    table = class_table((*objects, *shapes), RuleContext(True, frozenset(filtered)))
    return object_class, shape_class, np.ascontiguousarray(table[: len(objects), len(objects) :])


def _classes(given: Sequence[FilterClass]) -> tuple[tuple[FilterClass, ...], np.ndarray]:
    """The distinct classes in the order of first use, and the class of each."""
    number = {each: index for index, each in enumerate(dict.fromkeys(given))}
    return tuple(number), np.array([number[each] for each in given], np.int32)


def _class_of(record: DeformableRecord | ShapeRecord, static: bool) -> FilterClass:
    cfg = record.cfg
    disabled = "" if cfg.disabled_rule is None else cfg.disabled_rule or "disabled"
    if not cfg.has_particle_collision:
        disabled = disabled or "has_particle_collision = False"
    either = cfg.mask_either
    return FilterClass(
        disabled=disabled or ("group 0" if cfg.collision_group == 0 else ""),
        group=int(cfg.collision_group),
        mask_either=None if either is None else (mask_bits(either[0]), mask_bits(either[1])),
        mask_both=resolved_mask_both(cfg, static),
        usd_groups=frozenset((record.scope, name) for name in cfg.usd_groups or ()),
    )
