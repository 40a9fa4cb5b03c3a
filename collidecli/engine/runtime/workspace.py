"""Scratch of one worker: arrays that grow to what is asked, and the structs and launches that refer to them.

All are used again for the next chunk. Chunks are small, to stay in a core's cache, so what Python does for each must be
little: making Warp's arrays, filling structs and packing a launch's arguments would take longer than the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import warp as wp

from collidecli.engine.runtime.launch_queue import LaunchQueue, is_known_warp
from collidecli.engine.runtime.recorded_launches import INDEX_LIMIT, RecordedLaunches

T = TypeVar("T")


class ChunkTooLarge(Exception):
    """The chunk at hand would need more scratch memory than this worker may have."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


class Workspace:
    """Named scratch arrays on one device, with structs and recorded launches that are kept along with them.

    Args:
        device: where the arrays live.
        memory_limit: bytes that all arrays together may take.

    cell_layout: how the last chunk's cells began, and arrays of them, for the next one like it (see cells).
    """

    def __init__(self, device: wp.Device, memory_limit: int) -> None:
        self.device = device
        self.memory_limit = memory_limit
        self.bytes = 0
        self._on_cpu = device.is_cpu
        self.cell_layout: tuple[tuple[int, ...], tuple[wp.array, ...]] | None = None
        self._arrays: dict[str, wp.array] = {}
        self._structs: dict[Any, tuple[Any, dict[str, Any]]] = {}
        self._tables: dict[Any, tuple[int, Any, dict[str, wp.array]]] = {}
        self._launches = LaunchQueue() if self._on_cpu and is_known_warp() else RecordedLaunches(device)
        self._host: dict[int, np.ndarray] = {}

    def check(self, needed: int) -> None:
        """Raises ChunkTooLarge when `needed` bytes besides the scratch, such as a chunk's result, pass the limit."""
        if needed > self.memory_limit:
            raise ChunkTooLarge(needed)

    def array(self, name: str, count: int, dtype: Any) -> wp.array:
        """At least `count` elements under `name`; what they held before is lost when the array grows.

        Raises ChunkTooLarge when the limit would be passed; nothing is allocated then.
        """
        held = self._arrays.get(name)
        if held is not None and held.shape[0] >= count:
            return held
        size = wp.types.type_size_in_bytes(dtype)
        if count > INDEX_LIMIT:
            raise ChunkTooLarge(count * size)
        grown = max(count, 64) + max(count, 64) // 4
        released = 0 if held is None else held.shape[0] * size
        for capacity in (grown, max(count, 1)):
            needed = self.bytes - released + capacity * size
            if needed <= self.memory_limit:
                break
        else:
            raise ChunkTooLarge(needed)
        self.finish()
        self._arrays.pop(name, None)
        self._forget()
        del held
        self._arrays[name] = wp.empty(capacity, dtype=dtype, device=self.device)
        self.bytes = needed
        return self._arrays[name]

    def struct(self, kind: type[T], /, **fields: Any) -> T:
        """The one instance of a Warp struct that this workspace holds, its fields set to these.

        Only those that changed are written: another chunk's may be in it until then.
        """
        held = self._structs.get(kind)
        if held is None:
            held = self._structs[kind] = (kind(), {})
        instance, known = held
        for name, value in fields.items():
            if name not in known or known[name] is not value:
                # Warp checks what is set: numbers, which change in every chunk, go straight to where kernels read them.
                setattr(instance.__ctype__() if type(value) is int else instance, name, value)
                known[name] = value
        return instance

    def bind_host_array(self, kind: Any, name: str, values: np.ndarray, dtype: Any) -> None:
        """Sets an array of a struct held here to host values, a row an element; on the CPU kernels read these."""
        instance, known = self._structs[kind]
        if self._on_cpu and name in known:
            # An array of Warp's takes longer to make than what a small chunk's kernels take.
            array = getattr(instance.__ctype__(), name)
            array.data, array.shape[0] = values.__array_interface__["data"][0], len(values)
        else:
            setattr(instance, name, wp.array(values, dtype=dtype, device=self.device, copy=False))
        known[name] = values

    def table(self, name: str, kind: type[T], count: int, elements: Mapping[str, Any]) -> tuple[T, dict[str, wp.array]]:
        """The one instance of a Warp struct and its arrays by name, of these elements, `count` long at least.

        name: what the names of the arrays in this workspace begin with.
        """
        held = self._tables.get(kind)
        if held is None or held[0] < count:
            arrays = {field: self.array(f"{name}_{field}", count, element) for field, element in elements.items()}
            least = min(array.shape[0] for array in arrays.values())
            held = self._tables[kind] = (least, self.struct(kind, **arrays), arrays)
        return held[1], held[2]

    def launch(self, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        """Launches `count` threads of a kernel.

        On the CPU it is made with others, by `finish` at the latest: before the host reads an array, and before one is
        freed.
        """
        if count:
            self._launches.launch(kernel, count, arguments)

    def scan(self, counts: wp.array, count: int) -> int:
        """Scans the first `count` of one of the scratch arrays, int32, in place, inclusively; returns the total."""
        if count == 0:
            return 0
        self._launches.scan(counts, count)
        return self.last(counts, count)

    def fill(self, array: wp.array, value: Any) -> None:
        """Sets every element of one of the scratch arrays."""
        self.finish()
        array.fill_(value)

    def sort(self, key: wp.array, value: wp.array, count: int, bits: int) -> None:
        """Sorts the first `count` keys, int64, by their lowest `bits`, stably, and the values, int32, with them.

        Both hold room for twice as many.
        """
        self.finish()
        wp.utils.radix_sort_pairs(key, value, count, 0, bits)

    def finish(self) -> None:
        """Returns when everything that was launched is done."""
        self._launches.finish()

    def host(self, array: wp.array, count: int) -> np.ndarray:
        """The first `count` elements of one of the scratch arrays on the host: on the CPU the memory itself."""
        if not self._on_cpu:
            return array[:count].numpy()
        self._launches.finish()
        return self._view(array)[:count]

    def _view(self, array: wp.array) -> np.ndarray:
        """The memory of an array on the CPU."""
        held = self._host.get(array.ptr)
        if held is None:
            held = self._host[array.ptr] = array.numpy()
        return held

    def copied(self, array: wp.array, count: int) -> np.ndarray:
        """A host array of its own of the first `count` elements; on the CPU it is filled when `finish` returns."""
        if not self._on_cpu:
            return array[:count].numpy()
        source = self._view(array)[:count]
        copy = np.empty_like(source)
        if count:
            self._launches.copy(copy, array)
        return copy

    def last(self, array: wp.array, count: int) -> int:
        """Element `count - 1` of one of the scratch arrays, on the host."""
        if self._on_cpu:
            return int(self.host(array, count)[count - 1])
        return int(array[count - 1 : count].numpy()[0])

    def _forget(self) -> None:
        """Drops what refers to arrays, so that one that is outgrown is freed."""
        self._structs.clear()
        self._tables.clear()
        self._launches.forget()
        self._host.clear()
