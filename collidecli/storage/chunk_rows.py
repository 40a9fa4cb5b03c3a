"""HDF5 chunks decoded outside HDF5: by several threads, and not at all for equal chunks of two
files.

`ChunkRows` reads raw chunks and inverts shuffle (2), deflate (1) and fletcher32 (3), with the
inflate of ISA-L. HDF5 reads all other datasets and damaged chunks, and reports their errors.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import h5py
import numpy as np
from isal import isal_zlib

from collidecli.storage.array_loops import fletcher32
from collidecli.storage.h5_chunks import CHECKSUM_BYTES

_SHUFFLE = 2
_DEFLATE = 1
_FLETCHER = 3
_PIPELINES = {(), (_SHUFFLE,), (_DEFLATE,), (_SHUFFLE, _DEFLATE)}
"""Filters in the order of encoding; fletcher32 may follow any of them."""


@dataclass(frozen=True)
class Packing:
    """Encoding of a dataset's chunks: for equal packings, equal bytes mean equal data."""

    dtype: np.dtype
    row_shape: tuple[int, ...]
    chunk_rows: int
    filters: tuple[int, ...]

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Packing | None:
        """The packing of a dataset; None if only HDF5 decodes it, or if chunks split rows."""
        if (
            dataset.chunks is None
            or dataset.chunks[1:] != dataset.shape[1:]
            or dataset.dtype.kind not in "iuf"
        ):
            return None
        plist = dataset.id.get_create_plist()
        filters = tuple(plist.get_filter(index)[0] for index in range(plist.get_nfilters()))
        inner = filters[:-1] if filters[-1:] == (_FLETCHER,) else filters
        if inner not in _PIPELINES or dataset.dtype != dataset.dtype.newbyteorder("="):
            return None
        return cls(dataset.dtype, dataset.shape[1:], dataset.chunks[0], filters)

    @property
    def chunk_bytes(self) -> int:
        return self.chunk_rows * int(np.prod(self.row_shape, dtype=np.int64)) * self.dtype.itemsize

    def unpacked(self, chunk: bytes) -> np.ndarray | None:
        """Decoded rows [chunk_rows, *row_shape]; None for bytes that are no such chunk."""
        data = memoryview(chunk)
        if self.filters[-1:] == (_FLETCHER,):
            if not _holds(data):
                return None
            data = data[:-CHECKSUM_BYTES]
        if _DEFLATE in self.filters:
            stream = isal_zlib.decompressobj(15)
            try:
                data = stream.decompress(data, self.chunk_bytes + 1)
            except isal_zlib.error:  # pyright: ignore[reportGeneralTypeIssues]
                return None
            if not stream.eof:
                return None
        if len(data) != self.chunk_bytes:
            return None
        size = self.dtype.itemsize
        raw = np.frombuffer(data, np.uint8)
        rows = np.empty((self.chunk_rows, *self.row_shape), self.dtype)
        # A shuffled chunk has the first bytes of all numbers first.
        if _SHUFFLE in self.filters and size > 1:
            planes = raw.reshape(size, -1)
            out = rows.reshape(-1).view(np.uint8).reshape(-1, size)
            for k in range(size):
                out[:, k] = planes[k]
        else:
            rows.reshape(-1).view(np.uint8)[:] = raw
        return rows


def _holds(chunk: memoryview) -> bool:
    data = np.frombuffer(chunk[:-CHECKSUM_BYTES], np.uint8)
    return fletcher32([data])[0] == int.from_bytes(chunk[-CHECKSUM_BYTES:], "little")


class ChunkRows:
    """The rows of one dataset; thread-safe, and decoding releases the GIL."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset = dataset
        self._packing = Packing.of(dataset)
        self._edge: tuple[int, np.ndarray] | None = None
        self._lock = threading.Lock()

    @property
    def dtype(self) -> np.dtype:
        """The type in the file."""
        return self._dataset.dtype

    def read(self, rows: slice) -> np.ndarray:
        """Rows start to stop - 1. Raises the exceptions of h5py for unreadable rows."""
        first, last, _ = rows.indices(self._dataset.shape[0])
        unpacked = (
            self._unpacked(first, last) if self._packing is not None and first < last else None
        )
        return self._dataset[first:last] if unpacked is None else unpacked

    def same_as(self, other: ChunkRows, rows: slice) -> bool:
        """Whether rows of two datasets have equal chunks with valid checksums, and so equal bits.

        False also if only decoding could decide.
        """
        first, last, _ = rows.indices(min(self._dataset.shape[0], other._dataset.shape[0]))
        if self._packing is None or self._packing != other._packing:
            return False
        checked = self._packing.filters[-1:] == (_FLETCHER,)
        for number in self._chunks(first, last):
            chunk = self._packed(number)
            if chunk is None or chunk != other._packed(number):
                return False
            if checked and not _holds(memoryview(chunk)):
                return False
        return True

    def _chunks(self, first: int, last: int) -> range:
        assert self._packing is not None
        return range(first // self._packing.chunk_rows, -(-last // self._packing.chunk_rows))

    def _packed(self, number: int) -> bytes | None:
        """A chunk's bytes; None for a chunk that was never written, skipped a filter or is too
        large."""
        assert self._packing is not None
        start = (number * self._packing.chunk_rows, *(0 for _ in self._packing.row_shape))
        try:
            stored = self._dataset.id.get_chunk_info_by_coord(start)
            # deflate adds some bytes per thousand to noise
            most = self._packing.chunk_bytes * 101 // 100 + 1024
            if stored.byte_offset is None or stored.filter_mask or stored.size > most:
                return None
            return bytes(self._dataset.id.read_direct_chunk(start)[1])
        except (OSError, RuntimeError, ValueError, KeyError):
            return None

    def _unpacked(self, first: int, last: int) -> np.ndarray | None:
        packing = self._packing
        assert packing is not None
        rows = np.empty((last - first, *packing.row_shape), packing.dtype)
        for number in self._chunks(first, last):
            chunk = self._chunk(number, last)
            if chunk is None:
                return None
            start = number * packing.chunk_rows
            low = max(first, start)
            high = min(last, start + packing.chunk_rows)
            rows[low - first : high - first] = chunk[low - start : high - start]
        return rows

    def _chunk(self, number: int, last: int) -> np.ndarray | None:
        """A decoded chunk; the last chunk of a read is cached, as the next read begins there."""
        assert self._packing is not None
        with self._lock:
            edge = self._edge
        if edge is not None and edge[0] == number:
            return edge[1]
        packed = self._packed(number)
        chunk = None if packed is None else self._packing.unpacked(packed)
        if chunk is not None and (number + 1) * self._packing.chunk_rows > last:
            with self._lock:
                self._edge = (number, chunk)
        return chunk
