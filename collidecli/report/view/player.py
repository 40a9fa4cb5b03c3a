"""Playback: a thread that draws the frame requested last, and further frames while it plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from collidecli.analysis.touches import Intervals, PairKeys
from collidecli.report.tables import length, short_names
from collidecli.report.view.framing import Frames, first_look
from collidecli.report.view.stage import Stage

MAX_RATE = 30.0
"""Largest number of frames per second; a motion with a higher frame rate is shown with skipped frames."""


class Player:
    """Playback of a motion. index, world, look: requested frame, world and drawing options.

    playing: whether it plays. speed: seconds of the motion per second. shown(index): called by the thread after every
    frame. failure: the exception that ended the thread.
    """

    def __init__(self, frames: Frames, stage: Stage, shown: Callable[[int], None]) -> None:
        self.index, self.world, self.look = 0, 0, first_look(frames.surface_scale is not None)
        self.playing, self.speed = False, 1.0
        self.failure: BaseException | None = None
        self._frames, self._stage, self._shown = frames, stage, shown
        self._wanted = threading.Condition()
        self._changed, self._ended = True, False
        self._thread = threading.Thread(target=self._work, name="collide-view", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        with self._wanted:
            self._ended = True
            self._wanted.notify()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def go(self, index: int | None = None, world: int | None = None) -> None:
        """Requests another frame or world."""
        with self._wanted:
            self.index = self.index if index is None else min(max(0, index), len(self._frames) - 1)
            self.world = self.world if world is None else world
            self._changed = True
            self._wanted.notify()

    def set_look(self, **changes) -> None:
        """Changes drawing options, by field of `Look`."""
        with self._wanted:
            self.look = replace(self.look, **changes)
            self._changed = True
            self._wanted.notify()

    def play(self, playing: bool) -> None:
        """Starts or pauses; at the last frame, and at the end of a demonstration, it starts from the first."""
        with self._wanted:
            if playing and (self.index == len(self._frames) - 1 or self._frames.ended(self.index + 1, self.world)):
                recorded = (n for n in range(len(self._frames)) if not self._frames.ended(n, self.world))
                self.index = next(recorded, 0)
            self.playing, self._changed = playing, True
            self._wanted.notify()

    def _work(self) -> None:
        try:
            while self._next():
                pass
        except BaseException as error:
            self.failure = error

    def _next(self) -> bool:
        with self._wanted:
            while not (self._changed or self.playing or self._ended):
                self._wanted.wait()
            if self._ended:
                return False
            self._changed = False
            index, world, look = self.index, self.world, self.look
        began = time.perf_counter()
        self._stage.show(index, world, look)
        self._shown(index)
        with self._wanted:
            if self.playing and not self._changed:
                self._wanted.wait_for(lambda: self._changed or self._ended, max(0.0, self._pause(index, began)))
            if self.playing and not self._changed:
                self._step(index, world, time.perf_counter() - began)
        return not self._ended

    def _pause(self, index: int, began: float) -> float:
        """Time until the next frame is due [s]."""
        due = self._seconds(index, min(index + 1, len(self._frames) - 1)) / self.speed
        return max(due, 1.0 / MAX_RATE) - (time.perf_counter() - began)

    def _step(self, index: int, world: int, passed: float) -> None:
        """Advances to the last frame that is due after `passed` seconds; stops at the end, and of a demonstration."""
        last = len(self._frames) - 1
        if not self._frames.ended(index, world):
            last = next((n - 1 for n in range(index + 1, last + 1) if self._frames.ended(n, world)), last)
        reached = min(index + 1, last)
        while reached < last and self._seconds(index, reached + 1) <= passed * self.speed + 1e-4:
            reached += 1
        self.index, self.playing, self._changed = reached, reached < last, True

    def _seconds(self, first: int, last: int) -> float:
        return seconds_between(self._frames, first, last)


def seconds_between(frames: Frames, first: int, last: int) -> float:
    """Time between two frames [s]; 1/30 s per frame if all frames have one time."""
    if frames.time[-1] > frames.time[0]:
        return float(frames.time[last] - frames.time[first])
    return (last - first) / MAX_RATE


# The touching pairs of each world and the frames of their intervals.

MAX_LISTED = 500
"""Largest number of pairs in a list."""


@dataclass(frozen=True)
class Touch:
    """An interval of a pair: frame indices, and the least distance [m], at index `deepest`."""

    first: int
    last: int
    deepest: int
    distance: float


@dataclass(frozen=True)
class TouchingPair:
    """A pair and its intervals in order. shapes: rows, sorted. label: unique in its world."""

    world: int
    shapes: tuple[int, int]
    paths: tuple[str, str]
    label: str
    touches: tuple[Touch, ...]

    @property
    def deepest(self) -> Touch:
        """The interval with the least distance."""
        return min(self.touches, key=lambda touch: touch.distance)


class TouchList:
    """The touching pairs of every world, deepest first. deepest: greatest depth of all pairs [m]."""

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
        """Pairs of a world with a path that contains or matches `wanted`; deepest first."""
        pairs = self._of_world.get(world, [])
        if not wanted:
            return pairs
        pattern = wanted if any(sign in wanted for sign in "*?[") else f"*{wanted}*"
        return [pair for pair in pairs if any(fnmatchcase(path, pattern) for path in pair.paths)]

    def __iter__(self) -> Iterator[TouchingPair]:
        return (pair for world in sorted(self._of_world) for pair in self._of_world[world])


def touch_label(number: int, touch: Touch, frames: np.ndarray) -> str:
    """Label of an interval: its number and frames. frames: int64[K], frame number of each index."""
    first, last = int(frames[touch.first]), int(frames[touch.last])
    when = f"frame {first}" if first == last else f"frames {first} to {last}"
    return f"{number}: {when}"


def pair_words(pair: TouchingPair) -> str:
    """Number of intervals of a pair and its depth, as text."""
    return f"{len(pair.touches)} touch{'' if len(pair.touches) == 1 else 'es'}, {length(-pair.deepest.distance)} deep"


# The intervals of a pair as marks along the time of a view, as SVG.

TOUCH, DEEPEST, NOW = "#e2372a", "#920a46", "#1b2530"
LEAST_WIDTH = 0.4
"""Least width of a mark [% of the bar]."""


def touch_bar(touches: Sequence[Touch], frame_count: int, index: int) -> str:
    """SVG of a bar over all frames: a mark for each interval, darker at its deepest frame, and a line at `index`."""
    step = 100.0 / max(1, frame_count)

    def rect(at: float, width: float, colour: str, name: str) -> str:
        return f'<rect class="{name}" x="{at:.3f}%" width="{width:.3f}%" height="100%" fill="{colour}"/>'

    marks = [rect(step * t.first, max(LEAST_WIDTH, step * (t.last + 1 - t.first)), TOUCH, "touch") for t in touches]
    marks += [rect(step * t.deepest, max(LEAST_WIDTH, step), DEEPEST, "deepest") for t in touches]
    marks.append(rect(step * (index + 0.5), LEAST_WIDTH, NOW, "now"))
    style = "display: block; width: 100%; height: 0.6em; background: #e2e7ec; border-radius: 0.15em"
    return f'<svg id="collide-touches" role="img" aria-label="Touches over time" style="{style}">{"".join(marks)}</svg>'
