"""Pieces of a triangle, and how deep they may be inside a surface for what is known of their corners.

From a corner depth is taken to grow nowhere faster than it does there, which is so in a convex solid; of a corner that
is far outside, no point at distance x is deeper than x less that. The least of the three is greatest at a corner, or
where two or three are equal.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.mesh.questions import clear_of
from collidecli.engine.narrow_phase.mesh.sunk import UNKNOWN, Sunk, most_at

SHORTEST = wp.constant(Real(0.2))
"""Share of a side, and of a corner, that a cut leaves at least."""


@wp.struct
class Piece:
    """Three corners, in the other surface's frame; what is known of each, as of `Sunk`: depth and rise.

    most: no place of the piece is deeper, as far as its bounds hold [m]; shares: of its corners, where that would be.
    """

    p: Vec3
    q: Vec3
    r: Vec3
    depth: Vec3
    of_p: Vec3
    of_q: Vec3
    of_r: Vec3
    most: Real
    shares: Vec3


@wp.func
def corner_of_piece(piece: Piece, k: int) -> Vec3:
    """Corner 0, 1 or 2; 3 is 0 again."""
    if k == 1:
        return piece.q
    if k == 2:
        return piece.r
    return piece.p


@wp.func
def rise_at(piece: Piece, k: int) -> Vec3:
    """The way in which depth grows at corner 0, 1 or 2."""
    if k == 1:
        return piece.of_q
    if k == 2:
        return piece.of_r
    return piece.of_p


@wp.func
def bound_of_corner(piece: Piece, k: int) -> Vec3:
    """Below what the depths of a piece's corners are for what is known of corner k [m]."""
    corner = corner_of_piece(piece, k)
    rise = rise_at(piece, k)
    if wp.length_sq(rise) > Real(0.0):
        start = piece.depth[k] - wp.dot(rise, corner)
        return Vec3(start + wp.dot(rise, piece.p), start + wp.dot(rise, piece.q), start + wp.dot(rise, piece.r))
    away = Vec3(wp.length(piece.p - corner), wp.length(piece.q - corner), wp.length(piece.r - corner))
    return away + Vec3(piece.depth[k], piece.depth[k], piece.depth[k])


@wp.struct
class Allowed:
    """Where on a piece the greatest depth is allowed, by the shares of its corners, and how much [m]."""

    shares: Vec3
    depth: Real


@wp.struct
class Bounds:
    """What each corner of a piece tells of it: values that depths are below, linear between the corners [m]."""

    first: Vec3
    second: Vec3
    third: Vec3


@wp.func
def at_shares(bounds: Bounds, shares: Vec3, before: Allowed) -> Allowed:
    """The better of what is known and of another place, at which the least of the bounds counts."""
    if wp.min(shares[0], wp.min(shares[1], shares[2])) < Real(0.0):
        return before
    least = wp.min(wp.dot(bounds.first, shares), wp.min(wp.dot(bounds.second, shares), wp.dot(bounds.third, shares)))
    result = before
    if least > before.depth:
        result.shares = shares
        result.depth = least
    return result


@wp.func
def where_equal(bounds: Bounds, off: Vec3, before: Allowed) -> Allowed:
    """The better of what is known and of where two bounds, `off` apart at the corners [m], are equal on a side."""
    best = before
    for k in range(3):
        to = (k + 1) % 3
        if (off[k] > Real(0.0)) != (off[to] > Real(0.0)):
            shares = Vec3()
            shares[to] = off[k] / (off[k] - off[to])
            shares[k] = Real(1.0) - shares[to]
            best = at_shares(bounds, shares, best)
    return best


@wp.func(inline=False)
def allowed_on(piece: Piece) -> Allowed:
    """At a corner of the piece, where two of its bounds are equal on a side, or where all three are."""
    bounds = Bounds()
    bounds.first = bound_of_corner(piece, 0)
    bounds.second = bound_of_corner(piece, 1)
    bounds.third = bound_of_corner(piece, 2)
    best = Allowed()
    best.depth = -UNKNOWN
    best = at_shares(bounds, Vec3(Real(1.0), Real(0.0), Real(0.0)), best)
    best = at_shares(bounds, Vec3(Real(0.0), Real(1.0), Real(0.0)), best)
    best = at_shares(bounds, Vec3(Real(0.0), Real(0.0), Real(1.0)), best)
    best = where_equal(bounds, bounds.first - bounds.second, best)
    best = where_equal(bounds, bounds.first - bounds.third, best)
    best = where_equal(bounds, bounds.second - bounds.third, best)
    shares = wp.cross(bounds.first - bounds.second, bounds.first - bounds.third)
    total = shares[0] + shares[1] + shares[2]
    if total != Real(0.0):
        best = at_shares(bounds, shares / total, best)
    return best


@wp.func
def with_corner(piece: Piece, k: int, point: Vec3, sunk: Sunk) -> Piece:
    """A piece with corner k put elsewhere."""
    result = piece
    if k == 0:
        result.p = point
        result.of_p = sunk.rise
    elif k == 1:
        result.q = point
        result.of_q = sunk.rise
    else:
        result.r = point
        result.of_r = sunk.rise
    result.depth[k] = sunk.depth
    return result


@wp.func
def longest_side(piece: Piece) -> int:
    """The side k, from corner k to the next, that is the longest."""
    of_p = wp.length_sq(piece.q - piece.p)
    of_q = wp.length_sq(piece.r - piece.q)
    of_r = wp.length_sq(piece.p - piece.r)
    if of_p >= of_q and of_p >= of_r:
        return 0
    return wp.where(of_q >= of_r, 1, 2)


@wp.func(inline=False)
def may_be_deeper(meshes: Any, surface: int, piece: Piece, enough: Real) -> bool:
    """Whether a piece may have a place deeper than `enough` [m], for all that is known without a search."""
    middle = (piece.p + piece.q + piece.r) / Real(3.0)
    radius = wp.max(wp.length(piece.p - middle), wp.max(wp.length(piece.q - middle), wp.length(piece.r - middle)))
    return clear_of(meshes, surface, middle) < radius and most_at(meshes, surface, middle) + radius > enough


@wp.func
def cut_place(piece: Piece, k: int, shares: Vec3) -> Real:
    """Share of side k at which a piece is cut: across from where it may be deepest, but not near an end."""
    to = (k + 1) % 3
    total = shares[k] + shares[to]
    if total <= Real(0.0):
        return Real(0.5)
    return wp.clamp(shares[to] / total, SHORTEST, Real(1.0) - SHORTEST)
