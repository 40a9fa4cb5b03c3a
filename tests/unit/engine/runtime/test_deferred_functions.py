"""Deferred functions compute what functions of Warp's own decorator compute, and are parsed only if they are used."""

from __future__ import annotations

import contextlib
import copy
import subprocess
import sys
import threading

import numpy as np
import pytest
import warp as wp
from warp._src import codegen

from collidecli.engine.runtime import warp_internals
from collidecli.engine.runtime.deferred_builtins import owned_process
from collidecli.engine.runtime.kernel import kernel, load_kernels
from collidecli.engine.runtime.warp_internals import PARSING, DeferredFunction, defer_functions

func = warp_internals._func


@func
def one_more(number: wp.int32) -> wp.int32:
    """One more."""
    return number + 1


@func
def one_more(number: wp.float32) -> wp.float32:  # noqa: F811
    return number + 1.5


@func(inline=False)
def three_more(number: wp.int32) -> wp.int32:
    return one_more(one_more(one_more(number)))


@warp_internals._func_native("number[i] = 2 * number[i];")
def double_in_place(number: wp.array[wp.int32], i: int):
    """Doubles an element."""
    ...


@kernel
def add(integers: wp.array[wp.int32], numbers: wp.array[wp.float32]):
    i = wp.tid()
    integers[i] = three_more(integers[i])
    double_in_place(integers, i)
    numbers[i] = one_more(numbers[i])


def test_kernels_call_deferred_functions():
    device = wp.get_device("cpu")
    load_kernels([add], device)
    integers = wp.array(np.arange(5, dtype=np.int32), device=device)
    numbers = wp.array(np.arange(5, dtype=np.float32), device=device)
    wp.launch(add, 5, [integers, numbers], device=device)
    np.testing.assert_array_equal(integers.numpy(), 2 * np.arange(5) + 6)
    np.testing.assert_array_equal(numbers.numpy(), np.arange(5) + 1.5)


def test_only_functions_that_a_kernel_calls_are_parsed():
    @func
    def never_used(number: wp.int32) -> wp.int32:
        return number

    assert isinstance(one_more, DeferredFunction)
    assert len(one_more.user_overloads) == 2
    assert "adj" in vars(three_more)
    assert isinstance(double_in_place, DeferredFunction)
    assert "adj" not in vars(never_used)
    assert never_used.input_types == {"number": wp.int32}
    assert "adj" in vars(never_used)


def test_a_deferred_function_has_the_attributes_of_the_python_function():
    assert (one_more.__name__, one_more.__doc__, one_more.__module__) == ("one_more", "One more.", __name__)
    with pytest.raises(AttributeError, match="no_such"):
        _ = one_more.no_such
    assert copy.copy(one_more).user_overloads is one_more.user_overloads


def test_an_overload_of_a_parsed_function():
    @func
    def twice(number: wp.int32) -> wp.int32:
        return number * 2

    assert len(twice.user_overloads) == 1
    first = twice

    @func
    def twice(number: wp.float32) -> wp.float32:
        return number * 2.0

    assert twice is first
    assert len(twice.user_overloads) == 2


def test_an_error_in_a_function_is_raised_where_it_is_used():
    @func
    def without_type(number):
        return number

    for _ in range(2):
        with pytest.raises(Exception, match="Incomplete argument annotations"):
            _ = without_type.adj


@pytest.mark.parametrize("condition", ["is_owned", "is_known_warp"])
def test_functions_of_other_processes_and_of_an_unknown_warp_are_not_deferred(monkeypatch, condition):
    monkeypatch.setattr(wp, "func", wp.func)  # restored at the end
    monkeypatch.setattr(wp, "func_native", wp.func_native)
    monkeypatch.setattr(warp_internals, condition, lambda: False)
    before = wp.func, wp.func_native
    with owned_process():
        defer_functions()
        assert (wp.func, wp.func_native) == before
        monkeypatch.setattr(warp_internals, condition, lambda: True)
        defer_functions()
        assert (wp.func, wp.func_native) == (warp_internals._func, warp_internals._func_native)


def test_a_thread_that_hashes_and_one_that_declares_do_not_wait_for_each_other():
    @func
    def parsed_while_hashing(number: wp.int32) -> wp.int32:
        return number

    @kernel
    def declared(numbers: wp.array[wp.int32]):
        numbers[0] = 1

    holding = threading.Barrier(2, timeout=1.0)

    def meet():
        with contextlib.suppress(threading.BrokenBarrierError):  # the other thread waits for the lock, as it should
            holding.wait()

    def hash_kernel():
        with codegen._codegen_lock:  # as Warp does
            meet()
            assert parsed_while_hashing.adj

    def declare_kernel():
        with PARSING:
            meet()
            declared.hash = declared.hash  # Warp's setter takes its lock

    threads = [threading.Thread(target=each, daemon=True) for each in (hash_kernel, declare_kernel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    assert not any(thread.is_alive() for thread in threads)


RUN = """
import sys
from collidecli.cli.main import main
code = main(["run", "samples/02_humanoid/humanoid.xml", "--frames", "0", "-o", sys.argv[1], "--quiet"])
import warp as wp
from collidecli.engine.narrowphase.convex import epa
from collidecli.engine.runtime.warp_internals import DeferredFunction
deferred = [value for value in vars(epa).values() if isinstance(value, DeferredFunction)]
print(code, len(deferred) > 5, any("adj" in vars(function) for function in deferred))
"""


def test_a_second_run_parses_no_function(tmp_path):
    def printed(name: str) -> str:
        done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path / name)], capture_output=True, text=True)
        return done.stdout.strip() or done.stderr

    printed("first.contacts.h5")
    assert printed("second.contacts.h5") == "0 True False"
