"""Points on the surface of a shape: its vertices, and a sampling of round surfaces."""

from __future__ import annotations

import math

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import norm
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.distinct_values import distinct
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import solid_triangles

MOST_POINTS = 10_000_000
"""Of one shape."""
POINTS_OF_CIRCLE = 24
"""Of the largest circle of a round shape, where no spacing is given."""


def surface_samples(model: Model, row: int, spacing: float = 0.0) -> np.ndarray:
    """float64[n, 3]: points on the surface of a shape, in its frame [m]; none of a plane.

    Of a mesh, a hull, a heightfield's solid and a box the vertices, then with a spacing points
    inside edges and on rows of each triangle, whose steps along and between them are at most the
    spacing. Of a round shape circles about z, whose steps along and between them are at most the
    spacing, its poles, rims and apex included.

    Args:
        spacing: greatest step [m]; 0 is the vertices, and of a round shape the 24th part of its
            largest circle.
    Raises InputError for more than MOST_POINTS.
    """
    shapes = model.shapes
    kind = ShapeType(shapes.type[row])
    size = shapes.size[row]
    if kind == ShapeType.PLANE:
        return np.zeros((0, 3))
    # The box of a shape has more surface than a convex one, and circles have as many points.
    reach = 2.0 * float(size[:3].sum())
    if spacing and reach / spacing > math.sqrt(MOST_POINTS):
        what = f"a spacing of {spacing:g} m gives shape '{shapes.path[row]}' too many points"
        raise InputError(what, "--spacing", f"give {reach / math.sqrt(MOST_POINTS):.2g} m or more")
    corners = _polygons(model, row, kind)
    if corners is not None:
        vertex, face = corners
        inner = _inside_triangles(vertex[face], spacing) if spacing else np.zeros((0, 3))
        return np.concatenate([vertex, inner])
    if kind == ShapeType.ELLIPSOID:
        longest = float(size[:3].max())
        step = _step(1.0, spacing / longest)
        return _of_revolution(_arc(1.0, 0.0, 0.0, math.pi, step), step) * size[:3]
    step = _step(float(size[0]), spacing)
    return _of_revolution(_profile(kind, size, step), step)


def _step(radius: float, spacing: float) -> float:
    return spacing or 2.0 * math.pi * radius / POINTS_OF_CIRCLE


def _polygons(model: Model, row: int, kind: ShapeType) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and triangles of a shape with flat faces; None of a round one."""
    shapes = model.shapes
    if kind == ShapeType.BOX:
        return solid_triangles(kind, shapes.size[row], 0)
    if kind == ShapeType.CONVEX_MESH:
        hull = model.hulls[shapes.hull[row]]
        return hull.vertex, hull.triangles
    if kind == ShapeType.MESH:
        mesh = model.meshes[shapes.mesh[row]]
        return mesh.vertex, mesh.face
    if kind == ShapeType.HEIGHTFIELD:
        mesh = solid_mesh(model.heightfields[shapes.heightfield[row]])
        return mesh.vertex, mesh.face
    return None


def _inside_triangles(corners: np.ndarray, spacing: float) -> np.ndarray:
    """float64[n, 3]: points inside the sides and the faces of triangles [t, 3, 3], each once."""
    sides = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 2, 3)
    found = [_inside_segments(_ordered(sides), spacing), _inside_faces(corners, spacing)]
    return distinct(np.concatenate(found), axis=0)


def _ordered(segments: np.ndarray) -> np.ndarray:
    """Segments [n, 2, 3] from the lexicographically lower end, each once: a side that two triangles
    have in opposite directions has the same points in both."""
    order = np.lexsort(segments.transpose(2, 0, 1)[::-1], axis=-1)
    return distinct(np.take_along_axis(segments, order[..., None], axis=1), axis=0)


def _inside_segments(segments: np.ndarray, spacing: float) -> np.ndarray:
    """float64[n, 3]: points between the ends of segments [s, 2, 3], in equal steps of at most the
    spacing."""
    row, weight = _divided(norm(segments[:, 1] - segments[:, 0]), spacing)
    return segments[row, 0] * (1.0 - weight) + segments[row, 1] * weight


def _inside_faces(corners: np.ndarray, spacing: float) -> np.ndarray:
    """float64[n, 3]: points inside triangles [t, 3, 3], on rows parallel to the longest side.

    The rows, and the points of a row, are at most the spacing apart. So a place between two rows is
    at most half of the spacing from one of them, and within the spacing of a point of that row or
    of a side: a long thin triangle has points along it, and no more rows than its height needs.
    """
    sides = norm(np.roll(corners, -1, axis=1) - corners)
    longest = sides.argmax(axis=1)
    turned = (longest[:, None] + np.arange(3)) % 3
    begin, end, apex = np.take_along_axis(corners, turned[..., None], axis=1).transpose(1, 0, 2)
    length = sides.max(axis=1)
    twice_area = norm(np.cross(end - begin, apex - begin))
    height = np.divide(twice_area, length, out=np.zeros_like(length), where=length > 0.0)
    face, up = _divided(height, spacing)
    ends = np.stack([begin[face], end[face]], axis=1)
    rows = ends * (1.0 - up[..., None]) + apex[face][:, None] * up[..., None]
    return _inside_segments(rows, spacing)


def _divided(lengths: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Inner points of lengths [n] in equal steps of at most the spacing: int64[p], the row of each,
    and float64[p, 1], its part of the length."""
    parts = np.maximum(np.ceil(lengths / spacing - 1e-9).astype(np.int64), 1)
    row = np.repeat(np.arange(len(parts)), parts - 1)
    first = np.cumsum(parts - 1) - (parts - 1)
    step = np.arange(len(row)) - first[row] + 1
    return row, (step / parts[row])[:, None]


def _arc(radius: float, height: float, begin: float, end: float, step: float) -> np.ndarray:
    """float64[n, 2]: distance from the axis and height of points of an arc about the point at a
    height on the axis, from one angle to another one, counted from +z [m, rad]."""
    count = max(1, math.ceil((end - begin) * radius / step - 1e-9))
    angle = begin + (end - begin) * np.arange(count + 1) / count
    sine, cosine = sincos(angle)
    sine = np.where(np.isin(angle, (0.0, math.pi)), 0.0, sine)
    return np.column_stack([radius * sine, height + radius * cosine])


def _line(begin: tuple[float, float], end: tuple[float, float], step: float) -> np.ndarray:
    """float64[n, 2]: points of a segment, both ends included."""
    length = norm(np.array(end) - np.array(begin))
    count = max(1, math.ceil(length / step - 1e-9))
    t = np.arange(count + 1)[:, None] / count
    return np.array(begin) * (1.0 - t) + np.array(end) * t


def _profile(kind: ShapeType, size: np.ndarray, step: float) -> np.ndarray:
    """float64[n, 2]: points of the half plane through the axis, from the upper pole to the lower
    one."""
    radius = float(size[0])
    half = float(size[1])
    if kind == ShapeType.SPHERE:
        return _arc(radius, 0.0, 0.0, math.pi, step)
    if kind == ShapeType.CAPSULE:
        upper = _arc(radius, half, 0.0, 0.5 * math.pi, step)
        lower = _arc(radius, -half, 0.5 * math.pi, math.pi, step)
        between = _line((radius, half), (radius, -half), step)[1:-1]
        return np.concatenate([upper, between, lower if half else lower[1:]])
    base = _line((radius, -half), (0.0, -half), step)
    if kind == ShapeType.CONE:
        return np.concatenate([_line((0.0, half), (radius, -half), step)[:-1], base])
    top = _line((0.0, half), (radius, half), step)
    side = _line((radius, half), (radius, -half), step)[1:-1]
    return np.concatenate([top, side, base])


def _of_revolution(profile: np.ndarray, step: float) -> np.ndarray:
    """float64[n, 3]: points of a profile on circles about z, with steps of at most `step` [m]."""
    rings = []
    for radius, height in profile.tolist():
        count = max(3, math.ceil(2.0 * math.pi * radius / step - 1e-9)) if radius else 1
        sine, cosine = sincos(2.0 * math.pi * np.arange(count) / count)
        rings.append(np.column_stack([radius * cosine, radius * sine, np.full(count, height)]))
    return np.concatenate(rings)
