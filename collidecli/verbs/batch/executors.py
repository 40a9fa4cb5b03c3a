"""Work on shards in worker processes of this machine, and what happens where an episode kills its
process.

Every episode is idempotent, so a shard whose process was killed is worked on again; its log has the
episode in which the process was killed. After SIGKILL, which is the signal of a system without free
memory, attempts have half the memory limit each.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from collidecli.errors import CollideError
from collidecli.exit_codes import TRY_AGAIN
from collidecli.started_processes import end_at_hangup
from collidecli.verbs.batch.episode_worker import (
    ATTEMPTS,
    LIMIT_SECONDS,
    TIMED_OUT,
    watchers,
    work_shard,
)
from collidecli.verbs.batch.log import STOPPED, ShardReport
from collidecli.verbs.batch.store import Store

KILL_FIRST = 500
"""What Linux adds to the process's score when it is out of memory: a worker is killed before its
parent."""
IDLE_SECONDS = 120.0
LOOK_SECONDS = 1.0


class WorkerKilledError(Exception):
    """The process ended before it returned.

    exit_code: its own, or minus the signal that killed it, or TIMED_OUT after `seconds`, its time
    limit.
    """

    def __init__(self, exit_code: int, seconds: float = 0.0) -> None:
        super().__init__(f"the worker process ended with {exit_code}")
        self.exit_code = exit_code
        self.seconds = seconds


class WorkersLostError(CollideError):
    """ATTEMPTS processes in a row were killed before an episode, or the scheduler of a cluster
    ended. What is done is kept, and another machine, or a later time, may have workers."""

    exit_code = TRY_AGAIN


Begun = Callable[[int], None] | None
"""Called with the shard as each episode begins."""


class Slot:
    """One worker process at a time, started when it is needed, that works on the shards of one
    batch.

    timeout: see `work_shard`.
    """

    def __init__(self, location: str, timeout: float | None = None, begun: Begun = None) -> None:
        self._location = location
        self._timeout = timeout
        self._begun = begun
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False

    def work(self, shard: int) -> ShardReport:
        """Works on a shard, by another process where one was killed.

        Raises CancelledError after `close`, WorkersLostError, and what `work_shard` raises.
        """
        store = Store(self._location)
        computed = 0
        unstarted = 0
        while unstarted < ATTEMPTS:
            log = store.new_log(shard)
            try:
                report = self._call(shard, log)
                return replace(
                    report, done=report.done + computed, skipped=max(0, report.skipped - computed)
                )
            except CancelledError:
                _end_log(store, shard, log, {"event": STOPPED})
                raise
            except WorkerKilledError as error:
                ending = {"event": "killed", "exit_code": error.exit_code, "seconds": error.seconds}
                started = _end_log(store, shard, log, ending)
                computed += sum(map(store.has_result, started))
                unstarted = 0 if started else unstarted + 1
        what = f"{ATTEMPTS} worker processes ended before an episode of shard {shard}"
        fix = (
            "look for messages of the system about them, and repeat the command; what is done is"
            " kept"
        )
        raise WorkersLostError(what, self._location, fix)

    def _call(self, shard: int, log: str) -> ShardReport:
        """The report of the process, which may raise too. Raises WorkerKilledError,
        CancelledError."""
        process, pipe = self._started()
        limit = LIMIT_SECONDS
        answer = None
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
                # A process of Dask is a daemon for its parent, and multiprocessing lets a daemon
                # start no process.
                multiprocessing.current_process().daemon = False
                context = multiprocessing.get_context("spawn")
                pipe, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True)
                with _interrupts_blocked():
                    process.start()
                self._pipe = pipe
                self._process = process
                theirs.close()
            return self._process, self._pipe

    def close(self) -> None:
        """Kills the process."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A process that is started in the block has SIGINT blocked, so that it is silent where the
    terminal interrupts it before it ignores the signal."""
    resource_tracker.ensure_running()  # else the first process starts it, which unblocks SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def expired(limit: float, ended: Callable[[float], object]) -> bool:
    """Whether a time limit passes before `ended`, which waits for so many seconds, is true.

    It is counted in steps: a batch that is stopped as a whole and continued, as by a scheduler,
    loses no time.
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
    """Works on the shards that the pipe receives until it is closed, or receives none for
    IDLE_SECONDS."""
    # the parent, which the terminal signals too, ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(str(KILL_FIRST))
    if (parent := multiprocessing.parent_process()) is not None:
        end_at_hangup(parent.sentinel)
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
    """Works on shards with `workers` processes of this machine, in their order; calls `done` after
    each shard.

    timeout, begun: see `Slot`.
    """
    slots = [Slot(store.absolute_location, timeout, begun) for _ in range(workers)]
    free = queue.SimpleQueue[Slot]()
    complete = queue.SimpleQueue[Future[ShardReport]]()
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
