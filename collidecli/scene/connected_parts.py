"""Parts of a graph, of arrays alone: SciPy's take 0.2 s to import, longer than all of a mesh of
100,000 triangles takes here."""

from __future__ import annotations

import numpy as np


def connected_parts(one: np.ndarray, other: np.ndarray, count: int) -> np.ndarray:
    """int64[count]: the part of each of `count` nodes, numbered in the order of their first nodes.

    one, other: int[n], the ends of the links, in either direction.

    In each round every part that has a neighbour with a smaller first node is joined to it. Of two
    neighbours one is joined, so that few rounds are needed: of a chain in random order some ten.
    """
    least = np.arange(count)
    while len(one):
        one = least[one]
        other = least[other]
        apart = one != other
        one = one[apart]
        other = other[apart]
        np.minimum.at(least, np.maximum(one, other), np.minimum(one, other))
        least = _roots(least)
    number = np.cumsum(least == np.arange(count)) - 1
    return number[least]


def _roots(least: np.ndarray) -> np.ndarray:
    """The end of the chain from each node, where each names a smaller one or itself."""
    while True:
        further = least[least]
        if np.array_equal(further, least):
            return least
        least = further
