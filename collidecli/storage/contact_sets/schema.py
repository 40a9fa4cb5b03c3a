"""Schema and content hash of a contact set file, common to its writer, reader and validation."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, pairwise
from typing import Any

import h5py
import numpy as np

from collidecli.scene.motion import FRAME
from collidecli.scene.shape_config import (
    COMBINE_FIELDS,
    MATERIAL_RULES,
    PAIR_WIDTHS,
    PENALTY_PARAMETERS,
    RULE_FIELDS,
    WIDTHS,
)
from collidecli.scene.tables import OF_STEPS, TABLES, Column
from collidecli.storage import h5_files

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


def _tables(group: str, extent: str, *rows: str) -> tuple[Table, ...]:
    """Tables of a group. rows: of each its name, the type of its values (text for strings), and its unit if any."""
    tables = []
    for row in rows:
        name, dtype, *unit = row.split()
        tables.append(Table(f"{group}/{name}", None if dtype == "text" else np.dtype(dtype), extent, "".join(unit)))
    return tuple(tables)


MODEL_TABLES = (
    *_tables("/model/shape", "shapes", "path text", "type text", "body int32", "template int32"),
    *_tables("/model/shape", "shapes", "margin float32 m", "gap float32 m"),
    *_tables("/model/body", "bodies", "path text"),
    *_tables("/model/world", "worlds", "template int32"),
)
FORCED_TABLES = _tables(
    "/model/forced_pair", "forced pairs", "shape0 int32", "shape1 int32", "margin float32 m", "gap float32 m"
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
"""Present only for a recording that consists of demonstrations; since 1.2. In the order of `Episodes`."""


ENGINE_GROUP = "/engine"
ENGINES_SINCE = (1, 5)
ENGINE_TABLES = (
    *_tables(f"{ENGINE_GROUP}/shape", "shapes", "treated_as text", "reason text"),
    *_tables(f"{ENGINE_GROUP}/pair_not_asked", "pairs that are not asked", "shape0 int32", "shape1 int32"),
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
        values = ((name, getattr(self, name)) for name in ENGINE_ATTRIBUTES)
        return {name: v if isinstance(v, str) else np.int32(v) for name, v in values if v is not None}


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
_TYPES = {"condim": "int32", "priority": "int32"}


def _material_tables(group: str, extent: str, widths: Mapping[str, int]) -> tuple[Table, ...]:
    types = {name: None if name in COMBINE_FIELDS else np.dtype(_TYPES.get(name, "float64")) for name in widths}
    return tuple(
        Table(f"{group}/{name}", types[name], extent, _MATERIAL_UNITS.get(name, ""), width)
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


# The content hash of an HDF5 file: equal for equal datasets, independent of compression, chunks and threads.
#
# For each dataset outside `/timing` (and, in version 2, `/content_hash`), in ascending order of its path's UTF-8 bytes,
# one line
#
#     <path> TAB <type> TAB <shape> TAB <digest> LF
#
# - path: from the root, with a leading slash.
# - type: NumPy's string for the little-endian type (`<f4`, `<f8`, `<i4`, `<i8`, `|u1`), or `utf8` for strings.
# - shape: the extents in decimal, joined by commas; a dataset has at least one.
# - digest, lower-case hexadecimal. The bytes of a dataset are its elements in row-major order: little-endian bytes of
#   numbers; of each string its UTF-8 bytes and one zero byte. Version 1: the SHA-256 of all of them. Version 2: the
#   SHA-256 of the SHA-256 of each block of HASHED_ROWS rows, the last block with the rows that are left.
#
# The content hash is the SHA-256, lower-case hexadecimal, of those lines in UTF-8. Attributes, chunking, filters and
# storage order do not enter.

HASHED_ROWS = 8192
"""Rows of a block of version 2: a divisor of the usual numbers of rows in a chunk."""
HASH_BYTES = 32

Task = Callable[[], object]
"""A part of the computation, for any thread."""


class DatasetDigest(ABC):
    """The running digest of one dataset whose rows arrive in order.

    path: of the dataset. dtype: NumPy type, or None for strings. row_shape: shape without its first extent.
    """

    def __init__(self, path: str, dtype: np.dtype | None, row_shape: tuple[int, ...] = ()) -> None:
        self.path = path
        self.row_count: int = 0
        self._type = "utf8" if dtype is None else dtype.newbyteorder("<").str
        self._row_shape = row_shape
        self._sha = hashlib.sha256()
        """Of all rows; in version 2 of the last block, while it is not complete."""

    def update(self, rows: np.ndarray) -> None:
        """Adds the next rows; `rows` has shape [n, *row_shape]."""
        for task in self.tasks(np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))):
            if task is not None:
                task()

    @abstractmethod
    def tasks(self, rows: np.ndarray) -> tuple[Task | None, Task | None]:
        """Adds the next rows, contiguous and little-endian, which must not change until both tasks are done.

        Returns a task for any thread at any time, and one that must follow those of the rows before.
        """

    @abstractmethod
    def update_strings(self, strings: Sequence[str]) -> None:
        """Adds the next strings."""

    @abstractmethod
    def hexdigest(self) -> str:
        """The digest of all rows; after every task."""

    @property
    def blocks(self) -> bytes:
        """The hashes of the blocks, in order; empty in version 1."""
        return b""

    def line(self) -> bytes:
        """The dataset's line of the content hash."""
        shape = ",".join(str(extent) for extent in (self.row_count, *self._row_shape))
        return f"{self.path}\t{self._type}\t{shape}\t{self.hexdigest()}\n".encode()


class StreamDigest(DatasetDigest):
    """The digest of version 1."""

    def tasks(self, rows: np.ndarray) -> tuple[Task | None, Task | None]:
        self.row_count += len(rows)
        return None, partial(self._sha.update, _raw(rows))

    def update_strings(self, strings: Sequence[str]) -> None:
        self.row_count += len(strings)
        self._sha.update(_encoded(strings))

    def hexdigest(self) -> str:
        return self._sha.hexdigest()


class BlockDigest(DatasetDigest):
    """The digest of version 2: blocks are hashed in any order, by any thread."""

    def __init__(self, path: str, dtype: np.dtype | None, row_shape: tuple[int, ...] = ()) -> None:
        super().__init__(path, dtype, row_shape)
        self._blocks = bytearray()

    def tasks(self, rows: np.ndarray) -> tuple[Task | None, Task | None]:
        whole: Task | None = None
        parts: list[tuple[memoryview | bytes, int | None]] = []
        # The rest of an open block, whole blocks, the beginning of another.
        opened = min(len(rows), -self.row_count % HASHED_ROWS)
        ends = opened, opened + (len(rows) - opened) // HASHED_ROWS * HASHED_ROWS
        for first, last in pairwise((0, *ends, len(rows))):
            piece = rows[first:last]
            if not len(piece):
                continue
            if self.row_count % HASHED_ROWS == 0 and len(piece) >= HASHED_ROWS:
                slot = len(self._blocks)
                self._blocks += bytes(len(piece) // HASHED_ROWS * HASH_BYTES)
                whole = partial(self._hash_blocks, piece, slot)
            else:
                parts.append((_raw(piece), self._slot_after(len(piece))))
            self.row_count += len(piece)
        return whole, (partial(self._hash_parts, parts) if parts else None)

    def _slot_after(self, count: int) -> int | None:
        """Where the hash of the open block belongs if the next `count` rows complete it; None if they do not."""
        if (self.row_count + count) % HASHED_ROWS:
            return None
        self._blocks += bytes(HASH_BYTES)
        return len(self._blocks) - HASH_BYTES

    def _hash_blocks(self, rows: np.ndarray, slot: int) -> None:
        for first in range(0, len(rows), HASHED_ROWS):
            self._blocks[slot : slot + HASH_BYTES] = hashlib.sha256(_raw(rows[first : first + HASHED_ROWS])).digest()
            slot += HASH_BYTES

    def _hash_parts(self, parts: list[tuple[memoryview | bytes, int | None]]) -> None:
        for data, slot in parts:
            self._sha.update(data)
            if slot is not None:
                self._blocks[slot : slot + HASH_BYTES] = self._sha.digest()
                self._sha = hashlib.sha256()

    def update_strings(self, strings: Sequence[str]) -> None:
        done = 0
        while done < len(strings):
            count = min(len(strings) - done, HASHED_ROWS - self.row_count % HASHED_ROWS)
            self._hash_parts([(_encoded(strings[done : done + count]), self._slot_after(count))])
            self.row_count += count
            done += count

    def hexdigest(self) -> str:
        return hashlib.sha256(self.blocks).hexdigest()

    @property
    def blocks(self) -> bytes:
        last = self._sha.digest() if self.row_count % HASHED_ROWS else b""
        return bytes(self._blocks) + last


def _raw(rows: np.ndarray) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data


def _encoded(strings: Sequence[str]) -> bytes:
    return b"".join([string.encode() + b"\0" for string in strings])


def in_order(digests: Iterable[DatasetDigest]) -> list[DatasetDigest]:
    """The digests in the order of their lines."""
    return sorted(digests, key=lambda digest: digest.path.encode())


def excluded_groups(version: tuple[int, int]) -> tuple[str, ...]:
    """Groups of the root that are not hashed in a version of the format."""
    return ("timing",) if version[0] == 1 else ("timing", "content_hash")


def digest_class(version: tuple[int, int]) -> type[DatasetDigest]:
    """The digest of datasets in a version of the format."""
    return StreamDigest if version[0] == 1 else BlockDigest


def content_hash(digests: Iterable[DatasetDigest]) -> str:
    """The content hash of datasets, given in any order."""
    return hashlib.sha256(b"".join(digest.line() for digest in in_order(digests))).hexdigest()


def block_hashes(digests: Iterable[DatasetDigest]) -> np.ndarray:
    """uint8[blocks, 32]: the hashes of the blocks of all datasets, in the order of their lines."""
    joined = b"".join(digest.blocks for digest in in_order(digests))
    return np.frombuffer(joined, np.uint8).reshape(-1, HASH_BYTES)


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
    h5_files.AttributeRule("", "scene", h5_files.text),
    h5_files.AttributeRule("", "scene_sha256", h5_files.sha256),
    h5_files.AttributeRule("", "trajectory_sha256", h5_files.sha256_or_empty),
    h5_files.AttributeRule("", "config", h5_files.json_object),
    h5_files.AttributeRule("", "creator", h5_files.text),
    h5_files.AttributeRule("", "content_sha256", h5_files.sha256),
    h5_files.AttributeRule("/model", "gap_rule", h5_files.one_of(("max", "sum"))),
    h5_files.AttributeRule("/model", "up_axis", h5_files.one_of(("X", "Y", "Z"))),
    h5_files.AttributeRule("/model", "material_rule", h5_files.one_of(MATERIAL_RULES), required=False),  # since 1.1
    *(
        h5_files.AttributeRule(
            path, "unit", h5_files.one_of((unit, FRAME) if path == TIME else (unit,)), required=False
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
    return "" if value == "{}" else h5_files.json_object(value)


OF_ENGINES = (
    *(
        h5_files.AttributeRule(ENGINE_GROUP, name, h5_files.text)
        for name in ("name", "version", "interpreter", "float_type")
    ),
    h5_files.AttributeRule(ENGINE_GROUP, "options", json_mapping),
    h5_files.AttributeRule(ENGINE_GROUP, "stateful", _flag, required=False),
    h5_files.AttributeRule(ENGINE_GROUP, "point_rule", h5_files.one_of(POINT_RULES)),
    h5_files.AttributeRule(ENGINE_GROUP, "distance_rule", h5_files.one_of(DISTANCE_RULES)),
    h5_files.AttributeRule(ENGINE_GROUP, "reports_gap", _flag, required=False),
)
"""Rules of contact sets of another engine."""

SINCE_2 = (h5_files.AttributeRule("", BLOCK_ROWS_ATTRIBUTE, _block_rows),)
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
    return h5_files.attribute_faults(
        file, (*rules, *(h5_files.AttributeRule("/timing", name, h5_files.text_if_string) for name in names))
    )
