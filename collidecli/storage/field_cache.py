"""Disk cache of signed distance fields, hulls and convex parts, keyed by the hash of their input.

An entry is one file, `<key>.sdf`: a magic line, the SHA-256 of the rest, a line of JSON with the
key and the arrays' names, types and shapes, and the arrays. It is created atomically by a rename
and read whole; an invalid entry is ignored. So any number of processes may share a folder without
locks. Beyond the limit the least recently used entries are removed, by their files' times. Only a
regular file with the magic line is an entry: Gazebo's worlds have the same extension.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collidecli.scene.option_values import DEFAULT_CACHE_LIMIT
from collidecli.temporary_folders import TemporaryFolder

MAGIC = b"collide field 1\n"
SUFFIX = ".sdf"
FOLDER = "fields"
HEADER_LIMIT = 1 << 16
_NUMBERS = re.compile("[<>|][fi][1248]")
"""NumPy's names of the types that an entry may have."""


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache. used: time of the last read or write, in seconds since the epoch."""

    path: Path
    bytes: int
    used: float

    @property
    def key(self) -> str:
        return self.path.name[: -len(SUFFIX)]


def cache_folder(folder: str = "") -> Path:
    """Folder of the entries: in `folder`, else in the platform's cache folder."""
    if folder:
        return Path(folder) / FOLDER
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # the XDG specification ignores relative paths
            base = str(Path.home() / ".cache")
    return Path(base) / "collide" / FOLDER


class FieldCache:
    """The entries of a folder, up to `limit` bytes in total; 0 disables the cache.

    folder: "" is the platform's. notes: messages of errors, which never stop a run.
    """

    def __init__(self, folder: str = "", limit: int = DEFAULT_CACHE_LIMIT) -> None:
        self.folder = cache_folder(folder)
        self.limit = limit
        self.notes: list[str] = []

    def load(self, key: str) -> dict[str, np.ndarray] | None:
        """The arrays of a key; None if its entry is missing, damaged, of another format or
        over the limit."""
        if not self.limit:
            return None
        path = self.folder / f"{key}{SUFFIX}"
        try:
            if path.lstat().st_size > self.limit:  # `save` writes none: a sparse file has any size
                return None
            arrays = _unpacked(_content_of(path), key)
        except OSError:
            return None
        if arrays is not None:
            with contextlib.suppress(OSError):  # marks the use; a read-only folder is allowed
                os.utime(path)
        return arrays

    def save(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes or replaces an entry, and removes entries beyond the limit."""
        contiguous = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
        rows = [[name, values.dtype.str, list(values.shape)] for name, values in contiguous.items()]
        header = json.dumps({"key": key, "arrays": rows}).encode() + b"\n"
        body = [header, *(values.tobytes() for values in contiguous.values())]
        digest = hashlib.sha256()
        for part in body:
            digest.update(part)
        parts = [MAGIC, digest.hexdigest().encode() + b"\n", *body]
        size = sum(len(part) for part in parts)
        if size > self.limit:
            if self.limit:
                self.notes.append(
                    f"{self.folder}: an entry of {size} bytes is over the cache's limit, and not"
                    " kept"
                )
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFolder("entry", str(self.folder)) as made:
                partial = os.path.join(made, key)
                with open(partial, "wb") as file:
                    file.writelines(parts)
                os.replace(partial, self.folder / f"{key}{SUFFIX}")
        except OSError as error:
            self.notes.append(
                f"{self.folder}: an entry was not kept: {(error.strerror or str(error)).lower()}"
            )
            return
        if sum(file.bytes for file in self._files()) <= self.limit:
            return
        total = 0
        for entry in self.entries():
            total += entry.bytes
            if total > self.limit:
                _remove(entry.path)

    def entries(self) -> list[CacheEntry]:
        """The entries, the most recently used first."""
        entries = filter(_has_magic, self._files())
        return sorted(entries, key=lambda entry: (-entry.used, entry.path.name))

    def _files(self) -> list[CacheEntry]:
        """The regular files that may be entries by their names."""
        files = []
        try:
            listed = list(os.scandir(self.folder))
        except OSError:
            return []
        for item in listed:
            if item.name.endswith(SUFFIX):
                with contextlib.suppress(OSError):  # removed in the meantime
                    status = item.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        files.append(CacheEntry(Path(item.path), status.st_size, status.st_mtime))
        return files

    def clear(self) -> list[CacheEntry]:
        """Removes every entry; returns the removed ones."""
        return [entry for entry in self.entries() if _remove(entry.path)]


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _has_magic(file: CacheEntry) -> bool:
    try:
        return _content_of(file.path, len(MAGIC)) == MAGIC
    except OSError:
        return False


def _content_of(path: Path, most: int = -1) -> bytes:
    """The first `most` bytes of a regular file, or all. Raises OSError for a link, a pipe or a
    device, which may never end, and for a file that cannot be read."""
    with open(path, "rb", opener=_open_entry) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        return file.read(most)


def _open_entry(path: str, flags: int) -> int:
    without = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags | without)


def _unpacked(data: bytes, key: str) -> dict[str, np.ndarray] | None:
    start = len(MAGIC) + 65
    if not data.startswith(MAGIC) or len(data) < start:
        return None
    if (
        hashlib.sha256(memoryview(data)[start:]).hexdigest().encode() + b"\n"
        != data[len(MAGIC) : start]
    ):
        return None
    end = data.find(b"\n", start, start + HEADER_LIMIT)
    if end < 0:
        return None
    try:
        header = json.loads(data[start:end])
        if header["key"] != key:
            return None
        arrays = {}
        at = end + 1
        for name, kind, shape in header["arrays"]:
            if not _NUMBERS.fullmatch(kind):
                return None
            dtype = np.dtype(kind)
            count = math.prod(shape)
            arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
            at += count * dtype.itemsize
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return arrays if at == len(data) else None
