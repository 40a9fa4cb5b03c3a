"""EPA: the minimum translation that takes two overlapping cores apart.

A polytope inside the difference a - b grows at its nearest face until that face is on the surface. The nearest face's
offset bounds the depth from below, the least support height seen from above. On curved surfaces EPA alone would need a
face for every 1e-4 rad around the minimum (all the way around, for coaxial cylinders), so there a face that is already
close to the surface is settled by Newton's descent from its normal instead.

Source: van den Bergh 2003, 4.3.8.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Cores, Vertex, core_is_curved, difference_support
from collidecli.engine.narrow_phase.convex.descent import any_tangent, crease_bit, descend
from collidecli.engine.narrow_phase.convex.polytope import (
    FACE_LIMIT,
    NEVER,
    VERTEX_LIMIT,
    Face,
    add_vertex,
    start_polytope,
)

VERTICES = wp.constant(VERTEX_LIMIT)

EXACT = wp.constant(Real(1.0e-12))
"""Share of the size at which a face is on the surface: the rounding of its plane."""

CLOSE = wp.constant(Real(2.0e-2))
"""Share of the depth and size within which a face must be to the surface before Newton settles it."""

NEAR = wp.constant(Real(0.9))
"""Cosine of the widest angle between a face's normal and the minimum that settles it."""


@wp.struct
class Depth:
    """What EPA found. depth: of the cores [m]. normal: unit, a to b. on_a: core a's witness. In a's frame.

    exact: 0 when a limit stopped the search; depth and normal are then the best seen, an upper bound.
    steps: vertices used, for the tests.
    """

    depth: Real
    normal: Vec3
    on_a: Vec3
    exact: int
    steps: int


@wp.func
def complete_tetrahedron(cores: Cores, vertices: wp.array[Vertex], count: int):
    """Fills `vertices` up to four that span a volume; those already there are kept."""
    if count < 2:
        best = Real(-1.0)
        k = int(0)
        while k < 6:
            direction = Vec3()
            direction[k / 2] = Real(1.0)
            if k % 2 == 1:
                direction = -direction
            w = difference_support(cores, direction)
            far = wp.length_sq(w.point - vertices[0].point)
            if far > best:
                best = far
                vertices[1] = w
            k += 1
    if count < 3:
        edge = wp.normalize(vertices[1].point - vertices[0].point)
        first = any_tangent(edge)
        second = wp.cross(edge, first)
        best = Real(-1.0)
        k = int(0)
        while k < 4:
            direction = first
            if k >= 2:
                direction = second
            if k % 2 == 1:
                direction = -direction
            w = difference_support(cores, direction)
            far = wp.length_sq(wp.cross(edge, w.point - vertices[0].point))
            if far > best:
                best = far
                vertices[2] = w
            k += 1
    if count < 4:
        p = vertices[0].point
        normal = wp.normalize(wp.cross(vertices[1].point - p, vertices[2].point - p))
        above = difference_support(cores, normal)
        below = difference_support(cores, -normal)
        vertices[3] = above
        if wp.dot(normal, p - below.point) > wp.dot(normal, above.point - p):
            vertices[3] = below


@wp.func
def witness_on_face(vertices: wp.array[Vertex], corner: wp.vec3i, normal: Vec3) -> Vec3:
    """Core a's point for the origin's projection on a face."""
    p = vertices[corner[0]]
    q = vertices[corner[1]]
    r = vertices[corner[2]]
    of_p = wp.dot(wp.cross(q.point, r.point), normal)
    of_q = wp.dot(wp.cross(r.point, p.point), normal)
    of_r = wp.dot(wp.cross(p.point, q.point), normal)
    # On a minimum the origin projects inside; a rounding beyond an edge is put back onto it.
    of_p = wp.max(of_p, Real(0.0))
    of_q = wp.max(of_q, Real(0.0))
    of_r = wp.max(of_r, Real(0.0))
    return (of_p * p.on_a + of_q * q.on_a + of_r * r.on_a) / (of_p + of_q + of_r)


@wp.func
def depth_of_cores(cores: Cores, simplex: wp.array[Vertex], simplex_count: int) -> Depth:
    """Depth, normal and witness of two overlapping cores, at least one with volume.

    Args:
        simplex, simplex_count: vertices of the difference whose hull holds the origin, or nearly, as GJK leaves them.
    Degenerate: among several directions of least depth, the one that the growth of the polytope meets first.
    """
    vertices = wp.zeros(shape=VERTEX_LIMIT, dtype=Vertex)
    faces = wp.zeros(shape=FACE_LIMIT, dtype=Face)
    seen = wp.zeros(shape=FACE_LIMIT, dtype=int)
    rim = wp.zeros(shape=VERTEX_LIMIT, dtype=wp.vec3i)
    fan = wp.zeros(shape=VERTEX_LIMIT, dtype=int)
    i = int(0)
    while i < simplex_count:
        vertices[i] = simplex[i]
        i += 1
    if simplex_count < 4:
        complete_tetrahedron(cores, vertices, simplex_count)
    start_polytope(vertices, faces)
    scale = Real(0.0)
    i = int(0)
    while i < 4:
        scale = wp.max(scale, wp.length(vertices[i].point))
        i += 1
    tolerance = EXACT * scale
    is_curved = core_is_curved(cores.type_a) or core_is_curved(cores.type_b)
    result = Depth()
    result.depth = NEVER
    count = int(4)
    face_count = int(4)
    while True:
        nearest = int(0)
        key = NEVER
        i = int(0)
        while i < face_count:
            if faces[i].key < key:
                key = faces[i].key
                nearest = i
            i += 1
        if key >= result.depth - tolerance:
            result.exact = 1
            break
        normal = faces[nearest].normal
        corner = faces[nearest].corner
        w = difference_support(cores, normal)
        height = wp.dot(w.point, normal)
        if height < result.depth:
            result.depth = height
            result.normal = normal
            result.on_a = witness_on_face(vertices, corner, normal)
        if height - key <= tolerance:
            faces[nearest].key = NEVER
            continue
        if is_curved and height - key <= CLOSE * height:
            piece = vertices[corner[0]].piece
            bit = crease_bit((piece ^ vertices[corner[1]].piece) | (piece ^ vertices[corner[2]].piece))
            if bit < 7:
                minimum = descend(cores, normal, bit, scale)
                if minimum.found == 1 and minimum.missed <= Real(1.0e-9) * scale and wp.dot(minimum.normal, normal) >= NEAR:
                    faces[nearest].key = NEVER
                    if minimum.height < result.depth:
                        result.depth = minimum.height
                        result.normal = minimum.normal
                        result.on_a = minimum.on_a
                    continue
        if count == VERTICES:
            break
        vertices[count] = w
        face_count = add_vertex(vertices, faces, seen, rim, fan, count, nearest, face_count, tolerance)
        if face_count < 0:
            break
        count += 1
    result.steps = count
    return result
