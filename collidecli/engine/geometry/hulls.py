"""Convex hulls on the device: vertices, faces and edges of all of them in two arrays, and the farthest vertex."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.model.convex_hull import FACE_CORNERS, ConvexHull, half_widths, kept_corners

FACE_ROW = wp.constant(1 + 2 * FACE_CORNERS)
"""Numbers of a face: how many corners it keeps, these (vertices), and the features of the sides after each."""
CORNERS = wp.constant(FACE_CORNERS)
SEEDS_ALONG = 4
SEEDS = wp.constant(SEEDS_ALONG)
"""Squares along a side of a cube's face. A search begins at the vertex farthest along the middle of the square through
which its direction leaves the cube."""
SQUARES = wp.constant(Real(float(SEEDS_ALONG)))
SCANNED = wp.constant(24)
"""Hulls of at most so many vertices are looked through; in larger ones the search climbs from vertex to vertex."""
HEADER = 7


@wp.struct
class HullShape:
    """A convex hull as a shape. type, size: as those of a `Primitive`; size is half of its box [m].

    point: of all hulls. Of this one the vertices from `vertex` on; from `normal` on the faces' outward normals, and
        behind them a point a face whose x is half of its least width.
    table: of all hulls. Of this one from `ring` on where each vertex's neighbours begin, and one more; there neighbour,
        edge and a face beside it. From `edge` on two vertices and two faces an edge. From `face` on FACE_ROW numbers a
        face, and behind them where searches start (`seed_of`).
    """

    type: int
    size: Vec3
    point: wp.array[Vec3]
    table: wp.array[int]
    vertex: int
    vertex_count: int
    normal: int
    face_count: int
    ring: int
    edge: int
    face: int


@wp.struct
class Hulls:
    """Every hull of a model. header: HEADER numbers a hull, the last seven fields of `HullShape`."""

    point: wp.array[Vec3]
    table: wp.array[int]
    header: wp.array[int]


@wp.func
def hull_shape(hulls: Hulls, hull: int, shape_type: int, size: Vec3) -> HullShape:
    """Hull number `hull` as a shape."""
    shape = HullShape()
    shape.type = shape_type
    shape.size = size
    shape.point = hulls.point
    shape.table = hulls.table
    first = hull * wp.static(HEADER)
    shape.vertex = hulls.header[first]
    shape.vertex_count = hulls.header[first + 1]
    shape.normal = hulls.header[first + 2]
    shape.face_count = hulls.header[first + 3]
    shape.ring = hulls.header[first + 4]
    shape.edge = hulls.header[first + 5]
    shape.face = hulls.header[first + 6]
    return shape


@wp.func
def seed_of(direction: Vec3) -> int:
    """Which of the 6 SEEDS^2 squares around the origin a direction passes through."""
    x = wp.abs(direction[0])
    y = wp.abs(direction[1])
    z = wp.abs(direction[2])
    axis = int(2)
    if x >= y and x >= z:
        axis = 0
    elif y >= z:
        axis = 1
    along = wp.abs(direction[axis])
    u = Real(0.5) * (direction[(axis + 1) % 3] / along + Real(1.0))
    v = Real(0.5) * (direction[(axis + 2) % 3] / along + Real(1.0))
    i = wp.clamp(int(u * SQUARES), 0, SEEDS - 1)
    j = wp.clamp(int(v * SQUARES), 0, SEEDS - 1)
    side = 2 * axis
    if direction[axis] > Real(0.0):
        side += 1
    return (side * SEEDS + i) * SEEDS + j


@wp.func
def farthest_vertex(shape: HullShape, direction: Vec3) -> int:
    """The vertex farthest along a direction; of several, one that depends on the direction alone.

    A vertex that no neighbour passes is the farthest, as the hull is convex.
    """
    best = int(0)
    if shape.vertex_count <= SCANNED:
        height = wp.dot(shape.point[shape.vertex], direction)
        i = int(1)
        while i < shape.vertex_count:
            here = wp.dot(shape.point[shape.vertex + i], direction)
            if here > height:
                height = here
                best = i
            i += 1
        return best
    best = shape.table[shape.face + shape.face_count * FACE_ROW + seed_of(direction)]
    height = wp.dot(shape.point[shape.vertex + best], direction)
    before = int(-1)
    while best != before:
        before = best
        at = shape.table[shape.ring + before]
        end = shape.table[shape.ring + before + 1]
        while at < end:
            neighbor = shape.table[at]
            here = wp.dot(shape.point[shape.vertex + neighbor], direction)
            if here > height:
                height = here
                best = neighbor
            at += 3
    return best


def upload_hulls(hulls: Sequence[ConvexHull], device: wp.Device) -> Hulls:
    """The hulls' arrays on a device."""
    points, table, header = [np.zeros((0, 3))], [np.zeros(0, np.int64)], []
    point_count = table_size = 0
    for hull in hulls:
        vertices, faces = len(hull.vertex), len(hull.face)
        rings, edges, rows, seeds = _rings(hull, table_size), hull.edge.ravel(), _face_rows(hull), _seeds(hull)
        header.append(
            (
                point_count,
                vertices,
                point_count + vertices,
                faces,
                table_size,
                table_size + len(rings),
                table_size + len(rings) + len(edges),
            )
        )
        widths = np.zeros((faces, 3))
        widths[:, 0] = half_widths(hull)
        points += [hull.vertex, hull.face_normal, widths]
        table += [rings, edges, rows, seeds]
        point_count += vertices + 2 * faces
        table_size += len(rings) + len(edges) + len(rows) + len(seeds)
    result = Hulls()
    result.point = wp.array(np.concatenate([*points, np.zeros((1, 3))]), dtype=Vec3, device=device)
    result.table = wp.array(np.concatenate([*table, [0]]).astype(np.int32), dtype=wp.int32, device=device)
    result.header = wp.array(np.array([*header, (0,) * HEADER], np.int32).ravel(), dtype=wp.int32, device=device)
    return result


def _rings(hull: ConvexHull, base: int) -> np.ndarray:
    """Where each vertex's neighbours begin in the table, and one more; then neighbour, edge, face of each."""
    around: list[list[int]] = [[] for _ in hull.vertex]
    for edge, (p, q, left, right) in enumerate(hull.edge.tolist()):
        around[p] += [q, edge, left]
        around[q] += [p, edge, right]
    starts = np.cumsum([base + len(around) + 1, *(len(ring) for ring in around)])
    return np.concatenate([starts, *(np.array(ring, np.int64) for ring in around)])


def _face_rows(hull: ConvexHull) -> np.ndarray:
    edge_of = {(p, q): edge for edge, (p, q, _, _) in enumerate(hull.edge.tolist())}
    chords = len(hull.edge)
    rows = np.zeros((len(hull.face), int(FACE_ROW)), np.int64)
    for row, outline in zip(rows, hull.face, strict=True):
        corners = [outline[k] for k in kept_corners(hull.vertex, outline)]
        row[0] = len(corners)
        for k, corner in enumerate(corners):
            following = corners[(k + 1) % len(corners)]
            edge = edge_of.get((min(corner, following), max(corner, following)))
            if edge is None:  # a side that is no edge of the hull: corners between its ends are left out
                edge, chords = chords, chords + 1
            row[1 + k], row[1 + FACE_CORNERS + k] = corner, 3 * edge + 1
    return rows.ravel()


def _seeds(hull: ConvexHull) -> np.ndarray:
    """The farthest vertex along the middle of each square, in the order of `seed_of`."""
    middle = (np.arange(SEEDS_ALONG) + 0.5) / SEEDS_ALONG * 2.0 - 1.0
    directions = np.zeros((3, 2, SEEDS_ALONG, SEEDS_ALONG, 3))
    for axis in range(3):
        directions[axis, 0, ..., axis], directions[axis, 1, ..., axis] = -1.0, 1.0
        directions[axis, ..., (axis + 1) % 3] = middle[:, None]
        directions[axis, ..., (axis + 2) % 3] = middle[None, :]
    return np.argmax(directions.reshape(-1, 3) @ hull.vertex.T, axis=1)
