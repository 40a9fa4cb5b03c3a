"""Counts of contacts, pairs and the deepest contact, added up block by block."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from collidecli.analysis import totals
from collidecli.analysis.totals import HELD_ROWS, MAX_TABLE_SIZE, GroupTally, Tally
from collidecli.analysis.touch_intervals import Names
from collidecli.pages.pair_tables import contact_text
from collidecli.scene.contact_blocks import ContactBlock, groups_of_cells
from tests.support.contact_sets import block_with_groups, small_model


@pytest.mark.parametrize("shapes", [2, 20, 256, 257, 3000])
@pytest.mark.parametrize(
    ("most", "held"), [(MAX_TABLE_SIZE, HELD_ROWS), (MAX_TABLE_SIZE, 60), (4, 1)]
)
def test_counts_of_several_blocks_add_up(shapes, most, held, monkeypatch):
    """Added up at the end alone, again and again, and with two blocks at a time."""
    assert 256**2 <= MAX_TABLE_SIZE < 257**2  # both ways are tried
    monkeypatch.setattr(totals, "HELD_ROWS", held)
    if shapes**2 > MAX_TABLE_SIZE:
        monkeypatch.setattr(totals, "MAX_TABLE_SIZE", most)
    rng = np.random.default_rng(shapes)
    tally = Tally(Names(np.arange(shapes), ()))
    rows = []
    for first in range(0, 30, 10):
        counts = rng.integers(0, 9, 10) if first != 10 else np.zeros(10, np.int64)
        cell = np.repeat(np.arange(first, first + 10), counts)
        shape0 = rng.integers(0, shapes - 1, len(cell)).astype(np.int32)
        shape1 = rng.integers(shape0 + 1, shapes).astype(np.int32)
        order = np.lexsort((shape1, shape0, cell))
        shape0 = shape0[order]
        shape1 = shape1[order]
        distance = rng.normal(size=len(cell)).astype(np.float32)
        tally.add(
            ContactBlock(first, counts, {"shape0": shape0, "shape1": shape1, "distance": distance})
        )
        rows += zip(*(values.tolist() for values in (distance, shape0, shape1, cell)), strict=True)
    touches = [row for row in rows if row[0] <= 0.0]
    wanted, touching = (
        Counter((one, other) for _, one, other, _ in some) for some in (rows, touches)
    )
    found = tally.pairs()
    assert found == {pair: (number, touching[pair]) for pair, number in wanted.items()}
    assert [number for number, _ in found.values()] == sorted(wanted.values(), reverse=True)
    pair_cells = (tally.contact_pair_cells, tally.touching_pair_cells)
    assert pair_cells == tuple(len({row[1:] for row in some}) for some in (rows, touches))
    assert (tally.deepest[0], *tally.deepest[1], tally.deepest[2]) == min(rows)


def test_near_contacts_are_told_apart_from_touching_ones():
    """Pairs 0-1 and 0-2 touch, 1-2 only comes near; a distance of 0 is a touch."""
    model = small_model(1)
    columns = {
        "shape0": [0, 0, 0, 1, 0],
        "shape1": [1, 1, 2, 2, 1],
        "distance": [-0.1, 0.02, 0.0, 0.01, 0.03],
    }
    columns = {
        name: np.array(values, "f4" if name == "distance" else "i4")
        for name, values in columns.items()
    }
    tally = Tally(Names.of(model.shapes.path, model.shapes.template))
    tally.add(ContactBlock(0, np.array([4, 1]), columns))
    found = tally.counts(model.world_count, None)
    assert (found.contacts, found.touching_contacts, found.near_contacts) == (5, 2, 3)
    pairs = (
        found.contact_pair_count,
        found.touching_pair_count,
        found.contact_pair_cells,
        found.touching_pair_cells,
    )
    assert pairs == (3, 2, 4, 2)
    assert [(pair.contacts, pair.touching) for pair in found.top_pairs] == [(3, 1), (1, 1), (1, 0)]
    words = "5: 2 touching (2 pairs of shapes), 3 near, in the gap (1 more pair of shapes)"
    assert contact_text(vars(found)) == words


def test_counts_of_groups_do_not_depend_on_the_blocks():
    model = small_model()
    block = block_with_groups(model, 6)
    cells = len(block.cell_counts)
    tallies = []
    for edges in ((0, cells), (0, 1, 4, cells)):
        tally = GroupTally()
        for first, end in pairwise(edges):
            tally.add(
                replace(
                    block,
                    first_cell=first,
                    groups=groups_of_cells(block.groups, np.arange(first, end)),
                )
            )
        tallies.append(
            tally.counts(
                Names.of(model.shapes.path, model.shapes.template), model.world_count, None
            )
        )
    assert tallies[0] == tallies[1]
    for name, held in block.groups.items():
        found = tallies[0][name]
        assert (found.rows, found.cells) == (held.row_count, np.count_nonzero(held.cell_counts))
        if name in ("hydro_faces", "touches", "candidates"):
            assert found.deepest is None
            continue
        column = held.columns["depth" if name == "hydro_patches" else "distance"]
        row = int(np.argmin(column))
        deepest = found.deepest
        cell = int(np.repeat(np.arange(cells), held.cell_counts)[row])
        assert (deepest.distance, deepest.frame, deepest.world) == (
            column[row],
            *divmod(cell, model.world_count),
        )
        shapes = [
            held.columns[key][row] for key in ("shape0", "shape1", "shape") if key in held.columns
        ]
        names = [name for name in (deepest.shape0, deepest.shape1) if name]
        assert names == [model.shapes.path[shape] for shape in shapes]
