"""Contacts of a batch in the layout of a LeRobot v3.0 data set: a row for each frame, contacts as lists.

The layout is that of `lerobot.datasets` 0.4 (`utils.py`, `lerobot_dataset.py`): meta/info.json, meta/tasks.parquet,
meta/episodes and data in numbered chunks of Parquet files. A feature of shape [-1] is a list of any length.
"""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from collidecli.batch.episodes import parquet_bytes
from collidecli.batch.gathered import DoneEpisode, Gathered
from collidecli.batch.pair_labels import NamedPair, check_one_world, pair_labels
from collidecli.batch.parquet_parts import ParquetParts
from collidecli.errors import InputError
from collidecli.exporters.rows import ContactRows
from collidecli.exporters.selection import KINDS, SelectedContacts
from collidecli.importers.recordings.recording_files import is_data_set
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import TableColumn, require_pyarrow

TO = "--to lerobot"
VERSION = "v3.0"
FILES_PER_CHUNK = 1000
"""LeRobot's DEFAULT_CHUNK_SIZE."""
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
EPISODES_PATH = "meta/episodes/chunk-000/file-000.parquet"
RATE_TOLERANCE = 1e-3
"""Relative difference of frame rates that are equal."""
_PLACE = ("frame", "step", "time", "world", "episode", "body0", "body1")
"""Columns of a row per contact that the frame or the shape gives."""


def write_lerobot(folder: str, gathered: Gathered, pairs: Sequence[NamedPair]) -> None:
    """Writes data, and meta with the table of shapes that the lists of contacts refer to.

    Raises InputError for an episode of several worlds, other columns or another frame rate.
    """
    source = next((done for done in gathered.episodes if is_data_set(done.episode.motion)), None)
    if source is not None and not gathered.is_data_set:
        what = "is a LeRobot data set beside other jobs or recordings, whose episodes have the same numbers"
        raise InputError(what, source.episode.motion, "plan it alone, in a folder of its own")
    _Sidecar(folder, gathered, pairs).write()


class _Sidecar:
    def __init__(self, folder: str, gathered: Gathered, pairs: Sequence[NamedPair]) -> None:
        self._folder, self._gathered, self._pairs = folder, gathered, pairs
        self._pa = require_pyarrow(TO)
        self._tasks: dict[str, int] = {}
        self._shapes: dict[str, int] = {}
        self._columns: tuple[TableColumn, ...] = ()
        self._first = ""
        self._rate = 0.0
        self._rows: list[dict[str, Any]] = []
        self._frames = 0

    def write(self) -> None:
        with ParquetParts(self._path_of) as parts:
            for done, contacts in self._gathered:
                check_one_world(contacts, done.label, TO)
                self._check_alike(done, contacts)
                chunk, file = divmod(parts.number, FILES_PER_CHUNK)
                for batch in self._batches(done, contacts):
                    parts.append(batch)
                self._add_episode(done, contacts, chunk, file)
                parts.end_episode()
        self._write_table(EPISODES_PATH, self._pa.Table.from_pylist(self._rows, self._episode_schema()))
        self._write_tasks()
        paths = self._pa.array(self._shapes, self._pa.string())
        self._write_table("meta/shapes.parquet", self._pa.table({"shape_index": range(len(paths)), "path": paths}))
        with open(os.path.join(self._folder, "meta", "info.json"), "w", encoding="utf-8") as file:
            json.dump(self._info(), file, indent=4)

    def _path_of(self, number: int) -> str:
        chunk, file = divmod(number, FILES_PER_CHUNK)
        return os.path.join(self._folder, DATA_PATH.format(chunk_index=chunk, file_index=file))

    def _check_alike(self, done: DoneEpisode, contacts: ContactSet) -> None:
        """Raises InputError for columns or a frame rate that differ from those of the first episode."""
        rows = ContactRows(_everything(contacts))
        columns = tuple(column for column in rows.columns if column.name not in _PLACE)
        steps = np.diff(contacts.time)
        rate = 1.0 / float(np.median(steps)) if len(steps) and np.median(steps) > 0.0 else 0.0
        if not self._first:
            self._columns, self._first = columns, done.label
        ours, theirs = ({(one.name, one.dtype) for one in held} for held in (columns, self._columns))
        if ours != theirs:
            names = ", ".join(sorted({name for name, _ in ours ^ theirs}))
            raise InputError(f"differs from {self._first} in the columns {names}", done.label, "gather each job alone")
        if rate and self._rate and abs(rate / self._rate - 1.0) > RATE_TOLERANCE:
            what = f"has {rate:g} frames per second, and {self._first} has {self._rate:g}"
            raise InputError(what, done.label, "a LeRobot data set has one rate: gather each job alone")
        self._rate = self._rate or rate

    def _batches(self, done: DoneEpisode, contacts: ContactSet) -> Iterator[Any]:
        """Record batches of an episode, a row for each frame."""
        touching, distance = pair_labels(contacts, self._pairs)
        time = (contacts.time - contacts.time[:1]).astype(np.float32)
        index = np.array([self._shapes.setdefault(p, len(self._shapes)) for p in contacts.shapes.path], np.int32)
        task = self._tasks.setdefault(done.episode.job, len(self._tasks))
        rows = ContactRows(_everything(contacts)).blocks()
        held = {
            column.name: np.concatenate([np.zeros(0, _dtype(column)), *values])
            for column, values in zip(self._columns, _by_column(rows, self._columns), strict=True)
        }
        for name in ("shape0", "shape1"):
            held[name] = index[held[name]]
        start = self._pa.array(contacts.cell_start().astype(np.int32))
        count = contacts.frame_count
        arrays = {
            "index": np.arange(self._frames, self._frames + count),
            "episode_index": np.full(count, done.index, np.int64),
            "frame_index": np.arange(count),
            "timestamp": time,
            "task_index": np.full(count, task, np.int64),
        }
        found = {name: self._pa.array(values) for name, values in arrays.items()}
        if self._pairs:
            found |= {"contact.pair_touching": self._fixed(touching), "contact.pair_distance": self._fixed(distance)}
        for column in self._columns:
            values = self._pa.array(np.ascontiguousarray(held[column.name], _dtype(column)))
            found[f"contact.{column.name}"] = self._pa.ListArray.from_arrays(start, values)
        yield self._pa.RecordBatch.from_pydict(found)

    def _fixed(self, values: np.ndarray) -> Any:
        """[F, P] as a column: lists of P values, or plain values for one, as LeRobot has features of shape [1]."""
        flat = self._pa.array(values.reshape(-1))
        return flat if values.shape[1] == 1 else self._pa.FixedSizeListArray.from_arrays(flat, values.shape[1])

    def _add_episode(self, done: DoneEpisode, contacts: ContactSet, chunk: int, file: int) -> None:
        first = self._frames
        self._frames += contacts.frame_count
        self._rows.append(
            {
                "episode_index": done.index,
                "tasks": [done.episode.job],
                "length": contacts.frame_count,
                "data/chunk_index": chunk,
                "data/file_index": file,
                "dataset_from_index": first,
                "dataset_to_index": self._frames,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                "motion": done.episode.motion,
                "demo": done.episode.demo,
                "content_sha256": contacts.content_sha256,
            }
        )

    def _episode_schema(self) -> Any:
        pa = self._pa
        names = ("data/chunk_index", "data/file_index", "dataset_from_index", "dataset_to_index")
        names += ("meta/episodes/chunk_index", "meta/episodes/file_index")
        places = [(name, pa.int64()) for name in names]
        texts = [(name, pa.string()) for name in ("motion", "demo", "content_sha256")]
        kinds = [("episode_index", pa.int64()), ("tasks", pa.list_(pa.string())), ("length", pa.int64())]
        return pa.schema([*kinds, *places, *texts])

    def _write_tasks(self) -> None:
        """The table of tasks as pandas writes it, with the task as its index: LeRobot reads it by pandas."""
        table = self._pa.table({"task_index": list(self._tasks.values()), "__index_level_0__": list(self._tasks)})
        about = {
            "index_columns": ["__index_level_0__"],
            "column_indexes": [],
            "columns": [
                {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"},
                {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object"},
            ],
        }
        self._write_table("meta/tasks.parquet", table.replace_schema_metadata({"pandas": json.dumps(about)}))

    def _write_table(self, name: str, table: Any) -> None:
        path = os.path.join(self._folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(parquet_bytes(table, TO))

    def _info(self) -> dict[str, Any]:
        whole = round(self._rate)
        near = whole and abs(self._rate / whole - 1.0) <= RATE_TOLERANCE
        last = max((done.index for done in self._gathered.episodes), default=-1)
        return {
            "codebase_version": VERSION,
            "robot_type": None,
            "total_episodes": len(self._rows),
            "total_frames": self._frames,
            "total_tasks": len(self._tasks),
            "chunks_size": FILES_PER_CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": whole if near else self._rate,
            "splits": {"train": f"0:{last + 1}"},
            "data_path": DATA_PATH,
            "video_path": None,
            "features": self._features(),
        }

    def _features(self) -> dict[str, Any]:
        scalars = {"timestamp": "float32"} | dict.fromkeys(
            ("frame_index", "episode_index", "index", "task_index"), "int64"
        )
        found = {name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in scalars.items()}
        names = [pair.name for pair in self._pairs]
        if names:
            for name, dtype in (("touching", "bool"), ("distance", "float32")):
                found[f"contact.pair_{name}"] = {"dtype": dtype, "shape": [len(names)], "names": names}
        for column in self._columns:
            found[f"contact.{column.name}"] = {
                "dtype": _dtype(column).name,
                "shape": [-1],
                "names": list(KINDS) if column.name == "kind" else None,
            }
        return found


def _everything(contacts: ContactSet) -> SelectedContacts:
    return SelectedContacts(contacts, range(contacts.frame_count), np.arange(contacts.world_count), None)


def _dtype(column: TableColumn) -> np.dtype:
    """Type of the values; words (shape paths, kinds) are numbers."""
    return np.dtype(np.int32) if column.words is not None else column.dtype


def _by_column(blocks: Iterator[dict[str, np.ndarray]], columns: Sequence[TableColumn]) -> list[list[np.ndarray]]:
    held: list[list[np.ndarray]] = [[] for _ in columns]
    for block in blocks:
        for values, column in zip(held, columns, strict=True):
            values.append(block[column.name])
    return held
