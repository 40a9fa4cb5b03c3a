"""The event log of a batch: a row per shard that computed something, and the throughput of each host by it."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from collidecli.batch.episodes import Episode
from collidecli.batch.store import Store
from collidecli.commands.run import RunResult
from collidecli.commands.timing import instruction_set, processor_name


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
