"""Meshes in USD made to be hard: dirty, without substance, vast, or lying about themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SQUARE = "[(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]"
SOLID = "[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]"
SIDES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
APPROXIMATIONS = ("none", "convexHull", "boundingCube", "boundingSphere", "meshSimplification")


def mesh(points: str, faces: tuple[tuple[int, ...], ...] | str, more: str = "", approximation: str = "none") -> str:
    """A collider that is a mesh, and a ball near it."""
    if not isinstance(faces, str):
        counts = ", ".join(str(len(face)) for face in faces)
        indices = ", ".join(str(k) for face in faces for k in face)
        faces = f"int[] faceVertexCounts = [{counts}]\nint[] faceVertexIndices = [{indices}]"
    apis = '["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]'
    ball = (
        'def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]) { double radius = 1 }\n'
    )
    return (
        f'def Mesh "m" (prepend apiSchemas = {apis})\n{{\n point3f[] points = {points}\n{faces}\n'
        f'uniform token physics:approximation = "{approximation}"\n{more}\n}}\n{ball}'
    )


def meshes() -> Iterator[tuple[str, str]]:
    """What it is, and the prims."""
    for approximation in APPROXIMATIONS:
        for what, points, faces, more in _dirty():
            yield f"a mesh as {approximation}: {what}", mesh(points, faces, more, approximation)
    yield "a mesh of no known approximation", mesh(SOLID, SIDES, approximation="x" * 5000)
    spiral = np.array([(r * np.cos(7 * r), r * np.sin(7 * r)) for r in np.linspace(0.5, 9.0, 900)])
    around = np.concatenate([spiral, 0.93 * spiral[::-1]])
    points = ", ".join(f"({x:.6f}, {y:.6f}, 0)" for x, y in around)
    yield "a face of 1800 corners that no fan covers", mesh(f"[{points}]", (tuple(range(1800)),))
    points = ", ".join(f"({np.cos(k):.6f}, {np.sin(k):.6f}, 0)" for k in range(1500))
    yield "a face of 1500 corners that crosses itself", mesh(f"[{points}]", (tuple(range(1500)),))
    yield "one point for 200000 triangles", mesh(SOLID, ((0, 0, 0),) * 200_000)
    yield "one triangle 100000 times", mesh(SOLID, ((0, 1, 2),) * 100_000)
    yield (
        "parts by a number below zero",
        mesh(SOLID, SIDES, "int physxConvexDecompositionCollision:maxConvexHulls = -2147483648", "convexDecomposition"),
    )
    yield "a decomposition of a flat mesh", mesh(SQUARE, ((0, 1, 2, 3),), "", "convexDecomposition")


def _dirty() -> Iterator[tuple[str, str, tuple[tuple[int, ...], ...] | str, str]]:
    yield "flat", SQUARE, ((0, 1, 2, 3),), ""
    yield "a point", "[(0, 0, 0)]", ((0, 0, 0),), ""
    yield "a line", "[(0, 0, 0), (1, 0, 0), (2, 0, 0)]", ((0, 1, 2),), ""
    yield "no points", "[]", ((0, 1, 2),), ""
    yield "no faces", SOLID, "", ""
    yield "faces of no corners", SOLID, "int[] faceVertexCounts = [0, 0]\nint[] faceVertexIndices = []", ""
    yield "faces of one corner and two", SOLID, ((0,), (0, 1), *SIDES), ""
    yield "an edge of three triangles", SOLID, (*SIDES, (0, 1, 2)), ""
    yield "an index too large", SOLID, ((0, 1, 2147483647),), ""
    yield "an index below zero", SOLID, ((0, 1, -2147483648),), ""
    yield "counts below zero", SOLID, "int[] faceVertexCounts = [-3, 6]\nint[] faceVertexIndices = [0, 1, 2]", ""
    yield "counts whose sum is 32 bits off", SOLID, (
        "int[] faceVertexCounts = [2147483647, 2147483647, 5]\nint[] faceVertexIndices = [0, 1, 2]"), ""  # fmt: skip
    yield "points that are not finite", SOLID.replace("1", "nan"), SIDES, ""
    yield "points too far off", SOLID.replace("1", "3e38"), SIDES, ""
    yield "points too near", SOLID.replace("1", "1e-44"), SIDES, ""
    yield "points hardly off a plane", SOLID.replace("0, 1)", "0, 1e-12)"), SIDES, ""
    yield "holes that are no faces", SOLID, SIDES, "int[] holeIndices = [0, 99, -1]"
    yield "all holes", SOLID, SIDES, "int[] holeIndices = [0, 1, 2, 3, 3]"
    yield "an orientation that is none", SOLID, SIDES, 'uniform token orientation = "sideways"'
    yield "a scale of nothing", SOLID, SIDES, (
        'double3 xformOp:scale = (1, 1e-200, -1e200)\nuniform token[] xformOpOrder = ["xformOp:scale"]')  # fmt: skip
