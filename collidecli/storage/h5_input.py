"""Opening an HDF5 file that someone else may have made."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable
from importlib import import_module

import h5py
import psutil
from h5py import h5z  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.scene.text_format import memory
from collidecli.storage.process_activity import structure, structure_step

ZSTD_FILTER = 32015
MOST_LEVELS = 64
"""Of groups: recordings have five at most."""
MOST_EXPANSION = 4
"""A dataset so many times larger than its file is looked at closely: well compressed, or a promise."""


DAMAGE = (OSError, RuntimeError, KeyError, UnicodeDecodeError)
"""What h5py raises where a file's structure is damaged."""


def damaged(name: str, error: Exception) -> InputError:
    """The error to raise in place of one of `DAMAGE`."""
    return InputError(f"the file is damaged: {str(error).splitlines()[0]}", name, "copy it again, or make it again")


def open_h5(path: str | os.PathLike[str]) -> h5py.File:
    """The file, open for reading.

    Raises InputError: no such file, not HDF5, truncated, with data outside the file (external links, external storage,
    virtual datasets), or with a dataset that declares more than was ever written.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        what = "is a folder, not a file" if os.path.isdir(name) else "there is no such file"
        raise InputError(what, name)
    try:
        with structure():
            file = h5py.File(name, "r")
    except OSError as error:
        raise _cannot_open(name, error) from error
    try:
        with structure():
            _refuse_what_no_input_has(file, name)
    except (*DAMAGE, ValueError) as error:  # of a number type that NumPy has not
        file.close()
        raise damaged(name, error) from error
    except BaseException:
        file.close()
        raise
    return file


def format_of(file: h5py.File) -> str:
    """What an open file calls its format; empty where it does not say."""
    with structure():
        return text_of(file.attrs.get("format", ""))


def text_of(value: object) -> str:
    """What an attribute or a cell says, which files hold as bytes or as str; bytes that are not UTF-8 are marked."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def exact_texts(values: Iterable[bytes], where: str) -> tuple[str, ...]:
    """A dataset's strings. Raises InputError for one that is not UTF-8: names that are compared must be whole."""
    try:
        return tuple(value.decode() for value in values)
    except UnicodeDecodeError as error:
        raise InputError("holds a string that is not UTF-8", where) from error


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


def _refuse_what_no_input_has(file: h5py.File, name: str) -> None:
    """Looks at every link and dataset once, without reading data."""
    file_size = os.path.getsize(name)
    seen: set[h5py.HLObject] = set()
    waiting: list[tuple[h5py.Group, str, int]] = [(file, f"{name}: ", 0)]
    while waiting:
        group, path, depth = waiting.pop()
        if depth > MOST_LEVELS:
            raise InputError(f"has groups more than {MOST_LEVELS} deep", name, "keep the data nearer to the root")
        for key in group:
            structure_step()
            place = f"{path}/{key}"
            link = group.get(key, getlink=True)
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
                _refuse_empty_promise(item, place, file_size)
            elif isinstance(item, h5py.Group):
                waiting.append((item, place, depth + 1))


def _refuse_empty_promise(dataset: h5py.Dataset, place: str, file_size: int) -> None:
    """A dataset far larger than its file must be there whole: what was never written reads as zeros without end."""
    if dataset.shape is None or dataset.nbytes <= MOST_EXPANSION * file_size:
        return
    declared = f"declares {memory(dataset.nbytes)} as {list(dataset.shape)}"
    if dataset.chunks is None:
        raise InputError(f"{declared}, more than the whole file holds", place, "copy the file again, or make it again")
    wanted = math.prod(-(-extent // chunk) for extent, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    held = dataset.id.get_num_chunks()
    if held < wanted:
        raise InputError(f"{declared}, and holds {held} of {wanted} chunks", place, "write all of it, or make it again")
    chunk_bytes = math.prod(dataset.chunks) * dataset.dtype.itemsize
    free = psutil.virtual_memory().available
    if chunk_bytes > free // 2:
        raise InputError(
            f"has chunks of {memory(chunk_bytes)}, and {memory(free)} of memory are free",
            place,
            "write it in smaller chunks",
        )


def _load_filters(dataset: h5py.Dataset, place: str) -> None:
    """Registers zstd where `dataset` needs it."""
    filters = dataset.id.get_create_plist()
    for index in range(filters.get_nfilters()):
        number = filters.get_filter(index)[0]
        if number == ZSTD_FILTER and not h5z.filter_avail(number):
            with contextlib.suppress(ImportError):
                import_module("hdf5plugin")
        if not h5z.filter_avail(number):
            fix = "pip install 'collidecli[zstd]'" if number == ZSTD_FILTER else "pip install hdf5plugin"
            raise InputError(f"is compressed with HDF5 filter {number}, which is not installed", place, fix)
