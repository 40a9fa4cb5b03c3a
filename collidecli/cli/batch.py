"""Command line of `collide batch`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.label import rule_options
from collidecli.cli.options import (
    DURATION,
    PatternPair,
    Verb,
    WholeNumber,
    force_option,
    option,
    request_of,
    streams_of,
)
from collidecli.cli.traj import VerbGroup
from collidecli.escaping import printable
from collidecli.scene.text_format import did_you_mean

if TYPE_CHECKING:
    from collidecli.batch.plan import EpisodeTable, Job, Plan
    from collidecli.batch.store import Store
    from collidecli.batch.work import ShardReport
    from collidecli.cli.streams import Streams
    from collidecli.commands.run import RunRequest


# Options of `run` as a job file gives them, through the parser of the command line.

FIXED = ("output", "scenes", "trajectory", "each", "force", "skip_existing", "trace")
"""Parameters of `run` that the batch sets for each episode, or that no episode has."""


def job_request(scenes: Sequence[str], options: Mapping[str, Any], where: str) -> RunRequest:
    """The request of a job for options of `run` by long name, parsed as the command line parses them."""
    from collidecli.cli.run import verb as run_verb
    from collidecli.commands.run import RunRequest
    from collidecli.errors import InputError

    known = {
        name[2:]: parameter
        for parameter in run_verb.params
        if isinstance(parameter, click.Option) and parameter.expose_value and parameter.name not in FIXED
        for name in parameter.opts
        if name.startswith("--")
    }
    words: list[str] = []
    for key, value in options.items():
        name = key.replace("_", "-")
        if name.replace("-", "_") in FIXED:
            raise InputError(f"the option '{key}' cannot be set in a job file", where, "remove it")
        if name not in known:
            fix = did_you_mean(name, known, "see collide run --help")
            raise InputError(f"run has no option '{key}'", where, fix)
        words += _words(known[name], name, value, where)
    try:
        with run_verb.make_context("run", [*words, "--", *scenes], resilient_parsing=False) as ctx:
            values = ctx.params
            given = {"scenes": values["scenes"], "output": "", "trajectory": None, "force": False}
            return request_of(RunRequest, values, **given)
    except click.ClickException as error:
        raise InputError(error.format_message(), f"{where}, options") from None


def _words(parameter: click.Option, name: str, value: Any, where: str) -> list[str]:
    """Words of the command line for an option's value in TOML."""
    from collidecli.errors import InputError

    if parameter.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{name} is {value!r}", f"{where}, options", "write true or false")
        return [f"--{name}"] if value else []
    if isinstance(value, list):
        texts = [str(one) for one in value]
        return (
            [word for text in texts for word in (f"--{name}", text)]
            if parameter.multiple
            else [f"--{name}", ",".join(texts)]
        )
    if isinstance(value, (bool, dict)):
        raise InputError(f"{name} is {value!r}", f"{where}, options", "write a number, a text or a list")
    return [f"--{name}={value}"]


EPILOG = """\b
collide batch run jobs.toml -o nightly
collide batch status nightly
collide batch gather nightly -o contacts.parquet
"""
SHARD = "Estimated duration of a shard, the unit of work. [default: 90 s]"
AGAIN = "Also compute the episodes that failed before."
TIMEOUT = "Time limit of an episode, which is then listed as failed. [default: 1 h, or 100 times the estimate if more]"
WORKERS = "Number of worker processes. [default: one per core or by CPU quota]"
FOLDER = "The folder of the batch, or the URL of an object store: its plan and its contact sets."


HELP = "Run many recordings: plan, compute with any number of processes or machines, and gather the results."

verb = VerbGroup("batch", HELP, EPILOG)


def _planned(streams: Streams, jobs: str, folder: str, shard_seconds: float | None, force: bool) -> tuple[Store, Plan]:
    """The plan of a job file, written to the folder; the plan that is there where it has the same episodes."""
    from collidecli.batch.plan import SHARD_SECONDS, EpisodeTable, make_plan, read_jobs, read_plan, write_plan
    from collidecli.batch.store import Store
    from collidecli.errors import InputError, OutputError

    found = read_jobs(jobs, job_request)
    store, held = Store(folder), None
    if store.has_plan():
        with suppress(InputError) if force else nullcontext():
            held = read_plan(store)
    inputs = _hashed(streams, found, jobs, held)
    if held is not None and not force:
        if not held.episodes.same_recordings(EpisodeTable.joined(list(inputs.values()))):
            fix = "give another folder, or replace it by collide batch plan --force"
            raise OutputError("has the plan of other recordings or options", folder, fix)
        _check_shards(held, shard_seconds, folder)
        return store, held
    seconds = shard_seconds or SHARD_SECONDS
    write_plan(make_plan(found, inputs, _estimated(streams, found, jobs), seconds), store)
    return store, read_plan(store)


def _check_shards(plan: Plan, shard_seconds: float | None, folder: str) -> None:
    """Raises InputError where another duration of shards is asked for than that of the plan."""
    from collidecli.errors import InputError

    if shard_seconds not in (None, plan.shard_seconds):
        what = f"is {shard_seconds:g} s, and the shards of the plan in {folder} are of {plan.shard_seconds:g} s"
        raise InputError(what, "--shard-seconds", "leave it out, or replace the plan by collide batch plan --force")


def _hashed(streams: Streams, jobs: Sequence[Job], path: str, held: Plan | None) -> dict[str, EpisodeTable]:
    """The episodes of each job, with a progress bar of the recordings. held: a plan with hashes of some of them."""
    from collidecli.batch.plan import EpisodeTable, episodes_of, named

    found, total, before = {}, sum(len(job.motions) for job in jobs), 0
    hashes = (
        {(one.motion, one.motion_state): one.motion_sha256 for one in held.episodes if one.motion_state} if held else {}
    )
    with streams.progress("hashing", before="reading scenes", noun="recordings") as progress:
        for job in jobs:
            first = before
            counted = progress and (lambda done, first=first: progress(first + done, total))
            with named(job, path):
                found[job.name] = EpisodeTable.of(episodes_of(job, counted, hashes))
            before += len(job.motions)
    return found


def _estimated(streams: Streams, jobs: Sequence[Job], path: str) -> dict[str, tuple[float, float]]:
    """Seconds per episode and per byte of a recording of each job; their kernels are compiled then."""
    from collidecli.batch.plan import named
    from collidecli.batch.work import probe
    from collidecli.engine.runtime.kernel import reported_compilation

    found = {}
    for job in jobs:
        with (
            streams.progress(f"estimating job {printable(job.name)}") as progress,
            reported_compilation(progress and progress.compiling),
            named(job, path),
        ):
            found[job.name] = probe(job)
    return found


def plan_options(command: Callable) -> Callable:
    """Adds the options of a plan."""
    command = option("--shard-seconds", type=DURATION, section="Plan", help=SHARD)(command)
    return option("-o", "--output", "folder", metavar="FOLDER", required=True, section="Output", help=FOLDER)(command)


@verb.command("plan", cls=Verb, epilog="\b\ncollide batch plan jobs.toml -o nightly")
@click.argument("jobs", metavar="JOBS.TOML")
@plan_options
@force_option
@click.pass_context
def plan_verb(ctx: click.Context, jobs: str, folder: str, shard_seconds: float | None, force: bool) -> int:
    """Expand the patterns, hash the inputs, estimate the cost, and write FOLDER/plan.parquet."""
    from collidecli.batch.gather import state_of
    from collidecli.report.tables import state_table

    streams = streams_of(ctx)
    store, plan = _planned(streams, jobs, folder, shard_seconds, force)
    streams.result(state_of(store, plan), state_table)
    return 0


@verb.command(
    "run",
    cls=Verb,
    epilog="\b\ncollide batch run jobs.toml -o nightly --workers 8\ncollide batch run nightly --retry-failed",
)
@click.argument("target", metavar="FOLDER|JOBS.TOML")
@option("-o", "--output", "folder", metavar="FOLDER", section="Output", help=f"{FOLDER} Only with JOBS.TOML.")
@option("--shard-seconds", type=DURATION, section="Plan", help=SHARD)
@option("--workers", type=WholeNumber(0), default=0, show_default=False, section="Execution", help=WORKERS)
@option(
    "--executor",
    type=click.Choice(("processes", "dask")),
    default="processes",
    section="Execution",
    help="Where to compute: processes of this machine, or a Dask cluster.",
)
@option(
    "--address",
    default="",
    metavar="URL",
    section="Execution",
    help="Address of a Dask scheduler. [default: a local cluster]",
)
@option(
    "--scheduler-file",
    default="",
    metavar="FILE",
    section="Execution",
    help="File with the address of a Dask scheduler.",
)
@option("--retry-failed", is_flag=True, section="Execution", help=AGAIN)
@option("--episode-timeout", type=DURATION, section="Execution", help=TIMEOUT)
@click.pass_context
def run_verb(ctx: click.Context, target: str, folder: str | None, **values: Any) -> int:
    """Compute every episode that has no contact set yet. JOBS.TOML is planned first."""
    from collidecli.batch.gather import state_of
    from collidecli.batch.plan import read_plan
    from collidecli.batch.store import is_url, open_store
    from collidecli.errors import InputError
    from collidecli.report.tables import state_table

    streams = streams_of(ctx)
    _check_executor(values)
    if folder is None or os.path.isdir(target) or is_url(target):
        if folder is not None:
            raise InputError("is the folder of a batch", target, "remove -o")
        if os.path.isfile(target):
            raise InputError("is a job file", target, "add -o FOLDER, for its plan and its contact sets")
        store = open_store(target)
        plan = read_plan(store)
        _check_shards(plan, values["shard_seconds"], target)
    else:
        store, plan = _planned(streams, target, folder, values["shard_seconds"], force=False)
    if values["retry_failed"]:
        for key in store.failures():
            store.forget_failure(key)
    left = _left(plan, {*_whole(streams, store, range(plan.shard_count), plan), *store.failures()})
    computed = 0
    with streams.batch_progress(left) as progress:

        def done(report: ShardReport) -> None:
            nonlocal computed
            computed += report.done
            if progress:
                progress(report.shard, report.failed)

        _execute(store, plan, tuple(left), values, done, progress and progress.begun)
    state = state_of(store, plan, computed)
    streams.result(state, state_table)
    _tell_failures(streams, state.failed, state.episodes, store)
    return 1 if state.failed or state.left else 0


def _tell_failures(streams: Streams, failed: int, episodes: int, store: Store) -> None:
    """With --quiet, which hides the table, an error about failed episodes."""
    from collidecli.errors import CollideError

    if failed and streams.quiet:
        fix = f"collide batch status {store.location} lists them"
        streams.failure(CollideError(f"{failed} of {episodes} episodes failed", store.location, fix))


def _check_executor(values: Mapping[str, Any]) -> None:
    from collidecli.errors import InputError

    address = values["address"] or values["scheduler_file"]
    if values["executor"] == "processes" and address:
        raise InputError("has no effect on processes", "--address or --scheduler-file", "give --executor dask")
    if values["address"] and values["scheduler_file"]:
        raise InputError("both name a scheduler", "--address and --scheduler-file", "give one of them")
    if address and values["workers"]:
        raise InputError("has no effect on a running cluster", "--workers", "start it with as many threads")


def _whole(streams: Streams, store: Store, shards: Sequence[int], plan: Plan) -> set[str]:
    """The keys with a contact set. Removes the damaged ones of these shards, and names them."""
    from collidecli.batch.work import History, whole_results

    own = {episode.key for episode in plan.episodes if episode.shard in shards}
    whole, damaged = whole_results(store, History(store.logs(shards), {}).sizes, own)
    for key in damaged:
        streams.warn(f"{store.result_location(key)} is truncated or damaged; its episode is computed again")
        store.files.remove(store.result_name(key))
    return whole


def _left(plan: Plan, known: Container[str]) -> Mapping[int, int]:
    """Number of the episodes without a known key, of each shard that has any, in order."""
    return Counter(episode.shard for episode in plan.episodes if episode.key not in known)


def _execute(
    store: Store,
    plan: Plan,
    shards: Sequence[int],
    values: Mapping[str, Any],
    done: Callable[[ShardReport], None],
    begun: Callable[[int], None] | None,
) -> None:
    """Works on the shards; starts no process where there are none."""
    from collidecli.engine.scheduler import worker_count

    workers = worker_count(values["workers"], False)
    if not shards:
        return
    if values["executor"] == "processes":
        from collidecli.batch.executors import by_processes

        by_processes(store, shards, workers, done, values["episode_timeout"], begun)
        return
    from collidecli.batch.dask_cluster import by_dask, connected

    with connected(values["address"], values["scheduler_file"], workers) as client:
        by_dask(store, plan, shards, client, done, values["episode_timeout"])


def _slot(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    from collidecli.errors import InputError

    try:
        first, count = (int(part) for part in (text or "0/1").split("/"))
        if not 0 <= first < count:
            raise ValueError
    except ValueError:
        raise InputError(f"'{text}' is not a slot", "--slot", "write K/N with K from 0 to N - 1") from None
    return None if text is None else (first, count)


@verb.command(
    "work",
    cls=Verb,
    epilog="\b\ncollide batch work nightly --slot 3/8\n"
    "collide batch work nightly --slot $((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))/$SLURM_ARRAY_TASK_COUNT",
)
@click.argument("folder", metavar="FOLDER")
@option(
    "--slot",
    required=True,
    metavar="K/N",
    callback=_slot,
    section="Execution",
    help="Slot K of N, from 0: shards K, K + N, ...",
)
@option("--workers", type=WholeNumber(1), default=1, section="Execution", help="Processes of this slot.")
@option("--retry-failed", is_flag=True, section="Execution", help=AGAIN)
@option("--episode-timeout", type=DURATION, section="Execution", help=TIMEOUT)
@click.pass_context
def work_verb(
    ctx: click.Context,
    folder: str,
    slot: tuple[int, int],
    workers: int,
    retry_failed: bool,
    episode_timeout: float | None,
) -> int:
    """Compute the shards of one slot: a task of a Slurm array or of a Kubernetes indexed Job."""
    from collidecli.batch.executors import by_processes
    from collidecli.batch.gather import state_of
    from collidecli.batch.plan import read_plan
    from collidecli.batch.store import open_store
    from collidecli.report.tables import state_table

    first, count = slot
    store = open_store(folder)
    plan = read_plan(store)
    streams = streams_of(ctx)
    reports: list[ShardReport] = []
    if first >= plan.shard_count:
        streams.warn(f"slot {first}/{count} has no shard: the plan has {plan.shard_count}")
    own = range(first, plan.shard_count, count)
    shards = tuple(shard for shard in _left(plan, _whole(streams, store, own, plan)) if shard in own)
    if retry_failed:
        for key in {episode.key for shard in shards for episode in plan.shard(shard)} & set(store.failures()):
            store.forget_failure(key)
    if shards:
        by_processes(store, shards, workers, reports.append, episode_timeout)
    state = state_of(store, plan, sum(report.done for report in reports), own)
    failed = sum(report.failed for report in reports)
    streams.result(state, state_table)
    _tell_failures(streams, failed, state.episodes, store)
    return 1 if failed else 0


@verb.command("status", cls=Verb, epilog="\b\ncollide batch status nightly\ncollide batch status nightly --watch")
@click.argument("folder", metavar="FOLDER")
@option("--watch", is_flag=True, section="Output", help="Show the state again and again until no episode is left.")
@option("--interval", type=DURATION, default=5.0, section="Output", help="Time between two looks of --watch.")
@click.pass_context
def status_verb(ctx: click.Context, folder: str, watch: bool, interval: float) -> int:
    """Show how many episodes are done, failed and left, and what each host computed, from the folder alone."""
    from collidecli.batch.gather import state_of
    from collidecli.batch.plan import read_plan
    from collidecli.batch.store import Store, open_store
    from collidecli.report.tables import state_table

    streams = streams_of(ctx)
    store = Store(folder)
    if watch and not store.has_plan():
        streams.warn(f"{folder} has no plan of a batch yet; waiting for it")
        while not store.has_plan():
            time.sleep(interval)
    store = open_store(folder)
    plan = read_plan(store)
    state = state_of(store, plan)
    with streams.live() as show:
        while watch and state.left:
            if show:
                show(state, state_table)
            time.sleep(interval)
            state = state_of(store, plan)
    streams.result(state, state_table)
    return 0


@verb.command("verify", cls=Verb, epilog="\b\ncollide batch verify nightly --sample 5%")
@click.argument("folder", metavar="FOLDER")
@option(
    "--sample",
    default="1%",
    metavar="P%",
    section="Sample",
    help="Share of the contact sets to compute again, at least one.",
)
@option("--seed", type=WholeNumber(0), default=0, section="Sample", help="Seed of the random choice.")
@click.pass_context
def verify_verb(ctx: click.Context, folder: str, sample: str, seed: int) -> int:
    """Compute a sample of the contact sets again and compare their content hashes."""
    from collidecli.batch.gather import verify
    from collidecli.batch.plan import read_plan
    from collidecli.batch.store import open_store
    from collidecli.errors import InputError
    from collidecli.report.tables import verify_table

    try:
        share = float(sample.removesuffix("%")) / (100.0 if sample.endswith("%") else 1.0)
        if not 0.0 < share <= 1.0:
            raise ValueError
    except ValueError:
        raise InputError(f"'{sample}' is not a share", "--sample", "write 1% or 0.01") from None
    store = open_store(folder)
    streams = streams_of(ctx)
    with streams.progress("verifying", noun="episodes") as progress:
        result = verify(store, read_plan(store), share, seed, progress)
    streams.result(result, verify_table)
    return 1 if result.different else 0


@verb.command(
    "gather",
    cls=Verb,
    epilog="\b\ncollide batch gather nightly -o all.parquet\ncollide batch gather nightly --to parquet -o contacts/",
)
@click.argument("folder", metavar="FOLDER")
@option(
    "--to",
    type=click.Choice(("manifest", "merge", "parquet", "lerobot", "robomimic")),
    default="manifest",
    section="Output",
    help="manifest: a table with a row per episode. Others are folders: merge: contact sets of 64 MiB or more; "
    "parquet: tables with a row per contact; lerobot: a row per frame; robomimic: a file per recording.",
)
@option("-o", "--output", metavar="PATH", required=True, section="Output", help="The file, or the folder.")
@option(
    "--pairs",
    type=PatternPair(),
    multiple=True,
    metavar="GLOB,GLOB",
    section="Output",
    help="Also columns of the pairs that match one pattern each, by shape or body: whether they touch, and their least "
    "distance. lerobot and robomimic only; repeat for more.",
)
@rule_options
@option("--job", default="", metavar="NAME", section="Output", help="Only the episodes of this job. [default: all]")
@option(
    "--slot", metavar="K/N", callback=_slot, section="Execution", help="Write part K of N, from 0, of --to parquet."
)
@force_option
@click.pass_context
def gather_verb(ctx: click.Context, folder: str, **values: Any) -> int:
    """Write all contact sets as one table or data set, with a hash of its content."""
    from collidecli.batch.gather import GatherRequest, gather
    from collidecli.batch.plan import read_plan
    from collidecli.batch.store import open_store
    from collidecli.report.tables import gather_table

    store = open_store(folder)
    streams = streams_of(ctx)
    with streams.progress("gathering", noun="episodes") as progress:
        result = gather(store, read_plan(store), request_of(GatherRequest, values), progress)
    streams.result(result, gather_table)
    return 0
