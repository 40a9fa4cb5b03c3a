"""The command `collide`: a parent process that waits for a child process
(docs/adr/0012-guard-process.md).

The child reads scene and recording files with large C and C++ libraries, which a damaged file can
crash. Then the parent prints the name of the file, removes partial outputs of the child, and
returns a defined exit code. --help and systems without fork use no child.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

from collidecli.cli.stop import (
    GRACE_SECONDS,
    STOP_SIGNALS,
    StopHandler,
    end_interrupted,
)
from collidecli.cli.verbs import HELP
from collidecli.errors import CollideError
from collidecli.exit_codes import INTERNAL_ERROR, INTERRUPTED, KILLED, UNUSABLE_INPUT
from collidecli.process_limits import LimitError, limit_error, prepare_limits
from collidecli.storage.process_activity import Board, show_on

CRASHES = tuple(
    getattr(signal, n)
    for n in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
    if hasattr(signal, n)
)
MAX_TRACE_BYTES = 65536
GC_THRESHOLD = 300_000
"""Threshold of the garbage collector. Imports and scenes create some hundred thousand objects that
persist. With Python's threshold of 700, the search for cycles takes a tenth of a short run. The
chunk loop creates no cycles."""
SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
"""Clears the line of a progress bar and shows the cursor, which it hides."""


def command() -> int:
    """Runs the command line, in a child process unless it only prints help; returns the exit
    code."""
    args = sys.argv[1:]
    only_help = args[:1] in ([], [HELP])
    only_help |= any(arg in ("-h", "--help", "--version") for arg in args)
    if only_help or not hasattr(os, "fork") or threading.active_count() > 1:
        return _work()
    with _limits_printed() as refused:
        prepare_limits()
        return guarded(_work)
    return refused[0]


@contextlib.contextmanager
def _limits_printed() -> Iterator[list[int]]:
    """Prints an error of a limit of the system, such as that of processes; the list then has the
    exit code."""
    codes = list[int]()
    try:
        yield codes
    except (LimitError, OSError, RuntimeError) as error:
        limit = limit_error(error)
        if limit is None:
            raise
        _print_error(limit, limit.exit_code)
        codes.append(limit.exit_code)


def _work() -> int:
    gc.set_threshold(GC_THRESHOLD)
    # NumPy's OpenBLAS otherwise starts threads that wait in a loop: 50 ms of a core, for products
    # of small matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Interpreters that are started from here import no module of the current folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    from collidecli.cli.deferred_methods import defer_methods

    defer_methods()
    from collidecli.cli.main import main

    return main()


def guarded(work: Callable[[], int]) -> int:
    """Runs `work` in a child with this process's stdio, terminal and process group; returns its
    exit code.

    The parent passes termination and pause signals on to the child. A child whose parent is killed
    terminates. A child that a signal kills gives 130 (a termination signal), 4 (SIGKILL, as for
    want of memory), 2 (it was reading an input) or 70, with a message on stderr; its unfinished
    output files are removed.
    """
    board = Board()
    trace_read, trace_write = os.pipe()
    life_read, life_write = os.pipe()
    for fd in (trace_read, trace_write):
        os.set_blocking(fd, False)
    ends: list[int] = [
        number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN
    ]
    pauses: list[int] = (
        [signal.SIGTSTP] if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL else []
    )
    # Blocked, with a handler: with SIG_IGN the exit code of the child is lost, without a handler
    # the signal is.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Blocked signals stay pending until `_wait` takes them, also those that arrive before it.
    earlier_mask = signal.pthread_sigmask(signal.SIG_BLOCK, [*ends, *pauses, signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        os.close(trace_read)
        os.close(life_write)
        code = KILLED
        with _limits_printed():
            _prepare_child(board, trace_write, life_read, ends)
            signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)
            code = work()
        for number in ends:
            signal.signal(number, signal.SIG_IGN)
        board.finish(code)
        # Without the shutdown of Python and the libraries, which takes half a second and may crash.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.flush()
        os._exit(code)
    os.close(trace_write)
    os.close(life_read)
    status = _wait(child, ends, pauses)
    for number in ends:
        signal.signal(number, signal.SIG_IGN)  # the exit code is known
    signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)
    os.close(life_write)
    trace = b""
    with contextlib.suppress(BlockingIOError):
        trace = os.read(trace_read, MAX_TRACE_BYTES)
    os.close(trace_read)
    return _exit_code(os.waitstatus_to_exitcode(status), board, trace.decode("utf-8", "replace"))


def _prepare_child(board: Board, trace_write: int, life_read: int, ends: list[int]) -> None:
    import faulthandler

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    show_on(board)
    if not faulthandler.is_enabled():
        faulthandler.enable(trace_write)
    if hasattr(signal, "SIGVTALRM"):
        # then the default action ends the process
        faulthandler.register(signal.SIGVTALRM, trace_write, chain=True)
    for number in ends:
        signal.signal(number, _end_early)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    watch = threading.Thread(
        target=_watch_signals, args=(life_read, wake_read), name="collide-parent", daemon=True
    )
    watch.start()


def _end_early(number: int, frame: object) -> None:
    """Handler until the command line installs its own; a second signal during the termination has
    no effect."""
    if not StopHandler.any_stopped:
        StopHandler.any_stopped = True
        end_interrupted(2)


def _watch_signals(life_read: int, wake_read: int) -> None:
    """Thread of the child: ends it with its parent, and after a signal whose handler has not run in
    GRACE_SECONDS.

    A handler of Python runs between two instructions of Python: one that arrives just before a
    blocking call waits for the end of that call. The command line has its own watch thread
    (`stop`), this one is for the time before.
    """
    while True:
        ready, _, _ = select.select([life_read, wake_read], [], [])
        if life_read in ready:
            os.kill(os.getpid(), signal.SIGTERM)
        elif not any(number in STOP_SIGNALS for number in os.read(wake_read, 64)):
            continue
        time.sleep(GRACE_SECONDS)
        _end_early(0, None)
        return


def _wait(child: int, ends: list[int], pauses: list[int]) -> int:
    """Waits for the child and passes signals on to it; returns its status. The signals are blocked.

    A signal that the terminal sends to both processes reaches the child twice. No signal is lost: a
    handler of Python would not run while `waitpid` waits, if the signal arrives just before.
    """
    while True:
        number = signal.sigwait([*ends, *pauses, signal.SIGCHLD])
        if number in ends:
            _send(child, number)
        elif number in pauses:
            _send(child, number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
            os.kill(os.getpid(), number)  # the default action: stops until SIGCONT
            signal.pthread_sigmask(signal.SIG_BLOCK, [number])
            _send(child, signal.SIGCONT)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status


def _send(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _exit_code(status: int, board: Board, trace: str) -> int:
    """The exit code; prints a message if the child has printed none. status: exit code, or minus
    the signal."""
    # None after the end of the work, but where a signal came as an output was opened.
    for path in board.outputs:
        with contextlib.suppress(OSError):
            os.unlink(path)
    if board.code is not None:
        # The work is done: a crash afterwards, as in the shutdown of a library, does not change the
        # exit code.
        return board.code
    if status == INTERRUPTED:
        return status
    code, error = _crash_error(status, board, trace)
    if trace and {"-v", "--verbose"} & set(sys.argv):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            print(trace.rstrip(), file=sys.stderr, flush=True)
    _print_error(error, code)
    return code


def _print_error(error: CollideError, code: int) -> None:
    """Prints an error of a child that has printed none, or of none that could be started."""
    from collidecli.escaping import printable

    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(
            f"{SHOW_CURSOR if sys.stderr.isatty() else ''}error: {printable(str(error))}",
            file=sys.stderr,
            flush=True,
        )
        if "--json" in sys.argv:
            from collidecli.cli.streams import error_json

            print(error_json(error, code), flush=True)


def _crash_error(status: int, board: Board, trace: str) -> tuple[int, CollideError]:
    """The exit code and the error of a child that has ended without a result."""
    if -status in STOP_SIGNALS:
        return INTERRUPTED, CollideError("interrupted")
    name = signal.Signals(-status).name if status < 0 else f"exit code {status}"
    what, path = board.reading
    doing = f"reading the {what}" if what else "working"
    if board.exceeded:
        need = f"{doing} needs more than {board.exceeded / (1 << 30):.3g} GiB of memory"
        fix = (
            "split the input; run and profile have --memory-limit, whose default is half of the"
            " free memory"
        )
        return KILLED, CollideError(need, path, fix)
    if status == -signal.SIGKILL:
        killed = (
            f"collide was killed while {doing}, most likely because the system ran out of memory"
        )
        fix = "lower --memory-limit, --threads or --worlds, or split the input"
        return KILLED, CollideError(killed, path, fix)
    if what and name == "SIGVTALRM":
        endless = f"{doing} did not end: the structure of the HDF5 file has a cycle"
        fix = "the file is damaged: copy it again, or create it again"
        return UNUSABLE_INPUT, CollideError(endless, path, fix)
    # Frames are read while others are computed: the stack of the crashed thread shows which of the
    # two crashed.
    crashed = trace.partition("Current thread")[2].partition("\nThread ")[0]
    if what and "/collidecli/engine/" not in crashed and (status >= 0 or -status in CRASHES):
        fault = f"{doing} crashed the library that reads it ({name})"
        fix = "the file is damaged or malformed: export it again, or ask its author"
        return UNUSABLE_INPUT, CollideError(fault, path, fix)
    fix = "please report it with the output of this command with -v"
    return INTERNAL_ERROR, CollideError(f"internal error: collide crashed ({name})", "", fix)


if __name__ == "__main__":
    sys.exit(command())
