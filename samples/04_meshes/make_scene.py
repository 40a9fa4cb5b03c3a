"""Makes meshes.usda: a ring that rolls over waves, a gem and a ball in its way; every pose by
formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

FRAMES = 90
RATE = 30.0
RING = 0.24
TUBE = 0.08
"""Radii of the ring's circle and of its tube [m]."""


def height(x, y):
    """Of the waves at (x, y) [m]."""
    return 0.04 * np.sin(5.0 * x) * np.cos(3.0 * y)


def waves(cells: int = 24) -> tuple[np.ndarray, list[list[int]]]:
    """A square of 2 m, in squares that are not flat: every one is cut in two when it is loaded."""
    along = np.linspace(-1.0, 1.0, cells + 1)
    x, y = np.meshgrid(along, along, indexing="ij")
    corner = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)
    first = corner[:-1]
    second = corner[1:]
    squares = np.stack([first[:, :-1], second[:, :-1], second[:, 1:], first[:, 1:]], axis=-1)
    points = np.stack([x, y, height(x, y)], axis=-1).reshape(-1, 3)
    # Triangles, as squares that are bent have no one surface.
    return points, [
        t for a, b, c, d in squares.reshape(-1, 4).tolist() for t in ([a, b, c], [a, c, d])
    ]


def ring(around: int = 28, across: int = 12) -> tuple[np.ndarray, list[list[int]]]:
    """A torus about the y axis, which stands as a wheel does."""
    u = np.arange(around) * 2.0 * np.pi / around
    v = np.arange(across) * 2.0 * np.pi / across
    reach = np.broadcast_to(RING + TUBE * np.cos(v), (around, across))
    sideways = np.broadcast_to(TUBE * np.sin(v), (around, across))
    points = np.stack([reach * np.sin(u)[:, None], sideways, reach * np.cos(u)[:, None]], axis=-1)
    corner = np.arange(around * across).reshape(around, across)
    on = np.roll(corner, -1, axis=0)
    over = np.roll(corner, -1, axis=1)
    faces = np.stack([corner, on, np.roll(on, -1, axis=1), over], axis=-1).reshape(-1, 4)
    return points.reshape(-1, 3), faces.tolist()


def gem() -> np.ndarray:
    """Points whose hull is what collides."""
    low = [(0.12 * np.cos(a), 0.12 * np.sin(a), 0.0) for a in np.arange(7) * 2.0 * np.pi / 7]
    return np.array([*low, (0.0, 0.0, 0.16), (0.0, 0.0, -0.05)])


def collider(
    stage: Usd.Stage, path: str, points: np.ndarray, faces: list[list[int]], approximation: str
) -> UsdGeom.Mesh:
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([Gf.Vec3f(*(round(float(c), 5) for c in p)) for p in points])
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([index for face in faces for index in face])
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(approximation)
    return mesh


def main() -> None:
    path = Path(__file__).with_name("meshes.usda")
    path.unlink(missing_ok=True)
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(FRAMES - 1)
    stage.SetTimeCodesPerSecond(RATE)
    collider(stage, "/World/waves", *waves(), "none")
    points = gem()
    stone = collider(
        stage,
        "/World/gem",
        points,
        [f for k in range(7) for f in ([k, (k + 1) % 7, 7], [(k + 1) % 7, k, 8])],
        "convexHull",
    )
    UsdPhysics.RigidBodyAPI.Apply(stone.GetPrim())
    UsdGeom.Xformable(stone).AddTranslateOp().Set(
        Gf.Vec3d(0.55, 0.1, float(height(0.55, 0.1)) + 0.04)
    )
    wheel = collider(stage, "/World/ring", *ring(), "none")
    UsdPhysics.RigidBodyAPI.Apply(wheel.GetPrim())
    place = UsdGeom.Xformable(wheel).AddTranslateOp()
    turn = UsdGeom.Xformable(wheel).AddRotateYOp()
    ball = UsdGeom.Sphere.Define(stage, "/World/ball")
    ball.CreateRadiusAttr(0.1)
    UsdPhysics.CollisionAPI.Apply(ball.GetPrim())
    UsdPhysics.RigidBodyAPI.Apply(ball.GetPrim())
    ball_place = UsdGeom.Xformable(ball).AddTranslateOp()
    for frame in range(FRAMES):
        x = -0.7 + 1.2 * frame / (FRAMES - 1)
        place.Set(Gf.Vec3d(x, 0.0, float(height(x, 0.0)) + RING + TUBE - 0.002), frame)
        turn.Set(float(np.degrees((x + 0.7) / (RING + TUBE))), frame)
        ball_place.Set(
            Gf.Vec3d(x, 0.0, float(height(x, 0.0)) + RING + TUBE + 0.08 * np.sin(0.2 * frame)),
            frame,
        )
    stage.Save()


if __name__ == "__main__":
    main()
