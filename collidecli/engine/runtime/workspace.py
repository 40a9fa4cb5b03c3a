"""Scratch memory of one worker: named arrays that grow on demand, and the structs and launches that
refer to them.

All are reused for the next chunk. Chunks are small, to stay in a core's cache, so Python's work per
chunk must be small: construction of Warp arrays, filling of structs and packing of launch arguments
would take longer than the kernels.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np
import warp as wp

from collidecli.elapsed import Elapsed
from collidecli.engine.runtime.chunk_counts import ChunkCounts, ElementCount, clear_exceeded
from collidecli.engine.runtime.device_stream import (
    ALIGNMENT,
    DeviceStream,
    Traffic,
    free_device_memory,
    has_own_memory,
)
from collidecli.engine.runtime.index_limit import INDEX_LIMIT
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.launch_queue import LaunchQueue, execute_steps
from collidecli.engine.runtime.moments import Moment
from collidecli.engine.runtime.recorded_launches import RecordedLaunches
from collidecli.engine.runtime.sent_columns import ColumnSender, rows_like, rows_of_bytes
from collidecli.engine.runtime.warp_internals import is_known_warp, rebind_host_array, set_field

T = TypeVar("T")

_NO_MEMORY = re.compile(r"CUDA error (2:|101:.*(scan|sort))")
"""Warp's errors of a launch without memory for its threads, and of a scan or sort without its own
scratch memory."""


class ChunkTooLarge(Exception):
    """The chunk needs more scratch memory, `needed` bytes, than the worker's limit."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


def parts_that_fit(count: int, run: Callable[[int, int], T]) -> list[T]:
    """The results of `run(begin, end)` for consecutive parts of `count` entries, in order, or of
    `run(0, 0)`.

    A part for which `run` raises ChunkTooLarge is halved, and later parts are no larger; that of
    one entry is raised.
    """
    results: list[T] = []
    done = 0
    size = count
    while done < count or not results:
        end = min(done + size, count)
        try:
            results.append(run(done, end))
        except ChunkTooLarge:
            if end - done <= 1:
                raise
            size = (end - done) // 2
        else:
            done = end
    return results


FIRST_CAPACITY = 12
"""Capacity of a new array on the CPU, in elements of a run's first chunk: first chunks are small,
each array that grows later clears all recorded launches, and the memory of elements that no chunk
has is never touched."""
FIRST_SHARE = 8
"""Part of the memory limit, as its divisor, to which scratch of such capacity may grow."""


def queue_kernels(device: wp.Device) -> list[wp.Kernel]:
    """Kernels with which a workspace launches others: those of the queue on the CPU."""
    return [] if has_own_memory(device) else [execute_steps]


def load_launched(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """`load_kernels` of kernels that workspaces launch, and of those with which they do."""
    load_kernels([*queue_kernels(device), *dict.fromkeys(kernels)], device)


class Rows(NamedTuple):
    """Rows of an array, `width` elements each, for the host. count: a number that is known or
    expected by name."""

    array: wp.array
    count: ElementCount
    width: int = 1


class Workspace:
    """Named scratch arrays on one device, with the structs and recorded launches that refer to
    them.

    memory_limit: of the arrays' total size [bytes]. exact: no array gets more elements than
    requested. Otherwise an array that grows gets a quarter more where that fits, and whether a
    later array fits depends on earlier chunks. cell_layouts: some cell layouts of earlier chunks,
    by key, for later chunks (see cells). counts: numbers of elements that the steps of a chunk
    find. joint_tree: the last tree of joints that was uploaded, and its arrays.
    """

    def __init__(self, device: wp.Device, memory_limit: int, exact: bool = False) -> None:
        self.device = device
        self.memory_limit = memory_limit
        self._exact = exact
        self.bytes = 0
        self._stream = DeviceStream(device) if has_own_memory(device) else None
        self.cell_layouts: dict[tuple[Any, ...], Any] = {}
        self._arrays: dict[str, wp.array] = {}
        self._structs: dict[Any, tuple[Any, dict[str, Any]]] = {}
        self._tables: dict[Any, tuple[int, Any, dict[str, wp.array]]] = {}
        known = is_known_warp()
        self._launches = (
            LaunchQueue() if self._stream is None and known else RecordedLaunches(device)
        )
        self._set_field = set_field if known else setattr
        self._rebinds_host_arrays = self._stream is None and known
        self._packed: dict[str, tuple[wp.array, dict[str, Any], dict[str, wp.array]]] = {}
        self._host: dict[int | None, np.ndarray] = {}
        self.counts = ChunkCounts(self)
        self.joint_tree: tuple[Any, Any] | None = None
        self._sender = ColumnSender(self, self.counts, self._stream)

    @property
    def has_own_memory(self) -> bool:
        """Whether arrays are in the memory of a device, not of the host."""
        return self._stream is not None

    @property
    def traffic(self) -> Traffic:
        """What was copied between host and device so far; nothing on the CPU."""
        return Traffic() if self._stream is None else self._stream.traffic

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context in which a worker uses the device; other workers use it while this one waits for
        a result."""
        if self._stream is None:
            yield
            return
        with self._stream.turn(), self.device_errors():
            yield

    @contextmanager
    def device_errors(self) -> Iterator[None]:
        """Raises ChunkTooLarge where the device has too little memory for a launch, a scan or a
        sort itself."""
        try:
            yield
        except RuntimeError as error:
            if self._stream is None or not _NO_MEMORY.search(str(error)):
                raise
            raise ChunkTooLarge(self.bytes + free_device_memory(self.device)) from None

    def check(self, needed: int) -> None:
        """Raises ChunkTooLarge when `needed` bytes outside the scratch, such as a chunk's result,
        exceed the limit."""
        if needed > self.memory_limit:
            raise ChunkTooLarge(needed)

    def array(self, name: str, count: int, dtype: Any) -> wp.array:
        """The array `name`, at least `count` elements long; its content is lost when it grows.

        Raises ChunkTooLarge when the limit would be exceeded, without allocation, or the device has
        no memory left.
        """
        existing = self._arrays.get(name)
        if existing is not None and existing.shape[0] >= count:
            return existing
        size = wp.types.type_size_in_bytes(dtype)
        if count > INDEX_LIMIT:
            raise ChunkTooLarge(count * size)
        released = 0 if existing is None else existing.shape[0] * size
        for capacity, limit in self._capacities(count, is_first=existing is None):
            needed = self.bytes - released + capacity * size
            if needed <= limit:
                break
        else:
            raise ChunkTooLarge(needed)
        self._release(existing, capacity * size)
        self._arrays.pop(name, None)
        # No reference to the outgrown array is left, so that it is freed.
        self._structs.clear()
        self._tables.clear()
        self._packed.clear()
        self._launches.forget()
        self._host.clear()
        del existing
        self.bytes -= released
        self._arrays[name] = self._allocated(capacity, dtype, needed)
        self.bytes = needed
        return self._arrays[name]

    def _release(self, outgrown: wp.array | None, size: int) -> None:
        """Lets an array, if there is one, be freed when no launch uses it any more, for one of
        `size` bytes.

        A device's is kept until the next wait, where the limit has space for both. Otherwise the
        host waits.
        """
        if self._stream is None:
            self.finish()
        else:
            kept = self._stream.keep(outgrown)
            if self.bytes + kept + size > self.memory_limit:
                self.finish()

    def _capacities(self, count: int, is_first: bool) -> list[tuple[int, int]]:
        """Lengths of an array of at least `count` elements, each with the total size of the scratch
        [bytes] to which it is allowed; the first allowed one is taken.

        is_first: the array is new.
        """
        least = max(count, 1)
        if self._exact:
            return [(least, self.memory_limit)]
        wanted = max(count, 64)
        lengths = [(wanted + wanted // 4, self.memory_limit), (least, self.memory_limit)]
        if is_first and self._stream is None:
            lengths.insert(0, (FIRST_CAPACITY * wanted, self.memory_limit // FIRST_SHARE))
        return lengths

    def _allocated(self, count: int, dtype: Any, needed: int) -> wp.array:
        """A new array, which the checks of launches replace by one with guards."""
        try:
            return wp.empty(count, dtype=dtype, device=self.device)
        except RuntimeError:  # Warp's error when a device has too little memory
            if self._stream is None:
                raise
        try:
            self.finish()  # which frees outgrown arrays
            return wp.empty(count, dtype=dtype, device=self.device)
        except RuntimeError:
            raise ChunkTooLarge(needed) from None

    def struct(self, kind: type[T], /, **fields: Any) -> T:
        """This workspace's only instance of a Warp struct, with these fields set; others keep their
        values."""
        existing = self._structs.get(kind)
        if existing is None:
            existing = self._structs[kind] = (kind(), {})
        instance, fields_set = existing
        for name, value in fields.items():
            if name not in fields_set or fields_set[name] is not value:
                self._set_field(instance, name, value)
                fields_set[name] = value
        return instance

    def bind_host_array(self, kind: Any, name: str, values: np.ndarray, dtype: Any) -> None:
        """Sets an array field of a struct of this workspace to host values, one row per element; no
        copy on the CPU."""
        instance, fields_set = self._structs[kind]
        if fields_set.get(name) is values:
            return
        if self._stream is not None:
            target = self.array(f"{kind.__name__}_{name}", len(values), dtype)
            self._stream.upload(target, np.ascontiguousarray(values))
            instance, fields_set = self._structs.setdefault(kind, (instance, fields_set))
            setattr(instance, name, target)
            fields_set[name] = target
            return
        if self._rebinds_host_arrays and name in fields_set:
            rebind_host_array(instance, name, values)
        else:
            setattr(instance, name, wp.array(values, dtype=dtype, device=self.device, copy=False))
        fields_set[name] = values

    def upload(self, target: wp.array, values: np.ndarray) -> None:
        """Copies contiguous host values to the beginning of an array of a device."""
        assert self._stream is not None
        self._stream.upload(target, values)

    def result_table(
        self, kind: type[T], count: int, elements: Mapping[str, Any]
    ) -> tuple[T, dict[str, np.ndarray]]:
        """On the CPU: this workspace's only instance of a Warp struct, its fields bound to new
        arrays of the host, which kernels fill without a copy: valid when `finish` returns.

        elements: element type of each field.
        """
        struct = self.struct(kind)
        self._tables.pop(kind, None)  # whose arrays the struct has no longer
        arrays = {}
        for name, element in elements.items():
            row_type, row_shape = rows_like(element)
            arrays[name] = np.empty((count, *row_shape), row_type)
            self.bind_host_array(kind, name, arrays[name], element)
        return struct, arrays

    def uploaded(self, values: np.ndarray, dtype: Any) -> wp.array:
        """A new array with host values, one row per element; on the CPU the values themselves."""
        if self._stream is None:
            return wp.array(values, dtype=dtype, device=self.device, copy=False)
        result = wp.empty(len(values), dtype=dtype, device=self.device)
        self._stream.upload(result, np.ascontiguousarray(values))
        return result

    def table(
        self, name: str, kind: type[T], count: int, elements: Mapping[str, Any]
    ) -> tuple[T, dict[str, wp.array]]:
        """This workspace's only instance of a Warp struct, and its arrays by field, at least
        `count` elements long.

        name: prefix of the arrays' names in this workspace. elements: element type of each field.
        """
        existing = self._tables.get(kind)
        if existing is None or existing[0] < count:
            arrays = {
                field: self.array(f"{name}_{field}", count, element)
                for field, element in elements.items()
            }
            least = min(array.shape[0] for array in arrays.values())
            existing = self._tables[kind] = (least, self.struct(kind, **arrays), arrays)
        return existing[1], existing[2]

    def packed_table(
        self,
        name: str,
        kind: type[T],
        count: int,
        elements: Mapping[str, Any],
        others: Mapping[str, tuple[int, Any]],
        written: Sequence[str],
    ) -> tuple[T, dict[str, wp.array]]:
        """As `table`, with further arrays, by name, of other counts: for results that `download`
        copies together.

        written: fields that kernels write. On a device all are parts of one array, exactly as long
        as requested: the further ones, then these in this order; other fields have no array."""
        if self._stream is None:
            further = {
                field: self.array(f"{name}_{field}", *length) for field, length in others.items()
            }
            struct, arrays = self.table(name, kind, count, elements)
            return struct, {**arrays, **further}
        counts = {**others, **{field: (count, elements[field]) for field in written}}
        sizes = {
            field: max(length, 1) * wp.types.type_size_in_bytes(element)
            for field, (length, element) in counts.items()
        }
        starts = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes.values())]
        last = self._arrays.get(f"{name}_packed")
        whole = self.array(f"{name}_packed", starts[-1], wp.uint8)
        if whole is not last:
            whole.zero_()  # what is between its parts is copied with them
        known = self._packed.get(name)
        if known is not None and known[0] is whole and known[1] == counts:
            return self.struct(kind, **{field: known[2].get(field) for field in elements}), {
                **known[2]
            }
        arrays = {}
        for start, (field, (length, element)) in zip(starts, counts.items(), strict=False):
            at = whole.ptr + start  # pyright: ignore[reportOptionalOperand]
            part = wp.array(ptr=at, shape=max(length, 1), dtype=element, device=self.device)
            vars(part)["held"] = whole
            arrays[field] = part
        self._packed[name] = whole, counts, {**arrays}
        return self.struct(kind, **{field: arrays.get(field) for field in elements}), arrays

    def launch(self, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        """Launches `count` threads of a kernel; on the CPU it is queued and executed by
        `finish`."""
        if count:
            self._launches.launch(kernel, count, arguments)

    def scan(
        self, counts: wp.array, count: int, ends: wp.array | None = None, most: int = 0
    ) -> int:
        """Inclusive scan of the first `count` int32 of `counts` to `ends`, else in place; returns
        the total.

        most: largest number that may be in `counts`, where a total may exceed an index: that raises
        ChunkTooLarge.
        """
        if count == 0:
            return 0
        if count * most > INDEX_LIMIT:  # the scan's int32 could overflow
            self._check_total(counts, count)
        self.launch_scan(counts, count, ends)
        return self.last(counts if ends is None else ends, count)

    def counted(
        self,
        name: str,
        dtype: Any,
        kernels: tuple[wp.Kernel, ...],
        threads: int,
        arguments: list[Any],
        most: int,
        number: str = "",
    ) -> tuple[wp.array, wp.array, ElementCount]:
        """Elements of which each thread writes any number, as array `name`: the end of those of
        each thread, the array and the total, by the name `number`, else `name`.

        kernels: of `counted_kernels`; their last arguments are `end` and the array. The first
        writes the number of a thread's elements to `end`; the second, when `end` is the inclusive
        scan of these numbers, the elements. most: largest number of a thread. Raises ChunkTooLarge
        where the memory is too small.
        """
        count, write = kernels
        end = self.array(f"{name}_end", threads, wp.int32)
        elements = self.array(name, 1, dtype)
        self.launch(count, threads, [*arguments, end, elements])
        total = self.scanned(number or name, end, threads, most)
        elements = self.array(name, total.most, dtype)
        self.launch(write, threads if total.most else 0, [*arguments, end, elements])
        return end, elements, total

    def scanned(
        self,
        name: str,
        counts: wp.array,
        threads: int,
        most: int,
        spare_for_none: int | None = None,
    ) -> ElementCount:
        """Inclusive scan of the numbers of each thread's elements, in place, and the total by
        `name`, which is expected or read. Where it exceeds its capacity, no thread has elements.

        most: see `scan`. spare_for_none: see `ChunkCounts.capacity`.
        """
        [total] = self.scanned_together({name: (counts, most)}, threads, spare_for_none)
        if self.counts.is_expected(name):
            self.launch(clear_exceeded, threads, [total.bound, counts])
        return total

    def scanned_together(
        self,
        numbers: Mapping[str, tuple[wp.array, int]],
        threads: int,
        spare_for_none: int | None = None,
    ) -> list[ElementCount]:
        """As `scanned` of several numbers of each thread, by name, each with `most`. Where they are
        read, the host waits once; where one exceeds its capacity, only its bound says so."""
        ends = {}
        for name, (counts, most) in numbers.items():
            may_overflow = threads * most > INDEX_LIMIT
            if may_overflow and not self.counts.is_expected(name):
                self._check_total(counts, threads)
            self.launch_scan(counts, threads)
            ends[name] = (counts, may_overflow)
        return self.counts.of_each(ends, threads, spare_for_none)

    def _check_total(self, counts: wp.array, count: int) -> None:
        """Raises ChunkTooLarge where the sum of the first `count` int32 exceeds an index."""
        total = int(self.host(counts, count).sum(dtype=np.int64))
        if total > INDEX_LIMIT:
            raise ChunkTooLarge(total * 8)

    def launch_scan(self, counts: wp.array, count: int, ends: wp.array | None = None) -> None:
        """As `scan`, for a total that is not needed yet: on a device nothing is read."""
        if count:
            self._launches.scan(counts, count, counts if ends is None else ends)

    def fill(self, array: wp.array, value: Any, count: int | None = None) -> None:
        """Sets every element of a scratch array, or the first `count`."""
        self._execute()
        (array if count is None else array[:count]).fill_(value)

    def sort(self, key: wp.array, value: wp.array, count: int, bits: int) -> None:
        """Sorts the first `count` keys, int64, stably by their lowest `bits`, and the values,
        int32, with them; the next `count` elements of both are scratch."""
        self._execute()
        wp.utils.radix_sort_pairs(key, value, count, 0, bits)

    def finish(self) -> None:
        """Waits until all launches are complete."""
        if self._stream is None:
            self._launches.finish()
        else:
            self._stream.wait()

    def mark(self) -> Moment:
        """A moment for `time_between`: when all launches so far are complete. Of a device, its
        processor time is that of the thread, now."""
        if self._stream is None:
            return self._launches.mark()
        return Moment(self._stream.mark(), time.thread_time())

    def time_between(self, begin: Moment, end: Moment) -> Elapsed:
        """Time between two marks."""
        if self._stream is not None:
            seconds = self._stream.seconds_between(begin.clock, end.clock)
            return Elapsed(seconds, end.processor_since(begin))
        self._launches.finish()
        return end.since(begin)

    def _execute(self) -> None:
        """Executes the queue, before Warp's own functions use the arrays; a device's stream keeps
        their order."""
        if self._stream is None:
            self._launches.finish()

    def host(self, array: wp.array, count: int) -> np.ndarray:
        """The first `count` elements of a scratch array on the host: on the CPU the memory
        itself."""
        if self._stream is not None:
            return self._downloaded(array, count).copy()
        self._launches.finish()
        return self._view(array)[:count]

    def hosts(self, arrays: Sequence[tuple[wp.array, int]]) -> list[np.ndarray]:
        """As `host` of several arrays and counts, after one wait."""
        if self._stream is None:
            return [self.host(array, count) for array, count in arrays]
        sizes = [count * wp.types.type_size_in_bytes(array.dtype) for array, count in arrays]
        sources = [(array, size) for (array, _), size in zip(arrays, sizes, strict=True)]
        parts = zip(self._stream.download_all(sources), arrays, strict=True)
        return [
            _typed(part, array.dtype, count).copy() if count else array[:0].numpy()
            for part, (array, count) in parts
        ]

    def _downloaded(self, array: Any, count: int) -> np.ndarray:
        """The first `count` elements of an array of the device, valid until the next download."""
        assert self._stream is not None
        if count == 0:
            return array[:0].numpy()
        size = count * wp.types.type_size_in_bytes(array.dtype)
        return _typed(self._stream.download(array, size), array.dtype, count)

    def _view(self, array: wp.array) -> np.ndarray:
        """The memory of an array on the CPU."""
        existing = self._host.get(array.ptr)
        if existing is None:
            existing = self._host[array.ptr] = array.numpy()
        return existing

    def copied(self, array: wp.array, count: int) -> np.ndarray:
        """Copy of the first `count` elements on the host; on the CPU it is filled when `finish`
        returns."""
        if self._stream is not None:
            return self._downloaded(array, count).copy()
        source = self._view(array)[:count]
        copy = np.empty_like(source)
        if count:
            self._launches.copy(copy, array)
        return copy

    def download(self, arrays: Mapping[str, tuple[wp.array, int]]) -> dict[str, np.ndarray]:
        """Copies of the first elements of arrays on the host: of those of a `packed_table` in one
        transfer."""
        if self._stream is None:
            copies = {name: self.copied(array, count) for name, (array, count) in arrays.items()}
            self.finish()
            return copies
        wholes = {vars(array).get("held") for array, _ in arrays.values()}
        whole: Any = wholes.pop() if len(wholes) == 1 else None
        if whole is None:
            return {name: self.copied(array, count) for name, (array, count) in arrays.items()}
        sizes = {
            name: count * wp.types.type_size_in_bytes(array.dtype)
            for name, (array, count) in arrays.items()
        }
        starts = {name: array.ptr - whole.ptr for name, (array, _) in arrays.items()}
        everything = self._stream.download_kept(
            whole, max(starts[name] + size for name, size in sizes.items())
        )
        return {
            name: rows_of_bytes(everything, starts[name], array.dtype, count)
            for name, (array, count) in arrays.items()
        }

    def send(
        self,
        arrays: Mapping[str, tuple[Any, int]],
        others: Mapping[str, tuple[wp.array, int]],
        count: ElementCount,
    ) -> Callable[[], dict[str, np.ndarray]]:
        """As `download` of the first `count` rows of `arrays`, and of `others`; the function
        returned waits for the copies. Arrays of a `result_table` are not copied.

        Where the number of rows is expected, the device copies as many as there are; the function
        then raises CountsExceeded if a number of the chunk exceeds its capacity.
        """
        everything = {**arrays, **others}
        if self._stream is None:
            copies = {
                name: array if isinstance(array, np.ndarray) else self.copied(array, rows)
                for name, (array, rows) in everything.items()
            }
            return lambda: self._finished(copies)
        if not self.counts.expects:
            copies = self.download(everything)
            return lambda: copies
        return self._sender.send(arrays, others, count)

    def send_each(self, arrays: Sequence[Rows]) -> Callable[[], list[np.ndarray]]:
        """As `send` of arrays that are not of one table; on the CPU their memory itself."""
        if self._stream is None or not self.counts.expects:
            counts = [(rows.array, rows.count.most * rows.width) for rows in arrays]
            return lambda: self.hosts(counts)
        largest = max(
            each.array.size * wp.types.type_size_in_bytes(each.array.dtype) for each in arrays
        )
        if largest > INDEX_LIMIT:
            raise ChunkTooLarge(largest)
        received = [self._sender.send_rows(*rows) for rows in arrays]
        return lambda: [columns() for columns in received]

    def _finished(self, copies: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.finish()
        return copies

    def last(self, array: wp.array, count: int) -> int:
        """Element `count - 1` of a scratch array, on the host."""
        if self._stream is None:
            return int(self.host(array, count)[count - 1])
        return int(self._downloaded(array[count - 1 : count], 1)[0])

    def every(self, array: wp.array, count: int, step: int) -> list[int]:
        """The last of each `step` of the first `count` int32 of a scratch array, on the host."""
        if self._stream is None:
            return self.host(array, count)[step - 1 :: step].tolist()
        picked = self.array("picked", count // step, wp.int32)
        wp.copy(picked[: count // step], array[step - 1 : count : step])  # pyright: ignore[reportArgumentType]
        return self._downloaded(picked, count // step).tolist()


def _typed(values: np.ndarray, dtype: Any, count: int) -> np.ndarray:
    """Bytes of the host as `count` elements of a Warp type, without a copy."""
    pointer = values.__array_interface__["data"][0]
    return wp.array(ptr=pointer, shape=count, dtype=dtype, device="cpu").numpy()
