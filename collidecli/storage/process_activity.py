"""What this process is doing, on a board that outlives it: whoever watches over it reads there why it died.

The board is memory that a process shares with the child it forks. A process without one (the Python door, a system
without fork) loses nothing: the marks then go nowhere.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from collidecli.errors import InputError

_READING, _OUTPUTS, _END = slice(8, 8192), slice(8192, 32768), 32768
_LENGTH_BYTES = 4
_BETWEEN = b"\0"
"""No file name holds it."""


class Board:
    """Shared with a child made by fork after this.

    code: the exit code that the child came to; None where it did not get so far. reading: what it was reading and the
    file, both empty where it read nothing. outputs: its output files that are not in place.
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
    def reading(self) -> tuple[str, str]:
        what, _, path = self._text(_READING).partition(_BETWEEN)
        return what.decode(), os.fsdecode(path)

    @property
    def outputs(self) -> list[str]:
        return [os.fsdecode(path) for path in self._text(_OUTPUTS).split(_BETWEEN) if path]

    def note_reading(self, what: str, path: str) -> None:
        self._write(_READING, _BETWEEN.join((what.encode(), os.fsencode(path))))

    def note_outputs(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Those that fit; several outputs at a time are two or three."""
        self._write(_OUTPUTS, _BETWEEN.join(map(os.fsencode, paths)))

    def _write(self, place: slice, text: bytes) -> None:
        first = place.start + _LENGTH_BYTES
        text = text[: place.stop - first]
        self._memory[first : first + len(text)] = text
        self._memory[place.start : first] = len(text).to_bytes(_LENGTH_BYTES, "little")

    def _text(self, place: slice) -> bytes:
        first = place.start + _LENGTH_BYTES
        return self._memory[first : first + int.from_bytes(self._memory[place.start : first], "little")]


STRUCTURE_SECONDS = 30.0
"""Of this process's own work, which a slow disk takes none of, and other programs neither. An object of an HDF5 file
takes some 10 us, the names of a million shapes a second."""
_structures = 0


@contextmanager
def structure() -> Iterator[None]:
    """Marks that HDF5 is looking for names, attributes and strings in a file: bytes that were damaged can keep it for
    ever, and no signal handler of Python's runs meanwhile.

    After STRUCTURE_SECONDS of processor time without a `structure_step` the system ends a process that somebody
    watches over, by SIGVTALRM; one without a board waits. It is no place for reading data, which takes as long as it
    takes, nor for computing.
    """
    global _structures
    _structures += 1
    structure_step()
    try:
        yield
    finally:
        _structures -= 1
        structure_step()


def structure_step() -> None:
    """Something was found: the time begins anew."""
    if _board is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, STRUCTURE_SECONDS if _structures else 0.0)


DAMAGE = (OSError, RuntimeError, LookupError, ValueError, TypeError, ArithmeticError, EOFError, MemoryError)
LIBRARIES = ("h5py/", "zipfile.py", "zipfile/", "numpy/lib/")
"""Part of the file name of every module that reads files for us and is seen in a traceback."""

_board: Board | None = None
_now: list[tuple[str, str]] = []
_last = ""


def show_on(board: Board | None) -> None:
    """From now on this process shows what it does on `board`; on none where None."""
    global _board
    _board = board


@contextmanager
def reading(what: str, path: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Marks that an input is being read: what it is, in a word or two, and which file; None is the last one named.

    What a reading library raises inside the block, and nobody nearer to the place explains, becomes an InputError.
    """
    global _last
    _last = _last if path is None else os.fspath(path)
    mark = (what, _last)
    _now.append(mark)
    _show()
    try:
        yield
    except InputError as error:
        # The model knows no files: of its errors, this is the place.
        if error.where and not error.where.startswith(("body ", "shape ", "joint ")):
            raise
        place = f"{_last}: {error.where}" if error.where else _last
        raise type(error)(error.what, place, error.fix) from error
    except DAMAGE as error:
        if not _from_library(error):
            raise
        words = " ".join(str(error).split()) or type(error).__name__
        fault = "asks for more memory than there is" if isinstance(error, MemoryError) else "is damaged"
        raise InputError(f"the {what} {fault}: {words}", _last, "copy it again, or make it again") from error
    finally:
        _now.remove(mark)
        _show()


def _from_library(error: BaseException) -> bool:
    """Whether a reading library raised it, not code of ours: its type alone, such as KeyError, does not tell.

    Text that is not UTF-8 is the file's doing wherever it is met: libraries in C++ leave no frame in the traceback.
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
    """Tells which output files are not in place, for someone else to remove should this process die."""
    if _board is not None:
        _board.note_outputs(paths)
