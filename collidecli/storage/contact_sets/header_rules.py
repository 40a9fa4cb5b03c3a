"""The rules for the attributes of a contact set: sources, rules of the model, units."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import h5py
import numpy as np

from collidecli.scene.contact_columns import TABLES
from collidecli.scene.materials import MATERIAL_RULES
from collidecli.scene.model_source import SCENE_KINDS
from collidecli.scene.motion import FRAME
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
from collidecli.storage.contact_sets.header import (
    BLOCK_ROWS_ATTRIBUTE,
    DISTANCE_RULES,
    ENGINE_GROUP,
    ENGINES_SINCE,
    FORCED_TABLES,
    MODEL_TABLES,
    POINT_RULES,
    SCENE_KIND,
    TIME,
    TIME_TABLES,
    TRIANGLE_MATERIALS_SINCE,
    TRIGGER,
    TRIGGERS_SINCE,
    tables_version,
)
from collidecli.storage.contact_sets.material_schema import (
    MATERIAL_TABLES,
    PAIR_TABLES,
    PENALTY_TABLES,
    TRIANGLE_GROUP,
    TRIANGLE_TABLES,
)
from collidecli.storage.content_hash import HASHED_ROWS

_TABLES = chain(
    *(MODEL_TABLES, FORCED_TABLES, TIME_TABLES, PENALTY_TABLES, PAIR_TABLES),
    *(*MATERIAL_TABLES.values(), *TRIANGLE_TABLES.values()),
)
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
    AttributeRule("", SCENE_KIND, one_of(SCENE_KINDS), required=False),
    AttributeRule("", "scene_sha256", sha256),
    AttributeRule("", "trajectory_sha256", sha256_or_empty),
    AttributeRule("", "config", json_object),
    AttributeRule("", "creator", text),
    AttributeRule("", "content_sha256", sha256),
    AttributeRule("/model", "gap_rule", one_of(("max", "sum"))),
    AttributeRule("/model", "up_axis", one_of(("X", "Y", "Z"))),
    AttributeRule("/model", "material_rule", one_of(MATERIAL_RULES), required=False),  # since 1.1
    *(
        AttributeRule(
            path, "unit", one_of((unit, FRAME) if path == TIME else (unit,)), required=False
        )
        for path, unit in _UNITS.items()
    ),
)


def _block_rows(value: Any) -> str:
    number = np.asarray(value)
    is_number = number.shape == () and number.dtype.kind in "iu"
    return "" if is_number and int(number) == HASHED_ROWS else f"is not {HASHED_ROWS}"


def _flag(value: Any) -> str:
    return "" if isinstance(value, np.integer) and value in (0, 1) else "is not 0 or 1"


def json_mapping(value: Any) -> str:
    """The text of a JSON object, which may have no entry."""
    return "" if value == "{}" else json_object(value)


OF_ENGINES = (
    *(
        AttributeRule(ENGINE_GROUP, name, text)
        for name in ("name", "version", "interpreter", "float_type")
    ),
    AttributeRule(ENGINE_GROUP, "options", json_mapping),
    AttributeRule(ENGINE_GROUP, "stateful", _flag, required=False),
    AttributeRule(ENGINE_GROUP, "point_rule", one_of(POINT_RULES)),
    AttributeRule(ENGINE_GROUP, "distance_rule", one_of(DISTANCE_RULES)),
    AttributeRule(ENGINE_GROUP, "reports_gap", _flag, required=False),
)
"""Rules of contact sets of another engine."""
SINCE_2 = (AttributeRule("", BLOCK_ROWS_ATTRIBUTE, _block_rows),)
"""Rules of version 2."""


def has_engine(file: h5py.File, version: tuple[int, int]) -> bool:
    """Whether a contact set is of another engine."""
    return tables_version(version) >= ENGINES_SINCE and ENGINE_GROUP in file


def has_triggers(file: h5py.File, version: tuple[int, int]) -> bool:
    """Whether a contact set has the table of triggers."""
    return tables_version(version) >= TRIGGERS_SINCE and TRIGGER in file


def has_triangle_materials(file: h5py.File, version: tuple[int, int]) -> bool:
    """Whether a contact set has materials of triangles."""
    return tables_version(version) >= TRIANGLE_MATERIALS_SINCE and TRIANGLE_GROUP in file


def header_faults(file: h5py.File) -> Iterator[tuple[str, str]]:
    """(location in the file, rule) of every attribute that breaks a rule; "" is the root."""
    timing = file.get("/timing")
    names = list(timing.attrs) if isinstance(timing, h5py.Group) else []
    version = np.atleast_1d(np.asarray(file.attrs["format_version"])).tolist()
    rules = RULES + SINCE_2 if version[0] > 1 else RULES
    rules += OF_ENGINES if has_engine(file, (version[0], version[1])) else ()
    return attribute_faults(
        file, (*rules, *(AttributeRule("/timing", name, text_if_string) for name in names))
    )
