"""Times that work took: by the clock, and of the processor."""

from __future__ import annotations

import time
from typing import NamedTuple


class Elapsed(NamedTuple):
    """Time that work of one thread took [s].

    clock: of the wall clock, with waits for a core, a lock or a disk. processor: in which the
    thread was executed.
    """

    clock: float = 0.0
    processor: float = 0.0

    def plus(self, other: Elapsed) -> Elapsed:
        return Elapsed(self.clock + other.clock, self.processor + other.processor)

    def minus(self, other: Elapsed) -> Elapsed:
        return Elapsed(self.clock - other.clock, self.processor - other.processor)


NOT_RUN = Elapsed()
"""The time of work that was not done."""


def now() -> Elapsed:
    """Readings of both clocks, of which only differences have a meaning."""
    return Elapsed(time.perf_counter(), time.thread_time())


def since(start: Elapsed) -> Elapsed:
    """Time since `start`, of `now` in the same thread."""
    return now().minus(start)
