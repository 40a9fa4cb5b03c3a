"""The SHA-256 of whole files, by which scenes and recordings are told apart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cached_property

_BLOCK = 1 << 20


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Of a file's bytes, hexadecimal."""
    return files_sha256((path,))


def files_sha256(paths: Iterable[str | os.PathLike[str]], texts: Iterable[str] = ()) -> str:
    """Of the texts in UTF-8 and the bytes of the files, one after another, hexadecimal."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
    for path in paths:
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


class RecordedInFile:
    """What every motion that is read from one file has in common; `_path` is that file's."""

    _path: str

    @property
    def sha256(self) -> str:
        """Of the file's bytes; worked out when first asked for."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return file_sha256(self._path)
