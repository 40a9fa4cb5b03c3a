"""Points inside a heightfield: how high the surface is over them, and the nearest part of it.

The distance of such a point is from surface and walls: the base does not count, see docs/adr/0026.
"""

import warp as wp

from collidecli.engine.geometry.heightfields import (
    Field,
    col_under,
    field_triangle,
    highest_of_cell,
    row_under,
    top_triangle,
    x_of,
    y_of,
)
from collidecli.engine.geometry.meshes import square_to_triangle
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    descend,
    is_under,
    range_of,
    skip_square,
)

AGAINST = wp.constant(Real(-0.7))
"""Cosine below which a triangle faces against a direction; as for meshes."""
EQUAL = wp.constant(Real(1.0 + 1.0e-12))
"""Squared distances that differ by less than this factor may be equal."""


@wp.func
def side_below(field: Field, row: int, col: int, point: Vec3) -> int:
    """The triangle of a cell above or below a point: 0 below the diagonal, 1 above."""
    x = (point[0] - x_of(field, col)) / field.half_step_x
    y = (point[1] - y_of(field, row)) / field.half_step_y
    return wp.where(y > x, 1, 0)


@wp.func
def height_over(field: Field, point: Vec3) -> Real:
    """Height of the surface above or below a point of the rectangle [m]."""
    row = row_under(field, point[1])
    col = col_under(field, point[0])
    shape = top_triangle(field, 2 * (row * field.cols + col) + side_below(field, row, col, point))
    normal = wp.cross(shape.q - shape.p, shape.r - shape.p)
    off = point - shape.p
    return shape.p[2] - (normal[0] * off[0] + normal[1] * off[1]) / normal[2]


@wp.func
def is_inside(field: Field, point: Vec3) -> bool:
    """Whether a point is inside the solid."""
    if (
        wp.abs(point[0]) >= field.half_x
        or wp.abs(point[1]) >= field.half_y
        or point[2] <= field.bottom
    ):
        return False
    if point[2] >= highest_of_cell(field, row_under(field, point[1]), col_under(field, point[0])):
        return False
    return point[2] < height_over(field, point)


@wp.func
def foot_on_side(field: Field, segment: int, point: Vec3) -> Vec3:
    """Closest point of one of the four sides (0 to 3: -y, +x, +y, -x), taken without an upper
    end."""
    foot = Vec3(
        wp.clamp(point[0], -field.half_x, field.half_x),
        wp.clamp(point[1], -field.half_y, field.half_y),
        wp.max(point[2], field.bottom),
    )
    if segment == 0:
        foot[1] = -field.half_y
    elif segment == 1:
        foot[0] = field.half_x
    elif segment == 2:
        foot[1] = field.half_y
    else:
        foot[0] = -field.half_x
    return foot


@wp.func
def side_normal(segment: int) -> Vec3:
    """Outward normal of one of the four sides."""
    if segment == 0:
        return Vec3(Real(0.0), Real(-1.0), Real(0.0))
    if segment == 1:
        return Vec3(Real(1.0), Real(0.0), Real(0.0))
    if segment == 2:
        return Vec3(Real(0.0), Real(1.0), Real(0.0))
    return Vec3(Real(-1.0), Real(0.0), Real(0.0))


@wp.func
def wall_under(field: Field, segment: int, point: Vec3) -> int:
    """Number of the wall triangle that contains a point's projection onto one of the four sides."""
    along = field.cols - 1
    up = field.rows - 1
    row = row_under(field, point[1])
    col = col_under(field, point[0])
    k = col
    if segment == 1:
        k = along + row
    elif segment == 2:
        k = along + up + (along - 1 - col)
    elif segment == 3:
        k = 2 * along + up + (up - 1 - row)
    first = 2 * field.rows * field.cols + 2 * k
    lower = field_triangle(field, first)
    # The diagonal runs from the foot of the segment's first vertex to the top of its second.
    rise = wp.cross(lower.r - lower.p, lower.normal)
    return first + wp.where(wp.dot(point - lower.p, rise) < Real(0.0), 1, 0)


@wp.func
def squared_distance_to_square(field: Field, traversal: Traversal, point: Vec3) -> Real:
    """Squared distance of a point from the AABB of the current square, in x and y alone where its
    range is unknown [m^2]."""
    side = 1 << traversal.level
    row = traversal.i << traversal.level
    col = traversal.j << traversal.level
    far_row = wp.min(row + side, field.rows - 1)
    far_col = wp.min(col + side, field.cols - 1)
    lower = Vec3(x_of(field, col), y_of(field, row), point[2])
    upper = Vec3(x_of(field, far_col), y_of(field, far_row), point[2])
    heights = range_of(field, traversal)
    if heights.known == 1:
        lower[2] = heights.low
        upper[2] = heights.high
    return wp.length_sq(point - wp.max(lower, wp.min(upper, point)))


@wp.struct
class NearestPart:
    """The triangle closest to an inner point, and its distance [m]."""

    number: int
    distance: Real


@wp.func
def nearest_top(field: Field, point: Vec3, before: NearestPart, within: Real) -> NearestPart:
    """The first closest triangle of the surface, of those whose squared distance is below `within`
    [m^2]; where there is none, that of `before`, at the root of `within`. The squares within the
    distance of `before` are searched."""
    number = before.number
    square = within
    grown = Vec3(before.distance, before.distance, before.distance)
    traversal = begin_traversal(field, point - grown, point + grown)
    while traversal.done == 0:
        if not is_under(traversal) or squared_distance_to_square(field, traversal, point) >= square:
            traversal = skip_square(traversal)
        elif traversal.level > 0:
            traversal = descend(traversal)
        else:
            for side in range(2):
                here = 2 * (traversal.i * field.cols + traversal.j) + side
                shape = top_triangle(field, here)
                normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
                near = square_to_triangle(shape.p, shape.q, shape.r, normal, point)
                if near < square:
                    square = near
                    number = here
            traversal = skip_square(traversal)
    return NearestPart(number, wp.sqrt(square))


@wp.func(inline=False)
def nearest_part(field: Field, point: Vec3) -> NearestPart:
    """Closest triangle of the surface and the walls; of equally close ones the first, walls before
    the surface.

    The search radius is the height of the surface above the point.
    """
    result = NearestPart()
    result.number = -1
    result.distance = height_over(field, point) - point[2]
    for segment in range(4):
        foot = foot_on_side(field, segment, point)
        distance = wp.length(foot - point)
        # Above the rim the closest point is on the surface.
        if distance < result.distance and height_over(field, foot) >= point[2]:
            result.distance = distance
            result.number = wall_under(field, segment, point)
    square = result.distance * result.distance
    if result.number < 0:
        # An upper bound from the triangle above; equal distances are not skipped, so that the first
        # of equals counts.
        row = row_under(field, point[1])
        col = col_under(field, point[0])
        result.number = 2 * (row * field.cols + col) + side_below(field, row, col, point)
        square = square * EQUAL
    return nearest_top(field, point, result, square)


@wp.func(inline=False)
def is_nearer_on_field(field: Field, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle of the surface or a wall that does not face against `outward` is closer
    than `distance` [m].

    outward: unit; zero counts every triangle.
    """
    for segment in range(4):
        foot = foot_on_side(field, segment, point)
        is_near = wp.length(foot - point) < distance and height_over(field, foot) >= point[2]
        if is_near and wp.dot(side_normal(segment), outward) > AGAINST:
            return True
    square = distance * distance
    grown = Vec3(distance, distance, distance)
    traversal = begin_traversal(field, point - grown, point + grown)
    while traversal.done == 0:
        if not is_under(traversal) or squared_distance_to_square(field, traversal, point) >= square:
            traversal = skip_square(traversal)
        elif traversal.level > 0:
            traversal = descend(traversal)
        else:
            for side in range(2):
                shape = top_triangle(field, 2 * (traversal.i * field.cols + traversal.j) + side)
                normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
                near = square_to_triangle(shape.p, shape.q, shape.r, normal, point)
                if wp.dot(normal, outward) > AGAINST and near < square:
                    return True
            traversal = skip_square(traversal)
    return False
