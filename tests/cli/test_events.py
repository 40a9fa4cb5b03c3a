"""collide events: thresholds, pauses, filters, files that it writes, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from tests.cli.conftest import refusals
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
    assert "<0 to 1" in shown
    assert "5 to 5>" in shown
    assert "1 already touching at the start, 1 still touching at the end\n" in shown


def test_thresholds(events):
    assert events()["contacts"] == {"asked_for": 7, "touching": 6}
    assert events("--threshold", "any")["contacts"]["touching"] == 7
    assert events("--threshold", "-0.005")["contacts"]["touching"] == 4, "a distance of -0.005 is one of at most that"


def test_a_threshold_beyond_the_gap_is_refused(flicker, collide):
    """The gaps are 0.1, 0.2, 0.05, 0.1 and 0.1 m, the larger one counts, and one shape of a pair moves."""
    collide.refused("events a.h5 --threshold 0.21", told="no contacts beyond 0.2 m, the largest gap of a pair")
    assert "only up to their gap (0.1 m)" in collide.ok("events a.h5 --threshold 0.2").err
    for threshold in ("0.1", "any"):
        assert collide("events a.h5 --threshold", threshold).err == ""


def test_pauses_in_frames_and_seconds(events):
    def counts(gap: str) -> list[int]:
        return [one["pauses"] for one in events("--merge-gap", gap)["listed"] if one["shape1"] == "ball"]

    assert counts("0") == counts("0.49s") == [0, 0]
    assert counts("1") == counts("500ms") == [1]


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
    assert pairs("--world", "1") == {("ball", "bøx"), ("ground", "pin")}
    assert pairs("--world", "1", "--frames", ":5") == {("ball", "bøx")}
    bodies = events("--by", "bodies", "--body", "body0", "--graph")
    expected = {("body0", "ground"), ("body0", "body1")}
    for found in (bodies["listed"], bodies["graph"]["edges"]):
        assert {(one["body0"], one["body1"]) for one in found} == expected
        assert not any("shape0" in one for one in found)


@pytest.mark.parametrize(
    ("order", "column", "sign"),
    [
        ("begin", "begin_frame", 1),
        ("duration", "seconds", -1),
        ("depth", "least_distance", 1),
        ("contacts",) * 2 + (-1,),
    ],
)
def test_orders(events, collide, order, column, sign):
    listed = events("--sort", order)["listed"]
    assert listed == sorted(listed, key=lambda one: sign * one[column])
    assert events("--sort", order, "--first", "2")["listed"] == listed[:2]
    shown = collide.ok("events a.h5 --graph --first 2 --sort", order).out
    assert f"{listed[0]['begin_frame']} to {listed[0]['last_frame']}" in shown
    assert f"and {len(listed) - 2} more" in shown


def test_the_graph_alone(flicker, collide):
    shown = collide("events", flicker, "--graph", "--first", "0").out
    assert " to " not in shown.split("touches ")[1]
    assert shown.count("\n ") >= 3, "every pair of the graph"
    assert "more pair" not in shown


def test_files(events, here):
    result = events("--csv", "a.csv", "--parquet", "a.parquet", "--dot", "a.dot")
    assert result["written"] == {"csv": "a.csv", "parquet": "a.parquet", "dot": "a.dot"}
    tables = [pandas.read_csv("a.csv"), pandas.read_parquet("a.parquet")]
    for table in tables:
        rows = [{**row, "end_time": row["end_time"] if row["end_known"] else None} for row in table.to_dict("records")]
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


def test_times_that_do_not_rise_have_no_pauses_in_seconds(here, collide):
    path = touching_set(FLICKER, 6, 2, [0, 1, 2, 1, 2, 3]).write(here / "b.h5")
    collide.ok("events", path, "--merge-gap", "1")
    collide.refused("events", path, "--merge-gap", "1s", told="are not ascending")


def test_a_shape_that_is_not_there(here, collide):
    edited = touching_set(FLICKER, 6, 2)
    edited.columns["shape1"][2] = 17
    collide.refused("events", edited.write(here / "b.h5"), "--csv", "b.csv", told="17 is no row of /model/shape")


def test_no_output_is_replaced(flicker, collide):
    Path("a.csv").write_text("mine")
    collide.refused("events", flicker, "--csv", "a.csv", code=3)
    assert Path("a.csv").read_text() == "mine"
    collide.ok("events", flicker, "--csv", "a.csv", "--force")


def test_parquet_names_its_extra(flicker, collide, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    collide.refused("events", flicker, "--parquet", "a.parquet", told="pip install 'collidecli[tables]'")
