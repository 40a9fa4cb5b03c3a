"""Every type of shape under scales and reflections, against the points of USD's own surfaces."""

import numpy as np
import pytest
from pxr import UsdGeom
from scipy.spatial.transform import Rotation

from tests.support.usd_scenes import BODY, COLLIDER, load

SCALES = [(1, 1, 1), (2, 2, 2), (-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1), (-2, 2, -2), (-1.5, -1.5, 1.5)]
SHAPES = {
    "Sphere": "double radius = 0.5",
    "Cube": "double size = 0.8",
    "Capsule": "double radius = 0.3\ndouble height = 0.9",
    "Cylinder": "double radius = 0.3\ndouble height = 0.9",
    "Cone": "double radius = 0.3\ndouble height = 0.9",
}


def scaled(scale, more=""):
    order = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]'
    return (
        f"double3 xformOp:translate = (0.5, 0.25, 1)\nfloat3 xformOp:rotateXYZ = (25, -40, 65)\n"
        f"float3 xformOp:scale = {scale}\n{order}\n{more}"
    )


@pytest.mark.share(3)
@pytest.mark.parametrize("axis", ["X", "Y", "Z"])
@pytest.mark.parametrize("where", ["shape", "body", "above"])
@pytest.mark.parametrize("kind", list(SHAPES))
def test_scales_against_support_points_of_usd(tmp_path, kind, where, axis):
    """Each type under each reflection, on the collider, its body or above: the points of its surface stand where USD
    puts them, so the extreme of our shape in any direction is the extreme of USD's.
    """
    rng, points = np.random.default_rng(1), _surface(kind, axis)
    for scale in SCALES:
        inside = SHAPES[kind] + ("" if kind in ("Sphere", "Cube") else f'\nuniform token axis = "{axis}"')
        on = {name: scaled(scale if name == where else (1, 1, 1)) for name in ("shape", "body", "above")}
        prim = f'def {kind} "s" {COLLIDER} {{\n{inside}\n{on["shape"]}}}\n'
        scene, model = load(
            tmp_path, f'def Xform "u" {{\n{on["above"]}def Xform "b" {BODY} {{\n{on["body"]}{prim}}}\n}}\n'
        )
        matrix = np.array(UsdGeom.Xformable(scene.stage.GetPrimAtPath("/u/b/s")).ComputeLocalToWorldTransform(0))
        directions = rng.normal(size=(8, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        extremes = (points @ (matrix[:3, :3] @ directions.T)).max(axis=0) + directions @ matrix[3, :3]
        for direction, extreme in zip(directions, extremes, strict=True):
            ours = _support(model, direction)
            # The cloud of points is inscribed: 4e-4 of a shape of size 2.
            assert -1e-9 <= ours - extreme <= 1e-3, (scale, direction)


def _surface(kind, axis):
    """float64[n, 3]: a dense cloud on a prim's surface in its own frame, written from USD's schemas."""
    turn = np.linspace(0, 2 * np.pi, 721)
    rise = np.linspace(-np.pi / 2, np.pi / 2, 361)
    circle = np.stack([np.cos(turn), np.sin(turn), 0 * turn], -1)
    ball = np.concatenate([circle * np.cos(r) + [0, 0, np.sin(r)] for r in rise])
    if kind == "Sphere":
        return 0.5 * ball
    if kind == "Cube":
        return 0.4 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    up = np.array([0, 0, 0.45])
    points = {
        "Capsule": lambda: np.concatenate([0.3 * ball + up, 0.3 * ball - up]),
        "Cylinder": lambda: np.concatenate([0.3 * circle + up, 0.3 * circle - up]),
        "Cone": lambda: np.concatenate([0.3 * circle - up, [up]]),
    }[kind]()
    return points[:, {"X": [2, 0, 1], "Y": [1, 2, 0], "Z": [0, 1, 2]}[axis]]


def _support(model, direction):
    """The extreme of the model's one shape along a world direction, in closed form."""
    position, turn = np.zeros(3), Rotation.identity()
    for pose in (np.array(model.bodies.pose[0]), np.array(model.shapes.pose[0])):
        position, turn = position + turn.apply(pose[:3]), turn * Rotation.from_quat(pose[3:])
    x, y, z = turn.inv().apply(direction)
    a, b, c = (float(s) for s in model.shapes.size[0])
    across = np.hypot(x, y)
    local = {
        "sphere": lambda: a,
        "box": lambda: abs(x) * a + abs(y) * b + abs(z) * c,
        "capsule": lambda: a + abs(z) * b,
        "cylinder": lambda: across * a + abs(z) * b,
        "cone": lambda: max(across * a - z * b, z * b),
    }[model.shapes.types()[0].label]()
    return float(position @ direction + local)
