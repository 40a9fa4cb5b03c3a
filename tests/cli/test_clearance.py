"""collide clearance: its outputs agree with each other and with exact distances; bad input has one message."""

from __future__ import annotations

import csv
from pathlib import Path

import h5py
import numpy as np
import pytest

import collidecli
from tests.cli.conftest import refusals

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="wall" type="box" size="0.1 1 1" pos="2 0 1"/>
    <body name="arm"><freejoint/>
      <geom name="arm/tip" type="sphere" size="0.1"/>
      <geom name="arm/link" type="capsule" size="0.05 0.2" pos="-0.5 0 0" euler="0 90 0"/>
    </body>
    <body name="box"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1"/></body>
  </worldbody>
  <keyframe>
    <key time="0.0" qpos="0 0 1 1 0 0 0  0.5 0 1 1 0 0 0"/>
    <key time="0.5" qpos="1 0 1 1 0 0 0  1.0 0 0.3 1 0 0 0"/>
    <key time="1.0" qpos="1.5 0 1 1 0 0 0  1.0 0 0.05 1 0 0 0"/>
  </keyframe>
</mujoco>
"""
PAIRS = [
    ("floor", "arm/tip"), ("floor", "arm/link"), ("floor", "box"), ("wall", "arm/tip"), ("wall", "arm/link"),
    ("wall", "box"), ("arm/tip", "box"), ("arm/link", "box"),
]  # fmt: skip


@pytest.fixture
def cell(tmp_path, collide):
    """The current folder, with cell.xml."""
    (tmp_path / "cell.xml").write_text(SCENE)
    return tmp_path


@pytest.fixture
def called(cell, collide):
    """called(*options): the result of cell.xml."""
    return lambda *options: collide.result("clearance cell.xml", *options)


def test_distances_of_every_pair_in_every_frame(called):
    found = called("-o", "all.h5")
    assert (found["pairs"], found["items"], found["measured"], found["bytes"]) == (
        8,
        8,
        24,
        Path("all.h5").stat().st_size,
    )
    with h5py.File("all.h5") as file:
        names = list(zip(*(file[f"item_{n}"].asstr()[:] for n in ("first", "second")), strict=True))
        distance = dict(zip(names, file["distance"][:, 0].T, strict=True))
        assert file.attrs["format"] == "collide-clearance"
        assert file["distance"].attrs["unit"] == "m"
        off = file["point1"][:] - file["point0"][:]
        np.testing.assert_allclose(off, file["distance"][:][..., None] * file["normal"][:], atol=1e-15)
        np.testing.assert_array_equal(file["pair"][:, 0], np.tile(np.arange(8), (3, 1)))
    assert names == PAIRS
    np.testing.assert_allclose(distance["floor", "box"], [0.9, 0.2, -0.05], atol=1e-15)
    np.testing.assert_allclose(distance["wall", "arm/tip"], [1.8, 0.8, 0.3], atol=1e-12)
    np.testing.assert_allclose(distance["arm/tip", "box"][0], 0.3, atol=1e-12)
    least = [one["least_distance"] for one in found["listed"]]
    assert least == sorted(least)
    nearest = [found["listed"][0][name] for name in ("least_distance", "frame", "time", "shape0", "shape1")]
    assert nearest == [pytest.approx(-0.05), 2, 1.0, "floor", "box"]


def test_least_distances_equal_those_of_the_contact_set_where_pairs_touch(called, collide):
    collide.ok("run cell.xml -o contacts.h5 --margin 0.01 -q")
    found = called("--margin", "0.01")["listed"][0]
    with collidecli.open_contacts("contacts.h5") as contacts:
        pairs = contacts.pairs()
        assert [pairs["shape0"][0], pairs["shape1"][0]] == [found["shape0"], found["shape1"]]
        assert pairs["least_distance"][0] == pytest.approx(found["least_distance"], abs=1e-7)
    assert found["least_distance"] == pytest.approx(-0.07)


def test_tables_have_the_rows_of_the_file(called):
    called("-o", "all.h5")
    called("-o", "all.csv")
    called("-o", "all.parquet")
    with h5py.File("all.h5") as file:
        distance, point = file["distance"][:].reshape(-1), file["point1"][:].reshape(-1, 3)
    rows = list(csv.DictReader(Path("all.csv").read_text(encoding="utf-8").splitlines()))
    np.testing.assert_array_equal([float(row["distance"]) for row in rows], distance)
    np.testing.assert_array_equal([float(row["point1_z"]) for row in rows], point[:, 2])
    assert [(row["shape0"], row["shape1"]) for row in rows[:8]] == PAIRS
    assert [row["time"] for row in rows[::8]] == ["0.0", "0.5", "1.0"]
    table = pytest.importorskip("pyarrow.parquet").read_table("all.parquet")
    np.testing.assert_array_equal(table["distance"].to_numpy(), distance)
    assert table.schema.field("distance").metadata == {b"unit": b"m"}
    assert table.column_names == list(rows[0])


def test_bodies_selections_and_nearest_pairs_are_parts_of_all_pairs(called):
    called("-o", "all.h5")
    with h5py.File("all.h5") as file:
        distance = dict(zip(PAIRS, file["distance"][:, 0].T, strict=True))
    found = called("--by", "body", "-o", "body.h5")
    with h5py.File("body.h5") as file:
        bodies = file["item_first"].asstr()[:].tolist()
        assert bodies == ["arm", "box", "floor", "wall"]
        for name, row in zip(bodies, file["distance"][:, 0].T, strict=True):
            of_body = [d for pair, d in distance.items() if any(path.split("/")[0] == name for path in pair)]
            np.testing.assert_array_equal(row, np.min(of_body, axis=0))
    assert [one["body"] for one in found["listed"]][:2] == ["box", "floor"]
    between = called("--between", "arm*,wall", "-o", "between.h5")
    with h5py.File("between.h5") as file:
        truth = np.minimum(distance["wall", "arm/tip"], distance["wall", "arm/link"])
        np.testing.assert_array_equal(file["distance"][:, 0, 0], truth)
    assert (between["pairs"], between["items"], between["by"]) == (2, 1, "all")
    top = called("--top", "3", "-o", "top.h5")
    nearest = sorted(PAIRS, key=lambda pair: distance[pair].min())[:3]
    assert [(one["shape0"], one["shape1"]) for one in top["listed"]] == nearest
    with h5py.File("top.h5") as file:
        for first, second, row in zip(
            *(file[f"item_{n}"].asstr()[:] for n in ("first", "second")), file["distance"][:, 0].T, strict=True
        ):
            np.testing.assert_array_equal(row, distance[first, second])
    assert called("--by", "all")["listed"][0]["least_distance"] == min(row.min() for row in distance.values())


def test_results_do_not_depend_on_threads_and_frames_of_a_block(called, monkeypatch):
    from collidecli.commands import clearance

    whole = called("--by", "body", "-o", "whole.h5", "--threads", "1")
    monkeypatch.setattr(clearance, "QUERIES_AT_ONCE", 1)
    parts = called("--by", "body", "-o", "parts.h5", "--threads", "3")
    assert whole["listed"] == parts["listed"]
    with h5py.File("whole.h5") as one, h5py.File("parts.h5") as other:
        for name in one:
            np.testing.assert_array_equal(one[name][:], other[name][:])


def test_several_worlds_and_a_chart(called):
    found = called("--worlds", "2", "--frames", "1:", "-o", "worlds.h5", "--plot", "chart.svg", "--top", "2")
    assert (found["worlds"], found["frames"]) == (2, 2)
    assert found["series"]["frame"] == [0, 1]
    assert found["series"]["least"][0] == pytest.approx([0.2, -0.05])
    with h5py.File("worlds.h5") as file:
        np.testing.assert_array_equal(file["distance"][:, 0], file["distance"][:, 1])
    assert Path("chart.svg").read_text(encoding="utf-8").startswith("<?xml")


test_bad_input = refusals(
    "clearance",
    ("cell.xml --between nothing wall", "'nothing' matches no shape and no body"),
    ("cell.xml --between wall floor", "no pair of shapes may touch"),
    ("cell.xml --between wall", "not two patterns"),
    ("cell.xml --between arn,wall", "did you mean"),
    ("cell.xml -o out.txt", "extension"),
    ("cell.xml -o cell.xml", "extension"),
    ("cell.xml --plot out.pdf", "extension"),
    ("cell.xml --top 0", "--top"),
    ("cell.xml --top 2 --by body", "--top"),
    ("cell.xml --margin nan", "--margin"),
    ("cell.xml --compression gzip -o out.csv", "--compression"),
    ("cell.xml --plot out.svg --first 0", "none is listed"),
    ("none.xml", "none.xml"),
    ("", "there is no scene"),
    needs="cell",
)


def test_the_earlier_spelling_of_a_pair_gives_a_note(cell, collide):
    for words in (("arm*", "wall", "cell.xml"), ("arm* wall", "cell.xml"), ("arm*,wall", "cell.xml")):
        answer = collide("clearance", "--between", *words)
        assert answer.code == 0
        assert ("write 'arm*,wall'" in answer.err) == (words[0] != "arm*,wall"), answer.err


def test_an_existing_output_is_kept(cell, collide):
    (cell / "out.csv").write_text("mine")
    collide.refused("clearance cell.xml -o out.csv", code=3)
    collide.ok("clearance cell.xml -o out.csv -q --force")
