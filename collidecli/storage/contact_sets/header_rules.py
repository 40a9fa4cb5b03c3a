"""The rules for the attributes of a contact set: sources, rules of the model, units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

from collidecli.scene.material import MATERIAL_RULES
from collidecli.scene.tables import TABLES
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.content_hash import BLOCK_ROWS
from collidecli.storage.h5_files import (
    AttributeRule,
    Fault,
    attribute_faults,
    json_object,
    one_of,
    sha256,
    sha256_or_empty,
    text,
    text_if_string,
)

_TABLES = (*schema.MODEL_TABLES, *schema.FORCED_TABLES, *schema.TIME_TABLES)
_UNITS = {
    **{table.path: table.unit for table in _TABLES},
    **{
        f"/{table.name}/{column.name}": column.unit
        for table in TABLES
        for column in (*table.columns, *table.optional, *(held.column for held in table.lists))
    },
}
RULES = (
    AttributeRule("", "scene", text),
    AttributeRule("", "scene_sha256", sha256),
    AttributeRule("", "trajectory_sha256", sha256_or_empty),
    AttributeRule("", "config", json_object),
    AttributeRule("", "creator", text),
    AttributeRule("", "content_sha256", sha256),
    AttributeRule("/model", "gap_rule", one_of(("max", "sum"))),
    AttributeRule("/model", "up_axis", one_of(("X", "Y", "Z"))),
    AttributeRule("/model", "material_rule", one_of(MATERIAL_RULES), required=False),  # since 1.1
    *(AttributeRule(path, "unit", one_of((unit,)), required=False) for path, unit in _UNITS.items()),
)


def _same_number(wanted: int) -> Fault:
    def fault(value: Any) -> str:
        found = np.asarray(value)
        if found.shape == () and found.dtype.kind in "iu" and int(found) == wanted:
            return ""
        return f"is not {wanted}"

    return fault


SINCE_2 = (AttributeRule("", schema.BLOCK_ROWS_ATTRIBUTE, _same_number(BLOCK_ROWS)),)
"""Rules of version 2."""


def header_faults(file: h5py.File) -> Iterator[tuple[str, str]]:
    """(location in the file, rule) of every attribute that breaks a rule; "" is the root."""
    timing = file.get("/timing")
    names = list(timing.attrs) if isinstance(timing, h5py.Group) else []
    rules = RULES + SINCE_2 if np.atleast_1d(np.asarray(file.attrs["format_version"]))[0] > 1 else RULES
    return attribute_faults(file, (*rules, *(AttributeRule("/timing", name, text_if_string) for name in names)))
