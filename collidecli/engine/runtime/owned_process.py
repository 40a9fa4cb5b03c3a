"""Whether this process belongs to the command line, which may change settings of the whole process.

Such settings are Warp's log level, the interpreter's thread switch interval, glibc's allocator and
file descriptor 2. In a process that uses the Python API they belong to the caller, and no function
of this package changes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from collidecli.engine.runtime.deferred_builtins import BuiltinsLoader

_owned = False


def is_owned() -> bool:
    """Whether the command line runs in this process."""
    return _owned


@contextmanager
def owned_process() -> Iterator[None]:
    """Marks that the command line runs in this process until the `with` block ends."""
    global _owned
    before = _owned
    _owned = True
    sys.meta_path.insert(0, BuiltinsLoader)
    try:
        yield
    finally:
        _owned = before
        sys.meta_path.remove(BuiltinsLoader)
