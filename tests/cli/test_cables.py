"""The lines of a cable of MJCF from the scene's file to contacts, touches between frames, distances
and views."""

import re

import numpy as np
import pytest

import collidecli
from tests.cli.conftest import write_poses
from tests.cli.test_view import recorded
from tests.cli.test_view_map import page_data

SCENE = """<mujoco><worldbody>
<geom name="floor" type="plane" size="0 0 1" pos="0 0 -2"/>
<geom name="peg" type="box" size="0.01 0.2 0.01"/>
<geom name="side" type="sphere" size="0.1" pos="0.2 0.25 0"/>
<body name="rope"><flexcomp name="rope" type="grid" count="4 1 1" spacing="0.4 1 1" dim="1"
 radius="0.005" mass="1"><contact selfcollide="none"/></flexcomp></body>
</worldbody></mujoco>
"""
SPACING = 0.4
RADIUS = 0.005
HEIGHTS = np.array([0.3, 0.05, 0.012, -0.05, -0.3])
"""Of the cable in each frame: above the peg, near it, in contact, and below it."""


@pytest.fixture
def rope(here):
    """A cable along x that falls past a peg between two of its vertices: scene.xml, motion.h5."""
    (here / "scene.xml").write_text(SCENE)
    poses = np.zeros((len(HEIGHTS), 1, 4, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = SPACING * (np.arange(4) - 1.5)
    poses[..., 2] = HEIGHTS[:, None, None]
    write_poses(here / "motion.h5", poses, [f"rope_{k}" for k in range(4)])


def of_lines(path: str, group: str):
    with collidecli.ContactSet.open(path) as contacts:
        return contacts.to_pandas(group=group)


@pytest.mark.usefixtures("rope")
def test_the_middle_line_touches_the_peg(collide):
    result = collide.result("run scene.xml -t motion.h5 --sweep --soft-gap 5cm -o out.h5")
    assert not any("lines" in warning for warning in result["warnings"])
    rows = of_lines("out.h5", "soft_contacts")
    on_peg = rows[rows["shape"] == "peg"]
    assert (on_peg["kind"] == "edge").all()
    assert on_peg["object"].tolist() == ["rope"] * 3
    expected = np.abs(HEIGHTS[1:4]) - 0.01 - RADIUS
    assert on_peg["distance"].to_numpy() == pytest.approx(expected, abs=1e-7)
    swept = of_lines("out.h5", "soft_sweep")
    on_peg = swept[swept["shape"] == "peg"]
    assert on_peg["kind"].tolist() == ["edge"] * 2
    assert on_peg["tunnel"].tolist() == [0, 0]
    collide.ok("check out.h5")
    words = f"none of shapes; {len(rows)} of particles"
    assert words in collide.ok("inspect out.h5").out
    assert words in collide.ok("run scene.xml -t motion.h5 --soft-gap 5cm -o again.h5").out
    assert "When 1 pair touches" in collide.ok("plot out.h5 -o map.png --kind pairs").out
    for kind in ("contacts", "depth"):
        told = "has nothing to show: it has no contacts of shapes; --kind particles draws"
        collide.refused("plot out.h5 -o x.png --kind", kind, told=told)
    collide.ok("run scene.xml -t motion.h5 --sweep --frames ::4 -o fast.h5 -q")
    swept = of_lines("fast.h5", "soft_sweep")
    assert swept["tunnel"].tolist() == [1]
    assert swept["kind"].tolist() == ["edge"]
    assert swept["enter"].to_numpy() == pytest.approx([(0.3 - 0.015) / 0.6], abs=1e-5)
    events = collide.ok("events fast.h5 --sweep").out
    assert re.search(r" peg +rope$", events, re.M)
    collide.ok("check fast.h5")


@pytest.mark.usefixtures("rope")
def test_a_rope_that_slides_over_the_peg_is_one_touch(here, collide):
    """At a constant depth of 3 mm, while its particles pass the peg one after the other."""
    poses = np.zeros((13, 1, 4, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = SPACING * (np.arange(4) - 1.5) + 0.05 * np.arange(13)[:, None, None]
    poses[..., 2] = 0.012
    write_poses(here / "slide.h5", poses, [f"rope_{k}" for k in range(4)])
    collide.ok("run scene.xml -t slide.h5 --sweep -o out.h5 -q")
    collide.ok("check out.h5")
    rows = of_lines("out.h5", "soft_sweep")
    on_peg = rows[rows["shape"] == "peg"]
    assert set(on_peg["kind"]) == {"vertex", "edge"}
    assert set(on_peg["tunnel"]) == {0}
    (touch,) = (
        row
        for row in collide.result("events out.h5 --sweep")["between_frames"]["listed"]
        if row["shape0"] == "peg"
    )
    assert (touch["begin_time"], touch["missed"]) == (0.0, False)
    assert touch["end_time"] == of_lines("out.h5", "soft_contacts")["time"].max()
    assert touch["least_distance"] == pytest.approx(-0.003, abs=1e-7)


@pytest.mark.usefixtures("rope")
def test_a_touch_between_frames_is_as_deep_as_in_its_frames(here, collide):
    """A slanting line sinks into a box: the points whose depths between frames are known are not
    the deepest."""
    (here / "scene.xml").write_text(SCENE.replace("0.01 0.2 0.01", "0.1 0.2 0.1"))
    poses = np.zeros((4, 1, 4, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = SPACING * (np.arange(4) - 1.5)
    poses[..., 2] = np.array([0.3, 0.09, 0.05, 0.045])[:, None, None] + [0.3, 0.1, -0.1, -0.3]
    write_poses(here / "sink.h5", poses, [f"rope_{k}" for k in range(4)])
    collide.ok("run scene.xml -t sink.h5 --sweep -o out.h5 -q")
    result = collide.result("events out.h5 --sweep")
    (interval,) = (row for row in result["listed"] if row["shape0"] == "peg")
    (touch,) = (row for row in result["between_frames"]["listed"] if row["shape0"] == "peg")
    swept = of_lines("out.h5", "soft_sweep")
    assert touch["least_distance"] <= interval["least_distance"]
    assert interval["least_distance"] < swept[swept["shape"] == "peg"]["least"].min() - 1e-4
    listed = collide.result("report out.h5 -o page.html")["between_frames"]["listed"]
    assert touch in listed


@pytest.mark.usefixtures("rope")
def test_distances_are_those_of_the_lines(collide):
    result = collide.result("clearance scene.xml -t motion.h5")
    found = {row["shape0"]: row for row in result["listed"]}
    assert found["peg"]["least_distance"] == pytest.approx(0.012 - 0.01 - RADIUS, abs=1e-9)
    assert found["peg"]["indices"] == [1, 2]
    # The sphere's middle is 0.25 beside the end of the line at x = 0.2.
    assert found["side"]["least_distance"] == pytest.approx(
        np.hypot(0.25, 0.012) - 0.1 - RADIUS, abs=1e-9
    )
    assert found["floor"]["least_distance"] == pytest.approx(2.0 - 0.3 - RADIUS, abs=1e-9)


@pytest.mark.usefixtures("rope")
def test_inspect_counts_the_lines(collide):
    result = collide.result("inspect scene.xml")
    assert [(row["kind"], row["lines"]) for row in result["deformables"]] == [("cable", 3)]
    assert "4: cable rope, 3 lines" in collide.ok("inspect scene.xml").out


@pytest.mark.usefixtures("rope")
def test_a_page_has_the_lines(collide):
    pytest.importorskip("viser")
    collide.ok("run scene.xml -t motion.h5 -o out.h5 -q")
    collide.ok("view out.h5 --scene scene.xml -t motion.h5 --export page.html")
    (drawn,) = page_data("page.html")["particles"].values()
    assert drawn["lines"] == [0, 1, 1, 2, 2, 3]
    assert drawn["triangles"] == []
    assert drawn["points"] == 0
    assert drawn["thickness"] == pytest.approx(2.0 * RADIUS)


@pytest.mark.usefixtures("rope")
def test_a_recording_has_the_lines(collide):
    collide.ok("run scene.xml -t motion.h5 -o out.h5 -q")
    found = recorded(collide, "out.h5", "--scene", "scene.xml", "-t", "motion.h5")
    strips = found.columns("/world_0/particles/cables")["strips"]
    assert [len(each) for each in strips] == [3] * len(HEIGHTS)
    at = np.array(strips)
    assert at[:, :, :, 0] == pytest.approx(
        np.tile([[-0.6, -0.2], [-0.2, 0.2], [0.2, 0.6]], (len(HEIGHTS), 1, 1)), abs=1e-6
    )
    assert at[:, 0, 0, 2] == pytest.approx(HEIGHTS, abs=1e-6)


TWO_ROPES = SCENE.replace(
    "</worldbody>",
    """<body name="cord"><flexcomp name="cord" type="grid" count="4 1 1" spacing="0.4 1 1" dim="1"
 radius="0.005" mass="1"><contact selfcollide="none"/></flexcomp></body></worldbody>""",
)


def test_what_is_not_searched_between_objects_is_said(here, collide):
    (here / "ropes.xml").write_text(TWO_ROPES)
    found = "with each other are not in the set: collide run --self-contacts finds them"
    audited = "with each other are not audited: collide clearance measures them"
    collide.ok("run ropes.xml --soft-gap 1cm -o out.h5")
    assert found in collide.ok("events out.h5").err
    assert audited in collide.ok("audit out.h5 --max-depth 1m").err
    assert audited in collide.ok("audit ropes.xml --max-depth 1m").err
    collide.ok("run ropes.xml --self-contacts 1cm -o self.h5")
    assert found not in collide.ok("events self.h5").err
    (here / "scene.xml").write_text(SCENE)
    collide.ok("run scene.xml -o one.h5")
    assert found not in collide.ok("events one.h5").err
    assert "not audited" not in collide.ok("audit scene.xml --max-depth 1m").err


def test_a_threshold_beyond_all_gaps_names_the_option_of_particles(here, collide):
    (here / "scene.xml").write_text(SCENE)
    collide.ok("run scene.xml --soft-gap 1cm -o out.h5")
    refused = collide.refused("events out.h5 --threshold 0.02", told="no contacts beyond 0.01 m")
    assert "--soft-gap 0.02" in str(refused)
    collide.ok("run scene.xml --soft-gap 2cm -o far.h5")
    collide.ok("events far.h5 --threshold 0.02")
