"""Devices with a memory of their own, that is CUDA devices: streams, copies to and from the host,
and what they cost.

A worker issues its launches and copies in a stream of its own. Warp has one current stream per
device, not per thread, so workers issue by turns: a worker has the turn until it waits for a
result, once a chunk. So the host issues one worker's chunk while another's is computed and copied
back. A run has IN_FLIGHT workers (chunk_sizes).

On the CPU arrays are in the host's memory, and nothing here is used, except in tests
(TREATED_AS_DEVICES).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import warp as wp

ALIGNMENT = 256
"""Distance between the beginnings of arrays in one memory is a multiple of this [bytes], as of
Warp's own arrays."""
RELEASE_THRESHOLD = 1.0
"""Part of the device's memory that Warp's pool keeps between uses; by default it returns all at
each wait."""
TREATED_AS_DEVICES: set[str] = set()
"""Aliases of devices whose arrays are copied to and from the host though they need not be: tests
add "cpu"."""
_turns: dict[str, threading.Lock] = {}


@contextmanager
def uploading(device: wp.Device) -> Iterator[None]:
    """Uploads of a model and its tables in the device's current stream: no worker issues meanwhile,
    and all is complete at the end. Workers read it in streams of their own, which do not wait for
    that stream."""
    if not has_own_memory(device):
        yield
        return
    with _turns.setdefault(device.alias, threading.Lock()):
        yield
        if device.is_cuda:
            wp.synchronize_stream(device)


def has_own_memory(device: wp.Device) -> bool:
    """Whether arrays of the device must be copied to and from the host."""
    return device.is_cuda or device.alias in TREATED_AS_DEVICES


def keep_freed_memory(device: wp.Device) -> None:
    """Lets the memory pool of a CUDA device keep what is freed; without a pool there is nothing to
    keep."""
    if wp.is_mempool_supported(device):
        wp.set_mempool_release_threshold(device, RELEASE_THRESHOLD)


def free_device_memory(device: wp.Device) -> int:
    """Memory that can be allocated on a device with a memory of its own [bytes]."""
    return device.free_memory


@dataclass
class Traffic:
    """Copies between host and device, and how often the host waited for the device, since the
    counts were reset. host_copied_bytes: of the uploads what the host copied to page-locked memory
    before."""

    uploads: int = 0
    uploaded_bytes: int = 0
    host_copied_bytes: int = 0
    downloads: int = 0
    downloaded_bytes: int = 0
    waits: int = 0

    def plus(self, other: Traffic) -> Traffic:
        """Sum of both."""
        return Traffic(
            *(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True))
        )


class PageLocked:
    """Bytes of page-locked memory as the base of NumPy arrays, given back to `free` with the last
    of these arrays."""

    def __init__(self, locked: wp.array, free: list[wp.array]) -> None:
        self._locked = locked
        self._free = free
        self.__array_interface__ = locked.numpy().__array_interface__

    def __del__(self) -> None:
        self._free.append(self._locked)


def is_page_locked(values: np.ndarray) -> bool:
    """Whether an array is in memory of a `PageLockedPool`."""
    base = values.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, PageLocked)


class PageLockedPool:
    """Memory of the host that a device reads and writes directly, used again when no array refers
    to it any more: fresh memory would be locked and faulted in page by page, chunk after chunk."""

    def __init__(self, device: wp.Device) -> None:
        self._is_pinned = device.is_cuda
        self.free: list[wp.array] = []

    def new(self, byte_count: int) -> wp.array:
        """New memory, uint8, with a quarter more."""
        size = byte_count + byte_count // 4
        kind: Any = wp.uint8
        return wp.empty(size, kind, device="cpu", pinned=self._is_pinned)

    def take(self, byte_count: int) -> tuple[wp.array, np.ndarray]:
        """Memory as an array of Warp, uint8, and its first bytes as one of NumPy, until which is
        dropped it belongs to the caller: the smallest free one that is large enough, else new in
        place of one."""
        free = sorted(
            (array.size < byte_count, array.size, index) for index, array in enumerate(self.free)
        )
        locked = self.free.pop(free[0][2]) if free else None
        if locked is None or locked.size < byte_count:
            locked = self.new(byte_count)
        return locked, np.asarray(PageLocked(locked, self.free))[:byte_count]

    def empty(self, shape: tuple[int, ...]) -> np.ndarray:
        """An array, float64, of a shape; not set."""
        memory = self.take(8 * math.prod(shape))[1]
        return memory.view(np.float64).reshape(shape)


class DeviceStream:
    """A worker's stream on a device, with its page-locked memory. traffic: what was copied and
    waited for."""

    def __init__(self, device: wp.Device) -> None:
        self.traffic = Traffic()
        self._device = device
        self._stream = wp.Stream(device) if device.is_cuda else None
        self._turn = _turns.setdefault(device.alias, threading.Lock())
        self._has_turn = False
        self._staging: dict[str, wp.array] = {}
        self._in_use: list[np.ndarray | wp.array] = []
        self._kept_bytes = 0
        self._uploads = PageLockedPool(device)
        self._results = PageLockedPool(device)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Issues launches and copies in this stream; other workers issue theirs while this one
        waits."""
        self._take()
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Work of the host alone, such as copies between its arrays; other workers have the turn
        meanwhile."""
        had_turn = self._has_turn
        if had_turn:
            self._give()
        try:
            yield
        finally:
            if had_turn:
                self._take()

    def wait(self) -> None:
        """Waits until all that was issued is complete."""
        self.traffic.waits += 1
        if not self._has_turn:  # one thread alone, in the device's current stream
            if self._device.is_cuda:
                wp.synchronize_stream(self._device)
            self._free_used()
            return
        complete = None if self._stream is None else self._stream.record_event()
        self._give()
        try:
            self._synchronize(complete)
        finally:
            self._take()
        self._free_used()

    def keep(self, outgrown: wp.array | None) -> int:
        """Keeps an array of the device, if there is one, which what was issued may use, until the
        next wait; returns the bytes of all that are kept, without this one."""
        before = self._kept_bytes
        if outgrown is not None:
            self._in_use.append(outgrown)
            self._kept_bytes += outgrown.size * wp.types.type_size_in_bytes(outgrown.dtype)
        return before

    def _free_used(self) -> None:
        """Frees what was kept for launches and copies that are complete."""
        self._in_use.clear()
        self._kept_bytes = 0

    def _synchronize(self, complete: wp.Event | None) -> None:
        """Waits for an event; other workers have the turn."""
        if complete is not None:
            wp.synchronize_event(complete)

    def upload(self, target: wp.array, values: np.ndarray) -> None:
        """Copies host values to the beginning of an array of the device; they may change
        afterwards, unless they are page-locked: the device then reads them where they are.

        Others are copied to page-locked memory of this upload alone, so that the host does not wait
        until the device has read those before.
        """
        size = values.nbytes
        self.traffic.uploads += 1
        self.traffic.uploaded_bytes += size
        read = values
        if not is_page_locked(values):
            self.traffic.host_copied_bytes += size
            with self.aside():
                read = self._uploads.take(size)[1]
                read[...] = values.reshape(-1).view(np.uint8)
        address = read.__array_interface__["data"][0]
        source = wp.array(ptr=address, shape=size, dtype=wp.uint8, device="cpu")
        self._in_use.append(read)
        wp.copy(_as_bytes(target, size), source, count=size)

    def download(self, source: wp.array, byte_count: int) -> np.ndarray:
        """The first bytes of an array, uint8, when all that was issued is complete; valid until the
        next download."""
        locked = self._page_locked("download", byte_count)
        self._download(source, byte_count, locked)
        return locked.numpy()[:byte_count]

    def download_all(self, sources: Sequence[tuple[wp.array, int]]) -> list[np.ndarray]:
        """As `download` of the first bytes of several arrays, after one wait."""
        starts = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for _, size in sources)]
        locked = self._page_locked("download", starts[-1])
        for start, (source, size) in zip(starts, sources, strict=False):
            if size:
                self.count_download(size)
                wp.copy(locked, _as_bytes(source, size), dest_offset=start, count=size)
        self.wait()
        memory = locked.numpy()
        return [
            memory[start : start + size] for start, (_, size) in zip(starts, sources, strict=False)
        ]

    def download_kept(self, source: wp.array, byte_count: int) -> np.ndarray:
        """As `download`, for results, to memory that is the caller's until the result is
        dropped."""
        locked, memory = self._results.take(byte_count)
        self._download(source, byte_count, locked)
        return memory

    def result_memory(self, byte_count: int) -> tuple[wp.array, np.ndarray]:
        """Page-locked memory as of `download_kept`, that kernels write: as an array of the device,
        uint8, and of the host."""
        locked, memory = self._results.take(byte_count)
        # The device reads and writes page-locked memory at the host's address.
        there = wp.array(ptr=locked.ptr, shape=byte_count, dtype=wp.uint8, device=self._device)
        vars(there)["held"] = locked
        return there, memory

    def count_download(self, byte_count: int) -> None:
        """Counts what a kernel wrote to page-locked memory as a download."""
        self.traffic.downloads += 1
        self.traffic.downloaded_bytes += byte_count

    def _download(self, source: wp.array, byte_count: int, locked: wp.array) -> None:
        self.count_download(byte_count)
        wp.copy(locked, _as_bytes(source, byte_count), count=byte_count)
        self.wait()

    def mark(self) -> Any:
        """A moment in the stream, for `seconds_between`."""
        if self._device.is_cuda:
            stream = self._stream if self._has_turn else self._device.stream
            assert stream is not None
            return stream.record_event(wp.Event(self._device, enable_timing=True))
        return time.perf_counter()

    def seconds_between(self, begin: Any, end: Any) -> float:
        """Time between two marks [s]; waits for the second, which may be later than the last
        download."""
        if self._device.is_cuda:
            return wp.get_event_elapsed_time(begin, end) / 1000.0
        return end - begin

    def _take(self) -> None:
        self._turn.acquire()
        self._has_turn = True
        if self._stream is not None:
            wp.set_stream(self._stream, self._device)

    def _give(self) -> None:
        self._has_turn = False
        self._turn.release()

    def _page_locked(self, name: str, byte_count: int) -> wp.array:
        """Memory of the host that the device reads and writes directly, at least `byte_count`
        bytes."""
        existing = self._staging.get(name)
        if existing is None or existing.size < byte_count:
            self._staging[name] = existing = self._results.new(byte_count)
        return existing


def _as_bytes(array: wp.array, byte_count: int) -> wp.array:
    """The beginning of an array as bytes, without a copy."""
    result = wp.array(ptr=array.ptr, shape=byte_count, dtype=wp.uint8, device=array.device)
    vars(result)["held"] = array
    return result
