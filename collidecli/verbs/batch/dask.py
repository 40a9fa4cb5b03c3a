"""Work on shards on a Dask cluster."""

from __future__ import annotations

import logging
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import psutil

from collidecli.errors import CollideError, InputError, extra_module
from collidecli.installed_versions import installed_version
from collidecli.storage.text_files import read_json
from collidecli.temporary_folders import TemporaryFolder
from collidecli.verbs.batch.episode_worker import ATTEMPTS
from collidecli.verbs.batch.executors import Slot, WorkersLostError
from collidecli.verbs.batch.log import ShardReport
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.store import Store, open_store

IN_FLIGHT_PER_SLOT = 4
CONNECT_SECONDS = 10.0
WORKERS_SECONDS = 30.0
"""How long a cluster without workers is waited for."""
AGAIN = "start it again and repeat the command; what is done is kept"
SLOTS_SECONDS = 5.0
"""Time between two looks at how many threads the cluster has."""


@contextmanager
def connected(address: str, scheduler_file: str, local_workers: int) -> Iterator[Any]:
    """A client of the scheduler at an address or in a file, else of a cluster that is started here.

    Dask's own messages are not printed. Raises InputError where nobody answers within
    CONNECT_SECONDS.
    """
    try:
        distributed = extra_module("distributed", "cluster", "--executor dask")
    except psutil.Error as error:  # of the import
        raise _not_started(error) from error
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    where = address or scheduler_file or "--executor dask"
    if scheduler_file:
        what = "is not the file of a Dask scheduler"
        fix = "start dask scheduler --scheduler-file FILE first"
        content = read_json(scheduler_file, fix, what)
        if not isinstance(content, dict) or "address" not in content:
            raise InputError(what, scheduler_file, fix)
        address = str(content["address"])
    cluster = None
    scratch = TemporaryFolder("dask")
    try:
        if address:
            _require_answer(address)
            client = distributed.Client(address, timeout=CONNECT_SECONDS)
        else:
            cluster = _local_cluster(distributed, local_workers, scratch)
            client = distributed.Client(cluster)
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition("\n")[0].lower()
        fix = "start dask scheduler first, and write its address as tcp://HOST:PORT"
        raise InputError(f"no Dask scheduler responds: {reason}", where, fix) from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)
        if cluster is not None:
            with suppress(Exception):
                cluster.close(timeout=5)


def _local_cluster(distributed: Any, threads: int, scratch: TemporaryFolder) -> Any:
    """A cluster of this machine, of one worker: each of its threads has a process of its own.

    Raises InputError where the system refuses what a process of Dask needs, WorkersLostError where
    one ended.
    """
    try:
        return distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=threads,
            dashboard_address=":0",
            local_directory=scratch.name,
            scheduler_kwargs={"local_directory": scratch.name},
            silence_logs=logging.CRITICAL + 1,
        )
    except Exception as error:
        raise _not_started(error) from error


def _not_started(error: BaseException) -> CollideError:
    """The error for an exception of Dask as it started, with the first one that led to it."""
    chain = [error]
    while (earlier := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(earlier)
    refusals = [each for each in chain if _is_about_system_folders(each)]
    first = [*chain, *refusals][-1]
    what = f"a process of Dask did not start: {type(first).__name__}: {first}"
    where = "--executor dask"
    if refusals:
        fix = "Dask needs /proc, and /dev/shm to write to; --executor processes needs neither"
        return InputError(what, where, fix)
    return WorkersLostError(what, where, AGAIN)


def _is_about_system_folders(error: BaseException) -> bool:
    """Whether /proc or /dev/shm is missing, or may not be written."""
    name = str(getattr(error, "filename", None) or "")
    return isinstance(error, psutil.Error) or name.startswith(("/proc", "/dev/shm"))


def _require_answer(address: str) -> None:
    """Raises ValueError, and OSError where a TCP address does not answer; Dask itself tries for
    minutes."""
    protocol, _, place = address.rpartition("://")
    if protocol in ("", "tcp"):
        host, _, port = place.rpartition(":")
        if not port.isdigit():
            raise ValueError(f"'{address}' has no port")
        with socket.create_connection(
            (host.strip("[]"), int(port)), timeout=CONNECT_SECONDS
        ) as connection:
            if not connection.recv(1):  # each side of Dask begins with a handshake
                raise ConnectionResetError(0, "the connection was closed")


_own = threading.local()
"""slot: of this thread of a Dask worker, which keeps its process from shard to shard."""


def _work(folder: str, shard: int, timeout: float | None, version: str) -> ShardReport:
    host = socket.gethostname()
    installed = installed_version("collidecli")
    if version != installed:
        raise InputError(
            f"has collidecli {installed}, not {version}",
            f"worker on {host}",
            "install one version on all",
        )
    try:
        open_store(folder)
    except InputError as error:
        fix = "mount it on all workers under one path"
        raise InputError(f"is not visible to the worker on {host}", folder, fix) from error
    if getattr(_own, "batch", None) != (folder, timeout):
        _own.batch = (folder, timeout)
        _own.slot = Slot(folder, timeout)
    return _own.slot.work(shard)


def _work_through(
    distributed: Any,
    client: Any,
    plan: Plan,
    shards: Sequence[int],
    done: Callable[[ShardReport], None],
    start: Callable[[int, str], Any],
) -> None:
    """Starts shards in their order, as many at once as the cluster has slots for, and again those
    whose worker was killed; see `by_dask`.

    distributed: the module. start: submits a shard under a key, and returns its future.
    """
    batch = f"collide-{uuid.uuid4().hex}"
    tasks = dict[str, int]()
    killed = Counter[int]()
    waiting = distributed.as_completed()
    following = iter(shards)
    slots = 0
    looked = -SLOTS_SECONDS

    def submit(shard: int) -> None:
        # unique in the cluster, where other batches have shards too
        key = f"{batch}-{shard}-{killed[shard]}"
        tasks[key] = shard
        waiting.add(start(shard, key))

    while True:
        if time.monotonic() - looked > SLOTS_SECONDS:
            slots = max(1, sum(client.nthreads().values()))
            looked = time.monotonic()
        for shard in islice(following, max(0, IN_FLIGHT_PER_SLOT * slots - waiting.count())):
            submit(shard)
        future = next(waiting, None)
        if future is None:
            return
        shard = tasks.pop(future.key)
        try:
            done(future.result())
        except distributed.scheduler.KilledWorker as error:
            # The log of the shard has the episode in which each was killed, so that one after
            # another is given up.
            killed[shard] += 1
            if killed[shard] > len(plan.shard(shard)) + ATTEMPTS:
                raise WorkersLostError(
                    "its workers are killed before they start an episode", "dask"
                ) from error
            submit(shard)


def by_dask(
    store: Store,
    plan: Plan,
    shards: Sequence[int],
    client: Any,
    done: Callable[[ShardReport], None],
    timeout: float | None = None,
    task: Callable[..., ShardReport] = _work,
) -> None:
    """Works on shards of a plan on a Dask cluster, in their order; calls `done` with the report of
    each.

    At most IN_FLIGHT_PER_SLOT shards per thread of it are submitted at once. The store is one that
    all workers can open by its name. Raises InputError for a cluster without workers,
    WorkersLostError.

    Args:
        timeout: see `work_shard`. task: what a worker calls for each shard.
    """
    distributed = extra_module("distributed", "cluster", "--executor dask")
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        if not client.nthreads():
            raise InputError(
                "the cluster has no workers",
                "--executor dask",
                "start dask worker with its address",
            )

        def start(shard: int, key: str) -> Any:
            return client.submit(
                task,
                store.absolute_location,
                shard,
                timeout,
                installed_version("collidecli"),
                key=key,
                pure=False,
            )

        _work_through(distributed, client, plan, shards, done, start)
    except (OSError, distributed.client.FutureCancelledError, distributed.CancelledError) as error:
        if (
            not isinstance(error, OSError)
            or client.status != "running"
            or isinstance(error, TimeoutError)
        ):
            raise WorkersLostError(
                "the scheduler of the cluster ended", "--executor dask", AGAIN
            ) from error
        raise
