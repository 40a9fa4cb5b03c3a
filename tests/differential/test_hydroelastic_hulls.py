"""Surfaces of hulls against the volumes of polyhedra: exact, by another algorithm and another library."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

from collidecli.scene.builder import ModelBuilder
from tests.support.hydroelastic import RIGID, rotated, surface
from tests.unit.engine.hydroelastic.test_polytopes import hull_pair


def face_planes(builder: ModelBuilder) -> list[np.ndarray]:
    """float64[faces, 4] of both hulls: unit normal and offset; normal . x + offset is the distance from a face."""
    model = builder.finalize()
    found = []
    for row in range(2):
        hull, pose = model.hulls[model.shapes.hull[row]], model.bodies.pose[model.shapes.body[row]]
        shift = rotated(pose[3:], model.shapes.pose[row, :3]) + pose[:3]
        normal = rotated(pose[3:], hull.face_normal)
        height = [(hull.vertex[list(f)] @ n).max() for f, n in zip(hull.face, hull.face_normal, strict=True)]
        found.append(np.column_stack([normal, -(np.array(height) + normal @ shift)]))
    return found


def volume_and_moment(half_spaces: np.ndarray) -> tuple[float, np.ndarray]:
    """Integrals of 1 and of the position over the points with normal . x + offset <= 0 for all rows."""
    rows = half_spaces / np.linalg.norm(half_spaces[:, :3], axis=1)[:, None]
    widest = linprog(
        [0, 0, 0, -1],
        A_ub=np.column_stack([rows[:, :3], np.ones(len(rows))]),
        b_ub=-rows[:, 3],
        bounds=[(None, None)] * 3 + [(0, None)],
    )
    if widest.status != 0 or widest.x[3] < 1e-7:
        return 0.0, np.zeros(3)
    hull = ConvexHull(HalfspaceIntersection(rows, widest.x[:3]).intersections)
    corner = hull.points[hull.simplices] - widest.x[:3]
    volume = np.abs(np.linalg.det(corner)) / 6.0
    middle = corner.sum(axis=1) / 4.0 + widest.x[:3]
    return volume.sum(), volume @ middle


def wrench(builder: ModelBuilder, k0: float, k1: float) -> tuple[np.ndarray, np.ndarray]:
    """Force on shape 1 and its moment about the origin, by the divergence theorem.

    The integral of p n over the surface is that of -grad p0 over the part of the overlap where p0 < p1, which is a
    convex polyhedron for each face of shape 0.
    """
    first, second = face_planes(builder)
    weight0, weight1 = (k0 / (k0 + k1), k1 / (k0 + k1)) if np.isfinite(k1) else (0.0, 1.0)
    force, moment = np.zeros(3), np.zeros(3)
    for number, plane in enumerate(first):
        rows = [plane[None], np.delete(first, number, axis=0) - plane, weight1 * second - weight0 * plane]
        volume, position = volume_and_moment(np.concatenate(rows))
        force += k0 * volume * plane[:3]
        moment += k0 * np.cross(position, plane[:3])
    return force, moment


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k1", [1e6, 4e6, 1e12, RIGID])
def test_hulls_against_volumes(seed, k1):
    builder = hull_pair(seed, 1e6, k1)
    found = surface(builder)
    force, moment = wrench(builder, 1e6, k1)
    scale = np.linalg.norm(force)
    assert scale > 1e3
    np.testing.assert_allclose(found.force, force, atol=1e-9 * scale)
    np.testing.assert_allclose(found.torque + np.cross(found.center, found.force), moment, atol=1e-9 * scale)
