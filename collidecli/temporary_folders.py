"""Temporary folders of a process: made at the first use, removed at the end; those of killed processes too."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import threading
import weakref
from types import TracebackType

# Advisory locks that show whether the process that made a file or folder is still running.
#
# The system releases the lock of a killed process. Unlike a process id in a file name, the lock cannot be mistaken for
# that of a later process with the same id, and another container on the same disk sees it.

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


_NAME = re.compile("collide_[a-z]+_[0-9a-f]{16}")


class TemporaryFolder:
    """A temporary folder of this process. `name`, its path, creates it; most runs need none.

    A context manager, whose value is the path; its exit removes the folder, as the end of the object or process does.

    Args:
        purpose: a word of lower-case letters, part of the name.
        parent: the folder that contains it; "" is the system's folder of temporary files. The first use removes the
            folders of ended processes from it.
    """

    def __init__(self, purpose: str, parent: str = "") -> None:
        self._purpose, self._parent = purpose, parent
        self._path = ""
        self._lock = threading.Lock()
        self._end: weakref.finalize | None = None

    @property
    def name(self) -> str:
        with self._lock:
            if not self._path:
                parent = self._parent or tempfile.gettempdir()
                remove_abandoned(parent)
                self._path, fd = _made(parent, self._purpose)
                self._end = weakref.finalize(self, _remove, self._path, fd, os.getpid())
            return self._path

    def __enter__(self) -> str:
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end is not None:
            self._end()
        self._path = ""


def _made(parent: str, purpose: str) -> tuple[str, int]:
    """A new folder and the file descriptor that locks it until the end; -1 on systems that cannot open a folder."""
    while True:
        path = os.path.join(parent, f"collide_{purpose}_{secrets.token_hex(8)}")
        os.mkdir(path, 0o700)
        if not hasattr(os, "O_DIRECTORY"):
            return path, -1
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another process has removed it before it was locked
            continue
        if not lock(fd) or is_at(fd, path):
            return path, fd
        os.close(fd)


def _remove(path: str, fd: int, process: int) -> None:
    """Removes a folder at the end of its process, not at that of a process that it forked."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        if fd >= 0:
            os.close(fd)


def remove_abandoned(parent: str = "") -> None:
    """Removes this user's temporary folders in `parent` whose process has ended without removing them.

    parent: "" is the system's folder of temporary files.
    """
    parent = parent or tempfile.gettempdir()
    try:
        names = [name for name in os.listdir(parent) if _NAME.fullmatch(name)]
    except OSError:
        return
    for path in (os.path.join(parent, name) for name in names):
        try:
            fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0))
        except OSError:  # of another user, no folder, or removed in the meantime
            continue
        try:
            if os.fstat(fd).st_uid == os.getuid() and lock(fd, waits=False) and is_at(fd, path):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(fd)
