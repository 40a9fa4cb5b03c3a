"""The touching pairs of each world and the frames of their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.pair_selection import EventOptions
from collidecli.analysis.touch_intervals import Intervals, PairKeys
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE
from collidecli.pages.names import short_names
from collidecli.pages.quantities import length
from collidecli.results.result import Progress
from collidecli.scene.particle_objects import OBJECT_KINDS
from collidecli.storage.contact_sets.readable_rows import is_touch_set
from collidecli.storage.contact_sets.reader import ContactSet

MAX_LISTED = 500
"""Largest number of pairs in a list."""


@dataclass(frozen=True)
class Touch:
    """An interval of a pair: frame indices, and the least distance [m], at index `deepest`;
    UNKNOWN_DISTANCE in a set of touches."""

    first: int
    last: int
    deepest: int
    distance: float


@dataclass(frozen=True)
class TouchingPair:
    """A pair of shapes, of a shape and a particle object, or of particle objects, and its intervals
    in order.

    shapes: its items (`TouchingItems`), sorted. name: of both, shortened. has_shape: whether one is
    a shape.
    """

    world: int
    shapes: tuple[int, int]
    paths: tuple[str, str]
    name: str
    touches: tuple[Touch, ...]
    has_shape: bool

    @property
    def deepest(self) -> Touch:
        """The interval with the least distance."""
        return min(self.touches, key=lambda touch: touch.distance)

    @property
    def has_depth(self) -> bool:
        """Whether a distance is known; it is not in a set of touches."""
        return self.deepest.distance != UNKNOWN_DISTANCE

    @property
    def label(self) -> str:
        """The name, and the depth if it is known; the distance of what touches at one."""
        if not self.has_depth:
            return self.name
        distance = self.deepest.distance
        return f"{self.name} · {length(abs(distance))}{' apart' if distance > 0.0 else ''}"


class TouchList:
    """The touching pairs of every world, deepest first. deepest: greatest depth of the pairs with a
    shape [m]. has_depths: whether any is known."""

    def __init__(self, intervals: Intervals, keys: PairKeys) -> None:
        self._of_world: dict[int, list[TouchingPair]] = {}
        order = np.lexsort((intervals.first, intervals.key))
        start = np.flatnonzero(np.diff(intervals.key[order], prepend=-1))
        short = short_names(keys.paths)
        for rows in np.split(order, start[1:]) if len(order) else []:
            self._add(intervals, keys, rows, short)
        for pairs in self._of_world.values():
            pairs.sort(key=lambda pair: (pair.deepest.distance, pair.shapes))
        distances = (pair.deepest.distance for pair in self if pair.has_shape)
        self.deepest = -min(0.0, min(distances, default=0.0))

    def _add(
        self, intervals: Intervals, keys: PairKeys, rows: np.ndarray, short: Sequence[str]
    ) -> None:
        key = intervals.key[rows[:1]]
        world = int(keys.world(key)[0])
        first, second = (int(side[0]) for side in keys.items(key))
        columns = (intervals.first, intervals.last, intervals.deepest, intervals.distance)
        touches = tuple(
            Touch(*numbers)
            for numbers in zip(*(column[rows].tolist() for column in columns), strict=True)
        )
        name = f"{short[first]} × {short[second]}"
        paths = keys.paths[first], keys.paths[second]
        has_shape = keys.kinds[first] not in OBJECT_KINDS
        pair = TouchingPair(world, (first, second), paths, name, touches, has_shape)
        self._of_world.setdefault(world, []).append(pair)

    def add_missing(self, other: TouchList) -> None:
        """Adds the pairs of another list that this one lacks, but for those of particle objects
        alone, which are not drawn of a second set."""
        for world, pairs in other._of_world.items():
            known = {pair.shapes for pair in self.of(world)}
            listed = self._of_world.setdefault(world, [])
            listed += [pair for pair in pairs if pair.shapes not in known and pair.has_shape]
            listed.sort(key=lambda pair: (pair.deepest.distance, pair.shapes))
        self.deepest = max(self.deepest, other.deepest)

    @property
    def has_depths(self) -> bool:
        return any(pair.has_depth for pair in self)

    def of(self, world: int) -> list[TouchingPair]:
        """Pairs of a world, deepest first."""
        return self._of_world.get(world, [])

    def __iter__(self) -> Iterator[TouchingPair]:
        return (pair for world in sorted(self._of_world) for pair in self._of_world[world])


def touch_label(number: int, touch: Touch, frames: np.ndarray) -> str:
    """Label of an interval: its number and frames. frames: int64[K], frame number of each index."""
    first = int(frames[touch.first])
    last = int(frames[touch.last])
    when = f"frame {first}" if first == last else f"frames {first} to {last}"
    return f"{number}: {when}"


def pair_words(pair: TouchingPair) -> str:
    """Number of intervals of a pair, and its depth if it is known, as text."""
    words = f"{len(pair.touches)} touch{'' if len(pair.touches) == 1 else 'es'}"
    if not pair.has_depth:
        return words
    distance = pair.deepest.distance
    return f"{words}, {length(abs(distance))} {'apart' if distance > 0.0 else 'deep'}"


def touches_of(
    sets: Sequence[ContactSet], frames: str = "", progress: Progress = None
) -> TouchList:
    """The touching pairs of contact sets of the same cells; intervals of a pair are those of the
    first set with it.

    Pairs are those of `collide events`: of shapes, and of particle objects with shapes and with
    each other. The pairs of a set of touches are those nearer than their gap.
    """
    lists = []
    for contacts in sets:
        threshold = math.inf if is_touch_set(contacts) else 0.0
        options = EventOptions(threshold, frames=frames, by_name=False)
        stream = EventStream(contacts, options)
        lists.append(TouchList(Intervals.chained(*stream.batches(progress)), stream.keys))
    for other in lists[1:]:
        lists[0].add_missing(other)
    return lists[0]
