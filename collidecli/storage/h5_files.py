"""HDF5 files from untrusted sources, rules for their attributes, and creation of objects in new ones."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5p, h5s, h5t, h5z  # pyright: ignore[reportAttributeAccessIssue]

from collidecli.errors import InputError
from collidecli.scene.options import COMPRESSIONS
from collidecli.storage.process_activity import structure, structure_step
from collidecli.system import free_memory
from collidecli.texts import memory

# Opening of HDF5 files from untrusted sources.

ZSTD_FILTER = 32015
MOST_LEVELS = 64
"""Largest depth of groups; recordings have at most five levels."""
MOST_EXPANSION = 4
"""A dataset larger than its file by this factor must have all of its chunks: it is well compressed, or incomplete."""


DAMAGE = (OSError, RuntimeError, KeyError, UnicodeDecodeError)
"""Exceptions of h5py for a damaged file structure."""


def damaged(name: str, error: Exception) -> InputError:
    """The InputError for an exception of `DAMAGE`."""
    return InputError(f"the file is damaged: {str(error).splitlines()[0]}", name, "copy it again, or make it again")


class IndexedFile(h5py.File):
    """A file whose objects were all opened once; `get` and `in` find them by absolute path without HDF5."""

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

    Raises InputError for a missing file, a file that is not HDF5 or truncated, data outside the file (external links,
    external storage, virtual datasets), and a dataset larger than the written data.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        what = "is a folder, not a file" if os.path.isdir(name) else "there is no such file"
        raise InputError(what, name)
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
    """The root attribute `format` of a file; empty for another kind of file, and for one that cannot be read."""
    try:
        if not h5py.is_hdf5(path):
            return ""
        with h5py.File(path, "r") as file:
            return format_of(file)
    except (*DAMAGE, InputError):  # the reader that opens it names the reason
        return ""


def text_of(value: object) -> str:
    """Text of an attribute or a cell, stored as bytes or str; bytes that are not UTF-8 are replaced."""
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "replace")


def exact_texts(values: Iterable[bytes], where: str) -> tuple[str, ...]:
    """A dataset's strings. Raises InputError for one that is not UTF-8, as replaced characters would break matching."""
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


_OBJECTS: dict[type, Any] = {h5d.DatasetID: partial(h5py.Dataset, readonly=True), h5g.GroupID: h5py.Group}


def _checked_objects(file: h5py.File, name: str, index: bool) -> dict[str, h5py.HLObject] | None:
    """Every object by path if `index`, each checked once without its data; None if soft links or rings give others."""
    # Low-level functions take less than half of the time of h5py's other ones: a contact set has some hundred objects.
    objects: dict[str, h5py.HLObject] | None = {} if index else None
    file_size = os.path.getsize(name)
    h5a.iterate(file.id, lambda *_: None)
    seen: set[Any] = set()
    pending: list[tuple[Any, str, int]] = [(file.id, f"{name}: ", 0)]
    while pending:
        group, path, depth = pending.pop()
        if depth > MOST_LEVELS:
            raise InputError(f"has groups more than {MOST_LEVELS} deep", name, "keep the data nearer to the root")
        for key in group:
            structure_step()
            where = f"{path}/{text_of(key)}"
            if key != text_of(key).encode():
                raise InputError("its name is not UTF-8", where, "write the file again")
            kind = group.links.get_info(key).type
            if kind == h5l.TYPE_EXTERNAL:
                link: Any = h5py.Group(group).get(key, getlink=True)
                raise InputError(f"links to another file, {link.filename}", where, "copy the data into this file")
            item = None if kind == h5l.TYPE_SOFT else h5o.open(group, key)
            if item is None or item in seen:
                objects = None
                continue
            seen.add(item)
            h5a.iterate(item, lambda *_: None)
            if isinstance(item, h5d.DatasetID):
                created = item.get_create_plist()
                if created.get_external_count() or created.get_layout() == h5d.VIRTUAL:
                    raise InputError("its data lies in another file", where, "copy the data into this file")
                _load_filters(created, where)
                _check_written(item, created, where, file_size)
            elif isinstance(item, h5g.GroupID):
                pending.append((item, where, depth + 1))
            if objects is not None:
                objects[where.removeprefix(f"{name}: ")] = _OBJECTS.get(type(item), h5py.Datatype)(item)
    return objects


def _check_written(dataset: Any, created: Any, where: str, file_size: int) -> None:
    """Raises InputError for a dataset far larger than its file with missing chunks, which HDF5 reads as zeros."""
    is_null = dataset.get_space().get_simple_extent_type() == h5s.NULL
    if is_null or (size := math.prod(dataset.shape) * dataset.dtype.itemsize) <= MOST_EXPANSION * file_size:
        return
    declared = f"declares {memory(size)} as {list(dataset.shape)}"
    if created.get_layout() != h5d.CHUNKED:
        raise InputError(f"{declared}, more than the whole file holds", where, "copy the file again, or make it again")
    chunk = created.get_chunk()
    wanted = math.prod(-(-extent // length) for extent, length in zip(dataset.shape, chunk, strict=True))
    if (stored := dataset.get_num_chunks()) < wanted:
        what = f"{declared}, and holds {stored} of {wanted} chunks"
        raise InputError(what, where, "write all of it, or make it again")
    chunk_bytes = math.prod(chunk) * dataset.dtype.itemsize
    if chunk_bytes > (free := free_memory()) // 2:
        what = f"has chunks of {memory(chunk_bytes)}, and {memory(free)} of memory are free"
        raise InputError(what, where, "write it in smaller chunks")


def _load_filters(created: Any, where: str) -> None:
    """Registers zstd if a dataset requires it. Raises InputError for a filter that is not installed."""
    for index in range(created.get_nfilters()):
        number = created.get_filter(index)[0]
        if number == ZSTD_FILTER and not h5z.filter_avail(number):
            with contextlib.suppress(ImportError):
                import_module("hdf5plugin")
        if not h5z.filter_avail(number):
            fix = "pip install 'collidecli[zstd]'" if number == ZSTD_FILTER else "pip install hdf5plugin"
            raise InputError(f"is compressed with HDF5 filter {number}, which is not installed", where, fix)


# Creation of groups, datasets and attributes in a new HDF5 file.
#
# A contact set has some hundred small objects. h5py's high-level functions look each one up, open it again and derive
# its type and filters again; the low-level functions here create equal objects in less than half of that time
# (docs/adr/0107). Equal contents give equal bytes: objects have no times. Small tables are in their object headers.

DEFLATE_LEVEL = 1
_COMPACT_BYTES = 4096
"""Largest dataset that is stored in its object header."""
_STRING = h5t.py_create(h5py.string_dtype(), logical=True)
_STRING_IN_MEMORY = h5t.py_create(h5py.string_dtype())


class NewObjects:
    """Creates objects in a new `file` by path, with their parent groups. A path may be created only once."""

    def __init__(self, file: h5py.File) -> None:
        self._groups: dict[str, Any] = {"": file.id}

    def group(self, path: str) -> Any:
        """The low-level group at a path such as /model/shape, created if it is missing; the root is /."""
        path = path.rstrip("/")
        group = self._groups.get(path)
        if group is None:
            above, _, name = path.rpartition("/")
            group = self._groups[path] = h5g.create(self.group(above), name.encode())
        return group

    def numbers(self, path: str, values: np.ndarray, unit: str = "") -> None:
        """A dataset of numbers, little-endian in the file."""
        values = np.ascontiguousarray(values)
        dataset = self._dataset(path, _number_type(values.dtype), _space(values.shape), _layout(values.nbytes), unit)
        if values.size:
            dataset.write(h5s.ALL, h5s.ALL, values)

    def strings(self, path: str, values: Sequence[str], unit: str = "") -> None:
        """A dataset of UTF-8 strings of any length."""
        layout = _layout(len(values) * _STRING.get_size())
        dataset = self._dataset(path, _STRING, _space((len(values),)), layout, unit)
        if values:
            dataset.write(h5s.ALL, h5s.ALL, np.array(values, object), _STRING_IN_MEMORY)

    def rows(
        self, path: str, dtype: np.dtype, row_shape: tuple[int, ...], chunk_rows: int, compression: str, unit: str = ""
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
        """A group from a mapping: arrays and lists as datasets, mappings as groups, other values as attributes."""
        self.group(path)
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

    def _dataset(self, path: str, kind: Any, space: Any, created: Any, unit: str) -> Any:
        above, _, name = path.rpartition("/")
        dataset = h5d.create(self.group(above), name.encode(), kind, space, created)
        if unit:
            _set_attribute(dataset, "unit", unit)
        return dataset


def _set_attribute(owner: Any, name: str, value: object) -> None:
    if isinstance(value, str):
        attribute = h5a.create(owner, name.encode(), _STRING, _space(()))
        attribute.write(np.array(value, object), mtype=_STRING_IN_MEMORY)
    else:
        array = np.asarray(value)
        h5a.create(owner, name.encode(), _number_type(array.dtype), _space(array.shape)).write(array)


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
        raise InputError(f"unknown compression {compression!r}", "--compression", f"choose {', '.join(COMPRESSIONS)}")
    if compression == "zstd":
        _zstd()


def _zstd() -> Any:
    try:
        return import_module("hdf5plugin").Zstd(clevel=1)
    except ImportError as error:
        fix = "pip install 'collidecli[zstd]', or choose gzip, lzf or none"
        raise InputError("zstd needs hdf5plugin, which is not installed", "--compression", fix) from error


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


# Rules for the attributes of the files that collide reads, tested at every open. They read no dataset.

UNREADABLE = (*DAMAGE, TypeError, ValueError)
"""Exceptions of h5py for an attribute: damaged bytes, or a type that NumPy does not have."""
_SHA256 = re.compile(r"(?!0{64})[0-9a-f]{64}")

Fault = Callable[[Any], str]
"""What is wrong with a value, as a predicate ("is not UTF-8"); empty for a valid value."""


@dataclass(frozen=True)
class Finding:
    """One rule that a file breaks: its first location, and the rule. is_note: rows of another engine may break it."""

    where: str
    what: str
    is_note: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class AttributeRule:
    """The rule of one attribute. path: of its object; "" is the root. A missing attribute breaks a required rule."""

    path: str
    name: str
    fault: Fault
    required: bool = True


def attribute_faults(file: h5py.File, rules: Iterable[AttributeRule]) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of every attribute that breaks its rule; the path "" is the root."""
    for rule in rules:
        try:
            item = file if not rule.path else file.get(rule.path)
            attributes = item.attrs if isinstance(item, (h5py.Group, h5py.Dataset)) else {}
            what = _what(rule, {rule.name: attributes[rule.name]} if rule.name in attributes else {})
        except UNREADABLE as error:
            what = f"cannot be read: {error}"
        if what:
            yield rule.path, f"the {'attribute' if rule.path else 'root attribute'} {rule.name} {what}"


def refuse_attributes(file: h5py.File, rules: Iterable[AttributeRule], file_name: str, fix: str) -> None:
    """Raises InputError for the first attribute that breaks its rule."""
    for path, what in attribute_faults(file, rules):
        raise InputError(what, f"{file_name}: {path}" if path else file_name, fix)


def refuse_values(values: Mapping[str, Any], rules: Iterable[AttributeRule], file_name: str, fix: str) -> None:
    """`refuse_attributes` for the rules of the root and the values of a JSON object."""
    for rule in rules:
        what = "" if rule.path else _what(rule, values)
        if what:
            raise InputError(f"the value of {rule.name} {what}", file_name, fix)


def _what(rule: AttributeRule, attributes: Mapping[str, Any]) -> str:
    if rule.name in attributes:
        return rule.fault(attributes[rule.name])
    return "is missing" if rule.required else ""


def text(value: Any) -> str:
    """A string of UTF-8."""
    if not isinstance(value, str):
        return "is not a string"
    return "" if is_unicode(value) else "is not UTF-8"


def text_or_bytes(value: Any) -> str:
    """A string of UTF-8, of any length or of a fixed length, as other programs write."""
    return text(_decoded(value))


def text_if_string(value: Any) -> str:
    """Anything but a string that is not UTF-8."""
    return text_or_bytes(value) if isinstance(value, (str, bytes)) else ""


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def sha256(value: Any) -> str:
    """64 lower-case hexadecimal digits, not all 0."""
    return text(value) or ("" if _SHA256.fullmatch(value) else "is no SHA-256")


def sha256_or_empty(value: Any) -> str:
    """A SHA-256, or nothing."""
    return "" if isinstance(value, str) and not value else sha256(value)


def json_object(value: Any) -> str:
    """The text of a JSON object that has an entry, of Unicode texts."""
    if text(value):
        return text(value)
    try:
        content = json.loads(value)
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    if not isinstance(content, dict):
        return "is no JSON object"
    if not content:
        return "has no entries"
    return "" if is_unicode(json.dumps(content, ensure_ascii=False)) else "has a text that is not Unicode"


def one_of(values: Iterable[str]) -> Fault:
    """One of these strings."""
    known = tuple(values)

    def fault(value: Any) -> str:
        decoded = _decoded(value)
        if isinstance(decoded, str) and decoded in known:
            return ""
        shown = repr(decoded) if isinstance(decoded, str) else "not a string"
        return f"is {shown}; known values: {', '.join(map(repr, known))}"

    return fault


def version(major: int) -> Fault:
    """Two integers, of which the first is `major`."""

    def fault(value: Any) -> str:
        numbers = np.atleast_1d(value)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iu":
            return "is not two integers"
        return "" if int(numbers[0]) == major else f"is {numbers[0]}.{numbers[1]}; this program reads {major}.x"

    return fault


def is_unicode(value: str) -> bool:
    """Whether a text is Unicode; h5py reads other bytes as surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
