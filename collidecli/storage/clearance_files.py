"""Writer of least distances as HDF5, format `collide-clearance` 1.0 (docs/reference/file-formats.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.schema import creator

FORMAT, VERSION = "collide-clearance", (1, 0)
_CHUNK_BYTES = 1 << 18
ARRAYS = {
    "distance": (np.float64, (), "m"),
    "error": (np.float64, (), "m"),
    "normal": (np.float64, (3,), ""),
    "point0": (np.float64, (3,), "m"),
    "point1": (np.float64, (3,), "m"),
    "pair": (np.int32, (), ""),
}
"""Type, shape of an element and unit of each array [F, W, I, ...]."""


class ClearanceWriter:
    """A file of least distances, to which blocks of frames are written; the caller commits the output.

    tables: small arrays by name. shape: frames, worlds, items. about: root attributes; a mapping becomes JSON.
    """

    def __init__(
        self,
        output: AtomicOutput,
        tables: Mapping[str, np.ndarray],
        shape: tuple[int, int, int],
        about: Mapping[str, Any],
        compression: str,
    ) -> None:
        self._output = output
        self._file = h5py.File(output, "w")
        try:
            self._write_about(about, tables)
            packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compression == "gzip" else {}
            for name, (dtype, element, unit) in ARRAYS.items():
                whole = (*shape, *element)
                row = int(np.prod(whole[1:], dtype=np.int64)) * np.dtype(dtype).itemsize
                chunks = (max(1, min(shape[0], _CHUNK_BYTES // row)), *whole[1:])
                data = self._file.create_dataset(name, whole, dtype, chunks=chunks, **packed)
                if unit:
                    data.attrs["unit"] = unit
            output.check()
        except BaseException:
            self._file.close()
            raise

    def _write_about(self, about: Mapping[str, Any], tables: Mapping[str, np.ndarray]) -> None:
        self._file.attrs["format"] = FORMAT
        self._file.attrs["format_version"] = np.array(VERSION, np.int32)
        self._file.attrs["creator"] = creator()
        for name, value in about.items():
            self._file.attrs[name] = json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value
        for name, values in tables.items():
            is_text = values.dtype.kind in "OU"
            dtype = h5py.string_dtype() if is_text else None
            data = self._file.create_dataset(name, data=values.astype(object) if is_text else values, dtype=dtype)
            if name == "time":
                data.attrs["unit"] = "s"

    def append(self, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes the arrays of frames from `first` on. Raises OutputError after a failed write."""
        for name in ARRAYS:
            self._file[name][first : first + len(arrays[name])] = arrays[name]  # pyright: ignore[reportIndexIssue]
        self._output.check()

    def __enter__(self) -> ClearanceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._output.check()
