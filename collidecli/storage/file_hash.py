"""SHA-256 of whole files, which identifies scenes and recordings."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cached_property

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


class RecordedInFile:
    """Base of motions that are read from one file, `_path`."""

    _path: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes; computed at the first access."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return file_sha256(self._path)
