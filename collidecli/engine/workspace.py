"""Scratch memory of one worker: arrays that grow to what is asked and are used again for the next chunk."""

from __future__ import annotations

from typing import Any

import warp as wp

INDEX_LIMIT = 2**31 - 1
"""Kernels count threads and elements in 32 bits."""


class ChunkTooLarge(Exception):
    """The chunk at hand would need more scratch memory than this worker may have."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


class Workspace:
    """Named scratch arrays on one device.

    Args:
        device: where the arrays live.
        memory_limit: bytes that all arrays together may take.

    cell_layout: what the last chunk's cells looked like, and their arrays, for the next one like it (see cells).
    """

    def __init__(self, device: wp.Device, memory_limit: int) -> None:
        self.device = device
        self.memory_limit = memory_limit
        self.bytes = 0
        self.cell_layout: tuple[tuple[int, ...], tuple[wp.array, ...]] | None = None
        self._arrays: dict[str, wp.array] = {}

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
        self._arrays.pop(name, None)
        del held
        self._arrays[name] = wp.empty(capacity, dtype=dtype, device=self.device)
        self.bytes = needed
        return self._arrays[name]
