"""Writer of arrays as HDF5 with a format name: labels and masks of frames (docs/reference/file-formats.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import h5py
import numpy as np

from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.schema import creator

LABELS, AUDIT = "collide-labels", "collide-audit"
VERSION = (1, 0)
_CHUNK_BYTES = 1 << 18


def write_arrays_h5(
    output: AtomicOutput,
    form: str,
    about: Mapping[str, Any],
    tables: Mapping[str, np.ndarray],
    units: Mapping[str, str],
    dense: Mapping[str, tuple[np.dtype, tuple[int, ...]]] | None = None,
    blocks: Iterable[tuple[int, Mapping[str, np.ndarray]]] = (),
) -> None:
    """Writes the file to an output, which the caller commits. Raises OutputError.

    form: LABELS or AUDIT. about: root attributes; a mapping becomes JSON. tables: arrays by name; texts are objects or
    of NumPy's type. units: by name, of those that have one. dense: types and shapes of arrays that `blocks` fills; each
    block is a first row and rows by name.
    """
    with h5py.File(output, "w") as file:
        file.attrs["format"] = form
        file.attrs["format_version"] = np.array(VERSION, np.int32)
        file.attrs["creator"] = creator()
        for name, value in about.items():
            file.attrs[name] = json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value
        arrays: dict[str, h5py.Dataset] = {}
        for name, values in tables.items():
            is_text = values.dtype.kind in "OU"
            values = values.astype(object) if is_text else values
            arrays[name] = file.create_dataset(name, data=values, dtype=h5py.string_dtype() if is_text else None)
        for name, (dtype, shape) in (dense or {}).items():
            row = max(1, int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize)
            chunk = (max(1, min(shape[0], _CHUNK_BYTES // row)), *shape[1:])
            packed = {
                "chunks": chunk,
                "compression": "gzip",
                "compression_opts": 1,
                "shuffle": True,
                "fletcher32": True,
            }
            arrays[name] = file.create_dataset(name, shape, dtype, **(packed if 0 not in shape else {}))
        for name, unit in units.items():
            if name in arrays:
                arrays[name].attrs["unit"] = unit
        output.check()
        for first, rows in blocks:
            for name, values in rows.items():
                arrays[name][first : first + len(values)] = values
            output.check()
    output.check()
