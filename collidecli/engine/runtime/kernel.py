"""Declaration of the engine's kernels, each in a module of its own without a backward pass, and their compiled code."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import cache, wraps
from string import Formatter
from types import FunctionType, NoneType
from typing import Any, ParamSpec, TypeVar

import warp as wp

from collidecli.engine.runtime.deferred_builtins import is_owned
from collidecli.engine.runtime.kernel_files import (
    FileState,
    file_state,
    move_files,
    write_file,
    write_files,
)
from collidecli.engine.runtime.warp_internals import (
    PARSING,
    KernelHashes,
    are_deferred,
    compile_module,
    compiled_files,
    has_v3,
    hashes_of,
    is_in_memory,
    is_known_warp,
    keep_struct_dtypes,
    set_hashes,
    share_header_folder,
    type_code,
    unhashed_module,
)
from collidecli.errors import OutputError
from collidecli.system import processor_count
from collidecli.temporary_folders import TemporaryFolder, remove_abandoned

# Warp's folder of compiled kernels: a temporary one in its place if it cannot be written, and a full disk.
#
# The home of a container often cannot be written. The temporary folder has links to kernels that are already compiled.

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
_notes: list[str] = []
_warned: list[str] = []  # the notes that Python's warnings have shown
_unkept: list[str] = []  # the warning if a kernel is compiled into a temporary folder


def kernel_cache_notes() -> tuple[str, ...]:
    """Warnings about compiled kernels in this process."""
    return tuple(_notes)


def result_notes() -> tuple[str, ...]:
    """Warnings about compiled kernels for the result of a verb; none in Python, where `load_kernels` warns of them."""
    return kernel_cache_notes() if is_owned() else ()


def _warn_in_python() -> None:
    """Warns of each note once where the command line, which prints them, does not run."""
    for text in () if is_owned() else _notes:
        if text not in _warned:
            _warned.append(text)
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def note(warning: str) -> None:
    """Adds a warning, once."""
    if warning not in _notes:
        _notes.append(warning)


DAMAGED = "damaged compiled kernels were found and replaced; if this repeats, check the disk"


def note_damage(folder: str) -> None:
    """Adds the warning about damaged files in a folder, once in this process: one cause often damages several."""
    if not any(warning.endswith(DAMAGED) for warning in _notes):
        note(f"{folder}: {DAMAGED}")


def replace_folder(folder: str, error: OSError, initialized: bool) -> None:
    """Sets a temporary folder for the compiled kernels of this process, in place of one that failed with `error`.

    initialized: whether Warp is. Does nothing if another thread has replaced it. Raises OutputError for a full disk,
    and if there is no other folder.
    """
    with _folder_lock:
        if folder != wp.config.kernel_cache_dir:
            return
        if error.errno in FULL or _unkept:
            raise unwritable(folder, error) from error
        try:
            temporary = os.path.join(_temporary.name, wp.config.version)
            os.mkdir(temporary)
            # Links to the kernels that are compiled already, as an image of a container may have them.
            for entry in os.listdir(folder) if os.access(folder, os.R_OK | os.X_OK) else []:
                os.symlink(os.path.join(folder, entry), os.path.join(temporary, entry))
        except OSError as second:
            raise unwritable(tempfile.gettempdir(), second) from error
        # Warp adds its version to the name when it is initialized.
        wp.config.kernel_cache_dir = temporary if initialized else _temporary.name
        _unkept.append(
            f"{folder}: compiled kernels cannot be kept ({_reason(error)}), so every run compiles them again; "
            "set WARP_CACHE_PATH to a folder that can be written"
        )


def detach(folder: str, name: str) -> None:
    """Removes the link to a module's folder from the temporary folder of this process, if it has one: files of a folder
    that cannot be written, but are damaged, are replaced in the temporary folder alone."""
    path = os.path.join(folder, name)
    if _unkept and os.path.islink(path):
        os.unlink(path)


def unwritable(folder: str, error: OSError) -> OutputError:
    """The error for a folder of compiled kernels that cannot be written."""
    fix = "free some space, or set" if error.errno in FULL else "set"
    return OutputError(
        f"compiled kernels cannot be written: {_reason(error)}",
        folder,
        f"{fix} WARP_CACHE_PATH and TMPDIR to folders on another disk",
    )


def full_disk() -> OutputError | None:
    """The error if LEAST_FREE_BYTES cannot be written to the folder of compiled kernels or temporary files, or None."""
    for folder in (str(wp.config.kernel_cache_dir), tempfile.gettempdir()):
        try:
            if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            # A quota may be exhausted before the disk is full: one thread at a time reserves the space for a moment.
            if hasattr(os, "posix_fallocate"):
                with _folder_lock, tempfile.TemporaryFile(dir=folder) as file:
                    os.posix_fallocate(file.fileno(), 0, LEAST_FREE_BYTES)
        except OSError as error:
            if error.errno in FULL:
                return unwritable(folder, error)
    return None


def remove_unfinished() -> None:
    """Removes folders in which Warp began to compile over UNFINISHED_SECONDS ago: their processes were ended."""
    latest = time.time() - UNFINISHED_SECONDS
    with suppress(OSError), os.scandir(str(wp.config.kernel_cache_dir)) as entries:
        for entry in entries:
            if (
                _UNFINISHED.fullmatch(entry.name)
                and entry.stat(follow_symlinks=False).st_mtime < latest
            ):
                shutil.rmtree(entry.path, ignore_errors=True)  # refuses a link


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
    """Adds the files of a module, the object last, to Warp's cache, or a temporary one; False if one is not carried.

    Raises OutputError for a full disk.
    """
    contents = _carried(names)
    if contents is None:
        return False

    def write(folder: str) -> None:
        detach(folder, os.path.dirname(names[-1]))
        write_files(folder, names, contents)

    _write_to_cache(write)
    return True


def _carried(names: Sequence[str]) -> list[bytes] | None:
    """Contents of files of the package; None if it lacks one."""
    files = _files(archive_path())
    return [files[name] for name in names] if names and files.keys() >= set(names) else None


def _write_to_cache(write: Callable[[str], None]) -> None:
    """Calls `write` with Warp's folder of compiled kernels, again with a temporary one if it cannot be written."""
    folder = str(wp.config.kernel_cache_dir)
    try:
        write(folder)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        replace_folder(folder, error, initialized=True)
        _write_to_cache(write)


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
            return {
                member.name: file.read()
                for member in archive
                if (file := archive.extractfile(member))
            }
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        note(f"{path}: is damaged ({error}), so kernels are compiled; install collidecli again")
        return {}


# Initialization of Warp, and the lock for everything in Warp that is not thread-safe.

P = ParamSpec("P")
R = TypeVar("R")
_kernel_locks: dict[int, threading.RLock] = {}
NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"


def kernel_lock() -> threading.RLock:
    """The lock for the initialization of Warp and for the definition of kernels in functions.

    Two threads that define the same kernel create two modules with one name, and two threads that initialize Warp
    create two runtimes. Kernels then execute code that was unloaded. A forked process has a lock of its own.
    """
    return _kernel_locks.setdefault(os.getpid(), threading.RLock())


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which defines kernels, under the kernel lock."""

    @wraps(function)
    def locked(*args: P.args, **options: P.kwargs) -> R:
        with kernel_lock():
            return function(*args, **options)

    return locked


def initialize() -> None:
    """Initializes Warp, without its messages, with a temporary folder for kernels if it cannot create its own."""
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
    with _folder_lock:
        if not _silent_threads:
            _level = wp.config.log_level
            if _level == wp.LOG_INFO:
                wp.config.log_level = wp.LOG_WARNING
        _silent_threads += 1
    try:
        yield
    finally:
        with _folder_lock:
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


# Hashes of kernels from earlier runs, so that a kernel is found in Warp's cache without parsing its functions.
#
# Warp names the compiled file of a kernel by a hash of the source of every function that the kernel calls, which takes
# longer than loading the file. A table in Warp's cache folder holds these hashes. Its name is a hash of the source
# files in SOURCES and of the version of Warp; a row's key is a hash of the kernel's module, name, first
# line, closure, argument types and compiler options. A kernel without a row is hashed by Warp, and so is every kernel
# outside a process of the command line, with an unknown Warp, or with code that is not in SOURCES (docs/adr/0117).

SOURCES = ("engine", "scene", "storage", "numerics")
"""Subpackages that declare kernels, or constants and functions that kernels use."""
_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
_MODULES = tuple(f"collidecli.{name}." for name in SOURCES)
_lock = threading.Lock()
_tables: dict[str, dict[str, KernelHashes]] = {}
_declared: dict[str, wp.Kernel] = {}


def kernel_key(function: Callable[..., Any], options: dict[str, Any]) -> str | None:
    """Key of a kernel in the table of hashes; None if its hash cannot be known without Warp.

    options: of its module.
    """
    if not (is_owned() and is_known_warp()):
        return None
    try:
        parts = [
            _identity(function),
            *(f"{name}={_identity(value)}" for name, value in options.items()),
        ]
    except TypeError:
        return None
    return hashlib.sha256(repr((parts, _settings())).encode()).hexdigest()


def known_hashes(key: str | None) -> KernelHashes | None:
    """The hashes of a kernel from an earlier run, or None."""
    return None if key is None else _table(table_path()).get(key)


def save_hashes() -> None:
    """Adds the hashes of the kernels declared so far to the table, if it lacks some, the folder can be written and no
    source file has changed since the start of the process."""
    if not _declared:
        return
    path = table_path()
    with _lock:
        table = _table(path)
        added = {key: hashes_of(declared) for key, declared in _declared.items()}
        added = {
            key: hashes
            for key, hashes in added.items()
            if hashes.modules and hashes != table.get(key)
        }
        if not added or _sources_hash() != _first_sources_hash():
            return
        table.update(added)
        rows = (_read(path) | table).items()
        with suppress(OSError):
            write_file(path, "".join(table_row(key, hashes) for key, hashes in rows).encode())


def table_path() -> str:
    """The table of hashes in Warp's cache."""
    initialize()
    return os.path.join(str(wp.config.kernel_cache_dir), f"collide_{_first_sources_hash()}.hashes")


def _table(path: str) -> dict[str, KernelHashes]:
    table = _tables.get(path)
    if table is None:
        if not os.path.exists(path):
            with suppress(OutputError):  # of a full disk, which matters where a kernel is missing
                _add_table(os.path.basename(path))
        table = _tables[path] = _read(path)
    return table


def _add_table(name: str) -> None:
    """Adds the table of the package to Warp's cache, if there is one of this name."""
    contents = _carried([name])
    if contents is not None:
        _write_to_cache(lambda folder: write_file(os.path.join(folder, name), contents[0]))


def table_row(key: str, hashes: KernelHashes) -> str:
    """The row of a kernel in a table, with a checksum: a damaged row might name the kernel of another."""
    row = f"{key} {hashes.text()}"
    return f"{row} {_checksum(row)}\n"


def _checksum(row: str) -> str:
    return hashlib.blake2b(row.encode(), digest_size=8).hexdigest()


def _read(path: str) -> dict[str, KernelHashes]:
    """The rows of a table; those that are damaged are left out."""
    table = {}
    with suppress(OSError, UnicodeDecodeError), open(path, encoding="ascii") as file:
        for line in file:
            row, _, checksum = line.rstrip("\n").rpartition(" ")
            if checksum == _checksum(row):
                key, _, text = row.partition(" ")
                table[key] = KernelHashes.of_text(text)
    return table


def _sources_hash() -> str:
    """Hash of the source files in SOURCES and of the version of Warp."""
    paths: list[str] = []
    for source in SOURCES:
        for folder, folders, names in os.walk(os.path.join(_PACKAGE, source)):
            folders.sort()
            paths += [
                os.path.join(folder, name) for name in sorted(names) if name.endswith((".py", ".h"))
            ]
    total = hashlib.sha256(wp.config.version.encode())
    for path in filter(os.path.exists, paths):
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        total.update(f"\n{os.path.relpath(path, _PACKAGE)} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


_first_sources_hash = cache(_sources_hash)


def _settings() -> list[tuple[str, str]]:
    """Settings of Warp that may change a kernel."""
    return sorted(
        (name, repr(value))
        for name, value in vars(wp.config).items()
        if name not in _NO_EFFECT and not name.startswith("_") and isinstance(value, _SETTING)
    )


_SETTING = (bool, int, float, str, Enum, NoneType)
_NO_EFFECT = ("kernel_cache_dir", "log_level", "verbose", "quiet")


def _identity(value: Any) -> str:
    """A text that is different for different values, given the sources of this package. Raises TypeError for a value
    that they do not determine."""
    if isinstance(value, wp.Function):
        return (
            _identity(value.func) if value.func else value.key
        )  # the same before and after Warp parses it
    if isinstance(value, FunctionType):
        if not value.__module__.startswith(_MODULES):
            raise TypeError(value)
        cells = [_identity(cell.cell_contents) for cell in value.__closure__ or ()]
        types = [f"{name}:{_identity(kind)}" for name, kind in value.__annotations__.items()]
        line = value.__code__.co_firstlineno
        return (
            f"{value.__module__}:{value.__qualname__}:{line}({','.join(cells)})({','.join(types)})"
        )
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return type_code(value)


HEADER_FLAGS = ("-DWP_NO_BFLOAT16=", "-fpch-instantiate-templates")
"""Flags for Warp's C++ headers: no bfloat16, which no kernel uses, and templates instantiated once, in the precompiled
headers, not once per kernel. The compiled code is the same to the byte (docs/adr/0117-start-and-carried-kernels.md)."""

SEPARATE_OPERATIONS = ("-ffp-contract=off",)
"""Each product and each sum is rounded by itself. A fused multiply-add, which only some processors have, would give
another last bit (docs/adr/0068-arithmetic-with-equal-bits.md). Last, so that no earlier flag overrides it."""
ARITHMETIC: dict[str, Any] = {"fuse_fp": False, "fast_math": False}
"""Warp's own options for separate rounding, on the CPU and on CUDA devices."""


def target_flags() -> str:
    """Warp's flags for the CPU, with x86-64-v3 in place of `-march=native` where Linux runs on such a processor: object
    files are then equal on all of them, and come with this package ."""
    flags = (
        "-march=native" if wp.config.cpu_compiler_flags is None else wp.config.cpu_compiler_flags
    )
    return flags.replace("-march=native", "-target-cpu x86-64-v3") if has_v3() else flags


def kernel(function: Callable[..., Any], **module_options: Any) -> wp.Kernel:
    """A kernel in a module of its own, compiled only when a scene needs it; on the CPU with Warp's flags and the above.

    module_options: further options of Warp for the module. Its hash is that of an earlier run, if one has stored it.
    """
    options = {
        "cpu_compiler_flags": " ".join(
            [target_flags(), *HEADER_FLAGS, *SEPARATE_OPERATIONS]
        ).strip(),
        **module_options,
        **ARITHMETIC,
        "enable_backward": False,
    }
    key = kernel_key(function, options)
    hashes = known_hashes(key)
    with PARSING:
        if hashes is None:
            declared = wp.kernel(function, module="unique", module_options=options)
        else:
            declared = wp.kernel(function, module=unhashed_module(function, options))
        assert isinstance(declared, wp.Kernel)
        if hashes is not None:
            declared = set_hashes(declared, hashes)
    if key is not None:
        _declared[key] = declared
    return declared


def counted_kernels(
    name: str, function_of: Callable[..., Callable[..., None]], *of: Any
) -> tuple[wp.Kernel, ...]:
    """The kernels of `Workspace.counted`: count_<name>, and write_<name>, which is `function_of(True, *of)`.

    Apart, since one kernel with a flag takes twice the time to write where most threads have nothing to write."""
    kernels = []
    for prefix, writes in (("count", False), ("write", True)):
        function = function_of(writes, *of)
        function.__name__ = function.__qualname__ = f"{prefix}_{name}"
        kernels.append(kernel(function))
    return tuple(kernels)


@cache
def _sections(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        _, *parts = re.split(r"^// == (\w+)$", file.read(), flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def native(module_file: str, section: str, /, **values: Any) -> str:
    """C++ for `wp.func_native` from the `.h` file beside a module: a section begins with the line "// == NAME".

    values: of ${NAME} and ${NAME[k]} in it: numbers, and texts that are C++.
    """

    def written(place: re.Match[str]) -> str:
        value, _ = Formatter().get_field(place[1], (), values)
        value = getattr(value, "value", value)  # of a constant of Warp
        return (
            value
            if isinstance(value, str)
            else repr(value if isinstance(value, int) else float(value))
        )

    return re.sub(
        r"\$\{(.+?)\}", written, _sections(os.path.splitext(module_file)[0] + ".h")[section]
    )


# Parallel compilation and loading of kernels, by a pool with one thread per core.
#
# Warp compiles a kernel that neither its cache nor this package has. The first thread that
# compiles precompiles Warp's C++ headers, which takes seconds, for all. The kernels of every run start to load while
# the scene is read. Two threads never load one module at a time: Warp would unload the first copy under its users.


def begin_loading(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Starts to load the modules of these kernels on one thread, in order, after earlier calls; returns immediately.

    `load_kernels` raises the errors. It loads them where functions are not deferred, but parsed by any import.
    """
    _loader(os.getpid()).begin(kernels, device)


@contextmanager
def reported_compilation(listener: Callable[[int, int], None] | None) -> Iterator[None]:
    """Calls `listener` with the numbers of compiled kernels and of kernels to compile, if any, from other threads."""
    loader = _loader(os.getpid())
    before, loader.listener = loader.listener, listener
    try:
        yield
    finally:
        loader.listener = before


def load_kernels(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Loads the modules of these kernels on all cores, started in this order; the slowest should be first."""
    _loader(os.getpid()).load(kernels, device)
    save_hashes()
    _warn_in_python()


def is_loaded(kernel: wp.Kernel, device: wp.Device) -> bool:
    """Whether the module of a kernel is loaded, by `begin_loading` or `load_kernels`."""
    return _loader(os.getpid()).is_loaded(kernel.module, device)


_loaders: dict[int, _Loader] = {}


def _loader(process: int) -> _Loader:
    """The threads of a process; a forked process has none of its parent's."""
    return _loaders.get(process) or _loaders.setdefault(process, _Loader())


class _Loader:
    def __init__(self) -> None:
        self._folder = TemporaryFolder("headers")
        self._threads = ThreadPoolExecutor(
            processor_count(), "collide-compile", share_header_folder, (self._folder,)
        )
        # One thread: modules that several calls begin wait until the first has precompiled the headers.
        self._ahead = ThreadPoolExecutor(1, "collide-compile-ahead", self._begin_ahead)
        self._lock = threading.Lock()
        self._first_compilation = threading.Lock()
        self.listener: Callable[[int, int], None] | None = None
        self._to_compile: set[wp.Module] = set()
        self._compiled: set[wp.Module] = set()
        self._begun: dict[tuple[wp.Module, str], Future[None] | None] = {}
        self._latest: dict[tuple[wp.Module, str], Future[None]] = {}

    def begin(self, kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        with self._lock:
            for module in _modules(kernels):
                begun = self._loading(self._ahead, module, device) if are_deferred() else None
                self._begun[module, device.alias] = begun

    def load(self, kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        modules = _modules(kernels)
        if self.listener is not None:
            self._report(to_compile=[module for module in modules if not _is_ready(module, device)])
        with self._lock:
            begun, self._begun = self._begun, {}
            for key in [*begun, *((module, device.alias) for module in modules)]:
                begun[key] = begun.get(key) or self._loading(
                    self._threads, key[0], wp.get_device(key[1])
                )
        loading = [future for future in begun.values() if future is not None]
        try:
            wait(loading)
        except BaseException:  # an interrupt
            for future in loading:
                future.cancel()
            raise
        for future in loading:
            future.result()

    def is_loaded(self, module: wp.Module, device: wp.Device) -> bool:
        future = self._latest.get((module, device.alias))
        return (
            future is not None
            and future.done()
            and not future.cancelled()
            and future.exception() is None
        )

    def _loading(self, threads: Executor, module: wp.Module, device: wp.Device) -> Future[None]:
        """The load of a module that is under way, else a new one."""
        key = module, device.alias
        future = self._latest.get(key)
        if future is None or future.done():
            future = self._latest[key] = threads.submit(self._load, module, device)
        return future

    def _load(self, module: wp.Module, device: wp.Device) -> None:
        missing = not _is_ready(module, device)
        if missing:
            full = full_disk()  # the compiler ends the process if it cannot write
            if full is not None:
                raise full
            self._report(to_compile=[module])
        with ExitStack() as alone:
            if missing:  # the first precompiles the headers; others at that time would do so too
                alone.enter_context(self._first_compilation)
                if self._compiled:
                    alone.close()
            _load(module, device, missing)
            if missing:
                for warning in _unkept:
                    note(warning)
                self._report(compiled=[module])

    def _report(
        self, to_compile: Sequence[wp.Module] = (), compiled: Sequence[wp.Module] = ()
    ) -> None:
        with self._lock:
            before = len(self._compiled) + len(self._to_compile)
            self._to_compile.update(to_compile)
            self._compiled.update(compiled)
            counts = len(self._compiled), len(self._to_compile)
        if self.listener is not None and sum(counts) > before:
            self.listener(*counts)

    def _begin_ahead(self) -> None:
        share_header_folder(self._folder)
        remove_abandoned()  # most runs use no temporary folder, whose first use would do it
        remove_unfinished()


def _modules(kernels: Sequence[wp.Kernel]) -> list[wp.Module]:
    return list(dict.fromkeys(kernel.module for kernel in kernels))


def is_compiled(module: wp.Module, device: wp.Device) -> bool:
    """Whether Warp's cache has the files of a module as they were written; notes damaged ones.

    True with an unknown Warp, which does not tell the names of its files.
    """
    names = compiled_files(module, device)
    if not names:
        return True
    folder = str(wp.config.kernel_cache_dir)
    state = file_state(folder, names)
    if state is FileState.DAMAGED:
        note_damage(folder)
    return state is FileState.INTACT


def is_found(module: wp.Module, device: wp.Device) -> bool:
    """Whether a module need not be compiled: Warp's cache has it, or it came with this package and is copied there."""
    return is_compiled(module, device) or (
        device.is_cpu and add_to_cache(compiled_files(module, device))
    )


def _is_ready(module: wp.Module, device: wp.Device) -> bool:
    """Whether a module is loaded, or need not be compiled."""
    return is_in_memory(module, device) or is_found(module, device)


def _load(module: wp.Module, device: wp.Device, missing: bool) -> None:
    """Loads a module; compiles a missing one first, into a temporary folder if Warp's cannot be written.

    Raises OutputError.
    """

    def load(folder: str) -> None:
        if missing and is_known_warp():
            _compile(module, device, folder)
        wp.force_load(device, modules=[module], max_workers=0)

    try:
        with without_messages():
            _write_to_cache(load)
    except Exception as error:
        full = full_disk()
        if full is not None:
            raise full from error
        raise


def _compile(module: wp.Module, device: wp.Device, folder: str) -> None:
    """Compiles a module into a folder of its own, then moves the files over those that a cache has of it.

    Warp keeps a file that it finds. It is not removed, as another process may just have compiled and not yet loaded it.
    """
    names = compiled_files(module, device)
    name = os.path.dirname(names[-1])
    # Unfinished folders of this name are removed after an hour.
    unfinished = os.path.join(folder, f"{name}_p{os.getpid()}_t{secrets.randbits(64)}")
    try:
        compile_module(module, device, unfinished)
        detach(folder, name)
        move_files(unfinished, folder, names)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
