"""Computation of episodes in one process, which stays warm: modules, kernels and libraries are loaded once."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from collidecli.batch.plan import TRIED, Episode, Job, Plan, demos_in, of_demo, read_plan
from collidecli.batch.store import DifferentContactsError, Failure, Store, open_store
from collidecli.commands.run import RunRequest, RunResult, run
from collidecli.commands.scenes import SceneCache, scene_in_motion
from collidecli.commands.timing import instruction_set, processor_name
from collidecli.engine.runtime.deferred_builtins import owned_process
from collidecli.errors import CollideError, InputError, Interrupted, OutputError
from collidecli.system_resources import free_memory
from collidecli.temporary_folders import TemporaryFolder

# The event log of a batch: a row per shard that computed something, and the throughput of each host by it.


@dataclass(frozen=True)
class ShardReport:
    """Counts of a shard. done: computed now. skipped: had a contact set. failed: quarantined now or before."""

    shard: int
    done: int = 0
    skipped: int = 0
    failed: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class HostThroughput:
    """What one host computed. seconds: of all its shards. last: time of its last shard [s since 1970]."""

    host: str
    processor: str
    instruction_set: str
    shards: int
    episodes: int
    seconds: float
    episodes_per_second: float
    last: float


@dataclass(frozen=True)
class RunWarning:
    """A warning of the runs of a batch. episodes: number of those that gave it. motion: recording of one of them."""

    message: str
    episodes: int
    motion: str


def log_shard(store: Store, report: ShardReport, done: Mapping[Episode, RunResult]) -> None:
    """Records a shard that computed something, with the warnings of its runs. done: its new contact sets."""
    warned: dict[str, list[tuple[str, str]]] = {}
    for episode, result in done.items():
        for message in dict.fromkeys(result.warnings):
            text = message.removeprefix(f"{episode.motion}: ") if episode.motion else message
            warned.setdefault(text, []).append((episode.key, episode.motion))
    contents = {episode.key: result.content_sha256 for episode, result in done.items()}
    store.log(
        {
            **asdict(report),
            **_machine(),
            "event": "shard",
            "time": time.time(),
            "sha256": dataset_hash(contents),
            "keys": list(contents),
            "run_warnings": warned,
        }
    )


def run_warnings(events: Iterable[Mapping[str, Any]], planned: Mapping[str, int]) -> list[RunWarning]:
    """The distinct warnings of the runs, those of most episodes first. planned: number of episodes of each key."""
    found: dict[str, dict[str, str]] = {}
    for event in events:
        for message, episodes in event.get("run_warnings", {}).items():
            held = {key: motion for key, motion in episodes if key in planned}
            if held:
                found.setdefault(message, {}).update(held)
    warnings = (
        RunWarning(text, sum(planned[key] for key in held), next(iter(held.values()))) for text, held in found.items()
    )
    return sorted(warnings, key=lambda one: (-one.episodes, one.message))


def dataset_hash(contents: Mapping[str, str]) -> str:
    """SHA-256 over the sorted pairs of key and content hash."""
    return hashlib.sha256("".join(f"{key} {contents[key]}\n" for key in sorted(contents)).encode()).hexdigest()


@cache
def _machine() -> dict[str, str]:
    return {"host": socket.gethostname(), "processor": processor_name(), "instruction_set": instruction_set()}


def throughput(events: Iterable[Mapping[str, Any]], planned: Mapping[str, int]) -> list[HostThroughput]:
    """The throughput of each host, the one with most episodes first.

    planned: number of episodes of each key; shards that computed none of them are those of an earlier plan.
    """
    hosts: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.get("event") == "shard" and any(key in planned for key in event["keys"]):
            hosts.setdefault(str(event["host"]), []).append(event)
    found = []
    for host, shards in hosts.items():
        keys = {key for one in shards for key in one["keys"]}
        seconds, episodes = sum(one["seconds"] for one in shards), sum(planned.get(key, 0) for key in keys)
        last = max(shards, key=lambda one: one["time"])
        found.append(
            HostThroughput(
                host=host,
                processor=str(last.get("processor", "")),
                instruction_set=str(last.get("instruction_set", "")),
                shards=len(shards),
                episodes=episodes,
                seconds=seconds,
                episodes_per_second=episodes / seconds if seconds else 0.0,
                last=last["time"],
            )
        )
    return sorted(found, key=lambda one: (-one.episodes, one.host))


PROBE_FRAMES = 50
_scenes = SceneCache()
"""Of this process, which works on the episodes of one job in a row."""
INTERNAL_ERROR = 70
ATTEMPTS = 3
"""Computations of an episode that ends in an internal error or kills its process."""
LEAST_MEMORY = 64 << 20
"""Memory limit below which no repeated attempt goes [bytes]."""


def work_shard(location: str, shard: int, only: Sequence[str] | None = None, attempt: int = 0) -> ShardReport:
    """Computes the episodes of a shard that have neither a contact set nor a failure, in a process of the batch.

    Args:
        only: keys to compute, else all. attempt: number of processes that were killed by them before.
    Raises OutputError and DifferentContactsError; an episode that cannot be used is recorded as failed.
    """
    store, plan = open_store(location), planned(location)
    start, report, done = time.perf_counter(), ShardReport(shard), dict[Episode, RunResult]()
    with owned_process():
        for episode in plan.shard(shard):
            if only is not None and episode.key not in only:
                continue
            if store.has_result(episode.key):
                report = replace(report, skipped=report.skipped + 1)
            elif store.has_failure(episode.key):
                report = replace(report, failed=report.failed + 1)
            else:
                result = work_episode(store, plan, episode, attempt)
                if result is None:
                    report = replace(report, failed=report.failed + 1)
                else:
                    report, done[episode] = replace(report, done=report.done + 1), result
    report = replace(report, seconds=time.perf_counter() - start)
    if report.done:
        log_shard(store, report, done)
    return report


_plans: dict[str, tuple[str, Plan]] = {}


def planned(location: str) -> Plan:
    """The plan of a store, read once in a process unless it changes."""
    store = Store(location)
    version = store.plan_version()
    if location not in _plans or _plans[location][0] != version:
        _plans[location] = (version, read_plan(store))
    return _plans[location][1]


def work_episode(store: Store, plan: Plan, episode: Episode, attempt: int = 0) -> RunResult | None:
    """Computes one episode; None for a failure, which is recorded.

    attempt: number of attempts before that were out of memory or ended in an internal error.
    """
    made = store.new_result(episode.key)
    try:
        result = run(request_of(plan, episode, made, attempt), cache=_scenes)
        store.keep_result(episode.key, made, result.content_sha256)
        return result
    except (OutputError, Interrupted, DifferentContactsError):
        raise
    except CollideError as error:
        store.fail(_failure(episode, "; ".join(line.strip() for line in str(error).splitlines()), error.exit_code))
        return None
    except Exception as error:
        if attempt + 1 < ATTEMPTS:
            return work_episode(store, plan, episode, attempt + 1)
        message = f"internal error: {type(error).__name__}: {error}"
        store.fail(replace(_failure(episode, message, INTERNAL_ERROR), attempts=ATTEMPTS))
        return None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)


def _failure(episode: Episode, message: str, exit_code: int) -> Failure:
    return Failure(
        episode.key, episode.job, episode.motion, message, exit_code, socket.gethostname(), demo=episode.demo
    )


def request_of(plan: Plan, episode: Episode, output: str, attempt: int = 0) -> RunRequest:
    """The run of an episode. One thread unless the job sets --threads.

    attempt: number of attempts before; each halves the memory limit.
    """
    request = of_demo(plan.requests[episode.job], episode.demo)
    engine = replace(request.engine, threads=request.engine.threads or 1)
    if attempt:
        limit = max((engine.memory_limit or free_memory() // 2) >> attempt, LEAST_MEMORY)
        engine = replace(engine, threads=1, memory_limit=limit)
    return replace(request, trajectory=episode.motion or None, output=output, engine=engine, force=False)


def probe(job: Job) -> tuple[float, float]:
    """Seconds per episode and per byte of a recording, from first frames of the first recording that can be used.

    Raises InputError, of the first one, where none of the first recordings can be used.
    """
    first: InputError | None = None
    for motion in job.motions[:TRIED] or ("",):
        try:
            return _probe(job, motion)
        except InputError as error:
            first = first or error
    assert first is not None
    raise first


def _probe(job: Job, motion_path: str) -> tuple[float, float]:
    request = replace(job.request, trajectory=motion_path or None, engine=replace(job.request.engine, threads=1))
    names = demos_in(motion_path, request.recording) if motion_path else ()
    request = of_demo(request, names[0] if names else "")
    cache = SceneCache()
    _, motion = scene_in_motion(request, cache)
    frames = len(motion.time)
    motion.close()
    with TemporaryFolder("probe") as folder:
        first = replace(
            request, frames=request.frames or f"0:{PROBE_FRAMES}", output=os.path.join(folder, "probe.h5"), force=True
        )
        run(first, cache=cache)  # compiles the kernels
        start = time.perf_counter()
        result: RunResult = run(first, cache=cache)
        seconds = time.perf_counter() - start
    per_frame = result.wall_seconds / max(result.frames, 1)
    size = os.path.getsize(motion_path) // max(len(names), 1) if motion_path else 0
    return max(seconds - result.wall_seconds, 0.0), per_frame * frames / max(size, 1)


def recomputed_content(store: Store, plan: Plan, episode: Episode) -> tuple[str, str]:
    """Content hashes of an episode's contact set, and of one that is computed now and removed."""
    with TemporaryFolder("verification") as folder:
        again = run(request_of(plan, episode, os.path.join(folder, "again.h5")))
    return store.content(episode.key), again.content_sha256
