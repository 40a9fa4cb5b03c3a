"""collide profile: figures, agreement, advice, files."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from collidecli.commands import profile as app
from collidecli.commands.timing import TimingReport
from collidecli.engine.pipeline import ChunkReport
from collidecli.engine.pipeline_builder import BroadPhaseChoice

PROFILE = ("profile", "scene.xml", "-t", "motion.h5", "--gap", "0.025", "--device", "cpu")


def test_all_broad_phases_agree_and_both_files_hold_the_figures(here, collide):
    answer = collide(*PROFILE, "--repeats", "2", "--json")
    assert answer.code == 0
    result = json.loads(answer.out)
    assert result["schema"] == "collide.profile/1"
    assert result["identical"]
    assert [phase["name"] for phase in result["phases"]] == ["nxn", "sap", "explicit", "standard"]
    for phase in result["phases"]:
        assert phase["skipped"] is None
        assert (phase["contacts"], phase["candidates"]) == (14, result["phases"][0]["candidates"])
        assert phase["contacts_sha256"] == result["phases"][0]["contacts_sha256"]
        compute = phase["compute_seconds"]
        assert len(compute["repeats"]) == 2
        assert compute["least"] <= compute["median"] <= compute["most"]
        total = sum(np.array(stage["repeats"]) for stage in phase["stages"].values())
        np.testing.assert_allclose(compute["repeats"], total)
    assert result["auto"]["choice"] == "explicit"
    written = json.loads((here / "scene.profile.json").read_text())
    assert written["phases"] == result["phases"]
    with h5py.File(here / "scene.profile.h5") as file:
        assert file.attrs["format"] == "collide-profile"
        assert file["phase"].asstr()[1] == "sap"
        assert file["contacts"][:].tolist() == [14] * 4
        assert file["compute_seconds"].shape == (4, 2)
        np.testing.assert_allclose(file["stage_seconds"][:].sum(axis=2), file["compute_seconds"][:])
        assert file["compute_seconds"][1].tolist() == result["phases"][1]["compute_seconds"]["repeats"]


def test_table_and_overwriting(here, collide):
    answer = collide(*PROFILE, "--repeats", "1")
    assert answer.code == 0
    for word in ("nxn", "sap", "explicit", "standard", "bit-identical", "choose", "scene.profile.h5"):
        assert word in answer.out
    assert collide(*PROFILE).code == 3
    assert collide(*PROFILE, "-o", "other.json").code == 2
    assert collide(*PROFILE, "-o", "other.h5", "--json-out", "scene.xml", "--force").code == 3


def test_absurd_broad_phases_are_left_out_by_name(here, collide, monkeypatch):
    monkeypatch.setattr(app, "MOST_PAIR_TESTS", 59)
    monkeypatch.setattr(app, "MOST_LISTED_PAIRS", 2)
    answer = collide(*PROFILE, "--repeats", "1", "--json")
    assert answer.code == 0
    result = json.loads(answer.out)
    assert [bool(phase["skipped"]) for phase in result["phases"]] == [True, False, True, True]
    assert "60" in result["phases"][0]["skipped"]
    assert result["fastest"] == "sap"
    with h5py.File(here / "scene.profile.h5") as file:
        assert file["contacts"][:].tolist() == [-1, 14, -1, -1]
        assert np.isnan(file["compute_seconds"][0]).all()
    assert "no nxn" in collide(*PROFILE, "--repeats", "1", "--force").out


def test_nxn_is_kept_up_to_the_limit(here, collide, monkeypatch):
    # 20 frames of 3 pairs
    monkeypatch.setattr(app, "MOST_PAIR_TESTS", 60)
    result = json.loads(collide(*PROFILE, "--repeats", "1", "--json").out)
    assert result["phases"][0]["skipped"] is None


def test_contacts_that_differ_are_a_failed_check(here, collide, monkeypatch):
    values = iter(range(9))
    monkeypatch.setattr(app.ContactDigest, "value", lambda self: str(next(values)))
    answer = collide(*PROFILE, "--repeats", "1")
    assert answer.code == 1
    assert "DIFFER" in answer.out


def test_the_digest_sees_every_column(here):
    from collidecli.scene.contacts import RIGID_COLUMNS, ContactBlock

    def block(changed: str = "") -> ContactBlock:
        columns = {
            c.name: np.full((2, 3) if c.width == 3 else 2, int(c.name == changed), c.dtype) for c in RIGID_COLUMNS
        }
        return ContactBlock(0, np.array([1, 1]), columns)

    def digest(*blocks: ContactBlock) -> str:
        made = app.ContactDigest(np.dtype(np.float64))
        for one in blocks:
            made.add(one)
        return made.value()

    values = [digest(block(name)) for name in ("", *(c.name for c in RIGID_COLUMNS))]
    assert len(set(values)) == len(values)
    other_cells = ContactBlock(0, np.array([2, 0]), block().columns)
    assert digest(other_cells) != values[0]


def measured(name: str, broad_phase: float, rest: float, candidates: int = 10) -> app.Measured:
    report = TimingReport()
    seconds = {"transforms": 0.0, "broad_phase": broad_phase, "narrow_phase": rest, "reduction": 0.0, "order": 0.0}
    report.add_chunk(ChunkReport(1, candidates, 5, 5, seconds))
    return app.Measured(name, passes=[report])


@pytest.mark.parametrize(
    ("sap", "explicit", "auto", "fastest", "agrees"),
    [
        (1.0, 2.0, "sap", "sap", True),
        (2.0, 1.0, "sap", "explicit", False),
        (1.1, 1.0, "sap", "explicit", True),
    ],
)
def test_advice_follows_the_broad_phase_alone(sap, explicit, auto, fastest, agrees):
    # The rest is noise here: it goes against the broad phase's own time, and must not decide.
    runs = [measured("sap", sap, 10.0 + explicit), measured("explicit", explicit, 10.0 + sap)]
    found = app.advise(runs, BroadPhaseChoice(auto, "why"))
    assert found[:2] == (fastest, agrees)
    assert f"choose {fastest}" in found[2]


def test_advice_takes_all_computing_where_candidates_differ():
    runs = [measured("sap", 1.0, 20.0, candidates=99), measured("explicit", 2.0, 10.0)]
    assert app.advise(runs, BroadPhaseChoice("sap", "why"))[0] == "explicit"
