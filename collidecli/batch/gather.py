"""The verb `batch gather`: the contact sets of a batch in other formats."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import h5py
import numpy as np

from collidecli.analysis.touches import LabelRule
from collidecli.batch.plan import Episode, Plan, check_one_world, parquet_bytes
from collidecli.batch.store import RECORD, Store, output_folder, read_record, write_record
from collidecli.batch.work import History, counts_of, dataset_hash
from collidecli.commands.label import PAIR_LABELS, LabelOptions, NamedPairs
from collidecli.commands.merge import MergePlan, episodes_of_worlds, merge_episodes
from collidecli.commands.results import HDF5_ENDINGS, Progress, Result, check_ending
from collidecli.errors import InputError, OutputError
from collidecli.exporters.layouts import LeRobotWriter
from collidecli.exporters.rows import GROUP_BYTES, ContactRows, ParquetParts, SelectedContacts, rows_of
from collidecli.importers.recordings.lerobot import episode_number
from collidecli.importers.recordings.recording import is_data_set
from collidecli.scene.motion import Episodes
from collidecli.scene.tables import GROUPS_BY_NAME, RIGID_CONTACTS
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.check import check_body_rows, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet, is_complete
from collidecli.storage.contact_sets.writer import check_groups
from collidecli.storage.files import is_url
from collidecli.storage.process_activity import reading
from collidecli.storage.result_files import TableColumn, record_batch, require_pyarrow
from collidecli.system import TemporaryFolder
from collidecli.texts import number_parts

# The episodes that have a contact set, numbered and opened in order, for every output of `gather`.

AGAIN = "work on it with collide batch run"
SAMPLE, MOST_SAMPLES = 100, 500
"""Of so many contact sets, one is opened with all checks, of large batches so many in all; the others are trusted to be
as `run` wrote them."""


@dataclass(frozen=True)
class DoneEpisode:
    """An episode with a contact set. index: its number in the order of job, recording and demonstration.

    Episodes that failed have numbers too, so that a later computation of them changes no other number. In a plan of
    one LeRobot data set, the index is that of the data set.
    """

    index: int
    episode: Episode


class Gathered:
    """The done episodes of a batch, and the number of failed ones.

    job: only its episodes, else all. slot: k and n, of these the k-th of n parts, in order. is_data_set: whether all
    are of one job and one LeRobot data set. keys_sha256: hash over the keys of the parts of all slots. sizes: of the
    contact sets [bytes], by key.
    Raises InputError for an unknown job, and where an episode has neither a contact set nor a failure.
    """

    def __init__(
        self, store: Store, plan: Plan, progress: Progress = None, job: str = "", slot: tuple[int, int] = (0, 1)
    ) -> None:
        self.store, self._progress = store, progress
        self._rows: list[dict[str, Any]] = []
        self._like: ContactSet | None = None
        if job and job not in plan.requests:
            fix = f"its jobs: {', '.join(plan.requests)}"
            raise InputError(f"the batch {store.location} has no job '{job}'", "--job", fix)
        self.sizes, failures = store.results(), store.failures()
        done = []
        chosen = (episode for episode in plan.episodes if job in ("", episode.job))
        ordered = sorted(chosen, key=lambda item: (item.job, item.motion, number_parts(item.demo)))
        self.is_data_set = len({(episode.job, episode.motion) for episode in ordered}) == 1 and all(
            is_data_set(episode.motion) and episode.demo for episode in ordered
        )
        left = [episode for episode in ordered if episode.key not in self.sizes and episode.key not in failures]
        if left:
            what = f"{len(left)} of {len(ordered)} episodes have no contact set; the first is {left[0].label}"
            raise InputError(what, store.location, f"compute them with collide batch run {store.location}")
        for number, episode in enumerate(ordered):
            index = episode_number(episode.demo) if self.is_data_set else number
            if episode.key in self.sizes:
                done.append(DoneEpisode(index, episode))
        first, end = (len(done) * part // slot[1] for part in (slot[0], slot[0] + 1))
        self.episodes = tuple(done[first:end])
        self.keys_sha256 = dataset_hash({item.episode.key: str(item.index) for item in done})
        self.failed = len(ordered) - len(done)

    def __iter__(self) -> Iterator[tuple[DoneEpisode, ContactSet]]:
        """Every done episode with its open contact set."""
        for done in self.episodes:
            with self.open(done) as contacts:
                yield done, contacts

    @contextmanager
    def open(self, done: DoneEpisode) -> Iterator[ContactSet]:
        """The open contact set of an episode. Raises InputError for one that is damaged or was removed meanwhile."""
        with self._path(done) as path, self._opened(done, path) as contacts:
            yield contacts
            if not is_complete(contacts.file):
                raise InputError("the contact set is incomplete: its writer was stopped", contacts.file.filename, AGAIN)
            self._append(done, str(contacts.file.attrs["content_sha256"]), counts_of(contacts.file))

    def _opened(self, done: DoneEpisode, path: str) -> ContactSet:
        """Checks the whole file, of the first set of a job and of one in SAMPLE; the others are trusted."""
        checked = self._is_checked(done)
        self._like = ContactSet.open(path) if checked else ContactSet(h5py.File(path), path, True, self._like)
        return self._like

    def _is_checked(self, done: DoneEpisode) -> bool:
        last = self._rows[-1]["done"].episode.job if self._rows else ""
        every = max(SAMPLE, len(self.episodes) // MOST_SAMPLES)
        return last != done.episode.job or len(self._rows) % every == 0

    def measure(self) -> None:
        """Adds all episodes to `table`, as the logs of the batch have them where these have the size of the file.

        Raises InputError where a log and an opened contact set differ.
        """
        logged = History(self.store.logs(), {}).results
        for done in self.episodes:
            key = done.episode.key
            event = logged.get(key, {})
            is_logged = event.get("bytes") == self.sizes[key]
            if is_logged and not self._is_checked(done):
                self._append(done, event["content_sha256"], event["counts"])
                continue
            with self.open(done):
                pass
            logged_row = {"done": done, "content_sha256": event.get("content_sha256"), **event.get("counts", {})}
            if is_logged and self._rows[-1] != logged_row:
                what = "has another content hash, or other numbers of rows, than its log"
                raise InputError(what, self.store.result_location(key), AGAIN)

    def _append(self, done: DoneEpisode, content_sha256: str, counts: Mapping[str, int]) -> None:
        self._rows.append({"done": done, "content_sha256": content_sha256, **counts})
        if self._progress:
            self._progress(len(self._rows), len(self.episodes))

    def jobs(self) -> Iterator[tuple[str, list[DoneEpisode], str]]:
        """Name, episodes and folder of each job. Folder: the one that contains all recordings of the job.

        Raises InputError for a name that cannot be that of a folder, in a changed plan.
        """
        for job, of_job in groupby(self.episodes, key=lambda done: done.episode.job):
            if os.path.basename(job) != job or job in (".", "..") or "\0" in job:
                raise InputError(f"the job '{job}' cannot be the name of a folder", "name", "give the job another name")
            episodes = list(of_job)
            yield job, episodes, os.path.commonpath([os.path.dirname(done.episode.motion) for done in episodes])

    def most_contacts(self, done: DoneEpisode) -> int:
        """Largest number of rigid contacts of a frame of an episode of one world."""
        with self._path(done) as path, h5py.File(path) as file:
            starts: Any = file[f"{RIGID_CONTACTS.name}/cell_start"]
            return int(np.diff(starts[:]).max(initial=0))

    @contextmanager
    def _path(self, done: DoneEpisode) -> Iterator[str]:
        """A local path of the contact set of an episode. Raises InputError as `open`."""
        try:
            with self.store.result(done.episode.key) as path, reading("contact set", path):
                yield path
        except FileNotFoundError as error:
            location = self.store.result_location(done.episode.key)
            raise InputError("was removed while it was gathered", location, AGAIN) from error

    @property
    def table(self) -> Any:
        """A table of pyarrow with a row per read contact set; a column with the rows of each group that any has."""
        columns: dict[str, list[Any]] = {"episode_index": [row["done"].index for row in self._rows]}
        for name in ("key", "job", "motion", "demo"):
            columns[name] = [getattr(row["done"].episode, name) for row in self._rows]
        for name in ("content_sha256", "contacts", *GROUPS_BY_NAME, "frames"):
            if name not in GROUPS_BY_NAME or any(name in row for row in self._rows):
                columns[name] = [row.get(name, 0) for row in self._rows]
        return require_pyarrow("batch gather").table(columns)


# Contacts of a batch in the layout of a LeRobot data set: a row for each frame, features of one size.

ORIGINAL = "original_episode_index"
_SHAPES = ("shape0", "shape1")
_PLACE = ("frame", "step", "time", "world", "episode", "body0", "body1")
"""Columns of a row per contact that the frame or the shape gives."""


def write_lerobot(folder: str, gathered: Gathered, pairs: NamedPairs) -> None:
    """Writes data, and meta with the table of shapes that the contacts refer to.

    Raises InputError for an episode of several worlds, other columns or another frame rate, and where none is done.
    """
    if not gathered.episodes:
        raise InputError("has no contact set, and a LeRobot data set has a frame", gathered.store.location, AGAIN)
    width = max(1, *map(gathered.most_contacts, gathered.episodes))
    shapes: dict[str, int] = {}
    data = LeRobotWriter(folder, {f"contact.pair_{name}": pairs.names for name in PAIR_LABELS})
    for done, contacts in gathered:
        check_one_world(contacts, done.episode.label, "--to lerobot")
        about = {name: getattr(done.episode, name) for name in ("motion", "demo")}
        about |= {ORIGINAL: done.index, "content_sha256": contacts.content_sha256}
        index = np.array([shapes.setdefault(path, len(shapes)) for path in contacts.shapes.path], np.int32)
        labels = pairs.labels(contacts) if pairs.names else {}
        rows = (
            {ORIGINAL: np.full(len(of["contact.count"]), done.index), **of}
            for of in _features(contacts, labels, width, index)
        )
        data.add(done.episode.job, contacts.time, rows, about, done.episode.label)
    data.close({"shape_index": range(len(shapes)), "path": list(shapes)})


def _features(
    contacts: ContactSet, labels: Mapping[str, np.ndarray], width: int, index: np.ndarray
) -> Iterator[dict[str, np.ndarray]]:
    """Contacts and labels of pairs, [n] or [n, width], of some frames at a time. index: numbers of the shapes.

    The contacts of a frame are followed by 0, or -1 for the number of a shape, up to the width.
    """
    rows, joined = ContactRows(_everything(contacts)), dict[str, np.ndarray]()
    blocks = list(rows.blocks())
    for column in (column for column in rows.columns if column.name not in _PLACE):
        dtype = np.dtype(np.int32) if column.words is not None else column.dtype
        column_values = np.concatenate([np.zeros(0, dtype), *(block[column.name] for block in blocks)], dtype=dtype)
        joined[column.name] = index[column_values] if column.name in _SHAPES else column_values
    start, step = contacts.cell_start(), max(1, GROUP_BYTES // (8 * width * len(joined)))
    for first in range(0, contacts.frame_count, step):
        ends = start[first : first + step + 1]
        features = {"contact.count": np.diff(ends)}
        features |= {f"contact.pair_{name}": values[first : first + step] for name, values in labels.items()}
        for name, values in joined.items():
            padded = np.full((len(ends) - 1, width), -(name in _SHAPES), values.dtype)
            padded[np.arange(width) < np.diff(ends)[:, None]] = values[ends[0] : ends[-1]]
            features[f"contact.{name}"] = padded
        yield features


def _everything(contacts: ContactSet) -> SelectedContacts:
    return SelectedContacts(contacts, range(contacts.frame_count), np.arange(contacts.world_count), None)


# Contacts of a batch as a folder of Parquet files, a row per contact, and a table of its episodes.

CONTACTS = "contacts"
EPISODES = "episodes.parquet"
READ_ME = "README.md"
AHEAD = 16
"""Number of batches of rows that are read and not yet written."""
_LEFT_OUT = ("episode",)
"""Columns of a single contact set that the number of the episode replaces."""


def write_parquet(folder: str, gathered: Gathered) -> None:
    """Writes contacts-00000.parquet and further files, such files of every other group of contacts, and EPISODES.

    A thread writes what this one reads.
    """
    tables, steps = dict[str, ParquetParts](), deque[Future[None]]()
    with ThreadPoolExecutor(1) as thread:

        def later(step: Callable[..., None], *arguments: Any) -> None:
            steps.append(thread.submit(step, *arguments))
            if len(steps) > AHEAD:
                steps.popleft().result()

        for done, contacts in gathered:
            for name in (CONTACTS, *contacts.groups):
                path = os.path.join(folder, name)
                parts = tables.setdefault(name, ParquetParts(lambda number, path=path: f"{path}-{number:05d}.parquet"))
                for batch in _batches(contacts, name, done.episode.job, done.index):
                    later(parts.append, batch)
                later(parts.end_episode)
        for parts in tables.values():
            later(parts.close)
        for step in steps:
            step.result()
    write_tables(folder, gathered.table)


def write_tables(folder: str, episodes: Any, parts: str = "") -> None:
    """Writes EPISODES and a README.md that tells the package `datasets` of Hugging Face which files are a table.

    episodes: table of pyarrow. parts: pattern of the folders with the files of contacts, relative, with a slash.
    """
    names = [CONTACTS, *(name for name in GROUPS_BY_NAME if name in episodes.column_names)] if len(episodes) else []
    configs = [{"config_name": n, "data_files": f"{parts}{n}-*.parquet", "default": n == CONTACTS} for n in names]
    card = json.dumps({"configs": [*configs, {"config_name": "episodes", "data_files": EPISODES}]}, indent=2)
    with open(os.path.join(folder, EPISODES), "wb") as file:
        file.write(parquet_bytes(episodes, "batch gather"))
    with open(os.path.join(folder, READ_ME), "w", encoding="utf-8") as file:
        file.write(f"---\n{card}\n---\n# Contacts of a batch of collide\n")


def _batches(contacts: ContactSet, name: str, job: str, index: int) -> Iterator[Any]:
    """The rows of `collide export --to parquet`, of CONTACTS or of the group `name`.

    job and episode_index are added; frame_index is in place of frame. Without contacts, a batch has columns alone.
    """
    everything = _everything(contacts)
    selected = everything if name == CONTACTS else rows_of(everything, name)
    rows = ContactRows(selected)
    columns = (
        TableColumn("job", np.dtype(np.int32), words=(job,)),
        TableColumn("episode_index", np.dtype(np.int64)),
        *(
            replace(column, name="frame_index") if column.name == "frame" else column
            for column in rows.columns
            if column.name not in _LEFT_OUT
        ),
    )
    if not selected.contact_count:
        yield record_batch(columns, {column.name: np.zeros(0, column.dtype) for column in columns})
    for block in rows.blocks():
        count = len(block["frame"])
        identity = {"job": np.zeros(count, np.int32), "episode_index": np.full(count, index, np.int64)}
        yield record_batch(columns, {**identity, **block, "frame_index": block["frame"]})


# Contacts of a batch as HDF5 files beside robomimic's recordings: one per recording, with its names and frames.

FORMAT = "collide-robomimic-contacts"


def write_robomimic(folder: str, gathered: Gathered, pairs: NamedPairs) -> None:
    """Writes `<job>/<path of the recording below the folder that has all of the job>` for each recording.

    Raises InputError for an episode that is no demonstration of an HDF5 file, or has several worlds.
    """
    for done in gathered.episodes:
        motion = done.episode.motion
        is_hdf5 = motion.endswith(HDF5_ENDINGS) if is_url(motion) else h5py.is_hdf5(motion)
        if not done.episode.demo or not is_hdf5:
            what = "is no demonstration of an HDF5 recording, and robomimic's files consist of them"
            raise InputError(what, done.episode.label, "use --to parquet or --to lerobot")
    for job, of_job, below in gathered.jobs():
        for motion, episodes in groupby(of_job, key=lambda done: done.episode.motion):
            path = os.path.join(folder, job, os.path.relpath(motion, below))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with h5py.File(path, "w") as file:
                _write_recording(file, list(episodes), gathered, pairs)


def _write_recording(file: h5py.File, episodes: Sequence[DoneEpisode], gathered: Gathered, pairs: NamedPairs) -> None:
    first = episodes[0].episode
    file.attrs["format"], file.attrs["format_version"] = FORMAT, np.array((1, 0), np.int32)
    file.attrs["recording"], file.attrs["recording_sha256"] = first.motion, first.motion_sha256
    for done in episodes:
        with gathered.open(done) as contacts:
            check_one_world(contacts, done.episode.label, "--to robomimic")
            demo = file.create_group(f"data/{done.episode.demo}")
            demo.attrs["num_samples"] = contacts.frame_count
            demo.attrs["key"], demo.attrs["content_sha256"] = done.episode.key, contacts.content_sha256
            _write_contacts(demo.create_group("contacts"), contacts)
            if pairs.names:
                group = demo.create_group("pairs")
                group.attrs["names"] = pairs.names
                for name, values in pairs.labels(contacts).items():
                    group[name] = values
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


# Contact sets of a batch merged to fewer, larger ones, in which every episode is a world of its own.

SHARD_BYTES = 64 << 20
"""Least size of the contact sets that are merged to one, except the last ones of a job."""
MOST_SETS = 256
"""Number of contact sets that are open at a time: systems limit open files to 1024."""


def write_merged_shards(folder: str, gathered: Gathered) -> None:
    """Writes `<job>/shard-00000.h5` and further contact sets, each of episodes of one job.

    Raises InputError for episodes of a job whose scenes, options or times differ.
    """
    for job, episodes, below in gathered.jobs():
        os.makedirs(os.path.join(folder, job), exist_ok=True)
        for number, shard in enumerate(_shards(gathered, episodes)):
            names = [_name(done, below) for done in shard]
            with ExitStack() as stack:
                sets = [stack.enter_context(gathered.open(done)) for done in shard]
                for contact_set in sets:
                    check_groups(contact_set)
                output = os.path.join(folder, job, f"shard-{number:05d}.h5")
                plan = _plan(sets, shard)
                merge_episodes(sets, plan, _episodes(sets, names, plan), output)


def _shards(gathered: Gathered, episodes: Sequence[DoneEpisode]) -> Iterator[list[DoneEpisode]]:
    shard, size = list[DoneEpisode](), 0
    for done in episodes:
        size += gathered.sizes[done.episode.key]
        shard.append(done)
        if size >= SHARD_BYTES or len(shard) == MOST_SETS:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def _name(done: DoneEpisode, below: str) -> str:
    """Path of the recording below the folder of all, without extension, and the demonstration; else the job."""
    motion = os.path.splitext(os.path.relpath(done.episode.motion, below))[0] if done.episode.motion else ""
    return "/".join(filter(None, (motion, done.episode.demo))) or done.episode.job


def _plan(sets: Sequence[ContactSet], shard: Sequence[DoneEpisode]) -> MergePlan:
    """Worlds in the order of the sets; frames from each set's first. Raises InputError for other times or steps."""
    longest = max(sets, key=lambda contact_set: contact_set.frame_count)
    for contact_set, done in zip(sets, shard, strict=True):
        for name in ("step", "time"):
            ours, theirs = getattr(contact_set, name), getattr(longest, name)[: contact_set.frame_count]
            if not np.array_equal(ours, theirs):
                frame = int(np.argmax(ours != theirs))
                what = f"frame {frame} has {name} {ours[frame]:g}, and another episode has {theirs[frame]:g}"
                fix = "one contact set has one time for each frame: use --to parquet, or run with --fps"
                raise InputError(what, done.episode.label, fix)
    counts = [contact_set.world_count for contact_set in sets]
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    frames = tuple(np.arange(contact_set.frame_count) for contact_set in sets)
    return MergePlan(frames, first, sum(counts), longest.step, longest.time)


def _episodes(sets: Sequence[ContactSet], names: Sequence[str], plan: MergePlan) -> Episodes:
    """Each world of a set as an episode; names that are not unique end with `#` and the merged world."""
    parts = []
    for contact_set, name in zip(sets, names, strict=True):
        world = np.arange(contact_set.world_count)
        parts.append(Episodes((name,) * len(world), world, world * 0, world * 0 + contact_set.frame_count))
    return episodes_of_worlds(parts, plan.first_world)


@dataclass(frozen=True)
class GatherRequest:
    """to: MANIFEST or one of FORMATS. pairs: see `NamedPairs`. job: only its episodes, else all.

    enter, leave, min_frames: when a pair touches, see `LabelOptions`. slot: k and n, the k-th of n parts of a folder of
    Parquet; None is all of it.
    """

    to: str
    output: str
    force: bool = False
    pairs: tuple[tuple[str, str], ...] = ()
    job: str = ""
    slot: tuple[int, int] | None = None
    enter: float = 0.0
    leave: float | None = None
    min_frames: int = 1


@dataclass(frozen=True, kw_only=True)
class GatherResult(Result):
    """The output of `gather`. dataset_sha256: over the sorted keys and content hashes of all contact sets.

    failed: number of episodes without a contact set, which the output lacks. groups: rows of each group of contacts
    beside the rigid ones; None without them. slots_left: number of slots whose parts are missing, and the other values
    are those of one part; 0 where all are there, and the values are those of all; None without --slot.
    """

    SCHEMA: ClassVar[str] = "collide.batch_gather/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("groups", "slots_left")

    output: str
    episodes: int
    failed: int
    contacts: int
    dataset_sha256: str
    groups: dict[str, int] | None = None
    slots_left: int | None = None


def gather(store: Store, plan: Plan, request: GatherRequest, progress: Progress = None) -> GatherResult:
    """Writes the contact sets of a batch in a format.

    Raises InputError where an episode has neither a contact set nor a failure, or does not fit the format;
    OutputError for an output that cannot be written. Then no output is left, and one that was there is unchanged.
    """
    to, output = request.to, request.output
    rule = LabelOptions(enter=request.enter, leave=request.leave, min_frames=request.min_frames).rule
    named = NamedPairs(request.pairs, rule)
    if not named.names and rule != LabelRule():
        raise InputError("define labels, and there are none", "--enter, --leave, --min-frames", "name --pairs")
    if named.names and to not in LABELLED:
        raise InputError("has no effect", "--pairs", f"only --to {' and '.join(LABELLED)} have columns of pairs")
    if request.slot and to != "parquet":
        raise InputError(f"has no parts of --to {to}", "--slot", "only --to parquet is divided into slots")
    if to == MANIFEST:
        check_ending(output, (".parquet",), "a manifest")
    elif is_url(output):
        raise OutputError("is the URL of an object store", output, "gather to a local folder, and copy it")
    gathered = Gathered(store, plan, progress, request.job, request.slot or (0, 1))
    if to == MANIFEST:
        return _write_manifest(gathered, output, request.force)
    if request.slot:
        return _gather_slot(gathered, output, request.force, *request.slot)
    with output_folder(output, request.force) as folder:
        FORMATS[to](folder, gathered, named)
        named.check()
        result = _result(gathered.table, gathered, output)
        write_record(folder, {"to": to, "dataset_sha256": result.dataset_sha256})
    return result


def _gather_slot(gathered: Gathered, output: str, force: bool, slot: int, count: int) -> GatherResult:
    """Writes the part of a slot, unless it is there. The slot that ends last adds the tables of all, and RECORD."""
    parts = [os.path.join(output, f"slot-{k:05d}-of-{count:05d}") for k in range(count)]
    before = read_record(output)
    if before and before.get("slots") != count:
        raise OutputError("has an output of other slots", output, "choose another folder")
    os.makedirs(output, exist_ok=True)
    if force or read_record(parts[slot]).get("keys_sha256") != gathered.keys_sha256:
        with output_folder(parts[slot], force) as folder:
            write_parquet(folder, gathered)
            write_record(folder, {"to": "parquet", "keys_sha256": gathered.keys_sha256})
    written = [part for part in parts if read_record(part).get("keys_sha256") == gathered.keys_sha256]
    left = count - len(written)
    tables = [
        require_pyarrow("batch").parquet.ParquetFile(os.path.join(part, EPISODES)).read()
        for part in ([parts[slot]] if left else parts)
    ]
    table = require_pyarrow("batch").concat_tables(tables, promote_options="default")
    result = _result(table, gathered, parts[slot] if left else output, left)
    if not left:
        with TemporaryFolder("gather", output) as folder:
            write_tables(folder, table, f"slot-*-of-{count:05d}/")
            write_record(folder, {"to": "parquet", "slots": count, "dataset_sha256": result.dataset_sha256})
            for name in (EPISODES, READ_ME, RECORD):  # the record last: an output without it is not complete
                os.replace(os.path.join(folder, name), os.path.join(output, name))
    return result


MANIFEST = "manifest"
FORMATS: dict[str, Callable[[str, Gathered, NamedPairs], None]] = {
    "merge": lambda folder, gathered, pairs: write_merged_shards(folder, gathered),
    "parquet": lambda folder, gathered, pairs: write_parquet(folder, gathered),
    "lerobot": write_lerobot,
    "robomimic": write_robomimic,
}
"""Functions that write a folder, by format."""
LABELLED = ("lerobot", "robomimic")
"""Formats with columns of named pairs."""


def _result(table: Any, gathered: Gathered, output: str, slots_left: int | None = None) -> GatherResult:
    groups = {name: sum(filter(None, table[name].to_pylist())) for name in GROUPS_BY_NAME if name in table.column_names}
    contents = zip(table["key"].to_pylist(), table["content_sha256"].to_pylist(), strict=True)
    return GatherResult(
        output=output,
        episodes=len(table),
        failed=gathered.failed,
        contacts=sum(table["contacts"].to_pylist()),
        dataset_sha256=dataset_hash(dict(contents)),
        groups=groups or None,
        slots_left=slots_left,
    )


def _write_manifest(gathered: Gathered, output: str, force: bool) -> GatherResult:
    with AtomicOutput(output, force) as file:
        gathered.measure()
        table = gathered.table
        location = gathered.store.location.rstrip("/")
        if not is_url(location):
            location = os.path.relpath(location, os.path.dirname(os.path.abspath(output)))
        folder = "" if location == "." else f"{location}/"
        files = [f"{folder}{gathered.store.result_name(key)}" for key in table["key"].to_pylist()]
        table = table.drop_columns(["episode_index"]).append_column("file", [files])
        result = _result(table, gathered, output)
        about = {"collide.dataset_sha256": result.dataset_sha256}
        file.write(parquet_bytes(table.replace_schema_metadata(about), "batch gather"))
        file.commit()
    return result
