"""Whether a point is inside a surface of a pair, and how far it is from its triangles at least."""

import warp as wp

from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.mesh_nearest import MeshPoint, is_inside_mesh
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair
from collidecli.engine.narrowphase.triangles.heightfield_nearest import is_inside
from collidecli.engine.narrowphase.triangles.heightfield_triangles import outward_of_face
from collidecli.engine.narrowphase.triangles.triangle_queries import clear_of, nearest_on

# ruff: noqa: F811


@wp.func
def surface_clearance(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """A ball of this radius around a point meets no triangle of a surface [m], where it is above 0."""
    return clearance_at(meshes, surface, point).empty


@wp.func
def surface_clearance(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """The same; of a heightfield by its box."""
    if surface < 0:
        return clear_of(heightfield_pair, surface, point)
    return clearance_at(heightfield_pair.meshes, surface, point).empty


@wp.func(inline=False)
def is_within(meshes: Meshes, surface: int, point: Vec3) -> bool:
    """Whether a point is inside a closed mesh."""
    return is_inside_mesh(meshes, surface, point, nearest_on(meshes, surface, point))


@wp.func
def is_within(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> bool:
    """The same; of a heightfield, below its base as well where that lets nothing out."""
    if surface >= 0:
        return is_within(heightfield_pair.meshes, surface, point)
    field = heightfield_pair.field
    if is_inside(field, point):
        return True
    over_base = wp.abs(point[0]) < field.half_x and wp.abs(point[1]) < field.half_y
    return heightfield_pair.beneath == 0 and over_base and point[2] <= field.bottom


@wp.func
def is_within_by(meshes: Meshes, surface: int, point: Vec3, place: MeshPoint) -> bool:
    """Whether a point is inside a closed surface, whose nearest place is given."""
    return is_inside_mesh(meshes, surface, point, place)


@wp.func
def is_within_by(heightfield_pair: HeightfieldPair, surface: int, point: Vec3, place: MeshPoint) -> bool:
    """The same; of a heightfield, whose nearest place lets a point inside out."""
    if surface < 0:
        outward = outward_of_face(heightfield_pair.field, place.face, place.part)
        return wp.dot(point - place.point, outward) < Real(0.0)
    return is_inside_mesh(heightfield_pair.meshes, surface, point, place)


@wp.func
def nearest_square(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """Squared distance of a point from a mesh [m^2]."""
    return nearest_on(meshes, surface, point).square


@wp.func
def nearest_square(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """The same; of a heightfield from the way out of a point inside it, and 0 outside."""
    return nearest_on(heightfield_pair, surface, point).square
