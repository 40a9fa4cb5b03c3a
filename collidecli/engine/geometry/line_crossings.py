"""Which triangles of a surface a line crosses, by exact signs.

A line that passes through an edge or a vertex of a surface crosses as many of the triangles around
it as a line at an infinitesimal distance: one where they lie on both sides of it, none or two at a
silhouette. The corners are projected along the line, each in a way that depends on the corner and
the line alone, and the sign of each side's determinant is that of the projected coordinates without
rounding. Where it is zero, the line is moved by (e, e^2) for an infinitesimal e, the same for all
sides. Products must be rounded by themselves (`kernel.ARITHMETIC`): a fused multiply-add would give
`rounding_of_product` another value. Source: Edelsbrunner and Muecke 1990, simulation of simplicity;
Woop, Benthin and Wald 2013, watertight ray and triangle intersection, for the projection.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3

SPLITTER = wp.constant(Real(134217729.0))
"""2^27 + 1: splits a float64 in two halves whose products are exact (Dekker 1971)."""


@wp.func
def rounding_of_product(a: Real, b: Real) -> Real:
    """a b less its rounded value, exactly. Source: Dekker 1971."""
    spread = SPLITTER * a
    high_a = spread - (spread - a)
    low_a = a - high_a
    spread = SPLITTER * b
    high_b = spread - (spread - b)
    low_b = b - high_b
    return low_a * low_b - (((a * b - high_a * high_b) - low_a * high_b) - high_a * low_b)


@wp.func
def across_line(start: Vec3, along: Vec3, point: Vec3) -> Vec2:
    """Coordinates of a point in the plane of two axes, after a shear that projects it along a line.

    The third axis is that of the line's longest coordinate; the line is at the origin [m].
    """
    off = point - start
    x = wp.abs(along[0])
    y = wp.abs(along[1])
    z = wp.abs(along[2])
    if x >= y and x >= z:
        return Vec2(
            off[1] - off[0] * (along[1] / along[0]), off[2] - off[0] * (along[2] / along[0])
        )
    if y >= z:
        return Vec2(
            off[2] - off[1] * (along[2] / along[1]), off[0] - off[1] * (along[0] / along[1])
        )
    return Vec2(off[0] - off[2] * (along[0] / along[2]), off[1] - off[2] * (along[1] / along[2]))


@wp.func
def is_left_of(p: Vec2, q: Vec2) -> bool:
    """Whether the origin is on the left of the side from p to q, by the exact sign of p x q.

    The opposite for the side from q to p. Degenerate: see the module; false where p and q are
    equal.
    """
    forward = p[0] * q[1]
    back = p[1] * q[0]
    if forward == back:
        # Rounding is monotonic: only equal products may hide a difference.
        forward = rounding_of_product(p[0], q[1])
        back = rounding_of_product(p[1], q[0])
    if forward != back:
        return forward > back
    if p[1] != q[1]:
        return q[1] < p[1]
    return q[0] > p[0]


@wp.func
def line_crosses_triangle(start: Vec3, along: Vec3, p: Vec3, q: Vec3, r: Vec3) -> bool:
    """Whether a line crosses a triangle, one of those around a common edge or vertex; see the
    module.

    start, along: a point of the line and its direction, not zero [m].
    Degenerate: a triangle whose projected corners are on one line is not crossed.
    """
    at_p = across_line(start, along, p)
    at_q = across_line(start, along, q)
    at_r = across_line(start, along, r)
    left = is_left_of(at_p, at_q)
    return left == is_left_of(at_q, at_r) and left == is_left_of(at_r, at_p)
