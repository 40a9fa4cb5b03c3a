"""The command `collide`: a parent that waits, and a child that works and may crash (docs/adr/0012-guard-process.md).

Scene and recording files are read by large C and C++ libraries, and a damaged file can make one of them crash. Then
the parent still says which file it was, removes what the child left half written, and ends with an exit code that
means something. Help, and systems without fork, need no child.
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
MOST_TRACE_BYTES = 65536
OBJECTS_BETWEEN_SEARCHES = 50_000
"""Imports and scenes make objects by the hundred thousand, which stay: to look for cycles among them after every 700,
as Python does, takes a tenth of a short run. What goes on for long, chunk after chunk, makes none."""
SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
"""A progress bar hides the cursor and leaves its line."""


def command() -> int:
    """Runs the command line of this process, in a child where that helps; returns the exit code."""
    asked = sys.argv[1:]
    helpful = not asked or any(arg in ("-h", "--help", "--version") for arg in asked)
    if helpful or not hasattr(os, "fork") or threading.active_count() > 1:
        return _work()
    return guarded(_work)


def _work() -> int:
    gc.set_threshold(OBJECTS_BETWEEN_SEARCHES)
    from collidecli.cli.main import main

    return main()


def guarded(work: Callable[[], int]) -> int:
    """Runs `work` in a child with the same stdio, terminal and process group; returns its exit code, in the parent.

    Signals to end or pause reach the child, whether they are sent to this process or to both. A child whose parent is
    killed ends too. A child that dies of a signal gives 130 (a signal to end), 2 (it was reading an input, or was
    killed for want of memory) or 70, with a message on stderr; its output files that are not in place are removed.
    """
    board = Board()
    trace_read, trace_write = os.pipe()
    life_read, life_write = os.pipe()
    for fd in (trace_read, trace_write):
        os.set_blocking(fd, False)
    ends = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a child that is ignored leaves no exit code
    # None of them may come while one of the two is not ready for it.
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
    with _passing_on(child, ends):
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        _, status = os.waitpid(child, 0)
    os.close(life_write)
    trace = b""
    with contextlib.suppress(BlockingIOError):
        trace = os.read(trace_read, MOST_TRACE_BYTES)
    os.close(trace_read)
    return _answer(os.waitstatus_to_exitcode(status), board, trace.decode("utf-8", "replace"))


def _prepare_child(board: Board, trace_write: int, life_read: int, ends: list[int]) -> None:
    import faulthandler

    show_on(board)
    if not faulthandler.is_enabled():
        faulthandler.enable(trace_write)
    if hasattr(signal, "SIGVTALRM"):
        faulthandler.register(signal.SIGVTALRM, trace_write, chain=True)  # and then it ends the process
    for number in ends:
        signal.signal(number, _end_early)
    threading.Thread(target=_end_with_parent, args=(life_read,), name="collide-parent", daemon=True).start()


def _leave(code: int) -> NoReturn:
    """Ends the child as soon as what is to be done at its end is done: to take Python and the libraries down piece by
    piece takes half a second, and a crash in that would be for nothing."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            stream.flush()
    os._exit(code)


def _end_early(number: int, frame: object) -> None:
    """Before the command line has handlers of its own; a second signal while it ends changes nothing."""
    if not StopHandler.any_stopped:
        StopHandler.any_stopped = True
        with contextlib.suppress(OSError):
            os.write(2, b"error: interrupted\n")
        os._exit(INTERRUPTED)


def _end_with_parent(life_read: int) -> None:
    if os.read(life_read, 1) == b"":
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _passing_on(child: int, ends: list[int]):
    """Signals that this process gets reach the child. One that the terminal sent to both reaches it twice."""

    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    def pause(number: int, frame: object) -> None:
        pass_on(number, frame)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, pause)
        pass_on(signal.SIGCONT, frame)

    handlers = dict.fromkeys(ends, pass_on)
    if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
        handlers[signal.SIGTSTP] = pause
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _answer(status: int, board: Board, trace: str) -> int:
    """The exit code; a message where the child has not given its own. status: exit code, or minus the signal."""
    if board.code is not None:
        # What fails after the end, as in taking a library down, takes nothing back.
        return board.code
    for path in board.outputs:
        with contextlib.suppress(OSError):
            os.unlink(path)
    if status == INTERRUPTED:
        return status
    code, text = _verdict(status, board, trace)
    if trace and {"-v", "--verbose"} & set(sys.argv):
        text = f"{trace.rstrip()}\n{text}"
    from collidecli.cli.streams import printable

    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(f"{SHOW_CURSOR if sys.stderr.isatty() else ''}error: {printable(text)}", file=sys.stderr, flush=True)
    return code


def _verdict(status: int, board: Board, trace: str) -> tuple[int, str]:
    """Exit code and message for a child that ended without either."""
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
            f"{place}{doing} came to no end: HDF5 goes round in circles in the file's structure\n"
            "  the file is damaged: copy it again, or make it again"
        )
    # Frames are read while others are computed: the crashed thread tells which of the two it was.
    crashed = trace.partition("Current thread")[2].partition("\nThread ")[0]
    if what and "/collidecli/engine/" not in crashed and (status >= 0 or -status in CRASHES):
        return UNUSABLE_INPUT, (
            f"{place}{doing} crashed the library that reads it ({name})\n"
            "  the file is damaged or malformed: export it again, or ask who made it"
        )
    return INTERNAL_ERROR, (
        f"internal error: collide crashed ({name})\n  please report it with what the same command prints with -v"
    )


if __name__ == "__main__":
    sys.exit(command())
