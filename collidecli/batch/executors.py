"""Executors of a batch: processes of this machine, or a Dask cluster.

Every episode is idempotent, so a shard whose worker was killed is submitted again. Its episodes are then computed one
by one; one that kills its worker ATTEMPTS times is recorded as failed.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import Any

from collidecli.batch.plan import Episode, Plan
from collidecli.batch.store import Failure, Store
from collidecli.batch.work import ShardReport, work_shard
from collidecli.errors import InputError, extra_module

ATTEMPTS = 3
IN_FLIGHT_PER_SLOT = 4
KILLED = 137


def by_processes(store: Store, plan: Plan, workers: int, done: Callable[[ShardReport], None]) -> None:
    """Works all shards with `workers` processes of this machine; calls `done` after each shard."""
    slots = [_Slot(store, plan) for _ in range(workers)]
    free = threading.local()
    unused = iter(slots)

    def work(shard: int) -> ShardReport:
        if not hasattr(free, "slot"):
            free.slot = next(unused)
        return free.slot.work(shard)

    with ThreadPoolExecutor(workers) as threads:
        try:
            for report in _as_done(lambda shard: threads.submit(work, shard), plan.shard_count, 2 * workers):
                done(report)
        finally:
            for slot in slots:
                slot.close()


def _as_done(submit: Callable[[int], Any], count: int, in_flight: int) -> Iterator[ShardReport]:
    """Results of `submit(0 .. count - 1)` as they complete, with at most `in_flight` at once."""
    pending, following = set(), 0
    while pending or following < count:
        while following < count and len(pending) < in_flight:
            pending.add(submit(following))
            following += 1
        complete, pending = wait(pending, return_when=FIRST_COMPLETED)
        for future in complete:
            yield future.result()


class _Slot:
    """One worker process at a time: with a pool of one, a killed process is that of a known shard."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store, self._plan = store, plan
        self._pool: ProcessPoolExecutor | None = None

    def work(self, shard: int) -> ShardReport:
        """Works a shard; after a killed process its episodes one by one."""
        try:
            return self._submit(shard, None)
        except BrokenProcessPool:
            reports = [self._work_one(shard, episode) for episode in self._plan.shard(shard)]
            return ShardReport(
                shard,
                sum(one.done for one in reports),
                sum(one.skipped for one in reports),
                sum(one.failed for one in reports),
                sum(one.seconds for one in reports),
            )

    def _work_one(self, shard: int, episode: Episode) -> ShardReport:
        for _ in range(ATTEMPTS):
            try:
                return self._submit(shard, [episode.key])
            except BrokenProcessPool:
                continue
        message = f"the process that computed it was killed {ATTEMPTS} times"
        host = socket.gethostname()
        self._store.fail(Failure(episode.key, episode.job, episode.motion, message, KILLED, host, ATTEMPTS))
        return ShardReport(shard, failed=1)

    def _submit(self, shard: int, only: list[str] | None) -> ShardReport:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, context, initializer=_end_with_parent)
        try:
            return self._pool.submit(work_shard, self._store.folder, shard, only).result()
        except BrokenProcessPool:
            self.close()
            raise

    def close(self) -> None:
        """Ends the process."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None


def _end_with_parent() -> None:
    """Ends this worker process when its parent ends, however that happens."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="collide-parent", daemon=True).start()


def by_dask(store: Store, plan: Plan, client: Any, done: Callable[[ShardReport], None]) -> None:
    """Works all shards on a Dask cluster; at most IN_FLIGHT_PER_SLOT shards per thread of it are submitted at once.

    The store's folder is on a file system that all workers share. Raises InputError for a cluster without workers.
    """
    distributed = extra_module("distributed", "cluster", "--executor dask")
    slots = sum(client.nthreads().values())
    if not slots:
        raise InputError("the cluster has no workers", "--executor dask", "start dask worker with its address")
    folder = os.path.abspath(store.folder)

    def submit(shard: int) -> Any:
        return client.submit(work_shard, folder, shard, key=f"collide-{shard}", retries=ATTEMPTS, pure=False)

    waiting = distributed.as_completed()
    following = 0
    while following < min(plan.shard_count, IN_FLIGHT_PER_SLOT * slots):
        waiting.add(submit(following))
        following += 1
    for future in waiting:
        done(future.result())
        if following < plan.shard_count:
            waiting.add(submit(following))
            following += 1
