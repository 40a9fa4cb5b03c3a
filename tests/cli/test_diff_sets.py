"""collide diff: models, frames and worlds edited by hand; reports, settings and refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

from collidecli.scene.options import REDUCTION_DEFAULTS
from tests.support.contact_edits import Edited, made_up
from tests.support.diff_results import counts, nothing_but_contacts, where


def test_a_renamed_shape(diff):
    a, b = made_up(), made_up()
    b.path[3] = "needle"
    result = diff(a, b)
    assert counts(result) == (0, 0, 0)
    (found,) = result["model"]["listed"]
    assert (found["kind"], found["path"], found["a"], found["b"]) == ("renamed", "pin", "pin", "needle")
    assert diff(a, b, "--rename", "pin=needle")["equal"]


def test_a_whole_scene_renamed(diff):
    a, b = made_up(), made_up()
    a.path, b.path = [f"/World/{p}" for p in a.path], [f"/Scene/{p}" for p in b.path]
    result = diff(a, b)
    assert {one["kind"] for one in result["model"]["listed"]} == {"renamed"}
    assert (result["model"]["differences"], counts(result)) == (5, (0, 0, 0))
    assert diff(a, b, "--rename", "/World=/Scene")["equal"]


def test_a_shape_removed(diff):
    a = made_up()
    b = a.rows((a.columns["shape0"] != 4) & (a.columns["shape1"] != 4)).copy()
    b.path, b.type = b.path[:4], b.type[:4]
    b.body, b.margin, b.gap = b.body[:4], b.margin[:4], b.gap[:4]
    lost = len(a.cell) - len(b.cell)
    result = diff(a, b)
    assert [(one["kind"], one["path"]) for one in result["model"]["listed"]] == [("removed", "egg")]
    assert counts(result) == (lost, 0, 0)
    assert {name for one in result["pairs"]["listed"] for name in (one["shape0"], one["shape1"])} >= {"egg"}
    assert all("egg" in (one["shape0"], one["shape1"]) for one in result["pairs"]["listed"])
    back = diff(b, a)
    assert [(one["kind"], one["path"]) for one in back["model"]["listed"]] == [("added", "egg")]
    assert counts(back) == (0, lost, 0)
    assert diff(a, b, "--exclude", "egg")["equal"]


def test_a_margin_changed(diff):
    a, b = made_up(), made_up()
    b.margin = b.margin.copy()
    b.margin[2] += 0.5
    result = diff(a, b)
    (found,) = result["model"]["listed"]
    assert (found["path"], found["what"]) == ("bøx", "margin")
    assert found["b"] - found["a"] == pytest.approx(0.5)
    assert counts(result) == (0, 0, 0)
    assert diff(a, b, "--atol", "margin=0.6")["equal"]


def test_a_frame_that_is_not_there(diff):
    a = made_up()
    b = a.rows(a.cell < 5 * a.worlds)
    b.step, b.time = a.step[:5], a.time[:5]
    result = diff(a, b)
    assert counts(result) == (0, 0, 0)
    assert result["frames"]["only_a"] == 1
    assert result["frames"]["first_only_a"] == {"frame": 5, "step": 25, "time": a.time[5]}
    assert diff(b, a)["frames"]["only_b"] == 1


def test_frames_are_matched_by_step(diff):
    a = made_up()
    late = a.rows(a.cell >= 2 * a.worlds)
    late = Edited(**{**vars(late), "cell": late.cell - 2 * a.worlds, "step": a.step[2:], "time": a.time[2:]})
    late.columns["distance"] = late.columns["distance"].copy()
    late.columns["distance"][0] += 0.5
    result = diff(a, late)
    assert (result["frames"]["by"], result["frames"]["compared"], result["frames"]["only_a"]) == ("step", 4, 2)
    assert counts(result) == (0, 0, 1)
    assert (result["first"]["frame_a"], result["first"]["frame_b"]) == (2, 0)


def without_first_frames(a: Edited, count: int) -> Edited:
    """The set that begins `count` frames later."""
    late = a.rows(a.cell >= count * a.worlds).copy()
    return replace(late, cell=late.cell - count * a.worlds, step=a.step[count:], time=a.time[count:])


@pytest.mark.parametrize("by", ["step", "time"])
@pytest.mark.parametrize("earlier", [1, 2, 4])
def test_a_file_b_that_begins_before_a(diff, by, earlier):
    b = made_up()
    a = without_first_frames(b, earlier)
    if by == "time":
        a.step = a.step + 1000
    result = diff(a, b)
    frames = result["frames"]
    assert (frames["by"], frames["compared"], frames["only_a"], frames["only_b"]) == (by, 6 - earlier, 0, earlier)
    assert frames["first_only_b"] == {"frame": 0, "step": 0, "time": 0.0}
    assert counts(result) == (0, 0, 0)
    assert result["contacts"]["matched"] == len(a.cell)
    last = len(a.cell) - 1
    a.columns["distance"][last] += 0.5
    result = diff(a, b)
    assert counts(result) == (0, 0, 1)
    frame, world = divmod(int(a.cell[last]), a.worlds)
    for place in (result["first"], result["differences"][0]):
        assert (place["frame_a"], place["frame_b"], place["world"]) == (frame, frame + earlier, world)
        assert place["time"] == a.time[frame]
        assert place["step"] == a.step[frame]
    assert result["differences"][0]["fields"]["distance"]["a"] > result["differences"][0]["fields"]["distance"]["b"]


def test_a_contact_of_a_frame_before_a_is_no_difference(diff):
    b = made_up()
    a = without_first_frames(b, 2)
    b = b.rows(np.arange(len(b.cell)) != 0)
    assert b.cell[0] < 2 * b.worlds
    assert counts(diff(a, b)) == (0, 0, 0)
    assert counts(diff(a, b, "--match-frames", "index")) != (0, 0, 0)


BALL = '<body name="ball" pos="0 0 2"><freejoint/><geom name="ball" type="sphere" size="0.3" margin="0.01"/></body>'


def test_runs_of_scenes_whose_shapes_are_in_another_order(here, collide):
    """Geoms of the world come first in MuJoCo's model, so the base belongs to a static body."""
    static = '<body name="stand"><geom name="base" type="sphere" size="0.5" margin="0.04"/></body>'
    for name, bodies in (("first", static + BALL), ("second", BALL + static)):
        (here / f"{name}.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
        arguments = (f"{name}.xml", "-t", "motion.h5", "-o", f"{name}.h5", "--columns", "margin0,margin1")
        assert collide("run", *arguments).code == 0
    with h5py.File(here / "first.h5") as one, h5py.File(here / "second.h5") as other:
        contacts, exchanged = one["/rigid_contacts"], other["/rigid_contacts"]
        assert set(contacts["margin0"][:].tolist()) == set(exchanged["margin1"][:].tolist()) == {np.float32(0.04)}
        assert set(contacts["margin1"][:].tolist()) == set(exchanged["margin0"][:].tolist()) == {np.float32(0.01)}
    answer = collide("diff", "first.h5", "second.h5", "--json")
    result = json.loads(answer.out)
    assert counts(result) == (0, 0, 0)
    assert result["contacts"]["matched"] > 5
    assert {"margin0", "margin1"} <= {field["name"] for field in result["fields"]}
    assert answer.code == 0
    with h5py.File(here / "second.h5", "a") as other:
        other["/rigid_contacts/margin0"][3] += 0.5
    result = json.loads(collide("diff", "first.h5", "second.h5", "--full", "--json").out)
    assert counts(result) == (0, 0, 1)
    assert list(result["differences"][0]["fields"]) == ["margin1"]
    for name, code in (("margin1", 0), ("margin0", 1)):
        assert collide("diff", "first.h5", "second.h5", "--full", "--atol", f"{name}=0.6").code == code


def test_frames_without_common_steps_are_matched_by_time(diff):
    a, b = made_up(), made_up()
    b.step = b.step + 1
    result = diff(a, b)
    assert (result["frames"]["by"], result["equal"]) == ("time", True)
    assert diff(a, b, "--match-frames", "index")["equal"]


def test_a_time_that_differs(diff):
    a, b = made_up(), made_up()
    b.time = b.time.copy()
    b.time[3] += 1e-3
    result = diff(a, b)
    assert (result["frames"]["times_changed"], counts(result)) == (1, (0, 0, 0))
    assert diff(a, b, "--atol", "time=2e-3")["equal"]


def test_contacts_shifted_by_a_frame(diff):
    a = made_up()
    b = a.rows(a.cell < 5 * a.worlds).copy()
    b.cell = b.cell + a.worlds
    result = diff(a, b)
    nothing_but_contacts(result)
    first = int(np.flatnonzero(a.cell >= 0)[0])
    assert result["first"] == where(a, first)
    assert any("shifted" in note and "frame 0" in note and "frame 1" in note for note in result["notes"])


def test_worlds_exchanged(diff):
    a = made_up()
    b = a.copy()
    frame, world = np.divmod(a.cell, 3)
    b.cell = frame * 3 + np.array([2, 1, 0])[world]
    order = np.argsort(b.cell, kind="stable")
    b = b.rows(order)
    result = diff(a, b)
    nothing_but_contacts(result)
    assert result["worlds"]["listed"] == [0, 2]
    assert any("worlds shifted or exchanged" in note for note in result["notes"])


def test_a_world_less(diff):
    a = made_up()
    frame, world = np.divmod(a.cell, 3)
    b = a.rows(world < 2)
    b.cell, b.worlds = frame[world < 2] * 2 + world[world < 2], 2
    result = diff(a, b)
    assert not result["equal"]
    assert counts(result) == (0, 0, 0)
    assert result["worlds"]["compared"] == 2
    assert result["contacts"]["matched"] == len(b.cell)


def test_old_versions_and_columns_of_one_file(diff):
    a, b = made_up(), made_up()
    b.version = (1, 1)
    result = diff(a, b)
    assert result["equal"]
    assert any("1.0 and 1.1" in note for note in result["notes"])


def test_reports(here, collide):
    a, b = made_up(), made_up()
    b.path[1] = "b|all"
    b.columns["distance"][9] += 0.5
    a.write(here / "a.h5")
    b.write(here / "b.h5")
    answer = collide("diff", "a.h5", "b.h5", "--junit-xml", "d.xml", "--markdown", "d.md", "--github")
    assert answer.code == 1
    root = ElementTree.parse(here / "d.xml").getroot()
    (suite,) = root
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["model", "contacts changed"]
    assert (suite.get("tests"), suite.get("failures")) == (str(len(suite)), "2")
    text = (here / "d.md").read_text()
    assert "### collide diff: different" in text
    assert "b\\|all" in text
    lines = answer.err.splitlines()
    assert [line.split("::")[1] for line in lines] == [
        "error title=collide diff%3A model",
        "error title=collide diff%3A contacts changed",
    ]
    again = collide("diff", "a.h5", "b.h5", "--markdown", "d.md")
    assert (again.code, "--force" in again.err) == (3, True)
    assert collide("diff", "a.h5", "b.h5", "--markdown", "d.md", "--force", "--quiet").code == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--atol", "few"), ("--atol", "few")),
        (("--atol", "feature0=1"), ("feature0", "no field")),
        (("--rtol", "normal=1"), ("normal", "--rtol")),
        (("--atol", "-1"), ("-1", "at least 0")),
        (("--include", "nobody*"), ("nobody*", "--include")),
        (("--rename", "ball"), ("ball", "OLD=NEW")),
        (("--fields", "friction"), ("friction", "--fields")),
        (("--allow-fraction", "2"), ("--allow-fraction", "from 0 to 1")),
    ],
)
def test_options_that_mean_nothing(here, collide, options, words):
    made_up().write(here / "a.h5")
    answer = collide("diff", "a.h5", "a.h5", *options)
    assert (answer.code, answer.out) == (2, "")
    for word in words:
        assert word in answer.err


def test_files_that_cannot_be_compared(here, collide):
    edited = made_up()
    edited.write(here / "a.h5")
    (here / "text.h5").write_text("words")
    for name in ("text.h5", "nowhere.h5", "motion.h5"):
        answer = collide("diff", "a.h5", name)
        assert (answer.code, answer.out) == (2, "")
        assert name in answer.err
    edited.path[1] = edited.path[2]
    edited.write(here / "twice.h5")
    answer = collide("diff", "a.h5", "twice.h5")
    assert (answer.code, "twice.h5" in answer.err, "bøx" in answer.err) == (2, True, True)
    broken = made_up()
    broken.columns["shape1"][4] = 77
    broken.write(here / "broken.h5")
    answer = collide("diff", "a.h5", "broken.h5")
    assert (answer.code, "77" in answer.err, "broken.h5" in answer.err) == (2, True, True)


def test_settings(here, collide, monkeypatch):
    a, b = made_up(), made_up()
    b.columns["distance"][9] += 0.5
    b.columns["point0"][9] += 0.1
    a.write(here / "a.h5")
    b.write(here / "b.h5")
    (here / "collide.toml").write_text('[diff]\natol = "distance=0.6, point0=0.2"\n')
    assert collide("diff", "a.h5", "b.h5").code == 0
    monkeypatch.setenv("COLLIDE_DIFF_ATOL", "distance=0.4,point0=0.2")
    assert collide("diff", "a.h5", "b.h5").code == 1
    assert collide("diff", "a.h5", "b.h5", "--atol", "distance=0.6", "--atol", "point0=0.2").code == 0


def test_golden_files_compare_with_each_other(collide, here, request):
    golden = request.path.parents[1] / "golden"
    for one, other in (("1_0", "1_0"), ("1_1", "1_1"), ("1_0", "1_1"), ("1_1", "1_0")):
        answer = collide("diff", golden / f"contacts_{one}.h5", golden / f"contacts_{other}.h5", "--full", "--json")
        result = json.loads(answer.out)
        assert answer.code == (0 if result["equal"] else 1)
        assert result["equal"] or one != other
        if one != other:
            assert any("versions" in note for note in result["notes"])
            assert any("materials" in note for note in result["notes"])


SPHERES = """<mujoco><worldbody>
  <geom name="a" type="sphere" size="1"/>
  <body><freejoint/><geom name="b" type="sphere" size="1"/></body>
</worldbody></mujoco>"""


def test_options_at_their_defaults_are_no_notes(here, collide):
    """Versions write more or fewer options; one that is not there had its default."""
    (here / "scene.xml").write_text(SPHERES)
    assert collide("run", "scene.xml", "-o", "now.h5", "--device", "cpu").code == 0
    assert collide("run", "scene.xml", "-o", "r.h5", "--device", "cpu", "--reduce-contacts").code == 0
    with h5py.File(here / "now.h5") as now, h5py.File(here / "r.h5") as reduced:
        written, all_of_them = (json.loads(str(file.attrs["config"])) for file in (now, reduced))
    assert "betas" not in written
    assert set(all_of_them) - set(written) == set(REDUCTION_DEFAULTS)
    for name, config in (
        ("old.h5", {"narrow_phase": "gjk", "frames": "", "worlds": None}),
        ("more.h5", {**all_of_them, "reduce_contacts": False}),
        ("other.h5", {"narrow_phase": "mpr", "uneven_demos": "cut", "later": 1}),
    ):
        shutil.copyfile(here / "now.h5", here / name)
        with h5py.File(here / name, "a") as file:
            file.attrs["config"] = json.dumps(config)
    for name in ("old.h5", "more.h5"):
        assert json.loads(collide("diff", "now.h5", name, "--json").out)["notes"] == []
        # As far as options go, these could be joined.
        assert "it has worlds of now.h5" in collide("merge", "now.h5", name, "--worlds", "-o", "m.h5").err
    assert "the option reduce_contacts: true and false" in collide("merge", "now.h5", "r.h5", "-o", "m.h5").err
    assert json.loads(collide("diff", "other.h5", "now.h5", "--json").out)["notes"] == [
        "the option later differs: 1 in A, none in B",
        "the option narrow_phase differs: mpr in A, gjk in B",
        "the option uneven_demos differs: cut in A, none in B",
    ]
    notes = json.loads(collide("diff", "r.h5", "now.h5", "--json").out)["notes"]
    assert notes == ["the option reduce_contacts differs: True in A, False in B"]


def test_what_rests_is_not_called_shifted(diff):
    """Every frame of A is the same; the last of B has a contact elsewhere."""
    a = made_up(frames=1, worlds=1, contacts_per_cell=6, seed=3)
    assert len(a.cell)
    still = a.rows(np.tile(np.arange(len(a.cell)), 4))
    still.cell = np.repeat(np.arange(4), len(a.cell))
    still.step, still.time = np.arange(4) * 5, np.arange(4) * 0.01
    moved = still.copy()
    moved.columns["point0"][-1] += 0.5
    result = diff(still, moved)
    assert (result["first"]["frame_a"], counts(result)) == (3, (0, 0, 1))
    assert not any("shifted" in note for note in result["notes"])
