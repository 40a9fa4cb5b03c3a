"""Storage format, names and arrays of a recording file, by which its kind is recognised. Nothing is unpickled."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.text_format import some_names
from collidecli.storage.h5_files import DAMAGE, damaged, open_h5
from collidecli.storage.input_files import CSV, HDF5, JSON, NO_ZIP, NPY, NPZ, START_BYTES, UNKNOWN, storage_of
from collidecli.storage.process_activity import check_size

# Motions that are no recordings of a robot yet: recognised by content, refused with the conversion to make.

AMASS_ARRAYS = ({"poses", "trans"}, {"poses", "betas"})
"""Each a set of names of which AMASS has all; a motion in the parameters of the body models SMPL, SMPL+H or SMPL-X."""
GMR_KEYS = (b"root_pos", b"root_rot", b"dof_pos")
PICKLE_PROTOCOLS = range(2, 6)

SAVE = "numpy.savez('motion.npz', root_pos=..., root_quat_xyzw=..., dof_pos=..., joint_names=..., fps=...)"


def refuse_amass(path: str) -> None:
    """Raises InputError for a .npz of AMASS, which has no robot; nothing for an archive that is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
    except NO_ZIP:
        return
    if any(wanted <= names for wanted in AMASS_ARRAYS):
        what = "this is a motion of AMASS (poses, trans, betas): rotations of a human body model, not of a robot"
        raise InputError(what, path, f"retarget it to the robot, for example with GMR or PHC, and save {SAVE}")


def refuse_pickle(path: str) -> None:
    """Raises InputError for a pickle, with the conversion if it is a motion of GMR. Nothing is unpickled."""
    with open(path, "rb") as file:
        start = file.read(START_BYTES)
    if start[:1] != b"\x80" or start[1:2] not in (bytes([number]) for number in PICKLE_PROTOCOLS):
        return
    what = "this is a pickle, which is not read, as reading it executes code from the file"
    if all(key in start for key in GMR_KEYS):
        what = f"this is a motion of GMR (root_pos, root_rot, dof_pos) as a pickle, {what.partition(', ')[2]}"
        convert = (
            "import numpy, pickle; d = pickle.load(open('motion.pkl', 'rb')); numpy.savez('motion.npz', "
            "root_pos=d['root_pos'], root_quat_xyzw=d['root_rot'], dof_pos=d['dof_pos'], fps=d['fps'])"
        )
        raise InputError(what, path, f'if you trust it: python -c "{convert}", and give --joint-names')
    raise InputError(what, path, f"if you trust it, load it and save {SAVE}")


_DAMAGE = (*NO_ZIP, zlib.error, EOFError, RuntimeError, KeyError, TypeError, OverflowError, MemoryError)
_DAMAGE += (SyntaxError, tokenize.TokenError)  # of headers, which NumPy parses as Python literals
_AGAIN = "copy it again, or save it again with NumPy"


@contextmanager
def _array_damage(where: str) -> Iterator[None]:
    """Converts the exceptions of zipfile and NumPy for a damaged or encrypted file to an InputError."""
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


def npy_header(path: str) -> ArrayHeader:
    """Header of a .npy file. Raises InputError: damaged, truncated, or pickled objects."""
    with _array_damage(path), open(path, "rb") as file:
        return _header(file, os.path.getsize(path), path)


def npz_headers(path: str) -> dict[str, ArrayHeader]:
    """Headers of the arrays in a .npz file, by name. Raises InputError: damaged, or an array of pickled objects."""
    headers = {}
    with _array_damage(path), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                name = info.filename[: -len(".npy")]
                with archive.open(info) as member:
                    headers[name] = _header(member, info.file_size, f"{path}: {name}")  # type: ignore[arg-type]
    return headers


def read_npy(path: str) -> np.ndarray:
    """The array of a .npy file, memory-mapped: only used rows are read. Raises InputError as `npy_header`."""
    npy_header(path)
    with _array_damage(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def read_npz(path: str, name: str) -> np.ndarray:
    """One array of a .npz file, loaded completely. Raises InputError as `npz_headers`, and where it is too large."""
    headers = npz_headers(path)
    if name not in headers:
        raise InputError(f"there is no array '{name}'", path, f"its arrays: {', '.join(headers) or 'none'}")
    header = headers[name]
    size = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
    # NumPy reads a compressed array in parts and joins them: twice its size at the peak.
    check_size(2 * size, "the array", f"{path}: {name}", "save it as .npy, which is read in parts")
    with _array_damage(f"{path}: {name}"), np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])


def _header(file: BinaryIO, size: int, where: str) -> ArrayHeader:
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"the array format is {version[0]}.{version[1]}", where, "save it again with NumPy")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        fix = (
            "save it as an array of numbers, or names as np.array(names, dtype=str): loading pickled objects would run"
        )
        raise InputError("the array contains pickled objects, which are not read", where, f"{fix} code from the file")
    if any(extent < 0 for extent in shape):
        raise InputError(f"the shape is {list(shape)}", where, "save it again with NumPy")
    declared, present = int(np.prod(shape, dtype=object)) * dtype.itemsize, size - file.tell()
    if declared != present:
        what = f"the header declares {declared} bytes of data, and the file has {max(0, present)}"
        raise InputError(what, where, _AGAIN)
    return ArrayHeader(tuple(int(extent) for extent in shape), dtype)


@dataclass(frozen=True)
class Content:
    """An open file by its storage format.

    storage: as of `storage_of`. h5: the open file, of HDF5 only.
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
            names = [f"attribute {name}" for name in self.h5.attrs][:4] + [f"/{name}" for name in self.h5][:6]
            return f"an HDF5 file with {', '.join(names) or 'nothing in it'}"
        if self.storage in (NPZ, NPY):
            shown = [f"{name or 'one array'} {header}" for name, header in list(self.arrays.items())[:6]]
            return f"a {self.storage} file with {', '.join(shown) or 'no arrays'}"
        if self.storage == CSV:
            return f"text whose first line is {', '.join(self.columns[:6])!r}"
        if self.storage == JSON:
            return "a JSON file; of a LeRobot data set, give meta/info.json"
        return f"a {self.storage} file" if self.storage else "neither HDF5, npz, npy, USD nor csv"


def open_content(path: str | os.PathLike[str]) -> Content:
    """The content of a file, which the caller closes.

    Raises InputError as `storage_of`, for HDF5 that is damaged or has data outside the file, and as `npz_headers`.
    """
    name = os.fspath(path)
    storage = storage_of(name)
    if storage == HDF5:
        return Content(name, HDF5, h5=open_h5(name))
    if storage == UNKNOWN:
        refuse_pickle(name)
    if storage == NPZ:
        refuse_amass(name)
        return Content(name, NPZ, arrays=npz_headers(name))
    if storage == NPY:
        return Content(name, NPY, arrays={"": npy_header(name)})
    if storage == CSV:
        with open(name, encoding="utf-8-sig", errors="replace") as file:
            columns = file.readline(START_BYTES).split(",")
        return Content(name, CSV, columns=tuple(column.strip() for column in columns))
    return Content(name, storage)


def h5_masks(file: h5py.File) -> tuple[tuple[str, str], ...]:
    """The names of the masks of demonstrations as a detail of a description; () for a file without masks."""
    masks = file.get("mask")
    return (("masks", some_names(list(masks))),) if isinstance(masks, h5py.Group) and len(masks) else ()


@contextmanager
def h5_damage(path: str) -> Iterator[None]:
    """Converts the exceptions of h5py for a damaged file structure to an InputError."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(path, error) from error


def held_rows(parts: Sequence[h5py.Dataset], frames: range, path: str) -> np.ndarray:
    """float64[len(frames), ...]: rows of datasets that follow each other; frames after the end have the last row."""
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
