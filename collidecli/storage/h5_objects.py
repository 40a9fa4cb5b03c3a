"""Creation of groups, datasets and attributes in a new HDF5 file.

Equal contents give equal bytes: objects have no times. Small tables are in their object headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5t, h5z  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.scene.option_choices import COMPRESSIONS

DEFLATE_LEVEL = 1
_COMPACT_BYTES = 4096
"""Largest dataset that is stored in its object header."""
_STRING_BYTES = h5t.py_create(h5py.string_dtype(), logical=True).get_size()


class NewObjects:
    """Creates objects in a new `file` by path, with their parent groups."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def numbers(self, path: str, values: np.ndarray, unit: str = "") -> None:
        """A dataset of numbers, little-endian in the file."""
        values = np.ascontiguousarray(values)
        self._dataset(path, values.shape, values.dtype.newbyteorder("<"), _table_layout(values.nbytes), values, unit)

    def strings(self, path: str, values: Sequence[str], unit: str = "") -> None:
        """A dataset of UTF-8 strings of any length."""
        layout = _table_layout(len(values) * _STRING_BYTES)
        self._dataset(path, (len(values),), h5py.string_dtype(), layout, np.array(values, object), unit)

    def rows(
        self, path: str, dtype: np.dtype, row_shape: tuple[int, ...], chunk_rows: int, compression: str, unit: str = ""
    ) -> h5py.Dataset:
        """An empty dataset, extensible by rows, with the filters of `compression`."""
        created = h5p.create(h5p.DATASET_CREATE)
        created.set_chunk((chunk_rows, *row_shape))
        _set_filters(created, compression)
        growing = {"chunks": (chunk_rows, *row_shape), "maxshape": (None, *row_shape)}
        return self._dataset(path, (0, *row_shape), np.dtype(dtype).newbyteorder("<"), created, None, unit, **growing)

    def attribute(self, path: str, name: str, value: object) -> None:
        """An attribute of a group: a string, a number, or an array of numbers."""
        self._file.require_group(path).attrs[name] = value

    def report(self, path: str, values: Mapping[str, object]) -> None:
        """A group from a mapping: arrays and lists as datasets, mappings as groups, other values as attributes."""
        self._file.require_group(path)
        for name, value in values.items():
            below = f"{path}/{name}"
            if isinstance(value, Mapping):
                self.report(below, value)
            elif isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
                self.strings(below, value)
            elif isinstance(value, (list, tuple, np.ndarray)):
                self.numbers(below, np.asarray(value))
            else:
                self.attribute(path, name, value)

    def _dataset(
        self, path: str, shape: tuple[int, ...], dtype: np.dtype, created: Any, values: Any, unit: str, **options: Any
    ) -> h5py.Dataset:
        dataset = self._file.create_dataset(path, shape, dtype, values, dcpl=created, track_times=False, **options)
        if unit:
            dataset.attrs["unit"] = unit
        return dataset


def _table_layout(size: int) -> Any:
    created = h5p.create(h5p.DATASET_CREATE)
    if 0 < size <= _COMPACT_BYTES:
        created.set_layout(h5d.COMPACT)
    return created


def check_compression(compression: str) -> None:
    """Raises InputError for an unknown compression, or one whose package is not installed."""
    if compression not in COMPRESSIONS:
        known = ", ".join(COMPRESSIONS)
        raise InputError(f"unknown compression {compression!r}", "--compression", f"choose {known}")
    if compression == "zstd":
        _zstd()


def _zstd() -> Any:
    try:
        return import_module("hdf5plugin").Zstd(clevel=1)
    except ImportError as error:
        raise InputError(
            "zstd needs hdf5plugin, which is not installed",
            "--compression",
            "pip install 'collidecli[zstd]', or choose gzip, lzf or none",
        ) from error


def _set_filters(created: Any, compression: str) -> None:
    if compression != "none":
        created.set_shuffle()
    if compression == "gzip":
        created.set_deflate(DEFLATE_LEVEL)
    elif compression == "lzf":
        created.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
    elif compression == "zstd":
        chosen = _zstd()
        created.set_filter(chosen.filter_id, h5z.FLAG_OPTIONAL, chosen.filter_options)
    created.set_fletcher32()
