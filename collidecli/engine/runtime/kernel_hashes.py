"""Hashes of kernels from earlier runs, so that a kernel is found in Warp's cache without parsing
its functions.

Warp names the compiled file of a kernel by a hash of the source of every function that the kernel
calls, which takes longer than loading the file. A table in Warp's cache folder holds these hashes.
Its name is a hash of the source files in SOURCES and of the version of Warp; a row's key is a hash
of the kernel's module, name, first line, closure, argument types and compiler options. A kernel
without a row is hashed by Warp, and so is every kernel outside a process of the command line, with
an unknown Warp, or with code that is not in SOURCES (docs/adr/0117).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from types import FunctionType, NoneType
from typing import Any

import warp as wp

from collidecli.engine.runtime.carried_kernels import add_table_to_cache
from collidecli.engine.runtime.kernel_digests import write_file
from collidecli.engine.runtime.owned_process import is_owned
from collidecli.engine.runtime.warp_internals import (
    KernelHashes,
    hashes_of,
    is_known_warp,
    type_code,
)
from collidecli.engine.runtime.warp_start import initialize
from collidecli.errors import OutputError

SOURCES = ("engine", "scene", "storage", "numerics")
"""Subpackages that declare kernels, or constants and functions that kernels use."""
_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
_MODULES = tuple(f"collidecli.{name}." for name in SOURCES)
_lock = threading.Lock()
_tables: dict[str, dict[str, KernelHashes]] = {}
declared_kernels: dict[str, wp.Kernel] = {}


def kernel_key(function: Callable[..., Any], options: dict[str, Any]) -> str | None:
    """Key of a kernel in the table of hashes; None if its hash cannot be known without Warp.

    options: of its module.
    """
    if not (is_owned() and is_known_warp()):
        return None
    try:
        parts = [
            _identity(function),
            *(f"{name}={_identity(value)}" for name, value in options.items()),
        ]
    except TypeError:
        return None
    return hashlib.sha256(repr((parts, _settings())).encode()).hexdigest()


def known_hashes(key: str | None) -> KernelHashes | None:
    """The hashes of a kernel from an earlier run, or None."""
    return None if key is None else _table(table_path()).get(key)


def save_hashes() -> None:
    """Adds the hashes of the kernels declared so far to the table, if it lacks some, the folder can
    be written and no source file has changed since the start of the process."""
    if not declared_kernels:
        return
    path = table_path()
    with _lock:
        table = _table(path)
        added = {key: hashes_of(declared) for key, declared in declared_kernels.items()}
        added = {
            key: hashes
            for key, hashes in added.items()
            if hashes.modules and hashes != table.get(key)
        }
        if not added or _sources_hash() != _first_sources_hash():
            return
        table.update(added)
        rows = (_read(path) | table).items()
        with suppress(OSError):
            write_file(path, "".join(table_row(key, hashes) for key, hashes in rows).encode())


def declared_table() -> bytes:
    """A table of the kernels declared by this process alone, in the order of their declaration.

    The one in Warp's cache may have rows of processes that saw a source change as they started.
    Raises RuntimeError where one has changed since this process started.
    """
    if _sources_hash() != _first_sources_hash():
        raise RuntimeError("a source of kernels has changed since the start: call it again")
    hashes = {key: hashes_of(declared) for key, declared in declared_kernels.items()}
    return "".join(
        table_row(key, of_kernel) for key, of_kernel in hashes.items() if of_kernel.modules
    ).encode()


def table_path() -> str:
    """The table of hashes in Warp's cache."""
    initialize()
    return os.path.join(str(wp.config.kernel_cache_dir), f"collide_{_first_sources_hash()}.hashes")


def _table(path: str) -> dict[str, KernelHashes]:
    table = _tables.get(path)
    if table is None:
        if not os.path.exists(path):
            with suppress(OutputError):  # of a full disk, which matters where a kernel is missing
                add_table_to_cache(os.path.basename(path))
        table = _tables[path] = _read(path)
    return table


def table_row(key: str, hashes: KernelHashes) -> str:
    """The row of a kernel in a table, with a checksum: a damaged row might name the kernel of
    another."""
    row = f"{key} {hashes.text()}"
    return f"{row} {_checksum(row)}\n"


def _checksum(row: str) -> str:
    return hashlib.blake2b(row.encode(), digest_size=8).hexdigest()


def _read(path: str) -> dict[str, KernelHashes]:
    """The rows of a table; those that are damaged are left out, and all of what is no file."""
    table: dict[str, KernelHashes] = {}
    if not os.path.isfile(path):  # a pipe would wait for its writer
        return table
    with suppress(OSError, UnicodeDecodeError), open(path, encoding="ascii") as file:
        for line in file:
            row, _, checksum = line.rstrip("\n").rpartition(" ")
            if checksum == _checksum(row):
                key, _, text = row.partition(" ")
                table[key] = KernelHashes.of_text(text)
    return table


def _sources_hash() -> str:
    """Hash of the source files in SOURCES and of the version of Warp."""
    start = len(_PACKAGE) + 1
    total = hashlib.sha256(wp.config.version.encode())
    for source in SOURCES:
        for path in _source_files(os.path.join(_PACKAGE, source)):
            content = _content(path)
            if content is not None:
                total.update(f"\n{path[start:]} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


def _source_files(folder: str) -> Iterator[str]:
    """The source files of a folder in the order of their names, then those of its folders.

    Every process of the command line lists 300 files: `os.walk` takes three times as long.
    """
    folders: list[str] = []
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if not entry.is_symlink():
                    folders.append(entry.name)
            elif entry.name.endswith((".py", ".h")):
                names.append(entry.name)
    for name in sorted(names):
        yield os.path.join(folder, name)
    for name in sorted(folders):
        yield from _source_files(os.path.join(folder, name))


def _content(path: str) -> bytes | None:
    """The bytes of a file; None where there is none, as for a link to a file that is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        parts = [os.read(descriptor, _READ_BYTES)]
        size = os.fstat(descriptor).st_size
        while sum(map(len, parts)) < size and parts[-1]:
            parts.append(os.read(descriptor, _READ_BYTES))
    finally:
        os.close(descriptor)
    return b"".join(parts)


_READ_BYTES = 1 << 16
"""Bytes of a read: more than most files of source, so that one call reads one."""


_first_sources_hash = cache(_sources_hash)


def _settings() -> list[tuple[str, str]]:
    """Settings of Warp that may change a kernel."""
    return sorted(
        (name, repr(value))
        for name, value in vars(wp.config).items()
        if name not in _NO_EFFECT and not name.startswith("_") and isinstance(value, _SETTING)
    )


_SETTING = (bool, int, float, str, Enum, NoneType)
_NO_EFFECT = ("kernel_cache_dir", "log_level", "verbose", "quiet")


def _identity(value: Any) -> str:
    """A text that is different for different values, given the sources of this package. Raises
    TypeError for a value that they do not determine."""
    if isinstance(value, wp.Function):
        return (
            _identity(value.func) if value.func else value.key
        )  # the same before and after Warp parses it
    if isinstance(value, FunctionType):
        if not value.__module__.startswith(_MODULES):
            raise TypeError(value)
        cells = [_identity(cell.cell_contents) for cell in value.__closure__ or ()]
        types = [f"{name}:{_identity(kind)}" for name, kind in value.__annotations__.items()]
        line = value.__code__.co_firstlineno
        return (
            f"{value.__module__}:{value.__qualname__}:{line}({','.join(cells)})({','.join(types)})"
        )
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return type_code(value)
