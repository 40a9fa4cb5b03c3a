"""The filter of pairs with particles: of a shape and an object, and of two objects."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from collidecli.scene.filter_rules import ALLOWED, FilterClass, RuleContext, first_forbidding
from collidecli.scene.particles import DeformableRecord
from collidecli.scene.records import SceneRecords, ShapeRecord
from collidecli.scene.shape_config import mask_bits, resolved_mask_both


def particle_filter(records: SceneRecords) -> dict[str, np.ndarray]:
    """The arrays `object_class`, `shape_class`, `class_table` and `object_table` of `Particles`.

    Signed groups, masks and UsdPhysics groups apply as to two shapes. `has_shape_collision`,
    bodies, joints and articulations do not: particles have no body.
    """
    filtered = {pair for a, b in records.usd_filtered for pair in ((a, b), (b, a))}
    objects = [
        class_of_shape(record, False, "has_particle_collision") for record in records.deformables
    ]
    shapes = [
        class_of_shape(shape, shape.body < 0, "has_particle_collision") for shape in records.shapes
    ]
    (objects, object_class), (shapes, shape_class) = map(numbered_classes, (objects, shapes))
    table = first_forbidding((*objects, *shapes), RuleContext(True, frozenset(filtered))) == ALLOWED
    return {
        "object_class": object_class,
        "shape_class": shape_class,
        **tables_of_objects(table, len(objects)),
    }


def tables_of_objects(table: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """The arrays `class_table` and `object_table` of `Particles`, from bool[n, n] of `count`
    classes of objects, then those of shapes."""
    of_objects, of_shapes = np.split(table[:count], [count], axis=1)
    return {
        "class_table": np.ascontiguousarray(of_shapes),
        "object_table": np.ascontiguousarray(of_objects),
    }


Class = TypeVar("Class", bound=Hashable)


def numbered_classes(given: Sequence[Class]) -> tuple[tuple[Class, ...], np.ndarray]:
    """The distinct classes in the order of first use, and the class of each."""
    number = {value: index for index, value in enumerate(dict.fromkeys(given))}
    return tuple(number), np.array([number[value] for value in given], np.int32)


def class_of_shape(
    record: DeformableRecord | ShapeRecord, is_static: bool, enabled: str, **further: Any
) -> FilterClass:
    """enabled: the attribute that is False for what collides with nothing."""
    cfg = record.cfg
    either = record.cfg.mask_either
    disabled = "" if cfg.disabled_rule is None else cfg.disabled_rule or "disabled"
    if not getattr(cfg, enabled):
        disabled = disabled or f"{enabled} = False"
    return FilterClass(
        disabled=disabled or ("group 0" if cfg.collision_group == 0 else ""),
        group=int(cfg.collision_group),
        mask_either=None if either is None else (mask_bits(either[0]), mask_bits(either[1])),
        mask_both=resolved_mask_both(cfg, is_static),
        usd_groups=frozenset((record.scope, name) for name in cfg.usd_groups or ()),
        trigger=cfg.is_trigger,
        **further,
    )
