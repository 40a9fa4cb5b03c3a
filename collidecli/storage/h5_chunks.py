"""HDF5 chunks filtered outside HDF5: valid chunks of the same filters, several times faster.

HDF5's pipeline compresses with zlib, on one thread, under h5py's global lock. `GzipPacker` applies
the filters shuffle (2), deflate (1) and fletcher32 (3), with ISA-L's deflate, and `ChunkedColumns`
writes the result by `H5Dwrite_chunk`. Any HDF5 reader decodes it with its built-in filters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, groupby
from typing import Any

import h5py
import numpy as np
from isal import isal_zlib

from collidecli.storage import array_loops
from collidecli.storage.content_hash import DatasetDigest, StreamDigest, Task
from collidecli.storage.new_objects import DEFLATE_LEVEL, NewObjects, check_compression

CHUNK_ROWS = 32768
"""A chunk of float64 vectors is 768 KiB: within a core's cache, and within HDF5's default chunk
cache of 1 MiB."""
IN_FLIGHT = 2
"""Chunks of each column that are hashed and filtered while rows of the next are appended."""
HELD_ROWS = 2048
"""Rows of a piece of a chunk that is kept until the chunk is complete; shorter ones are copied
together, as each piece of each column takes some microseconds."""
HELD_PART = 4
"""A piece is copied if the array of which it is a part, and which it keeps in memory, has more than
so many times its rows."""
Pieces = Sequence[np.ndarray]
"""Contiguous rows, one or more, that follow one another in a chunk of a column."""
Encoded = bytes | bytearray | np.ndarray
"""A filtered chunk, or an array for HDF5 to filter."""
_ZLIB_HEADER = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_MAX = 65535
CHECKSUM_BYTES = 4
_PROBE_NUMBERS = 4096
_PROBE_INTERVAL = 8
_WORTHWHILE = 0.75
"""A byte plane is stored uncompressed if its probe does not shrink below this fraction. Measured on
contacts of moving humanoids: 770 MB/s and a ratio of 1.51; with 0.9, 590 MB/s and 1.56; with every
plane deflated, 485 MB/s and 1.57."""


class Packer:
    """Filters the chunks of one column; this class leaves the filters and the missing rows to
    HDF5."""

    def probe(self, pieces: Pieces) -> Sequence[bool]:
        """Which byte planes of the next chunk are worth compressing; called in the order of chunks,
        while earlier ones are packed by other threads."""
        return ()

    def pack(self, pieces: Pieces, row_count: int, worthwhile: Sequence[bool]) -> Encoded:
        """A chunk of `row_count` rows; those that are missing are zeros beyond the extent.

        worthwhile: from `probe`.
        """
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


class PlainPacker(Packer):
    """Packs with fletcher32 alone."""

    def pack(self, pieces: Pieces, row_count: int, worthwhile: Sequence[bool]) -> bytearray:
        missing = bytes((row_count - _rows_of(pieces)) * pieces[0][:1].nbytes)
        return _sealed([*(rows.reshape(-1).view(np.uint8).data for rows in pieces), missing])


class GzipPacker(Packer):
    """Packs with shuffle, deflate and fletcher32.

    The low bytes of floating-point numbers are close to noise; a byte plane whose probe does not
    compress becomes stored blocks of the deflate stream. Planes are probed every few chunks.
    """

    def __init__(self) -> None:
        self._worthwhile: list[bool] = []
        self._chunk_count = 0

    def probe(self, pieces: Pieces) -> Sequence[bool]:
        if self._chunk_count % _PROBE_INTERVAL == 0:
            numbers = _middle(pieces)
            sample = numbers.view(np.uint8).reshape(-1, numbers.itemsize)
            planes = np.ascontiguousarray(sample.T)
            sizes = [len(isal_zlib.compress(plane, DEFLATE_LEVEL)) for plane in planes]
            self._worthwhile = [size < _WORTHWHILE * len(sample) for size in sizes]
        self._chunk_count += 1
        return self._worthwhile

    def pack(self, pieces: Pieces, row_count: int, worthwhile: Sequence[bool]) -> bytearray:
        width = pieces[0][:1].size
        planes = np.empty((pieces[0].itemsize, row_count * width), np.uint8)
        ends = [*accumulate(rows.size for rows in pieces)]
        array_loops.shuffle(
            [(rows, planes, end - rows.size) for rows, end in zip(pieces, ends, strict=True)]
        )
        planes[:, ends[-1] :] = 0
        parts: list[bytes | memoryview] = [_ZLIB_HEADER]
        for is_worthwhile, group in groupby(range(len(planes)), worthwhile.__getitem__):
            numbers = [*group]
            run = planes[numbers[0] : numbers[-1] + 1].reshape(-1)
            parts.extend(_deflated(run) if is_worthwhile else _stored(run))
        parts += [_LAST_BLOCK, isal_zlib.adler32(planes.reshape(-1)).to_bytes(4, "big")]
        return _sealed(parts)


def _rows_of(pieces: Pieces) -> int:
    return sum(map(len, pieces))


def _middle(pieces: Pieces) -> np.ndarray:
    """_PROBE_NUMBERS numbers from the middle of pieces; all, where there are fewer."""
    first = max(0, (sum(rows.size for rows in pieces) - _PROBE_NUMBERS) // 2)
    found: list[np.ndarray] = []
    wanted = _PROBE_NUMBERS
    for rows in pieces:
        part = rows.reshape(-1)[first : first + wanted]
        first = max(0, first - rows.size)
        wanted -= len(part)
        found.append(part)
    return np.concatenate(found)


def _sealed(parts: list[bytes | memoryview]) -> bytearray:
    chunk = bytearray().join((*parts, bytes(CHECKSUM_BYTES)))
    data = memoryview(chunk)[:-CHECKSUM_BYTES]
    chunk[-CHECKSUM_BYTES:] = array_loops.fletcher32([data])[0].to_bytes(CHECKSUM_BYTES, "little")
    return chunk


def _deflated(data: np.ndarray) -> list[bytes]:
    """Deflate blocks that end on a byte boundary, without the stream's last block."""
    stream = isal_zlib.compressobj(DEFLATE_LEVEL, isal_zlib.DEFLATED, -15)
    return [stream.compress(data), stream.flush(isal_zlib.Z_SYNC_FLUSH)]


def _stored(data: np.ndarray) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    for start in range(0, len(data), _STORED_MAX):
        block = data[start : start + _STORED_MAX]
        length = len(block)
        parts += [
            b"\0" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little"),
            block.data,
        ]
    return parts


_PACKERS: dict[str, type[Packer]] = {"gzip": GzipPacker, "none": PlainPacker}
"""By compression; for all others HDF5 filters."""


class ChunkThreads:
    """Threads that hash and filter chunks; a context manager that ends them.

    count: threads for tasks in any order. One more runs tasks in their order.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = ThreadPoolExecutor(count, "collide-pack")
        self._sequence = ThreadPoolExecutor(1, "collide-hash")

    def start(
        self, tasks: Iterable[Task], sequence: list[Task], is_last: bool
    ) -> Callable[[], None]:
        """Starts tasks, and a sequence that follows every earlier one; returns a function that
        waits for all of them.

        It raises the exception of a task. is_last: all threads are free for these tasks; otherwise
        those of other chunks are in progress too.
        """
        waiting = deque(tasks)
        count = min(self._count if is_last else max(1, self._count // IN_FLIGHT), len(waiting))
        futures = [self._pool.submit(_run_all, waiting) for _ in range(count)]
        if sequence:
            futures.append(self._sequence.submit(_run_all, deque(sequence)))

        def wait() -> None:
            for future in futures:
                future.result()

        return wait

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._sequence.shutdown(cancel_futures=True)


def _run_all(waiting: deque[Task]) -> None:
    while waiting:
        try:
            task = waiting.popleft()
        except IndexError:  # another thread has taken the last one
            return
        task()


class ChunkedColumn:
    """A dataset to which rows are appended, chunked, filtered and checksummed, and its content
    digest.

    It is one of `ChunkedColumns`. Its type in the file is little-endian. digest: the class of its
    digest.
    """

    def __init__(
        self,
        objects: NewObjects,
        path: str,
        dtype: np.dtype,
        row_shape: tuple[int, ...] = (),
        unit: str = "",
        compression: str = "gzip",
        digest: type[DatasetDigest] = StreamDigest,
    ) -> None:
        check_compression(compression)
        self.path = path
        self.digest = digest(path, dtype, row_shape)
        self.packer = _PACKERS.get(compression, Packer)()
        self._objects = objects
        self._unit = unit
        self._compression = compression
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._row_shape = row_shape
        self._written_rows = 0
        self._dataset: Any = None

    def checked(self, rows: np.ndarray) -> np.ndarray:
        """The rows [n, *row_shape], contiguous and little-endian."""
        if rows.shape[1:] != self._row_shape or rows.dtype.newbyteorder("<") != self._dtype:
            wanted = f"{self._dtype}[n, *{self._row_shape}]"
            raise ValueError(f"{self.path}: rows are {rows.dtype}{rows.shape}, not {wanted}")
        return np.ascontiguousarray(rows, self._dtype)

    def create(self, chunk_rows: int) -> None:
        """Creates the dataset, with a fixed chunk shape; does nothing if it exists."""
        if self._dataset is None:
            row = (self._dtype, self._row_shape, chunk_rows)
            self._dataset = self._objects.rows(self.path, *row, self._compression, self._unit)

    def write(self, chunk: Encoded, row_count: int) -> None:
        """Writes a chunk with `row_count` valid rows."""
        start = self._written_rows
        self._written_rows += row_count
        self._dataset.set_extent((self._written_rows, *self._row_shape))
        if isinstance(chunk, np.ndarray):
            h5py.Dataset(self._dataset)[start : self._written_rows] = chunk
        else:
            self._dataset.write_direct_chunk((start, *(0 for _ in self._row_shape)), chunk)


class _Chunk:
    """A chunk of every column that is being hashed and filtered. pieces: of each column.
    chunk_rows: in the file."""

    def __init__(
        self,
        columns: Sequence[ChunkedColumn],
        pieces: Sequence[Pieces],
        chunk_rows: int,
        threads: ChunkThreads | None,
        is_last: bool,
    ) -> None:
        self.row_count = _rows_of(pieces[0])
        self._packed: list[Encoded | None] = [None] * len(pieces)
        tasks: list[Task] = []
        sequence: list[Task] = []
        # the longest first: all have as many rows
        for index in sorted(range(len(pieces)), key=lambda index: -pieces[index][0][:1].nbytes):
            packer = columns[index].packer
            worthwhile = packer.probe(pieces[index])
            tasks.append(partial(self._pack, index, packer, pieces[index], chunk_rows, worthwhile))
            for rows in pieces[index]:
                anywhere, following = columns[index].digest.tasks(rows)
                tasks += [] if anywhere is None else [anywhere]
                sequence += [] if following is None else [following]
        if threads is None:
            for task in (*tasks, *sequence):
                task()
        self._wait = None if threads is None else threads.start(tasks, sequence, is_last)

    def _pack(
        self, index: int, packer: Packer, pieces: Pieces, count: int, worthwhile: Sequence[bool]
    ) -> None:
        self._packed[index] = packer.pack(pieces, count, worthwhile)

    def packed(self) -> list[Encoded]:
        """The filtered chunk of each column; waits for it."""
        if self._wait is not None:
            self._wait()
        return [chunk for chunk in self._packed if chunk is not None]


class ChunkedColumns:
    """Columns of equal length to which rows are appended together.

    A dataset is created when its first chunk is full, or in `finish`; a dataset with fewer rows
    than a chunk has a single chunk of its length. At most IN_FLIGHT + 1 chunks of each column are
    in memory, with the arrays of which they are parts (HELD_PART).
    """

    def __init__(self, columns: Sequence[ChunkedColumn], chunk_rows: int = CHUNK_ROWS) -> None:
        self._columns = list(columns)
        self._chunk_rows = chunk_rows
        self._held = 0
        self._pending: list[list[np.ndarray]] = [[] for _ in columns]
        """Pieces of the chunk that is not full, of each column."""
        self._copies: list[np.ndarray] = []
        """Of each column, memory for short pieces, whose filled part is the last piece."""
        self._begun = False
        """Whether a chunk was full: the length of chunks is final."""
        self._started: deque[_Chunk] = deque()

    def shorten(self, chunk_rows: int) -> None:
        """Shortens the chunks, to more than the pending rows; only before the first chunk is
        full."""
        if chunk_rows <= self._held or self._begun:
            raise ValueError(f"chunks cannot be shortened to {chunk_rows} rows any more")
        self._chunk_rows = chunk_rows

    def append(self, values: Sequence[np.ndarray], threads: ChunkThreads | None = None) -> None:
        """Appends rows, an array [n, *row_shape] for each column, which must not change until
        `finish`.

        threads: for hashing and filtering; None is the calling thread.
        """
        arrays = [column.checked(rows) for column, rows in zip(self._columns, values, strict=True)]
        count = len(arrays[0])
        if any(len(rows) != count for rows in arrays):
            raise ValueError(
                f"columns of {[len(rows) for rows in arrays]} rows have different lengths"
            )
        start = 0
        while start < count:
            taken = min(self._chunk_rows - self._held, count - start)
            pieces = [rows[start : start + taken] for rows in arrays]
            start += taken
            if taken < self._chunk_rows and (taken < HELD_ROWS or HELD_PART * taken < count):
                self._copy(pieces, taken)
            else:
                self._keep(pieces)
            self._held += taken
            if self._held == self._chunk_rows:
                self._start(self._taken(), threads)

    def _keep(self, pieces: Sequence[np.ndarray]) -> None:
        """Adds pieces to the chunk that is not full."""
        self._copies = []
        for pending, piece in zip(self._pending, pieces, strict=True):
            pending.append(piece)

    def _copy(self, pieces: Sequence[np.ndarray], count: int) -> None:
        """Adds pieces of `count` rows, which are not kept, to the chunk that is not full."""
        if not self._copies:
            left = self._chunk_rows - self._held
            self._copies = [np.empty((left, *rows.shape[1:]), rows.dtype) for rows in pieces]
            for pending, copies in zip(self._pending, self._copies, strict=True):
                pending.append(copies[:0])
        for pending, copies, piece in zip(self._pending, self._copies, pieces, strict=True):
            filled = len(pending[-1])
            copies[filled : filled + count] = piece
            pending[-1] = copies[: filled + count]

    def _taken(self) -> list[list[np.ndarray]]:
        pieces = self._pending
        self._pending = [[] for _ in pieces]
        self._copies = []
        self._held = 0
        return pieces

    def _start(
        self, pieces: Sequence[Pieces], threads: ChunkThreads | None, is_last: bool = False
    ) -> None:
        self._begun = True
        self._write(IN_FLIGHT - 1)
        self._started.append(_Chunk(self._columns, pieces, self._chunk_rows, threads, is_last))
        if threads is None:
            self._write(0)

    def finish(self, threads: ChunkThreads | None = None) -> None:
        """Writes the last chunk, padded with zeros beyond the dataset's extent."""
        if self._held:
            if not self._begun:
                self._chunk_rows = self._held
            self._start(self._taken(), threads, is_last=True)
        self._write(0)
        for column in self._columns:
            column.create(self._chunk_rows)

    def _write(self, most: int) -> None:
        """Writes chunks in order until at most `most` are in memory."""
        while len(self._started) > most:
            chunk = self._started.popleft()
            for column, packed in zip(self._columns, chunk.packed(), strict=True):
                column.create(self._chunk_rows)
                column.write(packed, chunk.row_count)
