"""Command line of `collide batch`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.commands import Verb, VerbGroup
from collidecli.cli.settings import option, repeated_values
from collidecli.cli.shared_options import force_option, request_of, together
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import DURATION, PatternPair, WholeNumber
from collidecli.errors import CollideError, InputError, OutputError
from collidecli.escaping import printable
from collidecli.exit_codes import DIFFERENCE, SUCCESS
from collidecli.verbs.batch.job_options import job_request
from collidecli.verbs.label.command import rule_options

if TYPE_CHECKING:
    from collidecli.verbs.batch.episodes import EpisodeTable
    from collidecli.verbs.batch.jobs import Job
    from collidecli.verbs.batch.log import ShardReport
    from collidecli.verbs.batch.plan import Plan
    from collidecli.verbs.batch.state import BatchState
    from collidecli.verbs.batch.store import Store

EPILOG = """\b
collide batch run jobs.toml -o nightly
collide batch status nightly
collide batch gather nightly -o contacts.parquet
"""
SHARD = "Estimated duration of a shard, the unit of work. [default: 90 s]"
AGAIN = "Also compute the episodes that failed before."
TIMEOUT = (
    "Time limit of an episode, which is then listed as failed. [default: 1 h, or 100 times the"
    " estimate if more]"
)
FOLDER = "The folder of the batch, or the URL of an object store: its plan and its contact sets."
EXECUTOR = "Where to compute: processes of this machine, or a Dask cluster."
SAMPLE = "Share of the contact sets to compute again, at least one."
FORMATS = ("manifest", "merge", "parquet", "lerobot", "robomimic")
TO = (
    "manifest: a table with a row per episode. Others are folders: merge: contact sets of 64 MiB or"
    " more; "
)
TO += (
    "parquet: tables with a row per contact; lerobot: a row per frame; robomimic: a file per"
    " recording."
)
PAIRS = (
    "Also columns of the pairs that match one pattern each, by shape or body: whether they touch,"
    " and their least "
)
PAIRS += "distance. lerobot and robomimic only; repeat for more."
RUN_EXAMPLES = """\b
collide batch run jobs.toml -o nightly --workers 8
collide batch run nightly --retry-failed"""
WORK_EXAMPLES = """\b
collide batch work nightly --slot 3/8
collide batch work nightly --slot $((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))/$SLURM_ARRAY_TASK_COUNT"""  # noqa: E501 (a command that is copied)
GATHER_EXAMPLES = """\b
collide batch gather nightly -o all.parquet
collide batch gather nightly --to parquet -o contacts/"""
execution = partial(option, section="Execution")
connection = partial(execution, starts_programs=True)
"""A scheduler of Dask sends its workers code."""
ADDRESS = "Address of a Dask scheduler. [default: a local cluster]"
written = partial(option, section="Output")
HELP = (
    "Run many recordings: plan, compute with any number of processes or machines, and gather the"
    " results."
)
verb = VerbGroup("batch", HELP, EPILOG)


def _planned(
    streams: Streams, jobs: str, folder: str, shard_seconds: float | None, force: bool
) -> tuple[Store, Plan]:
    """The plan of a job file, written to the folder; the plan that is there where it has the same
    episodes."""
    from collidecli.verbs.batch.episodes import EpisodeTable
    from collidecli.verbs.batch.jobs import read_jobs
    from collidecli.verbs.batch.plan import SHARD_SECONDS, make_plan, read_plan, write_plan
    from collidecli.verbs.batch.store import Store

    planned_jobs = read_jobs(jobs, job_request)
    store = Store(folder)
    earlier = None
    if store.has_plan():
        with suppress(InputError) if force else nullcontext():
            earlier = read_plan(store)
    inputs = _hashed(streams, planned_jobs, jobs, earlier)
    if earlier is not None and not force:
        if not earlier.episodes.same_recordings(EpisodeTable.joined(list(inputs.values()))):
            fix = "give another folder, or replace it by collide batch plan --force"
            raise OutputError("has the plan of other recordings or options", folder, fix)
        _check_shards(earlier, shard_seconds, folder)
        return store, earlier
    seconds = shard_seconds or SHARD_SECONDS
    write_plan(
        make_plan(planned_jobs, inputs, _estimated(streams, planned_jobs, jobs), seconds), store
    )
    return store, read_plan(store)


def _check_shards(plan: Plan, shard_seconds: float | None, folder: str) -> None:
    """Raises InputError where another duration of shards is asked for than that of the plan."""
    if shard_seconds not in (None, plan.shard_seconds):
        what = (
            f"is {shard_seconds:g} s, and the shards of the plan in {folder} are of"
            f" {plan.shard_seconds:g} s"
        )
        raise InputError(
            what,
            "--shard-seconds",
            "leave it out, or replace the plan by collide batch plan --force",
        )


def _hashed(
    streams: Streams, jobs: Sequence[Job], path: str, old: Plan | None
) -> dict[str, EpisodeTable]:
    """The episodes of each job, with a progress bar of the recordings. old: a plan with hashes of
    some of them."""
    from collidecli.verbs.batch.episodes import EpisodeTable
    from collidecli.verbs.batch.jobs import named
    from collidecli.verbs.batch.plan import episodes_of

    hashed = {}
    total = sum(len(job.motions) for job in jobs)
    before = 0
    hashes = (
        {(e.motion, e.motion_state): e.motion_sha256 for e in old.episodes if e.motion_state}
        if old
        else {}
    )
    with streams.progress("hashing", before="reading scenes", noun="recordings") as progress:
        for job in jobs:
            first = before
            counted = progress and (lambda done, first=first: progress(first + done, total))
            with named(job, path):
                hashed[job.name] = EpisodeTable.of(episodes_of(job, counted, hashes))
            before += len(job.motions)
    return hashed


def _estimated(streams: Streams, jobs: Sequence[Job], path: str) -> dict[str, tuple[float, float]]:
    """Seconds per episode and per byte of a recording of each job; their kernels are compiled
    then."""
    from collidecli.verbs.batch.episode_worker import probe
    from collidecli.verbs.batch.jobs import named

    costs = {}
    for job in jobs:
        with (
            streams.progress(f"estimating job {printable(job.name)}", kernels=True),
            named(job, path),
        ):
            costs[job.name] = probe(job)
    return costs


@verb.command("plan", cls=Verb, epilog="\b\ncollide batch plan jobs.toml -o nightly")
@click.argument("jobs", metavar="JOBS.TOML")
@written("-o", "--output", "folder", metavar="FOLDER", required=True, help=FOLDER)
@option("--shard-seconds", type=DURATION, section="Plan", help=SHARD)
@force_option
@click.pass_context
def plan_verb(
    ctx: click.Context, jobs: str, folder: str, shard_seconds: float | None, force: bool
) -> int:
    """Expand the patterns, hash the inputs, estimate the cost, and write FOLDER/plan.parquet."""
    from collidecli.verbs.batch.state import state_of
    from collidecli.verbs.batch.tables import state_table

    streams = streams_of(ctx)
    store, plan = _planned(streams, jobs, folder, shard_seconds, force)
    streams.result(state_of(store, plan), state_table)
    return SUCCESS


def _opened(folder: str) -> tuple[Store, Plan]:
    """The store of a batch and its plan."""
    from collidecli.verbs.batch.plan import read_plan
    from collidecli.verbs.batch.store import open_store

    store = open_store(folder)
    return store, read_plan(store)


def execution_options(workers: int, text: str) -> Callable:
    """A decorator that adds the options of computing. workers: default number. text: of
    --workers."""
    return together(
        execution(
            "--workers",
            type=WholeNumber(workers),
            default=workers,
            show_default=workers > 0,
            help=text,
        ),
        execution("--retry-failed", is_flag=True, help=AGAIN),
        execution("--episode-timeout", type=DURATION, help=TIMEOUT),
    )


@verb.command("run", cls=Verb, epilog=RUN_EXAMPLES)
@click.argument("target", metavar="FOLDER|JOBS.TOML")
@written("-o", "--output", "folder", metavar="FOLDER", help=f"{FOLDER} Only with JOBS.TOML.")
@option("--shard-seconds", type=DURATION, section="Plan", help=SHARD)
@execution_options(0, "Number of worker processes. [default: one per core or by CPU quota]")
@execution(
    "--executor", type=click.Choice(("processes", "dask")), default="processes", help=EXECUTOR
)
@connection("--address", metavar="URL", help=ADDRESS)
@connection("--scheduler-file", metavar="FILE", help="File with the address of a Dask scheduler.")
@click.pass_context
def run_verb(ctx: click.Context, target: str, folder: str | None, **values: Any) -> int:
    """Compute every episode that has no contact set yet. JOBS.TOML is planned first."""
    from collidecli.storage.files import is_url

    address = values["address"] or values["scheduler_file"]
    if values["executor"] == "processes" and address:
        raise InputError(
            "has no effect on processes", "--address or --scheduler-file", "give --executor dask"
        )
    if values["address"] and values["scheduler_file"]:
        raise InputError(
            "both name a scheduler", "--address and --scheduler-file", "give one of them"
        )
    if address and values["workers"]:
        raise InputError(
            "has no effect on a running cluster", "--workers", "start it with as many threads"
        )
    if folder is None or os.path.isdir(target) or is_url(target):
        if folder is not None:
            raise InputError("is the folder of a batch", target, "remove -o")
        if os.path.isfile(target):
            raise InputError(
                "is a job file", target, "add -o FOLDER, for its plan and its contact sets"
            )
        store, plan = _opened(target)
        _check_shards(plan, values["shard_seconds"], target)
    else:
        store, plan = _planned(
            streams_of(ctx), target, folder, values["shard_seconds"], force=False
        )
    return _compute(streams_of(ctx), store, plan, None, values)


def _compute(
    streams: Streams, store: Store, plan: Plan, shards: range | None, values: Mapping[str, Any]
) -> int:
    """Computes what is left of these shards, or of all, and prints the state; 1 where an episode
    has no contact set.

    Removes contact sets that are damaged, and names them. values: of the options of `run` or
    `work`.
    """
    from collidecli.engine.scheduler import worker_count
    from collidecli.verbs.batch.log import History, whole_results
    from collidecli.verbs.batch.state import state_of
    from collidecli.verbs.batch.tables import state_table

    chosen = range(plan.shard_count) if shards is None else shards
    keys = {episode.key for episode in plan.episodes if episode.shard in chosen}
    if values["retry_failed"]:
        for key in keys.intersection(store.failures()):
            store.forget_failure(key)
    known, damaged = whole_results(store, History(store.logs(shards), {}).sizes, keys)
    for key in damaged:
        streams.warn(
            f"{store.result_location(key)} is truncated or damaged; its episode is computed again"
        )
        store.files.remove(store.result_name(key))
    known |= store.failures().keys()
    left = Counter(e.shard for e in plan.episodes if e.shard in chosen and e.key not in known)
    computed = 0
    workers = worker_count(values["workers"], False)
    with streams.batch_progress(left) as progress:

        def done(report: ShardReport) -> None:
            nonlocal computed
            computed += report.done
            if progress:
                progress(report.shard, report.failed)

        if left and values.get("executor") == "dask":
            from collidecli.verbs.batch.dask import by_dask, connected

            with connected(values["address"], values["scheduler_file"], workers) as client:
                by_dask(store, plan, tuple(left), client, done, values["episode_timeout"])
        elif left:
            from collidecli.verbs.batch.executors import by_processes

            by_processes(
                store,
                tuple(left),
                workers,
                done,
                values["episode_timeout"],
                progress and progress.begun,
            )
    state = state_of(store, plan, computed, shards)
    streams.result(state, state_table)
    failed = sum(failure.key in keys for failure in state.failures)
    left_over = state.left if shards is None else 0  # other slots compute those of other shards
    if streams.quiet:  # which hides the table
        _print_missing(streams, state, failed, left_over)
    return DIFFERENCE if failed or left_over else SUCCESS


def _print_missing(streams: Streams, state: BatchState, failed: int, left: int) -> None:
    """Prints how many episodes have no contact set, and why, where there are any."""
    if failed:
        fix = f"collide batch status {state.folder} lists them"
        streams.failure(
            CollideError(f"{failed} of {state.episodes} episodes failed", state.folder, fix)
        )
    if left:
        what = (
            f"{left} of {state.episodes} episodes have no contact set: it was removed, or damaged"
        )
        streams.failure(CollideError(what, state.folder, "repeat the command"))


def _slot(
    ctx: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    try:
        first, count = (int(part) for part in (text or "0/1").split("/"))
        if not 0 <= first < count:
            raise ValueError
    except ValueError:
        raise InputError(
            f"'{text}' is not a slot", "--slot", "write K/N with K from 0 to N - 1"
        ) from None
    return None if text is None else (first, count)


@verb.command("work", cls=Verb, epilog=WORK_EXAMPLES)
@click.argument("folder", metavar="FOLDER")
@execution(
    "--slot",
    required=True,
    metavar="K/N",
    callback=_slot,
    help="Slot K of N, from 0: shards K, K + N, ...",
)
@execution_options(1, "Processes of this slot.")
@click.pass_context
def work_verb(ctx: click.Context, folder: str, slot: tuple[int, int], **values: Any) -> int:
    """Compute the shards of one slot: a task of a Slurm array or of a Kubernetes indexed Job."""
    first, count = slot
    store, plan = _opened(folder)
    if first >= plan.shard_count:
        streams_of(ctx).warn(f"slot {first}/{count} has no shard: the plan has {plan.shard_count}")
    return _compute(streams_of(ctx), store, plan, range(first, plan.shard_count, count), values)


@verb.command(
    "status",
    cls=Verb,
    epilog="\b\ncollide batch status nightly\ncollide batch status nightly --watch",
)
@click.argument("folder", metavar="FOLDER")
@written("--watch", is_flag=True, help="Show the state again and again until no episode is left.")
@written("--interval", type=DURATION, default=5.0, help="Time between two looks of --watch.")
@click.pass_context
def status_verb(ctx: click.Context, folder: str, watch: bool, interval: float) -> int:
    """Show how many episodes are done, failed and left, and what each host computed, from the
    folder alone."""
    from collidecli.verbs.batch.state import state_of
    from collidecli.verbs.batch.store import Store
    from collidecli.verbs.batch.tables import state_table

    streams = streams_of(ctx)
    if watch and not Store(folder).has_plan():
        streams.warn(f"{folder} has no plan of a batch yet; waiting for it")
        while not Store(folder).has_plan():
            time.sleep(interval)
    store, plan = _opened(folder)
    state = state_of(store, plan)
    with streams.live() as show:
        while watch and state.left:
            if show:
                show(state, state_table)
            time.sleep(interval)
            state = state_of(store, plan)
    streams.result(state, state_table)
    return SUCCESS


@verb.command("verify", cls=Verb, epilog="\b\ncollide batch verify nightly --sample 5%")
@click.argument("folder", metavar="FOLDER")
@option("--sample", default="1%", metavar="P%", section="Sample", help=SAMPLE)
@option(
    "--seed", type=WholeNumber(0), default=0, section="Sample", help="Seed of the random choice."
)
@click.pass_context
def verify_verb(ctx: click.Context, folder: str, sample: str, seed: int) -> int:
    """Compute a sample of the contact sets again and compare their content hashes."""
    from collidecli.verbs.batch.tables import verify_table
    from collidecli.verbs.batch.verify import verify

    try:
        share = float(sample.removesuffix("%")) / (100.0 if sample.endswith("%") else 1.0)
        if not 0.0 < share <= 1.0:
            raise ValueError
    except ValueError:
        raise InputError(f"'{sample}' is not a share", "--sample", "write 1% or 0.01") from None
    streams = streams_of(ctx)
    batch = _opened(folder)
    with streams.progress("verifying", noun="episodes") as progress:
        result = verify(*batch, share, seed, progress)
    streams.result(result, verify_table)
    return DIFFERENCE if result.different else SUCCESS


@verb.command("gather", cls=Verb, epilog=GATHER_EXAMPLES)
@click.argument("folder", metavar="FOLDER")
@written("--to", type=click.Choice(FORMATS), default=FORMATS[0], help=TO)
@written("-o", "--output", metavar="PATH", required=True, help="The file, or the folder.")
@repeated_values("--pairs", type=PatternPair(), section="Output", help=PAIRS)
@rule_options
@written("--job", default="", metavar="NAME", help="Only the episodes of this job. [default: all]")
@execution(
    "--slot", metavar="K/N", callback=_slot, help="Write part K of N, from 0, of --to parquet."
)
@force_option
@click.pass_context
def gather_verb(ctx: click.Context, folder: str, **values: Any) -> int:
    """Write all contact sets as one table or data set, with a hash of its content."""
    from collidecli.verbs.batch.gather import GatherRequest, gather
    from collidecli.verbs.batch.tables import gather_table

    streams = streams_of(ctx)
    batch = _opened(folder)
    with streams.progress("gathering", noun="episodes") as progress:
        result = gather(*batch, request_of(GatherRequest, values), progress)
    streams.result(result, gather_table)
    return SUCCESS
