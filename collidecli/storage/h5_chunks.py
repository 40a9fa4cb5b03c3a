"""HDF5 chunks filtered outside HDF5: valid chunks of the same filters, several times faster.

HDF5's pipeline compresses with zlib, on one thread, under h5py's global lock. `PendingPlanes` applies the filters
shuffle (2), deflate (1) and fletcher32 (3), with ISA-L's deflate, and `ChunkedColumns` writes the result by
`H5Dwrite_chunk`. Any HDF5 reader decodes it with its built-in filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import h5py
import numpy as np
from h5py import h5d, h5p, h5t, h5z  # pyright: ignore[reportAttributeAccessIssue]
from isal import isal_zlib

from collidecli.errors import InputError
from collidecli.scene.option_choices import COMPRESSIONS
from collidecli.storage import array_loops as loops
from collidecli.storage.contact_sets.content_hash import DatasetDigest, little_endian

DEFLATE_LEVEL = 1
_COMPACT_BYTES = 4096
"""Largest dataset that is stored in its object header."""
_STRING_BYTES = h5t.py_create(h5py.string_dtype(), logical=True).get_size()


class NewObjects:
    """Creates objects in a new `file` by path, with their parent groups."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def numbers(self, path: str, values: np.ndarray, unit: str = "") -> None:
        """A dataset of numbers, little-endian in the file."""
        values = np.ascontiguousarray(values)
        self._dataset(path, values.shape, values.dtype.newbyteorder("<"), _table_layout(values.nbytes), values, unit)

    def strings(self, path: str, values: Sequence[str], unit: str = "") -> None:
        """A dataset of UTF-8 strings of any length."""
        layout = _table_layout(len(values) * _STRING_BYTES)
        self._dataset(path, (len(values),), h5py.string_dtype(), layout, np.array(values, object), unit)

    def rows(
        self, path: str, dtype: np.dtype, row_shape: tuple[int, ...], chunk_rows: int, compression: str, unit: str = ""
    ) -> h5py.Dataset:
        """An empty dataset, extensible by rows, with the filters of `compression`."""
        created = h5p.create(h5p.DATASET_CREATE)
        created.set_chunk((chunk_rows, *row_shape))
        _set_filters(created, compression)
        growing = {"chunks": (chunk_rows, *row_shape), "maxshape": (None, *row_shape)}
        return self._dataset(path, (0, *row_shape), np.dtype(dtype).newbyteorder("<"), created, None, unit, **growing)

    def attribute(self, path: str, name: str, value: object) -> None:
        """An attribute of a group: a string, a number, or an array of numbers."""
        self._file.require_group(path).attrs[name] = value

    def report(self, path: str, values: Mapping[str, object]) -> None:
        """A group from a mapping: arrays and lists as datasets, mappings as groups, other values as attributes."""
        self._file.require_group(path)
        for name, value in values.items():
            below = f"{path}/{name}"
            if isinstance(value, Mapping):
                self.report(below, value)
            elif isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
                self.strings(below, value)
            elif isinstance(value, (list, tuple, np.ndarray)):
                self.numbers(below, np.asarray(value))
            else:
                self.attribute(path, name, value)

    def _dataset(
        self, path: str, shape: tuple[int, ...], dtype: np.dtype, created: Any, values: Any, unit: str, **options: Any
    ) -> h5py.Dataset:
        dataset = self._file.create_dataset(path, shape, dtype, values, dcpl=created, track_times=False, **options)
        if unit:
            dataset.attrs["unit"] = unit
        return dataset


def _table_layout(size: int) -> Any:
    created = h5p.create(h5p.DATASET_CREATE)
    if 0 < size <= _COMPACT_BYTES:
        created.set_layout(h5d.COMPACT)
    return created


def check_compression(compression: str) -> None:
    """Raises InputError for an unknown compression, or one whose package is not installed."""
    if compression not in COMPRESSIONS:
        known = ", ".join(COMPRESSIONS)
        raise InputError(f"unknown compression {compression!r}", "--compression", f"choose {known}")
    if compression == "zstd":
        _zstd()


def _zstd() -> Any:
    try:
        return import_module("hdf5plugin").Zstd(clevel=1)
    except ImportError as error:
        raise InputError(
            "zstd needs hdf5plugin, which is not installed",
            "--compression",
            "pip install 'collidecli[zstd]', or choose gzip, lzf or none",
        ) from error


def _set_filters(created: Any, compression: str) -> None:
    if compression != "none":
        created.set_shuffle()
    if compression == "gzip":
        created.set_deflate(DEFLATE_LEVEL)
    elif compression == "lzf":
        created.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
    elif compression == "zstd":
        chosen = _zstd()
        created.set_filter(chosen.filter_id, h5z.FLAG_OPTIONAL, chosen.filter_options)
    created.set_fletcher32()


CHUNK_ROWS = 32768
"""A chunk of float64 vectors is 768 KiB: within a core's cache, and within HDF5's default chunk cache of 1 MiB."""

Encoded = bytes | bytearray | np.ndarray
"""A filtered chunk, or an array for HDF5 to filter."""

_ZLIB_HEADER = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_MAX = 65535
_CHECKSUM_BYTES = bytes(4)
_PROBE_BYTES = 4096
_PROBE_INTERVAL = 8
_WORTHWHILE = 0.75
"""A byte plane is stored uncompressed if its probe does not shrink below this fraction. Measured on contacts of moving
humanoids: 770 MB/s and a ratio of 1.51; with 0.9, 590 MB/s and 1.56; with every plane deflated, 485 MB/s and 1.57."""

Task = tuple[np.ndarray, np.ndarray, int]
"""Arguments of `array_loops.shuffle`: numbers, planes, and the index in each plane of the first number's byte."""


class Pending(Protocol):
    """The rows of an incomplete chunk."""

    def resize(self, row_count: int, held: int) -> None:
        """Sets the chunk length to `row_count` rows and keeps the first `held` rows."""
        ...

    def put(self, rows: np.ndarray, first: int) -> Task | None:
        """Stores rows from the chunk's row `first` on; they are complete after the returned task."""
        ...

    def packed(self, row_count: int) -> Encoded:
        """The chunk with its first `row_count` rows; the others are zeros beyond the dataset's extent.

        Bytes end with space for a checksum.
        """
        ...


class PendingRows:
    """A chunk as rows. has_checksum: the checksum is the only filter; else HDF5 filters the chunk."""

    def __init__(self, dtype: np.dtype, row_shape: tuple[int, ...], has_checksum: bool) -> None:
        self._rows, self._has_checksum = np.empty((0, *row_shape), dtype), has_checksum

    def resize(self, row_count: int, held: int) -> None:
        rows = np.empty((row_count, *self._rows.shape[1:]), self._rows.dtype)
        rows[:held] = self._rows[:held]
        self._rows = rows

    def put(self, rows: np.ndarray, first: int) -> None:
        self._rows[first : first + len(rows)] = rows

    def packed(self, row_count: int) -> Encoded:
        self._rows[row_count:] = 0
        if not self._has_checksum:
            return self._rows.copy()
        return bytearray().join((self._rows.reshape(-1).view(np.uint8).data, _CHECKSUM_BYTES))


class PendingPlanes:
    """A chunk in the layout of shuffle, for shuffle, deflate and fletcher32; rows are shuffled on arrival.

    The low bytes of floating-point numbers are close to noise; a byte plane whose probe does not compress becomes
    stored blocks of the deflate stream. Each plane is probed every few chunks.
    """

    def __init__(self, dtype: np.dtype, row_shape: tuple[int, ...]) -> None:
        self._width = math.prod(row_shape)
        self._planes = np.empty((dtype.itemsize, 0), np.uint8)
        self._worthwhile: list[bool] = []
        self._chunk_count = 0

    def resize(self, row_count: int, held: int) -> None:
        planes = np.empty((len(self._planes), row_count * self._width), np.uint8)
        planes[:, : held * self._width] = self._planes[:, : held * self._width]
        self._planes = planes

    def put(self, rows: np.ndarray, first: int) -> Task:
        return rows, self._planes, first * self._width

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
        parts += [_LAST_BLOCK, isal_zlib.adler32(planes.reshape(-1)).to_bytes(4, "big"), _CHECKSUM_BYTES]
        return bytearray().join(parts)


def _shrinks(plane: np.ndarray) -> bool:
    middle = max(0, (len(plane) - _PROBE_BYTES) // 2)
    probe = plane[middle : middle + _PROBE_BYTES]
    return len(isal_zlib.compress(probe, DEFLATE_LEVEL)) < _WORTHWHILE * len(probe)


def _deflated(data: np.ndarray) -> list[bytes]:
    """Deflate blocks that end on a byte boundary, without the stream's last block."""
    stream = isal_zlib.compressobj(DEFLATE_LEVEL, isal_zlib.DEFLATED, -15)
    return [stream.compress(data), stream.flush(isal_zlib.Z_SYNC_FLUSH)]


def _stored(data: np.ndarray) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    for start in range(0, len(data), _STORED_MAX):
        block = data[start : start + _STORED_MAX]
        length = len(block)
        parts += [b"\0" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little"), block.data]
    return parts


def _sealed(chunks: list[Encoded]) -> list[Encoded]:
    """The chunks, with the checksums at the ends of their bytes."""
    streams = [chunk for chunk in chunks if isinstance(chunk, bytearray)]
    sums = loops.fletcher32([memoryview(stream)[: -len(_CHECKSUM_BYTES)] for stream in streams])
    for stream, checksum in zip(streams, sums, strict=True):
        stream[-len(_CHECKSUM_BYTES) :] = checksum.to_bytes(len(_CHECKSUM_BYTES), "little")
    return chunks


class ChunkedColumn:
    """A dataset to which rows are appended, chunked, filtered and checksummed, and its content digest.

    It is one of `ChunkedColumns`. Its type in the file is little-endian.
    """

    def __init__(
        self,
        objects: NewObjects,
        path: str,
        dtype: np.dtype,
        row_shape: tuple[int, ...] = (),
        unit: str = "",
        compression: str = "gzip",
    ) -> None:
        check_compression(compression)
        self.path = path
        self.digest = DatasetDigest(path, dtype, row_shape)
        self._objects, self._unit, self._compression = objects, unit, compression
        self._dtype, self._row_shape = np.dtype(dtype).newbyteorder("<"), row_shape
        is_gzip, is_plain = compression == "gzip", compression == "none"
        self.pending: Pending = (
            PendingPlanes(self._dtype, row_shape) if is_gzip else PendingRows(self._dtype, row_shape, is_plain)
        )
        self._written_rows = 0
        self._dataset: Any = None

    @property
    def is_there(self) -> bool:
        """Whether the dataset exists in the file, with a fixed chunk shape."""
        return self._dataset is not None

    def checked(self, rows: np.ndarray) -> np.ndarray:
        """The rows [n, *row_shape], contiguous and little-endian."""
        rows = little_endian(rows)
        if rows.shape[1:] != self._row_shape or rows.dtype != self._dtype:
            raise ValueError(
                f"{self.path}: rows are {rows.dtype}{rows.shape}, not {self._dtype}[n, *{self._row_shape}]"
            )
        return rows

    def create(self, chunk_rows: int) -> None:
        self._dataset = self._objects.rows(
            self.path, self._dtype, self._row_shape, chunk_rows, self._compression, self._unit
        )

    def write(self, chunk: Encoded, row_count: int) -> None:
        """Writes a chunk with `row_count` valid rows."""
        start = self._written_rows
        self._written_rows += row_count
        self._dataset.id.set_extent((self._written_rows, *self._row_shape))
        if isinstance(chunk, np.ndarray):
            self._dataset[start : self._written_rows] = chunk[:row_count]
        else:
            self._dataset.id.write_direct_chunk((start, *(0 for _ in self._row_shape)), chunk)


Run = Callable[..., Iterable[Any]]
"""`map`, or the `map` method of a pool of threads."""


class ChunkedColumns:
    """Columns of equal length to which rows are appended together, with shared calls of the loops.

    A dataset is created when its first chunk is full, or in `finish`; a dataset with fewer rows than a chunk has a
    single chunk of its length. At most one chunk of each column is in memory.
    """

    def __init__(self, columns: Sequence[ChunkedColumn], chunk_rows: int = CHUNK_ROWS) -> None:
        self._columns = list(columns)
        self._chunk_rows, self._held = chunk_rows, 0
        for column in self._columns:
            column.pending.resize(chunk_rows, 0)

    def shorten(self, chunk_rows: int) -> None:
        """Shortens the chunks, to more than the pending rows; only before the first chunk is full."""
        if chunk_rows <= self._held or any(column.is_there for column in self._columns):
            raise ValueError(f"chunks cannot be shortened to {chunk_rows} rows any more")
        self._resize(chunk_rows)

    def _resize(self, chunk_rows: int) -> None:
        self._chunk_rows = chunk_rows
        for column in self._columns:
            column.pending.resize(chunk_rows, self._held)

    def append(self, values: Sequence[np.ndarray], run: Run = map) -> None:
        """Appends rows, an array [n, *row_shape] for each column. run: map for hashing and packing the columns."""
        arrays = [column.checked(rows) for column, rows in zip(self._columns, values, strict=True)]
        count = len(arrays[0])
        if any(len(rows) != count for rows in arrays):
            raise ValueError(f"columns of {[len(rows) for rows in arrays]} rows have different lengths")
        start = 0
        while start < count:
            taken = min(self._chunk_rows - self._held, count - start)
            pieces = [rows[start : start + taken] for rows in arrays]
            start += taken
            tasks = [column.pending.put(rows, self._held) for column, rows in zip(self._columns, pieces, strict=True)]
            loops.shuffle([task for task in tasks if task is not None])
            self._held += taken
            is_full = self._held == self._chunk_rows
            chunks = list(run(self._taken, self._columns, pieces, [is_full] * len(pieces)))
            if is_full:
                self._write(chunks)

    def _taken(self, column: ChunkedColumn, rows: np.ndarray, is_full: bool) -> Encoded | None:
        column.digest.update(rows)
        return column.pending.packed(self._held) if is_full else None

    def finish(self, run: Run = map) -> None:
        """Writes the last chunk, padded with zeros beyond the dataset's extent."""
        missing = [column for column in self._columns if not column.is_there]
        if self._held:
            if missing:
                self._resize(self._held)
            self._write(list(run(lambda column: column.pending.packed(self._held), self._columns)))
        else:
            for column in missing:
                column.create(self._chunk_rows)

    def _write(self, chunks: list[Encoded]) -> None:
        for column, chunk in zip(self._columns, _sealed(chunks), strict=True):
            if not column.is_there:
                column.create(self._chunk_rows)
            column.write(chunk, self._held)
        self._held = 0
