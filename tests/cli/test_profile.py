"""collide profile: figures, agreement, advice, files."""

import io
import json
import os
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from rich.console import Console

from collidecli.engine import pipeline_build
from collidecli.engine.broadphase import choice
from collidecli.engine.broadphase.choice import BroadPhaseChoice
from collidecli.engine.chunk_report import ChunkReport
from collidecli.engine.pipeline_build import find_device
from collidecli.motions.timing import TimingReport
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.verbs.profile import profile as profile_module
from collidecli.verbs.profile.devices import compare_devices
from collidecli.verbs.profile.measured import Advice, Measured
from collidecli.verbs.profile.tables import profile_table
from tests.cli.conftest import checked_trace, refusals

PROFILE = ("profile", "scene.xml", "-t", "motion.h5", "--gap", "0.025", "--device", "cpu")


def test_all_broad_phases_agree_in_a_profile(here, collide):
    result = collide.result(*PROFILE, "--repeats", "2")
    assert (result["schema"], result["identical"]) == ("collide.profile/1", True)
    assert [phase["name"] for phase in result["phases"]] == ["nxn", "sap", "explicit", "standard"]
    for phase in result["phases"]:
        assert (phase["skipped"], phase["contacts"]) == (None, 14)
        assert all(
            phase[name] == result["phases"][0][name] for name in ("candidates", "contacts_sha256")
        )
        compute = phase["compute_seconds"]
        assert 2 <= len(compute["repeats"]) == result["repeats"] <= 8
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
        assert file["compute_seconds"].shape == (4, result["repeats"])
        np.testing.assert_allclose(file["stage_seconds"][:].sum(axis=2), file["compute_seconds"][:])
        assert (
            file["compute_seconds"][1].tolist() == result["phases"][1]["compute_seconds"]["repeats"]
        )
    answer = collide.ok(*PROFILE, "--repeats", "1", "--force")
    for word in (
        "nxn",
        "sap",
        "explicit",
        "standard",
        "bit-identical",
        "advice",
        "scene.profile.h5",
    ):
        assert word in answer.out
    collide.refused(*PROFILE, code=3)
    assert not result.keys() & {"devices", "device_advice"}


@pytest.mark.parametrize(
    ("repeats", "words"), [(1, "1 time each, in turn"), (2, "2 times each, in turn; median")]
)
def test_the_table_names_a_spread_of_several_measurements(here, collide, repeats, words):
    result = collide.result(*PROFILE, "--repeats", "1")
    shown = io.StringIO()
    Console(file=shown, width=100).print(profile_table(result | {"repeats": repeats}))
    assert re.search(f"{words}[^;]*\\n", shown.getvalue())


def test_absurd_broad_phases_are_left_out_by_name(here, collide, monkeypatch):
    monkeypatch.setattr(profile_module, "MOST_PAIR_TESTS", 59)
    monkeypatch.setattr(profile_module, "MOST_LISTED_PAIRS", 2)
    result = collide.result(*PROFILE, "--repeats", "1")
    assert [bool(phase["skipped"]) for phase in result["phases"]] == [True, False, True, True]
    assert "60" in result["phases"][0]["skipped"]
    assert result["fastest"] == "sap"
    with h5py.File(here / "scene.profile.h5") as file:
        assert file["contacts"][:].tolist() == [-1, 14, -1, -1]
        assert np.isnan(file["compute_seconds"][0]).all()
    assert "no nxn" in collide(*PROFILE, "--repeats", "1", "--force").out
    # 20 frames of 3 pairs
    monkeypatch.setattr(profile_module, "MOST_PAIR_TESTS", 60)
    assert collide.result(*PROFILE, "--repeats", "1", "--force")["phases"][0]["skipped"] is None


def test_contacts_that_differ_are_a_failed_check(here, collide, monkeypatch):
    values = iter(range(9))
    monkeypatch.setattr(profile_module.ContactDigest, "value", lambda self: str(next(values)))
    collide.found(*PROFILE, "--repeats", "1", told="DIFFER")


def test_the_digest_sees_every_column():
    def digest(changed: str = "", counts: tuple[int, int] = (1, 1)) -> str:
        columns = {
            c.name: np.full((2, 3)[: 1 + (c.width == 3)], int(c.name == changed), c.dtype)
            for c in RIGID_COLUMNS
        }
        made = profile_module.ContactDigest(np.dtype(np.float64))
        made.add(ContactBlock(0, np.array(counts), columns))
        return made.value()

    values = [digest(name) for name in ("", *(c.name for c in RIGID_COLUMNS))]
    assert len({*values, digest(counts=(2, 0))}) == len(values) + 1


def measured(name: str, *seconds: float) -> Measured:
    """A broad phase of these compute times, half of them in the broad phase."""
    found = Measured(name)
    for each in seconds:
        report = TimingReport()
        stages = {
            "transforms": 0.0,
            "broad_phase": each / 2,
            "narrow_phase": each / 2,
            "reduction": 0.0,
            "order": 0.0,
        }
        report.add_chunk(ChunkReport(1, 10, 5, 5, stages))
        found.passes.append(report)
    return found


SHORT = (1.0, 1.1, 1.2)
LONG = (2.0, 2.1, 2.2)
NONE = "none is clearly the fastest"
ADVICE = {
    "auto": (SHORT, LONG, "sap", True, True, "choose sap; auto picks it too"),
    "not auto": (
        LONG,
        SHORT,
        "explicit",
        True,
        False,
        "auto picks sap (why), which takes 91% longer",
    ),
    "overlapping": (
        (1.0, 1.4, 2.0),
        (1.1, 1.3, 1.9),
        "explicit",
        False,
        True,
        f"{NONE}: the times of explicit, sap",
    ),
    "two passes": (
        (1.0, 1.0),
        (2.0, 2.0),
        "sap",
        False,
        True,
        f"{NONE}: 2 measurements each cannot tell how much times vary; --repeats 3 measures more;",
    ),
}
"""Seconds of sap and explicit, the fastest, whether it is clear and agrees with auto, words."""


@pytest.mark.parametrize("case", ADVICE)
def test_advice_agrees_with_the_compute_times(case):
    sap, explicit, *expected, words = ADVICE[case]
    found = profile_module.advise(
        [measured("sap", *sap), measured("explicit", *explicit)], BroadPhaseChoice("sap", "why")
    )
    assert [found.fastest, found.is_clear, found.auto_agrees] == expected
    assert words in found.text
    runs = [
        measured("explicit", 1.0, 1.0, 1.0),
        measured("nxn", 2.0, 2.0, 2.0),
        measured("standard", 0.5, 0.5, 0.5),
    ]
    assert profile_module.advise(runs, BroadPhaseChoice("explicit", "why")).fastest == "explicit"


@pytest.mark.parametrize(("is_clear", "passes"), [(True, 2), (False, 8)])
def test_passes_are_repeated_until_one_is_clearly_faster(
    here, collide, monkeypatch, is_clear, passes
):
    monkeypatch.setattr(
        profile_module, "advise", lambda measured, choice: Advice("sap", is_clear, True, "")
    )
    result = collide.result(*PROFILE, "--repeats", "2")
    assert result["repeats"] == passes


def test_a_trace_of_every_pass(here, collide):
    collide.ok(*PROFILE, "--repeats", "1", "--threads", "2", "--trace", "trace.json", "-q")
    events = checked_trace(here / "trace.json")
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == ["nxn", "sap", "explicit", "standard"]
    for process in range(1, 5):
        of_process = [event for event in events if event["ph"] == "X" and event["pid"] == process]
        passes = sum(event["name"] == "pass" for event in of_process)
        assert passes >= 1
        assert (
            sum(event["args"]["cells"] for event in of_process if event["name"] == "chunk")
            == 20 * passes
        )


def test_devices_are_compared(here, collide, monkeypatch):
    """There is one device here; the CPU stands for a second one."""
    cpu = find_device("cpu")
    monkeypatch.setattr(
        "collidecli.verbs.profile.profile.find_devices", lambda names: [cpu] * len(names.split(","))
    )
    command = (
        "profile",
        "scene.xml",
        "-t",
        "motion.h5",
        "--gap",
        "0.025",
        "--repeats",
        "2",
        "--devices",
        "cpu,cuda",
    )
    result = collide.result(*command, "--trace", "trace.json")
    assert [(each["device"], each["contacts"]) for each in result["devices"]] == [("cpu", 14)] * 2
    for each in result["devices"]:
        assert each["fastest"] in ("nxn", "sap", "explicit")
        assert each["frames_per_second"] == pytest.approx(result["frames"] / each["wall_seconds"])
        assert [phase["name"] for phase in each["phases"]] == ["nxn", "sap", "explicit", "standard"]
    first, second = (each["phases"][1]["wall_seconds"] for each in result["devices"])
    assert first == result["phases"][1]["wall_seconds"]["median"] != second
    assert "device" in result["device_advice"]
    with h5py.File(here / "scene.profile.h5") as file:
        assert json.loads(file.attrs["devices"]) == result["devices"]
    events = checked_trace(here / "trace.json")
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == [
        "nxn",
        "sap",
        "explicit",
        "standard",
        "nxn, cpu",
        "sap, cpu",
        "explicit, cpu",
        "standard, cpu",
    ]
    table = collide(*command, "--force").out
    assert ("frames/s, 14 contacts" in table, "devices" in table) == (True, True)


SLOW = """
import json, sys
import numpy as np
problem, cells = np.load(sys.argv[1]), 20
shapes, pairs = len(problem["shape_name"]), len(problem["pair"])
option = dict(text.split("=") for text in sys.argv[3:])
np.savez(sys.argv[2], format="collide.engine_rows/1", engine="slow", version="9", options=json.dumps(option),
    interpreter="3.0", point_rule="midpoint", stateful=False, python_loop="pairs",
    cell=np.array([0]), pair=np.array([0]), distance=np.array([-0.1]), normal=np.array([[0.0, 0.0, 1.0]]),
    point=np.zeros((1, 3)),
    shape_treated=np.array(["skipped"] * shapes), shape_reason=np.array(["no spheres"] * shapes),
    pair_asked=np.ones(pairs, bool), seconds=np.array([2.0, cells * 0.5]))
"""
"""An adapter that says that it took 2 s to set up, and half a second a cell."""


@pytest.mark.rest
def test_other_engines_are_timed(here, collide):
    (here / "slow.py").write_text(SLOW)
    command = (
        *PROFILE,
        "--repeats",
        "2",
        "--engines",
        "slow=slow.py,again=slow.py",
        "--engine-option",
        "again.k=1",
    )
    result = collide.result(*command)
    ours, slow, again = result["engines"]
    assert (ours["engine"], ours["python_loop"], ours["contacts"]) == ("collide", "chunks", 14)
    median = next(one for one in result["phases"] if one["name"] == result["fastest"])[
        "compute_seconds"
    ]["median"]
    assert ours["cell_seconds"]["median"] == pytest.approx(median / 20)
    assert ours["setup_seconds"]["median"] > 0
    assert (slow["name"], slow["version"], slow["python_loop"], slow["contacts"]) == (
        "slow",
        "9",
        "pairs",
        1,
    )
    assert slow["setup_seconds"]["repeats"] == [2.0, 2.0]
    assert slow["cell_seconds"]["repeats"] == [0.5, 0.5]
    assert (slow["reasons"], slow["options"], again["options"]) == (
        ["no spheres"],
        "{}",
        '{"k": "1"}',
    )
    with h5py.File(here / "scene.profile.h5") as file:
        assert json.loads(file.attrs["engines"]) == result["engines"]
    table = collide(*command, "--force").out
    assert [word for word in ("slow 9", "500 ms", "no spheres") if word not in table] == []


test_refused = refusals(
    "profile scene.xml -t motion.h5",
    ("--engines rows.npz", ("there is no adapter of 'rows.npz'", "--engines")),
    ("--engine-option mujoco.multiccd=0", ("no engine is given", "--engines")),
    ("--devices cpu,cuda:99", ("there is no device 'cuda:99'", "--devices")),
    ("--devices cpu,cpu", ("names the device cpu twice", "--devices")),
    ("--devices cpu,,", ("has an empty name", "--devices")),
    ("--device cpu --devices cpu", "--device"),
    ("-o other.json", "other.json"),
    ("-o other.h5 --json-out scene.xml --force", "scene.xml", 3),
)


def test_advice_of_devices():
    for cpu, cuda, words in (
        ((4.0, 4.1, 4.2), (1.0, 1.0, 1.1), "choose --device cuda:0: cpu takes 4.10 times as long"),
        ((1.0, 1.0, 1.1), (2.0, 2.0, 2.2), "choose --device cpu: cuda:0 takes 2.00 times as long"),
        (
            (1.0, 1.5, 2.0),
            (1.1, 1.6, 1.9),
            "no device is clearly the fastest: the times of cpu and cuda:0 overlap",
        ),
    ):
        assert compare_devices([("cpu", np.array(cpu)), ("cuda:0", np.array(cuda))]) == words


def test_the_cost_of_listing_pairs_has_a_row(here, collide, monkeypatch):
    monkeypatch.setattr(pipeline_build, "ENUMERATED_SHAPES", 2)
    monkeypatch.setattr(choice, "ENUMERATED_SHAPES", 2)
    answer = collide.ok("profile scene.xml -t motion.h5 --repeats 3 --json -o p.h5")
    result = json.loads(answer.out)
    phases = {phase["name"]: phase for phase in result["phases"]}
    assert [phases[name]["listing_seconds"] > 0.0 for name in ("nxn", "sap", "explicit")] == [
        False,
        False,
        True,
    ]
    assert "3 shapes; auto lists the pairs of at most 2" in result["advice"]
    shown = collide.ok("profile scene.xml -t motion.h5 --repeats 3 -o p.h5 --force").out
    (row,) = [line for line in shown.splitlines() if line.startswith(" list of pairs, once")]
    assert row.split()[4:6] == ["none", "none"]
    assert "too many" not in shown


def test_sizes_agree_with_the_contacts_of_the_profile(here, collide):
    options = ("--repeats", "1", "--sizes", "--size-margin", "1.5", "-o", "sizes.profile.h5")
    result = collide.result(*PROFILE, *options)
    assert not os.path.exists("sizes.profile.json")  # files that are not named
    assert result["repeats"] == 1
    sizes = result["sizes"]
    peaks = {peak["name"]: peak for peak in sizes["peaks"]}
    assert sizes["margin"] == 1.5
    collide("run", *PROFILE[1:], "-o", "sizes.h5")
    of_set = collide.result("inspect", "sizes.h5", "--sizes")["sizes"]
    assert of_set["gap"] == pytest.approx(sizes["gap"])
    assert "gap" in collide.ok("inspect", "sizes.h5", "--sizes").out
    for peak in of_set["peaks"]:
        assert peak == peaks[peak["name"]]
    with h5py.File("sizes.h5") as file:
        worlds = len(file["model/world/template"])
        start = file["rigid_contacts/cell_start"][...]
    table = np.diff(start).reshape(-1, worlds)
    assert peaks["contacts"]["all_worlds"]["count"] == table.sum(axis=1).max()
    assert peaks["contacts"]["a_world"]["count"] == table.max()
    candidates = [phase["candidates"] for phase in result["phases"]]
    frames = result["frames"]
    assert candidates[0] / frames <= peaks["candidates"]["all_worlds"]["count"] <= candidates[0]
    for setting in sizes["settings"]:
        assert (setting["advised"] is None) == bool(setting["reason"])
    with h5py.File(result["output"]) as file:
        assert file["world_contacts"][...].tolist() == table.max(axis=0).tolist()
    options = ("--repeats", "1", "--sizes", "--gap-rule", "max")
    nearer = collide.result(*PROFILE, *options)["sizes"]
    assert (sizes["gap"], nearer["gap"]) == ([0.05, 0.05], [0.025, 0.025])


def test_sizes_of_a_flex_are_withheld_where_it_shares_them(here, collide):
    """MuJoCo Warp counts the contacts of a flex in naconmax and njmax, of which the pile of a cloth
    on a ball has none of shapes."""
    flex = '<flexcomp name="cloth" type="grid" count="4 4 1" spacing=".1 .1 .1" pos="0 0 .38"'
    (here / "flex.xml").write_text(
        '<mujoco><worldbody><geom name="post" type="sphere" size="0.2" pos="0 0 0.2"/>'
        f'{flex} radius="0.02" dim="2" mass="1"/></worldbody></mujoco>'
    )
    words = ("profile", "flex.xml", "--sizes", "--repeats", "1", "--device", "cpu")
    found = collide.result(*words, "--json-out", "sizes.json")["sizes"]
    reasons = {setting["name"]: setting["reason"] for setting in found["settings"]}
    for name in ("naconmax", "nconmax", "njmax"):
        assert "its contacts of flexes share the size" in reasons[name]
    assert not reasons["rigid_contact_max"]
    shown = collide.ok(*words, "--json-out", "sizes.json", "--force").out
    assert "soft contacts: the sizes above are without them" in " ".join(shown.split())
    assert "written sizes.json" in " ".join(shown.split())
    assert "contacts, touching pairs and candidates as collide counts them" in " ".join(
        shown.split()
    )


@pytest.mark.parametrize("chunk", ["1", "3", "100"])
def test_sizes_do_not_depend_on_the_chunks(here, collide, chunk):
    options = ("--repeats", "1", "--sizes", "--chunk-cells", chunk)
    sizes = collide.result(*PROFILE, *options, "--force")["sizes"]
    whole = collide.result(*PROFILE, "--repeats", "1", "--sizes", "--force")["sizes"]
    assert sizes == whole


def test_sizes_are_refused_where_they_do_not_follow(here, collide):
    assert collide(*PROFILE, "--size-margin", "2").code == 2
    assert collide(*PROFILE, "--sizes", "--size-margin", "0.9").code == 2
    assert collide(*PROFILE, "--sizes", "--touch-only").code == 2
    assert collide("inspect", "scene.xml", "--sizes").code == 2


def test_the_refusal_of_a_default_output_names_the_option(here, collide):
    """An output of a given name is refused in the words of every output."""
    words = "profile scene.xml -t motion.h5 --device cpu --repeats 1"
    collide.ok(words)
    default = collide.refused(words, code=3, told="scene.profile.h5: the output exists")
    assert "choose another path with -o" in default
    Path("scene.profile.h5").unlink()
    default = collide.refused(words, code=3, told="scene.profile.json: the output exists")
    assert "choose another path with -o" in default
    json_alone = collide.refused(words, "-o", "scene.profile.h5", code=3, told="profile.json")
    assert "choose another path with --json-out" in json_alone
    given = collide.refused(words, "--json-out", "scene.profile.json", code=3, told="profile.json")
    assert "choose another path, or" in given


def test_the_refusal_of_a_default_contact_set_names_the_option(here, collide):
    collide.ok("run scene.xml -t motion.h5 --device cpu")
    words = "run scene.xml -t motion.h5 --device cpu"
    assert "another path with -o, or" in collide.refused(words, code=3, told="exists")
    given = collide.refused(words, "-o", "scene.contacts.h5", code=3, told="exists")
    assert "another path, or" in given
