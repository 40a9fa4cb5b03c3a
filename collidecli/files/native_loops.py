"""The loops of `files/loops.py` in native code: Warp compiles them for this processor, with a run's other kernels.

They are C++, in kernels of one thread that runs on the host: what a loop works on is named by a row of numbers, and no
interpreter's lock is held meanwhile. Each gives to the bit what NumPy gives in its place.
"""

import threading

import numpy as np
import warp as wp

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
    f"""{_VECTORS}
    const unsigned char* numbers = (const unsigned char*)job.data[0];
    unsigned char* planes = (unsigned char*)job.data[1];
    const long long count = job.data[2], size = job.data[3], stride = job.data[4];
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
def _shuffle(job: wp.array[wp.int64]): ...


_LANES, _ROWS = 64, 256
"""Words that are summed side by side, and how often before a sum of sums of 16 bits could pass 32."""


@wp.func_native(
    f"""
    typedef unsigned short word16 __attribute__((aligned(1)));
    const word16* word = (const word16*)job.data[0];
    const long long bytes = job.data[1], count = bytes / 2;
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
    job.data[2] = total;
    job.data[3] = weighted % 65535;
"""
)
def _sum_words(job: wp.array[wp.int64]): ...


_POSES = 8
"""Poses that are normalized side by side."""


@wp.func_native(
    f"""
    #pragma clang fp contract(off)  // the last bit does not depend on who normalizes
    typedef double lanes __attribute__((vector_size({8 * _POSES})));
    double* pose = (double*)job.data[0];
    const long long count = job.data[1];
    const double limit = bounds.data[0], tolerance = bounds.data[1];
    for (long long first = 0; first < count; first += {_POSES}, pose += 7 * {_POSES}) {{
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
            job.data[2] = 0;
            return;
        }}
        for (int i = 3; i < 7; ++i) {{
            part[i] /= norm;
            for (int k = 0; k < here; ++k)
                pose[7 * k + i] = part[i][k];
        }}
    }}
    job.data[2] = 1;
"""
)
def _normalize(job: wp.array[wp.int64], bounds: wp.array[wp.float64]): ...


@wp.kernel(enable_backward=False)
def shuffle_numbers(job: wp.array[wp.int64]):
    """job: place of the numbers, place of the planes, count, bytes of a number, bytes from plane to plane."""
    _shuffle(job)


@wp.kernel(enable_backward=False)
def sum_words(job: wp.array[wp.int64]):
    """job: place, count of bytes; then the sum of the words and that of the sums, modulo 65535, 0 of zeros alone."""
    _sum_words(job)


@wp.kernel(enable_backward=False)
def normalize_poses(job: wp.array[wp.int64], bounds: wp.array[wp.float64]):
    """job: place, count of poses; then 1 where all are sound. bounds: of positions, of a norm's distance from 1."""
    _normalize(job, bounds)


KERNELS = [shuffle_numbers, sum_words, normalize_poses]
"""One module: to compile each by itself would take three times as long."""


class _Thread(threading.local):
    """A row of numbers and the launches that read it, of one thread."""

    def __init__(self) -> None:
        self.job = np.zeros(5, np.int64)
        self.bounds = np.zeros(2)
        job = wp.array(self.job, dtype=wp.int64, device="cpu", copy=False)
        bounds = wp.array(self.bounds, dtype=wp.float64, device="cpu", copy=False)
        self.shuffle, self.sum_words = (_recorded(kernel, [job]) for kernel in (shuffle_numbers, sum_words))
        self.normalize = _recorded(normalize_poses, [job, bounds])


def _recorded(kernel: wp.Kernel, arguments: list[wp.array]) -> wp.Launch:
    return wp.launch(kernel, 1, arguments, device="cpu", record_cmd=True)


class CompiledLoops:
    """`loops.NativeLoops` by KERNELS, which have been compiled for the host and loaded."""

    def __init__(self) -> None:
        self._thread = _Thread()

    def shuffle(self, numbers: np.ndarray, planes: np.ndarray) -> None:
        count, size = numbers.shape
        if not numbers.flags.c_contiguous or planes.strides[1] != 1 or planes.shape[0] != size or planes.shape[1] < count:
            raise ValueError(f"numbers {numbers.shape} do not fit planes {planes.shape}")
        thread = self._thread
        thread.job[:] = numbers.ctypes.data, planes.ctypes.data, count, size, planes.strides[0]
        thread.shuffle.launch()

    def word_sums(self, data: np.ndarray) -> tuple[int, int]:
        thread = self._thread
        thread.job[:2] = data.ctypes.data, data.nbytes
        thread.sum_words.launch()
        return int(thread.job[2]), int(thread.job[3])

    def normalize(self, poses: np.ndarray, position_limit: float, tolerance: float) -> bool:
        thread = self._thread
        thread.job[:2] = poses.ctypes.data, len(poses)
        thread.bounds[:] = position_limit, tolerance
        thread.normalize.launch()
        return bool(thread.job[2])
