"""The convex hull of points as a polytope of polygonal faces, edges and vertices."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import cross, dot, norm
from collidecli.scene.arguments import float_array
from collidecli.scene.distinct_values import distinct
from collidecli.scene.shape_types import LENGTH_LIMIT
from collidecli.scene.solids import fan

FACE_CORNERS = 6
"""Corners of a face in manifolds; of a face with more, those whose removal takes the least area are
omitted."""
COPLANAR = 3e-7
"""Fraction of the hull's size within which a vertex is in a face's plane. Scene files have
coordinates in float32, often rotated into another frame, which moves the corners of a face that far
off its plane. Vertices in the interior of a face are dropped; the error of distances is at most
this fraction."""
FLAT = 1e-9
"""Volume, in units of the cube of the largest extent, below which points are flat."""


class FlatPoints(InputError):
    """Points without volume, which have no hull."""


class Adjacency(NamedTuple):
    """offset: int64[V + 1], of each vertex's neighbours. neighbor: int64[n], their vertices."""

    offset: np.ndarray
    neighbor: np.ndarray


@dataclass(frozen=True, eq=False)
class ConvexHull:
    """A convex polytope whose bounding box is centred at the origin.

    vertex: float64[V, 3] [m]. center: float64[3], the centre of the box in the points' frame [m].
    edge: int32[E, 4], two vertices (ascending) and the two adjacent faces. face_normal: float64[F,
    3], unit, outwards. face: vertices of each face in order, counterclockwise from outside.
    """

    vertex: np.ndarray
    center: np.ndarray
    edge: np.ndarray
    face_normal: np.ndarray
    face: tuple[tuple[int, ...], ...]

    @property
    def half_extents(self) -> np.ndarray:
        """float64[3]: half extents of the bounding box [m]."""
        return self.vertex.max(axis=0)

    @property
    def triangles(self) -> np.ndarray:
        """int32[T, 3]: the faces as fans of triangles, counterclockwise from outside."""
        return np.array([triangle for face in self.face for triangle in fan(face)], np.int32)

    @cached_property
    def key(self) -> bytes:
        """Equal for equal polytopes."""
        return self.vertex.tobytes()

    @cached_property
    def climbing(self) -> Adjacency:
        """Adjacency of the vertices for hill climbing to the support point of a direction from that
        of another direction.

        The neighbours follow the edges of the triangulated hull of the vertices: the corners of a
        merged face are up to COPLANAR off its plane, so that hill climbing along merged edges can
        end 1e-4 of the size below the support point. Vertices inside that hull have none.
        """
        from scipy.spatial import ConvexHull as Qhull  # 0.2 s, which a hull of the cache saves

        scaled = self.vertex / np.ptp(self.vertex, axis=0).max()
        triangles = Qhull(scaled).simplices.astype(np.int64)
        sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        pairs = distinct(np.concatenate([sides, sides[:, ::-1]]), axis=0)
        offset = np.searchsorted(pairs[:, 0], np.arange(len(self.vertex) + 1))
        return Adjacency(offset.astype(np.int64), pairs[:, 1])


def convex_hull(points: np.ndarray, where: str) -> ConvexHull:
    """The convex hull of points [n, 3] [m].

    Raises InputError, with `where`, for points that are not finite or too large, fewer than four,
    or without volume. Source: Barber, Dobkin, Huhdanpaa 1996 (Qhull, by SciPy); coplanar triangles
    are merged here.
    """
    from scipy.spatial import ConvexHull as Qhull
    from scipy.spatial import QhullError

    points = float_array("points of the convex mesh", points, where)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4:
        raise InputError(
            f"the convex mesh has points of shape {points.shape}",
            where,
            "give four points at least",
        )
    if not np.all(np.abs(points) <= LENGTH_LIMIT):
        what = f"a point of the convex mesh is not finite, or beyond {LENGTH_LIMIT:g} m"
        raise InputError(what, where, "correct the mesh")
    low = points.min(axis=0)
    high = points.max(axis=0)
    center = 0.5 * (low + high)
    extent = float((high - low).max())
    if extent == 0.0:
        raise InputError(
            "the convex mesh is a single point", where, "give it volume, or leave it out"
        )
    scaled = distinct((points - center) / extent, axis=0)
    try:
        hull = Qhull(scaled)
        flat = hull.volume < FLAT
    except QhullError:
        flat = True
    if flat:
        raise FlatPoints(
            "the convex mesh is flat: it has no volume",
            where,
            "give it volume, or replace it by a box",
        )
    triangles = hull.simplices.copy()
    normals = hull.equations[:, :3]
    p, q, r = (scaled[triangles[:, k]] for k in range(3))
    inward = dot(np.cross(q - p, r - p), normals) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]  # counterclockwise from outside
    polygons, normals = _merged(scaled, triangles, normals, hull.neighbors)
    used = distinct([vertex for polygon in polygons for vertex in polygon])
    new_index = np.full(len(scaled), -1)
    new_index[used] = np.arange(len(used))
    faces = tuple(tuple(int(new_index[v]) for v in polygon) for polygon in polygons)
    vertex = scaled[used] * extent
    middle = 0.5 * (vertex.min(axis=0) + vertex.max(axis=0))
    return ConvexHull(vertex - middle, center + middle, _edges(faces), normals, faces)


def _merged(
    points: np.ndarray, triangles: np.ndarray, normals: np.ndarray, neighbors: np.ndarray
) -> tuple[list[list[int]], np.ndarray]:
    """Merged coplanar triangles: each face's outline, and its normal."""
    face_of = np.full(len(triangles), -1)
    outlines = []
    face_normals = []
    # The largest triangles first: their planes are the most accurate.
    p, q, r = (points[triangles[:, k]] for k in range(3))
    area = norm(np.cross(q - p, r - p))
    # Neighbours in a triangle's plane; not the opposite side of a plate thinner than COPLANAR.
    offset = dot(normals, points[triangles[:, 0]])
    height = dot(points[triangles[neighbors]], normals[:, None, None]) - offset[:, None, None]
    alike = dot(normals[neighbors], normals[:, None]) > 0.0
    alone = np.logical_not(((np.abs(height).max(axis=2) <= COPLANAR) & alike).any(axis=1))
    for seed in np.argsort(-area, kind="stable"):
        if face_of[seed] >= 0:
            continue
        if alone[seed]:
            members = [seed]
            outline = _from_least(triangles[seed].tolist())
        else:
            members, outline = _face_around(seed, points, triangles, normals, neighbors, face_of)
        face_of[members] = len(outlines)
        outlines.append(outline)
        face_normals.append(normals[seed])
    return outlines, np.array(face_normals)


def _face_around(
    seed: int,
    points: np.ndarray,
    triangles: np.ndarray,
    normals: np.ndarray,
    neighbors: np.ndarray,
    face_of: np.ndarray,
) -> tuple[list[int], list[int]]:
    """The connected triangles in the plane of a seed, among those without a face, and their
    outline."""
    members = [seed]
    front = [seed]
    seen = {seed}
    offset = dot(points[triangles[seed, 0]], normals[seed])
    while front:
        for neighbor in neighbors[front.pop()].tolist():
            if neighbor in seen or face_of[neighbor] >= 0:
                continue
            seen.add(neighbor)
            height = dot(points[triangles[neighbor]], normals[seed]) - offset
            # The normal excludes the opposite side of a plate thinner than the tolerance.
            if np.abs(height).max() <= COPLANAR and dot(normals[neighbor], normals[seed]) > 0.0:
                members.append(neighbor)
                front.append(neighbor)
    outline = _outline(triangles[members])
    return (
        (members, outline)
        if outline is not None
        else ([seed], _from_least(triangles[seed].tolist()))
    )


def _from_least(corners: list[int]) -> list[int]:
    least = corners.index(min(corners))
    return corners[least:] + corners[:least]


def _outline(triangles: np.ndarray) -> list[int] | None:
    """The boundary of connected triangles as ordered vertices, from the least; None if a vertex
    repeats."""
    sides = {(int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3)}
    boundary = [(a, b) for a, b in sides if (b, a) not in sides]
    following = dict(boundary)
    if len(following) < len(boundary):
        return None
    start = min(following)
    outline = [start]
    while (vertex := following[outline[-1]]) != start:
        outline.append(vertex)
    return outline if len(outline) == len(boundary) else None


def _edges(faces: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """int32[E, 4]: vertices and faces of every edge, sorted by vertices."""
    sides = defaultdict(list)
    for face, outline in enumerate(faces):
        for k, vertex in enumerate(outline):
            following = outline[(k + 1) % len(outline)]
            sides[min(vertex, following), max(vertex, following)].append(face)
    return np.array([(*ends, *parted) for ends, parted in sorted(sides.items())], np.int32)


def kept_corners(vertex: np.ndarray, outline: tuple[int, ...]) -> list[int]:
    """At most FACE_CORNERS indices into a face's outline, chosen greedily for the largest area of
    their polygon."""
    kept = list(range(len(outline)))
    while len(kept) > FACE_CORNERS:
        corners = [outline[k] for k in kept]
        p = vertex[corners]
        before = vertex[[corners[-1], *corners[:-1]]]
        after = vertex[[*corners[1:], corners[0]]]
        del kept[int(np.argmin(norm(cross(before - p, after - p))))]
    return kept


def faces_by_corners(faces: tuple[tuple[int, ...], ...]) -> dict[int, np.ndarray]:
    """int64[n]: the faces of each number of corners."""
    found: dict[int, list[int]] = defaultdict(list)
    for face, outline in enumerate(faces):
        found[len(outline)].append(face)
    return {corners: np.array(those) for corners, those in found.items()}


def half_widths(hull: ConvexHull) -> np.ndarray:
    """float64[F], half of every face's least width [m]."""
    widths = np.empty(len(hull.face))
    for corners, faces in faces_by_corners(hull.face).items():
        p = hull.vertex[np.array([hull.face[face] for face in faces])]
        widths[faces] = (
            _half_widths_of_triangles(p)
            if corners == 3
            else _half_widths_of_polygons(p, hull.face_normal[faces])
        )
    return widths


def _half_widths_of_triangles(p: np.ndarray) -> np.ndarray:
    """float64[n] of corners [n, 3, 3]: half of the height over the longest side [m]."""
    longest = norm(p - np.roll(p, 1, axis=1)).max(axis=1)
    return 0.5 * norm(cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])) / longest


def _half_widths_of_polygons(p: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """float64[n] of corners [n, k, 3] and normals [n, 3]: half of the least depth below a side
    [m]."""
    inward = cross(normal[:, None], np.roll(p, -1, axis=1) - p)
    inward /= norm(inward)[..., None]
    depth = dot(p[:, None] - p[:, :, None], inward[:, :, None])
    return 0.5 * depth.max(axis=2).min(axis=1)


FEW = 20_000
"""Points up to which `convex_hull` needs no reduction."""
CANDIDATE_LIMIT = 1_000_000
"""Most points that may be vertices; Qhull takes some 20 s for so many on a sphere."""
VERTEX_LIMIT = 50_000
"""Most vertices of a hull; so many take some 40 s, most of it for merging faces."""
INNER = 1e-9
"""A point deeper than this fraction of the size inside the hull of some of the points is no
vertex."""
_CHUNK = 1 << 16


def hull_points(points: np.ndarray, where: str) -> np.ndarray:
    """The vertices of the hull of finite points [n, 3]; all points if they are few.

    Flat points give their extreme points in 26 directions. Raises InputError, with `where`, for
    more candidates or vertices than the limits, which bound the time. Source: Akl, Toussaint 1978:
    points inside the hull of the extreme points of some directions are discarded first.
    """
    if len(points) <= FEW:
        return points
    from scipy.spatial import ConvexHull, QhullError

    low = points.min(axis=0)
    extent = float((points.max(axis=0) - low).max())
    if extent == 0.0:
        return points[:1]
    directions = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
    extreme = distinct(np.array([int(np.argmax(dot(points, d))) for d in directions]))
    try:
        inner = ConvexHull((points[extreme] - low) / extent)
        candidates = points[_outside(points, low, extent, inner.equations)]
        if len(candidates) > CANDIDATE_LIMIT:
            raise _too_many(f"{len(candidates)} points near its hull", where, CANDIDATE_LIMIT)
        vertices = ConvexHull((candidates - low) / extent).vertices
    except QhullError:
        return points[extreme]  # flat
    if len(vertices) > VERTEX_LIMIT:
        raise _too_many(f"a hull of {len(vertices)} vertices", where, VERTEX_LIMIT)
    return candidates[vertices]


def _outside(
    points: np.ndarray, low: np.ndarray, extent: float, equations: np.ndarray
) -> np.ndarray:
    """bool[n]: points that are less than INNER inside some plane."""
    kept = np.empty(len(points), bool)
    for start in range(0, len(points), _CHUNK):
        scaled = (points[start : start + _CHUNK] - low) / extent
        kept[start : start + _CHUNK] = (
            dot(scaled[:, None], equations[:, :3]) + equations[:, 3]
        ).max(axis=1) > -INNER
    return kept


def _too_many(what: str, where: str, limit: int) -> InputError:
    return InputError(
        f"the mesh has {what}, and {limit} are the most",
        where,
        "simplify the mesh, or collide with its bounding box",
    )
