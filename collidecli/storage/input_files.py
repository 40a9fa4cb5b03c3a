"""Files that are read whole: SHA-256, which identifies scenes and recordings; storage formats; TOML and JSON."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
import zipfile
from collections.abc import Iterable
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Any

from collidecli.errors import InputError

_BLOCK = 1 << 20


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    return files_sha256((path,))


def files_sha256(paths: Iterable[str | os.PathLike[str]], texts: Iterable[str] = ()) -> str:
    """SHA-256 of the concatenation of texts in UTF-8 and the bytes of files, hexadecimal."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
    for path in paths:
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


SETTLED_NS = 10**9
"""Age of a file's last change from which its times prove that it is unchanged: file systems round them [ns]."""


_State = tuple[str, int, int, int, int, int]


def recording_sha256(paths: Iterable[str | os.PathLike[str]]) -> str:
    """`files_sha256` of the files of a recording; kept for files that have not changed.

    The demonstrations of one file that are computed one by one, each with a run of its own, read it once for its hash.
    """
    states = file_states(paths)
    if not are_settled(states):
        return files_sha256(path for path, *_ in states)
    return _hash_of(states).result()


def hash_ahead(path: str | os.PathLike[str]) -> None:
    """Starts to compute the hash of a recording of one file in a thread; `recording_sha256` waits for it.

    Does nothing for a file whose hash is known, one that has just changed, and one that cannot be read.
    """
    with contextlib.suppress(OSError):
        states = file_states((path,))
        if os.path.isfile(path) and are_settled(states):
            _hash_of(states)


@lru_cache(maxsize=64)
def _hash_of(states: tuple[_State, ...]) -> Future[str]:
    """The hash of files in these states, which a thread computes."""
    future = Future[str]()

    def compute() -> None:
        try:
            future.set_result(files_sha256(path for path, *_ in states))
        except BaseException as error:
            _hash_of.cache_clear()
            future.set_exception(error)

    threading.Thread(target=compute, name="collide-recording", daemon=True).start()
    return future


def file_states(paths: Iterable[str | os.PathLike[str]]) -> tuple[_State, ...]:
    """Path, device, inode, size, and times of change of content and attributes of files [ns]. Raises OSError."""
    states = ((os.fspath(path), os.stat(path)) for path in paths)
    return tuple((path, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for path, at in states)


def are_settled(states: tuple[_State, ...]) -> bool:
    """Whether a change of one of the files would change its times; those in the future are of another clock."""
    return all(abs(time.time_ns() - at) >= SETTLED_NS for *_, mtime, ctime in states for at in (mtime, ctime))


BAG_METADATA = "metadata.yaml"
"""The file by which a folder is a ROS bag."""
BAG_STARTS = {b"\x89MCAP0\r\n": ".mcap", b"SQLite format 3\0": ".db3", b"#ROSBAG V": ".bag"}


def bag_format(path: str | os.PathLike[str]) -> str:
    """The extension of a ROS bag's format, by its first bytes; BAG_METADATA of a bag's folder; "" of anything else."""
    if os.path.isfile(os.path.join(path, BAG_METADATA)):
        return BAG_METADATA
    start = b""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        start = file.read(16)
    return next((ending for first, ending in BAG_STARTS.items() if start.startswith(first)), "")


# Storage formats of recordings.

HDF5, NPZ, NPY, USD, CSV, JSON, BAG, UNKNOWN = "HDF5", "npz", "npy", "USD", "csv", "JSON", "ROS bag", ""
ENDINGS = {HDF5: (".h5", ".hdf5"), NPZ: (".npz",), NPY: (".npy",), CSV: (".csv",), BAG: tuple(BAG_STARTS.values())}
ENDINGS[USD] = (".usd", ".usda", ".usdc", ".usdz")
"""File extensions by storage format. A JSON file has one name only, that of a LeRobot data set."""
START_BYTES = 1 << 16
"""Bytes by which a format is recognised; at most as long is the first line of a csv file."""
NO_ZIP = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError)


def storage_of(path: str) -> str:
    """The storage format by a file's first bytes. Raises InputError: missing, a folder, empty, unreadable."""
    if bag_format(path):
        return BAG
    if not os.path.isfile(path):
        what = "is a folder, not a recording" if os.path.isdir(path) else "there is no such file"
        raise InputError(what, path, "give the path of a recording")
    try:
        with open(path, "rb") as file:
            start = file.read(START_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path) from error
    if not start:
        raise InputError("the file is empty", path, "record it again")
    if start.startswith(b"\x93NUMPY"):
        return NPY
    if start.startswith((b"#usda", b"PXR-USDC")):
        return USD
    if start[:16].lstrip().startswith(b"{"):
        return JSON
    if start.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except NO_ZIP as error:
            raise InputError(f"the zip archive is damaged: {error}", path, "copy or create the file again") from error
        if any(name.endswith(".npy") for name in names):
            return NPZ
        return USD if any(name.endswith((".usd", ".usda", ".usdc")) for name in names) else UNKNOWN
    import h5py

    if h5py.is_hdf5(path):
        return HDF5
    try:
        text = start.split(b"\n")[0].decode("utf-8")
    except UnicodeDecodeError:
        return UNKNOWN
    # The first line of csv has several columns; markup and other text have no commas there.
    is_csv = "," in text and not text.lstrip("\ufeff \t").startswith("<") and text.strip().isprintable()
    return CSV if is_csv else UNKNOWN


# TOML and JSON: configuration, the jobs of a batch, results of `--json`.


def read_toml(path: str, fix: str = "") -> dict[str, Any]:
    """The values of a TOML file. fix: remedy in errors, such as the option that names the file.

    Raises InputError for a file that cannot be read or is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(_text(path, fix))
    except ValueError as error:
        raise InputError(f"is not TOML: {error}", path, fix) from error
    except RecursionError:
        raise InputError("has values nested too deep to be read", path, fix) from None


def read_json(path: str, fix: str = "", what: str = "is not JSON") -> Any:
    """The value of a JSON file. Raises InputError: with `what` for a file that is not JSON."""
    try:
        return json.loads(_text(path, fix))
    except (ValueError, RecursionError) as error:
        raise InputError(what, path, fix) from error


def _text(path: str, fix: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path, fix) from error
