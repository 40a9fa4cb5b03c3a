"""Opening of HDF5 files from untrusted sources."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import h5py
from h5py import h5a, h5d, h5g, h5l, h5o, h5s, h5z  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.storage.process_activity import structure, structure_step
from collidecli.storage.regular_files import require_regular_file
from collidecli.system import free_memory
from collidecli.wording import memory

ZSTD_FILTER = 32015
PLUGIN_FILTERS = {
    307: "BZip2",
    32001: "Blosc",
    32004: "LZ4",
    32008: "Bitshuffle",
    32013: "ZFP",
    ZSTD_FILTER: "Zstandard",
    32017: "SZ",
    32018: "FCIDECOMP",
    32024: "SZ3",
    32026: "Blosc2",
    32028: "SPERR",
    32033: "HTJ2K",
}
"""Filters of the package hdf5plugin by the number that the HDF Group registered."""
FILTER_NAMES = {4: "SZIP", 305: "LZO", 32000: "LZF", 32012: "JPEG-XR", 32019: "JPEG"}
"""Other filters that HDF5 may lack."""
MOST_NAME = 40
"""Longest name of a filter that a message takes from a file."""
MOST_LEVELS = 64
"""Largest depth of groups; recordings have at most five levels."""
MOST_EXPANSION = 4
"""A dataset larger than its file by this factor must have all of its chunks: it is well compressed,
or incomplete."""
DAMAGE = (OSError, RuntimeError, KeyError, UnicodeDecodeError)
"""Exceptions of h5py for a damaged file structure."""


def damaged(name: str, error: Exception) -> InputError:
    """The InputError for an exception of `DAMAGE`."""
    return InputError(
        f"the file is damaged: {str(error).splitlines()[0]}",
        name,
        "copy it again, or make it again",
    )


class IndexedFile(h5py.File):
    """A file whose objects were all opened once; `get` and `in` find them by absolute path without
    HDF5."""

    objects: Mapping[str, h5py.HLObject] | None = None
    """By path; None if the file is not indexed, as one that has links."""

    def get(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self.objects is None or arguments or options or name[:1] != "/" or not self:
            return super().get(name, *arguments, **options)
        return self.objects.get(name)

    def __contains__(self, name: object) -> bool:
        if self.objects is None or not isinstance(name, str) or name[:1] != "/" or not self:
            return super().__contains__(name)
        return name in self.objects


def open_h5(path: str | os.PathLike[str], index: bool = False) -> h5py.File:
    """Opens a file for reading. index: as an IndexedFile, which holds all of its objects open.

    Raises InputError for a missing file, a file that is not HDF5 or truncated, data outside the
    file (external links, external storage, virtual datasets), and a dataset larger than the written
    data.
    """
    name = os.fspath(path)
    require_regular_file(name)
    try:
        with structure():
            file = IndexedFile(name, "r")
    except OSError as error:
        raise _cannot_open(name, error) from error
    try:
        with structure():
            file.objects = _checked_objects(file, name, index)
    except (*DAMAGE, ValueError) as error:  # ValueError: a number type that NumPy does not have
        file.close()
        raise damaged(name, error) from error
    except BaseException:
        file.close()
        raise
    return file


def format_of(file: h5py.File) -> str:
    """The root attribute `format` of an open file; empty if it is missing."""
    with structure():
        return text_of(file.attrs.get("format", ""))


def format_of_path(path: str | os.PathLike[str]) -> str:
    """The root attribute `format` of a file; empty for another kind of file, and for one that
    cannot be read."""
    try:
        if not os.path.isfile(path) or not h5py.is_hdf5(path):
            return ""
        with h5py.File(path, "r") as file:
            return format_of(file)
    except (*DAMAGE, InputError):  # the reader that opens it names the reason
        return ""


def text_of(value: object) -> str:
    """Text of an attribute or a cell, stored as bytes or str; bytes that are not UTF-8 are
    replaced."""
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "replace")


def exact_texts(values: Iterable[bytes], where: str) -> tuple[str, ...]:
    """A dataset's strings. Raises InputError for one that is not UTF-8, as replaced characters
    would break matching."""
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
        return InputError(
            "the file is open in another program that writes to it", name, "close it there"
        )
    if h5py.is_hdf5(name):
        return InputError("the file is damaged: HDF5 cannot open it", name, "make it again")
    return InputError("this is not an HDF5 file", name)


_OBJECTS: dict[type, Any] = {
    h5d.DatasetID: partial(h5py.Dataset, readonly=True),
    h5g.GroupID: h5py.Group,
}


def _checked_objects(file: h5py.File, name: str, index: bool) -> dict[str, h5py.HLObject] | None:
    """Every object by path if `index`, each checked once without its data; None if soft links or
    rings give others."""
    # Low-level functions take less than half of the time of h5py's other ones: a contact set has
    # some hundred objects.
    objects: dict[str, h5py.HLObject] | None = {} if index else None
    file_size = os.path.getsize(name)
    h5a.iterate(file.id, lambda *_: None)
    seen: set[Any] = set()
    pending: list[tuple[Any, str, int]] = [(file.id, f"{name}: ", 0)]
    while pending:
        group, path, depth = pending.pop()
        if depth > MOST_LEVELS:
            raise InputError(
                f"has groups more than {MOST_LEVELS} deep", name, "keep the data nearer to the root"
            )
        for key in group:
            structure_step()
            where = f"{path}/{text_of(key)}"
            if key != text_of(key).encode():
                raise InputError("its name is not UTF-8", where, "write the file again")
            kind = group.links.get_info(key).type
            if kind == h5l.TYPE_EXTERNAL:
                link: Any = h5py.Group(group).get(key, getlink=True)
                raise InputError(
                    f"links to another file, {link.filename}", where, "copy the data into this file"
                )
            item = None if kind == h5l.TYPE_SOFT else h5o.open(group, key)
            if item is None or item in seen:
                objects = None
                continue
            seen.add(item)
            h5a.iterate(item, lambda *_: None)
            if isinstance(item, h5d.DatasetID):
                created = item.get_create_plist()
                if created.get_external_count() or created.get_layout() == h5d.VIRTUAL:
                    raise InputError(
                        "its data lies in another file", where, "copy the data into this file"
                    )
                _load_filters(created, where)
                _check_written(item, created, where, file_size)
            elif isinstance(item, h5g.GroupID):
                pending.append((item, where, depth + 1))
            if objects is not None:
                objects[where.removeprefix(f"{name}: ")] = _OBJECTS.get(type(item), h5py.Datatype)(
                    item
                )
    return objects


def _check_written(dataset: Any, created: Any, where: str, file_size: int) -> None:
    """Raises InputError for a dataset far larger than its file with missing chunks, which HDF5
    reads as zeros."""
    is_null = dataset.get_space().get_simple_extent_type() == h5s.NULL
    if (
        is_null
        or (size := math.prod(dataset.shape) * dataset.dtype.itemsize) <= MOST_EXPANSION * file_size
    ):
        return
    declared = f"declares {memory(size)} as {list(dataset.shape)}"
    if created.get_layout() != h5d.CHUNKED:
        raise InputError(
            f"{declared}, more than the whole file holds",
            where,
            "copy the file again, or make it again",
        )
    chunk = created.get_chunk()
    wanted = math.prod(
        -(-extent // length) for extent, length in zip(dataset.shape, chunk, strict=True)
    )
    if (stored := dataset.get_num_chunks()) < wanted:
        what = f"{declared}, and holds {stored} of {wanted} chunks"
        raise InputError(what, where, "write all of it, or make it again")
    chunk_bytes = math.prod(chunk) * dataset.dtype.itemsize
    if chunk_bytes > (free := free_memory()) // 2:
        what = f"has chunks of {memory(chunk_bytes)}, and {memory(free)} of memory are free"
        raise InputError(what, where, "write it in smaller chunks")


def _load_filters(created: Any, where: str) -> None:
    """Registers the filters of hdf5plugin if a dataset requires one that HDF5 lacks. Raises
    InputError for a filter that is then still missing."""
    for index in range(created.get_nfilters()):
        number, _, _, stored_name = created.get_filter(index)
        if h5z.filter_avail(number):
            continue
        with contextlib.suppress(ImportError):
            import_module("hdf5plugin")
        if h5z.filter_avail(number):
            continue
        of_file = text_of(stored_name)[:MOST_NAME] or "without a name"
        name = FILTER_NAMES.get(number) or PLUGIN_FILTERS.get(number) or of_file
        fix = "write the data again without it, such as by h5repack -f GZIP=4"
        if number == ZSTD_FILTER:
            fix = "pip install 'collidecli[zstd]'"
        elif number in PLUGIN_FILTERS:
            fix = "pip install hdf5plugin"
        what = f"is compressed with HDF5 filter {number} ({name}), which is not installed"
        raise InputError(what, where, fix)
