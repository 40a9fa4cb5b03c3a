"""Creation of groups, datasets and attributes in a new HDF5 file.

A contact set has some hundred small objects. h5py's high-level functions look each one up, open it
again and derive its type and filters again; the low-level functions here create equal objects in
less than half of that time (docs/adr/0107). Equal contents give equal bytes: objects have no times.
Small tables are in their object headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5p, h5s, h5t, h5z  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.escaping import unicode_text
from collidecli.scene.option_values import COMPRESSIONS

DEFLATE_LEVEL = 1
_COMPACT_BYTES = 4096
"""Largest dataset that is stored in its object header."""
_STRING = h5t.py_create(h5py.string_dtype(), logical=True)
_STRING_IN_MEMORY = h5t.py_create(h5py.string_dtype())


class NewObjects:
    """Creates objects in a new `file` by path, with their parent groups. A path may be created only
    once."""

    def __init__(self, file: h5py.File) -> None:
        self._groups: dict[str, Any] = {"": file.id}

    def group(self, path: str) -> Any:
        """The low-level group at a path such as /model/shape, created if it is missing; the root is
        /."""
        path = path.rstrip("/")
        group = self._groups.get(path)
        if group is None:
            above, _, name = path.rpartition("/")
            group = self._groups[path] = h5g.create(self.group(above), name.encode())
        return group

    def numbers(self, path: str, values: np.ndarray, unit: str = "") -> None:
        """A dataset of numbers, little-endian in the file."""
        values = np.ascontiguousarray(values)
        dataset = self._dataset(
            path, _number_type(values.dtype), _space(values.shape), _layout(values.nbytes), unit
        )
        if values.size:
            dataset.write(h5s.ALL, h5s.ALL, values)

    def strings(self, path: str, values: Sequence[str], unit: str = "") -> None:
        """A dataset of UTF-8 strings of any length."""
        layout = _layout(len(values) * _STRING.get_size())
        dataset = self._dataset(path, _STRING, _space((len(values),)), layout, unit)
        if values:
            dataset.write(h5s.ALL, h5s.ALL, np.array(values, object), _STRING_IN_MEMORY)

    def rows(
        self,
        path: str,
        dtype: np.dtype,
        row_shape: tuple[int, ...],
        chunk_rows: int,
        compression: str,
        unit: str = "",
    ) -> Any:
        """An empty low-level dataset, extensible by rows, with the filters of `compression`."""
        created = _creation(False).copy()
        created.set_chunk((chunk_rows, *row_shape))
        _set_filters(created, compression)
        space = h5s.create_simple((0, *row_shape), (h5s.UNLIMITED, *row_shape))
        return self._dataset(path, _number_type(np.dtype(dtype)), space, created, unit)

    def attribute(self, path: str, name: str, value: object) -> None:
        """An attribute of a group: a string, a number, or an array of numbers."""
        _set_attribute(self.group(path), name, value)

    def report(self, path: str, values: Mapping[str, object]) -> None:
        """A group from a mapping: arrays and lists as datasets, mappings as groups, other values as
        attributes."""
        self.group(path)
        for name, value in values.items():
            below = f"{path}/{name}"
            if isinstance(value, Mapping):
                self.report(below, value)
            elif isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
                self.strings(below, [unicode_text(item) for item in value])
            elif isinstance(value, (list, tuple, np.ndarray)):
                self.numbers(below, np.asarray(value))
            else:
                self.attribute(path, name, value)

    def _dataset(self, path: str, kind: Any, space: Any, created: Any, unit: str) -> Any:
        above, _, name = path.rpartition("/")
        dataset = h5d.create(self.group(above), name.encode(), kind, space, created)
        if unit:
            _set_attribute(dataset, "unit", unit)
        return dataset


def _set_attribute(owner: Any, name: str, value: object) -> None:
    if isinstance(value, str):
        attribute = h5a.create(owner, name.encode(), _STRING, _space(()))
        attribute.write(np.array(unicode_text(value), object), mtype=_STRING_IN_MEMORY)
    else:
        array = np.asarray(value)
        h5a.create(owner, name.encode(), _number_type(array.dtype), _space(array.shape)).write(
            array
        )


@cache
def _creation(is_compact: bool) -> Any:
    created = h5p.create(h5p.DATASET_CREATE)
    created.set_obj_track_times(False)
    if is_compact:
        created.set_layout(h5d.COMPACT)
    return created


def _layout(size: int) -> Any:
    return _creation(0 < size <= _COMPACT_BYTES)


@cache
def _number_type(dtype: np.dtype) -> Any:
    return h5t.py_create(dtype.newbyteorder("<"), logical=True)


def _space(shape: tuple[int, ...]) -> Any:
    return h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)


def check_compression(compression: str) -> None:
    """Raises InputError for an unknown compression, or one whose package is not installed."""
    if compression not in COMPRESSIONS:
        raise InputError(
            f"unknown compression {compression!r}",
            "--compression",
            f"choose {', '.join(COMPRESSIONS)}",
        )
    if compression == "zstd":
        _zstd()


def _zstd() -> Any:
    try:
        return import_module("hdf5plugin").Zstd(clevel=1)
    except ImportError as error:
        fix = "pip install 'collidecli[zstd]', or choose gzip, lzf or none"
        raise InputError(
            "zstd needs hdf5plugin, which is not installed", "--compression", fix
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
