"""The rules for the attributes of a contact set: sources, rules of the model, units. They read no dataset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import h5py

from collidecli.scene.contacts import OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.scene.material import MATERIAL_RULES
from collidecli.storage.contact_sets import schema

RULES = {"gap_rule": ("max", "sum"), "up_axis": ("X", "Y", "Z")}
"""Attributes of /model and their values."""
MATERIAL = {"material_rule": tuple(MATERIAL_RULES)}
"""Since 1.1; a set without it has no materials."""
_SHA256 = re.compile(r"(?!0{64})[0-9a-f]{64}")


def header_faults(file: h5py.File) -> Iterator[tuple[str, str]]:
    """(location in the file, rule) of every attribute that breaks a rule; "" is the root."""
    root = file.attrs
    for name in (*schema.SOURCE_ATTRIBUTES, "creator", "content_sha256"):
        value = root.get(name)
        if not isinstance(value, str):
            yield "", f"the root attribute {name} is missing or not a string"
        elif not _is_text(value):
            yield "", f"the root attribute {name} is not UTF-8"
        elif name.endswith("sha256") and not (
            _SHA256.fullmatch(value) or (name.startswith("trajectory") and not value)
        ):
            yield "", f"the root attribute {name} is no SHA-256"
        elif name == "config":
            yield from _config_faults(value)
    model = file.get("/model")
    held = model.attrs if isinstance(model, h5py.Group) else {}
    rules = RULES | (MATERIAL if "material_rule" in held else {})
    for name, values in rules.items():
        value: Any = held.get(name)
        if not isinstance(value, str) or value not in values:
            shown = "missing" if value is None else repr(value)
            yield "/model", f"the attribute {name} is {shown}; known values: {', '.join(values)}"
    yield from _unit_faults(file)
    for name, value in _timing_attributes(file):
        if isinstance(value, str) and not _is_text(value):
            yield "/timing", f"the attribute {name} is not UTF-8"


def _config_faults(value: str) -> Iterator[tuple[str, str]]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        yield "", f"the root attribute config is not JSON: {error}"
        return
    if not isinstance(found, dict):
        yield "", "the root attribute config is no JSON object"
    elif not found:
        yield "", "the root attribute config has no options"
    elif not _is_text(json.dumps(found, ensure_ascii=False)):
        yield "", "the root attribute config has a text that is not Unicode"


def _unit_faults(file: h5py.File) -> Iterator[tuple[str, str]]:
    tables = [*schema.MODEL_TABLES, *schema.FORCED_TABLES, *schema.TIME_TABLES]
    units = {table.path: table.unit for table in tables}
    units |= {schema.column_path(column): column.unit for column in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)}
    for path, unit in units.items():
        dataset = file.get(path)
        found = dataset.attrs.get("unit", unit) if isinstance(dataset, h5py.Dataset) else unit
        if not isinstance(found, str) or found != unit:
            yield path, f"the unit is {found!r}, not {unit!r}"


def _timing_attributes(file: h5py.File) -> list[tuple[str, Any]]:
    timing = file.get("/timing")
    return list(timing.attrs.items()) if isinstance(timing, h5py.Group) else []


def _is_text(value: str) -> bool:
    """Whether a text is Unicode; h5py reads other bytes as surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
