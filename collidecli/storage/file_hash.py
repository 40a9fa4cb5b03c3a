"""SHA-256 of whole files, which identifies scenes and recordings."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Iterable
from functools import cached_property, lru_cache

_BLOCK = 1 << 20


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    return files_sha256((path,))


def files_sha256(paths: Iterable[str | os.PathLike[str]], texts: Iterable[str] = ()) -> str:
    """SHA-256 of the concatenation of texts in UTF-8 and the bytes of files, hexadecimal."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
    for path in paths:
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


SETTLED_NS = 10**9
"""Age of a file's last change from which its times prove that it is unchanged: file systems round them [ns]."""


_State = tuple[str, int, int, int, int, int]
_ahead: dict[tuple[_State, ...], _HashThread] = {}
"""Hashes that are being computed, by the states of their files."""


def recording_sha256(paths: Iterable[str | os.PathLike[str]]) -> str:
    """`files_sha256` of the files of a recording; kept for files that have not changed.

    The demonstrations of one file that are computed one by one, each with a run of its own, read it once for its hash.
    """
    states = _states(paths)
    return _sha256_of(states) if _are_settled(states) else files_sha256(path for path, *_ in states)


def hash_ahead(path: str | os.PathLike[str]) -> None:
    """Starts to compute the hash of a recording of one file in a thread; `recording_sha256` waits for it.

    Does nothing for a file that has just changed or cannot be read.
    """
    with contextlib.suppress(OSError):
        states = _states((path,))
        if states not in _ahead and os.path.isfile(path) and _are_settled(states):
            _ahead[states] = _HashThread(os.fspath(path))
            _ahead[states].start()


class _HashThread(threading.Thread):
    """Computes the hash of a file; found: None if the file cannot be read."""

    def __init__(self, path: str) -> None:
        super().__init__(name="collide-recording", daemon=True)
        self._path = path
        self.found: str | None = None

    def run(self) -> None:
        with contextlib.suppress(OSError):
            self.found = file_sha256(self._path)


def _states(paths: Iterable[str | os.PathLike[str]]) -> tuple[_State, ...]:
    states = ((os.fspath(path), os.stat(path)) for path in paths)
    return tuple((path, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for path, at in states)


def _are_settled(states: tuple[_State, ...]) -> bool:
    return all(time.time_ns() - max(mtime, ctime) >= SETTLED_NS for *_, mtime, ctime in states)


@lru_cache(maxsize=64)
def _sha256_of(states: tuple[_State, ...]) -> str:
    thread = _ahead.pop(states, None)
    if thread is not None:
        thread.join()
        if thread.found is not None:
            return thread.found
    return files_sha256(path for path, *_ in states)


class RecordedInFile:
    """Base of motions that are read from one file, `_path`."""

    _path: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes; computed at the first access."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return recording_sha256((self._path,))
