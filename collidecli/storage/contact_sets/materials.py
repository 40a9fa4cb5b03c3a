"""The material tables of a contact set, for each material rule: conversion from and to `Materials`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from collidecli.scene.material import (
    COMBINE_FIELDS,
    COMBINE_MODES,
    PAIR_WIDTHS,
    PENALTY_PARAMETERS,
    RULE_FIELDS,
    WIDTHS,
    Material,
    Materials,
    PairMaterials,
)
from collidecli.scene.model import Model
from collidecli.storage.contact_sets.schema import Table

SHAPE_GROUP = "/model/shape"
PAIR_GROUP = "/model/forced_pair"

_UNITS = {
    "torsional_friction": "m", "rolling_friction": "m", "contact_ke": "N/m", "contact_kd": "N s/m",
    "contact_kf": "N s/m", "contact_ka": "m",
}  # fmt: skip
_TYPES = {**dict.fromkeys(COMBINE_FIELDS), "condim": np.dtype(np.int32), "priority": np.dtype(np.int32)}


def _table(group: str, name: str, extent: str, width: int = 1) -> Table:
    return Table(f"{group}/{name}", _TYPES.get(name, np.dtype(np.float64)), extent, _UNITS.get(name, ""), width)


def _shape_tables(names: Iterable[str]) -> tuple[Table, ...]:
    return tuple(_table(SHAPE_GROUP, name, "shapes", WIDTHS.get(name, 1)) for name in names)


MATERIAL_TABLES = {rule: _shape_tables(names) for rule, names in RULE_FIELDS.items()}
"""Tables of materials by material rule: the fields that determine a contact's parameters."""
PENALTY_TABLES = _shape_tables(PENALTY_PARAMETERS)
"""Present if any shape specifies one of them; NaN for unspecified values."""
PAIR_TABLES = (
    _table(PAIR_GROUP, "condim", "forced pairs"),
    *(_table(PAIR_GROUP, name, "forced pairs", width) for name, width in PAIR_WIDTHS.items()),
)
"""Present if any forced pair has own parameters; 0 and NaN: the pair has those of its surfaces."""


def material_values(model: Model) -> dict[str, tuple[Table, np.ndarray | Sequence[str]]]:
    """The material tables of a model and their values, by path."""
    material, pairs = model.shapes.material, model.forced_material
    found: dict[str, tuple[Table, np.ndarray | Sequence[str]]] = {}
    tables = MATERIAL_TABLES[model.material_rule]
    if any(np.isfinite(getattr(material, name)).any() for name in PENALTY_PARAMETERS):
        tables += PENALTY_TABLES
    for table in tables:
        name = table.path.rpartition("/")[2]
        values = getattr(material, name)
        found[table.path] = table, [COMBINE_MODES[mode] for mode in values] if name in COMBINE_FIELDS else values
    if len(pairs) and pairs.any():
        found |= {table.path: (table, getattr(pairs, table.path.rpartition("/")[2])) for table in PAIR_TABLES}
    return found


def tables_of(rule: str, is_there: Callable[[str], bool]) -> tuple[Table, ...]:
    """The required tables of a file of material rule `rule`; "" is a file of version 1.0, which has none."""
    tables = MATERIAL_TABLES.get(rule, ())
    for optional in (PENALTY_TABLES, PAIR_TABLES):
        if rule and any(is_there(table.path) for table in optional):
            tables += optional
    return tables


def read_materials(shape_count: int, tables: dict[str, Any]) -> Materials:
    """The materials of a file's tables, given by path; fields outside the file's rule have the values of `Material()`.

    An unknown combine mode is -1.
    """
    columns = dict(vars(Materials.of([Material()] * shape_count)))
    for path, values in tables.items():
        group, _, name = path.rpartition("/")
        if group == SHAPE_GROUP and name in columns:
            columns[name] = _modes(values) if name in COMBINE_FIELDS else values
    return Materials(**columns)


def read_pair_materials(pair_count: int, tables: dict[str, Any]) -> PairMaterials:
    """The own parameters of forced pairs from a file's tables, given by path."""
    columns = dict(vars(PairMaterials.of([None] * pair_count)))
    return PairMaterials(**{name: tables.get(f"{PAIR_GROUP}/{name}", values) for name, values in columns.items()})


def _modes(words: Sequence[str]) -> np.ndarray:
    return np.array([COMBINE_MODES.index(word) if word in COMBINE_MODES else -1 for word in words], np.int8)
