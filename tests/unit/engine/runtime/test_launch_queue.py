"""The launch queue of the CPU, and recorded launches: order, arguments, growth of arrays, refusals."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
import warp as wp

from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime import launch_queue, warp_internals
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.launch_queue import MAX_STEPS
from collidecli.engine.runtime.warp_internals import INDEX_LIMIT
from collidecli.engine.runtime.workspace import Workspace


@wp.struct
class Line:
    slope: int
    value: wp.array[wp.int32]


@kernel
def fill_line(start: int, line: Line):
    thread = wp.tid()
    line.value[thread] = start + line.slope * thread


@kernel
def add_up(one: wp.array[wp.int32], other: wp.array[wp.int32]):
    thread = wp.tid()
    other[thread] = other[thread] + one[thread]


@pytest.fixture(params=["known Warp", "another Warp"])
def workspace(request, monkeypatch):
    if request.param == "another Warp":
        monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    return Workspace(find_device("cpu"), 1 << 30)


def line_of(workspace: Workspace, name: str, count: int, slope: int) -> Line:
    return workspace.struct(Line, slope=slope, value=workspace.array(name, count, wp.int32))


def test_each_launch_has_what_a_struct_held_then(workspace):
    """One instance of a struct serves every launch, and is filled anew for each."""
    lines = {3: "three", 5: "five", 7: "seven"}
    for name in lines.values():
        workspace.array(name, 4, wp.int32)  # an array that grew would make what is noted
    for start in range(3):
        for slope, name in lines.items():
            workspace.launch(fill_line, 4, [start, line_of(workspace, name, 4, slope)])
        line_of(workspace, "three", 4, 100)
        for slope, name in lines.items():
            found = workspace.host(workspace.array(name, 4, wp.int32), 4)
            np.testing.assert_array_equal(found, start + slope * np.arange(4))


@pytest.mark.parametrize("rounds", [1, 2, MAX_STEPS])
def test_launches_scans_and_copies_execute_in_order(workspace, rounds):
    total, one, end = (workspace.array(name, 100, wp.int32) for name in ("total", "one", "end"))
    workspace.fill(total, 0)
    expected, copies = np.zeros(100, np.int64), []
    for k in range(rounds):
        count = 100 - k % 7
        workspace.launch(fill_line, count, [k, line_of(workspace, "one", 100, 1)])
        assert workspace.scan(one, count, end) == np.sum(k + np.arange(count))
        np.testing.assert_array_equal(workspace.host(one, count), k + np.arange(count))
        workspace.launch(add_up, count, [end, total])
        expected[:count] += np.cumsum(k + np.arange(count))
        copies.append((workspace.copied(total, 100), expected.copy()))
    workspace.finish()
    for copy, wanted in copies:
        np.testing.assert_array_equal(copy, wanted)


def test_a_scan_in_place_gives_the_ends(workspace):
    counts = workspace.array("counts", 10, wp.int32)
    workspace.fill(counts, 3)
    assert workspace.scan(counts, 10) == 30
    np.testing.assert_array_equal(workspace.host(counts, 10), 3 * np.arange(1, 11))


@pytest.mark.parametrize("workspace", ["known Warp"], indirect=True)
def test_nothing_is_made_before_it_is_asked_for(workspace):
    value = workspace.array("value", 8, wp.int32)
    workspace.fill(value, 7)
    seen = value.numpy()[:8]
    workspace.launch(fill_line, 8, [0, line_of(workspace, "value", 8, 1)])
    np.testing.assert_array_equal(seen, 7)
    workspace.finish()
    np.testing.assert_array_equal(seen, np.arange(8))


def test_an_array_that_grows_is_written_before_it_is_freed(workspace):
    """What was noted for the old memory is made while that is there; nothing of it is kept."""
    first = workspace.array("value", 64, wp.int32)
    held = first.numpy()[:64]
    workspace.launch(fill_line, 64, [0, line_of(workspace, "value", 64, 2)])
    workspace.array("value", 100_000, wp.int32)
    np.testing.assert_array_equal(held, 2 * np.arange(64))
    workspace.launch(fill_line, 100_000, [0, line_of(workspace, "value", 100_000, 1)])
    found = workspace.host(workspace.array("value", 100_000, wp.int32), 100_000)
    np.testing.assert_array_equal(found, np.arange(100_000))


def test_too_many_threads_are_refused(workspace):
    arguments = [0, line_of(workspace, "value", 8, 1)]
    workspace.launch(fill_line, 8, arguments)
    with pytest.raises(ValueError, match="2147483648"):
        workspace.launch(fill_line, 2 * (INDEX_LIMIT + 1), arguments)


def test_a_copy_is_by_the_c_librarys_own(workspace):
    assert launch_queue.COPY
    copy = workspace.copied(workspace.array("empty", 1, wp.vec3f), 0)
    assert copy.shape == (0, 3)


@pytest.mark.parametrize("clock", ["in the queue", "of Python"])
def test_marks_are_when_the_launches_before_them_are_complete(workspace, clock, monkeypatch):
    if clock == "of Python":
        monkeypatch.setattr(launch_queue, "CLOCK", None)
    count = 3_000_000
    line = line_of(workspace, "long", count, 1)
    workspace.launch(fill_line, 1, [0, line])
    workspace.finish()
    begin = time.perf_counter()
    marks = [workspace.mark()]
    workspace.launch(fill_line, count, [0, line])
    marks.append(workspace.mark())
    workspace.launch(add_up, 1, [line.value, line.value])
    marks.append(workspace.mark())
    first, second = (workspace.seconds_between(*pair) for pair in pairwise(marks))
    assert begin <= float(marks[0]) <= float(marks[1]) <= float(marks[2]) <= time.perf_counter()
    assert first > 1e-4  # 12 MB are written, in a millisecond
    assert second >= 0.0
