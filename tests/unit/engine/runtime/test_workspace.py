"""Lengths of scratch arrays: capacity for later chunks, within the memory limit."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import warp as wp

from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import (
    FIRST_CAPACITY,
    FIRST_SHARE,
    ChunkTooLarge,
    Workspace,
)
from tests.unit.engine.runtime.test_chunk_counts import as_device  # noqa: F401

COUNT = 1000
BYTES = 4 * COUNT


def workspace(limit: int, exact: bool = False) -> Workspace:
    return Workspace(wp.get_device("cpu"), limit, exact)


def test_a_new_array_has_capacity_within_its_share_of_the_limit():
    scratch = workspace(FIRST_SHARE * FIRST_CAPACITY * BYTES)
    array = scratch.array("first", COUNT, wp.int32)
    assert array.shape == (FIRST_CAPACITY * COUNT,)
    assert scratch.bytes == FIRST_CAPACITY * BYTES
    assert scratch.array("first", FIRST_CAPACITY * COUNT, wp.int32) is array


def test_beyond_its_share_a_new_array_has_a_quarter_more():
    scratch = workspace(FIRST_SHARE * FIRST_CAPACITY * BYTES - 1)
    assert scratch.array("first", COUNT, wp.int32).shape == (COUNT + COUNT // 4,)


def test_capacity_of_all_arrays_together_is_within_the_share():
    scratch = workspace(FIRST_SHARE * FIRST_CAPACITY * BYTES)
    scratch.array("first", COUNT, wp.int32)
    assert scratch.array("second", COUNT, wp.int32).shape == (COUNT + COUNT // 4,)


def test_an_array_that_grows_has_a_quarter_more():
    scratch = workspace(1 << 30)
    scratch.array("first", COUNT, wp.int32)
    grown = FIRST_CAPACITY * COUNT + 4
    assert scratch.array("first", grown, wp.int32).shape == (grown + grown // 4,)
    assert scratch.bytes == 4 * (grown + grown // 4)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65])
def test_small_arrays_have_the_capacity_of_64_elements(count):
    length = workspace(1 << 30).array("first", count, wp.int32).shape[0]
    assert length == FIRST_CAPACITY * max(64, count)


def test_where_no_quarter_fits_the_array_is_as_long_as_requested():
    scratch = workspace(BYTES)
    assert scratch.array("first", COUNT, wp.int32).shape == (COUNT,)
    with pytest.raises(ChunkTooLarge):
        scratch.array("second", 1, wp.int32)


def test_exact_arrays_are_as_long_as_requested():
    scratch = workspace(1 << 30, exact=True)
    assert scratch.array("first", COUNT, wp.int32).shape == (COUNT,)
    assert scratch.array("empty", 0, wp.int32).shape == (1,)


def test_a_part_of_an_array_is_filled():
    scratch = workspace(1 << 30)
    array = scratch.array("first", COUNT, wp.int32)
    scratch.fill(array, 7)
    scratch.fill(array, 3, 10)
    scratch.fill(array, 5, 0)
    values = array.numpy()
    assert (set(values[:10]), set(values[10:])) == ({3}, {7})


@wp.struct
class Numbers:
    """Columns of a table."""

    index: wp.array[wp.int32]
    place: wp.array[wp.vec3d]


@kernel
def fill(start: int, numbers: Numbers):
    """One thread per row."""
    row = wp.tid()
    numbers.index[row] = start + row
    numbers.place[row] = wp.vec3d(wp.float64(start), wp.float64(row), wp.float64(1.0))


@pytest.mark.parametrize("counts", [(3, 70, 0, 2), (0, 3, 70)])
def test_a_result_table_has_new_arrays_for_each_chunk_in_place_of_scratch(counts):
    """An array of a struct that begins empty has the stride 0 in Warp."""
    scratch = workspace(1 << 20)
    results = []
    for number, count in enumerate(counts):
        start = 100 * number
        numbers, arrays = scratch.result_table(
            Numbers, count, {"index": wp.int32, "place": wp.vec3d}
        )
        scratch.launch(fill, count, [start, numbers])
        scratch.finish()
        results.append((start, count, arrays))
    assert scratch.bytes == 0
    for start, count, arrays in results:
        assert arrays["index"].dtype == np.int32
        assert arrays["index"].tolist() == list(range(start, start + count))
        assert arrays["place"].tolist() == [[start, row, 1.0] for row in range(count)]


def test_a_result_table_and_a_table_of_scratch_of_one_struct_take_turns():
    elements = {"index": wp.int32, "place": wp.vec3d}
    scratch = workspace(1 << 20)
    found = []
    for start in (10, 20, 30, 40):
        if start in (10, 30):
            numbers, kept = scratch.table("numbers", Numbers, 2, elements)
        else:
            numbers, kept = scratch.result_table(Numbers, 2, elements)
        scratch.launch(fill, 2, [start, numbers])
        index = kept["index"]
        found.append(scratch.copied(index, 2) if isinstance(index, wp.array) else index)
    scratch.finish()
    assert [each.tolist() for each in found] == [[10, 11], [20, 21], [30, 31], [40, 41]]


def test_an_outgrown_array_of_a_device_is_freed_by_the_next_wait(as_device):  # noqa: F811
    """Launches may use it until then. The host does not wait for a new array, or one that grows."""
    scratch = workspace(1 << 30)
    outgrown = weakref.ref(scratch.array("first", COUNT, wp.int32))
    scratch.array("second", COUNT, wp.int32)
    scratch.array("first", 2 * COUNT, wp.int32)
    assert scratch.traffic.waits == 0
    assert outgrown() is not None
    assert scratch.bytes == (2 * BYTES + BYTES) * 5 // 4
    scratch.finish()
    assert outgrown() is None


@pytest.mark.parametrize(("spare", "waits"), [(0, 0), (-1, 1)])
def test_the_limit_has_outgrown_arrays_or_the_host_waits(as_device, spare, waits):  # noqa: F811
    """Two generations of one array are kept beside the third."""
    scratch = workspace((1 + 2 + 4) * BYTES + spare, exact=True)
    outgrown = weakref.ref(scratch.array("first", COUNT, wp.int32))
    for count in (2 * COUNT, 4 * COUNT):
        assert scratch.array("first", count, wp.int32).shape == (count,)
    assert scratch.traffic.waits == waits
    assert (outgrown() is None) == bool(waits)


def test_the_limit_has_outgrown_arrays_beside_a_new_one(as_device):  # noqa: F811
    scratch = workspace(4 * BYTES, exact=True)
    outgrown = weakref.ref(scratch.array("first", COUNT, wp.int32))
    scratch.array("first", 2 * COUNT, wp.int32)
    assert scratch.traffic.waits == 0
    scratch.array("second", 2 * COUNT, wp.int32)
    assert scratch.traffic.waits == 1
    assert outgrown() is None


def test_a_device_without_memory_frees_outgrown_arrays_first(as_device, monkeypatch):  # noqa: F811
    scratch = workspace(1 << 30)
    outgrown = weakref.ref(scratch.array("first", COUNT, wp.int32))
    empty = wp.empty

    def limited(*given, **options):
        if outgrown() is not None:
            raise RuntimeError("no memory")
        return empty(*given, **options)

    monkeypatch.setattr(wp, "empty", limited)
    assert scratch.array("first", 2 * COUNT, wp.int32).shape[0] >= 2 * COUNT
    assert scratch.traffic.waits == 1
