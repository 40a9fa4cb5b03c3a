"""Kernels compiled, where Warp's cache does not have them, and loaded: by threads that are kept, one a core.

A thread that compiles anything first makes of Warp's C++ headers what it reads before each kernel, for seconds. These
threads do that once for all of them; and what every run needs they begin while the scene is still being read.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache

import warp as wp
from warp._src import context


def begin_loading(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Has one thread load these modules in turn, behind what was begun before; `load_kernels` raises the errors."""
    _loader(os.getpid()).begin(kernels, device)


def load_kernels(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Loads these kernels' modules on every core, begun in this order; what takes longest should come first."""
    _loader(os.getpid()).load(kernels, device)


@cache
def _loader(process: int) -> _Loader:
    """The threads of a process: one that forked has none of its parent's."""
    return _Loader()


class _Loader:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="collide_headers_")
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "collide-compile", self._share_headers)
        # One, so that what several begin at once waits for the first to have made the headers.
        self._ahead = ThreadPoolExecutor(1, "collide-compile-ahead", self._share_headers)
        self._begun: dict[tuple[wp.Module, str], Future[None]] = {}

    def begin(self, kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        modules = _modules(kernels)
        future = self._ahead.submit(_load, modules, device)
        self._begun.update(((module, device.alias), future) for module in modules)

    def load(self, kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        begun, self._begun = self._begun, {}
        modules = [module for module in _modules(kernels) if (module, device.alias) not in begun]
        loading = [self._threads.submit(_load, [module], device) for module in modules]
        loading += dict.fromkeys(begun.values())
        try:
            wait(loading)
        finally:
            for future in loading:
                future.cancel()  # where waiting was interrupted
        for future in loading:
            future.result()

    def _share_headers(self) -> None:
        # Warp keeps a folder for each thread. A later Warp may keep them elsewhere: then each thread makes its own.
        folders = getattr(context.runtime, "_pch_dirs", None)
        if isinstance(folders, dict):
            folders[threading.get_ident()] = self._folder


def _modules(kernels: Sequence[wp.Kernel]) -> list[wp.Module]:
    return list(dict.fromkeys(kernel.module for kernel in kernels))


def _load(modules: list[wp.Module], device: wp.Device) -> None:
    wp.force_load(device, modules=modules, max_workers=0)
