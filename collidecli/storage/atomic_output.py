"""Atomic output files.

Bytes are written to a temporary file in the destination's folder. `commit` flushes it to the disk
and renames it to the destination; an exit without `commit`, by an exception or a signal, removes
it. A killed process leaves the temporary file, `.<name>.<process>-<random>.partial`, and an
unchanged destination; its parent process knows the file from `process_activity`, and the next
output to the same destination removes it (`system.is_abandoned`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from collidecli.errors import Interrupted, OutputError
from collidecli.storage.output_folders import OutputFolders
from collidecli.storage.process_activity import show_outputs
from collidecli.temporary_folders import is_abandoned, owned_name, owned_names

ANOTHER_PATH = "choose another path, or pass --force"
"""The remedy for an output that exists."""
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)
_PARTIAL: set[Path] = set()
"""Temporary files of this process."""
_NO_HARD_LINKS = {
    errno.EPERM,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EMLINK,
    errno.EXDEV,
}

_SEND_BYTES = 2 << 20


class AtomicOutput:
    """A seekable binary file, readable and writable, that `commit` moves to `path`; a context
    manager.

    Missing folders of `path` are made; without a `commit` they are removed again.

    A failed write (disk full, quota, size limit, I/O error) does not raise, as HDF5 cannot recover
    from a failed write: the error and the unwritten bytes are stored, so that HDF5 still reads its
    data, and `check` raises. Call it often. `commit` calls it, so an incomplete file is never moved
    to the destination.

    While it is open in the main thread, SIGTERM and SIGHUP raise `Interrupted` unless the program
    handles them.

    Raises OutputError if `path` is empty, exists without `force` or is not a regular file, or its
    folder cannot be made or written to.
    """

    def __init__(self, path: str | os.PathLike[str], force: bool = False) -> None:
        if not os.fspath(path):
            raise OutputError("the output path is empty", fix="name a file")
        self.path = Path(path)
        self._target = Path(os.path.realpath(path))
        self._force = force
        self._error: OSError | None = None
        self._unwritten: list[tuple[int, bytes]] = []
        self._position = 0
        self._size = 0
        self._sent = 0
        self._handlers: dict[int, object] = {}
        self._folders = OutputFolders()
        self._refuse_existing()
        beginning = f".{self._target.name[:200]}."
        self._partial = self._target.with_name(owned_name(beginning, ".partial"))
        self._fd = -1
        self._make_folder()
        # first, so that a signal between the two leaves no file: the parent process removes it
        _PARTIAL.add(self._partial)
        show_outputs(_PARTIAL)
        try:
            self._fd = os.open(
                self._partial,
                os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0),
                0o666,
            )
        except OSError as error:
            _PARTIAL.discard(self._partial)
            show_outputs(_PARTIAL)
            self._folders.remove_empty()
            raise self._refused_folder(error) from error
        _remove_abandoned(self._target.parent, beginning, os.fstat(self._fd).st_mtime)

    def _refuse_existing(self) -> None:
        try:
            status = os.stat(self._target)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:  # a name that is too long, a link to itself
            raise self._refused_folder(error) from error
        if not stat.S_ISREG(status.st_mode):
            raise OutputError(
                "the output is not a regular file", str(self.path), "choose another output path"
            )
        if not self._force:
            raise OutputError("the output exists already", str(self.path), ANOTHER_PATH)

    def _make_folder(self) -> None:
        try:
            self._folders.make(self._target.parent, str(self.path))
        except BaseException:
            self._folders.remove_empty()
            raise

    def _refused_folder(self, error: OSError) -> OutputError:
        folder = self._target.parent
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return OutputError(
                f"the folder {folder} cannot be written to", str(self.path), "choose another folder"
            )
        return OutputError(f"the output cannot be created: {_reason(error)}", str(self.path))

    def __enter__(self) -> AtomicOutput:
        if threading.current_thread() is threading.main_thread():
            for number in _STOP_SIGNALS:
                if signal.getsignal(number) == signal.SIG_DFL:
                    self._handlers[number] = signal.signal(number, _interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    def check(self) -> None:
        """Raises OutputError after a failed write."""
        if self._error is not None:
            fix = (
                "free some space, or choose another disk"
                if self._error.errno == errno.ENOSPC
                else ""
            )
            raise OutputError(
                f"the output cannot be written: {_reason(self._error)}", str(self.path), fix
            )

    def copy(self, path: str) -> None:
        """Writes the bytes of a file. Raises OutputError after a failed write."""
        with open(path, "rb") as file:
            shutil.copyfileobj(file, self, 1 << 20)
        self.check()

    def commit(self) -> None:
        """Flushes to the disk and moves to the destination. Raises OutputError; then the
        destination is unchanged."""
        self._attempt(os.fsync, self._fd)
        self.check()
        self._close()  # some systems do not move an open file
        try:
            self._move()
            _sync_folder(self._target.parent)
        except OSError as error:
            raise OutputError(
                f"the output cannot be moved into place: {_reason(error)}", str(self.path)
            ) from error
        finally:
            self.discard()

    def _move(self) -> None:
        if self._force:
            os.replace(self._partial, self._target)
            return
        if not publish(self._partial, self._target):
            self._refuse_existing()
            os.replace(self._partial, self._target)  # the file that had the name is gone

    def discard(self) -> None:
        """Removes the temporary file and restores the signal handlers; idempotent."""
        self._close()
        self._partial.unlink(missing_ok=True)
        _PARTIAL.discard(self._partial)
        show_outputs(_PARTIAL)
        self._folders.remove_empty()
        while self._handlers:
            number, handler = self._handlers.popitem()
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _close(self) -> None:
        if self._fd >= 0:
            fd = self._fd
            self._fd = -1
            os.close(fd)

    def _attempt(self, action: Callable[..., object], *values: Any) -> None:
        """Calls a function, unless an earlier one failed; stores its error."""
        if self._error is None:
            try:
                action(*values)
            except OSError as error:
                self._error = error

    # The methods that h5py's file-object driver calls.

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def write(self, data: bytes | memoryview) -> int:
        view = memoryview(data).cast("B")
        self._attempt(self._write_all, view)
        if self._error is not None:
            self._unwritten.append((self._position, bytes(view)))
        self._position += len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def _write_all(self, view: memoryview) -> None:
        done = 0
        while done < len(view):
            done += os.pwrite(self._fd, view[done:], self._position + done)
        end = self._position + done
        if end >= self._sent + _SEND_BYTES:
            # Starts the write-back of the data so far, which shortens the wait of `commit`: only
            # Linux reacts so.
            if hasattr(os, "posix_fadvise"):
                with contextlib.suppress(OSError):  # a file system without support
                    os.posix_fadvise(self._fd, self._sent, end - self._sent, os.POSIX_FADV_DONTNEED)
            self._sent = end

    def read(self, size: int = -1) -> bytes:
        data = bytearray(max(0, self._size - self._position) if size < 0 else size)
        return bytes(data[: self.readinto(data)])

    def readinto(self, buffer) -> int:
        first = self._position
        view = memoryview(buffer).cast("B")
        view = view[: max(0, min(len(view), self._size - first))]
        data = os.pread(self._fd, len(view), first)
        view[: len(data)] = data
        view[len(data) :] = bytes(len(view) - len(data))
        for start, kept in self._unwritten:
            low = max(first, start)
            high = min(first + len(view), start + len(kept))
            if low < high:
                view[low - first : high - first] = kept[low - start : high - start]
        self._position += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        size = self._position if size is None else size
        self._attempt(os.ftruncate, self._fd, size)
        self._size = size
        return size

    def flush(self) -> None:
        """Does nothing, as nothing is buffered; `commit` flushes to the disk."""


def publish(made: str | os.PathLike[str], target: str | os.PathLike[str]) -> bool:
    """Gives the complete file `made` a name in one step; False where the name exists, whose file
    stays.

    `made` may keep its name beside the new one. On a file system without hard links (SMB, gcsfuse)
    a file that appears between the look at the name and the move is replaced. Raises OSError.
    """
    try:
        os.link(made, target)  # unlike a rename, a link fails where the name exists
    except FileExistsError:
        return os.path.samefile(made, target)  # NFS repeats a link whose answer was lost
    except OSError as error:
        if os.path.lexists(target):
            return False
        if error.errno not in _NO_HARD_LINKS:
            raise
        os.replace(made, target)
    return True


def _remove_abandoned(folder: Path, beginning: str, now: float) -> None:
    """Removes temporary files of a destination whose processes have ended. now: by the file
    system's clock."""
    names = owned_names(re.escape(beginning), r"\.partial")
    with contextlib.suppress(OSError):
        for match in filter(None, map(names.fullmatch, os.listdir(folder))):
            partial = folder / match[0]
            with contextlib.suppress(OSError):  # of another user, or removed in the meantime
                status = partial.lstat()
                if stat.S_ISREG(status.st_mode) and is_abandoned(match[1], status.st_mtime, now):
                    partial.unlink()


def remove_partial_files() -> None:
    """Removes all temporary files of this process before an immediate exit; callable from any
    thread."""
    for partial in list(_PARTIAL):
        partial.unlink(missing_ok=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}; nothing was written")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _sync_folder(folder: Path) -> None:
    """Makes the move durable. Not needed on systems where a folder cannot be opened (Windows)."""
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)
