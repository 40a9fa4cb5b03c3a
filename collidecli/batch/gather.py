"""What a batch has computed: its state, a sample computed again, and its contact sets in other formats."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from collidecli.batch.gather_formats import (
    DoneEpisode,
    Gathered,
    folder_name,
    write_lerobot,
    write_parquet,
    write_robomimic,
)
from collidecli.batch.plan import NamedPair, Plan, named_pairs, parquet_bytes
from collidecli.batch.store import Failure, Store, is_url, output_folder, write_record
from collidecli.batch.work import History, HostThroughput, RunWarning, recomputed_content, whole_results
from collidecli.commands.merge import MergePlan, merge_episodes
from collidecli.commands.results import Progress, Result, check_ending
from collidecli.errors import InputError, OutputError, extra_module
from collidecli.scene.motion import Episodes
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import check_groups

# Contact sets of a batch merged to fewer, larger ones, in which every episode is a world of its own.

SHARD_BYTES = 64 << 20
"""Least size of the contact sets that are merged to one, except the last ones of a job."""
MOST_SETS = 256
"""Number of contact sets that are open at a time: systems limit open files to 1024."""


def write_merged_shards(folder: str, gathered: Gathered) -> None:
    """Writes `<job>/shard-00000.h5` and further contact sets, each of episodes of one job.

    Raises InputError for episodes of a job whose scenes, options or times differ.
    """
    for job, of_job in groupby(gathered.episodes, key=lambda done: done.episode.job):
        os.makedirs(os.path.join(folder, folder_name(job)), exist_ok=True)
        held = list(of_job)
        below = os.path.commonpath([os.path.dirname(done.episode.motion) for done in held])
        for number, shard in enumerate(_shards(gathered, held)):
            names = [_name(done, below) for done in shard]
            with ExitStack() as stack:
                sets = [stack.enter_context(gathered.open(done)) for done in shard]
                for one in sets:
                    check_groups(one)
                output = os.path.join(folder, job, f"shard-{number:05d}.h5")
                plan = _plan(sets, shard)
                merge_episodes(sets, plan, _episodes(sets, names, plan), output)


def _shards(gathered: Gathered, episodes: Sequence[DoneEpisode]) -> Iterator[list[DoneEpisode]]:
    shard: list[DoneEpisode] = []
    size = 0
    for done in episodes:
        with gathered.store.result(done.episode.key) as path:
            size += os.path.getsize(path)
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
    longest = max(sets, key=lambda one: one.frame_count)
    for one, done in zip(sets, shard, strict=True):
        for name in ("step", "time"):
            ours, theirs = getattr(one, name), getattr(longest, name)[: one.frame_count]
            if not np.array_equal(ours, theirs):
                frame = int(np.argmax(ours != theirs))
                what = f"frame {frame} has {name} {ours[frame]:g}, and another episode has {theirs[frame]:g}"
                fix = "one contact set has one time for each frame: use --to parquet, or run with --fps"
                raise InputError(what, done.label, fix)
    counts = [one.world_count for one in sets]
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    frames = tuple(np.arange(one.frame_count) for one in sets)
    return MergePlan(frames, first, sum(counts), longest.step, longest.time)


def _episodes(sets: Sequence[ContactSet], names: Sequence[str], plan: MergePlan) -> Episodes:
    """Each set as one episode, or one per world if it has several, with `#` and the merged world after the name."""
    found: list[tuple[str, int, int]] = []
    for one, name, first in zip(sets, names, plan.first_world, strict=True):
        worlds = range(first, first + one.world_count)
        found += [(name if len(worlds) == 1 else f"{name}#{world}", world, one.frame_count) for world in worlds]
    taken = [name for name, _, _ in found]
    unique = [name if taken.count(name) == 1 else f"{name}#{world}" for name, world, _ in found]
    frames = np.array([count for _, _, count in found], np.int64)
    world = np.array([world for _, world, _ in found], np.int32)
    return Episodes(tuple(unique), world, np.zeros(len(found), np.int64), frames)


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
    history = History(store.logs(), Counter(episode.key for episode in plan.episodes))
    (results, _), failures = whole_results(store, history.sizes), store.failures()
    failed = dict[str, int]()
    left, seconds = 0, 0.0
    for episode in plan.episodes:
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
