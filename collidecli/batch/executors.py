"""Work on shards in worker processes of this machine, and what happens where an episode kills its process.

Every episode is idempotent, so a shard whose process was killed is worked on again; its log has the episode in which
the process was killed. After SIGKILL, which is the signal of a system without free memory, attempts have half the
memory limit each.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import queue
import signal
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any

from collidecli import __version__
from collidecli.batch.plan import Plan
from collidecli.batch.store import Store, open_store
from collidecli.batch.work import ATTEMPTS, LIMIT_SECONDS, STOPPED, TIMED_OUT, ShardReport, watchers, work_shard
from collidecli.errors import CollideError, InputError, extra_module
from collidecli.storage.input_files import read_json

KILL_FIRST = 500
"""What Linux adds to the process's score when it is out of memory: a worker is killed before its parent."""
IDLE_SECONDS, LOOK_SECONDS = 120.0, 1.0


class WorkerKilledError(Exception):
    """The process ended before it returned.

    exit_code: its own, or minus the signal that killed it, or TIMED_OUT after `seconds`, its time limit.
    """

    def __init__(self, exit_code: int, seconds: float = 0.0) -> None:
        super().__init__(f"the worker process ended with {exit_code}")
        self.exit_code, self.seconds = exit_code, seconds


class WorkersLostError(CollideError):
    """ATTEMPTS processes in a row were killed before an episode, or the scheduler of a cluster ended. What is done is
    kept, and another machine, or a later time, may have workers."""

    exit_code = 75


Begun = Callable[[int], None] | None
"""Called with the shard as each episode begins."""


class Slot:
    """One worker process at a time, started when it is needed, that works on the shards of one batch.

    timeout: see `work_shard`.
    """

    def __init__(self, location: str, timeout: float | None = None, begun: Begun = None) -> None:
        self._location, self._timeout, self._begun = location, timeout, begun
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False

    def work(self, shard: int) -> ShardReport:
        """Works on a shard, by another process where one was killed.

        Raises CancelledError after `close`, WorkersLostError, and what `work_shard` raises.
        """
        store, computed, unstarted = Store(self._location), 0, 0
        while unstarted < ATTEMPTS:
            log = store.new_log(shard)
            try:
                report = self._call(shard, log)
                return replace(report, done=report.done + computed, skipped=max(0, report.skipped - computed))
            except CancelledError:
                _end_log(store, shard, log, {"event": STOPPED})
                raise
            except WorkerKilledError as error:
                ending = {"event": "killed", "exit_code": error.exit_code, "seconds": error.seconds}
                started = _end_log(store, shard, log, ending)
                computed += sum(map(store.has_result, started))
                unstarted = 0 if started else unstarted + 1
        what = f"{ATTEMPTS} worker processes ended before an episode of shard {shard}"
        fix = "look for messages of the system about them, and repeat the command; what is done is kept"
        raise WorkersLostError(what, self._location, fix)

    def _call(self, shard: int, log: str) -> ShardReport:
        """The report of the process, which may raise too. Raises WorkerKilledError, CancelledError."""
        process, pipe = self._started()
        limit, answer = LIMIT_SECONDS, None
        try:
            pipe.send((work_shard, self._location, shard, log, self._timeout))
            while not expired(limit, pipe.poll):
                is_last, answer = pipe.recv()
                if is_last:
                    break
                limit = answer  # an episode starts
                if self._begun is not None:
                    self._begun(shard)
            else:
                process.kill()
                process.join()
                raise WorkerKilledError(TIMED_OUT, limit)
        except (EOFError, OSError):
            process.join()
            if self._closed:
                raise CancelledError from None
            raise WorkerKilledError(process.exitcode or 0) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _started(self) -> tuple[Any, Connection]:
        with self._lock:
            if self._closed:
                raise CancelledError
            if self._process is None or self._pipe is None or not self._process.is_alive():
                # A process of Dask is a daemon for its parent, and multiprocessing lets a daemon start no process.
                multiprocessing.current_process().daemon = False
                context = multiprocessing.get_context("spawn")
                self._pipe, theirs = context.Pipe()
                self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
                self._process.start()
                theirs.close()
            return self._process, self._pipe

    def close(self) -> None:
        """Kills the process."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()


def expired(limit: float, ended: Callable[[float], object]) -> bool:
    """Whether a time limit passes before `ended`, which waits for so many seconds, is true.

    It is counted in steps: a batch that is stopped as a whole and continued, as by a scheduler, loses no time.
    """
    while limit > 0.0:
        if ended(min(LOOK_SECONDS, limit)):
            return False
        limit -= LOOK_SECONDS
    return True


def _end_log(store: Store, shard: int, log: str, event: dict[str, object]) -> list[str]:
    """The keys that a process has started, by its log, which then has how it ended."""
    events = dict(store.logs(range(shard, shard + 1))).get(log, [])
    started = [record.get("key", "") for record in events if record.get("event") == "start"]
    if started:
        store.log(log, event, at_once=True)
    return started


def _serve(pipe: Connection) -> None:
    """Works on the shards that the pipe receives until it is closed, or receives none for IDLE_SECONDS."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which the terminal signals too, ends this process
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(str(KILL_FIRST))
    threading.Thread(target=_end_with_parent, name="collide-parent", daemon=True).start()
    watchers.append(lambda limit: pipe.send((False, limit)))
    while pipe.poll(IDLE_SECONDS):
        try:
            function, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(*arguments)
        except Exception as error:
            answer = _picklable(error)
        pipe.send((True, answer))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def by_processes(
    store: Store,
    shards: Sequence[int],
    workers: int,
    done: Callable[[ShardReport], None],
    timeout: float | None = None,
    begun: Begun = None,
) -> None:
    """Works on shards with `workers` processes of this machine, in their order; calls `done` after each shard.

    timeout, begun: see `Slot`.
    """
    slots = [Slot(store.absolute_location, timeout, begun) for _ in range(workers)]
    free, complete = queue.SimpleQueue[Slot](), queue.SimpleQueue[Future[ShardReport]]()
    for slot in slots:
        free.put(slot)

    def work(shard: int) -> ShardReport:
        slot = free.get()
        try:
            return slot.work(shard)
        finally:
            free.put(slot)

    with ThreadPoolExecutor(workers) as threads:
        try:
            for shard in shards:
                threads.submit(work, shard).add_done_callback(complete.put)
            for _ in shards:
                done(complete.get().result())
        finally:
            for slot in slots:
                slot.close()
            threads.shutdown(cancel_futures=True)


# Executor on a Dask cluster.

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

    Dask's own messages are not printed. Raises InputError where nobody answers within CONNECT_SECONDS.
    """
    distributed = extra_module("distributed", "cluster", "--executor dask")
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    where = address or scheduler_file or "--executor dask"
    if scheduler_file:
        what, fix = "is not the file of a Dask scheduler", "start dask scheduler --scheduler-file FILE first"
        content = read_json(scheduler_file, fix, what)
        if not isinstance(content, dict) or "address" not in content:
            raise InputError(what, scheduler_file, fix)
        address = str(content["address"])
    cluster = None
    try:
        if address:
            _require_answer(address)
            client = distributed.Client(address, timeout=CONNECT_SECONDS)
        else:
            # One Dask worker: each of its threads has a process of its own.
            cluster = distributed.LocalCluster(
                n_workers=1, threads_per_worker=local_workers, dashboard_address=":0", silence_logs=logging.CRITICAL + 1
            )
            client = distributed.Client(cluster)
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition("\n")[0].lower()
        fix = "start dask scheduler first, and write its address as tcp://HOST:PORT"
        raise InputError(f"no Dask scheduler responds: {reason}", where, fix) from error
    except RuntimeError as error:  # of a nanny
        raise WorkersLostError("a process of Dask ended as it started", where, AGAIN) from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)
        if cluster is not None:
            with suppress(Exception):
                cluster.close(timeout=5)


def _require_answer(address: str) -> None:
    """Raises ValueError, and OSError where a TCP address does not answer; Dask itself tries for minutes."""
    protocol, _, place = address.rpartition("://")
    if protocol in ("", "tcp"):
        host, _, port = place.rpartition(":")
        if not port.isdigit():
            raise ValueError(f"'{address}' has no port")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS) as connection:
            if not connection.recv(1):  # each side of Dask begins with a handshake
                raise ConnectionResetError(0, "the connection was closed")


_own = threading.local()
"""slot: of this thread of a Dask worker, which keeps its process from shard to shard."""


def _work(folder: str, shard: int, timeout: float | None, version: str) -> ShardReport:
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
    if getattr(_own, "batch", None) != (folder, timeout):
        _own.batch, _own.slot = (folder, timeout), Slot(folder, timeout)
    return _own.slot.work(shard)


def by_dask(
    store: Store, plan: Plan, shards: Sequence[int], client: Any, done: Callable[[ShardReport], None],
    timeout: float | None = None, task: Callable[..., ShardReport] = _work,
) -> None:  # fmt: skip
    """Works on shards of a plan on a Dask cluster, in their order; calls `done` with the report of each.

    At most IN_FLIGHT_PER_SLOT shards per thread of it are submitted at once. The store is one that all workers can
    open by its name. Raises InputError for a cluster without workers, WorkersLostError.

    Args:
        timeout: see `work_shard`. task: what a worker calls for each shard.
    """
    distributed = extra_module("distributed", "cluster", "--executor dask")
    batch, tasks, killed = f"collide-{uuid.uuid4().hex}", dict[str, int](), Counter[int]()
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        if not client.nthreads():
            raise InputError("the cluster has no workers", "--executor dask", "start dask worker with its address")
        waiting, following, slots, looked = distributed.as_completed(), iter(shards), 0, -SLOTS_SECONDS

        def submit(shard: int) -> None:
            key = f"{batch}-{shard}-{killed[shard]}"  # unique in the cluster, where other batches have shards too
            tasks[key] = shard
            waiting.add(client.submit(task, store.absolute_location, shard, timeout, __version__, key=key, pure=False))

        while True:
            if time.monotonic() - looked > SLOTS_SECONDS:
                slots, looked = max(1, sum(client.nthreads().values())), time.monotonic()
            for shard in islice(following, max(0, IN_FLIGHT_PER_SLOT * slots - waiting.count())):
                submit(shard)
            future = next(waiting, None)
            if future is None:
                return
            shard = tasks.pop(future.key)
            try:
                done(future.result())
            except distributed.scheduler.KilledWorker as error:
                # The log of the shard has the episode in which each was killed, so that one after another is given up.
                killed[shard] += 1
                if killed[shard] > len(plan.shard(shard)) + ATTEMPTS:
                    raise WorkersLostError("its workers are killed before they start an episode", "dask") from error
                submit(shard)
    except (OSError, distributed.client.FutureCancelledError, distributed.CancelledError) as error:
        if not isinstance(error, OSError) or client.status != "running" or isinstance(error, TimeoutError):
            raise WorkersLostError("the scheduler of the cluster ended", "--executor dask", AGAIN) from error
        raise
