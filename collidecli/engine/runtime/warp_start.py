"""Initialization of Warp, and the lock for everything in Warp that is not thread-safe."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import warp as wp

from collidecli.engine.runtime.kernel_cache import replace_folder
from collidecli.engine.runtime.owned_process import is_owned
from collidecli.engine.runtime.warp_internals import keep_struct_dtypes
from collidecli.stderr_lines import stderr_lines

P = ParamSpec("P")
R = TypeVar("R")
_message_lock = threading.Lock()
_kernel_locks: dict[int, threading.RLock] = {}
NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"


def kernel_lock() -> threading.RLock:
    """The lock for the initialization of Warp and for the definition of kernels in functions.

    Two threads that define the same kernel create two modules with one name, and two threads that
    initialize Warp create two runtimes. Kernels then execute code that was unloaded. A forked
    process has a lock of its own.
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
    """Initializes Warp, without its messages, with a temporary folder for kernels if it cannot
    create its own."""
    with kernel_lock():
        if is_owned():
            wp.config.log_level = wp.LOG_ERROR
        _initialize(os.getpid())


@cache
def _initialize(process: int) -> None:
    """Initializes Warp once in a process."""
    if is_owned():
        _name_no_processor()
    with stderr_without(NO_DRIVER), without_messages():
        try:
            wp.init()
        except OSError as error:
            if error.errno is None:  # a library that cannot be loaded
                raise
            replace_folder(str(wp.config.kernel_cache_dir), error, initialized=False)
            wp.init()
    keep_struct_dtypes()


def _name_no_processor() -> None:
    """Sets what `platform.processor` returns to no name, with which Warp calls the device CPU.

    On Linux it would start a process, `uname -p`, which prints "unknown" or the architecture.
    """
    if sys.platform == "linux":
        vars(platform.uname())["processor"] = ""


_silent_threads = 0
_level = wp.config.log_level


@contextmanager
def without_messages() -> Iterator[None]:
    """Warp does not print its version and the kernels that it loads, unless its `log_level` is
    LOG_DEBUG.

    The level is one of the process: the last thread that leaves sets it back.
    """
    global _silent_threads, _level
    with _message_lock:
        if not _silent_threads:
            _level = wp.config.log_level
            if _level == wp.LOG_INFO:
                wp.config.log_level = wp.LOG_WARNING
        _silent_threads += 1
    try:
        yield
    finally:
        with _message_lock:
            _silent_threads -= 1
            if not _silent_threads:
                wp.config.log_level = _level


def stderr_without(phrase: bytes) -> AbstractContextManager[None]:
    """Removes lines with `phrase` that compiled code writes to stderr; a machine without CUDA is
    usual."""
    return stderr_lines(lambda lines: [line for line in lines if phrase not in line])
