"""Closest point of a mesh to a point, inside test, and segment-triangle intersection."""

import warp as wp

from collidecli.engine.geometry.line_crossings import line_crosses_triangle
from collidecli.engine.geometry.meshes import Meshes, mesh_corner
from collidecli.engine.geometry.real import Real, Vec3

EDGE_PART = wp.constant(3)
FACE_PART = wp.constant(6)
MAX_TREE_NODES = 40
"""Boxes that wait while a tree is descended: one a level, and a tree of 2^31 boxes has 32."""


@wp.struct
class MeshPoint:
    """A point of a mesh's surface. face: index of its triangle, counted through all meshes, -1 for
    none.

    part: feature of the triangle that contains the point: 0 to 2 corner, EDGE_PART + k side k,
    FACE_PART interior. square: squared distance to the query point [m^2].
    """

    point: Vec3
    face: int
    part: int
    square: Real


@wp.func
def nearest_triangle_point(p: Vec3, q: Vec3, r: Vec3, normal: Vec3, point: Vec3) -> MeshPoint:
    """Closest point of triangle p, q, r with unit normal to a point; `face` is not set.

    Source: Ericson 2005, 5.1.5.
    """
    nearest = MeshPoint()
    pq = q - p
    pr = r - p
    off = point - p
    d1 = wp.dot(pq, off)
    d2 = wp.dot(pr, off)
    off = point - q
    d3 = wp.dot(pq, off)
    d4 = wp.dot(pr, off)
    off = point - r
    d5 = wp.dot(pq, off)
    d6 = wp.dot(pr, off)
    of_r = d1 * d4 - d3 * d2
    of_q = d5 * d2 - d1 * d6
    of_p = d3 * d6 - d5 * d4
    zero = Real(0.0)
    if d1 <= zero and d2 <= zero:
        nearest.part = 0
        nearest.point = p
    elif d3 >= zero and d4 <= d3:
        nearest.part = 1
        nearest.point = q
    elif d6 >= zero and d5 <= d6:
        nearest.part = 2
        nearest.point = r
    elif of_r <= zero and d1 >= zero and d3 <= zero:
        nearest.part = EDGE_PART
        nearest.point = p + (d1 / (d1 - d3)) * pq
    elif of_q <= zero and d2 >= zero and d6 <= zero:
        nearest.part = EDGE_PART + 2
        nearest.point = p + (d2 / (d2 - d6)) * pr
    elif of_p <= zero and d4 - d3 >= zero and d5 - d6 >= zero:
        nearest.part = EDGE_PART + 1
        nearest.point = q + ((d4 - d3) / ((d4 - d3) + (d5 - d6))) * (r - q)
    else:
        nearest.part = FACE_PART
        nearest.point = point - wp.dot(point - p, normal) * normal
    nearest.square = wp.length_sq(point - nearest.point)
    return nearest


@wp.func(inline=False)
def mesh_point_on_triangle(meshes: Meshes, face: int, point: Vec3) -> MeshPoint:
    """Closest point of one triangle of a mesh to a point."""
    p = mesh_corner(meshes, face, 0)
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    nearest = nearest_triangle_point(p, q, r, meshes.arrays[0].face_normal[face], point)
    nearest.face = face
    return nearest


@wp.func
def square_to_box(meshes: Meshes, node: int, point: Vec3) -> Real:
    """Squared distance of a point to a box of the BVH, 0 inside [m^2]."""
    off = point - wp.max(meshes.arrays[0].lower[node], wp.min(meshes.arrays[0].upper[node], point))
    return wp.dot(off, off)


@wp.func(inline=False)
def nearest_mesh_point_within(meshes: Meshes, mesh: int, point: Vec3, square: Real) -> MeshPoint:
    """Closest point of a mesh closer than the square root of `square` [m^2], face -1 for none.

    Depth-first traversal of the BVH, closer child first. If such a point exists, it is that of
    `nearest_mesh_point`.
    """
    stack = wp.zeros(shape=wp.static(MAX_TREE_NODES), dtype=int)
    stack_square = wp.zeros(shape=wp.static(MAX_TREE_NODES), dtype=Real)
    best = MeshPoint()
    best.face = -1
    best.square = square
    count = int(0)
    node = meshes.arrays[0].header[mesh].first_node
    while node >= 0:
        following = int(-1)
        face = meshes.arrays[0].leaf[node]
        if face >= 0:
            nearest = mesh_point_on_triangle(meshes, face, point)
            if nearest.square < best.square:
                best = nearest
        else:
            near = node + 1
            far = meshes.arrays[0].skip[near]
            square_near = square_to_box(meshes, near, point)
            square_far = square_to_box(meshes, far, point)
            if square_far < square_near:
                near = far
                far = node + 1
                swap = square_near
                square_near = square_far
                square_far = swap
            if square_far < best.square:
                stack[count] = far
                stack_square[count] = square_far
                count += 1
            if square_near < best.square:
                following = near
        while following < 0 and count > 0:
            count -= 1
            if stack_square[count] < best.square:
                following = stack[count]
        node = following
    return best


@wp.func
def nearest_mesh_point(meshes: Meshes, mesh: int, point: Vec3) -> MeshPoint:
    """Closest point of a mesh to a point in the mesh's frame; of equally close ones the first in
    traversal order."""
    return nearest_mesh_point_within(meshes, mesh, point, Real(wp.inf))


@wp.func
def outward_at(meshes: Meshes, face: int, part: int) -> Vec3:
    """Angle-weighted pseudonormal of a feature, not unit: its sign separates outside from inside.

    Source: Baerentzen and Aanaes 2005.
    """
    if part == FACE_PART:
        return meshes.arrays[0].face_normal[face]
    if part >= EDGE_PART:
        return meshes.arrays[0].edge_normal[meshes.arrays[0].side[3 * face + part - EDGE_PART]]
    return meshes.arrays[0].vertex_normal[meshes.arrays[0].corner[3 * face + part]]


@wp.func
def edge_crossing(low: Vec3, high: Vec3, point: Vec3, forward: bool) -> int:
    """1 if an edge crosses a line along x through a point, at larger y, upwards in z; -1 if
    downwards; else 0.

    low, high: ends ordered by vertex index, so that both adjacent triangles round identically.
    forward: from low to high.
    """
    low_above = low[2] >= point[2]
    high_above = high[2] >= point[2]
    if low_above == high_above:
        return 0
    area = (low[1] - point[1]) * (high[2] - point[2]) - (low[2] - point[2]) * (high[1] - point[1])
    return 0 if (area > Real(0.0)) != high_above else wp.where(forward == high_above, 1, -1)


@wp.func
def triangle_crossing(meshes: Meshes, face: int, point: Vec3) -> int:
    """1 if a line along +x through a point crosses a triangle from back to front, -1 from front to
    back, else 0.

    The contributions of a shared edge cancel between its triangles: a line through an edge or
    vertex is counted once.
    """
    crossing = int(0)
    for k in range(3):
        first = meshes.arrays[0].corner[3 * face + k]
        second = meshes.arrays[0].corner[3 * face + (k + 1) % 3]
        low = meshes.arrays[0].point[wp.min(first, second)]
        high = meshes.arrays[0].point[wp.max(first, second)]
        crossing += edge_crossing(low, high, point, first < second)
    return crossing


@wp.func(inline=False)
def winding_number(meshes: Meshes, mesh: int, point: Vec3) -> int:
    """Winding number of a mesh around a point, for meshes with `TriangleMesh.needs_winding`.

    Exact except within rounding of the surface. Source: see `scene.mesh_crossings.winding_at`.
    """
    node = meshes.arrays[0].header[mesh].first_winding_node
    stop = meshes.arrays[0].header[mesh].end_winding_node
    number = int(0)
    while node < stop:
        lower = meshes.arrays[0].lower[node]
        upper = meshes.arrays[0].upper[node]
        apart = upper[0] < point[0]
        for axis in range(1, 3):
            apart = apart or lower[axis] > point[axis] or upper[axis] < point[axis]
        if apart:
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        if face >= 0:
            crossing = triangle_crossing(meshes, face, point)
            if crossing != 0:
                p = mesh_corner(meshes, face, 0)
                q = mesh_corner(meshes, face, 1)
                r = mesh_corner(meshes, face, 2)
                height = wp.dot(point - p, wp.cross(q - p, r - p)) * Real(crossing)
                if point[0] < wp.min(p[0], wp.min(q[0], r[0])) or height < Real(0.0):
                    number += crossing
        node += 1
    return number


@wp.func
def is_behind_mesh(meshes: Meshes, mesh: int, point: Vec3, off: Vec3, outward: Vec3) -> bool:
    """Whether a point is inside a mesh, or behind an open mesh that has a front.

    By the winding number where the surface crosses itself, else by the pseudonormal of the closest
    feature. off: from the closest point of the surface to the point. outward: pseudonormal there,
    see `outward_at`.
    """
    if meshes.arrays[0].header[mesh].first_winding_node >= 0:
        return winding_number(meshes, mesh, point) != 0
    return wp.dot(off, outward) < Real(0.0)


@wp.func
def is_inside_mesh(meshes: Meshes, mesh: int, point: Vec3, nearest: MeshPoint) -> bool:
    """`is_behind_mesh` for a point with its closest point of the whole surface."""
    outward = outward_at(meshes, nearest.face, nearest.part)
    return is_behind_mesh(meshes, mesh, point, point - nearest.point, outward)


@wp.func
def feature_of_mesh_point(meshes: Meshes, mesh: int, face: int, part: int) -> int:
    """Feature number: 3 v of a vertex, 3 e + 1 of an edge, 3 f + 2 of a triangle, numbered within
    the mesh."""
    if part == FACE_PART:
        return 3 * (face - meshes.arrays[0].header[mesh].first_face) + 2
    if part >= EDGE_PART:
        return (
            3
            * (
                meshes.arrays[0].side[3 * face + part - EDGE_PART]
                - meshes.arrays[0].header[mesh].first_edge
            )
            + 1
        )
    return 3 * (
        meshes.arrays[0].corner[3 * face + part] - meshes.arrays[0].header[mesh].first_vertex
    )


@wp.func
def segment_crosses_triangle(meshes: Meshes, face: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment crosses a triangle, see `line_crosses_triangle`."""
    p = mesh_corner(meshes, face, 0)
    normal = meshes.arrays[0].face_normal[face]
    if (wp.dot(start - p, normal) >= Real(0.0)) == (wp.dot(end - p, normal) >= Real(0.0)):
        return False
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    return line_crosses_triangle(start, end - start, p, q, r)


RISE = wp.constant(Real(1.0e-5))
"""Sine of the angle by which a triangle may rise along a direction in its normal cone: GJK's
directions are good to 1e-6."""


@wp.struct
class NormalCone:
    """The normal cone of a surface feature, for one direction: along none of its directions does a
    triangle rise.

    The feature is the closest one of its neighbourhood to points in these directions. A triangle's
    cone is its normal; that of an edge has the directions between the normals of its triangles
    where the surface is convex, and is empty where it is concave or flat, so that an edge between
    coplanar triangles bends no normal; that of a border edge has all directions off the triangle.
    belongs: 1 where the direction is in the cone. outward: a vector on the surface's outer side
    there, not unit.
    """

    belongs: int
    outward: Vec3


@wp.func
def rises(direction: Vec3, along: Vec3, rise: Real) -> bool:
    """Whether a vector rises along a unit direction by an angle whose sine is more than `rise`."""
    return wp.dot(direction, along) > rise * wp.length(along)


@wp.func
def rises_across(direction: Vec3, along: Vec3, inward: Vec3, rise: Real) -> bool:
    """Whether a face rises along a direction from its edge, which is parallel to unit vector
    `along`."""
    return rises(direction, inward - wp.dot(inward, along) * along, rise)


@wp.func
def mesh_edge_cone_contains(meshes: Meshes, face: int, k: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of the interior of side k of a triangle."""
    start = mesh_corner(meshes, face, k)
    along = wp.normalize(mesh_corner(meshes, face, k + 1) - start)
    edge = meshes.arrays[0].side[3 * face + k]
    at = meshes.arrays[0].rim[edge]
    end = meshes.arrays[0].rim[edge + 1]
    contains = bool(True)
    while at < end:
        if rises_across(
            direction, along, meshes.arrays[0].point[meshes.arrays[0].across[at]] - start, rise
        ):
            contains = False
        at += 1
    return contains


@wp.func
def mesh_vertex_cone_contains(meshes: Meshes, vertex: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of a vertex."""
    at = meshes.arrays[0].ring[vertex]
    end = meshes.arrays[0].ring[vertex + 1]
    contains = bool(True)
    while at < end:
        along = meshes.arrays[0].point[meshes.arrays[0].around[at]] - meshes.arrays[0].point[vertex]
        if rises(direction, along, rise):
            contains = False
        at += 1
    return contains
