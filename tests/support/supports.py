"""Support functions of the convex shapes in float64 NumPy, with what the oracle needs to know of
them.

Directions are float64[P, D, 3] in the shape's frame, sizes [P, 3].
"""

import numpy as np

from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import dot, hull_mesh, length

HULL = np.array(
    [
        [1.0, -0.2, -1.0],
        [-0.6, 1.0, -0.7],
        [-1.0, -0.5, -0.4],
        [0.1, -1.0, 0.2],
        [0.5, 0.7, 0.6],
        [-0.3, 0.1, 1.0],
    ]
)
"""The corners that a convex mesh of half extents 1 has here; for others they are scaled."""
_Z = np.array([[0.0, 0.0, 1.0]])
_NONE = np.zeros((0, 3))
ISOLATED = dict.fromkeys(ShapeType, _NONE)
"""Directions whose support face has dimension two and that no two circles cross at."""
ISOLATED[ShapeType.CYLINDER] = np.concatenate([_Z, -_Z])
ISOLATED[ShapeType.CONE] = -_Z


def hull_faces() -> np.ndarray:
    """int[F, 3]: the triangles around HULL, counterclockwise from outside."""
    return hull_mesh(HULL)[1]


def _rim_is_support(size: np.ndarray, n: np.ndarray) -> np.ndarray:
    radius = size[:, None, 0]
    half = size[:, None, 1]
    return radius * np.hypot(n[..., 0], n[..., 1]) >= 2 * half * n[..., 2]


def support_height(shape_type: ShapeType, size: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The largest n.x over the shape: float64[P, D]; n of any length, infinite for a plane unless n
    is unit and up."""
    r = size[:, None, 0]
    h = size[:, None, 1]
    if shape_type == ShapeType.PLANE:
        return np.where(n[..., 2] > 1.0 - 1e-12, 0.0, np.inf)
    if shape_type == ShapeType.SPHERE:
        return r * length(n)
    if shape_type == ShapeType.CAPSULE:
        return r * length(n) + h * np.abs(n[..., 2])
    if shape_type == ShapeType.BOX:
        return dot(np.abs(n), size[:, None])
    if shape_type == ShapeType.ELLIPSOID:
        return length(n * size[:, None])
    if shape_type == ShapeType.CONVEX_MESH:
        return ((n * size[:, None]) @ HULL.T).max(-1)
    side = r * np.hypot(n[..., 0], n[..., 1])
    if shape_type == ShapeType.CYLINDER:
        return side + h * np.abs(n[..., 2])
    if shape_type == ShapeType.CONE:
        return np.maximum(h * n[..., 2], side - h * n[..., 2])
    raise ValueError(f"no support function for {shape_type.label}")


def support_point(shape_type: ShapeType, size: np.ndarray, n: np.ndarray) -> np.ndarray:
    """A point of the shape that attains `support_height`: float64[P, D, 3]; n of unit length."""
    r = size[:, None, :1]
    h = size[:, None, 1:2]
    sign = np.where(n >= 0, 1.0, -1.0)
    if shape_type == ShapeType.SPHERE:
        return r * n
    if shape_type == ShapeType.CAPSULE:
        return r * n + h * sign * _Z
    if shape_type == ShapeType.BOX:
        return sign * size[:, None]
    if shape_type == ShapeType.ELLIPSOID:
        scaled = n * size[:, None]
        return scaled * size[:, None] / length(scaled)[..., None]
    if shape_type == ShapeType.CONVEX_MESH:
        return HULL[((n * size[:, None]) @ HULL.T).argmax(-1)] * size[:, None]
    flat = n * [1.0, 1.0, 0.0]
    radius = length(flat)[..., None]
    rim = r * flat / np.where(radius > 0, radius, 1.0)
    if shape_type == ShapeType.CYLINDER:
        return rim + h * sign * _Z
    if shape_type == ShapeType.CONE:
        return np.where(_rim_is_support(size, n)[..., None], rim - h * _Z, h * _Z)
    raise ValueError(f"no support function for {shape_type.label}")


def support_curvature(
    shape_type: ShapeType, size: np.ndarray, n: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray | float, np.ndarray | float, np.ndarray | float]:
    """Second derivatives of `support_height` at unit n, where they exist, along two unit vectors
    perpendicular to n and to each other: along the first, along both, along the second, each
    float64[P, D] or a number."""
    r = size[:, None, 0]
    if shape_type in (ShapeType.BOX, ShapeType.CONVEX_MESH):
        return 0.0, 0.0, 0.0
    if shape_type in (ShapeType.SPHERE, ShapeType.CAPSULE):
        return r, 0.0, r
    if shape_type == ShapeType.ELLIPSOID:
        height = support_height(shape_type, size, n)
        one = first * size[:, None]
        other = second * size[:, None]
        along = n * size[:, None] / height[..., None]
        rise = dot(one, along)
        other_rise = dot(other, along)
        curved = (
            dot(one, one) - rise * rise,
            dot(one, other) - rise * other_rise,
            dot(other, other) - other_rise**2,
        )
        return curved[0] / height, curved[1] / height, curved[2] / height
    x, y = n[..., 0], n[..., 1]
    scale = r / np.maximum(np.hypot(x, y), 1e-100) ** 3
    if shape_type == ShapeType.CONE:
        scale = np.where(_rim_is_support(size, n), scale, 0.0)
    rise = x * first[..., 1] - y * first[..., 0]
    other_rise = x * second[..., 1] - y * second[..., 0]
    return scale * rise * rise, scale * rise * other_rise, scale * other_rise * other_rise


def circles(shape_type: ShapeType, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Circles axis.n = height of directions across which the support jumps: axes [P, K, 3], heights
    [P, K]."""
    axis = _NONE
    if shape_type == ShapeType.BOX:
        axis = np.eye(3)
    elif shape_type in (ShapeType.CAPSULE, ShapeType.CYLINDER, ShapeType.CONE):
        axis = _Z
    elif shape_type == ShapeType.CONVEX_MESH:
        return _edges(size)
    height = np.zeros((len(size), len(axis)))
    if shape_type == ShapeType.CONE:
        height[:, 0] = size[:, 0] / np.hypot(size[:, 0], 2 * size[:, 1])
    return np.broadcast_to(axis, (len(size), *axis.shape)), height


def _edges(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The circles of a convex mesh: all directions perpendicular to an edge."""
    faces = hull_faces()
    ends = np.unique(
        np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1),
        axis=0,
    )
    along = (HULL[ends[:, 1]] - HULL[ends[:, 0]])[None] * size[:, None]
    return along / np.linalg.norm(along, axis=-1, keepdims=True), np.zeros(along.shape[:2])


def extents(shape_type: ShapeType, size: np.ndarray) -> np.ndarray:
    """Half extents of the shape's bounding box: float64[P, 3]."""
    return np.stack(
        [
            support_height(shape_type, size, np.broadcast_to(e, (len(size), 1, 3)))[:, 0]
            for e in -np.eye(3)
        ],
        -1,
    )


def surface_residual(shape_type: ShapeType, size: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Signed distance of points from the shape's surface, negative inside: float64[P]. First order
    for ellipsoids.

    Args:
        size: float64[P, 3]. point: float64[P, 3] in the shape's frame.
    """
    r = size[:, 0]
    h = size[:, 1]
    if shape_type == ShapeType.PLANE:
        return point[:, 2]
    if shape_type == ShapeType.SPHERE:
        return np.linalg.norm(point, axis=-1) - r
    if shape_type == ShapeType.CAPSULE:
        nearest = np.clip(point[:, 2], -h, h)
        return np.linalg.norm(point - nearest[:, None] * _Z, axis=-1) - r
    if shape_type == ShapeType.BOX:
        outside = np.abs(point) - size
        return np.linalg.norm(np.maximum(outside, 0.0), axis=-1) + np.minimum(outside.max(-1), 0.0)
    if shape_type == ShapeType.ELLIPSOID:
        level = np.linalg.norm(point / size, axis=-1)
        slope = np.linalg.norm(point / size**2, axis=-1)
        return np.where(
            slope > 0, (level - 1) * level / np.where(slope > 0, slope, 1.0), -size.min(-1)
        )
    radial = np.hypot(point[:, 0], point[:, 1])
    if shape_type == ShapeType.CYLINDER:
        outside = np.stack([radial - r, np.abs(point[:, 2]) - h], -1)
        return np.linalg.norm(np.maximum(outside, 0.0), axis=-1) + np.minimum(outside.max(-1), 0.0)
    return _cone_residual(r, h, radial, point[:, 2])


def _cone_residual(r: np.ndarray, h: np.ndarray, radial: np.ndarray, z: np.ndarray) -> np.ndarray:
    side_length = np.hypot(r, 2 * h)
    along = np.clip((radial * r + (h - z) * 2 * h) / side_length**2, 0.0, 1.0)  # 0 apex, 1 rim
    to_side = np.hypot(radial - along * r, z - (h - along * 2 * h))
    to_base = np.hypot(np.maximum(radial - r, 0.0), z + h)
    beyond_side = (2 * h * radial + r * (z - h)) / side_length
    inside = (z > -h) & (beyond_side < 0)
    return np.where(inside, np.maximum(beyond_side, -h - z), np.minimum(to_side, to_base))
