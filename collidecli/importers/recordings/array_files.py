"""Arrays in NPY and NPZ files, with sizes that are checked before they are read."""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.storage.reading_limit import check_expansion, check_size
from collidecli.storage.regular_files import open_input
from collidecli.storage.storage_formats import NO_ZIP

if TYPE_CHECKING:
    from collidecli.importers.recordings.pickles.named_values import NamedValues

_DAMAGE = (
    *NO_ZIP,
    zlib.error,
    EOFError,
    RuntimeError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
)
_DAMAGE += (SyntaxError, tokenize.TokenError)  # of headers, which NumPy parses as Python literals
_AGAIN = "copy it again, or save it again with NumPy"


@contextmanager
def _array_damage(where: str) -> Iterator[None]:
    """Converts the exceptions of zipfile and NumPy for a damaged or encrypted file to an
    InputError."""
    try:
        yield
    except _DAMAGE as error:
        lines = str(error).strip().splitlines()
        what = f"the arrays cannot be read: {lines[0] if lines else type(error).__name__}"
        raise InputError(what, where, _AGAIN) from error


@dataclass(frozen=True)
class ArrayHeader:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f" and self.dtype.itemsize in (4, 8)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(extent) for extent in self.shape)}]"


def npy_header(path: str, objects: bool = False) -> ArrayHeader:
    """Header of a .npy file. objects: whether it may be one of pickled objects. Raises InputError:
    damaged, truncated, or pickled objects."""
    with _array_damage(path), open_input(path) as file:
        return _header(file, os.path.getsize(path), path, objects)


def npy_objects(path: str) -> NamedValues:
    """The values in a .npy file of pickled objects. Raises InputError as `named_values`."""
    from collidecli.importers.recordings.pickles.named_values import named_values

    with _array_damage(path), open_input(path) as file:
        size = os.path.getsize(path)
        _header(file, size, path, True)
        return named_values(file, path, size)


def npz_objects(path: str, name: str) -> NamedValues:
    """The values in an array of pickled objects of a .npz file, by the array's name and their own.
    Raises InputError as `named_values`."""
    from collidecli.importers.recordings.pickles.named_values import named_values

    where = f"{path}: {name}"
    with _array_damage(where), open_input(path) as file, zipfile.ZipFile(file) as archive:
        info = archive.getinfo(f"{name}.npy")
        with io.BufferedReader(archive.open(info)) as member:  # type: ignore[arg-type]
            _header(member, info.file_size, where, True)
            return named_values(member, where, os.path.getsize(path), name)


def npz_names(path: str) -> list[str]:
    """Names of the arrays in a .npz file. Raises InputError for a damaged archive."""
    with _array_damage(path), open_input(path) as file, zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")]


def npz_headers(
    path: str, only: Collection[str] | None = None, objects: bool = False
) -> dict[str, ArrayHeader]:
    """Headers of the arrays in a .npz file, by name. Raises InputError: damaged, an array of
    pickled objects, or a small file that expands to excessive size.

    only: names of the arrays that are looked at; None is all. objects: whether arrays may be of
    pickled objects.
    """
    headers = {}
    with _array_damage(path), open_input(path) as file, zipfile.ZipFile(file) as archive:
        expanded = sum(info.file_size for info in archive.infolist())
        fix = "save it uncompressed, with numpy.savez"
        check_expansion(expanded, os.path.getsize(path), path, fix)
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                name = info.filename[: -len(".npy")]
                if only is not None and name not in only:
                    continue
                with archive.open(info) as member:
                    where = f"{path}: {name}"
                    headers[name] = _header(member, info.file_size, where, objects)  # type: ignore[arg-type]
    return headers


def read_npy(path: str) -> np.ndarray:
    """The array of a .npy file, memory-mapped: only used rows are read. Raises InputError as
    `npy_header`."""
    npy_header(path)
    with _array_damage(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def npz_header(path: str, name: str) -> ArrayHeader:
    """Header of one array of a .npz file. Raises InputError as `npz_headers`, and for a missing
    array."""
    headers = npz_headers(path, (name,))
    if name not in headers:
        names = ", ".join(npz_names(path)) or "none"
        raise InputError(f"there is no array '{name}'", path, f"its arrays: {names}")
    return headers[name]


def read_npz(path: str, name: str) -> np.ndarray:
    """One array of a .npz file, loaded completely. Raises InputError as `npz_header`, and where it
    is too large."""
    header = npz_header(path, name)
    size = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
    # NumPy reads a compressed array in parts and joins them: twice its size at the peak.
    check_size(2 * size, "the array", f"{path}: {name}", "save it as .npy, which is read in parts")
    with _array_damage(f"{path}: {name}"), np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])


def _pickled(where: str) -> InputError:
    fix = "save it as an array of numbers, or names as np.array(names, dtype=str)"
    return InputError("the array contains pickled objects, which are not read here", where, fix)


def _header(file: IO[Any], size: int, where: str, objects: bool = False) -> ArrayHeader:
    """The header at the start of a file of `size` bytes. objects: whether it may be one of pickled
    objects, whose size it does not tell."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise InputError(
            f"the array format is {version[0]}.{version[1]}", where, "save it again with NumPy"
        )
    shape, _, dtype = readers[version](file)
    if dtype.hasobject and not (objects and dtype.kind == "O"):
        raise _pickled(where)
    if any(extent < 0 for extent in shape):
        raise InputError(f"the shape is {list(shape)}", where, "save it again with NumPy")
    if dtype.hasobject:
        return ArrayHeader(tuple(int(extent) for extent in shape), dtype)
    declared = int(np.prod(shape, dtype=object)) * dtype.itemsize
    present = size - file.tell()
    if declared != present:
        what = f"the header declares {declared} bytes of data, and the file has {max(0, present)}"
        raise InputError(what, where, _AGAIN)
    return ArrayHeader(tuple(int(extent) for extent in shape), dtype)
