"""Frames of a recording's dataset, read directly from the file if HDF5 would only copy them.

A dataset without filters has equal bytes in the file and in memory. HDF5 still copies each chunk twice, under a lock
that every use of h5py shares; a read at the chunk's file offset takes a third of the time and releases the GIL.
HDF5 reads everything else (filters, another byte order, a chunk that was never written or is incomplete), and reports
its errors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import h5py
import numpy as np

from collidecli.storage.h5_input import DAMAGE

PIECE_BYTES = 1 << 18
"""Approximate size of the ranges in which frames are read and checked: a range fits the core's cache."""


class FrameRows:
    """The rows of a dataset whose first extent is frames."""

    def __init__(self, file: h5py.File, data: h5py.Dataset) -> None:
        # Each access of an h5py property queries HDF5, which takes as long as reading a range.
        self._data, self._chunks, self._type, self._count = data, data.chunks, data.dtype, data.shape[0]
        self._row_shape = data.shape[1:]
        self._row_bytes = math.prod(self._row_shape) * data.dtype.itemsize
        self._file_descriptor = _descriptor(file, data)

    @property
    def name(self) -> str:
        return str(self._data.name)

    def pieces(self, frames: range) -> Iterator[range]:
        """`frames` split at chunks of the file, into ranges of about PIECE_BYTES."""
        chunk = self._chunks[0] if self._chunks is not None else 1
        whole = max(1, PIECE_BYTES // max(1, self._row_bytes * chunk)) * chunk
        if frames.step != 1:
            whole = max(1, PIECE_BYTES // max(1, self._row_bytes))
            for first in range(0, len(frames), whole):
                yield frames[first : first + whole]
            return
        first = frames.start
        while first < frames.stop:
            end = min(frames.stop, (first // whole + 1) * whole)
            yield range(first, end)
            first = end

    def read(self, frames: range, into: np.ndarray | None = None) -> np.ndarray:
        """The rows of `frames`, in the dataset's type.

        into: [len(frames), *row shape], contiguous; filled and returned if the rows are read directly and it has their
            type. Raises OSError if HDF5 cannot read them.
        """
        if self._file_descriptor is not None and frames.step == 1 and len(frames):
            fits = into is not None and into.dtype == self._type and into.flags.c_contiguous
            out = into if fits and into is not None else np.empty((len(frames), *self._row_shape), self._type)
            if self._read_directly(frames, out):
                return out
        return self._data[frames.start : frames.stop : frames.step]

    def _read_directly(self, frames: range, out: np.ndarray) -> bool:
        """Reads the rows into `out`; False if HDF5 must read them, with undefined contents of `out`."""
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
        """File offset of a frame's row, and the number of contiguous rows from it on; None if HDF5 must read it."""
        data, chunks = self._data.id, self._chunks
        if chunks is None:
            offset = data.get_offset()
            return (None, 0) if offset is None else (offset + frame * self._row_bytes, self._count - frame)
        within = frame % chunks[0]
        try:
            info = data.get_chunk_info_by_coord((frame - within, *(0 for _ in self._row_shape)))
        except DAMAGE:
            return None, 0
        if info.byte_offset is None or info.size != chunks[0] * self._row_bytes or info.filter_mask:
            return None, 0
        return info.byte_offset + within * self._row_bytes, chunks[0] - within


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
