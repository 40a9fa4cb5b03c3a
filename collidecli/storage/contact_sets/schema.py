"""Schema of a contact set file, common to its writer, reader and validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

import h5py
import numpy as np

from collidecli.scene.material import (
    COMBINE_FIELDS,
    MATERIAL_RULES,
    PAIR_WIDTHS,
    PENALTY_PARAMETERS,
    RULE_FIELDS,
    WIDTHS,
)
from collidecli.scene.tables import OF_STEPS, TABLES, Column
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

FORMAT = "collide-contacts"
VERSIONS = {1: (1, 3), 2: (2, 0)}
"""The version that is written for each major version; their tables are equal, their content hashes differ. A set with
contacts between frames, the groups `sweep`, `soft_sweep` and `self_sweep`, has the next minor version, 1.4 or 2.1;
one of another engine, the group `engine`, 1.5 or 2.2."""

BLOCK_ROWS_ATTRIBUTE = "content_block_rows"
BLOCK_HASHES = "/content_hash/block"
"""Of version 2: rows of a block of the content hash, and the hashes of all blocks."""

SOURCE_ATTRIBUTES = ("scene", "scene_sha256", "trajectory_sha256", "config")
"""Root attributes, all strings, of the file's sources; config is JSON."""


@dataclass(frozen=True)
class Table:
    """A small dataset that is read into memory. extent: name of its rows. dtype: None is a string."""

    path: str
    dtype: np.dtype | None
    extent: str
    unit: str = ""
    width: int = 1


def _table(path: str, dtype: str | None, extent: str, unit: str = "", width: int = 1) -> Table:
    return Table(path, None if dtype is None else np.dtype(dtype), extent, unit, width)


MODEL_TABLES = (
    _table("/model/shape/path", None, "shapes"),
    _table("/model/shape/type", None, "shapes"),
    _table("/model/shape/body", "int32", "shapes"),
    _table("/model/shape/template", "int32", "shapes"),
    _table("/model/shape/margin", "float32", "shapes", "m"),
    _table("/model/shape/gap", "float32", "shapes", "m"),
    _table("/model/body/path", None, "bodies"),
    _table("/model/world/template", "int32", "worlds"),
)
FORCED_TABLES = (
    _table("/model/forced_pair/shape0", "int32", "forced pairs"),
    _table("/model/forced_pair/shape1", "int32", "forced pairs"),
    _table("/model/forced_pair/margin", "float32", "forced pairs", "m"),
    _table("/model/forced_pair/gap", "float32", "forced pairs", "m"),
)
"""Present only if the model has forced pairs. NaN: the pair has its shapes' margin or gap."""

PARTICLE_GROUP = "/model/particle_object"
PARTICLE_TABLES = (
    _table(f"{PARTICLE_GROUP}/path", None, "particle objects"),
    _table(f"{PARTICLE_GROUP}/kind", None, "particle objects"),
    _table(f"{PARTICLE_GROUP}/template", "int32", "particle objects"),
    _table(f"{PARTICLE_GROUP}/first_particle", "int64", "particle objects"),
    _table(f"{PARTICLE_GROUP}/particle_count", "int64", "particle objects"),
)
"""Present only if the model has particles; since 1.3. In the order of `ParticleObjects`."""

TIME_TABLES = (_table("/time/step", "int64", "frames"), _table("/time/time", "float64", "frames", "s"))
EPISODE_GROUP = "/episode"
EPISODE_TABLES = (
    _table(f"{EPISODE_GROUP}/name", None, "episodes"),
    _table(f"{EPISODE_GROUP}/world", "int32", "episodes"),
    _table(f"{EPISODE_GROUP}/first_frame", "int64", "episodes"),
    _table(f"{EPISODE_GROUP}/frame_count", "int64", "episodes"),
)
"""Present only for a recording that consists of demonstrations; since 1.2. In the order of `Episodes`."""


ENGINE_GROUP = "/engine"
ENGINES_SINCE = (1, 5)
ENGINE_TABLES = (
    _table(f"{ENGINE_GROUP}/shape/treated_as", None, "shapes"),
    _table(f"{ENGINE_GROUP}/shape/reason", None, "shapes"),
    _table(f"{ENGINE_GROUP}/pair_not_asked/shape0", "int32", "pairs that are not asked"),
    _table(f"{ENGINE_GROUP}/pair_not_asked/shape1", "int32", "pairs that are not asked"),
)
"""Present only in contact sets of another engine; since 1.5. In the order of `EngineRecord`."""
TREATMENTS = ("exact", "hull", "approximated", "skipped")
POINT_RULES = ("both", "midpoint", "on0", "on1", "unspecified")
DISTANCE_RULES = ("plain", "less margins")


@dataclass(frozen=True)
class EngineRecord:
    """The engine that computed the contacts of a set: attributes of /engine, then its tables.

    options: JSON. interpreter: version of Python. float_type: of the engine's distances. stateful: whether an answer
    depends on the frame before. point_rule, distance_rule: how it reports points and distances. reports_gap: whether it
    reports contacts of shapes that are apart. None is unknown. treated, reason: of each shape. not_asked0, not_asked1:
    int32[K], allowed pairs that it cannot hold.
    """

    name: str
    version: str
    options: str
    interpreter: str
    float_type: str
    stateful: bool | None
    point_rule: str
    distance_rule: str
    reports_gap: bool | None
    treated: Sequence[str]
    reason: Sequence[str]
    not_asked0: np.ndarray
    not_asked1: np.ndarray

    @property
    def attributes(self) -> dict[str, str | np.int32]:
        """The attributes of /engine; one that is unknown is left out."""
        found = {name: getattr(self, name) for name in ENGINE_ATTRIBUTES}
        return {
            name: value if isinstance(value, str) else np.int32(value)
            for name, value in found.items()
            if value is not None
        }


ENGINE_ATTRIBUTES = tuple(field.name for field in fields(EngineRecord))[: -len(ENGINE_TABLES)]


def version_of(major: int, groups: Iterable[str], of_engine: bool = False) -> tuple[int, int]:
    """The version of a file with the groups of these names. of_engine: and with that of another engine."""
    return major, VERSIONS[major][1] + (2 if of_engine else bool(set(groups) & set(OF_STEPS)))


def tables_version(version: tuple[int, int]) -> tuple[int, int]:
    """The version 1.x with the tables of a version: those of 2.0 are those of 1.3, of 2.1 of 1.4, of 2.2 of 1.5."""
    return version if version[0] == 1 else (1, VERSIONS[1][1] + version[1])


def row_shape(column: Column | Table) -> tuple[int, ...]:
    """Shape of one row of a column or table: () or (width,)."""
    return () if column.width == 1 else (column.width,)


def creator() -> str:
    """The root attribute `creator`: this program and its version; without a version in an uninstalled checkout."""
    try:
        return f"collide {version('collidecli')}"
    except PackageNotFoundError:
        return "collide"


# The material tables of a contact set, for each material rule.

SHAPE_GROUP = "/model/shape"
PAIR_GROUP = "/model/forced_pair"

_MATERIAL_UNITS = {
    "torsional_friction": "m",
    "rolling_friction": "m",
    "contact_ke": "N/m",
    "contact_kd": "N s/m",
    "contact_kf": "N s/m",
    "contact_ka": "m",
}
_TYPES: dict[str, str | None] = {**dict.fromkeys(COMBINE_FIELDS), "condim": "int32", "priority": "int32"}


def _material_tables(group: str, extent: str, widths: Mapping[str, int]) -> tuple[Table, ...]:
    return tuple(
        _table(f"{group}/{name}", _TYPES.get(name, "float64"), extent, _MATERIAL_UNITS.get(name, ""), width)
        for name, width in widths.items()
    )


def _shape_tables(names: Iterable[str]) -> tuple[Table, ...]:
    return _material_tables(SHAPE_GROUP, "shapes", {name: WIDTHS.get(name, 1) for name in names})


MATERIAL_TABLES = {rule: _shape_tables(names) for rule, names in RULE_FIELDS.items()}
"""Tables of materials by material rule: the fields that determine a contact's parameters."""
PENALTY_TABLES = _shape_tables(PENALTY_PARAMETERS)
"""Present if any shape specifies one of them; NaN for unspecified values."""
PAIR_TABLES = _material_tables(PAIR_GROUP, "forced pairs", {"condim": 1, **PAIR_WIDTHS})
"""Present if any forced pair has own parameters; 0 and NaN: the pair has those of its surfaces."""

# The rules for the attributes of a contact set: sources, rules of the model, units.

_TABLES = chain(MODEL_TABLES, FORCED_TABLES, TIME_TABLES, PENALTY_TABLES, PAIR_TABLES, *MATERIAL_TABLES.values())
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


def _flag(value: Any) -> str:
    return "" if isinstance(value, np.integer) and value in (0, 1) else "is not 0 or 1"


def json_mapping(value: Any) -> str:
    """The text of a JSON object, which may have no entry."""
    return "" if value == "{}" else json_object(value)


OF_ENGINES = (
    *(AttributeRule(ENGINE_GROUP, name, text) for name in ("name", "version", "interpreter", "float_type")),
    AttributeRule(ENGINE_GROUP, "options", json_mapping),
    AttributeRule(ENGINE_GROUP, "stateful", _flag, required=False),
    AttributeRule(ENGINE_GROUP, "point_rule", one_of(POINT_RULES)),
    AttributeRule(ENGINE_GROUP, "distance_rule", one_of(DISTANCE_RULES)),
    AttributeRule(ENGINE_GROUP, "reports_gap", _flag, required=False),
)
"""Rules of contact sets of another engine."""

SINCE_2 = (AttributeRule("", BLOCK_ROWS_ATTRIBUTE, _same_number(BLOCK_ROWS)),)
"""Rules of version 2."""


def has_engine(file: h5py.File, version: tuple[int, int]) -> bool:
    """Whether a contact set is of another engine."""
    return tables_version(version) >= ENGINES_SINCE and ENGINE_GROUP in file


def header_faults(file: h5py.File) -> Iterator[tuple[str, str]]:
    """(location in the file, rule) of every attribute that breaks a rule; "" is the root."""
    timing = file.get("/timing")
    names = list(timing.attrs) if isinstance(timing, h5py.Group) else []
    version = np.atleast_1d(np.asarray(file.attrs["format_version"])).tolist()
    rules = RULES + SINCE_2 if version[0] > 1 else RULES
    rules += OF_ENGINES if has_engine(file, (version[0], version[1])) else ()
    return attribute_faults(file, (*rules, *(AttributeRule("/timing", name, text_if_string) for name in names)))
