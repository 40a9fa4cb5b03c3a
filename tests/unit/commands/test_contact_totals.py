"""Contacts per pair, counted in a table or by sorting, are those that a Counter counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from collidecli.commands import contact_totals as tally_module
from collidecli.commands.contact_totals import HELD_ROWS, MAX_TABLE_SIZE, GroupTally, Tally, shape_name
from collidecli.report.run import contact_text
from collidecli.scene.tables import ContactBlock, groups_of_cells
from tests.support.contact_groups import block_with_groups
from tests.support.contact_sets import small_model


@pytest.mark.parametrize("shapes", [2, 20, 256, 257, 3000])
@pytest.mark.parametrize(("most", "held"), [(MAX_TABLE_SIZE, HELD_ROWS), (MAX_TABLE_SIZE, 60), (4, 1)])
def test_pairs_and_the_deepest_of_several_blocks(shapes, most, held, monkeypatch):
    """Added up at the end alone, again and again, and with two blocks at a time."""
    monkeypatch.setattr(tally_module, "HELD_ROWS", held)
    if shapes**2 > MAX_TABLE_SIZE:
        monkeypatch.setattr(tally_module, "MAX_TABLE_SIZE", most)
    rng = np.random.default_rng(shapes)
    tally, wanted, touching, deepest, cells_of = Tally(shapes), Counter(), Counter(), [], [set(), set()]
    for first in range(0, 30, 10):
        counts = rng.integers(0, 9, 10) if first != 10 else np.zeros(10, np.int64)
        count = int(counts.sum())
        shape0 = rng.integers(0, shapes - 1, count).astype(np.int32)
        shape1 = rng.integers(shape0 + 1, shapes).astype(np.int32)
        order = np.lexsort((shape1, shape0, np.repeat(np.arange(10), counts)))
        shape0, shape1 = shape0[order], shape1[order]
        distance = rng.normal(size=count).astype(np.float32)
        tally.add(ContactBlock(first, counts, {"shape0": shape0, "shape1": shape1, "distance": distance}))
        rows = list(zip(shape0.tolist(), shape1.tolist(), strict=True))
        wanted.update(rows)
        touching.update(row for row, apart in zip(rows, distance, strict=True) if apart <= 0.0)
        cells = np.repeat(np.arange(first, first + 10), counts).tolist()
        deepest += zip(distance.tolist(), shape0.tolist(), shape1.tolist(), cells, strict=True)
        for row, cell, apart in zip(rows, cells, distance, strict=True):
            cells_of[0].add((row, cell))
            cells_of[1].update([(row, cell)] if apart <= 0.0 else [])
    found = tally.pairs()
    assert found == {pair: (number, touching[pair]) for pair, number in wanted.items()}
    assert [number for number, _ in found.values()] == sorted(wanted.values(), reverse=True)
    assert (tally.contact_pair_cells, tally.touching_pair_cells) == tuple(map(len, cells_of))
    assert tally.deepest == min(deepest)


def test_touching_and_near_contacts_are_told_apart():
    """Pairs 0-1 and 0-2 touch, 1-2 only comes near; a distance of 0 is a touch."""
    model = small_model(1)
    columns = {
        "shape0": np.array([0, 0, 0, 1, 0], np.int32),
        "shape1": np.array([1, 1, 2, 2, 1], np.int32),
        "distance": np.array([-0.1, 0.02, 0.0, 0.01, 0.03], np.float32),
    }
    tally = Tally(len(model.shapes))
    tally.add(ContactBlock(0, np.array([4, 1]), columns))
    found = tally.counts(model, None)
    assert (found.contacts, found.touching_contacts, found.near_contacts) == (5, 2, 3)
    assert (found.contact_pair_count, found.touching_pair_count) == (3, 2)
    assert (found.contact_pair_cells, found.touching_pair_cells) == (4, 2)
    assert [(pair.contacts, pair.touching) for pair in found.top_pairs] == [(3, 1), (1, 1), (1, 0)]
    words = contact_text(vars(found))
    assert words == "5: 2 touching (2 pairs of shapes), 3 near, in the gap (1 more pair of shapes)"


def test_both_ways_are_tried():
    assert 256**2 <= MAX_TABLE_SIZE < 257**2


def test_counts_of_groups_do_not_depend_on_the_blocks():
    model = small_model()
    block = block_with_groups(model, 6)
    cells = len(block.cell_counts)
    tallies = []
    for edges in ((0, cells), (0, 1, 4, cells)):
        tally = GroupTally()
        for first, end in pairwise(edges):
            tally.add(replace(block, first_cell=first, groups=groups_of_cells(block.groups, np.arange(first, end))))
        tallies.append(tally.counts(model, None))
    assert tallies[0] == tallies[1]
    for name, held in block.groups.items():
        found = tallies[0][name]
        assert (found.rows, found.cells) == (held.row_count, np.count_nonzero(held.cell_counts))
        if name in ("hydro_faces", "touches"):
            assert found.deepest is None
            continue
        column = held.columns["depth" if name == "hydro_patches" else "distance"]
        row = int(np.argmin(column))
        cell = int(np.repeat(np.arange(cells), held.cell_counts)[row])
        deepest = found.deepest
        assert (deepest.distance, deepest.frame, deepest.world) == (column[row], *divmod(cell, model.world_count))
        shapes = [held.columns[key][row] for key in ("shape0", "shape1", "shape") if key in held.columns]
        names = [shape_name(model, shape) for shape in shapes]
        assert [name for name in (deepest.shape0, deepest.shape1) if name] == names
