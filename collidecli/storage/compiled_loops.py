"""The loops of `array_loops` in C++, which Warp compiles with a run's other kernels.

One kernel of one thread runs on the host without the GIL; a table of numbers holds the addresses
and sizes of its arguments. Results equal NumPy's to the bit. Figures: docs/adr/0072.
"""

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import begin_loading, load_kernels
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.warp_internals import PackedLaunch, is_known_warp
from collidecli.storage.array_loops import use

_NUMBERS = 5
"""Numbers in a row of the table: addresses, counts and results."""
_ROW = f"""
    wp::int64* job = table.data + row * {_NUMBERS};"""
_VECTORS = """
    typedef unsigned char bytes64 __attribute__((vector_size(64), aligned(1)));
    typedef unsigned char bytes16 __attribute__((vector_size(16), aligned(1)));
"""
_AT_ONCE = 16
"""Numbers that are shuffled in one step, with one vector for each plane."""


def _pick(size: int, plane: int, vectors: str) -> str:
    """C++ that stores byte `plane` of each of 16 numbers of `size` bytes from two vectors."""
    indices = ", ".join(str(size * number + plane) for number in range(_AT_ONCE))
    return (
        f"*(bytes16*)(planes + {plane} * stride + k) = __builtin_shufflevector({vectors},"
        f" {indices});"
    )


_SHUFFLE_4 = "\n".join(_pick(4, plane, "v, v") for plane in range(4))
_SHUFFLE_8 = "\n".join(_pick(8, plane, "v, w") for plane in range(8))


@wp.func_native(
    native(
        __file__,
        "shuffle",
        _ROW=_ROW,
        _VECTORS=_VECTORS,
        _AT_ONCE=_AT_ONCE,
        _SHUFFLE_4=_SHUFFLE_4,
        _SHUFFLE_8=_SHUFFLE_8,
    )
)
def _shuffle(table: wp.array[wp.int64], row: int): ...


_LANES = 64
_ROWS = 256
"""Words that are summed in parallel, and the additions after which a sum of sums of 16-bit words
still fits 32 bits."""


@wp.func_native(native(__file__, "sum_words", _ROW=_ROW, _LANES=_LANES, _ROWS=_ROWS))
def _sum_words(table: wp.array[wp.int64], row: int): ...


_POSES = 8
"""Poses that are normalized in parallel."""


@wp.func_native(native(__file__, "normalize", _ROW=_ROW, _POSES=_POSES))
def _normalize(table: wp.array[wp.int64], row: int, bounds: wp.array[wp.float64]): ...


SHUFFLE, SUM_WORDS, NORMALIZE = (wp.constant(kind) for kind in range(3))


@kernel
def run_loops(table: wp.array[wp.int64], bounds: wp.array[wp.float64]):
    """One thread: a loop of one kind for each row of the table but the first. One kernel, as each
    costs a load.

    The first row has the kind and the number of loops: a launch takes a third of the time if no
    argument changes. SHUFFLE: address of the numbers, address of the planes, count, bytes of a
    number, bytes from plane to plane. SUM_WORDS: address, count of bytes; results: sum of words and
    sum of sums, modulo 65535, 0 only for zeros. NORMALIZE: address, count of poses; result: 1 if
    all are valid. bounds: of positions, of a norm's difference from 1, and of that difference where
    a quaternion keeps its bits.
    """
    kind = table[0]
    for row in range(1, int(table[1]) + 1):  # pyright: ignore[reportArgumentType]
        if kind == SHUFFLE:
            _shuffle(table, row)
        elif kind == SUM_WORDS:
            _sum_words(table, row)
        else:
            _normalize(table, row, bounds)


_MOST_ROWS = 32
"""Loops in one launch; a contact set has one or two dozen columns."""


class _Thread(threading.local):
    """A table and the launch that reads it, for one thread."""

    def __init__(self) -> None:
        self.table = np.zeros((_MOST_ROWS + 1, _NUMBERS), np.int64)
        self.bounds = np.zeros(3)
        table = wp.array(self.table.reshape(-1), dtype=wp.int64, device="cpu", copy=False)
        bounds = wp.array(self.bounds, dtype=wp.float64, device="cpu", copy=False)
        arguments = [table, bounds]
        command: Any = wp.launch(run_loops, 1, arguments, device="cpu", record_cmd=True)
        self._launch = PackedLaunch(command, arguments) if is_known_warp() else command

    def run(self, kind: int, rows: list[tuple[int, ...]]) -> np.ndarray:
        """The rows of the table after one launch over `rows`."""
        self.table[0, :2] = kind, len(rows)
        self.table[1 : len(rows) + 1, : len(rows[0])] = rows
        self._launch.launch()
        return self.table[1 : len(rows) + 1]


class CompiledLoops:
    """`NativeLoops` by `run_loops`, which must be compiled for the host and loaded."""

    def __init__(self) -> None:
        self._thread = _Thread()

    def shuffle(self, tasks: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None:
        rows = []
        for numbers, planes, first in tasks:
            size, stride = planes.shape
            count = numbers.size
            if not (
                0 <= first <= stride - count and numbers.itemsize == size and planes.itemsize == 1
            ):
                raise ValueError(
                    f"numbers {numbers.dtype}{numbers.shape} do not fit planes {planes.shape}"
                )
            rows.append((_address(numbers), _address(planes) + first, count, size, stride))
        for first in range(0, len(rows), _MOST_ROWS):
            self._thread.run(SHUFFLE, rows[first : first + _MOST_ROWS])

    def word_sums(self, buffers: Sequence[Any]) -> list[tuple[int, int]]:
        sums: list[tuple[int, int]] = []
        for first in range(0, len(buffers), _MOST_ROWS):
            rows = [
                (_address(data), memoryview(data).nbytes)
                for data in buffers[first : first + _MOST_ROWS]
            ]
            table = self._thread.run(SUM_WORDS, rows)
            sums += table[:, 2:4].tolist()
        return sums

    def normalize(
        self, poses: np.ndarray, position_limit: float, tolerance: float, kept: float
    ) -> bool:
        self._thread.bounds[:] = position_limit, tolerance, kept
        return bool(self._thread.run(NORMALIZE, [(_address(poses), len(poses))])[0, 2])


def begin_compiling() -> None:
    """Starts to compile and load the loops in the background; `use_compiled` waits for it."""
    begin_loading([run_loops], wp.get_device("cpu"))


def use_compiled() -> None:
    """Sets the native loops for this process; compiles and loads them if needed."""
    load_kernels([run_loops], wp.get_device("cpu"))
    use(_compiled())


@cache
def _compiled() -> CompiledLoops:
    return CompiledLoops()


def _address(data: Any) -> int:
    try:
        # ten times faster than ndarray.ctypes
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    except (TypeError, ValueError):  # read-only, empty, or not contiguous
        return np.frombuffer(data, np.uint8).ctypes.data
