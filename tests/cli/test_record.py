"""collide record: the thin verb over app.record."""

from __future__ import annotations

import json

import pytest


def test_recorded_motion_runs(here, collide):
    answer = collide("record", "scene.xml", "-o", "out.h5", "--frames", "6", "--every", "2", "--worlds", "2", "--json")
    result = json.loads(answer.out)
    assert (answer.code, result["schema"]) == (0, "collide.record/1")
    assert (result["frames"], result["worlds"], result["bodies"]) == (6, 2, 2)
    # five times two steps of MuJoCo's default 2 ms
    assert result["duration"] == pytest.approx(0.02)
    assert collide("check", "out.h5").code == 0
    # Without --worlds, as many as were recorded.
    run = json.loads(collide("run", "scene.xml", "-t", "out.h5", "--json", "--device", "cpu").out)
    assert (run["frames"], run["worlds"]) == (6, 2)


def test_the_same_arguments_record_the_same(here, collide):
    for name in ("a.h5", "b.h5"):
        assert collide("record", "scene.xml", "--frames", "5", "--noise", "0.01", "--seed", "3", "-o", name).code == 0
    assert (here / "a.h5").read_bytes() == (here / "b.h5").read_bytes()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 2, "'--frames'"),
        (("--frames", "0"), 2, "'--frames'"),
        (("--frames", "3", "--seed", "-1"), 2, "'--seed'"),
        (("--frames", "3", "--control", "nowhere.npy"), 2, "nowhere.npy"),
        (("--frames", "3", "--keyframe", "stand"), 2, "stand"),
        (("--frames", "3", "-o", "scene.xml", "--force"), 3, "scene.xml"),
        (("--frames", "3", "-o", "motion.h5"), 3, "motion.h5"),
    ],
)
def test_refusals(here, collide, options, code, words):
    answer = collide("record", "scene.xml", *options)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


WEDGE = """o wedge
v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""
ARM = """<robot name="arm"><link name="base"/>
  <link name="hand"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><mesh filename="package://arm/meshes/wedge.obj"/></geometry></collision></link>
  <joint name="wrist" type="continuous"><parent link="base"/><child link="hand"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.mark.parametrize("verb", [("record", "arm.urdf", "--frames", "2", "-o", "arm.h5"), ("inspect", "arm.urdf")])
def test_meshes_of_a_package_are_where_the_asset_map_says(here, collide, verb):
    (here / "arm.urdf").write_text(ARM)
    answer = collide(*verb)
    assert (answer.code, answer.out) == (2, "")
    assert "--asset-map package://arm=FOLDER" in answer.err
    (here / "robots" / "meshes").mkdir(parents=True)
    (here / "robots" / "meshes" / "wedge.obj").write_text(WEDGE)
    answer = collide(*verb, "--asset-map", f"package://arm={here / 'robots'}")
    assert answer.code == 0, answer.err
