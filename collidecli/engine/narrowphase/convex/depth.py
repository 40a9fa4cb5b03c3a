"""What the searches for the depth of overlapping cores give, and the witness that EPA's polytope has of it."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Vertex
from collidecli.engine.narrowphase.convex.polytope import Face

WITNESS_MISS = wp.constant(Real(1.0e-9))
"""Share of the size by which v, Newton's or a face's, may miss for its points to be the witnesses."""


@wp.struct
class Depth:
    """What EPA found. depth: of the cores [m]. normal: unit, a to b, a's frame.

    on_a: core a's witness where has_witness is 1: Newton knows it, or the face that the depth is reached in.
    exact: 0 when a limit stopped the search; depth and normal are then the best seen, an upper bound.
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
    """`best` with the witness that the polytope knows, where the depth is that of one of its faces.

    Where several faces are in one plane, the first that holds the origin's projection.
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
                # What the weights make of the corners themselves tells a sliver, whose weights are rounding.
                if wp.length(of_p * p + of_q * q + of_r * r - nearest) <= WITNESS_MISS * scale:
                    on_a = of_p * vertices[corner[0]].on_a
                    on_a += of_q * vertices[corner[1]].on_a
                    result.on_a = on_a + of_r * vertices[corner[2]].on_a
                    result.has_witness = 1
        i += 1
    return result
