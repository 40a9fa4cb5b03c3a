"""Warp's folder of compiled kernels: a temporary one in its place if it cannot be written, and a
full disk.

The home of a container often cannot be written. The temporary folder has links to kernels that are
already compiled.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import warp as wp

from collidecli.engine.runtime.owned_process import is_owned
from collidecli.errors import OutputError
from collidecli.temporary_folders import TemporaryFolder

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk, of an exhausted quota, and of a limit of file sizes."""
UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, *FULL)
"""Errors of a folder that this process cannot write, for now or ever."""
LEAST_FREE_BYTES = 8 << 20
"""Free space that compilation needs: the precompiled headers take 5 MiB, a kernel up to 2 MiB."""
UNFINISHED_SECONDS = 3600.0
"""Age from which a folder of a kernel is abandoned; no kernel takes so long to compile."""
_UNFINISHED = re.compile(
    r"wp_\w+_p\d+_t\d+"
)  # of a process and a thread; Warp renames it at the end
_folder_lock = threading.Lock()
_temporary = TemporaryFolder("kernels")
cache_notes: list[str] = []
_warned: list[str] = []  # the notes that Python's warnings have shown
_unkept: list[str] = []  # the warning if a kernel is compiled into a temporary folder


def kernel_cache_notes() -> tuple[str, ...]:
    """Warnings about compiled kernels in this process."""
    return tuple(cache_notes)


def result_notes() -> tuple[str, ...]:
    """Warnings about compiled kernels for the result of a verb; none in Python, where
    `load_kernels` warns of them."""
    return kernel_cache_notes() if is_owned() else ()


def warn_in_python() -> None:
    """Warns of each note once where the command line, which prints them, does not run."""
    for text in () if is_owned() else cache_notes:
        if text not in _warned:
            _warned.append(text)
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def note(warning: str) -> None:
    """Adds a warning, once."""
    if warning not in cache_notes:
        cache_notes.append(warning)


DAMAGED = "damaged compiled kernels were found and replaced; if this repeats, check the disk"


def note_damage(folder: str) -> None:
    """Adds the warning about damaged files in a folder, once in this process: one cause often
    damages several."""
    if not any(warning.endswith(DAMAGED) for warning in cache_notes):
        note(f"{folder}: {DAMAGED}")


def note_unkept() -> None:
    """Adds the warning that compiled kernels cannot be kept, if they are in a temporary folder."""
    for warning in _unkept:
        note(warning)


def replace_folder(folder: str, error: OSError, initialized: bool) -> None:
    """Sets a temporary folder for the compiled kernels of this process, in place of one that failed
    with `error`.

    initialized: whether Warp is. Does nothing if another thread has replaced it. Raises OutputError
    for a full disk, and if there is no other folder.
    """
    with _folder_lock:
        if folder != wp.config.kernel_cache_dir:
            return
        if error.errno in FULL or _unkept:
            raise unwritable(folder, error) from error
        try:
            temporary = os.path.join(_temporary.name, wp.config.version)
            os.mkdir(temporary)
            # Links to the kernels that are compiled already, as an image of a container may have
            # them.
            for entry in os.listdir(folder) if os.access(folder, os.R_OK | os.X_OK) else []:
                os.symlink(os.path.join(folder, entry), os.path.join(temporary, entry))
        except OSError as second:
            raise unwritable(tempfile.gettempdir(), second) from error
        # Warp adds its version to the name when it is initialized.
        wp.config.kernel_cache_dir = temporary if initialized else _temporary.name
        _unkept.append(
            f"{folder}: compiled kernels cannot be kept ({reason_of(error)}), so every run"
            " compiles them again; "
            "set WARP_CACHE_PATH to a folder that can be written"
        )


def detach(folder: str, name: str) -> None:
    """Removes the link to a module's folder from the temporary folder of this process, if it has
    one: files of a folder that cannot be written, but are damaged, are replaced in the temporary
    folder alone."""
    path = os.path.join(folder, name)
    if _unkept and os.path.islink(path):
        os.unlink(path)


def unwritable(folder: str, error: OSError) -> OutputError:
    """The error for a folder of compiled kernels that cannot be written."""
    fix = "free some space, or set" if error.errno in FULL else "set"
    return OutputError(
        f"compiled kernels cannot be written: {reason_of(error)}",
        folder,
        f"{fix} WARP_CACHE_PATH and TMPDIR to folders on another disk",
    )


def full_disk() -> OutputError | None:
    """The error if LEAST_FREE_BYTES cannot be written to the folder of compiled kernels or
    temporary files, or None."""
    for folder in (str(wp.config.kernel_cache_dir), tempfile.gettempdir()):
        try:
            if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            # A quota may be exhausted before the disk is full: one thread at a time reserves the
            # space for a moment.
            if hasattr(os, "posix_fallocate"):
                with _folder_lock, tempfile.TemporaryFile(dir=folder) as file:
                    os.posix_fallocate(file.fileno(), 0, LEAST_FREE_BYTES)
        except OSError as error:
            if error.errno in FULL:
                return unwritable(folder, error)
    return None


def remove_unfinished() -> None:
    """Removes folders in which Warp began to compile over UNFINISHED_SECONDS ago: their processes
    were ended."""
    latest = time.time() - UNFINISHED_SECONDS
    with suppress(OSError), os.scandir(str(wp.config.kernel_cache_dir)) as entries:
        for entry in entries:
            if (
                _UNFINISHED.fullmatch(entry.name)
                and entry.stat(follow_symlinks=False).st_mtime < latest
            ):
                shutil.rmtree(entry.path, ignore_errors=True)  # refuses a link


def reason_of(error: OSError) -> str:
    """Why an operation on a file failed, in the system's words and in lower case."""
    return (error.strerror or str(error)).lower()


def write_to_cache(write: Callable[[str], None]) -> None:
    """Calls `write` with Warp's folder of compiled kernels, again with a temporary one if it cannot
    be written."""
    folder = str(wp.config.kernel_cache_dir)
    try:
        write(folder)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        replace_folder(folder, error, initialized=True)
        write_to_cache(write)
