"""Moments among the launches of a thread, and the times between them."""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import dataclass
from typing import Any

from collidecli.elapsed import Elapsed


class TimeSpec(ctypes.Structure):
    """C's timespec, which `clock_gettime` sets; as a number, its seconds."""

    _fields_ = (("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64))

    def __float__(self) -> float:
        return self.seconds + 1e-9 * self.nanoseconds


@dataclass
class Moment:
    """A moment [s]. clock: as of time.perf_counter, or an event of a device. processor: as of
    time.thread_time. A TimeSpec is set when the queue that it is in is executed."""

    clock: Any
    processor: float | TimeSpec

    @staticmethod
    def now() -> Moment:
        return Moment(time.perf_counter(), time.thread_time())

    def processor_since(self, begin: Moment) -> float:
        return float(self.processor) - float(begin.processor)

    def since(self, begin: Moment) -> Elapsed:
        """The time since an earlier moment, both not of a device's events."""
        return Elapsed(float(self.clock) - float(begin.clock), self.processor_since(begin))


CLOCK_GETTIME = (
    ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value
    if sys.platform == "linux"
    else None
)
"""Address of C's clock_gettime; None where its clocks are not known to be those of
`time.perf_counter` and `time.thread_time`."""
