"""Frames, worlds and pairs picked of a set, against masks over all of its rows."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase

import numpy as np
import pytest

from collidecli.analysis.labels import kept_pairs
from collidecli.errors import InputError
from collidecli.exporters.selection import chosen_worlds
from tests.unit.exporters.conftest import FRAMES, WORLDS

NAMES = ("shape0", "shape1", "distance", "normal")
FRAME_PICKS = (range(FRAMES), range(2, 5), range(0, FRAMES, 3), range(6, 7))
WORLD_PICKS = ((), (1,), (2, 0), (0, 1, 1))
PAIR_PICKS = (((), ()), (("b*",), ()), ((), ("pin",)), (("ground", "egg"), ("bøx",)))


@pytest.mark.parametrize("max_rows", [1, 20, 10**6])
@pytest.mark.parametrize(("include", "exclude"), PAIR_PICKS)
def test_rows_of_every_pick(select, block, contacts, include, exclude, max_rows):
    paths = contacts.shapes.path
    all_cells = np.repeat(np.arange(FRAMES * WORLDS), block.cell_counts)
    for frames, worlds in itertools.product(FRAME_PICKS, WORLD_PICKS):
        picked = select(frames, worlds, include, exclude)
        wanted_worlds = sorted(set(worlds)) or list(range(WORLDS))
        cells, rows = [], []
        for k, (frame, world) in enumerate(itertools.product(frames, wanted_worlds)):
            for row in np.flatnonzero(all_cells == frame * WORLDS + world):
                pair = [paths[block.columns[name][row]] for name in ("shape0", "shape1")]
                met = [any(fnmatchcase(path, glob) for glob in include) for path in pair]
                out = [any(fnmatchcase(path, glob) for glob in exclude) for path in pair]
                if (any(met) or not include) and not any(out):
                    cells.append(k)
                    rows.append(row)
        found = list(picked.blocks(NAMES, max_rows))
        assert [b.first_cell for b in found] == np.cumsum([0, *(len(b.cell_counts) for b in found)])[:-1].tolist()
        counts = np.concatenate([b.cell_counts for b in found])
        assert counts.tolist() == np.bincount(cells, minlength=picked.cell_count).tolist()
        assert picked.contact_count == len(rows)
        for name in NAMES:
            values = np.concatenate([b.columns[name] for b in found])
            assert np.array_equal(values, block.columns[name][rows]), name
        assert picked.step.tolist() == [5 * frame for frame in frames]


def test_what_is_not_there_is_refused(contacts):
    with pytest.raises(InputError, match="world 3 is not there"):
        chosen_worlds([0, 3], contacts)
    with pytest.raises(InputError, match=r"--exclude: 'x\*' matches no shape"):
        kept_pairs(contacts.shapes.path, ["ball"], ["x*"], "no shape")
