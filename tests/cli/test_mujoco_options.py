"""URDF, SRDF and asset maps on the command line and from Python; warnings and errors where they belong."""

from __future__ import annotations

import json

import h5py
import pytest

import collidecli

ARM = """<robot name="arm"><link name="base"><collision><geometry><sphere radius="0.5"/></geometry></collision></link>
<link name="tip"><collision><geometry><sphere radius="0.5"/></geometry></collision></link>
<joint name="j" type="prismatic"><parent link="base"/><child link="tip"/><origin xyz="0 0 0.9"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1"/></joint></robot>"""
SRDF = '<robot name="arm"><disable_collisions link1="base" link2="tip" reason="Adjacent"/></robot>'
BROKEN = """<mujoco><worldbody><geom name="a" size="1"/><body name="b"><freejoint/><geom name="b" size="1"/></body>
</worldbody><actuator><motor joint="none"/></actuator></mujoco>"""
BOX = """<mujoco><asset><mesh name="m" file="/gone/m.obj"/></asset><worldbody><body name="b"><freejoint/>
<geom name="b" type="box" mesh="m"/></body></worldbody></mujoco>"""
MESH = "v 0 0 0\nv 2 0 0\nv 0 4 0\nv 0 0 6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
CPU = ("--device", "cpu")


@pytest.fixture
def arm(here):
    (here / "arm.urdf").write_text(ARM)
    (here / "arm.srdf").write_text(SRDF)
    return here


def test_a_urdf_runs(arm, collide):
    assert collide("run", "arm.urdf", *CPU).code == 0
    with h5py.File("arm.contacts.h5") as file:
        assert list(file["model/shape/path"].asstr()) == ["base/collision#0", "tip/collision#0"]
        assert file["rigid_contacts/distance"][:].tolist() == pytest.approx([-0.1], abs=1e-6)


def test_disabled_pairs_are_an_option_of_the_run(arm, collide):
    for options in ((), ("--disabled-pairs", "arm.srdf")):
        assert collide("run", "arm.urdf", *CPU, *options, "-o", f"{len(options)}.h5").code == 0
    with h5py.File("0.h5") as every, h5py.File("2.h5") as fewer:
        assert (len(every["rigid_contacts/distance"]), len(fewer["rigid_contacts/distance"])) == (1, 0)
        assert every.attrs["scene_sha256"] != fewer.attrs["scene_sha256"]
        assert json.loads(fewer.attrs["config"])["disabled_pairs"] == "arm.srdf"


LEGS = """<mujoco><worldbody>
<geom name="floor" type="box" size="3 3 0.1"/>
<body name="fixed" pos="1 0 0.2"><geom name="base" size="0.2"/>
<body name="arm"><joint axis="0 1 0"/><geom name="arm" size="0.2"/>
<body name="hand"><joint axis="0 1 0"/><geom name="hand" size="0.2"/>
<body name="tip"><joint axis="0 1 0"/><geom name="tip" size="0.2"/></body></body></body></body>
<body name="ball" pos="1 0 0.2"><freejoint/><geom name="ball" size="0.2"/></body>
</worldbody>FORCED</mujoco>"""


def allowed(collide, *options):
    """Pairs of names that may touch."""
    answer = collide("inspect", *options, "--pairs", "--json")
    assert answer.code == 0, answer.err
    return {tuple(sorted(pair)) for pair in json.loads(answer.out)["pairs"]}


def test_self_collisions_of_kinematic_trees(here, collide):
    (here / "legs.xml").write_text(LEGS.replace("FORCED", ""))
    every = allowed(collide, "legs.xml")
    own = {("arm", "tip"), ("arm", "base"), ("base", "hand"), ("base", "tip")}
    assert own <= every
    assert allowed(collide, "legs.xml", "--self-collisions", "on") == every
    assert allowed(collide, "legs.xml", "--self-collisions", "off") == every - own
    for pair in own:
        answer = collide("inspect", "legs.xml", "--self-collisions", "off", "--why", *pair)
        assert answer.out.strip().endswith("may not touch: self-collision of the articulation is off")
    (here / "forced.xml").write_text(LEGS.replace("FORCED", '<contact><pair geom1="arm" geom2="tip"/></contact>'))
    assert allowed(collide, "forced.xml", "--self-collisions", "off") == (every - own) | {("arm", "tip")}


def test_self_collisions_of_a_urdf_are_in_the_contact_set(arm, collide):
    for options in ((), ("--self-collisions", "off"), ("--self-collisions", "off", "--ground")):
        name = f"{len(options)}.h5"
        assert collide("run", "arm.urdf", *CPU, *options, "-o", name).code == 0
    found = {}
    for count in (0, 2, 3):
        with h5py.File(f"{count}.h5") as file:
            found[count] = len(file["rigid_contacts/distance"]), json.loads(file.attrs["config"]).get("self_collisions")
    assert found[0] == (1, None)
    assert found[2] == (0, "off")
    assert allowed(collide, "arm.urdf", "--self-collisions", "off", "--ground") == {("ground", "tip/collision#0")}
    assert collide("run", "arm.urdf", "--self-collisions", "maybe").code == 2
    with pytest.raises(collidecli.InputError, match="self_collisions is 'maybe'"):
        collidecli.ModelBuilder().add_mjcf("arm.urdf", self_collisions="maybe")


def test_what_is_left_out_is_told(here, collide):
    (here / "broken.xml").write_text(BROKEN)
    answer = collide("inspect", "broken.xml")
    assert answer.code == 0
    assert "warning: removed, as it does not compile" in answer.err
    assert collide("record", "broken.xml", "-o", "m.h5", "--frames", "2").code == 2


def test_asset_map(here, collide):
    (here / "box.xml").write_text(BOX)
    (here / "m.obj").write_text(MESH)
    answer = collide("inspect", "box.xml")
    assert answer.code == 2
    assert "geom 'b' collides, and its file '/gone/m.obj'" in answer.err
    assert collide("inspect", "box.xml", "--asset-map", "/gone=.").code == 0
    (here / "collide.toml").write_text('asset-map = "/gone=."\n')
    assert collide("inspect", "box.xml").code == 0


def test_a_geom_that_is_only_seen_is_told_from_one_that_is_not_there(here, collide):
    (here / "seen.xml").write_text(BROKEN.replace('name="a" size', 'name="a" contype="0" conaffinity="0" size'))
    assert "'a' is only visual" in collide("inspect", "seen.xml", "--why", "a", "b").err
    assert "there is no shape or body 'c'" in collide("inspect", "seen.xml", "--why", "c", "b").err


def test_from_python(arm):
    builder = collidecli.ModelBuilder()
    imported = builder.add_mjcf("arm.urdf", disabled_pairs="arm.srdf")
    contacts = collidecli.collide(builder.finalize(), device="cpu")
    assert len(contacts.distance) == 0
    assert imported.warnings == ()
    (arm / "box.xml").write_text(BOX)
    (arm / "m.obj").write_text(MESH)
    builder = collidecli.ModelBuilder()
    builder.add_mjcf("box.xml", asset_map=["/gone=."])
    assert builder.finalize().shapes.path == ("b",)
