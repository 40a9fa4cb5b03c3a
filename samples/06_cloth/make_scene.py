"""Makes cloth.usda: a cloth falls on a ball, hangs down and folds over itself; drops fall beside
it. By formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdPhysics, Vt

FRAMES = 25
RATE = 24.0
CELLS = 16
BALL = 0.3
THICK = 0.01
DROP = 0.02
"""Radius of the ball, whose centre is at the origin, of the cloth's particles, and of the drops
[m]."""
GROUND = -0.3
FOLD = 0.375
"""Height of the ground; distance from the middle at which one edge of the cloth is folded [m]."""


def cloth(frame: int) -> np.ndarray:
    """Vertices of the cloth in a frame [m]: it falls flat, then hangs down around the ball while an
    edge turns over."""
    line = np.linspace(-0.5, 0.5, CELLS + 1)
    x, y = (axis.reshape(-1) for axis in np.meshgrid(line, line, indexing="ij"))
    time = frame / (FRAMES - 1)
    later = max(0.0, 2.0 * time - 1.0)
    turned = np.pi * 0.97 * later
    over = np.maximum(-FOLD - x, 0.0)
    x = np.maximum(x, -FOLD) - over * np.cos(turned)
    height = over * np.sin(turned)
    # The middle lies on a sphere up to an angle; the rest goes straight on, in pleats.
    sphere = BALL + 0.9 * THICK
    widest = 0.5 * np.pi * later
    away = np.hypot(x, y)
    around = np.arctan2(y, x)
    angle = np.minimum(away / sphere, widest)
    beyond = away - sphere * angle
    pleat = 1.0 + 0.12 * later * beyond / 0.3 * np.cos(8.0 * around)
    out = ((sphere + height) * np.sin(angle) + beyond * np.cos(angle)) * pleat
    z = (
        (sphere + height) * np.cos(angle)
        - beyond * np.sin(angle)
        + 0.3 * max(0.0, 1.0 - 2.0 * time)
    )
    return np.stack([out * np.cos(around), out * np.sin(around), z], axis=1)


def drops(frame: int) -> np.ndarray:
    """Drops that fall to the ground and stay there [m]."""
    start = np.random.default_rng(6).uniform((-0.4, 0.45, 0.0), (0.4, 0.7, 0.8), (40, 3))
    time = frame / RATE
    start[:, 2] = np.maximum(start[:, 2] - 4.9 * time * time, GROUND + 0.95 * DROP)
    return start


def main() -> None:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(RATE)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(FRAMES - 1)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    ball.CreateRadiusAttr(BALL)
    ground = UsdGeom.Plane.Define(stage, "/World/ground")
    ground.CreateAxisAttr(UsdGeom.Tokens.z)
    ground.AddTranslateOp().Set((0.0, 0.0, GROUND))
    sheet = UsdGeom.Mesh.Define(stage, "/World/cloth")
    corner = np.arange((CELLS + 1) ** 2).reshape(CELLS + 1, CELLS + 1)
    a = corner[:-1, :-1]
    b = corner[1:, :-1]
    c = corner[1:, 1:]
    d = corner[:-1, 1:]
    faces = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1)
    sheet.CreateFaceVertexCountsAttr(Vt.IntArray([3] * (len(faces) // 3)))
    sheet.CreateFaceVertexIndicesAttr(Vt.IntArray(faces.tolist()))
    sheet.GetPrim().CreateAttribute("collide:particleRadius", Sdf.ValueTypeNames.Float).Set(THICK)
    rain = UsdGeom.Points.Define(stage, "/World/drops")
    rain.CreateWidthsAttr([2.0 * DROP])
    for frame in range(FRAMES):
        for prim, points in ((sheet, cloth(frame)), (rain, drops(frame))):
            values = np.round(points, 5).astype(np.float32)
            prim.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(values), frame)
    for prim in (ball, ground, sheet, rain):
        UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
    stage.GetRootLayer().Export(str(Path(__file__).parent / "cloth.usda"))


if __name__ == "__main__":
    main()
