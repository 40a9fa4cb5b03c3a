"""Sensors of MJCF scenes: what is read, noted and refused."""

import numpy as np
import pytest

from collidecli.importers.mujoco.scene import MjcfImport, add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.sensors import CONTACT, DISTANCE, INSIDE, POSITION, RAY, DeclaredSensors

SCENE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="arm" pos="0 0 1"><joint/>
      <geom name="arm" size="0.1"/>
      <geom name="skin" size="0.2" contype="0" conaffinity="0"/>
      <site name="s" type="capsule" size="0.1 0.2" pos="0 0 0.3" quat="0 1 0 0"/>
      <body name="hand" pos="0 0 1"><joint/><geom name="palm" size="0.1"/></body>
    </body>
    <body name="shelf" pos="1 2 3" euler="0 0 90"><geom name="board" type="box" size="1 1 1"/>
      <site name="fixed" type="box" size="1 2 3" pos="1 0 0"/></body>
    <body name="ghost"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <geom name="mist" size="0.1" contype="0" conaffinity="0"/><site name="g"/></body>
    <camera name="tracking" mode="trackcom"/>
  </worldbody>
  <sensor>{sensors}</sensor>
</mujoco>
"""


def scene(tmp_path, sensors: str) -> MjcfImport:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE.format(sensors=sensors))
    return add_mjcf(ModelBuilder(), path)


def read(tmp_path, sensors: str) -> DeclaredSensors:
    return scene(tmp_path, sensors).sensors()


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        ('geom1="palm"', ("palm",), None),
        ('body1="arm"', ("arm",), None),
        ('subtree1="arm"', ("arm", "palm"), None),
        ('subtree1="world"', ("floor", "arm", "palm", "board"), None),
        ('body2="world" geom1="arm"', ("arm",), ("floor",)),
        ('site="s" geom2="board"', None, ("board",)),
        ("", None, None),
    ],
)
def test_sides_of_a_contact_sensor(tmp_path, words, first, second):
    (one,) = read(tmp_path, f'<contact name="c" {words} data="found"/>').sensors
    assert (one.name, one.kind, one.first.shapes, one.second.shapes) == (
        "c",
        CONTACT,
        first,
        second,
    )
    assert (one.region is not None) == ("site" in words)


def test_a_site_moves_with_its_body_or_stands_in_the_world(tmp_path):
    moving, fixed = read(
        tmp_path, '<contact site="s" data="found"/><contact site="fixed" data="found"/>'
    ).sensors
    assert moving.region is not None
    assert moving.region.placement is not None
    assert moving.region.placement.body == "arm"
    assert moving.region.placement.pose == (0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0)
    assert (moving.region.volume.kind, moving.region.volume.size) == ("capsule", (0.1, 0.2))
    assert moving.region.test == POSITION
    assert fixed.region is not None
    assert fixed.region.placement is not None
    assert fixed.region.placement.body == ""
    half = np.sqrt(0.5)
    assert np.allclose(fixed.region.placement.pose, [1.0, 3.0, 3.0, 0.0, 0.0, half, half])


def test_touch_distances_and_points(tmp_path):
    touch, distance, normal, inside = read(
        tmp_path,
        '<touch name="t" site="s"/><distance body1="arm" geom2="board"/>'
        '<normal geom1="palm" geom2="floor"/>'
        '<insidesite site="fixed" objtype="geom" objname="skin"/>',
    ).sensors
    assert (touch.declared, touch.first.shapes) == ("touch", ("arm",))
    assert touch.region is not None
    assert touch.region.test == RAY
    assert (distance.kind, distance.declared, distance.name) == (
        DISTANCE,
        "distance",
        "distance#1",
    )
    assert (normal.first.shapes, normal.second.shapes) == (("palm",), ("floor",))
    assert inside.kind == INSIDE
    assert inside.point is not None
    assert inside.point.body == "arm"


def test_notes_name_what_is_given_in_place_of_forces(tmp_path):
    declared = read(
        tmp_path,
        '<touch name="t" site="s"/><touch name="empty" site="g"/>'
        '<contact name="f" geom1="arm" data="force"/><distance body1="arm" geom2="board"/>'
        '<gyro site="s"/><gyro site="g"/><jointpos joint="j"/>'.replace(
            '<jointpos joint="j"/>', '<clock name="clock"/>'
        ),
    )
    notes = " / ".join(declared.notes)
    for words in (
        "left out: clock (1), gyro (2)",
        "touch sensor 't' and 1 more: a touch sensor measures a force",
        "contact sensor 'f': forces, torques and velocities",
        "distance sensor 'distance#3': geoms that cannot collide are not measured",
        "touch sensor 'empty': has no geom that can collide",
    ):
        assert words in notes
    assert declared.refused == {}


def test_notes_are_about_the_chosen_sensors(tmp_path):
    imported = scene(
        tmp_path, '<touch name="t" site="s"/><touch name="u" site="s"/><gyro name="g" site="s"/>'
    )
    chosen = imported.sensors(lambda name: name == "u")
    assert [sensor.name for sensor in chosen.sensors] == ["t", "u"]
    (note,) = chosen.notes
    assert note.startswith("touch sensor 'u': a touch sensor measures a force")
    assert imported.sensors(lambda name: name == "g").notes == (
        "not of contacts, and left out: gyro (1)",
    )


@pytest.mark.parametrize(
    ("sensor", "told"),
    [
        ('<contact name="x" data="found dist" reduce="maxforce"/>', "the greatest force"),
        ('<contact name="x" data="pos" reduce="netforce"/>', "weighted by forces"),
        ('<distance name="x" geom1="skin" geom2="arm"/>', "'skin' has no collider"),
        ('<distance name="x" body1="ghost" geom2="arm"/>', "'mist' has no collider"),
        ('<insidesite name="x" site="s" objtype="camera" objname="tracking"/>', "camera follows"),
    ],
)
def test_sensors_that_poses_do_not_determine_are_refused(tmp_path, sensor, told):
    declared = read(tmp_path, sensor + '<touch name="t" site="s"/>')
    assert [one.name for one in declared.sensors] == ["t"]
    assert told in declared.refused["x"]


@pytest.mark.parametrize(
    "words", ['data="found" reduce="maxforce"', 'data="found force dist" reduce="netforce"']
)
def test_the_number_of_contacts_needs_no_forces(tmp_path, words):
    declared = read(tmp_path, f'<contact name="x" num="4" {words}/>')
    assert declared.refused == {}
    assert declared.sensors[0].slots == (1 if "netforce" in words else 4)
