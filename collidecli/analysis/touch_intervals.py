"""Merging of touches of pairs, frame by frame, to intervals, a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from collidecli.analysis.touch_graph import Rows
from collidecli.errors import InputError
from collidecli.scene.episodes import Episodes
from collidecli.scene.particle_objects import ParticleObjects


@dataclass(frozen=True)
class Frames:
    """The selected frames, in order. number: int64[K], frames of the contact set. time: float64[K]
    [s].

    episodes: in the selected frames, or None.
    """

    number: np.ndarray
    time: np.ndarray
    episodes: Episodes | None = None

    def __len__(self) -> int:
        return len(self.number)

    def borders(self, world: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """int64[n]: first frame of each cell's episode, and the frame after its last, as indices.

        Without episodes, and for a cell outside every episode, those of all frames.
        """
        begin = np.zeros(len(frame), np.int64)
        end = np.full(len(frame), len(self), np.int64)
        if self.episodes is not None:
            row = self.episodes.row(world, frame)
            known = row >= 0
            row = row[row >= 0]
            begin[known] = self.episodes.first_frame[row]
            end[known] = self.episodes.end_frame[row]
        return begin, end


@dataclass(frozen=True)
class MergeGap:
    """The longest pause within an interval. frames: without touch. seconds: from a touch to the
    next, or None.

    With `seconds`, touches in consecutive frames are one interval whatever their times.
    """

    frames: int = 0
    seconds: float | None = None

    def bridged(
        self, last: np.ndarray | int, following: np.ndarray | int, time: np.ndarray
    ) -> np.ndarray:
        """bool: whether a touch in frame index `following` continues one that ended in frame index
        `last`."""
        pause = np.asarray(following) - last - 1
        if self.seconds is None:
            return pause <= self.frames
        # 0.35 - 0.3 exceeds 0.05 by the rounding of the two times.
        rounding = 2 * np.finfo(np.float64).eps * np.abs(time[following])
        return (pause <= 0) | (time[following] - time[last] <= self.seconds + rounding)


@dataclass(frozen=True)
class Intervals(Rows):
    """Intervals of touching pairs; arrays of one length. Frames are indices into `Frames`.

    key: int64, world and pair, see `PairKeys`. first, last: int64, frames with touch. touching:
    int64, number of frames with touch. pauses: int64, bridged pauses. contacts: int64, total. most:
    int64, contacts of one frame. distance: float32, the least [m]. deepest: int64, the first frame
    with it. begin, end: int64, the first frame of the episode and the frame after its last, which
    no interval crosses.
    """

    DTYPES: ClassVar = {"distance": np.float32}

    key: np.ndarray
    first: np.ndarray
    last: np.ndarray
    touching: np.ndarray
    pauses: np.ndarray
    contacts: np.ndarray
    most: np.ndarray
    distance: np.ndarray
    deepest: np.ndarray
    begin: np.ndarray
    end: np.ndarray


NO_END = np.iinfo(np.int64).max


def touches(key: np.ndarray, frame: np.ndarray, distance: np.ndarray) -> Intervals:
    """One interval of one frame for each touching pair of the frame, from contacts in the order of
    cells.

    key, frame: int64[n]. distance: float32[n]. The result is ordered by key, then frame; its
    episodes have no borders.
    """
    contacts = np.ones(len(key), np.int64)
    # Rows of a pair are contiguous in a contact set. A first sum reduces the rows to sort; the sum
    # after the sort merges keys of bodies, whose shapes are several pairs.
    key, frame, contacts, distance = _summed(key, frame, contacts, distance)
    order = np.argsort(key, kind="stable")
    key, frame, contacts, distance = _summed(
        key[order], frame[order], contacts[order], distance[order]
    )
    ones = np.ones(len(key), np.int64)
    none = np.zeros(len(key), np.int64)
    return Intervals(
        key, frame, frame, ones, none, contacts, contacts, distance, frame, none, none + NO_END
    )


def _summed(
    key: np.ndarray, frame: np.ndarray, contacts: np.ndarray, distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Adjacent rows of one key and frame merged: the sum of contacts, the least distance."""
    new = np.concatenate([[True], (key[1:] != key[:-1]) | (frame[1:] != frame[:-1])])[: len(key)]
    start = np.flatnonzero(new)
    if len(start) == len(key):
        return key, frame, contacts, distance
    return (
        key[start],
        frame[start],
        np.add.reduceat(contacts, start),
        np.minimum.reduceat(distance, start),
    )


def joined(intervals: Intervals, gap: MergeGap, time: np.ndarray) -> Intervals:
    """Intervals of one key merged over bridged pauses. Argument and result are ordered by key, then
    frame."""
    if not len(intervals):
        return intervals
    pause = intervals.first[1:] - intervals.last[:-1] - 1
    follows = (intervals.key[1:] == intervals.key[:-1]) & gap.bridged(
        intervals.last[:-1], intervals.first[1:], time
    )
    follows &= intervals.first[1:] < intervals.end[:-1]
    new = np.concatenate([[True], ~follows])
    start = np.flatnonzero(new)
    number = np.cumsum(new) - 1
    bridged = np.concatenate([[0], follows & (pause > 0)])
    distance = np.minimum.reduceat(intervals.distance, start)
    least = np.flatnonzero(intervals.distance == distance[number])
    # Rows of a key are in the order of time: the first row with the least distance has the earliest
    # frame.
    earliest = least[np.concatenate([[True], np.diff(number[least]) > 0])]
    return Intervals(
        intervals.key[start],
        intervals.first[start],
        intervals.last[np.concatenate([start[1:], [len(intervals)]]) - 1],
        np.add.reduceat(intervals.touching, start),
        np.add.reduceat(intervals.pauses + bridged, start),
        np.add.reduceat(intervals.contacts, start),
        np.maximum.reduceat(intervals.most, start),
        distance,
        intervals.deepest[earliest],
        intervals.begin[start],
        intervals.end[start],
    )


class IntervalTracker:
    """Merges touches block by block, in the order of frames; returns intervals once no later touch
    can extend them.

    Its state is the open intervals: at most one for each pair and world. The results are ordered by
    last frame, then key, independent of the blocks.
    """

    def __init__(self, frames: Frames, gap: MergeGap) -> None:
        """Raises InputError for a gap in seconds and times that are descending or not finite."""
        self._time = frames.time
        self._gap = gap
        if gap.seconds is not None and not (
            np.isfinite(frames.time).all() and (np.diff(frames.time) >= 0.0).all()
        ):
            fix = "give --merge-gap in frames"
            raise InputError(
                "the recorded times are not ascending, so pauses have no length", "--merge-gap", fix
            )
        self._open = Intervals.none()

    def add(self, block: Intervals, following: int) -> Intervals:
        """Intervals that ended. block: a result of `touches`. following: lower bound of the frames
        of later touches."""
        both = Intervals.chained(self._open, block)
        both = joined(both.take(np.argsort(both.key, kind="stable")), self._gap, self._time)
        goes_on = np.zeros(len(both), bool)
        if following < len(self._time):
            goes_on = self._gap.bridged(both.last, following, self._time) & (following < both.end)
        self._open = both.take(goes_on)
        ended = both.take(~goes_on)
        return ended.take(np.lexsort((ended.key, ended.last)))

    def finish(self) -> Intervals:
        """The remaining intervals."""
        return self.add(Intervals.none(), len(self._time))


TRIGGER = "trigger"
"""Kind of an item that is a trigger."""
RIGID = ("shape", "body")
"""Kinds of items that are not of particles."""
NO_TEMPLATE = -2
"""The template of an item without shapes, which may be in any."""


@dataclass(frozen=True)
class Names:
    """Items of several templates by name. row: int64[n], for each item the first one of its name.
    text: of each item.

    Items of one path in different templates have one name, as no world has two of them. Where a
    world has two, each is a name by itself, with its template in the text.
    """

    row: np.ndarray
    text: tuple[str, ...]

    @classmethod
    def of(cls, paths: Sequence[str], template: np.ndarray, kinds: Sequence[str] = ()) -> Names:
        """template: int[n], -1 for every world, or NO_TEMPLATE. kinds: items of two kinds have two
        names; () is one."""
        row = np.arange(len(paths))
        text = list(paths)
        if template.max(initial=-1) < 1:
            return cls(row, tuple(text))
        items: dict[tuple[str, str], list[int]] = {}
        for item, (path, kind) in enumerate(zip(paths, kinds or ("",) * len(paths), strict=True)):
            items.setdefault((path, kind), []).append(item)
        for (path, _), items_here in items.items():
            templates = template[items_here][template[items_here] > NO_TEMPLATE].tolist()
            if len(set(templates)) == len(templates) and (
                len(templates) < 2 or min(templates) >= 0
            ):
                row[items_here] = items_here[0]
                continue
            for item in items_here:
                text[item] = f"{path} (template {template[item]})" if template[item] >= 0 else path
        return cls(row, tuple(text))

    @classmethod
    def with_objects(
        cls, paths: Sequence[str], template: np.ndarray, objects: ParticleObjects
    ) -> Names:
        """Names of shapes, then of particle objects. An object with the path of a shape has its
        kind in the name. template: int[n], of the shapes."""
        every = (*paths, *objects.path)
        kinds = ("shape",) * len(paths) + objects.kind
        names = cls.of(every, np.concatenate([template, objects.template]), kinds)
        own = set(paths) if len(objects) else set()
        text = (
            f"{name} ({kind})" if kind != "shape" and name in own else name
            for name, kind in zip(names.text, kinds, strict=True)
        )
        return cls(names.row, tuple(text))

    @cached_property
    def _merges(self) -> bool:
        return bool((self.row != np.arange(len(self.row))).any())

    def pair(self, item0: np.ndarray, item1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first items of the names of pairs, the smaller first; the pairs if every item is a
        name."""
        if not self._merges:
            return item0, item1
        one = self.row[item0]
        other = self.row[item1]
        return np.minimum(one, other), np.maximum(one, other)


@dataclass(frozen=True)
class PairKeys:
    """Keys of pairs of items. paths, kinds: of the items. number: int64[n], the item of each shape,
    and of each of further rows.
    """

    paths: tuple[str, ...]
    kinds: tuple[str, ...]
    number: np.ndarray

    @classmethod
    def of_shapes(
        cls, paths: Sequence[str], worlds: int, trigger: np.ndarray | None = None
    ) -> PairKeys:
        """Keys with every shape as an item. trigger: bool[S], of the kind TRIGGER."""
        is_trigger = [False] * len(paths) if trigger is None else trigger.tolist()
        kinds = tuple(TRIGGER if entered else "shape" for entered in is_trigger)
        return cls(tuple(paths), kinds, np.arange(len(paths)))._fitting(worlds)

    @classmethod
    def of_bodies(
        cls,
        body_paths: Sequence[str],
        paths: Sequence[str],
        body: np.ndarray,
        worlds: int,
        trigger: np.ndarray | None = None,
    ) -> PairKeys:
        """Keys with bodies, static shapes (body -1) and triggers as items. body: int[S], body of
        each shape. trigger: bool[S], no parts of their bodies."""
        is_trigger = np.zeros(len(body), bool) if trigger is None else trigger
        own = np.flatnonzero((body < 0) | is_trigger)
        number = body.astype(np.int64)
        number[own] = len(body_paths) + np.arange(len(own))
        names = (*body_paths, *(paths[row] for row in own.tolist()))
        kinds = [TRIGGER if is_trigger[row] else "shape" for row in own.tolist()]
        return cls(names, ("body",) * len(body_paths) + tuple(kinds), number)._fitting(worlds)

    def with_more(self, paths: Sequence[str], kinds: Sequence[str], worlds: int) -> PairKeys:
        """Keys with further rows, each of which is an item."""
        number = np.concatenate([self.number, len(self.paths) + np.arange(len(paths))])
        return PairKeys((*self.paths, *paths), (*self.kinds, *kinds), number)._fitting(worlds)

    def by_name(self, template: np.ndarray) -> PairKeys:
        """Keys whose items are names, see `Names`. template: int[n] of each row of `number`."""
        of_item = np.full(len(self.paths), NO_TEMPLATE)
        of_item[self.number] = template
        # A body, and a static shape of its path in another template, are one name, a trigger of
        # that path and particles another each.
        names = Names.of(
            self.paths,
            of_item,
            [
                "rigid" if kind in RIGID else TRIGGER if kind == TRIGGER else ""
                for kind in self.kinds
            ],
        )
        kept, item = np.unique(names.row, return_inverse=True)
        bodies = set(item[[kind == "body" for kind in self.kinds]].tolist())
        kinds = ("body" if n in bodies else self.kinds[row] for n, row in enumerate(kept.tolist()))
        return PairKeys(
            tuple(names.text[row] for row in kept.tolist()), tuple(kinds), item[self.number]
        )

    def _fitting(self, worlds: int) -> PairKeys:
        if worlds * len(self.paths) ** 2 >= 2**63:
            raise InputError(
                f"{worlds} worlds of {len(self.paths)} shapes, bodies and particles are too many",
                "events",
            )
        return self

    def key(self, world: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        """int64: keys, ordered by world, then pair; symmetric in the two shapes."""
        one = self.number[shape0]
        other = self.number[shape1]
        return (world * len(self.paths) + np.minimum(one, other)) * len(self.paths) + np.maximum(
            one, other
        )

    def world(self, key: np.ndarray) -> np.ndarray:
        return key // max(1, len(self.paths)) ** 2

    def items(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of `paths` of the two items, the smaller first."""
        count = max(1, len(self.paths))
        return key // count % count, key % count
