"""Newton's method for the least support height of two curved cores, in the directions around a good guess.

The support height of the difference a - b along unit n is h(n) = max over it of n.x; the signed distance of the cores
is minus its least value. Where the farthest point x(n) is on one smooth piece of the surface, or on the crease
between two, h is smooth in n (along the crease), and Newton needs a handful of steps where GJK and EPA need dozens.

At a minimum the nearest point of the surface is v = h n. On a piece, v is x itself; on a crease it is on the segment
that joins the two farthest points. How far v misses h n is what the result is judged by, so that a poor guess is
never taken.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import (
    CONE,
    CYLINDER,
    Cores,
    Crease,
    Vertex,
    core_crease,
    core_curvature,
    core_is_curved,
    difference_support,
)

DESCENT_LIMIT = wp.constant(16)
"""Steps before a guess is given up."""

LONGEST_TURN = wp.constant(Real(0.3))
"""A longer step [rad] leaves the region where the quadratic model of h holds; it is cut to this."""

SHORTEST_TURN = wp.constant(Real(1.0e-5))
"""After a step below this [rad] the error, its square, is 1e-10 rad, and h's error 1e-20 of the size."""

STATIONARY = wp.constant(Real(1.0e-15))
"""Share of the size below which a slope [m/rad] is rounding."""

GENTLE = wp.constant(Real(3.0e-9))
"""Share of the size below which a slope in a valley without curvature is none: its lowest point, at most half a turn
away, is no more than 1e-8 of the size lower."""

WITHOUT_CURVATURE = wp.constant(Real(1.0e-7))
"""Share of the size below which a valley's curvature counts as none."""

LEVEL = wp.constant(Real(1.0e-9))
"""Share of the size below which a curvature counts as none; a minimum's may be this negative."""


KNOWN = wp.constant(2)

NONE = wp.constant(6)
"""The bit of no crease."""

SAME_MINIMUM = wp.constant(Real(1.0e-4))
"""Square of the angle [rad] between a descending normal and a known minimum within which it is taken to lead there."""

PARALLEL = wp.constant(Real(1.0e-17))
"""Square of the sine below which two creases have no crossing to speak of."""

DISC_ANGLE = wp.constant(Real(0.999))
"""Cosine of the angle to its axis within which a flat end is tried."""


@wp.struct
class Descent:
    """A local minimum of the support height. found: 1 when there is one, KNOWN when it is one already found.

    normal: unit, a to b. height: h(normal) [m], minus the cores' signed distance. missed: length of v - h n [m].
    on_a: core a's point of v.
    """

    found: int
    normal: Vec3
    height: Real
    missed: Real
    on_a: Vec3


@wp.struct
class StepTaken:
    """One step of Newton's: where it led, how far [rad], and whether h bends upwards there in every direction."""

    normal: Vec3
    turn: Real
    is_valley: bool


@wp.func
def difference_curvature(cores: Cores, direction: Vec3, piece: int, first: Vec3, second: Vec3) -> Vec3:
    """`core_curvature` of the difference: the sum of those of a and b."""
    of_a = core_curvature(cores.type_a, cores.size_a, cores.radius_a, direction, piece % 8, first, second)
    if not core_is_curved(cores.type_b):
        return of_a
    to_b = wp.transpose(cores.rotation)
    return of_a + core_curvature(
        cores.type_b, cores.size_b, cores.radius_b, -(to_b * direction), piece / 8, to_b * first, to_b * second
    )


@wp.func
def difference_crease(cores: Cores, bit: int, direction: Vec3) -> Crease:
    """The crease of the difference that belongs to one bit of its pieces."""
    if bit < 3:
        return core_crease(cores.type_a, cores.size_a, bit, direction)
    crease = core_crease(cores.type_b, cores.size_b, bit - 3, -(wp.transpose(cores.rotation) * direction))
    crease.axis = -(cores.rotation * crease.axis)
    crease.step = -(cores.rotation * crease.step)
    return crease


@wp.func
def any_tangent(normal: Vec3) -> Vec3:
    """A unit vector perpendicular to `normal`, from the axis it is least along."""
    x = wp.abs(normal[0])
    y = wp.abs(normal[1])
    z = wp.abs(normal[2])
    other = Vec3(Real(0.0), Real(0.0), Real(1.0))
    if x <= y and x <= z:
        other = Vec3(Real(1.0), Real(0.0), Real(0.0))
    elif y <= z:
        other = Vec3(Real(0.0), Real(1.0), Real(0.0))
    return wp.normalize(wp.cross(normal, other))


@wp.func
def lowest_bit(mask: int) -> int:
    """Index of the lowest bit that is set; NONE when there is none."""
    bit = int(0)
    while bit < NONE and (mask >> bit) & 1 == 0:
        bit += 1
    return bit


@wp.func
def step_on_crease(cores: Cores, crease: Crease, normal: Vec3, w: Vertex, scale: Real) -> StepTaken:
    """Newton's step along the circle axis.n = height, where n' = axis x n and n'' = -(n off the axis)."""
    result = StepTaken()
    tangent = wp.cross(crease.axis, normal)
    slope = wp.dot(w.point, tangent)
    curvature = difference_curvature(cores, normal, w.piece, tangent, tangent)
    bend = curvature[0] - wp.dot(w.point, normal - crease.height * crease.axis)
    result.normal = normal
    result.is_valley = bend >= -LEVEL * scale
    enough = STATIONARY * scale
    if wp.abs(bend) <= WITHOUT_CURVATURE * scale:
        enough = GENTLE * scale
    if wp.abs(slope) > enough:
        # Where h bends down, as far downhill as it would be uphill.
        result.turn = LONGEST_TURN
        if wp.abs(slope) < LONGEST_TURN * wp.abs(bend):
            result.turn = wp.abs(slope / bend)
        result.normal = normal - wp.sign(slope) * result.turn * tangent
    return result


@wp.func
def step_on_piece(cores: Cores, normal: Vec3, height: Real, w: Vertex, scale: Real) -> StepTaken:
    """Newton's step on the sphere; the Hessian of h on it is that of space less h."""
    result = StepTaken()
    first = any_tangent(normal)
    second = wp.cross(normal, first)
    curvature = difference_curvature(cores, normal, w.piece, first, second)
    m00 = curvature[0] - height
    m01 = curvature[1]
    m11 = curvature[2] - height
    g0 = wp.dot(w.point, first)
    g1 = wp.dot(w.point, second)
    middle = Real(0.5) * (m00 + m11)
    spread = wp.sqrt(Real(0.25) * (m00 - m11) * (m00 - m11) + m01 * m01)
    result.normal = normal
    result.is_valley = middle - spread >= -LEVEL * scale
    enough = STATIONARY * scale
    if wp.abs(middle - spread) <= WITHOUT_CURVATURE * scale:
        enough = GENTLE * scale
    if g0 * g0 + g1 * g1 > enough * enough:
        if middle < spread:
            # |M|, the matrix with M's eigenvectors and the sizes of its eigenvalues, is a M + b.
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
        result.turn = LONGEST_TURN
        if size < LONGEST_TURN * determinant:
            result.turn = size / determinant
        if size == Real(0.0):
            return result
        share = result.turn / size
        result.normal = wp.normalize(normal + share * (move0 * first + move1 * second))
    return result


@wp.func
def put_on_crease(crease: Crease, normal: Vec3) -> Vec3:
    """The unit vector of the crease's circle nearest to `normal`; zero when there is none."""
    around = normal - wp.dot(normal, crease.axis) * crease.axis
    square = wp.dot(around, around)
    if square < Real(1.0e-12):
        return Vec3()
    return crease.height * crease.axis + wp.sqrt((Real(1.0) - crease.height * crease.height) / square) * around


@wp.func
def share_of_step(step: Vec3, off: Vec3, is_upper: bool) -> Real:
    """How much of a crease's step takes `off` nearest to zero: 0..1 from the lower piece, -1..0 from the upper."""
    share = -wp.dot(off, step) / wp.dot(step, step)
    if is_upper:
        return wp.clamp(share, Real(-1.0), Real(0.0))
    return wp.clamp(share, Real(0.0), Real(1.0))


@wp.func
def are_parallel(cores: Cores, low: int, high: int, normal: Vec3) -> bool:
    """Whether two creases are circles about one axis, as those of coaxial shapes are."""
    first = difference_crease(cores, low, normal)
    second = difference_crease(cores, high, normal)
    return wp.length_sq(wp.cross(first.axis, second.axis)) < PARALLEL


@wp.struct
class CreaseRoles:
    """Bits of the creases that a descent is on, NONE for none. first: the one it follows. twin: one parallel to it.

    crossing: one that crosses it. too_many: 1 when others are left.
    """

    first: int
    twin: int
    crossing: int
    too_many: int


@wp.func
def roles_of(cores: Cores, active: int, normal: Vec3) -> CreaseRoles:
    """Roles of the creases whose bits are set in `active`."""
    roles = CreaseRoles()
    roles.twin = NONE
    roles.crossing = NONE
    roles.first = lowest_bit(active)
    others = active & (active - 1)
    if others == 0:
        return roles
    roles.crossing = lowest_bit(others)
    rest = others & (others - 1)
    if are_parallel(cores, roles.first, roles.crossing, normal):
        roles.twin = roles.crossing
        roles.crossing = lowest_bit(rest)
    elif rest != 0:
        roles.twin = lowest_bit(rest)
        if not are_parallel(cores, roles.first, roles.twin, normal):
            crossing = roles.first
            roles.first = roles.crossing
            roles.crossing = crossing
            if not are_parallel(cores, roles.first, roles.twin, normal):
                roles.too_many = 1
    if (rest & (rest - 1)) != 0:
        roles.too_many = 1
    return roles


@wp.func
def where_creases_cross(first: Crease, second: Crease, start: Vec3) -> Vec3:
    """The direction on both creases' circles that is nearer to `start`; zero when there is none."""
    across = wp.cross(first.axis, second.axis)
    sine_square = wp.dot(across, across)
    if sine_square < PARALLEL:
        return Vec3()
    cosine = wp.dot(first.axis, second.axis)
    along_first = (first.height - second.height * cosine) / sine_square
    along_second = (second.height - first.height * cosine) / sine_square
    normal = along_first * first.axis + along_second * second.axis
    rest = Real(1.0) - wp.dot(normal, normal)
    if rest < Real(0.0):
        return Vec3()
    return normal + wp.sign(wp.dot(start, across)) * wp.sqrt(rest / sine_square) * across


@wp.func(inline=False)
def rest_on_crossing(cores: Cores, start: Vec3, roles: CreaseRoles) -> Descent:
    """The minimum where two creases cross near `start`, where there is one: a flat patch."""
    result = Descent()
    first = difference_crease(cores, roles.first, start)
    second = difference_crease(cores, roles.crossing, start)
    normal = where_creases_cross(first, second, start)
    if normal == Vec3():
        return result
    w = difference_support(cores, normal)
    result.normal = normal
    result.height = wp.dot(w.point, normal)
    first = difference_crease(cores, roles.first, normal)
    second = difference_crease(cores, roles.crossing, normal)
    off = w.point - result.height * normal
    # Both steps are tangents: off + s first + t second = 0 is met by the one t for which the rest is along `first`.
    beside = wp.cross(normal, first.step)
    along = wp.dot(second.step, beside)
    if along == Real(0.0):
        return result
    t = -wp.dot(off, beside) / along
    if (w.piece >> roles.crossing) & 1 == 1:
        t = wp.clamp(t, Real(-1.0), Real(0.0))
    else:
        t = wp.clamp(t, Real(0.0), Real(1.0))
    result.on_a = w.on_a
    if roles.crossing < 3:
        result.on_a += t * second.step
    result.missed = wp.length(off + t * second.step)
    result.found = 1
    return take_steps(cores, result, off + t * second.step, w.piece, roles)


@wp.func(inline=False)
def rest_on_some_crossing(cores: Cores, start: Vec3, active: int) -> Descent:
    """Of three creases, two of them perhaps all but parallel: the minimum where two cross that misses v least."""
    best = Descent()
    roles = CreaseRoles()
    roles.twin = NONE
    first = lowest_bit(active)
    others = active & (active - 1)
    last = lowest_bit(others & (others - 1))
    pair = int(0)
    while pair < 3:
        roles.first = wp.where(pair == 2, lowest_bit(others), first)
        roles.crossing = wp.where(pair == 0, lowest_bit(others), last)
        minimum = rest_on_crossing(cores, start, roles)
        if minimum.found == 1 and (best.found == 0 or minimum.missed < best.missed):
            best = minimum
        pair += 1
    return best


@wp.func
def take_steps(cores: Cores, minimum: Descent, off: Vec3, piece: int, roles: CreaseRoles) -> Descent:
    """Moves core a's point along the creases that a minimum is on, for `off`, v's miss so far, to come nearest to 0."""
    result = minimum
    bit = roles.first
    while bit < NONE:
        step = difference_crease(cores, bit, minimum.normal).step
        share = share_of_step(step, off, (piece >> bit) & 1 == 1)
        off += share * step
        if bit < 3:
            result.on_a += share * step
        if bit == roles.twin:
            bit = NONE
        else:
            bit = roles.twin
    result.missed = wp.length(off)
    return result


@wp.func(inline=False)
def descend(cores: Cores, start: Vec3, creases: int, scale: Real, known: Vec3) -> Descent:
    """The local minimum of the support height that Newton's method reaches from `start`.

    Args:
        start: unit, a to b.
        creases: bits of the creases to stay on. One that is crossed on the way is stayed on from there.
        scale: size of the difference [m].
        known: normal of a minimum already found, or zero; a descent that comes near it ends there, with found = KNOWN.
    """
    result = Descent()
    crease = Crease()
    taken = StepTaken()
    taken.normal = start
    taken.turn = Real(1.0)
    active = creases + 0
    roles = roles_of(cores, active, start)
    piece = int(-1)
    lowest = Real(0.0)
    lowest_normal = start
    step = int(0)
    while step < DESCENT_LIMIT:
        if roles.too_many == 1:
            return rest_on_some_crossing(cores, taken.normal, active)
        if roles.crossing < NONE:
            return rest_on_crossing(cores, taken.normal, roles)
        normal = taken.normal
        if roles.first < NONE:
            crease = difference_crease(cores, roles.first, normal)
            normal = put_on_crease(crease, normal)
            if normal == Vec3():
                return result
        w = difference_support(cores, normal)
        height = wp.dot(w.point, normal)
        if step == 0:
            piece = w.piece
            lowest = height
        crossed = (w.piece ^ piece) & ~active
        if height > lowest + STATIONARY * scale:
            # Uphill: half as far. A min beyond a crease is not reached this way, but a crease on the way is met below.
            taken.normal = wp.normalize(lowest_normal + normal)
            taken.turn = Real(0.5) * taken.turn
        elif crossed != 0:
            active = active | crossed
            roles = roles_of(cores, active, normal)
            piece = w.piece
        else:
            result.normal = normal
            result.height = height
            result.on_a = w.on_a
            if taken.turn < SHORTEST_TURN:
                if taken.is_valley:
                    result.found = 1
                return take_steps(cores, result, w.point - height * normal, w.piece, roles)
            if step > 0 and wp.length_sq(normal - known) < SAME_MINIMUM:
                result.found = KNOWN
                return result
            lowest = height
            lowest_normal = normal
            if roles.first < NONE:
                taken = step_on_crease(cores, crease, normal, w, scale)
            else:
                taken = step_on_piece(cores, normal, height, w, scale)
        step += 1
    return result


@wp.func(inline=False)
def rest_on_disc(cores: Cores, normal: Vec3) -> Descent:
    """The minimum at a flat end of a cylinder or cone that faces `normal` within DISC_ANGLE, where there is one."""
    result = Descent()
    axis_b = Vec3(cores.rotation[0, 2], cores.rotation[1, 2], cores.rotation[2, 2])
    along_b = -wp.dot(normal, axis_b)
    axis = Vec3()
    radius = Real(0.0)
    is_on_a = cores.type_a == CYLINDER or (cores.type_a == CONE and normal[2] < Real(0.0))
    if is_on_a and wp.abs(normal[2]) > DISC_ANGLE:
        axis = Vec3(Real(0.0), Real(0.0), wp.sign(normal[2]))
        radius = cores.size_a[0]
    elif (cores.type_b == CYLINDER or (cores.type_b == CONE and along_b < Real(0.0))) and wp.abs(along_b) > DISC_ANGLE:
        is_on_a = False
        axis = -wp.sign(along_b) * axis_b
        radius = cores.size_b[0]
    else:
        return result
    w = difference_support(cores, axis)
    result.height = wp.dot(w.point, axis)
    center = Vec3(Real(0.0), Real(0.0), w.on_a[2])
    middle = w.point - w.on_a + center
    if not is_on_a:
        on_b = w.on_a - w.point
        end = wp.dot(on_b - cores.position, axis_b)
        middle = w.on_a - (cores.position + end * axis_b)
    off = result.height * axis - middle
    result.missed = wp.max(wp.length(off) - radius, Real(0.0))
    result.normal = axis
    result.on_a = w.on_a
    if is_on_a:
        result.on_a = center + off
    if result.missed == Real(0.0):
        result.found = 1
    return result
