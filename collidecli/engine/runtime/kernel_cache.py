"""Warp's folder of compiled kernels: a temporary one in its place if it cannot be written, and a full disk.

The home of a container often cannot be written. The temporary folder has links to kernels that are already compiled.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import warp as wp

from collidecli.engine.runtime.deferred_builtins import is_owned
from collidecli.engine.runtime.warp_internals import keep_struct_dtypes
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
_UNFINISHED = re.compile(r"wp_\w+_p\d+_t\d+")  # of a process and a thread; Warp renames it at the end

_lock = threading.Lock()
_temporary = TemporaryFolder("kernels")
_notes: list[str] = []
_unkept: list[str] = []  # the warning if a kernel is compiled into a temporary folder


def kernel_cache_notes() -> tuple[str, ...]:
    """Warnings about compiled kernels in this process."""
    return tuple(_notes)


def note(warning: str) -> None:
    """Adds a warning, once."""
    if warning not in _notes:
        _notes.append(warning)


def note_compilation() -> None:
    """Adds the warning of a temporary folder, as a kernel was compiled into it that every run will compile again."""
    for warning in _unkept:
        note(warning)


def replace_folder(folder: str, error: OSError, initialized: bool) -> None:
    """Sets a temporary folder for the compiled kernels of this process, in place of one that failed with `error`.

    initialized: whether Warp is. Does nothing if another thread has replaced it. Raises OutputError for a full disk,
    and if there is no other folder.
    """
    with _lock:
        if folder != wp.config.kernel_cache_dir:
            return
        if error.errno in FULL or _unkept:
            raise unwritable(folder, error) from error
        try:
            temporary = os.path.join(_temporary.name, wp.config.version)
            os.mkdir(temporary)
            _link_entries(folder, temporary)
        except OSError as second:
            raise unwritable(tempfile.gettempdir(), second) from error
        # Warp adds its version to the name when it is initialized.
        wp.config.kernel_cache_dir = temporary if initialized else _temporary.name
        _unkept.append(
            f"{folder}: compiled kernels cannot be kept ({_reason(error)}), so every run compiles them again; "
            "set WARP_CACHE_PATH to a folder that can be written"
        )


def unwritable(folder: str, error: OSError) -> OutputError:
    """The error for a folder of compiled kernels that cannot be written."""
    fix = "free some space, or set" if error.errno in FULL else "set"
    return OutputError(
        f"compiled kernels cannot be written: {_reason(error)}",
        folder,
        f"{fix} WARP_CACHE_PATH and TMPDIR to folders on another disk",
    )


def full_disk() -> OutputError | None:
    """The error if LEAST_FREE_BYTES cannot be written to the folder of compiled kernels or of temporary files, or None.

    The size of the disk does not tell: a quota may be exhausted before.
    """
    for folder in (str(wp.config.kernel_cache_dir), tempfile.gettempdir()):
        try:
            if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with _lock:  # one thread at a time reserves the space
                _reserve(folder)
        except OSError as error:
            if error.errno in FULL:
                return unwritable(folder, error)
    return None


def remove_unfinished() -> None:
    """Removes folders in which Warp began to compile over UNFINISHED_SECONDS ago: their processes were ended."""
    latest = time.time() - UNFINISHED_SECONDS
    with suppress(OSError), os.scandir(str(wp.config.kernel_cache_dir)) as entries:
        for entry in entries:
            if _UNFINISHED.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < latest:
                shutil.rmtree(entry.path, ignore_errors=True)  # refuses a link


def _reserve(folder: str) -> None:
    """Reserves LEAST_FREE_BYTES in a folder for a moment."""
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, LEAST_FREE_BYTES)


def _link_entries(folder: str, temporary: str) -> None:
    """Links to the kernels that are compiled already, as an image of a container may have them."""
    for entry in os.listdir(folder) if os.access(folder, os.R_OK | os.X_OK) else []:
        os.symlink(os.path.join(folder, entry), os.path.join(temporary, entry))


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# Compiled kernels that come with this package, for one version of Warp on Linux and x86-64-v3.
#
# An archive, written by `collidecli.engine.build_kernels`, has files of Warp's cache and a table of kernels' hashes. A
# kernel that Warp's cache lacks is copied into it, or compiled if it is not there. The names of the files have hashes
# of the kernel's source, of its options and of the compiler, so that those of another program are never used by
# mistake; the name of the archive has what these hashes lack (docs/adr/0117-start-and-carried-kernels.md).

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "kernels"))


def archive_path() -> str:
    """The archive for the installed version of Warp."""
    return os.path.join(FOLDER, f"{wp.config.version}-linux-x86_64-v3.tar.xz")


def add_to_cache(names: Sequence[str]) -> bool:
    """Adds files to Warp's cache in this order; False if one is not carried.

    Where the cache cannot be written, they go to a temporary one. Raises OutputError for a full disk.
    """
    files = _files(archive_path())
    if not names or not files.keys() >= set(names):
        return False
    folder = str(wp.config.kernel_cache_dir)
    try:
        for name in names:
            write_file(os.path.join(folder, name), files[name])
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        replace_folder(folder, error, initialized=True)
        return add_to_cache(names)
    return True


@cache
def _files(path: str) -> dict[str, bytes]:
    """The files of an archive by name; none where there is none, or where it is damaged."""
    if not os.path.exists(path):
        return {}
    import io  # most runs need none of these
    import lzma
    import tarfile

    try:
        with open(path, "rb") as compressed:
            content = lzma.decompress(compressed.read())  # compares the hash of the whole
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            return {one.name: file.read() for one in archive if (file := archive.extractfile(one))}
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        note(f"{path}: is damaged ({error}), so kernels are compiled; install collidecli again")
        return {}


def write_file(path: str, content: bytes) -> None:
    """Writes a complete file or none: other processes may load it at any time."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(partial, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError:
        with suppress(OSError):
            os.unlink(partial)
        raise


# Initialization of Warp, and the lock for everything in Warp that is not thread-safe.

P = ParamSpec("P")
R = TypeVar("R")
_locks: dict[int, threading.RLock] = {}
NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"


def kernel_lock() -> threading.RLock:
    """The lock for the initialization of Warp and for the definition of kernels in functions.

    Two threads that define the same kernel create two modules with one name, and two threads that initialize Warp
    create two runtimes. Kernels then execute code that was unloaded. A forked process has a lock of its own.
    """
    return _locks.setdefault(os.getpid(), threading.RLock())


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which defines kernels, under the kernel lock."""

    @wraps(function)
    def locked(*args: P.args, **options: P.kwargs) -> R:
        with kernel_lock():
            return function(*args, **options)

    return locked


def initialize() -> None:
    """Initializes Warp, without its messages; errors are still exceptions.

    Without a folder for compiled kernels that can be created, uses a temporary one (`kernel_cache`).
    """
    with kernel_lock():
        if is_owned():
            wp.config.log_level = wp.LOG_ERROR
        _initialize(os.getpid())


@cache
def _initialize(process: int) -> None:
    """Initializes Warp once in a process."""
    with stderr_without(NO_DRIVER), without_messages():
        try:
            wp.init()
        except OSError as error:
            if error.errno is None:  # a library that cannot be loaded
                raise
            replace_folder(str(wp.config.kernel_cache_dir), error, initialized=False)
            wp.init()
    keep_struct_dtypes()


_silent_threads = 0
_level = wp.config.log_level


@contextmanager
def without_messages() -> Iterator[None]:
    """Warp does not print its version and the kernels that it loads, unless its `log_level` is LOG_DEBUG.

    The level is one of the process: the last thread that leaves sets it back.
    """
    global _silent_threads, _level
    with _lock:
        if not _silent_threads:
            _level = wp.config.log_level
            if _level == wp.LOG_INFO:
                wp.config.log_level = wp.LOG_WARNING
        _silent_threads += 1
    try:
        yield
    finally:
        with _lock:
            _silent_threads -= 1
            if not _silent_threads:
                wp.config.log_level = _level


@contextmanager
def stderr_without(phrase: bytes) -> Iterator[None]:
    """Removes lines with `phrase` that compiled code writes to stderr; a machine without CUDA is usual."""
    try:
        saved = os.dup(2)
    except OSError:  # no stderr at all
        yield
        return
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            written.seek(0)
            for line in written:
                if phrase not in line:
                    os.write(2, line)
