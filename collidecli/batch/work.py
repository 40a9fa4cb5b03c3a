"""Computation of episodes in one process, which stays warm: modules, kernels and libraries are loaded once."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import h5py

from collidecli.batch.plan import TRIED, Episode, Job, Plan, demos_in, key_of, of_demo, read_plan
from collidecli.batch.store import PLAN, Failure, Store
from collidecli.commands.results import Progress, Result
from collidecli.commands.run import RunRequest, RunResult, run
from collidecli.commands.scenes import SceneCache, scene_in_motion
from collidecli.commands.timing import instruction_set, processor_name
from collidecli.engine.runtime.deferred_builtins import owned_process
from collidecli.errors import CollideError, InputError, Interrupted, OutputError
from collidecli.scene.tables import RIGID_CONTACTS, TABLES_BY_NAME
from collidecli.storage.contact_sets.schema import EPISODE_GROUP
from collidecli.storage.files import UnreachableError, is_url, local_copy
from collidecli.system import TemporaryFolder, free_memory

# The log of a batch: a file for each process and shard, with a line for each episode as it starts and ends. A process
# that was killed leaves an episode that has started and not ended: an attempt, which the next process finds anywhere.

LogFiles = Iterable[tuple[str, Sequence[Mapping[str, Any]]]]
"""Names and events of logs, of `Store.logs`."""


@dataclass(frozen=True)
class ShardReport:
    """Counts of a shard. done: computed now. skipped: had a contact set. failed: quarantined now or before."""

    shard: int
    done: int = 0
    skipped: int = 0
    failed: int = 0


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


class ShardLog:
    """The log of this process and shard. The end of an episode is written with the start of the next.

    at_once: whether an object store receives each line before the episode starts.
    """

    def __init__(self, store: Store, name: str, at_once: bool) -> None:
        self._store, self._name, self._at_once = store, name, at_once
        self._lines: list[dict[str, Any]] = [{"event": "begin", **_machine()}]
        self._began = 0.0

    def start(self, key: str) -> None:
        """An episode is computed from now on."""
        self._store.log(self._name, *self._lines, {"event": "start", "key": key}, at_once=self._at_once)
        self._lines, self._began = [], time.perf_counter()

    def end(self, episode: Episode, result: RunResult | None, size: int, counts: Mapping[str, int]) -> None:
        """The episode that has started is computed, or has failed. size: of its contact set [bytes]. counts: see
        `counts_of`."""
        line = {"event": "failed" if result is None else "done", "key": episode.key, "time": time.time()}
        line["seconds"] = time.perf_counter() - self._began
        if result is not None:
            line |= {"content_sha256": result.content_sha256, "bytes": size, "counts": counts}
            before = f"{episode.motion}: " if episode.motion else ""
            texts = dict.fromkeys(text.removeprefix(before) for text in result.warnings)
            line |= {"motion": episode.motion, "warnings": list(texts)} if texts else {}
        self._lines.append(line)

    def close(self, event: str = "end") -> None:
        """Writes what is left, where an episode has started."""
        if self._began:
            self._store.log(self._name, *self._lines, {"event": event}, at_once=True)
            self._lines = []


STOPPED = "stopped"
"""Event of a process that was ended on request, or by an outage of the store: its episode has no part in that."""


def attempts(logs: LogFiles) -> dict[str, list[tuple[int, str, float]]]:
    """Exit code, name of the log and time limit of each process that was killed in an episode, by key.

    A process whose exit code nobody has recorded was killed with the one that started it: SIGKILL.
    """
    tries: dict[str, list[tuple[int, str, float]]] = {}
    for name, events in logs:
        key, killed = "", {}
        for event in events:
            if event.get("event") == "start":
                key, killed = event.get("key", ""), {}
            elif event.get("event") == "killed":
                killed = event
            elif event.get("event") in ("done", "failed", STOPPED, "end"):
                key = ""
        if key:
            tries.setdefault(key, []).append((killed.get("exit_code", -9), name, killed.get("seconds", 0.0)))
    return tries


def dataset_hash(contents: Mapping[str, str]) -> str:
    """SHA-256 over the sorted pairs of key and content hash."""
    return hashlib.sha256("".join(f"{key} {contents[key]}\n" for key in sorted(contents)).encode()).hexdigest()


@cache
def _machine() -> dict[str, str]:
    return {"host": socket.gethostname(), "processor": processor_name(), "instruction_set": instruction_set()}


@dataclass
class _Host:
    machine: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    last: float = 0.0
    keys: set[str] = field(default_factory=set)
    shards: set[str] = field(default_factory=set)


class History:
    """What the logs of a batch have of the episodes of a plan, read once. planned: number of episodes of each key.

    sizes: of the contact sets that were computed [bytes], by key. results: the last event of each that has counts.
    """

    def __init__(self, logs: LogFiles, planned: Mapping[str, int]) -> None:
        self.sizes: dict[str, tuple[int, ...]] = {}
        self.results: dict[str, Mapping[str, Any]] = {}
        self._planned = planned
        self._hosts: dict[str, _Host] = {}
        self._warned: dict[str, dict[str, str]] = {}
        for name, events in logs:
            machine: Mapping[str, Any] = {}
            for event in events:
                if event.get("event") == "done":
                    self._add(event, machine, os.path.dirname(name))
                elif event.get("event") == "begin":
                    machine = event

    def _add(self, event: Mapping[str, Any], machine: Mapping[str, Any], shard: str) -> None:
        key = event.get("key", "")
        if "bytes" in event:
            self.sizes[key] = (*self.sizes.get(key, ()), event["bytes"])
        if {"bytes", "content_sha256", "counts"} <= event.keys() and {*map(type, event["counts"].values())} == {int}:
            self.results[key] = event
        if key not in self._planned:
            return
        name = event.get("host") or machine.get("host", "unknown")
        host = self._hosts[name] if name in self._hosts else self._hosts.setdefault(name, _Host())
        host.machine = machine or host.machine
        host.seconds += event.get("seconds", 0.0)
        host.last = max(host.last, event.get("time", 0.0))
        host.keys.add(key)
        host.shards.add(shard)
        for message in event.get("warnings", ()):
            self._warned.setdefault(str(message), {})[key] = event.get("motion", "")

    def hosts(self) -> list[HostThroughput]:
        """The throughput of each host, the one with most episodes first."""
        hosts = []
        for name, host in self._hosts.items():
            episodes = sum(self._planned[key] for key in host.keys)
            kind = host.machine.get("processor", ""), host.machine.get("instruction_set", "")
            speed = episodes / host.seconds if host.seconds else 0.0
            hosts.append(HostThroughput(name, *kind, len(host.shards), episodes, host.seconds, speed, host.last))
        return sorted(hosts, key=lambda item: (-item.episodes, item.host))

    def warnings(self) -> list[RunWarning]:
        """The distinct warnings of the runs, those of most episodes first."""
        warned = self._warned.items()
        warnings = (
            RunWarning(text, sum(self._planned[key] for key in of), next(iter(of.values()))) for text, of in warned
        )
        return sorted(warnings, key=lambda warning: (-warning.episodes, warning.message))


def counts_of(file: Any) -> dict[str, int]:
    """Rows of each table of an open contact set by name, "contacts" of rigid ones, and "frames" in all episodes."""
    rows = {
        name: len(file[f"{name}/{group.columns[0].name}"]) for name, group in TABLES_BY_NAME.items() if name in file
    }
    demos = EPISODE_GROUP in file
    frames = int(file[f"{EPISODE_GROUP}/frame_count"][:].sum()) if demos else len(file["time/time"])
    return {"contacts": rows.pop(RIGID_CONTACTS.name), **rows, "frames": frames}


def whole_results(
    store: Store, sizes: Mapping[str, Sequence[int]], checked: Container[str]
) -> tuple[set[str], list[str]]:
    """The keys with a contact set, and those of `checked` whose file is truncated or damaged, which they lack.

    A file is opened where its size is not one of `sizes`, of `History`; in an object store, which has no half of an
    upload, only where there are sizes.
    """
    sizes_by_key, remote = store.results(), is_url(store.location)
    suspects = (key for key, size in sizes_by_key.items() if size not in sizes.get(key, (size,) if remote else ()))
    damaged = [key for key in suspects if key in checked and store.is_damaged(key)]
    return set(sizes_by_key).difference(damaged), damaged


PROBE_FRAMES = 50
_scenes = SceneCache()
"""Of this process, which works on the episodes of one job in a row."""
INTERNAL_ERROR = 70
ATTEMPTS = 3
"""Computations of an episode that ends in an internal error or kills its process."""
LEAST_MEMORY = 64 << 20
"""Memory limit below which no repeated attempt goes [bytes]."""


TIMED_OUT = 124
"""Exit code of a process that was ended after the time limit of an episode, as of the program timeout."""
KILLED = 4
"""Exit code of a process that was killed, as for want of memory (docs/reference/cli.md)."""
LIMIT_SECONDS, LIMIT_FACTOR = 3600.0, 100.0
"""Time limit of an episode where none is given: at least, and times its estimate."""
watchers: list[Callable[[float], object]] = []
"""Functions that get the time limit of each episode as it starts [s]."""


def work_shard(location: str, shard: int, log: str = "", timeout: float | None = None) -> ShardReport:
    """Computes the episodes of a shard that have neither a contact set nor a failure, in a process of the batch.

    Episodes in which processes were killed come last; one with ATTEMPTS of them is recorded as failed.

    Args:
        log: name of the log of this process. timeout: time limit of an episode [s]; None: by its estimate.
    Raises OutputError and DifferentContactsError; an episode that cannot be used is recorded as failed.
    """
    store, plan = Store(location), planned(location, shard)
    results, failures = store.known({episode.key for episode in plan.shard(shard)}, plan.total)
    counts, logs = Counter[str](), list(store.logs(range(shard, shard + 1)))
    killed = attempts(logs)
    interrupted = any(not events or events[-1].get("event") not in ("end", STOPPED) for _, events in logs)
    written = ShardLog(store, log or store.new_log(shard), at_once=interrupted)
    try:
        with owned_process():
            for episode in sorted(plan.shard(shard), key=lambda e: len(killed.get(e.key, ()))):
                before = killed.get(episode.key, [])
                if episode.key in results:
                    ending = "skipped"
                elif episode.key in failures or _quarantined(store, episode, before):
                    ending = "failed"
                else:
                    for watch in watchers:
                        watch(timeout or max(LIMIT_SECONDS, LIMIT_FACTOR * episode.seconds))
                    written.start(episode.key)
                    result = work_episode(store, plan, episode, written, sum(code == -9 for code, *_ in before))
                    ending = "done" if result else "failed"
                (failures if ending == "failed" else results).add(episode.key)
                counts[ending] += 1
    except BaseException:
        with suppress(CollideError):  # in an outage of the store: all attempts of a request once more
            written.close(STOPPED)
        raise
    written.close()
    return ShardReport(shard, **counts)


def work_episode(
    store: Store, plan: Plan, episode: Episode, log: ShardLog | None = None, attempt: int = 0
) -> RunResult | None:
    """Computes one episode; None for a failure, which is recorded.

    attempt: number of attempts before that were out of memory or ended in an internal error.
    """
    made, result, failure, motion = store.new_result(episode.key), None, None, episode.motion
    try:
        while result is None and failure is None:
            try:
                motion = _local(episode)
                result = run(request_of(plan, episode, motion, made, attempt), cache=_scenes)
            except (OutputError, Interrupted, UnreachableError):
                raise
            except CollideError as error:
                reason = "; ".join(line.strip() for line in str(error).splitlines()).replace(motion, episode.motion)
                failure = _failure(episode, reason, error.exit_code)
            except Exception as error:
                attempt += 1
                if attempt >= ATTEMPTS:
                    reason = f"internal error: {type(error).__name__}: {error}"
                    failure = replace(_failure(episode, reason, INTERNAL_ERROR), attempts=ATTEMPTS)
        size, counts = 0, {}
        if result:
            size = os.path.getsize(made)
            with h5py.File(made) as file:
                counts, recording = counts_of(file), str(file.attrs["trajectory_sha256"])
            failure = _changed(plan, episode, result.scene_sha256, recording)
            result = replace(result, warnings=tuple(text.replace(motion, episode.motion) for text in result.warnings))
        if failure:
            result = None
            store.fail(failure)
        elif result:
            store.keep_result(episode.key, made, result.content_sha256)
        if log:
            log.end(episode, result, size, counts)
        return result
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)


_copy: dict[tuple[str, str], tuple[ExitStack, str]] = {}
"""The last recording of this process, as demonstrations of one recording follow each other."""


def _local(episode: Episode) -> str:
    """The path of a recording, or of the copy of a URL, which is there until another one is asked for."""
    key = episode.motion, episode.motion_sha256
    if key not in _copy:
        for stack, _ in _copy.values():
            stack.close()
        _copy.clear()
        stack = ExitStack()
        _copy[key] = stack, stack.enter_context(local_copy(episode.motion))
    return _copy[key][1]


def _changed(plan: Plan, episode: Episode, scene_sha256: str, motion_sha256: str) -> Failure | None:
    """The failure of an episode that was computed of another scene or recording than those of its key."""
    request = of_demo(plan.requests[episode.job], episode.demo)
    if key_of(scene_sha256 if request.scenes else "", motion_sha256, request) == episode.key:
        return None
    return _failure(episode, "its scene or its recording has changed since the batch was planned: plan it again", 2)


def _quarantined(store: Store, episode: Episode, before: Sequence[tuple[int, str, float]]) -> bool:
    """Whether an episode has killed its processes too often or took too long; then it is recorded as failed."""
    codes = [code for code, *_ in before]
    if TIMED_OUT in codes:
        limit = before[codes.index(TIMED_OUT)][2]
        message, code = f"it was not done after {limit:g} s, its time limit; give more by --episode-timeout", KILLED
    elif len(codes) < ATTEMPTS:
        return False
    else:
        endings = [f"exit code {n}" if n >= 0 else signal.strsignal(-n) or f"signal {-n}" for n in codes]
        names, code = ", ".join(dict.fromkeys(endings)), INTERNAL_ERROR
        message = f"the process that computed it ended {len(codes)} times ({names})"
        if codes[-1] == -signal.SIGKILL:
            code = KILLED
            message += ", as for want of memory; --retry-failed on a machine with more, or set memory-limit in its job"
    store.fail(replace(_failure(episode, message, code), attempts=len(codes)))
    for _, log, _ in before:  # so that --retry-failed begins anew
        store.log(log, {"event": "failed", "key": episode.key}, at_once=True)
    return True


_plans: dict[str, tuple[str, Plan]] = {}


def planned(location: str, shard: int) -> Plan:
    """The part of the plan of a store with this shard; the last one is kept while the plan is unchanged."""
    store = Store(location)
    version = store.files.version(PLAN)
    known = _plans.get(location)
    if known is None or known[0] != version or not known[1].shard(shard):
        known = _plans[location] = (version, read_plan(store, shard))
    return known[1]


def _failure(episode: Episode, message: str, exit_code: int) -> Failure:
    return Failure(
        episode.key, episode.job, episode.motion, message, exit_code, socket.gethostname(), demo=episode.demo
    )


def request_of(plan: Plan, episode: Episode, motion: str, output: str, attempt: int = 0) -> RunRequest:
    """The run of an episode, of a local recording. One thread unless the job sets --threads.

    attempt: number of attempts before; each halves the memory limit.
    """
    request = of_demo(plan.requests[episode.job], episode.demo)
    engine = replace(request.engine, threads=request.engine.threads or 1)
    if attempt:
        limit = max((engine.memory_limit or free_memory() // 2) >> attempt, LEAST_MEMORY)
        engine = replace(engine, threads=1, memory_limit=limit)
    return replace(request, trajectory=motion or None, output=output, engine=engine, force=False)


def probe(job: Job) -> tuple[float, float]:
    """Seconds per episode and per byte of a recording, from first frames of the first recording that can be used.

    Raises InputError, of the first one, where none of the first recordings can be used.
    """
    errors: list[InputError] = []
    for motion in job.motions[:TRIED] or ("",):
        try:
            with local_copy(motion) as path:
                return _probe(job, path)
        except InputError as error:
            errors.append(error)
    raise errors[0]


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


# What a batch has computed: its state, and a sample computed again.


@dataclass(frozen=True, kw_only=True)
class BatchState(Result):
    """Counts of episodes, the seconds that the plan estimates for those that are left, failures, hosts and warnings.

    computed: number of contact sets that the command computed; None for a command that computes none.
    """

    SCHEMA: ClassVar[str] = "collide.batch/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("computed",)

    folder: str
    episodes: int
    shards: int
    done: int
    failed: int
    left: int
    estimated_seconds_left: float
    failures: list[Failure]
    hosts: list[HostThroughput]
    run_warnings: list[RunWarning]
    computed: int | None = None


def state_of(store: Store, plan: Plan, computed: int | None = None, shards: Sequence[int] | None = None) -> BatchState:
    """The state of a batch, from its folder alone. Episodes of one key count each.

    Args:
        computed: see `BatchState`. shards: whose logs are read, and contact sets checked; all without it.
    """
    planned = Counter(episode.key for episode in plan.episodes)
    checked = planned if shards is None else {episode.key for episode in plan.episodes if episode.shard in shards}
    history = History(store.logs(shards), planned)
    (results, _), failures = whole_results(store, history.sizes, checked), store.failures()
    left, seconds = 0, 0.0
    for episode in plan.episodes:
        if episode.key not in results and episode.key not in failures:
            left += 1
            seconds += episode.seconds
    failed = [key for key in planned if key in failures and key not in results]
    failed_count = sum(planned[key] for key in failed)
    return BatchState(
        folder=store.location,
        episodes=len(plan.episodes),
        shards=plan.shard_count,
        done=len(plan.episodes) - left - failed_count,
        failed=failed_count,
        left=left,
        estimated_seconds_left=seconds,
        computed=computed,
        failures=[failures[key] for key in failed],
        hosts=history.hosts(),
        run_warnings=history.warnings(),
    )


@dataclass(frozen=True, kw_only=True)
class VerifyResult(Result):
    """Contact sets that were computed again, and the files whose contacts differ."""

    SCHEMA: ClassVar[str] = "collide.batch_verify/1"

    checked: int
    different: list[str]


def verify(store: Store, plan: Plan, share: float, seed: int = 0, progress: Progress = None) -> VerifyResult:
    """Computes a share of the contact sets again, at least one. Raises InputError where there is none."""
    keys = set(store.results())
    done = [number for number, episode in enumerate(plan.episodes) if episode.key in keys]
    if not done:
        raise InputError("has no contact set to verify", store.location, "work on it with collide batch run")
    chosen = random.Random(seed).sample(done, max(1, round(share * len(done))))
    different = []
    for number, episode in enumerate((plan.episodes[row] for row in chosen), 1):
        with TemporaryFolder("verification") as folder, local_copy(episode.motion) as motion:
            again = run(request_of(plan, episode, motion, os.path.join(folder, "again.h5")))
        if store.content(episode.key) != again.content_sha256:
            different.append(store.result_location(episode.key))
        if progress:
            progress(number, len(chosen))
    return VerifyResult(checked=len(chosen), different=different)
