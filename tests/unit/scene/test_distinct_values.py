"""Distinct and common values are those of NumPy, in the same order and type."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from collidecli.scene.distinct_values import common, distinct

INTEGERS = (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64)
LIMITS = np.iinfo(np.int32)


def equal(one: np.ndarray, other: np.ndarray) -> None:
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert np.array_equal(one, other)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_numbers(dtype, data):
    values = data.draw(arrays.arrays(dtype, st.integers(0, 40)))
    equal(distinct(values), np.unique(values))


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_rows_of_two(dtype, data):
    shape = st.tuples(st.integers(0, 20), st.just(2))
    pairs = data.draw(arrays.arrays(dtype, shape))
    equal(distinct(pairs, axis=0), np.unique(pairs, axis=0))


@given(st.lists(st.tuples(*2 * [st.sampled_from((LIMITS.min, -1, 0, 1, LIMITS.max))])))
def test_rows_at_the_limits_of_32_bits(pairs):
    for values in (np.array(pairs, np.int32), np.array(pairs, np.int64)):
        rows = values.reshape(-1, 2)
        equal(distinct(rows, axis=0), np.unique(rows, axis=0))


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_common(one, other):
    equal(common(np.array(one, int), np.array(other, int)), np.intersect1d(one, other).astype(int))


def test_other_kinds():
    """Words, and floats of which one is unknown."""
    words = np.array(["b", "a", "b"])
    equal(distinct(words), np.array(["a", "b"]))
    numbers = np.array([np.nan, 1.0, np.nan, -0.0, 0.0])
    assert np.array_equal(distinct(numbers), np.unique(numbers), equal_nan=True)
    rows = np.array([[2, 1, 0], [0, 1, 2], [2, 1, 0]])
    equal(distinct(rows, axis=0), np.unique(rows, axis=0))
