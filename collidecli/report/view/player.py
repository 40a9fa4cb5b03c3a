"""Playback: a thread that draws the frame requested last, and further frames while it plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from collidecli.report.view.framing import Frames
from collidecli.report.view.look import first_look
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
