"""Temporary folders of a process: made at the first use, removed at the end; those of killed processes too."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import threading
import time
import weakref

from collidecli.engine.runtime.life_locks import is_at, try_lock

STALE_SECONDS = 3600.0
"""Age from which a folder without a lock is removed: a folder that another process has just made is not locked yet."""


class TemporaryFolder:
    """A temporary folder of this process. `name`, its path, creates it; most runs need none."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._path = ""
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        with self._lock:
            if not self._path:
                remove_stale(self._prefix)
                self._path = tempfile.mkdtemp(prefix=self._prefix)
                fd = os.open(self._path, os.O_RDONLY) if hasattr(os, "O_DIRECTORY") else -1
                try_lock(fd)  # until the end
                weakref.finalize(self, _remove, self._path, fd, os.getpid())
            return self._path


def _remove(path: str, fd: int, process: int) -> None:
    """Removes a folder at the end of its process, not at that of a process that it forked."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        if fd >= 0:
            os.close(fd)


def remove_stale(prefix: str) -> None:
    """Removes this user's temporary folders with this prefix whose process has ended without removing them."""
    for path in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{prefix}*")):
        try:
            if time.time() - os.stat(path, follow_symlinks=False).st_mtime < STALE_SECONDS:
                continue
            fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0))
        except OSError:  # of another user, or removed in the meantime
            continue
        try:
            if os.fstat(fd).st_uid == os.getuid() and try_lock(fd) and is_at(fd, path):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(fd)
