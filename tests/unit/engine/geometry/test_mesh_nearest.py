"""Closest points of single triangles, against points of each feature's region that are known by construction."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry.meshes import EDGE_PART, FACE_PART, nearest_triangle_point
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.kernel import kernel

COUNT = 40


@kernel
def _nearest(
    triangle: wp.array2d[Vec3],
    point: wp.array[Vec3],
    found: wp.array[Vec3],
    part: wp.array[int],
    square: wp.array[float],
):
    thread = wp.tid()
    p = triangle[thread, 0]
    q = triangle[thread, 1]
    r = triangle[thread, 2]
    nearest = nearest_triangle_point(p, q, r, wp.normalize(wp.cross(q - p, r - p)), point[thread])
    found[thread] = nearest.point
    part[thread] = nearest.part
    square[thread] = float(nearest.square)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_points_over_every_feature(size):
    """A foot inside a corner, side or face, and a point along a direction of that feature's normal cone."""
    rng = np.random.default_rng(6)
    triangle, point, foot, part = [], [], [], []
    for _ in range(COUNT):
        corners = rng.normal(size=(3, 3)) * size
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        normal /= np.linalg.norm(normal)
        outward = [np.cross(corners[(k + 1) % 3] - corners[k], normal) for k in range(3)]
        outward = [way / np.linalg.norm(way) for way in outward]
        t, u, up = rng.uniform(0.1, 0.9), rng.uniform(0.1, 1.0, 2), size * rng.uniform(-1.0, 1.0) * normal
        weights = rng.dirichlet((2.0, 2.0, 2.0))
        for k in range(3):
            # Between the perpendiculars of its two sides, and perpendicular to one.
            feet = [corners[k], corners[k] + t * (corners[(k + 1) % 3] - corners[k])]
            ways = [u[0] * outward[k - 1] + u[1] * outward[k], u[0] * outward[k]]
            triangle += 2 * [corners]
            point += [at + size * way + up for at, way in zip(feet, ways, strict=True)]
            foot += feet
            part += [k, int(EDGE_PART) + k]
        triangle.append(corners)
        foot.append(weights @ corners)
        point.append(foot[-1] + up)
        part.append(int(FACE_PART))
    device, count = find_device("cpu"), len(point)
    found = wp.zeros(count, dtype=Vec3, device=device)
    parts, square = wp.zeros(count, dtype=int, device=device), wp.zeros(count, dtype=float, device=device)
    arguments = [wp.array(np.array(values), dtype=Vec3, device=device) for values in (triangle, point)]
    wp.launch(_nearest, count, [*arguments, found, parts, square], device=device)
    np.testing.assert_array_equal(parts.numpy(), part)
    np.testing.assert_allclose(found.numpy(), foot, atol=1e-11 * size)
    off = np.array(point) - np.array(foot)
    np.testing.assert_allclose(square.numpy(), (off**2).sum(axis=1), rtol=1e-6)
