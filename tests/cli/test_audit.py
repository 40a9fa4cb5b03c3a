"""collide audit: depths against closed forms, limits, masks, baselines, sweeps, pages, and what it
refuses."""

import json
import random
import re
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest

import collidecli
from collidecli.analysis.summary import TimeBins
from collidecli.pages.canvas import PAGE, Canvas, drawing
from collidecli.scene.episodes import Episodes
from collidecli.verbs.audit.chart import audit_chart
from collidecli.verbs.audit.words import audit_words
from tests.cli.conftest import FRAMES, arrays, attributes, distances, refusals, write_poses
from tests.hostile.cases import damaged_set
from tests.hostile.seeds import GOLDEN
from tests.support.contact_sets import (
    Touch,
    made_up_block,
    small_model,
    touching_set,
    write_contact_set,
)
from tests.support.device_traffic import counted_traffic
from tests.support.html_page import Page

ROBOT = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 1"><freejoint/>
      <geom name="trunk" type="sphere" size="0.2"/>
      <body name="arm" pos="0 0 0.5"><joint axis="0 1 0"/><geom name="arm" type="sphere" size="0.1"/>
        <body name="hand" pos="0 0 0.3"><joint axis="0 1 0"/><geom name="hand" type="sphere" size="0.1"/></body>
      </body>
    </body>
    <body name="ball" pos="3 0 1"><freejoint/><geom name="ball" type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>
"""
DEPTH = np.maximum(-distances().astype(np.float32), 0)
"""Of the spheres of conftest in each frame [m]."""


@pytest.fixture
def audit(here, collide):
    """audit(*options): the result; the exit code must agree with it."""
    return lambda *options: collide.verdict("audit", *options)


@pytest.fixture
def robot(here) -> str:
    """The robot in 4 frames: at rest; 30 mm in the floor; the hand 40 mm in the trunk; the ball 5
    mm in the trunk."""
    (here / "robot.xml").write_text(ROBOT)
    poses = np.zeros((4, 1, 4, 7))
    poses[..., 6] = 1.0
    poses[:, 0, :, 2] = [1.0, 1.5, 1.8, 1.0]
    poses[:, 0, 3, 0] = 3.0
    poses[1, 0, :3, 2] -= 0.83
    poses[2, 0, 2, 2] = 1.26
    poses[3, 0, 3, 0] = 0.295
    write_poses("robot.h5", poses, ["trunk", "arm", "hand", "ball"], 0.1)
    return "robot.xml"


def test_depths_of_two_spheres(audit):
    words = ("scene.xml", "-t", "motion.h5")
    result = audit(*words, "--max-depth", "2cm", "--mask", "mask.npz")
    (pair,) = result["pairs"]
    over = DEPTH > 0.02
    expected = {"shape0": "base", "shape1": "ball", "check": "depth", "frame": FRAMES - 1}
    expected |= {
        "depth": pytest.approx(DEPTH.max(), abs=1e-7),
        "time": pytest.approx((FRAMES - 1) / 100),
    }
    expected |= {"cells": (DEPTH > 0).sum(), "cells_over": over.sum()}
    assert {name: pair[name] for name in expected} == expected
    with np.load("mask.npz") as mask:
        np.testing.assert_allclose(mask["depth"][:, 0], DEPTH, atol=1e-6)
        assert mask["usable"][:, 0].tolist() == (~over).tolist()
        assert mask["deepest"][:, 0, 1].tolist() == np.where(DEPTH > 0, 1, -1).tolist()
        assert mask["shape_path"].tolist() == ["base", "ball", "far"]
    assert result["usable"]["cells"] == (~over).sum()
    spans = [{"world": 0, "first_frame": int(np.argmax(over)), "last_frame": FRAMES - 1}]
    assert result["usable"]["listed"] == spans
    assert result["checks"][0]["reason"].startswith("1 pair deeper than allowed, up to 8")
    deepest = audit(*words)["pairs"][0]["depth"]
    for limit, passed in ((deepest, True), (deepest * (1 - 1e-6), False)):
        assert audit(*words, "--max-depth", repr(limit))["passed"] == passed


def test_a_scene_agrees_with_its_contact_set(audit, collide):
    collide.ok("run scene.xml -t motion.h5 --gap 0.05 -o out.h5 -q")
    one = audit("scene.xml", "-t", "motion.h5", "--max-depth", "1mm")
    other = audit("out.h5", "--max-depth", "1mm")
    for name in (
        "pairs",
        "usable",
        "frames",
        "cells",
        "reasons",
        "scene_sha256",
        "trajectory_sha256",
    ):
        assert one[name] == other[name]
    sources = (("out.h5",), ("scene.xml", "-t", "motion.h5"))
    one, other = (audit(*words, "--frames", "2::3")["pairs"][0] for words in sources)
    assert (one["cells"], one["depth"]) == ((DEPTH[2::3] > 0).sum(), other["depth"])
    assert one["cells"] == other["cells"]


def test_classes_of_pairs(audit, robot):
    result = audit(robot, "-t", "robot.h5")
    found = {
        (one["shape0"], one["shape1"]): (one["check"], one["frame"], one["depth"])
        for one in result["pairs"]
    }
    assert found == {
        ("trunk", "hand"): ("self", 2, pytest.approx(0.04, abs=1e-6)),
        ("floor", "trunk"): ("ground", 1, pytest.approx(0.03, abs=1e-6)),
        ("trunk", "ball"): ("depth", 3, pytest.approx(0.005, abs=1e-6)),
    }
    assert result["passed"]
    for options, failing in (
        (["--max-depth", "6mm"], ["self", "ground"]),
        (["--max-depth", "6mm", "--self", "5cm", "--max-ground", "5cm"], []),
        (["--self"], ["self"]),
        (["--max-ground", "2cm"], ["ground"]),
        (["--max-depth", "1mm", "--allow", "trunk,*", "--max-ground", "1"], []),
        (["--max-depth", "0.04", "--ground-shapes", "ball", "--max-ground", "4mm"], ["ground"]),
    ):
        checks = audit(robot, "-t", "robot.h5", *options)["checks"]
        assert [one["name"] for one in checks if one["failing"]] == failing, options
    result = audit(
        robot, "-t", "robot.h5", "--frames", "1:", "--max-start", "2cm", "--max-depth", "1"
    )
    assert [one["failing"] for one in result["checks"]] == [0, 0, 0, 1]
    result = audit(robot, "-t", "robot.h5", "--frames", "1:", "--max-depth", "1cm")
    assert result["usable"]["unusable_from_start"] == 2
    assert audit(robot, "-t", "robot.h5", "--max-start", "0")["passed"]


FIXED_BASE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="base"><geom name="box" type="box" size="0.2 0.2 0.1"/>
      <body name="upper" pos="0 0 0.11"><joint axis="0 1 0"/>
        <geom name="link" type="box" size="0.05 0.05 0.2" pos="0 0 0.2"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_the_fixed_base_belongs_to_its_robot(here, audit, collide):
    """The base's shapes are static, and the link's lower edge is 10 mm above it and turns into
    it."""
    (here / "arm.xml").write_text(FIXED_BASE)
    np.savez(here / "arm.npz", qpos=[[0.0], [0.3]], time=[0.0, 0.5])
    told = collide("inspect arm.npz").out
    assert "2, from 0 s to 0.5 s" in told
    assert "needs            an MJCF or URDF scene\n" in told
    collide.ok("run arm.xml -t arm.npz -o arm.h5 -q")
    depth = pytest.approx(0.05 * np.sin(0.3) - 0.01, abs=1e-6)
    of_file = ("arm.h5 --self --self-bodies box,upper", "arm.h5 --self --self-bodies *")
    named = (
        f"arm.xml -t arm.npz --self {more}"
        for more in ("", *(f"--self-bodies {n}" for n in ("box,upper", "*")))
    )
    for words in (*named, "arm.xml -t arm.npz --self --self-bodies base,upper", *of_file):
        result = audit(*words.split())
        (pair,) = result["pairs"]
        assert (pair["check"], pair["depth"], result["passed"]) == ("self", depth, False), words
    for names in ("box", "base", "upper", "floor", "floor,box"):
        answer = collide("audit arm.xml -t arm.npz --self --self-bodies", names)
        assert (answer.code, f"{names.replace(',', ', ')} names no two bodies" in answer.err) == (
            2,
            True,
        )
    assert (
        "box and link may touch: no rule forbids it"
        in collide("inspect arm.xml --why base upper").out
    )


def test_allowed_pairs_in_the_file_of_options(audit, robot, here):
    """One as a text, several as a list: click refused the text as no iterable."""
    given = (robot, "-t", "robot.h5", "--max-depth", "1mm", "--max-ground", "1")
    assert not audit(*given)["passed"]
    for value in ('"trunk,*"', '["trunk,*", "ball,*"]'):
        (here / "collide.toml").write_text(f"[audit]\nallow = {value}\n")
        assert audit(*given)["passed"]


def test_limits_of_a_file(audit, robot, here):
    text = 'max-depth = "1mm"\nself = 0.05\nmax-ground = "1cm"\nallow = [["floor", "tru*"]]\n'
    (here / "limits.toml").write_text(
        text + '[[pair]]\nbetween = ["ball", "trunk"]\nmax-depth = "6mm"\n'
    )
    assert audit(robot, "-t", "robot.h5", "--limits", "limits.toml")["passed"]
    result = audit(robot, "-t", "robot.h5", "--limits", "limits.toml", "--self", "1cm")
    assert [one["name"] for one in result["checks"] if one["failing"]] == ["self"]


def test_own_limits_of_pairs_have_a_row(robot, collide, here):
    """The pair is 5 mm deep: above its own limit, within the limit of all others."""
    own = '[[pair]]\nbetween = ["ball", "trunk"]\nmax-depth = "{}"\n'
    (here / "limits.toml").write_text('max-depth = "5cm"\n' + own.format("1mm"))
    words = f"audit {robot} -t robot.h5 --limits limits.toml"
    checks = {one["name"]: one for one in collide.result(words, code=1)["checks"]}
    assert [checks[name]["failing"] for name in ("depth", "own")] == [0, 1]
    assert (checks["depth"]["limit"], checks["own"]["limit"], checks["own"]["pairs"]) == (
        0.05,
        0.001,
        1,
    )
    assert "with a limit of their own" in checks["own"]["reason"]
    shown = collide.found(words, "--markdown", "a.md", "--github")
    (row,) = [line for line in shown.splitlines() if line.startswith(" own limits of pairs")]
    assert row.split()[4:] == ["1", "mm", "1", "5", "mm", "1"]
    (row,) = [line for line in shown.splitlines() if line.startswith(" penetration")]
    assert row.split()[-1] == "0"
    assert (
        "| own limits of pairs | 1 mm | 1 | 5 mm | failed: 1 pair |" in (here / "a.md").read_text()
    )
    (here / "limits.toml").write_text(own.format("1mm") + own.format("2mm").replace("ball", "hand"))
    shown = collide.found(words)
    (row,) = [line for line in shown.splitlines() if line.startswith(" own limits of pairs")]
    assert row.split()[4:7] == ["of", "each", "pair"]
    (here / "limits.toml").write_text(own.format("6mm"))
    assert collide.result(words)["checks"][3]["name"] == "own"


def test_frames_of_one_world_that_cannot_be_used(robot, collide):
    words = f"audit {robot} -t robot.h5 --frames 1: --max-depth 1cm"
    assert "; the first 2 frames cannot be used" in collide.found(words)


def test_named_ground_is_no_part_of_a_robot(robot, audit):
    """The hand is named as ground and as a body of the robot."""
    words = [robot, "-t", "robot.h5", "--ground-shapes", "hand", "--self-bodies", "trunk,hand,ball"]
    found = {(one["shape0"], one["shape1"]): one["check"] for one in audit(*words)["pairs"]}
    assert (found["trunk", "hand"], found["trunk", "ball"]) == ("ground", "self")


def test_only_what_is_worse_than_the_baseline_fails(audit, robot, here):
    whole = ["robot.xml", "-t", "robot.h5", "--max-depth", "1mm"]
    (here / "whole.json").write_text(json.dumps(audit(*whole)))
    (here / "part.json").write_text(json.dumps(audit(*whole, "--frames", ":3")))
    assert not audit(*whole)["passed"]
    result = audit(*whole, "--against", "whole.json")
    assert (result["passed"], result["baseline"]["worse"], result["baseline"]["gone"]) == (
        True,
        0,
        0,
    )
    result = audit(*whole, "--against", "part.json")
    assert [one["failing"] for one in result["checks"]] == [1, 0, 0, 0]
    assert audit(*whole, "--against", "part.json", "--tolerance", "5.1mm")["passed"]
    assert audit(*whole, "--frames", ":3", "--against", "whole.json")["baseline"]["gone"] == 1


def test_a_deeper_start_is_worse_beyond_the_tolerance(audit, robot, here):
    words = ["robot.xml", "-t", "robot.h5", "--frames", "1:", "--max-start", "1mm"]
    baseline = audit(*words)
    for pair in baseline["pairs"]:
        pair["start_depth"] = max(0.0, pair["start_depth"] - 1e-3)
    (here / "baseline.json").write_text(json.dumps(baseline))
    assert not audit(*words, "--against", "baseline.json")["passed"]
    assert audit(*words, "--against", "baseline.json", "--tolerance", "1.1mm")["passed"]


def test_volume_of_the_deepest_overlap(audit, here):
    (pair,) = audit("scene.xml", "-t", "motion.h5", "--overlap-volume")["pairs"]
    # two caps, which meet in a circle
    r = 0.5
    s = 0.3
    d = 0.8 - float(DEPTH.max())
    x = (d * d + r * r - s * s) / (2 * d)
    caps = sum(np.pi * h * h * (3 * radius - h) / 3 for radius, h in ((r, r - x), (s, s - d + x)))
    assert abs(pair["overlap_volume"] - caps) <= pair["overlap_volume_error"] < 2e-3 * caps
    assert pair["overlap_note"] == ""
    (pair,) = audit("scene.xml", "-t", "motion.h5", "--deepest-point", "--frames", "12:14")["pairs"]
    assert abs(pair["deepest_point"] - pair["depth"]) <= pair["deepest_point_error"] + 1e-6


def test_pages(robot, collide, here):
    words = ["audit", robot, "-t", "robot.h5", "--max-depth", "10mm", "--github"]
    answer = collide(*words, "--junit-xml", "a.xml", "--markdown", "a.md")
    assert (answer.code, "failed: 2 findings, 3 pairs penetrate, up to 40 mm" in answer.out) == (
        1,
        True,
    )
    suite = ElementTree.parse("a.xml").getroot()[0]
    assert [suite.attrib[name] for name in ("tests", "failures", "skipped")] == ["4", "2", "1"]
    (skipped,) = suite.iter("skipped")
    assert skipped.attrib == {"message": "no limit is given"}
    failed = [case.attrib["name"] for case in suite if case.find("failure") is not None]
    assert failed == ["self-collision", "ground penetration"]
    assert "| `floor` | `trunk` | 30 mm | 1 | 0 | 1 |" in (here / "a.md").read_text()
    assert [line.split(":")[2].split(" ")[0] for line in answer.err.splitlines()] == [
        "error",
        "error",
    ]


def test_one_frame_that_cannot_be_used_is_the_first_frame(robot, collide):
    words = f"audit {robot} -t robot.h5 --frames 1:2 --max-ground 0"
    assert "0 of 1 (0.0 %); the first frame cannot be used" in collide.found(words)


def test_an_audit_without_limits_does_not_pass(robot, collide, here):
    """It has no verdict: what was measured, and the options of limits; the exit code is 0."""
    words = ["audit", robot, "-t", "robot.h5"]
    files = ("--html", "a.html", "--junit-xml", "a.xml", "--markdown", "a.md", "--github")
    answer = collide(*words, *files)
    told = "no limit is given: 3 pairs penetrate, up to 40 mm; --max-depth, --self, --max-ground"
    assert (answer.code, told in answer.out, told in answer.err) == (0, True, True)
    assert "passed" not in answer.out
    suite = ElementTree.parse("a.xml").getroot()[0]
    assert suite.attrib["tests"] == suite.attrib["skipped"] == "4"
    assert (here / "a.md").read_text().startswith("### collide audit: no limit\n")
    page = (here / "a.html").read_text()
    assert "verdict open" in page
    assert "Audit: no limit is given: 3 pairs penetrate" in page
    assert repr(collidecli.audit(robot, "robot.h5")).startswith("<Audit no limit ")
    collide.ok(f"run {robot} -t robot.h5 --device cpu -o a.h5")
    collide.ok(f"run {robot} -t robot.h5 --device cpu -o b.h5")
    assert collide.ok("audit a.h5 b.h5").out.count("no limit") == 2
    swept = collide.ok(*words, "--sweep").out
    assert "passed: within the limits, 3 pairs penetrate, up to 40 mm, 3 of them without" in swept
    limited = collide.ok(*words, "--max-ground", "40mm").out
    assert "up to 40 mm, 2 of them without a limit" in limited
    all_limited = collide.ok(*words, "--max-depth", "40mm").out
    assert "without a limit" not in all_limited


def test_a_chart_shows_the_series_of_frames(audit, robot, here):
    series = audit(
        robot, "-t", "robot.h5", "--max-depth", "10mm", "--self", "1cm", "--chart", "a.svg"
    )["series"]
    assert (series["frame"], series["unusable"]) == ([0, 1, 2, 3], [False, True, True, False])
    np.testing.assert_allclose(series["depth"], [0, 0.03, 0.04, 0.005], atol=1e-6)
    np.testing.assert_allclose(series["self_depth"], [0, 0, 0.04, 0], atol=1e-6)
    text = (here / "a.svg").read_text()
    assert "<title>frame 2: all pairs 40 mm, one robot 40 mm</title>" in text
    assert "greatest depth [mm]" in text
    # a single frame without penetration
    audit(robot, "-t", "robot.h5", "--frames", "0", "--chart", "a.png")
    assert (here / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_the_page_has_the_verdict_with_its_depths(audit, robot, here):
    options = (robot, "-t", "robot.h5", "--max-depth", "10mm", "--self", "1cm")
    result = audit(*options, "--html", "new/a.html", "--chart", "a.svg")
    assert result["written"] == {"html": "new/a.html", "chart": "a.svg"}
    text = (here / "new/a.html").read_text()
    page = Page(text)
    page.check()
    assert f"Audit {audit_words(result)}." in page.words
    assert page.attributes["class"].count("verdict different") == 1
    # the chart with its texts, and its numbers as a table
    assert "<title>frame 2: all pairs 40 mm, one robot 40 mm</title>" in text
    assert ["0.2", "40 mm", "40 mm", "0 m", "no"] in page.rows
    pairs = [row for row in page.rows if row[0] == "trunk and hand"]
    assert [row[1:4] for row in pairs] == [["self-collision", "40 mm", "2"]]
    assert len(result["pairs"]) == sum(" and " in row[0] for row in page.rows)
    assert result["scene_sha256"] in page.words
    # the pairs below the reason, in equal units
    listed = (
        r"<li>[^<]* deeper than allowed, up to 40 mm deep: [^<]*<ul><li>[^<]*: 40 mm in frame 2"
    )
    assert re.search(listed, text.replace("<wbr>", ""))
    options = (robot, "-t", "robot.h5", "--frames", "0", "--max-depth", "0")
    passing = audit(*options, "--html", "b.html")
    text = (here / "b.html").read_text()
    assert (passing["pairs"], "verdict equal" in text) == ([], True)
    Page(text).check()


def test_equal_audits_are_equal_pages(audit, here, robot):
    options = (robot, "-t", "robot.h5", "--max-depth", "1cm")
    for name in ("a", "b"):
        audit(*options, "--html", f"{name}.html")
    assert (here / "a.html").read_bytes() == (here / "b.html").read_bytes()


def test_limits_in_the_chart_have_the_unit_of_its_axis(audit, robot):
    result = audit(robot, "-t", "robot.h5", "--max-depth", "10mm")
    with drawing():
        (axes,) = audit_chart(result, Canvas(920, PAGE)).axes
    limits = [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == "--"]
    assert limits, "they are lines across the chart"
    assert axes.get_ylabel() == "greatest depth [mm]"
    assert all(limit == [10.0, 10.0] for limit in limits)


def test_bins_have_the_greatest_depth():
    depth = np.random.default_rng(2).random((103, 3)).astype(np.float32)
    bins = TimeBins(len(depth), 20)
    assert len(bins.start) == 18
    assert bins.greatest(depth.max(axis=1)) == [depth[k : k + 6].max() for k in range(0, 103, 6)]


def test_masks_of_several_worlds_are_the_same_in_every_format(audit, here):
    rows = [
        Touch(0, 0, 0, 1, -0.01),
        Touch(2, 1, 0, 2, -0.02),
        Touch(2, 1, 1, 2, -0.02),
        Touch(3, 0, 1, 2, 0.01),
    ]
    made = touching_set(rows, 4, 2).write(here / "a.h5")
    for name in ("m.npz", "m.h5", "m.csv"):
        audit(made, "--max-depth", "15mm", "--mask", name)
    usable = np.ones((4, 2), bool)
    usable[2, 1] = False
    table = pandas.read_csv("m.csv", keep_default_na=False)
    held = arrays("m.h5")
    assert attributes("m.h5")["format"] == "collide-audit"
    with np.load("m.npz") as npz:
        for name in npz.files:
            np.testing.assert_array_equal(npz[name], held[name])
    np.testing.assert_array_equal(held["usable"], usable)
    assert held["deepest"][2, 1].tolist() == [0, 2]  # of equal depths the first pair
    assert held["ground_depth"][2, 1] == np.float32(0.02)
    assert table["usable"].tolist() == usable.ravel().tolist()
    assert table["shape1"].tolist() == ["ball", "", "", "", "", "bøx", "", ""]


def test_demonstrations(audit, here):
    episodes = Episodes(
        ("a", "b"), np.array([0, 1], np.int32), np.zeros(2, np.int64), np.array([6, 4])
    )
    block = episodes.without_others(made_up_block(small_model(2), 6), 2)
    write_contact_set(here / "e.h5", small_model(2), block, episodes=episodes)
    result = audit("e.h5", "--max-depth", "1cm", "--mask", "e.csv")
    assert (result["frames"], result["worlds"], result["cells"]) == (6, 2, 10)
    assert {(one["world"], one["episode"]) for one in result["pairs"]} <= {(0, "a"), (1, "b")}
    assert len(pandas.read_csv("e.csv")) == 10
    cell = np.repeat(np.arange(12), block.cell_counts)
    depth = np.zeros(12)
    np.maximum.at(depth, cell, -block.distance)
    assert result["usable"]["cells"] == 10 - (depth > np.float32(0.01)).sum()
    assert result["pairs"][0]["depth"] == depth.max()


def test_python(here, robot):
    found = collidecli.audit(robot, "robot.h5", max_depth="10mm", self=0.05)
    assert not found.passed
    np.testing.assert_allclose(found.depth[:, 0], [0, 0.03, 0.04, 0.005], atol=1e-6)
    np.testing.assert_allclose(found.self_depth[:, 0], [0, 0, 0.04, 0], atol=1e-6)
    assert found.usable[:, 0].tolist() == [True, False, True, True]
    assert [one["check"] for one in found.pairs] == ["self", "ground", "depth"]
    assert found.pairs == found.result.pairs
    allowed = ({"allow": value} for value in (["a"], ("a", "b"), [("x", "y")]))
    for options in (
        {"max_depth": "2 miles"},
        {"self": -1.0},
        {"gap": 0.1},
        {"nothing": 1},
        *allowed,
    ):
        with pytest.raises(collidecli.InputError):
            collidecli.audit(robot, "robot.h5", **options)


def test_a_device_copies_twelve_bytes_a_contact(robot, here):
    """12 bytes a contact, in place of 105; the audit is that of the CPU."""
    expected = collidecli.audit(robot, "robot.h5", max_depth="10mm")
    with counted_traffic() as counted:
        found = collidecli.audit(robot, "robot.h5", max_depth="10mm")
    assert found.pairs == expected.pairs
    assert len(found.pairs) == 3
    for name in ("depth", "self_depth", "ground_depth", "deepest", "usable"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    # The three columns and the cells' ends, each in a part of 256 bytes, and sizes.
    assert 3 * 12 < counted.total.downloaded_bytes < 4 * 256 + 200
    with counted_traffic() as counted:
        assert len(collidecli.run(robot, "robot.h5", gap=0.0)) == 3
    assert counted.total.downloaded_bytes > 11 * 256


LIMITS = {
    "a.toml": ("max-dept = 1", "max-depth"),
    "b.toml": ('self = "-1mm"', "below 0"),
    "c.toml": ("allow = [['a']]", "two patterns"),
    "d.toml": ("[[pair]]\nbetween = ['a', 'b']", "max-depth"),
    "e.toml": ("max-depth = true", "not a length"),
    "f.toml": ("max-depth = nan", "not a length"),
    "g.toml": ("max-depth = [", "TOML"),
    "h.toml": ("allow = [['base', 'nothing*']]", "'nothing*' matches no"),
}


@pytest.fixture
def files(here) -> None:
    """Files of limits and of baselines that are none, and a contact set, beside the scene and the
    motion."""
    (here / "other.json").write_text('{"schema": "collide.run/1"}')
    (here / "damaged.json").write_text('{"schema": "collide.audit/1", "pairs": [{"shape0": 1}]}')
    (here / "tunnels.json").write_text(
        '{"schema": "collide.audit/1", "pairs": [], "tunnels": [{"steps": "x"}]}'
    )
    for name, (text, _) in LIMITS.items():
        (here / name).write_text(text)
    touching_set([Touch(0, 0, 0, 1, -0.01)], 2, 1).write(here / "a.h5")


test_refused = refusals(
    "audit",
    ("", ""),
    ("missing.xml", "missing.xml"),
    *(
        (f"scene.xml -t motion.h5 --mask m.npz --markdown a.md {words}", told)
        for words, told in (
            ("--max-depth -1", "below 0"),
            ("--max-depth nan", "not a length"),
            ("--self=x", "not a length"),
            ("--overlap-volume --first 0", "give --first at least 1"),
            ("--ground-shapes ''", "it is empty"),
            ("--allow base nothing", "'nothing' matches no"),
            ("--ground-shapes x*", "'x*' matches no"),
            ("--max-ground 1", "--ground-shapes"),
            ("--self", "--self-bodies"),
            ("--self --self-bodies x", "'x' matches no"),
            ("--against scene.xml", "not JSON"),
            ("--against missing.json", "cannot be read"),
            ("--against other.json", "collide.audit/1"),
            ("--against damaged.json", "damaged"),
            ("--against tunnels.json", "damaged"),
            ("--limits missing.toml", "cannot be read"),
            ("--chart a.txt", "extension"),
            ("--frames 50:", "selects none"),
            *((f"--limits {name}", told) for name, (_, told) in LIMITS.items()),
        )
    ),
    ("scene.xml --mask mask.txt", "extension"),
    ("scene.xml --mask x.npz --markdown x.npz", "have one path"),
    ("scene.xml --html a.pdf", "a page has the extension .html"),
    ("a.h5 a.h5 --html a.html", "--html is for one audit"),
    ("a.h5 --self", "--self-bodies"),
    ("a.h5 --overlap-volume", "no geometry"),
    ("a.h5 --deepest-point", "no geometry"),
    ("a.h5 -t motion.h5", "contact set"),
    ("a.h5 --margin 0.1", "contact set"),
    ("a.h5 --worlds 2", "contact set"),
    ("--self body* a.h5", "'body*' is not a length: write one, as 2mm, or --self after"),
    needs="files",
)


def test_a_damaged_file(here, collide):
    good = GOLDEN.with_name("contacts_1_1.h5").read_bytes()
    # its root has no readable format
    (here / "a.h5").write_bytes(damaged_set(good, random.Random(73)))
    answer = collide("audit a.h5")
    assert (answer.code, "internal" in answer.err) == (2, False)


SCENE = """<mujoco>
  <worldbody>
    <geom name="wall" type="box" size="0.0005 1 1"/>
    <body name="bullet" pos="-1 0 0"><freejoint/><geom name="bullet" type="sphere" size="0.005"/></body>
    <body name="ball" pos="0 0 5"><freejoint/><geom name="ball" type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>
"""
SPEED = 100.0
RATE = 60.0


@pytest.fixture
def bullet(here) -> list[str]:
    """A bullet that passes a wall of 1 mm at 100 m/s between the frames 0 and 1 of 60 Hz."""
    (here / "bullet.xml").write_text(SCENE)
    poses = np.zeros((3, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 0, 0] = -1.0 + SPEED / RATE * np.arange(3)
    poses[:, 0, 1, 2] = 5.0
    write_poses("bullet.h5", poses, ["bullet", "ball"], 1.0 / RATE)
    return ["bullet.xml", "-t", "bullet.h5"]


def test_a_bullet_through_a_wall(bullet, here, audit):
    assert audit(*bullet, "--max-depth", "0")["passed"]
    result = audit(*bullet, "--sweep", "--mask", "m.npz")
    assert (result["passed"], result["checks"][-1]["name"]) == (False, "tunnel")
    (one,) = result["tunnels"]
    assert (one["shape0"], one["shape1"], one["steps"], one["frame"]) == ("wall", "bullet", 1, 0)
    assert one["time"] == pytest.approx((1.0 - 0.0055) / SPEED, abs=1e-7)
    assert one["depth"] == pytest.approx(0.0055, abs=1e-5)  # in the middle of the wall
    with np.load("m.npz") as mask:
        assert mask["usable"][:, 0].tolist() == [False, False, True]
    assert audit(*bullet, "--sweep", "--allow", "bullet,wall")["passed"]
    (here / "base.json").write_text(json.dumps(result))
    assert audit(*bullet, "--sweep", "--against", "base.json")["passed"]


def test_a_contact_set_with_a_sweep(bullet, here, collide, audit):
    collide.ok("run", *bullet, "--sweep", "-o", "swept.h5", "-q")
    collide.ok("run", *bullet, "-o", "plain.h5", "-q")
    assert audit("swept.h5", "--sweep")["tunnels"] == audit(*bullet, "--sweep")["tunnels"]
    told = "tunnelling: wall and bullet: 1 step, the first after frame 0, world 0"
    collide.found("audit swept.h5 --junit-xml a.xml --markdown a.md", told=told)
    assert "1 pair touches only between two frames" in (here / "a.xml").read_text()
    assert "| tunnelling | not allowed | 1 |" in (here / "a.md").read_text()
    assert audit("swept.h5", "--frames", "1:")["passed"]
    collide.refused("audit plain.h5 --sweep", told="run with --sweep")


def test_steps_of_selected_frames(bullet, collide, audit):
    """The step from frame 0 to 1 is not audited if one of both frames is not selected, as of a
    scene."""
    collide.ok("run", *bullet, "--sweep", "-o", "swept.h5", "-q")
    assert audit("swept.h5", "--frames", ":1")["tunnels"] == []
    answer = collide.ok("audit swept.h5 --frames ::2")
    assert "tunnelling is not checked: the frames are not consecutive" in answer.err
    collide.refused("audit swept.h5 --frames ::2 --sweep", told="the frames are not consecutive")
