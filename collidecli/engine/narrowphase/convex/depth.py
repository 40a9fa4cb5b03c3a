"""Result of the penetration depth searches, and the witness point from EPA's polytope."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Vertex
from collidecli.engine.narrowphase.convex.polytope import Face

WITNESS_MISS = wp.constant(Real(1.0e-9))
"""Error of v relative to the size, from Newton's method or a face, up to which its points are the witnesses."""


@wp.struct
class Depth:
    """Penetration depth of two cores. depth: [m]. normal: unit, a to b, in a's frame.

    on_a: core a's witness if has_witness is 1, from Newton's method or from the face that attains the depth.
    exact: 0 if a limit ended the search; depth and normal are then the best found, an upper bound.
    vertex_count: size of the polytope.
    """

    depth: Real
    normal: Vec3
    on_a: Vec3
    has_witness: int
    exact: int
    vertex_count: int


@wp.func
def with_witness(vertices: wp.array[Vertex], faces: wp.array[Face], face_count: int, best: Depth, scale: Real) -> Depth:
    """`best` with the witness interpolated from the polytope face that attains the depth, if there is one.

    Of several coplanar faces, the first that contains the origin's projection.
    """
    result = best
    nearest = best.depth * best.normal
    i = int(0)
    while i < face_count and result.has_witness == 0:
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
                # The interpolated corners must reproduce the point: they do not for slivers, whose weights are
                # rounding.
                if wp.length(of_p * p + of_q * q + of_r * r - nearest) <= WITNESS_MISS * scale:
                    on_a = of_p * vertices[corner[0]].on_a
                    on_a += of_q * vertices[corner[1]].on_a
                    result.on_a = on_a + of_r * vertices[corner[2]].on_a
                    result.has_witness = 1
        i += 1
    return result
