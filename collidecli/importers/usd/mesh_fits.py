"""Shapes that represent a mesh: convex hull, bounding box or sphere, triangles, simplified triangles, convex parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.meshes.decompose import decomposed
from collidecli.importers.meshes.hull_cache import cached_hull
from collidecli.importers.meshes.limited_hull import limited_hull
from collidecli.importers.meshes.simplify import simplified
from collidecli.importers.usd.mesh_content import MeshContent
from collidecli.numerics.matrices import cross, dot, length, matvec, norm
from collidecli.scene.convex_hull import ConvexHull, hull_points
from collidecli.scene.shape_types import ShapeType, checked_size
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh

HULL, CUBE, SPHERE, TRIANGLES = "convexHull", "boundingCube", "boundingSphere", "none"
FEWER, PARTS, FIELD = "meshSimplification", "convexDecomposition", "sdf"
KEPT_FRACTION = 0.55
"""Fraction of the triangles in a simplified mesh, where none is authored."""


@dataclass(frozen=True)
class MeshLimits:
    """Limits of an approximation: fraction of triangles, maximum number of parts and of vertices of a hull or part.

    vertices_of_mujoco: use the vertices that MuJoCo keeps, see `limited_hull`. two_sided, solid: see `TriangleMesh`.
    strict: refuse a mesh that needs repairs.
    """

    fraction: float = KEPT_FRACTION
    parts: int | None = None
    vertices: int | None = None
    vertices_of_mujoco: bool = False
    two_sided: bool = True
    solid: bool = True
    strict: bool = False


@dataclass(frozen=True)
class Fitted:
    """A shape with its centre in the shape's frame [m]. A hull and a mesh contain their centres."""

    type: ShapeType
    size: tuple[float, ...]
    center: np.ndarray
    hull: ConvexHull | None = None
    mesh: TriangleMesh | None = None


@dataclass(frozen=True)
class Fit:
    """The shapes for a mesh, one except for convex parts, and notes for warnings."""

    shapes: tuple[Fitted, ...]
    notes: tuple[str, ...] = ()


def fitted(content: MeshContent, approximation: str, to_metres: np.ndarray, limits: MeshLimits, where: str) -> Fit:
    """The shapes for a mesh under an approximation that is handled.

    to_metres: float64[3, 3], the prim's stretch into the shape's frame, a reflection included, and the stage's unit.
    Raises InputError with the prim for a mesh without volume or area, faces that intersect themselves, with `strict` a
    mesh whose triangles need repairs, and for a missing library.
    """
    if approximation in (TRIANGLES, FEWER, PARTS):
        fit = _of_triangles(content, approximation, to_metres, limits, where)
    else:
        fit = _of_points(content.point, approximation, to_metres, limits, where)
    for each in fit.shapes:
        checked_size(each.type, each.size, where)
    return fit


def _of_points(point: np.ndarray, approximation: str, to_metres: np.ndarray, limits: MeshLimits, where: str) -> Fit:
    if approximation == CUBE:
        low, high = point.min(axis=0), point.max(axis=0)
        half = 0.5 * (high - low) * norm(to_metres.T)
        return Fit((Fitted(ShapeType.BOX, tuple(half.tolist()), matvec(to_metres, 0.5 * (low + high))),))
    if approximation == SPHERE:
        center, radius = bounding_sphere(matvec(to_metres, point))
        return Fit((Fitted(ShapeType.SPHERE, (radius,), center),))
    points = hull_points(matvec(to_metres, point), where)
    hull = cached_hull(points, where)
    if limits.vertices is None:
        return Fit((_convex(hull),))
    made = limited_hull(points, hull, limits.vertices, limits.vertices_of_mujoco, where)
    if made.hull is hull:
        return Fit((_convex(hull),))
    off = _length(made.outside, 2.0 * float(hull.half_extents.max()))
    kept = (
        f"of {len(hull.vertex)} vertices of its hull {len(made.hull.vertex)} are kept; the others are outside by {off}"
    )
    return Fit((_convex(made.hull),), (kept,))


def _of_triangles(
    content: MeshContent, approximation: str, to_metres: np.ndarray, limits: MeshLimits, where: str
) -> Fit:
    mesh = triangle_mesh(
        matvec(to_metres, content.point),
        _outward(content.triangle, to_metres),
        where,
        limits.two_sided,
        limits.solid,
    )
    size = 2.0 * float(mesh.half_extents.max())
    notes = list(mesh.repairs.words())
    if limits.strict and notes:
        raise InputError(f"the mesh needs repairs: {'; '.join(notes)}", where, "correct it, or remove --strict-meshes")
    if approximation == PARTS:
        if not mesh.is_closed:
            notes.append("its surface is not closed; CoACD closes it, to a fiftieth of its size, and parts that")
        found = decomposed(mesh, limits.parts, limits.vertices, where)
        notes += found.notes
        if found.flat:
            notes.append("parts without volume are left out")
        notes.append(
            f"of {len(found.parts)} convex parts, which exceed its triangles by {_length(found.outside, size)}, "
            f"and these exceed the parts by {_length(found.uncovered, size)}"
        )
        return Fit(tuple(_convex(part) for part in found.parts), tuple(notes))
    if approximation == FEWER:
        made = simplified(mesh, limits.fraction, where)
        counts = f"{len(made.mesh.face)} of {len(mesh.face)} triangles"
        notes.append(f"simplified to {counts}, which moves its surface by {_length(made.deviation, size)}")
        notes += [f"simplified: {what}" for what in replace(made.mesh.repairs, degenerate=0).words()]
        mesh = replace(made.mesh, repairs=mesh.repairs, two_sided=limits.two_sided, is_solid=limits.solid)
    return Fit((Fitted(ShapeType.MESH, tuple(mesh.half_extents.tolist()), np.zeros(3), mesh=mesh),), tuple(notes))


def _convex(hull: ConvexHull) -> Fitted:
    return Fitted(ShapeType.CONVEX_MESH, tuple(hull.half_extents.tolist()), np.zeros(3), hull)


def _length(deviation: float, size: float) -> str:
    return f"up to {deviation:.2g} m ({100.0 * deviation / size:.2g} % of its size)"


def _outward(triangle: np.ndarray, to_metres: np.ndarray) -> np.ndarray:
    """Triangles that are counterclockwise from outside, reversed for a reflection."""
    return triangle[:, ::-1] if dot(to_metres[0], cross(to_metres[1], to_metres[2])) < 0.0 else triangle


def bounding_sphere(point: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a bounding sphere of points [n, 3], in general not the smallest; the radius may be zero.

    The initial diameter connects the farther pair of extreme points along an axis; the sphere then grows by each point
    outside, in order. This is the sphere of PhysX.
    Source: Ritter 1990, in the form of Ericson 2005, 4.3.2.
    """
    ends = point[np.argmin(point, axis=0)], point[np.argmax(point, axis=0)]
    axis = int(np.argmax(dot(ends[1] - ends[0], ends[1] - ends[0])))
    center = 0.5 * (ends[0][axis] + ends[1][axis])
    radius = length(ends[1][axis] - center)
    step, start = 1 << 16, 0
    while start < len(point):
        distance = norm(point[start : start + step] - center)
        outside = np.flatnonzero(distance > radius)
        if not len(outside):
            start += step
            continue
        first = int(outside[0])
        grown = 0.5 * (radius + float(distance[first]))
        center = center + (grown - radius) / float(distance[first]) * (point[start + first] - center)
        radius, start = grown, start + first + 1
    return center, radius
