"""The thread that writes a contact set while the next contacts are computed."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from collidecli.engine.runtime.owned_process import is_owned
from collidecli.motions.timing import TimingReport
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.storage.contact_sets.writer import ContactWriter

WAITING_WRITES = 2
"""Largest number of blocks that wait to be written."""
SWITCH_SECONDS = 0.0005


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Sets the thread switch interval of the interpreter to half a millisecond, from five, on the
    command line.

    The computing and the writing thread each hold the interpreter for some tens of microseconds at
    a time. With the default interval a core would be idle while its thread waits for the
    interpreter.
    """
    if not is_owned():
        yield
        return
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class WriterThread:
    """Writes blocks in a separate thread while the next chunks are computed; at most WAITING_WRITES
    blocks wait."""

    def __init__(self, writer: ContactWriter, timing: TimingReport) -> None:
        self._writer = writer
        self._timing = timing
        self._blocks: queue.Queue[ContactBlock | None] = queue.Queue(maxsize=WAITING_WRITES)
        self._error: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._write, name="collide-writer", daemon=True)

    def put(self, block: ContactBlock) -> None:
        """Queues a block; raises the exception of an earlier write."""
        self._raise_failure()
        self._blocks.put(block)

    def drain(self) -> None:
        """Waits until every block is written; raises the exception of a write."""
        self._blocks.put(None)
        self._thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while (block := self._blocks.get()) is not None:
            if self._error is not None or self._stopped:
                continue
            try:
                with self._timing.stage("write"):
                    self._writer.append(block)
            except BaseException as error:
                self._error = error

    def __enter__(self) -> WriterThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        if self._thread.is_alive():
            self._blocks.put(None)
            self._thread.join()
