"""Contacts per pair, counted in a table or by sorting, are those that a Counter counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from collidecli.commands import contact_totals as tally_module
from collidecli.commands.contact_totals import MAX_TABLE_SIZE, Tally
from collidecli.scene.contacts import ContactBlock


@pytest.mark.parametrize("shapes", [2, 20, 256, 257, 3000])
@pytest.mark.parametrize("most", [MAX_TABLE_SIZE, 4])
def test_pairs_and_the_deepest_of_several_blocks(shapes, most, monkeypatch):
    """Added up at the end alone, and again and again."""
    if shapes**2 > MAX_TABLE_SIZE:
        monkeypatch.setattr(tally_module, "MAX_TABLE_SIZE", most)
    rng = np.random.default_rng(shapes)
    tally, wanted, deepest = Tally(shapes), Counter(), []
    for first in range(0, 30, 10):
        counts = rng.integers(0, 9, 10) if first != 10 else np.zeros(10, np.int64)
        count = int(counts.sum())
        shape0 = rng.integers(0, shapes - 1, count).astype(np.int32)
        shape1 = rng.integers(shape0 + 1, shapes).astype(np.int32)
        distance = rng.normal(size=count).astype(np.float32)
        tally.add(ContactBlock(first, counts, {"shape0": shape0, "shape1": shape1, "distance": distance}))
        wanted.update(zip(shape0.tolist(), shape1.tolist(), strict=True))
        cells = np.repeat(np.arange(first, first + 10), counts).tolist()
        deepest += zip(distance.tolist(), shape0.tolist(), shape1.tolist(), cells, strict=True)
    found = tally.pairs()
    assert found == dict(wanted)
    assert list(found.values()) == sorted(wanted.values(), reverse=True)
    assert tally.deepest == min(deepest)


def test_both_ways_are_tried():
    assert 256**2 <= MAX_TABLE_SIZE < 257**2
