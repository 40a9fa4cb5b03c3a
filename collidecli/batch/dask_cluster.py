"""Work on shards on a Dask cluster.

Each thread of a Dask worker has a worker process of its own, as in `executors`, so that an episode that crashes kills
that process and not the Dask worker. Where a Dask worker is killed nevertheless, the scheduler repeats its shards.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from collidecli import __version__
from collidecli.batch.executors import Slot, quarantine
from collidecli.batch.plan import Plan
from collidecli.batch.store import Store, open_store
from collidecli.batch.work import ShardReport
from collidecli.errors import CollideError, InputError, extra_module

IN_FLIGHT_PER_SLOT = 4
CONNECT_SECONDS = 10.0
WORKERS_SECONDS = 30.0
"""How long a cluster without workers is waited for."""
SLOTS_SECONDS = 5.0
"""Time between two looks at how many threads the cluster has."""
KILLED = -9


class ClusterLostError(CollideError):
    """The scheduler of the cluster ended, or its connection. What is done is kept."""

    exit_code = 75


@contextmanager
def connected(address: str, scheduler_file: str, local_workers: int) -> Iterator[Any]:
    """A client of the scheduler at an address or in a file, else of a cluster that is started here.

    Dask's own messages are not printed. Raises InputError where nobody answers within CONNECT_SECONDS.
    """
    distributed = extra_module("distributed", "cluster", "--executor dask")
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    where = address or scheduler_file or "--executor dask"
    _require_answer(_address_in(scheduler_file) if scheduler_file else address, where)
    cluster = None
    try:
        if scheduler_file:
            client = distributed.Client(scheduler_file=scheduler_file, timeout=CONNECT_SECONDS)
        elif address:
            client = distributed.Client(address, timeout=CONNECT_SECONDS)
        else:
            # One Dask worker: each of its threads has a process of its own.
            cluster = distributed.LocalCluster(
                n_workers=1, threads_per_worker=local_workers, dashboard_address=":0", silence_logs=logging.CRITICAL + 1
            )
            client = distributed.Client(cluster)
    except (OSError, ValueError, TypeError, KeyError) as error:
        said = str(error).strip().splitlines()
        reason = f": {said[0]}" if said else ""
        raise InputError(f"no Dask scheduler responds{reason}", where, "start dask scheduler first") from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)
        if cluster is not None:
            with suppress(Exception):
                cluster.close(timeout=5)


def _address_in(scheduler_file: str) -> str:
    """The scheduler's address in the file that it wrote. Raises InputError."""
    fix = "start dask scheduler --scheduler-file FILE first"
    try:
        with open(scheduler_file, encoding="utf-8") as file:
            return str(json.load(file)["address"])
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", scheduler_file, fix) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("is not the file of a Dask scheduler", scheduler_file, fix) from error


def _require_answer(address: str, where: str) -> None:
    """Raises InputError where a TCP address does not answer as Dask does, which itself tries for minutes."""
    protocol, _, place = address.rpartition("://")
    if protocol in ("http", "https", "ws", "wss"):  # the address of the dashboard
        raise InputError("is not the address of a scheduler", where, "write it as tcp://HOST:PORT")
    if protocol not in ("", "tcp", "tls") or not address:
        return
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS) as connection:
            if protocol != "tls" and not connection.recv(1):  # each side of Dask begins with a handshake
                raise ConnectionResetError(0, "the connection was closed")
    except ValueError as error:
        raise InputError("is not the address of a scheduler", where, "write it as tcp://HOST:PORT") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"no Dask scheduler responds: {reason}", where, "start dask scheduler first") from error


class _Slots:
    """Plugin of each Dask worker: its slots, and the end of those whose shard nobody wants any more."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self._folder = name, folder

    def setup(self, worker: Any) -> None:
        """Called by Dask when a worker starts."""
        self._lock = threading.Lock()
        self._free: list[Slot] = []
        self._busy: dict[str, Slot] = {}

    def work(self, key: str, shard: int, only: Sequence[str] | None) -> ShardReport:
        """Works on a shard in a free slot. key: of the task."""
        with self._lock:
            slot = self._busy[key] = self._free.pop() if self._free else Slot(self._folder)
        try:
            return slot.work(shard, only)
        finally:
            with self._lock:
                if self._busy.pop(key, None) is slot:
                    self._free.append(slot)

    def transition(self, key: str, start: str, finish: str, **other: Any) -> None:
        """Called by Dask when the state of a task changes: kills the process of a cancelled one."""
        if finish in ("cancelled", "released", "forgotten"):
            with self._lock:
                slot = self._busy.pop(key, None)
            if slot is not None:
                slot.close()

    def teardown(self, worker: Any) -> None:
        """Called by Dask when a worker ends or the batch is done."""
        with self._lock:
            slots = [*self._free, *self._busy.values()]
            self._free, self._busy = [], {}
        for slot in slots:
            slot.close()


def _work(name: str, folder: str, key: str, shard: int, only: Sequence[str] | None, version: str) -> ShardReport:
    """The task of a shard, in a thread of a Dask worker."""
    host = socket.gethostname()
    if version != __version__:
        raise InputError(
            f"has collidecli {__version__}, not {version}", f"worker on {host}", "install one version on all"
        )
    try:
        open_store(folder)
    except InputError as error:
        fix = "mount it on all workers under one path"
        raise InputError(f"is not visible to the worker on {host}", folder, fix) from error
    distributed = extra_module("distributed", "cluster", "--executor dask")
    return distributed.get_worker().plugins[name].work(key, shard, only)


def by_dask(store: Store, plan: Plan, shards: Sequence[int], client: Any, done: Callable[[ShardReport], None]) -> None:
    """Works on shards of a plan on a Dask cluster, in their order.

    At most IN_FLIGHT_PER_SLOT shards per thread of it are submitted at once. The store is one that all workers can
    open by its name. Raises InputError for a cluster without workers,
    ClusterLostError.
    """
    distributed = extra_module("distributed", "cluster", "--executor dask")
    name = f"collide-{uuid.uuid4().hex}"
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        if not client.nthreads():
            raise InputError("the cluster has no workers", "--executor dask", "start dask worker with its address")
        # Dask is only imported when it is wanted: `_Slots` becomes its plugin here.
        plugin = type("CollideSlots", (_Slots, distributed.WorkerPlugin), {})
        client.register_plugin(plugin(name, store.absolute_location))
        Submission(store, plan, client, name).run(shards, done)
        with suppress(Exception):
            client.unregister_worker_plugin(name)
    except (OSError, distributed.client.FutureCancelledError, distributed.CancelledError) as error:
        if not isinstance(error, OSError) or client.status != "running" or isinstance(error, TimeoutError):
            fix = "start it again and repeat the command; what is done is kept"
            raise ClusterLostError("the scheduler of the cluster ended", "--executor dask", fix) from error
        raise


class Submission:
    """The shards of a batch on their way through a cluster. task: what a worker calls for each."""

    def __init__(
        self, store: Store, plan: Plan, client: Any, name: str, task: Callable[..., ShardReport] = _work
    ) -> None:
        self._store, self._plan, self._client, self._name, self._task = store, plan, client, name, task
        self._folder = store.absolute_location
        self._tasks: dict[str, tuple[int, Sequence[str] | None]] = {}
        self._slots, self._looked = 0, 0.0

    def run(self, shards: Sequence[int], done: Callable[[ShardReport], None]) -> None:
        """Submits shards and calls `done` with the report of each."""
        distributed = extra_module("distributed", "cluster", "--executor dask")
        waiting = distributed.as_completed()
        following = iter(shards)
        while True:
            for shard in islice(following, max(0, IN_FLIGHT_PER_SLOT * self._slot_count() - waiting.count())):
                waiting.add(self._submit(shard))
            future = next(waiting, None)
            if future is None:
                return
            shard, only = self._tasks.pop(future.key)
            try:
                done(future.result())
            except distributed.scheduler.KilledWorker as error:
                for one in self._again(shard, only, done, error):
                    waiting.add(one)

    def _slot_count(self) -> int:
        """Threads of the cluster, which may grow."""
        if time.monotonic() - self._looked > SLOTS_SECONDS:
            self._slots, self._looked = max(1, sum(self._client.nthreads().values())), time.monotonic()
        return self._slots

    def _submit(self, shard: int, only: Sequence[str] | None = None) -> Any:
        # Unique in the cluster, where other batches have shards too.
        key = f"{self._name}-{shard}" + (f"-{only[0]}" if only else "")
        self._tasks[key] = shard, only
        return self._client.submit(
            self._task, self._name, self._folder, key, shard, only, __version__, key=key, pure=False
        )

    def _again(self, shard: int, only: Sequence[str] | None, done: Callable, error: Any) -> list[Any]:
        """New tasks for the episodes of a shard whose Dask workers were killed; a single episode is quarantined."""
        keys = only or list(dict.fromkeys(episode.key for episode in self._plan.shard(shard)))
        left = [key for key in keys if not self._store.has_result(key)]
        if len(left) > 1:
            done(ShardReport(shard))
            return [self._submit(shard, [key]) for key in left]
        for key in left:
            quarantine(self._store, self._plan, key, shard, [KILLED] * (error.allowed_failures + 1))
        done(ShardReport(shard, failed=len(left)))
        return []
