"""Robots that take a root motion: a floating base, a ground, packages of ROS, and motions that need a conversion."""

from __future__ import annotations

import json
import pickle

import h5py
import numpy as np
import pytest
import trimesh

RUN = ("--device", "cpu", "--json", "--force", "-o", "out.h5")
ROBOT = """<robot name="legs">
  <link name="pelvis"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="foot"><collision><geometry>{foot}</geometry></collision></link>
  <joint name="knee" type="revolute">
    <parent link="pelvis"/><child link="foot"/><origin xyz="0 0 -0.5"/><axis xyz="0 1 0"/><limit lower="-2" upper="2"/>
  </joint>
</robot>
"""
SPHERE = '<sphere radius="0.1"/>'
FRAMES = 5


@pytest.fixture
def robot(here):
    (here / "legs.urdf").write_text(ROBOT.format(foot=SPHERE))
    rows = np.zeros((FRAMES, 8))
    rows[:, 2] = 0.62 - 0.01 * np.arange(FRAMES)  # the foot's lowest point: 2 cm above the ground, then 1 cm less each
    rows[:, 6] = 1.0
    np.savetxt(here / "motion.csv", rows, delimiter=",")
    return here


MOTION = ("-t", "motion.csv", "--fps", "50", "--quaternion-order", "xyzw", "--joint-names", "knee")


def run(collide, *args):
    answer = collide("run", *args, *RUN)
    assert answer.code == 0, answer.err
    return json.loads(answer.out), answer.err


def test_a_floating_base_takes_the_root_motion_over_the_ground(robot, collide):
    welded = collide("run", "legs.urdf", *MOTION, *RUN)
    assert welded.code == 2
    result, _ = run(collide, "legs.urdf", *MOTION, "--floating-base", "--ground", "--gap", "0.1")
    assert result["frames"] == FRAMES
    assert result["deepest"]["distance"] == pytest.approx(-0.02, abs=1e-6)
    with h5py.File("out.h5") as file:
        assert set(file["model/shape/path"].asstr()) >= {"ground", "foot/collision#0"}
        config = json.loads(file.attrs["config"])
        assert config["floating_base"] is config["ground"] is True
    exported = collide("export", "out.h5", "--to", "usd", "-o", "out.usda", "--force")
    assert exported.code == 0, exported.err


def test_record_simulates_a_floating_base_on_the_ground(robot, collide):
    args = ("--frames", "400", "-o", "m.h5", "--force", "--json")
    answer = collide("record", "legs.urdf", *args, "--floating-base", "--ground")
    assert answer.code == 0, answer.err
    result, _ = run(collide, "legs.urdf", "-t", "m.h5", "--floating-base", "--ground")
    assert result["contacts"] > 0


def test_ground_of_usd_is_normal_to_the_up_axis(here, collide):
    (here / "y.usda").write_text("""#usda 1.0
(
 metersPerUnit = 0.01
 upAxis = "Y"
)
def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
 double radius = 30
 double3 xformOp:translate = (500, 29, 0)
 uniform token[] xformOpOrder = ["xformOp:translate"]
}
""")
    result, _ = run(collide, "y.usda", "--ground")
    assert result["deepest"]["distance"] == pytest.approx(-0.01, abs=1e-6)
    refused = collide("run", "y.usda", "--floating-base", *RUN)
    assert refused.code == 2
    assert "--floating-base is for URDF scenes" in refused.err


def test_options_without_effect_are_refused(robot, collide):
    refused = collide("run", "scene.xml", "--floating-base", *RUN)
    assert refused.code == 2
    assert "--floating-base is for URDF scenes" in refused.err
    (robot / "ground.xml").write_text("<mujoco><worldbody><geom name='ground' size='1'/></worldbody></mujoco>")
    refused = collide("run", "ground.xml", "--ground", *RUN)
    assert refused.code == 2
    assert "a geom 'ground' already" in refused.err
    (robot / "fixed.urdf").write_text(ROBOT.format(foot=SPHERE).replace('"pelvis"', '"world"'))
    refused = collide("run", "fixed.urdf", "--floating-base", *RUN)
    assert refused.code == 2
    assert "can move already" in refused.err


@pytest.mark.parametrize("variable", ["ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "beside"])
def test_package_paths_are_found(robot, collide, monkeypatch, variable):
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    mesh = '<mesh filename="package://legs_description/meshes/foot.stl"/>'
    scene = robot / "robots" / "urdf" / "legs.urdf"
    scene.parent.mkdir(parents=True)
    scene.write_text(ROBOT.format(foot=mesh))
    refused = collide("run", str(scene), *MOTION, "--floating-base", *RUN)
    assert refused.code == 2
    assert "package://legs_description=FOLDER or ROS_PACKAGE_PATH" in refused.err
    root = {"ROS_PACKAGE_PATH": "ros", "AMENT_PREFIX_PATH": "install/share", "beside": "robots"}[variable]
    meshes = robot / root / "legs_description" / "meshes"
    meshes.mkdir(parents=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(meshes / "foot.stl")
    if variable != "beside":
        monkeypatch.setenv(variable, f"{robot / 'nothing'}:{robot / root.removesuffix('/share')}")
    result, _ = run(collide, str(scene), *MOTION, "--floating-base", "--ground")
    assert result["deepest"]["distance"] == pytest.approx(-0.02, abs=1e-6)


def test_motions_of_amass_and_gmr_are_named_with_their_conversion(robot, collide):
    np.savez("amass.npz", poses=np.zeros((3, 156)), trans=np.zeros((3, 3)), betas=np.zeros(16), gender=np.array("male"))
    objects = np.array([{}], dtype=object)
    np.savez("stageii.npz", poses=np.zeros((3, 165)), trans=np.zeros((3, 3)), labels=objects)
    gmr = {"fps": 30, "root_pos": np.zeros((3, 3)), "root_rot": np.zeros((3, 4)), "dof_pos": np.zeros((3, 1))}
    with open("gmr.pkl", "wb") as file:
        pickle.dump(gmr, file)
    with open("other.pkl", "wb") as file:
        pickle.dump({"a": 1}, file)
    words = {
        "amass.npz": ("a motion of AMASS", "retarget it to the robot"),
        "stageii.npz": ("a motion of AMASS", "retarget it to the robot"),
        "gmr.pkl": ("a motion of GMR", "root_quat_xyzw=d['root_rot']"),
        "other.pkl": ("this is a pickle, which is not read", "numpy.savez"),
    }
    for name, expected in words.items():
        refused = collide("run", "legs.urdf", "-t", name, "--floating-base", *RUN)
        assert refused.code == 2, name
        assert all(text in refused.err for text in expected), refused.err
    root = np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    np.savez("gmr.npz", root_pos=gmr["root_pos"], root_quat_xyzw=root, dof_pos=gmr["dof_pos"], fps=30)
    result, _ = run(collide, "legs.urdf", "-t", "gmr.npz", "--floating-base", "--joint-names", "knee")
    assert result["frames"] == 3
