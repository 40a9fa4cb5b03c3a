"""How near a heightfield's surface and walls are to a point inside it. The base does not count: see docs/adr/0026."""

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
    go_down,
    go_on,
    is_under,
    range_of,
)

AGAINST = wp.constant(Real(-0.7))
"""Cosine below which a triangle looks against a direction; as for meshes."""
EQUAL = wp.constant(Real(1.0 + 1.0e-12))
"""Squares that differ by less than this factor may be of one distance."""


@wp.func
def side_below(field: Field, row: int, col: int, point: Vec3) -> int:
    """Which triangle of a cell lies over or under a point: 0 below the diagonal, 1 above."""
    x = (point[0] - x_of(field, col)) / field.half_step_x
    y = (point[1] - y_of(field, row)) / field.half_step_y
    return wp.where(y > x, 1, 0)


@wp.func
def height_over(field: Field, point: Vec3) -> Real:
    """Height of the surface over or under a point of the rectangle [m]."""
    row = row_under(field, point[1])
    col = col_under(field, point[0])
    shape = top_triangle(field, 2 * (row * field.cols + col) + side_below(field, row, col, point))
    normal = wp.cross(shape.q - shape.p, shape.r - shape.p)
    off = point - shape.p
    return shape.p[2] - (normal[0] * off[0] + normal[1] * off[1]) / normal[2]


@wp.func
def is_inside(field: Field, point: Vec3) -> bool:
    """Whether a point is in the solid."""
    if wp.abs(point[0]) >= field.half_x or wp.abs(point[1]) >= field.half_y or point[2] <= field.bottom:
        return False
    if point[2] >= highest_of_cell(field, row_under(field, point[1]), col_under(field, point[0])):
        return False
    return point[2] < height_over(field, point)


@wp.func
def foot_on_side(field: Field, segment: int, point: Vec3) -> Vec3:
    """The nearest point of one of the four sides (0 to 3: -y, +x, +y, -x), taken to have no upper end."""
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
    """Number of the wall's triangle that has a point's foot on one of the four sides."""
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
def square_to_top(field: Field, number: int, point: Vec3) -> Real:
    """Squared distance from a triangle of the surface [m^2]."""
    shape = top_triangle(field, number)
    normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
    return square_to_triangle(shape.p, shape.q, shape.r, normal, point)


@wp.func
def square_to_square(field: Field, traversal: Traversal, point: Vec3) -> Real:
    """Squared distance of a point from the box of the square in hand, or from what is known of it [m^2]."""
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
    """The triangle nearest to a point inside, and its distance [m]."""

    number: int
    distance: Real


@wp.func(inline=False)
def nearest_part(field: Field, point: Vec3) -> NearestPart:
    """Of the surface and the walls; of equals the first, walls before the surface.

    Looked for as far around the point as it is deep under the surface, and no farther.
    """
    result = NearestPart()
    result.number = -1
    result.distance = height_over(field, point) - point[2]
    for segment in range(4):
        foot = foot_on_side(field, segment, point)
        distance = wp.length(foot - point)
        # Above the rim the surface has what is nearest.
        if distance < result.distance and height_over(field, foot) >= point[2]:
            result.distance = distance
            result.number = wall_under(field, segment, point)
    square = result.distance * result.distance
    if result.number < 0:
        # That of the triangle above, at least; nothing equal is passed over, so that the first of equals counts.
        row = row_under(field, point[1])
        col = col_under(field, point[0])
        result.number = 2 * (row * field.cols + col) + side_below(field, row, col, point)
        square = square * EQUAL
    grown = Vec3(result.distance, result.distance, result.distance)
    traversal = begin_traversal(field, point - grown, point + grown)
    while traversal.done == 0:
        if not is_under(traversal) or square_to_square(field, traversal, point) >= square:
            traversal = go_on(traversal)
        elif traversal.level > 0:
            traversal = go_down(traversal)
        else:
            for side in range(2):
                number = 2 * (traversal.i * field.cols + traversal.j) + side
                here = square_to_top(field, number, point)
                if here < square:
                    square = here
                    result.number = number
            traversal = go_on(traversal)
    result.distance = wp.sqrt(square)
    return result


@wp.func
def is_nearer_top(field: Field, number: int, point: Vec3, square: Real, outward: Vec3) -> bool:
    """Whether a triangle of the surface does not look against `outward` and is nearer than the root of `square`."""
    shape = top_triangle(field, number)
    normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
    return wp.dot(normal, outward) > AGAINST and square_to_triangle(shape.p, shape.q, shape.r, normal, point) < square


@wp.func(inline=False)
def is_nearer_on_field(field: Field, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle of the surface or a wall that does not look against `outward` is nearer than `distance` [m].

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
        if not is_under(traversal) or square_to_square(field, traversal, point) >= square:
            traversal = go_on(traversal)
        elif traversal.level > 0:
            traversal = go_down(traversal)
        else:
            for side in range(2):
                if is_nearer_top(field, 2 * (traversal.i * field.cols + traversal.j) + side, point, square, outward):
                    return True
            traversal = go_on(traversal)
    return False
