"""Triangulation of polygons: a fan if that covers the polygon, else ear clipping."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import dot, length, matmul, norm, symmetric_eigen
from collidecli.numerics.trigonometry import atan2
from collidecli.scene.distinct_values import distinct

NEAR = 1e-6
"""Fraction of a polygon's size: distance of collinear corners from their line in a file of float32
coordinates."""
FLAT = 1e-12
"""Fraction of the square of a polygon's size below which a triangle has no area: a mesh would omit
it."""
CORNER_LIMIT = 2000
"""Most corners for ear clipping, whose time is quadratic in their number: some seconds for 2000."""


def triangulated(
    points: np.ndarray, counts: np.ndarray, indices: np.ndarray, where: str
) -> np.ndarray:
    """int64[T, 3]: the triangles of polygons, `count - 2` for each polygon in turn, in its
    orientation.

    points: float64[n, 3]; counts: int[m], corners of each polygon; indices: int[sum of counts], its
    points in order. A polygon of fewer than three corners has none. A fan from the first corner is
    used if its triangles cover the polygon, projected along its area vector; so convex polygons,
    also non-planar ones, have the triangulation of common viewers. Others are triangulated by ear
    clipping, which keeps every edge to a neighbour. Raises InputError, with `where` and the
    polygon, for a self-intersecting polygon and for one of too many corners.
    """
    counts = np.asarray(counts, np.int64)
    indices = np.asarray(indices, np.int64)
    first = np.cumsum(counts) - counts
    triangle_count = np.maximum(counts - 2, 0)
    offset = np.cumsum(triangle_count) - triangle_count
    triangles = np.empty((int(triangle_count.sum()), 3), np.int64)
    for corner_count in distinct(counts[counts > 2]).tolist():
        rows = np.flatnonzero(counts == corner_count)
        corners = indices[first[rows][:, None] + np.arange(corner_count)]
        fan = np.stack(
            [np.zeros(corner_count - 2, np.int64), np.arange(1, corner_count - 1)], axis=1
        )
        cut = corners[:, np.concatenate([fan, fan[:, 1:] + 1], axis=1)]
        if corner_count > 3:
            for row in np.flatnonzero(~_is_covered_by_fan(points[corners])).tolist():
                cut[row] = corners[row][_ears(points[corners[row]], f"{where}, face {rows[row]}")]
        triangles[offset[rows][:, None] + np.arange(corner_count - 2)] = cut
    return triangles


def area_vectors(polygons: np.ndarray) -> np.ndarray:
    """float64[m, 3]: area vectors of polygons [m, n, 3]: along their normals, with twice the area
    as length.

    Source: Newell's method (Sutherland, Sproull, Schumacker 1974).
    """
    spokes = polygons[:, 1:] - polygons[:, :1]
    return np.cross(spokes[:, :-1], spokes[:, 1:]).sum(axis=1)


def _is_covered_by_fan(polygons: np.ndarray) -> np.ndarray:
    """bool[m]: whether the fan's triangles have area and equal orientation, and turn about the
    first corner once."""
    spokes = polygons[:, 1:] - polygons[:, :1]
    across = np.cross(spokes[:, :-1], spokes[:, 1:])
    normal = across.sum(axis=1)
    sizes = norm(normal)
    normal /= np.where(sizes > 0.0, sizes, 1.0)[:, None]
    size = np.ptp(polygons, axis=1).max(axis=1)
    area = dot(across, normal[:, None])
    along = dot(spokes[:, :-1], spokes[:, 1:])
    around = atan2(area, along).sum(axis=1)
    return (area > (NEAR * size * size)[:, None]).all(axis=1) & (around < 2.0 * np.pi)


def _ears(polygon: np.ndarray, where: str) -> np.ndarray:
    """int64[n - 2, 3]: triangles of a polygon [n, 3] whose projection along its area vector is
    simple.

    A polygon without area has triangles without area. Source: Meisters 1975: a simple polygon has
    at least two ears, triangles of three consecutive corners that contain no other corner. Here a
    triangle contains the corners on its boundary, so that no triangle is flat.
    """
    count = len(polygon)
    if count > CORNER_LIMIT:
        what = f"a face that is not convex has {count} corners"
        raise InputError(what, where, f"triangulate it: {CORNER_LIMIT} is the limit")
    flat = _projected(polygon)
    if flat is None:
        return np.stack(
            [np.zeros(count - 2, np.int64), np.arange(1, count - 1), np.arange(2, count)], axis=1
        )
    left = list(range(count))
    ears = []
    is_ear = _which_are_ears(flat, left)
    while len(left) > 3:
        if True not in is_ear:
            is_ear = _which_are_ears(flat, left)
        if True not in is_ear:
            raise _crosses_itself(where)
        at = is_ear.index(True)
        ears.append((left[at - 1], left[at], left[(at + 1) % len(left)]))
        del left[at], is_ear[at]
        # Only the two corners beside a clipped ear change.
        for beside in (at - 1, at % len(left)):
            is_ear[beside] = _is_ear(flat, left, beside % len(left), NEAR)
    if _cross(flat[left[1]] - flat[left[0]], flat[left[2]] - flat[left[0]]) < -NEAR:
        raise _crosses_itself(where)
    ears.append(tuple(left))
    return np.array(ears)


def _projected(polygon: np.ndarray) -> np.ndarray | None:
    """float64[n, 2]: corners projected along the area vector, counterclockwise, of size 1; None if
    they are collinear.

    A polygon that is not collinear and has no area vector crosses itself; then any plane serves in
    which it is not collinear.
    """
    size = np.ptp(polygon, axis=0).max()
    if size == 0.0:
        return None
    scaled = (polygon - polygon[0]) / size
    centred = scaled - scaled.mean(axis=0)
    squares, axes = symmetric_eigen((centred[:, :, None] * centred[:, None, :]).sum(axis=0))
    if squares[1] <= NEAR * NEAR:
        return None
    normal = area_vectors(scaled[None])[0]
    if length(normal) <= NEAR:
        normal = axes[:, 0]
    normal /= length(normal)
    x = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    x /= length(x)
    return matmul(scaled, np.stack([x, np.cross(normal, x)], axis=1))


def _which_are_ears(flat: np.ndarray, left: list[int]) -> list[bool]:
    """Whether each remaining corner is an ear; without the tolerance if none is an ear with it."""
    for near in (NEAR, 0.0):
        ears = [_is_ear(flat, left, at, near) for at in range(len(left))]
        if True in ears:
            break
    return ears


def _is_ear(flat: np.ndarray, left: list[int], at: int, near: float) -> bool:
    """Whether the triangle at a corner has area, and no other corner is in it, or nearer to it than
    `near`."""
    a, b, c = (flat[left[k % len(left)]] for k in (at - 1, at, at + 1))
    if _cross(b - a, c - a) <= max(near, FLAT):
        return False
    others = flat[np.array(left)]  # its own corners are excluded below, as equal to a corner
    outside = np.zeros(len(others), bool)
    for start, end in ((a, b), (b, c), (c, a)):
        side = end - start
        outside |= _cross(side, others - start) < -near * length(side)
        outside |= (others == start).all(axis=1)
    return bool(outside.all())


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _crosses_itself(where: str) -> InputError:
    return InputError(
        "a face of the mesh crosses itself", where, "triangulate it, or correct the mesh"
    )
