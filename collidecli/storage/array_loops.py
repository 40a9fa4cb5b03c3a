"""What reading and writing spends its time in: bytes sorted into planes, checksums, poses normalized.

NumPy does it, until `use` is told of the same in native code: that is compiled with the kernels of a run
(`native_loops`), which is too long for a verb that computes nothing. Both give the same to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

Buffer = bytes | bytearray | memoryview | np.ndarray


class NativeLoops(Protocol):
    """The functions of this module that NumPy is slow at. Any number of threads may call."""

    def shuffle(self, tasks: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None: ...

    def word_sums(self, buffers: Sequence[Buffer]) -> list[tuple[int, int]]: ...

    def normalize(self, poses: np.ndarray, position_limit: float, tolerance: float) -> bool: ...


_native: NativeLoops | None = None


def use(native: NativeLoops | None) -> None:
    """From now on this process uses `native`; NumPy where None."""
    global _native
    _native = native


def shuffle(tasks: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None:
    """HDF5's shuffle, of several columns: byte k of each number goes to row k.

    tasks: numbers [n, ...], planes uint8[bytes of a number, *], and the place in each row where the n bytes begin;
        both contiguous.
    """
    if _native is not None:
        _native.shuffle(tasks)
        return
    for numbers, planes, first in tasks:
        raw = numbers.reshape(-1).view(np.uint8).reshape(-1, len(planes))
        np.copyto(planes[:, first : first + len(raw)], raw.T)


_WORDS_IN_ROW = 512
_MODULUS = 65535


def fletcher32(buffers: Sequence[Buffer]) -> list[int]:
    """HDF5's Fletcher checksum of each: over 16-bit big-endian words, an odd last byte being the high half of a word.

    With words w_1 .. w_n it is sum1 = Σ w_i and sum2 = Σ (n - i + 1) w_i modulo 65535, where a multiple of 65535 that
    is not 0 is written as 65535. Words are summed as little-endian: exchanging a word's bytes multiplies it by 256
    modulo 65535.
    """
    sums = (
        [_word_sums(np.frombuffer(data, np.uint8)) for data in buffers]
        if _native is None
        else _native.word_sums(buffers)
    )
    return [
        (((weighted * 256 - 1) % _MODULUS + 1) << 16 | ((total * 256 - 1) % _MODULUS + 1)) if total else 0
        for total, weighted in sums
    ]


def _word_sums(raw: np.ndarray) -> tuple[int, int]:
    """Σ w_i and Σ (n - i + 1) w_i of little-endian words, or what is the same modulo 65535; (0, 0) of zeros alone.

    In rows of R words Σ (n - i) w_i needs only the sums of rows and of columns.
    """
    whole = len(raw) // (2 * _WORDS_IN_ROW) * (2 * _WORDS_IN_ROW)
    table = raw[:whole].view("<u2").reshape(-1, _WORDS_IN_ROW)
    rest = raw[whole:]
    tail = np.zeros((len(rest) + 1) // 2, np.dtype("<u2"))
    tail.view(np.uint8)[: len(rest)] = rest

    word_count = table.size + len(tail)
    row_sums = table.sum(axis=1, dtype=np.uint32).astype(np.int64)
    column_sums = table.sum(axis=0, dtype=np.uint64).astype(np.int64)
    tail_words = tail.astype(np.int64)
    row_weight = (word_count - _WORDS_IN_ROW * np.arange(len(table))) % _MODULUS
    weighted = int(row_sums @ row_weight) - int((column_sums % _MODULUS) @ np.arange(_WORDS_IN_ROW))
    weighted += int(tail_words @ np.arange(len(tail), 0, -1))
    return int(row_sums.sum() + tail_words.sum()), weighted


_BLOCK_POSES = 8192
"""448 KiB, and as much again for components: within the second level of a core's cache, or nearly."""


def normalize(poses: np.ndarray, position_limit: float, tolerance: float) -> bool:
    """Divides the quaternion of each of contiguous poses float64[n, 7] by its norm, in place; whether all are sound.

    Of a sound one no position is beyond the limit and the norm is within `tolerance` of 1; neither is NaN. Where one is
    not, some poses before it have been normalized.
    """
    if not poses.flags.c_contiguous or poses.dtype != np.float64:
        raise ValueError("poses that are normalized in place are contiguous, in float64")
    if _native is not None:
        return _native.normalize(poses, position_limit, tolerance)
    block = min(len(poses), _BLOCK_POSES)
    components, norms, squares = np.empty((4, block)), np.empty(block), np.empty(block)
    for first in range(0, len(poses), _BLOCK_POSES):
        part = poses[first : first + _BLOCK_POSES]
        quaternion, norm, square = components[:, : len(part)], norms[: len(part)], squares[: len(part)]
        quaternion[...] = part[:, 3:].T
        with np.errstate(invalid="ignore", over="ignore"):
            np.multiply(quaternion[0], quaternion[0], out=norm)
            for k in range(1, 4):  # one by one: the sum does not depend on how the array is cut
                np.multiply(quaternion[k], quaternion[k], out=square)
                norm += square
            np.sqrt(norm, out=norm)
            # NaN is the greatest and the least of any that are.
            sound = part.min() >= -position_limit and part.max() <= position_limit
            np.subtract(norm, 1.0, out=square)
            if not (sound and np.abs(square, out=square).max() <= tolerance):
                return False
        np.divide(quaternion, norm, out=part[:, 3:].T)
    return True
