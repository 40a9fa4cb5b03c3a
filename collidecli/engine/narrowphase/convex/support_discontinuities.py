"""Discontinuities of the support function of the difference: circles of directions across which its point jumps.

A discontinuity has the number of the bit of `Vertex.patch` that changes there.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import (
    MinkowskiDifference,
    SupportDiscontinuity,
    core_curvature,
    core_discontinuity,
    core_is_curved,
)

NONE = wp.constant(6)
"""The bit of no discontinuity."""

PARALLEL = wp.constant(Real(1.0e-17))
"""Squared sine below which two discontinuities are parallel and do not cross."""

NEARLY_PARALLEL = wp.constant(Real(1.0e-6))
"""Squared sine below which the crossing of two discontinuities is computed without a difference that cancels."""


@wp.func
def difference_curvature(
    difference: MinkowskiDifference, direction: Vec3, patch: int, first: Vec3, second: Vec3
) -> Vec3:
    """`core_curvature` of the difference: the sum of those of a and b."""
    of_a = core_curvature(
        difference.a.type, difference.a.size, difference.radius_a, direction, patch % 8, first, second
    )
    if not core_is_curved(difference.b.type):
        return of_a
    to_b = wp.transpose(difference.rotation)
    return of_a + core_curvature(
        difference.b.type,
        difference.b.size,
        difference.radius_b,
        -(to_b * direction),
        patch / 8,
        to_b * first,
        to_b * second,
    )


@wp.func
def difference_discontinuity(difference: MinkowskiDifference, bit: int, direction: Vec3) -> SupportDiscontinuity:
    """Discontinuity of the difference for one bit of its patches."""
    if bit < 3:
        return core_discontinuity(difference.a.type, difference.a.size, bit, direction)
    discontinuity = core_discontinuity(
        difference.b.type, difference.b.size, bit - 3, -(wp.transpose(difference.rotation) * direction)
    )
    discontinuity.axis = -(difference.rotation * discontinuity.axis)
    discontinuity.step = -(difference.rotation * discontinuity.step)
    return discontinuity


@wp.func
def any_tangent(normal: Vec3) -> Vec3:
    """Unit vector perpendicular to `normal` and to the axis it is least along."""
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
    """Index of the lowest set bit; NONE if there is none."""
    bit = int(0)
    while bit < NONE and (mask >> bit) & 1 == 0:
        bit += 1
    return bit


@wp.func
def project_on_discontinuity(discontinuity: SupportDiscontinuity, normal: Vec3) -> Vec3:
    """Unit vector of the discontinuity's circle closest to `normal`; zero if it is undefined."""
    around = normal - wp.dot(normal, discontinuity.axis) * discontinuity.axis
    square = wp.dot(around, around)
    if square < Real(1.0e-12):
        return Vec3()
    return (
        discontinuity.height * discontinuity.axis
        + wp.sqrt((Real(1.0) - discontinuity.height * discontinuity.height) / square) * around
    )


@wp.func
def step_fraction(step: Vec3, off: Vec3, is_upper: bool) -> Real:
    """Fraction of a discontinuity's step that brings `off` closest to zero: 0..1 from the lower patch, -1..0 from the
    upper.
    """
    t = -wp.dot(off, step) / wp.dot(step, step)
    if is_upper:
        return wp.clamp(t, Real(-1.0), Real(0.0))
    return wp.clamp(t, Real(0.0), Real(1.0))


@wp.func
def are_parallel(difference: MinkowskiDifference, low: int, high: int, normal: Vec3) -> bool:
    """Whether two discontinuities are circles around one axis, as those of coaxial shapes."""
    first = difference_discontinuity(difference, low, normal)
    second = difference_discontinuity(difference, high, normal)
    return wp.length_sq(wp.cross(first.axis, second.axis)) < PARALLEL


@wp.struct
class DiscontinuityRoles:
    """Bits of the discontinuities that a descent is on, NONE for none. first: the one it follows. twin: one parallel to
    it.

    crossing: one that crosses it. too_many: 1 if others are left.
    """

    first: int
    twin: int
    crossing: int
    too_many: int


@wp.func
def roles_of(difference: MinkowskiDifference, active: int, normal: Vec3) -> DiscontinuityRoles:
    """Roles of the discontinuities whose bits are set in `active`."""
    roles = DiscontinuityRoles()
    roles.twin = NONE
    roles.crossing = NONE
    roles.first = lowest_bit(active)
    others = active & (active - 1)
    if others == 0:
        return roles
    roles.crossing = lowest_bit(others)
    rest = others & (others - 1)
    if are_parallel(difference, roles.first, roles.crossing, normal):
        roles.twin = roles.crossing
        roles.crossing = lowest_bit(rest)
    elif rest != 0:
        roles.twin = lowest_bit(rest)
        if not are_parallel(difference, roles.first, roles.twin, normal):
            crossing = roles.first
            roles.first = roles.crossing
            roles.crossing = crossing
            if not are_parallel(difference, roles.first, roles.twin, normal):
                roles.too_many = 1
    if (rest & (rest - 1)) != 0:
        roles.too_many = 1
    return roles


@wp.func
def where_discontinuities_cross(first: SupportDiscontinuity, second: SupportDiscontinuity, start: Vec3) -> Vec3:
    """Direction on both discontinuities' circles closest to `start`; zero if there is none."""
    across = wp.cross(first.axis, second.axis)
    sine_square = wp.dot(across, across)
    if sine_square < PARALLEL:
        return Vec3()
    cosine = wp.dot(first.axis, second.axis)
    along_first = (first.height - second.height * cosine) / sine_square
    along_second = (second.height - first.height * cosine) / sine_square
    if sine_square < NEARLY_PARALLEL:
        # The same by 1 - |cosine| = sine_square / (1 + |cosine|), as the differences would cancel.
        sign = wp.sign(cosine)
        apart = (first.height - sign * second.height) / sine_square
        along_first = apart + sign * second.height / (Real(1.0) + wp.abs(cosine))
        along_second = -sign * apart + sign * first.height / (Real(1.0) + wp.abs(cosine))
    normal = along_first * first.axis + along_second * second.axis
    rest = Real(1.0) - wp.dot(normal, normal)
    if rest < Real(0.0):
        return Vec3()
    return normal + wp.sign(wp.dot(start, across)) * wp.sqrt(rest / sine_square) * across
