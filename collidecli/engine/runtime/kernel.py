"""Declaration of the engine's kernels: each in a module of its own, without a backward pass, fast to compile."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import cache
from string import Formatter
from types import FunctionType, NoneType
from typing import Any

import warp as wp

from collidecli.engine.runtime.deferred_builtins import is_owned
from collidecli.engine.runtime.kernel_cache import (
    UNWRITABLE,
    add_to_cache,
    full_disk,
    initialize,
    note_compilation,
    remove_unfinished,
    replace_folder,
    without_messages,
    write_file,
)
from collidecli.engine.runtime.warp_internals import (
    PARSING,
    KernelHashes,
    are_deferred,
    compiled_files,
    has_v3,
    hashes_of,
    is_compiled,
    is_known_warp,
    set_hashes,
    share_header_folder,
    type_code,
    unhashed_module,
)
from collidecli.errors import OutputError
from collidecli.system_resources import processor_count
from collidecli.temporary_folders import TemporaryFolder, remove_abandoned

# Hashes of kernels from earlier runs, so that a kernel is found in Warp's cache without parsing its functions.
#
# Warp names the compiled file of a kernel by a hash of the source of every function that the kernel calls, which takes
# longer than loading the file. A table in Warp's cache folder holds these hashes. Its name is a hash of the source
# files in SOURCES and of the version of Warp; a row's key is a hash of the kernel's module, name, first line, closure,
# argument types and compiler options. A kernel without a row is hashed by Warp, and so is every kernel outside a
# process of the command line, with an unknown Warp, or with code that is not in SOURCES (docs/adr/0117).

SOURCES = ("engine", "numerics", "scene", "storage")
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
        parts = [_identity(function), *(f"{name}={_identity(value)}" for name, value in options.items())]
    except _UnknownIdentityError:
        return None
    return hashlib.sha256(repr((parts, _settings())).encode()).hexdigest()


def known_hashes(key: str | None) -> KernelHashes | None:
    """The hashes of a kernel from an earlier run, or None."""
    return None if key is None else _table(table_path()).get(key)


def note_declared(key: str | None, declared: wp.Kernel) -> None:
    """Notes a kernel whose hashes `save_hashes` stores."""
    if key is not None:
        _declared[key] = declared


def save_hashes() -> None:
    """Adds the hashes of the kernels declared so far to the table, if it lacks some.

    Does nothing if the folder cannot be written, or if a source file has changed since the start of the process.
    """
    if not _declared:
        return
    path = table_path()
    with _lock:
        table = _table(path)
        added = {key: hashes_of(declared) for key, declared in _declared.items()}
        added = {key: hashes for key, hashes in added.items() if hashes.modules and hashes != table.get(key)}
        if not added or _sources_hash() != _first_sources_hash():
            return
        table.update(added)
        rows = (_read(path) | table).items()
        with suppress(OSError):
            write_file(path, "".join(f"{key} {hashes.text()}\n" for key, hashes in rows).encode())


def table_path() -> str:
    """The table of hashes in Warp's cache."""
    initialize()
    return os.path.join(str(wp.config.kernel_cache_dir), f"collide_{_first_sources_hash()}.hashes")


def _table(path: str) -> dict[str, KernelHashes]:
    table = _tables.get(path)
    if table is None:
        if not os.path.exists(path):
            with suppress(OutputError):  # of a full disk, which matters where a kernel is missing
                add_to_cache([os.path.basename(path)])
        table = _tables[path] = _read(path)
    return table


def _read(path: str) -> dict[str, KernelHashes]:
    """The rows of a table; those that are damaged are left out."""
    table = {}
    with suppress(OSError, UnicodeDecodeError), open(path, encoding="ascii") as file:
        for line in file:
            key, _, text = line.partition(" ")
            with suppress(ValueError):
                table[key] = KernelHashes.of_text(text)
    return table


@cache
def _first_sources_hash() -> str:
    return _sources_hash()


def _sources_hash() -> str:
    """Hash of the source files in SOURCES and of the version of Warp."""
    total = hashlib.sha256(wp.config.version.encode())
    for source in SOURCES:
        for folder, folders, names in os.walk(os.path.join(_PACKAGE, source)):
            folders.sort()
            for name in sorted(name for name in names if name.endswith((".py", ".h"))):
                with open(os.path.join(folder, name), "rb", buffering=0) as file:
                    content = file.read()
                total.update(f"\n{os.path.relpath(folder, _PACKAGE)} {name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


def _settings() -> list[tuple[str, str]]:
    """Settings of Warp that may change a kernel."""
    return sorted(
        (name, repr(value))
        for name, value in vars(wp.config).items()
        if name not in _NO_EFFECT and not name.startswith("_") and isinstance(value, _SETTING)
    )


_SETTING = (bool, int, float, str, Enum, NoneType)
_NO_EFFECT = ("kernel_cache_dir", "log_level", "verbose", "quiet")


class _UnknownIdentityError(Exception):
    """A value that the sources of this package do not determine."""


def _identity(value: Any) -> str:
    """A text that is different for different values, given the sources of this package."""
    if isinstance(value, wp.Function):
        return _identity(value.func) if value.func else value.key  # the same before and after Warp parses it
    if isinstance(value, FunctionType):
        if not value.__module__.startswith(_MODULES):
            raise _UnknownIdentityError
        cells = [_identity(cell.cell_contents) for cell in value.__closure__ or ()]
        types = [f"{name}:{_identity(kind)}" for name, kind in value.__annotations__.items()]
        line = value.__code__.co_firstlineno
        return f"{value.__module__}:{value.__qualname__}:{line}({','.join(cells)})({','.join(types)})"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    try:
        return type_code(value)
    except TypeError:
        raise _UnknownIdentityError from None


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
    files are then equal on all of them, and come with this package (`kernel_cache`)."""
    flags = "-march=native" if wp.config.cpu_compiler_flags is None else wp.config.cpu_compiler_flags
    return flags.replace("-march=native", "-target-cpu x86-64-v3") if has_v3() else flags


def kernel(function: Callable[..., Any], **module_options: Any) -> wp.Kernel:
    """A kernel in a module of its own, compiled only when a scene needs it; on the CPU with Warp's flags and the above.

    module_options: further options of Warp for the module. Its hash is that of an earlier run, if one has stored it.
    """
    options = {
        "cpu_compiler_flags": " ".join([target_flags(), *HEADER_FLAGS, *SEPARATE_OPERATIONS]).strip(),
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
    note_declared(key, declared)
    return declared


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
        return value if isinstance(value, str) else repr(value if isinstance(value, int) else float(value))

    return re.sub(r"\$\{(.+?)\}", written, _sections(os.path.splitext(module_file)[0] + ".h")[section])


# Parallel compilation and loading of kernels, by a pool with one thread per core.
#
# Warp compiles a kernel that neither its cache nor this package has (`kernel_cache`). The first thread that
# compiles precompiles Warp's C++ headers, which takes seconds, for all. The kernels of every run start to load while
# the scene is read. Two threads never load one module at a time: Warp would unload the first copy under its users.


def begin_loading(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Starts to load the modules of these kernels on one thread, in order, after earlier calls; returns immediately.

    `load_kernels` raises the errors. It loads them where functions are not deferred, but parsed by any import.
    """
    _loader(os.getpid()).begin(kernels, device)


@contextmanager
def reported_compilation(listener: Callable[[int, int], None] | None) -> Iterator[None]:
    """Calls `listener` with the numbers of compiled kernels and of kernels to compile, from other threads.

    It is not called while all kernels are loaded from Warp's cache.
    """
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
        self._threads = ThreadPoolExecutor(processor_count(), "collide-compile", share_header_folder, (self._folder,))
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
            self._report(to_compile=[module for module in modules if not is_found(module, device)])
        with self._lock:
            begun, self._begun = self._begun, {}
            for key in [*begun, *((module, device.alias) for module in modules)]:
                begun[key] = begun.get(key) or self._loading(self._threads, key[0], wp.get_device(key[1]))
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
        return future is not None and future.done() and not future.cancelled() and future.exception() is None

    def _loading(self, threads: Executor, module: wp.Module, device: wp.Device) -> Future[None]:
        """The load of a module that is under way, else a new one."""
        key = module, device.alias
        future = self._latest.get(key)
        if future is None or future.done():
            future = self._latest[key] = threads.submit(self._load, module, device)
        return future

    def _load(self, module: wp.Module, device: wp.Device) -> None:
        missing = not is_found(module, device)
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
            _load(module, device)
            if missing:
                note_compilation()
                self._report(compiled=[module])

    def _report(self, to_compile: Sequence[wp.Module] = (), compiled: Sequence[wp.Module] = ()) -> None:
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


def is_found(module: wp.Module, device: wp.Device) -> bool:
    """Whether a module need not be compiled: Warp's cache has it, or it came with this package and is copied there."""
    return is_compiled(module, device) or (device.is_cpu and add_to_cache(compiled_files(module, device)))


def _load(module: wp.Module, device: wp.Device) -> None:
    """Loads a module; compiles it, into a temporary folder if Warp's cannot be written. Raises OutputError."""
    folder = str(wp.config.kernel_cache_dir)
    try:
        try:
            with without_messages():
                wp.force_load(device, modules=[module], max_workers=0)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            replace_folder(folder, error, initialized=True)
            _load(module, device)
    except Exception as error:
        full = full_disk()
        if full is not None:
            raise full from error
        raise
