"""Columns that a kernel copies from a device to page-locked memory of the host, as many rows as the
device has found.

The columns are parts of one array (`Workspace.packed_table`), each with a capacity. A copy by the
host would need the number of rows, or copy the capacities. The kernel writes whole words of 16
bytes in the order of memory, so that the bus has full transactions; the rows of a column alone,
with 12 or 24 bytes, would cross it in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import warp as wp

from collidecli.engine.runtime.chunk_counts import ChunkCounts, ElementCount, Scratch
from collidecli.engine.runtime.kernel import kernel

if TYPE_CHECKING:
    from collidecli.engine.runtime.device_stream import DeviceStream

WORD = wp.constant(16)
"""Bytes that a thread copies."""
COUNTED = wp.constant(-1)
"""Rows of a column that has as many as were found."""

KEPT_SECTIONS = 32
"""Lists of sections that are kept: a chunk has a few tables, whose lists change when they grow, and
with hydroelastic pairs seven arrays more."""


class Section(NamedTuple):
    """A column in the packed array. start: of its first byte, a multiple of WORD. row_bytes: of a
    row. rows: their number, or COUNTED."""

    start: int
    row_bytes: int
    rows: int


@wp.struct
class Bytes:
    """Memory as words of 16 bytes, and as bytes."""

    word: wp.array[wp.vec4ui]
    byte: wp.array[wp.uint8]


@kernel
def send_sections(
    sections: wp.array[wp.vec3i],
    bound: wp.array[wp.int32],
    source: Bytes,
    target: Bytes,
    found: wp.array[wp.int32],
    found_count: int,
    found_target: wp.array[wp.int32],
):
    """One thread per word of the packed array: copies it if its section has it. The first threads
    copy the numbers that the chunk found."""
    thread = wp.tid()
    if thread < found_count:
        found_target[thread] = found[thread]
    index = int(0)
    while index + 1 < sections.shape[0] and sections[index + 1][0] <= thread * WORD:
        index += 1
    section = sections[index]
    rows = section[2]
    if rows == COUNTED:
        rows = bound[0]
    begin = thread * WORD
    end = section[0] + rows * section[1]
    if begin + WORD <= end:
        target.word[thread] = source.word[thread]
    else:
        for at in range(begin, end):
            target.byte[at] = source.byte[at]


def rows_of_bytes(memory: np.ndarray, start: int, dtype: Any, count: int) -> np.ndarray:
    """`count` elements of a Warp type from byte `start` of host memory on, uint8, without a
    copy."""
    part = memory[start : start + count * wp.types.type_size_in_bytes(dtype)]
    row_type, row_shape = rows_like(dtype)
    return part.view(row_type).reshape(count, *row_shape)


@cache
def rows_like(dtype: Any) -> tuple[np.dtype, tuple[int, ...]]:
    """Type and shape of an element of a Warp type in an array of NumPy."""
    like = wp.zeros(1, dtype=dtype, device="cpu").numpy()
    return like.dtype, like.shape[1:]


class ColumnSender:
    """Copies of columns whose number of rows the host does not know yet. stream: None on the CPU,
    which has none."""

    def __init__(
        self, workspace: Scratch, counts: ChunkCounts, stream: DeviceStream | None
    ) -> None:
        self._workspace = workspace
        self._counts = counts
        self._stream = stream
        self._sections: dict[tuple[Section, ...], wp.array] = {}
        self._numbers = np.zeros(0, np.int32)
        self._is_complete = False

    def send(
        self,
        arrays: Mapping[str, tuple[wp.array, int]],
        others: Mapping[str, tuple[wp.array, int]],
        count: ElementCount,
    ) -> Callable[[], dict[str, np.ndarray]]:
        """See `Workspace.send`; all are parts of one packed array. The host waits once for all
        columns that were sent before, and checks the numbers that came with the last."""
        columns = {name: array for name, (array, _) in (*arrays.items(), *others.items())}
        whole: wp.array = vars(next(iter(columns.values())))["held"]
        sizes = {name: wp.types.type_size_in_bytes(each.dtype) for name, each in columns.items()}
        rows = dict.fromkeys(arrays, int(COUNTED)) | {name: n for name, (_, n) in others.items()}
        sections = {
            name: Section(_distance(whole, array), sizes[name], rows[name])
            for name, array in columns.items()
        }
        received = self._sent(whole, sections, count)

        def typed() -> dict[str, np.ndarray]:
            memory, found = received()
            lengths = {**rows, **dict.fromkeys(arrays, found)}
            return {
                name: rows_of_bytes(memory, sections[name].start, array.dtype, lengths[name])
                for name, array in columns.items()
            }

        return typed

    def send_rows(
        self, array: wp.array, count: ElementCount, width: int
    ) -> Callable[[], np.ndarray]:
        """As `send` of the rows of one array, of `width` elements each; of a count without a name
        the number is `most`."""
        size = width * wp.types.type_size_in_bytes(array.dtype)
        section = Section(0, size, int(COUNTED) if count.name else count.most)
        received = self._sent(array, {"": section}, count)

        def typed() -> np.ndarray:
            memory, found = received()
            return rows_of_bytes(memory, 0, array.dtype, found * width)

        return typed

    def _sent(
        self, whole: wp.array, sections: Mapping[str, Section], count: ElementCount
    ) -> Callable[[], tuple[np.ndarray, int]]:
        """Launches the copy of the sections of an array; the function returned waits for it, and
        gives the memory of the host, uint8, and the number of rows."""
        workspace = self._workspace
        stream = self._stream
        assert stream is not None
        uploaded = self._uploaded(tuple(sorted(sections.values())))
        counts = self._counts
        numbers = counts.used
        words = -(-_size(whole) // WORD)
        target, memory = stream.result_memory(words * WORD + 4 * numbers)
        found_target = _part(target, words * WORD, numbers, wp.int32)
        sides = [_bytes_of(whole, words), _bytes_of(target, words)]
        arguments = [uploaded, count.bound, *sides, counts.found, numbers, found_target]
        workspace.launch(send_sections, max(words, numbers), arguments)

        self._numbers = memory[words * WORD :][: 4 * numbers].view(np.int32)
        self._is_complete = False

        def received() -> tuple[np.ndarray, int]:
            if not self._is_complete:
                stream.wait()
                self._is_complete = True
            found = counts.complete(self._numbers)
            length = found[count.name][0] if count.name else count.most
            sent = 4 * numbers
            for section in sections.values():
                rows = length if section.rows == int(COUNTED) else section.rows
                sent += rows * section.row_bytes
            stream.count_download(sent)
            return memory, length

        return received

    def _uploaded(self, sections: tuple[Section, ...]) -> wp.array:
        """The sections on the device; those of the last tables are kept."""
        if sections not in self._sections:
            if len(self._sections) >= KEPT_SECTIONS:
                self._sections.pop(next(iter(self._sections)))
            values = np.array(sections, np.int32)
            self._sections[sections] = self._workspace.uploaded(values, wp.vec3i)
        return self._sections[sections]


def _size(array: wp.array) -> int:
    """Size of an array [bytes]."""
    return array.size * wp.types.type_size_in_bytes(array.dtype)


def _distance(whole: wp.array, part: wp.array) -> int:
    return part.ptr - whole.ptr  # pyright: ignore[reportOptionalOperand]


def _part(whole: wp.array, start: int, count: int, dtype: Any) -> wp.array:
    """`count` elements from byte `start` of an array on, without a copy."""
    at = whole.ptr + start  # pyright: ignore[reportOptionalOperand]
    part = wp.array(ptr=at, shape=max(count, 1), dtype=dtype, device=whole.device)
    vars(part)["held"] = whole
    return part


def _bytes_of(whole: wp.array, words: int) -> Bytes:
    result = Bytes()
    result.word = _part(whole, 0, words, wp.vec4ui)
    result.byte = _part(whole, 0, words * int(WORD), wp.uint8)
    return result
