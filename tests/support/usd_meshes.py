"""Meshes written out as USD text, and where pxr itself puts their points in the world."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

from collidecli.scene.model import Model
from tests.support.hull_oracle import low_and_high

CUBE_POINTS = np.array(list(product([-1.0, 1.0], repeat=3)))
CUBE_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
APIS = '(prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])'
BODY_APIS = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])'


def placed(translate=(0, 0, 0), rotate=(0, 0, 0), scale=(1, 1, 1)) -> str:
    """A prim's own transform; the rotation in degrees."""
    return (
        f"double3 xformOp:translate = {translate}\ndouble3 xformOp:rotateXYZ = {rotate}\n"
        f"double3 xformOp:scale = {scale}\n"
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]\n'
    )


TURNED = placed((1, -2, 3), (10, 20, 30), (0.5, 2, 3))
MIRRORED = placed((1, -2, 3), (10, 20, 30), (1, -2, 3))
SHEARED = placed((3, 2, 1), (40, -70, 20), (0.2, 1, 3))


def mesh(name, points=CUBE_POINTS, faces=CUBE_FACES, approximation="convexHull", inside="", apis=APIS) -> str:
    """A mesh collider; without `faces` each three points are one."""
    points = np.asarray(points)
    if faces is None:
        faces = [(k, (k + 1) % len(points), (k + 2) % len(points)) for k in range(len(points))]
    written = ", ".join("(" + ", ".join(repr(float(x)) for x in p) + ")" for p in points)
    indices = ", ".join(str(k) for face in faces for k in face)
    text = f'def Mesh "{name}" {apis} {{\npoint3f[] points = [{written}]\n'
    text += f"int[] faceVertexCounts = [{', '.join(str(len(face)) for face in faces)}]\n"
    text += f"int[] faceVertexIndices = [{indices}]\n"
    text += f'uniform token physics:approximation = "{approximation}"\n' if approximation else ""
    return f"{text}{inside}\n}}\n"


def points_in_world(file: str | Path, path: str) -> np.ndarray:
    """float64[n, 3] [stage units]: the points of a mesh by its own world matrix, of the first time sample."""
    stage = Usd.Stage.Open(str(file))
    prim = stage.GetPrimAtPath(path)
    point = np.array(UsdGeom.Mesh(prim).GetPointsAttr().Get(), np.float64)
    matrix = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.EarliestTime()))
    return point @ matrix[:3, :3] + matrix[3, :3]


def check_supports(model: Model, path: str, points: np.ndarray, share: float = 1e-9) -> None:
    """The shape reaches as far as points [n, 3] in the world [m], in 1000 directions, to a share of their size."""
    direction = np.random.default_rng(0).normal(size=(1000, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    low, high = low_and_high(model, model.bodies.pose, model.shapes.path.index(path), direction)
    heights = direction @ points.T
    size = np.ptp(points, axis=0).max()
    np.testing.assert_allclose(low, heights.min(axis=1), atol=share * size, rtol=0)
    np.testing.assert_allclose(high, heights.max(axis=1), atol=share * size, rtol=0)
