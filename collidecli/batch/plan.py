"""The plan of a batch: every episode with its key, and the shards that divide them.

An episode is one recording of a job, or one demonstration of a recording that has several. Its key is a hash of
everything that its contacts depend on, so that an episode that was computed before, by any plan, is not computed again,
and episodes of equal content are computed once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from collidecli.batch.episodes import Episode, EpisodeTable, from_parquet, parquet_bytes, pyarrow
from collidecli.batch.jobs import Job
from collidecli.batch.store import PLAN, Store
from collidecli.commands.run import RunRequest, result_config
from collidecli.commands.scenes import load_scene
from collidecli.errors import InputError
from collidecli.importers.recordings.kinds import kind_of, open_recording
from collidecli.importers.recordings.recording_files import recording_files
from collidecli.scene.run_options import ContactOptions, EngineOptions, RecordingOptions, SceneOptions
from collidecli.storage.file_hash import files_sha256
from collidecli.storage.process_activity import reading
from collidecli.storage.reading_limit import limited_reading

RESULT_EPOCH = 9
"""Part of every key. To be raised by a change of the contacts that any scene and motion give."""
SHARD_SECONDS = 90.0
"""Wanted duration of a shard by default: long against the start of a process, short against a lost worker [s]."""
VERSION = 4
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
TRIED = 10
"""Number of recordings that are tried at most, until one can be used, to find out what those of a job are like."""
_BLOCK = 10_000
"""Number of recordings that wait for their hash at a time."""

Options = TypeVar("Options", ContactOptions, EngineOptions, SceneOptions, RecordingOptions)


@dataclass(frozen=True)
class Plan:
    """Episodes in the order of their shards, and the request of each job by name, without recording and output.

    shard_seconds: the wanted duration of a shard [s].
    """

    episodes: EpisodeTable
    requests: Mapping[str, RunRequest] = field(default_factory=dict)
    shard_seconds: float = SHARD_SECONDS

    @property
    def shard_count(self) -> int:
        return self.episodes[-1].shard + 1 if self.episodes else 0

    def shard(self, number: int) -> tuple[Episode, ...]:
        """The episodes of a shard."""
        return self.episodes.of_shard(number)


def make_plan(
    jobs: Sequence[Job],
    inputs: Mapping[str, EpisodeTable],
    rates: Mapping[str, tuple[float, float]],
    shard_seconds: float,
) -> Plan:
    """Divides the episodes into shards of one job each, the longest first.

    Args:
        inputs: by job, `episodes_of`. rates: by job, seconds per episode and per byte of a recording.
        shard_seconds: wanted duration of a shard.
    """
    longest_first = (("seconds", "descending"), ("motion", "ascending"), ("demo", "ascending"))
    tables, durations = [], list[float]()
    for job in jobs:
        per_episode, per_byte = rates[job.name]
        timed = inputs[job.name].with_numbers("seconds", per_episode + per_byte * inputs[job.name].numbers("bytes"))
        timed = timed.sorted_by(*longest_first)
        shards, filled = np.zeros(len(timed), np.int64), float("inf")
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


def episodes_of(job: Job, progress: Callable[[int], None] | None = None) -> Iterator[Episode]:
    """The episodes of a job, with hashes of their inputs and without estimates.

    progress: is called with the number of recordings that are hashed.

    A recording that cannot be opened is one episode, which fails when it is computed. Raises InputError for a scene
    that cannot be loaded, and for a file that cannot be read.
    """
    request = job.request
    scene_sha256 = ""
    if request.scenes:
        scene_sha256 = load_scene(
            request.scenes, None, options=request.scene_options, recording_options=request.recording
        ).sha256
    if not job.motions:
        yield Episode(_key(scene_sha256, "", request), job.name, "", "", 0, "")
        return
    demos_of = demos_in if _has_demos(job.motions[:TRIED]) else lambda motion, options: ()
    with ThreadPoolExecutor() as pool:
        for first in range(0, len(job.motions), _BLOCK):
            motions = job.motions[first : first + _BLOCK]
            hashed = zip(motions, pool.map(_sha256, motions), strict=True)
            for number, (motion, digest) in enumerate(hashed, first + 1):
                if progress:
                    progress(number)
                demos = demos_of(motion, request.recording) or ("",)
                size = sum(map(os.path.getsize, recording_files(motion))) // len(demos)
                for demo in demos:
                    key = _key(scene_sha256, digest, of_demo(request, demo))
                    yield Episode(key, job.name, motion, demo, size, digest)


def _sha256(path: str) -> str:
    try:
        return files_sha256(recording_files(path))
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path) from error


def _has_demos(motions: Sequence[str]) -> bool:
    """Whether the first recording of a known kind is of one that has demonstrations: those of a job are of one kind."""
    for motion in motions:
        with suppress(InputError):
            return "demos" in kind_of(motion).OPTIONS
    return False


def demos_in(motion: str, options: RecordingOptions) -> tuple[str, ...]:
    """Names of the demonstrations of a recording that the options select; () where it cannot be opened."""
    try:
        with limited_reading(), closing(open_recording(motion)) as recording:
            return recording.demos(options)
    except InputError:
        return ()


def of_demo(request: RunRequest, demo: str) -> RunRequest:
    """The request for one demonstration of the recording; the request itself for ""."""
    if not demo:
        return request
    return replace(request, recording=replace(request.recording, demos=(demo,), uneven_demos=""))


def _key(scene_sha256: str, motion_sha256: str, request: RunRequest) -> str:
    """Hash of what the contacts depend on. CPU and CUDA are different numerics."""
    numerics = "cuda" if request.engine.device.startswith("cuda") else "cpu"
    parts = [RESULT_EPOCH, numerics, scene_sha256, motion_sha256, result_config(request)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def write_plan(plan: Plan, store: Store) -> None:
    """Writes a plan as Parquet, its requests as metadata. Raises OutputError; then no file is left."""
    requests = {name: asdict(request) for name, request in plan.requests.items()}
    header = {
        "version": VERSION,
        "shard_seconds": plan.shard_seconds,
        "requests": requests,
        "sha256": plan.episodes.sha256(requests),
    }
    table = plan.episodes.table.replace_schema_metadata({"collide.batch": json.dumps(header)})
    store.files.write(PLAN, parquet_bytes(table, "batch"))


def read_plan(store: Store) -> Plan:
    """The plan of a store. Raises InputError for a file that is missing or not a plan of this version."""
    where, fix = store.plan_location(), "make one with collide batch plan"
    try:
        with reading("plan", where):
            table = from_parquet(store.files.read(PLAN))
        header = json.loads((table.schema.metadata or {})[b"collide.batch"])
        if header.get("version") != VERSION:
            raise InputError(f"is a plan of version {header.get('version')}", where, f"this program knows {VERSION}")
        episodes = EpisodeTable(table)
        if header["sha256"] != episodes.sha256(header["requests"]):
            raise InputError("is damaged: it was changed after it was written", where, fix)
        seconds = float(header["shard_seconds"])
        requests = {name: _request(values) for name, values in header["requests"].items()}
    except FileNotFoundError:
        raise InputError("there is no plan", where, fix) from None
    except (*_DAMAGE, pyarrow().ArrowException) as error:
        words = " ".join(str(error).split())
        raise InputError(f"is not the plan of a batch: {words}", where, fix) from error
    return Plan(episodes, requests, seconds)


def _request(values: dict[str, Any]) -> RunRequest:
    """A request from the dictionary that `asdict` made of it, through JSON."""
    return RunRequest(
        **{
            **values,
            "scenes": tuple(values["scenes"]),
            "columns": tuple(values["columns"]),
            "contact": _options(ContactOptions, values["contact"]),
            "engine": _options(EngineOptions, values["engine"]),
            "scene_options": _options(SceneOptions, values["scene_options"]),
            "recording": _options(RecordingOptions, values["recording"]),
        }
    )


def _options(kind: type[Options], values: dict[str, Any]) -> Options:
    tuples = {each.name for each in fields(kind) if isinstance(each.default, tuple)}
    found: dict[str, Any] = {name: tuple(value) if name in tuples else value for name, value in values.items()}
    return kind(**found)
