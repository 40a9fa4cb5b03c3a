"""HDF5 chunks unpacked here rather than inside HDF5: several at a time, and not at all where two files hold the same.

HDF5's own pipeline unpacks with zlib, on one thread, under h5py's global lock. `ChunkRows` reads chunks as they lie in
the file and does what the filters shuffle (2), deflate (1) and fletcher32 (3) undo, with ISA-L's inflate. Whatever else
a dataset may be, or a chunk that is damaged, is left to HDF5 and to its own messages.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import h5py
import numpy as np
from isal import isal_zlib

from collidecli.storage.array_loops import fletcher32

_SHUFFLE, _DEFLATE, _FLETCHER = 2, 1, 3
_PIPELINES = {(), (_SHUFFLE,), (_DEFLATE,), (_SHUFFLE, _DEFLATE)}
"""Filters in the order in which they packed; fletcher32 may follow any of them."""
_CHECKSUM_BYTES = 4


@dataclass(frozen=True)
class Packing:
    """How a dataset's chunks are packed: two datasets with one packing hold the same where their bytes are the same."""

    dtype: np.dtype
    row_shape: tuple[int, ...]
    chunk_rows: int
    filters: tuple[int, ...]

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Packing | None:
        """None for what only HDF5 unpacks, or what is not cut by rows alone."""
        if dataset.chunks is None or dataset.chunks[1:] != dataset.shape[1:] or dataset.dtype.kind not in "iuf":
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

    @property
    def most_bytes(self) -> int:
        """Of a packed chunk: deflate adds to what it cannot pack a few bytes in some thousands."""
        return self.chunk_bytes + self.chunk_bytes // 100 + 1024

    def unpacked(self, chunk: bytes) -> np.ndarray | None:
        """[chunk_rows, *row_shape]; None for bytes that are not such a chunk."""
        data = memoryview(chunk)
        if self.filters[-1:] == (_FLETCHER,):
            if not _holds(data):
                return None
            data = data[:-_CHECKSUM_BYTES]
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
        size, raw = self.dtype.itemsize, np.frombuffer(data, np.uint8)
        rows = np.empty((self.chunk_rows, *self.row_shape), self.dtype)
        # Of a shuffled chunk the first bytes of all numbers come first.
        if _SHUFFLE in self.filters and size > 1:
            planes, out = raw.reshape(size, -1), rows.reshape(-1).view(np.uint8).reshape(-1, size)
            for place in range(size):
                out[:, place] = planes[place]
        else:
            rows.reshape(-1).view(np.uint8)[:] = raw
        return rows


def _holds(chunk: memoryview) -> bool:
    """Whether the checksum behind a chunk is that of its bytes."""
    data = np.frombuffer(chunk[:-_CHECKSUM_BYTES], np.uint8)
    return fletcher32([data])[0] == int.from_bytes(chunk[-_CHECKSUM_BYTES:], "little")


class ChunkRows:
    """The rows of one dataset. Rows may be asked for from several threads; unpacking releases the GIL."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset, self._packing = dataset, Packing.of(dataset)
        self._edge: tuple[int, np.ndarray] | None = None
        self._lock = threading.Lock()

    def read(self, rows: slice) -> np.ndarray:
        """Rows start to stop - 1. Raises what h5py raises where they cannot be read."""
        first, last, _ = rows.indices(self._dataset.shape[0])
        found = self._unpacked(first, last) if self._packing is not None and first < last else None
        return self._dataset[first:last] if found is None else found

    def same_as(self, other: ChunkRows, rows: slice) -> bool:
        """Whether the same rows of another dataset are certainly the same, bit for bit, without unpacking them.

        False where only unpacking would tell, and for chunks whose checksum does not hold.
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
        """A chunk's bytes; None for one that was never written, skipped a filter or is larger than it could be."""
        assert self._packing is not None
        start = (number * self._packing.chunk_rows, *(0 for _ in self._packing.row_shape))
        try:
            stored = self._dataset.id.get_chunk_info_by_coord(start)
            if stored.byte_offset is None or stored.filter_mask or stored.size > self._packing.most_bytes:
                return None
            return bytes(self._dataset.id.read_direct_chunk(start)[1])
        except (OSError, RuntimeError, ValueError, KeyError):
            return None

    def _unpacked(self, first: int, last: int) -> np.ndarray | None:
        packing = self._packing
        assert packing is not None
        found = np.empty((last - first, *packing.row_shape), packing.dtype)
        for number in self._chunks(first, last):
            chunk = self._chunk(number, last)
            if chunk is None:
                return None
            start = number * packing.chunk_rows
            low, high = max(first, start), min(last, start + packing.chunk_rows)
            found[low - first : high - first] = chunk[low - start : high - start]
        return found

    def _chunk(self, number: int, last: int) -> np.ndarray | None:
        """The chunk in which a read ends is kept: the next one begins there."""
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
