"""Contents of a URDF: what affects no contact never stops it, what cannot be read is named."""

import numpy as np
import pytest
import trimesh

import collidecli
from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import compile_mjcf
from collidecli.importers.mujoco.urdf.elements import read_elements
from tests.support.engine_runs import ArrayMotion
from tests.support.mujoco_pairs import load

BOX = '<collision><geometry><box size="0.2 0.4 0.6"/></geometry></collision>'
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'


def arm(of_link="", of_joint="", of_robot=""):
    return f"""<robot name="r">{of_robot}<link name="a">{BOX}</link>
<link name="b">{BOX}{of_link}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>{of_joint}</joint></robot>"""


def read(folder, text):
    return load(folder, text, name="robot.urdf")


UNUSED = "of link 'b' ({}) is not used, and affects no contact"
INERTIALS = {
    f"<inertial>{INERTIA}</inertial>": UNUSED.format("has no <mass>"),
    '<inertial><mass value="1"/></inertial>': UNUSED.format("has no <inertia>"),
    f"<inertial><mass/>{INERTIA}</inertial>": UNUSED.format("has no attribute 'value'"),
    f'<inertial><mass value="x"/>{INERTIA}</inertial>': "is not a finite number",
    '<inertial><mass value="1"/><inertia ixx="1"/></inertial>': "has no attribute 'iyy'",
    f'<inertial><mass value="-1"/>{INERTIA}</inertial>': "inertias (2; MuJoCo: mass",
    f'<inertial><mass value="0"/>{INERTIA}</inertial>': "inertias (2; MuJoCo: mass",
    f'<inertial><mass value="1"/>{INERTIA.replace("1", "-1")}</inertial>': "inertias (2; MuJoCo:",
    f'<inertial><mass value="1"/>{INERTIA.replace("1", "9", 1)}</inertial>': "A + B >= C",
}


@pytest.mark.parametrize("inertial", INERTIALS)
def test_inertials_never_stop_a_scene(tmp_path, inertial):
    imported, model = read(tmp_path, arm(inertial))
    assert model.shapes.path == ("a/collision#0", "b/collision#0")
    (warning,) = imported.warnings
    assert INERTIALS[inertial] in warning
    with pytest.raises(InputError):
        compile_mjcf(tmp_path / "robot.urdf", strict=True)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (arm(), None),
        (arm(of_joint='<limit effort="1"/>'), None),
        (arm(of_joint='<safety_controller k_velocity="x"/>'), None),
        (arm(of_joint='<limit lower="3" upper="1"/>'), "lower 3 of joint 'j' is above upper 1"),
        (arm(of_joint='<limit lower="3"/>'), "of joint 'j' has lower alone, and the joint is not"),
        (arm(of_joint='<limit lower="3" upper="1"/>').replace("revolute", "continuous"), None),
        (arm(of_joint='<limit lower="0" upper="0"/>'), None),
        (arm(of_joint='<limit lower="-1.57." upper="1"/>'), "line 3, <joint>: <limit> is not used"),
        (arm(of_joint='<dynamics damping="x"/>'), "line 3, <joint>: <dynamics> is not used"),
        (arm(of_joint='<mimic joint="gone"/>'), "has no effect: one of the joints 'j' and 'gone'"),
        (
            arm(of_robot='<transmission name="t"><type>x</type></transmission><gazebo/><material/>'
                '<ros2_control name="c"><joint name="j"/></ros2_control><link name="unused"/>'),
            None,
        ),
        (arm('<visual><geometry><mesh filename="gone.dae"/></geometry><material/></visual>'), None),
        (arm("<visual/><visual><geometry/></visual>"), None),
        (arm("<collision/>"), "line 2, <collision> of link 'b' has no geometry, and is left out"),
        (arm("<collision><geometry/></collision>"), "has no geometry, and is left out"),
        (arm('<collision><origin xyz="0.07, 0, -0.69"/><geometry><sphere radius="1"/></geometry></collision>'),
         "line 2, <origin>: xyz separates its numbers by commas"),
        (arm('<collision><origin rpy="0 0 0 0"/><geometry><sphere radius="1"/></geometry></collision>'),
         "line 2, <origin>: rpy has 4 numbers, of which the first 3 are used"),
        (arm(of_joint='<axis xyz="0 0 1"/>'), None),
        ("<?xml version='1.0'?><!DOCTYPE robot><!-- a -- b -->" + arm(), None),
    ],
)  # fmt: skip
def test_what_affects_no_contact_never_stops_a_scene(tmp_path, text, warning, capfd):
    imported, model = read(tmp_path, text)
    assert model.shapes.path[:2] == ("a/collision#0", "b/collision#0")
    assert len(imported.warnings) == (warning is not None)
    assert warning is None or warning in imported.warnings[0]
    assert capfd.readouterr() == ("", "")


def test_a_simulation_needs_limits(tmp_path):
    (tmp_path / "robot.urdf").write_text(arm(of_joint='<limit lower="x" upper="1"/>'))
    with pytest.raises(InputError, match='lower="x" is not a finite number'):
        compile_mjcf(tmp_path / "robot.urdf", strict=True)

    (tmp_path / "robot.urdf").write_text(arm(of_joint='<limit lower="2" upper="1"/>'))
    with pytest.raises(InputError, match="lower 2 of joint 'j' is above upper 1"):
        compile_mjcf(tmp_path / "robot.urdf", strict=True)


@pytest.mark.parametrize("position", [0.0, 1.57, -3.0, 1e-300])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_equal_limits_lock_a_joint(tmp_path, position, kind):
    text = arm(of_joint=f'<limit lower="{position}" upper="{position}"/>')
    imported, _ = read(tmp_path, text.replace("revolute", kind))
    (tree,) = imported.articulated.articulations
    assert imported.warnings == ()
    assert tree.joints[0].limits == ((position, position),)
    strict = compile_mjcf(tmp_path / "robot.urdf", strict=True)
    assert not strict.mj_model.jnt_limited.any()
    assert "has equal limits, which MuJoCo does not simulate" in strict.warnings[0]


def test_a_continuous_joint_has_no_limits(tmp_path):
    text = arm(of_joint='<limit lower="-1" upper="1" effort="2"/>')
    imported, _ = read(tmp_path, text.replace("revolute", "continuous"))
    assert not imported.mj_model.jnt_limited.any()
    np.testing.assert_array_equal(imported.mj_model.jnt_actfrcrange, [(-2.0, 2.0)])


def test_names_of_shapes_and_meshes_that_the_file_has(tmp_path):
    for file in ("a/m.stl", "b/m#1.stl", "b/m.obj"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / file)
    mesh = '<collision{}><geometry><mesh filename="{}"/></geometry></collision>'
    first = mesh.format(' name="b/collision#0"', "a/m.stl") + mesh.format("", "b/m#1.stl")
    text = arm().replace(BOX, first, 1).replace(BOX, mesh.format("", "b/m.obj"))
    _, model = read(tmp_path, text)
    assert model.shapes.path == ("b/collision#0", "a/collision#1", "b/collision#0#")


def geometry(inside, attributes=""):
    return arm(f"<collision{attributes}><geometry>{inside}</geometry></collision>")


def test_a_plane_of_bullet(tmp_path):
    text = """<robot name="r"><link name="floor"><collision><origin xyz="0 0 2" rpy="1.5707963267948966 0 0"/>
    <geometry><plane normal="0 1 0"/></geometry></collision></link></robot>"""
    _, model = read(tmp_path, text)
    assert [kind.label for kind in model.shapes.types()] == ["plane"]
    x, y, z, w = model.shapes.pose[0, 3:]
    normal = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]
    np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(model.shapes.pose[0, :3], [0, 0, 2])


@pytest.mark.parametrize("other", ["<drake:declare_convex/>", '<origin xyz="0 0 1"/>'])
def test_what_stands_beside_a_geometry_is_named(tmp_path, other):
    imported, model = read(tmp_path, geometry(f'{other}<sphere radius="0.5"/>'))
    assert model.shapes.types()[-1].label == "sphere"
    np.testing.assert_allclose(model.shapes.pose[-1, :3], 0.0)
    (warning,) = imported.warnings
    name = other.strip("</>").split()[0]
    assert warning.endswith(f"<geometry>: <{name}> beside <sphere> is not used")


@pytest.mark.parametrize("other", ['<ellipsoid radii="1 1 2"/>', "<drake:ellipsoid/>", "<cone/>"])
def test_a_second_shape_is_refused(tmp_path, other):
    for inside in (f'{other}<sphere radius="0.5"/>', f"{other}<polyline/>"):
        with pytest.raises(InputError, match="has several geometries"):
            read(tmp_path, geometry(inside))


def test_a_sphere_of_radius_zero_is_a_point(tmp_path):
    """Feet of Drake's Atlas and Cassie."""
    foot = '<collision><origin xyz="{} 0 -1"/><geometry><sphere radius="0"/></geometry></collision>'
    floor = '<collision><geometry><plane normal="0 0 1"/></geometry></collision>'
    text = f"""<robot name="r"><link name="world">{floor}</link>
<link name="b"><inertial><mass value="1"/>{INERTIA}</inertial>{foot.format(1)}{foot.format(2)}</link>
<joint name="j" type="floating"><parent link="world"/><child link="b"/>
<origin xyz="0 0 0.9"/></joint></robot>"""
    imported, model = read(tmp_path, text)
    assert imported.warnings == (
        "line 2, <sphere> of link 'b' and 1 more: a radius of 0 is a point, which collides as a"
        " sphere of 1e-09 m",
    )
    poses = np.array([[[[0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 1.0]]]])
    contacts = collidecli.collide(model, ArrayMotion(poses))
    np.testing.assert_allclose(contacts.distance, [-0.1, -0.1], atol=1e-8)
    np.testing.assert_allclose(contacts.point1, [[1, 0, -0.1], [2, 0, -0.1]], atol=1e-8)


@pytest.mark.parametrize("setting", ['convexhull="false"', 'exactmeshinertia="false"'])
def test_settings_that_mujoco_no_longer_reads_stop_no_robot(tmp_path, setting):
    text = arm(of_robot=f"<mujoco><compiler {setting}/></mujoco>")
    imported, model = read(tmp_path, text)
    assert len(model.shapes) == 2
    (warning,) = imported.warnings
    assert warning.endswith(f"it affects no contact: {setting.split('=')[0]} of <compiler>")
    with pytest.raises(InputError, match="unrecognized attribute"):
        compile_mjcf(tmp_path / "robot.urdf", strict=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (geometry('<cone radius="1"/>'), "line 2, <cone>: link 'b' has a geometry <cone>"),
        (
            geometry('<sphere radius="1"/><box size="1 1 1"/>'),
            "several geometries: <sphere>, <box>",
        ),
        (geometry('<sphere radius="-1"/>'), "line 2, <sphere>: radius is -1\n  give a length"),
        (geometry('<cylinder radius="0" length="1"/>'), "line 2, <cylinder>: radius is 0"),
        (geometry('<sphere radius="nan"/>'), 'radius="nan" is not a finite number'),
        (geometry('<sphere radius="1_0"/>'), 'radius="1_0" is not a finite number'),
        (geometry('<sphere radius="1e999"/>'), 'radius="1e999" is not a finite number'),
        (geometry("<sphere/>"), "line 2, <sphere>: has no attribute 'radius'"),
        (geometry('<box size="1 1"/>'), 'size="1 1" is not 3 finite numbers'),
        (geometry('<box size="1 -1 1"/>'), "line 2, <box>: size is -1"),
        (geometry('<cylinder radius="1" length="0"/>'), "length is 0"),
        (geometry('<plane normal="0 0 0"/>'), "the normal is 0 0 0"),
        (geometry("<mesh/>"), "has no attribute 'filename'"),
        (arm(of_joint='<axis xyz="0 1 0"/>'), "has a second <axis> that differs, in line 3"),
        (arm(of_robot="<link/>"), "line 1, <link>: has no attribute 'name'"),
        (arm(of_robot="<mujoco><compiler angle='x'/></mujoco>"), "MuJoCo cannot read <mujoco>"),
        (arm(of_robot='<mujoco/><mujoco><size memory="1M"/></mujoco>'), "a second <mujoco>"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, text, words):
    with pytest.raises(InputError) as refusal:
        read(tmp_path, text)
    assert words in str(refusal.value)
    assert "robot.urdf" in refusal.value.where


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"<robot>\n<link>\n</robot>", "line 3 has </robot> inside <link> of line 2"),
        (b"<robot>\n<link>", "<link> of line 2 has no end"),
        (
            b"<robot>\n<link name=a/></robot>",
            'line 2, <link> has attributes that are not name="value"',
        ),
        (b"<robot><link name='a' name='b'/></robot>", "each once"),
        (b"<robot><!-- ", "<robot> of line 1 has no end"),
        (b"", "it has no element"),
        (b"</robot>", "line 1 has </robot>"),
        (b"<a>" * 5000, "elements more than 100 deep"),
    ],
)
def test_damaged_texts(text, words):
    with pytest.raises(InputError) as refusal:
        read_elements(text, "robot.urdf", [])
    assert "is not well-formed XML" in refusal.value.what
    assert words in refusal.value.what


def test_entities_are_text():
    text = b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;&lt;"/>'
    assert read_elements(text, "robot.urdf", []).text("name") == "&a;<"


def test_a_name_that_is_not_utf8(tmp_path):
    (tmp_path / "robot.urdf").write_bytes(arm().encode().replace(b'"b"', b'"b\xe9"'))
    with pytest.raises(InputError, match="is not UTF-8"):
        compile_mjcf(tmp_path / "robot.urdf")
