"""Where pxr itself puts the prims of a USD stage, to hold models against."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom, Vt
from scipy.spatial.transform import Rotation

from collidecli.commands.python_api import Contacts, collide
from collidecli.scene.model import Model

CORNERS = np.array([[x, y, z, 1.0] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])


def world_corners(model: Model, path: str, body_pose: np.ndarray | None = None) -> np.ndarray:
    """float64[8, 3]: the corners of a box shape in the world; of the bodies at rest, or at `body_pose` [B, 7]."""
    row = model.shapes.path.index(path)
    points = CORNERS[:, :3] * model.shapes.size[row]
    for pose in (model.shapes.pose[row], *_body_pose(model, row, body_pose)):
        points = np.asarray(pose)[:3] + Rotation.from_quat(np.asarray(pose)[3:]).apply(points)
    return points


def check_corners(ours: np.ndarray, matrix, half: float = 1.0, atol: float = 1e-6) -> None:
    """A box of half extent `half` under a USD matrix has these corners, in any order.

    atol: float32 holds the rotations and scales of files to 1e-7 of themselves.
    """
    theirs = ((CORNERS * [half, half, half, 1.0]) @ np.array(matrix))[:, :3]
    distance = np.linalg.norm(ours[:, None] - theirs, axis=-1)
    assert sorted(np.argmin(distance, axis=1)) == list(range(8))
    assert np.all(distance.min(axis=1) <= atol), distance.min(axis=1)


def instance_matrices(path: Path, instancer: str, time: float) -> list[np.ndarray]:
    """float64[4, 4] of each instance in the world, its prototype's own transform included, by pxr alone."""
    stage = Usd.Stage.Open(str(path))
    schema = UsdGeom.PointInstancer(stage.GetPrimAtPath(instancer))
    _normalize(schema)
    local = schema.ComputeInstanceTransformsAtTime(
        time, time, UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
    )
    to_world = np.array(schema.ComputeLocalToWorldTransform(time))
    return [np.array(matrix) @ to_world for matrix in local]


def _normalize(schema: UsdGeom.PointInstancer) -> None:
    """Makes quaternions unit: pxr takes those in half precision as they are, a thousandth off a rotation."""
    halves = schema.GetOrientationsAttr()
    if schema.GetOrientationsfAttr().Get(Usd.TimeCode.EarliestTime()):
        return
    for time in halves.GetTimeSamples() or ([Usd.TimeCode.Default()] if halves.HasAuthoredValue() else []):
        unit = [Gf.Quatf(Gf.Quatd(q).GetNormalized()) for q in halves.Get(time)]
        schema.CreateOrientationsfAttr().Set(Vt.QuatfArray(unit), time)


def contacts_of(imported, model: Model) -> Contacts:
    return collide(model, imported.motion(model), device="cpu", threads=1)


def check_same_contacts(ours: tuple, theirs: tuple, atol: float = 1e-6) -> None:
    """Two (import, model), shapes in the same order, have the same contacts, and have some."""
    a, b = contacts_of(*ours), contacts_of(*theirs)
    assert a.rigid_contact_count
    for name in ("cell_start", "shape0", "shape1", "feature0", "feature1", "kind"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("distance", "normal", "point0", "point1"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=atol)


def _body_pose(model: Model, row: int, body_pose: np.ndarray | None) -> list[np.ndarray]:
    body = model.shapes.body[row]
    return [] if body < 0 else [(model.bodies.pose if body_pose is None else body_pose)[body]]
