"""Advisory locks that show whether the process that made a file or folder is still running.

The system releases the lock of a killed process. Unlike a process id in a file name, the lock cannot be mistaken for
that of a later process with the same id, and another container on the same disk sees it.
"""

from __future__ import annotations

import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def lock(fd: int, waits: bool = True) -> bool:
    """Whether this open file or folder is now locked by this process; the lock ends when `fd` is closed.

    waits: for another process that holds the lock, which gives False otherwise. False too on systems or file systems
    without such locks.
    """
    if fcntl is None or fd < 0:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def is_at(fd: int, path: str | os.PathLike[str]) -> bool:
    """Whether `path` still is the open file or folder `fd`: nobody removed or replaced it in the meantime."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
