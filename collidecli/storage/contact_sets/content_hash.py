"""The content hash of an HDF5 file: equal for equal datasets, independent of compression and chunks.

Definition, version 1. For each dataset outside `/timing`, in ascending order of its path's UTF-8 bytes, one line

    <path> TAB <type> TAB <shape> TAB <digest> LF

- path: from the root, with a leading slash.
- type: NumPy's string for the little-endian type (`<f4`, `<f8`, `<i4`, `<i8`, `|u1`), or `utf8` for strings.
- shape: the extents in decimal, joined by commas; a dataset has at least one.
- digest: SHA-256, lower-case hexadecimal, of the elements in row-major order: little-endian bytes of numbers; of each
  string its UTF-8 bytes and one zero byte.

The content hash is the SHA-256, lower-case hexadecimal, of those lines in UTF-8. Attributes, chunking, filters and
storage order do not enter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

STRING_TYPE = "utf8"
EXCLUDED_GROUP = "/timing"


def little_endian(values: np.ndarray) -> np.ndarray:
    """`values` contiguous and little-endian; without a copy if they are."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


class DatasetDigest:
    """The running digest of one dataset whose rows arrive in order.

    path: of the dataset. dtype: NumPy type, or None for strings. row_shape: shape without its first extent.
    """

    def __init__(self, path: str, dtype: np.dtype | None, row_shape: tuple[int, ...] = ()) -> None:
        self.path = path
        self._type = STRING_TYPE if dtype is None else dtype.newbyteorder("<").str
        self._row_shape = row_shape
        self._rows = 0
        self._sha = hashlib.sha256()

    def update(self, rows: np.ndarray) -> None:
        """Adds the next rows; `rows` has shape [n, *row_shape]."""
        self._rows += len(rows)
        self._sha.update(little_endian(rows).reshape(-1).view(np.uint8).data)

    def update_strings(self, strings: Sequence[str]) -> None:
        self._rows += len(strings)
        self._sha.update(b"".join([string.encode() + b"\0" for string in strings]))

    def line(self) -> bytes:
        shape = ",".join(str(extent) for extent in (self._rows, *self._row_shape))
        return f"{self.path}\t{self._type}\t{shape}\t{self._sha.hexdigest()}\n".encode()


def content_hash(lines: Iterable[tuple[str, bytes]]) -> str:
    """The hash of (path, line) pairs, given in any order."""
    ordered = sorted(lines, key=lambda pair: pair[0].encode())
    return hashlib.sha256(b"".join(line for _, line in ordered)).hexdigest()
