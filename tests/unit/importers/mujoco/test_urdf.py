"""URDF by MuJoCo's parser, and SRDF's pairs of links with MJCF, URDF and USD scenes."""

from functools import partial

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import is_urdf
from collidecli.importers.mujoco.ros_packages import package_file
from collidecli.importers.srdf import read_srdf
from collidecli.motions.scenes import load_scene
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.options import SceneOptions
from collidecli.scene.pair_verdicts import explain
from collidecli.scene.shape_types import ShapeType
from tests.support import mujoco_pairs
from tests.support.filter_scenes import xform
from tests.support.mujoco_pairs import our_pairs, reported_pairs, ruled_pairs
from tests.support.usd_scenes import BODY, COLLIDER, sphere

BOX = (
    '<collision><origin xyz="0 0 0.1" rpy="0 0 1"/><geometry><box size="0.2 0.4'
    ' 0.6"/></geometry></collision>'
)
ROD = '<collision><geometry><cylinder radius="0.1" length="0.5"/></geometry></collision>'
TIP = '<collision name="fingertip"><geometry><sphere radius="0.3"/></geometry></collision>'
PILL = '<collision><geometry><capsule radius="0.1" length="0.5"/></geometry></collision>'
LOOKS = '<visual><geometry><mesh filename="package://looks/none.dae"/></geometry></visual>'


def link(name, *elements):
    return f'<link name="{name}">{"".join(elements)}</link>'


def joint(name, kind, parent, child, xyz="0 0 1", rpy="0 0 0", axis="0 0 1"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child'
        f' link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/><limit lower="-1"'
        ' upper="1" effort="1"/></joint>'
    )


ARM = f"""<?xml version="1.0"?>
<!-- <mujoco> is not its root -->
<robot name="arm">
{link("base", LOOKS, BOX, TIP, ROD)}{link("upper", ROD)}{link("lower", LOOKS, PILL)}
{link("hand", BOX)}{link("tool", BOX)}
{joint("shoulder", "revolute", "base", "upper")}{joint("elbow", "prismatic", "upper", "lower", axis="1 0 0")}
{joint("weld", "fixed", "lower", "hand", "0.5 0 0", "0.3 -0.4 1.5")}{joint("grip", "continuous", "hand", "tool")}
</robot>"""


load = partial(mujoco_pairs.load, name="robot.urdf")


def named_pairs(model):
    return {
        tuple(sorted((model.shapes.path[a], model.shapes.path[b])))
        for a, b in allowed_pairs(model, 0).tolist()
    }


def test_links_are_where_the_urdf_says(tmp_path):
    imported, model = load(tmp_path, ARM)
    assert model.shapes.path == (
        *("base/collision#0", "fingertip", "base/collision#2"),
        *("upper/collision#0", "lower/collision#0", "hand/collision#0", "tool/collision#0"),
    )
    assert [t.label for t in model.shapes.types()] == [
        *("box", "sphere", "cylinder", "cylinder", "capsule", "box", "box")
    ]
    np.testing.assert_allclose(
        model.shapes.size[:3], [[0.1, 0.2, 0.3], [0.3, 0, 0], [0.1, 0.25, 0]]
    )
    np.testing.assert_allclose(model.shapes.size[4], [0.1, 0.25, 0])
    assert model.bodies.path == ("base", "upper", "lower", "hand", "tool")
    assert model.shapes.body.tolist() == [-1, -1, -1, 1, 2, 3, 4]
    assert imported.warnings == ()
    assert imported.kinematics.coordinate_count == 3
    # The frames by hand: URDF's rpy is about fixed axes, x first.
    np.testing.assert_allclose(model.shapes.pose[0, :3], [0, 0, 0.1], atol=1e-12)
    turn = Rotation.from_quat(model.shapes.pose[0, 3:]).as_rotvec()
    np.testing.assert_allclose(turn, [0, 0, 1], atol=1e-12)
    poses = imported.kinematics.poses(np.array([[0.5, 0.25, -2.0]]))[0]
    frame = np.eye(4)
    steps = [  # of an origin and of a joint
        ([0, 0, 1], [0, 0, 0.5]),
        ([0.25, 0, 1], [0, 0, 0]),
        ([0.5, 0, 0], [0.3, -0.4, 1.5]),
        ([0, 0, 1], [0, 0, -2.0]),
    ]
    for body, (xyz, rpy) in enumerate(steps, 1):
        step = np.eye(4)
        step[:3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
        step[:3, 3] = xyz
        frame = frame @ step
        np.testing.assert_allclose(poses[body, :3], frame[:3, 3], atol=1e-12)
        found = Rotation.from_quat(poses[body, 3:]).as_matrix()
        np.testing.assert_allclose(found, frame[:3, :3], atol=1e-12)


BASE = ("base/collision#0", "base/collision#2", "fingertip")
UPPER, LOWER, HAND, TOOL = (f"{name}/collision#0" for name in ("upper", "lower", "hand", "tool"))


@pytest.mark.parametrize("floating", [False, True])
def test_who_may_touch_whom(tmp_path, floating):
    """By hand: neighbours do not, but MuJoCo has no such rule for a base that is fixed to the
    world; the hand is welded to the lower arm, so it is the upper arm's neighbour, and the tool is
    the lower arm's."""
    world = '<link name="world"/>' + joint("float", "floating", "world", "base")
    imported, model = load(
        tmp_path, ARM.replace("</robot>", world + "</robot>") if floating else ARM
    )
    others = (LOWER, HAND, TOOL) if floating else (UPPER, LOWER, HAND, TOOL)
    expected = {tuple(sorted((base, other))) for base in BASE for other in others}
    assert named_pairs(model) == expected | {tuple(sorted((UPPER, TOOL)))}
    assert (
        our_pairs(imported, model)
        == reported_pairs(imported.mj_model)
        == ruled_pairs(imported.mj_model)
    )
    verdict = explain(model, model.shapes.path.index(LOWER), model.shapes.path.index(HAND))
    assert (verdict.rule, imported.kinematics.coordinate_count) == (
        "welded into one body, 'lower'",
        3 + 7 * floating,
    )


@pytest.mark.parametrize(
    ("text", "urdf"),
    [
        (b"<robot>", True),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- <mujoco/> -->\n<robot name="a"/>', True),
        (b"<!DOCTYPE robot><robot/>", True),
        (b"<!-- <robot> --><mujoco/>", False),
        (b"<robots/>", False),
        (b"<mujoco><robot/></mujoco>", False),
        (b"<!-- <robot>", False),
        (b"", False),
    ],
)
def test_the_root_element_decides(tmp_path, text, urdf):
    assert is_urdf(text) is urdf
    for name in ("robot.xml", "robot.urdf", "ROBOT.URDF"):
        (tmp_path / name).write_text(ARM)
        assert load_scene([tmp_path / name], None).model.shapes.path[0] == "base/collision#0"


JOINTS = {"revolute": 1, "continuous": 1, "prismatic": 1, "planar": 3, "spherical": 4, "fixed": 0}


@pytest.mark.parametrize(("kind", "coordinates"), JOINTS.items())
def test_joints(tmp_path, kind, coordinates):
    text = f'<robot name="r">{link("a", BOX)}{link("b", BOX)}{joint("j", kind, "a", "b")}</robot>'
    imported, _ = load(tmp_path, text)
    assert imported.kinematics.coordinate_count == coordinates


HULL = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
IN_MESHES = '<mujoco><compiler meshdir="meshes" discardvisual="false"/></mujoco>'


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        (IN_MESHES, "meshes/hull.obj"),
        (IN_MESHES.replace("meshes", "meshes/"), "meshes/hull.obj"),
        (IN_MESHES, "hull.obj"),
        ("", "file://{}/meshes/hull.obj"),
        (IN_MESHES, "file://{}/meshes/hull.obj"),
        ("", "file://{}/with%20space/hull.obj"),
    ],
)
def test_a_mesh_is_where_its_path_leads_from_the_file_or_the_mesh_folder(tmp_path, settings, path):
    """Unitree's G1 names its mesh folder for MuJoCo, and again in each path, for ROS."""
    for folder in ("meshes", "with space"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hull.obj").write_text(HULL)
    mesh = f'<collision><geometry><mesh filename="{path.format(tmp_path)}"/></geometry></collision>'
    imported, model = load(tmp_path, f'<robot name="r">{settings}{link("a", mesh)}</robot>')
    assert model.shapes.types() == [ShapeType.CONVEX_MESH]
    wanted = "with space" if "%20" in path else "meshes"
    assert imported.files[1:] == (str(tmp_path / wanted / "hull.obj"),)


def test_the_mesh_folder_comes_first(tmp_path):
    for folder in (tmp_path / "meshes", tmp_path / "meshes" / "meshes"):
        folder.mkdir()
        (folder / "hull.obj").write_text(HULL)
    mesh = '<collision><geometry><mesh filename="meshes/hull.obj"/></geometry></collision>'
    imported, _ = load(tmp_path, f'<robot name="r">{IN_MESHES}{link("a", mesh)}</robot>')
    assert imported.files[1:] == (str(tmp_path / "meshes" / "meshes" / "hull.obj"),)


@pytest.mark.parametrize("settings", ["", IN_MESHES.replace("meshes", "gone")])
def test_a_mesh_beside_the_folder_of_the_file(tmp_path, settings):
    """As Bullet finds it: `robot/urdf/arm.urdf` names `meshes/arm.obj` of `robot/meshes`."""
    package = tmp_path / "robot"
    beside = package / "urdf" / "arms"
    beside.mkdir(parents=True)
    mesh = '<collision><geometry><mesh filename="meshes/hull.obj"/></geometry></collision>'
    text = f'<robot name="r">{settings}{link("a", mesh)}</robot>'
    with pytest.raises(InputError, match=r"its file 'meshes/hull\.obj' cannot be used"):
        load(beside, text)
    for folder in (package / "meshes", package / "urdf" / "meshes", beside / "meshes"):
        folder.mkdir()
        (folder / "hull.obj").write_text(HULL)
        imported, _ = load(beside, text)
        assert imported.files[1:] == (str(folder / "hull.obj"),)  # the nearest
        told = [note for note in imported.warnings if "found in a folder above" in note]
        assert len(told) == (folder.parent != beside)


def test_colliding_meshes(tmp_path):
    mesh = '<collision><geometry><mesh filename="package://arm/hull.stl"/></geometry></collision>'
    text = f'<robot name="r">{link("a", BOX, mesh)}</robot>'
    with pytest.raises(
        InputError, match=r"collides, and its file 'package://arm/hull\.stl' cannot be used"
    ):
        load(tmp_path, text)
    (tmp_path / "hull.dae").write_text("<COLLADA/>")
    with pytest.raises(InputError, match=r"its file '.*hull\.dae' cannot be used: .* no triangles"):
        load(tmp_path, text.replace(".stl", ".dae"), asset_map=(f"package://arm={tmp_path}",))
    (tmp_path / "hull.step").write_text("ISO-10303-21;")
    with pytest.raises(
        InputError, match=r"its file '.*hull\.step' cannot be used: .*no decoder"
    ) as refusal:
        load(tmp_path, text.replace(".stl", ".step"), asset_map=(f"package://arm={tmp_path}",))
    assert ".stl, .obj" in refusal.value.fix
    (tmp_path / "hull.obj").write_text(HULL)
    imported, model = load(
        tmp_path, text.replace(".stl", ".obj"), asset_map=(f"package://arm={tmp_path}",)
    )
    assert model.shapes.path == ("a/collision#0", "a/collision#1")
    assert model.shapes.types()[1] is ShapeType.CONVEX_MESH
    pose = model.shapes.pose[1]
    corners = model.hulls[0].vertex @ Rotation.from_quat(pose[3:]).as_matrix().T + pose[:3]
    assert {tuple(np.abs(corner.round(6))) for corner in corners} == {
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
    }
    assert imported.files[1:] == (str(tmp_path / "hull.obj"),)


def test_mujocos_own_element(tmp_path):
    """Its options count; visual elements that it keeps are left out, and a missing mesh of one is
    told."""
    own = (
        '<compiler discardvisual="false" fusestatic="true"/><option><flag'
        ' contact="disable"/></option>'
    )
    imported, model = load(
        tmp_path, ARM.replace('name="arm">', f'name="arm"><mujoco>{own}</mujoco>')
    )
    assert model.bodies.path == ("base", "upper", "lower", "hand", "tool")
    assert model.shapes.path[0] == "base/collision#0"
    assert imported.left_out == ("base/visual#0", "lower/visual#0")
    assert "visual meshes (2;" in imported.warnings[0]
    assert not named_pairs(model)


def test_a_name_given_twice_is_that_of_the_first(tmp_path):
    """MuJoCo keeps the first, and says so on stderr; the second is named by its link."""
    text = (
        f'<robot name="r">{link("a", TIP)}{link("b", TIP)}{joint("j", "fixed", "a", "b")}</robot>'
    )
    _, model = load(tmp_path, text)
    assert model.shapes.path == ("fingertip", "b/collision#0")


def test_links_without_mass_are_bodies(tmp_path):
    text = f"""<robot name="r">{link("a", BOX)}{link("empty")}{link("b", BOX)}{joint("j", "revolute", "a", "empty")}
    {joint("k", "revolute", "empty", "b").replace("</joint>", '<mimic joint="j" multiplier="2"/></joint>')}</robot>"""
    imported, model = load(tmp_path, text)
    assert "inertias (3;" in imported.warnings[0]
    assert model.bodies.path == ("a", "empty", "b")


# SRDF's pairs of links, with MJCF, URDF and USD scenes.

MJCF = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="a"><freejoint/><geom name="a0" size="1"/><geom name="a1" size="1"/></body>
<body name="b"><freejoint/><geom name="b0" size="1"/></body><body name="c"><freejoint/><geom name="c0" size="1"/>
<body name="d"><joint/><geom name="d0" size="1"/></body></body></worldbody>
<contact><pair geom1="a0" geom2="c0"/></contact></mujoco>"""
EVERY = {"a0 b0", "a1 b0", "a0 c0", "a1 c0", "a0 d0", "a1 d0", "b0 c0", "b0 d0"} | {
    f"{name} floor" for name in ("a0", "a1", "b0", "c0", "d0")
}


def load_with_srdf(folder, srdf, scene=MJCF, name="scene.xml"):
    (folder / name).write_text(scene)
    (folder / "robot.srdf").write_text(srdf)
    return load_scene(
        [folder / name], None, options=SceneOptions(disabled_pairs=str(folder / "robot.srdf"))
    )


def pairs(scene):
    return set(map(" ".join, named_pairs(scene.model)))


def rule(scene, a, b):
    path = scene.model.shapes.path
    return explain(scene.model, path.index(a), path.index(b)).rule


def robot(*elements):
    return f'<?xml version="1.0"?><robot name="r">{"".join(elements)}</robot>'


def disabled(a, b, reason="Never"):
    return f'<disable_collisions link1="{a}" link2="{b}" reason="{reason}"/>'


def enabled(a, b):
    return f'<enable_collisions link1="{a}" link2="{b}"/>'


def silent(link):
    return f'<disable_default_collisions link="{link}"/>'


@pytest.mark.parametrize(
    ("elements", "gone"),
    [
        ((), set()),
        (('<group name="a"><link name="b"/></group>', '<group_state name="x"/>'), set()),
        ((disabled("b", "a"),), {"a0 b0", "a1 b0"}),
        ((disabled("a", "b"), disabled("b", "a", "Default")), {"a0 b0", "a1 b0"}),
        ((disabled("world", "b"),), {"b0 floor"}),
        ((disabled("c", "a"),), {"a0 c0", "a1 c0"}),
        ((silent("b"),), {"a0 b0", "a1 b0", "b0 c0", "b0 d0", "b0 floor"}),
        ((silent("b"), enabled("c", "b")), {"a0 b0", "a1 b0", "b0 d0", "b0 floor"}),
        (
            (enabled("c", "b"), disabled("b", "c"), silent("b")),
            {"a0 b0", "a1 b0", "b0 c0", "b0 d0", "b0 floor"},
        ),
        ((enabled("c", "d"),), set()),
    ],
)
def test_pairs_by_hand(tmp_path, elements, gone):
    """A pair that the scene forces is disabled too; what the scene itself forbids is not
    enabled."""
    scene = load_with_srdf(tmp_path, robot(*elements))
    assert pairs(scene) == EVERY - gone
    assert scene.warnings == ()


def test_the_reason_of_a_disabled_pair_is_its_rule(tmp_path):
    elements = (disabled("c", "d", "Adjacent"), disabled("a", "b", ""), silent("a"), silent("b"))
    scene = load_with_srdf(tmp_path, robot(*elements))
    assert rule(scene, "c0", "d0") == "<disable_collisions> of 'c' and 'd': Adjacent"
    assert rule(scene, "b0", "a1") == "<disable_collisions> of 'a' and 'b'"
    assert rule(scene, "a0", "d0") == "<disable_default_collisions> of 'a'"


def test_unknown_links_of_an_srdf_are_told(tmp_path):
    scene = load_with_srdf(
        tmp_path, robot(disabled("a", "left_hand"), silent("dd"), enabled("a", "a_long_way_off"))
    )
    assert pairs(scene) == EVERY
    place = str(tmp_path / "robot.srdf")
    assert scene.warnings == (
        f"{place}: the scene has no link 'dd'; did you mean d?",
        f"{place}: the scene has no link 'a_long_way_off'",
        f"{place}: the scene has no link 'left_hand'",
    )
    assert "did you mean world?" in load_with_srdf(tmp_path, robot(silent("wrld"))).warnings[0]


BALL = sphere("ball", apis=COLLIDER)
INSIDE = xform("inside", sphere("more", apis=COLLIDER))
LINKS = xform("one", BALL + INSIDE, BODY) + xform("two", BALL, BODY) + xform("twin", BALL, BODY)
LINKS += xform("left", xform("twin", BALL, BODY)) + sphere("rock", apis=COLLIDER)
USD = "#usda 1.0\n" + xform("World", LINKS)


def test_links_of_a_stage(tmp_path):
    everything = pairs(load_with_srdf(tmp_path, robot(), USD, "s.usda"))
    srdf = robot(disabled("one", "two"), disabled("one", "/World/twin"), silent("twin"))
    scene = load_with_srdf(tmp_path, srdf, USD, "s.usda")
    assert everything - pairs(scene) == {
        f"/World/one/{mine} /World/{other}/ball"
        for mine in ("ball", "inside/more")
        for other in ("two", "twin")
    }
    assert (
        rule(scene, "/World/one/ball", "/World/two/ball")
        == "<disable_collisions> of 'one' and 'two': Never"
    )
    (told,) = (warning for warning in scene.warnings if "link" in warning)
    assert "no link 'twin'" in told, "two bodies are called that"


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><robot>&b;</robot>'
OUTSIDE = '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not XML"),
        ("<robot>", "is not XML"),
        ("\xff\xfe", "is not XML"),
        ('<?xml version="1.0" encoding="UTF-9"?><robot/>', "is not XML: unknown encoding"),
        ('<?xml version="1.0" encoding="gb2312"?><robot/>', "is not XML: multi-byte"),
        ('<?xml version="1.0" encoding="ascii"?><robot name="\xe9"/>', "is not XML"),
        ("<mujoco/>", "its root element is <mujoco>"),
        (BOMB, "document type"),
        (OUTSIDE, "document type"),
        ("<!DOCTYPE robot><robot/>", "document type"),
        (robot('<disable_collisions link1="a"/>'), "no attribute 'link2'"),
        (robot('<disable_collisions link1="" link2="a"/>'), "no attribute 'link1'"),
        (robot("<disable_default_collisions/>"), "no attribute 'link'"),
    ],
)
def test_refusals(tmp_path, text, words):
    path = tmp_path / "robot.srdf"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=words) as refusal:
        read_srdf(path)
    assert str(path) in refusal.value.where
    for missing in ("none.srdf", "."):
        with pytest.raises(InputError, match="cannot be read"):
            read_srdf(tmp_path / missing)


@pytest.mark.parametrize(
    ("written", "manifest"),
    [
        ("package://arm/meshes/hull.stl", "repository"),
        ("package:///arm/meshes/hull.stl", "repository"),
        ("package://robots/arm/meshes/hull.stl", ""),
        ("package://hull.stl", ""),
    ],
)
def test_a_package_is_a_folder_of_its_name_or_of_its_manifest(tmp_path, written, manifest):
    folder = tmp_path / (manifest or "robots") / "arm" / "urdf"
    if manifest:
        folder = tmp_path / manifest / "urdf"
        (folder.parent / "meshes").mkdir(parents=True)
        (folder.parent / "package.xml").write_text(
            "<package><!-- <name>leg</name> --><name> arm </name></package>"
        )
    else:
        (folder.parent / "meshes").mkdir(parents=True)
    folder.mkdir()
    hull = folder.parent / "meshes" / "hull.stl"
    if "/" not in written.removeprefix("package://"):
        hull = folder / "hull.stl"
    hull.write_text("")
    assert package_file(written, str(folder)) == str(hull)
    assert package_file(written.replace("hull", "none"), str(folder)) is None
    if manifest:
        assert package_file(written, "/", (str(tmp_path),)) == str(hull)


def test_named_folders_of_packages_come_before_those_of_variables(tmp_path, monkeypatch):
    for root in ("mine", "ros"):
        (tmp_path / root / "arm").mkdir(parents=True)
        (tmp_path / root / "arm" / "hull.stl").write_text("")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    names = ("package://arm/hull.stl", str(tmp_path))
    assert package_file(*names) == str(tmp_path / "ros" / "arm" / "hull.stl")
    mine = str(tmp_path / "mine")
    assert package_file(*names, (mine,)) == f"{mine}/arm/hull.stl"


def test_an_mjcf_attaches_a_robot_beside_other_bodies(tmp_path):
    (tmp_path / "robot.urdf").write_text(ARM)
    alone = load(tmp_path, tmp_path / "robot.urdf")[0].mj_model
    text = """<mujoco>
      <asset><model name="arm" file="robot.urdf"/></asset>
      <worldbody>
        <geom name="table" type="box" size="1 1 .1"/>
        <attach model="arm" body="base" prefix=""/>
      </worldbody>
    </mujoco>"""
    imported, model = mujoco_pairs.load(tmp_path, text)
    attached = imported.mj_model
    assert imported.warnings == ()
    assert "table" in model.shapes.path
    assert attached.ngeom == alone.ngeom + 1
    names = [alone.joint(k).name for k in range(alone.njnt)]
    assert names == [attached.joint(k).name for k in range(attached.njnt)]


@pytest.mark.parametrize("written", ["package://arm/meshes/b.stl", "file://{folder}/b.stl"])
def test_an_attached_urdf_names_files_from_its_own_folder(tmp_path, written):
    """The MJCF that attaches it is in a folder of its own."""
    package = tmp_path / "src" / "arm"
    meshes = package / "meshes"
    scene = tmp_path / "scenes" / "world.xml"
    for folder in (meshes, package / "urdf", scene.parent):
        folder.mkdir(parents=True)
    trimesh.creation.box((0.1, 0.2, 0.3)).export(meshes / "b.stl")
    file = written.format(folder=meshes)
    collision = f'<collision><geometry><mesh filename="{file}"/></geometry></collision>'
    urdf = package / "urdf" / "arm.urdf"
    urdf.write_text(f'<robot name="arm"><link name="base">{collision}</link></robot>')
    scene.write_text(
        f'<mujoco><asset><model name="arm" file="{urdf}"/></asset><worldbody>'
        '<attach model="arm" body="base" prefix=""/></worldbody></mujoco>'
    )
    alone = load_scene([str(urdf)], None)
    attached = load_scene([str(scene)], None)
    assert len(attached.model.shapes) == len(alone.model.shapes) == 1
    np.testing.assert_array_equal(attached.model.shapes.pose, alone.model.shapes.pose)
    sha256 = attached.sha256
    trimesh.creation.box((0.1, 0.2, 0.4)).export(meshes / "b.stl")
    assert load_scene([str(scene)], None).sha256 != sha256
