"""What differs between the scenes and the motions of two contact sets, in the answers of collide
diff."""

import math
from pathlib import Path

import h5py
import numpy as np
import pytest

import collidecli
from tests.cli.conftest import write_poses

ROBOT = """<mujoco>
  <worldbody>
    <geom name="post" type="box" size=".1 .1 .4" pos="0.6 0 .4"/>
    <body name="upper" pos="0 0 .5"><joint name="shoulder" axis="0 1 0"/>
      <geom name="upper" type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
      <body name="fore" pos=".3 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom name="fore" type="capsule" size=".035" fromto="0 0 0 .25 0 0"/>
        <body name="hand" pos=".25 0 0">
          <geom name="hand" type="sphere" size=".05" pos=".06 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
FORE = ('size=".035"', 'size=".05"')
FRAMES = 40
CHANGED_FROM = 12
TURN = 0.05
"""By which the elbow is turned further [rad]."""
HAND = 0.25
"""Distance of the hand's origin from the elbow [m]."""


@pytest.fixture
def recorded(here) -> None:
    """Two recordings of joints, motion.csv and motion2.csv, and robot.xml."""
    time = np.arange(FRAMES) * 0.01
    rows = np.stack([time, 0.4 * np.sin(6 * time) + 0.3, 0.5 * np.cos(5 * time)], axis=1)
    _write("motion.csv", rows)
    rows[CHANGED_FROM:, 2] += TURN
    _write("motion2.csv", rows)
    Path("robot.xml").write_text(ROBOT)


def _write(path: str, rows: np.ndarray) -> None:
    np.savetxt(path, rows, delimiter=",", header="time,shoulder,elbow", comments="", fmt="%.6f")


@pytest.fixture
def contact_set(recorded, collide):
    """contact_set(name, motion, edits): a set of the robot with the edits, made as name.h5."""

    def call(name: str, motion: str = "motion.csv", *edits: tuple[str, str]) -> str:
        scene = "robot.xml"
        if edits:
            text = ROBOT
            for old, new in edits:
                assert old in text
                text = text.replace(old, new)
            scene = f"{name}.xml"
            Path(scene).write_text(text)
        collide.ok("run", scene, "-t", motion, "--device", "cpu", "-q", "-o", f"{name}.h5")
        return f"{name}.h5"

    return call


def test_a_changed_size_is_named_for_a_single_pair(contact_set, collide):
    a = contact_set("a")
    b = contact_set("b", "motion.csv", FORE)
    result = collide.verdict("diff", a, b)
    assert not result["equal"]
    assert result["common"] is None
    (pair,) = result["pairs"]["listed"]
    assert (pair["shape0"], pair["shape1"]) == ("post", "fore")
    assert pair["causes"] == {"scenes": ["fore"], "motions": []}
    scenes = result["causes"]["scenes"]
    size = {"what": "size (radius, half_height)", "a": [0.035, 0.125], "b": [0.05, 0.125]}
    assert scenes["listed"] == [{"kind": "shape", "path": "fore", **size}]
    assert (scenes["reason"], scenes["shape_count"], scenes["body_count"]) == ("", 1, 0)
    assert result["causes"]["motions"]["differing"] == 0
    assert result["causes"]["pairs"] == {"differing": 1, "scenes": 1, "motions": 0, "neither": 0}
    collide.found(
        "diff",
        a,
        b,
        told=[
            "the scenes differ in 1 shape\n",
            "  fore: its size (radius, half_height) is (0.035, 0.125) in A, (0.05, 0.125) in B\n",
            "no body moves otherwise: all poses are equal in the compared frames\n",
            "differing pairs with a shape that differs in the scenes: 1 of 1\n",
        ],
    )


def test_a_changed_motion_is_named_by_body_frame_and_amount(contact_set, collide):
    a = contact_set("a")
    b = contact_set("b", "motion2.csv")
    result = collide.verdict("diff", a, b)
    motions = result["causes"]["motions"]
    assert motions["reason"] == ""
    assert (motions["bodies"], motions["differing"]) == (3, 2)
    assert motions["frames"] == FRAMES - CHANGED_FROM
    fore, hand = motions["listed"]
    assert [row["path"] for row in (fore, hand)] == ["fore", "hand"]
    assert [row["with_parent"] for row in (fore, hand)] == [False, True]
    for row, chord in ((fore, 0.0), (hand, 2.0 * HAND * math.sin(TURN / 2.0))):
        assert (row["frame"], row["time"], row["world"]) == (CHANGED_FROM, 0.12, 0)
        assert row["angle"] == pytest.approx(TURN, abs=1e-12)
        assert row["distance"] == pytest.approx(chord, abs=1e-12)
    joints = motions["joints"]
    (elbow,) = joints["listed"]
    assert elbow.pop("most") == pytest.approx(TURN, abs=1e-12)
    since = {"frame": CHANGED_FROM, "time": 0.12, "world": 0}
    assert elbow == {"name": "elbow", "unit": "rad", **since}
    assert (joints["compared"], joints["differing"]) == (2, 1)
    assert result["causes"]["scenes"]["reason"] == "the scenes of A and B are equal files"
    for pair in result["pairs"]["listed"]:
        assert pair["causes"] == {"scenes": [], "motions": [pair["shape1"]]}
    collide.found(
        "diff",
        a,
        b,
        told=[
            "the motions differ in 2 of 3 bodies, in 28 frames\n",
            "  joint elbow: from frame 12, t = 0.12 s, by up to 0.05 rad (2.86 degrees)\n",
            "  fore: from frame 12, t = 0.12 s, by up to 0 m and 2.86 degrees\n",
            "  1 body moved with a parent, the farthest hand: by up to 12.5 mm and 2.86 degrees\n",
        ],
    )


SLIDER = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="lift" pos="0 0 .11"><joint name="up" type="slide" axis="0 0 1"/>
<geom name="lift" type="sphere" size=".1"/>
<body name="tip" pos="0 0 .1"><joint name="ball" type="ball"/>
<geom name="tip" type="sphere" size=".05" pos="0.2 0 -.15"/></body></body>
<body name="free" pos="1 0 .11"><freejoint/><geom name="free" type="sphere" size=".1"/></body>
</worldbody></mujoco>"""


def _coordinates(path: str, qpos: np.ndarray) -> None:
    """A recording of generalized coordinates [frames, worlds, nq]."""
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array((1, 0), np.int32)
        file["time"] = np.arange(len(qpos)) * 0.01
        file["joint_q"] = qpos
        file["joint_q"].attrs["layout"] = "mujoco-qpos"


def test_joints_of_coordinates_are_named_in_their_units(here, collide):
    """A slide in metres, a ball joint by its angle, and of several worlds the first that differs;
    a free body has no joint position."""
    Path("slider.xml").write_text(SLIDER)
    qpos = np.zeros((5, 2, 12))
    qpos[..., 1] = qpos[..., 8] = 1.0
    qpos[..., 5] = 1.0
    qpos[..., 7] = 0.09
    _coordinates("one.h5", qpos)
    qpos[2:, 1, 0] -= 0.02
    qpos[3:, 1, 0] -= 0.01
    qpos[2:, :, 1] = np.cos(0.1)
    qpos[2:, :, 3] = np.sin(0.1)
    qpos[1:, 1, 7] = 0.08
    _coordinates("two.h5", qpos)
    for name in ("one", "two"):
        collide.ok(f"run slider.xml -t {name}.h5 --device cpu -q -o {name}.c.h5")
    joints = collide.verdict("diff one.c.h5 two.c.h5")["causes"]["motions"]["joints"]
    found = [(row["name"], row["unit"], row["frame"], row["world"]) for row in joints["listed"]]
    assert found == [("ball", "rad", 2, 0), ("up", "m", 2, 1)]
    assert [row["most"] for row in joints["listed"]] == pytest.approx([0.2, 0.03], abs=1e-12)
    told = "  joint up: from frame 2, world 1, t = 0.02 s, by up to 30 mm\n"
    assert told in collide.found("diff one.c.h5 two.c.h5")


USD_ARM = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "arm" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {
    def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
        def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
            double radius = 0.1
        }
    }
    def Xform "rod" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
        double3 xformOp:translate = (0.3, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
            double radius = 0.1
        }
    }
    def PhysicsRevoluteJoint "elbow" {
        rel physics:body0 = </arm/base>
        rel physics:body1 = </arm/rod>
        uniform token physics:axis = "Y"
        point3f physics:localPos0 = (0.3, 0, 0)
    }
}
def Sphere "post" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
    double radius = 0.1
    double3 xformOp:translate = (0.45, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""


def test_a_joint_of_a_usd_scene_is_named_by_its_path(here, collide):
    Path("arm.usda").write_text(USD_ARM)
    for name, turn in (("a", 0.0), ("b", 0.25)):
        rows = np.zeros((4, 2))
        rows[:, 0] = np.arange(4) * 0.01
        rows[2:, 1] = turn
        np.savetxt(f"{name}.csv", rows, delimiter=",", header="time,elbow", comments="")
        collide.ok(f"run arm.usda -t {name}.csv --joint-units radians -q -o {name}.h5")
    (row,) = collide.verdict("diff a.h5 b.h5")["causes"]["motions"]["joints"]["listed"]
    assert (row["name"], row["unit"], row["frame"]) == ("/arm/elbow", "rad", 2)
    assert row["most"] == pytest.approx(0.25, abs=1e-12)


def test_joints_that_one_recording_lacks_are_named(contact_set, collide):
    """The elbow stays in B, where the table has no column for it."""
    a = contact_set("a")
    table = np.loadtxt("motion.csv", delimiter=",", skiprows=1)
    np.savetxt("few.csv", table[:, :2], delimiter=",", header="time,shoulder", comments="")
    collide.ok("run robot.xml -t few.csv --device cpu -q -o few.h5")
    joints = collide.verdict("diff", a, "few.h5")["causes"]["motions"]["joints"]
    assert (joints["compared"], joints["differing"]) == (1, 0)
    assert (joints["only_a"], joints["only_b"]) == (["elbow"], [])
    told = "  recorded in A only: joints 'elbow'\n"
    printed = collide.found("diff", a, "few.h5", told=[told])
    assert "all joint positions" not in printed


def test_each_pair_has_its_own_causes(contact_set, collide):
    a = contact_set("a")
    b = contact_set("b", "motion2.csv", FORE)
    result = collide.verdict("diff", a, b)
    causes = {pair["shape1"]: pair["causes"] for pair in result["pairs"]["listed"]}
    assert causes == {
        "fore": {"scenes": ["fore"], "motions": ["fore"]},
        "hand": {"scenes": [], "motions": ["hand"]},
    }
    assert result["causes"]["pairs"] == {"differing": 2, "scenes": 1, "motions": 2, "neither": 0}


def test_all_shapes_and_bodies_that_differ_are_listed(contact_set, collide):
    """The moved body is named in its parent, not with all that it carries; shapes of no differing
    pair come last."""
    a = contact_set("a")
    edits = [
        ('<body name="fore" pos=".3 0 0">', '<body name="fore" pos=".31 0 0">'),
        ('size=".05"', 'size=".052"'),
        ('size=".04"', 'size=".041"'),
    ]
    result = collide.verdict("diff", a, contact_set("b", "motion.csv", *edits))
    listed = result["causes"]["scenes"]["listed"]
    assert [(row["kind"], row["path"], row["what"]) for row in listed] == [
        ("shape", "hand", "size (radius)"),
        ("shape", "upper", "size (radius, half_height)"),
        ("body", "fore", "resting position in upper"),
    ]
    assert (listed[2]["a"], listed[2]["b"]) == ([0.3, 0.0, 0.0], [0.31, 0.0, 0.0])
    fore, hand = result["causes"]["motions"]["listed"]
    assert (fore["path"], fore["frame"]) == ("fore", 0)
    assert fore["distance"] == pytest.approx(0.01, abs=1e-12)
    assert hand["with_parent"]
    few = collide.verdict("diff", a, "b.h5", "--first", "1")["causes"]["scenes"]
    assert (len(few["listed"]), few["differences"], few["shape_count"]) == (1, 3, 2)
    shown = collide.found("diff", a, "b.h5", "--first", "1")
    assert "  and 2 more differences of the scenes\n" in shown


def test_what_is_not_found_is_said_with_the_option_that_names_it(contact_set, collide):
    a = contact_set("a")
    b = contact_set("b", "motion2.csv", FORE)
    Path("away").mkdir()
    Path("motion2.csv").rename("away/motion2.csv")
    result = collide.verdict("diff", a, b)
    told = "the recording of B is not found beside b.h5; --trajectory-b names it"
    assert result["causes"]["motions"]["reason"] == told
    assert {repr(pair["causes"]["motions"]) for pair in result["pairs"]["listed"]} == {"None"}
    for given in ("away", "away/motion2.csv"):
        found = collide.verdict("diff", a, b, "--trajectory-b", given)["causes"]["motions"]
        assert (found["reason"], found["differing"]) == ("", 2)
    Path("b.xml").rename("away/b.xml")
    result = collide.verdict("diff", a, b)
    copy = "a copy of it with its assets in this folder is found"
    told = f"the scene of B, b.xml, is not beside b.h5; --scene-b names it, and {copy}"
    assert [result["causes"][name]["reason"] for name in ("scenes", "motions")] == [told, told]
    shown = collide.found("diff", a, b)
    assert f"{told}\nthe motions are not compared\n" in shown
    both = ("--scene-b", "away", "--trajectory-b", "away")
    causes = collide.verdict("diff", a, b, *both)["causes"]
    assert (causes["scenes"]["shape_count"], causes["motions"]["differing"]) == (1, 2)


def test_a_scene_that_was_edited_in_place_leaves_the_recordings_equal(recorded, collide):
    """As with a baseline in a folder of its own: a copy of its scene there is found."""
    Path("tests").mkdir()
    run = ("run", "robot.xml", "-t", "motion.csv", "--device", "cpu", "-q", "-o")
    collide.ok(*run, "tests/a.h5")
    Path("old.xml").write_text(ROBOT)
    Path("robot.xml").write_text(ROBOT.replace(*FORE))
    collide.ok(*run, "b.h5")
    reason = "robot.xml, or a file that it names, has another content"
    told = (
        f"the scene of A, robot.xml, is not found: {reason}; --scene-a names it, and a copy of it"
        " with its assets in tests is found"
    )
    causes = collide.verdict("diff tests/a.h5 b.h5")["causes"]
    assert causes["scenes"]["reason"] == told
    assert causes["motions"]["reason"] == "the recordings of A and B are equal files"
    shown = collide.found("diff tests/a.h5 b.h5")
    assert "the recordings of A and B are equal files: all recorded motion is equal; " in shown
    assert "the motions are not compared" not in shown
    Path("old.xml").rename("tests/robot.xml")
    assert collide.verdict("diff tests/a.h5 b.h5")["causes"]["scenes"]["shape_count"] == 1


def test_given_sources_that_are_others_are_said_to_be(contact_set, collide):
    a = contact_set("a")
    b = contact_set("b", "motion2.csv", FORE)
    causes = collide.verdict("diff", a, b, "--trajectory-b", "motion.csv")["causes"]
    assert causes["motions"]["reason"] == (
        "the recording of B is not what --trajectory-b names: this is not the recording of b.h5:"
        " the hashes differ"
    )
    causes = collide.verdict("diff", a, b, "--scene-b", "robot.xml")["causes"]
    assert causes["scenes"]["reason"].startswith("the scene of B is not what --scene-b names: ")
    told = "none.csv: there is no such file or folder"
    assert told in collide.refused("diff", a, b, "--trajectory-a", "none.csv")
    told = "--trajectory-a and --trajectory-b need --against"
    collide.refused("report", b, "--trajectory-a", "motion.csv", "-o", "page.html", told=told)
    told = "--trajectory-b has no effect with --by-pair"
    assert told in collide.refused("diff", a, b, "--by-pair", "--trajectory-b", "motion.csv")
    told = "--atol has no effect with --by-pair: its tolerances are --band of least distances and"
    assert told in collide.refused("diff", a, b, "--by-pair", "--atol", "1mm")
    told = "--max-angle has no effect without --by-pair: the tolerance is --atol normal=ANGLE"
    assert told in collide.refused("diff", a, b, "--max-angle", "1deg")


def test_equal_sources_have_no_causes_unless_they_are_given(contact_set, collide):
    a = contact_set("a")
    collide.ok("run robot.xml -t motion.csv --device cpu -q --gap 0.02 -o b.h5")
    assert collide.verdict("diff", a, "b.h5")["causes"] is None
    shown = collide.found("diff", a, "b.h5", "--scene-a", "robot.xml")
    assert "the scenes of A and B are equal files\n" in shown
    assert collide.result("diff", a, a)["causes"] is None


def test_pairs_with_contacts_in_one_set_alone_are_named(contact_set, collide):
    """On the terminal, in the summary and on the page; the counts are those of loops over rows."""
    pytest.importorskip("matplotlib")
    a = contact_set("a")
    b = contact_set("b", "motion2.csv", ("0.6 0 .4", "0.63 0 .4"))
    frames: list[set[tuple[str, int]]] = []
    for path in (a, b):
        with collidecli.open_contacts(path) as contacts:
            rows = contacts.to_pandas()
        frames.append(set(zip(rows["shape1"], rows["frame"], strict=True)))
    alone = {}
    for name in ("fore", "hand"):
        in_a, in_b = ({key for key in both if key[0] == name} for both in frames)
        alone[name] = len(in_a - in_b), len(in_b - in_a)
    assert any(sum(both) for both in alone.values())
    told = []
    for name, (in_a, in_b) in alone.items():
        sides = [(in_a, "in A and none in B in"), (in_b, "in B and none in A in")]
        words = [f"{text} {n} frame{'s' * (n != 1)}" for n, text in sides if n]
        told += [f"post and {name}: contacts {'; '.join(words)}"] if words else []
    collide.found("diff", a, b, told=[f"  {line}\n" for line in told])
    collide("diff", a, b, "--markdown", "summary.md")
    collide.ok("report", b, "--against", a, "-o", "page.html", "-q")
    for path in ("page.html", "summary.md"):
        text = Path(path).read_text().replace("\\_", "_").replace("<wbr>", "")
        for line in told:
            assert line in text
    pairs = collide.verdict("diff", a, b)["pairs"]
    assert pairs["one_sided"] == len(told)
    few = collide.found("diff", a, b, "--first", "0")
    assert f"  and {len(told)} more pair{'s' * (len(told) != 1)}\n" in few
    assert "none in A" not in collide.found("diff", a, b, "--pairs-only")


def test_other_content_of_a_scene_is_said_to_be_no_difference(contact_set, collide):
    a = contact_set("a")
    b = contact_set("b", "motion2.csv", ("<worldbody>", "<worldbody><!-- moved -->"))
    causes = collide.verdict("diff", a, b)["causes"]
    assert (causes["scenes"]["reason"], causes["scenes"]["differences"]) == ("", 0)
    assert causes["pairs"]["scenes"] == 0
    shown = collide.found("diff", a, b)
    assert "no shape or body differs between the scenes: other content of their files does" in shown


def test_an_added_shape_is_no_other_content_of_the_files(contact_set, collide):
    """The line said that no shape differs between the scenes, below one that names the shape."""
    a = contact_set("a")
    wall = '<geom name="wall" type="box" size=".1 .1 .4" pos="0.62 0.05 .4"/>'
    edit = ("<worldbody>", f"<worldbody>{wall}")
    told = ["added: wall, a box", "no shape or body that both scenes have differs in size or pose"]
    shown = collide.found("diff", a, contact_set("b", "motion.csv", edit), told=told)
    assert "other content" not in shown


def test_another_frame_rate_names_the_option_that_matches_times(contact_set, collide):
    a = contact_set("a")
    rows = np.loadtxt("motion.csv", delimiter=",", skiprows=1)
    _write("motion2.csv", rows[::2])
    b = contact_set("b", "motion2.csv")
    told = "another time in 19 frames, by up to 0.19 s; --match-frames time compares frames of"
    collide.found("diff", a, b, told=told)
    matched = collide.verdict("diff", a, b, "--match-frames", "time")
    assert matched["contacts"]["changed"] == matched["contacts"]["extra"] == 0


def test_the_world_of_a_changed_pose_is_named(recorded, collide):
    Path("balls.xml").write_text(
        """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
        <body name="ball"><freejoint/><geom name="ball" type="sphere" size=".1"/></body>
        <body name="other"><freejoint/><geom name="other" type="sphere" size=".1"/></body>
        </worldbody></mujoco>"""
    )
    poses = np.zeros((5, 3, 2, 7))
    poses[..., 2] = 0.09
    poses[:, :, 1, 0] = 1.0
    poses[..., 6] = 1.0
    write_poses("one.h5", poses, ["ball", "other"])
    poses[2:, 1, 1, 2] -= 0.004
    poses[3:, 1:, 1, 2] -= 0.002
    write_poses("two.h5", poses, ["ball", "other"])
    for name in ("one", "two"):
        collide.ok(f"run balls.xml -t {name}.h5 --device cpu -q -o {name}.c.h5")
    (row,) = collide.verdict("diff one.c.h5 two.c.h5")["causes"]["motions"]["listed"]
    assert (row["path"], row["frame"], row["world"]) == ("other", 2, 1)
    assert row["distance"] == pytest.approx(0.006, abs=1e-12)
    shown = collide.found("diff one.c.h5 two.c.h5")
    assert "  other: from frame 2, world 1, t = 0.02 s, by up to 6 mm and 0 degrees\n" in shown


def test_a_page_and_a_step_summary_have_the_causes(contact_set, collide):
    pytest.importorskip("matplotlib")
    a = contact_set("a")
    b = contact_set("b", "motion2.csv", FORE)
    collide.ok("report", b, "--against", a, "-o", "page.html", "-q")
    collide("diff", a, b, "--markdown", "summary.md")
    for path in ("page.html", "summary.md"):
        text = Path(path).read_text().replace("\\_", "_").replace("<wbr>", "")
        assert "fore: its size (radius, half_height) is (0.035, 0.125) in A" in text
        assert "fore: from frame 12, t = 0.12 s, by up to 0 m and 2.86 degrees" in text
        assert "scenes differ" in text
    Path("motion2.csv").rename("elsewhere.csv")
    Path("away").mkdir()
    Path("elsewhere.csv").rename("away/motion2.csv")
    given = ("--trajectory-b", "away")
    page = collide.result("report", b, "--against", a, *given, "-o", "other.html")
    assert page["difference"]["causes"]["motions"]["differing"] == 2


def test_details_are_below_their_item_in_lists(contact_set, collide):
    """In the step summary and on the page."""
    pytest.importorskip("matplotlib")
    a = contact_set("a")
    b = contact_set("b", "motion.csv", FORE)
    collide("diff", a, b, "--markdown", "summary.md")
    lines = Path("summary.md").read_text().splitlines()
    below = [n for n, line in enumerate(lines) if line.startswith("  - ")]
    assert below
    assert all(lines[n - 1].startswith(("- ", "  - ")) for n in below)
    collide.ok("report", b, "--against", a, "-o", "page.html", "-q")
    assert "<li>the scenes differ in 1 shape<ul><li>" in Path("page.html").read_text()


def test_particles_are_said_not_to_be_compared(here, collide):
    text = """<mujoco><worldbody><geom name="box" type="box" size=".5 .5 .1"/>
        <body name="ball" pos="0 0 .15"><freejoint/><geom name="ball" type="sphere" size=".1"/>
        </body>
        <flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1"
        pos="0 0 .12" radius=".03"/></worldbody></mujoco>"""
    for name, size in (("a", ".5 .5 .1"), ("b", ".5 .5 .11")):
        Path(f"{name}.xml").write_text(text.replace(".5 .5 .1", size))
        collide.ok(f"run {name}.xml --device cpu -q -o {name}.h5")
    told = "  particles, which are not compared, may move otherwise\n"
    collide.found("diff a.h5 b.h5", told=["  box: its size", told])
