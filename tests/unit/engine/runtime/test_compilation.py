"""Threads that load kernels: what is begun ahead is loaded once, what fails is said, headers are made for all."""

from __future__ import annotations

import os
import threading
import time

import pytest
import warp as wp
from warp._src import context

from collidecli.engine.pipeline import ALWAYS, find_device, load_ahead
from collidecli.engine.runtime import kernel as compiling
from collidecli.engine.runtime.kernel import begin_loading, kernel, load_kernels, reported_compilation
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.warp_internals import is_compiled

PATIENCE = 60.0
"""[s] for what happens in a moment."""


@kernel
def first(number: wp.array[wp.int32]):
    number[0] = 1


@kernel
def second(number: wp.array[wp.int32]):
    number[0] = 2


@kernel
def third(number: wp.array[wp.int32]):
    number[0] = 3


@pytest.fixture
def loaded(monkeypatch):
    """The modules that Warp was asked for, and by which thread; a fresh set of threads."""
    asked: list[tuple[wp.Module, int]] = []

    def note(device, modules, max_workers):
        asked.extend((module, threading.get_ident()) for module in modules)

    monkeypatch.setattr(wp, "force_load", note)
    monkeypatch.setattr(compiling, "full_disk", lambda: None)
    monkeypatch.setattr(compiling, "are_deferred", lambda: True)  # as in a process of the command line
    compiling._loaders.clear()
    yield asked
    compiling._loaders.clear()


def test_what_is_begun_ahead_is_loaded_once_by_one_thread(loaded):
    device = find_device("cpu")
    begin_loading([first], device)
    begin_loading([second], device)
    load_kernels([third, second, first], device)
    assert sorted(module.name for module, _ in loaded) == sorted(one.module.name for one in (first, second, third))
    assert len({thread for module, thread in loaded if module is not third.module}) == 1
    load_kernels([first, first], device)  # later ones are for Warp to look up
    assert [module for module, _ in loaded[3:]] == [first.module]


def test_nothing_is_loaded_ahead_where_functions_are_parsed_when_they_are_imported(loaded, monkeypatch):
    monkeypatch.setattr(compiling, "are_deferred", lambda: False)
    device = find_device("cpu")
    begin_loading([first], device)
    assert not compiling._loader(os.getpid())._latest
    load_kernels([second], device)
    assert sorted(module.name for module, _ in loaded) == sorted(one.module.name for one in (first, second))


def test_every_run_needs_what_is_loaded_while_the_scene_is_read(loaded):
    device = find_device("cpu")
    load_ahead(device)
    always = [execute_steps, *ALWAYS]
    load_kernels(always, device)
    assert [module for module, _ in loaded] == [one.module for one in always]


def test_what_does_not_compile_is_said(loaded, monkeypatch):
    device = find_device("cpu")

    def refuse(device, modules, max_workers):
        if first.module in modules:
            raise RuntimeError("no such thing")

    monkeypatch.setattr(wp, "force_load", refuse)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such thing"):
            load_kernels([second, first], device)
    begin_loading([first], device)
    with pytest.raises(RuntimeError, match="no such thing"):
        load_kernels([second], device)


def test_threads_share_the_precompiled_headers_that_the_first_has_written_alone(loaded, monkeypatch):
    folders, under_way, together = set(), [], []
    both = threading.Barrier(2)

    def meet(device, modules, max_workers):
        under_way.append(modules[0].name)
        if len(under_way) == 1:  # of any thread
            time.sleep(0.2)  # long enough for another to begin
            together.extend(under_way)
        else:
            both.wait(PATIENCE)
        folders.add((threading.get_ident(), context.runtime.get_clang_pch_dir()))

    monkeypatch.setattr(wp, "force_load", meet)
    monkeypatch.setattr(compiling, "is_found", lambda module, device: False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    load_kernels([first, second, third], find_device("cpu"))
    assert together == under_way[:1]
    assert len({thread for thread, _ in folders}) == 2
    assert len({folder for _, folder in folders}) == 1


def test_two_threads_load_a_module_once_at_a_time(loaded, monkeypatch):
    under_way, most = 0, 0
    device = find_device("cpu")
    lock, all_asked = threading.Lock(), threading.Barrier(8)

    def slow(device, modules, max_workers):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.05)
        with lock:
            under_way -= 1

    def ask() -> None:
        all_asked.wait(PATIENCE)
        begin_loading([first], device)
        load_kernels([first], device)

    monkeypatch.setattr(wp, "force_load", slow)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert most == 1


def test_kernels_that_are_compiled_are_counted(loaded, monkeypatch):
    reports = []
    device = find_device("cpu")
    monkeypatch.setattr(compiling, "is_compiled", lambda module, device: module is first.module)
    with reported_compilation(lambda done, total: reports.append((done, total))):
        load_kernels([first, second, third], device)
    assert reports[0] == (0, 2)
    assert max(reports) == (2, 2)
    assert {total for _, total in reports} == {2}
    count = len(reports)
    with reported_compilation(lambda done, total: reports.append((done, total))):
        load_kernels([first], device)
    load_kernels([second], device)
    assert len(reports) == count


def test_the_cache_tells_what_is_compiled(loaded, monkeypatch, tmp_path):
    device = find_device("cpu")
    monkeypatch.undo()
    load_kernels([first], device)
    assert is_compiled(first.module, device)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    assert not is_compiled(first.module, device)
