"""Feature of a convex shape that supports a direction (face, line or point), and feature ids.

A feature is selected by direction alone. A flat face is selected if the direction is within 26 degrees of its normal
(FACE_COSINE), a straight line (edge, side of a cylinder, cone or capsule) if the direction is within 17 degrees of
perpendicular to it (LINE_SINE), else a point. The limits are wide, so that a shape that rocks on a face keeps the
face's contacts while they are closer than the maximum separation, and narrow enough that no direction selects two faces
or two
edges of a box: two faces would need a cosine of at most 0.707, and two components below 0.3 leave a third above 0.9, a
face. So rounding never decides between features, except at the limits themselves.

Feature ids, stable under motion:

- box: one digit in base 3 per axis (x first): 0 low side, 1 middle, 2 high side. Vertices have no 1, edges one, faces
  two.
- cylinder: 0, 1 caps at -z, +z; 2 side (and each line of it); 3, 4 rims at -z, +z.
- cone: 0 base; 1 apex; 2 side (and each line of it); 3 rim.
- capsule: 0, 1 ends at -z, +z; 2 side.
- rim polygon (see `support_feature`) of the lower cap or base: vertex k is 8 + 2 k, the edge from k to k + 1 is
  9 + 2 k; of the upper cap 20 + 2 k and 21 + 2 k.
- convex hull: 3 v of vertex v, 3 e + 1 of edge e, 3 f + 2 of face f; a side of a face of more than RIM_COUNT corners
  that replaces several edges has an id of its own after the edges'.
- triangle mesh: ids of a convex hull, of the whole mesh.
- sphere and ellipsoid: -1.
"""

import warp as wp

from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Primitive
from collidecli.engine.narrowphase.convex.feature import Feature
from collidecli.engine.narrowphase.convex.hull_features import (
    hull_face_normal,
    hull_facing,
    hull_feature,
    hull_feature_at,
    hull_is_on_face,
    hull_line_exit,
)
from collidecli.engine.narrowphase.convex.primitive_features import (
    primitive_face_normal,
    primitive_feature,
    primitive_feature_at,
    primitive_is_on_face,
    primitive_line_exit,
)
from collidecli.engine.narrowphase.convex.triangle_features import (
    triangle_face_normal,
    triangle_feature,
    triangle_feature_at,
    triangle_is_on_face,
    triangle_line_exit,
)

# Each function has one overload for each shape struct: Warp selects by the type of the first argument.
# ruff: noqa: F811


@wp.func
def support_feature(shape: Primitive, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]) -> Feature:
    """Feature of a shape that supports `direction`.

    Args:
        direction: unit, in the shape's frame.
        corner: of length RIM_COUNT; receives the corners of a face in order, or the two ends of a line [m], in the
            shape's frame. A disc's are those of an inscribed regular hexagon, the first at +x: all its points are on
            the disc. A capsule's line is its axis.
        code: of length MAX_CODES; receives the corners' ids and, for a face, its edges'.
    """
    return primitive_feature(shape, direction, corner, code)


@wp.func
def support_feature(shape: HullShape, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]) -> Feature:
    """Feature of a hull that supports `direction`."""
    return hull_feature(shape, direction, corner, code)


@wp.func
def support_feature(shape: TriangleShape, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]) -> Feature:
    """Feature of a triangle that supports `direction`."""
    return triangle_feature(shape, direction, corner, code)


@wp.func
def with_facing(shape: Primitive, direction: Vec3) -> Primitive:
    """The shape prepared for feature queries in one unit direction: a hull caches its support vertex and face."""
    return shape


@wp.func
def with_facing(shape: HullShape, direction: Vec3) -> HullShape:
    """The hull with cached support vertex and face."""
    result = shape
    result.facing = hull_facing(shape, direction)
    return result


@wp.func
def with_facing(shape: TriangleShape, direction: Vec3) -> TriangleShape:
    """The triangle itself, which caches nothing."""
    return shape


@wp.func
def face_normal(shape: Primitive, direction: Vec3) -> Vec3:
    """Outward normal of the flat face that supports a unit direction, in the shape's frame; zero if there is none."""
    return primitive_face_normal(shape, direction)


@wp.func
def face_normal(shape: HullShape, direction: Vec3) -> Vec3:
    """Outward normal of a hull's face."""
    return hull_face_normal(shape, direction)


@wp.func
def face_normal(shape: TriangleShape, direction: Vec3) -> Vec3:
    """Normal of a triangle, which has a face on either side."""
    return triangle_face_normal(shape, direction)


@wp.func
def is_on_face(shape: Primitive, normal: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point in the shape's frame is on the flat face with a normal from `face_normal`, to `near` [m]."""
    return primitive_is_on_face(shape, normal, point, near)


@wp.func
def is_on_face(shape: HullShape, normal: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point is on a hull's face."""
    return hull_is_on_face(shape, normal, point, near)


@wp.func
def is_on_face(shape: TriangleShape, normal: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point is on a triangle."""
    return triangle_is_on_face(shape, point, near)


@wp.func
def feature_at(shape: Primitive, point: Vec3, direction: Vec3) -> int:
    """Id of the smallest feature that contains a surface point (AT_BORDER), farthest along `direction`."""
    return primitive_feature_at(shape, point)


@wp.func
def feature_at(shape: HullShape, point: Vec3, direction: Vec3) -> int:
    """Id of the feature of a hull at a surface point."""
    return hull_feature_at(shape, point, direction)


@wp.func
def feature_at(shape: TriangleShape, point: Vec3, direction: Vec3) -> int:
    """Id of the feature of a triangle at a surface point."""
    return triangle_feature_at(shape, point)


@wp.func
def line_exit(shape: Primitive, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Length of a ray from `origin` along `direction` to its exit from the shape near its feature `line`; -inf if it
    misses.

    All in the shape's frame [m]; direction: unit, within LINE_SINE of perpendicular to the line. The exit from the side
    of a cylinder or cone is between its ends or does not exist; a triangle's ends are treated as infinitely far.
    """
    return primitive_line_exit(shape, line, origin, direction)


@wp.func
def line_exit(shape: HullShape, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Exit of a ray from a hull."""
    return hull_line_exit(shape, line, origin, direction)


@wp.func
def line_exit(shape: TriangleShape, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Exit of a ray from a triangle."""
    return triangle_line_exit(shape, line, origin, direction)
