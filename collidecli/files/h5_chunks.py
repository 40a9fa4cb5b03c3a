"""HDF5 chunks filtered here rather than inside HDF5: the same bytes in the file's terms, several times faster.

HDF5's own pipeline compresses with zlib, on one thread, under h5py's global lock. `GzipEncoder` does what its filters
shuffle (2), deflate (1) and fletcher32 (3) do, with ISA-L's deflate, and `ChunkedColumn` hands the result to
`H5Dwrite_chunk`. Any HDF5 reader opens it with the filters that it has anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
from isal import isal_zlib

from collidecli.files.contacts.content_hash import DatasetDigest, little_endian
from collidecli.files.h5_objects import DEFLATE_LEVEL, NewObjects, check_compression

CHUNK_ROWS = 32768
"""A chunk of float64 vectors is 768 KiB: within a core's cache here, and within HDF5's default chunk cache of 1 MiB."""

Encoded = bytes | bytearray | np.ndarray
"""A chunk as it goes into the file, or as an array where HDF5 filters it."""

_ZLIB_HEADER = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_MAX = 65535
_PROBE_BYTES = 4096
_PROBE_INTERVAL = 8
_WORTHWHILE = 0.75
"""A byte plane whose probe does not shrink below this share is stored. Measured on contacts of moving humanoids:
770 MB/s and a ratio of 1.51; with 0.9, 590 MB/s and 1.56; with every plane deflated, 485 MB/s and 1.57."""

_FLETCHER_ROW = 512
_FLETCHER_MODULUS = 65535


def fletcher32(data: bytes | np.ndarray) -> int:
    """HDF5's Fletcher checksum: over 16-bit big-endian words, an odd last byte being the high half of a word.

    With words w_1 .. w_n it is sum1 = Σ w_i and sum2 = Σ (n - i + 1) w_i modulo 65535, where a multiple of 65535 that
    is not 0 is written as 65535. Words are summed as little-endian: exchanging a word's bytes multiplies it by 256
    modulo 65535. In rows of R words Σ (n - i) w_i needs only the sums of rows and of columns.
    """
    raw = np.frombuffer(data, np.uint8)
    whole = len(raw) // (2 * _FLETCHER_ROW) * (2 * _FLETCHER_ROW)
    table = raw[:whole].view("<u2").reshape(-1, _FLETCHER_ROW)
    rest = raw[whole:]
    tail = np.zeros((len(rest) + 1) // 2, np.dtype("<u2"))
    tail.view(np.uint8)[: len(rest)] = rest

    word_count = table.size + len(tail)
    row_sums = table.sum(axis=1, dtype=np.uint32).astype(np.int64)
    column_sums = table.sum(axis=0, dtype=np.uint64).astype(np.int64)
    tail_words = tail.astype(np.int64)
    total = int(row_sums.sum() + tail_words.sum())
    if total == 0:
        return 0
    row_weight = (word_count - _FLETCHER_ROW * np.arange(len(table))) % _FLETCHER_MODULUS
    weighted = int(row_sums @ row_weight) - int((column_sums % _FLETCHER_MODULUS) @ np.arange(_FLETCHER_ROW))
    weighted += int(tail_words @ np.arange(len(tail), 0, -1))
    sum1, sum2 = (((value * 256 - 1) % _FLETCHER_MODULUS) + 1 for value in (total, weighted))
    return sum2 << 16 | sum1


def encode_plain(chunk: np.ndarray) -> bytes:
    """A chunk as the filter fletcher32 alone makes it."""
    raw = chunk.reshape(-1).view(np.uint8)
    return b"".join((raw.data, fletcher32(raw).to_bytes(4, "little")))


class GzipEncoder:
    """Makes chunks of one dataset as shuffle, deflate and fletcher32 make them.

    The low bytes of floating-point numbers are close to noise; a byte plane that a probe finds so becomes stored blocks
    of the same deflate stream. Each plane is probed again every few chunks.
    """

    def __init__(self) -> None:
        self._worthwhile: list[bool] = []
        self._chunk_count = 0

    def __call__(self, chunk: np.ndarray) -> bytearray:
        """chunk: contiguous, of the full chunk shape."""
        size = chunk.dtype.itemsize
        planes = _workspace(chunk.nbytes).reshape(size, chunk.size)
        np.copyto(planes, chunk.reshape(-1).view(np.uint8).reshape(chunk.size, size).T)
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
        parts += [_LAST_BLOCK, isal_zlib.adler32(planes.reshape(-1)).to_bytes(4, "big")]
        stream = bytearray().join(parts)
        stream += fletcher32(np.frombuffer(stream, np.uint8)).to_bytes(4, "little")
        return stream


_thread = threading.local()


def _workspace(size: int) -> np.ndarray:
    """Bytes of this thread, kept from call to call: fresh pages from the system would cost as much as the shuffling."""
    if getattr(_thread, "buffer", None) is None or len(_thread.buffer) < size:
        _thread.buffer = np.empty(size, np.uint8)
    return _thread.buffer[:size]


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


def _encoder(compression: str) -> Callable[[np.ndarray], Encoded] | None:
    """What makes a chunk's bytes; None where HDF5 has to filter itself."""
    check_compression(compression)
    return {"gzip": GzipEncoder(), "none": encode_plain}.get(compression)


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
        self._encoder = _encoder(compression)
        self._pending = np.empty((chunk_rows, *row_shape), self._dtype)
        self._pending_rows = 0
        self._written_rows = 0
        self._dataset: Any = None

    def shorten(self, chunk_rows: int) -> None:
        """Makes chunks shorter, to no less than what is pending; before the first is full."""
        if self._dataset is not None or chunk_rows <= self._pending_rows:
            raise ValueError(f"{self.path}: chunks of {chunk_rows} rows come too late")
        self._chunk_rows = chunk_rows

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
            piece = rows[start : start + count]
            start += count
            if count == self._chunk_rows:
                chunks.append(self._encoded(piece))
                continue
            self._pending[self._pending_rows : self._pending_rows + count] = piece
            self._pending_rows += count
            if self._pending_rows == self._chunk_rows:
                chunks.append(self._encoded(self._pending[: self._chunk_rows]))
                self._pending_rows = 0
        return chunks

    def _encoded(self, chunk: np.ndarray) -> Encoded:
        return chunk.copy() if self._encoder is None else self._encoder(chunk)

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
        self._pending[count:] = 0
        return self._encoded(self._pending[: self._chunk_rows])

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
