"""Sums of contacts for a report, against sums by hand over single contacts."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.analysis.summary import DepthHistogram, FrameSums, PairMap, PairTotals, time_bins, touches_of
from collidecli.scene.tables import ContactBlock
from tests.support.contact_sets import made_up_block, small_model, split

FRAMES, WORLDS = 11, 3
SHAPES = 5


@pytest.fixture(scope="module")
def block():
    return made_up_block(small_model(WORLDS), FRAMES, contacts_per_cell=9)


@pytest.fixture(scope="module")
def rows(block):
    """(cell, shape0, shape1, distance) of each contact."""
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    columns = (cell, *(block.columns[name] for name in ("shape0", "shape1", "distance")))
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("cells", [1, 4, 1000])
def test_touches(block, rows, cells):
    found = []
    for part in split(block, cells):
        touches = touches_of(part)
        points = touches.mean(part.columns["point0"])
        for n in range(len(touches)):
            held = slice(int(touches.start[n]), int(touches.start[n] + touches.contact_count[n]))
            np.testing.assert_allclose(points[n], part.columns["point0"][held].mean(axis=0))
            key = (int(touches.cell[n]), int(touches.shape0[n]), int(touches.shape1[n]))
            found.append((*key, int(touches.contact_count[n]), float(touches.distance[n])))
    expected = {}
    for cell, shape0, shape1, distance in rows:
        expected.setdefault((cell, shape0, shape1), []).append(distance)
    assert found == [(*key, len(some), min(some)) for key, some in expected.items()]


@pytest.mark.parametrize("cells", [1, 4, 1000])
def test_frames(block, rows, cells):
    sums = FrameSums(FRAMES, WORLDS)
    for part in split(block, cells):
        sums.add(part)
    for frame in range(FRAMES):
        here = [row for row in rows if row[0] // WORLDS == frame]
        assert sums.contacts[frame] == len(here)
        assert sums.penetrating[frame] == sum(row[3] < 0.0 for row in here)
        assert sums.least[frame] == min((row[3] for row in here), default=np.inf)


@pytest.mark.parametrize("cells", [1, 4, 1000])
def test_pairs(block, rows, cells):
    none = np.zeros(0, np.int64)
    pairs = PairTotals(none, none, none, none, none, none.astype(float), none)
    for part in split(block, cells):
        pairs = pairs.joined(PairTotals.of(touches_of(part), SHAPES))
    assert (np.diff(pairs.key) > 0).all()
    assert set(pairs.key.tolist()) == {row[1] * SHAPES + row[2] for row in rows}
    for n, key in enumerate(pairs.key.tolist()):
        here = [row for row in rows if row[1] * SHAPES + row[2] == key]
        cells_of = [row[0] for row in here]
        assert pairs.contacts[n] == len(here)
        assert pairs.touches[n] == len(set(cells_of))
        assert (pairs.first[n], pairs.last[n]) == (min(cells_of), max(cells_of))
        least = min(row[3] for row in here)
        assert pairs.least[n] == least
        assert pairs.at[n] == min(row[0] for row in here if row[3] == least)


def test_the_map_of_pairs(block, rows):
    keys = np.unique([row[1] * SHAPES + row[2] for row in rows])[1::2]
    bin_of = time_bins(FRAMES, 4)
    held = PairMap(keys, bin_of, WORLDS, SHAPES)
    for part in split(block, 5):
        held.add(touches_of(part))
    for n, key in enumerate(keys.tolist()):
        for b in range(bin_of[-1] + 1):
            here = [r for r in rows if r[1] * SHAPES + r[2] == key and bin_of[r[0] // WORLDS] == b]
            assert held.contacts[n, b] == len(here)
            assert held.least[n, b] == min((r[3] for r in here), default=np.inf)


def test_bins_of_frames():
    assert time_bins(5, 600).tolist() == [0, 1, 2, 3, 4]
    assert time_bins(7, 3).tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert time_bins(0, 3).tolist() == []
    for frames in (599, 600, 601, 1200, 1201):
        assert time_bins(frames, 600)[-1] < 600


def test_depths():
    depth = DepthHistogram()
    distance = np.array([0.5, 0.0, -1e-12, -1.5e-3, -1.4e-3, -1.1, -1e6], np.float32)
    depth.add(distance)
    assert depth.counts.sum() == 5, "what is apart or just touches has no depth"
    assert depth.counts[0] == 1
    assert depth.counts[-1] == 1
    for value, expected in ((1.45e-3, 2), (1.1, 1)):
        n = int(np.searchsorted(depth.edges, value))
        assert depth.edges[n - 1] <= value < depth.edges[n]
        assert depth.counts[n] == expected


def test_a_contact_of_distance_0_does_not_penetrate():
    sums = FrameSums(2, 1)
    distance = np.array([-1e-9, 0.0, 1e-9, 0.0], np.float32)
    sums.add(ContactBlock(0, np.array([3, 1]), {"distance": distance}))
    assert (sums.contacts.tolist(), sums.penetrating.tolist()) == ([3, 1], [1, 0])
