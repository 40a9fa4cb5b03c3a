"""Rows of the frames of a trajectory."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import h5py
import numpy as np

from collidecli.storage.h5_files import DAMAGE

PIECE_BYTES = 1 << 20
"""Approximate size of the ranges in which frames are read and checked: a range fits the processor's
cache. With 256 KiB a recording takes 39 ms where it takes 31, since each range costs some 50 us of
Python."""


class FrameRows:
    """The rows of a dataset whose first extent is frames."""

    def __init__(self, file: h5py.File, data: h5py.Dataset) -> None:
        # Each access of an h5py property queries HDF5, which takes as long as reading a range.
        self._data = data
        self._chunks = data.chunks
        self._type = data.dtype
        self._count = data.shape[0]
        self._row_shape = data.shape[1:]
        self._row_bytes = math.prod(self._row_shape) * data.dtype.itemsize
        self._file_descriptor = _descriptor(file, data)

    @property
    def name(self) -> str:
        return str(self._data.name)

    def pieces(self, frames: range) -> Iterator[range]:
        """`frames` split at chunks of the file, into ranges of about PIECE_BYTES."""
        chunk = self._chunks[0] if self._chunks is not None and frames.step == 1 else 1
        whole = max(1, PIECE_BYTES // max(1, self._row_bytes * chunk)) * chunk
        first = 0
        while first < len(frames):
            end = first + whole - (frames[first] % whole if frames.step == 1 else 0)
            yield frames[first:end]
            first = end

    def read(self, frames: range, into: np.ndarray | None = None) -> np.ndarray:
        """The rows of `frames`, in the dataset's type.

        into: [len(frames), *row shape], contiguous; filled and returned if the rows are read
            directly and it has their type. Raises OSError if HDF5 cannot read them.
        """
        if self._file_descriptor is not None and frames.step == 1 and len(frames):
            fits = into is not None and into.dtype == self._type and into.flags.c_contiguous
            out = (
                into
                if fits and into is not None
                else np.empty((len(frames), *self._row_shape), self._type)
            )
            if self._read_directly(frames, out):
                return out
        return self._data[frames.start : frames.stop : frames.step]

    def _read_directly(self, frames: range, out: np.ndarray) -> bool:
        """Reads the rows into `out`; False if HDF5 must read them, with undefined contents of
        `out`."""
        assert self._file_descriptor is not None
        memory = out.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(frames):
            frame = frames.start + done
            offset, count = self._offset(frame)
            if offset is None:
                return False
            count = min(count, len(frames) - done)
            target = memory[done * self._row_bytes : (done + count) * self._row_bytes]
            if os.preadv(self._file_descriptor, [target], offset) != len(target):
                return False
            done += count
        return True

    def _offset(self, frame: int) -> tuple[int | None, int]:
        """File offset of a frame's row, and the number of contiguous rows from it on; None if HDF5
        must read it."""
        data = self._data.id
        chunks = self._chunks
        if chunks is None:
            offset = data.get_offset()
            return (
                (None, 0)
                if offset is None
                else (offset + frame * self._row_bytes, self._count - frame)
            )
        number, within = divmod(frame, chunks[0])
        offset = int(self._chunk_offsets[number])
        return (None, 0) if offset < 0 else (offset + within * self._row_bytes, chunks[0] - within)

    @cached_property
    def _chunk_offsets(self) -> np.ndarray:
        """int64: file offset of each chunk of frames; -1 if HDF5 must read it.

        HDF5 searches for one chunk through all before it: reading chunk by chunk would take
        quadratic time.
        """
        assert self._chunks is not None
        frames = self._chunks[0]
        offsets = np.full(-(-self._count // frames), -1)

        def keep(chunk: Any) -> None:
            if (
                chunk.byte_offset is not None
                and chunk.size == frames * self._row_bytes
                and not chunk.filter_mask
            ):
                offsets[chunk.chunk_offset[0] // frames] = chunk.byte_offset

        # HDF5 reads what is not found, or reports the damage
        with contextlib.suppress(*DAMAGE, IndexError):
            self._data.id.chunk_iter(keep)
        return offsets


def _descriptor(file: h5py.File, data: h5py.Dataset) -> int | None:
    """The file descriptor if `data` can be read directly; None if HDF5 must read it."""
    created = data.id.get_create_plist()
    plain = (
        hasattr(os, "preadv")
        and file.driver == "sec2"
        and file.userblock_size == 0
        and created.get_nfilters() == 0
        and data.dtype.isnative
        and data.dtype.kind == "f"
        and math.prod(data.shape) > 0
        and (data.chunks is None or data.chunks[1:] == data.shape[1:])
    )
    return file.id.get_vfd_handle() if plain else None
