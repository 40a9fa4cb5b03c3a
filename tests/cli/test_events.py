"""collide events and clearance: thresholds, pauses, filters, files that they write, and what they
refuse."""

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from tests.cli.conftest import arrays, refusals
from tests.support.contact_sets import Touch, ordered, touching_set

FLICKER = [
    Touch(0, 0, 0, 1, -0.01),
    Touch(1, 0, 0, 1, -0.02),
    Touch(1, 1, 1, 2, 0.01),
    Touch(3, 0, 0, 1, -0.005),
    Touch(3, 1, 1, 2, -0.001),
    Touch(5, 1, 0, 3, -0.004),
    Touch(5, 1, 0, 3, -0.006),
]


@pytest.fixture
def flicker(here) -> str:
    return touching_set(FLICKER, 6, 2).write(here / "a.h5")


@pytest.fixture
def events(flicker, collide):
    """events(*options): the result of the set FLICKER, of which there is no warning."""

    def call(*options: str) -> dict:
        answer = collide.ok("events a.h5 --json", *options)
        assert answer.err == ""
        return json.loads(answer.out)

    return call


def test_open_ends_are_said(events, collide, flicker):
    first, *_, last = events()["listed"]
    assert (first["begin_known"], first["end_known"], first["end_time"]) == (False, True, 0.5)
    assert (last["begin_known"], last["end_known"], last["end_time"]) == (True, False, None)
    shown = collide("events", flicker).out
    for words in (
        "<0 to 1",
        "5 to 5>",
        "1 already touching at the start, 1 still touching at the end\n",
    ):
        assert words in shown


def test_thresholds(events):
    assert events()["contacts"] == {"asked_for": 7, "touching": 6}
    assert events("--threshold", "any")["contacts"]["touching"] == 7
    assert events("--threshold", "-0.005")["contacts"]["touching"] == 4, (
        "a distance of -0.005 is one of at most that"
    )

    def counts(gap: str) -> list[int]:
        return [
            one["pauses"] for one in events("--merge-gap", gap)["listed"] if one["shape1"] == "ball"
        ]

    assert counts("0") == counts("0.49s") == [0, 0]
    assert counts("1") == counts("500ms") == [1]


def test_a_threshold_beyond_the_gap_is_refused(flicker, collide):
    """The gaps are 0.1, 0.2, 0.05, 0.1 and 0.1 m, the larger one counts, and one shape of a pair
    moves."""
    collide.refused(
        "events a.h5 --threshold 0.21", told="no contacts beyond 0.2 m, the largest gap of a pair"
    )
    assert "only up to their gap (0.1 m)" in collide.ok("events a.h5 --threshold 0.2").err
    for threshold in ("0.1", "any"):
        assert collide("events a.h5 --threshold", threshold).err == ""


def test_filters(events):
    def pairs(*options: str) -> set[tuple[str, str]]:
        return {(one["shape0"], one["shape1"]) for one in events(*options)["listed"]}

    assert pairs() == {("ground", "ball"), ("ball", "bøx"), ("ground", "pin")}
    assert pairs("--include", "b*") == pairs()  # a pattern is of a shape or of its body
    assert pairs("--include", "ball,body1") == {("ground", "ball"), ("ball", "bøx")}
    assert pairs("--exclude", "ground") == {("ball", "bøx")}
    assert pairs("--body", "body1") == {("ball", "bøx")}
    assert pairs("--exclude-body", "body1,body2") == {("ground", "ball")}
    assert pairs("--between", "g*,body2") == {("ground", "pin")}
    both = pairs("--between", "g*,body2", "--between", "ball,b?x")
    assert both == {("ground", "pin"), ("ball", "bøx")}
    assert pairs("--world", "1") == {("ball", "bøx"), ("ground", "pin")}
    assert pairs("--world", "1", "--frames", ":5") == {("ball", "bøx")}
    bodies = events("--by", "bodies", "--body", "body0", "--graph")
    expected = {("body0", "ground"), ("body0", "body1")}
    for found in (bodies["listed"], bodies["graph"]["edges"]):
        assert {(one["body0"], one["body1"]) for one in found} == expected
        assert not any("shape0" in one for one in found)


ORDERS = {"begin": ("begin_frame", 1), "duration": ("seconds", -1), "depth": ("least_distance", 1)}


@pytest.mark.parametrize(
    ("order", "column", "sign"),
    [*((name, *of) for name, of in ORDERS.items()), ("contacts", "contacts", -1)],
)
def test_orders(events, collide, order, column, sign):
    listed = events("--sort", order)["listed"]
    assert listed == sorted(listed, key=lambda one: sign * one[column])
    assert events("--sort", order, "--first", "2")["listed"] == listed[:2]
    shown = collide.ok("events a.h5 --graph --first 2 --sort", order).out
    assert f"{listed[0]['begin_frame']} to {listed[0]['last_frame']}" in shown
    assert f"and {len(listed) - 2} more" in shown


def test_files(events, here):
    result = events("--csv", "a.csv", "--parquet", "a.parquet", "--dot", "a.dot")
    assert result["written"] == {"csv": "a.csv", "parquet": "a.parquet", "dot": "a.dot"}
    tables = [pandas.read_csv("a.csv"), pandas.read_parquet("a.parquet")]
    for table in tables:
        rows = [
            {**row, "end_time": row["end_time"] if row["end_known"] else None}
            for row in table.to_dict("records")
        ]
        for row, said in zip(ordered(rows), ordered(result["listed"]), strict=True):
            assert row.pop("file") == result["file"]
            # A text of a float32 has the digits that make it again as float32.
            assert np.float32(row.pop("least_distance")) == np.float32(said.pop("least_distance"))
            assert row == said
    assert list(tables[0]["last_frame"]) == sorted(tables[0]["last_frame"])
    dot = Path("a.dot").read_text()
    assert dot.count(" -- ") == len(result["graph"]["edges"]) == 3
    assert '"ball" -- "bøx" [label="1 time, 250 ms"' in dot


def test_a_set_without_a_touch(here, collide):
    touching_set([], 3, 1).write(here / "none.h5")
    collide.ok("events none.h5 --graph --csv none.csv --parquet none.parquet")
    assert Path("none.csv").read_text().startswith("file,world,shape0,shape1,begin_frame")
    assert len(pandas.read_parquet("none.parquet")) == 0
    path = touching_set(FLICKER, 6, 2, [0, 1, 2, 1, 2, 3]).write(here / "b.h5")
    collide.ok("events", path, "--merge-gap", "1")
    collide.refused("events", path, "--merge-gap", "1s", told="are not ascending")


test_wrong_arguments = refusals(
    "events a.h5",
    ("--threshold deep", "'deep' is not a length: write a length, as 0.002 or 2mm, or 'any'"),
    ("--threshold nan", "'nan' is not a length: write"),
    ("--merge-gap 2m", "'2m' is neither a number of frames"),
    ("--merge-gap -1s", "'-1s' is neither a number of frames, as 3, nor a time of at least"),
    ("--world one", "'one' is no list of worlds"),
    ("--world 2", "world 2 is not there"),
    ("--frames 9:", "'9:' selects none of 6 frames"),
    ("--include table*", "'table*' matches no shape or body of"),
    ("--include ALL", "a pattern matches whole paths: try '*all*'"),
    ("--body table*", "'table*' matches no body of"),
    ("--between ball,cup", "'cup' matches no shape or body of"),
    ("--between ball,bøx --between ball,cup", "'cup' matches no shape or body of"),
    ("--between ball", "'ball' is not two patterns; write 'A,B'"),
    ("--sort size", "'size' is not one of"),
    ("--by worlds", "'worlds' is not one of"),
    ("--first -1", "-1 is not a whole number"),
    ("--csv x.out --dot x.out", "have one path"),
    needs="flicker",
)


def test_options_from_a_file(here, events):
    lines = ["[events]", 'between = "g*, body2"', 'merge-gap = "50ms"', "first = 1", 'world = "1"']
    (here / "collide.toml").write_text("\n".join(lines))
    result = events()
    assert result["options"]["between"] == ["g*", "body2"]
    assert result["options"]["merge_gap"]["seconds"] == 0.05
    assert [one["shape1"] for one in result["listed"]] == ["pin"]


def test_a_shape_that_is_not_there(here, collide):
    edited = touching_set(FLICKER, 6, 2)
    edited.columns["shape1"][2] = 17
    collide.refused(
        "events", edited.write(here / "b.h5"), "--csv", "b.csv", told="17 is no row of /model/shape"
    )


def test_no_output_is_replaced(flicker, collide):
    Path("a.csv").write_text("mine")
    collide.refused("events", flicker, "--csv", "a.csv", code=3)
    assert Path("a.csv").read_text() == "mine"
    collide.ok("events", flicker, "--csv", "a.csv", "--force")
    shown = collide("events", flicker, "--graph", "--first", "0").out
    assert (" to " in shown.split("touches ")[1], "more pair" in shown) == (False, False)
    assert shown.count("\n ") >= 3, "every pair of the graph"


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
    ("floor", "arm/tip"),
    ("floor", "arm/link"),
    ("floor", "box"),
    ("wall", "arm/tip"),
    ("wall", "arm/link"),
    ("wall", "box"),
    ("arm/tip", "box"),
    ("arm/link", "box"),
]


@pytest.fixture
def cell(tmp_path, collide):
    """The current folder, with cell.xml."""
    (tmp_path / "cell.xml").write_text(SCENE)
    return tmp_path


@pytest.fixture
def called(cell, collide):
    """called(*options): the result of cell.xml."""
    return lambda *options: collide.result("clearance cell.xml", *options)


def of_items(path: str) -> dict[tuple[str, str], np.ndarray]:
    """Distances in the frames of world 0 by the names of an item."""
    held = arrays(path)
    return dict(
        zip(
            zip(held["item_first"], held["item_second"], strict=True),
            held["distance"][:, 0].T,
            strict=True,
        )
    )


def test_distances_of_every_pair_in_every_frame(called):
    found = called("-o", "all.h5")
    counts = [found[name] for name in ("pairs", "items", "measured", "bytes")]
    assert counts == [8, 8, 24, Path("all.h5").stat().st_size]
    held = arrays("all.h5")
    distance = of_items("all.h5")
    with h5py.File("all.h5") as file:
        assert (file.attrs["format"], file["distance"].attrs["unit"]) == ("collide-clearance", "m")
    off = held["point1"] - held["point0"]
    np.testing.assert_allclose(off, held["distance"][..., None] * held["normal"], atol=1e-15)
    np.testing.assert_array_equal(held["pair"][:, 0], np.tile(np.arange(8), (3, 1)))
    assert [*distance] == PAIRS
    np.testing.assert_allclose(distance["floor", "box"], [0.9, 0.2, -0.05], atol=1e-15)
    np.testing.assert_allclose(distance["wall", "arm/tip"], [1.8, 0.8, 0.3], atol=1e-12)
    np.testing.assert_allclose(distance["arm/tip", "box"][0], 0.3, atol=1e-12)
    least = [one["least_distance"] for one in found["listed"]]
    assert least == sorted(least)
    nearest = [
        found["listed"][0][name] for name in ("least_distance", "frame", "time", "shape0", "shape1")
    ]
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
    held = arrays("all.h5")
    distance = held["distance"].reshape(-1)
    point = held["point1"].reshape(-1, 3)
    rows = pandas.read_csv("all.csv", dtype=str)
    np.testing.assert_array_equal(rows["distance"].astype(float), distance)
    np.testing.assert_array_equal(rows["point1_z"].astype(float), point[:, 2])
    assert list(zip(rows["shape0"][:8], rows["shape1"][:8], strict=True)) == PAIRS
    assert rows["time"][::8].tolist() == ["0.0", "0.5", "1.0"]
    table = pytest.importorskip("pyarrow.parquet").read_table("all.parquet")
    np.testing.assert_array_equal(table["distance"].to_numpy(), distance)
    assert table.schema.field("distance").metadata == {b"unit": b"m"}
    assert table.column_names == list(rows)


def test_the_summary_has_pairs_then_distances(cell, collide):
    shown = collide.ok("clearance cell.xml").out
    assert re.search(r"pairs +8, 24 distances measured\n", shown)
    assert re.search(
        r"points +nearest points and normals: --json, and in all frames -o FILE", shown
    )
    assert "nearest points" not in collide.ok("clearance cell.xml -o points.h5").out


def test_chosen_pairs_have_the_distances_of_all_pairs(called):
    called("-o", "all.h5")
    distance = of_items("all.h5")
    found = called("--by", "body", "-o", "body.h5")
    bodies = of_items("body.h5")
    assert [name for name, _ in bodies] == ["arm", "box", "floor", "wall"]
    for (name, _), row in bodies.items():
        of_body = [
            d for pair, d in distance.items() if any(path.split("/")[0] == name for path in pair)
        ]
        np.testing.assert_array_equal(row, np.min(of_body, axis=0))
    assert [one["body"] for one in found["listed"]][:2] == ["box", "floor"]
    between = called("--between", "arm*,wall", "-o", "between.h5")
    truth = np.minimum(distance["wall", "arm/tip"], distance["wall", "arm/link"])
    np.testing.assert_array_equal(arrays("between.h5")["distance"][:, 0, 0], truth)
    assert (between["pairs"], between["items"], between["by"]) == (2, 1, "all")
    top = called("--top", "3", "-o", "top.h5")
    nearest = sorted(PAIRS, key=lambda pair: distance[pair].min())[:3]
    assert [(one["shape0"], one["shape1"]) for one in top["listed"]] == nearest
    for pair, row in of_items("top.h5").items():
        np.testing.assert_array_equal(row, distance[pair])
    assert called("--top", "0")["items"] == len(PAIRS)  # all, as top=0 in Python
    assert called("--by", "all")["listed"][0]["least_distance"] == min(
        row.min() for row in distance.values()
    )


def test_results_do_not_depend_on_how_work_is_divided(called, monkeypatch):
    from collidecli.motions import clearance as clearance_module

    whole = called("--by", "body", "-o", "whole.h5", "--threads", "1")
    monkeypatch.setattr(clearance_module, "QUERIES_AT_ONCE", 1)
    parts = called("--by", "body", "-o", "parts.h5", "--threads", "3")
    assert whole["listed"] == parts["listed"]
    other = arrays("parts.h5")
    for name, values in arrays("whole.h5").items():
        np.testing.assert_array_equal(values, other[name])


def test_several_worlds_have_equal_distances(called):
    found = called(
        "--worlds", "2", "--frames", "1:", "-o", "worlds.h5", "--plot", "chart.svg", "--top", "2"
    )
    assert (found["worlds"], found["frames"]) == (2, 2)
    assert found["series"]["frame"] == [0, 1]
    assert found["series"]["least"][0] == pytest.approx([0.2, -0.05])
    distance = arrays("worlds.h5")["distance"]
    np.testing.assert_array_equal(distance[:, 0], distance[:, 1])
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
    ("cell.xml --top -1", "--top"),
    ("cell.xml --top 2 --by body", "--top"),
    ("cell.xml --margin nan", "--margin"),
    ("cell.xml --compression gzip -o out.csv", "--compression"),
    ("cell.xml --plot out.svg --first 0", "none is listed"),
    ("none.xml", "none.xml"),
    ("", "there is no scene"),
    needs="cell",
)


def test_the_earlier_spelling_of_a_pair_gives_a_note(cell, collide):
    for words in (
        ("arm*", "wall", "cell.xml"),
        ("arm* wall", "cell.xml"),
        ("arm*,wall", "cell.xml"),
    ):
        answer = collide("clearance", "--between", *words)
        assert answer.code == 0
        assert ("write 'arm*,wall'" in answer.err) == (words[0] != "arm*,wall"), answer.err


def test_an_existing_output_is_kept(cell, collide):
    (cell / "out.csv").write_text("mine")
    collide.refused("clearance cell.xml -o out.csv", code=3)
    collide.ok("clearance cell.xml -o out.csv -q --force")
