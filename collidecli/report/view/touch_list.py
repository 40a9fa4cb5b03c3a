"""The pairs that touch and when: what is picked from, and the frames that it leads to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from collidecli.analysis.pair_keys import PairKeys
from collidecli.analysis.touch_intervals import Intervals
from collidecli.report.words import length

MOST_LISTED = 500
"""Pairs that are offered at a time."""


@dataclass(frozen=True)
class Touch:
    """An interval of a pair: places of frames, and the least distance [m] in place `deepest`."""

    first: int
    last: int
    deepest: int
    distance: float


@dataclass(frozen=True)
class TouchingPair:
    """shapes: rows, the smaller first. touches: in order. label: one of its own among those of its world."""

    world: int
    shapes: tuple[int, int]
    paths: tuple[str, str]
    label: str
    touches: tuple[Touch, ...]

    @property
    def deepest(self) -> Touch:
        return min(self.touches, key=lambda touch: touch.distance)


class TouchList:
    """The touching pairs of every world, deepest first. deepest: the greatest depth of all [m]."""

    def __init__(self, found: Intervals, keys: PairKeys) -> None:
        self._of_world: dict[int, list[TouchingPair]] = {}
        self.deepest = float(max(0.0, -found.distance.min(initial=0.0)))
        order = np.lexsort((found.first, found.key))
        start = np.flatnonzero(np.diff(found.key[order], prepend=-1))
        short = short_names(keys.paths)
        for rows in np.split(order, start[1:]) if len(order) else []:
            self._add(found, keys, rows, short)
        for pairs in self._of_world.values():
            pairs.sort(key=lambda pair: (pair.deepest.distance, pair.shapes))

    def _add(self, found: Intervals, keys: PairKeys, rows: np.ndarray, short: Sequence[str]) -> None:
        key = found.key[rows[:1]]
        world, (one, other) = int(keys.world(key)[0]), (int(side[0]) for side in keys.items(key))
        columns = (found.first, found.last, found.deepest, found.distance)
        touches = tuple(Touch(*numbers) for numbers in zip(*(column[rows].tolist() for column in columns), strict=True))
        least = min(touch.distance for touch in touches)
        label = f"{short[one]} × {short[other]} · {length(max(0.0, -least))}"
        pair = TouchingPair(world, (one, other), (keys.paths[one], keys.paths[other]), label, touches)
        self._of_world.setdefault(world, []).append(pair)

    def of(self, world: int, wanted: str = "") -> list[TouchingPair]:
        """Those of a world with a path that holds `wanted`, or that it is a pattern of; deepest first."""
        pairs = self._of_world.get(world, [])
        if not wanted:
            return pairs
        pattern = wanted if any(sign in wanted for sign in "*?[") else f"*{wanted}*"
        return [pair for pair in pairs if any(fnmatchcase(path, pattern) for path in pair.paths)]

    def __iter__(self) -> Iterator[TouchingPair]:
        return (pair for world in sorted(self._of_world) for pair in self._of_world[world])


def short_names(paths: Sequence[str]) -> list[str]:
    """The ends of paths, as long as they need to be to tell all apart; a path that is there twice has its row added."""
    parts = [path.strip("/").split("/") for path in paths]
    names = [""] * len(paths)
    left, size = list(range(len(paths))), 1
    while left:
        tried = {row: "/".join(parts[row][-size:]) for row in left}
        counts: dict[str, int] = {}
        for name in tried.values():
            counts[name] = counts.get(name, 0) + 1
        for row in left:
            whole = size >= len(parts[row])
            if counts[tried[row]] == 1 or whole:
                names[row] = tried[row] if counts[tried[row]] == 1 else f"{tried[row]} #{row}"
        left = [row for row in left if not names[row]]
        size += 1
    return names


def touch_label(number: int, touch: Touch, frames: np.ndarray) -> str:
    """frames: int64[K], the number of the frame in each place."""
    first, last = int(frames[touch.first]), int(frames[touch.last])
    when = f"frame {first}" if first == last else f"frames {first} to {last}"
    return f"{number}: {when}"


def pair_words(pair: TouchingPair) -> str:
    """How often a pair touches, and how deep."""
    return f"{len(pair.touches)} touch{'' if len(pair.touches) == 1 else 'es'}, {length(-pair.deepest.distance)} deep"
