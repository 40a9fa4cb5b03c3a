"""Activity of this process in shared memory, from which its parent derives the reason of a crash.

A process shares the board with the child that it forks. Without a board (Python API, systems
without fork) the marks have no effect. The board has the process's limit of memory too.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from collidecli.errors import InputError

_READING = slice(8, 8192)
_OUTPUTS = slice(8192, 32768)
_LIMIT = slice(32768, 32776)
_END = 32776
_LENGTH_BYTES = 4
_BETWEEN = b"\0"
"""Separator, which no file name contains."""


class Board:
    """Memory that is shared with children forked later.

    code: the child's exit code; None if the child did not finish. reading: kind and path of the
    input being read, both empty for none. outputs: the child's temporary output files. exceeded:
    the memory limit for which the child ended itself [bytes]; 0 for none.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _END)  # anonymous, and shared over fork

    @property
    def code(self) -> int | None:
        return self._memory[1] if self._memory[0] else None

    def finish(self, code: int) -> None:
        self._memory[1] = code
        self._memory[0] = 1

    @property
    def exceeded(self) -> int:
        return int.from_bytes(self._memory[_LIMIT], "little")

    def note_exceeded(self, limit: int) -> None:
        self._memory[_LIMIT] = limit.to_bytes(8, "little")

    @property
    def reading(self) -> tuple[str, str]:
        what, _, path = self._text(_READING).partition(_BETWEEN)
        return what.decode(), os.fsdecode(path)

    @property
    def outputs(self) -> list[str]:
        return [os.fsdecode(path) for path in self._text(_OUTPUTS).split(_BETWEEN) if path]

    def note_reading(self, what: str, path: str) -> None:
        self._write(_READING, _BETWEEN.join((what.encode(), os.fsencode(path))))

    def note_outputs(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Stores the paths, truncated to the memory's size; a process has at most two or three
        outputs at a time."""
        self._write(_OUTPUTS, _BETWEEN.join(map(os.fsencode, paths)))

    def _write(self, area: slice, text: bytes) -> None:
        first = area.start + _LENGTH_BYTES
        text = text[: area.stop - first]
        self._memory[first : first + len(text)] = text
        self._memory[area.start : first] = len(text).to_bytes(_LENGTH_BYTES, "little")

    def _text(self, area: slice) -> bytes:
        first = area.start + _LENGTH_BYTES
        return self._memory[
            first : first + int.from_bytes(self._memory[area.start : first], "little")
        ]


STRUCTURE_SECONDS = 30.0
"""Limit of processor time, independent of slow disks and other programs. An object of an HDF5 file
takes some 10 us, the names of a million shapes a second."""
_structures = 0


@contextmanager
def structure() -> Iterator[None]:
    """Marks that HDF5 reads names, attributes and strings of a file. Damaged bytes can cause an
    endless loop in HDF5, during which no Python signal handler runs.

    After STRUCTURE_SECONDS of processor time without a `structure_step`, SIGVTALRM ends a process
    with a board; a process without one waits. Do not read data or compute inside it, as their time
    has no bound; `data` marks data.
    """
    global _structures
    _structures += 1
    structure_step()
    try:
        yield
    finally:
        _structures -= 1
        structure_step()


@contextmanager
def data() -> Iterator[None]:
    """Marks that numbers of a dataset are read within `structure`; its time limit does not count
    them."""
    global _structures
    outer = _structures
    _structures = 0
    structure_step()
    try:
        yield
    finally:
        _structures = outer
        structure_step()


def structure_step() -> None:
    """Restarts the time limit after progress."""
    if _board is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, STRUCTURE_SECONDS if _structures else 0.0)


DAMAGE = (
    OSError,
    RuntimeError,
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    EOFError,
    MemoryError,
)
LIBRARIES = ("h5py/", "zipfile.py", "zipfile/", "numpy/lib/")
"""Parts of the file names of library modules that read files and appear in tracebacks."""
_board: Board | None = None
_now: list[tuple[str, str]] = []
_last = ""


def shown_board() -> Board | None:
    """The board that `show_on` has set; None in a process whose parent does not watch it."""
    return _board


def show_on(board: Board | None) -> None:
    """Sets the board of this process; None is no board."""
    global _board
    _board = board


@contextmanager
def reading(what: str, path: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Marks the reading of an input. what: its kind, in a word or two. path: its file; None is that
    of the last mark.

    Exceptions of a reading library inside the block, unless handled closer to their origin, become
    an InputError.
    """
    global _last
    _last = _last if path is None else os.fspath(path)
    mark = (what, _last)
    _now.append(mark)
    _show()
    try:
        yield
    except InputError as error:
        # Errors of the scene package have no file: it is added here.
        if error.where and not error.where.startswith(("body ", "shape ", "joint ")):
            raise
        where = f"{_last}: {error.where}" if error.where else _last
        raise type(error)(error.what, where, error.fix) from error
    except DAMAGE as error:
        if not _from_library(error):
            raise
        words = " ".join(str(error).split()) or type(error).__name__
        fault = (
            "needs more memory than is available"
            if isinstance(error, MemoryError)
            else "is damaged"
        )
        raise InputError(
            f"the {what} {fault}: {words}", _last, "copy it again, or make it again"
        ) from error
    finally:
        _now.remove(mark)
        _show()


def _from_library(error: BaseException) -> bool:
    """Whether a reading library raised the exception, not this package: a type such as KeyError
    does not decide that.

    Text that is not UTF-8 always originates in the file: libraries in C++ leave no frame in the
    traceback.
    """
    if isinstance(error, UnicodeDecodeError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.replace(os.sep, "/") if trace is not None else ""
    return any(f"/{library}" in f"/{file}" for library in LIBRARIES)


def _show() -> None:
    if _board is not None:
        _board.note_reading(*(_now[-1] if _now else ("", "")))


def show_outputs(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Publishes the temporary output files, which the parent removes if this process dies."""
    if _board is not None:
        _board.note_outputs(paths)
