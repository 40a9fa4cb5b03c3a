"""The command `collide`: a parent process that waits for a child process (docs/adr/0012-guard-process.md).

The child reads scene and recording files with large C and C++ libraries, which a damaged file can crash. Then the
parent prints the name of the file, removes partial outputs of the child, and returns a defined exit code. --help and
systems without fork use no child.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from collidecli.cli.stop import INTERRUPTED, STOP_SIGNALS, StopHandler
from collidecli.storage.process_activity import Board, show_on

UNUSABLE_INPUT, INTERNAL_ERROR = 2, 70
CRASHES = tuple(getattr(signal, n) for n in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL") if hasattr(signal, n))
MAX_TRACE_BYTES = 65536
GC_THRESHOLD = 50_000
"""Threshold of the garbage collector. Imports and scenes create some hundred thousand objects that persist. With
Python's threshold of 700, the search for cycles takes a tenth of a short run. The chunk loop creates no cycles."""
SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
"""Clears the line of a progress bar and shows the cursor, which it hides."""


def command() -> int:
    """Runs the command line, in a child process unless it only prints help; returns the exit code."""
    args = sys.argv[1:]
    only_help = not args or any(arg in ("-h", "--help", "--version") for arg in args)
    if only_help or not hasattr(os, "fork") or threading.active_count() > 1:
        return _work()
    return guarded(_work)


def _work() -> int:
    gc.set_threshold(GC_THRESHOLD)
    from collidecli.cli.main import main

    return main()


def guarded(work: Callable[[], int]) -> int:
    """Runs `work` in a child with this process's stdio, terminal and process group; returns its exit code.

    The parent passes termination and pause signals on to the child. A child whose parent is killed terminates. A child
    that a signal kills gives 130 (a termination signal), 2 (it was reading an input, or the system was out of memory)
    or 70, with a message on stderr; its unfinished output files are removed.
    """
    board = Board()
    trace_read, trace_write = os.pipe()
    life_read, life_write = os.pipe()
    for fd in (trace_read, trace_write):
        os.set_blocking(fd, False)
    ends = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # with SIG_IGN the exit code of the child is lost
    # No termination signal may arrive before both processes have their handlers.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    child = os.fork()
    if child == 0:
        os.close(trace_read)
        os.close(life_write)
        _prepare_child(board, trace_write, life_read, ends)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        code = work()
        for number in ends:
            signal.signal(number, signal.SIG_IGN)
        board.finish(code)
        _leave(code)
    os.close(trace_write)
    os.close(life_read)
    with _forward_signals(child, ends):
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        _, status = os.waitpid(child, 0)
    os.close(life_write)
    trace = b""
    with contextlib.suppress(BlockingIOError):
        trace = os.read(trace_read, MAX_TRACE_BYTES)
    os.close(trace_read)
    return _exit_code(os.waitstatus_to_exitcode(status), board, trace.decode("utf-8", "replace"))


def _prepare_child(board: Board, trace_write: int, life_read: int, ends: list[int]) -> None:
    import faulthandler

    show_on(board)
    if not faulthandler.is_enabled():
        faulthandler.enable(trace_write)
    if hasattr(signal, "SIGVTALRM"):
        faulthandler.register(signal.SIGVTALRM, trace_write, chain=True)  # then the default action ends the process
    for number in ends:
        signal.signal(number, _end_early)
    threading.Thread(target=_end_with_parent, args=(life_read,), name="collide-parent", daemon=True).start()


def _leave(code: int) -> NoReturn:
    """Ends the child after its exit functions, without the shutdown of Python and the libraries, which takes half a
    second and may crash."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            stream.flush()
    os._exit(code)


def _end_early(number: int, frame: object) -> None:
    """Handler until the command line installs its own; a second signal during the termination has no effect."""
    if not StopHandler.any_stopped:
        StopHandler.any_stopped = True
        with contextlib.suppress(OSError):
            os.write(2, b"error: interrupted\n")
        os._exit(INTERRUPTED)


def _end_with_parent(life_read: int) -> None:
    if os.read(life_read, 1) == b"":
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _forward_signals(child: int, ends: list[int]):
    """Passes signals on to the child. A signal that the terminal sends to both reaches the child twice."""

    def forward(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    def pause(number: int, frame: object) -> None:
        forward(number, frame)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, pause)
        forward(signal.SIGCONT, frame)

    handlers = dict.fromkeys(ends, forward)
    if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
        handlers[signal.SIGTSTP] = pause
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit_code(status: int, board: Board, trace: str) -> int:
    """The exit code; prints a message if the child has printed none. status: exit code, or minus the signal."""
    if board.code is not None:
        # The work is done: a crash afterwards, as in the shutdown of a library, does not change the exit code.
        return board.code
    for path in board.outputs:
        with contextlib.suppress(OSError):
            os.unlink(path)
    if status == INTERRUPTED:
        return status
    code, text = _crash_message(status, board, trace)
    if trace and {"-v", "--verbose"} & set(sys.argv):
        text = f"{trace.rstrip()}\n{text}"
    from collidecli.escaping import printable

    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(f"{SHOW_CURSOR if sys.stderr.isatty() else ''}error: {printable(text)}", file=sys.stderr, flush=True)
    return code


def _crash_message(status: int, board: Board, trace: str) -> tuple[int, str]:
    """Exit code and message for a child that crashed."""
    if -status in STOP_SIGNALS:
        return INTERRUPTED, "interrupted"
    name = signal.Signals(-status).name if status < 0 else f"exit code {status}"
    what, path = board.reading
    doing = f"reading the {what}" if what else "working"
    place = f"{path}: " if path else ""
    if status == -signal.SIGKILL:
        return UNUSABLE_INPUT, (
            f"{place}collide was killed while {doing}, most likely because the system ran out of memory\n"
            "  lower --memory-limit, --threads or --worlds, or split the input"
        )
    if what and name == "SIGVTALRM":
        return UNUSABLE_INPUT, (
            f"{place}{doing} did not end: the structure of the HDF5 file has a cycle\n"
            "  the file is damaged: copy it again, or create it again"
        )
    # Frames are read while others are computed: the stack of the crashed thread shows which of the two crashed.
    crashed = trace.partition("Current thread")[2].partition("\nThread ")[0]
    if what and "/collidecli/engine/" not in crashed and (status >= 0 or -status in CRASHES):
        return UNUSABLE_INPUT, (
            f"{place}{doing} crashed the library that reads it ({name})\n"
            "  the file is damaged or malformed: export it again, or ask its author"
        )
    return INTERNAL_ERROR, (
        f"internal error: collide crashed ({name})\n  please report it with the output of this command with -v"
    )


if __name__ == "__main__":
    sys.exit(command())
