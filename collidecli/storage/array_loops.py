"""Loops over arrays for reading and writing: byte shuffle, Fletcher-32 checksums, normalization of
poses.

NumPy computes them by default; `use` sets native code instead, with results equal to the bit.
`use_compiled` compiles that with the kernels of a run; other verbs do not wait for a compiler.
Figures: docs/adr/0072.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

Buffer = bytes | bytearray | memoryview | np.ndarray


class NativeLoops(Protocol):
    """The functions in native code; thread-safe."""

    def shuffle(self, tasks: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None: ...

    def word_sums(self, buffers: Sequence[Buffer]) -> list[tuple[int, int]]: ...

    def normalize(
        self, poses: np.ndarray, position_limit: float, tolerance: float, kept: float
    ) -> bool: ...


_native: NativeLoops | None = None


def use(native: NativeLoops | None) -> None:
    """Sets the native code of this process; None is NumPy."""
    global _native
    _native = native


def shuffle(tasks: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None:
    """HDF5's shuffle of several columns: byte k of each number moves to row k.

    tasks: numbers [n, ...], planes uint8[bytes of a number, *], both contiguous, and the index in
        each row of the first of the n bytes.
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
    """HDF5's Fletcher-32 checksums of buffers, over 16-bit big-endian words; an odd last byte is a
    word's high half.

    For words w_1 .. w_n: sum1 = Σ w_i and sum2 = Σ (n - i + 1) w_i modulo 65535, with a nonzero
    multiple of 65535 represented as 65535. The words are summed as little-endian: exchanging a
    word's bytes multiplies it by 256 modulo 65535.
    """
    sums = (
        [_word_sums(np.frombuffer(data, np.uint8)) for data in buffers]
        if _native is None
        else _native.word_sums(buffers)
    )
    return [
        (((weighted * 256 - 1) % _MODULUS + 1) << 16 | ((total * 256 - 1) % _MODULUS + 1))
        if total
        else 0
        for total, weighted in sums
    ]


def _word_sums(raw: np.ndarray) -> tuple[int, int]:
    """Σ w_i and Σ (n - i + 1) w_i of little-endian words, modulo 65535; (0, 0) only if all words
    are zero.

    In rows of R words, Σ (n - i) w_i follows from the sums of rows and of columns.
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
"""Poses of a block: 448 KiB, and as much for components: about the size of a core's second-level
cache."""
NONE_KEPT = -1.0
"""Largest difference of a kept quaternion's norm from 1, with which every one is divided."""


def normalize(
    poses: np.ndarray, position_limit: float, tolerance: float, kept: float = NONE_KEPT
) -> bool:
    """Normalizes the quaternions of contiguous poses float64[n, 7] in place; returns whether all
    poses are valid.

    Positions of a valid pose are within the limit, its norm is within `tolerance` of 1, and neither
    is NaN. If a pose is invalid, some poses before it are normalized. kept: a quaternion whose norm
    is within it of 1 keeps its bits.
    """
    if not poses.flags.c_contiguous or poses.dtype != np.float64:
        raise ValueError("poses must be contiguous and float64")
    if _native is not None:
        return _native.normalize(poses, position_limit, tolerance, kept)
    block = min(len(poses), _BLOCK_POSES)
    components = np.empty((4, block))
    norms = np.empty(block)
    squares = np.empty(block)
    for first in range(0, len(poses), _BLOCK_POSES):
        part = poses[first : first + _BLOCK_POSES]
        quaternion = components[:, : len(part)]
        norm = norms[: len(part)]
        square = squares[: len(part)]
        quaternion[...] = part[:, 3:].T
        with np.errstate(invalid="ignore", over="ignore"):
            np.multiply(quaternion[0], quaternion[0], out=norm)
            for k in range(1, 4):  # in fixed order: the sum does not depend on the blocks
                np.multiply(quaternion[k], quaternion[k], out=square)
                norm += square
            np.sqrt(norm, out=norm)
            # The minimum and maximum of numbers with NaN are NaN.
            valid = part.min() >= -position_limit and part.max() <= position_limit
            np.subtract(norm, 1.0, out=square)
            if not (valid and np.abs(square, out=square).max() <= tolerance):
                return False
            np.copyto(norm, 1.0, where=square <= kept)
        np.divide(quaternion, norm, out=part[:, 3:].T)
    return True
