"""Opening an HDF5 file that someone else may have made."""

from __future__ import annotations

import contextlib
import os
from importlib import import_module

import h5py
from h5py import h5z  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError

ZSTD_FILTER = 32015


DAMAGE = (OSError, RuntimeError, KeyError, UnicodeDecodeError)
"""What h5py raises where a file's structure is damaged."""


def damaged(name: str, error: Exception) -> InputError:
    """The error to raise in place of one of `DAMAGE`."""
    return InputError(f"the file is damaged: {str(error).splitlines()[0]}", name, "copy it again, or make it again")


def open_h5(path: str | os.PathLike[str]) -> h5py.File:
    """The file, open for reading.

    Raises InputError: no such file, not HDF5, truncated, or with data outside the file (external links, external
    storage, virtual datasets).
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        what = "is a folder, not a file" if os.path.isdir(name) else "there is no such file"
        raise InputError(what, name)
    try:
        file = h5py.File(name, "r")
    except OSError as error:
        raise _cannot_open(name, error) from error
    try:
        _refuse_outside_data(file, name, set())
    except DAMAGE as error:
        file.close()
        raise damaged(name, error) from error
    except BaseException:
        file.close()
        raise
    return file


def _cannot_open(name: str, error: OSError) -> InputError:
    if isinstance(error, PermissionError):
        return InputError("the file may not be read", name, "check its permissions")
    if "truncated" in str(error):
        return InputError("the file is truncated", name, "copy it again, or make it again")
    if "locked" in str(error) or "unable to lock" in str(error):
        return InputError("the file is open in another program that writes to it", name, "close it there")
    if h5py.is_hdf5(name):
        return InputError("the file is damaged: HDF5 cannot open it", name, "make it again")
    return InputError("this is not an HDF5 file", name)


def _refuse_outside_data(group: h5py.Group, name: str, seen: set[h5py.HLObject]) -> None:
    for key in group:
        link = group.get(key, getlink=True)
        place = f"{name}: {(group.name or '').rstrip('/')}/{key}"
        if isinstance(link, h5py.ExternalLink):
            raise InputError(f"links to another file, {link.filename}", place, "copy the data into this file")
        if isinstance(link, h5py.SoftLink):
            continue
        item = group[key]
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise InputError("its data lies in another file", place, "copy the data into this file")
            _load_filters(item, place)
        elif isinstance(item, h5py.Group):
            _refuse_outside_data(item, name, seen)


def _load_filters(dataset: h5py.Dataset, place: str) -> None:
    """Registers zstd where `dataset` needs it."""
    filters = dataset.id.get_create_plist()
    for index in range(filters.get_nfilters()):
        number = filters.get_filter(index)[0]
        if number == ZSTD_FILTER and not h5z.filter_avail(number):
            with contextlib.suppress(ImportError):
                import_module("hdf5plugin")
        if not h5z.filter_avail(number):
            raise InputError(
                f"is compressed with HDF5 filter {number}, which is not installed", place, "pip install hdf5plugin"
            )
