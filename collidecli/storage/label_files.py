"""Writer of labels of contacts as HDF5, format `collide-labels` 1.0 (docs/reference/file-formats.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import h5py
import numpy as np

from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.schema import creator

FORMAT, VERSION = "collide-labels", (1, 0)
_CHUNK_BYTES = 1 << 18


def write_labels_h5(
    output: AtomicOutput,
    tables: Mapping[str, np.ndarray],
    dense: Mapping[str, tuple[np.dtype, str]],
    shape: tuple[int, ...],
    blocks: Iterable[tuple[int, Mapping[str, np.ndarray]]],
    about: Mapping[str, Any],
) -> None:
    """Writes the file to an output, which the caller commits. Raises OutputError.

    tables: small arrays by name; units of `time` are s. dense: types and units of arrays of `shape`, frames first.
    blocks: first frame and rows of each array. about: root attributes; a mapping becomes JSON.
    """
    with h5py.File(output, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = np.array(VERSION, np.int32)
        file.attrs["creator"] = creator()
        for name, value in about.items():
            file.attrs[name] = json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value
        for name, values in tables.items():
            is_text = values.dtype.kind == "O"
            data = file.create_dataset(name, data=values, dtype=h5py.string_dtype() if is_text else None)
            if name == "time":
                data.attrs["unit"] = "s"
        arrays: dict[str, h5py.Dataset] = {}
        for name, (dtype, unit) in dense.items():
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
            if unit:
                arrays[name].attrs["unit"] = unit
        output.check()
        for first, rows in blocks:
            for name, values in rows.items():
                arrays[name][first : first + len(values)] = values
            output.check()
    output.check()
