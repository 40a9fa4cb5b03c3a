"""Simplification of a triangle mesh, with the deviation of its surface."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mesh_files import library
from collidecli.scene.surface_distance import surface_distance
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh


def simplified(mesh: TriangleMesh, fraction: float, where: str) -> tuple[TriangleMesh, float]:
    """A mesh with about `fraction` of its triangles, at least one; and the deviation of its surface
    [m].

    The deviation is the largest distance of a vertex, an edge midpoint or a triangle centre of
    either mesh from the other's surface. A mesh with that number of triangles or fewer is returned
    unchanged. Raises InputError at `where`: the library is not installed, or no triangle remains.
    Source: Garland, Heckbert 1997 (quadric error metrics), implemented by fast-simplification; the
    result is deterministic.
    """
    target = max(1, round(fraction * len(mesh.face)))
    if target >= len(mesh.face):
        return mesh, 0.0
    fast = library(
        "fast_simplification", "fast-simplification", "the approximation meshSimplification", where
    )
    size = float(mesh.half_extents.max())
    vertex, face = fast.simplify(mesh.vertex / size, mesh.face, target_count=target)
    if not len(face):
        raise InputError(
            "simplification leaves no triangle of the mesh", where, "keep more of it, or its hull"
        )
    result = triangle_mesh(
        vertex * size + mesh.center, np.asarray(face, np.int64), where, is_solid=mesh.is_solid
    )
    original, reduced = (
        surface.vertex[surface.face] + surface.center for surface in (mesh, result)
    )
    forward = surface_distance(_samples(original), reduced).max()
    backward = surface_distance(_samples(reduced), original).max()
    return result, float(max(forward, backward))


def _samples(corners: np.ndarray) -> np.ndarray:
    """Vertices, edge midpoints and centres of triangles [t, 3, 3]."""
    sides = 0.5 * (corners + np.roll(corners, -1, axis=1))
    return np.unique(
        np.concatenate([corners, sides, corners.mean(axis=1)[:, None]], axis=1).reshape(-1, 3),
        axis=0,
    )
