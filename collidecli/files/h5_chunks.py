"""HDF5 chunks filtered here rather than inside HDF5: the same bytes in the file's terms, several times faster.

HDF5's own pipeline compresses with zlib, on one thread, under h5py's global lock. `PendingPlanes` does what its filters
shuffle (2), deflate (1) and fletcher32 (3) do, with ISA-L's deflate, and `ChunkedColumn` hands the result to
`H5Dwrite_chunk`. Any HDF5 reader opens it with the filters that it has anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import h5py
import numpy as np
from isal import isal_zlib

from collidecli.files import loops
from collidecli.files.contacts.content_hash import DatasetDigest, little_endian
from collidecli.files.h5_objects import DEFLATE_LEVEL, NewObjects, check_compression

CHUNK_ROWS = 32768
"""A chunk of float64 vectors is 768 KiB: within a core's cache here, and within HDF5's default chunk cache of 1 MiB."""

Encoded = bytes | bytearray | np.ndarray
"""A chunk as it goes into the file, or as an array where HDF5 filters it."""

_ZLIB_HEADER = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_MAX = 65535
_CHECKSUM_BYTES = 4
_PROBE_BYTES = 4096
_PROBE_INTERVAL = 8
_WORTHWHILE = 0.75
"""A byte plane whose probe does not shrink below this share is stored. Measured on contacts of moving humanoids:
770 MB/s and a ratio of 1.51; with 0.9, 590 MB/s and 1.56; with every plane deflated, 485 MB/s and 1.57."""

def encode_plain(chunk: np.ndarray) -> bytes:
    """A chunk as the filter fletcher32 alone makes it."""
    raw = chunk.reshape(-1).view(np.uint8)
    return b"".join((raw.data, loops.fletcher32(raw).to_bytes(_CHECKSUM_BYTES, "little")))


class Pending(Protocol):
    """The rows of a chunk that is being filled."""

    def resize(self, row_count: int, held: int) -> None:
        """Makes chunks of `row_count` rows, of which the first `held` are there and stay."""
        ...

    def put(self, rows: np.ndarray, first: int) -> None:
        """Rows from the chunk's row `first` on."""
        ...

    def packed(self, row_count: int) -> Encoded:
        """The chunk, of which the first `row_count` rows are there; the others become zeros, which no reader sees."""
        ...


class PendingRows:
    """A chunk as rows; `encode` makes its bytes, None where HDF5 filters it."""

    def __init__(
        self, dtype: np.dtype, row_shape: tuple[int, ...], encode: Callable[[np.ndarray], bytes] | None
    ) -> None:
        self._rows, self._encode = np.empty((0, *row_shape), dtype), encode

    def resize(self, row_count: int, held: int) -> None:
        rows = np.empty((row_count, *self._rows.shape[1:]), self._rows.dtype)
        rows[:held] = self._rows[:held]
        self._rows = rows

    def put(self, rows: np.ndarray, first: int) -> None:
        self._rows[first : first + len(rows)] = rows

    def packed(self, row_count: int) -> Encoded:
        self._rows[row_count:] = 0
        return self._rows.copy() if self._encode is None else self._encode(self._rows)


class PendingPlanes:
    """A chunk as shuffle lays it out, packed as shuffle, deflate and fletcher32 make it: rows are shuffled as they come.

    The low bytes of floating-point numbers are close to noise; a byte plane that a probe finds so becomes stored blocks
    of the same deflate stream. Each plane is probed again every few chunks.
    """

    def __init__(self, dtype: np.dtype, row_shape: tuple[int, ...]) -> None:
        self._width = int(np.prod(row_shape, dtype=np.int64))
        self._planes = np.empty((dtype.itemsize, 0), np.uint8)
        self._worthwhile: list[bool] = []
        self._chunk_count = 0

    def resize(self, row_count: int, held: int) -> None:
        planes = np.empty((len(self._planes), row_count * self._width), np.uint8)
        planes[:, : held * self._width] = self._planes[:, : held * self._width]
        self._planes = planes

    def put(self, rows: np.ndarray, first: int) -> None:
        numbers = rows.reshape(-1).view(np.uint8).reshape(-1, len(self._planes))
        loops.shuffle(numbers, self._planes[:, first * self._width :])

    def packed(self, row_count: int) -> bytearray:
        planes, size = self._planes, len(self._planes)
        planes[:, row_count * self._width :] = 0
        if self._chunk_count % _PROBE_INTERVAL == 0:
            self._worthwhile = [_shrinks(plane) for plane in planes]
        self._chunk_count += 1
        parts: list[bytes | memoryview] = [_ZLIB_HEADER]
        first = 0
        while first < size:
            last = first + 1
            while last < size and self._worthwhile[last] == self._worthwhile[first]:
                last += 1
            run = planes[first:last].reshape(-1)
            parts.extend(_deflated(run) if self._worthwhile[first] else _stored(run))
            first = last
        parts += [_LAST_BLOCK, isal_zlib.adler32(planes.reshape(-1)).to_bytes(4, "big"), bytes(_CHECKSUM_BYTES)]
        stream = bytearray().join(parts)
        checksum = loops.fletcher32(memoryview(stream)[:-_CHECKSUM_BYTES])
        stream[-_CHECKSUM_BYTES:] = checksum.to_bytes(_CHECKSUM_BYTES, "little")
        return stream


def _shrinks(plane: np.ndarray) -> bool:
    middle = max(0, (len(plane) - _PROBE_BYTES) // 2)
    probe = plane[middle : middle + _PROBE_BYTES]
    return len(isal_zlib.compress(probe, DEFLATE_LEVEL)) < _WORTHWHILE * len(probe)


def _deflated(data: np.ndarray) -> list[bytes]:
    """Deflate blocks that end on a byte boundary and are not the stream's last."""
    stream = isal_zlib.compressobj(DEFLATE_LEVEL, isal_zlib.DEFLATED, -15)
    return [stream.compress(data), stream.flush(isal_zlib.Z_SYNC_FLUSH)]


def _stored(data: np.ndarray) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    for start in range(0, len(data), _STORED_MAX):
        block = data[start : start + _STORED_MAX]
        length = len(block)
        parts += [b"\0" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little"), block.data]
    return parts


def _pending(compression: str, dtype: np.dtype, row_shape: tuple[int, ...]) -> Pending:
    check_compression(compression)
    if compression == "gzip":
        return PendingPlanes(dtype, row_shape)
    return PendingRows(dtype, row_shape, encode_plain if compression == "none" else None)


class ChunkedColumn:
    """A dataset that grows by rows, chunked, filtered and checksummed, and its content digest.

    The dataset is created when its first chunk is full, or in `finish`; one that stays shorter than a chunk gets a
    single chunk of its own length. At most one chunk is held. Type is little-endian in the file.

    `encode` and `encode_rest` may run in any thread, one call at a time for a column; `write` and `finish` use HDF5.
    """

    def __init__(
        self,
        objects: NewObjects,
        path: str,
        dtype: np.dtype,
        row_shape: tuple[int, ...] = (),
        unit: str = "",
        compression: str = "gzip",
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self.path = path
        self.digest = DatasetDigest(path, dtype, row_shape)
        self._objects, self._unit, self._chunk_rows, self._compression = objects, unit, chunk_rows, compression
        self._dtype, self._row_shape = np.dtype(dtype).newbyteorder("<"), row_shape
        self._pending = _pending(compression, self._dtype, row_shape)
        self._pending.resize(chunk_rows, 0)
        self._pending_rows = 0
        self._written_rows = 0
        self._dataset: Any = None

    def shorten(self, chunk_rows: int) -> None:
        """Makes chunks shorter, to no less than what is pending; before the first is full."""
        if self._dataset is not None or chunk_rows <= self._pending_rows:
            raise ValueError(f"{self.path}: chunks of {chunk_rows} rows come too late")
        self._chunk_rows = chunk_rows
        self._pending.resize(chunk_rows, self._pending_rows)

    def encode(self, rows: np.ndarray) -> list[Encoded]:
        """Takes the next rows [n, *row_shape]; returns the chunks that they complete, for `write`."""
        rows = little_endian(rows)
        if rows.shape[1:] != self._row_shape or rows.dtype != self._dtype:
            raise ValueError(
                f"{self.path}: rows are {rows.dtype}{rows.shape}, not {self._dtype}[n, *{self._row_shape}]"
            )
        self.digest.update(rows)
        chunks = []
        start = 0
        while start < len(rows):
            count = min(self._chunk_rows - self._pending_rows, len(rows) - start)
            self._pending.put(rows[start : start + count], self._pending_rows)
            start += count
            self._pending_rows += count
            if self._pending_rows == self._chunk_rows:
                chunks.append(self._pending.packed(self._chunk_rows))
                self._pending_rows = 0
        return chunks

    def write(self, chunks: list[Encoded]) -> None:
        for chunk in chunks:
            self._write(chunk, self._chunk_rows)

    def append(self, rows: np.ndarray) -> None:
        self.write(self.encode(rows))

    def encode_rest(self) -> Encoded | None:
        """The last chunk, for `finish`, filled up with zeros that no reader sees; None where nothing is pending."""
        count = self._pending_rows
        if not count:
            return None
        if self._dataset is None:
            self._chunk_rows = count
            self._pending.resize(count, count)
        return self._pending.packed(count)

    def finish(self, rest: Encoded | None = None) -> None:
        """Writes the last chunk, which `encode_rest` made if it was called."""
        rest = self.encode_rest() if rest is None else rest
        if rest is not None:
            self._write(rest, self._pending_rows)
            self._pending_rows = 0
        elif self._dataset is None:
            self._create()

    def _create(self) -> Any:
        self._dataset = self._objects.rows(
            self.path, self._dtype, self._row_shape, self._chunk_rows, self._compression, self._unit
        )
        return self._dataset

    def _write(self, chunk: Encoded, row_count: int) -> None:
        dataset = self._create() if self._dataset is None else self._dataset
        start = self._written_rows
        self._written_rows += row_count
        dataset.set_extent((self._written_rows, *self._row_shape))
        if isinstance(chunk, np.ndarray):
            h5py.Dataset(dataset)[start : self._written_rows] = chunk[:row_count]
        else:
            dataset.write_direct_chunk((start, *(0 for _ in self._row_shape)), chunk)
