"""Convex hulls on the device: vertices, faces and edges of all hulls in two arrays, and the support
vertex."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.warp_internals import struct_of
from collidecli.numerics.products import matmul
from collidecli.scene.convex_hull import (
    FACE_CORNERS,
    ConvexHull,
    faces_by_corners,
    half_widths,
    kept_corners,
)
from collidecli.scene.convex_surface import ConvexSurface

FACE_ROW = wp.constant(1 + 2 * FACE_CORNERS)
"""Numbers a face: count of kept corners, the corners (vertices), and the features of the sides
after each corner."""
CORNERS = wp.constant(FACE_CORNERS)
SEEDS_ALONG_LIMIT = 24
"""Maximum number of squares along a side of a cube map's face. A search starts at the support
vertex of the centre of the square that contains its direction; a hull has about as many squares as
vertices or more."""
SEEDS_AT_ONCE = 100
SCANNED = wp.constant(24)
"""Largest vertex count searched linearly; larger hulls are searched by hill climbing."""


@wp.struct
class HullShape:
    """A convex hull as a shape. type, size: as in `Primitive`; size: half extents of its box [m].

    point: of all hulls. For this hull: vertices from `vertex` on; from `normal` on the faces'
        outward normals, followed by one point a face whose x is half of its least width. From
        `around` on the positions of each vertex's climbing neighbours (`ConvexHull.climbing`),
        vertex by vertex, so that the search reads them contiguously.
    table: of all hulls. For this hull: from `ring` on the count of neighbours before those of each
        vertex, plus the total; then neighbour, edge and the face to the left of the direction to
        the neighbour, for each. From `edge` on two vertices and two faces an edge. From `face` on
        FACE_ROW numbers a face, followed by the start vertices of searches (`seed_of`), for 6
        seeds^2 squares. From `climb` on the count of points of `around` before those of each
        vertex, plus the total; then the vertices of these points.
    facing: support vertex and facing face of the direction for which the shape's features are
        queried, cached for all queries (`features.with_facing`); -1 if not cached.
    """

    type: int
    size: Vec3
    point: wp.uint64
    table: wp.uint64
    vertex: int
    vertex_count: int
    normal: int
    face_count: int
    around: int
    ring: int
    edge: int
    face: int
    climb: int
    seeds: int
    facing: wp.vec2i


@wp.struct
class HullHeader:
    """Indices of a hull in `Hulls`. name: start of the names of its features in `table`, -1 where a
    feature's name is its number. Others: see `HullShape`.
    """

    vertex: int
    vertex_count: int
    normal: int
    face_count: int
    around: int
    ring: int
    edge: int
    face: int
    climb: int
    seeds: int
    name: int


@wp.struct
class Hulls:
    """Every hull of a model; see `HullShape`. header: one for each hull."""

    point: wp.array[Vec3]
    table: wp.array[int]
    header: wp.array[HullHeader]


@wp.func
def hull_shape(hulls: Hulls, hull: int, shape_type: int, size: Vec3) -> HullShape:
    """Hull number `hull` as a shape."""
    shape = HullShape()
    shape.type = shape_type
    shape.size = size
    shape.point = address_of(hulls.point)
    shape.table = address_of_numbers(hulls.table)
    shape.vertex = hulls.header[hull].vertex
    shape.vertex_count = hulls.header[hull].vertex_count
    shape.normal = hulls.header[hull].normal
    shape.face_count = hulls.header[hull].face_count
    shape.around = hulls.header[hull].around
    shape.ring = hulls.header[hull].ring
    shape.edge = hulls.header[hull].edge
    shape.face = hulls.header[hull].face
    shape.climb = hulls.header[hull].climb
    shape.seeds = hulls.header[hull].seeds
    shape.facing = wp.vec2i(-1, -1)
    return shape


@wp.func_native("return (wp::uint64)array.data;")
def address_of(array: wp.array[Vec3]) -> wp.uint64:
    """Address of an array's first element."""
    ...


@wp.func_native("return (wp::uint64)array.data;")
def address_of_numbers(array: wp.array[int]) -> wp.uint64:
    """Address of an array's first element."""
    ...


@wp.func_native("return ((const wp::vec_t<3, wp::float64>*)address)[index];")
def point_at(address: wp.uint64, index: int) -> Vec3:
    """Element of an array of points given by its address."""
    ...


@wp.func_native("return ((const wp::int32*)address)[index];")
def number_at(address: wp.uint64, index: int) -> int:
    """Element of an array of numbers given by its address."""
    ...


@wp.func
def hull_point(shape: HullShape, index: int) -> Vec3:
    """Element of `Hulls.point`, of which a hull has those that `HullShape` names."""
    return point_at(shape.point, index)


@wp.func
def hull_number(shape: HullShape, index: int) -> int:
    """Element of `Hulls.table`, of which a hull has those that `HullShape` names."""
    return number_at(shape.table, index)


@wp.func
def links_of(shape: HullShape, vertex: int) -> wp.vec2i:
    """Start and end of a vertex's neighbours in the table, three numbers each."""
    first = shape.ring + shape.vertex_count + 1
    return wp.vec2i(
        first + 3 * hull_number(shape, shape.ring + vertex),
        first + 3 * hull_number(shape, shape.ring + vertex + 1),
    )


@wp.func
def edge_end(shape: HullShape, edge: int, end: int) -> Vec3:
    """One of the two ends (0, 1) of an edge [m]."""
    return hull_point(shape, shape.vertex + hull_number(shape, shape.edge + 4 * edge + end))


@wp.func
def seed_of(direction: Vec3, seeds: int) -> int:
    """Index of the cube map square, of 6 seeds^2 around the origin, that contains a direction."""
    x, y, z = wp.abs(direction[0]), wp.abs(direction[1]), wp.abs(direction[2])
    # Selections instead of branches, which would be mispredicted.
    by_x = x >= wp.max(y, z)
    by_y = y >= z
    along = wp.where(by_x, direction[0], wp.where(by_y, direction[1], direction[2]))
    first = wp.where(by_x, direction[1], wp.where(by_y, direction[2], direction[0]))
    second = wp.where(by_x, direction[2], wp.where(by_y, direction[0], direction[1]))
    side = wp.where(by_x, 0, wp.where(by_y, 2, 4)) + wp.where(along > Real(0.0), 1, 0)
    half = Real(0.5) * Real(seeds)
    scale = half / wp.abs(along)
    i = wp.clamp(int(half + scale * first), 0, seeds - 1)
    j = wp.clamp(int(half + scale * second), 0, seeds - 1)
    return (side * seeds + i) * seeds + j


@wp.func
def farthest_vertex(shape: HullShape, direction: Vec3) -> int:
    """Support vertex along a direction; of several, one that depends on the direction alone.

    Linear search of small hulls, hill climbing in others: a vertex without a higher neighbour is a
    global maximum, as the hull is convex.
    """
    best = int(0)
    if shape.vertex_count <= SCANNED:
        height = wp.dot(hull_point(shape, shape.vertex), direction)
        i = int(1)
        while i < shape.vertex_count:
            vertex_height = wp.dot(hull_point(shape, shape.vertex + i), direction)
            if vertex_height > height:
                height = vertex_height
                best = i
            i += 1
        return best
    best = hull_number(
        shape, shape.face + shape.face_count * FACE_ROW + seed_of(direction, shape.seeds)
    )
    height = wp.dot(hull_point(shape, shape.vertex + best), direction)
    passed = int(0)
    while passed >= 0:
        at = shape.around + hull_number(shape, shape.climb + best)
        end = shape.around + hull_number(shape, shape.climb + best + 1)
        passed = int(-1)
        while at < end:
            vertex_height = wp.dot(hull_point(shape, at), direction)
            if vertex_height > height:
                height = vertex_height
                passed = at
            at += 1
        if passed >= 0:
            best = hull_number(shape, shape.climb + shape.vertex_count + 1 + passed - shape.around)
    return best


def upload_hulls(
    hulls: Sequence[ConvexHull], device: wp.Device, surfaces: Sequence[ConvexSurface] = ()
) -> Hulls:
    """Device arrays of the hulls, followed by the hulls of convex mesh surfaces."""
    names = [np.zeros(0, np.int64)] * len(hulls) + [surface.name for surface in surfaces]
    points = [np.zeros((0, 3))]
    table = [np.zeros(0, np.int64)]
    header = []
    point_count = table_size = 0
    for hull, name in zip([*hulls, *(surface.hull for surface in surfaces)], names, strict=True):
        vertices = len(hull.vertex)
        faces = len(hull.face)
        seeds = seeds_along(len(hull.vertex))
        rings, links = _rings(hull)
        before, neighbor = hull.climbing if seeds else (np.zeros(0, np.int64),) * 2
        widths = np.zeros((faces, 3))
        widths[:, 0] = half_widths(hull)
        hull_arrays = [hull.vertex, hull.face_normal, widths, hull.vertex[neighbor]]
        numbers = [
            rings,
            links,
            hull.edge.ravel(),
            _face_rows(hull),
            _seeds(hull, seeds, before),
            before,
            neighbor,
        ]
        edge = table_size + len(rings) + len(links)
        normal = point_count + vertices
        header.append(
            (
                point_count,
                vertices,
                normal,
                faces,
                normal + 2 * faces,
                table_size,
                edge,
                edge + hull.edge.size,
                table_size + sum(map(len, numbers[:5])),
                seeds,
                table_size + sum(map(len, numbers)) if len(name) else -1,
            )
        )
        points += hull_arrays
        table += [*numbers, name]
        point_count += sum(map(len, hull_arrays))
        table_size += sum(map(len, numbers)) + len(name)
    result = Hulls()
    result.point = device_array(np.concatenate(points), Vec3, device)
    result.table = device_array(np.concatenate(table).astype(np.int32), wp.int32, device)
    struct = struct_of(HullHeader)
    records = np.array([*header, (0,) * len(struct.vars)], struct.numpy_dtype())
    result.header = wp.array(records, dtype=HullHeader, device=device)
    return result


def seeds_along(vertices: int) -> int:
    """Squares along a side of a cube map's face for a hull with `vertices` vertices; 0 for linear
    search."""
    if vertices <= int(SCANNED):
        return 0
    return min(SEEDS_ALONG_LIMIT, int(np.ceil(np.sqrt(vertices / 3.0))))


def _rings(hull: ConvexHull) -> tuple[np.ndarray, np.ndarray]:
    """Counts of neighbours before those of each vertex, plus the total; and neighbour, edge and
    face of each, of a vertex in the order of the edges.

    The face is to the left of the direction to the neighbour, seen from outside: each face at a
    vertex occurs once.
    """
    vertex_count = len(hull.vertex)
    begin = np.concatenate(hull.face)
    end = np.concatenate([(*outline[1:], outline[0]) for outline in hull.face])
    face = np.repeat(np.arange(len(hull.face)), [len(outline) for outline in hull.face])
    side = begin * vertex_count + end
    order = np.argsort(side)
    ends = hull.edge[:, :2].astype(np.int64)
    # Both directions of each edge.
    vertex = ends.ravel()
    neighbor = ends[:, ::-1].ravel()
    edge = np.repeat(np.arange(len(ends)), 2)
    left = face[order[np.searchsorted(side, vertex * vertex_count + neighbor, sorter=order)]]
    around = np.argsort(vertex, kind="stable")
    before = np.searchsorted(vertex[around], np.arange(vertex_count + 1))
    return before, np.stack([neighbor, edge, left], axis=1)[around].ravel()


def _face_rows(hull: ConvexHull) -> np.ndarray:
    """FACE_ROW numbers of each face: corners, at most FACE_CORNERS, and the sides after them. A
    side between corners of which others are dropped is no edge, but a chord, numbered after the
    edges."""
    vertex_count = len(hull.vertex)
    edges = hull.edge[:, 0].astype(np.int64) * vertex_count + hull.edge[:, 1]
    rows = np.zeros((len(hull.face), int(FACE_ROW)), np.int64)
    many = []
    for count, faces in faces_by_corners(hull.face).items():
        if count > FACE_CORNERS:
            many += faces.tolist()
            continue
        corners = np.array([hull.face[face] for face in faces], np.int64)
        following = np.roll(corners, -1, axis=1)
        ends = np.minimum(corners, following) * vertex_count + np.maximum(corners, following)
        rows[faces, 0] = count
        rows[faces, 1 : 1 + count] = corners
        sides = 3 * np.searchsorted(edges, ends) + 1
        rows[faces, 1 + FACE_CORNERS : 1 + FACE_CORNERS + count] = sides
    chords = len(edges)
    for face in sorted(many):
        outline = hull.face[face]
        kept = kept_corners(hull.vertex, outline)
        rows[face, 0] = len(kept)
        for k, place in enumerate(kept):
            corner = outline[place]
            following = outline[kept[(k + 1) % len(kept)]]
            wanted = min(corner, following) * vertex_count + max(corner, following)
            edge = int(np.searchsorted(edges, wanted))
            if edge == len(edges) or edges[edge] != wanted:
                edge = chords
                chords += 1
            rows[face, 1 + k] = corner
            rows[face, 1 + FACE_CORNERS + k] = 3 * edge + 1
    return rows.ravel()


def _seeds(hull: ConvexHull, seeds: int, before: np.ndarray) -> np.ndarray:
    """Support vertex along the centre of each square, in the order of `seed_of`, among the vertices
    with neighbours."""
    if seeds == 0:
        return np.zeros(0, np.int64)
    middle = (np.arange(seeds) + 0.5) / seeds * 2.0 - 1.0
    directions = np.zeros((3, 2, seeds, seeds, 3))
    for axis in range(3):
        directions[axis, 0, ..., axis] = -1.0
        directions[axis, 1, ..., axis] = 1.0
        directions[axis, ..., (axis + 1) % 3] = middle[:, None]
        directions[axis, ..., (axis + 2) % 3] = middle[None, :]
    rows = directions.reshape(-1, 3)
    eligible = np.flatnonzero(np.diff(before) > 0)
    parts = np.array_split(rows, 1 + len(rows) // SEEDS_AT_ONCE)
    return np.concatenate(
        [eligible[np.argmax(matmul(part, hull.vertex[eligible].T), axis=1)] for part in parts]
    )
