"""Point of a simplex closest to the origin, as barycentric coordinates.

Coordinates of vertices that do not contribute are exactly 0. Simplices may be degenerate: a triangle without area is
its edges, a tetrahedron without volume its faces.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3

Weights = wp.vec4d

FLAT = wp.constant(Real(1.0e-13))
"""Doubled area of a triangle (six volumes of a tetrahedron) relative to the product of the edges' lengths below which
it
is flat: the rounding of a cross (triple) product is about 1e-16 of it."""


@wp.func
def segment_weights(p: Vec3, q: Vec3) -> wp.vec2d:
    """Barycentric coordinates of the point of segment pq closest to the origin."""
    edge = q - p
    square = wp.dot(edge, edge)
    t = Real(0.0)
    if square > Real(0.0):
        t = -wp.dot(p, edge) / square
    if t <= Real(0.0):
        return wp.vec2d(Real(1.0), Real(0.0))
    if t >= Real(1.0):
        return wp.vec2d(Real(0.0), Real(1.0))
    return wp.vec2d(Real(1.0) - t, t)


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
    best = Vec3(Real(1.0), Real(0.0), Real(0.0))
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
def tetrahedron_weights(p: Vec3, q: Vec3, r: Vec3, s: Vec3) -> Weights:
    """Barycentric coordinates of the point of a tetrahedron closest to the origin; all positive if the origin is
    inside.
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
    if of_p > Real(0.0) and of_q > Real(0.0) and of_r > Real(0.0) and of_s > Real(0.0) and not is_flat:
        return Weights(of_p, of_q, of_r, of_s) / (of_p + of_q + of_r + of_s)
    # Each face that the origin is beyond is a candidate; the vertex opposite it has the negative volume.
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
                if face == 0:
                    best = Weights(Real(0.0), t[0], t[1], t[2])
                elif face == 1:
                    best = Weights(t[0], Real(0.0), t[1], t[2])
                elif face == 2:
                    best = Weights(t[0], t[1], Real(0.0), t[2])
                else:
                    best = Weights(t[0], t[1], t[2], Real(0.0))
        face += 1
    return best
