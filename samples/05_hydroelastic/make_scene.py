"""Makes gripper.usda: two soft pads close on a rubber ball, and a soft block sinks into the rigid
table."""

from __future__ import annotations

from pathlib import Path

from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

FRAMES = 60
RATE = 30.0
RADIUS = 0.03
PAD = 0.02
BLOCK = 0.04
"""Of the ball; half of a pad's thickness; side of the block [m]."""
SQUEEZE = 0.004
SINK = 0.002
"""Depth of each pad in the ball, and of the block in the table, at the end [m]."""
BALL_STIFFNESS = 2.0e7
PAD_STIFFNESS = 6.0e7
BLOCK_STIFFNESS = 1.0e8
HEIGHT = 0.06


def collider(prim: Usd.Prim, stiffness: float, moves: bool) -> None:
    """Marks a prim as a hydroelastic collider; an infinite stiffness marks it as rigid [N/m^3]."""
    UsdPhysics.CollisionAPI.Apply(prim)
    if moves:
        UsdPhysics.RigidBodyAPI.Apply(prim)
    prim.CreateAttribute("newton:hydroelasticEnabled", Sdf.ValueTypeNames.Bool).Set(True)
    prim.CreateAttribute("newton:hydroelasticStiffness", Sdf.ValueTypeNames.Float).Set(stiffness)


def cube(
    stage: Usd.Stage, path: str, half: tuple[float, float, float]
) -> tuple[Usd.Prim, UsdGeom.XformOp]:
    shape = UsdGeom.Cube.Define(stage, path)
    shape.CreateSizeAttr(2.0)
    place = shape.AddTranslateOp()
    shape.AddScaleOp().Set(Gf.Vec3f(*half))
    return shape.GetPrim(), place


def main() -> None:
    path = Path(__file__).with_name("gripper.usda")
    path.unlink(missing_ok=True)
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(FRAMES - 1)
    stage.SetTimeCodesPerSecond(RATE)
    table = UsdGeom.Plane.Define(stage, "/World/table")
    table.CreateAxisAttr("Z")
    collider(table.GetPrim(), float("inf"), False)
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    ball.CreateRadiusAttr(RADIUS)
    ball.AddTranslateOp().Set(Gf.Vec3d(0.0, 0.0, HEIGHT))
    collider(ball.GetPrim(), BALL_STIFFNESS, True)
    pads = [cube(stage, f"/World/{name}_pad", (PAD, 0.03, 0.03)) for name in ("left", "right")]
    block, block_place = cube(stage, "/World/block", (BLOCK / 2, BLOCK / 2, BLOCK / 2))
    collider(block, BLOCK_STIFFNESS, True)
    for pad, _ in pads:
        collider(pad, PAD_STIFFNESS, True)
    for frame in range(FRAMES):
        part = frame / (FRAMES - 1)
        away = RADIUS + PAD + 0.01 - (0.01 + SQUEEZE) * part
        for side, (_, place) in zip((-1.0, 1.0), pads, strict=True):
            place.Set(Gf.Vec3d(side * away, 0.0, HEIGHT), frame)
        block_place.Set(Gf.Vec3d(0.15, 0.0, BLOCK / 2 + 0.002 - (0.002 + SINK) * part), frame)
    stage.Save()


if __name__ == "__main__":
    main()
