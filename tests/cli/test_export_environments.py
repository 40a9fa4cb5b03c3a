"""collide export of stages of environments: the motion of all worlds in a USD layer, as usd-core
composes it, and what other formats say that they lack."""

from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom
from scipy.spatial.transform import Rotation

from tests.cli.conftest import CommandLine, write_poses

STAGE = """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "World"
{
    def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        uniform token axis = "Z"
    }
    def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
    {
        double radius = 20
        double3 xformOp:translate = (0, -300, 20)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "envs"
    {
        def Xform "env_0"
        {
            def Xform "arm"
            {
                double xformOp:rotateZ = 30
                uniform token[] xformOpOrder = ["xformOp:rotateZ"]
                def Cube "crate" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
                {
                    double size = 100
                    double3 xformOp:translate = (0, 0, 50)
                    double3 xformOp:scale = (1, 0.5, 1)
                    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
                }
            }
        }
        def Xform "env_1" (prepend inherits = </World/envs/env_0>)
        {
            double3 xformOp:translate = (300, 0, 0)
            double xformOp:rotateZ = 90
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]
        }
        def Xform "env_2" (prepend inherits = </World/envs/env_0>)
        {
            double3 xformOp:translate = (600, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            over "arm"
            {
                over "crate"
                {
                    double size = 120
                }
            }
        }
    }
}
"""
"""Worlds 0 and 1 have one template, world 2 another; env_1 and env_2 inherit what env_0 has."""
CRATES = [f"/World/envs/env_{k}/arm/crate" for k in range(3)]
BALL = "/World/ball"
FRAMES = 4
STEP = np.array([300.0, 0.0, 0.0])
CORNER = np.array([50.0, 50.0, -50.0])


def recorded(worlds: int) -> np.ndarray:
    """Poses float64[frames, worlds, 2, 7] of crate and ball, which differ between the worlds."""
    poses = np.zeros((FRAMES, worlds, 2, 7))
    for world in range(worlds):
        step = np.arange(FRAMES) * (world + 1)
        poses[:, world, 0, 0] = 3.0 * world
        poses[:, world, 0, 1] = 0.1 * step
        poses[:, world, 0, 2] = 0.5 - 0.01 * step
        poses[:, world, 0, 5:] = np.stack([np.sin(0.1 * step), np.cos(0.1 * step)], axis=1)
        poses[:, world, 1, :3] = np.stack(
            [0.02 * step, 0.0 * step - 3.0, 0.19 + 0.0 * step], axis=1
        )
        poses[:, world, 1, 6] = 1.0
    return poses


def corner_at(stage: Usd.Stage, path: str, code: float) -> np.ndarray:
    """A corner of a crate as usd-core places it, in stage units."""
    matrix = UsdGeom.XformCache(code).GetLocalToWorldTransform(stage.GetPrimAtPath(path))
    return np.array(matrix.Transform(Gf.Vec3d(*CORNER)))


def placed_corner(pose: np.ndarray) -> np.ndarray:
    """The corner of a crate at a pose [m], in stage units."""
    return 100.0 * pose[:3] + Rotation.from_quat(pose[3:]).apply(CORNER * [1.0, 0.5, 1.0])


@pytest.fixture
def run(tmp_path, monkeypatch, collide: CommandLine):
    """A function that runs the stage with a recording of so many worlds."""
    monkeypatch.chdir(tmp_path)
    Path("envs.usda").write_text(STAGE)

    def run_with(worlds: int) -> np.ndarray:
        poses = recorded(worlds)
        write_poses("motion.h5", poses, ["arm/crate", BALL], 1.0 / 24.0)
        collide.ok("run envs.usda -t motion.h5 -o out.h5 --device cpu -q")
        return poses

    return run_with


def test_every_environment_moves_as_recorded(run, collide):
    poses = run(3)
    told = collide.ok("export out.h5 --to usd -o layer.usda")
    stage = Usd.Stage.Open("layer.usda")
    for world, path in enumerate(CRATES):
        for frame in range(FRAMES):
            expected = placed_corner(poses[frame, world, 0])
            np.testing.assert_allclose(corner_at(stage, path, frame), expected, atol=1e-9)
    for frame in range(FRAMES):
        ball = UsdGeom.XformCache(frame).GetLocalToWorldTransform(stage.GetPrimAtPath(BALL))
        np.testing.assert_allclose(
            ball.ExtractTranslation(), 100.0 * poses[frame, 0, 1, :3], atol=1e-9
        )
    words = "motion of 1 body of several worlds, in other worlds than 0"
    assert words in " ".join(told.out.split())
    assert words in " ".join(told.err.split())


def test_contacts_are_at_the_crates_of_their_environment(run, collide):
    """In each frame, those of a crate with the ground are the midpoints of its lower corners and
    the plane."""
    poses = run(3)
    collide.ok("export out.h5 --to usd -o layer.usda")
    stage = Usd.Stage.Open("layer.usda")
    for world, path in enumerate(CRATES):
        scope = stage.GetPrimAtPath(f"/collide_contacts/world_{world}")
        assert scope.GetAttribute("collide:environment").Get() == f"/World/envs/env_{world}"
        half = 60.0 if world == 2 else 50.0
        points = UsdGeom.Points(stage.GetPrimAtPath(f"{scope.GetPath()}/points")).GetPointsAttr()
        shape1 = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath(f"{scope.GetPath()}/points"))
        paths = stage.GetPrimAtPath("/collide_contacts").GetAttribute("collide:shapes").Get()
        assert points.GetTimeSamples() == list(range(FRAMES))
        for frame in range(FRAMES):
            matrix = UsdGeom.XformCache(frame).GetLocalToWorldTransform(stage.GetPrimAtPath(path))
            corners = [
                np.array(matrix.Transform(Gf.Vec3d(x, y, -half)))
                for x in (-half, half)
                for y in (-half, half)
            ]
            corners = np.array(corners) * [1.0, 1.0, 0.5]
            other = [paths[n] for n in shape1.GetPrimvar("shape1").Get(frame)]
            found = np.array(points.Get(frame))[[name.endswith("crate") for name in other]]
            assert found.shape == (4, 3)
            order = [np.lexsort(np.round(rows, 3).T) for rows in (found, corners)]
            np.testing.assert_allclose(found[order[0]], corners[order[1]], atol=1e-3)
    assert poses.shape[1] == 3


def test_one_recorded_world_moves_every_environment_from_its_origin(run, collide):
    poses = run(1)
    told = collide.ok("export out.h5 --to usd -o layer.usda")
    assert "left out" not in told.out
    assert told.err == ""
    stage = Usd.Stage.Open("layer.usda")
    turn = Rotation.from_euler("z", 90, degrees=True)
    for frame in range(FRAMES):
        first = placed_corner(poses[frame, 0, 0])
        expected = (first, turn.apply(first) + STEP, first + 2.0 * STEP)
        for path, corner in zip(CRATES, expected, strict=True):
            np.testing.assert_allclose(corner_at(stage, path, frame), corner, atol=1e-9)


def test_environments_that_are_not_chosen_rest(run, collide):
    """Though they inherit from the chosen one, whose prims have samples."""
    poses = run(3)
    told = collide.ok("export out.h5 --to usd -o layer.usda --world 0")
    words = "motion of the bodies in worlds that are not selected: they rest"
    assert words in " ".join(told.err.split())
    stage = Usd.Stage.Open("layer.usda")
    scene = Usd.Stage.Open("envs.usda")
    for frame in range(FRAMES):
        chosen = corner_at(stage, CRATES[0], frame)
        np.testing.assert_allclose(chosen, placed_corner(poses[frame, 0, 0]), atol=1e-9)
        for path in CRATES[1:]:
            resting = corner_at(scene, path, frame)
            np.testing.assert_allclose(corner_at(stage, path, frame), resting, atol=1e-9)


def test_bodies_in_instanced_environments_are_left_out(tmp_path, monkeypatch, collide):
    monkeypatch.chdir(tmp_path)
    text = STAGE.replace(
        'def Xform "env_0"', 'def Xform "env_0" ( instanceable = true\n inherits = </Proto>)'
    )
    text = text.replace(
        "(prepend inherits = </World/envs/env_0>)",
        "( instanceable = true\n prepend inherits = </World/envs/env_0>)",
    )
    inner = text[
        text.index('            def Xform "arm"') : text.index('        def Xform "env_1"')
    ]
    inner = inner.rstrip().removesuffix("}")
    text = text.replace(inner, "")
    text += 'class Xform "Proto"\n{\n' + inner + "}\n"
    Path("envs.usda").write_text(text)
    write_poses("motion.h5", recorded(3)[:, :, :1], ["arm/crate"], 1.0 / 24.0)
    collide.ok("run envs.usda -t motion.h5 -o out.h5 --device cpu -q")
    told = collide.ok("export out.h5 --to usd -o layer.usda")
    assert "motion of 2 bodies in instances" in " ".join(told.err.split())


@pytest.mark.parametrize("to", ["csv", "npz", "newton"])
def test_a_table_says_that_paths_do_not_name_the_environment(run, collide, to):
    """World 1 has the paths of world 0, whose template it shares; before anything is written."""
    run(3)
    told = collide.ok("export out.h5 --to", to, "-o", "out.csv" if to == "csv" else "out.npz")
    words = "environment of 1 world: paths are those of an equal world, as /World/envs/env_0"
    assert f"warning: {to} lacks the {words}" in " ".join(told.err.split())
    assert words in " ".join(told.out.split())
    alone = collide.ok("export out.h5 --force --world 0,2 --to", to)
    assert alone.err == ""
