"""Newton's method for the least support height of two curved cores, in the directions around a good guess.

The support height of the difference a - b along unit n is h(n) = max over it of n.x; the signed distance of the cores is
minus its least value. Where the farthest point x(n) is on one smooth piece of the surface, or on the crease between two,
h is smooth in n (along the crease), and Newton needs a handful of steps where GJK and EPA need dozens.

At a minimum the nearest point of the surface is v = h n. On a piece, v is x itself; on a crease it is on the segment that
joins the two farthest points. How far v misses h n is what the result is judged by, so that a poor guess is never taken.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Cores, Crease, core_crease, core_curvature, difference_support

DESCENT_LIMIT = wp.constant(8)
"""Steps before a guess is given up."""

LONGEST_TURN = wp.constant(Real(0.5))
"""A longer step [rad] leaves the region where the quadratic model of h holds."""

SHORTEST_TURN = wp.constant(Real(1.0e-5))
"""After a step below this [rad] the error, its square, is 1e-10 rad, and h's error 1e-20 of the size."""


@wp.struct
class Descent:
    """A local minimum of the support height. found: 1 when there is one.

    normal: unit, a to b. height: h(normal) [m], minus the cores' signed distance. missed: length of v - h n [m].
    on_a: core a's point of v. point: the farthest point itself, on_a_point its point of core a; piece: its piece.
    """

    found: int
    normal: Vec3
    height: Real
    missed: Real
    on_a: Vec3
    point: Vec3
    on_a_point: Vec3
    piece: int


@wp.func
def difference_curvature(cores: Cores, direction: Vec3, piece: int, across: Vec3) -> Vec3:
    """The Hessian of the difference's support height at `direction` times `across`."""
    of_a = core_curvature(cores.type_a, cores.size_a, cores.radius_a, direction, piece % 8, across)
    to_b = wp.transpose(cores.rotation)
    of_b = core_curvature(cores.type_b, cores.size_b, cores.radius_b, -(to_b * direction), piece / 8, to_b * across)
    return of_a + cores.rotation * of_b


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
def crease_bit(changed: int) -> int:
    """The only bit that is set in `changed`; 6 when there is none, 7 when there are several."""
    if changed == 0:
        return 6
    if (changed & (changed - 1)) != 0:
        return 7
    bit = int(0)
    while (changed >> bit) != 1:
        bit += 1
    return bit


@wp.func
def descend(cores: Cores, start: Vec3, bit: int, scale: Real) -> Descent:
    """The local minimum of the support height that Newton's method reaches from `start`.

    Args:
        start: unit, a to b.
        bit: of the crease to stay on, or 6 to move freely.
        scale: size of the difference [m].
    """
    result = Descent()
    normal = start
    crease = Crease()
    step = int(0)
    turn = Real(1.0)
    while step < DESCENT_LIMIT:
        if bit < 6:
            crease = difference_crease(cores, bit, normal)
            around = normal - wp.dot(normal, crease.axis) * crease.axis
            square = wp.dot(around, around)
            if square < Real(1.0e-12):
                return result
            flat = wp.sqrt((Real(1.0) - crease.height * crease.height) / square) * around
            normal = crease.height * crease.axis + flat
        w = difference_support(cores, normal)
        height = wp.dot(w.point, normal)
        if turn < SHORTEST_TURN:
            result.found = 1
            result.normal = normal
            result.height = height
            result.point = w.point
            result.on_a_point = w.on_a
            result.on_a = w.on_a
            result.piece = w.piece
            break
        if bit < 6:
            # Along the circle n' = axis x n, n'' = -(n off the axis).
            tangent = wp.cross(crease.axis, normal)
            slope = wp.dot(w.point, tangent)
            bend = wp.dot(tangent, difference_curvature(cores, normal, w.piece, tangent)) - wp.dot(w.point, normal - crease.height * crease.axis)
            if wp.abs(slope) <= Real(1.0e-13) * scale and wp.abs(bend) <= Real(1.0e-9) * scale:
                turn = Real(0.0)
            elif bend <= Real(0.0):
                return result
            else:
                angle = -slope / bend
                turn = wp.abs(angle)
                if turn > LONGEST_TURN:
                    return result
                normal += angle * tangent
        else:
            first = any_tangent(normal)
            second = wp.cross(normal, first)
            along_first = difference_curvature(cores, normal, w.piece, first)
            along_second = difference_curvature(cores, normal, w.piece, second)
            m00 = wp.dot(first, along_first) - height
            m01 = wp.dot(second, along_first)
            m11 = wp.dot(second, along_second) - height
            g0 = wp.dot(w.point, first)
            g1 = wp.dot(w.point, second)
            determinant = m00 * m11 - m01 * m01
            if g0 * g0 + g1 * g1 <= Real(1.0e-26) * scale * scale and m00 + m11 >= Real(0.0) and determinant >= -Real(1.0e-18) * scale * scale:
                turn = Real(0.0)
            elif determinant <= Real(0.0) or m00 + m11 <= Real(0.0):
                return result
            else:
                move = ((m01 * g1 - m11 * g0) * first + (m01 * g0 - m00 * g1) * second) / determinant
                turn = wp.length(move)
                if turn > LONGEST_TURN:
                    return result
                normal = wp.normalize(normal + move)
        step += 1
    if result.found == 1:
        off = result.point - result.height * result.normal
        if bit < 6:
            crease = difference_crease(cores, bit, result.normal)
            share = -wp.dot(off, crease.step) / wp.dot(crease.step, crease.step)
            if (result.piece >> bit) & 1 == 1:
                share = wp.clamp(share, -Real(1.0), Real(0.0))
            else:
                share = wp.clamp(share, Real(0.0), Real(1.0))
            off += share * crease.step
            if bit < 3:
                result.on_a += share * crease.step
        result.missed = wp.length(off)
    return result
