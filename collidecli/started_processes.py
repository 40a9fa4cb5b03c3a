"""Processes that end with the one that started them, also where that is killed.

A process that is started gets the read end of a pipe whose other end its parent alone has: the
system closes it with the parent. This module needs Python alone and no other module of this
package, as interpreters that lack the package run it (`adapters.processes`).
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def life_line() -> Iterator[int]:
    """The read end of a pipe that is closed when the block or this process ends: the standard
    input of a process that calls `end_at_hangup(0)`."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


def end_at_hangup(read_end: int) -> None:
    """Kills this process as soon as the other end of a pipe is closed, into which nothing is
    written.

    Linux sends the signal itself, also while a library keeps Python's lock; on other systems a
    thread waits.
    """
    if not hasattr(fcntl, "F_SETSIG"):
        threading.Thread(
            target=_wait_for_hangup, args=(read_end,), name="collide-parent", daemon=True
        ).start()
        return
    fcntl.fcntl(read_end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(read_end, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(read_end, fcntl.F_GETFL)
    fcntl.fcntl(read_end, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([read_end], [], [], 0)[0]:  # it was closed before
        _end()


def _wait_for_hangup(read_end: int) -> None:
    select.select([read_end], [], [])
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
