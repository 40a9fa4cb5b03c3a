"""Lengths of scratch arrays: capacity for later chunks, within the memory limit."""

from __future__ import annotations

import pytest
import warp as wp

from collidecli.engine.runtime.workspace import (
    FIRST_CAPACITY,
    FIRST_SHARE,
    ChunkTooLarge,
    Workspace,
)

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
