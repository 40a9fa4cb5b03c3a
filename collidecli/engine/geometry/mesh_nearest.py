"""The place of a mesh's surface that is nearest to a point, and how often a segment goes through the surface."""

import warp as wp

from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3

EDGE_PLACE = wp.constant(3)
FACE_PLACE = wp.constant(6)
MAX_TREE_NODES = 40
"""Boxes that wait while a tree is descended: one a level, and a tree of 2^31 boxes has 32."""


@wp.struct
class Place:
    """A point of a mesh's surface. face: the triangle it is on, counted through all meshes, -1 for none.

    part: 0 to 2 that corner of the triangle, EDGE_PLACE + k its side k, FACE_PLACE its inside. square: squared distance
    from what was asked [m^2].
    """

    point: Vec3
    face: int
    part: int
    square: Real


@wp.func
def mesh_corner(meshes: Meshes, face: int, k: int) -> Vec3:
    """Corner 0, 1 or 2 of a triangle; 3 and 4 are 0 and 1 again."""
    return meshes.point[meshes.corner[3 * face + k % 3]]


@wp.func
def place_among(p: Vec3, q: Vec3, r: Vec3, normal: Vec3, point: Vec3) -> Place:
    """The place of triangle p, q, r with unit normal that is nearest to a point; its number is left open.

    Source: Ericson 2005, 5.1.5.
    """
    place = Place()
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
        place.part = 0
        place.point = p
    elif d3 >= zero and d4 <= d3:
        place.part = 1
        place.point = q
    elif d6 >= zero and d5 <= d6:
        place.part = 2
        place.point = r
    elif of_r <= zero and d1 >= zero and d3 <= zero:
        place.part = EDGE_PLACE
        place.point = p + (d1 / (d1 - d3)) * pq
    elif of_q <= zero and d2 >= zero and d6 <= zero:
        place.part = EDGE_PLACE + 2
        place.point = p + (d2 / (d2 - d6)) * pr
    elif of_p <= zero and d4 - d3 >= zero and d5 - d6 >= zero:
        place.part = EDGE_PLACE + 1
        place.point = q + ((d4 - d3) / ((d4 - d3) + (d5 - d6))) * (r - q)
    else:
        place.part = FACE_PLACE
        place.point = point - wp.dot(point - p, normal) * normal
    place.square = wp.length_sq(point - place.point)
    return place


@wp.func(inline=False)
def place_on_triangle(meshes: Meshes, face: int, point: Vec3) -> Place:
    """The place of one triangle that is nearest to a point."""
    p = mesh_corner(meshes, face, 0)
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    place = place_among(p, q, r, meshes.face_normal[face], point)
    place.face = face
    return place


@wp.func
def square_to_box(meshes: Meshes, node: int, point: Vec3) -> Real:
    """Squared distance of a point from a box of the tree, 0 inside [m^2]."""
    off = point - wp.max(meshes.lower[node], wp.min(meshes.upper[node], point))
    return wp.dot(off, off)


@wp.func(inline=False)
def nearest_place_within(meshes: Meshes, mesh: int, point: Vec3, square: Real) -> Place:
    """As `nearest_place`, which this gives for any bound; only places nearer than the root of `square` [m^2] count."""
    header = meshes.header[mesh]
    waiting = wp.zeros(shape=wp.static(MAX_TREE_NODES), dtype=int)
    waiting_square = wp.zeros(shape=wp.static(MAX_TREE_NODES), dtype=Real)
    best = Place()
    best.face = -1
    best.square = square
    count = int(0)
    node = header.first_node
    while node >= 0:
        following = int(-1)
        face = meshes.leaf[node]
        if face >= 0:
            place = place_on_triangle(meshes, face, point)
            if place.square < best.square:
                best = place
        else:
            near = node + 1
            far = meshes.skip[near]
            square_near = square_to_box(meshes, near, point)
            square_far = square_to_box(meshes, far, point)
            if square_far < square_near:
                near = far
                far = node + 1
                held = square_near
                square_near = square_far
                square_far = held
            if square_far < best.square:
                waiting[count] = far
                waiting_square[count] = square_far
                count += 1
            if square_near < best.square:
                following = near
        while following < 0 and count > 0:
            count -= 1
            if waiting_square[count] < best.square:
                following = waiting[count]
        node = following
    return best


@wp.func
def nearest_place(meshes: Meshes, mesh: int, point: Vec3) -> Place:
    """The place of a mesh that is nearest to a point of its frame; of equals, the first in the order of the descent."""
    return nearest_place_within(meshes, mesh, point, Real(wp.inf))


@wp.func
def outward_at(meshes: Meshes, face: int, part: int) -> Vec3:
    """A vector whose sign tells outside from inside at a place, not unit.

    Source: Baerentzen and Aanaes 2005.
    """
    if part == FACE_PLACE:
        return meshes.face_normal[face]
    if part >= EDGE_PLACE:
        return meshes.edge_normal[meshes.side[3 * face + part - EDGE_PLACE]]
    return meshes.vertex_normal[meshes.corner[3 * face + part]]


@wp.func
def turn_beside(low: Vec3, high: Vec3, point: Vec3, forward: bool) -> int:
    """1 where an edge passes a line along x through a point beyond it in y, upwards in z; -1 downwards; 0 elsewhere.

    low, high: in the order of the vertices' numbers, so that neighbours have one rounding. forward: from low to high.
    """
    low_above = low[2] >= point[2]
    high_above = high[2] >= point[2]
    if low_above == high_above:
        return 0
    area = (low[1] - point[1]) * (high[2] - point[2]) - (low[2] - point[2]) * (high[1] - point[1])
    if (area > Real(0.0)) != high_above:
        return 0
    return wp.where(forward == high_above, 1, -1)


@wp.func
def turn_of_triangle(meshes: Meshes, face: int, point: Vec3) -> int:
    """1 where a line along +x through a point leaves by the front of a triangle, -1 where it enters by it, else 0.

    What its edges add cancels with that of their other triangles: a line through an edge or vertex is counted once.
    """
    turn = int(0)
    for k in range(3):
        first = meshes.corner[3 * face + k]
        second = meshes.corner[3 * face + (k + 1) % 3]
        low = meshes.point[wp.min(first, second)]
        high = meshes.point[wp.max(first, second)]
        turn += turn_beside(low, high, point, first < second)
    return turn


@wp.func(inline=False)
def winding_number(meshes: Meshes, mesh: int, point: Vec3) -> int:
    """How often the surface of a mesh that needs it goes around a point, see `TriangleMesh.needs_winding`.

    Exact but within rounding of the surface. Source: as `model.mesh_crossings.winding_at`.
    """
    node = meshes.header[mesh].first_winding_node
    stop = meshes.header[mesh].end_winding_node
    number = int(0)
    while node < stop:
        lower = meshes.lower[node]
        upper = meshes.upper[node]
        apart = upper[0] < point[0]
        for axis in range(1, 3):
            apart = apart or lower[axis] > point[axis] or upper[axis] < point[axis]
        if apart:
            node = meshes.skip[node]
            continue
        face = meshes.leaf[node]
        if face >= 0:
            turn = turn_of_triangle(meshes, face, point)
            if turn != 0:
                p = mesh_corner(meshes, face, 0)
                q = mesh_corner(meshes, face, 1)
                r = mesh_corner(meshes, face, 2)
                height = wp.dot(point - p, wp.cross(q - p, r - p)) * Real(turn)
                if point[0] < wp.min(p[0], wp.min(q[0], r[0])) or height < Real(0.0):
                    number += turn
        node += 1
    return number


@wp.func
def is_inside_mesh(meshes: Meshes, mesh: int, point: Vec3, place: Place) -> bool:
    """Whether a point is inside a mesh, or behind an open one with a front. place: of the surface, nearest to it.

    By the winding number where the nearest triangle may not tell, else by the outward vector there.
    Source of that: Baerentzen and Aanaes 2005.
    """
    if meshes.header[mesh].first_winding_node >= 0:
        return winding_number(meshes, mesh, point) != 0
    return wp.dot(point - place.point, outward_at(meshes, place.face, place.part)) < Real(0.0)


@wp.func
def feature_of_place(meshes: Meshes, mesh: int, face: int, part: int) -> int:
    """3 v of a vertex, 3 e + 1 of an edge, 3 f + 2 of a triangle, numbered within the mesh."""
    header = meshes.header[mesh]
    if part == FACE_PLACE:
        return 3 * (face - header.first_face) + 2
    if part >= EDGE_PLACE:
        return 3 * (meshes.side[3 * face + part - EDGE_PLACE] - header.first_edge) + 1
    return 3 * (meshes.corner[3 * face + part] - header.first_vertex)


@wp.func
def goes_left(start: Vec3, end: Vec3, low: Vec3, high: Vec3, forward: bool) -> bool:
    """On which side of a triangle's side, from low to high where `forward`, a line passes.

    low, high: in the order of the vertices' numbers, so that neighbours answer with the same rounding, turned about.
    """
    left = wp.dot(wp.cross(low - start, high - start), end - start) >= Real(0.0)
    return left == forward


@wp.func
def goes_left_of(meshes: Meshes, face: int, k: int, start: Vec3, end: Vec3) -> bool:
    """On which side of side k of a triangle a line passes."""
    first = meshes.corner[3 * face + k]
    second = meshes.corner[3 * face + (k + 1) % 3]
    low = meshes.point[wp.min(first, second)]
    high = meshes.point[wp.max(first, second)]
    return goes_left(start, end, low, high, first < second)


@wp.func
def goes_through(meshes: Meshes, face: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment goes through a triangle; through one of two neighbours where it meets their edge."""
    p = mesh_corner(meshes, face, 0)
    normal = meshes.face_normal[face]
    if (wp.dot(start - p, normal) >= Real(0.0)) == (wp.dot(end - p, normal) >= Real(0.0)):
        return False
    left = goes_left_of(meshes, face, 0, start, end)
    return left == goes_left_of(meshes, face, 1, start, end) and left == goes_left_of(meshes, face, 2, start, end)
