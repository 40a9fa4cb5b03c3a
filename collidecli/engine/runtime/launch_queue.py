"""Launches on the CPU: packed once, gathered, and made in one call without the interpreter's lock.

Between two kernels a worker would come back to Python, wait there for the lock that the others hold in turn, and find
the interpreter's code gone from its caches. So launches are noted, and what belongs between them with them, and all are
made together when a result of theirs is read. How Warp packs a launch is no promise of Warp's: a version that is not
known here launches one by one (`recorded_launches`).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.recorded_launches import INDEX_LIMIT

KNOWN_WARP = ("1.19.",)
"""Versions of Warp that pack a launch on the CPU as `PackedLaunch` has it; their tests pass with it."""
MOST_STEPS = 64
"""Steps that are noted before they are made whether a result is read or not."""
NUMBERS = 4
"""Numbers of a step: see `make_each_step`."""
COPY = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value


@wp.func_native(
    """
    typedef void (*Entry)(wp::uint64, wp::uint64, wp::uint64);
    for (int i = 0; i < count; ++i) {
        const wp::uint64* one = step.data + 4 * i;
        if (one[0] != 0) {
            ((Entry)one[0])(one[1], one[2], one[3]);
            continue;
        }
        int* value = (int*)one[1];
        int total = 0;
        for (wp::uint64 k = 0; k < one[2]; ++k) {
            total += value[k];
            value[k] = total;
        }
    }
"""
)
def make_each_step(step: wp.array[wp.uint64], count: int):
    """Makes steps of four numbers each: the address of a function, and what it takes; 0 is a scan.

    A function that takes less than three numbers finds the rest in registers that it does not read.
    """
    ...


@kernel
def make_steps(step: wp.array[wp.uint64], count: int):
    """One thread: `count` steps, one after another. For the CPU alone."""
    make_each_step(step, count)


@cache
def _struct_of(names: tuple[str, ...], types: tuple[type, ...]) -> type[ctypes.Structure]:
    """A struct of C: making one takes longer than packing it, and arrays that grow are packed anew."""
    return type("Arguments", (ctypes.Structure,), {"_fields_": list(zip(names, types, strict=True))})


class PackedLaunch:
    """A kernel's launch on the CPU, its arguments where the compiled function reads them.

    command: as Warp recorded it, of `arguments`. step: its numbers for `make_steps`.
    """

    def __init__(self, command: wp.Launch, arguments: list[Any]) -> None:
        self._command, self._last = command, arguments
        self._names = [argument.label for argument in command.kernel.adj.args]
        packed = command.params[1:]
        self.packed: Any = _struct_of(tuple(self._names), tuple(type(value) for value in packed))(*packed)
        self._structs = {
            self._names[index]: value
            for index, value in enumerate(packed)
            if isinstance(value, ctypes.Structure) and not isinstance(arguments[index], wp.array)
        }
        self._bounds = command.bounds
        self._entry = command.hooks.forward
        address = ctypes.cast(self._entry, ctypes.c_void_p).value
        self.step = (address, ctypes.addressof(self._bounds), ctypes.addressof(self.packed), 0)
        self._addresses = (ctypes.byref(self._bounds), ctypes.byref(self.packed))

    def pack(self, count: int, arguments: list[Any]) -> None:
        """Packs what is another than the last time; structs always, as their fields may be others."""
        last, names, packed = self._last, self._names, self.packed
        for index, value in enumerate(arguments):
            if value is last[index]:
                continue
            if type(value) is int:
                setattr(packed, names[index], value)
                continue
            self._command.set_param_at_index(index, value)
            new = self._command.params[index + 1]
            setattr(packed, names[index], new)
            if names[index] in self._structs:
                self._structs[names[index]] = new
        for name, struct in self._structs.items():
            setattr(packed, name, struct)
        self._last = arguments
        if count > INDEX_LIMIT:
            self._command.set_dim(count)  # which refuses it
        self._bounds.shape[0] = self._bounds.size = count

    def make(self) -> None:
        """Makes the launch by itself."""
        self._entry(*self._addresses)


def is_known_warp() -> bool:
    """Whether this Warp packs launches as this module has it."""
    return wp.config.version.startswith(KNOWN_WARP)


class LaunchQueue:
    """What one worker has launched, scanned and copied on the CPU, and not made yet."""

    def __init__(self) -> None:
        self._step = (ctypes.c_uint64 * (NUMBERS * MOST_STEPS))()
        self._packed: dict[wp.Kernel, PackedLaunch] = {}
        self._noted: list[PackedLaunch | None] = []
        self._all: PackedLaunch | None = None

    def launch(self, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        """Notes `count` threads of a kernel."""
        packed = self._packed.get(kernel)
        if packed is None:
            command = wp.launch(kernel, count, arguments, device="cpu", record_cmd=True)
            packed = self._packed[kernel] = PackedLaunch(command, arguments)
        if packed in self._noted:
            self.finish()  # its arguments are packed once
        packed.pack(count, arguments)
        self._note(packed, packed.step)

    def scan(self, counts: wp.array, count: int) -> None:
        """Notes the inclusive scan of the first `count` int32 in place."""
        self._note(None, (0, counts.ptr, count, 0))

    def copy(self, destination: np.ndarray, source: wp.array) -> None:
        """Notes that a host array is to be filled from the beginning of another."""
        self._note(None, (COPY, destination.__array_interface__["data"][0], source.ptr, destination.nbytes))

    def finish(self) -> None:
        """Makes what is noted, in order."""
        count = len(self._noted)
        if count == 0:
            return
        first = self._noted[0]
        self._noted.clear()
        if count == 1 and first is not None:
            first.make()
            return
        if self._all is None:
            size = NUMBERS * MOST_STEPS
            step = wp.array(ptr=ctypes.addressof(self._step), shape=size, dtype=wp.uint64, device="cpu")
            command = wp.launch(make_steps, 1, [step, count], device="cpu", record_cmd=True)
            self._all = PackedLaunch(command, [step, count])
        self._all.packed.count = count
        self._all.make()

    def forget(self) -> None:
        """Drops what refers to arrays."""
        self._packed.clear()

    def _note(self, launch: PackedLaunch | None, step: tuple[int, int, int, int]) -> None:
        if len(self._noted) == MOST_STEPS:
            self.finish()
        at = NUMBERS * len(self._noted)
        self._step[at : at + NUMBERS] = step
        self._noted.append(launch)
