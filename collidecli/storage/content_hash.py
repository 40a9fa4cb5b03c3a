"""The content hash of an HDF5 file: equal for equal datasets, independent of compression, chunks
and threads.

For each dataset outside `/timing` (and, in version 2, `/content_hash`), in ascending order of its
path's UTF-8 bytes, one line

    <path> TAB <type> TAB <shape> TAB <digest> LF

- path: from the root, with a leading slash.
- type: NumPy's string for the little-endian type (`<f4`, `<f8`, `<i4`, `<i8`, `|u1`), or `utf8` for
    strings.
- shape: the extents in decimal, joined by commas; a dataset has at least one.
- digest, lower-case hexadecimal. The bytes of a dataset are its elements in row-major order:
  little-endian bytes of numbers; of each string its UTF-8 bytes and one zero byte. Version 1: the
  SHA-256 of all of them. Version 2: the SHA-256 of the SHA-256 of each block of HASHED_ROWS rows,
  the last block with the rows that are left.

The content hash is the SHA-256, lower-case hexadecimal, of those lines in UTF-8. Attributes,
chunking, filters and storage order do not enter.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

HASHED_ROWS = 8192
"""Rows of a block of version 2: a divisor of the usual numbers of rows in a chunk."""
HASH_BYTES = 32
Task = Callable[[], object]
"""A part of the computation, for any thread."""


class DatasetDigest(ABC):
    """The running digest of one dataset whose rows arrive in order.

    path: of the dataset. dtype: NumPy type, or None for strings. row_shape: shape without its first
    extent.
    """

    def __init__(self, path: str, dtype: np.dtype | None, row_shape: tuple[int, ...] = ()) -> None:
        self.path = path
        self.row_count: int = 0
        self._type = "utf8" if dtype is None else dtype.newbyteorder("<").str
        self._row_shape = row_shape
        self._sha = hashlib.sha256()
        """Of all rows; in version 2 of the last block, while it is not complete."""

    def update(self, rows: np.ndarray) -> None:
        """Adds the next rows; `rows` has shape [n, *row_shape]."""
        for task in self.tasks(np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))):
            if task is not None:
                task()

    @abstractmethod
    def tasks(self, rows: np.ndarray) -> tuple[Task | None, Task | None]:
        """Adds the next rows, contiguous and little-endian, which must not change until both tasks
        are done.

        Returns a task for any thread at any time, and one that must follow those of the rows
        before.
        """

    @abstractmethod
    def update_strings(self, strings: Sequence[str]) -> None:
        """Adds the next strings."""

    @abstractmethod
    def hexdigest(self) -> str:
        """The digest of all rows; after every task."""

    @property
    def blocks(self) -> bytes:
        """The hashes of the blocks, in order; empty in version 1."""
        return b""

    def line(self) -> bytes:
        """The dataset's line of the content hash."""
        shape = ",".join(str(extent) for extent in (self.row_count, *self._row_shape))
        return f"{self.path}\t{self._type}\t{shape}\t{self.hexdigest()}\n".encode()


class StreamDigest(DatasetDigest):
    """The digest of version 1."""

    def tasks(self, rows: np.ndarray) -> tuple[Task | None, Task | None]:
        self.row_count += len(rows)
        return None, partial(self._sha.update, _raw(rows))

    def update_strings(self, strings: Sequence[str]) -> None:
        self.row_count += len(strings)
        self._sha.update(_encoded(strings))

    def hexdigest(self) -> str:
        return self._sha.hexdigest()


class BlockDigest(DatasetDigest):
    """The digest of version 2: blocks are hashed in any order, by any thread."""

    def __init__(self, path: str, dtype: np.dtype | None, row_shape: tuple[int, ...] = ()) -> None:
        super().__init__(path, dtype, row_shape)
        self._blocks = bytearray()

    def tasks(self, rows: np.ndarray) -> tuple[Task | None, Task | None]:
        whole: Task | None = None
        parts: list[tuple[memoryview | bytes, int | None]] = []
        # The rest of an open block, whole blocks, the beginning of another.
        opened = min(len(rows), -self.row_count % HASHED_ROWS)
        ends = opened, opened + (len(rows) - opened) // HASHED_ROWS * HASHED_ROWS
        for first, last in pairwise((0, *ends, len(rows))):
            piece = rows[first:last]
            if not len(piece):
                continue
            if self.row_count % HASHED_ROWS == 0 and len(piece) >= HASHED_ROWS:
                slot = len(self._blocks)
                self._blocks += bytes(len(piece) // HASHED_ROWS * HASH_BYTES)
                whole = partial(self._hash_blocks, piece, slot)
            else:
                parts.append((_raw(piece), self._slot_after(len(piece))))
            self.row_count += len(piece)
        return whole, (partial(self._hash_parts, parts) if parts else None)

    def _slot_after(self, count: int) -> int | None:
        """Where the hash of the open block belongs if the next `count` rows complete it; None if
        they do not."""
        if (self.row_count + count) % HASHED_ROWS:
            return None
        self._blocks += bytes(HASH_BYTES)
        return len(self._blocks) - HASH_BYTES

    def _hash_blocks(self, rows: np.ndarray, slot: int) -> None:
        for first in range(0, len(rows), HASHED_ROWS):
            self._blocks[slot : slot + HASH_BYTES] = hashlib.sha256(
                _raw(rows[first : first + HASHED_ROWS])
            ).digest()
            slot += HASH_BYTES

    def _hash_parts(self, parts: list[tuple[memoryview | bytes, int | None]]) -> None:
        for data, slot in parts:
            self._sha.update(data)
            if slot is not None:
                self._blocks[slot : slot + HASH_BYTES] = self._sha.digest()
                self._sha = hashlib.sha256()

    def update_strings(self, strings: Sequence[str]) -> None:
        done = 0
        while done < len(strings):
            count = min(len(strings) - done, HASHED_ROWS - self.row_count % HASHED_ROWS)
            self._hash_parts([(_encoded(strings[done : done + count]), self._slot_after(count))])
            self.row_count += count
            done += count

    def hexdigest(self) -> str:
        return hashlib.sha256(self.blocks).hexdigest()

    @property
    def blocks(self) -> bytes:
        last = self._sha.digest() if self.row_count % HASHED_ROWS else b""
        return bytes(self._blocks) + last


def _raw(rows: np.ndarray) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data


def _encoded(strings: Sequence[str]) -> bytes:
    return b"".join([string.encode() + b"\0" for string in strings])


def in_order(digests: Iterable[DatasetDigest]) -> list[DatasetDigest]:
    """The digests in the order of their lines."""
    return sorted(digests, key=lambda digest: digest.path.encode())


def excluded_groups(version: tuple[int, int]) -> tuple[str, ...]:
    """Groups of the root that are not hashed in a version of the format."""
    return ("timing",) if version[0] == 1 else ("timing", "content_hash")


def digest_class(version: tuple[int, int]) -> type[DatasetDigest]:
    """The digest of datasets in a version of the format."""
    return StreamDigest if version[0] == 1 else BlockDigest


def content_hash(digests: Iterable[DatasetDigest]) -> str:
    """The content hash of datasets, given in any order."""
    return hashlib.sha256(b"".join(digest.line() for digest in in_order(digests))).hexdigest()


def block_hashes(digests: Iterable[DatasetDigest]) -> np.ndarray:
    """uint8[blocks, 32]: the hashes of the blocks of all datasets, in the order of their lines."""
    joined = b"".join(digest.blocks for digest in in_order(digests))
    return np.frombuffer(joined, np.uint8).reshape(-1, HASH_BYTES)
