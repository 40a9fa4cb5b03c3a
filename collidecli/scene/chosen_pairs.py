"""Pairs that a user chooses in addition to, or in place of, the filters of a scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.distinct_values import distinct
from collidecli.scene.filter_lowering import (
    checked_class_count,
    numbered_classes,
    same_body_pairs,
)
from collidecli.scene.filter_rules import (
    ALLOWED,
    FilterClass,
    RuleContext,
    first_forbidding,
    matched_pairs,
)
from collidecli.scene.materials import PairMaterials
from collidecli.scene.mixing import pair_rows
from collidecli.scene.model import STATIC_BODY, Model, PairFilter
from collidecli.scene.particle_filter import tables_of_objects
from collidecli.scene.particles import Particles
from collidecli.scene.patterns import NamedItems, Sides
from collidecli.scene.records import may_share_world
from collidecli.scene.shape_types import ShapeType
from collidecli.wording import plural

Key = TypeVar("Key", bound=tuple)
PatternPairs = Sequence[tuple[str, str]]


def scene_items(model: Model, shape_bodies: Sequence[str]) -> NamedItems:
    """The shapes of a model, then its particle objects, for patterns of paths.

    shape_bodies: path of the body of each shape, also of one that is fixed to the world; "" for
    none.
    """
    objects = model.particles.path
    row_of = {path: row for row, path in enumerate(dict.fromkeys(filter(None, shape_bodies)))}
    body = np.array([row_of.get(path, -1) for path in shape_bodies] + [-1] * len(objects), np.int64)
    what = "shape, particle object or body" if objects else "shape or body"
    return NamedItems((*model.shapes.path, *objects), body, tuple(row_of), f"{what} of the scene")


def narrowed(
    model: Model, items: NamedItems, include: PatternPairs, exclude: PatternPairs
) -> Model:
    """The model in which only pairs that match a pair of patterns of `include` may touch, and none
    that matches one of `exclude`.

    items: those of `scene_items`. What the model filters stays filtered; a forced pair that is left
    out is no longer forced. Without `include` every pair matches. A pair of a shape and a particle
    object is filtered too, one of two particle objects is not. Raises InputError for a pattern
    without a match.
    """
    if not include and not exclude:
        return model
    included = [items.sides(pair, "--include") for pair in include]
    excluded = [items.sides(pair, "--exclude") for pair in exclude]
    context = replace(
        model.pair_filter.context,
        include=tuple(map(",".join, include)),
        exclude=tuple(map(",".join, exclude)),
    )
    shape_count = len(model.shapes)
    of_shapes = [_pattern_sides(sides, range(shape_count)) for sides in (included, excluded)]
    model = replace(model, pair_filter=_with_patterns(model.pair_filter, context, *of_shapes))
    forced = model.pair_filter.forced
    kept = _is_kept(included, excluded, *forced.T)
    model = with_forced_pairs(model, forced[kept])
    if not len(model.particles.path):
        return model
    objects = range(shape_count, shape_count + len(model.particles.path))
    of_objects = [_pattern_sides(sides, objects) for sides in (included, excluded)]
    particles = _filtered_particles(model.particles, context, of_shapes, of_objects)
    return replace(model, particles=particles)


def with_triggers(model: Model, items: NamedItems, patterns: Sequence[str]) -> Model:
    """The model with the shapes that match a pattern as triggers, beside those that are some.

    items: those of `scene_items`. Two triggers do not touch. Raises InputError for a pattern
    without a match, and for one that matches particles.
    """
    if not patterns:
        return model
    shape_count = len(model.shapes)
    matched = items.matching(patterns, "--triggers")
    if matched[shape_count:].any():
        path = items.path[shape_count + int(np.argmax(matched[shape_count:]))]
        what = f"{', '.join(patterns)} matches '{path}', and particles are no volume"
        raise InputError(what, "--triggers", "name shapes")
    trigger = model.shapes.is_trigger | matched[:shape_count]
    pair_filter = model.pair_filter
    known = pair_filter.classes or (FilterClass(),) * len(pair_filter.class_table)
    keys = list(zip(pair_filter.shape_class.tolist(), trigger.tolist(), strict=True))
    model = replace(model, shapes=replace(model.shapes, trigger=trigger))
    changed = _divided(
        pair_filter, keys, lambda key: replace(known[key[0]], trigger=key[1]), pair_filter.context
    )
    model = replace(model, pair_filter=changed)
    forced = pair_filter.forced
    return with_forced_pairs(model, forced[~trigger[forced].all(axis=1)])


def without_triggers(model: Model) -> Model:
    """The model in which triggers touch nothing; the model itself without triggers."""
    trigger = model.shapes.is_trigger
    if not trigger.any():
        return model
    pair_filter = model.pair_filter
    known = pair_filter.classes or (FilterClass(),) * len(pair_filter.class_table)
    keys = list(zip(pair_filter.shape_class.tolist(), trigger.tolist(), strict=True))

    def disabled(key: tuple[int, bool]) -> FilterClass:
        return replace(known[key[0]], disabled="trigger") if key[1] else known[key[0]]

    changed = _divided(pair_filter, keys, disabled, pair_filter.context)
    forced = pair_filter.forced
    model = replace(model, pair_filter=changed)
    return with_forced_pairs(model, forced[~trigger[forced].any(axis=1)])


def trigger_notes(trigger: np.ndarray) -> list[str]:
    """The warning of a result that leaves out the triggers, bool[S]; empty without any."""
    count = int(trigger.sum())
    if not count:
        return []
    verb = "is" if count == 1 else "are"
    return [f"{plural(count, 'trigger')} {verb} left out: collide events lists what enters them"]


def with_forced_pairs(model: Model, pairs: np.ndarray) -> Model:
    """The model with these forced pairs, int[K, 2], in place of its own, whose gap, margin and
    material they keep."""
    pairs = np.asarray(pairs, np.int32).reshape(-1, 2)
    old = model.pair_filter.forced
    at = pair_rows(old, len(model.shapes), *pairs.T.astype(np.int64))

    def taken(values: np.ndarray, missing: float) -> np.ndarray:
        if not len(values):
            return values
        own = values[at]
        own[at < 0] = missing
        return own

    material = {
        column.name: taken(
            getattr(model.forced_material, column.name), 0 if column.name == "condim" else np.nan
        )
        for column in fields(PairMaterials)
    }
    lengths = {
        name: taken(values, np.nan) if len(values) else np.full(len(pairs), np.nan)
        for name, values in (
            ("forced_gap", model.forced_gap),
            ("forced_margin", model.forced_margin),
        )
    }
    return replace(
        model,
        pair_filter=replace(model.pair_filter, forced=pairs),
        forced_material=PairMaterials(**material),
        **lengths,
    )


def of_listed_pairs(
    model: Model, items: NamedItems, listed: Mapping[str, tuple[str, str]], source: str
) -> Model:
    """The model in which exactly the listed pairs of shapes may touch, whatever its own filters.

    items: those of `scene_items`. listed: pairs of patterns by their place in the file, for
    messages. source: the file. Two planes, two triggers, shapes of one body and, unless static
    pairs may touch, two static shapes are no pair. Raises InputError for a pattern without a
    match.
    """
    matched: dict[str, np.ndarray] = {}
    blocks = [np.zeros((0, 2), np.int64)]
    shape_count = len(model.shapes)
    for place, pair in listed.items():
        for pattern in pair:
            if pattern not in matched:
                matched[pattern] = items.matching([pattern], place)
        a, b = (np.flatnonzero(matched[pattern][:shape_count]) for pattern in pair)
        blocks.append(np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2))
    pairs = np.sort(np.concatenate(blocks), axis=1)
    pairs = pairs[_may_be_listed(model, pairs)]
    pairs = distinct(pairs, axis=0)
    model = with_forced_pairs(model, pairs)
    classes = (FilterClass(),)
    context = RuleContext(model.pair_filter.context.static_pairs, pairs_file=source)
    pair_filter = replace(
        model.pair_filter,
        shape_class=np.zeros(shape_count, np.int32),
        class_table=first_forbidding(classes, context) == ALLOWED,
        excluded=np.zeros((0, 2), np.int32),
        excluded_rule=(),
        classes=classes,
        context=context,
    )
    if not len(model.particles.path):
        return replace(model, pair_filter=pair_filter)
    sides = [Sides(matched[a], matched[b]) for a, b in listed.values()]
    return replace(
        model, pair_filter=pair_filter, particles=_listed_particles(model.particles, sides)
    )


def of_disabled_pairs(
    model: Model, disabled: Mapping[tuple[int, int], str], group: Sequence[int] | None = None
) -> Model:
    """The model in which every pair of shapes may touch but the disabled ones, whatever its own
    filters.

    disabled: pairs of rows, first < second, each with its rule. Two planes, shapes of one body and,
    unless static pairs may touch, two static shapes are no pair. No pair is forced. group: number
    above 0 of each shape, which then touches only shapes of its number; one of number 0 touches
    none.
    """
    pair_filter = model.pair_filter
    given = []
    for row, number in enumerate(pair_filter.shape_class.tolist()):
        known = pair_filter.classes[number]
        own = 1 if group is None else int(group[row])
        given.append(
            FilterClass(
                plane=known.plane,
                static=known.static,
                large_body=known.large_body,
                trigger=known.trigger,
                group=own,
            )
        )
    classes, shape_class = numbered_classes(given)
    context = RuleContext(pair_filter.context.static_pairs)
    table = first_forbidding(classes, context) == ALLOWED
    rules = dict.fromkeys(map(tuple, same_body_pairs(model.shapes.body).tolist()), "same body")
    rules = {**disabled, **rules}
    pairs = np.array(sorted(rules), np.int32).reshape(-1, 2)
    a, b = pairs.T
    template = model.shapes.template
    kept = may_share_world(template[a], template[b]) & table[shape_class[a], shape_class[b]]
    pairs = pairs[kept]
    pair_filter = replace(
        pair_filter,
        shape_class=shape_class,
        class_table=table,
        excluded=pairs,
        excluded_rule=tuple(rules[a, b] for a, b in pairs.tolist()),
        classes=classes,
        context=context,
    )
    return with_forced_pairs(replace(model, pair_filter=pair_filter), np.zeros((0, 2), np.int32))


def _may_be_listed(model: Model, pairs: np.ndarray) -> np.ndarray:
    """bool[n]: pairs of two shapes, int[n, 2], that a list can contain."""
    shapes = model.shapes
    a, b = pairs.T
    body_a = shapes.body[a]
    body_b = shapes.body[b]
    both_planes = (shapes.type[pairs] == ShapeType.PLANE).all(axis=1)
    both_static = (body_a == STATIC_BODY) & (body_b == STATIC_BODY)
    on_one_body = (body_a == body_b) & ~both_static
    if not model.pair_filter.context.static_pairs:
        on_one_body |= both_static
    share = may_share_world(shapes.template[a], shapes.template[b])
    both_triggers = shapes.is_trigger[pairs].all(axis=1)
    return (a != b) & share & ~both_planes & ~both_triggers & ~on_one_body


def _pattern_sides(sides: Sequence[Sides], rows: Sequence[int]) -> list[Any]:
    """The numbers of the patterns that each row matches, as `FilterClass.included`."""
    return [
        tuple(
            frozenset(number for number, side in enumerate(sides) if side[which][row])
            for which in (0, 1)
        )
        for row in rows
    ]


def _is_kept(
    included: Sequence[Sides], excluded: Sequence[Sides], a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """bool[n]: whether pairs of rows match a member of `included`, if there is one, and none of
    `excluded`."""
    kept = np.full(len(a), not included)
    for sides in included:
        kept |= sides.of_pairs(a, b)
    for sides in excluded:
        kept &= ~sides.of_pairs(a, b)
    return kept


def _with_patterns(
    pair_filter: PairFilter, context: RuleContext, included: list[Any], excluded: list[Any]
) -> PairFilter:
    """The filter with a class for each combination of a former class and the matched patterns."""
    old = pair_filter.shape_class.tolist()
    keys = list(zip(old, included, excluded, strict=True))
    known = pair_filter.classes or (FilterClass(),) * len(pair_filter.class_table)
    return _divided(
        pair_filter,
        keys,
        lambda key: replace(known[key[0]], included=key[1], excluded=key[2]),
        context,
    )


def _divided(
    pair_filter: PairFilter,
    keys: Sequence[Key],
    class_of: Callable[[Key], FilterClass],
    context: RuleContext,
) -> PairFilter:
    """The filter with a class for each distinct key, of which the first member is the former class.

    keys: of each shape. class_of: the attributes of a class by its key. What the filter forbids
    stays forbidden.
    """
    distinct, shape_class = numbered_classes(keys)
    checked_class_count(len(distinct))
    classes = tuple(map(class_of, distinct))
    old_rows = np.array([key[0] for key in distinct], np.int64)
    table = pair_filter.class_table[old_rows[:, None], old_rows]
    table = table & (first_forbidding(classes, context) == ALLOWED)
    a, b = pair_filter.excluded.T
    kept = table[shape_class[a], shape_class[b]]
    return replace(
        pair_filter,
        shape_class=shape_class,
        class_table=table,
        excluded=pair_filter.excluded[kept],
        excluded_rule=tuple(
            rule for rule, keep in zip(pair_filter.excluded_rule, kept, strict=True) if keep
        ),
        classes=classes if pair_filter.classes else (),
        context=context,
    )


def _filtered_particles(
    particles: Particles, context: RuleContext, of_shapes: list[Any], of_objects: list[Any]
) -> Particles:
    """The particles with classes for each combination of a former class and the matched
    patterns."""
    shapes, shape_class = numbered_classes(
        list(zip(particles.shape_class.tolist(), *of_shapes, strict=True))
    )
    objects, object_class = numbered_classes(
        list(zip(particles.object_class.tolist(), *of_objects, strict=True))
    )
    allowed = np.ones((len(objects) + len(shapes),) * 2, bool)
    if context.include:
        allowed &= matched_pairs([key[1] for key in (*objects, *shapes)], len(context.include))
    allowed &= ~matched_pairs([key[2] for key in (*objects, *shapes)], len(context.exclude))
    old_objects, old_shapes = ([key[0] for key in classes] for classes in (objects, shapes))
    chosen = tables_of_objects(allowed, len(objects))
    chosen["class_table"] &= particles.class_table[np.ix_(old_objects, old_shapes)]
    chosen["object_table"] &= particles.object_table[np.ix_(old_objects, old_objects)]
    return replace(particles, object_class=object_class, shape_class=shape_class, **chosen)


def _listed_particles(particles: Particles, sides: Sequence[Sides]) -> Particles:
    """The particles of which exactly the listed pairs, of an object and a shape or of two objects,
    may touch."""
    shape_count = len(particles.shape_class)
    count = shape_count + len(particles.path)
    everything = [
        _pattern_sides(sides, rows) for rows in (range(shape_count, count), range(shape_count))
    ]
    (objects, object_class), (shapes, shape_class) = map(numbered_classes, everything)
    table = matched_pairs([*objects, *shapes], len(sides))
    tables = tables_of_objects(table, len(objects))
    return replace(particles, object_class=object_class, shape_class=shape_class, **tables)
