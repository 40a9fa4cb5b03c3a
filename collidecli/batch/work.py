"""Computation of episodes in one process, which stays warm: modules, kernels and libraries are loaded once."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from collidecli.batch.jobs import Job
from collidecli.batch.plan import Episode, Plan, read_plan
from collidecli.batch.store import DifferentContactsError, Failure, Store, content_of, open_store
from collidecli.commands.run import RunRequest, RunResult, run
from collidecli.commands.scenes import scene_in_motion
from collidecli.engine.runtime.process_settings import owned_process
from collidecli.engine.runtime.temporary_folders import TemporaryFolder
from collidecli.errors import CollideError, Interrupted, OutputError

PROBE_FRAMES = 50
INTERNAL_ERROR = 70


@dataclass(frozen=True)
class ShardReport:
    """Counts of a shard. done: computed now. skipped: had a contact set. failed: quarantined now or before."""

    shard: int
    done: int = 0
    skipped: int = 0
    failed: int = 0
    seconds: float = 0.0


def work_shard(folder: str, shard: int, only: Sequence[str] | None = None) -> ShardReport:
    """Computes the episodes of a shard that have neither a contact set nor a failure, in a process of the batch.

    Args:
        only: keys to compute, else all.
    Raises OutputError and DifferentContactsError; an episode that cannot be used is recorded as failed.
    """
    store, plan = open_store(folder), _plan_of(folder)
    start, report = time.perf_counter(), ShardReport(shard)
    with owned_process():
        for episode in plan.shard(shard):
            if only is not None and episode.key not in only:
                continue
            if store.has_result(episode.key):
                report = replace(report, skipped=report.skipped + 1)
            elif store.has_failure(episode.key):
                report = replace(report, failed=report.failed + 1)
            else:
                good = work_episode(store, plan, episode)
                report = replace(report, done=report.done + good, failed=report.failed + (not good))
    report = replace(report, seconds=time.perf_counter() - start)
    if report.done:
        store.log({"event": "shard", "host": socket.gethostname(), "time": time.time(), **vars(report)})
    return report


_plans: dict[str, tuple[int, Plan]] = {}


def _plan_of(folder: str) -> Plan:
    """The plan of a folder, read once in a process unless it changes."""
    path = os.path.join(folder, "plan.parquet")
    changed = os.stat(path).st_mtime_ns
    if folder not in _plans or _plans[folder][0] != changed:
        _plans[folder] = (changed, read_plan(path))
    return _plans[folder][1]


def work_episode(store: Store, plan: Plan, episode: Episode) -> bool:
    """Computes one episode; whether it has a contact set now. A failure is recorded."""
    made = store.new_result(episode.key)
    try:
        run(request_of(plan, episode, made))
        store.keep_result(episode.key, made)
    except (OutputError, Interrupted, DifferentContactsError):
        raise
    except CollideError as error:
        store.fail(_failure(episode, "; ".join(line.strip() for line in str(error).splitlines()), error.exit_code))
        return False
    except Exception as error:
        store.fail(_failure(episode, f"internal error: {type(error).__name__}: {error}", INTERNAL_ERROR))
        return False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)
    return True


def _failure(episode: Episode, message: str, exit_code: int) -> Failure:
    return Failure(episode.key, episode.job, episode.motion, message, exit_code, socket.gethostname())


def request_of(plan: Plan, episode: Episode, output: str) -> RunRequest:
    """The run of an episode. One thread unless the job sets --threads."""
    request = plan.requests[episode.job]
    engine = replace(request.engine, threads=request.engine.threads or 1)
    return replace(request, trajectory=episode.motion or None, output=output, engine=engine, force=False)


def probe(job: Job) -> tuple[float, float]:
    """Seconds per episode and per byte of a recording, from the first frames of the job's first recording.

    Raises InputError for a scene or a first recording that cannot be used.
    """
    motion_path = job.motions[0] if job.motions else ""
    request = replace(job.request, trajectory=motion_path or None, engine=replace(job.request.engine, threads=1))
    _, motion = scene_in_motion(request)
    frames = len(motion.time)
    motion.close()
    with TemporaryFolder("probe") as folder:
        first = replace(
            request, frames=request.frames or f"0:{PROBE_FRAMES}", output=os.path.join(folder, "probe.h5"), force=True
        )
        run(first)  # compiles the kernels
        start = time.perf_counter()
        result: RunResult = run(first)
        seconds = time.perf_counter() - start
    per_frame = result.wall_seconds / max(result.frames, 1)
    size = os.path.getsize(motion_path) if motion_path else 0
    return max(seconds - result.wall_seconds, 0.0), per_frame * frames / max(size, 1)


def recomputed_content(store: Store, plan: Plan, episode: Episode) -> tuple[str, str]:
    """Content hashes of an episode's contact set, and of one that is computed now and removed."""
    with TemporaryFolder("verification") as folder:
        again = run(request_of(plan, episode, os.path.join(folder, "again.h5")))
    return content_of(store.result_path(episode.key)), again.content_sha256
