"""The plan of a batch: every episode with its key, and the shards that divide them.

An episode is one recording of a job, or one demonstration of a recording that has several. Its key
is a hash of everything that its contacts depend on, so that an episode that was computed before, by
any plan, is not computed again, and episodes of equal content are computed once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.files import recording_files
from collidecli.importers.recordings.kinds import kind_of, open_recording
from collidecli.motions.scenes import load_scene
from collidecli.scene.contact_columns import HYDRO_FACES, HYDRO_PATCHES, group_words
from collidecli.scene.options import OPTION_GROUPS, RecordingOptions
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.files import local_copy
from collidecli.storage.flat_tables import require_pyarrow
from collidecli.storage.input_files import are_settled, file_states, files_sha256
from collidecli.storage.process_activity import reading
from collidecli.storage.reading_limit import limited_reading
from collidecli.verbs.batch.episodes import (
    ROWS_AT_ONCE,
    Episode,
    EpisodeTable,
    episodes_of_table,
    parquet_bytes,
)
from collidecli.verbs.batch.store import PLAN, Store
from collidecli.verbs.run.run import RunRequest, result_config

if TYPE_CHECKING:
    from collidecli.verbs.batch.jobs import Job

RESULT_EPOCH = 10
"""Part of every key. To be raised by a change of the contact set that any scene and motion give."""
SHARD_SECONDS = 90.0
"""Wanted duration of a shard by default: long against the start of a process, short against a lost
worker [s]."""
VERSION = 5
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
TRIED = 10
"""Number of recordings that are tried at most, until one can be used, to find out what those of a
job are like."""


@dataclass(frozen=True)
class Plan:
    """Episodes in the order of their shards, and the request of each job by name, without recording
    and output.

    shard_seconds: the wanted duration of a shard [s]. total: number of episodes, where `episodes`
    are some of them.
    """

    episodes: EpisodeTable
    requests: Mapping[str, RunRequest] = field(default_factory=dict)
    shard_seconds: float = SHARD_SECONDS
    total: int = 0

    @property
    def shard_count(self) -> int:
        return self.episodes[-1].shard + 1 if self.episodes else 0

    def shard(self, number: int) -> tuple[Episode, ...]:
        """The episodes of a shard."""
        first, end = np.searchsorted(self.episodes.shards, (number, number + 1))
        return tuple(episodes_of_table(self.episodes.table.slice(first, end - first)))


def make_plan(
    jobs: Sequence[Job],
    inputs: Mapping[str, EpisodeTable],
    rates: Mapping[str, tuple[float, float]],
    shard_seconds: float,
) -> Plan:
    """Divides the episodes into shards of one job each, the longest first.

    Args:
        inputs: by job, `episodes_of`. rates: by job, seconds per episode and per byte of a
            recording.
        shard_seconds: wanted duration of a shard.
    """
    longest_first = (("seconds", "descending"), ("motion", "ascending"), ("demo", "ascending"))
    tables = []
    durations = list[float]()
    for job in jobs:
        per_episode, per_byte = rates[job.name]
        timed = inputs[job.name].with_numbers(
            "seconds", per_episode + per_byte * inputs[job.name].numbers("bytes")
        )
        timed = timed.sorted_by(*longest_first)
        shards = np.zeros(len(timed), np.int64)
        filled = float("inf")
        for number, seconds in enumerate(timed.numbers("seconds").tolist()):
            if filled + seconds > shard_seconds:
                durations.append(0.0)
                filled = 0.0
            filled += seconds
            durations[-1] = filled
            shards[number] = len(durations) - 1
        tables.append(timed.with_numbers("shard", shards))
    order = np.argsort(-np.array(durations), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    joined = EpisodeTable.joined(tables)
    numbered = joined.with_numbers("shard", rank[joined.numbers("shard")])
    in_order = numbered.sorted_by(("shard", "ascending"), *longest_first)
    return Plan(in_order, {job.name: job.request for job in jobs}, shard_seconds)


def episodes_of(
    job: Job,
    progress: Callable[[int], None] | None = None,
    known: Mapping[tuple[str, str], str] | None = None,
) -> Iterator[Episode]:
    """The episodes of a job, with hashes of their inputs and without estimates.

    Args:
        progress: is called with the number of recordings that are hashed.
        known: hashes of recordings by path and state, of an earlier plan; those are not read again.

    A recording that cannot be opened is one episode, which fails when it is computed. Raises
    InputError for a scene that cannot be loaded, and for a file that cannot be read.
    """
    request = job.request
    scene_sha256 = ""
    if request.scenes:
        scene_sha256 = load_scene(
            request.scenes, None, options=request.scene_options, recording_options=request.recording
        ).sha256
    if not job.motions:
        yield Episode(key_of(scene_sha256, "", request), job.name, "", "", 0, "")
        return
    has_demos = _has_demos(job.motions[:TRIED], request.recording.state)
    demos_of = demos_in if has_demos else lambda motion, options: ()
    with ThreadPoolExecutor() as pool:
        for first in range(0, len(job.motions), ROWS_AT_ONCE):
            motions = job.motions[first : first + ROWS_AT_ONCE]
            hashed = pool.map(lambda motion: _hashed(motion, known or {}, job.remote), motions)
            for number, (motion, (digest, state, size)) in enumerate(
                zip(motions, hashed, strict=True), first + 1
            ):
                if progress:
                    progress(number)
                demos = demos_of(motion, request.recording) or ("",)
                for demo in demos:
                    key = key_of(scene_sha256, digest, of_demo(request, demo))
                    yield Episode(
                        key, job.name, motion, demo, size // len(demos), digest, motion_state=state
                    )


def _hashed(
    path: str, known: Mapping[tuple[str, str], str], remote: Mapping[str, tuple[str, int]]
) -> tuple[str, str, int]:
    """Hash, state and size [bytes] of a recording."""
    try:
        if path in remote:
            state, size = remote[path]
            if not (digest := known.get((path, state))):
                with local_copy(path) as copy:
                    digest = files_sha256([copy])
            return digest, state, size
        files = recording_files(path)
        state = recording_state(files)
        size = sum(map(os.path.getsize, files))
        return known.get((path, state)) or files_sha256(files), state, size
    except OSError as error:
        raise InputError(
            f"cannot be read: {(error.strerror or str(error)).lower()}", path
        ) from error


def recording_state(files: Sequence[str]) -> str:
    """A text that changes with the content of files: hash of inode, size, and times of change.
    Raises OSError.

    "", by which no hash is known, for files that have just changed: file systems round times.
    """
    states = file_states(files)
    # without path and device, which differ between machines
    known_by = [state[2:] for state in states]
    return hashlib.sha256(repr(known_by).encode()).hexdigest()[:16] if are_settled(states) else ""


def _has_demos(motions: Sequence[str], state: str) -> bool:
    """Whether the first recording of a known kind is of one that has demonstrations: those of a job
    are of one kind."""
    for motion in motions:
        with suppress(InputError), local_copy(motion) as path:
            return "demos" in kind_of(path, state).OPTIONS
    return False


def demos_in(motion: str, options: RecordingOptions) -> tuple[str, ...]:
    """Names of the demonstrations of a recording that the options select; () where it cannot be
    opened."""
    try:
        with (
            local_copy(motion) as path,
            limited_reading(),
            closing(open_recording(path, options.state)) as recording,
        ):
            return recording.demos(options)
    except InputError:
        return ()


def of_demo(request: RunRequest, demo: str) -> RunRequest:
    """The request for one demonstration of the recording; the request itself for ""."""
    if not demo:
        return request
    return replace(request, recording=replace(request.recording, demos=(demo,), uneven_demos=""))


def key_of(scene_sha256: str, motion_sha256: str, request: RunRequest) -> str:
    """Hash of what the contacts depend on. CPU and CUDA are different numerics."""
    numerics = "cuda" if request.engine.device.startswith("cuda") else "cpu"
    parts = [RESULT_EPOCH, numerics, scene_sha256, motion_sha256, result_config(request)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def write_plan(plan: Plan, store: Store) -> None:
    """Writes a plan as Parquet, its requests as metadata. Raises OutputError; then no file is
    left."""
    shards = plan.episodes.shards
    groups = list[tuple[int, int, str]]()
    for first in range(0, len(plan.episodes), ROWS_AT_ONCE):
        block = shards[first : first + ROWS_AT_ONCE]
        table = EpisodeTable(plan.episodes.table.slice(first, ROWS_AT_ONCE))
        groups.append((int(block[0]), int(block[-1]), table.sha256()))
    header = {
        "version": VERSION,
        "shard_seconds": plan.shard_seconds,
        "requests": {name: asdict(request) for name, request in plan.requests.items()},
        "groups": groups,
    }
    header["sha256"] = _sha256_of(header)
    table = plan.episodes.table.replace_schema_metadata({"collide.batch": json.dumps(header)})
    store.files.write(PLAN, parquet_bytes(table, "batch", ROWS_AT_ONCE))


def _sha256_of(header: Mapping[str, Any]) -> str:
    """SHA-256 of a plan's header without its own hash: its requests, and shards and hash of each
    row group."""
    rest = {name: value for name, value in header.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_plan(store: Store, shard: int | None = None) -> Plan:
    """The plan of a store. shard: only the row groups that have episodes of it.

    Raises InputError for a file that is missing or not a plan of this version.
    """
    where = f"{store.location.rstrip('/')}/{PLAN}"
    fix = "make one with collide batch plan"
    try:
        with (
            limited_reading(),
            store.files.open(PLAN) as file,
            reading("plan", where),
            _undamaged(where, fix),
        ):
            # read_table would import pyarrow.dataset, and that pandas: a second of each process.
            parquet = require_pyarrow("batch").parquet.ParquetFile(file)
            header = json.loads((parquet.schema_arrow.metadata or {})[b"collide.batch"])
            if header.get("version") != VERSION:
                raise InputError(
                    f"is a plan of version {header.get('version')}",
                    where,
                    f"this program knows {VERSION}",
                )
            groups = header["groups"]
            tables = list[EpisodeTable]()
            sizes = [parquet.metadata.row_group(k).num_rows for k in range(parquet.num_row_groups)]
            damaged = (
                header["sha256"] != _sha256_of(header)
                or len(groups) != len(sizes)
                or max(sizes, default=0) > ROWS_AT_ONCE
                or sum(sizes) != parquet.metadata.num_rows
            )
            for number, (first, last, digest) in enumerate([] if damaged else groups):
                if shard is None or first <= shard <= last:
                    tables.append(EpisodeTable(parquet.read_row_group(number)))
                    damaged |= tables[-1].sha256() != digest
            if damaged:
                raise InputError("is damaged: it was changed after it was written", where, fix)
            requests = {name: _request(values) for name, values in header["requests"].items()}
            seconds = float(header["shard_seconds"])
            total = parquet.metadata.num_rows
    except FileNotFoundError:
        raise InputError("there is no plan", where, fix) from None
    return Plan(EpisodeTable.joined(tables), requests, seconds, total)


@contextmanager
def _undamaged(where: str, fix: str) -> Iterator[None]:
    """Raises InputError for what the content of a plan causes, in pyarrow too, and no error of a
    store."""
    try:
        yield
    except (*_DAMAGE, require_pyarrow("batch").ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            f"is not the plan of a batch: {' '.join(str(error).split())}", where, fix
        ) from error


def _request(values: dict[str, Any]) -> RunRequest:
    """A request from the dictionary that `asdict` made of it, through JSON, which has lists in
    place of tuples."""

    def tuples(given: dict[str, Any]) -> dict[str, Any]:
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }

    groups: dict[str, Any] = {
        name: kind(**tuples(values[name])) for name, kind in OPTION_GROUPS.items()
    }
    return RunRequest(**tuples(values) | groups)


HYDRO_NAMES = (HYDRO_PATCHES.name, HYDRO_FACES.name)


def check_one_world(contacts: ContactSet, label: str, to: str) -> None:
    """Raises InputError for a contact set that has not one row per recorded frame."""
    if contacts.world_count != 1:
        what = f"has {contacts.world_count} worlds, and {to} has one row for each frame"
        raise InputError(what, label, "use --to parquet, or run one world")
    if contacts.config.get("frames"):
        what = (
            f"is of some frames ({contacts.config['frames']}), and {to} has one row for each"
            " recorded frame"
        )
        raise InputError(what, label, "run it without --frames, or use --to parquet")
    reduced = HYDRO_NAMES if contacts.config.get("hydro_reduce") else ()
    left = [
        name for name, table in contacts.groups.items() if table.row_count and name not in reduced
    ]
    if left:
        what = (
            f"has {' and '.join(map(group_words, left))}, and {to} writes contacts of rigid shapes"
            " alone"
        )
        hydro = (
            ", or run it with --hydro-reduce or --hydro off"
            if set(left) <= set(HYDRO_NAMES)
            else ""
        )
        raise InputError(what, label, f"use --to parquet or --to merge{hydro}")
