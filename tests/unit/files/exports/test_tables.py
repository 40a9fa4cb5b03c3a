"""CSV and Parquet: the same table, and every number of it the set's own."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as parquet
import pytest

from collidecli.errors import InputError
from collidecli.files.atomic_output import AtomicOutput
from collidecli.files.contacts.reader import ContactSet
from collidecli.files.exports import csv_table, parquet_table
from collidecli.files.exports.rows import FlatTable
from collidecli.files.exports.selection import SelectedContacts
from tests.support.contact_edits import made_up

PICK = (range(1, 7, 2), (0, 2))


@pytest.fixture(scope="module")
def written(select, tmp_path_factory):
    """Paths of the two files."""
    folder = tmp_path_factory.mktemp("tables")
    picked = select(*PICK)
    with AtomicOutput(folder / "a.csv") as output:
        csv_table.write_csv(output, FlatTable(picked))
        output.commit()
    with AtomicOutput(folder / "a.parquet") as output:
        parquet_table.write_parquet(output, FlatTable(picked), {"scene": "made_up.xml"})
        output.commit()
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
    monkeypatch.setattr(csv_table, "BLOCK_LINES", 3)
    with AtomicOutput(tmp_path / "a.csv") as output:
        csv_table.write_csv(output, FlatTable(select(*PICK)))
        output.commit()
    assert (tmp_path / "a.csv").read_bytes() == (written / "a.csv").read_bytes()


def test_names_that_need_quotes(tmp_path):
    edited = made_up()
    edited.path = ['a,"b"', "two\nlines", " spaced", "plain", "e"]
    with ContactSet.open(edited.write(tmp_path / "a.h5")) as contacts:
        table = FlatTable(SelectedContacts(contacts, range(contacts.frame_count), np.arange(3), None))
        with AtomicOutput(tmp_path / "a.csv") as output:
            csv_table.write_csv(output, table)
            output.commit()
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert {row["shape0"] for row in csv.DictReader(file)} <= set(edited.path)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    def missing(name: str):
        raise ImportError(name)

    monkeypatch.setattr(parquet_table, "import_module", missing)
    with pytest.raises(InputError, match="pyarrow") as caught:
        parquet_table.require_pyarrow()
    assert "collidecli[tables]" in caught.value.fix
