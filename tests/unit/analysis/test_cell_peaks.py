"""Peaks of counts against brute force over all cells."""

import numpy as np
import pytest

from collidecli.analysis.cell_peaks import CellPeaks, Peak


@pytest.mark.parametrize("worlds", [1, 3, 7])
@pytest.mark.parametrize("seed", range(6))
def test_peaks_of_blocks_are_those_of_the_table(worlds, seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 5, (rng.integers(1, 12), worlds))
    flat = table.reshape(-1)
    peaks = CellPeaks(worlds)
    done = 0
    while done < len(flat):
        size = int(rng.integers(0, 2 * worlds + 2))
        peaks.add(done, flat[done : done + size])
        done += len(flat[done : done + size])
    assert np.array_equal(peaks.counts, table.max(axis=0))
    assert np.array_equal(peaks.frames, table.argmax(axis=0))
    sums = table.sum(axis=1)
    assert peaks.of_all_worlds == Peak(int(sums.max()), int(sums.argmax()))
    world = int(table.max(axis=0).argmax())
    frame = int(table[:, world].argmax())
    assert peaks.of_a_world == Peak(int(table.max()), frame, world)


def test_no_cell_has_no_frame():
    peaks = CellPeaks(2)
    assert peaks.of_all_worlds == Peak(0, -1)
    assert peaks.of_a_world.frame == -1


def test_cells_without_contacts_have_the_first_frame():
    peaks = CellPeaks(1)
    peaks.add(0, np.zeros(3, np.int64))
    assert peaks.of_all_worlds == Peak(0, 0)
