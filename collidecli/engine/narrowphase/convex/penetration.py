"""Signed distance of two convex shapes: early-outs, GJK, and EPA or MPR for overlapping cores.

EPA expands its polytope where the depth may be least. For a hull of hundreds of vertices deep
inside another, that is nearly everywhere, and EPA exceeds its capacity. A separating axis test,
always exact, then tests every face of the difference instead: the faces of a, the mirrored faces of
b, and one for each edge of a and edge of b whose arcs on the Gauss map cross.

Source: Gregorius 2013, "The separating axis test between convex polyhedra", for the test of arcs.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.hulls import HullShape, edge_end, hull_number, hull_point
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import BOX, CAPSULE, CONE, CYLINDER, UP, Pose, Real, Vec3
from collidecli.engine.narrowphase.convex import analytic_early_out, gjk
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.convex.epa import Depth, depth_of_difference

# MPR (Minkowski portal refinement): penetration along the line from an interior point of the
# difference to the origin.
#
# The depth is along the normal of the portal where the line leaves the difference, not the least
# over all directions: it is never less than EPA's, and equal to it if the centre line leaves
# through the face of least depth, as mostly for shallow contacts of compact shapes. It needs a
# fraction of EPA's time and stack memory.
#
# Source: Snethen 2008, "XenoCollide", Game Programming Gems 7, 2.5.

PORTAL_LIMIT = wp.constant(100)
"""Maximum number of steps of either phase. Measured: at most about 40."""

PORTAL_GAP = wp.constant(Real(1.0e-9))
"""Distance of the portal to the surface relative to the difference's size at which the refinement
ends."""


@wp.struct
class Portal:
    """Triangle of support points of the difference that the ray crosses, counterclockwise around
    it."""

    p: primitives.Vertex
    q: primitives.Vertex
    r: primitives.Vertex


@wp.func
def unit_or(v: Vec3, otherwise: Vec3) -> Vec3:
    """Normalised v, or `otherwise` if v is zero."""
    length = wp.length(v)
    return v / length if length > Real(0.0) else otherwise


@wp.func
def orientation_about(
    ray: Vec3, inner: Vec3, first: primitives.Vertex, second: primitives.Vertex
) -> Real:
    """Positive if second is counterclockwise of first around the ray."""
    return wp.dot(ray, wp.cross(first.point - inner, second.point - inner))


@wp.func
def find_portal(difference: Any, inner: Vec3, ray: Vec3) -> Portal:
    """Portal of the ray from `inner` along unit `ray`."""
    portal = Portal()
    beside = any_tangent(ray)
    portal.p = primitives.difference_support(difference, ray)
    portal.q = primitives.difference_support(
        difference, unit_or(wp.cross(portal.p.point - inner, ray), beside)
    )
    if orientation_about(ray, inner, portal.p, portal.q) < Real(0.0):
        swap = portal.p
        portal.p = portal.q
        portal.q = swap
    step = int(0)
    while step < PORTAL_LIMIT:
        normal = unit_or(
            wp.cross(portal.p.point - inner, portal.q.point - inner), wp.cross(ray, beside)
        )
        portal.r = primitives.difference_support(difference, normal)
        if orientation_about(ray, inner, portal.r, portal.p) < Real(0.0):
            portal.q = portal.r
        elif orientation_about(ray, inner, portal.q, portal.r) < Real(0.0):
            portal.p = portal.r
        else:
            break
        step += 1
    return portal


@wp.func
def depth_through_portal(difference: Any) -> Depth:
    """Depth, normal and witness of two overlapping cores by MPR, from the line through their
    frames' origins.

    exact: 0 if a limit ended the search before the portal was on the surface.
    Degenerate: coincident origins take the ray +z.
    """
    inner = -difference.position
    ray = unit_or(difference.position, UP)
    portal = find_portal(difference, inner, ray)
    scale = wp.max(
        wp.length(portal.p.point), wp.max(wp.length(portal.q.point), wp.length(portal.r.point))
    )
    result = Depth()
    result.normal = ray
    step = int(0)
    while step < PORTAL_LIMIT:
        across = wp.cross(portal.q.point - portal.p.point, portal.r.point - portal.p.point)
        result.normal = unit_or(across, result.normal)
        w = primitives.difference_support(difference, result.normal)
        result.depth = wp.dot(w.point, result.normal)
        if result.depth - wp.dot(portal.p.point, result.normal) <= PORTAL_GAP * scale:
            result.exact = 1
            break
        # Of the three portals that w forms with an edge of this one, the one that the ray crosses.
        past_p = orientation_about(ray, inner, portal.p, w)
        past_q = orientation_about(ray, inner, portal.q, w)
        past_r = orientation_about(ray, inner, portal.r, w)
        if past_p <= Real(0.0) and past_q >= Real(0.0):
            portal.r = w
        elif past_q <= Real(0.0) and past_r >= Real(0.0):
            portal.p = w
        else:
            portal.q = w
        step += 1
    weights = gjk.triangle_weights(portal.p.point, portal.q.point, portal.r.point)
    result.on_a = (
        weights[0] * portal.p.on_a + weights[1] * portal.q.on_a + weights[2] * portal.r.on_a
    )
    return result


# ruff: noqa: F811

PARALLEL_EDGES = wp.constant(Real(1.0e-9))
"""Sine of the angle below which two edges give no face of their own: it would be a sliver."""


@wp.func
def shallower(difference: primitives.DifferenceOfHulls, normal: Vec3, best: Depth) -> Depth:
    """`best`, or the depth along a unit normal if it is smaller."""
    height = wp.dot(primitives.difference_support(difference, normal).point, normal)
    return Depth(height, normal, Vec3(), 0, 1, 0, height) if height < best.depth else best


@wp.func
def normal_beside(shape: HullShape, edge: int, side: int) -> Vec3:
    """Outward normal of one of the two faces (0, 1) of an edge."""
    return hull_point(shape, shape.normal + hull_number(shape, shape.edge + 4 * edge + 2 + side))


@wp.func
def arcs_cross(a0: Vec3, a1: Vec3, b0: Vec3, b1: Vec3) -> bool:
    """Whether the great-circle arcs from a0 to a1 and from b0 to b1, of unit vectors, cross."""
    across_a = wp.cross(a1, a0)
    across_b = wp.cross(b1, b0)
    b0_side = wp.dot(b0, across_a)
    b1_side = wp.dot(b1, across_a)
    a0_side = wp.dot(a0, across_b)
    a1_side = wp.dot(a1, across_b)
    return (
        b0_side * b1_side < Real(0.0)
        and a0_side * a1_side < Real(0.0)
        and b0_side * a1_side > Real(0.0)
    )


@wp.func(inline=False)
def depth_by_faces_and_edges(difference: primitives.DifferenceOfHulls) -> Depth:
    """Least depth of two overlapping hulls and its normal; no witness."""
    a = difference.a
    b = difference.b
    result = Depth(Real(wp.inf), Vec3(), Vec3(), 0, 1, 0, Real(0.0))
    for face in range(a.face_count):
        result = shallower(difference, hull_point(a, a.normal + face), result)
    for face in range(b.face_count):
        result = shallower(
            difference, -(difference.rotation * hull_point(b, b.normal + face)), result
        )
    edges_a = (a.face - a.edge) / 4
    edges_b = (b.face - b.edge) / 4
    for i in range(edges_a):
        a0 = normal_beside(a, i, 0)
        a1 = normal_beside(a, i, 1)
        start_a = edge_end(a, i, 0)
        along_a = edge_end(a, i, 1) - start_a
        for j in range(edges_b):
            b0 = -(difference.rotation * normal_beside(b, j, 0))
            b1 = -(difference.rotation * normal_beside(b, j, 1))
            if arcs_cross(a0, a1, b0, b1):
                start_b = difference.rotation * edge_end(b, j, 0) + difference.position
                along_b = difference.rotation * (edge_end(b, j, 1) - edge_end(b, j, 0))
                across = wp.cross(along_a, along_b)
                # The arcs are shorter than half a turn, so the normal is on a0's side.
                across = wp.where(wp.dot(across, a0 + a1) < Real(0.0), -across, across)
                length = wp.length(across)
                # The arcs of parallel edges cross by rounding, if at all; an adjacent face then
                # gives the depth.
                is_face = length > PARALLEL_EDGES * wp.length(along_a) * wp.length(along_b)
                if is_face and wp.dot(across, start_a - start_b) < result.depth * length:
                    result = shallower(difference, across / length, result)
    return result


WITNESS_GAP = wp.constant(Real(1.0e-3))
"""Gap by which cores are separated to find their witnesses, relative to the smaller shape's size:
GJK's direction is accurate to 1e-6, and b's point to 1e-6 of the gap."""

LEAST_WITNESS_GAP = wp.constant(Real(1.0e-6))
"""Additional gap relative to the larger shape's size: well above the distance at which cores count
as touching."""


@wp.struct
class Separation:
    """Signed distance of two shapes [m], the unit normal from a to b that attains it, and a's
    witness, in a's frame.

    b's witness is point_a + separation * normal. exact: 0 if `separation` is only known to be at
    least the maximum separation (normal and point are then approximate), or if a limit ended the
    search for the depth; else 1.
    """

    separation: Real
    normal: Vec3
    point_a: Vec3
    exact: int


@wp.func
def flat_normal(difference: Any) -> Vec3:
    """Normal of two crossing cores without volume; any direction perpendicular to both separates
    them.

    Two segments: their common perpendicular; parallel ones, or one: perpendicular to it and to the
    axis of a's frame it is least along; two points: +z of a.
    """
    axis = UP
    axis_b = Vec3(difference.rotation[0, 2], difference.rotation[1, 2], difference.rotation[2, 2])
    has_axis_b = difference.b.type == CAPSULE and difference.b.size[1] > Real(0.0)
    if difference.a.type == CAPSULE and difference.a.size[1] > Real(0.0):
        if has_axis_b:
            across = wp.cross(axis, axis_b)
            if wp.length_sq(across) > PARALLEL_EDGES:
                return wp.normalize(across)
        return any_tangent(axis)
    return any_tangent(axis_b) if has_axis_b else axis


@wp.func
def placed(difference: Any, a: Any, b: Any, pose_b_to_a: Pose):
    """An empty Minkowski difference, set to the cores of two shapes, in a's frame."""
    result = difference
    result.a = a
    result.b = b
    result.radius_a = primitives.radius_of(a)
    result.radius_b = primitives.radius_of(b)
    result.rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    result.position = wp.transform_get_translation(pose_b_to_a)
    return result


@wp.func
def minkowski_difference(
    a: primitives.Primitive, b: primitives.Primitive, pose_b_to_a: Pose
) -> primitives.MinkowskiDifference:
    """Minkowski difference of the cores of two primitives, in a's frame."""
    return placed(primitives.MinkowskiDifference(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: primitives.Primitive, b: HullShape, pose_b_to_a: Pose
) -> primitives.DifferenceWithHull:
    """Minkowski difference of a primitive and a hull."""
    return placed(primitives.DifferenceWithHull(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: HullShape, b: HullShape, pose_b_to_a: Pose
) -> primitives.DifferenceOfHulls:
    """Minkowski difference of two hulls."""
    return placed(primitives.DifferenceOfHulls(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: primitives.Primitive, b: TriangleShape, pose_b_to_a: Pose
) -> primitives.DifferenceWithTriangle:
    """Minkowski difference of a primitive and a triangle."""
    return placed(primitives.DifferenceWithTriangle(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: HullShape, b: TriangleShape, pose_b_to_a: Pose
) -> primitives.DifferenceOfHullAndTriangle:
    """Minkowski difference of a hull and a triangle."""
    return placed(primitives.DifferenceOfHullAndTriangle(), a, b, pose_b_to_a)


@wp.func
def nearest_of_separated(
    difference: Any, depth: Real, normal: Vec3, gap: Real, simplex: wp.array[primitives.Vertex]
) -> gjk.Nearest:
    """Closest points of cores moved apart by a depth and a gap [m], which are the witnesses of the
    depth.

    With h the support function of the difference and t = depth + gap, the separation along n is t
    normal.n - h(n) once b is moved by t normal. It is largest along the normal if no h is below the
    depth: the closest points are then the witnesses, and their distance is the gap.
    """
    moved = difference
    moved.position = difference.position + (depth + gap) * normal
    return gjk.nearest_of_difference(moved, normal, Real(wp.inf), simplex)


@wp.func
def sum_of_sizes(difference: Any) -> Real:
    """Largest size of a plus that of b [m]."""
    return wp.max(difference.a.size) + wp.max(difference.b.size)


@wp.func
def witness_gap(difference: Any) -> Real:
    """Gap by which cores are separated to find the witnesses of their depth [m]."""
    largest_a = wp.max(difference.a.size)
    largest_b = wp.max(difference.b.size)
    return WITNESS_GAP * wp.min(largest_a, largest_b) + LEAST_WITNESS_GAP * wp.max(
        largest_a, largest_b
    )


@wp.func
def witness_by_gjk(
    difference: Any, depth: Real, normal: Vec3, simplex: wp.array[primitives.Vertex]
) -> Vec3:
    """Core a's witness of a depth: its point closest to b once they are moved apart by the depth
    and a gap."""
    return nearest_of_separated(difference, depth, normal, witness_gap(difference), simplex).on_a


@wp.func(inline=False)
def depth_if_attained(difference: Any, depth: Real, normal: Vec3) -> Depth:
    """A conditional depth of overlapping cores, with its witness; exact = 0 if the cores do not
    attain it."""
    simplex = wp.zeros(shape=4, dtype=primitives.Vertex)
    gap = witness_gap(difference)
    nearest = nearest_of_separated(difference, depth, normal, gap, simplex)
    missed = wp.abs(nearest.distance - gap)
    exact = wp.where(nearest.state == gjk.APART and missed <= WITNESS_GAP * gap, 1, 0)
    return Depth(depth, normal, nearest.on_a, 0, exact, 0, Real(0.0))


DESCENTS = wp.constant(32)
"""Maximum number of steps of `descended`."""
PROVEN = wp.constant(Real(1.0e-9))
"""Difference of both bounds of a depth, relative to the sizes' sum, at which it counts as exact."""
LEAST_DESCENT = wp.constant(Real(1.0e-12))
"""Gain of a step relative to the sizes' sum at which the descent ends."""


@wp.func(inline=False)
def descended(difference: Any, reached: Depth, simplex: wp.array[primitives.Vertex]) -> Depth:
    """A depth after a descent along its support heights, to a local minimum.

    The proximal point method, as in `distance_bounds`: of cores moved apart along n by a distance t
    beyond their depth, the closest points give the normal m that maximizes t m.n - h(m), so that
    h(m) <= h(n) - t (1 - m.n). A ring of equal minima, as of a cone's tip at a hull's vertex, has
    more faces than the polytope of EPA, all of which are close to its lower bound.
    """
    result = reached
    gap = witness_gap(difference)
    size = sum_of_sizes(difference)
    for _step in range(DESCENTS):
        apart = nearest_of_separated(difference, result.depth, result.normal, gap, simplex)
        if apart.state != gjk.APART:
            break
        height = wp.dot(primitives.difference_support(difference, apart.normal).point, apart.normal)
        if height >= result.depth - LEAST_DESCENT * size:
            break
        result.depth = height
        result.normal = apart.normal
        result.on_a = apart.on_a
        result.has_witness = 0
    result.exact = wp.where(result.depth - result.least <= PROVEN * size, 1, 0)
    return result


@wp.func
def depth_beyond_capacity(
    difference: Any, reached: Depth, simplex: wp.array[primitives.Vertex]
) -> Depth:
    """Depth if EPA exceeds its capacity: a local minimum below EPA's upper bound."""
    return descended(difference, reached, simplex)


@wp.func
def depth_beyond_capacity(
    difference: primitives.DifferenceOfHulls, reached: Depth, simplex: wp.array[primitives.Vertex]
) -> Depth:
    """Exact depth of two hulls over all faces and pairs of edges."""
    return depth_by_faces_and_edges(difference)


@wp.func
def depth_by_epa(difference: Any, simplex: wp.array[primitives.Vertex], count: int) -> Depth:
    """Exact depth by EPA."""
    depth = depth_of_difference(difference, simplex, count)
    if depth.exact == 0:
        depth = depth_beyond_capacity(difference, depth, simplex)
    if depth.has_witness == 0:
        depth.on_a = witness_by_gjk(difference, depth.depth, depth.normal, simplex)
    return depth


@wp.func
def depth_by_mpr(difference: Any, simplex: wp.array[primitives.Vertex], count: int) -> Depth:
    """Approximate depth, see mpr.py; the witness is on a, but on b only if the depth is the
    least."""
    return depth_through_portal(difference)


# Certified bounds of the distance of two cores that nearly touch.
#
# Every v of GJK is a point of the Minkowski difference, whatever the rounding of its weights: |v|
# bounds the distance from above. The separation s(n) along any unit normal bounds it from below.
# Where v is short its direction is rounding: an error of e [rad] lowers s by e times the size. So b
# is moved by a gap t along the best normal n so far, far enough for GJK. Its normal m maximizes
# s(m) + t m.n, so that s(m) >= s(n) + t (1 - m.n): no step lowers s, and only the normal of the
# distance is a fixed point. This is the proximal point method for the concave function s. GJK's |v|
# is blind to an error of m below 1e-8, its square root of the rounding; the normal of its simplex,
# a face of the difference, is not.
#
# Source: Rockafellar 1976, "Monotone operators and the proximal point algorithm".

LOOSE = wp.constant(Real(1.0e-12))
"""Difference of both bounds of GJK, relative to the sizes' sum, from which they are improved."""
TIGHT = wp.constant(Real(1.0e-14))
"""Difference of both bounds relative to the sizes' sum at which they are exact up to rounding."""
WIDER = wp.constant(Real(8.0))
"""Factor of the gap, up to the sizes' sum, once a direction separates the cores: a narrow gap moves
the normal far, a wide one has less rounding of the direction, and one beyond the sizes more of the
points."""
STEPS = wp.constant(16)
"""Maximum number of steps."""


@wp.struct
class DistanceBounds:
    """Bounds of the distance of two cores [m]. upper: attained at core a's point `on_a`. lower: the
    separation along `normal`, unit, a to b; negative if no direction was found that separates them.
    All in a's frame.
    """

    upper: Real
    lower: Real
    normal: Vec3
    on_a: Vec3


@wp.func
def separated_along(difference: Any, normal: Vec3, bounds: DistanceBounds) -> DistanceBounds:
    """`bounds`, or those with the separation along a unit normal if it is larger."""
    separation = -wp.dot(primitives.difference_support(difference, normal).point, normal)
    return (
        DistanceBounds(bounds.upper, separation, normal, bounds.on_a)
        if separation > bounds.lower
        else bounds
    )


@wp.func
def separated_across(
    difference: Any, p: Vec3, q: Vec3, r: Vec3, bounds: DistanceBounds
) -> DistanceBounds:
    """`bounds`, or those with the separation along the normal of a triangle, of either sign, if it
    is larger."""
    normal = wp.cross(q - p, r - p)
    if wp.length_sq(normal) == Real(0.0):
        return bounds
    normal = wp.normalize(normal)
    return separated_along(difference, -normal, separated_along(difference, normal, bounds))


@wp.func
def separated_across_sides(difference: Any, bounds: DistanceBounds) -> DistanceBounds:
    """`bounds`, or those with the separation along the normal of a flat side of core a's, if it is
    larger.

    Where b's closest point is above such a side, close to its border, s falls little towards the
    border's normals, and the steps back are short.
    """
    result = bounds
    shape_type = difference.a.type
    for axis in range(3):
        normal = Vec3()
        normal[axis] = Real(1.0)
        if shape_type == BOX or (axis == 2 and shape_type == CYLINDER):
            result = separated_along(difference, normal, result)
        if shape_type == BOX or (axis == 2 and (shape_type == CYLINDER or shape_type == CONE)):
            result = separated_along(difference, -normal, result)
    return result


@wp.func(inline=False)
def narrowed(
    difference: Any, before: DistanceBounds, simplex: wp.array[primitives.Vertex]
) -> DistanceBounds:
    """Bounds of the distance of two cores after the proximal point method from their normal.
    simplex: scratch."""
    result = before
    size = sum_of_sizes(difference)
    gap = WIDER * witness_gap(difference)
    normal = result.normal
    for _ in range(STEPS):
        if result.upper - result.lower <= TIGHT * size or gap > size:
            break
        shift = gap + wp.max(-result.lower, Real(0.0))
        apart = nearest_of_separated(difference, Real(0.0), normal, shift, simplex)
        if apart.state != gjk.APART:
            break
        upper = wp.length(apart.distance * apart.normal - shift * normal)
        if upper < result.upper:
            result.upper = upper
            result.on_a = apart.on_a
        lower = result.lower
        result = separated_along(difference, apart.normal, result)
        result = separated_across(
            difference, simplex[0].point, simplex[1].point, simplex[2].point, result
        )
        normal = wp.where(result.lower > lower, result.normal, apart.normal)
        gap = wp.where(result.lower > Real(0.0), WIDER * gap, gap)
    return result


@wp.func(inline=False)
def supported(
    difference: Any, before: gjk.Nearest, simplex: wp.array[primitives.Vertex]
) -> gjk.Nearest:
    """GJK's result after the proximal point method, where no plane supports its v.

    Vertices of one rim that are close to each other span slivers, in whose plane rounding hides the
    closest point. OVERLAP, without a simplex, where no direction separates the cores. simplex:
    scratch.
    """
    bounds = DistanceBounds(before.distance, -Real(wp.inf), before.normal, before.on_a)
    bounds = narrowed(difference, separated_along(difference, before.normal, bounds), simplex)
    result = before
    result.distance = bounds.upper
    result.normal = bounds.normal
    result.on_a = bounds.on_a
    if bounds.lower <= Real(0.0):
        result.state = gjk.OVERLAP
        result.count = 0
    return result


@wp.func
def nearest_cores(
    difference: Any, start: Vec3, max_separation: Real, simplex: wp.array[primitives.Vertex]
) -> gjk.Nearest:
    """Distance, normal and closest point of two cores, as `gjk.nearest_of_difference`, supported by
    a plane."""
    nearest = gjk.nearest_of_difference(difference, start, max_separation, simplex)
    if nearest.state == gjk.APART and nearest.is_supported == 0:
        return supported(difference, nearest, simplex)
    return nearest


@wp.func(inline=False)
def distance_bounds(
    difference: Any, nearest: gjk.Nearest, simplex: wp.array[primitives.Vertex]
) -> DistanceBounds:
    """Bounds of the distance of a core and a triangle from GJK's result, which may be OVERLAP
    without an overlap.

    simplex: scratch.
    """
    result = DistanceBounds(nearest.distance, -Real(wp.inf), Vec3(), nearest.on_a)
    result = separated_along(difference, nearest.normal, result)
    size = sum_of_sizes(difference)
    if result.upper - result.lower <= LOOSE * size or result.upper <= wp.max(
        difference.radius_a, TIGHT * size
    ):
        return result
    turn = difference.rotation
    b = difference.b
    p = turn * b.p
    q = turn * b.q
    r = turn * b.r
    result = separated_across(difference, p, q, r, result)
    result = narrowed(difference, result, simplex)
    # Last, since a better start may lead the steps, whose number is limited, to a worse end.
    if result.upper - result.lower > TIGHT * size:
        result = separated_across_sides(difference, result)
    return result


def separation_by(depth_of_overlap: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`separate` with one depth function for overlapping cores, so that the other one's code is not
    compiled."""

    @wp.func(name=name)
    def separate(a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real) -> Separation:
        difference = minkowski_difference(a, b, pose_b_to_a)
        radii = difference.radius_a + difference.radius_b
        early = analytic_early_out.early_out(difference, max_separation + radii)
        distance = early.distance
        result = Separation(
            Real(0.0),
            early.normal,
            early.on_a,
            wp.where(early.state == analytic_early_out.FAR, 0, 1),
        )
        if (
            early.state == analytic_early_out.UNDECIDED
            or early.state == analytic_early_out.CONDITIONAL
        ):
            simplex = wp.zeros(shape=4, dtype=primitives.Vertex)
            nearest = nearest_cores(difference, early.normal, max_separation + radii, simplex)
            distance = nearest.distance
            result.normal = nearest.normal
            result.point_a = nearest.on_a
            if nearest.state == gjk.BEYOND_MAX_SEPARATION:
                result.exact = 0
            elif nearest.state == gjk.OVERLAP:
                if primitives.core_is_flat(a.type) and primitives.core_is_flat(b.type):
                    distance = Real(0.0)
                    result.normal = flat_normal(difference)
                else:
                    overlap = Depth()
                    if early.state == analytic_early_out.CONDITIONAL:
                        overlap = depth_if_attained(difference, -early.distance, early.normal)
                    if overlap.exact == 0:
                        overlap = depth_of_overlap(difference, simplex, nearest.count)
                    distance = -overlap.depth
                    result.normal = overlap.normal
                    result.point_a = overlap.on_a
                    result.exact = overlap.exact
        result.separation = distance - radii
        result.point_a += difference.radius_a * result.normal
        return result

    return separate


separate = separation_by(depth_by_epa, "separate")
"""Signed distance, normal and witness of two convex shapes.

Args:
    a, b: `Primitive` of any type but plane, `HullShape` or `TriangleShape`.
    pose_b_to_a: b's frame in a's.
    max_separation: the search ends once the separation is known to be at least this [m].
Returns:
    Separation. Its witness is on both shapes to 5e-8 of the larger's size. The separation of cores
    that touch, or
    overlap by less than 2e-9 of their sizes' sum, is accurate to that value, also if b is a million
        times a's size.
Degenerate: if several directions attain the depth, one that depends on the arguments alone; see
    `flat_normal` for spheres and capsules whose inner points or segments intersect.
"""

separate_by_mpr = separation_by(depth_by_mpr, "separate_by_mpr")
"""`separate` with an approximate depth, never less than the exact one, at less cost (see
mpr.py)."""

TOUCHING = wp.constant(1)
APART_BY_LIMIT = wp.constant(2)
UNCERTAIN = wp.constant(0)
SEARCH_ERROR = wp.constant(Real(1.0e-6))
"""Bound of the error of a separation before it is improved along a face, relative to the sizes'
sum."""


@wp.func
def early_touch(difference: Any, max_separation: Real, error: Real) -> analytic_early_out.EarlyOut:
    """UNDECIDED."""
    return analytic_early_out.undecided(difference)


@wp.func
def early_touch(
    difference: primitives.MinkowskiDifference, max_separation: Real, error: Real
) -> analytic_early_out.EarlyOut:
    """DECIDED if a point of each core, found by projections, are nearer than `max_separation` by
    more than `error`; FAR if the plane between them proves that the cores are farther.
    """
    guess = analytic_early_out.guess_nearest(difference)
    if guess.is_valid == 0 or guess.distance < max_separation - error:
        state = wp.where(
            max_separation > error, analytic_early_out.DECIDED, analytic_early_out.UNDECIDED
        )
        return analytic_early_out.EarlyOut(
            state, Real(0.0), analytic_early_out.toward(difference), Vec3()
        )
    height = wp.dot(primitives.difference_support(difference, guess.normal).point, guess.normal)
    is_far = -height >= max_separation + error and height < Real(0.0)
    return analytic_early_out.EarlyOut(
        wp.where(is_far, analytic_early_out.FAR, analytic_early_out.UNDECIDED),
        Real(0.0),
        guess.normal,
        Vec3(),
    )


@wp.func
def touch_of(a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real) -> int:
    """Whether two shapes are nearer than `max_separation` [m], without their depth: TOUCHING,
    APART_BY_LIMIT, or UNCERTAIN within SEARCH_ERROR of the limit.
    """
    difference = minkowski_difference(a, b, pose_b_to_a)
    limit = max_separation + difference.radius_a + difference.radius_b
    error = SEARCH_ERROR * sum_of_sizes(difference)
    early = early_touch(difference, limit, error)
    if early.state == analytic_early_out.FAR:
        return APART_BY_LIMIT
    if early.state == analytic_early_out.DECIDED:
        return TOUCHING
    simplex = wp.zeros(shape=4, dtype=primitives.Vertex)
    nearest = gjk.nearest_of_difference(difference, early.normal, limit + error, simplex)
    if nearest.state == gjk.BEYOND_MAX_SEPARATION:
        return APART_BY_LIMIT
    below = limit - nearest.distance
    if nearest.state == gjk.OVERLAP and below <= error:
        below += gjk.depth_in_simplex(simplex, nearest.count)
    return wp.where(below > error, TOUCHING, UNCERTAIN)
