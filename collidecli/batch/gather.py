"""What a batch has computed: its state, a sample computed again, and a manifest of its contact sets."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import Any, ClassVar

from collidecli.batch.events import HostThroughput, dataset_hash, throughput
from collidecli.batch.files import is_url
from collidecli.batch.plan import Plan, parquet_bytes
from collidecli.batch.store import Failure, Store
from collidecli.batch.work import recomputed_content
from collidecli.commands.output_paths import check_ending
from collidecli.commands.result import Progress, Result
from collidecli.errors import InputError, extra_module
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet


@dataclass(frozen=True, kw_only=True)
class BatchState(Result):
    """Counts of episodes, the seconds that the plan estimates for those that are left, failures, and hosts."""

    SCHEMA: ClassVar[str] = "collide.batch/1"

    folder: str
    episodes: int
    shards: int
    done: int
    failed: int
    left: int
    estimated_seconds_left: float
    failures: list[Failure]
    hosts: list[HostThroughput]


def state_of(store: Store, plan: Plan) -> BatchState:
    """The state of a batch, from its folder alone. Episodes of one key count each."""
    done, failures = set(store.results()), store.failures()
    left = [e for e in plan.episodes if e.key not in done and e.key not in failures]
    failed = [e for e in plan.episodes if e.key in failures and e.key not in done]
    return BatchState(
        folder=store.location,
        episodes=len(plan.episodes),
        shards=plan.shard_count,
        done=len(plan.episodes) - len(left) - len(failed),
        failed=len(failed),
        left=len(left),
        estimated_seconds_left=sum(episode.seconds for episode in left),
        failures=[failures[key] for key in dict.fromkeys(episode.key for episode in failed)],
        hosts=throughput(store.events()),
    )


@dataclass(frozen=True, kw_only=True)
class VerifyResult(Result):
    """Contact sets that were computed again, and the files whose contacts differ."""

    SCHEMA: ClassVar[str] = "collide.batch_verify/1"

    checked: int
    different: list[str]


def verify(store: Store, plan: Plan, share: float, seed: int = 0, progress: Progress = None) -> VerifyResult:
    """Computes a share of the contact sets again, at least one. Raises InputError where there is none."""
    done = [episode for episode in plan.episodes if store.has_result(episode.key)]
    if not done:
        raise InputError("has no contact set to verify", store.location, "work on it with collide batch run")
    chosen = random.Random(seed).sample(done, max(1, round(share * len(done))))
    different = []
    for number, episode in enumerate(chosen, 1):
        stored, again = recomputed_content(store, plan, episode)
        if stored != again:
            different.append(store.result_location(episode.key))
        if progress:
            progress(number, len(chosen))
    return VerifyResult(checked=len(chosen), different=different)


@dataclass(frozen=True, kw_only=True)
class GatherResult(Result):
    """The output of `gather`: episodes with a row, and failed ones, which have none.

    dataset_sha256: over the sorted keys and content hashes of all contact sets.
    """

    SCHEMA: ClassVar[str] = "collide.batch_gather/1"

    output: str
    episodes: int
    failed: int
    contacts: int
    dataset_sha256: str


def write_manifest(store: Store, plan: Plan, output: str, force: bool, progress: Progress = None) -> GatherResult:
    """Writes a Parquet table with a row per episode that has a contact set, in the order of job and recording.

    Raises InputError for another extension than .parquet, and where an episode has neither a contact set nor a failure;
    OutputError.
    """
    check_ending(output, (".parquet",), "a manifest")
    rows, sizes = [], {}
    episodes = sorted(plan.episodes, key=lambda episode: (episode.job, episode.motion, episode.demo))
    failures = store.failures()
    for number, episode in enumerate(episodes, 1):
        if not store.has_result(episode.key):
            if episode.key in failures:
                continue
            fix = "work on it with collide batch run"
            raise InputError(f"has no contact set of {episode.motion or episode.job}", store.location, fix)
        if episode.key not in sizes:
            with store.result(episode.key) as path, ContactSet.open(path) as contacts:
                frames = int(contacts.episodes.frame_count.sum()) if contacts.episodes else contacts.frame_count
                sizes[episode.key] = (contacts.content_sha256, contacts.contact_count, frames)
        content, contact_count, frame_count = sizes[episode.key]
        file = store.result_location(episode.key)
        if not is_url(file):
            file = os.path.relpath(file, os.path.dirname(os.path.abspath(output)))
        rows.append((episode.key, episode.job, episode.motion, episode.demo, content, contact_count, frame_count, file))
        if progress:
            progress(number, len(episodes))
    names = ("key", "job", "motion", "demo", "content_sha256", "contacts", "frames", "file")
    dataset = dataset_hash({row[0]: row[4] for row in rows})
    columns = {name: [row[number] for row in rows] for number, name in enumerate(names)}
    _write_parquet(columns, dataset, output, force)
    return GatherResult(
        output=output,
        episodes=len(rows),
        failed=len(episodes) - len(rows),
        contacts=sum(row[5] for row in rows),
        dataset_sha256=dataset,
    )


def _write_parquet(columns: dict[str, list[Any]], dataset: str, output: str, force: bool) -> None:
    table = extra_module("pyarrow", "tables", "batch gather").table(columns)
    content = parquet_bytes(table.replace_schema_metadata({"collide.dataset_sha256": dataset}), "batch gather")
    with AtomicOutput(output, force) as file:
        file.write(content)
        file.commit()
