"""What a batch has computed: its state, a sample computed again, and its contact sets in other formats."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.labels import LabelRule
from collidecli.batch import gather_formats
from collidecli.batch.gather_formats import EPISODES, READ_ME, DoneEpisode, Gathered, write_parquet, write_tables
from collidecli.batch.plan import Plan, parquet_bytes
from collidecli.batch.store import RECORD, Failure, Store, output_folder, read_record, write_record
from collidecli.batch.work import History, HostThroughput, RunWarning, dataset_hash, recomputed_content, whole_results
from collidecli.commands.label import LabelOptions, NamedPairs
from collidecli.commands.merge import MergePlan, episodes_of_worlds, merge_episodes
from collidecli.commands.results import Progress, Result, check_ending
from collidecli.errors import InputError, OutputError
from collidecli.scene.motion import Episodes
from collidecli.scene.tables import GROUPS_BY_NAME
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import check_groups
from collidecli.storage.files import is_url
from collidecli.storage.flat_tables import require_pyarrow
from collidecli.temporary_folders import TemporaryFolder

# Contact sets of a batch merged to fewer, larger ones, in which every episode is a world of its own.

SHARD_BYTES = 64 << 20
"""Least size of the contact sets that are merged to one, except the last ones of a job."""
MOST_SETS = 256
"""Number of contact sets that are open at a time: systems limit open files to 1024."""


def write_merged_shards(folder: str, gathered: Gathered) -> None:
    """Writes `<job>/shard-00000.h5` and further contact sets, each of episodes of one job.

    Raises InputError for episodes of a job whose scenes, options or times differ.
    """
    for job, episodes, below in gathered.jobs():
        os.makedirs(os.path.join(folder, job), exist_ok=True)
        for number, shard in enumerate(_shards(gathered, episodes)):
            names = [_name(done, below) for done in shard]
            with ExitStack() as stack:
                sets = [stack.enter_context(gathered.open(done)) for done in shard]
                for contact_set in sets:
                    check_groups(contact_set)
                output = os.path.join(folder, job, f"shard-{number:05d}.h5")
                plan = _plan(sets, shard)
                merge_episodes(sets, plan, _episodes(sets, names, plan), output)


def _shards(gathered: Gathered, episodes: Sequence[DoneEpisode]) -> Iterator[list[DoneEpisode]]:
    shard, size = list[DoneEpisode](), 0
    for done in episodes:
        size += gathered.sizes[done.episode.key]
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
    longest = max(sets, key=lambda contact_set: contact_set.frame_count)
    for contact_set, done in zip(sets, shard, strict=True):
        for name in ("step", "time"):
            ours, theirs = getattr(contact_set, name), getattr(longest, name)[: contact_set.frame_count]
            if not np.array_equal(ours, theirs):
                frame = int(np.argmax(ours != theirs))
                what = f"frame {frame} has {name} {ours[frame]:g}, and another episode has {theirs[frame]:g}"
                fix = "one contact set has one time for each frame: use --to parquet, or run with --fps"
                raise InputError(what, done.episode.label, fix)
    counts = [contact_set.world_count for contact_set in sets]
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    frames = tuple(np.arange(contact_set.frame_count) for contact_set in sets)
    return MergePlan(frames, first, sum(counts), longest.step, longest.time)


def _episodes(sets: Sequence[ContactSet], names: Sequence[str], plan: MergePlan) -> Episodes:
    """Each world of a set as an episode; names that are not unique end with `#` and the merged world."""
    parts = []
    for contact_set, name in zip(sets, names, strict=True):
        world = np.arange(contact_set.world_count)
        parts.append(Episodes((name,) * len(world), world, world * 0, world * 0 + contact_set.frame_count))
    return episodes_of_worlds(parts, plan.first_world)


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
        stored, again = recomputed_content(store, plan, episode)
        if stored != again:
            different.append(store.result_location(episode.key))
        if progress:
            progress(number, len(chosen))
    return VerifyResult(checked=len(chosen), different=different)


@dataclass(frozen=True)
class GatherRequest:
    """to: MANIFEST or one of FORMATS. pairs: see `NamedPairs`. job: only its episodes, else all.

    enter, leave, min_frames: when a pair touches, see `LabelOptions`. slot: k and n, the k-th of n parts of a folder of
    Parquet; None is all of it.
    """

    to: str
    output: str
    force: bool = False
    pairs: tuple[tuple[str, str], ...] = ()
    job: str = ""
    slot: tuple[int, int] | None = None
    enter: float = 0.0
    leave: float | None = None
    min_frames: int = 1


@dataclass(frozen=True, kw_only=True)
class GatherResult(Result):
    """The output of `gather`. dataset_sha256: over the sorted keys and content hashes of all contact sets.

    failed: number of episodes without a contact set, which the output lacks. groups: rows of each group of contacts
    beside the rigid ones; None without them. slots_left: number of slots whose parts are missing, and the other values
    are those of one part; 0 where all are there, and the values are those of all; None without --slot.
    """

    SCHEMA: ClassVar[str] = "collide.batch_gather/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("groups", "slots_left")

    output: str
    episodes: int
    failed: int
    contacts: int
    dataset_sha256: str
    groups: dict[str, int] | None = None
    slots_left: int | None = None


def gather(store: Store, plan: Plan, request: GatherRequest, progress: Progress = None) -> GatherResult:
    """Writes the contact sets of a batch in a format.

    Raises InputError where an episode has neither a contact set nor a failure, or does not fit the format;
    OutputError for an output that cannot be written. Then no output is left, and one that was there is unchanged.
    """
    to, output = request.to, request.output
    rule = LabelOptions(enter=request.enter, leave=request.leave, min_frames=request.min_frames).rule
    named = NamedPairs(request.pairs, rule)
    if not named.names and rule != LabelRule():
        raise InputError("define labels, and there are none", "--enter, --leave, --min-frames", "name --pairs")
    if named.names and to not in LABELLED:
        raise InputError("has no effect", "--pairs", f"only --to {' and '.join(LABELLED)} have columns of pairs")
    if request.slot and to != "parquet":
        raise InputError(f"has no parts of --to {to}", "--slot", "only --to parquet is divided into slots")
    if to == MANIFEST:
        check_ending(output, (".parquet",), "a manifest")
    elif is_url(output):
        raise OutputError("is the URL of an object store", output, "gather to a local folder, and copy it")
    gathered = Gathered(store, plan, progress, request.job, request.slot or (0, 1))
    if to == MANIFEST:
        return _write_manifest(gathered, output, request.force)
    if request.slot:
        return _gather_slot(gathered, output, request.force, *request.slot)
    with output_folder(output, request.force) as folder:
        FORMATS[to](folder, gathered, named)
        named.check()
        result = _result(gathered.table, gathered, output)
        write_record(folder, {"to": to, "dataset_sha256": result.dataset_sha256})
    return result


def _gather_slot(gathered: Gathered, output: str, force: bool, slot: int, count: int) -> GatherResult:
    """Writes the part of a slot, unless it is there. The slot that ends last adds the tables of all, and RECORD."""
    parts = [os.path.join(output, f"slot-{k:05d}-of-{count:05d}") for k in range(count)]
    before = read_record(output)
    if before and before.get("slots") != count:
        raise OutputError("has an output of other slots", output, "choose another folder")
    os.makedirs(output, exist_ok=True)
    if force or read_record(parts[slot]).get("keys_sha256") != gathered.keys_sha256:
        with output_folder(parts[slot], force) as folder:
            write_parquet(folder, gathered)
            write_record(folder, {"to": "parquet", "keys_sha256": gathered.keys_sha256})
    written = [part for part in parts if read_record(part).get("keys_sha256") == gathered.keys_sha256]
    left = count - len(written)
    tables = [
        require_pyarrow("batch").parquet.ParquetFile(os.path.join(part, EPISODES)).read()
        for part in ([parts[slot]] if left else parts)
    ]
    table = require_pyarrow("batch").concat_tables(tables, promote_options="default")
    result = _result(table, gathered, parts[slot] if left else output, left)
    if not left:
        with TemporaryFolder("gather", output) as folder:
            write_tables(folder, table, f"slot-*-of-{count:05d}/")
            write_record(folder, {"to": "parquet", "slots": count, "dataset_sha256": result.dataset_sha256})
            for name in (EPISODES, READ_ME, RECORD):  # the record last: an output without it is not complete
                os.replace(os.path.join(folder, name), os.path.join(output, name))
    return result


MANIFEST = "manifest"
FORMATS: dict[str, Callable[[str, Gathered, NamedPairs], None]] = {
    "merge": lambda folder, gathered, pairs: write_merged_shards(folder, gathered),
    "parquet": lambda folder, gathered, pairs: write_parquet(folder, gathered),
    "lerobot": gather_formats.write_lerobot,
    "robomimic": gather_formats.write_robomimic,
}
"""Functions that write a folder, by format."""
LABELLED = ("lerobot", "robomimic")
"""Formats with columns of named pairs."""


def _result(table: Any, gathered: Gathered, output: str, slots_left: int | None = None) -> GatherResult:
    groups = {name: sum(filter(None, table[name].to_pylist())) for name in GROUPS_BY_NAME if name in table.column_names}
    contents = zip(table["key"].to_pylist(), table["content_sha256"].to_pylist(), strict=True)
    return GatherResult(
        output=output,
        episodes=len(table),
        failed=gathered.failed,
        contacts=sum(table["contacts"].to_pylist()),
        dataset_sha256=dataset_hash(dict(contents)),
        groups=groups or None,
        slots_left=slots_left,
    )


def _write_manifest(gathered: Gathered, output: str, force: bool) -> GatherResult:
    with AtomicOutput(output, force) as file:
        gathered.measure()
        table = gathered.table
        location = gathered.store.location.rstrip("/")
        if not is_url(location):
            location = os.path.relpath(location, os.path.dirname(os.path.abspath(output)))
        folder = "" if location == "." else f"{location}/"
        files = [f"{folder}{gathered.store.result_name(key)}" for key in table["key"].to_pylist()]
        table = table.drop_columns(["episode_index"]).append_column("file", [files])
        result = _result(table, gathered, output)
        about = {"collide.dataset_sha256": result.dataset_sha256}
        file.write(parquet_bytes(table.replace_schema_metadata(about), "batch gather"))
        file.commit()
    return result
