"""What a batch has computed: its state, a sample computed again, and its contact sets in other formats."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from collidecli.batch.episodes import parquet_bytes
from collidecli.batch.events import HostThroughput, RunWarning, run_warnings, throughput
from collidecli.batch.files import is_url
from collidecli.batch.gather_lerobot import write_lerobot
from collidecli.batch.gather_merge import write_merged_shards
from collidecli.batch.gather_parquet import write_parquet
from collidecli.batch.gather_robomimic import write_robomimic
from collidecli.batch.gathered import Gathered
from collidecli.batch.output_folder import output_folder, write_record
from collidecli.batch.pair_labels import NamedPair, named_pairs
from collidecli.batch.plan import Plan
from collidecli.batch.store import Failure, Store
from collidecli.batch.work import recomputed_content
from collidecli.commands.output_paths import check_ending
from collidecli.commands.result import Progress, Result
from collidecli.errors import InputError, OutputError, extra_module
from collidecli.storage.atomic_output import AtomicOutput


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


def state_of(store: Store, plan: Plan, computed: int | None = None) -> BatchState:
    """The state of a batch, from its folder alone. Episodes of one key count each. computed: see `BatchState`."""
    results, failures = set(store.results()), store.failures()
    planned: Counter[str] = Counter()
    failed, events = dict[str, int](), store.events()
    left, seconds = 0, 0.0
    for episode in plan.episodes:
        planned[episode.key] += 1
        if episode.key in results:
            continue
        if episode.key in failures:
            failed[episode.key] = failed.get(episode.key, 0) + 1
        else:
            left += 1
            seconds += episode.seconds
    failed_count = sum(failed.values())
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
        hosts=throughput(events, planned),
        run_warnings=run_warnings(events, planned),
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
        stored, again = recomputed_content(store, plan, episode)
        if stored != again:
            different.append(store.result_location(episode.key))
        if progress:
            progress(number, len(chosen))
    return VerifyResult(checked=len(chosen), different=different)


@dataclass(frozen=True, kw_only=True)
class GatherResult(Result):
    """The output of `gather`. dataset_sha256: over the sorted keys and content hashes of all contact sets.

    failed: number of episodes without a contact set, which the output lacks. groups: rows of each group of contacts
    beside the rigid ones; None without them.
    """

    SCHEMA: ClassVar[str] = "collide.batch_gather/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("groups",)

    output: str
    episodes: int
    failed: int
    contacts: int
    dataset_sha256: str
    groups: dict[str, int] | None = None


def gather(
    store: Store, plan: Plan, to: str, output: str, force: bool, pairs: Sequence[str] = (), progress: Progress = None
) -> GatherResult:
    """Writes the contact sets of a batch in a format. to: MANIFEST or one of FORMATS. pairs: see `named_pairs`.

    Raises InputError where an episode has neither a contact set nor a failure, or does not fit the format;
    OutputError for an output that cannot be written. Then no output is left, and one that was there is unchanged.
    """
    named = named_pairs(pairs)
    if named and to not in LABELLED:
        raise InputError("has no effect", "--pairs", f"only --to {' and '.join(LABELLED)} have columns of pairs")
    if to == MANIFEST:
        check_ending(output, (".parquet",), "a manifest")
    gathered = Gathered(store, plan, progress)
    if to == MANIFEST:
        _write_manifest(gathered, output, force)
        return _result(gathered, output)
    if is_url(output):
        raise OutputError("is the URL of an object store", output, "gather to a local folder, and copy it")
    with output_folder(output, force) as folder:
        FORMATS[to](folder, gathered, named)
        result = _result(gathered, output)
        write_record(folder, {"schema": result.SCHEMA, "to": to, "dataset_sha256": result.dataset_sha256})
    return result


MANIFEST = "manifest"
FORMATS: dict[str, Callable[[str, Gathered, tuple[NamedPair, ...]], None]] = {
    "merge": lambda folder, gathered, pairs: write_merged_shards(folder, gathered),
    "parquet": lambda folder, gathered, pairs: write_parquet(folder, gathered),
    "lerobot": write_lerobot,
    "robomimic": write_robomimic,
}
"""Functions that write a folder, by format."""
LABELLED = ("lerobot", "robomimic")
"""Formats with columns of named pairs."""


def _result(gathered: Gathered, output: str) -> GatherResult:
    return GatherResult(
        output=output,
        episodes=len(gathered.episodes),
        failed=gathered.failed,
        contacts=sum(size.contacts for size in gathered.sizes),
        dataset_sha256=gathered.dataset_sha256,
        groups={name: sum(size.groups.get(name, 0) for size in gathered.sizes) for name in gathered.group_names}
        or None,
    )


def _write_manifest(gathered: Gathered, output: str, force: bool) -> None:
    """Writes a Parquet table with a row per episode that has a contact set."""
    with AtomicOutput(output, force) as file:
        for _ in gathered:
            pass
        groups = gathered.group_names
        names = ("key", "job", "motion", "demo", "content_sha256", "contacts", *groups, "frames", "file")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for size in gathered.sizes:
            path = gathered.store.result_location(size.done.episode.key)
            if not is_url(path):
                path = os.path.relpath(path, os.path.dirname(os.path.abspath(output)))
            for name in ("key", "job", "motion", "demo"):
                columns[name].append(getattr(size.done.episode, name))
            for name in ("content_sha256", "contacts", "frames"):
                columns[name].append(getattr(size, name))
            for name in groups:
                columns[name].append(size.groups.get(name, 0))
            columns["file"].append(path)
        table = extra_module("pyarrow", "tables", "batch gather").table(columns)
        about = {"collide.dataset_sha256": gathered.dataset_sha256}
        file.write(parquet_bytes(table.replace_schema_metadata(about), "batch gather"))
        file.commit()
