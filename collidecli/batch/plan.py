"""The plan of a batch: every episode with its key, and the shards that divide them.

An episode is one recording of a job. Its key is a hash of everything that its contacts depend on, so that an episode
that was computed before, by any plan, is not computed again, and episodes of equal content are computed once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar

from collidecli.batch.jobs import Job
from collidecli.commands.run import RunRequest, result_config
from collidecli.commands.scenes import load_scene
from collidecli.errors import InputError, extra_module
from collidecli.scene.run_options import ContactOptions, EngineOptions, RecordingOptions, SceneOptions
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.file_hash import files_sha256
from collidecli.storage.process_activity import reading

RESULT_EPOCH = 1
"""Part of every key. To be raised by a change of the contacts that any scene and motion give."""
SHARD_SECONDS = 90.0
"""Estimated duration of a shard: long against the start of a process, short against a lost worker."""
VERSION = 2
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
_EPISODE_COLUMNS = ("key", "job", "motion", "bytes", "motion_sha256", "seconds", "shard")

Options = TypeVar("Options", ContactOptions, EngineOptions, SceneOptions, RecordingOptions)


@dataclass(frozen=True)
class Episode:
    """A recording of a job. motion: path, "" for the scene's own motion. bytes: its size. seconds: estimated duration.

    shard: number of its shard.
    """

    key: str
    job: str
    motion: str
    bytes: int
    motion_sha256: str
    seconds: float = 0.0
    shard: int = 0


@dataclass(frozen=True)
class Plan:
    """Episodes in the order of their shards, and the request of each job by name, without recording and output."""

    episodes: tuple[Episode, ...]
    requests: Mapping[str, RunRequest] = field(default_factory=dict)

    @cached_property
    def _by_shard(self) -> dict[int, tuple[Episode, ...]]:
        return {number: tuple(held) for number, held in groupby(self.episodes, key=lambda one: one.shard)}

    @property
    def shard_count(self) -> int:
        return self.episodes[-1].shard + 1 if self.episodes else 0

    def shard(self, number: int) -> tuple[Episode, ...]:
        """The episodes of a shard."""
        return self._by_shard[number]


def make_plan(
    jobs: Sequence[Job],
    inputs: Mapping[str, Sequence[Episode]],
    rates: Mapping[str, tuple[float, float]],
    shard_seconds: float,
) -> Plan:
    """Divides the episodes into shards of one job each, the longest first.

    Args:
        inputs: by job, `episodes_of`. rates: by job, seconds per episode and per byte of a recording.
        shard_seconds: wanted duration of a shard.
    """
    shards: list[list[Episode]] = []
    for job in jobs:
        per_episode, per_byte = rates[job.name]
        timed = [replace(one, seconds=per_episode + per_byte * one.bytes) for one in inputs[job.name]]
        found = sorted(timed, key=lambda episode: (-episode.seconds, episode.motion))
        filled = float("inf")
        for episode in found:
            if filled + episode.seconds > shard_seconds:
                shards.append([])
                filled = 0.0
            shards[-1].append(episode)
            filled += episode.seconds
    shards.sort(key=lambda shard: -sum(episode.seconds for episode in shard))
    numbered = [replace(episode, shard=number) for number, shard in enumerate(shards) for episode in shard]
    return Plan(tuple(numbered), {job.name: job.request for job in jobs})


def episodes_of(job: Job) -> Iterable[Episode]:
    """The episodes of a job, with hashes of their inputs and without estimates.

    Raises InputError for a scene that cannot be loaded, and for a recording that cannot be read.
    """
    scene_sha256 = (
        load_scene(
            job.request.scenes, None, options=job.request.scene_options, recording_options=job.request.recording
        ).sha256
        if job.request.scenes
        else ""
    )
    motions = job.motions or ("",)
    with ThreadPoolExecutor() as pool:
        digests = pool.map(lambda motion: files_sha256([motion]) if motion else "", motions)
        for motion, digest in zip(motions, digests, strict=True):
            size = os.path.getsize(motion) if motion else 0
            key = _key(scene_sha256, digest, job.request)
            yield Episode(key, job.name, motion, size, digest)


def _key(scene_sha256: str, motion_sha256: str, request: RunRequest) -> str:
    """Hash of what the contacts depend on. CPU and CUDA are different numerics."""
    numerics = "cuda" if request.engine.device.startswith("cuda") else "cpu"
    parts = [RESULT_EPOCH, numerics, scene_sha256, motion_sha256, result_config(request)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def write_plan(plan: Plan, path: str, force: bool = False) -> None:
    """Writes a plan as Parquet, its requests as metadata. Raises OutputError; then no file is left."""
    pyarrow = _pyarrow()
    rows = {name: [getattr(one, name) for one in plan.episodes] for name in _EPISODE_COLUMNS}
    table = pyarrow.table(rows)
    requests = {name: asdict(request) for name, request in plan.requests.items()}
    header = {"version": VERSION, "requests": requests, "sha256": _digest(rows, requests)}
    metadata = {"collide.batch": json.dumps(header)}
    sink = pyarrow.BufferOutputStream()
    extra_module("pyarrow", "tables", "batch", "pyarrow.parquet").write_table(
        table.replace_schema_metadata(metadata), sink, compression="zstd"
    )
    with AtomicOutput(path, force) as output:
        output.write(sink.getvalue().to_pybytes())
        output.commit()


def read_plan(path: str) -> Plan:
    """Reads a plan. Raises InputError for a file that is missing or not a plan of this version."""
    if not os.path.isfile(path):
        raise InputError("there is no plan", path, "make one with collide batch plan")
    parquet = extra_module("pyarrow", "tables", "batch", "pyarrow.parquet")
    fix = "make one with collide batch plan"
    try:
        with reading("plan", path):
            table = parquet.read_table(path)
        header = json.loads((table.schema.metadata or {})[b"collide.batch"])
        if header.get("version") != VERSION:
            raise InputError(f"is a plan of version {header.get('version')}", path, f"this program knows {VERSION}")
        rows = {name: table.column(name).to_pylist() for name in _EPISODE_COLUMNS}
        if header["sha256"] != _digest(rows, header["requests"]):
            raise InputError("is damaged: it was changed after it was written", path, fix)
        requests = {name: _request(values) for name, values in header["requests"].items()}
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        _pyarrow().ArrowException,
    ) as error:
        words = " ".join(str(error).split())
        raise InputError(f"is not the plan of a batch: {words}", path, fix) from error
    return Plan(tuple(Episode(*row) for row in zip(*rows.values(), strict=True)), requests)


def _digest(rows: Mapping[str, Sequence[Any]], requests: Mapping[str, Any]) -> str:
    """SHA-256 of a plan's content: Parquet itself does not notice a changed byte."""
    return hashlib.sha256(json.dumps([dict(rows), dict(requests)], sort_keys=True).encode()).hexdigest()


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


def _pyarrow() -> Any:
    return extra_module("pyarrow", "tables", "batch")
