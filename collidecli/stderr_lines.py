"""Lines that compiled code writes to stderr, of which some are removed."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

Filter = Callable[[list[bytes]], list[bytes]]
"""The lines that remain of those that were written, each with its end."""


class _HeldLines:
    """What is written to file descriptor 2 while a filter is in use, by any thread.

    Threads that use filters at the same time share one file: each that ends writes what remains
    after all filters in use.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._filters: list[Filter] = []
        self._stderr = -1
        self._file: IO[bytes] | None = None
        self._read = 0

    def begin(self, remaining: Filter) -> bool:
        """Whether there is a stderr to be held."""
        with self._lock:
            if not self._filters:
                try:
                    self._stderr = os.dup(2)
                except OSError:
                    return False
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the last `end`
                self._read = 0
                os.dup2(self._file.fileno(), 2)
            self._filters.append(remaining)
            return True

    def end(self, remaining: Filter) -> None:
        with self._lock:
            file = self._file
            assert file is not None
            is_last = len(self._filters) == 1
            if is_last:
                os.dup2(self._stderr, 2)
            # Not by reading the file: its position is where file descriptor 2 writes.
            written = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, self._read)
            self._read += len(written)
            lines = written.splitlines(keepends=True)
            for each in self._filters:
                lines = each(lines)
            for line in lines:
                os.write(self._stderr, line)
            self._filters.remove(remaining)
            if is_last:
                os.close(self._stderr)
                file.close()
                self._file = None


_held = _HeldLines()


@contextmanager
def stderr_lines(remaining: Filter) -> Iterator[None]:
    """Holds what is written to stderr within the block, by any thread and by compiled code, and
    writes what remains after the filter when the block ends, also with an error."""
    is_held = _held.begin(remaining)
    try:
        yield
    finally:
        if is_held:
            _held.end(remaining)
