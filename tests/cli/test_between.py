"""Pairs of patterns: how many are given, and what is measured and listed of several pairs."""

import csv
import re

import numpy as np
import pytest

import collidecli
from collidecli import InputError
from tests.cli.conftest import collide, here

__all__ = ["collide", "here"]

SCENE = """<mujoco><worldbody>
<geom name="floor" type="plane" size="5 5 0.1"/>
<geom name="table" type="box" size="0.5 0.5 0.1" pos="2 0 0.5"/>
<body name="low" pos="0 0 0.5"><freejoint/><geom name="low" size="0.1"/></body>
<body name="high" pos="0 0 2"><freejoint/><geom name="high" size="0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def scene(here):
    (here / "scene.xml").write_text(SCENE)
    return "scene.xml"


def test_several_selections_have_a_distance_each(scene, collide):
    words = ("clearance", scene, "--between", "low,floor", "--between", "high,floor")
    result = collide.result(*words)
    assert result["between"] == ["low", "floor", "high", "floor"]
    found = {(row["shape0"], row["shape1"]): row["least_distance"] for row in result["listed"]}
    assert found == pytest.approx({("floor", "low"): 0.4, ("floor", "high"): 1.9})
    assert "low and floor; high and floor" in collide.ok(*words).out
    assert [row["between"] for row in result["listed"]] == [["low", "floor"], ["high", "floor"]]
    collide.ok(*words, "-o", "out.csv")
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["between"], row["shape1"]) for row in rows} == {
        ("low,floor", "low"),
        ("high,floor", "high"),
    }
    by_pair = collide.result(*words, "--by", "pair", "--between", "low,table")["listed"]
    assert len(by_pair) == 3
    alone = collidecli.clearance(scene, between="high,floor")
    both = collidecli.clearance(scene, between=["low", "floor", "high", "floor"])
    np.testing.assert_array_equal(both.distance[..., 1], alone.distance[..., 0])


def test_equal_selections_are_refused(scene, collide):
    words = ("--between", "low,floor", "--between", "low,floor")
    collide.refused("clearance", scene, *words, told="'low,floor' is given twice")


def test_each_selection_has_a_pair(scene, collide):
    words = ("--between", "low,floor", "--between", "floor,table")
    collide.refused("clearance", scene, *words, told="no pair of shapes may touch")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["low"], "1 pattern is given"),
        (["low", "floor", "high"], "3 patterns are given"),
        ("low,floor,high", "3 patterns are given"),
    ],
)
def test_an_odd_number_of_patterns_is_counted(scene, collide, given, told):
    collide.ok(f"run {scene} -o out.h5")
    with collidecli.open_contacts("out.h5") as contacts:
        for call in (
            lambda: contacts.events(between=given),
            lambda: collidecli.clearance(scene, between=given),
            lambda: collidecli.label("out.h5", between=given),
        ):
            with pytest.raises(InputError, match=f"between: {told}\n  give two, as 'hand"):
                call()


def test_labels_have_one_pair_of_patterns(scene, collide):
    collide.ok(f"run {scene} -o out.h5")
    words = ("--between", "low,floor", "--between", "high,floor")
    collide.refused("label out.h5", *words, told="--between")
    four = ["low", "floor", "high", "floor"]
    with pytest.raises(InputError, match="4 patterns are given"):
        collidecli.label("out.h5", between=four)


ARM = '<body name="{0}"><freejoint/><geom name="{0}" size="0.1"/></body>'


def test_the_chart_of_bodies_tells_long_names_apart(here, collide):
    """Names that differ in the middle alone, which a shortened one leaves out."""
    names = [f"cell_of_the_first_robot_{side}_{'arm_' * 8}hand" for side in ("left", "right")]
    bodies = "".join(ARM.format(name) for name in names)
    floor = '<geom name="floor" type="plane" size="5 5 0.1" pos="0 0 -1"/>'
    (here / "arms.xml").write_text(f"<mujoco><worldbody>{floor}{bodies}</worldbody></mujoco>")
    collide.ok("clearance arms.xml --by body --plot near.svg")
    texts = re.findall(r"<text[^>]*>([^<]*hand)</text>", (here / "near.svg").read_text())
    assert len(texts) == len(set(texts)) == 2, texts
