"""The MJCF importer: geoms, bodies, poses and what is refused."""

import mujoco
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.mujoco_scenes import load

EVERY_GEOM = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" euler="0 20 0" pos="0 0 0.1"/>
    <body name="shelf" pos="1 2 3" euler="10 20 30">
      <geom name="plank" type="box" size="0.1 0.2 0.3" pos="0.4 0 0" euler="0 0 45"/>
      <body name="bracket" pos="0 0 1"><geom type="cylinder" size="0.2 0.5"/></body>
    </body>
    <body name="arm" pos="0 0 2" euler="0 90 0">
      <joint name="swing" axis="0 1 0"/>
      <geom name="upper" type="capsule" size="0.1" fromto="0 0 0 1 0 0" friction="0.7 0.1 0.1"/>
      <body pos="1 0 0">
        <joint name="slide" type="slide" axis="1 0 0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" margin="0.02" gap="0.03"/>
      </body>
      <body name="tip" pos="0 1 0"><geom name="knob" type="sphere" size="0.3"/></body>
    </body>
    <body name="hand" mocap="true" pos="5 0 0" euler="0 0 90">
      <geom name="palm" type="box" size="1 1 1"/>
      <body name="finger" pos="1 0 0"><geom name="nail" type="sphere" size="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""

MESH = """
<mujoco>
  <asset><mesh name="tet" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="rock"><freejoint/>
      <geom name="ball" type="sphere" size="0.1"/>
      <geom name="looks" type="mesh" mesh="tet" {masks}/>
    </body>
  </worldbody>
  <contact>{pair}</contact>
</mujoco>
"""


def rotation(quaternion_xyzw):
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.roll(quaternion_xyzw, 1))
    return matrix.reshape(3, 3)


def test_types_sizes_names_and_owners(tmp_path):
    _, model = load(tmp_path, EVERY_GEOM)
    shapes = model.shapes
    assert shapes.path == ("floor", "plank", "bracket/geom#2", "upper", "body#4/geom#4", "knob", "palm", "nail")
    assert [t.label for t in shapes.types()] == [
        "plane", "box", "cylinder", "capsule", "ellipsoid", "sphere", "box", "sphere",
    ]  # fmt: skip
    assert model.bodies.path == ("shelf", "bracket", "arm", "body#4", "tip", "hand", "finger")
    owner = [model.bodies.path[body] if body >= 0 else None for body in shapes.body]
    assert owner == [None, None, None, "arm", "body#4", "tip", "hand", "finger"]
    np.testing.assert_allclose(shapes.size[1:5], [[0.1, 0.2, 0.3], [0.2, 0.5, 0], [0.1, 0.5, 0], [0.1, 0.2, 0.3]])
    assert shapes.types()[0] is ShapeType.PLANE


def test_margin_gap_friction_are_the_geoms_own(tmp_path):
    _, model = load(tmp_path, EVERY_GEOM)
    row = model.shapes.path.index("body#4/geom#4")
    assert model.gap_rule == "sum"
    assert (model.shapes.margin[row], model.shapes.gap[row]) == (0.02, 0.03)
    assert np.all(np.delete(model.shapes.margin, row) == 0.0)
    assert np.all(np.delete(model.shapes.gap, row) == 0.0)
    assert model.shapes.friction[model.shapes.path.index("upper")] == 0.7
    assert model.shapes.friction[row] == 1.0


def test_resting_shape_poses_are_mujocos(tmp_path):
    scene, model = load(tmp_path, EVERY_GEOM)
    data = mujoco.MjData(scene.mj_model)
    mujoco.mj_forward(scene.mj_model, data)
    assert list(scene.shape_row) == list(range(8))
    for geom, row in enumerate(scene.shape_row):
        body = model.shapes.body[row]
        pose = model.shapes.pose[row]
        turn, place = rotation(pose[3:]), pose[:3]
        if body >= 0:
            rest = model.bodies.pose[body]
            turn, place = rotation(rest[3:]) @ turn, rotation(rest[3:]) @ place + rest[:3]
        np.testing.assert_allclose(place, data.geom_xpos[geom], atol=1e-12)
        np.testing.assert_allclose(turn, data.geom_xmat[geom].reshape(3, 3), atol=1e-12)


def test_kinematics_follows_qpos_and_mocap(tmp_path):
    scene, _ = load(tmp_path, EVERY_GEOM)
    kinematics = scene.kinematics
    assert kinematics.body_path == ("shelf", "bracket", "arm", "body#4", "tip", "hand", "finger")
    assert list(kinematics.welded) == [True, True, False, False, False, False, False]
    qpos = np.array([[0.3, 0.1], [-1.0, 0.5], [0.3, 0.1]])
    half = np.sqrt(0.5)
    mocap = np.array([[[1, 2, 3, 0, 0, half, half]], [[0, 0, 0, 0, 0, 0, 1]], [[9, 9, 9, 1, 0, 0, 0]]], float)
    poses = kinematics.poses(qpos, mocap)
    hand, finger = (kinematics.body_path.index(name) for name in ("hand", "finger"))
    np.testing.assert_allclose(poses[:, hand], mocap[:, 0], atol=1e-15)
    # The finger is 1 m along the hand's x, which a quarter turn about z takes to y.
    np.testing.assert_allclose(poses[0, finger, :3], [1, 3, 3], atol=1e-12)
    np.testing.assert_array_equal(np.delete(poses[0], [hand, finger], 0), np.delete(poses[2], [hand, finger], 0))
    data = mujoco.MjData(scene.mj_model)
    data.qpos[:] = qpos[1]
    mujoco.mj_forward(scene.mj_model, data)
    np.testing.assert_allclose(poses[1, :4, :3], data.xpos[1:5], rtol=0, atol=2e-15)
    np.testing.assert_allclose(poses[1, :4, 6], data.xquat[1:5, 0], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(kinematics.poses(qpos)[0, hand, :3], [5, 0, 0])


def test_no_keyframes_no_motion(tmp_path):
    scene, model = load(tmp_path, EVERY_GEOM)
    assert scene.motion(model) is None


KEYS = """
<mujoco><worldbody><body name="a" pos="0 0 1"><joint type="slide" axis="1 0 0"/><geom size="1"/></body>
<body name="m" mocap="true"><geom size="1"/></body></worldbody>
<keyframe><key time="{t0}" qpos="3" mpos="1 2 3" mquat="0 1 0 0"/><key time="{t1}" qpos="-4"/></keyframe></mujoco>
"""


def test_keyframes_are_a_motion(tmp_path):
    scene, model = load(tmp_path, KEYS.format(t0=0.5, t1=2))
    motion = scene.motion(model)
    np.testing.assert_array_equal(motion.time, [0.5, 2.0])
    poses = motion.read(range(0, 2))
    assert poses.shape == (2, 1, 2, 7)
    np.testing.assert_allclose(poses[:, 0, 0, :3], [[3, 0, 1], [-4, 0, 1]])
    np.testing.assert_allclose(poses[:, 0, 1], [[1, 2, 3, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]])
    assert motion.warnings == ()


def test_keyframes_out_of_time_order_are_numbered(tmp_path):
    scene, model = load(tmp_path, KEYS.format(t0=2, t1=1))
    motion = scene.motion(model)
    np.testing.assert_array_equal(motion.time, [0.0, 1.0])
    assert "decrease" in motion.warnings[0]


def test_seen_only_mesh_is_left_out(tmp_path):
    scene, model = load(tmp_path, MESH.format(masks='contype="0" conaffinity="0"', pair=""))
    assert model.shapes.path == ("floor", "ball")
    assert list(scene.shape_row) == [0, 1, -1]
    assert scene.left_out == ("looks",)


@pytest.mark.parametrize(
    ("masks", "pair"),
    [
        ('contype="1" conaffinity="0"', ""),
        ('contype="0" conaffinity="1"', ""),
        ('contype="0" conaffinity="0"', '<pair geom1="floor" geom2="looks"/>'),
    ],
)
def test_a_mesh_that_may_collide_is_a_convex_mesh(tmp_path, masks, pair):
    scene, model = load(tmp_path, MESH.format(masks=masks, pair=pair))
    assert model.shapes.path == ("floor", "ball", "looks")
    assert model.shapes.types()[2] is ShapeType.CONVEX_MESH
    assert (scene.left_out, len(model.hulls)) == ((), 1)


def test_an_hfield_has_its_elevations_over_its_base(tmp_path):
    text = """<mujoco><asset><hfield name="h" nrow="2" ncol="3" size="3 2 0.5 0.25" elevation="0 1 2  4 3 0"/></asset>
    <worldbody><geom type="hfield" hfield="h" pos="0 0 7"/><geom type="hfield" hfield="h" pos="9 0 7"/>
    <body><geom size="1"/></body></worldbody></mujoco>"""
    _, model = load(tmp_path, text)
    assert model.shapes.types()[:2] == [ShapeType.HEIGHTFIELD] * 2
    field = model.heightfields[0]
    assert len(model.heightfields) == 1
    assert model.shapes.pose[0, 2] == 7.0 + field.center == pytest.approx(7.125)
    # The text begins at +y, MuJoCo's rows at -y; elevations are scaled to 1, the lowest is at the frame's z = 0.
    np.testing.assert_allclose(field.heights + field.center, [[0.5, 0.375, 0.0], [0.0, 0.125, 0.25]], atol=1e-8)
    np.testing.assert_allclose(model.shapes.size[0], [3.0, 2.0, 0.375])
    assert field.bottom + field.center == -0.25


@pytest.mark.parametrize(
    "text", ["<mujoco><worldbody><geom size=", '<mujoco><worldbody><geom type="cone"/></worldbody>']
)
def test_what_mujoco_cannot_compile_is_an_input_error(tmp_path, text, capfd):
    with pytest.raises(InputError, match="MuJoCo cannot compile") as refusal:
        load(tmp_path, text)
    assert "scene.xml" in str(refusal.value)
    assert "\n" not in refusal.value.what
    assert capfd.readouterr() == ("", "")


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        add_mjcf(ModelBuilder(), tmp_path / "none.xml")


def test_mujocos_warnings_are_kept_off_the_terminal(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '<mujoco><compiler settotalmass="3"/><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'
    scene, _ = load(tmp_path, text)
    assert any("settotalmass" in warning for warning in scene.warnings)
    assert capfd.readouterr() == ("", "")
    assert [p.name for p in tmp_path.iterdir()] == ["scene.xml"]


def test_negative_margin_is_refused_with_file_and_geom(tmp_path):
    with pytest.raises(InputError, match="margin") as refusal:
        load(tmp_path, '<mujoco><worldbody><geom name="g" size="1" margin="-0.1"/></worldbody></mujoco>')
    assert "scene.xml: shape 'g'" in str(refusal.value)


def test_a_scene_of_the_other_gap_rule_before_it_is_refused(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(EVERY_GEOM)
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=1.0)
    with pytest.raises(InputError, match="gaps"):
        add_mjcf(builder, path)
