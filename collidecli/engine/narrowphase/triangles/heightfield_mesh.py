"""Collider of a mesh and a heightfield: the features of each against the surface of the other, as for two meshes."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import measure_grid
from collidecli.engine.geometry.heightfields import field_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.sub_pairs import PairRows, SubPairKernels, overlap_kernel, search_kernel
from collidecli.engine.narrowphase.triangles.contact_priority import merge_surfaces
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair
from collidecli.engine.narrowphase.triangles.heightfield_mesh_sub_pairs import Surfaces, find_sub_pairs
from collidecli.engine.narrowphase.triangles.mesh_mesh import feature_kernel, surface_pair_of
from collidecli.engine.narrowphase.triangles.region_depth import measure_regions
from collidecli.engine.pair_query import Query
from collidecli.scene.shape_types import ShapeType


@wp.func
def source_of_pair(rows: ShapeRows, surfaces: Surfaces, query: Query) -> HeightfieldPair:
    """The triangle source of a mesh, the pair's a, and a heightfield, its b."""
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
def measure_pair(rows: ShapeRows, surfaces: Surfaces, query: Query, out: PairRows) -> int:
    """Replaces the contacts of an overlapping mesh and heightfield by those of their regions, see `region_depth`."""
    heightfield_pair = source_of_pair(rows, surfaces, query)
    pair = surface_pair_of(rows, heightfield_pair, query)
    if heightfield_pair.beneath == 0:
        # The mesh does not exit through the base: the heightfield must not move up.
        pair.blocked = wp.transform_vector(query.pose_b_to_a, Vec3(Real(0.0), Real(0.0), Real(1.0)))
    return measure_regions(heightfield_pair, pair, out)


MESH_HEIGHTFIELD = SubPairKernels(
    "mesh_heightfield",
    "meshes_and_heightfields",
    search_kernel(Surfaces, find_sub_pairs),
    merge_surfaces,
    parts_on_cuda=32,
    others=(measure_grid,),
    overlap=overlap_kernel(Surfaces, measure_pair),
)
COLLIDER = Collider(
    "mesh_heightfield",
    0,
    feature_kernel(Surfaces, source_of_pair),
    may_be_inexact=True,
    sub_pair_kernels=MESH_HEIGHTFIELD,
)


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of meshes on heightfields, whose contacts are counted."""
    return COLLIDER
