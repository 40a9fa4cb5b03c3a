"""The episodes of a batch that have a contact set, numbered and opened in order, for every output of `gather`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Any

import h5py
import numpy as np

from collidecli.batch.plan import Episode, NamedPair, Plan, check_one_world, pair_labels, parquet_bytes
from collidecli.batch.store import Store
from collidecli.batch.work import dataset_hash
from collidecli.commands.results import Progress
from collidecli.errors import InputError
from collidecli.exporters.arrays import ContactRows
from collidecli.exporters.selection import SelectedContacts, rows_of
from collidecli.importers.recordings.lerobot import episode_number
from collidecli.importers.recordings.recording import is_data_set
from collidecli.scene.tables import GROUPS_BY_NAME, RIGID_CONTACTS
from collidecli.scene.text_format import number_parts
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_body_rows, check_shape_rows
from collidecli.storage.flat_tables import TableColumn, record_batch, require_pyarrow
from collidecli.storage.process_activity import reading

AGAIN = "work on it with collide batch run"


@dataclass(frozen=True)
class DoneEpisode:
    """An episode with a contact set. index: its number in the order of job, recording and demonstration.

    Episodes that failed have numbers too, so that a later computation of them changes no other number. In a plan of
    one LeRobot data set, the index is that of the data set.
    """

    index: int
    episode: Episode

    @property
    def label(self) -> str:
        """Recording and demonstration, or the job of a scene that moves by itself."""
        return _label(self.episode)


@dataclass(frozen=True)
class EpisodeSize:
    """Content hash, and numbers of contacts, of rows of each other group and of frames, of an episode's contact set."""

    done: DoneEpisode
    content_sha256: str
    contacts: int
    groups: dict[str, int]
    frames: int


class Gathered:
    """The done episodes of a batch. sizes: of the contact sets that were opened. failed: number of failed episodes.

    is_data_set: whether the plan is of one job and one LeRobot data set.

    Raises InputError where an episode has neither a contact set nor a failure.
    """

    def __init__(self, store: Store, plan: Plan, progress: Progress = None) -> None:
        self.store, self._progress = store, progress
        self.sizes: list[EpisodeSize] = []
        keys, failures = set(store.results()), store.failures()
        done = []
        ordered = sorted(plan.episodes, key=lambda one: (one.job, one.motion, number_parts(one.demo)))
        self.is_data_set = len({(episode.job, episode.motion) for episode in ordered}) == 1 and all(
            is_data_set(episode.motion) and episode.demo for episode in ordered
        )
        left = [episode for episode in ordered if episode.key not in keys and episode.key not in failures]
        if left:
            what = f"{len(left)} of {len(ordered)} episodes have no contact set; the first is {_label(left[0])}"
            raise InputError(what, store.location, f"compute them with collide batch run {store.location}")
        for number, episode in enumerate(ordered):
            index = episode_number(episode.demo) if self.is_data_set else number
            if episode.key in keys:
                done.append(DoneEpisode(index, episode))
        self.episodes = tuple(done)
        self.failed = len(plan.episodes) - len(done)

    def __iter__(self) -> Iterator[tuple[DoneEpisode, ContactSet]]:
        """Every done episode with its open contact set."""
        for done in self.episodes:
            with self.open(done) as contacts:
                yield done, contacts

    @contextmanager
    def open(self, done: DoneEpisode) -> Iterator[ContactSet]:
        """The open contact set of an episode. Raises InputError for one that is damaged or was removed meanwhile."""
        location = self.store.result_location(done.episode.key)
        try:
            with self.store.result(done.episode.key) as path, reading("contact set", path):
                contacts = ContactSet.open(path)
                with contacts:
                    counts = contacts.contact_count, contacts.group_rows, frames_of(contacts)
                    self.sizes.append(EpisodeSize(done, contacts.content_sha256, *counts))
                    yield contacts
        except FileNotFoundError as error:
            raise InputError("was removed while it was gathered", location, AGAIN) from error
        if self._progress:
            self._progress(len(self.sizes), len(self.episodes))

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups of contacts beside the rigid ones that an opened contact set has, in the order of the format."""
        return tuple(name for name in GROUPS_BY_NAME if any(name in size.groups for size in self.sizes))

    @property
    def dataset_sha256(self) -> str:
        """Hash over the keys and content hashes of all opened contact sets."""
        return dataset_hash({size.done.episode.key: size.content_sha256 for size in self.sizes})


def _label(episode: Episode) -> str:
    return " ".join(filter(None, (episode.motion, episode.demo))) or episode.job


def frames_of(contacts: ContactSet) -> int:
    """Number of recorded frames: those of all demonstrations, or of the motion."""
    return int(contacts.episodes.frame_count.sum()) if contacts.episodes else contacts.frame_count


# Tables as numbered Parquet files of a least size, whose row groups end with an episode.

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false


PART_BYTES = 64 << 20
"""Least size of a file, except the last."""
GROUP_BYTES = 16 << 20
"""Least size of a row group in memory, except the last of a file."""
LARGE_GROUP_BYTES = 256 << 20
"""Size in memory of a row group that ends within an episode."""


class ParquetParts:
    """Parquet files that are written one after another; a context manager, whose exit completes the last.

    A file ends where it has PART_BYTES at the end of an episode, and where the columns change. A row group has
    GROUP_BYTES at least and ends with an episode; episodes of more than LARGE_GROUP_BYTES have several.
    name_of: path of a file for its number; its folder is created. about: metadata of each file.
    """

    def __init__(self, name_of: Callable[[int], str], about: Mapping[str, str] | None = None) -> None:
        self._pa = require_pyarrow("batch gather")
        self._name_of, self._about = name_of, dict(about or {})
        self.number = 0
        self._writer: Any = None
        self._file: Any = None
        self._held: list[Any] = []

    def __enter__(self) -> ParquetParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end_file()
        elif self._writer is not None:
            with suppress(OSError):  # the folder is discarded
                self._writer.close()
            self._file.close()

    def append(self, batch: Any) -> None:
        """Appends a record batch of pyarrow to the episode."""
        if self._held and self._held[0].schema != batch.schema:
            self._write_group()
        if self._writer is not None and not self._writer.schema.equals(batch.schema):
            self._end_file()
        if self._writer is None:
            path = self._name_of(self.number)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = open(path, "wb")  # noqa: SIM115 - closed with the writer
            schema = batch.schema.with_metadata(self._about)
            self._writer = self._pa.parquet.ParquetWriter(self._file, schema, compression="zstd")
        self._held.append(batch)
        if self._held_bytes() >= LARGE_GROUP_BYTES:
            self._write_group()

    def end_episode(self) -> None:
        """Ends an episode: the row group if it is large enough, and the file if it has enough bytes."""
        if self._held_bytes() >= GROUP_BYTES:
            self._write_group()
        if self._file is not None and self._file.tell() >= PART_BYTES:
            self._end_file()

    def _held_bytes(self) -> int:
        return sum(batch.nbytes for batch in self._held)

    def _write_group(self) -> None:
        table = self._pa.Table.from_batches(self._held).unify_dictionaries()
        self._held.clear()
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def _end_file(self) -> None:
        if self._writer is None:
            return
        if self._held:
            self._write_group()
        self._writer.close()
        self._file.close()
        self._writer = self._file = None
        self.number += 1


# Contacts of a batch in the layout of a LeRobot v3.0 data set: a row for each frame, contacts as lists.
#
# The layout is that of `lerobot.datasets` 0.4 (`utils.py`, `lerobot_dataset.py`): meta/info.json, meta/tasks.parquet,
# meta/episodes and data in numbered chunks of Parquet files. A feature of shape [-1] is a list of any length.

TO_LEROBOT = "--to lerobot"
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
        self._pa = require_pyarrow(TO_LEROBOT)
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
                check_one_world(contacts, done.label, TO_LEROBOT)
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
        rows = list(ContactRows(_everything(contacts)).blocks())
        held = {
            column.name: np.concatenate([np.zeros(0, _dtype(column)), *(block[column.name] for block in rows)])
            for column in self._columns
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
            file.write(parquet_bytes(table, TO_LEROBOT))

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
                "names": list(RIGID_CONTACTS.kinds) if column.name == "kind" else None,
            }
        return found


def _everything(contacts: ContactSet) -> SelectedContacts:
    return SelectedContacts(contacts, range(contacts.frame_count), np.arange(contacts.world_count), None)


def _dtype(column: TableColumn) -> np.dtype:
    """Type of the values; words (shape paths, kinds) are numbers."""
    return np.dtype(np.int32) if column.words is not None else column.dtype


# Contacts of a batch as a folder of Parquet files, a row per contact, and a table of its episodes.

CONTACTS = "contacts"
EPISODES = "episodes.parquet"
_LEFT_OUT = ("episode",)
"""Columns of a single contact set that the number of the episode replaces."""


def write_parquet(folder: str, gathered: Gathered) -> None:
    """Writes contacts-00000.parquet and further files, such files of every other group of contacts, and EPISODES."""
    tables: dict[str, ParquetParts] = {}
    with ExitStack() as stack:
        for done, contacts in gathered:
            for name in (CONTACTS, *contacts.groups):
                if name not in tables:
                    tables[name] = stack.enter_context(ParquetParts(partial(_part, folder, name)))
                for batch in _batches(contacts, name, done.episode.job, done.index):
                    tables[name].append(batch)
                tables[name].end_episode()
    table = require_pyarrow("batch gather").table(episode_columns(gathered))
    with open(os.path.join(folder, EPISODES), "wb") as file:
        file.write(parquet_bytes(table, "batch gather"))


def _part(folder: str, name: str, number: int) -> str:
    return os.path.join(folder, f"{name}-{number:05d}.parquet")


def episode_columns(gathered: Gathered) -> dict[str, list[Any]]:
    """A value for each gathered episode by column; a column with the number of rows for each group of contacts."""
    sizes = gathered.sizes
    columns: dict[str, list[Any]] = {"episode_index": [size.done.index for size in sizes]}
    for name in ("key", "job", "motion", "demo"):
        columns[name] = [getattr(size.done.episode, name) for size in sizes]
    for name in ("frames", "contacts"):
        columns[name] = [getattr(size, name) for size in sizes]
    for name in gathered.group_names:
        columns[name] = [size.groups.get(name, 0) for size in sizes]
    columns["content_sha256"] = [size.content_sha256 for size in sizes]
    return columns


def _batches(contacts: ContactSet, name: str, job: str, index: int) -> Iterator[Any]:
    """The rows of `collide export --to parquet`, of CONTACTS or of the group `name`.

    job and episode_index are added; frame_index is in place of frame. The first batch has no rows, so that episodes
    without contacts have columns.
    """
    everything = _everything(contacts)
    rows = ContactRows(everything if name == CONTACTS else rows_of(everything, name))
    columns = (
        TableColumn("job", np.dtype(np.int32), words=(job,)),
        TableColumn("episode_index", np.dtype(np.int64)),
        *(
            replace(column, name="frame_index") if column.name == "frame" else column
            for column in rows.columns
            if column.name not in _LEFT_OUT
        ),
    )
    yield record_batch(columns, {column.name: np.zeros(0, column.dtype) for column in columns})
    for block in rows.blocks():
        count = len(block["frame"])
        own = {"job": np.zeros(count, np.int32), "episode_index": np.full(count, index, np.int64)}
        yield record_batch(columns, {**own, **block, "frame_index": block["frame"]})


# Contacts of a batch as HDF5 files beside robomimic's recordings: one per recording, with its names and frames.

FORMAT = "collide-robomimic-contacts"
TO_ROBOMIMIC = "--to robomimic"


def write_robomimic(folder: str, gathered: Gathered, pairs: Sequence[NamedPair]) -> None:
    """Writes `<job>/<path of the recording below the folder that has all of the job>` for each recording.

    Raises InputError for an episode that is no demonstration of an HDF5 file, or has several worlds.
    """
    for done in gathered.episodes:
        if not done.episode.demo or not h5py.is_hdf5(done.episode.motion):
            what = "is no demonstration of an HDF5 recording, and robomimic's files consist of them"
            raise InputError(what, done.label, "use --to parquet or --to lerobot")
    for job, of_job in groupby(gathered.episodes, key=lambda done: done.episode.job):
        held = list(of_job)
        below = os.path.commonpath([os.path.dirname(done.episode.motion) for done in held])
        for motion, episodes in groupby(held, key=lambda done: done.episode.motion):
            path = os.path.join(folder, folder_name(job), os.path.relpath(motion, below))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with h5py.File(path, "w") as file:
                _write_recording(file, list(episodes), gathered, pairs)


def folder_name(job: str) -> str:
    """The name of a job as that of a folder. Raises InputError for a name that cannot be one, in a changed plan."""
    if os.path.basename(job) != job or job in (".", "..") or "\0" in job:
        raise InputError(f"the job '{job}' cannot be the name of a folder", "name", "give the job another name")
    return job


def _write_recording(
    file: h5py.File, episodes: Sequence[DoneEpisode], gathered: Gathered, pairs: Sequence[NamedPair]
) -> None:
    first = episodes[0].episode
    file.attrs["format"], file.attrs["format_version"] = FORMAT, np.array((1, 0), np.int32)
    file.attrs["recording"], file.attrs["recording_sha256"] = first.motion, first.motion_sha256
    for done in episodes:
        with gathered.open(done) as contacts:
            check_one_world(contacts, done.label, TO_ROBOMIMIC)
            demo = file.create_group(f"data/{done.episode.demo}")
            demo.attrs["num_samples"] = contacts.frame_count
            demo.attrs["key"], demo.attrs["content_sha256"] = done.episode.key, contacts.content_sha256
            _write_contacts(demo.create_group("contacts"), contacts)
            if pairs:
                group = demo.create_group("pairs")
                group.attrs["names"] = [pair.name for pair in pairs]
                group["touching"], group["distance"] = pair_labels(contacts, pairs)
                group["distance"].attrs["unit"] = "m"


def _write_contacts(group: h5py.Group, contacts: ContactSet) -> None:
    """The contacts of frame f are rows contact_start[f] to contact_start[f + 1] - 1 of every other dataset."""
    check_body_rows(contacts)
    group["contact_start"] = contacts.cell_start()
    group.create_dataset("shape_path", data=list(contacts.shapes.path), dtype=h5py.string_dtype())
    group.attrs["kinds"] = RIGID_CONTACTS.kinds
    made = {}
    for column in contacts.columns:
        shape = (contacts.contact_count, *((column.width,) if column.width > 1 else ()))
        dtype = column.dtype_for(contacts.float_type)
        packing = {"chunks": True, "compression": "gzip", "shuffle": True} if contacts.contact_count else {}
        made[column.name] = group.create_dataset(column.name, shape, dtype, **packing)
        if column.unit:
            made[column.name].attrs["unit"] = column.unit
    row = 0
    for block in contacts.blocks(names=tuple(made)):
        check_shape_rows(contacts, block)
        for name, dataset in made.items():
            dataset[row : row + block.contact_count] = block.columns[name]
        row += block.contact_count
