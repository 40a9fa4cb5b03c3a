"""Which frame is shown: a thread of its own draws the one that is wanted last, and goes on while it plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from collidecli.report.view.stage import Frames, Look, Stage

MOST_RATE = 30.0
"""Frames a second that are sent; a motion of more is shown a few frames further each time."""


class Player:
    """place, world, look: what is shown. playing, speed: seconds of the motion in a second.

    shown(place): called by its thread after every frame. failure: what it died of.
    """

    def __init__(self, frames: Frames, stage: Stage, shown: Callable[[int], None]) -> None:
        self.place, self.world, self.look = 0, 0, Look()
        self.playing, self.speed = False, 1.0
        self.failure: BaseException | None = None
        self._frames, self._stage, self._shown = frames, stage, shown
        self._wanted = threading.Condition()
        self._changed, self._ended = True, False
        self._thread = threading.Thread(target=self._work, name="collide-view", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._wanted:
            self._ended = True
            self._wanted.notify()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def go(self, place: int | None = None, world: int | None = None) -> None:
        """Shows another frame or world."""
        with self._wanted:
            self.place = self.place if place is None else min(max(0, place), len(self._frames) - 1)
            self.world = self.world if world is None else world
            self._changed = True
            self._wanted.notify()

    def set_look(self, **changes) -> None:
        with self._wanted:
            self.look = replace(self.look, **changes)
            self._changed = True
            self._wanted.notify()

    def play(self, playing: bool) -> None:
        with self._wanted:
            if playing and self.place == len(self._frames) - 1:
                self.place = 0
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
            place, world, look = self.place, self.world, self.look
        began = time.perf_counter()
        self._stage.show(place, world, look)
        self._shown(place)
        with self._wanted:
            if self.playing and not self._changed:
                self._wanted.wait_for(lambda: self._changed or self._ended, max(0.0, self._pause(place, began)))
            if self.playing and not self._changed:
                self._step(place, time.perf_counter() - began)
        return not self._ended

    def _pause(self, place: int, began: float) -> float:
        """Until the next frame is due [s]."""
        due = self._seconds(place, min(place + 1, len(self._frames) - 1)) / self.speed
        return max(due, 1.0 / MOST_RATE) - (time.perf_counter() - began)

    def _step(self, place: int, passed: float) -> None:
        """To the last frame that is due after `passed` seconds; it stops at the end."""
        last = len(self._frames) - 1
        reached = min(place + 1, last)
        while reached < last and self._seconds(place, reached + 1) <= passed * self.speed + 1e-4:
            reached += 1
        self.place, self.playing, self._changed = reached, reached < last, True

    def _seconds(self, first: int, last: int) -> float:
        return seconds_between(self._frames, first, last)


def seconds_between(frames: Frames, first: int, last: int) -> float:
    """Of the motion; where all its times are one, 1/30 s a frame."""
    if frames.time[-1] > frames.time[0]:
        return float(frames.time[last] - frames.time[first])
    return (last - first) / MOST_RATE
