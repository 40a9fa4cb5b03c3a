"""Writer of arrays as HDF5 with a format name: labels, masks, least distances, profiles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np

from collidecli.escaping import unicode_text
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.header import creator

LABELS_FORMAT = "collide-labels"
SENSORS_FORMAT = "collide-sensors"
AUDIT_FORMAT = "collide-audit"
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
        form: name of the format. about: root attributes; mappings and lists become JSON. tables:
            arrays by name; texts are objects or of NumPy's type. units: by name, of those that have
            one. dense: types and shapes of arrays.
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
            if isinstance(value, (Mapping, list)):
                value = json.dumps(value, sort_keys=True)
            file.attrs[name] = unicode_text(value) if isinstance(value, str) else value
        arrays: dict[str, h5py.Dataset] = {}
        for name, values in tables.items():
            is_text = values.dtype.kind in "OU"
            values = values.astype(object) if is_text else values
            arrays[name] = file.create_dataset(
                name, data=values, dtype=h5py.string_dtype() if is_text else None
            )
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
