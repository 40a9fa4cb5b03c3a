"""Queue of launches, scans and copies on the CPU, executed in one call without the interpreter's
lock.

If each launch returned to Python, a worker would wait for the lock that other workers hold, and the
interpreter's code would have left the processor's caches. The queue therefore stores launches
together with the scans and copies between them, and executes all when the host reads a result. It
depends on the layout of a packed launch (`warp_internals`); with an unknown version of Warp
launches are made one by one (`RecordedLaunches`).
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.moments import CLOCK_GETTIME, Moment, TimeSpec
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.recorded_launches import record_launch
from collidecli.engine.runtime.warp_internals import PackedLaunch

MAX_STEPS = 64
"""Capacity of the queue; a full queue is executed."""
STEP_NUMBERS = 4
"""Numbers of a step: see `execute_each_step`."""
COPY = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value


@wp.func_native(native(__file__, "execute_each_step"))
def execute_each_step(step: wp.array[wp.uint64], count: int):
    """Executes `count` steps of four numbers: the address of a function and its three arguments.

    Address 0 is an inclusive scan of int32: address of the counts, their number, address of the
    result. A function with fewer than three arguments leaves the registers of the others unread.
    """
    ...


@kernel
def execute_steps(step: wp.array[wp.uint64], count: int):
    """One thread: `count` steps in order. For the CPU only."""
    execute_each_step(step, count)


class LaunchQueue:
    """Launches, scans and copies of one worker on the CPU, in order, that are not executed yet."""

    def __init__(self) -> None:
        self._step = (ctypes.c_uint64 * (STEP_NUMBERS * MAX_STEPS))()
        self._packed: dict[wp.Kernel, PackedLaunch] = {}
        self._queued: list[PackedLaunch | TimeSpec | None] = []
        self._numbers: list[int] = []
        """Of the queued steps; they are stored in `_step` together, since each assignment to it
        costs a microsecond."""
        self._all: PackedLaunch | None = None

    def launch(self, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        """Appends a launch of `count` threads of a kernel."""
        packed = self._packed.get(kernel)
        if packed is None:
            packed = self._packed[kernel] = PackedLaunch(
                record_launch(kernel, count, arguments), arguments
            )
        if packed in self._queued:
            self.finish()  # a kernel has one set of packed arguments
        packed.pack(count, arguments)
        self._append(packed, (*packed.call, 0))

    def scan(self, counts: wp.array, count: int, ends: wp.array) -> None:
        """Appends an inclusive scan of the first `count` int32 of `counts` to `ends`, which may be
        the same array."""
        self._append(None, (0, counts.ptr, count, ends.ptr))

    def copy(self, destination: np.ndarray, source: wp.array) -> None:
        """Appends a copy from the beginning of `source` that fills a host array."""
        self._append(
            None, (COPY, destination.__array_interface__["data"][0], source.ptr, destination.nbytes)
        )

    def mark(self) -> Moment:
        """When all that is queued is complete; what `finish` executes has its moments set by it."""
        if self._queued and CLOCK_GETTIME is not None:
            return Moment(
                self._timed(time.CLOCK_MONOTONIC), self._timed(time.CLOCK_THREAD_CPUTIME_ID)
            )
        self.finish()
        return Moment.now()

    def _timed(self, clock: int) -> TimeSpec:
        """The time of a clock of the system, as a step of the queue."""
        spec = TimeSpec()
        self._append(spec, (CLOCK_GETTIME, clock, ctypes.addressof(spec), 0))
        return spec

    def finish(self) -> None:
        """Executes the queue in order and empties it."""
        queued = self._queued
        numbers = self._numbers
        count = len(queued)
        if count == 0:
            return
        self._queued = []
        self._numbers = []
        if count == 1 and isinstance(queued[0], PackedLaunch):
            queued[0].launch()
            return
        if self._all is None:
            size = STEP_NUMBERS * MAX_STEPS
            step = wp.array(
                ptr=ctypes.addressof(self._step), shape=size, dtype=wp.uint64, device="cpu"
            )
            self._all = PackedLaunch(record_launch(execute_steps, 1, [step, count]), [step, count])
        self._step[: len(numbers)] = numbers
        self._all.packed.count = count
        self._all.launch()

    def forget(self) -> None:
        """Drops references to arrays."""
        self._packed.clear()

    def _append(
        self, owner: PackedLaunch | TimeSpec | None, step: tuple[Any, Any, Any, Any]
    ) -> None:
        if len(self._queued) == MAX_STEPS:
            self.finish()
        self._numbers += step
        self._queued.append(owner)
