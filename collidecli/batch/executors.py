"""Work on shards in worker processes of this machine, and what happens where an episode kills its process.

Every episode is idempotent, so the episodes of a killed process are computed again, one by one; one that kills its
process ATTEMPTS times is recorded as failed. A process killed by SIGKILL, which is the signal of a system without free
memory, is followed by attempts with half the memory limit each.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any

from collidecli.batch.plan import Plan
from collidecli.batch.store import Failure, Store, open_store
from collidecli.batch.work import ATTEMPTS, INTERNAL_ERROR, ShardReport, planned, work_shard

# A process that calls functions one after another, stays warm between them, and ends with the process that made it.

IDLE_SECONDS = 120.0
"""A process that gets no call for so long ends; the next call starts another."""
IDLE = 100
"""Exit code of a process that ends for want of calls."""
KILL_FIRST = 500
"""What Linux adds to the process's score when it is out of memory: a worker is killed before its parent."""


class WorkerKilledError(Exception):
    """The process ended before it returned. exit_code: its own, or minus the signal that killed it."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the worker process ended with {exit_code}")
        self.exit_code = exit_code


class WorkerClosedError(Exception):
    """`close` was called."""


class WorkerProcess:
    """One process at a time, started when it is needed; a killed process belongs to a known call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What `function(*args)` returns in the process; raises what it raises.

        Raises WorkerKilledError where the process ends before, WorkerClosedError after `close`.
        """
        while True:
            process, pipe = self._started()
            try:
                pipe.send((function, args))
                is_result, value = pipe.recv()
                break
            except (EOFError, OSError):
                process.join()
                self._process = None
                pipe.close()
                if self._closed:
                    raise WorkerClosedError from None
                if process.exitcode != IDLE:
                    raise WorkerKilledError(process.exitcode or 0) from None
        if is_result:
            return value
        raise value

    def _started(self) -> tuple[Any, Connection]:
        with self._lock:
            if self._closed:
                raise WorkerClosedError
            if self._process is None or self._pipe is None:
                # A process of Dask is a daemon for its parent, and multiprocessing lets a daemon start no process.
                multiprocessing.current_process().daemon = False
                context = multiprocessing.get_context("spawn")
                self._pipe, theirs = context.Pipe()
                self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
                self._process.start()
                theirs.close()
            return self._process, self._pipe

    def close(self) -> None:
        """Kills the process; a call that waits for it raises WorkerClosedError, as does every later one."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()


def _serve(pipe: Connection) -> None:
    """Calls what the pipe receives until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which the terminal signals too, ends this process
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(str(KILL_FIRST))
    threading.Thread(target=_end_with_parent, name="collide-parent", daemon=True).start()
    while True:
        if not pipe.poll(IDLE_SECONDS):
            os._exit(IDLE)
        try:
            function, args = pipe.recv()
        except EOFError:
            return
        try:
            answer = True, function(*args)
        except Exception as error:
            answer = False, _picklable(error)
        pipe.send(answer)


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


KILLED = 4
"""Exit code of a process that was killed, as for want of memory (docs/reference/cli.md)."""


class Slot:
    """One worker process at a time, that works on the shards of one batch."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._process = WorkerProcess()

    def work(self, shard: int, only: Sequence[str] | None = None) -> ShardReport:
        """Works on a shard; after a killed process, on its episodes one by one.

        Args:
            only: keys of the shard to compute, else all.
        """
        try:
            return self._process.call(work_shard, self._location, shard, only)
        except WorkerKilledError as error:
            keys = only or [episode.key for episode in planned(self._location).shard(shard)]
            first = error.exit_code if len(keys) == 1 else None
            return merged([self._work_one(shard, key, first) for key in dict.fromkeys(keys)])

    def _work_one(self, shard: int, key: str, exit_code: int | None) -> ShardReport:
        """Works on one episode. exit_code: of a process that this episode killed before, if any."""
        exit_codes = [] if exit_code is None else [exit_code]
        while len(exit_codes) < ATTEMPTS:
            try:
                return self._process.call(work_shard, self._location, shard, [key], exit_codes.count(-signal.SIGKILL))
            except WorkerKilledError as error:
                exit_codes.append(error.exit_code)
        quarantine(open_store(self._location), planned(self._location), key, shard, exit_codes)
        return ShardReport(shard, failed=1)

    def close(self) -> None:
        """Kills the process."""
        self._process.close()


def quarantine(store: Store, plan: Plan, key: str, shard: int, exit_codes: Sequence[int]) -> None:
    """Records that an episode killed the processes that computed it, which ended with `exit_codes`."""
    episode = next(one for one in plan.shard(shard) if one.key == key)
    killed = exit_codes[-1] == -signal.SIGKILL
    names = ", ".join(dict.fromkeys(_ending(code) for code in exit_codes))
    message = f"the process that computed it ended {len(exit_codes)} times ({names})"
    if killed:
        message += ", as for want of memory; --retry-failed on a machine with more, or set memory-limit in its job"
    code = KILLED if killed else INTERNAL_ERROR
    host = socket.gethostname()
    store.fail(Failure(key, episode.job, episode.motion, message, code, host, len(exit_codes), episode.demo))


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def merged(reports: Sequence[ShardReport]) -> ShardReport:
    """One report of a shard whose episodes were worked on one by one."""
    return ShardReport(
        reports[0].shard,
        sum(one.done for one in reports),
        sum(one.skipped for one in reports),
        sum(one.failed for one in reports),
        sum(one.seconds for one in reports),
    )


def by_processes(store: Store, shards: Sequence[int], workers: int, done: Callable[[ShardReport], None]) -> None:
    """Works on shards with `workers` processes of this machine, in their order; calls `done` after each shard."""
    slots = [Slot(store.absolute_location) for _ in range(workers)]
    own = threading.local()
    unused = iter(slots)

    def work(shard: int) -> ShardReport:
        if not hasattr(own, "slot"):
            own.slot = next(unused)
        return own.slot.work(shard)

    with ThreadPoolExecutor(workers) as threads:
        try:
            for report in _as_done(lambda shard: threads.submit(work, shard), shards, 2 * workers):
                done(report)
        finally:
            for slot in slots:
                slot.close()


def _as_done(submit: Callable[[int], Any], shards: Sequence[int], in_flight: int) -> Iterator[ShardReport]:
    """Results of `submit` for each shard as they complete, with at most `in_flight` at once."""
    pending, following = set(), iter(shards)
    while True:
        pending.update(submit(shard) for shard in islice(following, in_flight - len(pending)))
        if not pending:
            return
        complete, pending = wait(pending, return_when=FIRST_COMPLETED)
        for future in complete:
            yield future.result()
