"""`collide run --sweep` on the command line: its table, its summary, any execution, and refused input."""

import json

import numpy as np
import pandas
import pytest

from collidecli.commands.view import ViewRequest, opened_view
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.trajectories.writer import TrajectoryWriter

SCENE = """<mujoco><worldbody>
<geom name="wall" type="box" size="0.0005 1 1"/>
<body name="bullet" pos="-5 0 0"><freejoint/><geom name="bullet" type="sphere" size="0.004"/></body>
<body name="bar" pos="0 0 3"><freejoint/><geom name="bar" type="capsule" size="0.05 0.6" pos="0.3 0 0"/></body>
<body name="post" pos="1 0 3"><freejoint/><geom name="post" type="box" size="0.1 0.1 0.4"/></body>
</worldbody></mujoco>"""
FRAMES = 24
NAMES = ("bullet", "bar", "post")


def poses() -> np.ndarray:
    """A bullet at 100 m/s in frames of 1/60 s, and a bar that turns by 1.1 rad a frame through a post."""
    frame = np.arange(FRAMES)
    found = np.zeros((FRAMES, 1, 3, 7))
    found[..., 6] = 1.0
    found[:, 0, 0, 0] = -9.5 + 100.0 / 60.0 * frame
    found[:, 0, 1, 2], found[:, 0, 2, 2], found[:, 0, 2, 0] = 3.0, 3.0, 0.35
    found[:, 0, 1, 5], found[:, 0, 1, 6] = np.sin(0.55 * frame + 0.3), np.cos(0.55 * frame + 0.3)
    return found


def write_motion(path, values: np.ndarray) -> None:
    with TrajectoryWriter(path, world_count=1, body_names=NAMES) as writer:
        writer.append(np.arange(len(values)) / 60.0, np.arange(len(values)), body_q=values)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(SCENE)
    write_motion("motion.h5", poses())
    return tmp_path


def rows_of(path) -> tuple[dict[str, np.ndarray], np.ndarray, ContactSet]:
    with ContactSet.open(path) as contacts:
        table = contacts.groups["sweep"]
        columns = {column.name: table.column(column.name) for column in table.columns}
        return columns, np.repeat(np.arange(contacts.cell_count), np.diff(table.cell_start())), contacts


def test_the_table_and_the_summary(folder, collide):
    answer = collide("run", "scene.xml", "-t", "motion.h5", "--sweep", "--json", "-o", "out.h5")
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    columns, frame, contacts = rows_of("out.h5")
    assert check_file("out.h5") == []
    assert contacts.version == (1, 4)
    assert result["sweep"] == {
        "touches": len(frame),
        "tunnels": int(columns["tunnel"].sum()),
        "undecided": 0,
    }
    assert result["groups"]["sweep"]["rows"] == len(frame)
    assert result["groups"]["sweep"]["deepest"]["distance"] == columns["least"].min()
    shot = (columns["shape0"] == 0) & (columns["shape1"] == 1)
    assert shot.sum() == 1
    time = (frame[shot][0] + columns["enter"][shot][0]) / 60.0
    assert time == pytest.approx((9.5 - 0.0045) / 100.0, abs=1e-6)
    assert columns["tunnel"][shot].tolist() == [1]
    assert contacts.config["sweep"] is True
    assert "sweep_tolerance" not in contacts.config
    shown = collide("run", "scene.xml", "-t", "motion.h5", "--sweep", "-o", "out.h5", "--force")
    assert f"1 touch missed by the frame rate, of {len(frame)} in steps" in shown.out


def test_the_contacts_in_frames_are_those_without_sweep(folder, collide):
    for name, more in (("a.h5", ()), ("b.h5", ("--sweep",))):
        assert collide("run", "scene.xml", "-t", "motion.h5", "-o", name, *more).code == 0
    with ContactSet.open("a.h5") as one, ContactSet.open("b.h5") as other:
        assert one.version == (1, 3)
        assert list(one.groups) == []
        for name in ("cell_start", *one.column_names):
            assert np.array_equal(one.column(name), other.column(name))


def test_bits_do_not_depend_on_the_execution(folder, collide):
    hashes = set()
    for more in (
        (),
        ("--chunk-cells", "1", "--threads", "2"),
        ("--chunk-cells", "5", "--threads", "1"),
        ("--broad-phase", "sap"),
        ("--broad-phase", "nxn", "--memory-limit", "64MiB"),
    ):
        run = ("run", "scene.xml", "-t", "motion.h5", "--sweep", "-o", "o.h5", "--force", "--json", "--worlds", "3")
        answer = collide(*run, *more)
        assert answer.code == 0, answer.err
        hashes.add(json.loads(answer.out)["content_sha256"])
    assert len(hashes) == 1


def test_worlds_of_one_recording_have_equal_rows(folder, collide):
    assert collide("run", "scene.xml", "-t", "motion.h5", "--sweep", "--worlds", "2", "-o", "two.h5").code == 0
    columns, cell, _ = rows_of("two.h5")
    for values in columns.values():
        assert np.array_equal(values[cell % 2 == 0], values[cell % 2 == 1])
    assert len(cell) > 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--sweep", "--sweep-tolerance", "0"), "sweep_tolerance is 0"),
        (("--sweep", "--sweep-tolerance", "-1e-6"), "-1e-6"),
        (("--sweep", "--sweep-tolerance", "nan"), "nan"),
        (("--sweep-tolerance", "1mm"), "--sweep"),
        (("--sweep", "--frames", "3"), "has one frame"),
        (("--sweep", "--frames", "::2"), "body 'bar' rotates by half a turn"),
    ],
)
def test_bad_input_is_refused(folder, collide, more, message):
    values = poses()
    values[:, 0, 1, 5], values[:, 0, 1, 6] = (
        np.sin(np.pi / 4 * np.arange(FRAMES)),
        np.cos(np.pi / 4 * np.arange(FRAMES)),
    )
    write_motion("quarter.h5", values)
    answer = collide("run", "scene.xml", "-t", "quarter.h5", "-o", "out.h5", *more)
    assert answer.code == 2
    assert message in answer.err
    assert not (folder / "out.h5").exists()


def test_events_join_the_touches_of_consecutive_steps(folder, collide):
    values = np.zeros((4, 1, 3, 7))
    values[..., 6], values[:, 0, 1, 1], values[:, 0, 2, 1] = 1.0, 50.0, 90.0
    values[:, 0, 0, 0] = [-0.01, -0.002, 0.002, 0.05]  # the ball touches the wall from -0.0045 to 0.0045
    write_motion("slow.h5", values)
    assert collide("run", "scene.xml", "-t", "slow.h5", "--sweep", "-o", "out.h5").code == 0
    answer = collide("events", "out.h5", "--sweep", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)["between_frames"]
    assert (found["count"], found["missed"], found["undecided"]) == (1, 0, 0)
    (one,) = found["listed"]
    assert (one["frame"], one["world"], one["shape0"], one["shape1"]) == (0, 0, "wall", "bullet")
    assert one["begin_time"] == pytest.approx((0.0055 / 0.008) / 60.0, abs=1e-5)
    assert one["end_time"] == pytest.approx((2.0 + 0.0025 / 0.048) / 60.0, abs=1e-5)
    assert not one["missed"]
    shown = collide("events", "out.h5", "--sweep", "--by", "bodies").out
    assert "1 touch with times between frames, 0 in no frame" in shown
    none = json.loads(collide("events", "out.h5", "--sweep", "--include", "post", "--json").out)["between_frames"]
    assert none == {"count": 0, "missed": 0, "undecided": 0, "listed": []}


def test_tables_of_events_have_the_times_between_frames(folder, collide):
    """A touch in frames has begin and end of those in --json that overlap it; missed ones are rows at the end."""
    run = ("run", "scene.xml", "-t", "motion.h5", "--sweep", "--worlds", "2", "-o", "out.h5")
    assert collide(*run).code == 0
    for options in ((), ("--by", "bodies"), ("--merge-gap", "3"), ("--threshold", "any"), ("--frames", "5:20")):
        words = ("events", "out.h5", "--sweep", "--first", "1000", *options, "--csv", "t.csv", "--force", "--json")
        answer = collide(*words, "--parquet", "t.parquet")
        assert answer.code == 0, answer.err
        found = json.loads(answer.out)
        table = pandas.read_csv("t.csv")
        assert table["missed"].sum() == found["between_frames"]["missed"] > 0
        assert len(table) == found["intervals"]["count"] + found["between_frames"]["missed"]
        assert len(pandas.read_parquet("t.parquet")) == len(table)
        assert table["missed"].is_monotonic_increasing
        names = [name for name in table.columns if name[:-1] in ("shape", "body")]
        with ContactSet.open("out.h5") as contacts:
            time = contacts.time
        for row in table.to_dict("records"):
            pair = [
                one for one in found["between_frames"]["listed"] if all(one[n] == row[n] for n in (*names, "world"))
            ]
            if row["missed"]:
                (one,) = [one for one in pair if one["begin_time"] == row["begin_time"] == row["enter_time"]]
                assert (one["missed"], one["end_time"], row["contacts"]) == (True, row["leave_time"], 0)
                assert time[row["begin_frame"]] <= row["enter_time"] <= time[row["begin_frame"] + 1]
                continue
            first, last = row["begin_time"], time[row["last_frame"]]
            held = [one for one in pair if one["end_time"] >= first and one["begin_time"] <= last]
            if not held:
                assert np.isnan(row["enter_time"])
                assert options == ("--threshold", "any")
                continue
            assert row["enter_time"] == min(one["begin_time"] for one in held)
            assert row["leave_time"] == max(one["end_time"] for one in held)
    assert collide("events", "out.h5", "--csv", "plain.csv").code == 0
    assert "missed" not in pandas.read_csv("plain.csv")


def test_events_of_a_set_without_sweep(folder, collide):
    assert collide("run", "scene.xml", "-t", "motion.h5", "-o", "out.h5").code == 0
    answer = collide("events", "out.h5", "--sweep")
    assert answer.code == 2
    assert "no contacts between frames" in answer.err
    assert "between_frames" not in json.loads(collide("events", "out.h5", "--json").out)


def test_parts_of_a_motion_are_not_merged(folder, collide):
    for name, frames in (("a.h5", ":12"), ("b.h5", "12:")):
        assert collide("run", "scene.xml", "-t", "motion.h5", "--sweep", "--frames", frames, "-o", name).code == 0
    answer = collide("merge", "a.h5", "b.h5", "-o", "c.h5")
    assert answer.code == 2
    assert "none between its frames and those of another set" in answer.err


def test_the_report_lists_missed_touches(folder, collide):
    assert collide("run", "scene.xml", "-t", "motion.h5", "--sweep", "-o", "out.h5").code == 0
    answer = collide("report", "out.h5", "-o", "out.html", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)["between_frames"]
    assert found["missed"] == 1
    text = (folder / "out.html").read_text()
    assert "Between frames" in text
    assert f"{found['count']} touches, 1 of them in no recorded frame." in text
    none = json.loads(collide("report", "out.h5", "-o", "b.html", "--include", "post", "--json").out)
    assert none["between_frames"]["missed"] == 0


def test_a_view_draws_the_touches_that_the_frames_miss(folder, collide):
    """In the frame before, after the contacts of the frame; what the frames have is drawn once."""
    assert collide("run", "scene.xml", "-t", "motion.h5", "--sweep", "-o", "out.h5").code == 0
    columns, frame, _ = rows_of("out.h5")
    missed = np.flatnonzero(columns["tunnel"] == 1)
    assert 0 < len(missed) < len(frame)
    with opened_view(ViewRequest("out.h5")) as view:
        for index in range(FRAMES):
            drawn = view.frames.contacts(index, 0)
            with ContactSet.open("out.h5") as contacts:
                held = contacts.cells(index, index + 1, tuple(drawn)).columns
            rows = missed[frame[missed] == index]
            for name, values in drawn.items():
                added = columns["least" if name == "distance" else name][rows]
                assert np.array_equal(values, np.concatenate([held[name], added.astype(values.dtype)])), name
        deepest = max(-columns["least"].min(), view.touches.deepest)
        assert view.touches.deepest == pytest.approx(deepest)
