"""Destination of the columns of a chunk's contacts: the host's memory, or the device's."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.runtime.device_stream import uploading
from collidecli.errors import InputError
from collidecli.wording import memory


class KeptColumns:
    """Columns of contacts that stay on a device, of chunks that any number of threads add.

    A chunk is identified by its first cell. Chunks of one cell are parts of its candidates, added
    in their order.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._parts: list[tuple[int, int, dict[str, wp.array]]] = []
        self._lock = threading.Lock()

    def new(self, count: int, element: Any) -> wp.array:
        """An array of `count` elements of a Warp type without values. Raises InputError where the
        device has no memory for it."""
        try:
            return wp.empty(count, dtype=element, device=self.device)
        except (RuntimeError, MemoryError) as error:
            size = memory(count * wp.types.type_size_in_bytes(element))
            raise InputError(
                f"a column of contacts takes {size}, and {self.device.alias} has less left",
                "keep_on_device",
                "collide fewer frames or worlds in a call",
            ) from error

    def add(self, first_cell: int, count: int, columns: Mapping[str, wp.array]) -> None:
        """Adds the columns of the `count` contacts of a chunk, whose launches are complete."""
        with self._lock:
            self._parts.append((first_cell, count, dict(columns)))

    def joined(self) -> dict[str, wp.array]:
        """The columns of all chunks in the order of cells, which are removed from here one by one;
        complete for every stream. To be called once, after one chunk at least."""
        self._parts.sort(key=lambda part: part[0])  # stable: parts of one cell keep their order
        joined = {}
        with uploading(self.device):
            for name in list(self._parts[0][2]):
                parts = [(count, columns.pop(name)) for _, count, columns in self._parts]
                joined[name] = parts[0][1] if len(parts) == 1 else self._concatenated(parts)
        return joined

    def _concatenated(self, parts: list[tuple[int, wp.array]]) -> wp.array:
        """The first elements of arrays, one after the other."""
        whole = self.new(sum(count for count, _ in parts), parts[0][1].dtype)
        begin = 0
        for count, part in parts:
            if count:
                wp.copy(whole, part, dest_offset=begin, count=count)
            begin += count
        return whole


@dataclass(frozen=True)
class ColumnDestination:
    """The columns of rigid contacts that leave the scratch memory, and to where.

    names: None for all. kept: collects columns that stay on the device; None: they go to the host.
    """

    names: frozenset[str] | None = None
    kept: KeptColumns | None = None

    def has(self, name: str) -> bool:
        """Whether the column `name` is wanted."""
        return self.names is None or name in self.names


EVERYTHING = ColumnDestination()
"""All columns go to the host."""
