"""How a limit of memory is shared out between reading, computing and writing."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contacts import RIGID_COLUMNS, Column
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.text_format import memory
from collidecli.storage.h5_chunks import CHUNK_ROWS

HELD_BATCHES = 3
"""Chunks of poses at a time: being read, waiting, being computed."""
POSE_BYTES = 7 * 8
LEAST_CHUNK_ROWS = 4096
HELD_CHUNKS = 2
"""Chunks of every column at a time: being filled, and filtered but not yet written."""
WRITING_BYTES = 2 << 20
"""What filtering and HDF5's caches take besides."""
_MMAP_THRESHOLD, _MMAP_BYTES = -3, 256 << 10


@dataclass(frozen=True)
class MemoryShares:
    """chunk_cells: of poses at a time. chunk_rows: of a column in the file. engine_bytes: for scratch and blocks."""

    chunk_cells: int
    chunk_rows: int
    engine_bytes: int


def shared_out(
    limit: int, model: Model, motion: Motion, chunk_cells: int, columns: Sequence[Column] = RIGID_COLUMNS
) -> MemoryShares:
    """The shares of `limit` bytes, half of it or more for the engine; chunks of poses and of columns are cut to that.

    Raises InputError where one frame of all worlds, and the least chunks of columns, do not leave as much.
    """
    worlds = model.world_count
    frame_bytes = POSE_BYTES * motion.world_count * max(1, len(model.bodies.path))
    row_bytes = sum(column.width * column.dtype_for(np.dtype(motion.float_type)).itemsize for column in columns)
    frames = max(1, min(-(-chunk_cells // worlds), limit // 8 // (HELD_BATCHES * frame_bytes)))
    reading = HELD_BATCHES * frames * frame_bytes
    rows = CHUNK_ROWS
    while rows > LEAST_CHUNK_ROWS and 2 * (reading + _writing_bytes(rows, row_bytes)) > limit:
        rows //= 2
    writing = _writing_bytes(rows, row_bytes)
    if 2 * (reading + writing) > limit:
        raise InputError(
            f"reading and writing take {memory(reading + writing)} at least (a frame has "
            f"{memory(frame_bytes)} of poses), more than half of {memory(limit)}",
            "--memory-limit",
            f"raise it to {-(-2 * (reading + writing) // 2**20)}MiB or more",
        )
    return MemoryShares(min(chunk_cells, frames * worlds), rows, limit - reading - writing)


def _writing_bytes(rows: int, row_bytes: int) -> int:
    return HELD_CHUNKS * rows * row_bytes + WRITING_BYTES


def keep_to_limits() -> None:
    """Has large arrays go back to the system as soon as they are freed, where the C library is glibc.

    It would otherwise keep up to some tens of MiB of them for each thread, which no share accounts for.
    """
    try:
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
    except (AttributeError, OSError, TypeError):
        return
