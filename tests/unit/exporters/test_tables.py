"""CSV and Parquet: the same table, and every number of it the set's own."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as parquet
import pytest

from collidecli import errors
from collidecli.errors import InputError
from collidecli.exporters.arrays import ContactRows
from collidecli.exporters.selection import SelectedContacts
from collidecli.storage import flat_tables
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import TableColumn, csv_table, parquet_table, require_pyarrow
from tests.support.contact_edits import made_up

PICK = (range(1, 7, 2), (0, 2))


def write(path, rows, table, *about):
    with AtomicOutput(path) as output:
        with table(output, rows.columns, *about) as append:
            for block in rows.blocks():
                append(block)
        output.commit()


@pytest.fixture(scope="module")
def written(select, tmp_path_factory):
    """Paths of the two files."""
    folder = tmp_path_factory.mktemp("tables")
    picked = select(*PICK)
    write(folder / "a.csv", ContactRows(picked), csv_table)
    write(folder / "a.parquet", ContactRows(picked), parquet_table, {"scene": "made_up.xml"})
    return folder


@pytest.fixture(scope="module")
def rows(written):
    with (written / "a.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_contact_and_reads_back_to_the_bit(rows, select, contacts):
    expected = list(select(*PICK).blocks(("shape0", "shape1", "distance", "normal", "point0", "feature1", "kind")))
    columns = {name: np.concatenate([b.columns[name] for b in expected]) for name in expected[0].columns}
    assert len(rows) == len(columns["shape0"])
    paths = contacts.shapes.path
    assert [row["shape0"] for row in rows] == [paths[k] for k in columns["shape0"]]
    assert [row["kind"] for row in rows] == [("point", "edge", "face", "patch")[k] for k in columns["kind"]]
    assert [int(row["feature1"]) for row in rows] == columns["feature1"].tolist()
    for name, values, dtype in (
        ("distance", columns["distance"], np.float32),
        ("normal_z", columns["normal"][:, 2], np.float32),
        ("point0_y", columns["point0"][:, 1], np.float64),
    ):
        assert np.array_equal(np.array([dtype(row[name]) for row in rows]), values), name


def test_frames_worlds_and_bodies(rows, select, contacts):
    picked = select(*PICK)
    counts = np.concatenate([b.cell_counts for b in picked.blocks(())]).reshape(3, 2)
    expected = [(f, w) for i, f in enumerate(PICK[0]) for j, w in enumerate(PICK[1]) for _ in range(counts[i, j])]
    assert [(int(row["frame"]), int(row["world"])) for row in rows] == expected
    assert all(int(row["step"]) == 5 * int(row["frame"]) for row in rows)
    assert all(float(row["time"]) == contacts.time[int(row["frame"])] for row in rows)
    body = {
        path: "" if k < 0 else f"body{k}" for path, k in zip(contacts.shapes.path, contacts.shapes.body, strict=True)
    }
    assert all((row["body0"], row["body1"]) == (body[row["shape0"]], body[row["shape1"]]) for row in rows)


def test_parquet_is_the_same_table(rows, written):
    table = parquet.read_table(written / "a.parquet")
    assert table.column_names == list(rows[0])
    for name in table.column_names:
        values = table[name].to_pylist()
        kind = str if isinstance(values[0], str) else (int if isinstance(values[0], int) else float)
        texts = [row[name] for row in rows]
        single = table.schema.field(name).type == "float"
        assert [np.float32(t) for t in texts] == values if single else [kind(t) for t in texts] == values, name
    assert table.schema.field("distance").metadata == {b"unit": b"m"}
    assert table.schema.metadata[b"scene"] == b"made_up.xml"


def test_blocks_do_not_show(select, monkeypatch, written, tmp_path):
    monkeypatch.setattr(flat_tables, "CSV_LINES", 3)
    write(tmp_path / "a.csv", ContactRows(select(*PICK)), csv_table)
    assert (tmp_path / "a.csv").read_bytes() == (written / "a.csv").read_bytes()


def test_names_that_need_quotes(tmp_path):
    edited = made_up()
    edited.path = ['a,"b"', "two\nlines", " spaced", "plain", "e"]
    with ContactSet.open(edited.write(tmp_path / "a.h5")) as contacts:
        rows = ContactRows(SelectedContacts(contacts, range(contacts.frame_count), np.arange(3), None))
        write(tmp_path / "a.csv", rows, csv_table)
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert {row["shape0"] for row in csv.DictReader(file)} <= set(edited.path)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    def missing(name: str):
        raise ImportError(name)

    monkeypatch.setattr(errors, "import_module", missing)
    with pytest.raises(InputError, match="pyarrow") as caught:
        require_pyarrow("--to parquet")
    assert "collidecli[tables]" in caught.value.fix


def test_every_number_is_spelt_as_numpy_spells_it(tmp_path):
    """Equal numbers are spelt once: among them are 0 and -0, which compare equal, and NaN, which does not."""
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 63, 3000, dtype=np.uint64).view(np.float64)
    values = np.concatenate([bits, 10.0 ** random.uniform(-20, 20, 3000), [0.0, -0.0, 1e16, 1e-4, np.inf, np.nan] * 2])
    with np.errstate(over="ignore"):
        held = {"double": values, "single": values.astype(np.float32), "sign": values > 1.0}
    columns = [TableColumn(name, column.dtype) for name, column in held.items()]
    with AtomicOutput(tmp_path / "a.csv") as output:
        with csv_table(output, columns) as append:
            append(held)
        output.commit()
    lines = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    expected = zip(values.astype(str), held["single"].astype(str), np.where(held["sign"], "true", "false"), strict=True)
    assert lines == [list(line) for line in expected]


def test_no_value_is_an_empty_cell_and_a_null(tmp_path):
    held = {"end": np.array([0.5, np.nan]), "known": np.array([True, False]), "who": np.array([1, 0])}
    columns = (
        TableColumn("end", np.dtype(np.float64), "s", nan_is_none=True),
        TableColumn("known", np.dtype(bool)),
        TableColumn("who", np.dtype(np.int64), words=("a", "b")),
    )
    for name, table in (("a.csv", csv_table), ("a.parquet", parquet_table)):
        with AtomicOutput(tmp_path / name) as output:
            with table(output, columns) as append:
                append(held)
            output.commit()
    assert (tmp_path / "a.csv").read_text() == "end,known,who\n0.5,true,b\n,false,a\n"
    read = parquet.read_table(tmp_path / "a.parquet")
    assert read.to_pydict() == {"end": [0.5, None], "known": [True, False], "who": ["b", "a"]}
