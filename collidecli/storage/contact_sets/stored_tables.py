"""The tables of a contact set without interpretation, for comparison and for writing them unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.h5_input import DAMAGE, damaged, exact_texts
from collidecli.storage.process_activity import structure

MODEL = "/model"
KNOWN_GROUPS = ("model", "time", "rigid_contacts", "timing")


@dataclass(frozen=True)
class StoredTable:
    """A dataset. dtype: little-endian; None is strings. values: an array, or a tuple of strings. unit: "" for none."""

    path: str
    dtype: np.dtype | None
    values: Any
    unit: str

    def equals(self, other: StoredTable) -> bool:
        """Whether type and values are equal to the bit; NaN equals NaN of the same bits."""
        if self.dtype is None or other.dtype is None:
            return self.dtype is other.dtype and self.values == other.values
        alike = self.dtype == other.dtype and self.values.shape == other.values.shape
        return alike and self.values.tobytes() == other.values.tobytes()


@structure()
def model_tables(contacts: ContactSet) -> dict[str, StoredTable]:
    """Every dataset of /model, by path. Raises InputError for a string that is not UTF-8."""
    found: dict[str, StoredTable] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            found[f"{MODEL}/{name}"] = _stored(contacts.path, f"{MODEL}/{name}", item)

    model: Any = contacts.file[MODEL]
    model.visititems(visit)
    return dict(sorted(found.items()))


@structure()
def model_attributes(contacts: ContactSet) -> dict[str, Any]:
    """Attributes of the group /model: the rules. Raises InputError for damaged ones."""
    try:
        return {str(name): value for name, value in contacts.file[MODEL].attrs.items()}
    except DAMAGE as error:
        raise damaged(contacts.path, error) from error


def check_groups(contacts: ContactSet) -> None:
    """Raises InputError for data that this version cannot merge."""
    columns = {"cell_start", *schema.COLUMN_NAMES, *contacts.optional_columns}
    file: Any = contacts.file
    unknown = [f"/{name}" for name in file if name not in KNOWN_GROUPS]
    unknown += [f"/time/{name}" for name in file["time"] if name not in ("step", "time")]
    unknown += [f"/rigid_contacts/{name}" for name in file["rigid_contacts"] if name not in columns]
    if unknown:
        raise InputError(
            f"this version cannot merge {unknown[0]}, which is not part of its format",
            contacts.path,
            "merge with the version of collide that wrote it",
        )


def _stored(file: str, path: str, dataset: h5py.Dataset) -> StoredTable:
    unit = str(dataset.attrs.get("unit", ""))
    values = dataset[()]
    if h5py.check_string_dtype(dataset.dtype) is None:
        return StoredTable(path, dataset.dtype.newbyteorder("<"), np.asarray(values), unit)
    return StoredTable(path, None, exact_texts(values, f"{file}: {path}"), unit)
