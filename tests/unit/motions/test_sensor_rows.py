"""Rows of sensors in memory and in a file, against all rows in one array."""

import os

import numpy as np
import pytest

from collidecli.analysis.sensor_contacts import SensorRows
from collidecli.motions.sensor_rows import SensorRowStore, record_type

WORLDS = 3
FRAMES = 40
COLUMNS = 5


def drawn_rows(rng: np.random.Generator, nominal_width: int) -> SensorRows:
    """A row for some pairs of a cell and a column, in any order."""
    key = rng.permutation(FRAMES * WORLDS * COLUMNS)[: rng.integers(1, 400)]
    whole = (rng.integers(-1, 9, len(key)) for _ in range(2))
    vectors = (rng.normal(size=(len(key), 3)) for _ in SensorRows.VECTORS)
    distance = rng.normal(size=len(key))
    distance[::7] = np.nan
    cell, column = np.divmod(key, COLUMNS)
    nominal = rng.normal(size=(len(key), nominal_width))
    count = rng.integers(-1, 4, len(key))
    return SensorRows(cell, column, count, distance, *whole, *vectors, nominal)


@pytest.mark.parametrize("limit", [0, 3000, 1 << 30])
@pytest.mark.parametrize("nominal_width", [0, 6])
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_cells(seed, nominal_width, limit):
    """Every row once, with its bits, wherever it is stored and however the parts are cut."""
    rng = np.random.default_rng(seed)
    rows = drawn_rows(rng, nominal_width)
    record = record_type(nominal_width)
    cuts = np.sort(rng.integers(0, len(rows.cell) + 1, 6))
    with SensorRowStore(limit, nominal_width) as store:
        for part in np.split(np.arange(len(rows.cell)), cuts):
            store.add(rows.take(part))
        assert store.is_in_file == (len(rows.cell) * record.itemsize > limit)
        path = store._path
        cell, column, distance = store.keys()
        found = np.lexsort((cell, column))
        wanted = np.lexsort((rows.cell, rows.column))
        np.testing.assert_array_equal(cell[found], rows.cell[wanted])
        np.testing.assert_array_equal(column[found], rows.column[wanted])
        np.testing.assert_array_equal(distance[found], rows.distance[wanted])
        for first, last in ((0, FRAMES * WORLDS), (7, 30), (30, 31), (50, 50)):
            chosen = wanted[(rows.cell[wanted] >= first) & (rows.cell[wanted] < last)]
            read = store.of_cells(first, last)
            for name in record.names:
                np.testing.assert_array_equal(getattr(read, name), getattr(rows, name)[chosen])
    assert not (path and os.path.exists(path))


def test_no_rows():
    with SensorRowStore(0) as store:
        store.add(SensorRows.none())
        assert not store.is_in_file
        assert len(store.of_cells(0, 9).cell) == len(store.keys()[0]) == 0
