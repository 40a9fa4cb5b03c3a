"""The room of a mesh and a heightfield: the features of each against the surface of the other, as of two meshes."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import measure_grid
from collidecli.engine.geometry.heightfields import field_of
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.sub_pairs import (
    ContactRows,
    PairRows,
    SubPairKernels,
    counted_kernel,
    overlap_kernel,
    search_kernel,
    spare_rows,
)
from collidecli.engine.narrowphase.triangles.contact_priority import merge_surfaces
from collidecli.engine.narrowphase.triangles.convex_triangle import FALLBACK
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair
from collidecli.engine.narrowphase.triangles.heightfield_mesh_sub_pairs import Surfaces, triangles_of_both
from collidecli.engine.narrowphase.triangles.mesh_mesh import contacts_of_triangle, longest_of, surface_pair_of
from collidecli.engine.narrowphase.triangles.mesh_mesh_sub_pairs import SPARE_ROWS
from collidecli.engine.narrowphase.triangles.mesh_pair_context import TOUCHES, View
from collidecli.engine.narrowphase.triangles.overlap_regions import CAPACITY
from collidecli.engine.narrowphase.triangles.region_depth import measure_regions
from collidecli.engine.pair_query import Query
from collidecli.scene.shape_types import ShapeType

FIELD = wp.constant(-1)
"""Stands for the heightfield where a mesh has its number."""


@wp.func
def context_on_heightfield(
    heightfield_pair: HeightfieldPair, mesh: int, pose_b_to_a: Pose, max_separation: Real, size: Real, is_mesh: bool
) -> View:
    """As `mesh.view.view_of`: how the heightfield, the pair's b, sees the mesh, or the mesh sees it."""
    view = View()
    view.max_separation = max_separation
    view.touch = TOUCHES * size
    front = heightfield_pair.meshes.header[mesh].has_front
    closed = heightfield_pair.meshes.header[mesh].is_closed
    view.own = mesh
    view.other = FIELD
    view.own_front = front
    view.own_closed = closed
    view.other_front = 1
    view.other_closed = 1
    view.pose = wp.transform_inverse(pose_b_to_a)
    view.pose_other_to_a = pose_b_to_a
    view.is_a = 1
    if not is_mesh:
        view.own = FIELD
        view.other = mesh
        view.own_front = 1
        view.own_closed = 1
        view.other_front = front
        view.other_closed = closed
        view.pose = pose_b_to_a
        view.pose_other_to_a = wp.transform_identity(dtype=Real)
        view.is_a = 0
    view.origin = wp.transform_get_translation(view.pose)
    return view


@wp.func
def heightfield_pair_of(rows: ShapeRows, surfaces: Surfaces, query: Query) -> HeightfieldPair:
    """The two surfaces of a pair."""
    heightfield_pair = HeightfieldPair()
    heightfield_pair.meshes = surfaces.meshes
    heightfield_pair.field = field_of(surfaces.heightfields, rows.heightfield[query.row_b])
    middle = wp.transform_get_translation(wp.transform_inverse(query.pose_b_to_a))
    if middle[2] < heightfield_pair.field.bottom:
        heightfield_pair.beneath = 1
        if wp.abs(middle[0]) <= heightfield_pair.field.half_x and wp.abs(middle[1]) <= heightfield_pair.field.half_y:
            heightfield_pair.under = 1
    return heightfield_pair


@wp.func
def view_of_pair(rows: ShapeRows, heightfield_pair: HeightfieldPair, query: Query, is_mesh: bool) -> View:
    """How the heightfield sees the mesh, or where not `is_mesh` the mesh sees it."""
    extent = wp.max(rows.size[query.row_a], rows.size[query.row_b])
    size = wp.max(extent[0], wp.max(extent[1], extent[2]))
    return context_on_heightfield(
        heightfield_pair, rows.mesh[query.row_a], query.pose_b_to_a, query.max_separation, size, is_mesh
    )


@wp.func
def contacts_on_heightfield(rows: ShapeRows, surfaces: Surfaces, query: Query, number: int, out: ContactRows) -> int:
    """Contacts of a triangle of the mesh, or of ~ one of the heightfield, with the other surface."""
    count = int(1)
    if number == SPARE_ROWS:
        count = spare_rows(out, wp.static(CAPACITY), FALLBACK * RANK)
    else:
        heightfield_pair = heightfield_pair_of(rows, surfaces, query)
        is_mesh = number >= 0
        view = view_of_pair(rows, heightfield_pair, query, is_mesh)
        count = contacts_of_triangle(view, heightfield_pair, wp.where(is_mesh, number, ~number), out)
    return count


@wp.func
def measure_pair(rows: ShapeRows, surfaces: Surfaces, query: Query, out: PairRows) -> int:
    """Makes the contacts of a mesh and a heightfield those of their regions of overlap, see `region_depth`."""
    heightfield_pair = heightfield_pair_of(rows, surfaces, query)
    view = view_of_pair(rows, heightfield_pair, query, True)
    span = Real(2.0) * (wp.length(rows.size[query.row_a]) + wp.length(rows.size[query.row_b]))
    pair = surface_pair_of(view, query.pose_b_to_a, span)
    pair.size = wp.min(longest_of(rows.size[query.row_a]), longest_of(rows.size[query.row_b]))
    if heightfield_pair.beneath == 0:
        # The ground would rise: its base lets nothing out.
        pair.blocked = wp.transform_vector(query.pose_b_to_a, Vec3(Real(0.0), Real(0.0), Real(1.0)))
    return measure_regions(heightfield_pair, pair, out)


MESH_HEIGHTFIELD = SubPairKernels(
    "ground",
    "meshes_and_heightfields",
    search_kernel(Surfaces, triangles_of_both),
    merge_surfaces,
    parts_on_cuda=32,
    others=(measure_grid,),
    overlap=overlap_kernel(Surfaces, measure_pair),
)
COLLIDER = Collider(
    "mesh_heightfield", 0, counted_kernel(Surfaces, contacts_on_heightfield), may_be_inexact=True, kind=MESH_HEIGHTFIELD
)


def collider_for(type_a: ShapeType) -> Collider:
    """The one room of meshes on heightfields, whose contacts are counted."""
    return COLLIDER
