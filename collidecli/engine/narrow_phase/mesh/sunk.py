"""How deep a point is inside a surface, and what that says of the points around it."""

import warp as wp

from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.heightfields import col_under, row_under
from collidecli.engine.geometry.mesh_nearest import Place, is_inside_mesh, nearest_place_within, outward_at
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.heightfield.faces import face_normal
from collidecli.engine.narrow_phase.heightfield.inside import Ground, way_out
from collidecli.engine.narrow_phase.heightfield.nearest import height_over, is_inside, side_below
from collidecli.engine.narrow_phase.mesh.questions import clear_of

# ruff: noqa: F811

UNKNOWN = wp.constant(Real(1.0e30))
"""A depth that bounds nothing [m]."""


@wp.struct
class Sunk:
    """How deep a point is inside a surface, negative outside [m].

    place: of the surface, nearest; its face is -1 where it is not known. rise: unit, the way in which depth grows; zero
    where that is not known: a ball of `-depth` around the point is then outside.
    """

    depth: Real
    place: Place
    rise: Vec3


@wp.func(inline=False)
def sunk_at(meshes: Meshes, surface: int, point: Vec3) -> Sunk:
    """Of a closed mesh."""
    result = Sunk()
    result.place.face = -1
    clearance = clearance_at(meshes, surface, point)
    result.place = nearest_place_within(meshes, surface, point, clearance.square)
    result.depth = wp.sqrt(result.place.square)
    off = point - result.place.point
    outward = outward_at(meshes, result.place.face, result.place.part)
    if result.depth > Real(0.0):
        result.rise = off / result.depth
    else:
        result.rise = -wp.normalize(outward)
    if not is_inside_mesh(meshes, surface, point, result.place):
        result.depth = -result.depth
        result.rise = -result.rise
    return result


@wp.func(inline=False)
def sunk_at(ground: Ground, surface: int, point: Vec3) -> Sunk:
    """The same. What is below a heightfield's base, which lets nothing out, tells nothing: UNKNOWN, as of no place."""
    if surface >= 0:
        return sunk_at(ground.meshes, surface, point)
    result = Sunk()
    result.place.face = -1
    if is_inside(ground.field, point):
        result.place = way_out(ground, point)
        result.depth = wp.sqrt(result.place.square)
        if result.depth > Real(0.0):
            result.rise = (point - result.place.point) / result.depth
        return result
    field = ground.field
    result.depth = -wp.max(clear_of(ground, surface, point), Real(0.0))
    if point[2] <= field.bottom or ground.under == 1:
        result.depth = UNKNOWN
    elif wp.abs(point[0]) < field.half_x and wp.abs(point[1]) < field.half_y:
        # As the triangle below has it.
        row = row_under(field, point[1])
        col = col_under(field, point[0])
        normal = face_normal(field, 2 * (row * field.cols + col) + side_below(field, row, col, point))
        result.depth = (height_over(field, point) - point[2]) * normal[2]
        result.rise = -normal
    return result


@wp.func
def most_at(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """A point is no deeper than this inside a surface [m], without a search."""
    return wp.sqrt(clearance_at(meshes, surface, point).square)


@wp.func
def most_at(ground: Ground, surface: int, point: Vec3) -> Real:
    """The same; of a heightfield what is above the point."""
    if surface >= 0:
        return most_at(ground.meshes, surface, point)
    field = ground.field
    if ground.under == 1 or wp.abs(point[0]) > field.half_x or wp.abs(point[1]) > field.half_y:
        return UNKNOWN
    return wp.max(height_over(field, point) - point[2], Real(0.0))
