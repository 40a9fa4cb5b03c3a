"""The file of a contact map that `view` draws: HDF5, or NPZ as an HDF5 file in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.escaping import unicode_text
from collidecli.exporters.array_npz import ATTRIBUTES
from collidecli.importers.recordings.array_files import npz_headers, read_npz
from collidecli.pages.view.map_file import FIX, KINDS, RULES, ContactMap, contact_map_of
from collidecli.storage.h5_files import open_h5
from collidecli.storage.process_activity import reading
from collidecli.storage.regular_files import require_regular_file

LARGEST = 1 << 62
"""Greatest number of an attribute of an NPZ file, which JSON does not limit."""


@contextmanager
def opened_contact_map(path: str | os.PathLike[str]) -> Iterator[ContactMap]:
    """A contact map of vertices. Raises InputError for a file that is none."""
    name = os.fspath(path)
    require_regular_file(name, fix=FIX)
    with reading("contact map", name):
        file = of_npz(name) if name.lower().endswith(".npz") else open_h5(name)
    with file:
        with reading("contact map", name):
            found = contact_map_of(file, name)
        yield found


def of_npz(name: str) -> h5py.File:
    """An NPZ file as an HDF5 file in memory. Raises InputError for one without attributes."""
    names = npz_headers(name)
    if ATTRIBUTES not in names:
        raise InputError(f"is no contact map: it has no array '{ATTRIBUTES}'", name, FIX)
    try:
        attributes = json.loads(str(read_npz(name, ATTRIBUTES)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", f"{name}: {ATTRIBUTES}", FIX) from None
    if not isinstance(attributes, dict):
        raise InputError("is no JSON object", f"{name}: {ATTRIBUTES}", FIX)
    file = h5py.File(name, "w", driver="core", backing_store=False)
    for key in ("format", *(rule.name for rule in RULES)):
        value = attributes.get(key)
        if isinstance(value, list) and all(type(each) is int for each in value):
            file.attrs[key] = np.array(
                [max(-LARGEST, min(each, LARGEST)) for each in value], np.int64
            )
        elif value is not None:
            text_of = value if isinstance(value, str) else json.dumps(value)
            file.attrs[key] = unicode_text(text_of).replace("\0", "\ufffd")
    for array in (*KINDS, "shape_path"):
        if array in names:
            values = read_npz(name, array)
            try:
                if values.dtype.kind == "U":
                    values = values.astype(h5py.string_dtype())
                file.create_dataset(array, data=values)
            except (TypeError, ValueError) as error:
                raise InputError(f"cannot be read: {error}", f"{name}: {array}", FIX) from None
    return file
