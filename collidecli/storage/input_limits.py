"""Writer of arrays as HDF5 with a format name: labels, masks, least distances (docs/reference/file-formats.md)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.text_format import memory
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.schema import creator
from collidecli.storage.process_activity import end_for_memory, is_guarded
from collidecli.system_resources import free_memory, private_memory

LABELS, AUDIT = "collide-labels", "collide-audit"
VERSION = (1, 0)
_CHUNK_BYTES = 1 << 18


@contextmanager
def arrays_h5(
    output: AtomicOutput,
    form: str,
    about: Mapping[str, Any],
    tables: Mapping[str, np.ndarray],
    units: Mapping[str, str],
    dense: Mapping[str, tuple[np.dtype, tuple[int, ...]]] | None = None,
    compression: str = "gzip",
    checksums: bool = True,
) -> Iterator[Callable[[int, Mapping[str, np.ndarray]], None]]:
    """Writes the file to an output, which the caller commits. Raises OutputError.

    The value is a function of a first row and of rows by name, which fills the arrays of `dense`.

    Args:
        form: name of the format. about: root attributes; mappings and lists become JSON. tables: arrays by name; texts
            are objects or of NumPy's type. units: by name, of those that have one. dense: types and shapes of arrays.
        compression, checksums: of `dense`: "gzip" or "none", and whether a chunk has one.
    """
    packing: dict[str, Any] = {"fletcher32": True} if checksums else {}
    if compression == "gzip":
        packing |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    with h5py.File(output, "w") as file:
        file.attrs["format"] = form
        file.attrs["format_version"] = np.array(VERSION, np.int32)
        file.attrs["creator"] = creator()
        for name, value in about.items():
            file.attrs[name] = json.dumps(value, sort_keys=True) if isinstance(value, (Mapping, list)) else value
        arrays: dict[str, h5py.Dataset] = {}
        for name, values in tables.items():
            is_text = values.dtype.kind in "OU"
            values = values.astype(object) if is_text else values
            arrays[name] = file.create_dataset(name, data=values, dtype=h5py.string_dtype() if is_text else None)
        for name, (dtype, shape) in (dense or {}).items():
            row = max(1, int(np.prod(shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize)
            chunks = (max(1, min(shape[0], _CHUNK_BYTES // row)), *shape[1:])
            arrays[name] = file.create_dataset(
                name, shape, dtype, **({} if 0 in shape else {"chunks": chunks, **packing})
            )
        for name, unit in units.items():
            if unit and name in arrays:
                arrays[name].attrs["unit"] = unit
        output.check()

        def append(first: int, rows: Mapping[str, np.ndarray]) -> None:
            for name, values in rows.items():
                arrays[name][first : first + len(values)] = values
            output.check()

        yield append
    output.check()


# Limit of the memory that this process may have while it reads scenes and recordings of other programs.
#
# OpenUSD and MuJoCo expand a text of some kilobytes to any number of prims or geoms, and neither has a limit of its
# own. A thread measures the memory of the command's working process; above the limit the process ends, and its parent
# prints the message (adr 0012). Sizes that a format declares are compared with the limit before memory is allocated.

LEAST_LIMIT = 1 << 30
"""Lower bound of the limit: the libraries and compiled kernels alone take some hundred megabytes."""
CHECK_SECONDS = 0.05

_limit: ContextVar[int] = ContextVar("reading_limit", default=0)


def reading_limit() -> int:
    """Memory that may be used for reading [bytes]: that of `limited_reading`, else half of the free memory."""
    return _limit.get() or max(free_memory() // 2, LEAST_LIMIT)


def check_size(size: int, what: str, where: str, fix: str) -> None:
    """Raises InputError at `where` if `what` needs more than the limit. size: its memory [bytes]."""
    limit = reading_limit()
    if size > limit:
        raise InputError(f"{what} needs {memory(size)} of memory, and the limit is {memory(limit)}", where, fix)


@contextmanager
def limited_reading(limit: int = 0) -> Iterator[None]:
    """Ends a guarded process whose memory exceeds the limit inside the block, with exit code 4.

    limit: memory of the whole process [bytes], raised to LEAST_LIMIT; 0 is half of the free memory. Inside another
    block, the outer limit applies. The Python API is not guarded: there the limit applies to declared sizes only.
    """
    if _limit.get():
        yield
        return
    token = _limit.set(max(limit, LEAST_LIMIT) if limit else reading_limit())
    ended = threading.Event()
    if is_guarded():
        threading.Thread(target=_watch, args=(_limit.get(), ended), name="collide-memory", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        _limit.reset(token)


def _watch(limit: int, ended: threading.Event) -> None:
    while not ended.wait(CHECK_SECONDS):
        if private_memory() > limit:
            end_for_memory(limit)
