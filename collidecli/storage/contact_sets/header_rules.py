"""The rules for the attributes of a contact set: sources, rules of the model, units."""

from __future__ import annotations

from collections.abc import Iterator

import h5py

from collidecli.scene.contact_groups import GROUPS
from collidecli.scene.contacts import OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.scene.material import MATERIAL_RULES
from collidecli.storage.attribute_rules import (
    AttributeRule,
    attribute_faults,
    json_object,
    one_of,
    sha256,
    sha256_or_empty,
    text,
    text_if_string,
)
from collidecli.storage.contact_sets import schema

_TABLES = (*schema.MODEL_TABLES, *schema.FORCED_TABLES, *schema.TIME_TABLES)
_UNITS = {
    **{table.path: table.unit for table in _TABLES},
    **{schema.column_path(column): column.unit for column in (*RIGID_COLUMNS, *OPTIONAL_COLUMNS)},
    **{
        f"/{group.name}/{column.name}": column.unit
        for group in GROUPS
        for column in (*group.columns, *(held.column for held in group.lists))
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


def header_faults(file: h5py.File) -> Iterator[tuple[str, str]]:
    """(location in the file, rule) of every attribute that breaks a rule; "" is the root."""
    timing = file.get("/timing")
    names = list(timing.attrs) if isinstance(timing, h5py.Group) else []
    return attribute_faults(file, (*RULES, *(AttributeRule("/timing", name, text_if_string) for name in names)))
