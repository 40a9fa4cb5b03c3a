"""The loops of `storage/array_loops` as native code, which Warp compiles with a run's other kernels.

They are C++, in one kernel of one thread that runs on the host: what loops work on is named by a table of numbers, and
no interpreter's lock is held meanwhile. Each gives to the bit what NumPy gives in its place.
"""

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.compilation import begin_loading, load_kernels
from collidecli.engine.runtime.kernel import kernel
from collidecli.storage import array_loops as loops

_NUMBERS = 5
"""In a row of the table: places in memory, counts, and what was found."""
_ROW = f"""
    wp::int64* job = table.data + row * {_NUMBERS};"""
_VECTORS = """
    typedef unsigned char bytes64 __attribute__((vector_size(64), aligned(1)));
    typedef unsigned char bytes16 __attribute__((vector_size(16), aligned(1)));
"""
_AT_ONCE = 16
"""Numbers whose bytes are sorted into planes in one step: one vector for each plane."""


def _pick(size: int, plane: int, vectors: str) -> str:
    """Stores one byte of each of 16 numbers of `size` bytes, which lie in two vectors."""
    places = ", ".join(str(size * number + plane) for number in range(_AT_ONCE))
    return f"*(bytes16*)(planes + {plane} * stride + k) = __builtin_shufflevector({vectors}, {places});"


_SHUFFLE_4 = "\n".join(_pick(4, plane, "v, v") for plane in range(4))
_SHUFFLE_8 = "\n".join(_pick(8, plane, "v, w") for plane in range(8))


@wp.func_native(
    f"""{_ROW}{_VECTORS}
    const unsigned char* numbers = (const unsigned char*)job[0];
    unsigned char* planes = (unsigned char*)job[1];
    const long long count = job[2], size = job[3], stride = job[4];
    long long k = 0;
    if (size == 4)
        for (; k + {_AT_ONCE} <= count; k += {_AT_ONCE}) {{
            const bytes64 v = *(const bytes64*)(numbers + 4 * k);
            {_SHUFFLE_4}
        }}
    else if (size == 8)
        for (; k + {_AT_ONCE} <= count; k += {_AT_ONCE}) {{
            const bytes64 v = *(const bytes64*)(numbers + 8 * k), w = *(const bytes64*)(numbers + 8 * k + 64);
            {_SHUFFLE_8}
        }}
    for (; k < count; ++k)
        for (long long plane = 0; plane < size; ++plane)
            planes[plane * stride + k] = numbers[k * size + plane];
"""
)
def _shuffle(table: wp.array[wp.int64], row: int): ...


_LANES, _ROWS = 64, 256
"""Words that are summed side by side, and how often before a sum of sums of 16 bits could pass 32."""


@wp.func_native(
    f"""{_ROW}
    typedef unsigned short word16 __attribute__((aligned(1)));
    const word16* word = (const word16*)job[0];
    const long long bytes = job[1], count = bytes / 2;
    unsigned long long total = 0, weighted = 0;
    long long done = 0;
    while (count - done >= {_LANES}) {{
        unsigned int sum[{_LANES}] = {{0}}, running[{_LANES}] = {{0}};
        const long long whole = (count - done) / {_LANES}, rows = whole < {_ROWS} ? whole : {_ROWS};
        for (long long row = 0; row < rows; ++row, word += {_LANES})
            for (int lane = 0; lane < {_LANES}; ++lane) {{
                sum[lane] += word[lane];
                running[lane] += sum[lane];
            }}
        unsigned long long plain = 0, above = 0, beside = 0;
        for (int lane = 0; lane < {_LANES}; ++lane) {{
            plain += sum[lane];
            above += running[lane];
            beside += (unsigned long long)lane * sum[lane];
        }}
        // Words before these weigh one more for each of these; one of these as many as follow it, and itself.
        weighted = (weighted + total * (unsigned long long)(rows * {_LANES}) + above * {_LANES} - beside) % 65535;
        total = total + plain ? (total + plain - 1) % 65535 + 1 : 0;  // 0 of zeros alone
        done += rows * {_LANES};
    }}
    for (; done < count; ++done, ++word) {{
        total += *word;
        weighted += total;
    }}
    if (bytes % 2) {{
        total += *(const unsigned char*)word;
        weighted += total;
    }}
    job[2] = total;
    job[3] = weighted % 65535;
"""
)
def _sum_words(table: wp.array[wp.int64], row: int): ...


_POSES = 8
"""Poses that are normalized side by side."""


@wp.func_native(
    f"""{_ROW}
    typedef double lanes __attribute__((vector_size({8 * _POSES})));
    double* pose = (double*)job[0];
    const long long count = job[1];
    const double limit = bounds.data[0], tolerance = bounds.data[1];
    for (long long first = 0; first < count; first += {_POSES}, pose += 7 * {_POSES}) {{
        #pragma clang fp contract(off)  // the last bit does not depend on who normalizes
        const int here = count - first < {_POSES} ? count - first : {_POSES};
        lanes part[7];
        for (int i = 0; i < 7; ++i)
            for (int k = 0; k < {_POSES}; ++k)
                part[i][k] = pose[7 * (k < here ? k : 0) + i];
        lanes norm = part[3] * part[3];
        for (int i = 4; i < 7; ++i)
            norm += part[i] * part[i];
        norm = __builtin_elementwise_sqrt(norm);
        auto sound = __builtin_elementwise_abs(norm - 1.0) <= tolerance;
        for (int i = 0; i < 3; ++i)
            sound &= __builtin_elementwise_abs(part[i]) <= limit;
        if (__builtin_reduce_and(sound) == 0) {{
            job[2] = 0;
            return;
        }}
        for (int i = 3; i < 7; ++i) {{
            part[i] /= norm;
            for (int k = 0; k < here; ++k)
                pose[7 * k + i] = part[i][k];
        }}
    }}
    job[2] = 1;
"""
)
def _normalize(table: wp.array[wp.int64], row: int, bounds: wp.array[wp.float64]): ...


SHUFFLE, SUM_WORDS, NORMALIZE = (wp.constant(kind) for kind in range(3))


@kernel
def run_loops(kind: int, count: int, table: wp.array[wp.int64], bounds: wp.array[wp.float64]):
    """One thread: a loop of one kind for each of the first `count` rows of the table. One kernel: each costs a start.

    SHUFFLE: place of the numbers, place of the planes, count, bytes of a number, bytes from plane to plane.
    SUM_WORDS: place, count of bytes; then the sum of the words and that of the sums, modulo 65535, 0 of zeros alone.
    NORMALIZE: place, count of poses; then 1 where all are sound. bounds: of positions, of a norm's distance from 1.
    """
    for row in range(count):
        if kind == SHUFFLE:
            _shuffle(table, row)
        elif kind == SUM_WORDS:
            _sum_words(table, row)
        else:
            _normalize(table, row, bounds)


_MOST_ROWS = 32
"""Loops in one launch; a contact set has a dozen columns or two."""


class _Thread(threading.local):
    """A table and the launch that reads it, of one thread."""

    def __init__(self) -> None:
        self.table = np.zeros((_MOST_ROWS, _NUMBERS), np.int64)
        self.bounds = np.zeros(2)
        table = wp.array(self.table.reshape(-1), dtype=wp.int64, device="cpu", copy=False)
        bounds = wp.array(self.bounds, dtype=wp.float64, device="cpu", copy=False)
        self._launch: Any = wp.launch(run_loops, 1, [0, 0, table, bounds], device="cpu", record_cmd=True)

    def run(self, kind: int, rows: list[tuple[int, ...]]) -> np.ndarray:
        """The table after a launch for each row."""
        self.table[: len(rows), : len(rows[0])] = rows
        self._launch.set_param_at_index(0, kind)
        self._launch.set_param_at_index(1, len(rows))
        self._launch.launch()
        return self.table


class CompiledLoops:
    """`loops.NativeLoops` by `run_loops`, which has been compiled for the host and loaded."""

    def __init__(self) -> None:
        self._thread = _Thread()

    def shuffle(self, tasks: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None:
        rows = []
        for numbers, planes, first in tasks:
            size, stride = planes.shape
            count = numbers.size
            if not (0 <= first <= stride - count and numbers.itemsize == size and planes.itemsize == 1):
                raise ValueError(f"numbers {numbers.dtype}{numbers.shape} do not fit planes {planes.shape}")
            rows.append((_place(numbers), _place(planes) + first, count, size, stride))
        for first in range(0, len(rows), _MOST_ROWS):
            self._thread.run(SHUFFLE, rows[first : first + _MOST_ROWS])

    def word_sums(self, buffers: Sequence[Any]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for first in range(0, len(buffers), _MOST_ROWS):
            rows = [(_place(data), memoryview(data).nbytes) for data in buffers[first : first + _MOST_ROWS]]
            table = self._thread.run(SUM_WORDS, rows)
            found += table[: len(rows), 2:4].tolist()
        return found

    def normalize(self, poses: np.ndarray, position_limit: float, tolerance: float) -> bool:
        self._thread.bounds[:] = position_limit, tolerance
        return bool(self._thread.run(NORMALIZE, [(_place(poses), len(poses))])[0, 2])


def begin_compiling() -> None:
    """Begins to compile and load them, for `use_compiled` to find done."""
    begin_loading([run_loops], wp.get_device("cpu"))


def use_compiled() -> None:
    """From now on this process uses them; compiles and loads them where nobody has."""
    load_kernels([run_loops], wp.get_device("cpu"))
    loops.use(_compiled())


@cache
def _compiled() -> CompiledLoops:
    return CompiledLoops()


def _place(data: Any) -> int:
    """Where in memory a contiguous buffer begins."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(data))  # ten times as fast as an array's own attribute
    except (TypeError, ValueError):  # read-only, empty, or not contiguous
        return np.frombuffer(data, np.uint8).ctypes.data
