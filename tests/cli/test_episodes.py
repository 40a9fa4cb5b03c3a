"""Demonstrations of unequal lengths: nothing is computed, counted or compared beyond the end of one."""

from __future__ import annotations

import csv
import json

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.storage.contact_sets.check import check_file
from tests.cli.conftest import SCENE
from tests.cli.test_recordings import write_demos

LONG, SHORT = 12, 7
RUN = ("--device", "cpu", "--json", "--gap", "0.2", "--uneven-demos", "hold")
APART, TOUCHING = 0.9, 0.79
"""Heights of the ball over the base [m]: 0.1 apart, 0.01 deep."""


def states(frames: int, begin: int, end: int | None = None) -> np.ndarray:
    """A ball that touches the base in frames begin to end - 1, at 10 frames per second."""
    rows = np.zeros((frames, 1 + 14 + 12))
    rows[:, 0] = np.arange(frames) / 10
    rows[:, 3] = APART
    rows[begin:end, 3] = TOUCHING
    rows[:, [4, 11]] = 1.0
    rows[:, 8] = 9.0
    return rows


@pytest.fixture
def demos(here, collide):
    """demo_0 touches in its frames 4 to 9; demo_1, shorter, from 5 on to its end."""
    write_demos(here / "demos.hdf5", {"demo_0": states(LONG, 4, 10), "demo_1": states(SHORT, 5)})
    assert collide("run", "-t", "demos.hdf5", "-o", "out.h5", *RUN).code == 0
    return here


def table(path) -> list[tuple]:
    with collidecli.ContactSet.open(path) as contacts:
        found = contacts.episodes
        return list(
            zip(found.name, found.world.tolist(), found.first_frame.tolist(), found.frame_count.tolist(), strict=True)
        )


def answered(collide, *args):
    answer = collide(*args, "--json")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_no_contact_is_beyond_the_end(demos, collide):
    assert table("out.h5") == [("demo_0", 0, 0, LONG), ("demo_1", 1, 0, SHORT)]
    with collidecli.ContactSet.open("out.h5") as contacts:
        assert contacts.version == (1, 3)
        counts = np.diff(contacts.cell_start()).reshape(LONG, 2)
    assert counts[:, 0].tolist() == [1] * LONG
    assert counts[:, 1].tolist() == [1] * SHORT + [0] * (LONG - SHORT)
    assert check_file("out.h5") == []
    result = json.loads(collide("run", "-t", "demos.hdf5", "-o", "again.h5", *RUN).out)
    assert (result["contacts"], result["contact_pair_cells"]) == (LONG + SHORT, LONG + SHORT)


def test_contacts_do_not_depend_on_chunks_threads_and_broad_phase(demos, collide):
    for args in (("--chunk-cells", "3"), ("--threads", "2"), ("--broad-phase", "nxn")):
        assert collide("run", "-t", "demos.hdf5", "-o", "other.h5", "--force", *RUN, *args).code == 0
        with collidecli.ContactSet.open("out.h5") as one, collidecli.ContactSet.open("other.h5") as other:
            assert one.content_sha256 == other.content_sha256


def test_events_end_with_their_demonstration(demos, collide):
    result = answered(collide, "events", "out.h5", "--csv", "e.csv")
    keys = ("episode", "begin_frame", "last_frame", "end_known", "end_time", "seconds")
    found = [tuple(one[key] for key in keys) for one in result["listed"]]
    assert found == [
        ("demo_0", 4, 9, True, pytest.approx(1.0), pytest.approx(0.6)),
        ("demo_1", 5, 6, False, None, pytest.approx(0.1)),
    ]
    assert result["frames"]["episodes"] == {"count": 2, "frames": LONG + SHORT, "seconds": pytest.approx(1.7)}
    assert (result["intervals"]["ends"], result["intervals"]["unknown_ends"]) == (1, 1)
    with open("e.csv", newline="") as file:
        assert [row["episode"] for row in csv.DictReader(file)] == ["demo_1", "demo_0"]
    shown = collide("events", "out.h5").out
    assert "1 (demo_1)" in shown
    assert "5 to 6>" in shown
    sliced = answered(collide, "events", "out.h5", "--frames", "6:8")
    assert [(one["episode"], one["begin_known"], one["end_known"]) for one in sliced["listed"]] == [
        ("demo_0", False, False),
        ("demo_1", False, False),
    ]


def test_inspect_report_export_and_python_name_the_demonstration(demos, collide):
    result = answered(collide, "inspect", "out.h5")
    assert [(one["name"], one["frame_count"], one["seconds"]) for one in result["episodes"]] == [
        ("demo_0", LONG, pytest.approx(1.1)),
        ("demo_1", SHORT, pytest.approx(0.6)),
    ]
    assert result["duration"] == pytest.approx(1.7)
    assert result["deepest"]["episode"] == "demo_0"
    assert "world 0 (demo_0)" in collide("inspect", "out.h5").out
    report = answered(collide, "report", "out.h5", "-o", "r.html")
    assert report["demonstrations"] == ["demo_0", "demo_1"]
    assert any("1 of 2 demonstrations end before frame 11" in note for note in report["notes"])
    answered(collide, "export", "out.h5", "--to", "csv", "-o", "c.csv")
    with open("c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["episode"] for row in rows if row["world"] == "1"} == {"demo_1"}
    answered(collide, "export", "out.h5", "--to", "npz", "-o", "c.npz", "--frames", "5:", "--world", "1")
    with np.load("c.npz") as arrays:
        assert [arrays[f"episode_{name}"].tolist() for name in ("name", "world", "first_frame", "frame_count")] == [
            ["demo_1"],
            [1],
            [0],
            [2],
        ]
    with collidecli.ContactSet.open("out.h5") as contacts:
        frame = contacts.to_pandas()
        assert frame["episode"][frame["world"] == 1].unique().tolist() == ["demo_1"]
        assert contacts.to_xarray()["episode"].values[-1] == "demo_0"
        assert contacts.events()["episode"].tolist() == ["demo_0", "demo_1"]


def test_a_slice_of_frames(demos, collide):
    run = ("run", "-t", "demos.hdf5", *RUN)
    assert collide(*run, "-o", "late.h5", "--frames", "8:").code == 0
    assert table("late.h5") == [("demo_0", 0, 0, 4), ("demo_1", 1, 0, 0)]
    assert check_file("late.h5") == []
    assert collide(*run, "-o", "odd.h5", "--frames", "1::2").code == 0
    assert table("odd.h5") == [("demo_0", 0, 0, 6), ("demo_1", 1, 0, 3)]


def test_one_demonstration_in_several_worlds_and_cut_ones(demos, collide):
    assert collide("run", "-t", "demos.hdf5", *RUN, "-o", "two.h5", "--demos", "demo_1", "--worlds", "2").code == 0
    assert table("two.h5") == [("demo_1#0", 0, 0, SHORT), ("demo_1#1", 1, 0, SHORT)]
    assert collide("run", "-t", "demos.hdf5", "--json", "-o", "cut.h5", "--uneven-demos", "cut").code == 0
    assert table("cut.h5") == [("demo_0", 0, 0, SHORT), ("demo_1", 1, 0, SHORT)]


def test_merge_by_frames_is_the_run_of_all(demos, collide):
    for name, frames in (("a.h5", "0:6"), ("b.h5", "6:9"), ("c.h5", "9:")):
        assert collide("run", "-t", "demos.hdf5", *RUN, "-o", name, "--frames", frames).code == 0
    answered(collide, "merge", "c.h5", "a.h5", "b.h5", "-o", "merged.h5")
    assert table("merged.h5") == table("out.h5")
    with collidecli.ContactSet.open("out.h5") as one, collidecli.ContactSet.open("merged.h5") as other:
        assert one.content_sha256 == other.content_sha256
    assert check_file("merged.h5") == []


def test_merge_by_worlds(demos, collide):
    cut = ("run", "-t", "demos.hdf5", "--gap", "0.2", "--uneven-demos", "cut", "--device", "cpu")
    for name, demo, frames in (("a.h5", "demo_0", "0:7"), ("b.h5", "demo_1", "")):
        assert collide(*cut, "-o", name, "--demos", demo, "--frames", frames).code == 0
    answered(collide, "merge", "a.h5", "b.h5", "--worlds", "-o", "m.h5")
    assert table("m.h5") == [("demo_0", 0, 0, SHORT), ("demo_1", 1, 0, SHORT)]
    write_demos(demos / "more.hdf5", {"demo_0": states(SHORT, 2)})
    more = ("run", "-t", "more.hdf5", "--gap", "0.2", "--uneven-demos", "cut", "--device", "cpu", "-o", "c.h5")
    assert collide(*more, "--demos", "demo_0").code == 0
    answered(collide, "merge", "a.h5", "c.h5", "--worlds", "-o", "n.h5")
    assert table("n.h5") == [("demo_0#0", 0, 0, SHORT), ("demo_0#1", 1, 0, SHORT)]
    assert check_file("n.h5") == []


def test_a_converted_recording_keeps_its_demonstrations(demos, collide):
    (demos / "scene.xml").write_text(SCENE)
    assert collide("traj", "convert", "demos.hdf5", "--uneven-demos", "hold", "-o", "m.h5").code == 0
    assert collide("check", "m.h5").code == 0
    assert collide("run", "scene.xml", "-t", "m.h5", "-o", "again.h5", "--gap", "0.2", "--device", "cpu").code == 0
    assert table("again.h5") == table("out.h5")
    with collidecli.ContactSet.open("out.h5") as one, collidecli.ContactSet.open("again.h5") as other:
        assert one.cell_start().tolist() == other.cell_start().tolist()
    with h5py.File("m.h5", "a") as file:
        file["episode/world"][1] = 5
    assert "episode/world, row 1: is no world" in collide("check", "m.h5").out


def test_a_difference_of_length_is_a_difference(demos, collide):
    assert collide("run", "-t", "demos.hdf5", *RUN, "-o", "same.h5").code == 0
    assert collide("diff", "out.h5", "same.h5").code == 0
    # Without contacts in its last frame the contacts are equal, and only the lengths differ.
    longer = {"demo_0": states(LONG, 4, 10), "demo_1": np.concatenate([states(SHORT, 5), states(SHORT + 1, 5)[-1:]])}
    longer["demo_1"][-1, 1] = 7.0
    write_demos(demos / "demos.hdf5", longer)
    assert collide("run", "-t", "demos.hdf5", *RUN, "-o", "longer.h5").code == 0
    answer = collide("diff", "out.h5", "longer.h5")
    assert answer.code == 1
    assert "1 frame of a demonstration only in B" in " ".join(answer.out.split())


@pytest.mark.parametrize(
    ("column", "row", "value", "words"),
    [
        ("name", 1, "demo_0", "name, row 1: is the name of an earlier episode"),
        ("world", 1, 2, "world, row 1: is no world"),
        ("world", 1, 0, "first_frame, row 1: is before the end of another episode"),
        ("first_frame", 0, -1, "first_frame, row 0: is no frame"),
        ("frame_count", 0, LONG + 1, "frame_count, row 0: exceeds the frames"),
        ("frame_count", 1, SHORT - 1, "has contacts outside every episode"),
    ],
)
def test_check_and_verbs_refuse_a_broken_table(demos, collide, column, row, value, words):
    with h5py.File("out.h5", "a") as file:
        file[f"episode/{column}"][row] = value
    answer = collide("check", "out.h5")
    assert answer.code == 1
    assert words in " ".join(answer.out.split())
    for verb in ("inspect", "events", "report") if "outside" not in words else ():
        refused = collide(verb, "out.h5", *(("-o", "r.html") if verb == "report" else ()))
        assert (refused.code, refused.out) == (2, "")


def test_ids_do_not_pass_an_end(demos, collide):
    assert collide("run", "-t", "demos.hdf5", *RUN, "-o", "ids.h5", "--contact-ids").code == 0
    with collidecli.ContactSet.open("ids.h5") as contacts:
        assert contacts.contact_count == LONG + SHORT
        assert set(contacts.column("contact_id").tolist()) == {0}
