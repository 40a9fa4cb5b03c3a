"""The content of a recording, by which its kind is recognised."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.array_files import (
    ArrayHeader,
    npy_header,
    npy_objects,
    npz_headers,
    npz_names,
    npz_objects,
    read_npy,
    read_npz,
)
from collidecli.importers.recordings.refused_formats import refuse_format, refuse_unknown
from collidecli.importers.recordings.refused_motions import (
    AMASS_NUMBERS,
    is_amass,
    refuse_body_model,
    refuse_frames,
    refuse_packed,
)
from collidecli.importers.recordings.text_columns import text_columns
from collidecli.storage.compressed_files import open_expanded
from collidecli.storage.h5_files import DAMAGE, damaged, open_h5
from collidecli.storage.input_files import recording_path
from collidecli.storage.reading_limit import check_size
from collidecli.storage.regular_files import open_input
from collidecli.storage.storage_formats import (
    ARCHIVE,
    CSV,
    HDF5,
    JSON,
    NPY,
    NPZ,
    PICKLE,
    UNKNOWN,
    storage_of,
)
from collidecli.wording import some_names

if TYPE_CHECKING:
    from collidecli.importers.recordings.pickles.named_values import NamedValues
    from collidecli.importers.recordings.text_columns import TextColumns


@dataclass(frozen=True)
class Content:
    """An open file by its storage format.

    storage: as of `storage_of`. h5: the open file, of HDF5 only.
    arrays: headers (shape and type) of the arrays in npz and pickles by name, in npy under the name
    "". values: the arrays of pickles, of which the file is one or contains some. left_out: by name,
    what values of pickles are that are no arrays.
    table: columns of a csv file.
    """

    path: str
    storage: str
    h5: h5py.File | None = None
    arrays: dict[str, ArrayHeader] = field(default_factory=dict)
    table: TextColumns | None = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Cells of a csv file's first line; () for any other."""
        return () if self.table is None else self.table.titles

    @property
    def h5_file(self) -> h5py.File:
        assert self.h5 is not None
        return self.h5

    def array(self, name: str) -> np.ndarray:
        """An array of npz, npy or a pickle. Raises InputError as `read_npz`."""
        if name in self.values:
            return self.values[name]
        return read_npy(self.path) if self.storage == NPY else read_npz(self.path, name)

    @property
    def text_columns(self) -> TextColumns:
        assert self.table is not None
        return self.table

    def close(self) -> None:
        if self.h5 is not None:
            self.h5.close()

    def summary(self) -> str:
        """A short description of the content, for the error about a file that no kind
        recognises."""
        if self.h5 is not None:
            names = [f"attribute {name}" for name in self.h5.attrs][:4] + [
                f"/{name}" for name in self.h5
            ][:6]
            return f"an HDF5 file with {', '.join(names) or 'nothing in it'}"
        if self.storage in (NPZ, NPY, PICKLE):
            shown = [
                f"{name or 'one array'} {header}" for name, header in list(self.arrays.items())[:6]
            ]
            return f"a {self.storage} file with {', '.join(shown) or 'no arrays'}"
        if self.storage == CSV:
            return f"text whose first line is {', '.join(self.columns[:6])!r}"
        if self.storage == JSON:
            return "a JSON file; of a LeRobot data set, give its folder"
        if self.storage:
            return f"a {self.storage} file"
        return "neither HDF5, npz, npy, a pickle, USD, BVH nor csv"


def open_content(path: str | os.PathLike[str]) -> Content:
    """The content of a file, which the caller closes.

    Raises InputError as `storage_of`, for HDF5 that is damaged or has data outside the file, and as
    `npz_headers`.
    """
    name = recording_path(path)
    refuse_format(name)
    storage = storage_of(name)
    if storage == HDF5:
        return Content(name, HDF5, h5=open_h5(name))
    if storage in (UNKNOWN, PICKLE):
        refuse_packed(name)
    if storage == UNKNOWN:
        refuse_unknown(name)
    if storage == PICKLE:
        return _pickle(name)
    if storage == NPZ:
        return _npz(name)
    if storage == NPY:
        header = npy_header(name, objects=True)
        return (
            _of_values(name, npy_objects(name))
            if header.dtype.hasobject
            else Content(name, NPY, arrays={"": header})
        )
    if storage == JSON:
        refuse_frames(name)
    if storage == CSV:
        return Content(name, CSV, table=text_columns(name))
    return Content(name, storage)


def _pickle(path: str) -> Content:
    """The content of a pickle, which may be compressed, or in an archive of torch.save."""
    # Few recordings are pickles: a process that reads none is spared the import.
    from collidecli.importers.recordings.pickles.named_values import named_tensors, named_values

    size = os.path.getsize(path)
    check_size(2 * size, "the pickle", path, "split the recording, or save it as HDF5")
    with open_input(path) as file:
        if file.read(len(ARCHIVE)) == ARCHIVE:
            return _of_values(path, named_tensors(path, size))
        file.seek(0)
        return _of_values(path, named_values(open_expanded(file, size, path), path, size))


def _of_values(path: str, named: NamedValues) -> Content:
    refuse_body_model(path, named.arrays)
    headers = {name: ArrayHeader(array.shape, array.dtype) for name, array in named.arrays.items()}
    return Content(path, PICKLE, arrays=headers, values=named.arrays, left_out=named.left_out)


def _npz(path: str) -> Content:
    """The content of an archive, in which arrays of objects are pickles.

    Those beside the numbers of AMASS are not looked at.
    """
    only = AMASS_NUMBERS if is_amass(npz_names(path)) else None
    headers = npz_headers(path, only, objects=True)
    pickled = [name for name, header in headers.items() if header.dtype.hasobject]
    values: dict[str, np.ndarray] = {}
    left_out: dict[str, str] = {}
    for name in pickled:
        del headers[name]
        named = npz_objects(path, name)
        values |= named.arrays
        left_out |= named.left_out
    for name, array in values.items():
        if name in headers:
            raise InputError("two arrays have this name", f"{path}: {name}", "rename one of them")
        headers[name] = ArrayHeader(array.shape, array.dtype)
    return Content(path, NPZ, arrays=headers, values=values, left_out=left_out)


def h5_masks(file: h5py.File) -> tuple[tuple[str, str], ...]:
    """The names of the masks of demonstrations as a detail of a description; () for a file without
    masks."""
    masks = file.get("mask")
    return (
        (("masks", some_names(list(masks))),)
        if isinstance(masks, h5py.Group) and len(masks)
        else ()
    )


@contextmanager
def h5_damage(path: str) -> Iterator[None]:
    """Converts the exceptions of h5py for a damaged file structure to an InputError."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(path, error) from error


def held_rows(parts: Sequence[h5py.Dataset], frames: range, path: str) -> np.ndarray:
    """float64[len(frames), ...]: rows of datasets that follow each other; frames after the end have
    the last row."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    rows = np.minimum(np.asarray(frames, np.intp), starts[-1] - 1)
    out = np.empty((len(rows), *parts[0].shape[1:]))
    for start, end, part in zip(starts[:-1], starts[1:], parts, strict=True):
        within = (rows >= start) & (rows < end)
        if within.any():
            offset = rows[within] - start
            with h5_damage(f"{path}: {part.name}"):
                out[within] = part[int(offset.min()) : int(offset.max()) + 1][offset - offset.min()]
    return out
