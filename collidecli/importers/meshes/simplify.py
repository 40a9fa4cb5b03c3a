"""A triangle mesh with fewer triangles, and how far that moves its surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.meshes.extra import library
from collidecli.scene.surface_distance import surface_distance
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh


@dataclass(frozen=True)
class Simplified:
    """mesh: in the frame of the original's points. deviation: between the two surfaces [m], see `simplified`."""

    mesh: TriangleMesh
    deviation: float


def simplified(mesh: TriangleMesh, share: float, where: str) -> Simplified:
    """A mesh with about `share` of its triangles, at least one.

    The deviation is the largest distance of a corner, a side's middle or a triangle's middle of either mesh from the
    other's surface. A mesh that has as few triangles already is itself.
    Raises InputError, naming `where`, where the library is not installed or leaves nothing.
    Source: Garland, Heckbert 1997 (quadric error metrics), as fast-simplification has them: the same triangles in
    every run.
    """
    target = max(1, round(share * len(mesh.face)))
    if target >= len(mesh.face):
        return Simplified(mesh, 0.0)
    fast = library("fast_simplification", "fast-simplification", "the approximation meshSimplification", where)
    size = float(mesh.half_extents.max())
    vertex, face = fast.simplify(mesh.vertex / size, mesh.face, target_count=target)
    if not len(face):
        raise InputError("simplification leaves no triangle of the mesh", where, "keep more of it, or its hull")
    made = triangle_mesh(vertex * size + mesh.center, np.asarray(face, np.int64), where)
    ours, theirs = (each.vertex[each.face] + each.center for each in (mesh, made))
    there = surface_distance(_samples(ours), theirs).max()
    back = surface_distance(_samples(theirs), ours).max()
    return Simplified(made, float(max(there, back)))


def _samples(corners: np.ndarray) -> np.ndarray:
    """Corners, middles of sides and middles of triangles [t, 3, 3]."""
    sides = 0.5 * (corners + np.roll(corners, -1, axis=1))
    return np.unique(np.concatenate([corners, sides, corners.mean(axis=1)[:, None]], axis=1).reshape(-1, 3), axis=0)
