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
from collidecli.engine.narrowphase.convex.gjk import DUPLICATE, Descent, descend, minimum_on_disc
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.warp_internals import struct_of

# Convex polytope that grows by one vertex at a time: EPA's inner approximation of the Minkowski
# difference.
#
# Faces are triangles, counterclockwise from outside, with the neighbour across each edge. The
# arrays are the caller's: 2n - 4 faces for n vertices, as in any closed triangulation.

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


# Memory for searches with large arrays: a pool of slots in place of local arrays.
#
# A GPU's driver reserves the local arrays of a kernel for every thread that can be resident,
# whether it uses them or not. On the CPU Warp clears a local array twice, which took longer than
# most searches. Here a thread takes one of the slots for as long as it needs one:
#
#     lanes = active_lanes()
#     is_done = int(0)
#     while all_done(lanes, is_done) == 0:
#         slot = wp.uint64(0)
#         if is_done == 0:
#             slot = take_slot()
#         if slot != wp.uint64(0):
#             ...
#             give_back_slot(slot)
#             is_done = 1
#
# A thread that finds no free slot tries again in the next iteration. This cannot deadlock: a thread
# waits only in `all_done`, for threads of its own warp, and no thread holds a slot there; a thread
# that holds a slot waits for nothing. `all_done` must remain: without it the compiler may execute
# the search after the loop, which the threads of a warp leave together, so that those with a slot
# would wait for those without.
#
# Which slot a thread gets has no influence on its results: it reads nothing from the slot that it
# has not written.

GPU_SLOT_COUNT = 128
"""Threads of a kernel that can use a slot at a time on a GPU; each kernel has a pool of its own."""

CPU_SLOT_COUNT = 32
"""Threads of a kernel that can use a slot at a time on the CPU. More wait, and few are in a search
at a time. The pool is cleared at load, and takes its memory then."""

SLOT_BYTES = 60 * 1024
"""Of one slot, at least the arrays of EPA with its large capacity (see epa.py)."""


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return 1;
#else
    return 0;
#endif
""")
def is_on_gpu() -> int:
    """1 on a GPU, 0 on the CPU; a constant, so that the compiler leaves out the code for the
    other."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __activemask();
#else
    return 1;
#endif
""")
def active_lanes() -> wp.uint32:
    """Bits of the threads of this warp that execute this call together."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(lanes, is_done);
#else
    return is_done;
#endif
""")
def all_done(lanes: wp.uint32, is_done: int) -> int:
    """1 if `is_done` is 1 in all threads of `lanes`, each of which must call this equally often;
    waits for them."""
    ...


@wp.func_native(
    native(
        __file__,
        "take_slot",
        GPU_SLOT_COUNT=GPU_SLOT_COUNT,
        SLOT_BYTES=SLOT_BYTES,
        CPU_SLOT_COUNT=CPU_SLOT_COUNT,
    )
)
def take_slot() -> wp.uint64:
    """Address of SLOT_BYTES bytes, not set, that no other thread uses until `give_back_slot`; 0 if
    no slot is free."""
    ...


@wp.func_native(native(__file__, "give_back_slot"))
def give_back_slot(address: wp.uint64):
    """Makes a slot of `take_slot` free for other threads."""
    ...


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
    difference: Any, vertices: wp.array[Vertex], face: Face, limit: Real, scale: Real, earlier: Vec3
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
) -> Descent:
    """Local minimum of the support height, up to `limit`, below a face close to the surface; found
    = 0 if the face must be expanded instead. earlier: normal of a minimum found before, or zero.

    The descent is monotone, so that it stays in the face's basin; a higher end point proves
    nothing.
    """
    patch = vertices[face.corner[0]].patch
    discontinuities = (patch ^ vertices[face.corner[1]].patch) | (
        patch ^ vertices[face.corner[2]].patch
    )
    minimum = descend(difference, face.normal, discontinuities, scale, earlier)
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
    is_curved = core_is_curved(difference.a.type) or core_is_curved(difference.b.type)
    is_smooth = core_is_smooth(difference.a.type) and core_is_smooth(difference.b.type)
    close = wp.where(is_smooth, CLOSE_WITHOUT_DISCONTINUITIES, CLOSE)
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
        if height < result.depth:
            result.depth = height
            result.normal = face.normal
            result.has_witness = 0
        if is_curved and not is_closed and height - face.key <= close * (height + SHALLOW * scale):
            minimum = minimum_below_face(
                difference, vertices, face, height + tolerance, scale, found_normal
            )
            is_closed = minimum.found != 0
            if minimum.found == 1 and minimum.height < result.depth:
                result = with_minimum(result, minimum, scale)
                found_normal = minimum.normal
        if is_closed:
            faces[nearest].key = NEVER
            lowest_closed = wp.min(lowest_closed, face.key)
            continue
        if result.vertex_count == limit:
            break
        if result.vertex_count == PATIENCE or result.vertex_count == 2 * PATIENCE:
            close = Real(10.0) * close
        vertices[result.vertex_count] = w
        least = wp.where(
            face.key > Real(0.0), wp.min(face.key, lowest_closed) - FLUSH * scale, -NEVER
        )
        face_count = add_vertex(
            vertices,
            faces,
            visible,
            horizon,
            fan,
            result.vertex_count,
            nearest,
            face_count,
            FLUSH * scale,
            least,
        )
        if face_count < 0:
            break
        result.vertex_count += 1
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
