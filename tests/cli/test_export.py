"""collide export and merge on the command line: formats, USD layers, parts of runs, and what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from collidecli.cli.main import main
from collidecli.scene.options import EXPORT_FORMATS
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.contact_sets import made_up


@pytest.fixture
def out(here, collide):
    """out.h5: the contacts of the two spheres, twenty frames."""
    assert collide("run", "scene.xml", "-t", "motion.h5", "-o", "out.h5", "--device", "cpu", "--gap", "1").code == 0
    return here


@pytest.mark.parametrize("name", EXPORT_FORMATS)
def test_every_format_has_its_own_name(out, collide, name):
    scene = ["--scene", "scene.xml"] if name in ("mujoco", "jacobian") else []
    if name == "jacobian":  # of joint positions
        assert collide("record", "scene.xml", "--joint", "--frames", "20", "-o", "joints.h5").code == 0
        assert collide("run", "scene.xml", "-t", "joints.h5", "-o", "out.h5", "--gap", "1", "--force").code == 0
    answer = collide("export", "out.h5", "--to", name, "--json", *scene)
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    expected = {"usd": "out.usd", "csv": "out.csv", "parquet": "out.parquet", "npz": "out.npz"}.get(
        name, f"out.{name}.npz"
    )
    assert result["output"] == expected
    assert result["bytes"] == (out / expected).stat().st_size
    assert (result["schema"], result["frames"], result["worlds"], result["contacts"]) == ("collide.export/1", 20, 1, 20)
    again = collide("export", "out.h5", "--to", name, *scene)
    assert again.code == 3
    assert "exists already" in again.err


def test_choices(out, collide):
    assert collide("export", "out.h5", "--to", "csv", "--frames", "3:9:2", "--world", "0").code == 0
    with (out / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == [3, 5, 7]
    assert np.allclose([float(row["distance"]) for row in rows], 0.105 - 0.01 * np.array([3, 5, 7]), atol=1e-7)
    assert collide("export", "out.h5", "--to", "csv", "--force", "--exclude", "ball").code == 0
    assert len((out / "out.csv").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--to", "xml"), 2, "'xml' is not one of"),
        ((), 2, "Missing option '--to'"),
        (("--to", "csv", "-o", "a.parquet"), 2, "has the extension .csv"),
        (("--to", "npz", "--world", "1"), 2, "world 1 is not there"),
        (("--to", "npz", "--frames", "20"), 2, "'20' selects none of 20 frames"),
        (("--to", "npz", "--include", "b?d"), 2, "--include: 'b?d' matches no shape of out.h5"),
        (("--to", "csv", "--scene", "scene.xml"), 2, "csv needs no scene"),
        (("--to", "mujoco"), 2, "give the scene of the run with --scene"),
        (("--to", "mujoco", "--scene", "other.xml"), 2, "not the scene of out.h5"),
        (("--to", "usd", "--scene", "scene.xml"), 2, "a USD layer needs a USD scene"),
        (("--to", "npz", "-o", "out.h5", "--force"), 2, "has the extension .npz"),
        (("--to", "npz", "-o", "no/out.npz"), 3, "does not exist"),
    ],
)
def test_one_clear_message_and_nothing_written(out, collide, arguments, code, said):
    (out / "other.xml").write_text((out / "scene.xml").read_text().replace("0.3", "0.31"))
    before = sorted(path.name for path in out.iterdir())
    answer = collide("export", "out.h5", *arguments)
    assert answer.code == code
    assert said in answer.err
    assert len(answer.err.splitlines()) <= 4
    assert sorted(path.name for path in out.iterdir()) == before


def test_a_file_that_is_no_contact_set(out, collide):
    answer = collide("export", "motion.h5", "--to", "npz")
    assert (answer.code, "not a contact set" in answer.err) == (2, True)


def test_a_damaged_chunk_leaves_nothing(out, collide):
    """The columns are read while the output is written: it is gone when one of them cannot be."""
    with h5py.File(out / "out.h5") as file:
        place = file["rigid_contacts/point1"].id.get_chunk_info(0)
    data = bytearray((out / "out.h5").read_bytes())
    data[place.byte_offset + place.size // 2] ^= 0xFF
    (out / "out.h5").write_bytes(data)
    for name in ("npz", "csv", "parquet", "usd"):
        answer = collide("export", "out.h5", "--to", name)
        assert (answer.code, "point1" in answer.err) == (2, True), name
    assert sorted(path.name for path in out.iterdir()) == ["motion.h5", "out.h5", "scene.xml"]


def test_options_of_the_run_that_are_none(out, collide):
    with h5py.File(out / "out.h5", "r+") as file:
        file.attrs["config"] = '{"asset_map": 3}'
    answer = collide("export", "out.h5", "--to", "mujoco", "--scene", "scene.xml")
    assert (answer.code, "the option asset_map is 3" in answer.err) == (2, True)


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


RUN = ("run", "scene.xml", "--device", "cpu", "-q", "--gap", "1")


@pytest.fixture
def parts(here, collide):
    """a.h5: frames 0 to 7; b.h5: the others; whole.h5: all."""
    for name, frames in (("whole", ":"), ("a", ":8"), ("b", "8:")):
        assert collide(*RUN, "-t", "motion.h5", "--frames", frames, "-o", f"{name}.h5").code == 0
    return here


def sha(path) -> str:
    with h5py.File(path) as file:
        return str(file.attrs["content_sha256"])


def test_a_split_run_is_one_run_again(parts, collide):
    answer = collide("merge", "b.h5", "a.h5", "-o", "ab.h5", "--json")
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    assert result["content_sha256"] == sha(parts / "ab.h5") == sha(parts / "whole.h5")
    assert (result["schema"], result["frames"], result["contacts"]) == ("collide.merge/1", 20, 20)
    assert collide("check", "ab.h5").code == 0
    assert collide("diff", "whole.h5", "ab.h5", "--full").code == 0
    assert collide("merge", "b.h5", "a.h5", "-o", "ab.h5").code == 3


def test_sets_of_both_formats_are_merged_to_the_one_asked_for(parts, collide):
    for name, frames in (("whole2", ":"), ("a2", ":8")):
        assert collide(*RUN, "-t", "motion.h5", "--frames", frames, "-o", f"{name}.h5", "--format", "2").code == 0
    assert collide("merge", "a2.h5", "b.h5", "-o", "mixed.h5").err.startswith("error: ")
    assert not (parts / "mixed.h5").exists()
    for version, whole in (("1", "whole"), ("2", "whole2")):
        answer = collide("merge", "a2.h5", "b.h5", "-o", f"mixed{version}.h5", "--format", version)
        assert answer.code == 0, answer.err
        assert sha(parts / f"mixed{version}.h5") == sha(parts / f"{whole}.h5")
        assert collide("check", f"mixed{version}.h5").code == 0
    assert sha(parts / "whole.h5") != sha(parts / "whole2.h5")
    assert collide("diff", "whole.h5", "whole2.h5").code == 0
    assert collide("diff", "mixed2.h5", "whole.h5", "--full").code == 0


def test_contacts_that_were_followed_have_no_union(here, collide):
    """The second part cannot know which id a contact that goes on had in the first."""
    for name, frames in (("a", ":8"), ("b", "8:")):
        args = (*RUN, "-t", "motion.h5", "--contact-ids", "--frames", frames, "-o", f"{name}.h5")
        assert collide(*args).code == 0
    answer = collide("merge", "a.h5", "b.h5", "-o", "ab.h5")
    assert answer.code == 2
    assert "a.h5: /rigid_contacts/contact_id" in answer.err
    assert not (here / "ab.h5").exists()


def test_worlds_of_a_split_recording(here, collide):
    """Three worlds of one motion, of which two and one are recorded apart."""
    with h5py.File(here / "motion.h5", "r+") as file:
        poses = np.repeat(file["body_q"][()], 3, axis=1)
        poses[:, 1, :, 0] += 0.05
        poses[:, 2, :, 2] -= 0.02
        del file["body_q"]
        file["body_q"] = poses
    for name, worlds in (("a", slice(0, 2)), ("b", slice(2, 3))):
        with h5py.File(here / "motion.h5") as source, h5py.File(here / f"{name}.motion.h5", "w") as file:
            for key, value in source.attrs.items():
                file.attrs[key] = value
            for key in ("time", "body_name"):
                source.copy(key, file)
            file["body_q"] = source["body_q"][:, worlds]
        assert collide(*RUN, "-t", f"{name}.motion.h5", "-o", f"{name}.h5").code == 0
    assert collide(*RUN, "-t", "motion.h5", "-o", "whole.h5").code == 0
    answer = collide("merge", "a.h5", "b.h5", "--worlds", "-o", "ab.h5")
    assert answer.code == 0, answer.err
    assert sha(here / "ab.h5") == sha(here / "whole.h5")
    assert collide("merge", "b.h5", "a.h5", "--worlds", "-o", "ba.h5").code == 0
    assert sha(here / "ba.h5") != sha(here / "whole.h5"), "worlds are in the order of the files"
    answer = collide("merge", "a.h5", "b.h5", "a.h5", "--worlds", "-o", "no.h5")
    assert (answer.code, "it has worlds of a.h5" in answer.err) == (2, True)
    answer = collide("merge", "a.h5", "b.h5", "-o", "no.h5")
    assert (answer.code, "has 1 worlds, and a.h5 has 2" in answer.err) == (2, True)


REFUSED = (
    (("a.h5",), "give two contact sets or more"),
    ((), "Missing argument"),
    (("a.h5", "whole.h5"), "step 0 is in"),
    (("a.h5", "whole.h5"), "and so are 7 more"),
    (("a.h5", "b.h5", "--worlds"), "differ from those of a.h5 in /time/step"),
    (("a.h5", "motion.h5"), "not a contact set"),
    (("a.h5", "gap.h5"), "in the option gap: 0.5 and 1.0"),
    (("a.h5", "scene.h5"), "scene_sha256: the scenes are different files"),
    (("a.h5", "columns.h5"), "the option columns"),
    (("a.h5", "nowhere.h5"), "there is no such file"),
    (("a.h5", "b.h5", "--compression", "best"), "'best' is not one of"),
)


def test_what_has_no_union_is_refused_by_name(parts, collide):
    text = (parts / "scene.xml").read_text()
    (parts / "scene2.xml").write_text(text.replace("9 0 0", "8 0 0"))
    last = ("-t", "motion.h5", "--frames", "8:", "--device", "cpu", "-q")
    assert collide("run", "scene.xml", *last, "--gap", "0.5", "-o", "gap.h5").code == 0
    assert collide("run", "scene2.xml", *last, "--gap", "1", "-o", "scene.h5").code == 0
    assert collide(*RUN, *last[:4], "--columns", "friction", "-o", "columns.h5").code == 0
    for arguments, said in REFUSED:
        answer = collide("merge", *arguments, "-o", "out.h5")
        assert (answer.code, said in answer.err) == (2, True), answer.err
        assert len(answer.err.splitlines()) <= 2
        assert not list(parts.glob("*out.h5*"))


def edited(change) -> object:
    """A second part of a made-up set, of frames 6 to 11, changed."""
    part = made_up()
    part.step, part.time = part.step + 30, part.time + 0.06
    change(part)
    return part


def test_models_steps_and_times(here, collide):
    """Sets made up alike, but for one thing that is named."""
    made_up().write(here / "a.h5")
    cases = {
        "/model/shape/margin": lambda p: p.margin.__setitem__(1, 0.5),
        "/model/shape/path": lambda p: p.path.__setitem__(1, "other"),
        "format versions 1.1 and 1.0": lambda p: setattr(p, "version", (1, 1)),
        "step 40 follows step 40": lambda p: p.step.__setitem__(3, 40),
        "step 30 is earlier than step 25": lambda p: setattr(p, "time", p.time - 0.05),
        "/rigid_contacts/strange": lambda p: p.optional.__setitem__("strange", np.zeros(len(p.cell))),
    }
    for said, change in cases.items():
        edited(change).write(here / "b.h5")
        answer = collide("merge", "a.h5", "b.h5", "-o", "out.h5")
        assert (answer.code, said in answer.err) == (2, True), answer.err
        assert len(answer.err.splitlines()) == 2
    edited(lambda _: None).write(here / "b.h5")
    assert collide("merge", "a.h5", "b.h5", "-o", "out.h5").code == 0


def test_a_damaged_part_leaves_nothing(parts, collide):
    with h5py.File(parts / "b.h5") as file:
        place = file["rigid_contacts/normal"].id.get_chunk_info(0)
    data = bytearray((parts / "b.h5").read_bytes())
    data[place.byte_offset + place.size // 2] ^= 0xFF
    (parts / "b.h5").write_bytes(data)
    answer = collide("merge", "a.h5", "b.h5", "-o", "out.h5")
    assert (answer.code, "b.h5: /rigid_contacts/normal" in answer.err) == (2, True)
    assert not list(parts.glob("*out.h5*"))


def test_a_timing_that_no_run_wrote(parts, collide):
    with h5py.File(parts / "b.h5", "r+") as file:
        del file["timing/calls"]
        file["timing/calls"] = 3
    answer = collide("merge", "a.h5", "b.h5", "-o", "out.h5")
    assert (answer.code, "/timing is not as a run writes it" in answer.err) == (2, True)
    assert not list(parts.glob("*out.h5*"))
