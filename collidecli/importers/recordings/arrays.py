"""Headers and rows of the arrays in .npy and .npz files; pickled objects are never loaded."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import psutil

from collidecli.errors import InputError
from collidecli.scene.text_format import memory

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    OverflowError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
)
"""Exceptions of zipfile and NumPy for a file that is truncated, damaged, encrypted or of another format.

The last four are raised for headers, which NumPy parses as Python literals.
"""

_PICKLED = "save it as an array of numbers: loading pickled objects would run code from the file"


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


def npy_header(path: str) -> ArrayHeader:
    """Header of a .npy file. Raises InputError: damaged, truncated, or pickled objects."""
    try:
        with open(path, "rb") as file:
            return _header(file, os.path.getsize(path), path)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def npz_headers(path: str) -> dict[str, ArrayHeader]:
    """Headers of the arrays in a .npz file, by name. Raises InputError: damaged, or an array of pickled objects."""
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith(".npy"):
                    continue
                name = info.filename[: -len(".npy")]
                with archive.open(info) as member:
                    found[name] = _header(member, info.file_size, f"{path}: {name}")  # type: ignore[arg-type]
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    return found


def read_npy(path: str) -> np.ndarray:
    """The array of a .npy file, memory-mapped: only used rows are read. Raises InputError as `npy_header`."""
    npy_header(path)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def read_npz(path: str, name: str) -> np.ndarray:
    """One array of a .npz file, loaded completely.

    Raises InputError: no such array, damaged, pickled objects, or larger than the free memory.
    """
    headers = npz_headers(path)
    if name not in headers:
        raise InputError(f"there is no array '{name}'", path, f"its arrays: {', '.join(headers) or 'none'}")
    header = headers[name]
    size = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
    free = psutil.virtual_memory().available
    if size > free:
        raise InputError(
            f"the array needs {memory(size)}, and {memory(free)} are free",
            f"{path}: {name}",
            "save it as .npy, which is read in parts",
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[name])
    except (*_DAMAGE, KeyError) as error:
        raise _damaged(f"{path}: {name}", error) from error


def _header(file: BinaryIO, size: int, where: str) -> ArrayHeader:
    """Reads an array's header. size: stored bytes of header and data."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"the array format is {version[0]}.{version[1]}", where, "save it again with NumPy")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise InputError("the array contains pickled objects, which are not read", where, _PICKLED)
    if any(extent < 0 for extent in shape):
        raise InputError(f"the shape is {list(shape)}", where, "save it again with NumPy")
    declared = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if declared != size - file.tell():
        raise InputError(
            f"the header declares {declared} bytes of data, and the file has {max(0, size - file.tell())}",
            where,
            "copy it again, or save it again with NumPy",
        )
    return ArrayHeader(tuple(int(extent) for extent in shape), dtype)


def _damaged(where: str, error: Exception) -> InputError:
    lines = str(error).strip().splitlines()
    return InputError(
        f"the arrays cannot be read: {lines[0] if lines else type(error).__name__}",
        where,
        "copy it again, or save it again with NumPy",
    )
