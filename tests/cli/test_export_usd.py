"""collide export --to usd: the layer is opened with pxr and composed over the scene."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from collidecli.cli.main import main
from collidecli.storage.contact_sets.reader import ContactSet

# Centimetres and y up. The ball sinks into the floor from frame 2 on, at time codes of 25 a second.
SCENE = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 0.01
    upAxis = "Y"
    timeCodesPerSecond = 25
    startTimeCode = 10
    endTimeCode = 40
)
def Xform "World"
{
    def Cube "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        double size = 2
        double3 xformOp:scale = (100, 10, 100)
        double3 xformOp:translate = (0, -10, 0)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }
    def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"])
    {
        double radius = 20
        double3 xformOp:translate.timeSamples = { 10: (3, 60, 0), 11: (3, 31, 0), 12: (4, 18, 0), 13: (5, 15, 0) }
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
"""
HEIGHTS = {11: 0.11, 12: -0.02, 13: -0.05}
"""Distance by time code [m]; at 10 it is beyond the gap of 0.1 m, and at 11 too."""
POINTS = "/collide_contacts/world_0/points"
NORMALS = "/collide_contacts/world_0/normals"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("usd")
    (found / "scene").mkdir()
    (found / "scene" / "ball.usda").write_text(SCENE)
    scene, contacts = str(found / "scene" / "ball.usda"), str(found / "out.h5")
    assert main(["run", scene, "-o", contacts, "--device", "cpu", "-q"]) == 0
    for ending in ("usda", "usdc", "usd"):
        layer = str(found / f"layer.{ending}")
        assert main(["export", contacts, "--to", "usd", "-o", layer, "--scene", scene, "-q"]) == 0
    return found


@pytest.fixture(params=["usda", "usdc", "usd"])
def stage(folder, request) -> Usd.Stage:
    return Usd.Stage.Open(str(folder / f"layer.{request.param}"))


def test_it_composes_over_the_scene(stage):
    assert not stage.GetCompositionErrors()
    assert UsdPhysics.CollisionAPI(stage.GetPrimAtPath("/World/floor"))
    assert stage.GetDefaultPrim().GetPath() == "/World"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 0.01
    assert UsdGeom.GetStageUpAxis(stage) == "Y"
    assert (stage.GetTimeCodesPerSecond(), stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (25.0, 10.0, 40.0)
    # The ball still moves: the scene's own samples are at the same time codes.
    centre = UsdGeom.XformCache(13).GetLocalToWorldTransform(stage.GetPrimAtPath("/World/ball")).ExtractTranslation()
    assert tuple(centre) == (5.0, 15.0, 0.0)


def test_points_and_normals_in_the_scenes_units(stage):
    points = UsdGeom.Points(stage.GetPrimAtPath(POINTS))
    curves = UsdGeom.BasisCurves(stage.GetPrimAtPath(NORMALS))
    assert points.GetPointsAttr().GetTimeSamples() == [10.0, 11.0, 12.0, 13.0]
    for code in (10, 11):
        assert len(points.GetPointsAttr().Get(code)) == 0
        assert len(curves.GetCurveVertexCountsAttr().Get(code)) == 0
    for code, x in ((12, 4.0), (13, 5.0)):
        # Witness points: the floor's top at 0 and the ball's lowest point; between them is half the depth.
        distance = 100.0 * HEIGHTS[code]
        place = np.array([[x, distance / 2.0, 0.0]])
        assert np.allclose(points.GetPointsAttr().Get(code), place, atol=1e-5)
        ends = np.array(curves.GetPointsAttr().Get(code))
        paths = stage.GetPrimAtPath("/collide_contacts").GetAttribute("collide:shapes").Get()
        shapes = [UsdGeom.PrimvarsAPI(points).GetPrimvar(f"shape{k}").Get(code)[0] for k in (0, 1)]
        assert {paths[k] for k in shapes} == {"/World/floor", "/World/ball"}
        up = 1.0 if paths[shapes[0]] == "/World/floor" else -1.0
        assert np.allclose(ends, [place[0], place[0] + [0.0, up * 5.0, 0.0]], atol=1e-5), "5 cm from shape0 to shape1"
        assert list(curves.GetCurveVertexCountsAttr().Get(code)) == [2]
        assert UsdGeom.PrimvarsAPI(points).GetPrimvar("distance").Get(code)[0] == pytest.approx(distance, abs=1e-5)
        assert np.allclose(UsdGeom.PrimvarsAPI(points).GetPrimvar("normal").Get(code), [[0.0, up, 0.0]])
        box = np.array(points.GetExtentAttr().Get(code))
        assert np.allclose(box, np.repeat(place, 2, axis=0), atol=1e-5)
    assert curves.GetTypeAttr().Get() == "linear"
    for prim in (points, curves):
        assert len(prim.GetDisplayColorAttr().Get(13)) == 1


def test_the_scene_is_found_from_wherever_both_are_moved(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "elsewhere")
    stage = Usd.Stage.Open(str(tmp_path / "elsewhere" / "layer.usda"))
    assert stage.GetPrimAtPath("/World/ball")
    (sublayer,) = stage.GetRootLayer().subLayerPaths
    assert sublayer == "./scene/ball.usda"


def test_a_run_of_the_layer_finds_the_same_contacts(folder):
    """It holds nothing that collides, and the motion at the same times."""
    assert main(["run", str(folder / "layer.usda"), "-o", str(folder / "again.h5"), "--device", "cpu", "-q"]) == 0
    with ContactSet.open(folder / "out.h5") as one, ContactSet.open(folder / "again.h5") as other:
        assert one.content_sha256 == other.content_sha256


def test_frames_at_one_time_are_refused(here, collide):
    (here / "still.xml").write_text(
        '<mujoco><worldbody><geom size="1"/><body><freejoint/><geom size="1"/></body></worldbody>'
        '<keyframe><key time="1"/><key time="1"/></keyframe></mujoco>'
    )
    assert collide("run", "still.xml", "-o", "still.h5", "--device", "cpu").code == 0
    answer = collide("export", "still.h5", "--to", "usd")
    assert answer.code == 2
    assert "frames 0 and 1 are both at 1 s" in answer.err
    assert not (here / "still.usd").exists()
    assert collide("export", "still.h5", "--to", "usd", "--frames", "0").code == 0
    stage = Usd.Stage.Open(str(here / "still.usd"))
    assert (UsdGeom.GetStageMetersPerUnit(stage), UsdGeom.GetStageUpAxis(stage)) == (1.0, "Z")
    assert list(stage.GetRootLayer().subLayerPaths) == []


def test_a_layer_that_memory_would_not_hold_is_refused(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("collidecli.exporters.usd_layer.CONTACT_BYTES", 1 << 60)
    words = ["--to", "usd", "-o", str(tmp_path / "a.usd"), "--scene", str(folder / "scene" / "ball.usda")]
    assert main(["export", str(folder / "out.h5"), *words]) == 2
    assert "a layer of 2 contacts needs" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


STILL = """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "World"
{
    double3 xformOp:translate = (100, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        uniform token axis = "Z"
    }
    def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"])
    {
        double size = 20
        double3 xformOp:scale = (1, 2, 3)
        double3 xformOp:translate = (0, 0, 100)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }
}
"""


def recorded_poses() -> np.ndarray:
    """float64[frames, 1, 1, 7]: the box turns about x by a quarter and sinks."""
    poses = np.zeros((3, 1, 1, 7))
    poses[:, 0, 0, :3] = [(0.5, 0.1, 0.4), (0.6, 0.2, 0.25), (0.7, 0.3, 0.18)]
    angle = np.array([0.0, np.pi / 4, np.pi / 2])
    poses[:, 0, 0, 3], poses[:, 0, 0, 6] = np.sin(angle / 2), np.cos(angle / 2)
    return poses


def test_bodies_move_as_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("still.usda").write_text(STILL)
    poses = recorded_poses()
    with h5py.File("motion.h5", "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array((1, 0), np.int32)
        file["time"] = np.arange(3) / 24.0
        file["body_q"] = poses
        file.create_dataset("body_name", data=["/World/box"], dtype=h5py.string_dtype())
    assert main(["run", "still.usda", "-t", "motion.h5", "-o", "out.h5", "--device", "cpu", "-q"]) == 0
    export = ["export", "out.h5", "--to", "usd", "--scene", "still.usda", "--force"]
    assert main([*export, "-o", "layer.usda"]) == 0
    assert "left out" not in capsys.readouterr().out
    cache = UsdGeom.XformCache()
    stage = Usd.Stage.Open("layer.usda")
    corner = np.array([10.0, 10.0, 10.0])
    for code, pose in enumerate(poses[:, 0, 0]):
        cache.SetTime(code)
        moved = cache.GetLocalToWorldTransform(stage.GetPrimAtPath("/World/box")).Transform(Gf.Vec3d(*corner))
        turned = Rotation.from_quat(pose[3:]).apply(corner * [1.0, 2.0, 3.0])
        np.testing.assert_allclose(moved, pose[:3] * 100.0 + turned, atol=1e-4)
    Path("motion.h5").rename("gone.dat")
    assert main([*export, "-o", "layer.usda"]) == 0
    assert "give the recording of the run with -t" in " ".join(capsys.readouterr().out.split())
    assert main([*export, "-o", "layer.usda", "-t", "gone.dat"]) == 0
    assert "box" in Path("layer.usda").read_text()
    assert main(["export", "out.h5", "--to", "csv", "-t", "gone.dat"]) == 2
