"""Writer of arrays as NPZ, with the attributes that the HDF5 file of the same arrays has."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from collidecli.exporters.arrays import Array, held, write_npz
from collidecli.storage.array_files import VERSION
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.header import creator
from collidecli.storage.regular_files import open_input
from collidecli.temporary_folders import TemporaryFolder

ATTRIBUTES = "attributes"
"""Array of an NPZ file with the attributes of the HDF5 file, as JSON."""
Dense = Mapping[str, tuple[np.dtype, tuple[int, ...]]]
"""Type and shape of arrays by name."""


@contextmanager
def arrays_npz(
    output: AtomicOutput,
    path: str,
    form: str,
    about: Mapping[str, Any],
    tables: Mapping[str, np.ndarray],
    dense: Dense,
) -> Iterator[Callable[[Mapping[str, np.ndarray]], None]]:
    """Writes the file to an output, which the caller commits, when the `with` block ends.

    The value is a function of the next rows by name, of each array of `dense`. They are in
    temporary files beside the output until then, so that memory is bounded.

    Args:
        path: of the output. form: name of the format. about: further attributes. tables: arrays by
            name; texts are objects or of NumPy's type.
    """
    with TemporaryFolder("arrays", os.path.dirname(os.path.abspath(path))) as folder:
        files = {name: os.path.join(folder, name) for name in dense}
        opened = {name: open(file, "wb") for name, file in files.items()}  # noqa: SIM115
        try:

            def append(rows: Mapping[str, np.ndarray]) -> None:
                for name, values in rows.items():
                    opened[name].write(np.ascontiguousarray(values, dense[name][0]).tobytes())

            yield append
        finally:
            for file in opened.values():
                file.close()
        root = {"format": form, "format_version": list(VERSION), "creator": creator(), **about}
        plain = {
            name: values.astype(str) if values.dtype.kind == "O" else values
            for name, values in tables.items()
        }
        plain[ATTRIBUTES] = np.array(json.dumps(root, sort_keys=True))
        write_npz(output, [*_stored(files, dense), *(held(*table) for table in plain.items())])


def _stored(files: Mapping[str, str], dense: Dense) -> Iterator[Array]:
    """The arrays of the temporary files, a frame at a time."""
    for name, (kind, shape) in dense.items():

        def pieces(
            path: str = files[name], kind: np.dtype = kind, shape: tuple[int, ...] = shape
        ) -> Iterator[np.ndarray]:
            size = int(np.prod(shape[1:], dtype=np.int64))
            with open_input(path) as file:
                for _ in range(shape[0]):
                    content = file.read(size * kind.itemsize)
                    yield np.frombuffer(content, kind).reshape(1, *shape[1:])

        yield Array(name, kind, shape, pieces)
