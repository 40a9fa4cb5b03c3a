"""Parallel compilation and loading of kernels, by a pool with one thread per core.

Warp compiles a kernel that neither its cache nor this package has. The first thread that compiles
precompiles Warp's C++ headers, which takes seconds, for all. The kernels of every run start to load
while the scene is read. Two threads never load one module at a time: Warp would unload the first
copy under its users.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager

import warp as wp

from collidecli.engine.runtime.carried_cubins import (
    add_cubin_to_cache,
    cubin_in_cache,
    refuse,
    why_compiled,
)
from collidecli.engine.runtime.carried_kernels import add_to_cache
from collidecli.engine.runtime.deferred_functions import are_deferred
from collidecli.engine.runtime.kernel_cache import (
    detach,
    full_disk,
    note,
    note_damage,
    note_unkept,
    remove_unfinished,
    warn_in_python,
    write_to_cache,
)
from collidecli.engine.runtime.kernel_digests import FileState, file_state, move_files
from collidecli.engine.runtime.kernel_hashes import save_hashes
from collidecli.engine.runtime.owned_process import is_owned
from collidecli.engine.runtime.warp_internals import (
    compile_module,
    compiled_files,
    is_in_memory,
    is_known_warp,
    link_kernels,
    share_header_folder,
)
from collidecli.engine.runtime.warp_start import without_messages
from collidecli.system import processor_count
from collidecli.temporary_folders import TemporaryFolder, remove_abandoned
from collidecli.wording import plural


def begin_loading(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Starts to load the modules of these kernels on one thread, in order, after earlier calls;
    returns immediately.

    `load_kernels` raises the errors. It loads them where functions are not deferred, but parsed by
    any import.
    """
    _loader(os.getpid()).begin(kernels, device)


@contextmanager
def reported_compilation(listener: Callable[[int, int], None] | None) -> Iterator[None]:
    """Calls `listener` with the numbers of compiled kernels and of kernels to compile, if any, from
    other threads."""
    loader = _loader(os.getpid())
    before = loader.listener
    loader.listener = listener
    try:
        yield
    finally:
        loader.listener = before


def load_kernels(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Loads the modules of these kernels on all cores, started in this order; the slowest should be
    first."""
    _loader(os.getpid()).load(kernels, device)
    save_hashes()
    warn_in_python()


def is_loaded(kernel: wp.Kernel, device: wp.Device) -> bool:
    """Whether the module of a kernel is loaded, by `begin_loading` or `load_kernels`."""
    return _loader(os.getpid()).is_loaded(kernel.module, device)


def load_late(kernel: wp.Kernel, device: wp.Device) -> None:
    """Loads the module of a kernel that is launched and that no list of `load_kernels` had: Warp
    would print a line about it. Does not wait for what `begin_loading` began."""
    if not is_loaded(kernel, device):
        _loader(os.getpid()).load_one(kernel.module, device)


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
        # One thread: modules that several calls begin wait until the first has precompiled the
        # headers.
        self._ahead = ThreadPoolExecutor(1, "collide-compile-ahead", self._begin_ahead)
        self._lock = threading.Lock()
        self._first_compilation = threading.Lock()
        self.listener: Callable[[int, int], None] | None = None
        self._to_compile: set[tuple[wp.Module, str]] = set()
        self._compiled: set[tuple[wp.Module, str]] = set()
        self._begun: dict[tuple[wp.Module, str], Future[None] | None] = {}
        self._latest: dict[tuple[wp.Module, str], Future[None]] = {}

    def begin(self, kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        with self._lock:
            for module in _modules(kernels):
                begun = self._loading(self._ahead, module, device) if are_deferred() else None
                self._begun[module, device.alias] = begun

    def load(self, kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        modules = _modules(kernels)
        begin = time.monotonic()
        compiled_before = len(self._compiled)
        if self.listener is not None:
            missing = [module for module in modules if not _is_ready(module, device)]
            self._report(to_compile=[(module, device.alias) for module in missing])
        with self._lock:
            begun = self._begun
            self._begun = {}
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
        count = len(self._compiled) - compiled_before
        if count and device.is_cuda and is_owned():
            seconds = time.monotonic() - begin
            note(
                f"{device.alias}: {plural(count, 'kernel')} compiled in {seconds:.0f} s, since"
                f" {why_compiled(device)}; later runs find them in Warp's cache"
            )

    def load_one(self, module: wp.Module, device: wp.Device) -> None:
        with self._lock:
            loading = self._loading(self._threads, module, device)
        loading.result()

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
        if not missing and device.is_cuda:
            if _load_cubin(module, device):
                return
            missing = not _is_ready(module, device)
        if missing:
            full = full_disk()  # the compiler ends the process if it cannot write
            if full is not None:
                raise full
            self._report(to_compile=[(module, device.alias)])
        with ExitStack() as alone:
            if missing:  # the first precompiles the headers; others at that time would do so too
                alone.enter_context(self._first_compilation)
                if self._compiled:
                    alone.close()
            _load(module, device, missing)
            if missing:
                note_unkept()
                self._report(compiled=[(module, device.alias)])

    def _report(
        self,
        to_compile: Sequence[tuple[wp.Module, str]] = (),
        compiled: Sequence[tuple[wp.Module, str]] = (),
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
    """Whether a module need not be compiled: it came with this package, and is copied to Warp's
    cache or there already, or the cache has it."""
    if device.is_cpu:
        return is_compiled(module, device) or add_to_cache(compiled_files(module, device))
    return (
        cubin_in_cache(module, device) is not None
        or add_cubin_to_cache(module, device)
        or is_compiled(module, device)
    )


def _is_ready(module: wp.Module, device: wp.Device) -> bool:
    """Whether a module is loaded, or need not be compiled."""
    return is_in_memory(module, device) or is_found(module, device)


def _load(module: wp.Module, device: wp.Device, missing: bool) -> None:
    """Loads a module; compiles a missing one first, into a temporary folder if Warp's cannot be
    written.

    Raises OutputError.
    """

    def load(folder: str) -> None:
        if missing and is_known_warp():
            _compile(module, device, folder)
        wp.force_load(device, modules=[module], max_workers=0)

    try:
        with without_messages():
            write_to_cache(load)
            if device.is_cpu and is_known_warp():
                link_kernels(module, device)
    except Exception as error:
        full = full_disk()
        if full is not None:
            raise full from error
        raise


def _load_cubin(module: wp.Module, device: wp.Device) -> bool:
    """Loads the carried cubin of a module from Warp's cache; False if it has none for the device,
    or the driver refuses it, after which none of this package is used for the device."""
    if is_in_memory(module, device):
        return True
    architecture = cubin_in_cache(module, device)
    if architecture is None:
        return False
    try:
        with without_messages():
            wp.load_aot_module(module, device, architecture, use_ptx=False)
    except Exception as error:  # Warp raises no class of its own
        refuse(device, str(error))
        return False
    return True


def _compile(module: wp.Module, device: wp.Device, folder: str) -> None:
    names = compiled_files(module, device)
    compile_files(names, folder, lambda unfinished: compile_module(module, device, unfinished))


def compile_files(names: Sequence[str], folder: str, compile_in: Callable[[str], None]) -> None:
    """Compiles a module into a folder of its own, then moves the files over those that a cache has
    of it.

    names: of the files in the cache, the object last. compile_in: compiles into a new folder. Warp
    keeps a file that it finds. It is not removed, as another process may just have compiled and not
    yet loaded it.
    """
    name = os.path.dirname(names[-1])
    # Unfinished folders of this name are removed after an hour.
    unfinished = os.path.join(folder, f"{name}_p{os.getpid()}_t{secrets.randbits(64)}")
    try:
        compile_in(unfinished)
        detach(folder, name)
        move_files(unfinished, folder, names)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
