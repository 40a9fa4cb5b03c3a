"""Heightfields on the device: heights, a min-max pyramid, and triangles generated on access.

Triangle numbers: 2 v and 2 v + 1 are those of the cell whose low corner is vertex v = row * cols +
col, below and above its diagonal; then two for each border segment's wall; then two of the base.
The border is counted counterclockwise from vertex (0, 0): segment k goes from its vertex k to the
next.

Features, for V vertices of which P are on the border: 8 v vertex, 8 v + 1 the edge from v along +x,
8 v + 2 along +y, 8 v + 3 the diagonal, 8 v + 4 and 8 v + 5 the triangles of the cell. Below border
vertex k, from 8 V + 8 k on: 0 vertex of the base, 1 edge of the base to the next vertex, 2 the
vertical edge, 3 the diagonal of the wall, 4 and 5 its triangles. From 8 (V + P) on, of the base: 0
to 3 its sides at -y, +x, +y, -x; 4 and 5 triangles, 6 their diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import MESH, Real, Vec3
from collidecli.scene.heightfield import Heightfield

FIRST_LEVEL = 2
FIRST = wp.constant(FIRST_LEVEL)
"""The pyramid starts with squares of 2^2 cells a side: a search of smaller ones costs less than
their storage."""
HEADER = 5


@wp.struct
class Heightfields:
    """Every heightfield of a model.

    data: float32 heights of all fields. ranges: minimum and maximum of each square of 2^level cells
    a side, by levels from FIRST_LEVEL on, row by row. header: HEADER numbers a field: start of its
    data, rows, columns, start of its ranges, levels. sizes: three vectors a field: (scale, level,
    bottom), (half_x, half_y, 0), (half_step_x, half_step_y, 0).
    """

    data: wp.array[wp.float32]
    ranges: wp.array[wp.vec2f]
    header: wp.array[int]
    sizes: wp.array[Vec3]


@wp.struct
class Field:
    """One heightfield: see `scene.heightfield.Heightfield` and `Heightfields`. first, first_range:
    its start in these arrays.

    half_step_x, half_step_y: half of a cell's sides [m].
    """

    data: wp.array[wp.float32]
    ranges: wp.array[wp.vec2f]
    first: int
    rows: int
    cols: int
    first_range: int
    levels: int
    scale: Real
    level: Real
    bottom: Real
    half_x: Real
    half_y: Real
    half_step_x: Real
    half_step_y: Real


@wp.func
def field_of(fields: Heightfields, number: int) -> Field:
    """Heightfield `number` of a model."""
    field = Field()
    head = number * wp.static(HEADER)
    field.data = fields.data
    field.ranges = fields.ranges
    field.first = fields.header[head]
    field.rows = fields.header[head + 1]
    field.cols = fields.header[head + 2]
    field.first_range = fields.header[head + 3]
    field.levels = fields.header[head + 4]
    numbers = fields.sizes[3 * number]
    field.scale = numbers[0]
    field.level = numbers[1]
    field.bottom = numbers[2]
    numbers = fields.sizes[3 * number + 1]
    field.half_x = numbers[0]
    field.half_y = numbers[1]
    numbers = fields.sizes[3 * number + 2]
    field.half_step_x = numbers[0]
    field.half_step_y = numbers[1]
    return field


@wp.func
def height_at(field: Field, row: int, col: int) -> Real:
    """Height of a vertex [m]."""
    return field.level + field.scale * Real(field.data[field.first + row * field.cols + col])


@wp.func
def x_of(field: Field, col: int) -> Real:
    """x of a column [m]."""
    return field.half_step_x * Real(2 * col - (field.cols - 1))


@wp.func
def y_of(field: Field, row: int) -> Real:
    """y of a row [m]."""
    return field.half_step_y * Real(2 * row - (field.rows - 1))


@wp.func
def vertex_at(field: Field, row: int, col: int) -> Vec3:
    """A vertex of the surface [m]."""
    return Vec3(x_of(field, col), y_of(field, row), height_at(field, row, col))


@wp.func
def perimeter_of(field: Field) -> int:
    """Number of border vertices."""
    return 2 * (field.rows - 1) + 2 * (field.cols - 1)


@wp.func
def walls_begin(field: Field) -> int:
    """Number of the first triangle of a wall."""
    return 2 * field.rows * field.cols


@wp.func
def base_begins(field: Field) -> int:
    """Number of the first triangle of the base."""
    return 2 * field.rows * field.cols + 2 * perimeter_of(field)


@wp.func
def border_vertex(field: Field, k: int) -> wp.vec2i:
    """Row and column of border vertex k, 0 to the perimeter."""
    along = field.cols - 1
    up = field.rows - 1
    if k < along:
        return wp.vec2i(0, k)
    if k < along + up:
        return wp.vec2i(k - along, along)
    return (
        wp.vec2i(up, 2 * along + up - k)
        if k < 2 * along + up
        else wp.vec2i(2 * along + 2 * up - k, 0)
    )


@wp.func
def wall_normal(field: Field, k: int) -> Vec3:
    """Outward normal of the wall below segment k of the border."""
    along = field.cols - 1
    up = field.rows - 1
    if k < along:
        return Vec3(Real(0.0), Real(-1.0), Real(0.0))
    if k < along + up:
        return Vec3(Real(1.0), Real(0.0), Real(0.0))
    return (
        Vec3(Real(0.0), Real(1.0), Real(0.0))
        if k < 2 * along + up
        else Vec3(Real(-1.0), Real(0.0), Real(0.0))
    )


@wp.func
def top_triangle(field: Field, number: int) -> TriangleShape:
    """Triangle of the surface: corners and features."""
    shape = TriangleShape()
    v = number >> 1
    row = v / field.cols
    col = v - row * field.cols
    shape.p = vertex_at(field, row, col)
    far = vertex_at(field, row + 1, col + 1)
    if number & 1 == 0:
        shape.q = vertex_at(field, row, col + 1)
        shape.r = far
        shape.vertex = wp.vec3i(8 * v, 8 * (v + 1), 8 * (v + field.cols + 1))
        shape.edge = wp.vec3i(8 * v + 1, 8 * (v + 1) + 2, 8 * v + 3)
    else:
        shape.q = far
        shape.r = vertex_at(field, row + 1, col)
        shape.vertex = wp.vec3i(8 * v, 8 * (v + field.cols + 1), 8 * (v + field.cols))
        shape.edge = wp.vec3i(8 * v + 3, 8 * (v + field.cols) + 1, 8 * v + 2)
    shape.face = 8 * v + 4 + (number & 1)
    return shape


@wp.func
def wall_triangle(field: Field, number: int) -> TriangleShape:
    """Triangle of a wall; number: from 0, two a segment."""
    shape = TriangleShape()
    k = number >> 1
    p = border_vertex(field, k)
    q = border_vertex(field, k + 1)
    top_p = vertex_at(field, p[0], p[1])
    top_q = vertex_at(field, q[0], q[1])
    base = 8 * field.rows * field.cols
    next_k = wp.where(k + 1 == perimeter_of(field), 0, k + 1)
    shape.p = Vec3(top_p[0], top_p[1], field.bottom)
    if number & 1 == 0:
        shape.q = Vec3(top_q[0], top_q[1], field.bottom)
        shape.r = top_q
        shape.vertex = wp.vec3i(base + 8 * k, base + 8 * next_k, 8 * (q[0] * field.cols + q[1]))
        shape.edge = wp.vec3i(base + 8 * k + 1, base + 8 * next_k + 2, base + 8 * k + 3)
    else:
        shape.q = top_q
        shape.r = top_p
        shape.vertex = wp.vec3i(
            base + 8 * k, 8 * (q[0] * field.cols + q[1]), 8 * (p[0] * field.cols + p[1])
        )
        low = wp.min(p[0], q[0]) * field.cols + wp.min(p[1], q[1])
        top_edge = 8 * low + wp.where(p[0] == q[0], 1, 2)
        shape.edge = wp.vec3i(base + 8 * k + 3, top_edge, base + 8 * k + 2)
    shape.face = base + 8 * k + 4 + (number & 1)
    return shape


@wp.func
def base_triangle(field: Field, number: int) -> TriangleShape:
    """Triangle 0 or 1 of the base, with its normal downwards."""
    shape = TriangleShape()
    along = field.cols - 1
    up = field.rows - 1
    under = 8 * field.rows * field.cols
    base = under + 8 * perimeter_of(field)
    shape.p = Vec3(-field.half_x, -field.half_y, field.bottom)
    if number == 0:
        shape.q = Vec3(-field.half_x, field.half_y, field.bottom)
        shape.r = Vec3(field.half_x, field.half_y, field.bottom)
        shape.vertex = wp.vec3i(under, under + 8 * (2 * along + up), under + 8 * (along + up))
        shape.edge = wp.vec3i(base + 3, base + 2, base + 6)
    else:
        shape.q = Vec3(field.half_x, field.half_y, field.bottom)
        shape.r = Vec3(field.half_x, -field.half_y, field.bottom)
        shape.vertex = wp.vec3i(under, under + 8 * (along + up), under + 8 * along)
        shape.edge = wp.vec3i(base + 6, base + 1, base)
    shape.face = base + 4 + number
    return shape


@wp.func
def named_triangle(field: Field, number: int) -> TriangleShape:
    """Corners and features of triangle `number`."""
    walls = walls_begin(field)
    base = base_begins(field)
    shape = TriangleShape()
    if number < walls:
        shape = top_triangle(field, number)
    elif number < base:
        shape = wall_triangle(field, number - walls)
    else:
        shape = base_triangle(field, number - base)
    shape.number = number
    return shape


@wp.func
def field_triangle(field: Field, number: int) -> TriangleShape:
    """Triangle `number` as a convex shape."""
    shape = named_triangle(field, number)
    shape.type = MESH
    shape.size = Real(0.5) * (
        wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r))
    )
    across = wp.cross(shape.q - shape.p, shape.r - shape.p)
    area = wp.length(across)
    shape.normal = across / area
    longest = wp.max(
        wp.length(shape.q - shape.p),
        wp.max(wp.length(shape.r - shape.q), wp.length(shape.p - shape.r)),
    )
    shape.half_width = Real(0.5) * area / longest
    return shape


@wp.func
def col_under(field: Field, x: Real) -> int:
    """Column of cells that contains a coordinate; the closest column for coordinates outside."""
    cell = Real(0.5) * (x + field.half_x) / field.half_step_x
    return int(wp.clamp(cell, Real(0.0), Real(field.cols - 2)))


@wp.func
def row_under(field: Field, y: Real) -> int:
    """Row of cells that contains a coordinate; the closest row for coordinates outside."""
    cell = Real(0.5) * (y + field.half_y) / field.half_step_y
    return int(wp.clamp(cell, Real(0.0), Real(field.rows - 2)))


@wp.func
def highest_of_cell(field: Field, row: int, col: int) -> Real:
    """Maximum height of a cell's corners [m]."""
    at = field.first + row * field.cols + col
    near = wp.max(field.data[at], field.data[at + 1])
    far = wp.max(field.data[at + field.cols], field.data[at + field.cols + 1])
    return field.level + field.scale * Real(wp.max(near, far))


def pyramid(data: np.ndarray) -> list[np.ndarray]:
    """Min-max pyramid: float32[rows, cols, 2] of each level from FIRST_LEVEL on: the minimum and
    maximum height of squares of 2^level cells a side, their borders included; the last level has
    one square.
    """
    side = 1 << FIRST_LEVEL
    levels: list[np.ndarray] = []
    low = data
    high = data
    for axis in (0, 1):
        starts = np.arange(0, low.shape[axis] - 1, side)
        # A square's last row of vertices is the first of the next square.
        ends = np.minimum(starts + side, low.shape[axis] - 1)
        low = np.minimum(np.minimum.reduceat(low, starts, axis=axis), np.take(low, ends, axis=axis))
        high = np.maximum(
            np.maximum.reduceat(high, starts, axis=axis), np.take(high, ends, axis=axis)
        )
    levels.append(np.stack([low, high], axis=2))
    while max(low.shape) > 1:
        for axis in (0, 1):
            starts = np.arange(0, low.shape[axis], 2)
            low = np.minimum.reduceat(low, starts, axis=axis)
            high = np.maximum.reduceat(high, starts, axis=axis)
        levels.append(np.stack([low, high], axis=2))
    return levels


def upload_heightfields(fields: Sequence[Heightfield], device: wp.Device) -> Heightfields:
    """Device arrays of the heightfields; on the CPU a single heightfield's array is not copied."""
    header = []
    sizes = []
    ranges = []
    first = first_range = 0
    for field in fields:
        levels = pyramid(field.data)
        rows, cols = field.data.shape
        header.append((first, rows, cols, first_range, len(levels)))
        sizes += [
            (field.scale, field.level, field.bottom),
            (field.half_x, field.half_y, 0.0),
            (field.half_x / (cols - 1), field.half_y / (rows - 1), 0.0),
        ]
        ranges += [level.reshape(-1, 2) for level in levels]
        first += field.data.size
        first_range += sum(len(level.reshape(-1, 2)) for level in levels)
    data = [field.data.reshape(-1) for field in fields] or [np.zeros(1, np.float32)]
    heights = data[0] if len(data) == 1 else np.concatenate(data)
    result = Heightfields()
    result.data = wp.array(heights, dtype=wp.float32, device=device, copy=False)
    result.ranges = device_array(
        np.concatenate([*ranges, np.zeros((0, 2), np.float32)]), wp.vec2f, device
    )
    result.header = device_array(np.array(header, np.int32).ravel(), wp.int32, device)
    result.sizes = device_array(np.array(sizes, np.float64).reshape(-1, 3), Vec3, device)
    return result
