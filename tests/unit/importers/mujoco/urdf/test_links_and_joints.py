"""Links and joints of a URDF: poses by an independent reading, equal names, kinds of joints."""

from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.importers.mujoco.urdf.spec import urdf_spec
from tests.support.mujoco_pairs import load, our_pairs, ruled_pairs

BOX = '<collision><geometry><box size="0.2 0.4 0.6"/></geometry></collision>'
BALL = '<collision><geometry><sphere radius="0.3"/></geometry></collision>'
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def link(name, *elements):
    return f'<link name="{name}">{"".join(elements)}</link>'


def joint(name, kind, parent, child, *elements, xyz="0.1 0.2 1", rpy="0.3 -0.2 0.5"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/>{"".join(elements)}</joint>'
    )


def robot(*elements):
    return f'<robot name="r">{"".join(elements)}</robot>'


def read(folder, *elements):
    return load(folder, robot(*elements), name="robot.urdf")


def refusal(folder, *elements):
    with pytest.raises(InputError) as refused:
        read(folder, *elements)
    assert "robot.urdf" in refused.value.where
    return str(refused.value)


TREE = (
    *(link("base", BOX), link("a", BOX), link("b", BALL), link("c", BOX), link("d", BALL)),
    *(link("e", BALL), link("tip", BOX), link("alone", BOX)),
    joint("slide", "prismatic", "base", "c", '<axis xyz="1 1 0"/>', LIMIT),
    joint("turn", "revolute", "base", "a", '<axis xyz="0 1 2"/>', LIMIT),
    joint("weld", "fixed", "a", "b", xyz="0 0 0.5"),
    joint("wheel", "continuous", "b", "d"),
    joint("table", "planar", "c", "e", '<axis xyz="0.3 0.2 1"/>'),
    joint("ball", "spherical", "d", "tip"),
)
"""Each kind of joint; its coordinates are those of bodies in the order of the tree."""


def turned(axis, angle):
    return Rotation.from_rotvec(angle * np.array(axis) / np.linalg.norm(axis)).as_matrix()


def rigid(rotation, position):
    frame = np.eye(4)
    frame[:3, :3] = rotation
    frame[:3, 3] = position
    return frame


def numbers(element, attribute, default):
    text = default if element is None else element.get(attribute, default)
    return [float(word) for word in text.split()]


def frame_of_joint(element, coordinates):
    """The child's frame in the parent's, by URDF's definition; consumes the joint's coordinates."""
    origin, axis = element.find("origin"), numbers(element.find("axis"), "xyz", "1 0 0")
    start = rigid(
        Rotation.from_euler("xyz", numbers(origin, "rpy", "0 0 0")).as_matrix(),
        numbers(origin, "xyz", "0 0 0"),
    )
    kind = element.get("type")
    if kind in ("revolute", "continuous"):
        return start @ rigid(turned(axis, coordinates.pop(0)), [0, 0, 0])
    if kind == "prismatic":
        length = coordinates.pop(0)
        return start @ rigid(np.eye(3), length * np.array(axis) / np.linalg.norm(axis))
    if kind == "floating":
        position = [coordinates.pop(0) for _ in range(3)]
        w, *vector = [coordinates.pop(0) for _ in range(4)]
        return start @ rigid(Rotation.from_quat([*vector, w]).as_matrix(), position)
    if kind == "spherical":
        w, *vector = [coordinates.pop(0) for _ in range(4)]
        return start @ rigid(Rotation.from_quat([*vector, w]).as_matrix(), [0, 0, 0])
    if kind == "planar":
        x, y, angle = [coordinates.pop(0) for _ in range(3)]
        normal = np.array(axis) / np.linalg.norm(axis)
        to_normal, _ = Rotation.align_vectors([normal], [[0, 0, 1]])
        shift = to_normal.as_matrix() @ [x, y, 0.0]
        return start @ rigid(turned(axis, angle), shift)
    assert kind == "fixed"
    return start


def poses_by_hand(text, coordinates):
    """Frame of each link, float64[4, 4], by its name: depth first, children in the order of
    joints."""
    root = ElementTree.fromstring(text)
    joints = root.findall("joint")
    children = {j.find("child").get("link") for j in joints}
    frames = {}
    pending = [(e.get("name"), np.eye(4)) for e in root.findall("link")][::-1]
    pending = [(name, frame) for name, frame in pending if name not in children]
    left = list(coordinates)
    while pending:
        name, frame = pending.pop()
        frames[name] = frame
        below = [j for j in joints if j.find("parent").get("link") == name]
        pending += [(j, frame) for j in below][::-1]
        if pending and not isinstance(pending[-1][0], str):
            element, above = pending.pop()
            pending.append(
                (element.find("child").get("link"), above @ frame_of_joint(element, left))
            )
    assert not left
    return frames


def check_poses(folder, text, count):
    imported, model = load(folder, text, name="robot.urdf")
    assert imported.kinematics.coordinate_count == count
    rng = np.random.default_rng(3)
    mj_model = imported.mj_model
    for _ in range(5):
        qpos = rng.uniform(-1.0, 1.0, count)
        for start in mj_model.jnt_qposadr[mj_model.jnt_type == mujoco.mjtJoint.mjJNT_BALL]:
            qpos[start : start + 4] /= np.linalg.norm(qpos[start : start + 4])
        frames = poses_by_hand(text, qpos)
        poses = imported.kinematics.poses(qpos[None])[0]
        assert len(poses) == len(model.bodies.path)
        for name, pose in zip(model.bodies.path, poses, strict=True):
            np.testing.assert_allclose(pose[:3], frames[name][:3, 3], atol=1e-12)
            found = Rotation.from_quat(pose[3:]).as_matrix()
            np.testing.assert_allclose(found, frames[name][:3, :3], atol=1e-12)
    assert our_pairs(imported, model) == ruled_pairs(mj_model)


def test_poses_of_links(tmp_path):
    check_poses(tmp_path, robot(*TREE), 10)


def test_a_floating_joint_below_a_link_has_seven_coordinates(tmp_path):
    text = robot(
        *(link("base", BOX), link("a", BOX), link("b", BALL)),
        joint("turn", "revolute", "base", "a", LIMIT),
        joint("loose", "floating", "a", "b"),
    )
    check_poses(tmp_path, text, 8)


def test_a_floating_joint_of_the_world_is_free(tmp_path):
    text = robot(
        link("world"), link("a", BOX), joint("loose", "floating", "world", "a", rpy="0 0 0")
    )
    imported, _ = load(tmp_path, text, name="robot.urdf")
    assert imported.mj_model.jnt_type.tolist() == [mujoco.mjtJoint.mjJNT_FREE]
    pose = imported.kinematics.poses(np.array([[1.0, 2, 3, 1, 0, 0, 0]]))[0, 0]
    np.testing.assert_allclose(pose, [1, 2, 3, 0, 0, 0, 1])


def test_equals_mujocos_own_parser(tmp_path):
    """What both read is compiled to equal models, but for the last bits of rotations."""
    inertial = (
        '<inertial><origin xyz="0 0.1 0" rpy="0.1 0.2 0.3"/><mass value="2"/><inertia ixx="1"'
        ' ixy="0.1" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>'
    )
    mimic = '<mimic joint="turn" multiplier="2" offset="0.5"/>'
    text = robot(
        '<mujoco><compiler fusestatic="false" boundmass="0.1" boundinertia="0.1"'
        ' discardvisual="false"/><option timestep="0.01"/></mujoco>',
        *TREE,
        link("f", inertial, BALL, BALL.replace("collision", "visual")),
        joint(
            "last", "revolute", "alone", "f", LIMIT, '<dynamics damping="3" friction="2"/>', mimic
        ),
    )
    (tmp_path / "robot.urdf").write_text(text)
    spec = mujoco.MjSpec.from_file(str(tmp_path / "robot.urdf"))
    spec.compiler.fusestatic = False
    theirs = spec.compile()
    mine, notes = urdf_spec(text.encode(), "robot.urdf")
    mine.compiler.fusestatic = False
    ours = mine.compile()
    assert notes == []
    assert ours.names == theirs.names
    fields = "body_parentid body_pos body_quat body_mass body_inertia body_ipos body_iquat jnt_type"
    fields += " jnt_axis jnt_range jnt_limited jnt_actfrcrange dof_damping dof_frictionloss qpos0"
    fields += " geom_type geom_size geom_pos geom_quat geom_contype geom_group eq_type eq_data"
    for name in fields.split():
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-14)
    assert ours.opt.timestep == theirs.opt.timestep == 0.01


@pytest.mark.parametrize(
    ("elements", "words"),
    [
        (
            (link("a", BOX), link("b"), joint("j", "bent", "a", "b")),
            "line 1, <joint>, joint 'j': the joint's type 'bent' is not handled\n  give continuous,"
            " floating, planar, prismatic, revolute, spherical or fixed",
        ),
        (
            (link("a", BOX), link("a", BALL), link("b"), joint("j", "fixed", "a", "b")),
            "the links 'a' in lines 1 and 1 differ, and a joint names one of them\n  give each",
        ),
        (
            (
                *(link("a", BOX), link("b")),
                *(joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
            ),
            "the joints of link 'a' and 1 more form a loop",
        ),
        (
            (
                *(link("a", BOX), link("b"), link("c")),
                *(joint("j", "fixed", "a", "c"), joint("k", "fixed", "b", "c")),
            ),
            "joint 'k': link 'c' has two parents, by the joints in lines 1 and 1",
        ),
        (
            (link("arm", BOX), joint("j", "fixed", "arm", "amr")),
            "joint 'j': names the child link 'amr', which the robot does not have\n  did you mean"
            " arm?",
        ),
        ((link("a", BOX), link("b"), '<joint name="j" type="fixed"/>'), "has no <parent>"),
        (
            (link("a", BOX), link("b"), joint("j", "revolute", "a", "b", '<axis xyz="0 0 0"/>')),
            "joint 'j': the axis is 0 0 0\n  give a direction",
        ),
        (
            (link("a", BOX), link("b"), joint("j", "fixed", "a", "b", xyz="$(arg x) 0 0")),
            'xyz="$(arg x) 0 0" is not 3 finite numbers\n  expand it first: xacro',
        ),
    ],
)
def test_what_has_no_clear_meaning_is_refused_by_name(tmp_path, elements, words, capfd):
    assert words in refusal(tmp_path, *elements)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("elements", "shapes", "warning"),
    [
        ((link("a", BOX), link("a", BOX)), ["a/collision#0"], "link 'a' is given twice"),
        ((link("a"), link("a", BOX)), ["a/collision#0"], "link 'a' is given twice"),
        (
            (link("a", BOX), link("a", BALL)),
            ["a/collision#0", "a#1/collision#0"],
            "links 'a' in lines 1 and 1: all but the first get a number",
        ),
        (
            (
                link("a", BOX.replace("n>", 'n name="x">', 1)),
                link("b", BALL.replace("n>", 'n name="x">', 1)),
            ),
            ["x", "b/collision#0"],
            "collision 'x' of link 'b': the name is taken, and the shape is named after its link",
        ),
        (
            (
                *(link("a", BOX), link("b", BALL), link("c", BALL)),
                *(joint("j", "revolute", "a", "b"), joint("j", "revolute", "b", "c")),
            ),
            ["a/collision#0", "b/collision#0", "c/collision#0"],
            "joint 'j' is the name of several joints: all but the first get a number",
        ),
    ],
)
def test_equal_names_with_one_meaning_are_taken(tmp_path, elements, shapes, warning, capfd):
    imported, model = read(tmp_path, *elements)
    assert list(model.shapes.path) == shapes
    assert any(warning in text for text in imported.warnings)
    assert capfd.readouterr() == ("", "")


LINKS = (*(link("base", BOX), link("a", BALL), link("b", BALL), link("c", BALL)),)


@pytest.mark.parametrize(
    ("joints", "names", "warning"),
    [
        (
            (("p", "floating"), ("p_TX", "prismatic")),
            ["p#1_TX", "p#1_TY", "p#1_TZ", "p#1_R", "p_TX"],
            "joint 'p' gets a number",
        ),
        (
            (("p", "planar"), ("p_RZ", "revolute")),
            ["p#1_TX", "p#1_TY", "p#1_RZ", "p_RZ"],
            "joint 'p' gets a number",
        ),
        (
            (("p", "planar"), ("p_RZ", "planar")),
            ["p_TX", "p_TY", "p_RZ", "p_RZ_TX", "p_RZ_TY", "p_RZ_RZ"],
            None,
        ),
        (
            (("j", "revolute"), ("j", "revolute"), ("j#1", "revolute")),
            ["j", "j#1#", "j#1"],
            "joint 'j' is the name of several joints",
        ),
        ((("j", "fixed"), ("j", "revolute"), ("k", "revolute")), ["j", "k"], None),
        ((("j", "revolute"), ("j", "fixed"), ("j", "fixed")), ["j"], None),
    ],
)
def test_coordinates_have_free_names(tmp_path, joints, names, warning):
    elements = [joint(*j, "base", child) for j, child in zip(joints, "abc", strict=False)]
    imported, _ = read(tmp_path, *LINKS, *elements)
    mj_model = imported.mj_model
    assert [mj_model.joint(k).name for k in range(mj_model.njnt)] == names
    assert len(imported.warnings) == (warning is not None)
    assert warning is None or warning in imported.warnings[0]


def test_a_fixed_joint_follows_none(tmp_path):
    mimic = '<mimic joint="k"/>'
    imported, _ = read(
        tmp_path,
        *LINKS,
        joint("j", "fixed", "base", "a", mimic),
        joint("j", "revolute", "base", "b"),
        joint("k", "revolute", "base", "c"),
    )
    assert imported.mj_model.neq == 0
    assert "has no effect" in imported.warnings[0]


def test_a_parent_world_that_the_robot_does_not_have(tmp_path):
    """Drake's robots name the world without a link of that name."""
    without = (
        *(link("arm", BOX), joint("turn", "revolute", "world", "arm", '<axis xyz="0 1 0"/>')),
        *(link("cup", BALL), joint("loose", "floating", "world", "cup")),
    )
    imported, model = read(tmp_path, *without)
    expected, with_link = read(tmp_path, link("world"), *without)
    assert imported.warnings == (
        "a joint's parent is the link 'world', which the robot does not have: it is the world",
    )
    assert expected.warnings == ()
    assert model.shapes.path == with_link.shapes.path
    np.testing.assert_array_equal(model.bodies.pose, with_link.bodies.pose)
    assert imported.mj_model.joint("loose").type == mujoco.mjtJoint.mjJNT_FREE
    assert our_pairs(imported, model) == our_pairs(expected, with_link)
    words = refusal(tmp_path, link("arm", BOX), joint("turn", "fixed", "arm", "world"))
    assert "names the child link 'world', which the robot does not have" in words


def test_a_link_world_that_is_no_root(tmp_path):
    imported, model = read(
        tmp_path,
        *(link("base", BOX), link("world", BALL), link("world#1", BALL)),
        joint("j", "revolute", "base", "world"),
        joint("k", "revolute", "world", "world#1"),
    )
    assert set(model.shapes.path) == {
        "base/collision#0",
        "world#1#/collision#0",
        "world#1/collision#0",
    }
    assert "link 'world' in line 1 is no root, and is 'world#1#'" in imported.warnings[0]
