"""Numbers of elements that the steps of a chunk find, on which the memory and threads of later
steps depend.

On the CPU, and for the first chunk of a device, the host reads each number before it issues the
next step. For later chunks of a device it expects as many as in the last chunk and a margin: arrays
and launches have that capacity, kernels read the number itself from the device's memory, and the
host reads all numbers together with the results. A number beyond its capacity leaves the following
steps without elements (`bound`), so that none leaves its array; the chunk is then computed again
with exact numbers, which are the capacities of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import warp as wp

from collidecli.engine.runtime.index_limit import INDEX_LIMIT
from collidecli.engine.runtime.kernel import kernel

FOUND_COUNTS = 512
"""Numbers of a chunk: a few, two for each collider of a model, and five for each level of
hydroelastic voxels."""
MARGIN = 0.25
"""Part of an expected number that its capacity has more, as scratch arrays have that grow."""
LEAST_MARGIN = 0.125
"""Part of an expected number that a capacity of earlier chunks has more, to be kept."""
SPARE = 256
"""Elements that a capacity has more."""


class Scratch(Protocol):
    """What is used of a `Workspace`."""

    device: wp.Device

    @property
    def has_own_memory(self) -> bool: ...

    def array(self, name: str, count: int, dtype: Any) -> wp.array: ...

    def fill(self, array: wp.array, value: Any) -> None: ...

    def launch(self, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None: ...

    def last(self, array: wp.array, count: int) -> int: ...

    def host(self, array: wp.array, count: int) -> np.ndarray: ...

    def uploaded(self, values: np.ndarray, dtype: Any) -> wp.array: ...


class CountsExceeded(Exception):
    """A number is larger than the capacity that was expected for it. name: of the number."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class ElementCount:
    """Number of elements of an array.

    most: the number, or where the host has not read it a capacity: arrays have that length, and
    launches that many threads. bound: int32[1] of the device; there is no element from this index
    on. It is the number, 0 if that exceeds the capacity; on the CPU, where `most` is exact, larger.
    name: of the number in `ChunkCounts`, if it has one.
    """

    most: int
    bound: wp.array
    name: str = ""


@kernel
def bound_count(
    end: wp.array[wp.int32],
    threads: int,
    thread_bound: wp.array[wp.int32],
    most: int,
    slot: int,
    overflow: int,
    found: wp.array[wp.int32],
    bound: wp.array[wp.int32],
):
    """One thread: the number of elements, which is the end of those of the last of `threads`
    threads, or of as many as their bound; and its own bound. Where the number of `overflow`, a slot
    of `found` or -1, is not 0, a sum left 32 bits, and the number is -1."""
    last = wp.min(threads, thread_bound[0]) - 1
    count = int(0)
    if last >= 0:
        count = end[last]
    if overflow >= 0 and found[wp.max(overflow, 0)] != 0:
        count = -1
    found[slot] = count
    bound[slot] = wp.where(count >= 0 and count <= most, count, 0)


@kernel
def mark_overflow(end: wp.array[wp.int32], overflow: wp.array[wp.int32]):
    """One thread per entry of an inclusive scan of numbers that are not negative: marks a sum that
    left 32 bits, where it decreases."""
    thread = wp.tid()
    if end[thread] < 0 or (thread > 0 and end[thread] < end[wp.max(thread - 1, 0)]):
        wp.atomic_max(overflow, 0, 1)


@kernel
def clear_exceeded(bound: wp.array[wp.int32], end: wp.array[wp.int32]):
    """One thread per entry of an inclusive scan: no thread has elements where the bound of all is
    0."""
    if bound[0] == 0:
        end[wp.tid()] = 0


class ChunkCounts:
    """The numbers of a worker's chunk, by name, and those of the last chunk.

    expects: whether this chunk's numbers are expected, so that the host reads them with the
    results. numbers: of a device those that the host has read, by name.
    """

    def __init__(self, workspace: Scratch) -> None:
        self.expects = False
        self.numbers: dict[str, list[int]] = {}
        self._workspace = workspace
        self._cells = 0
        self._slots: dict[str, range] = {}
        self._known: dict[str, tuple[np.ndarray, int]] = {}
        self._most: dict[str, np.ndarray] = {}
        self._uploaded: dict[str, tuple[np.ndarray, wp.array]] = {}
        self._views: dict[tuple[str, int], wp.array] = {}
        self._unbounded: wp.array | None = None
        self._refused = False
        self._flags: set[str] = set()

    def begin(self, cells: int, expected: bool = False) -> None:
        """Begins a chunk of `cells` cells. expected: its numbers are, where the last chunk had
        some."""
        self._cells = cells
        self.expects = expected and bool(self._known) and not self._refused
        self.numbers = {}
        if self._workspace.has_own_memory:
            self._workspace.fill(self.found, 0)

    def refuse(self) -> None:
        """Expects no more numbers: there is no memory for their margins."""
        self._refused = True

    @property
    def found(self) -> wp.array:
        """int32[FOUND_COUNTS] of the device: the numbers."""
        return self._workspace.array("found_count", FOUND_COUNTS, wp.int32)

    @property
    def used(self) -> int:
        """Length of the beginning of `found` that has numbers."""
        return max((slots.stop for slots in self._slots.values()), default=0)

    @property
    def unbounded(self) -> wp.array:
        """A bound that no index reaches."""
        if self._unbounded is None:
            kind = wp.int32
            self._unbounded = wp.full(1, INDEX_LIMIT, dtype=kind, device=self._workspace.device)
        return self._unbounded

    def slots(self, name: str, length: int = 1) -> range:
        """Indices of the numbers of a name in `found`; the same for each chunk."""
        slots = self._slots.get(name)
        if slots is None:
            slots = self._slots[name] = range(self.used, self.used + length)
            assert slots.stop <= FOUND_COUNTS, name
        return slots

    def capacities(self, name: str, spare_for_none: int) -> np.ndarray:
        """int[n]: capacities of the numbers of a name in this chunk, those of an earlier one where
        they suffice.

        spare_for_none: capacity where no chunk had any.
        """
        known, cells = self._known[name]
        expected = known * (self._cells / cells)
        wanted = expected * (1.0 + MARGIN) + SPARE
        kept = self._most.get(name)
        if kept is None:
            wanted[known == 0.0] = spare_for_none
        else:
            suffices = expected * (1.0 + LEAST_MARGIN) <= kept
            suffices &= kept <= 2.0 * wanted
            if suffices.all():
                return kept
            wanted = np.where(suffices, kept, wanted)
        self._most[name] = np.ceil(np.minimum(wanted, INDEX_LIMIT)).astype(np.int64)
        return self._most[name]

    def capacity(self, name: str, spare_for_none: int | None = None) -> int:
        """Capacity of an expected number; spare_for_none: where no chunk had any, by default
        SPARE."""
        return int(self.capacities(name, SPARE if spare_for_none is None else spare_for_none)[0])

    def uploaded_capacities(self, name: str) -> tuple[list[int], wp.array]:
        """Capacities of the numbers of a name, none for those of which the last chunk had none, on
        the host and on the device."""
        most = self.capacities(name, 0)
        existing = self._uploaded.get(name)
        if existing is None or existing[0] is not most:
            there = self._workspace.uploaded(most.astype(np.int32), wp.int32)
            existing = self._uploaded[name] = most, there
        return most.tolist(), existing[1]

    def of(
        self,
        name: str,
        ends: wp.array,
        threads: ElementCount | int,
        may_overflow: bool = False,
        spare_for_none: int | None = None,
    ) -> ElementCount:
        """Number of the elements that some threads have, of which `ends` has the inclusive scan:
        read by the host, or expected. may_overflow: an expected sum may have left 32 bits.
        spare_for_none: see `capacity`."""
        return self.of_each({name: (ends, may_overflow)}, threads, spare_for_none)[0]

    def of_each(
        self,
        ends: Mapping[str, tuple[wp.array, bool]],
        threads: ElementCount | int,
        spare_for_none: int | None = None,
    ) -> list[ElementCount]:
        """As `of` of several numbers, by name, each with `may_overflow`. All are read together."""
        workspace = self._workspace
        if isinstance(threads, int):
            threads = ElementCount(threads, self.unbounded)
        count = threads.most
        if not workspace.has_own_memory:
            return [
                ElementCount(workspace.last(each, count) if count else 0, self.unbounded, name)
                for name, (each, _) in ends.items()
            ]
        found = [self._bounded(name, *each, threads, spare_for_none) for name, each in ends.items()]
        if not count or all(self.is_expected(name) for name in ends):
            return found
        read = self.read()
        return [
            each if self.is_expected(each.name) else replace(each, most=read[each.name][0])
            for each in found
        ]

    def _bounded(
        self,
        name: str,
        ends: wp.array,
        may_overflow: bool,
        threads: ElementCount,
        spare_for_none: int | None,
    ) -> ElementCount:
        """Issues the number of a name on a device: with its capacity, or 0 where it is to be
        read."""
        workspace = self._workspace
        is_expected = self.is_expected(name)
        slot = self.slots(name)[0]
        most = self.capacity(name, spare_for_none) if is_expected else 0
        bounds = workspace.array("bound_count", FOUND_COUNTS, wp.int32)
        overflow = -1
        if may_overflow and is_expected:
            overflow = self.slots(f"{name}_overflow")[0]
            counter = self.counter(f"{name}_overflow")
            workspace.launch(mark_overflow, threads.most, [ends, counter])
        limit = most if is_expected else INDEX_LIMIT
        arguments = [ends, threads.most, threads.bound, limit, slot, overflow, self.found, bounds]
        workspace.launch(bound_count, 1, arguments)
        return ElementCount(most, self.view("bound_count", slot), name)

    def is_expected(self, name: str) -> bool:
        """Whether the numbers of a name are expected."""
        return self.expects and name in self._known

    def counter(self, name: str) -> wp.array:
        """int32[1], a number that threads add to, 0 at first."""
        workspace = self._workspace
        if workspace.has_own_memory:
            return self.view("found_count", self.slots(name)[0])
        counter = workspace.array(name, 1, wp.int32)
        workspace.fill(counter, 0)
        return counter

    def flag(self, name: str) -> wp.array:
        """As `counter`, of a device; where it is not 0, `complete` raises CountsExceeded."""
        self._flags.add(name)
        return self.counter(name)

    def reset(self, name: str) -> None:
        """Sets a counter to 0."""
        self._workspace.fill(self.counter(name), 0)

    def view(self, array_name: str, slot: int) -> wp.array:
        """One element of an array of numbers; the same object for each chunk, so that a launch
        takes it as it is."""
        array = self._workspace.array(array_name, slot + 1, wp.int32)
        existing = self._views.get((array_name, slot))
        if existing is None or existing.ptr != array.ptr + 4 * slot:  # pyright: ignore[reportOptionalOperand]
            element: Any = array[slot : slot + 1]
            existing = self._views[array_name, slot] = element
        return existing

    def read(self) -> dict[str, list[int]]:
        """All numbers so far by name, when all launches are complete."""
        self.numbers = self._by_name(self._workspace.host(self.found, self.used))
        return self.numbers

    def complete(self, values: np.ndarray) -> dict[str, list[int]]:
        """The chunk's numbers by name, from the beginning of `found`.

        Raises CountsExceeded where a number exceeds the capacity that was expected for it, or a
        flag is set.
        """
        found = self._by_name(values)
        for name in self._flags:
            if any(found[name]):
                raise CountsExceeded(name)
        for name, numbers in found.items():
            most = self._most.get(name)
            if self.is_expected(name) and most is not None:
                count = np.array(numbers)
                if ((count > most) | (count < 0)).any():
                    raise CountsExceeded(name)
        self.numbers = found
        return found

    def keep(self) -> None:
        """Later chunks expect the numbers of this one, which is complete."""
        cells = self._cells
        self._known = {
            name: (np.array(each, np.float64), cells) for name, each in self.numbers.items()
        }

    def _by_name(self, values: np.ndarray) -> dict[str, list[int]]:
        return {
            name: values[slots.start : slots.stop].tolist() for name, slots in self._slots.items()
        }
