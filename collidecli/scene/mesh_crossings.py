"""Winding numbers, self-intersections and hidden triangles of closed triangle meshes."""

from __future__ import annotations

import numpy as np

from collidecli.numerics.products import dot
from collidecli.scene.distinct_values import distinct, morton_order

NEAR = 1e-9
"""Fraction of a mesh's longest extent: parallel triangles at a smaller distance overlap; and the
offset from a triangle at which the winding numbers of its two sides are computed."""
ROUNDING = 1e-14
"""Fraction of the product of its lengths below which a volume or an area may be a rounding
error."""
_CHUNK = 1 << 22
"""Pairs of a point and a triangle in one vectorized step."""
_PAIRS = 1 << 16
"""Pairs of triangles in one vectorized step."""
_SAMPLE = 64
"""Triangles of a part at which it is decided whether the part is hidden."""


def winding_at(points: np.ndarray, vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """int64[n]: winding numbers of closed triangles [F, 3] about points [n, 3].

    The sum of the signed crossings of a ray along +x. In the plane across the ray, the triangles of
    an edge share the comparison of the edge with the point, so that a ray through an edge or a
    vertex counts once. Exact except for points within rounding of the surface. Source: Hormann and
    Agathos 2001 for the plane; Sunday 2001.
    """
    corners = vertex[face]
    low = corners.min(axis=1)
    high = corners.max(axis=1)
    result = np.zeros(len(points), np.int64)
    step = max(1, _CHUNK // max(1, len(face)))
    for start in range(0, len(points), step):
        chosen = points[start : start + step]
        near = (chosen[:, None, 0] <= high[:, 0]) & (chosen[:, None, 1] <= high[:, 1])
        near &= (chosen[:, None, 1] >= low[:, 1]) & (chosen[:, None, 2] <= high[:, 2])
        near &= chosen[:, None, 2] >= low[:, 2]
        point, triangle = np.nonzero(near)
        turns = _turns(chosen[point], vertex, face[triangle])
        kept = np.flatnonzero(turns)
        point = point[kept]
        triangle = triangle[kept]
        turns = turns[kept]
        p, q, r = (corners[triangle, k] for k in range(3))
        height = dot(chosen[point] - p, np.cross(q - p, r - p))
        ahead = (chosen[point, 0] < low[triangle, 0]) | (height * turns < 0.0)
        result[start : start + step] = np.bincount(
            point[ahead], weights=turns[ahead], minlength=len(chosen)
        )
    return result


def _turns(point: np.ndarray, vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """int64[n]: 1 if the line along +x through a point exits through its triangle, -1 if it enters,
    0 if it misses."""
    result = np.zeros(len(point), np.int64)
    y, z = point[:, 1], point[:, 2]
    for k in range(3):
        start = face[:, k]
        end = face[:, (k + 1) % 3]
        low = vertex[np.minimum(start, end)]
        high = vertex[np.maximum(start, end)]
        low_above = low[:, 2] >= z
        high_above = high[:, 2] >= z
        area = (low[:, 1] - y) * (high[:, 2] - z) - (low[:, 2] - z) * (high[:, 1] - y)
        beside = (low_above != high_above) & ((area > 0.0) == high_above)
        rises = (start < end) == high_above
        result += np.where(beside, np.where(rises, 1, -1), 0)
    return result


def crossed_triangles(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """int64[n, 2]: pairs of triangles, the lower index first, that cross or overlap by more than a
    common vertex or edge; some pairs may only touch."""
    pairs = _near_pairs(vertex, face)
    parts = [np.zeros((0, 2), np.int64)]
    near = NEAR * float((vertex[face].max(axis=(0, 1)) - vertex[face].min(axis=(0, 1))).max())
    corners = [
        [np.ascontiguousarray(vertex[face[:, k], axis]) for axis in range(3)] for k in range(3)
    ]
    normal = [np.ascontiguousarray(component) for component in _normal(vertex[face]).T]
    for start in range(0, len(pairs), _PAIRS):
        chosen = pairs[start : start + _PAIRS]
        for here, there in ((0, 1), (1, 0)):
            chosen = chosen[_is_cut(face, corners, normal, chosen[:, here], chosen[:, there], near)]
        parts.append(chosen[_do_cross(vertex, face[chosen[:, 0]], face[chosen[:, 1]], near)])
    return np.concatenate(parts)


def _is_cut(
    face: np.ndarray,
    corners: list[list[np.ndarray]],
    normal: list[np.ndarray],
    cut: np.ndarray,
    by: np.ndarray,
    near: float,
) -> np.ndarray:
    """bool[n]: whether a triangle, except for common vertices, is neither all above nor all below
    the plane of another.

    True for triangles with all vertices in common.
    """
    n = [axis[by] for axis in normal]
    level = n[0] * corners[0][0][by] + n[1] * corners[0][1][by] + n[2] * corners[0][2][by]
    lowest = np.full(len(by), np.inf)
    highest = np.full(len(by), -np.inf)
    for k in range(3):
        x, y, z = (axis[cut] for axis in corners[k])
        height = n[0] * x + n[1] * y + n[2] * z - level
        number = face[cut, k]
        common = (number == face[by, 0]) | (number == face[by, 1]) | (number == face[by, 2])
        lowest = np.minimum(lowest, np.where(common, np.inf, height))
        highest = np.maximum(highest, np.where(common, -np.inf, height))
    return (lowest <= near) & (highest >= -near) | (lowest > highest)


def _near_pairs(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """int64[n, 2]: pairs of triangles whose AABBs overlap.

    A binary BVH over the triangles in Morton order is traversed against itself, level by level.
    """
    corners = vertex[face]
    low = corners.min(axis=1)
    high = corners.max(axis=1)
    order = morton_order(0.5 * (low + high))
    levels = [([*low[order].T.copy()], [*high[order].T.copy()])]
    while len(levels[-1][0][0]) > 1:
        start = np.arange(0, len(levels[-1][0][0]), 2)
        below, above = levels[-1]
        levels.append(
            (
                [np.minimum.reduceat(x, start) for x in below],
                [np.maximum.reduceat(x, start) for x in above],
            )
        )
    a = b = np.zeros(1, np.int32)
    for below, above in reversed(levels[:-1]):
        same = a == b
        once = 2 * a[same]
        twice = 2 * a[~same]
        other = 2 * b[~same]
        a = np.concatenate([once, once, once + 1, twice, twice, twice + 1, twice + 1])
        b = np.concatenate([once, once + 1, once + 1, other, other + 1, other, other + 1])
        exists = np.maximum(a, b) < len(below[0])
        a = a[exists]
        b = b[exists]
        for x, y in zip(below, above, strict=True):
            overlap = (x[a] <= y[b]) & (x[b] <= y[a])
            a = a[overlap]
            b = b[overlap]
    a = order[a]
    b = order[b]
    kept = a != b
    pairs = np.stack([np.minimum(a, b), np.maximum(a, b)], axis=1)[kept]
    return pairs[np.argsort(pairs[:, 0] * len(face) + pairs[:, 1], kind="stable")]


def _do_cross(vertex: np.ndarray, first: np.ndarray, second: np.ndarray, near: float) -> np.ndarray:
    """bool[n]: whether triangles [n, 3] and [n, 3] of vertex indices cross."""
    result = np.zeros(len(first), bool)
    a = vertex[first]
    b = vertex[second]
    normal_a = _normal(a)
    normal_b = _normal(b)
    # Heights of each triangle's corners over the plane of the other; common corners are in it.
    shared = first[:, :, None] == second[:, None, :]
    height_a = np.where(shared.any(axis=2), 0.0, dot(a - b[:, :1], normal_b[:, None]))
    height_b = np.where(shared.any(axis=1), 0.0, dot(b - a[:, :1], normal_a[:, None]))
    coplanar = (np.abs(height_a) <= near).all(axis=1) | (np.abs(height_b) <= near).all(axis=1)
    beside = np.zeros(len(first), bool)
    for height, common in ((height_a, shared.any(axis=2)), (height_b, shared.any(axis=1))):
        for sign in (1.0, -1.0):
            off = (sign * height > 0.0) | common
            beside |= off.all(axis=1)
    rows = np.flatnonzero(~beside & ~coplanar)
    for here, there, numbers_here, numbers_there in ((a, b, first, second), (b, a, second, first)):
        for k in range(3):
            start = here[rows, k]
            end = here[rows, (k + 1) % 3]
            numbers_of_face = numbers_there[rows]
            free = (numbers_of_face != numbers_here[rows, k, None]).all(axis=1)
            free &= (numbers_of_face != numbers_here[rows, (k + 1) % 3, None]).all(axis=1)
            result[rows] |= free & _pierces(start, end, there[rows])
    rows = np.flatnonzero(coplanar)
    result[rows] |= _overlap_flat(a[rows], b[rows], normal_a[rows], near)
    return result


def _pierces(start: np.ndarray, end: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """bool[n]: whether segments intersect triangles [n, 3, 3], to rounding in favour of an
    intersection.

    False for segments in the plane of their triangle: if surfaces cross there, another edge of the
    two pierces.
    """
    p, q, r = (triangle[:, k] for k in range(3))
    along = end - start
    extent = np.maximum(dot(along, along), np.maximum(dot(q - p, q - p), dot(r - p, r - p)))
    slack = ROUNDING * extent * np.sqrt(extent)
    p = p - start
    q = q - start
    r = r - start
    sides = np.stack([dot(np.cross(u, v), along) for u, v in ((p, q), (q, r), (r, p))])
    in_plane = (np.abs(sides) <= slack).all(axis=0)
    through = (sides >= -slack).all(axis=0) | (sides <= slack).all(axis=0)
    across = np.cross(q - p, r - p)
    low = dot(-p, across)
    high = dot(along - p, across)
    return (
        through
        & ~in_plane
        & ~((low > slack) & (high > slack))
        & ~((low < -slack) & (high < -slack))
    )


def _overlap_flat(a: np.ndarray, b: np.ndarray, normal: np.ndarray, near: float) -> np.ndarray:
    """bool[n]: whether coplanar triangles overlap by more than `near` along every normal of their
    sides."""
    apart = np.zeros(len(a), bool)
    for triangle in (a, b):
        for k in range(3):
            side = triangle[:, (k + 1) % 3] - triangle[:, k]
            axis = np.cross(side, normal)
            axis = axis / np.sqrt(dot(axis, axis))[:, None]
            along_a = dot(a, axis[:, None])
            along_b = dot(b, axis[:, None])
            overlap = np.minimum(along_a.max(axis=1), along_b.max(axis=1))
            overlap -= np.maximum(along_a.min(axis=1), along_b.min(axis=1))
            apart |= overlap <= near
    return ~apart


def hidden_triangles(
    vertex: np.ndarray, face: np.ndarray, patch: np.ndarray, crossed: np.ndarray
) -> np.ndarray:
    """bool[F]: triangles of a closed mesh whose two sides are entirely inside.

    patch: int64[F], parts of the surface connected by edges of two triangles, without crossed
    triangles: the winding number is constant on each side of a part, except where bodies that share
    vertices cross along them, within the rounding of a file. So a part is hidden where a sample of
    its triangles, from the largest to the smallest, is. crossed: bool[F]; never hidden, as part of
    them may be outside.
    """
    hidden = np.zeros(len(face), bool)
    rows = np.flatnonzero(~crossed)
    if not len(rows):
        return hidden
    corners = vertex[face[rows]]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.sqrt(dot(across, across))
    order = np.lexsort((-area, patch[rows]))
    extent = float((vertex[face].max(axis=(0, 1)) - vertex[face].min(axis=(0, 1))).max())
    step = NEAR * extent * across / area[:, None]
    middle = (corners[:, 0] + corners[:, 1] + corners[:, 2]) / 3.0

    def are_inside(chosen: np.ndarray) -> np.ndarray:
        both = (
            winding_at(middle[chosen] + side * step[chosen], vertex, face) != 0
            for side in (1.0, -1.0)
        )
        return np.logical_and(*both)

    numbers, first, count = np.unique(patch[rows][order], return_index=True, return_counts=True)
    inside = are_inside(order[first])
    of_patch = np.zeros(int(patch.max()) + 1, bool)
    of_patch[numbers[inside]] = True
    chosen = [
        order[start + distinct(np.linspace(0, size - 1, _SAMPLE).astype(int))]
        for start, size in zip(first[inside], count[inside], strict=True)
    ]
    if chosen:
        sample = np.concatenate(chosen)
        of_patch[patch[rows][sample[~are_inside(sample)]]] = False
    hidden[rows] = of_patch[patch[rows]]
    return hidden


def _normal(triangle: np.ndarray) -> np.ndarray:
    across = np.cross(triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0])
    return across / np.sqrt(dot(across, across))[:, None]
