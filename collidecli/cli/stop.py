"""Ending in time: after Ctrl-C or SIGTERM the program has ended within a second, whatever it was doing."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_SECONDS = 0.5
"""For an orderly end: workers finish their chunk, files are closed and removed."""

INTERRUPTED = 130

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """A signal asked the program to stop. Not an Exception: no library's `except Exception` holds it up."""


@contextmanager
def stopping_in_time() -> Iterator[StopHandler]:
    """Signals raise Stopped, once; a watch thread ends the program when that does not end it within the grace.

    A call into compiled code holds up the exception but not the watch thread. Does nothing outside the main thread.
    """
    stop = StopHandler()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(read_end, ended), name="collide-stop", daemon=True)
    # A program started with a signal ignored, as by nohup, goes on ignoring it.
    held = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    held = {number: handler for number, handler in held.items() if handler not in (None, signal.SIG_IGN)}
    for number in held:
        signal.signal(number, stop)
    held_fd = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    watch.start()
    try:
        yield stop
    finally:
        ended.set()
        signal.set_wakeup_fd(held_fd)
        for number, handler in held.items():
            signal.signal(number, handler)
        os.close(write_end)
        watch.join()
        os.close(read_end)


class StopHandler:
    """Raises the first time; later signals must not break into the cleaning up.

    stopping: whether it has. any_stopped: whether any in this process has.
    """

    any_stopped = False

    def __init__(self) -> None:
        self.stopping = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.stopping:
            self.stopping = StopHandler.any_stopped = True
            raise Stopped


def _watch(read_end: int, ended: threading.Event) -> None:
    while numbers := os.read(read_end, 1):
        if numbers[0] in STOP_SIGNALS:
            break
    else:
        return
    if ended.wait(GRACE_SECONDS):
        return
    # Imported already if any file is open; importing here could wait for the main thread.
    outputs = sys.modules.get("collidecli.storage.atomic_output")
    if outputs is not None:
        outputs.remove_partial_files()
    with contextlib.suppress(OSError):
        os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)
