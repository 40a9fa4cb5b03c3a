"""Interior points of convex shapes."""

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH
from collidecli.engine.geometry.support import Primitive, support_point
from collidecli.engine.pair_query import hull_of

# ruff: noqa: F811


@wp.func
def middle_of(shape: Primitive) -> Vec3:
    """An interior point of a primitive, its own frame [m]."""
    return Vec3()


@wp.func
def middle_of(shape: HullShape) -> Vec3:
    """An interior point of a hull, its own frame [m]; the middle of its AABB need not be one."""
    total = Vec3()
    for axis in range(3):
        direction = Vec3()
        direction[axis] = Real(1.0)
        total += support_point(shape, direction) + support_point(shape, -direction)
    return total / Real(6.0)


@wp.func(inline=False)
def middle_of_row(rows: ShapeRows, row: int) -> Vec3:
    """An interior point of a convex shape, its own frame [m]."""
    if rows.type[row] == CONVEX_MESH:
        return middle_of(hull_of(rows, row))
    return Vec3()
