"""The log of a batch: a file for each process and shard, with a line for each episode as it starts
and ends.

A process that was killed leaves an episode that has started and not ended: an attempt, which the
next process finds anywhere.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from collidecli.motions.machine import instruction_set, processor_name
from collidecli.scene.contact_columns import RIGID_CONTACTS, TABLES_BY_NAME
from collidecli.storage.contact_sets.header import EPISODE_GROUP
from collidecli.storage.files import is_url
from collidecli.verbs.batch.episodes import Episode
from collidecli.verbs.batch.store import Store
from collidecli.verbs.run.run import RunResult

LogFiles = Iterable[tuple[str, Sequence[Mapping[str, Any]]]]
"""Names and events of logs, of `Store.logs`."""


@dataclass(frozen=True)
class ShardReport:
    """Counts of a shard. done: computed now. skipped: had a contact set. failed: quarantined now or
    before."""

    shard: int
    done: int = 0
    skipped: int = 0
    failed: int = 0


@dataclass(frozen=True)
class HostThroughput:
    """What one host computed. seconds: of all its shards. last: time of its last shard [s since
    1970]."""

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
    """A warning of the runs of a batch. episodes: number of those that gave it. motion: recording
    of one of them."""

    message: str
    episodes: int
    motion: str


class ShardLog:
    """The log of this process and shard. The end of an episode is written with the start of the
    next.

    at_once: whether an object store receives each line before the episode starts.
    """

    def __init__(self, store: Store, name: str, at_once: bool) -> None:
        self._store = store
        self._name = name
        self._at_once = at_once
        self._lines: list[dict[str, Any]] = [{"event": "begin", **_machine()}]
        self._began = 0.0

    def start(self, key: str) -> None:
        """An episode is computed from now on."""
        self._store.log(
            self._name, *self._lines, {"event": "start", "key": key}, at_once=self._at_once
        )
        self._lines = []
        self._began = time.perf_counter()

    def end(
        self, episode: Episode, result: RunResult | None, size: int, counts: Mapping[str, int]
    ) -> None:
        """The episode that has started is computed, or has failed. size: of its contact set
        [bytes]. counts: see `counts_of`."""
        line = {
            "event": "failed" if result is None else "done",
            "key": episode.key,
            "time": time.time(),
        }
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
"""Event of a process that was ended on request, or by an outage of the store: its episode has no
part in that."""


def attempts(logs: LogFiles) -> dict[str, list[tuple[int, str, float]]]:
    """Exit code, name of the log and time limit of each process that was killed in an episode, by
    key.

    A process whose exit code nobody has recorded was killed with the one that started it: SIGKILL.
    """
    tries: dict[str, list[tuple[int, str, float]]] = {}
    for name, events in logs:
        key = ""
        killed = {}
        for event in events:
            if event.get("event") == "start":
                key = event.get("key", "")
                killed = {}
            elif event.get("event") == "killed":
                killed = event
            elif event.get("event") in ("done", "failed", STOPPED, "end"):
                key = ""
        if key:
            tries.setdefault(key, []).append(
                (killed.get("exit_code", -9), name, killed.get("seconds", 0.0))
            )
    return tries


def dataset_hash(contents: Mapping[str, str]) -> str:
    """SHA-256 over the sorted pairs of key and content hash."""
    return hashlib.sha256(
        "".join(f"{key} {contents[key]}\n" for key in sorted(contents)).encode()
    ).hexdigest()


@cache
def _machine() -> dict[str, str]:
    return {
        "host": socket.gethostname(),
        "processor": processor_name(),
        "instruction_set": instruction_set(),
    }


@dataclass
class _Host:
    machine: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    last: float = 0.0
    keys: set[str] = field(default_factory=set)
    shards: set[str] = field(default_factory=set)


class History:
    """What the logs of a batch have of the episodes of a plan, read once. planned: number of
    episodes of each key.

    sizes: of the contact sets that were computed [bytes], by key. results: the last event of each
    that has counts.
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
        if {"bytes", "content_sha256", "counts"} <= event.keys() and {
            *map(type, event["counts"].values())
        } == {int}:
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
            hosts.append(
                HostThroughput(
                    name, *kind, len(host.shards), episodes, host.seconds, speed, host.last
                )
            )
        return sorted(hosts, key=lambda item: (-item.episodes, item.host))

    def warnings(self) -> list[RunWarning]:
        """The distinct warnings of the runs, those of most episodes first."""
        warned = self._warned.items()
        warnings = (
            RunWarning(text, sum(self._planned[key] for key in of), next(iter(of.values())))
            for text, of in warned
        )
        return sorted(warnings, key=lambda warning: (-warning.episodes, warning.message))


def counts_of(file: Any) -> dict[str, int]:
    """Rows of each table of an open contact set by name, "contacts" of rigid ones, and "frames" in
    all episodes."""
    rows = {
        name: len(file[f"{name}/{group.columns[0].name}"])
        for name, group in TABLES_BY_NAME.items()
        if name in file
    }
    demos = EPISODE_GROUP in file
    frames = int(file[f"{EPISODE_GROUP}/frame_count"][:].sum()) if demos else len(file["time/time"])
    return {"contacts": rows.pop(RIGID_CONTACTS.name), **rows, "frames": frames}


def whole_results(
    store: Store, sizes: Mapping[str, Sequence[int]], checked: Container[str]
) -> tuple[set[str], list[str]]:
    """The keys with a contact set, and those of `checked` whose file is truncated or damaged, which
    they lack.

    A file is opened where its size is not one of `sizes`, of `History`; in an object store, which
    has no half of an upload, only where there are sizes.
    """
    sizes_by_key = store.results()
    remote = is_url(store.location)
    suspects = (
        key
        for key, size in sizes_by_key.items()
        if size not in sizes.get(key, (size,) if remote else ())
    )
    damaged = [key for key in suspects if key in checked and store.is_damaged(key)]
    return set(sizes_by_key).difference(damaged), damaged
