"""Storage format and names in a recording file: the data by which its kind is recognised."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

import h5py

from collidecli.errors import InputError
from collidecli.importers.recordings.arrays import ArrayHeader, npy_header, npz_headers
from collidecli.storage.h5_input import DAMAGE, damaged, open_h5

HDF5, NPZ, NPY, USD, CSV, UNKNOWN = "HDF5", "npz", "npy", "USD", "csv", ""

_HEADER_LINE = 1 << 16
"""Maximum length of the first line of a csv file [bytes]."""


@dataclass(frozen=True)
class Content:
    """An open file by its storage format.

    storage: one of HDF5, NPZ, NPY, USD, CSV, or UNKNOWN. h5: the open file, of HDF5 only.
    arrays: headers (shape and type) of the arrays in npz by name, in npy under the name "".
    columns: names in a csv file's first line.
    """

    path: str
    storage: str
    h5: h5py.File | None = None
    arrays: dict[str, ArrayHeader] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def h5_file(self) -> h5py.File:
        assert self.h5 is not None
        return self.h5

    def close(self) -> None:
        if self.h5 is not None:
            self.h5.close()

    def summary(self) -> str:
        """A short description of the content, for the error about a file that no kind recognises."""
        if self.h5 is not None:
            named = [f"attribute {name}" for name in list(self.h5.attrs)[:4]] + [
                f"/{name}" for name in list(self.h5)[:6]
            ]
            return f"an HDF5 file with {', '.join(named) or 'nothing in it'}"
        if self.storage in (NPZ, NPY):
            shown = [f"{name or 'one array'} {header}" for name, header in list(self.arrays.items())[:6]]
            return f"a {self.storage} file with {', '.join(shown) or 'no arrays'}"
        if self.storage == CSV:
            return f"text whose first line is {', '.join(self.columns[:6])!r}"
        return "a USD file" if self.storage == USD else "neither HDF5, npz, npy, USD nor csv"


def open_content(path: str | os.PathLike[str]) -> Content:
    """The content of a file, which the caller closes.

    Raises InputError: a file that is missing, a folder or empty; HDF5 that is damaged or has data outside the file;
    npz or npy whose headers are damaged, or that holds pickled objects.
    """
    name = os.fspath(path)
    storage = storage_of(name)
    if storage == HDF5:
        return Content(name, HDF5, h5=open_h5(name))
    if storage == NPZ:
        return Content(name, NPZ, arrays=npz_headers(name))
    if storage == NPY:
        return Content(name, NPY, arrays={"": npy_header(name)})
    if storage == CSV:
        return Content(name, CSV, columns=_first_line(name))
    return Content(name, storage)


@contextmanager
def h5_damage(path: str) -> Iterator[None]:
    """Converts the exceptions of h5py for a damaged file structure to an InputError."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(path, error) from error


def storage_of(path: str) -> str:
    """The storage format of a file, by its first bytes. Raises InputError: missing, a folder, empty, unreadable."""
    if not os.path.isfile(path):
        what = "is a folder, not a recording" if os.path.isdir(path) else "there is no such file"
        raise InputError(what, path, "give the path of a recording")
    try:
        with open(path, "rb") as file:
            start = file.read(16)
            if not start:
                raise InputError("the file is empty", path, "record it again")
            return _storage(path, start, file)
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path) from error


def _storage(path: str, start: bytes, file: BinaryIO) -> str:
    if start.startswith(b"\x93NUMPY"):
        return NPY
    if start.startswith((b"#usda", b"PXR-USDC")):
        return USD
    if start.startswith(b"PK\x03\x04"):
        return _zip_storage(path)
    if h5py.is_hdf5(path):
        return HDF5
    file.seek(0)
    return CSV if _is_text(file.read(_HEADER_LINE)) else UNKNOWN


def _zip_storage(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"the zip archive is damaged: {error}", path, "copy or create the file again") from error
    if any(name.endswith(".npy") for name in names):
        return NPZ
    return USD if any(name.endswith((".usd", ".usda", ".usdc")) for name in names) else UNKNOWN


def _is_text(start: bytes) -> bool:
    """Whether the first line has several columns, as in csv; markup and other text have no commas there."""
    line = start.split(b"\n")[0]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return "," in text and not text.lstrip("\ufeff \t").startswith("<") and text.strip().isprintable()


def _first_line(path: str) -> tuple[str, ...]:
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return tuple(name.strip() for name in file.readline(_HEADER_LINE).split(","))
