"""Files of sensors: what each key means, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.sensors_file import read_sensors_file
from collidecli.scene.sensor_volumes import HULL
from collidecli.scene.sensors import CONTACT, INSIDE, OWN_POINT, POSITION, Sensor

OBJ = """v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
v 3 3 3
f 1 2 3
f 1 2 4
f 1 3 4
f 2 3 5
"""


def read(folder: Path, text: str) -> tuple[Sensor, ...]:
    path = folder / "sensors.toml"
    path.write_text(text)
    return read_sensors_file(path).sensors


def test_keys_of_a_contact_sensor(tmp_path):
    (one,) = read(
        tmp_path,
        """
        [[sensor]]
        name = "sole"
        shapes = ["left_foot*", "re:right_foot[0-9]"]
        partners = "floor"
        each = "body"
        slots = 3
        tangent = true
        region = { box = [0.1, "5cm", 0.02], position = ["1cm", 0, 0], quaternion = [0, 0, 1, 1e-9] }
        """,
    )
    assert (one.name, one.kind, one.each, one.slots, one.tangent) == (
        "sole",
        CONTACT,
        "body",
        3,
        True,
    )
    assert one.first.patterns == ("left_foot*", "re:right_foot[0-9]")
    assert one.second.patterns == ("floor",)
    assert one.region is not None
    assert one.region.volume.size == (0.1, 0.05, 0.02)
    assert one.region.test == OWN_POINT
    assert one.region.placement is None
    assert np.allclose(one.region.pose, [0.01, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


def test_keys_of_a_point_in_a_volume(tmp_path):
    (one,) = read(
        tmp_path,
        """
        [[sensor]]
        name = "in the bin"
        type = "inside"
        point = { body = "cup", position = [0, 0, 0.1] }
        region = { body = "", cylinder = [0.2, 0.3], test = "middle" }
        """,
    )
    assert one.kind == INSIDE
    assert one.point is not None
    assert (one.point.body, one.point.pose[2]) == ("cup", 0.1)
    assert one.region is not None
    assert one.region.placement is not None
    assert one.region.placement.body == ""
    assert one.region.test == POSITION


@pytest.mark.rest  # imports trimesh
def test_regions_of_hulls(tmp_path):
    (tmp_path / "foot.obj").write_text(OBJ)
    corners = "[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]"
    sensors = read(
        tmp_path,
        f"""
        [[sensor]]
        name = "points"
        region = {{ body = "", hull = {corners} }}
        [[sensor]]
        name = "vertices"
        region = {{ body = "", mesh = "foot.obj", vertices = [0, 1, 2, 3] }}
        [[sensor]]
        name = "mesh"
        region = {{ body = "", mesh = "foot.obj" }}
        [[sensor]]
        name = "greater"
        region = {{ body = "", hull = {corners}, outwards = "10cm" }}
        """,
    )
    points = np.array([[0.2, 0.2, 0.2], [1.0, 1.0, 1.0], [-0.05, 0.1, 0.1]])
    inside = []
    for one in sensors:
        assert one.region is not None
        assert one.region.volume.kind == HULL
        inside.append(one.region.volume.contains(points).tolist())
    assert inside == [[True, False, False]] * 2 + [[True, True, False], [True, False, True]]


def test_keys_of_isaac_lab(tmp_path):
    (one,) = read(
        tmp_path,
        """
        [[sensor]]
        prim_path = "{ENV_REGEX_NS}/Robot/.*_FOOT"
        filter_prim_paths_expr = ["/World/ground", "/World/envs/env_.+/Cube"]
        """,
    )
    assert (one.name, one.each) == ("", "body")
    assert one.first.patterns == ("re:/World/envs/env_[^/]*/Robot/[^/]*_FOOT",)
    assert [side.patterns for _, side in one.filters] == [
        ("re:/World/ground",),
        ("re:/World/envs/env_[^/]+/Cube",),
    ]


def test_keys_of_newton(tmp_path):
    bodies, shapes = read(
        tmp_path,
        """
        [[sensor]]
        sensing_bodies = ["*foot"]
        counterpart_bodies = "*box"
        counterpart_shapes = ["ground", "wall"]
        [[sensor]]
        name = "n"
        sensing_shapes = "*"
        """,
    )
    assert (bodies.each, shapes.each) == ("body", "shape")
    assert [name for name, _ in bodies.filters] == ["*box", "ground", "wall"]
    assert shapes.filters == ()


NAMED = '[[sensor]]\nname = "x"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no sensor"),
        ("sensor = 3", "no list of tables"),
        ("[other]", "'other' is not known"),
        ('[[sensor]]\nshapes = "a"', "has no name"),
        (NAMED + 'shape = "a"', "'shape' is no key of a sensor"),
        (NAMED, "selects nothing"),
        (NAMED + "shapes = 3", "'shapes' is 3"),
        (NAMED + "shapes = []", "'shapes' is empty"),
        (NAMED + 'shapes = "a"\ntype = "force"', "'type' is 'force'"),
        (NAMED + 'shapes = "a"\nslots = 0', "'slots' is 0"),
        (NAMED + 'shapes = "a"\ntangent = 1', "'tangent' is 1"),
        (NAMED + 'shapes = "a"\neach = "geom"', "'each' is 'geom'"),
        (NAMED + 'type = "distance"\nshapes = "a"', "has no 'partners'"),
        (NAMED + 'type = "distance"\nshapes = "a"\npartners = "b"\nslots = 2', "no meaning"),
        (NAMED + 'type = "inside"\nregion = { body = "", sphere = 1 }', "has no 'point'"),
        (NAMED + 'type = "inside"\npoint = {}\nregion = { sphere = 1 }', "its region has no body"),
        (NAMED + "region = 3", "'region' is 3"),
        (NAMED + 'region = { body = "" }', "has no volume"),
        (NAMED + "region = { sphere = 1, box = [1, 1, 1] }", "has several volumes"),
        (NAMED + "region = { sphere = 0 }", "'sphere' is 0"),
        (NAMED + 'region = { sphere = "2 miles" }', "not a length"),
        (NAMED + "region = { box = [1, 1] }", "'box' is [1, 1]"),
        (NAMED + "region = { sphere = 1, outwards = 1 }", "of hulls and meshes"),
        (NAMED + "region = { sphere = 1, radius = 1 }", "'radius' is no key of 'region'"),
        (NAMED + 'region = { sphere = 1, test = "ray" }', "'test' is 'ray'"),
        (NAMED + "region = { sphere = 1, quaternion = [0, 0, 0, 2] }", "norm"),
        (NAMED + "region = { hull = [[0, 0, 0]] }", "no list of points"),
        (NAMED + "region = { hull = [[0,0,0],[1,0,0],[0,1,0],[1,1,0]] }", "flat"),
        (NAMED + 'region = { mesh = "foot.obj", vertices = [9] }', "there is no vertex 9"),
        (NAMED + 'region = { mesh = "no.obj" }', "no such file"),
        (NAMED + 'shapes = "a"\n' + NAMED + 'shapes = "b"', "has the name of sensor 1"),
        ('[[sensor]]\nprim_path = "/a"\nslots = 2', "does not go with"),
        ('[[sensor]]\nfilter_prim_paths_expr = "/a"', "has no 'prim_path'"),
        ('[[sensor]]\nsensing_bodies = "a"\nsensing_shapes = "b"', "has several sensing"),
        ('[[sensor]]\ncounterpart_bodies = "a"', "has no sensing"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, told):
    (tmp_path / "foot.obj").write_text(OBJ)
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert told in error.value.what
    assert error.value.fix
    assert "sensors.toml" in error.value.where or "no.obj" in error.value.where
