"""A process that calls functions one after another, stays warm between them, and ends with the process that made it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any

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
