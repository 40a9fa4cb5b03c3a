"""ContactSet: what Python gets of a file, against the same contacts held in memory."""

from __future__ import annotations

import re
import sys

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.tables import RIGID_COLUMNS
from tests.support.contact_edits import made_up
from tests.support.touch_oracle import Touch, intervals, ordered


@pytest.fixture(scope="module")
def edited():
    return made_up(frames=7, worlds=3)


@pytest.fixture(scope="module")
def path(edited, tmp_path_factory) -> str:
    return edited.write(tmp_path_factory.mktemp("set") / "a.h5")


@pytest.fixture
def contacts(path):
    with collidecli.ContactSet.open(path) as contacts:
        yield contacts


def rows_of(edited) -> list[Touch]:
    names = ("shape0", "shape1", "distance")
    columns = [edited.columns[name].tolist() for name in names]
    return [
        Touch(*divmod(cell, edited.worlds), *row) for cell, *row in zip(edited.cell.tolist(), *columns, strict=True)
    ]


def test_one_entry_point(path):
    with collidecli.open_contacts(path) as contacts:
        assert type(contacts) is collidecli.ContactSet
    with pytest.raises(InputError, match="is closed"):
        contacts.column("distance")


def test_it_says_what_it_is_and_which_columns_it_has(contacts, edited, path):
    assert repr(contacts) == f"<ContactSet {path} contacts={len(edited.cell)} frames=7 worlds=3>"
    with pytest.raises(InputError, match=r"(?s)no column 'depth'.*distance, normal"):
        contacts.column("depth")


def test_to_iterate_is_to_go_over_the_blocks(contacts, edited):
    assert sum(block.contact_count for block in contacts) == len(edited.cell)
    some = list(contacts.blocks(max_rows=4, first=5, last=11))
    assert sum(len(block.cell_counts) for block in some) == 6
    assert some[0].first_cell == 5
    assert sum(block.contact_count for block in some) == ((edited.cell >= 5) & (edited.cell < 11)).sum()


def test_columns_are_attributes(contacts, edited):
    whole = contacts.cells(0, contacts.cell_count)
    for column in RIGID_COLUMNS:
        np.testing.assert_array_equal(getattr(whole, column.name), contacts.column(column.name))
        assert getattr(type(whole), column.name).__doc__.startswith(("int32[n", "float32", "uint8[n"))
    assert whole.depth.dtype == np.float32
    assert whole.depth.tolist() == [max(0.0, -distance) for distance in contacts.column("distance").tolist()]
    assert whole.depth.max() > 0.0
    assert whole.cell.tolist() == sorted(edited.cell.tolist())
    frame, world = 2, 1
    alone = contacts.cell(frame, world)
    assert alone.cell.tolist() == [frame * 3 + world] * (edited.cell == frame * 3 + world).sum()
    with pytest.raises(KeyError, match="normal"):
        _ = next(contacts.blocks(names=("shape0",))).normal


def test_pairs_are_counted(contacts, edited):
    pairs = contacts.pairs()
    rows = rows_of(edited)
    expected = {(row.shape0, row.shape1) for row in rows}
    assert set(zip(pairs["row0"].tolist(), pairs["row1"].tolist(), strict=True)) == expected
    assert pairs.row_count == len(expected) > 5
    assert (np.diff(pairs["contacts"]) <= 0).all()
    for n, pair in enumerate(zip(pairs["row0"], pairs["row1"], strict=True)):
        of = [row for row in rows if (row.shape0, row.shape1) == pair]
        assert pairs["contacts"][n] == len(of)
        assert pairs["cells"][n] == len({(row.frame, row.world) for row in of})
        assert pairs["least_distance"][n] == np.float32(min(row.distance for row in of))
        assert (pairs["shape0"][n], pairs["shape1"][n]) == (edited.path[pair[0]], edited.path[pair[1]])


def test_events_are_those_of_plain_python(contacts, edited):
    events = contacts.events(merge_gap=1, threshold=0.01)
    expected = intervals(
        rows_of(edited),
        range(7),
        edited.time.tolist(),
        lambda last, next: next - last <= 2,
        edited.path.__getitem__,
        0.01,
    )
    found = events.to_pandas().to_dict("records")
    for row in found:
        row["end_time"] = row["end_time"] if row["end_known"] else None
    assert ordered(found) == expected
    assert contacts.events(worlds=[9 % 3], frames="2:5")["world"].max() == 0
    with pytest.raises(InputError, match="at least 0"):
        contacts.events(merge_seconds=-1.0)
    with pytest.raises(InputError, match="none of shapes, bodies, particles"):
        contacts.events(by="worlds")


def test_patterns_are_a_text_with_commas_or_a_sequence(contacts):
    """A text was taken for a sequence of patterns of one character each."""
    paths = contacts.shapes.path
    first, second = (f"*{paths[row]}" for row in (contacts.pairs()["row0"][0], contacts.pairs()["row1"][0]))
    for name in ("include", "exclude"):
        text, sequence = (contacts.events(**{name: value}) for value in (f"{first},{second}", [first, second]))
        assert text.row_count == sequence.row_count != contacts.events().row_count
    between = contacts.events(between=f"{first},{second}", threshold="any")
    assert 0 < between.row_count == contacts.events(between=(first, second), threshold=np.inf).row_count
    with pytest.raises(InputError, match="no distance"):
        contacts.events(threshold="all")
    with pytest.raises(InputError, match="merge_seconds"):
        contacts.events(merge_gap="20ms")


@pytest.mark.parametrize(("given", "text"), [(slice(1, 6, 2), "1:6:2"), (slice(None, 4), ":4"), (3, "3"), (-1, "-1")])
def test_frames_are_a_slice_a_number_or_a_text(contacts, given, text):
    assert contacts.to_pandas(given).equals(contacts.to_pandas(text))
    assert contacts.events(frames=given).to_pandas().equals(contacts.events(frames=text).to_pandas())
    with pytest.raises(InputError, match="frames is a float"):
        contacts.to_pandas(3.0)


def test_data_of_pairs_that_patterns_select(contacts):
    whole = contacts.to_pandas()
    wanted = str(whole.shape0.iloc[0])
    has = (whole.shape0 == wanted) | (whole.shape1 == wanted)
    assert 0 < has.sum() < len(whole)
    for kept, options in ((has, {"include": wanted}), (~has, {"exclude": [wanted]})):
        assert contacts.to_pandas(**options).equals(whole[kept].reset_index(drop=True))
        assert contacts.to_xarray(**options).sizes["contact"] == kept.sum()
        some = kept & (whole.frame >= 2)
        assert contacts.to_pandas("2:", **options).equals(whole[some].reset_index(drop=True))
    with pytest.raises(InputError, match="matches no shape"):
        contacts.to_pandas(include="nothing")


def test_export_is_that_of_the_command(contacts, tmp_path):
    wanted = str(contacts.to_pandas().shape0.iloc[0])
    written = contacts.export("csv", tmp_path / "a.csv", include=wanted, frames=slice(1, None))
    assert written == str(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) - 1 == len(contacts.to_pandas("1:", include=wanted)) > 0
    with pytest.raises(InputError, match=r"(?s)no format.*npz"):
        contacts.export("xlsx")
    with pytest.raises(InputError, match=r"(?s)'colour' is no option.*include"):
        contacts.export("npz", tmp_path / "a.npz", colour="red")
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize("frames", ["", "1:6:2", "3"])
def test_frames_of_data(contacts, edited, frames):
    wanted = np.isin(edited.cell // 3, range(7)[{"": slice(None), "1:6:2": slice(1, 6, 2), "3": slice(3, 4)}[frames]])
    order = np.lexsort((*[edited.columns[n] for n in ("feature1", "feature0", "shape1", "shape0")], edited.cell))
    order = order[wanted[order]]
    table, data = contacts.to_pandas(frames), contacts.to_xarray(frames)
    assert len(table) == data.sizes["contact"] == wanted.sum()
    for name in ("frame", "world", "time"):
        cell = edited.cell[order]
        expected = {"frame": cell // 3, "world": cell % 3, "time": edited.time[cell // 3]}[name]
        assert table[name].tolist() == data[name].to_numpy().tolist() == expected.tolist()
    for name, values in edited.columns.items():
        values = values[order]
        np.testing.assert_array_equal(data[name], values)
        assert data[name].dtype == values.dtype
        if name in ("shape0", "shape1"):
            assert table[name].tolist() == [edited.path[row] for row in values]
            continue
        if name == "kind":
            assert table[name].tolist() == [("point", "edge", "face", "patch")[kind] for kind in values]
            continue
        held = table[name] if values.ndim == 1 else table[[f"{name}_{axis}" for axis in "xyz"]]
        np.testing.assert_array_equal(held, values)
    assert data["distance"].attrs["units"] == "m"
    assert data["shape_path"].to_numpy().tolist() == edited.path


def test_a_package_that_is_not_there_is_named(contacts, monkeypatch):
    for package, call in (("pandas", contacts.to_pandas), ("xarray", contacts.to_xarray)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=f"{package}, which is not installed") as error:
            call()
        assert error.value.fix == "pip install 'collidecli[tables]'"
    with pytest.raises(InputError, match="pandas"):
        contacts.pairs().to_pandas()


def test_a_notebook_shows_a_table_with_escaped_texts(edited, tmp_path):
    path = tmp_path / "<b>.h5"
    edited.write(path)
    with h5py.File(path, "r+") as file:
        file.attrs["scene"] = "<script>alert(1)</script>"
    with collidecli.ContactSet.open(path) as contacts:
        shown = contacts._repr_html_()
        cells = dict(re.findall(r"<th [^>]*>([^<]*)</th><td [^>]*>([^<]*)</td>", shown))
        assert cells["contacts"] == str(contacts.contact_count)
        assert cells["frames"] == f"7, 0 to {contacts.time[-1]:.6g} s"
        assert cells["worlds"] == "3"
        assert "optional columns" not in cells
    assert shown.count('style="text-align: left"') == 2 * len(cells)
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "<b>" not in shown
