"""collide events: files that it writes, real runs of the samples, and what it refuses."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest

from collidecli.commands.run import RunRequest, run
from tests.support.contact_sets import Touch, intervals, ordered, touching_set

SAMPLES = Path(__file__).parents[2] / "samples"
FLICKER = [
    Touch(0, 0, 0, 1, -0.01),
    Touch(1, 0, 0, 1, -0.02),
    Touch(1, 1, 1, 2, 0.01),
    Touch(3, 0, 0, 1, -0.005),
    Touch(3, 1, 1, 2, -0.001),
    Touch(5, 1, 0, 3, -0.004),
    Touch(5, 1, 0, 3, -0.006),
]


@pytest.fixture(scope="module")
def humanoid(tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("humanoid") / "out.h5"
    folder = SAMPLES / "02_humanoid"
    scene, motion = str(folder / "humanoid.xml"), str(folder / "motion.h5")
    run(RunRequest(scenes=[scene], trajectory=motion, output=str(output), frames="0:200"))
    return output


@pytest.fixture
def flicker(here) -> str:
    return touching_set(FLICKER, 6, 2).write(here / "a.h5")


@pytest.fixture
def events(flicker, collide):
    """events(*options): the result of the set FLICKER."""

    def call(*options: str) -> dict:
        answer = collide("events", flicker, "--json", *options)
        assert (answer.code, answer.err) == (0, "")
        return json.loads(answer.out)

    return call


def rows_of(path: Path) -> list[Touch]:
    """Every contact, without our reader."""
    with h5py.File(path) as file:
        contacts = file["rigid_contacts"]
        worlds = len(file["model/world/template"])
        cell = np.repeat(np.arange(len(contacts["cell_start"]) - 1), np.diff(contacts["cell_start"][:]))
        columns = [contacts[name][:].tolist() for name in ("shape0", "shape1", "distance")]
    return [Touch(c // worlds, c % worlds, *row) for c, *row in zip(cell.tolist(), *columns, strict=True)]


def test_a_sample_against_plain_python(humanoid, collide, tmp_path):
    with h5py.File(humanoid) as file:
        names, time = [name.decode() for name in file["model/shape/path"]], file["time/time"][:].tolist()
    expected = intervals(rows_of(humanoid), range(200), time, lambda last, next: next - last <= 3, names.__getitem__)
    out = tmp_path / "out.csv"
    answer = collide("events", humanoid, "--merge-gap", "2", "--json", "--first", "100000", "--csv", out)
    result = json.loads(answer.out)
    assert len(expected) > 30
    assert any(one["pauses"] for one in expected)
    assert ordered(result["listed"]) == expected
    with out.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(expected)
    shown = collide("events", humanoid, "--sort", "depth", "--first", "3", "--graph", "--merge-gap", "2")
    assert shown.code == 0
    deepest = min(expected, key=lambda one: one["least_distance"])
    assert f"{deepest['begin_frame']} to {deepest['last_frame']}" in shown.out
    assert f"and {len(expected) - 3} more" in shown.out


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
    refused = collide("events", flicker, "--threshold", "0.21")
    assert (refused.code, refused.out) == (2, "")
    assert "no contacts beyond 0.2 m, the largest gap of a pair" in refused.err
    limited = collide("events", flicker, "--threshold", "0.2")
    assert (limited.code, "only up to their gap (0.1 m)" in limited.err) == (0, True), limited.err
    assert collide("events", flicker, "--threshold", "0.1").err == ""
    assert collide("events", flicker, "--threshold", "any").err == ""


def test_pauses_in_frames_and_seconds(events):
    def counts(gap: str) -> list[int]:
        return [one["pauses"] for one in events("--merge-gap", gap)["listed"] if one["shape1"] == "ball"]

    assert counts("0") == counts("0.49s") == [0, 0]
    assert counts("1") == counts("500ms") == [1]


def test_filters(events):
    def pairs(*options: str) -> set[tuple[str, str]]:
        return {(one["shape0"], one["shape1"]) for one in events(*options)["listed"]}

    assert pairs() == {("ground", "ball"), ("ball", "bøx"), ("ground", "pin")}
    assert pairs("--include", "b*") == {("ground", "ball"), ("ball", "bøx")}
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
        ("contacts", "contacts", -1),
    ],
)
def test_orders(events, order, column, sign):
    listed = [sign * one[column] for one in events("--sort", order)["listed"]]
    assert listed == sorted(listed)
    assert [sign * one[column] for one in events("--sort", order, "--first", "2")["listed"]] == listed[:2]


def test_edges_count_intervals_whose_begin_or_end_is_not_recorded(events):
    """Of the pairs touching in the first frame, never there, and in the last frame."""
    edges = events("--graph")["graph"]["edges"]
    found = sorted((edge["intervals"], edge["unknown_ends"]) for edge in edges)
    assert found == [(1, 0), (1, 1), (2, 1)]


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
    answer = collide("events", "none.h5", "--graph", "--csv", "none.csv", "--parquet", "none.parquet")
    assert answer.code == 0
    assert Path("none.csv").read_text().startswith("file,world,shape0,shape1,begin_frame")
    assert len(pandas.read_parquet("none.parquet")) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threshold", "deep"], "'deep' is neither a length, as 0.002 or 2mm, nor 'any'"),
        (["--threshold", "nan"], "'nan' is neither a length, as 0.002 or 2mm, nor 'any'"),
        (["--merge-gap", "2m"], "'2m' is neither a number of frames"),
        (["--merge-gap", "-1s"], "'-1s' is not a time"),
        (["--world", "one"], "'one' is no list of worlds"),
        (["--world", "2"], "world 2 does not exist"),
        (["--frames", "9:"], "'9:' selects none of 6 frames"),
        (["--include", "table*"], "'table*' matches no shape of"),
        (["--include", "ALL"], "a pattern matches whole paths: try '*all*'"),
        (["--body", "table*"], "'table*' matches no body of"),
        (["--between", "ball,cup"], "'cup' matches no shape or body of"),
        (["--between", "ball"], "1 pattern is given"),
        (["--sort", "size"], "'size' is not one of"),
        (["--by", "worlds"], "'worlds' is not one of"),
        (["--first", "-1"], "-1 is not a whole number"),
        (["--csv", "x.out", "--dot", "x.out"], "have one path"),
    ],
)
def test_wrong_arguments(flicker, collide, arguments, said):
    answer = collide("events", flicker, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("error:") == 1


def test_options_from_a_file(here, events):
    lines = ["[events]", 'between = "g*, body2"', 'merge-gap = "50ms"', "first = 1", 'world = "1"']
    (here / "collide.toml").write_text("\n".join(lines))
    result = events()
    assert result["options"]["between"] == ["g*", "body2"]
    assert result["options"]["merge_gap"]["seconds"] == 0.05
    assert [one["shape1"] for one in result["listed"]] == ["pin"]


def test_times_that_do_not_rise_have_no_pauses_in_seconds(here, collide):
    path = touching_set(FLICKER, 6, 2, [0, 1, 2, 1, 2, 3]).write(here / "b.h5")
    assert collide("events", path, "--merge-gap", "1").code == 0
    answer = collide("events", path, "--merge-gap", "1s")
    assert answer.code == 2
    assert "are not ascending" in answer.err


def test_a_shape_that_is_not_there(here, collide):
    edited = touching_set(FLICKER, 6, 2)
    edited.columns["shape1"][2] = 17
    answer = collide("events", edited.write(here / "b.h5"), "--csv", "b.csv")
    assert answer.code == 2
    assert "17 is no row of /model/shape" in answer.err
    assert not Path("b.csv").exists(), "no half of a table"


def test_no_output_is_replaced(flicker, collide):
    Path("a.csv").write_text("mine")
    assert collide("events", flicker, "--csv", "a.csv").code == 3
    assert Path("a.csv").read_text() == "mine"
    assert collide("events", flicker, "--csv", "a.csv", "--force").code == 0


def test_parquet_names_its_extra(flicker, collide, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = collide("events", flicker, "--parquet", "a.parquet")
    assert answer.code == 2
    assert "pip install 'collidecli[tables]'" in answer.err
