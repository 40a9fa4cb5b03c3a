"""Progress of long work where stderr is no terminal: a line a minute."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from collidecli.wording import count

LINE_SECONDS = 60.0
"""Time before the first line, and between two; shorter work has none."""


class LineClock:
    """Prints lines where one is due: a minute after the begin of the verb and after each line."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def print_if_due(self, text: str) -> None:
        """Prints a line on stderr, if one is due."""
        now = time.monotonic()
        if now - self._last < LINE_SECONDS:
            return
        self._last = now
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


class LineProgress:
    """Lines on stderr, as a function of the frames done and of all frames.

    noun: what is counted. clock: of all work of the verb, so that many short inputs have lines too.
    """

    def __init__(self, doing: str, noun: str, clock: LineClock) -> None:
        self._doing = doing
        self._noun = noun
        self._clock = clock

    def __call__(self, done: int, total: int) -> None:
        self._line(f"{self._doing}: {count(done)} of {count(total)} {self._noun}")

    def compiling(self, done: int, total: int) -> None:
        """Prints the numbers of compiled kernels and of all that must be compiled."""
        if done < total:
            self._line(f"compiling kernels (first run only): {count(done)} of {count(total)}")

    def _line(self, text: str) -> None:
        self._clock.print_if_due(text)


class LineBar:
    """Lines on stderr in place of the bar of a batch: its description."""

    def __init__(self, clock: LineClock) -> None:
        self._clock = clock

    def add_task(self, description: str, *, total: float) -> None:
        """Nothing: the first line is that of an update."""

    def update(self, task: None, /, *, completed: float, description: str) -> None:
        self._clock.print_if_due(description)
