"""collide run: what it prints and writes, columns, touches alone, variants, and what it refuses."""

import json
import shutil
from unittest.mock import Mock

import h5py
import numpy as np
import pytest

from collidecli.motions.timing import covered_seconds
from collidecli.scene.contact_columns import MATERIAL_COLUMNS, OPTIONAL_COLUMNS
from collidecli.scene.mixing import BROUGHT_BY
from collidecli.storage.contact_sets.reader import ContactSet
from tests.cli.conftest import FRAMES, RUN, SCENE, Answer, checked_trace, distances, refusals
from tests.support.usd_scenes import COLLIDER, sphere, write_usda

NOT_CHOSEN = {*BROUGHT_BY, *(column.name for column in MATERIAL_COLUMNS)}
SELECTABLE = tuple(column.name for column in OPTIONAL_COLUMNS if column.name not in NOT_CHOSEN)
SMALL_AND_LARGE = "".join(
    f'"{name}" {{\n{sphere("s", f"double radius = {radius}", COLLIDER)}}}\n'
    for name, radius in (("small", 0.5), ("large", 2))
)
VARIANTS = f"""{sphere("a")}def Xform "b" (
    variants = {{ string size = "small" }}
    prepend variantSets = "size"
) {{
    variantSet "size" = {{
        {SMALL_AND_LARGE}
    }}
}}
"""


def test_the_result_says_what_the_spheres_do(here, collide):
    result = collide.result(*RUN)
    touching = np.flatnonzero(distances() < 0.0)
    expected = {
        "schema": "collide.run/1",
        "frames": FRAMES,
        "worlds": 1,
        "shapes": 3,
        "near_contacts": 0,
    }
    expected |= dict.fromkeys(
        ("contacts", "touching_contacts", "contact_pair_cells"), len(touching)
    )
    expected |= {"contact_pair_count": 1, "touching_pair_count": 1}
    assert {name: result[name] for name in expected} == expected
    assert result["false_positive_ratio"] == pytest.approx(
        1.0 - len(touching) / result["candidates"]
    )
    deepest = (result["deepest"]["frame"], result["deepest"]["distance"])
    assert deepest == (FRAMES - 1, pytest.approx(distances()[-1], abs=1e-7))
    pair = {
        "shape0": "base",
        "shape1": "ball",
        "contacts": len(touching),
        "touching": len(touching),
    }
    assert result["top_pairs"] == [pair]
    assert {stage["stage"] for stage in result["stages"]} >= {
        "load",
        "compile",
        "broad_phase",
        "narrow_phase",
        "write",
    }
    assert any("far" in warning for warning in result["warnings"])
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        np.testing.assert_allclose(contacts.column("distance"), distances()[touching], atol=1e-7)
        assert contacts.content_sha256 == result["content_sha256"]


def test_the_table_names_what_was_computed(here, collide):
    answer = collide.ok(*RUN)
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        content = contacts.content_sha256
    for word in (
        "scene.xml",
        "explicit",
        "base",
        "ball",
        "85 mm deep",
        "frames/s",
        "scene.contacts.h5",
        content,
    ):
        assert word in answer.out
    assert "\x1b" not in answer.out
    assert answer.err.startswith("warning: ")


GAPS = {
    "--gap 0.025": 14,
    "--margin 0.01": 11,
    "--gap 0.02 --gap-rule sum": 13,
    "--gap 0.02 --gap-rule max": 11,
}
COUNTS = GAPS | {"--frames 0:12": 1, "--frames ::2": 4, "--frames -1": 1, "--worlds 3": 27}
COUNTS |= {"--max-contacts-per-pair 1": 9, "--narrow-phase mpr": 9}


@pytest.mark.parametrize("options", COUNTS)
def test_options_change_the_contacts_as_they_say(here, collide, options):
    assert collide.result(*RUN, *options.split())["contacts"] == COUNTS[options]


def test_two_scenes_are_two_worlds(here, collide):
    (here / "other.xml").write_text(SCENE.replace('pos="0 0 2"', 'pos="0 0 0.7"'))
    result = collide.result("run scene.xml other.xml --device cpu -o two.h5")
    assert (result["worlds"], result["contacts"], result["deepest"]["world"]) == (2, 1, 1)
    collide.refused(
        "run scene.xml other.xml", told="2 scenes have no default output: name it with -o"
    )
    collide.refused(
        "run scene.xml motion.h5",
        told="is a recording, not a further scene: give it with -t motion.h5",
    )
    collide.refused("profile scene.xml other.xml", told="2 scenes")


WAYS = (
    "--pipeline standard",
    "--threads 2",
    "--chunk-cells 3",
    "--memory-limit 64MiB",
    "--compression none",
    "--threads 0 --chunk-cells 0 --memory-limit 0 --max-contacts-per-pair 0",
)
"""The last: 0 is the default, as in Python."""


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "options", [*WAYS, *(f"--broad-phase {name}" for name in ("nxn", "sap", "explicit"))]
)
def test_how_it_is_done_never_changes_the_content(ran, collide, options):
    with ContactSet.open(ran("usual.h5", "--gap", "0.025")) as usual:
        result = collide.result(*RUN, "--gap", "0.025", "-o", "other.h5", *options.split())
        assert result["content_sha256"] == usual.content_sha256


def test_nothing_is_overwritten_without_force(here, ran, collide):
    ran("scene.contacts.h5")
    written = (here / "scene.contacts.h5").stat().st_mtime_ns
    collide.refused(*RUN, told="exists already", code=3)
    assert collide(*RUN, "--force", "--quiet") == Answer(0, "", "")
    assert (here / "scene.contacts.h5").stat().st_mtime_ns != written
    assert collide.refused(*RUN, "--quiet", code=3).startswith("error: ")


test_an_input_is_never_the_output = refusals(
    "run scene.xml -t motion.h5 --force", ("-o scene.xml", "input", 3), ("-o motion.h5", "input", 3)
)


test_wrong_arguments = refusals(
    "run scene.xml",
    ("--threads -1", "'--threads'"),
    ("--threads 2.5", "'--threads'"),
    ("--worlds -1", "'--worlds'"),
    ("--gap -0.1", "'--gap'"),
    ("--gap nan", "'--gap'"),
    ("--margin inf", "'--margin'"),
    ("--margin wide", "'--margin'"),
    ("--max-contacts-per-pair -1", "'--max-contacts-per-pair'"),
    ("--memory-limit '4 parsecs'", "'--memory-limit'"),
    ("--memory-limit -1", "'--memory-limit'"),
    ("--memory-limit 1KiB", "--memory-limit"),
    ("--broad-phase magic", "'--broad-phase'"),
    ("--gap-rule least", "'--gap-rule'"),
    ("--compression zip", "'--compression'"),
    ("--frames", "--frames"),
    ("--frames 7:3", "--frames"),
    ("--frames soon", "--frames"),
    ("--frames one", "'one' is not a slice"),
    ("--frames 1 --frames 2", "--frames is given 2 times and takes one value"),
    ("--frames ::-1", "is descending"),
    ("-t motion.h5 --frames 20", "there are frames 0 to 19"),
    ("-t motion.h5 --frames 20:", "there are frames 0 to 19"),
    ("--device cuda:99", "--device"),
    ("--pipeline standard --broad-phase sap", "--pipeline standard"),
    ("--chunk-cells -1", "'--chunk-cells'"),
    ("-t nowhere.h5", "nowhere.h5"),
    ("-t scene.xml", "scene.xml"),
    ("-t motion.h5 -t other.h5", "'other.h5': there is no such file"),
    ("--gap 0.1 --gap=0.2", "--gap is given 2 times"),
    ("-o scene.xml/such/folder/x.h5", "scene.xml cannot be created: a file has its name", 3),
    ("-o x.json", "x.json: a contact set has the extension .h5 or .hdf5"),
    ("-o .", ".", 3),
    ("-o -", "standard output", 3),
    ("--environments /World/robot_*", "--environments is for USD scenes"),
    ("--variants /a:b=c", "--variants is for USD scenes"),
    ("--no-such-option", "--no-such-option"),
    ("--config nowhere.toml", "nowhere.toml"),
    ("--worlds 1000000000", "a frame of 1000000000 worlds needs"),
    ("--columns fricton", "did you mean friction? known: friction, "),
    ("--columns restitution", "does not define a contact's restitution"),
    ("--columns contact_id", "--contact-ids"),
    ("--anchor-contact", ("anchor_contact applies to the reduction", "--reduce-contacts")),
    *((f"--betas 1,{text}", "no list of numbers that are finite") for text in ("x", "inf", ",2")),
    ("--touch-only --columns friction", "touch_only finds pairs alone"),
    ("--touch-only --contact-ids", "touch_only finds pairs alone"),
    ("--touch-only --reduce-contacts", "touch_only finds pairs alone"),
    ("--trace trace.h5", "trace.h5"),
    ("--trace scene.xml/trace.json", "a file has its name", 3),
    ("--trace scene.xml", "scene.xml", 3),
    *(
        (f"--columns friction,{name}", (f"there is no optional column '{name}'", *SELECTABLE))
        for name in ("fricton", "distance", "jacobian0")
    ),
)


@pytest.fixture
def scenes(here):
    """Scenes that cannot be used, beside a good one of USD and one with variants."""
    (here / "empty.usda").write_text("")
    (here / "broken.xml").write_text("<mujoco><worldbody>")
    (here / "broken.usda").write_text("#usda 1.0\ndef {")
    (here / "scene.stl").write_text("solid")
    write_usda(here, sphere("ball", apis=COLLIDER), name="ball.usda")
    write_usda(here, VARIANTS, name="variants.usda")


test_scenes_that_cannot_be_used = refusals(
    "",
    ("run", "SCENE"),
    ("ruin scene.xml", "ruin"),
    ("run nowhere.xml", ("nowhere.xml", "no such file")),
    ("run empty.usda", ("empty.usda", "empty")),
    ("run broken.xml", "broken.xml"),
    ("run broken.usda", "broken.usda"),
    ("run scene.stl", ("scene.stl", "known extensions")),
    ("run /dev/null", "/dev/null: is not a regular file"),
    (
        "run ball.usda scene.xml -o out.h5",
        "scene.xml: gap_rule is 'sum' here and 'max' in ball.usda",
    ),
    ("inspect ball.usda --floating-base", "ball.usda: --floating-base is for URDF scenes"),
    ("inspect scene.xml --variants /b:size=huge", "scene.xml: --variants is for USD scenes"),
    ("run variants.usda --variants /b:size=huge", ("no variant 'huge'", "large, small")),
    (
        "record ball.usda --frames 3",
        "ball.usda: MuJoCo simulates MJCF and URDF scenes, and this is OpenUSD",
    ),
    needs="scenes",
)


@pytest.mark.parametrize(("words", "told"), [("", "Usage"), ("traj", "convert")])
def test_no_verb_shows_the_usage(collide, words, told):
    answer = collide(words)
    assert (answer.code, answer.out, told in answer.err) == (2, "", True)


def test_verbose_adds_the_traceback(here, collide):
    answer = collide("run nowhere.xml -v")
    assert (answer.code, "Traceback" in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (
            ZeroDivisionError("of no interest"),
            70,
            "internal error: ZeroDivisionError: of no interest",
        ),
        (MemoryError(), 2, "--memory-limit"),
    ],
)
def test_a_fault_of_the_program_has_a_code_of_its_own(
    here, collide, monkeypatch, error, code, told
):
    monkeypatch.setattr("collidecli.verbs.run.run.run", Mock(side_effect=error))
    collide.refused(*RUN, told=told, code=code)


@pytest.mark.parametrize(
    ("options", "code", "what", "where"),
    [
        (("-o", "x.json"), 2, "a contact set has the extension .h5 or .hdf5", "x.json"),
        (("--no-such-option",), 2, "No such option", ""),
        (("-o", "scene.xml/such/x.h5"), 3, "the folder", "scene.xml/such/x.h5"),
    ],
)
def test_an_error_is_an_object_with_json(here, collide, options, code, what, where):
    answer = collide(*RUN, "--json", *options)
    record = json.loads(answer.out)
    assert (answer.code, record["schema"], record["error"]["exit_code"]) == (
        code,
        "collide.error/1",
        code,
    )
    assert record["error"]["what"].startswith(what)
    assert record["error"]["where"] == where
    assert answer.err == f"error: {record['error']['message']}\n"
    assert collide(*RUN, *options).out == ""


def test_worlds_beyond_the_memory_limit_are_refused_before_they_are_built(
    here, collide, monkeypatch
):
    monkeypatch.setattr("collidecli.storage.reading_limit.LEAST_LIMIT", 1)
    args = ("run scene.xml --worlds 100 --device cpu -o a.h5",)
    collide.refused(*args, "--memory-limit", "36KiB")
    collide.ok(*args)


def test_a_trace_holds_the_time_of_every_stage(here, collide):
    options = ("--gap", "0.025", "--threads", "2", "--chunk-cells", "4", "--trace")
    result = collide.result(*RUN, *options, "trace.json")
    assert result["trace"] == "trace.json"
    events = checked_trace(here / "trace.json")
    threads = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
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
    waits = [
        event for event in complete if event["name"] == "compile" and event["ts"] >= whole["ts"]
    ]
    waited = covered_seconds([(event["ts"], event["ts"] + event["dur"]) for event in waits])
    assert (whole["dur"] - waited) / 1e6 == pytest.approx(result["wall_seconds"])
    assert all(whole["ts"] <= chunk["ts"] <= whole["ts"] + whole["dur"] for chunk in chunks)


RUN_AGAIN = (*RUN, "--force", "-q")
BOUND = (
    '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "MaterialBindingAPI"])'
)
USD = f"""def Material "Ice" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {{
    float physics:dynamicFriction = 0.125
    float physics:restitution = 0.5
    uniform token physxMaterial:frictionCombineMode = "min"
}}
def Plane "floor" {COLLIDER} {{
    uniform token axis = "Y"
}}
{sphere("ball", "rel material:binding:physics = </Ice>", BOUND)}"""


def test_chosen_columns_are_written(here, collide):
    scene = here / "scene.xml"
    base = '<geom name="base" type="sphere" size="0.5"'
    assert base in SCENE
    scene.write_text(
        SCENE.replace(
            base, f'{base} friction="0.25 0.5 0.75" condim="4" priority="1" margin="0.01"'
        )
    )
    collide.ok(*RUN_AGAIN, "--columns", "friction, condim,margin0,torsional_friction")
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert contacts.contact_count > 0
        assert contacts.config["columns"] == ["friction", "condim", "margin0", "torsional_friction"]
        assert contacts.optional_columns == ("friction", "torsional_friction", "condim", "margin0")
        values = {
            "friction": 0.25,
            "condim": 4,
            "torsional_friction": 0.5,
            "margin0": np.float32(0.01),
        }
        for name, value in values.items():
            assert contacts.column(name).tolist() == [value] * contacts.contact_count
    collide.ok("check scene.contacts.h5")
    result = collide.result("inspect scene.contacts.h5")
    assert (result["material_rule"], result["optional_columns"]["condim"]) == (
        "mujoco",
        {"least": [4], "most": [4]},
    )
    assert "torsional_friction" in collide("inspect scene.contacts.h5").out
    with h5py.File(here / "scene.contacts.h5", "r+") as file:
        file["rigid_contacts/friction"][0] = 0.5
    collide.found(
        "check scene.contacts.h5", told="friction does not follow from the pair's two surfaces"
    )
    collide.ok(*RUN_AGAIN)
    with ContactSet.open(here / "scene.contacts.h5") as contacts:
        assert (contacts.optional_columns, "columns" in contacts.config) == ((), False)
    assert collide.result("inspect scene.contacts.h5")["optional_columns"] == {}


def test_a_usd_scene(here, collide):
    write_usda(here, USD, "metersPerUnit = 1")
    collide.ok("run s.usda --device cpu -q --columns friction,restitution")
    with ContactSet.open(here / "s.contacts.h5") as contacts:
        assert contacts.materials.friction.tolist() == [0.5, 0.125]
        assert [{*contacts.column(name).tolist()} for name in ("friction", "restitution")] == [
            {0.125},
            {0.25},
        ]
    result = collide.result("inspect s.usda")
    assert result["shapes"][1]["material"]["friction_combine"] == "min"
    assert "friction" in collide("inspect s.usda").out


def test_columns_may_be_of_no_contact(here, collide):
    collide.ok(*RUN_AGAIN, "--frames", "0", "--columns", "friction,friction5,solimp")
    result = collide.result("inspect scene.contacts.h5")
    assert (result["contacts"], result["optional_columns"]["solimp"]) == (
        0,
        {"least": [], "most": []},
    )
    for verb in ("check", "inspect"):
        collide.ok(verb, "scene.contacts.h5")


def test_each_of_several_scenes_keeps_its_surfaces(here, collide):
    """Templates keep their own surfaces; the joined scene has the rule of its parts."""
    sticky = SCENE.replace('size="0.5"', 'size="0.5" friction="2 0.005 0.0001" margin="2"')
    (here / "sticky.xml").write_text(sticky)
    (here / "plain.xml").write_text(SCENE.replace('size="0.5"', 'size="0.5" margin="2"'))
    common = ("--device", "cpu", "-q", "--force", "-o", "o.h5", "--columns", "friction")
    collide.ok("run sticky.xml plain.xml", *common)
    with ContactSet.open(here / "o.h5") as contacts:
        assert contacts.material_rule == "mujoco"
        assert [set(contacts.cell(0, world).columns["friction"]) for world in (0, 1)] == [
            {2.0},
            {1.0},
        ]
    collide.ok("run sticky.xml --worlds 3", *common)
    with ContactSet.open(here / "o.h5") as contacts:
        assert contacts.column("friction").tolist() == [2.0] * contacts.contact_count
        assert contacts.contact_count == 3
    collide.ok("check o.h5")


def test_columns_may_be_set_by_a_file_or_a_variable(here, collide, monkeypatch):
    (here / "collide.toml").write_text('columns = "condim, margin1"\n')
    for columns in (("condim", "margin1"), ("friction",)):
        collide.ok(*RUN_AGAIN)
        with ContactSet.open(here / "scene.contacts.h5") as contacts:
            assert contacts.optional_columns == columns
        monkeypatch.setenv("COLLIDE_COLUMNS", "friction")


def test_columns_that_options_bring_are_checked(here, collide):
    options = [
        "--sticky-contacts",
        "0.01",
        "--reduce-contacts",
        "--moment-matching",
        "--betas",
        "10",
    ]
    box = '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    (here / "box.xml").write_text(
        f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{box}</worldbody></mujoco>'
    )
    collide.ok("run box.xml --device cpu -q --gap 0.01", *options)
    with ContactSet.open("box.contacts.h5") as contacts:
        assert contacts.optional_columns == ("friction_scale", "contact_id")
        assert contacts.config["sticky_contacts"] == 0.01
        assert contacts.config["betas"] == [10.0]
        count = contacts.contact_count
        assert count == 4
    collide.ok("check box.contacts.h5")
    for name, values, words in (
        ("contact_id", np.zeros(count, np.int64), "not the only one of its cell"),
        ("contact_id", np.full(count, -1), "contact_id is negative"),
        ("friction_scale", np.full(count, np.nan), "friction_scale is negative or not finite"),
    ):
        shutil.copy("box.contacts.h5", "bad.h5")
        with h5py.File("bad.h5", "r+") as file:
            file[f"rigid_contacts/{name}"][:] = values
        assert words in collide("check bad.h5").out


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
    result = collide.result("run scene.xml -o pairs.h5 --touch-only")
    assert result["contacts"] == 0
    assert result["groups"]["touches"]["rows"] == 3
    return "pairs.h5"


def test_other_verbs_read_the_file(pairs, collide):
    collide.ok("check", pairs)
    shown = collide.result("inspect", pairs)
    assert shown["groups"]["touches"]["rows"] == 3
    collide.ok("diff", pairs, pairs)
    collide.ok("run scene.xml -o few.h5 --touch-only --gap 0 -q")
    collide.ok("export", pairs, "--to", "csv", "--group", "touches", "-o", "pairs.csv", "-q")
    with open("pairs.csv", encoding="utf-8") as file:
        rows = [line.split(",")[4:6] for line in file.read().splitlines()]
    assert rows == [["shape0", "shape1"], ["floor", "a"], ["floor", "b"], ["a", "b"]]


def test_run_writes_what_was_selected(collide, scenes):
    """Concentric spheres: the distance is minus the sum of the radii, and the file says which
    variant it was."""
    hashes = set()
    for value, distance in (("small", -1.5), ("large", -3.0)):
        variant = f"/b:size={value}"
        result = collide.result(
            "run variants.usda --device cpu --variants", variant, "-o", f"{value}.h5"
        )
        assert result["deepest"]["distance"] == pytest.approx(distance)
        with ContactSet.open(f"{value}.h5") as contacts:
            assert variant in contacts.config["variants"]
        hashes.add(result["content_sha256"])
    assert len(hashes) == 2


def test_the_rule_of_gaps_that_are_sums_is_told(here, collide):
    (here / "balls.xml").write_text(
        "<mujoco><worldbody><geom size='0.1'/><body pos='0 0 0.3'><freejoint/>"
        "<geom size='0.1'/></body></worldbody></mujoco>"
    )
    told = {
        rule: collide.ok(f"run balls.xml --gap 0.01 --gap-rule {rule} --force")
        for rule in ("sum", "max")
    }
    assert "20 mm of each pair, the sum of both shapes' gaps;" in told["sum"].out
    assert "10 mm of each pair;" in told["max"].out
    assert (
        json.loads(collide.ok("run balls.xml --gap-rule sum --force --json").out)["gap_rule"]
        == "sum"
    )
