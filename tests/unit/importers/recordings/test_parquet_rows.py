"""Parquet files of LeRobot data sets that declare what they do not have, or are no such files."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from collidecli.errors import InputError
from collidecli.importers.recordings import parquet_rows as parquet_rows_module
from collidecli.importers.recordings.parquet_rows import INTEGER, parquet_rows
from tests.support.forged_parquet import forge
from tests.unit.importers.recordings.test_humanoid_motion import RUN, data_set

__all__ = ["data_set"]
COUNT = 203
"""A number that the footer of a small file has in no other place."""
DATA = Path("arm/data/chunk-000/file-000.parquet")
LISTED = Path("arm/meta/episodes/chunk-000/file-000.parquet")
INFO = Path("arm/meta/info.json")
STATE = "observation.state"


@pytest.mark.parametrize("which", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("forged", [COUNT + 1, 2**31 - 1, 2**40, 2**62])
def test_forged_counts_are_refused(tmp_path, which, forged):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"n": range(COUNT), "k": range(COUNT)}), path)
    if not forge(path, COUNT, forged, which):
        pytest.skip("the footer has the number in fewer places")
    before = pyarrow.total_allocated_bytes()
    # Counts of a column that are not used leave the rows as they are.
    with suppress(InputError):
        rows = parquet_rows(str(path), {"n": INTEGER}, 10**9)
        np.testing.assert_array_equal(rows["n"], np.arange(COUNT))
    assert pyarrow.default_memory_pool().max_memory() < before + (1 << 28)


def test_equal_rows_beyond_those_expected_are_not_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_rows_module, "BATCH_ROWS", 100)
    path = str(tmp_path / "a.parquet")
    parquet.write_table(pyarrow.table({"n": np.zeros(10_000, np.int64)}), path)
    for most in (9_999, 150):
        with pytest.raises(InputError, match=f"more rows than the {most} that are expected"):
            parquet_rows(path, {"n": INTEGER}, most)
    assert len(parquet_rows(path, {"n": INTEGER}, 10_000)["n"]) == 10_000


def test_only_row_groups_with_chosen_rows_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"n": range(300)}), path, row_group_size=100)
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(36)  # the first group
    path.write_bytes(data)
    rows = parquet_rows(str(path), {"n": INTEGER}, 10, ("n", [205, 150]))
    assert rows["n"].tolist() == [150, 205]
    with pytest.raises(InputError, match="cannot be read"):
        parquet_rows(str(path), {"n": INTEGER}, 10, ("n", [5]))


def replaced(path: Path, name: str, values: Callable[[int], Any]) -> Callable[[], None]:
    """A change of a column of a file to other values, of a number of rows."""

    def change() -> None:
        table = parquet.read_table(path)
        column = pyarrow.array(values(len(table)))
        parquet.write_table(table.set_column(table.column_names.index(name), name, column), path)

    return change


def listed(**columns: list) -> Callable[[], None]:
    """A change of the list of episodes."""
    whole = {"episode_index": [0, 1], "length": [6, 4]} | columns
    return lambda: parquet.write_table(pyarrow.table(whole), LISTED)


def described(**values: Any) -> Callable[[], None]:
    """A change of the description of the state."""

    def change() -> None:
        info = json.loads(INFO.read_text())
        info["features"][STATE] |= values
        INFO.write_text(json.dumps(info))

    return change


def special(make: Callable[[Path], object]) -> Callable[[], None]:
    """A change of a file of data to something else of its name."""

    def change() -> None:
        DATA.unlink()
        make(DATA)

    return change


CHANGES: dict[str, tuple[Callable[[], None], str]] = {
    "negative length": (listed(length=[-5, 4]), "episode 0 of -5 frames"),
    "no length": (listed(length=[None, 4]), "rows without a value"),
    "text as length": (listed(length=["6", "4"]), "is string, not an integer"),
    "fraction as length": (listed(length=[6.0, 4.5]), "is double, not an integer"),
    "no index": (listed(episode_index=[None, 1]), "rows without a value"),
    "list as index": (listed(episode_index=[[0], [1]]), "not an integer"),
    "negative index": (listed(episode_index=[-1, 1]), "has episode -1"),
    "index twice": (listed(episode_index=[1, 1]), "has episode 1 twice"),
    "huge length": (listed(length=[2**62, 4]), "of memory, and the limit is"),
    "long length": (listed(length=[10**6, 4]), "episode_0 has 6 rows"),
    "texts": (replaced(DATA, STATE, lambda n: ["x"] * n), "is string, not numbers"),
    "ragged": (
        replaced(DATA, STATE, lambda n: [[1.0, 2.0, 3.0], [1.0]] * (n // 2)),
        "3 numbers in a row, not 2",
    ),
    "nested": (replaced(DATA, STATE, lambda n: [[[1.0], [2.0]]] * n), "not numbers"),
    "records": (replaced(DATA, STATE, lambda n: [{"a": 1.0}] * n), "not numbers"),
    "no states": (replaced(DATA, STATE, lambda n: [None] * n), "rows without a value"),
    "text as frame": (replaced(DATA, "frame_index", lambda n: ["0"] * n), "not an integer"),
    "text as episode": (replaced(DATA, "episode_index", lambda n: ["0"] * n), "not an integer"),
    "wide shape": (described(shape=[10**12]), "of memory, and the limit is"),
    "negative shape": (described(shape=[-2]), "not floats [joints]"),
    "text as shape": (described(shape=["q"]), "not floats [joints]"),
    "number as shape": (described(shape=2), "not floats [joints]"),
    "no shape": (described(shape=[None]), "not floats [joints]"),
    "a pipe": (special(os.mkfifo), "is not a regular file"),
    "a folder": (special(os.mkdir), "is a folder, not a Parquet file"),
    "a link to itself": (special(lambda path: path.symlink_to(path.name)), "there is no such file"),
    "a device": (special(lambda path: path.symlink_to("/dev/zero")), "is not a regular file"),
    "nothing": (special(Path.touch), "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_damaged_data_sets_are_refused(data_set, collide, change):
    act, told = CHANGES[change]
    act()
    collide.refused(*RUN, "--demos", "episode_0", told=told)
    assert not Path("out.h5").exists()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), 1e-308])
def test_a_rate_without_times(data_set, collide, rate):
    INFO.write_text(json.dumps(json.loads(INFO.read_text()) | {"fps": rate}))
    collide.refused(*RUN, "--demos", "episode_0", told="frames per second")
    assert "episode_0" in collide.ok("inspect", str(INFO)).out
