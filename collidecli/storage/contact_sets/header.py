"""Schema and content hash of a contact set file, common to its writer, reader and validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError

import numpy as np

from collidecli.installed_versions import installed_version
from collidecli.scene.contact_columns import OF_STEPS, Column

FORMAT = "collide-contacts"
VERSIONS = {1: (1, 3), 2: (2, 0)}
"""The version that is written for each major version; their tables are equal, their content hashes
differ. A set with contacts between frames, the groups `sweep`, `soft_sweep` and `self_sweep`, has
the next minor version, 1.4 or 2.1; one of another engine, the group `engine`, 1.5 or 2.2; one with
triggers 1.6 or 2.3; one with materials of triangles 1.7 or 2.4."""
BLOCK_ROWS_ATTRIBUTE = "content_block_rows"
BLOCK_HASHES = "/content_hash/block"
"""Of version 2: rows of a block of the content hash, and the hashes of all blocks."""
SOURCE_ATTRIBUTES = ("scene", "scene_sha256", "trajectory_sha256", "config")
"""Root attributes, all strings, of the file's sources; config is JSON."""
SCENE_KIND = "scene_kind"
"""Root attribute: one of SCENE_KINDS. Sets of earlier versions do not have it."""


@dataclass(frozen=True)
class Table:
    """A small dataset that is read into memory. extent: name of its rows. dtype: None is a
    string."""

    path: str
    dtype: np.dtype | None
    extent: str
    unit: str = ""
    width: int = 1


def _tables(group: str, extent: str, *rows: str) -> tuple[Table, ...]:
    """Tables of a group. rows: of each its name, the type of its values (text for strings), and its
    unit if any."""
    tables = []
    for row in rows:
        name, dtype, *unit = row.split()
        tables.append(
            Table(
                f"{group}/{name}",
                None if dtype == "text" else np.dtype(dtype),
                extent,
                "".join(unit),
            )
        )
    return tuple(tables)


MODEL_TABLES = (
    *_tables("/model/shape", "shapes", "path text", "type text", "body int32", "template int32"),
    *_tables("/model/shape", "shapes", "margin float32 m", "gap float32 m"),
    *_tables("/model/body", "bodies", "path text"),
    *_tables("/model/world", "worlds", "template int32"),
)
TRIGGER = "/model/shape/trigger"
TRIGGER_TABLES = _tables("/model/shape", "shapes", "trigger uint8")
"""Present only if a shape is a trigger, 1; since 1.6."""
TRIGGERS_SINCE = (1, 6)
TRIANGLE_MATERIALS_SINCE = (1, 7)
FORCED_TABLES = _tables(
    "/model/forced_pair",
    "forced pairs",
    "shape0 int32",
    "shape1 int32",
    "margin float32 m",
    "gap float32 m",
)
"""Present only if the model has forced pairs. NaN: the pair has its shapes' margin or gap."""
PARTICLE_GROUP = "/model/particle_object"
PARTICLE_TABLES = _tables(
    PARTICLE_GROUP,
    "particle objects",
    *("path text", "kind text", "template int32", "first_particle int64", "particle_count int64"),
)
"""Present only if the model has particles; since 1.3. In the order of `ParticleObjects`."""
TIME_TABLES = _tables("/time", "frames", "step int64", "time float64 s")
TIME = "/time/time"
"""Of unit SECOND, or FRAME for poses whose times are unknown: then the number of each frame."""
EPISODE_GROUP = "/episode"
EPISODE_TABLES = _tables(
    EPISODE_GROUP, "episodes", "name text", "world int32", "first_frame int64", "frame_count int64"
)
"""Present only for a recording that consists of demonstrations; since 1.2. In the order of
`Episodes`."""
ENGINE_GROUP = "/engine"
ENGINES_SINCE = (1, 5)
ENGINE_TABLES = (
    *_tables(f"{ENGINE_GROUP}/shape", "shapes", "treated_as text", "reason text"),
    *_tables(
        f"{ENGINE_GROUP}/pair_not_asked", "pairs that are not asked", "shape0 int32", "shape1 int32"
    ),
)
"""Present only in contact sets of another engine; since 1.5. In the order of `EngineRecord`."""
TREATMENTS = ("exact", "hull", "approximated", "skipped")
POINT_RULES = ("both", "midpoint", "on0", "on1", "unspecified")
DISTANCE_RULES = ("plain", "less margins")


@dataclass(frozen=True)
class EngineRecord:
    """The engine that computed the contacts of a set: attributes of /engine, then its tables.

    options: JSON. interpreter: version of Python. float_type: of the engine's distances. stateful:
    whether an answer depends on the frame before. point_rule, distance_rule: how it reports points
    and distances. reports_gap: whether it reports contacts of shapes that are apart. None is
    unknown. treated, reason: of each shape. not_asked0, not_asked1: int32[K], allowed pairs that it
    cannot hold.
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
        values = ((name, getattr(self, name)) for name in ENGINE_ATTRIBUTES)
        return {
            name: v if isinstance(v, str) else np.int32(v) for name, v in values if v is not None
        }


ENGINE_ATTRIBUTES = tuple(field.name for field in fields(EngineRecord))[: -len(ENGINE_TABLES)]


def version_of(
    major: int,
    groups: Iterable[str],
    of_engine: bool = False,
    has_triggers: bool = False,
    has_triangle_materials: bool = False,
) -> tuple[int, int]:
    """The version of a file with the groups of these names. of_engine: and with that of another
    engine. has_triggers, has_triangle_materials: and with these tables."""
    has_steps = bool(set(groups) & set(OF_STEPS))
    contents = (has_steps, of_engine, has_triggers, has_triangle_materials)
    minor = max((k for k, is_there in enumerate(contents, 1) if is_there), default=0)
    return major, VERSIONS[major][1] + minor


def tables_version(version: tuple[int, int]) -> tuple[int, int]:
    """The version 1.x with the tables of a version: those of 2.0 are those of 1.3, of 2.1 of 1.4,
    of 2.2 of 1.5, of 2.3 of 1.6, of 2.4 of 1.7."""
    return version if version[0] == 1 else (1, VERSIONS[1][1] + version[1])


def row_shape(column: Column | Table) -> tuple[int, ...]:
    """Shape of one row of a column or table: () or (width,)."""
    return () if column.width == 1 else (column.width,)


def creator() -> str:
    """The root attribute `creator`: this program and its version; without a version in an
    uninstalled checkout."""
    try:
        return f"collide {installed_version('collidecli')}"
    except PackageNotFoundError:
        return "collide"
