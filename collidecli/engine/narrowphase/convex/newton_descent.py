"""Newton's method for the minimum of the support function of two curved cores, from a good guess.

The support function of the difference a - b along unit n is h(n) = max over it of n.x; the signed
distance of the cores is minus its minimum. Where the support point x(n) is on one smooth patch of
the surface, or on the discontinuity between two, h is smooth in n (along the discontinuity), and
Newton's method needs a handful of steps where GJK and EPA need dozens.

At a minimum the surface's point closest to the origin is v = h n. On a patch, v is x itself; on a
discontinuity it is on the segment between the two support points. A result is judged by the error
of v, |v - h n|, so that a poor guess is never accepted.
"""

import warp as wp

from collidecli.engine.geometry.primitives import (
    MinkowskiDifference,
    SupportDiscontinuity,
    Vertex,
    difference_support,
)
from collidecli.engine.geometry.real import CONE, CYLINDER, Real, Vec3
from collidecli.engine.narrowphase.convex import depth_certificate

DESCENT_LIMIT = wp.constant(16)
"""Maximum number of steps."""

LONGEST_TURN = wp.constant(Real(0.3))
"""Maximum step [rad]: longer ones leave the region where the quadratic model of h holds."""

SHORTEST_TURN = wp.constant(Real(1.0e-5))
"""Step [rad] below which the iteration ends: the error, its square, is 1e-10 rad, and h's error
1e-20 of the size."""

STATIONARY = wp.constant(Real(1.0e-15))
"""Slope [m/rad] relative to the size below which it is rounding."""

GENTLE = wp.constant(Real(3.0e-9))
"""Slope relative to the size below which it is zero in a direction without curvature: the minimum,
at most half a turn away, is no more than 1e-8 of the size lower."""

WITHOUT_CURVATURE = wp.constant(Real(1.0e-7))
"""Curvature relative to the size below which it counts as zero in GENTLE."""

LEVEL = wp.constant(Real(1.0e-9))
"""Curvature relative to the size below which it counts as zero; a minimum's may be this
negative."""


DUPLICATE = wp.constant(2)

SAME_MINIMUM = wp.constant(Real(1.0e-4))
"""Squared angle [rad] to the normal of a minimum already found within which a descent is taken to
converge to it."""

DISC_ANGLE = wp.constant(Real(0.999))
"""Cosine of the angle to its axis within which a flat end is tried."""


@wp.struct
class Descent:
    """A local minimum of the support function. found: 1 if there is one, DUPLICATE if it was
    already found.

    normal: unit, a to b. height: h(normal) [m], minus the cores' signed distance. missed: |v - h n|
    [m]. on_a: core a's point of v. off: v - h n [m], where `normal` is on a discontinuity.
    """

    found: int
    normal: Vec3
    height: Real
    missed: Real
    on_a: Vec3
    off: Vec3


@wp.struct
class StepTaken:
    """One Newton step: new normal, step length [rad], and whether the Hessian of h is positive
    semidefinite there."""

    normal: Vec3
    turn: Real
    is_valley: bool


@wp.func
def step_on_discontinuity(
    difference: MinkowskiDifference,
    discontinuity: SupportDiscontinuity,
    normal: Vec3,
    w: Vertex,
    scale: Real,
) -> StepTaken:
    """Newton step along the circle axis.n = height, where n' = axis x n and n'' = -(n minus its
    component along the axis).
    """
    tangent = wp.cross(discontinuity.axis, normal)
    slope = wp.dot(w.point, tangent)
    curvature = depth_certificate.difference_curvature(
        difference, normal, w.patch, tangent, tangent
    )
    bend = curvature[0] - wp.dot(w.point, normal - discontinuity.height * discontinuity.axis)
    is_valley = bend >= -LEVEL * scale
    enough = GENTLE * scale if wp.abs(bend) <= WITHOUT_CURVATURE * scale else STATIONARY * scale
    if wp.abs(slope) <= enough:
        return StepTaken(normal, Real(0.0), is_valley)
    # Where the curvature is negative, the step has the length of the Newton step, but downhill.
    turn = wp.abs(slope / bend) if wp.abs(slope) < LONGEST_TURN * wp.abs(bend) else LONGEST_TURN
    return StepTaken(normal - wp.sign(slope) * turn * tangent, turn, is_valley)


@wp.func
def step_on_patch(
    difference: MinkowskiDifference, normal: Vec3, height: Real, w: Vertex, scale: Real
) -> StepTaken:
    """Newton step on the sphere; the Hessian of h on it is that of space minus h."""
    first = depth_certificate.any_tangent(normal)
    second = wp.cross(normal, first)
    curvature = depth_certificate.difference_curvature(difference, normal, w.patch, first, second)
    m00 = curvature[0] - height
    m11 = curvature[2] - height
    m01 = curvature[1]
    g0 = wp.dot(w.point, first)
    g1 = wp.dot(w.point, second)
    middle = Real(0.5) * (m00 + m11)
    spread = wp.sqrt(Real(0.25) * (m00 - m11) * (m00 - m11) + m01 * m01)
    is_valley = middle - spread >= -LEVEL * scale
    enough = (
        GENTLE * scale
        if wp.abs(middle - spread) <= WITHOUT_CURVATURE * scale
        else STATIONARY * scale
    )
    if g0 * g0 + g1 * g1 <= enough * enough:
        return StepTaken(normal, Real(0.0), is_valley)
    if middle < spread:
        # |M|, the matrix with M's eigenvectors and the absolute values of its eigenvalues, is a M +
        # b.
        a = Real(-1.0)
        b = Real(0.0)
        if middle > -spread:
            a = middle / spread
            b = (middle + spread) * (Real(1.0) - a)
        m00 = a * m00 + b
        m01 = a * m01
        m11 = a * m11 + b
    determinant = m00 * m11 - m01 * m01
    move0 = m01 * g1 - m11 * g0
    move1 = m01 * g0 - m00 * g1
    size = wp.sqrt(move0 * move0 + move1 * move1)
    turn = size / determinant if size < LONGEST_TURN * determinant else LONGEST_TURN
    if size == Real(0.0):
        return StepTaken(normal, turn, is_valley)
    moved = wp.normalize(normal + turn / size * (move0 * first + move1 * second))
    return StepTaken(moved, turn, is_valley)


@wp.func
def minimum_on_crossing(
    difference: MinkowskiDifference, start: Vec3, roles: depth_certificate.DiscontinuityRoles
) -> Descent:
    """Minimum at the crossing of two discontinuities near `start`, if there is one: a flat
    patch."""
    result = Descent()
    first = depth_certificate.difference_discontinuity(difference, roles.first, start)
    second = depth_certificate.difference_discontinuity(difference, roles.crossing, start)
    normal = depth_certificate.where_discontinuities_cross(first, second, start)
    if normal == Vec3():
        return result
    w = difference_support(difference, normal)
    result.normal = normal
    result.height = wp.dot(w.point, normal)
    first = depth_certificate.difference_discontinuity(difference, roles.first, normal)
    second = depth_certificate.difference_discontinuity(difference, roles.crossing, normal)
    off = w.point - result.height * normal
    # Both steps are tangents: off + s first + t second = 0 is solved by the t for which the rest is
    # along `first`.
    beside = wp.cross(normal, first.step)
    along = wp.dot(second.step, beside)
    if along == Real(0.0):
        return result
    is_upper = (w.patch >> roles.crossing) & 1 == 1
    t = -wp.dot(off, beside) / along
    t = wp.clamp(t, Real(-1.0), Real(0.0)) if is_upper else wp.clamp(t, Real(0.0), Real(1.0))
    result.on_a = w.on_a
    if roles.crossing < 3:
        result.on_a += t * second.step
    result.missed = wp.length(off + t * second.step)
    result.found = 1
    return move_along_steps(difference, result, off + t * second.step, w.patch, roles)


@wp.func
def minimum_on_discontinuities(
    difference: MinkowskiDifference,
    start: Vec3,
    active: int,
    roles_at_start: depth_certificate.DiscontinuityRoles,
) -> Descent:
    """Minimum at a crossing of discontinuities; of three, two of them perhaps nearly parallel, the
    one with the least error.
    """
    if roles_at_start.too_many == 0:
        return minimum_on_crossing(difference, start, roles_at_start)
    best = Descent()
    roles = depth_certificate.DiscontinuityRoles()
    roles.twin = depth_certificate.NONE
    first = depth_certificate.lowest_bit(active)
    others = active & (active - 1)
    last = depth_certificate.lowest_bit(others & (others - 1))
    pair = int(0)
    while pair < 3:
        roles.first = wp.where(pair == 2, depth_certificate.lowest_bit(others), first)
        roles.crossing = wp.where(pair == 0, depth_certificate.lowest_bit(others), last)
        minimum = minimum_on_crossing(difference, start, roles)
        if minimum.found == 1 and (best.found == 0 or minimum.missed < best.missed):
            best = minimum
        pair += 1
    return best


@wp.func
def move_along_steps(
    difference: MinkowskiDifference,
    minimum: Descent,
    off: Vec3,
    patch: int,
    roles: depth_certificate.DiscontinuityRoles,
) -> Descent:
    """`minimum` with core a's point moved along its discontinuities' steps, so that `off`, the
    error of v, is minimal.
    """
    result = minimum
    bit = roles.first
    while bit < depth_certificate.NONE:
        step = depth_certificate.difference_discontinuity(difference, bit, minimum.normal).step
        t = depth_certificate.step_fraction(step, off, (patch >> bit) & 1 == 1)
        off += t * step
        if bit < 3:
            result.on_a += t * step
        bit = depth_certificate.NONE if bit == roles.twin else roles.twin
    result.missed = wp.length(off)
    result.off = off
    return result


@wp.func
def on_first_discontinuity(
    difference: MinkowskiDifference,
    roles: depth_certificate.DiscontinuityRoles,
    normal: Vec3,
):
    """The discontinuity that the descent stays on, and the direction on it next to `normal`: zero
    for none; without a discontinuity the normal."""
    discontinuity = SupportDiscontinuity()
    on_it = normal + Vec3()
    if roles.first < depth_certificate.NONE:
        discontinuity = depth_certificate.difference_discontinuity(difference, roles.first, normal)
        on_it = depth_certificate.project_on_discontinuity(discontinuity, normal)
    return discontinuity, on_it


@wp.func
def newton_step(
    difference: MinkowskiDifference,
    roles: depth_certificate.DiscontinuityRoles,
    discontinuity: SupportDiscontinuity,
    normal: Vec3,
    w: Vertex,
    scale: Real,
) -> StepTaken:
    """Newton step along the first discontinuity that the descent is on, or on a patch."""
    if roles.first < depth_certificate.NONE:
        return step_on_discontinuity(difference, discontinuity, normal, w, scale)
    return step_on_patch(difference, normal, wp.dot(w.point, normal), w, scale)


@wp.func
def half_step(taken: StepTaken, start: Vec3, end: Vec3) -> StepTaken:
    """Half of the step that led from normal `start` uphill to `end`."""
    return StepTaken(wp.normalize(start + end), Real(0.5) * taken.turn, taken.is_valley)


@wp.func(inline=False)
def descend(
    difference: MinkowskiDifference,
    start: Vec3,
    discontinuities: int,
    scale: Real,
    found_normal: Vec3,
    at_start: Vertex,
) -> Descent:
    """Local minimum of the support function to which Newton's method converges from `start`.

    Args:
        start: unit, a to b.
        discontinuities: bits of the discontinuities to stay on. Those crossed during the descent
            are added.
        scale: size of the difference [m].
        found_normal: normal of a minimum already found, or zero; a descent that comes close to it
            ends there, with found = DUPLICATE.
        at_start: support point along `start`; not read where `discontinuities` is not 0, as the
            descent then starts at another direction, on a discontinuity.
    """
    result = Descent()
    taken = StepTaken(start, Real(1.0), False)
    active = discontinuities + 0
    roles = depth_certificate.roles_of(difference, active, start)
    patch = int(-1)
    lowest = Real(wp.inf)
    lowest_normal = start
    beyond = int(0)
    step = int(0)
    while step < DESCENT_LIMIT:
        if roles.too_many == 1 or roles.crossing < depth_certificate.NONE:
            return minimum_on_discontinuities(difference, taken.normal, active, roles)
        discontinuity, normal = on_first_discontinuity(difference, roles, taken.normal)
        if roles.first < depth_certificate.NONE and normal == Vec3():
            return result
        w = at_start
        if step > 0 or discontinuities != 0:
            w = difference_support(difference, normal)
        height = wp.dot(w.point, normal)
        if step == 0:
            patch = w.patch
        crossed = (w.patch ^ patch) & ~active
        if height > lowest + STATIONARY * scale:
            # Uphill: half the step. Twice beyond a discontinuity, the minimum is likely on it,
            # where halving ends.
            taken = half_step(taken, lowest_normal, normal)
            beyond = wp.where(crossed != 0, beyond + 1, 0)
            if beyond == 2:
                active = active | crossed
                roles = depth_certificate.roles_of(difference, active, taken.normal)
                lowest = Real(wp.inf)
        elif crossed != 0:
            active = active | crossed
            roles = depth_certificate.roles_of(difference, active, normal)
            patch = w.patch
        else:
            result = Descent(0, normal, height, Real(0.0), w.on_a, Vec3())
            if taken.turn < SHORTEST_TURN:
                result.found = wp.where(taken.is_valley, 1, 0)
                return move_along_steps(
                    difference, result, w.point - height * normal, w.patch, roles
                )
            beyond = 0
            if step > 0 and wp.length_sq(normal - found_normal) < SAME_MINIMUM:
                result.found = DUPLICATE
                return result
            lowest = height
            lowest_normal = normal
            taken = newton_step(difference, roles, discontinuity, normal, w, scale)
        step += 1
    return result


@wp.func
def minimum_along_axis(difference: MinkowskiDifference, axis: Vec3, is_on_a: bool) -> Descent:
    """Minimum at the flat end of core a or b whose outward or inward normal is `axis`, from a to b;
    found = 0 where the surface's point closest to the origin is not on the flat end."""
    radius = difference.a.size[0] if is_on_a else difference.b.size[0]
    w = difference_support(difference, axis)
    height = wp.dot(w.point, axis)
    center = Vec3(Real(0.0), Real(0.0), w.on_a[2])
    middle = w.point - w.on_a + center
    if not is_on_a:
        axis_b = axis_of_b(difference)
        on_b = w.on_a - w.point
        end = wp.dot(on_b - difference.position, axis_b)
        middle = w.on_a - (difference.position + end * axis_b)
    off = height * axis - middle
    missed = wp.max(wp.length(off) - radius, Real(0.0))
    on_a = center + off if is_on_a else w.on_a
    return Descent(wp.where(missed == Real(0.0), 1, 0), axis, height, missed, on_a, Vec3())


@wp.func
def axis_of_b(difference: MinkowskiDifference) -> Vec3:
    """Axis of core b in a's frame."""
    rotation = difference.rotation
    return Vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])


@wp.func
def minimum_on_disc(difference: MinkowskiDifference, normal: Vec3) -> Descent:
    """Minimum at a flat end of a cylinder or cone whose axis is within DISC_ANGLE of `normal`, if
    there is one."""
    axis_b = axis_of_b(difference)
    along_b = -wp.dot(normal, axis_b)
    is_on_a = has_disc(difference.a.type, normal[2]) and wp.abs(normal[2]) > DISC_ANGLE
    if not is_on_a and not (has_disc(difference.b.type, along_b) and wp.abs(along_b) > DISC_ANGLE):
        return Descent()
    axis = Vec3(Real(0.0), Real(0.0), wp.sign(normal[2])) if is_on_a else -wp.sign(along_b) * axis_b
    return minimum_along_axis(difference, axis, is_on_a)


@wp.func
def has_disc(shape_type: int, along: Real) -> bool:
    """Whether a core has a flat end on the side of its axis that has the sign of `along`."""
    return shape_type == CYLINDER or (shape_type == CONE and along < Real(0.0))


@wp.func
def minimum_on_facing_disc(difference: MinkowskiDifference) -> Descent:
    """The lower of the minima at the flat ends of a and b on the side of the other's centre, if
    there is one.

    A shape that stands or leans on a flat end has its least depth along that end's axis, from which
    the guesses of the closest points may be many degrees away.
    """
    best = Descent()
    if has_disc(difference.a.type, difference.position[2]):
        axis = Vec3(Real(0.0), Real(0.0), wp.sign(difference.position[2]))
        best = minimum_along_axis(difference, axis, True)
    axis_b = axis_of_b(difference)
    along_b = -wp.dot(difference.position, axis_b)
    if has_disc(difference.b.type, along_b):
        other = minimum_along_axis(difference, -wp.sign(along_b) * axis_b, False)
        if best.found == 0 or (other.found == 1 and other.height < best.height):
            best = other
    return best
