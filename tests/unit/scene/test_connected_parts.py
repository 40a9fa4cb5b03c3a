"""Parts of a graph against those of SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from collidecli.scene.connected_parts import connected_parts


def expected(one: np.ndarray, other: np.ndarray, count: int) -> np.ndarray:
    links = coo_matrix((np.ones(len(one)), (one, other)), shape=(count, count))
    return connected_components(links, directed=False)[1]


@given(st.data())
def test_random_links(data):
    count = data.draw(st.integers(1, 30))
    node = st.integers(0, count - 1)
    links = data.draw(st.lists(st.tuples(node, node)))
    one, other = np.array(links, np.int64).reshape(-1, 2).T
    assert np.array_equal(connected_parts(one, other, count), expected(one, other, count))


@pytest.mark.parametrize("seed", range(5))
def test_long_chains(seed):
    """Chains of 3,000 nodes in a random order, in which smallest nodes are far apart."""
    rng = np.random.default_rng(seed)
    count = 9000
    order = rng.permutation(count).reshape(3, -1)
    one = order[:, :-1].ravel()
    other = order[:, 1:].ravel()
    found = connected_parts(one, other, count)
    assert np.array_equal(found, expected(one, other, count))
    assert found.max() == 2


def test_no_nodes():
    nothing = np.zeros(0, np.int64)
    assert not len(connected_parts(nothing, nothing, 0))
