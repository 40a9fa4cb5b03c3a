"""Triangles of a heightfield near a shape."""

from __future__ import annotations

import warp as wp

from collidecli.engine.collider_query import Query, hull_of, primitive_of
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import OUTWARD, bounding_box, quat_x, quat_y, quat_z
from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
    Heightfields,
    base_begins,
    border_vertex,
    field_of,
    field_triangle,
    height_at,
    top_triangle,
    walls_begin,
    x_of,
    y_of,
)
from collidecli.engine.geometry.meshes import (
    TriangleShape,
    barycentric_of,
    square_to_segment,
    square_to_triangle,
)
from collidecli.engine.geometry.primitives import Primitive, middle_of, support_point
from collidecli.engine.geometry.real import (
    BOX,
    CAPSULE,
    CONVEX_MESH,
    ELLIPSOID,
    SPHERE,
    Pose,
    Real,
    Vec3,
)
from collidecli.engine.narrowphase.convex.features import corner_of
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair
from collidecli.engine.narrowphase.triangles.convex_surface import normal_cone_at, surface_of_field
from collidecli.engine.narrowphase.triangles.convex_triangle import AT_SURFACE, nearest_on_triangle
from collidecli.engine.narrowphase.triangles.heightfield_inside import (
    is_inside,
    nearest_part,
    squared_distance_to_square,
)
from collidecli.engine.narrowphase.triangles.heightfield_near_segment import wall_range
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    descend,
    is_under,
    range_of,
    skip_square,
)
from collidecli.engine.narrowphase.triangles.surface import boxes_intersect

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an
# `and`.
# ruff: noqa: SIM102


TRIES = wp.constant(4)
"""Directions that are tried as separating axes: measured, one more costs more than the triangles
that it rejects."""


@wp.struct
class FieldBounds:
    """Bounds of a shape grown by the maximum separation, in the frame of a heightfield [m].

    lower, upper: AABB. middle: a point inside the shape. beneath: 1 where the middle is below the
    base. center, ball: origin of the shape's frame, and radius of the bounding ball around it.
    shape, pose: the shape, and its frame in the heightfield's. max_separation: by which the shape
    is grown. x, y, z, rounding: for capsules, boxes and ellipsoids the scaled axes of the core, and
    the radius around it, max_separation included.
    """

    shape: Primitive
    pose: Pose
    max_separation: Real
    x: Vec3
    y: Vec3
    z: Vec3
    rounding: Real
    lower: Vec3
    upper: Vec3
    middle: Vec3
    center: Vec3
    ball: Real
    beneath: int


@wp.func
def field_bounds(rows: ShapeRows, query: Query, field: Field) -> FieldBounds:
    """The bounds of the convex shape of a pair."""
    bounds = FieldBounds()
    max_separation = wp.max(query.max_separation, Real(0.0))
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    shape_type = rows.type[query.row_a]
    box = bounding_box(shape_type, rows.size[query.row_a], pose_a_to_b, max_separation)
    bounds.middle = wp.transform_get_translation(pose_a_to_b)
    # Grown by more than the rounding error of the pose.
    slack = Real(1.0e-12) * (
        wp.abs(bounds.middle[0])
        + wp.abs(bounds.middle[1])
        + wp.abs(bounds.middle[2])
        + field.half_x
        + field.half_y
    )
    bounds.lower = box.lower - Vec3(slack, slack, slack)
    bounds.upper = box.upper + Vec3(slack, slack, slack)
    rotation = wp.transform_get_rotation(pose_a_to_b)
    size = rows.size[query.row_a]
    bounds.rounding = max_separation + slack
    if shape_type == CAPSULE:
        bounds.z = size[1] * quat_z(rotation)
        bounds.rounding += size[0]
    elif shape_type == BOX or shape_type == ELLIPSOID:
        bounds.x = size[0] * quat_x(rotation)
        bounds.y = size[1] * quat_y(rotation)
        bounds.z = size[2] * quat_z(rotation)
    bounds.shape = primitive_of(rows, query.row_a)
    bounds.pose = pose_a_to_b
    bounds.max_separation = max_separation + slack
    bounds.center = bounds.middle
    bounds.ball = (
        Real(rows.radius[query.row_a]) * (Real(1.0) + Real(OUTWARD)) + bounds.max_separation
    )
    if shape_type == CONVEX_MESH:
        bounds.middle = wp.transform_point(pose_a_to_b, middle_of(hull_of(rows, query.row_a)))
    if bounds.middle[2] < field.bottom:
        bounds.beneath = 1
    return bounds


@wp.func
def extent_along(bounds: FieldBounds, normal: Vec3) -> Real:
    """Half extent of the bounds along a vector, times the vector's length; that of the AABB for
    other shape types."""
    if bounds.shape.type == CAPSULE or bounds.shape.type == BOX:
        core = (
            wp.abs(wp.dot(bounds.x, normal))
            + wp.abs(wp.dot(bounds.y, normal))
            + wp.abs(wp.dot(bounds.z, normal))
        )
        return core + bounds.rounding * wp.length(normal)
    if bounds.shape.type == ELLIPSOID:
        core = wp.length(
            Vec3(wp.dot(bounds.x, normal), wp.dot(bounds.y, normal), wp.dot(bounds.z, normal))
        )
        return core + bounds.rounding * wp.length(normal)
    return Real(0.5) * wp.dot(bounds.upper - bounds.lower, wp.abs(normal))


@wp.func
def is_separated_by_plane(triangle: TriangleShape, bounds: FieldBounds, normal: Vec3) -> bool:
    """Whether one of TRIES separating axes shows a triangle to be farther from the shape than the
    maximum separation.

    The first axis is the triangle's normal; then the directions from the triangle's closest point
    to the shape's middle, and to the shape's last support point: the triangle is behind the plane
    through its closest point.
    """
    rotation = wp.transform_get_rotation(bounds.pose)
    triangle.normal = normal
    foot = triangle.p
    direction = normal
    point = bounds.middle
    for step in range(TRIES):
        lowest = wp.transform_point(
            bounds.pose, support_point(bounds.shape, -wp.quat_rotate_inv(rotation, direction))
        )
        if wp.dot(direction, lowest - foot) > bounds.max_separation:
            return True
        if step > 0:
            point = lowest
        foot = nearest_on_triangle(triangle, point)
        length = wp.length(point - foot)
        if length <= AT_SURFACE * wp.length(triangle.q - triangle.p):
            return False
        direction = (point - foot) / length
    return False


@wp.func
def sphere_has_contact(field: Field, bounds: FieldBounds, number: int) -> bool:
    """Whether a sphere has a contact with a triangle: of the many in the bounds few own the
    sphere's closest point."""
    triangle = field_triangle(field, number)
    foot = nearest_on_triangle(triangle, bounds.middle)
    distance = wp.length(bounds.middle - foot)
    radius = bounds.shape.size[0]
    if distance - radius >= bounds.max_separation:
        return False
    if distance <= AT_SURFACE * radius:
        return True
    return (
        normal_cone_at(
            surface_of_field(field), triangle, foot, (bounds.middle - foot) / distance
        ).belongs
        == 1
    )


@wp.func
def squared_distance_of_segments(start: Vec3, end: Vec3, p: Vec3, q: Vec3) -> Real:
    """Squared distance of two segments whose closest points are interior to both [m^2]; else inf:
    an end is closest."""
    u = end - start
    v = q - p
    off = p - start
    across = wp.cross(u, v)
    square = wp.length_sq(across)
    s = wp.dot(wp.cross(off, v), across)
    t = wp.dot(wp.cross(off, u), across)
    if s <= Real(0.0) or s >= square or t <= Real(0.0) or t >= square:
        return Real(wp.inf)
    height = wp.dot(off, across)
    return height * height / square


@wp.func
def capsule_within(field: Field, bounds: FieldBounds, number: int) -> bool:
    """Whether a capsule is within the maximum separation of a triangle.

    Its segment is closest at an end, or to a side, or crosses the triangle. Degenerate: parallel to
    a side, an end of either is closest.
    """
    triangle = top_triangle(field, number)
    normal = wp.normalize(wp.cross(triangle.q - triangle.p, triangle.r - triangle.p))
    start = bounds.center - bounds.z
    end = bounds.center + bounds.z
    most = bounds.rounding * bounds.rounding
    low = wp.dot(normal, start - triangle.p)
    high = wp.dot(normal, end - triangle.p)
    if wp.min(low, high) > bounds.rounding or wp.max(low, high) < -bounds.rounding:
        return False
    if square_to_triangle(triangle.p, triangle.q, triangle.r, normal, start) <= most:
        return True
    if square_to_triangle(triangle.p, triangle.q, triangle.r, normal, end) <= most:
        return True
    for k in range(3):
        p = corner_of(triangle, k)
        if (
            square_to_segment(start, end, p) <= most
            or squared_distance_of_segments(start, end, p, corner_of(triangle, k + 1)) <= most
        ):
            return True
    if low * high >= Real(0.0):
        return False
    weights = barycentric_of(
        triangle.p, triangle.q, triangle.r, start + low / (low - high) * (end - start)
    )
    return wp.min(weights) >= Real(0.0)


@wp.func
def may_have_contact(field: Field, bounds: FieldBounds, number: int) -> bool:
    """Whether a triangle that the AABB intersects may have a contact with the shape."""
    if bounds.shape.type == SPHERE:
        return sphere_has_contact(field, bounds, number)
    if bounds.shape.type == CAPSULE:
        return capsule_within(field, bounds, number)
    if bounds.shape.type == CONVEX_MESH:
        return True
    triangle = top_triangle(field, number)
    normal = wp.cross(triangle.q - triangle.p, triangle.r - triangle.p)
    return not is_separated_by_plane(triangle, bounds, wp.normalize(normal))


@wp.func
def cell_triangles_near(field: Field, bounds: FieldBounds, row: int, col: int) -> int:
    """The triangles of a cell that the bounds may intersect: bits 1 (below the diagonal) and 2.

    Separating axes: the vertical, the diagonal's normal, and the normal of each triangle from its
    front.
    """
    at = field.first + row * field.cols + col
    # In float64: a difference of two float32 heights is wrong by 6e-8 of itself, and the axis with
    # it.
    h = Real(field.data[at])
    h_x = Real(field.data[at + 1])
    h_y = Real(field.data[at + field.cols])
    h_far = Real(field.data[at + field.cols + 1])
    highest = field.level + field.scale * wp.max(wp.max(h, h_x), wp.max(h_y, h_far))
    lowest = field.level + field.scale * wp.min(wp.min(h, h_x), wp.min(h_y, h_far))
    if bounds.lower[2] > highest or bounds.upper[2] < lowest:
        return 0
    half = Real(0.5) * (bounds.upper - bounds.lower)
    middle = (
        bounds.lower
        + half
        - Vec3(x_of(field, col), y_of(field, row), field.level + field.scale * h)
    )
    x = Real(2.0) * field.half_step_x
    y = Real(2.0) * field.half_step_y
    across = x * middle[1] - y * middle[0]
    spread = x * half[1] + y * half[0]
    sides = int(0)
    for side in range(2):
        # Both planes contain the low corner; rise_x and rise_y are their slopes times the area of
        # the cell.
        rise_x = field.scale * wp.where(side == 0, h_x - h, h_far - h_y) * y
        rise_y = field.scale * wp.where(side == 0, h_far - h_x, h_y - h) * x
        normal = Vec3(-rise_x, -rise_y, x * y)
        if (
            wp.dot(normal, middle) <= extent_along(bounds, normal)
            and wp.where(side == 0, across, -across) <= spread
        ):
            sides = sides | (1 << side)
    return sides


@wp.func
def cell_sub_pairs(
    field: Field, bounds: FieldBounds, traversal: Traversal, out: SubPairList, start: int
) -> int:
    """Appends the triangles of the current square's cells that the shape may touch; returns the
    number of sub-pairs."""
    count = start
    row = wp.max(traversal.i << traversal.level, traversal.first_row)
    last_row = wp.min(((traversal.i + 1) << traversal.level) - 1, traversal.last_row)
    last_col = wp.min(((traversal.j + 1) << traversal.level) - 1, traversal.last_col)
    while row <= last_row:
        col = wp.max(traversal.j << traversal.level, traversal.first_col)
        while col <= last_col:
            sides = cell_triangles_near(field, bounds, row, col)
            first = 2 * (row * field.cols + col)
            for side in range(2):
                if ((sides >> side) & 1) == 1:
                    if may_have_contact(field, bounds, first + side):
                        count = append_sub_pair(out, count, first + side)
            col += 1
        row += 1
    return count


@wp.func
def top_sub_pairs(field: Field, bounds: FieldBounds, out: SubPairList, start: int) -> int:
    """Appends the triangles of the surface near the shape; none for a shape wholly below; returns
    the number."""
    count = start
    traversal = begin_traversal(field, bounds.lower, bounds.upper)
    while traversal.done == 0:
        passes = not is_under(traversal)
        if not passes:
            heights = range_of(field, traversal)
            if heights.known == 1:
                square = squared_distance_to_square(field, traversal, bounds.center)
                passes = bounds.lower[2] > heights.high or bounds.upper[2] < heights.low
                passes = passes or square > bounds.ball * bounds.ball
        if passes:
            traversal = skip_square(traversal)
        elif traversal.level > FIRST:
            traversal = descend(traversal)
        else:
            count = cell_sub_pairs(field, bounds, traversal, out, count)
            traversal = skip_square(traversal)
    return count


@wp.func
def border_sub_pairs(field: Field, bounds: FieldBounds, out: SubPairList, start: int) -> int:
    """Appends the triangles of the four walls near the shape; returns the number of sub-pairs."""
    count = start
    if bounds.upper[2] < field.bottom:
        return count
    for turn in range(4):
        # The walls at -y and +y come before those at +x and -x.
        numbers = wall_range(
            field, wp.where(turn == 1 or turn == 2, 3 - turn, turn), bounds.lower, bounds.upper
        )
        for k in range(
            (numbers[0] - walls_begin(field)) / 2, (numbers[1] - walls_begin(field)) / 2
        ):
            p = border_vertex(field, k)
            q = border_vertex(field, k + 1)
            if bounds.lower[2] <= wp.max(
                height_at(field, p[0], p[1]), height_at(field, q[0], q[1])
            ):
                count = append_sub_pair(out, count, walls_begin(field) + 2 * k)
                count = append_sub_pair(out, count, walls_begin(field) + 2 * k + 1)
    return count


@wp.func(inline=True)
def field_triangles_near(
    rows: ShapeRows, fields: Heightfields, query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Appends every triangle that a shape is tested against; for a middle inside the solid also ~
    the closest one.

    `parts` is 1.
    """
    field = field_of(fields, rows.heightfield[query.row_b])
    bounds = field_bounds(rows, query, field)
    count = int(0)
    over_base = (
        wp.abs(bounds.middle[0]) <= field.half_x and wp.abs(bounds.middle[1]) <= field.half_y
    )
    if bounds.beneath == 0 or not over_base:
        count = top_sub_pairs(field, bounds, out, count)
    count = border_sub_pairs(field, bounds, out, count)
    if bounds.beneath == 1:
        corner = Vec3(field.half_x, field.half_y, Real(wp.inf))
        if boxes_intersect(
            bounds.lower, bounds.upper, Vec3(-field.half_x, -field.half_y, field.bottom), corner
        ):
            base = base_begins(field)
            count = append_sub_pair(out, count, base)
            count = append_sub_pair(out, count, base + 1)
    elif is_inside(field, bounds.middle):
        number = int(0)
        if out.first + count < out.end:
            number = nearest_part(field, bounds.middle).number
        count = append_sub_pair(out, count, ~number)
    return count
