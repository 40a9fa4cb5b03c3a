"""collide check: good files, faulty files, files that are neither."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from tests.support.contact_edits import made_up

RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu")


def test_good_files(here, collide):
    assert collide(*RUN).code == 0
    for name in ("scene.contacts.h5", "motion.h5"):
        answer = collide("check", name)
        assert (answer.code, answer.err) == (0, "")
        assert "good" in answer.out
    result = json.loads(collide("check", "motion.h5", "--json").out)
    assert (result["schema"], result["good"], result["findings"]) == ("collide.check/1", True, [])


def test_a_changed_contact_set(here, collide):
    assert collide(*RUN).code == 0
    with h5py.File(here / "scene.contacts.h5", "r+") as file:
        file["rigid_contacts/distance"][3] = -1.0
    answer = collide("check", "scene.contacts.h5")
    assert answer.code == 1
    assert "hash" in answer.out
    result = json.loads(collide("check", "scene.contacts.h5", "--json").out)
    assert not result["good"]
    assert any("frame" in finding["where"] for finding in result["findings"])


def test_an_incomplete_contact_set(here, collide):
    assert collide(*RUN).code == 0
    with h5py.File(here / "scene.contacts.h5", "r+") as file:
        del file.attrs["complete"]
    answer = collide("check", "scene.contacts.h5")
    assert answer.code == 1
    assert "incomplete" in answer.out


@pytest.mark.parametrize(
    ("frame", "column", "value", "words"),
    [
        (7, 0, np.nan, "not finite"),
        (0, 6, 1.1, "norm"),
        (19, 2, np.inf, "not finite"),
    ],
)
def test_a_faulty_pose_is_named(here, collide, frame, column, value, words):
    with h5py.File(here / "motion.h5", "r+") as file:
        file["body_q"][frame, 0, 0, column] = value
    answer = collide("check", "motion.h5")
    assert answer.code == 1
    assert f"/body_q, frame {frame}, world 0, body 'ball'" in answer.out
    assert words in answer.out


def test_a_faulty_header_and_names(here, collide):
    with h5py.File(here / "motion.h5", "r+") as file:
        file["time"][5] = 0.0
    answer = collide("check", "motion.h5")
    assert answer.code == 1
    assert "frame 5" in answer.out


def test_faulty_coordinates(here, collide):
    assert collide("record", "scene.xml", "--frames", "4", "--joint").code == 0
    assert collide("check", "scene.motion.h5").code == 0
    with h5py.File(here / "scene.motion.h5", "r+") as file:
        file["joint_q"][2, 0, 5] = np.nan
    answer = collide("check", "scene.motion.h5")
    assert answer.code == 1
    assert "/joint_q, frame 2, world 0, entry 5" in answer.out


def test_files_that_are_neither(here, collide):
    (here / "text.h5").write_text("words")
    with h5py.File(here / "foreign.h5", "w") as file:
        file["x"] = 1
    (here / "cut.h5").write_bytes((here / "motion.h5").read_bytes()[:700])
    for name in ("text.h5", "foreign.h5", "cut.h5", "nowhere.h5"):
        answer = collide("check", name)
        assert (answer.code, answer.out) == (2, "")
        assert name in answer.err


def test_every_block_is_read_and_counted(here, collide, monkeypatch):
    monkeypatch.setattr("collidecli.storage.trajectories.check.BLOCK_BYTES", 1)
    with h5py.File(here / "motion.h5", "r+") as file:
        file["body_q"][[11, 17], 0, 0, 0] = np.nan
    answer = collide("check", "motion.h5")
    assert answer.code == 1
    assert "frame 11" in answer.out
    assert "(2 faults)" in answer.out


@pytest.mark.parametrize(("value", "is_named"), [(-1, True), (0, False)])
def test_contact_ids_below_zero(here, collide, value, is_named):
    assert collide("run", "scene.xml", "-t", "motion.h5", "--contact-ids", "-o", "ids.h5").code == 0
    with h5py.File("ids.h5", "a") as file:
        file["/rigid_contacts/contact_id"][0] = value
    answer = collide("check", "ids.h5")
    assert ("contact_id is negative" in answer.out + answer.err) == is_named


def test_verbs_refuse_rows_of_shapes_that_do_not_exist(here, collide):
    made_up().write(here / "a.h5")
    with h5py.File("a.h5", "a") as file:
        file["rigid_contacts/shape0"][0] = -1
    for verb in (("inspect",), ("events",), ("report", "-o", "r.html")):
        answer = collide(verb[0], "a.h5", *verb[1:])
        assert (answer.code, answer.out) == (2, ""), answer.err
        assert "no row of /model/shape" in answer.err


def test_other_formats_are_named(here, collide):
    with h5py.File(here / "out.h5", "w") as file:
        file.attrs["format"] = "collide-clearance"
    for words, text in (
        (["check", "out.h5"], "the format is collide-clearance, and files of collide-contacts and collide-trajectory"),
        (["clearance", "out.h5"], "the file's format is 'collide-clearance'"),
        (["run", "scene.xml", "-t", "out.h5", "-o", "x.h5"], "the file's format is 'collide-clearance'"),
    ):
        answer = collide(*words)
        assert (answer.code, text in answer.err) == (2, True), answer.err


@pytest.mark.parametrize("verb", ["check", "inspect"])
def test_the_times_of_profile_are_named(here, collide, verb):
    """`check` named such a file a trajectory, and `inspect` requested one."""
    with h5py.File(here / "scene.profile.h5", "w") as file:
        file.attrs["format"] = "collide-profile"
    answer = collide(verb, "scene.profile.h5")
    assert answer.code == 2
    assert "scene.profile.h5: this file has the times of collide profile" in answer.err
    assert "collide report OUT.h5 --profile FILE" in answer.err
    assert "trajectory" not in answer.err
