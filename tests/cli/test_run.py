"""collide run: what it prints and writes, columns, touches alone, variants, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from collidecli.commands.python_api import open_contacts
from collidecli.commands.timing import covered_seconds
from collidecli.scene.mixing import BROUGHT_BY
from collidecli.scene.tables import OPTIONAL_COLUMNS
from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.conftest import FRAMES, SCENE, distances
from tests.support.traces import checked_trace

RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu")


def test_facts_and_file_say_what_the_spheres_do(here, collide):
    answer = collide(*RUN, "--json")
    assert answer.code == 0
    result = json.loads(answer.out)
    touching = np.flatnonzero(distances() < 0.0)
    assert result["schema"] == "collide.run/1"
    assert (result["frames"], result["worlds"], result["shapes"]) == (FRAMES, 1, 3)
    assert result["contacts"] == result["touching_contacts"] == result["contact_pair_cells"] == len(touching)
    assert (result["near_contacts"], result["contact_pair_count"], result["touching_pair_count"]) == (0, 1, 1)
    assert result["false_positive_ratio"] == pytest.approx(1.0 - len(touching) / result["candidates"])
    assert result["deepest"]["frame"] == FRAMES - 1
    assert result["deepest"]["distance"] == pytest.approx(distances()[-1], abs=1e-7)
    assert result["top_pairs"] == [
        {"shape0": "base", "shape1": "ball", "contacts": len(touching), "touching": len(touching)}
    ]
    assert {stage["stage"] for stage in result["stages"]} >= {"load", "compile", "broad_phase", "narrow_phase", "write"}
    assert any("far" in warning for warning in result["warnings"])
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        np.testing.assert_allclose(contacts.column("distance"), distances()[touching], atol=1e-7)
        assert contacts.content_sha256 == result["content_sha256"]


def test_table_names_scene_pair_rate_output_and_hash(here, collide):
    answer = collide(*RUN)
    assert answer.code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        content = contacts.content_sha256
    for word in ("scene.xml", "explicit", "base", "ball", "85 mm deep", "frames/s", "scene.contacts.h5", content):
        assert word in answer.out
    assert "\x1b" not in answer.out
    assert answer.err.startswith("warning: ")


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--gap", "0.025"), 14),
        (("--margin", "0.01"), 11),
        (("--gap", "0.02", "--gap-rule", "sum"), 13),
        (("--gap", "0.02", "--gap-rule", "max"), 11),
        (("--frames", "0:12"), 1),
        (("--frames", "::2"), 4),
        (("--frames", "-1"), 1),
        (("--worlds", "3"), 27),
        (("--max-contacts-per-pair", "1"), 9),
        (("--narrow-phase", "mpr"), 9),
    ],
)
def test_options_change_the_contacts_as_they_say(here, collide, options, count):
    answer = collide(*RUN, "--json", *options)
    assert answer.code == 0
    assert json.loads(answer.out)["contacts"] == count


def test_two_scenes_are_two_worlds(here, collide):
    (here / "other.xml").write_text((here / "scene.xml").read_text().replace('pos="0 0 2"', 'pos="0 0 0.7"'))
    answer = collide("run", "scene.xml", "other.xml", "--json", "--device", "cpu", "-o", "two.h5")
    result = json.loads(answer.out)
    assert (result["worlds"], result["contacts"]) == (2, 1)
    assert result["deepest"]["world"] == 1


def test_scenes_that_cannot_be_worlds_of_one_run_are_both_named(here, collide):
    (here / "ball.usda").write_text(
        '#usda 1.0\n(metersPerUnit = 1)\ndef Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}\n'
    )
    answer = collide("run", "ball.usda", "scene.xml", "-o", "out.h5")
    assert answer.code == 2
    assert "scene.xml: gap_rule is 'sum' here and 'max' in ball.usda" in answer.err
    assert not (here / "out.h5").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--broad-phase", "nxn"),
        ("--broad-phase", "sap"),
        ("--broad-phase", "explicit"),
        ("--pipeline", "standard"),
        ("--threads", "2"),
        ("--chunk-cells", "3"),
        ("--memory-limit", "64MiB"),
        ("--compression", "none"),
    ],
)
def test_how_it_is_done_never_changes_the_content(here, collide, options):
    usual = json.loads(collide(*RUN, "--json", "--gap", "0.025").out)
    other = json.loads(collide(*RUN, "--json", "--gap", "0.025", "-o", "other.h5", *options).out)
    assert other["content_sha256"] == usual["content_sha256"]


def test_nothing_is_overwritten_without_force(here, collide):
    assert collide(*RUN).code == 0
    written = (here / "scene.contacts.h5").stat().st_mtime_ns
    refused = collide(*RUN)
    assert refused.code == 3
    assert "exists already" in refused.err
    assert (here / "scene.contacts.h5").stat().st_mtime_ns == written
    assert collide(*RUN, "--force").code == 0
    assert (here / "scene.contacts.h5").stat().st_mtime_ns != written


def test_quiet_prints_nothing_but_errors(here, collide):
    assert collide(*RUN, "--quiet") == type(collide("--version"))(0, "", "")
    answer = collide(*RUN, "--quiet")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error: ")


@pytest.mark.parametrize("taken", ["scene.xml", "motion.h5"])
def test_an_input_is_never_the_output(here, collide, taken):
    before = (here / taken).read_bytes()
    answer = collide(*RUN, "-o", taken, "--force")
    assert answer.code == 3
    assert "input" in answer.err
    assert (here / taken).read_bytes() == before


REFUSED = [
    (("--threads", "0"), 2, "'--threads'"),
    (("--threads", "2.5"), 2, "'--threads'"),
    (("--worlds", "-1"), 2, "'--worlds'"),
    (("--gap", "-0.1"), 2, "'--gap'"),
    (("--gap", "nan"), 2, "'--gap'"),
    (("--margin", "inf"), 2, "'--margin'"),
    (("--margin", "wide"), 2, "'--margin'"),
    (("--max-contacts-per-pair", "0"), 2, "'--max-contacts-per-pair'"),
    (("--memory-limit", "4 parsecs"), 2, "'--memory-limit'"),
    (("--memory-limit", "0"), 2, "'--memory-limit'"),
    (("--memory-limit", "1KiB"), 2, "--memory-limit"),
    (("--broad-phase", "magic"), 2, "'--broad-phase'"),
    (("--gap-rule", "least"), 2, "'--gap-rule'"),
    (("--compression", "zip"), 2, "'--compression'"),
    (("--frames", "7:3"), 2, "--frames"),
    (("--frames", "soon"), 2, "--frames"),
    (("--device", "cuda:99"), 2, "--device"),
    (("--pipeline", "standard", "--broad-phase", "sap"), 2, "--pipeline standard"),
    (("--chunk-cells", "0"), 2, "'--chunk-cells'"),
    (("-t", "nowhere.h5"), 2, "nowhere.h5"),
    (("-t", "scene.xml"), 2, "scene.xml"),
    (("-t", "motion.h5", "-t", "other.h5"), 2, "'other.h5': there is no such file"),
    (("--frames", "1", "--frames", "2"), 2, "--frames is given 2 times and takes one value"),
    (("--gap", "0.1", "--gap=0.2"), 2, "--gap is given 2 times"),
    (("-o", "no/such/folder/x.h5"), 3, "no/such/folder"),
    (("-o", "x.json"), 2, "x.json: a contact set has the extension .h5 or .hdf5"),
    (("-o", "."), 3, "."),
    (("-o", "-"), 3, "standard output"),
    (("--frames", "one"), 2, "'one' is not a slice"),
    (("--frames", "20"), 2, "there are frames 0 to 19"),
    (("--frames", "20:"), 2, "there are frames 0 to 19"),
    (("--frames", "::-1"), 2, "is descending"),
    (("--environments", "/World/robot_*"), 2, "--environments is for USD scenes"),
    (("--variants", "/a:b=c"), 2, "--variants is for USD scenes"),
    (("--no-such-option",), 2, "--no-such-option"),
    (("--config", "nowhere.toml"), 2, "nowhere.toml"),
]


def without(options: tuple[str, ...]) -> list[str]:
    """The words of RUN without the options of `options`, as an option is given once."""
    pairs = list(zip(RUN[2::2], RUN[3::2], strict=True))
    return [*RUN[:2], *(word for pair in pairs if pair[0] not in options for word in pair)]


@pytest.mark.parametrize(("options", "code", "words"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_refusals_are_short_name_the_culprit_and_leave_nothing(here, collide, options, code, words):
    answer = collide(*without(options), *options)
    assert answer.code == code
    assert answer.out == ""
    assert words in answer.err
    assert answer.err.startswith("error: ")
    assert len(answer.err.splitlines()) <= 3
    assert "Traceback" not in answer.err
    assert sorted(path.name for path in here.iterdir()) == ["motion.h5", "scene.xml"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("nowhere.xml", None, "no such file"),
        ("empty.usda", "", "empty"),
        ("broken.xml", "<mujoco><worldbody>", "broken.xml"),
        ("broken.usda", "#usda 1.0\ndef {", "broken.usda"),
        ("scene.stl", "solid", "known extensions"),
    ],
)
def test_a_scene_that_cannot_be_used(here, collide, name, text, words):
    if text is not None:
        (here / name).write_text(text)
    answer = collide("run", name)
    assert (answer.code, answer.out) == (2, "")
    assert name in answer.err
    assert words in answer.err
    assert "Traceback" not in answer.err


def test_what_is_for_mjcf_is_refused_with_usd(here, collide):
    (here / "ball.usda").write_text('#usda 1.0\ndef Sphere "b" (prepend apiSchemas = ["PhysicsCollisionAPI"])\n{\n}\n')
    answer = collide("inspect", "ball.usda", "--floating-base")
    assert (answer.code, answer.out) == (2, "")
    assert "ball.usda: --floating-base is for URDF scenes" in answer.err
    answer = collide("record", "ball.usda", "--frames", "3")
    assert (answer.code, answer.out) == (2, "")
    assert "ball.usda: MuJoCo simulates MJCF and URDF scenes, and this is OpenUSD" in answer.err


def test_a_device_is_no_scene_and_is_there(here, collide):
    answer = collide("run", "/dev/null")
    assert answer.code == 2
    assert "/dev/null: is not a regular file" in answer.err


@pytest.mark.parametrize("args", [(), ("run",), ("ruin", "scene.xml"), ("run", "--frames")])
def test_usage_errors(here, collide, args):
    answer = collide(*args)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err


def test_verbose_adds_the_traceback(here, collide):
    answer = collide("run", "nowhere.xml", "-v")
    assert answer.code == 2
    assert "Traceback" in answer.err
    assert "Traceback" not in collide("run", "nowhere.xml").err


def test_a_fault_of_the_program_has_a_code_of_its_own(here, collide, monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of no interest")

    monkeypatch.setattr("collidecli.commands.run.run", fail)
    answer = collide(*RUN)
    assert answer.code == 70
    assert "internal error: ZeroDivisionError: of no interest" in answer.err
    assert "Traceback" not in answer.err


def test_memory_that_runs_out_is_said(here, collide, monkeypatch):
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("collidecli.commands.run.run", fail)
    answer = collide(*RUN)
    assert answer.code == 2
    assert "--memory-limit" in answer.err


def test_several_scenes_have_no_default_output(here, collide):
    (here / "other.xml").write_text((here / "scene.xml").read_text())
    answer = collide("run", "scene.xml", "other.xml", "--device", "cpu")
    assert (answer.code, "2 scenes have no default output: name it with -o" in answer.err) == (2, True), answer.err
    assert "2 scenes" in collide("profile", "scene.xml", "other.xml").err


def test_an_existing_output_is_refused_before_slow_imports(here):
    """Warp, MuJoCo and OpenUSD take seconds to import; an output that exists is known without them."""
    (here / "scene.contacts.h5").write_bytes(b"")
    code = (
        "import sys; from collidecli.cli.main import main; code = main(['run', 'scene.xml']); "
        "print(code, [name for name in ('warp', 'mujoco', 'pxr', 'h5py', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "3 []\n", done.stderr
    assert "exists already" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "what", "where"),
    [
        (("-o", "x.json"), 2, "a contact set has the extension .h5 or .hdf5", "x.json"),
        (("--no-such-option",), 2, "No such option", ""),
        (("-o", "no/such/folder/x.h5"), 3, "the folder", "no/such/folder/x.h5"),
    ],
)
def test_an_error_is_an_object_with_json(here, collide, options, code, what, where):
    answer = collide(*RUN, "--json", *options)
    record = json.loads(answer.out)
    assert (answer.code, record["schema"], record["error"]["exit_code"]) == (code, "collide.error/1", code)
    assert record["error"]["what"].startswith(what)
    assert record["error"]["where"] == where
    assert answer.err == f"error: {record['error']['message']}\n"
    assert collide(*RUN, *options).out == ""


def test_worlds_beyond_the_memory_limit_are_refused_before_they_are_built(here, collide, monkeypatch):
    refused = collide("run", "scene.xml", "--worlds", "1000000000")
    assert refused.code == 2
    assert "a frame of 1000000000 worlds needs" in refused.err
    monkeypatch.setattr("collidecli.storage.input_limits.LEAST_LIMIT", 1)
    args = ("run", "scene.xml", "--worlds", "100", "--device", "cpu", "-o", "a.h5")
    assert collide(*args, "--memory-limit", "36KiB").code == 2
    assert collide(*args).code == 0


def test_a_trace_holds_threads_chunks_and_stages(here, collide):
    options = ("--gap", "0.025", "--threads", "2", "--chunk-cells", "4", "--trace")
    result = json.loads(collide(*RUN, *options, "trace.json", "--json").out)
    assert result["trace"] == "trace.json"
    events = checked_trace(here / "trace.json")
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"MainThread", "collide-writer", "collide_0"} <= set(threads.values())
    complete = [event for event in events if event["ph"] == "X"]
    chunks = [event for event in complete if event["name"] == "chunk"]
    assert sum(chunk["args"]["cells"] for chunk in chunks) == FRAMES
    assert sum(chunk["args"]["contacts"] for chunk in chunks) == result["contacts"]
    assert sum(chunk["args"]["candidates"] for chunk in chunks) == result["candidates"]
    for stage in result["stages"]:
        if stage["stage"] in ("broad_phase", "narrow_phase", "order", "write"):
            name = stage["stage"].replace("_", " ")
            seconds = sum(event["dur"] for event in complete if event["name"] == name) / 1e6
            assert seconds == pytest.approx(stage["seconds"], rel=1e-6)
    (whole,) = [event for event in complete if event["name"] == "run"]
    waits = [event for event in complete if event["name"] == "compile" and event["ts"] >= whole["ts"]]
    waited = covered_seconds([(event["ts"], event["ts"] + event["dur"]) for event in waits])
    assert (whole["dur"] - waited) / 1e6 == pytest.approx(result["wall_seconds"])
    assert all(whole["ts"] <= chunk["ts"] <= whole["ts"] + whole["dur"] for chunk in chunks)


@pytest.mark.parametrize(("name", "code"), [("trace.h5", 2), ("no/trace.json", 3), ("scene.xml", 3)])
def test_a_trace_that_cannot_be_written_is_refused_before_the_run(here, collide, name, code):
    answer = collide(*RUN, "--trace", name)
    assert (answer.code, name in answer.err) == (code, True)
    assert not (here / "scene.contacts.h5").exists()


RUN_AGAIN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu", "--force", "-q")
USD = """#usda 1.0
(
 metersPerUnit = 1
)
def Material "Ice" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {
 float physics:dynamicFriction = 0.125
 float physics:restitution = 0.5
 uniform token physxMaterial:frictionCombineMode = "min"
}
def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
 uniform token axis = "Y"
}
def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "MaterialBindingAPI"]) {
 rel material:binding:physics = </Ice>
}
"""


def test_columns_are_written_checked_and_shown(here, collide):
    scene = here / "scene.xml"
    text = scene.read_text()
    base = '<geom name="base" type="sphere" size="0.5"'
    assert base in text
    scene.write_text(text.replace(base, f'{base} friction="0.25 0.5 0.75" condim="4" priority="1" margin="0.01"'))
    assert collide(*RUN_AGAIN, "--columns", "friction, condim,margin0,torsional_friction").code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        count = contacts.contact_count
        assert count > 0
        assert contacts.config["columns"] == ["friction", "condim", "margin0", "torsional_friction"]
        assert contacts.optional_columns == ("friction", "torsional_friction", "condim", "margin0")
        values = {"friction": 0.25, "condim": 4, "torsional_friction": 0.5, "margin0": np.float32(0.01)}
        for name, value in values.items():
            assert contacts.column(name).tolist() == [value] * count
    assert collide("check", "scene.contacts.h5").code == 0
    result = json.loads(collide("inspect", "scene.contacts.h5", "--json").out)
    assert result["material_rule"] == "mujoco"
    assert result["optional_columns"]["condim"] == {"least": [4], "most": [4]}
    shown = collide("inspect", "scene.contacts.h5").out
    assert "torsional_friction" in shown
    with h5py.File(here / "scene.contacts.h5", "r+") as file:
        column = file["rigid_contacts/friction"]
        column[0] = 0.5
    answer = collide("check", "scene.contacts.h5")
    assert answer.code == 1
    assert "friction does not follow from the pair's two surfaces" in answer.out


def test_without_the_option_nothing_changes(here, collide):
    assert collide(*RUN_AGAIN).code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.optional_columns == ()
        assert "columns" not in contacts.config
    assert json.loads(collide("inspect", "scene.contacts.h5", "--json").out)["optional_columns"] == {}


def test_a_usd_scene(here, collide):
    (here / "s.usda").write_text(USD)
    assert collide("run", "s.usda", "--device", "cpu", "-q", "--columns", "friction,restitution").code == 0
    with ContactSet.open(here / "s.contacts.h5") as contacts:
        assert contacts.materials is not None
        assert contacts.materials.friction.tolist() == [0.5, 0.125]
        assert set(contacts.column("friction").tolist()) == {0.125}
        assert set(contacts.column("restitution").tolist()) == {0.25}
    result = json.loads(collide("inspect", "s.usda", "--json").out)
    assert result["shapes"][1]["material"]["friction_combine"] == "min"
    assert "friction" in collide("inspect", "s.usda").out


def test_no_contact_and_every_column(here, collide):
    assert collide(*RUN_AGAIN, "--frames", "0", "--columns", "friction,friction5,solimp").code == 0
    result = json.loads(collide("inspect", "scene.contacts.h5", "--json").out)
    assert result["contacts"] == 0
    assert result["optional_columns"]["solimp"] == {"least": [], "most": []}
    assert collide("check", "scene.contacts.h5").code == 0
    assert collide("inspect", "scene.contacts.h5").code == 0


@pytest.mark.parametrize("name", ["fricton", "distance", "jacobian0"])
def test_unknown_names_are_refused_with_those_that_are_known(here, collide, name):
    answer = collide(*RUN_AGAIN, "--columns", f"friction,{name}")
    assert answer.code == 2
    assert f"there is no optional column '{name}'" in answer.err
    assert all(column.name in answer.err for column in OPTIONAL_COLUMNS if column.name not in BROUGHT_BY)
    assert not (here / "scene.contacts.h5").exists()


def test_columns_that_the_scene_does_not_give_are_refused(here, collide):
    answer = collide(*RUN_AGAIN, "--columns", "restitution")
    assert answer.code == 2
    assert "does not define a contact's restitution" in answer.err
    assert not (here / "scene.contacts.h5").exists()


def test_several_scenes_and_worlds(here, collide):
    """Templates keep their own surfaces; the joined scene has the rule of its parts."""
    sticky = SCENE.replace('size="0.5"', 'size="0.5" friction="2 0.005 0.0001" margin="2"')
    (here / "sticky.xml").write_text(sticky)
    (here / "plain.xml").write_text(SCENE.replace('size="0.5"', 'size="0.5" margin="2"'))
    common = ("--device", "cpu", "-q", "--force", "-o", "o.h5", "--columns", "friction")
    assert collide("run", "sticky.xml", "plain.xml", *common).code == 0
    with ContactSet.open(here / "o.h5") as contacts:
        assert contacts.material_rule == "mujoco"
        assert [set(contacts.cell(0, world).columns["friction"]) for world in (0, 1)] == [{2.0}, {1.0}]
    assert collide("run", "sticky.xml", "--worlds", "3", *common).code == 0
    with ContactSet.open(here / "o.h5") as contacts:
        assert contacts.column("friction").tolist() == [2.0] * contacts.contact_count
        assert contacts.contact_count == 3
    assert collide("check", "o.h5").code == 0


def test_set_by_variable_and_by_file(here, collide, monkeypatch):
    (here / "collide.toml").write_text('columns = "condim, margin1"\n')
    assert collide(*RUN_AGAIN).code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.optional_columns == ("condim", "margin1")
    monkeypatch.setenv("COLLIDE_COLUMNS", "friction")
    assert collide(*RUN_AGAIN).code == 0
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.optional_columns == ("friction",)


def test_how_to_reduce_needs_a_reduction_and_ids_have_an_option(here, collide):
    answer = collide(*RUN_AGAIN, "--anchor-contact")
    assert answer.code == 2
    assert "anchor_contact applies to the reduction" in answer.err
    assert "--reduce-contacts" in answer.err
    answer = collide(*RUN_AGAIN, "--columns", "contact_id")
    assert answer.code == 2
    assert "--contact-ids" in answer.err
    answer = collide(*RUN_AGAIN, "--betas", "1,x")
    assert answer.code == 2
    assert "no list of numbers" in answer.err


def test_columns_that_options_bring_are_written_and_checked(here, collide):
    options = ["--sticky-contacts", "0.01", "--reduce-contacts", "--moment-matching", "--betas", "10"]
    box = '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    (here / "box.xml").write_text(f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{box}</worldbody></mujoco>')
    assert collide("run", "box.xml", "--device", "cpu", "-q", "--gap", "0.01", *options).code == 0
    with ContactSet.open("box.contacts.h5") as contacts:
        assert contacts.optional_columns == ("friction_scale", "contact_id")
        assert contacts.config["sticky_contacts"] == 0.01
        assert contacts.config["betas"] == [10.0]
        count = contacts.contact_count
        assert count == 4
    assert collide("check", "box.contacts.h5").code == 0
    for name, values, words in (
        ("contact_id", np.zeros(count, np.int64), "not the only one of its cell"),
        ("contact_id", np.full(count, -1), "contact_id is negative"),
        ("friction_scale", np.full(count, np.nan), "friction_scale is negative or not finite"),
    ):
        shutil.copy("box.contacts.h5", "bad.h5")
        with h5py.File("bad.h5", "r+") as file:
            file[f"rigid_contacts/{name}"][:] = values
        assert words in collide("check", "bad.h5").out


TOUCHING = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="a" pos="0 0 .19"><freejoint/><geom name="a" type="sphere" size=".2"/></body>
    <body name="b" pos=".3 0 .09"><freejoint/><geom name="b" type="cylinder" size=".15 .1"/></body>
    <body name="c" pos="2 0 1"><freejoint/><geom name="c" type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def pairs(tmp_path, monkeypatch, collide):
    """The output of a run with --touch-only, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(TOUCHING)
    result = json.loads(collide("run", "scene.xml", "-o", "pairs.h5", "--touch-only", "--json").out)
    assert result["contacts"] == 0
    assert result["groups"]["touches"]["rows"] == 3
    return "pairs.h5"


def test_the_file_is_checked_inspected_compared_and_exported(pairs, collide):
    assert collide("check", pairs).code == 0
    shown = json.loads(collide("inspect", pairs, "--json").out)
    assert shown["groups"]["touches"]["rows"] == 3
    assert collide("diff", pairs, pairs).code == 0
    assert collide("run", "scene.xml", "-o", "few.h5", "--touch-only", "--gap", "0", "-q").code == 0
    assert collide("export", pairs, "--to", "csv", "--group", "touches", "-o", "pairs.csv", "-q").code == 0
    with open("pairs.csv", encoding="utf-8") as file:
        rows = [line.split(",")[4:6] for line in file.read().splitlines()]
    assert rows == [["shape0", "shape1"], ["floor", "a"], ["floor", "b"], ["a", "b"]]


@pytest.mark.parametrize("verb", ["events", "report", "view", "label", "audit"])
def test_verbs_that_need_distances_refuse_it(pairs, collide, verb):
    output = {"report": ("-o", "page.html"), "label": ("-o", "labels.npz"), "view": ("--no-browser",)}.get(verb, ())
    answer = collide(verb, pairs, *output)
    assert answer.code == 2
    assert "it has pairs of shapes and no distances" in answer.err
    assert "run without --touch-only" in answer.err


def test_columns_and_contacts_are_refused_before_there_is_a_file(pairs, collide, tmp_path):
    for option in (("--columns", "friction"), ("--contact-ids",), ("--reduce-contacts",)):
        answer = collide("run", "scene.xml", "-o", "none.h5", "--touch-only", *option)
        assert answer.code == 2
        assert "touch_only finds pairs alone" in answer.err
        assert not (tmp_path / "none.h5").exists()


VARIANTS = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Sphere "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
}
def Xform "b" (
    variants = { string size = "small" }
    prepend variantSets = "size"
) {
    variantSet "size" = {
        "small" {
            def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 0.5 }
        }
        "large" {
            def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI"]) { double radius = 2 }
        }
    }
}
""".replace(" }\n        }", "\n            }\n        }")


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.usda").write_text(VARIANTS)
    return "s.usda"


def test_run_writes_what_was_selected(collide, scene):
    """Concentric spheres: the distance is minus the sum of the radii, and the file says which variant it was."""
    hashes = []
    for value, distance in (("small", -1.5), ("large", -3.0)):
        variant = f"/b:size={value}"
        result = collide("run", scene, "--variants", variant, "-o", f"{value}.h5", "--device", "cpu")
        assert result.code == 0, result.err
        with open_contacts(f"{value}.h5") as found:
            (block,) = found.blocks()
            assert block.columns["distance"].tolist() == pytest.approx([distance])
        with h5py.File(f"{value}.h5") as file:
            assert variant in json.loads(file.attrs["config"])["variants"]
            hashes.append(file.attrs["content_sha256"])
    assert hashes[0] != hashes[1]


def test_refused(collide, scene, tmp_path):
    result = collide("run", scene, "--variants", "/b:size=huge", "-o", "o.h5", "--device", "cpu")
    assert result.code == 2
    assert "no variant 'huge'" in result.err
    assert "large, small" in result.err
    (tmp_path / "m.xml").write_text('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    result = collide("inspect", "m.xml", "--variants", "/b:size=huge")
    assert result.code == 2
    assert "m.xml: --variants is for USD scenes" in result.err
