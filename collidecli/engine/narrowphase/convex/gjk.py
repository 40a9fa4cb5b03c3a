"""GJK (Gilbert-Johnson-Keerthi): distance and closest points of two separated cores.

The point of a simplex closest to the origin is given by barycentric coordinates; those of vertices
that do not contribute are exactly 0. Simplices may be degenerate: a triangle without area is its
edges, a tetrahedron without volume its faces.

v is the point of the Minkowski difference closest to the origin found so far, w its support point
along -v. Source: Gilbert, Johnson, Keerthi 1988; van den Bergen 2003, 4.3 (bounds and termination).
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import (
    DifferenceOfHulls,
    MinkowskiDifference,
    Vertex,
    core_is_curved,
    difference_support,
)
from collidecli.engine.geometry.real import AXIS_X, Real, Vec3
from collidecli.engine.narrowphase.convex.newton_descent import Descent, descend, minimum_on_disc

# ruff: noqa: F811


Weights = wp.vec4d

FLAT = wp.constant(Real(1.0e-13))
"""Doubled area of a triangle (six volumes of a tetrahedron) relative to the product of the edges'
lengths below which it is flat: the rounding of a cross (triple) product is about 1e-16 of it."""


@wp.func
def segment_weights(p: Vec3, q: Vec3) -> wp.vec2d:
    """Barycentric coordinates of the point of segment pq closest to the origin."""
    edge = q - p
    square = wp.dot(edge, edge)
    t = -wp.dot(p, edge) / square if square > Real(0.0) else Real(0.0)
    if t <= Real(0.0):
        return wp.vec2d(Real(1.0), Real(0.0))
    return wp.vec2d(Real(0.0), Real(1.0)) if t >= Real(1.0) else wp.vec2d(Real(1.0) - t, t)


@wp.func
def triangle_weights(p: Vec3, q: Vec3, r: Vec3) -> Vec3:
    """Barycentric coordinates of the point of triangle pqr closest to the origin."""
    edge_q = q - p
    edge_r = r - p
    normal = wp.cross(edge_q, edge_r)
    square = wp.dot(normal, normal)
    of_p = wp.dot(wp.cross(q, r), normal)
    of_q = wp.dot(wp.cross(r, p), normal)
    of_r = wp.dot(wp.cross(p, q), normal)
    is_flat = square <= FLAT * FLAT * wp.dot(edge_q, edge_q) * wp.dot(edge_r, edge_r)
    if of_p > Real(0.0) and of_q > Real(0.0) and of_r > Real(0.0) and not is_flat:
        return Vec3(of_p, of_q, of_r) / (of_p + of_q + of_r)
    # The origin projects outside: the closest point is on an edge that it is beyond.
    best = AXIS_X
    best_square = wp.dot(p, p)
    if of_p <= Real(0.0) or is_flat:
        t = segment_weights(q, r)
        point = t[0] * q + t[1] * r
        if wp.dot(point, point) < best_square:
            best_square = wp.dot(point, point)
            best = Vec3(Real(0.0), t[0], t[1])
    if of_q <= Real(0.0) or is_flat:
        t = segment_weights(p, r)
        point = t[0] * p + t[1] * r
        if wp.dot(point, point) < best_square:
            best_square = wp.dot(point, point)
            best = Vec3(t[0], Real(0.0), t[1])
    if of_r <= Real(0.0) or is_flat:
        t = segment_weights(p, q)
        point = t[0] * p + t[1] * q
        if wp.dot(point, point) < best_square:
            best = Vec3(t[0], t[1], Real(0.0))
    return best


@wp.func
def weights_on_face(face: int, t: Vec3) -> Weights:
    """Barycentric coordinates in a tetrahedron of a point of the face opposite vertex `face`, from
    those in the face."""
    if face == 0:
        return Weights(Real(0.0), t[0], t[1], t[2])
    if face == 1:
        return Weights(t[0], Real(0.0), t[1], t[2])
    if face == 2:
        return Weights(t[0], t[1], Real(0.0), t[2])
    return Weights(t[0], t[1], t[2], Real(0.0))


@wp.func
def tetrahedron_weights(p: Vec3, q: Vec3, r: Vec3, s: Vec3) -> Weights:
    """Barycentric coordinates of the point of a tetrahedron closest to the origin; all positive if
    the origin is inside.
    """
    of_p = wp.dot(q, wp.cross(s, r))
    of_q = wp.dot(p, wp.cross(r, s))
    of_r = wp.dot(p, wp.cross(s, q))
    of_s = wp.dot(p, wp.cross(q, r))
    volume = of_p + of_q + of_r + of_s
    edge_q = q - p
    edge_r = r - p
    edge_s = s - p
    scale = wp.sqrt(wp.dot(edge_q, edge_q) * wp.dot(edge_r, edge_r) * wp.dot(edge_s, edge_s))
    is_flat = wp.abs(volume) <= FLAT * scale
    if volume < Real(0.0):
        of_p = -of_p
        of_q = -of_q
        of_r = -of_r
        of_s = -of_s
    if (
        of_p > Real(0.0)
        and of_q > Real(0.0)
        and of_r > Real(0.0)
        and of_s > Real(0.0)
        and not is_flat
    ):
        return Weights(of_p, of_q, of_r, of_s) / (of_p + of_q + of_r + of_s)
    # Each face that the origin is beyond is a candidate; the vertex opposite it has the negative
    # volume.
    best = Weights(Real(0.0), Real(0.0), Real(0.0), Real(1.0))
    best_square = wp.dot(s, s)
    face = int(0)
    while face < 4:
        u = p
        v = q
        w = r
        beyond = of_s <= Real(0.0)
        if face == 0:
            u = q
            v = r
            w = s
            beyond = of_p <= Real(0.0)
        elif face == 1:
            v = r
            w = s
            beyond = of_q <= Real(0.0)
        elif face == 2:
            w = s
            beyond = of_r <= Real(0.0)
        if beyond or is_flat:
            t = triangle_weights(u, v, w)
            point = t[0] * u + t[1] * v + t[2] * w
            if wp.dot(point, point) < best_square:
                best_square = wp.dot(point, point)
                best = weights_on_face(face, t)
        face += 1
    return best


APART = wp.constant(0)
BEYOND_MAX_SEPARATION = wp.constant(1)
OVERLAP = wp.constant(2)

RELATIVE_GAP = wp.constant(Real(1.0e-12))
"""GJK stops if |v|^2 - v.w, which bounds |v - closest point|^2, is below this fraction of |v|^2:
the normal is then accurate to 1e-6 rad and the distance to 1e-12 of itself."""

TOUCHING = wp.constant(Real(2.0e-9))
"""Distance relative to the size below which cores are passed to the penetration search: v, a
difference of numbers of that size with a rounding of 1e-16, no longer gives the normal to 1e-7
rad."""

NEWTON_MISS = wp.constant(Real(1.0e-6))
"""Error of v relative to the distance up to which Newton's result is accepted: the bound of
RELATIVE_GAP."""

FAR_MISS = wp.constant(Real(1.0e-8))
"""Error of v relative to the size up to which Newton's result is accepted: a's witness is off its
surface by as much.
"""

UNSUPPORTED = wp.constant(Real(1.0e-9))
"""Difference relative to the size between |v| and the separation along v up to which GJK's final v
is accepted. Others of cores that are NEARLY_TOUCHING are passed to the penetration search too."""

NEARLY_TOUCHING = wp.constant(Real(1.0e-6))
"""Distance relative to the size below which the rounding of a sliver simplex can dominate v."""

BLUNT = wp.constant(Real(0.5))
"""Radius of the balls that approximate the hulls in the first search directions, relative to their
mean half extents.
"""

EASED_STEPS = wp.constant(2)
"""Number of GJK steps with such directions. For hulls closer than their vertices are to each other,
v is mostly the offset of two vertices across the normal, and search directions along it are
misleading. Measured: a fifth to a third fewer steps for hulls of 162 and 1000 vertices, no change
for boxes, rods and plates."""

DESCEND_AT = wp.constant(2)
"""Step after which Newton's method is tried once a direction separates the cores: most other cores
overlap."""

GJK_LIMIT = wp.constant(128)
"""Maximum number of steps; each shortens v, so that no cycle is possible. Measured: at most about
30."""


@wp.struct
class Nearest:
    """Result of GJK. `state`: APART, BEYOND_MAX_SEPARATION (distance is a lower bound only),
    OVERLAP.

    OVERLAP is no proof: the cores overlap, touch, or are apart by up to NEARLY_TOUCHING of their
    size. `distance` is then an upper bound, as it is of v; see `distance_bounds`.

    distance: of the cores [m]; down to -TOUCHING of their size for touching cores. normal: unit, a
    to b. on_a: core a's closest point. All in a's frame, and approximate if they overlap. count:
    vertices of the final simplex. is_supported: 0 where the search ended at a v that no plane
    across it supports to UNSUPPORTED.
    """

    state: int
    distance: Real
    normal: Vec3
    on_a: Vec3
    count: int
    is_supported: int


@wp.func
def patches_that_differ(simplex: wp.array[Vertex], count: int) -> int:
    """Bits of the patches in which the first `count` vertices differ."""
    changed = int(0)
    i = int(1)
    while i < count:
        changed = changed | (simplex[i].patch ^ simplex[0].patch)
        i += 1
    return changed


@wp.func
def is_nearest(minimum: Descent, scale: Real) -> bool:
    """Whether Newton's result is the distance of separated cores, or of cores that touch within
    TOUCHING on either side.

    A supporting plane through v bounds the distance from below, |v| from above; v must be close to
    the normal's line.
    """
    enough = Real(1.0e-13) * scale + wp.min(NEWTON_MISS * wp.abs(minimum.height), FAR_MISS * scale)
    return minimum.found == 1 and minimum.missed <= enough and minimum.height < TOUCHING * scale


@wp.struct
class ClosestPoint:
    """Point v of a simplex closest to the origin [m], and core a's part of it.

    weights: barycentric coordinates of both. vertex_count: number of nonzero weights.
    """

    v: Vec3
    on_a: Vec3
    weights: wp.vec4d
    vertex_count: int


@wp.func
def closest_to_origin(simplex: wp.array[Vertex], count: int) -> ClosestPoint:
    """Point of the simplex of the first `count` vertices closest to the origin."""
    closest = ClosestPoint()
    closest.weights = wp.vec4d(Real(1.0), Real(0.0), Real(0.0), Real(0.0))
    if count == 2:
        two = segment_weights(simplex[0].point, simplex[1].point)
        closest.weights = wp.vec4d(two[0], two[1], Real(0.0), Real(0.0))
    elif count == 3:
        three = triangle_weights(simplex[0].point, simplex[1].point, simplex[2].point)
        closest.weights = wp.vec4d(three[0], three[1], three[2], Real(0.0))
    elif count == 4:
        closest.weights = tetrahedron_weights(
            simplex[0].point, simplex[1].point, simplex[2].point, simplex[3].point
        )
    # Slots after the first `count` contain earlier vertices or zeros and have no weight.
    for i in range(4):
        closest.v += closest.weights[i] * simplex[i].point
        closest.on_a += closest.weights[i] * simplex[i].on_a
        closest.vertex_count += wp.where(closest.weights[i] > Real(0.0), 1, 0)
    return closest


@wp.func
def reduce_simplex(simplex: wp.array[Vertex], count: int, weights: wp.vec4d):
    """Moves the vertices with nonzero weight to the front."""
    kept = int(0)
    i = int(0)
    while i < count:
        if weights[i] > Real(0.0):
            if kept < i:
                simplex[kept] = simplex[i]
            kept += 1
        i += 1


@wp.func
def newton_nearest(difference: Any, normal: Vec3, patches: int, scale: Real) -> Descent:
    """Not found: a hull has too many patches for Newton's method; GJK terminates on hulls and
    triangles."""
    return Descent()


@wp.func
def newton_nearest(
    difference: MinkowskiDifference, normal: Vec3, patches: int, scale: Real
) -> Descent:
    """Distance of curved cores by Newton's method from a guess of the normal; found = 0 if the
    result is not the distance.
    """
    # A flat end first: around its axis the support point jumps, and a descent would only return to
    # it.
    minimum = minimum_on_disc(difference, normal)
    if minimum.found == 0 or not is_nearest(minimum, scale):
        along = Vertex()
        if patches == 0:
            along = difference_support(difference, normal)
        minimum = descend(difference, normal, patches, scale, Vec3(), along)
    return minimum if is_nearest(minimum, scale) else Descent()


@wp.func
def turning_radius(difference: Any) -> Real:
    """Radius of the balls that approximate the cores in the first search directions [m]; 0 for
    GJK's own directions."""
    return Real(0.0)


@wp.func
def turning_radius(difference: DifferenceOfHulls) -> Real:
    """Radius of the balls for two hulls."""
    a = difference.a.size
    b = difference.b.size
    return BLUNT * (a[0] + a[1] + a[2] + b[0] + b[1] + b[2]) / Real(3.0)


@wp.func
def first_descent(difference: Any) -> int:
    """Step from which on Newton's method is tried: GJK terminates on cores without curvature."""
    is_curved = core_is_curved(difference.a.type) or core_is_curved(difference.b.type)
    return wp.where(is_curved, DESCEND_AT, GJK_LIMIT)


@wp.func
def with_overlap(before: Nearest, closest: ClosestPoint) -> Nearest:
    """The result for cores whose difference's simplex contains or nearly contains the origin."""
    result = before
    result.state = OVERLAP
    result.count = closest.vertex_count
    result.distance = wp.sqrt(wp.dot(closest.v, closest.v))
    result.on_a = closest.on_a
    return result


@wp.func
def without_progress(before: Nearest, along: Real, scale: Real) -> Nearest:
    """The result where a step no longer shortens v: v converged close to the origin without a
    supporting plane, by rounding in a sliver simplex. along: separation along v [m]."""
    result = before
    result.is_supported = wp.where(result.distance - along > UNSUPPORTED * scale, 0, 1)
    is_sliver = result.distance < NEARLY_TOUCHING * scale and result.is_supported == 0
    result.state = wp.where(is_sliver, OVERLAP, APART)
    return result


@wp.func
def next_direction(before: Vec3, v: Vec3, normal: Vec3, radius: Real) -> Vec3:
    """Search direction after v: the direction between two balls of this radius, or `normal`, that
    of -v, without them. before: the last search direction."""
    return wp.normalize(radius * before - v) if radius > Real(0.0) else normal


@wp.func(inline=False)
def nearest_of_difference(
    difference: Any, start: Vec3, max_separation: Real, simplex: wp.array[Vertex]
) -> Nearest:
    """Distance, normal and closest point of two cores.

    Args:
        start: guess of the normal, unit.
        max_separation: the search ends once the cores are known to be at least this far apart [m].
        simplex: of length 4; receives the vertices of the final simplex, which contains or nearly
            contains the origin if the cores overlap.
    """
    result = Nearest(APART, Real(0.0), start, Vec3(), 0, 0)
    square = Real(0.0)
    scale_square = Real(0.0)
    step = int(0)
    descend_at = first_descent(difference)
    radius = turning_radius(difference)
    direction = start
    while step < GJK_LIMIT:
        w = difference_support(difference, direction)
        along = -wp.dot(direction, w.point)
        if along > max_separation and along > Real(0.0):
            result.state = BEYOND_MAX_SEPARATION
            result.distance = along
            break
        if (
            step > 0
            and radius == Real(0.0)
            and square - result.distance * along <= RELATIVE_GAP * square
        ):
            result.is_supported = 1
            break
        scale_square = wp.max(scale_square, wp.dot(w.point, w.point))
        simplex[result.count] = w
        closest = closest_to_origin(simplex, result.count + 1)
        next_square = wp.dot(closest.v, closest.v)
        if closest.vertex_count == 4 or next_square <= TOUCHING * TOUCHING * scale_square:
            result = with_overlap(result, closest)
            break
        if step > 0 and next_square >= square:
            if radius > Real(0.0):
                radius = Real(0.0)
                direction = result.normal
                step += 1
                continue
            result = without_progress(result, along, wp.sqrt(scale_square))
            break
        reduce_simplex(simplex, result.count + 1, closest.weights)
        result.count = closest.vertex_count
        square = next_square
        result.on_a = closest.on_a
        result.distance = wp.sqrt(square)
        result.normal = -closest.v / result.distance
        radius = wp.where(
            step == EASED_STEPS or (step == 0 and along <= Real(0.0)), Real(0.0), radius
        )
        direction = next_direction(direction, closest.v, result.normal, radius)
        if step >= descend_at and along > Real(0.0):
            descend_at = step + 4
            patches = patches_that_differ(simplex, result.count)
            minimum = newton_nearest(difference, result.normal, patches, wp.sqrt(scale_square))
            if minimum.found == 1:
                return Nearest(
                    APART, -minimum.height, minimum.normal, minimum.on_a, result.count, 1
                )
        step += 1
    return result


@wp.func
def depth_in_simplex(simplex: wp.array[Vertex], count: int) -> Real:
    """Distance of the origin to the faces of a tetrahedron that contains it [m], a lower bound of
    the depth; else 0."""
    if count < 4:
        return Real(0.0)
    depth = Real(wp.inf)
    for k in range(4):
        p = simplex[(k + 1) % 4].point
        normal = wp.cross(simplex[(k + 2) % 4].point - p, simplex[(k + 3) % 4].point - p)
        length = wp.length(normal)
        if length == Real(0.0):
            return Real(0.0)
        height = wp.dot(normal, p) / length
        height = wp.where(wp.dot(normal, simplex[k].point - p) > Real(0.0), -height, height)
        depth = wp.min(depth, height)
    return depth
