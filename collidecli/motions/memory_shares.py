"""Shares of the memory limit of a run: poses, chunks and writing."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.engine.runtime.owned_process import is_owned
from collidecli.errors import InputError
from collidecli.scene.contact_columns import RIGID_COLUMNS, Column
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.storage.h5_chunks import CHUNK_ROWS
from collidecli.wording import memory

HELD_BATCHES = 3
"""Number of chunks of poses in memory: one is read, one waits, one is computed. On a device one
more for each further chunk in flight."""
POSE_BYTES = 7 * 8
POSITION_BYTES = 3 * 8
READ_BYTES = 256 << 10
"""Least size of the poses that are read at once: each read and its kinematics take some
milliseconds."""
LEAST_CHUNK_ROWS = 1024
HELD_CHUNKS = 6
"""Number of chunks of every column in memory: one is filled, two are hashed and compressed, each
with its compressed bytes, and one is in the compressing threads' buffers."""
WRITING_BYTES = 2 << 20
"""Memory of the HDF5 filters and caches [bytes]."""
_MMAP_THRESHOLD = -3
_MMAP_BYTES = 256 << 10


@dataclass(frozen=True)
class MemoryShares:
    """chunk_cells: of a chunk of poses. chunk_rows: of a chunk of a column. engine_bytes: for
    scratch and blocks."""

    chunk_cells: int
    chunk_rows: int
    engine_bytes: int


def shared_out(
    limit: int,
    model: Model,
    motion: Motion,
    chunk_cells: int,
    columns: Sequence[Column] = RIGID_COLUMNS,
    in_flight: int = 1,
) -> MemoryShares:
    """Shares of `limit` bytes, at least half for the engine; chunks of poses and of columns are
    reduced to fit.

    in_flight: chunks of poses that a device computes at a time; 1 for the CPU.
    Raises InputError if one frame of all worlds and the smallest chunks of columns need more than
    half.
    """
    worlds = model.world_count
    frame_bytes = POSE_BYTES * motion.world_count * max(1, len(model.bodies.path))
    frame_bytes += POSITION_BYTES * motion.world_count * len(model.particles)
    row_bytes = sum(
        column.width * column.dtype_for(np.dtype(motion.float_type)).itemsize for column in columns
    )
    held = HELD_BATCHES + in_flight - 1
    frames = max(1, min(-(-chunk_cells // worlds), limit // 8 // (held * frame_bytes)))
    reading = held * frames * frame_bytes
    rows = CHUNK_ROWS
    while rows > LEAST_CHUNK_ROWS and 2 * (reading + _writing_bytes(rows, row_bytes)) > limit:
        rows //= 2
    writing = _writing_bytes(rows, row_bytes)
    if 2 * (reading + writing) > limit:
        least = reading + writing
        what = (
            f"reading and writing take {memory(least)} at least (a frame has {memory(frame_bytes)}"
            " of poses)"
        )
        fix = f"raise it to {-(-2 * least // 2**20)}MiB or more"
        raise InputError(f"{what}, more than half of {memory(limit)}", "--memory-limit", fix)
    return MemoryShares(min(chunk_cells, frames * worlds), rows, limit - reading - writing)


def _writing_bytes(rows: int, row_bytes: int) -> int:
    return HELD_CHUNKS * rows * row_bytes + WRITING_BYTES


def keep_to_limits() -> None:
    """Makes glibc return large freed arrays to the system immediately, in a process of the command
    line.

    No effect with another C library. By default glibc keeps up to some tens of MiB of them per
    thread, which no share accounts for.
    """
    if not is_owned():
        return
    try:
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
    except (AttributeError, OSError, TypeError):
        return
