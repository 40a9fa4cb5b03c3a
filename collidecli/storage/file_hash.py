"""SHA-256 of whole files, which identifies scenes and recordings."""

from __future__ import annotations

import hashlib
import os
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


def recording_sha256(paths: Iterable[str | os.PathLike[str]]) -> str:
    """`files_sha256` of the files of a recording; kept for files that have not changed.

    The demonstrations of one file that are computed one by one, each with a run of its own, read it once for its hash.
    """
    states = tuple((os.fspath(path), os.stat(path)) for path in paths)
    known = tuple((path, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for path, at in states)
    if any(time.time_ns() - max(at.st_mtime_ns, at.st_ctime_ns) < SETTLED_NS for _, at in states):
        return files_sha256(path for path, _ in states)
    return _sha256_of(known)


@lru_cache(maxsize=64)
def _sha256_of(states: tuple[tuple[str, int, int, int, int, int], ...]) -> str:
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
