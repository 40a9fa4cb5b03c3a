"""EPA (expanding polytope algorithm): penetration depth and minimum translation of two overlapping
cores.

A polytope inside the difference a - b is expanded at the face closest to the origin until that face
is on the surface. The closest face's offset bounds the depth from below, the minimum support height
found so far from above. On curved surfaces EPA alone would need a face for every 1e-4 rad around
the minimum (all around, for coaxial cylinders), so a face that is already close to the surface is
closed by Newton's descent from its normal instead.

Source: van den Bergen 2003, 4.3.8.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import (
    MinkowskiDifference,
    Vertex,
    core_is_curved,
    core_is_smooth,
    difference_support,
)
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.convex.newton_descent import (
    DUPLICATE,
    Descent,
    descend,
    minimum_on_disc,
)
from collidecli.engine.narrowphase.convex.polytope import (
    NEVER,
    WITNESS_MISS,
    Depth,
    Face,
    add_vertex,
    start_polytope,
    with_witness,
)
from collidecli.engine.narrowphase.convex.slot_pool import (
    SLOT_BYTES,
    active_lanes,
    all_done,
    give_back_slot,
    is_on_gpu,
    take_slot,
)
from collidecli.engine.runtime.warp_internals import struct_of

# ruff: noqa: F811


EXACT = wp.constant(Real(1.0e-11))
"""Distance relative to the size at which a face is on the surface: the rounding of its plane."""

THIN = wp.constant(Real(1.0e-6))
"""Sixfold volume of a tetrahedron relative to the product of three edges below which it is a poor
start."""

FLUSH = wp.constant(Real(1.0e-13))
"""Height of a vertex above a face, relative to the size, up to which the face is not visible: below
EXACT, so that an expanded face is clearly visible."""

MISS = wp.constant(Real(1.0e-8))
"""Error of v relative to the size up to which a minimum of Newton's method is accepted; h is wrong
by its square."""

CLOSE = wp.constant(Real(2.0e-3))
"""Distance of a face to the surface relative to the depth at which Newton's method closes it. The
depth is certain to this fraction, and exact unless two separate minima lie within it of each other
under one face."""

CLOSE_WITHOUT_DISCONTINUITIES = wp.constant(Real(3.0e-2))
"""CLOSE for ellipsoids, whose minima are far apart."""

PATIENCE = wp.constant(64)
"""Vertex count after which, and again after twice as many, CLOSE is multiplied by ten. Only rings
of equal minima, as of a cone's tip around a point on its axis, need this, and Newton's method
converges for those from any start."""

SHALLOW = wp.constant(Real(1.0e-2))
"""Fraction of the size added to the depth in these criteria; otherwise no face is close at a depth
near zero."""


@wp.func
def nearest_face(faces: wp.array[Face], face_count: int) -> int:
    """Face with the smallest key; of several, the first."""
    nearest = int(0)
    key = faces[0].key
    i = int(1)
    while i < face_count:
        if faces[i].key < key:
            key = faces[i].key
            nearest = i
        i += 1
    return nearest


@wp.func
def spread_tetrahedron(difference: Any, vertices: wp.array[Vertex]):
    """Four support points of the difference that span a large volume; it need not contain the
    origin."""
    best = Real(-1.0)
    vertices[0] = difference_support(difference, Vec3(Real(-1.0), Real(0.0), Real(0.0)))
    k = int(0)
    while k < 5:
        direction = Vec3(Real(1.0), Real(0.0), Real(0.0))
        if k > 0:
            direction = (
                Vec3(Real(0.0), Real(0.0), Real(1.0))
                if k > 2
                else Vec3(Real(0.0), Real(1.0), Real(0.0))
            )
            if k % 2 == 0:
                direction = -direction
        w = difference_support(difference, direction)
        far = wp.length_sq(w.point - vertices[0].point)
        if far > best:
            best = far
            vertices[1] = w
        k += 1
    edge = wp.normalize(vertices[1].point - vertices[0].point)
    first = any_tangent(edge)
    second = wp.cross(edge, first)
    best = Real(-1.0)
    k = int(0)
    while k < 4:
        direction = second if k >= 2 else first
        if k % 2 == 1:
            direction = -direction
        w = difference_support(difference, direction)
        far = wp.length_sq(wp.cross(edge, w.point - vertices[0].point))
        if far > best:
            best = far
            vertices[2] = w
        k += 1
    p = vertices[0].point
    normal = wp.normalize(wp.cross(vertices[1].point - p, vertices[2].point - p))
    above = difference_support(difference, normal)
    below = difference_support(difference, -normal)
    vertices[3] = above
    if wp.dot(normal, p - below.point) > wp.dot(normal, above.point - p):
        vertices[3] = below


@wp.func
def is_thin(vertices: wp.array[Vertex]) -> bool:
    """Whether a tetrahedron is too flat as a start."""
    p = vertices[0].point
    q = vertices[1].point - p
    r = vertices[2].point - p
    s = vertices[3].point - p
    volume = wp.abs(wp.dot(q, wp.cross(r, s)))
    return volume <= THIN * wp.length(q) * wp.length(r) * wp.length(s)


@wp.func
def minimum_below_face(
    difference: Any,
    vertices: wp.array[Vertex],
    face: Face,
    limit: Real,
    scale: Real,
    earlier: Vec3,
    along: Vertex,
) -> Descent:
    """Not found: faces of a difference with a hull or triangle are expanded, see
    `gjk.newton_nearest`."""
    return Descent()


@wp.func(inline=False)
def minimum_below_face(
    difference: MinkowskiDifference,
    vertices: wp.array[Vertex],
    face: Face,
    limit: Real,
    scale: Real,
    earlier: Vec3,
    along: Vertex,
) -> Descent:
    """Local minimum of the support height, up to `limit`, below a face close to the surface; found
    = 0 if the face must be expanded instead. earlier: normal of a minimum found before, or zero.
    along: support point along the face's normal.

    The descent is monotone, so that it stays in the face's basin; a higher end point proves
    nothing.
    """
    patch = vertices[face.corner[0]].patch
    discontinuities = (patch ^ vertices[face.corner[1]].patch) | (
        patch ^ vertices[face.corner[2]].patch
    )
    minimum = descend(difference, face.normal, discontinuities, scale, earlier, along)
    if minimum.found == DUPLICATE:
        return minimum
    if minimum.found == 0 or minimum.missed > MISS * scale:
        minimum = minimum_on_disc(difference, face.normal)
    if minimum.height > limit or minimum.missed > MISS * scale:
        minimum.found = 0
    return minimum


@wp.func
def with_minimum(before: Depth, minimum: Descent, scale: Real) -> Depth:
    """A depth after a lower minimum of Newton's method."""
    result = before
    result.depth = minimum.height
    result.normal = minimum.normal
    result.on_a = minimum.on_a
    result.has_witness = wp.where(minimum.missed <= WITNESS_MISS * scale, 1, 0)
    return result


@wp.func
def closeness(difference: Any, vertex_count: int) -> Real:
    """CLOSE of a difference after so many vertices of the polytope."""
    is_smooth = core_is_smooth(difference.a.type) and core_is_smooth(difference.b.type)
    close = wp.where(is_smooth, CLOSE_WITHOUT_DISCONTINUITIES, CLOSE)
    if vertex_count > PATIENCE:
        close = Real(10.0) * close
    if vertex_count > 2 * PATIENCE:
        close = Real(10.0) * close
    return close


@wp.func
def with_support(before: Depth, normal: Vec3, height: Real) -> Depth:
    """A depth after the support height of a face's normal [m], an upper bound of the depth."""
    result = before
    if height < result.depth:
        result.depth = height
        result.normal = normal
        result.has_witness = 0
    return result


@wp.func
def least_new_key(face: Face, lowest_closed: Real, scale: Real) -> Real:
    """Lower bound of the distances of the faces that replace `face` [m], by rounding below the
    nearest of all; none where the polytope does not contain the origin yet."""
    return wp.where(face.key > Real(0.0), wp.min(face.key, lowest_closed) - FLUSH * scale, -NEVER)


@wp.func
def expand_polytope(
    difference: Any,
    vertices: wp.array[Vertex],
    faces: wp.array[Face],
    visible: wp.array[int],
    horizon: wp.array[wp.vec3i],
    fan: wp.array[int],
    limit: int,
) -> Depth:
    """EPA's main loop, from the tetrahedron in `vertices`, with a capacity of `limit` vertices; the
    other arrays are scratch.
    """
    scale = start_polytope(vertices, faces)
    tolerance = EXACT * scale
    flush = FLUSH * scale
    is_curved = core_is_curved(difference.a.type) or core_is_curved(difference.b.type)
    close = closeness(difference, 4)
    result = Depth(NEVER, Vec3(), Vec3(), 0, 0, 4, -NEVER)
    found_normal = Vec3()
    lowest_closed = NEVER + Real(0.0)
    face_count = int(4)
    while True:
        nearest = nearest_face(faces, face_count)
        face = faces[nearest]
        result.least = wp.min(face.key, lowest_closed)
        if face.key >= result.depth - tolerance:
            result.exact = 1
            break
        w = difference_support(difference, face.normal)
        height = wp.dot(w.point, face.normal)
        is_closed = height - face.key <= tolerance
        result = with_support(result, face.normal, height)
        if is_curved and not is_closed and height - face.key <= close * (height + SHALLOW * scale):
            minimum = minimum_below_face(
                difference, vertices, face, height + tolerance, scale, found_normal, w
            )
            is_closed = minimum.found != 0
            if minimum.found == 1 and minimum.height < result.depth:
                result = with_minimum(result, minimum, scale)
                found_normal = minimum.normal
        if is_closed:
            faces[nearest].key = NEVER
            lowest_closed = wp.min(lowest_closed, face.key)
            continue
        vertex = result.vertex_count
        if vertex == limit:
            break
        vertices[vertex] = w
        least = least_new_key(face, lowest_closed, scale)
        face_count = add_vertex(
            vertices, faces, visible, horizon, fan, vertex, nearest, face_count, flush, least
        )
        if face_count < 0:
            break
        result.vertex_count += 1
        close = closeness(difference, result.vertex_count)
    if result.exact == 1 and result.has_witness == 0:
        return with_witness(vertices, faces, face_count, result, scale)
    return result


@wp.func
def as_vertices(scratch: wp.array[Vertex]) -> wp.array[Vertex]:
    """Local array as an array of any length, so that `expand_polytope` is compiled once for both
    capacities."""
    return scratch


@wp.func
def as_faces(scratch: wp.array[Face]) -> wp.array[Face]:
    """Local array as an array of any length, see `as_vertices`."""
    return scratch


@wp.func
def as_ints(scratch: wp.array[int]) -> wp.array[int]:
    """Local array as an array of any length, see `as_vertices`."""
    return scratch


@wp.func
def as_vec3is(scratch: wp.array[wp.vec3i]) -> wp.array[wp.vec3i]:
    """Local array as an array of any length, see `as_vertices`."""
    return scratch


def depth_with_capacity(capacity: int, name: str) -> Callable[..., Any]:
    """EPA with a capacity in vertices, from the tetrahedron in a GJK simplex."""
    face_capacity = 2 * capacity - 4

    @wp.func(name=name)
    def depth(difference: Any, simplex: wp.array[Vertex]) -> Depth:
        vertices = wp.zeros(shape=capacity, dtype=Vertex)
        faces = wp.zeros(shape=face_capacity, dtype=Face)
        visible = wp.zeros(shape=face_capacity, dtype=int)
        horizon = wp.zeros(shape=capacity, dtype=wp.vec3i)
        fan = wp.zeros(shape=capacity, dtype=int)
        i = int(0)
        while i < 4:
            vertices[i] = simplex[i]
            i += 1
        return expand_polytope(
            difference,
            as_vertices(vertices),
            as_faces(faces),
            as_ints(visible),
            as_vec3is(horizon),
            as_ints(fan),
            capacity,
        )

    return depth


depth_in_local_arrays = depth_with_capacity(36, "depth_in_local_arrays")
"""EPA with the capacity that nearly every pair needs, for GPUs, where few threads can have a
slot."""
LARGE_CAPACITY = 256
"""Capacity in vertices of a search in a slot. Measured: no pair needs more than about 80."""

LARGE_FACE_CAPACITY = 2 * LARGE_CAPACITY - 4
VERTICES_END = LARGE_CAPACITY * ctypes.sizeof(struct_of(Vertex).ctype)
FACES_END = VERTICES_END + LARGE_FACE_CAPACITY * ctypes.sizeof(struct_of(Face).ctype)
VISIBLE_END = FACES_END + LARGE_FACE_CAPACITY * 4
HORIZON_END = VISIBLE_END + LARGE_CAPACITY * 12
"""Offsets in a slot at which the arrays of a search end [bytes]; that of the fan is the last."""
assert HORIZON_END + LARGE_CAPACITY * 4 <= SLOT_BYTES


@wp.func
def depth_in_slot(difference: Any, simplex: wp.array[Vertex]) -> Depth:
    """EPA with the large capacity and arrays in a slot; waits until one is free."""
    result = Depth()
    lanes = active_lanes()
    is_done = int(0)
    while all_done(lanes, is_done) == 0:
        slot = wp.uint64(0)
        if is_done == 0:
            slot = take_slot()
        if slot != wp.uint64(0):
            vertices = wp.array(ptr=slot, shape=(wp.static(LARGE_CAPACITY),), dtype=Vertex)
            faces = wp.array(
                ptr=slot + wp.uint64(wp.static(VERTICES_END)),
                shape=(wp.static(LARGE_FACE_CAPACITY),),
                dtype=Face,
            )
            visible = wp.array(
                ptr=slot + wp.uint64(wp.static(FACES_END)),
                shape=(wp.static(LARGE_FACE_CAPACITY),),
                dtype=int,
            )
            horizon = wp.array(
                ptr=slot + wp.uint64(wp.static(VISIBLE_END)),
                shape=(wp.static(LARGE_CAPACITY),),
                dtype=wp.vec3i,
            )
            fan = wp.array(
                ptr=slot + wp.uint64(wp.static(HORIZON_END)),
                shape=(wp.static(LARGE_CAPACITY),),
                dtype=int,
            )
            i = int(0)
            while i < 4:
                vertices[i] = simplex[i]
                i += 1
            result = expand_polytope(
                difference, vertices, faces, visible, horizon, fan, wp.static(LARGE_CAPACITY)
            )
            give_back_slot(slot)
            is_done = 1
    return result


@wp.func
def depth_of_difference(difference: Any, simplex: wp.array[Vertex], simplex_count: int) -> Depth:
    """Depth and normal of two overlapping cores, at least one with volume.

    Args:
        simplex, simplex_count: vertices of the difference from GJK. A good tetrahedron around the
            origin is the start; otherwise, as for cores that just touch, EPA first expands towards
            the origin.
    Degenerate: among several directions of least depth, the first in the order of the expansion.
    """
    if simplex_count != 4 or is_thin(simplex):
        spread_tetrahedron(difference, simplex)
    if is_on_gpu() == 1:
        result = depth_in_local_arrays(difference, simplex)
        if result.exact == 1:
            return result
    return depth_in_slot(difference, simplex)
