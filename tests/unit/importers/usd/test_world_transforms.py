"""Transforms of many prims at once, against pxr's own matrices one by one."""

# pyright: reportAttributeAccessIssue=false
import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.motion import is_animated
from collidecli.importers.usd.scene import add_usd
from collidecli.importers.usd.transforms import AXIS_ORDER, PrimTransforms, WorldTransforms
from collidecli.scene.builder import ModelBuilder

ROUNDED = 1e-12
"""Products of a dozen float64 numbers near one."""


def test_scale_and_rotation_give_the_matrix_back_and_have_no_reflection():
    rng = np.random.default_rng(3)
    stage = Usd.Stage.CreateInMemory()
    prims = {}
    for place in range(12):
        xform = UsdGeom.Xform.Define(stage, f"/x{place}")
        turn = Gf.Rotation(Gf.Vec3d(*rng.normal(size=3)), 360.0 * rng.random())
        scale = Gf.Vec3d(*(rng.uniform(0.5, 2.0, 3) * rng.choice([-1.0, 1.0], 3)))
        xform.AddTransformOp().Set(Gf.Matrix4d().SetScale(scale) * Gf.Matrix4d(turn, Gf.Vec3d(*rng.normal(size=3))))
        prims[f"/x{place}"] = xform.GetPrim()
    cache = UsdGeom.XformCache()
    transforms = WorldTransforms(PrimTransforms(Usd.TimeCode.Default()), prims)
    for axis, order in AXIS_ORDER.items():
        reordered = transforms.reordered(axis)
        for path, prim in prims.items():
            row = transforms.row(path)
            matrix = np.array(cache.GetLocalToWorldTransform(prim))
            rotation, columns = reordered.rotation[row], matrix[:3, :3].T[:, order]
            np.testing.assert_array_equal(transforms.position[row], matrix[3, :3])
            assert np.linalg.det(rotation) == pytest.approx(1.0, abs=ROUNDED)
            np.testing.assert_allclose(reordered.scale[row], np.linalg.norm(columns, axis=0), rtol=ROUNDED)
            np.testing.assert_allclose(np.abs(rotation * reordered.scale[row]), np.abs(columns), atol=ROUNDED)
            # The first and the last axis keep their directions, or both turn round; the middle one may be mirrored.
            signs = np.sign((rotation * columns).sum(axis=0))
            assert signs[0] == signs[2]


def _spheres(count: int) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    for place in range(count):
        sphere = UsdGeom.Sphere.Define(stage, f"/group/s{place}")
        UsdPhysics.CollisionAPI.Apply(sphere.GetPrim())
        sphere.AddTransformOp().Set(Gf.Matrix4d().SetTranslate(Gf.Vec3d(3.0 * place, 0.0, 0.0)))
    return stage


def test_the_first_prim_that_shears_is_named(tmp_path):
    stage = _spheres(5)
    for place in (2, 4):
        sheared = Gf.Matrix4d(1.0)
        sheared[0, 1] = 0.5
        stage.GetAttributeAtPath(f"/group/s{place}.xformOp:transform").Set(sheared)
    stage.Export(str(tmp_path / "sheared.usda"))
    with pytest.raises(InputError, match="shear") as error:
        add_usd(ModelBuilder(), tmp_path / "sheared.usda")
    assert "</group/s2>" in str(error.value)


def test_what_is_known_of_prims_above_says_the_same_of_those_below():
    stage = _spheres(4)
    turn = UsdGeom.Xform.Define(stage, "/group").AddRotateZOp()
    turn.Set(0.0, 0.0)
    turn.Set(90.0, 1.0)
    UsdGeom.Xformable(stage.GetPrimAtPath("/group/s3")).SetResetXformStack(True)
    known: dict[str, bool] = {}
    for place in (0, 3, 1, 2, 3):
        prim = stage.GetPrimAtPath(f"/group/s{place}")
        assert is_animated(prim, known) == is_animated(prim) == (place != 3)
    assert known["/group"]
