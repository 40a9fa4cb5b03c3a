"""collide export and merge on the command line: formats, USD layers, parts of runs, and what is
refused."""

import re
import shutil
from contextlib import chdir
from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from collidecli.exporters.formats import EXPORT_FORMATS
from tests.cli.conftest import CommandLine, arrays, distances, refusals, sha, write_poses
from tests.support.contact_sets import made_up
from tests.support.usd_scenes import BOTH, COLLIDER, at, placed, write_usda
from tests.unit.storage.contact_sets.test_check import damage


@pytest.fixture
def out(here, ran):
    """out.h5: the contacts of the two spheres, twenty frames."""
    ran("out.h5", "--gap", "1")
    return here


@pytest.mark.parametrize("name", EXPORT_FORMATS)
def test_every_format_has_its_own_name(out, collide, name):
    scene = ["--scene", "scene.xml"] if name in ("mujoco", "jacobian") else []
    if name == "jacobian":  # of joint positions
        collide.ok("record scene.xml --joint --frames 20 -o joints.h5")
        collide.ok("run scene.xml -t joints.h5 -o out.h5 --gap 1 --force")
    result = collide.result("export out.h5 --to", name, *scene)
    expected = (
        f"out.{name}" if name in ("usd", "csv", "parquet", "npz", "mcap") else f"out.{name}.npz"
    )
    assert result["output"] == expected
    assert result["bytes"] == (out / expected).stat().st_size
    assert (result["schema"], result["frames"], result["worlds"], result["contacts"]) == (
        "collide.export/1",
        20,
        1,
        20,
    )
    collide.refused("export out.h5 --to", name, *scene, told="exists already", code=3)


def test_choices(out, collide):
    collide.ok("export out.h5 --to csv --frames 3:9:2 --world 0")
    rows = pandas.read_csv("out.csv")
    assert rows["frame"].tolist() == [3, 5, 7]
    np.testing.assert_allclose(rows["distance"], distances()[[3, 5, 7]], atol=1e-7)
    collide.ok("export out.h5 --to csv --force --exclude ball")
    assert len((out / "out.csv").read_text().splitlines()) == 1


@pytest.fixture
def others(out):
    """out.h5, and a scene that is not its own."""
    (out / "other.xml").write_text((out / "scene.xml").read_text().replace("0.3", "0.31"))


test_refused = refusals(
    "export out.h5",
    ("--to xml", "'xml' is not one of"),
    ("", "Missing option '--to'"),
    ("--to csv -o a.parquet", "has the extension .csv"),
    ("--to npz --world 1", "world 1 is not there"),
    ("--to npz --frames 20", "'20' selects none of 20 frames"),
    ("--to npz --include b?d", "--include: 'b?d' matches no shape or body of out.h5"),
    ("--to csv --scene scene.xml", "csv needs no scene"),
    ("--to csv --frame-id map", "csv has no frame of messages"),
    ("--to mcap -t other.xml", "give scene and recording of the run"),
    ("--to mujoco", "give the scene of the run with --scene"),
    ("--to mujoco --scene other.xml", "not the scene of out.h5"),
    ("--to usd --scene scene.xml", "a USD layer needs a USD scene"),
    ("--to npz -o out.h5 --force", "has the extension .npz"),
    ("--to npz -o out.h5/out.npz", "a file has its name", 3),
    needs="others",
)


def test_a_usd_layer_without_the_shapes_of_the_scene_is_announced(out, collide):
    """Before it is written, so that a run that is then stopped has said it."""
    told = "shapes of scene.xml, which is not USD: the layer has the contacts alone"
    found = collide("export out.h5 --to usd -o layer.usda")
    assert f"warning: usd lacks the {told}\n" in found.err
    assert told in collide.result("export out.h5 --to usd -o other.usda")["left_out"]
    assert "lacks" not in collide("export out.h5 --to csv -o table.csv").err


test_a_file_that_is_no_contact_set = refusals("export motion.h5", ("--to npz", "not a contact set"))


def test_a_damaged_chunk_leaves_nothing(out, collide):
    """The columns are read while the output is written: it is gone when one of them cannot be."""
    damage(out / "out.h5", "rigid_contacts/point1")
    for name in ("npz", "csv", "parquet", "usd", "mcap"):
        collide.refused("export out.h5 --to", name, told="point1")


def test_options_of_the_run_that_are_none(out, collide):
    with h5py.File(out / "out.h5", "r+") as file:
        file.attrs["config"] = '{"asset_map": 3}'
    collide.refused("export out.h5 --to mujoco --scene scene.xml", told="the option asset_map is 3")


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
def Xform "World" {
    def Cube "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        double size = 2
        double3 xformOp:scale = (100, 10, 100)
        double3 xformOp:translate = (0, -10, 0)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }
    def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]) {
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
    collide = CommandLine()
    (found / "scene").mkdir()
    (found / "scene" / "ball.usda").write_text(SCENE)
    with chdir(found):
        collide.ok("run scene/ball.usda -o out.h5 --device cpu -q")
        for ending in ("usda", "usdc", "usd"):
            collide.ok(f"export out.h5 --to usd -o layer.{ending} --scene scene/ball.usda -q")
    return found


@pytest.fixture(params=["usda", "usdc", "usd"])
def stage(folder, request) -> Usd.Stage:
    return Usd.Stage.Open(str(folder / f"layer.{request.param}"))


def test_it_composes_over_the_scene(stage):
    assert not stage.GetCompositionErrors()
    assert UsdPhysics.CollisionAPI(stage.GetPrimAtPath("/World/floor"))
    units = (UsdGeom.GetStageMetersPerUnit(stage), UsdGeom.GetStageUpAxis(stage))
    assert (stage.GetDefaultPrim().GetPath(), *units) == ("/World", 0.01, "Y")
    assert (stage.GetTimeCodesPerSecond(), stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (
        25.0,
        10.0,
        40.0,
    )
    # The ball still moves: the scene's own samples are at the same time codes.
    centre = (
        UsdGeom.XformCache(13)
        .GetLocalToWorldTransform(stage.GetPrimAtPath("/World/ball"))
        .ExtractTranslation()
    )
    assert tuple(centre) == (5.0, 15.0, 0.0)
    points = UsdGeom.Points(stage.GetPrimAtPath(POINTS))
    curves = UsdGeom.BasisCurves(stage.GetPrimAtPath(NORMALS))
    assert points.GetPointsAttr().GetTimeSamples() == [10.0, 11.0, 12.0, 13.0]
    for code in (10, 11):
        assert [
            len(each.Get(code))
            for each in (points.GetPointsAttr(), curves.GetCurveVertexCountsAttr())
        ] == [0, 0]
    for code, x in ((12, 4.0), (13, 5.0)):
        # Witness points: the floor's top at 0 and the ball's lowest point; between them is half the
        # depth.
        distance = 100.0 * HEIGHTS[code]
        place = np.array([[x, distance / 2.0, 0.0]])
        assert np.allclose(points.GetPointsAttr().Get(code), place, atol=1e-5)
        ends = np.array(curves.GetPointsAttr().Get(code))
        paths = stage.GetPrimAtPath("/collide_contacts").GetAttribute("collide:shapes").Get()
        shapes = [UsdGeom.PrimvarsAPI(points).GetPrimvar(f"shape{k}").Get(code)[0] for k in (0, 1)]
        assert {paths[k] for k in shapes} == {"/World/floor", "/World/ball"}
        up = 1.0 if paths[shapes[0]] == "/World/floor" else -1.0
        assert np.allclose(ends, [place[0], place[0] + [0.0, up * 5.0, 0.0]], atol=1e-5), (
            "5 cm from shape0 to shape1"
        )
        assert list(curves.GetCurveVertexCountsAttr().Get(code)) == [2]
        assert UsdGeom.PrimvarsAPI(points).GetPrimvar("distance").Get(code)[0] == pytest.approx(
            distance, abs=1e-5
        )
        assert np.allclose(
            UsdGeom.PrimvarsAPI(points).GetPrimvar("normal").Get(code), [[0.0, up, 0.0]]
        )
        assert np.allclose(points.GetExtentAttr().Get(code), np.repeat(place, 2, axis=0), atol=1e-5)
    assert curves.GetTypeAttr().Get() == "linear"
    widths = [list(prim.GetWidthsAttr().Get()) for prim in (points, curves)]
    assert widths == [[1.0], [pytest.approx(0.2)]], "of normals of 5 cm"
    for prim in (points, curves):
        assert len(prim.GetDisplayColorAttr().Get(13)) == 1


def test_the_scene_is_found_from_wherever_both_are_moved(folder, tmp_path, collide):
    shutil.copytree(folder, tmp_path / "elsewhere")
    stage = Usd.Stage.Open(str(tmp_path / "elsewhere" / "layer.usda"))
    assert stage.GetPrimAtPath("/World/ball")
    (sublayer,) = stage.GetRootLayer().subLayerPaths
    assert sublayer == "./scene/ball.usda"
    collide.ok("run", folder / "layer.usda", "-o", "again.h5", "--device", "cpu", "-q")
    assert sha("again.h5") == sha(folder / "out.h5")


def test_frames_at_one_time_are_refused(here, collide):
    (here / "still.xml").write_text(
        '<mujoco><worldbody><geom size="1"/><body><freejoint/><geom size="1"/></body></worldbody>'
        '<keyframe><key time="1"/><key time="1"/></keyframe></mujoco>'
    )
    collide.ok("run still.xml -o still.h5 --device cpu")
    collide.refused("export still.h5 --to usd", told="frames 0 and 1 are both at 1 s")
    collide.ok("export still.h5 --to usd --frames 0")
    stage = Usd.Stage.Open(str(here / "still.usd"))
    assert (UsdGeom.GetStageMetersPerUnit(stage), UsdGeom.GetStageUpAxis(stage)) == (1.0, "Z")
    assert list(stage.GetRootLayer().subLayerPaths) == []


def test_a_layer_that_memory_would_not_hold_is_refused(folder, collide, monkeypatch):
    monkeypatch.setattr("collidecli.exporters.usd_layer.CONTACT_BYTES", 1 << 60)
    words = ("--to", "usd", "-o", "a.usd", "--scene", folder / "scene" / "ball.usda")
    collide.refused("export", folder / "out.h5", *words, told="a layer of 2 contacts needs")


STILL = f"""def Xform "World" {{
    {at(100, 0, 0)}
    def Plane "floor" {COLLIDER} {{
        uniform token axis = "Z"
    }}
    def Cube "box" {BOTH} {{
        double size = 20
        {placed((0, 0, 100), scale=(1, 2, 3))}
    }}
}}
"""


def recorded_poses() -> np.ndarray:
    """float64[frames, 1, 1, 7]: the box turns about x by a quarter and sinks."""
    poses = np.zeros((3, 1, 1, 7))
    poses[:, 0, 0, :3] = [(0.5, 0.1, 0.4), (0.6, 0.2, 0.25), (0.7, 0.3, 0.18)]
    angle = np.array([0.0, np.pi / 4, np.pi / 2])
    poses[:, 0, 0, 3], poses[:, 0, 0, 6] = np.sin(angle / 2), np.cos(angle / 2)
    return poses


def test_bodies_move_as_recorded(collide):
    write_usda(Path(), STILL, 'metersPerUnit = 0.01\nupAxis = "Z"', "still.usda")
    poses = recorded_poses()
    write_poses("motion.h5", poses, ["/World/box"], 1.0 / 24.0)
    collide.ok("run still.usda -t motion.h5 -o out.h5 --device cpu -q")
    export = "export out.h5 --to usd --scene still.usda --force -o layer.usda"
    assert "left out" not in collide.ok(export).out
    cache = UsdGeom.XformCache()
    stage = Usd.Stage.Open("layer.usda")
    corner = np.array([10.0, 10.0, 10.0])
    for code, pose in enumerate(poses[:, 0, 0]):
        cache.SetTime(code)
        moved = cache.GetLocalToWorldTransform(stage.GetPrimAtPath("/World/box")).Transform(
            Gf.Vec3d(*corner)
        )
        turned = Rotation.from_quat(pose[3:]).apply(corner * [1.0, 2.0, 3.0])
        np.testing.assert_allclose(moved, pose[:3] * 100.0 + turned, atol=1e-4)
    Path("motion.h5").rename("gone.dat")
    assert "give the recording of the run with -t" in " ".join(collide.ok(export).out.split())
    collide.ok(export, "-t", "gone.dat")
    assert "box" in Path("layer.usda").read_text()
    collide.refused("export out.h5 --to csv -t gone.dat")


@pytest.fixture
def parts(here, ran):
    """a.h5: frames 0 to 7; b.h5: the others; whole.h5: all."""
    for name, frames in (("whole", ":"), ("a", ":8"), ("b", "8:")):
        ran(f"{name}.h5", "--gap", "1", "--frames", frames)
    return here


def test_a_split_run_is_one_run_again(parts, collide):
    result = collide.result("merge b.h5 a.h5 -o ab.h5")
    assert result["content_sha256"] == sha(parts / "ab.h5") == sha(parts / "whole.h5")
    assert (result["schema"], result["frames"], result["contacts"]) == ("collide.merge/1", 20, 20)
    collide.ok("check ab.h5")
    collide.refused("merge b.h5 a.h5 -o ab.h5", code=3)


def test_sets_of_both_formats_are_merged_to_the_one_asked_for(parts, ran, collide):
    for name, frames in (("whole2", ":"), ("a2", ":8")):
        ran(f"{name}.h5", "--gap", "1", "--frames", frames, "--format", "2")
    collide.refused("merge a2.h5 b.h5 -o mixed.h5")
    for version, whole in (("1", "whole"), ("2", "whole2")):
        collide.ok("merge a2.h5 b.h5 -o", f"mixed{version}.h5", "--format", version)
        assert sha(parts / f"mixed{version}.h5") == sha(parts / f"{whole}.h5")
        collide.ok("check", f"mixed{version}.h5")
    assert sha(parts / "whole.h5") != sha(parts / "whole2.h5")
    collide.ok("diff whole.h5 whole2.h5")
    collide.ok("diff mixed2.h5 whole.h5")


def test_contacts_that_were_followed_have_no_union(ran, collide):
    """The second part cannot know which id a contact that goes on had in the first."""
    for name, frames in (("a.h5", ":8"), ("b.h5", "8:")):
        ran(name, "--gap", "1", "--contact-ids", "--frames", frames)
    collide.refused("merge a.h5 b.h5 -o ab.h5", told="a.h5: /rigid_contacts/contact_id")


def test_worlds_of_a_split_recording(here, collide):
    """Three worlds of one motion, of which two and one are recorded apart."""
    poses = np.repeat(arrays("motion.h5")["body_q"], 3, axis=1)
    poses[:, 1, :, 0] += 0.05
    poses[:, 2, :, 2] -= 0.02
    for name, worlds in (("a", slice(0, 2)), ("b", slice(2, 3)), ("whole", slice(0, 3))):
        write_poses(f"{name}.motion.h5", poses[:, worlds], ["ball"])
        collide.ok(f"run scene.xml --gap 1 -t {name}.motion.h5 -o {name}.h5")
    # worlds are in the order of the files
    for order, is_whole in (("a.h5 b.h5", True), ("b.h5 a.h5", False)):
        collide.ok(f"merge {order} --worlds -o m.h5 --force")
        assert (sha(here / "m.h5") == sha(here / "whole.h5")) == is_whole
    collide.refused("merge a.h5 b.h5 a.h5 --worlds -o no.h5", told="it has worlds of a.h5")
    collide.refused("merge a.h5 b.h5 -o no.h5", told="has 1 worlds, and a.h5 has 2")


@pytest.fixture
def strangers(parts, ran, collide):
    """The parts, and sets that differ from them in one thing."""
    (parts / "scene2.xml").write_text((parts / "scene.xml").read_text().replace("9 0 0", "8 0 0"))
    ran("gap.h5", "--frames", "8:", "--gap", "0.5")
    ran("columns.h5", "--frames", "8:", "--gap", "1", "--columns", "friction")
    collide.ok("run scene2.xml -t motion.h5 --frames 8: --gap 1 -o scene.h5")


test_what_has_no_union_is_refused_by_name = refusals(
    "merge -o out.h5",
    ("a.h5", "give two contact sets or more"),
    ("", "Missing argument"),
    ("a.h5 whole.h5", ("step 0 is in", "and so are 7 more")),
    ("a.h5 b.h5 --worlds", "differ from those of a.h5 in /time/step"),
    ("a.h5 motion.h5", "not a contact set"),
    ("a.h5 gap.h5", "in the option gap: 0.5 and 1.0"),
    ("a.h5 scene.h5", "scene_sha256: the scenes are different files"),
    ("a.h5 columns.h5", "the option columns"),
    ("a.h5 nowhere.h5", "there is no such file"),
    ("a.h5 b.h5 --compression best", "'best' is not one of"),
    needs="strangers",
)


def edited(change) -> object:
    """A second part of a made-up set, of frames 6 to 11, changed."""
    part = made_up()
    part.step = part.step + 30
    part.time = part.time + 0.06
    change(part)
    return part


def test_sets_that_do_not_fit_are_not_merged(here, collide):
    """Sets made up alike, but for one thing that is named."""
    made_up().write(here / "a.h5")
    cases = {
        "/model/shape/margin": lambda p: p.margin.__setitem__(1, 0.5),
        "/model/shape/path": lambda p: p.path.__setitem__(1, "other"),
        "format versions 1.1 and 1.0": lambda p: setattr(p, "version", (1, 1)),
        "step 40 follows step 40": lambda p: p.step.__setitem__(3, 40),
        "step 30 is earlier than step 25": lambda p: setattr(p, "time", p.time - 0.05),
        "/rigid_contacts/strange": lambda p: p.optional.__setitem__(
            "strange", np.zeros(len(p.cell))
        ),
    }
    for said, change in cases.items():
        edited(change).write(here / "b.h5")
        collide.refused("merge a.h5 b.h5 -o out.h5", told=said)
    edited(lambda _: None).write(here / "b.h5")
    collide.ok("merge a.h5 b.h5 -o out.h5")


def test_a_damaged_part_leaves_nothing(parts, collide):
    damage(parts / "b.h5", "rigid_contacts/normal")
    collide.refused("merge a.h5 b.h5 -o out.h5", told="b.h5: /rigid_contacts/normal")


def test_a_timing_that_no_run_wrote(parts, collide):
    with h5py.File(parts / "b.h5", "r+") as file:
        del file["timing/calls"]
        file["timing/calls"] = 3
    collide.refused("merge a.h5 b.h5 -o out.h5", told="/timing is not as a run writes it")


def test_processor_times_are_merged_where_all_parts_have_them(parts, collide):
    stages = {}
    for name in "ab":
        with h5py.File(parts / f"{name}.h5") as file:
            stages[name] = file["timing/processor_seconds"][()]
    collide.ok("merge a.h5 b.h5 -o all.h5")
    with h5py.File(parts / "all.h5") as file:
        np.testing.assert_allclose(
            file["timing/processor_seconds"][()], stages["a"] + stages["b"], rtol=1e-15
        )
        assert file["timing/calls"].dtype == np.int64
    with h5py.File(parts / "b.h5", "r+") as file:
        del file["timing/processor_seconds"]
    collide.ok("merge a.h5 b.h5 -o some.h5")
    with h5py.File(parts / "some.h5") as file:
        assert set(file["timing"]) == {"stage", "seconds", "calls", "chunk"}
    assert re.search(r"time +processor", collide.ok("inspect all.h5").out)
    assert not re.search(r"time +processor", collide.ok("inspect some.h5").out)


def test_a_usd_scene_beside_the_contact_set_is_found(here, collide):
    (here / "ball.usda").write_text(SCENE)
    collide.ok("run ball.usda -o out.h5 --device cpu -q")
    collide.ok("export out.h5 --to usd -o found.usda -q")
    collide.ok("export out.h5 --to usd -o given.usda --scene ball.usda -q")
    assert Path("found.usda").read_text() == Path("given.usda").read_text()
    Path("ball.usda").unlink()
    collide.refused(
        "export out.h5 --to usd -o none.usda", told="give the scene of the run with --scene"
    )
