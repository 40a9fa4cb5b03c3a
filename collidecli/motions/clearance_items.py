"""What has a least distance in a model in motion: each pair, each body, or all pairs together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from collidecli.analysis.touch_intervals import Names, PairKeys
from collidecli.errors import InputError
from collidecli.motions.object_distances import (
    object_pairs,
    pairs_of_two_objects,
)
from collidecli.scene.allowed_pairs import allowed_blocks, pair_lengths
from collidecli.scene.chosen_pairs import without_triggers
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.particles import Particles
from collidecli.scene.patterns import NamedItems, Sides, pairs_of_patterns
from collidecli.scene.shape_types import ShapeType
from collidecli.wording import plural


@dataclass(frozen=True)
class Items:
    """What has a least distance: each pair, each body, or all pairs together; by name over all
    templates.

    pair: int32[K, 2], rows of shapes; that of a particle object is behind those of the shapes.
    margin: float64[K], sum of both margins [m]. in_template: bool[K, T], whether the worlds of a
    template have the pair. first, second: names of each item; second is "" for a body. of_pair:
    int64[n] and int64[n], items and their pairs, ordered by item. pair_count: pairs of names.
    """

    pair: np.ndarray
    margin: np.ndarray
    in_template: np.ndarray
    first: tuple[str, ...]
    second: tuple[str, ...]
    of_pair: tuple[np.ndarray, np.ndarray]
    pair_count: int

    def __len__(self) -> int:
        return len(self.first)

    def only(self, items: np.ndarray) -> Items:
        """Some items, ascending, and their pairs."""
        item, pair = self.of_pair
        is_kept = np.isin(item, items)
        rows = distinct(pair[is_kept])
        first, second = (
            tuple(names[k] for k in items.tolist()) for names in (self.first, self.second)
        )
        of_pair = np.searchsorted(items, item[is_kept]), np.searchsorted(rows, pair[is_kept])
        return Items(
            self.pair[rows],
            self.margin[rows],
            self.in_template[rows],
            first,
            second,
            of_pair,
            len(items),
        )

    @cached_property
    def own(self) -> np.ndarray | None:
        """int64[T, I]: the pair of each item in each template, -1 for none; None if an item has
        several in one."""
        item, pair = self.of_pair
        pairs = np.full((self.in_template.shape[1], len(self)), -1)
        for template, own in enumerate(pairs):
            in_use = self.in_template[pair, template]
            own[item[in_use]] = pair[in_use]
            if in_use.sum() > (own >= 0).sum():
                return None
        return pairs

    def least(self, values: np.ndarray) -> np.ndarray:
        """float64[I]: the least of the values [K] of each item's pairs."""
        item, pair = self.of_pair
        return np.minimum.reduceat(values[pair], np.flatnonzero(np.diff(item, prepend=-1)))


def _selected_pairs(
    model: Model, between: Sequence[str], with_objects: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int32[K, 2]: the selected pairs that may touch, without two planes, first those of shapes and
    then those with particle objects; bool[K, T]: whether a template has them; and bool[K, S]: those
    of each of S selections, one without `between`."""
    templates = range(int(model.world_template.max()) + 1)
    objects = model.particles.path if with_objects else ()
    sides = _sides(model, between, objects)
    of_shapes = [_of_selections(_blocks_of_shapes(model, one), sides) for one in templates]
    of_objects = [np.zeros((0, 2), np.int32)] * len(of_shapes)
    if with_objects:
        kinds = zip(object_pairs(model), pairs_of_two_objects(model), strict=True)
        of_objects = [_of_selections(pairs, sides) for pairs in kinds]
    pairs, in_template = zip(_once(of_shapes), _once(of_objects), strict=True)
    pair = np.concatenate(pairs)
    selected = np.ones((len(pair), 1), bool)
    if sides:
        selected = np.stack([each.of_pairs(*pair.T) for each in sides], axis=1)
    return pair, np.concatenate(in_template), selected


def _sides(model: Model, between: Sequence[str], objects: tuple[str, ...]) -> list[Sides]:
    """Which shapes and particle objects each pair of patterns selects."""
    if not between:
        return []
    given = pairs_of_patterns(between)
    for number, pair in enumerate(given):
        if pair in given[:number]:
            raise InputError(f"'{','.join(pair)}' is given twice", "--between", "give it once")
    paths = (*model.shapes.path, *objects)
    body = np.append(model.shapes.body, np.full(len(objects), STATIC_BODY))
    what = "shape, particle object" if objects else "shape"
    items = NamedItems(paths, body, model.bodies.path, f"{what} and no body")
    return items.pairs_of_sides(between, "--between")


def _blocks_of_shapes(model: Model, template: int) -> Iterator[np.ndarray]:
    """int32[n, 2]: the pairs of shapes that may touch, without two planes."""
    is_plane = model.shapes.type == ShapeType.PLANE
    for pair in allowed_blocks(model, template):
        yield pair[~(is_plane[pair[:, 0]] & is_plane[pair[:, 1]])]


def _of_selections(blocks: Iterable[np.ndarray], sides: Sequence[Sides]) -> np.ndarray:
    """int32[n, 2]: the pairs that are of any selection, all without one."""
    kept = [np.zeros((0, 2), np.int32)]
    for pair in blocks:
        if sides:
            kept.append(pair[np.any([each.of_pairs(*pair.T) for each in sides], axis=0)])
        else:
            kept.append(pair)
    return np.concatenate(kept)


def _once(of_template: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of all templates in ascending order, and bool[K, T] of which templates they are."""
    if len(of_template) == 1 and _ascends(of_template[0]):
        return of_template[0], np.ones((len(of_template[0]), 1), bool)
    every = distinct(np.concatenate(of_template), axis=0).astype(np.int32)
    keys = _keys(every)
    in_template = np.zeros((len(every), len(of_template)), bool)
    for template, pairs in enumerate(of_template):
        in_template[np.searchsorted(keys, _keys(pairs)), template] = True
    return every, in_template


def _ascends(pair: np.ndarray) -> bool:
    keys = _keys(pair)
    return bool((keys[1:] > keys[:-1]).all())


def _keys(pair: np.ndarray) -> np.ndarray:
    return pair[:, 0].astype(np.int64) << 32 | pair[:, 1]


def _refuse_no_pair(model: Model, between: Sequence[str]) -> NoReturn:
    """Raises InputError for a model of which no pair is left; names its triggers where each of the
    pairs has one."""
    kinds = "shapes or particle objects" if len(model.particles) else "shapes"
    what = f"no pair of {kinds} may touch" + (
        " of which one is in each selection" if between else ""
    )
    where = "--between" if between else "the scene"
    entered = len(_selected_pairs(model, between, False)[0]) if model.shapes.is_trigger.any() else 0
    if not entered:
        raise InputError(what, where, "collide inspect lists the shapes and filters")
    pairs = "the only one" if entered == 1 else f"each of the {plural(entered, 'pair')}"
    raise InputError(
        f"{what} without a trigger: {pairs} that may has one, and triggers are left out",
        where,
        "mark fewer shapes with --triggers, or use collide run and events, which list who enters",
    )


def selected_items(
    model: Model, by: str, between: Sequence[str], with_objects: bool = False
) -> Items:
    """The items of a model, without its triggers. by: one of CLEARANCE_THINGS. between: two
    patterns of shapes or bodies for each selection, or none; "all" has an item for each selection.
    with_objects: with pairs of particle objects, each of which is an item by itself as a static
    shape is.

    Raises InputError for a pattern without a match, and where no pair is left
    for a selection.
    """
    with_all = model
    model = without_triggers(model)
    pair, in_template, selected = _selected_pairs(model, between, with_objects)
    for number in np.flatnonzero(~selected.any(axis=0)).tolist():
        _refuse_no_pair(with_all, between[2 * number : 2 * number + 2])
    objects = ParticleObjects.of_scene(model.particles if with_objects else Particles())
    names = Names.with_objects(model.shapes.path, model.shapes.template, objects)
    one, other = names.pair(*pair.T.astype(np.int64))
    named, at, item = np.unique(
        one * len(names.row) + other, return_index=True, return_inverse=True
    )
    if by == "pair":
        first, second = (
            tuple(names.text[row] for row in side[at].tolist()) for side in (one, other)
        )
        order = np.argsort(item, kind="stable")
        of_pair = item[order], order
    elif by == "all":
        first = tuple(between[::2]) or ("*",)
        second = tuple(between[1::2]) or ("*",)
        selection, row = np.nonzero(selected.T)
        of_pair = selection, row
    else:
        shapes = model.shapes
        sides = np.tile(np.arange(len(pair)), 2)
        owners = PairKeys.of_bodies(model.bodies.path, shapes.path, shapes.body, 1)
        owners = owners.with_more(objects.path, objects.kind, 1)
        owners = owners.by_name(np.concatenate([shapes.template, objects.template]))
        rows, item = np.unique(owners.number[pair], return_inverse=True)
        every = distinct(np.stack([item.reshape(-1, 2).T.reshape(-1), sides], axis=1), axis=0)
        first = tuple(owners.paths[k] for k in rows.tolist())
        second = ("",) * len(rows)
        of_pair = every[:, 0], every[:, 1]
    is_object = pair[:, 1] >= len(model.shapes)
    margin = np.zeros(len(pair))
    margin[~is_object] = pair_lengths(model, pair[~is_object], "margin")
    has_shape = is_object & (pair[:, 0] < len(model.shapes))
    margin[has_shape] = model.shapes.margin[pair[has_shape, 0]]
    return Items(
        pair,
        margin,
        in_template,
        first,
        second,
        of_pair,
        len(named),
    )
