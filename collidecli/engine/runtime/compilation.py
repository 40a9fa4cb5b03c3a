"""Parallel compilation and loading of kernels, by a pool with one thread per core.

Warp compiles a kernel that is not in its cache. A thread that compiles first precompiles Warp's C++ headers, which
takes seconds; these threads share one set of precompiled headers. The kernels of every run start to load while the
scene is being read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache

import warp as wp

from collidecli.engine.runtime.warp_internals import share_header_folder


def begin_loading(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Starts to load the modules of these kernels on one thread, in order, after earlier calls; returns immediately.

    `load_kernels` raises the errors.
    """
    _loader(os.getpid()).begin(kernels, device)


def load_kernels(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
    """Loads the modules of these kernels on all cores, started in this order; the slowest should be first."""
    _loader(os.getpid()).load(kernels, device)


@cache
def _loader(process: int) -> _Loader:
    """The threads of a process; a forked process has none of its parent's."""
    return _Loader()


class _Loader:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="collide_headers_")
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "collide-compile", self._share_headers)
        # One thread: modules that several calls begin wait until the first has precompiled the headers.
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
                future.cancel()  # after an interrupt
        for future in loading:
            future.result()

    def _share_headers(self) -> None:
        share_header_folder(self._folder)


def _modules(kernels: Sequence[wp.Kernel]) -> list[wp.Module]:
    return list(dict.fromkeys(kernel.module for kernel in kernels))


def _load(modules: list[wp.Module], device: wp.Device) -> None:
    wp.force_load(device, modules=modules, max_workers=0)
