"""Convex polytope that grows by one vertex at a time: EPA's inner approximation of the Minkowski
difference.

Faces are triangles, counterclockwise from outside, with the neighbour across each edge. The arrays
are the caller's: 2n - 4 faces for n vertices, as in any closed triangulation.
"""

import warp as wp

from collidecli.engine.geometry.primitives import Vertex
from collidecli.engine.geometry.real import Real, Vec3

NEVER = wp.constant(Real(1.0e300))

SLIVER = wp.constant(Real(1.0e-14))
"""Doubled area of a triangle relative to the product of two edges below which its normal is
undefined."""

WITNESS_MISS = wp.constant(Real(1.0e-9))
"""Error of v relative to the size, from Newton's method or a face, up to which its points are the
witnesses."""


@wp.struct
class Face:
    """corner: its vertices. neighbour: the face across the edge from each corner to the next.

    normal, offset: its plane, normal.x = offset [m]. key: the offset while the face may be
    expanded, else NEVER. visible: the last vertex from which the face was visible.
    """

    corner: wp.vec3i
    neighbour: wp.vec3i
    normal: Vec3
    offset: Real
    key: Real
    visible: int


@wp.func
def set_face(
    vertices: wp.array[Vertex],
    faces: wp.array[Face],
    face: int,
    corner: wp.vec3i,
    outer: int,
    least: Real,
):
    """Writes a face and its plane; a sliver, or a face whose offset is below `least`, takes the
    plane of `outer`.

    Once the origin is inside, the offset of the closest face only increases: a new face closer than
    `least`, the least offset so far, is a sliver whose plane is rounding and that is coplanar with
    its neighbour.
    """
    p = vertices[corner[0]].point
    first = vertices[corner[1]].point - p
    second = vertices[corner[2]].point - p
    normal = wp.cross(first, second)
    square = wp.dot(normal, normal)
    faces[face].corner = corner
    faces[face].visible = 0
    offset = least - Real(1.0)
    if square > SLIVER * SLIVER * wp.dot(first, first) * wp.dot(second, second):
        normal = normal / wp.sqrt(square)
        offset = wp.dot(normal, p)
    if offset >= least:
        faces[face].normal = normal
        faces[face].offset = offset
        faces[face].key = offset
    else:
        faces[face].normal = faces[outer].normal
        faces[face].offset = faces[outer].offset
        faces[face].key = NEVER


@wp.func
def start_polytope(vertices: wp.array[Vertex], faces: wp.array[Face]) -> Real:
    """Four faces on the vertices 0..3, oriented outwards; the largest distance of a vertex from the
    origin [m]."""
    p = vertices[0].point
    q = vertices[1].point - p
    r = vertices[2].point - p
    s = vertices[3].point - p
    if wp.dot(q, wp.cross(r, s)) > Real(0.0):
        swap = vertices[1]
        vertices[1] = vertices[2]
        vertices[2] = swap
    farthest = Real(0.0)
    face = int(0)
    while face < 4:
        farthest = wp.max(farthest, wp.length(vertices[face].point))
        corner = wp.vec3i(0, 1, 2)
        neighbour = wp.vec3i(1, 2, 3)
        if face == 1:
            corner = wp.vec3i(0, 3, 1)
            neighbour = wp.vec3i(3, 2, 0)
        elif face == 2:
            corner = wp.vec3i(1, 3, 2)
            neighbour = wp.vec3i(1, 3, 0)
        elif face == 3:
            corner = wp.vec3i(2, 3, 0)
            neighbour = wp.vec3i(2, 1, 0)
        set_face(vertices, faces, face, corner, 0, -NEVER)
        faces[face].neighbour = neighbour
        face += 1
    return farthest


@wp.func
def find_visible_faces(
    vertices: wp.array[Vertex],
    faces: wp.array[Face],
    visible: wp.array[int],
    horizon: wp.array[wp.vec3i],
    vertex: int,
    face: int,
    tolerance: Real,
) -> wp.vec2i:
    """Lists the faces visible from `vertex`, `face` first, and the horizon edges around them;
    returns both counts."""
    p = vertices[vertex].point
    faces[face].visible = vertex
    visible[0] = face
    visible_count = int(1)
    horizon_count = int(0)
    i = int(0)
    while i < visible_count:
        inner = visible[i]
        corner = faces[inner].corner
        neighbour = faces[inner].neighbour
        k = int(0)
        while k < 3:
            other = neighbour[k]
            if faces[other].visible != vertex:
                if wp.dot(faces[other].normal, p) - faces[other].offset > tolerance:
                    faces[other].visible = vertex
                    visible[visible_count] = other
                    visible_count += 1
                else:
                    following = 0 if k == 2 else k + 1
                    horizon[horizon_count] = wp.vec3i(corner[k], corner[following], other)
                    horizon_count += 1
            k += 1
        i += 1
    return wp.vec2i(visible_count, horizon_count)


@wp.func
def connect_fan(
    vertices: wp.array[Vertex],
    faces: wp.array[Face],
    horizon: wp.array[wp.vec3i],
    fan: wp.array[int],
    vertex: int,
    horizon_count: int,
    least: Real,
):
    """Writes the face on each horizon edge, and the neighbour links."""
    i = int(0)
    while i < horizon_count:
        edge = horizon[i]
        slot = fan[edge[0]]
        set_face(vertices, faces, slot, wp.vec3i(edge[0], edge[1], vertex), edge[2], least)
        following = fan[edge[1]]
        faces[slot].neighbour[0] = edge[2]
        faces[slot].neighbour[1] = following
        faces[following].neighbour[2] = slot
        outer = faces[edge[2]].corner
        if outer[0] == edge[1]:
            faces[edge[2]].neighbour[0] = slot
        elif outer[1] == edge[1]:
            faces[edge[2]].neighbour[1] = slot
        else:
            faces[edge[2]].neighbour[2] = slot
        i += 1


@wp.func
def add_vertex(
    vertices: wp.array[Vertex],
    faces: wp.array[Face],
    visible: wp.array[int],
    horizon: wp.array[wp.vec3i],
    fan: wp.array[int],
    vertex: int,
    face: int,
    face_count: int,
    tolerance: Real,
    least: Real,
) -> int:
    """Adds `vertex` to the polytope, replacing the faces visible from it.

    Args:
        vertex: the newest; its index marks the visible faces. face: a visible face. face_count:
            slots in use.
        visible, horizon, fan: scratch; visible faces, horizon edges (from, to, face beyond), new
            face at each horizon vertex.
        tolerance: a face is not visible from a vertex up to this far above its plane [m].
        least: no true face can be closer to the origin than this [m].
    Returns:
        slots in use now; -1 if the visible faces are not one disc with all its vertices on the
        horizon, which only
        rounding can cause.
    """
    counts = find_visible_faces(vertices, faces, visible, horizon, vertex, face, tolerance)
    visible_count = counts[0]
    horizon_count = counts[1]
    if horizon_count != visible_count + 2:
        return -1
    i = int(0)
    while i < horizon_count:
        slot = visible[i] if i < visible_count else face_count + i - visible_count
        fan[horizon[i][0]] = slot
        i += 1
    connect_fan(vertices, faces, horizon, fan, vertex, horizon_count, least)
    return face_count + 2


@wp.struct
class Depth:
    """Penetration depth of two cores. depth: [m]. normal: unit, a to b, in a's frame.

    on_a: core a's witness if has_witness is 1, from Newton's method or from the face that attains
    the depth. exact: 0 if a limit ended the search; depth and normal are then the best found, an
    upper bound. vertex_count: size of the polytope. least: lower bound of the depth where exact is
    0 [m].
    """

    depth: Real
    normal: Vec3
    on_a: Vec3
    has_witness: int
    exact: int
    vertex_count: int
    least: Real


@wp.func
def with_witness(
    vertices: wp.array[Vertex], faces: wp.array[Face], face_count: int, best: Depth, scale: Real
) -> Depth:
    """`best` with the witness interpolated from the polytope face that attains the depth, if there
    is one.

    Of several coplanar faces, the first that contains the origin's projection.
    """
    nearest = best.depth * best.normal
    i = int(0)
    while i < face_count:
        if wp.abs(wp.dot(faces[i].normal, nearest) - faces[i].offset) <= WITNESS_MISS * scale:
            corner = faces[i].corner
            p = vertices[corner[0]].point
            q = vertices[corner[1]].point
            r = vertices[corner[2]].point
            of_p = wp.max(wp.dot(wp.cross(q - nearest, r - nearest), faces[i].normal), Real(0.0))
            of_q = wp.max(wp.dot(wp.cross(r - nearest, p - nearest), faces[i].normal), Real(0.0))
            of_r = wp.max(wp.dot(wp.cross(p - nearest, q - nearest), faces[i].normal), Real(0.0))
            area = of_p + of_q + of_r
            if area > Real(0.0):
                of_p = of_p / area
                of_q = of_q / area
                of_r = of_r / area
                # The interpolated corners must reproduce the point: they do not for slivers, whose
                # weights are rounding.
                if wp.length(of_p * p + of_q * q + of_r * r - nearest) <= WITNESS_MISS * scale:
                    on_a = of_p * vertices[corner[0]].on_a
                    on_a += of_q * vertices[corner[1]].on_a
                    on_a += of_r * vertices[corner[2]].on_a
                    return Depth(
                        best.depth, best.normal, on_a, 1, best.exact, best.vertex_count, best.least
                    )
        i += 1
    return best
