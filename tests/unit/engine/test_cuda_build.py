"""Kernels are one source for CPU and CUDA: NVRTC compiles them here to PTX, with or without a GPU."""

from __future__ import annotations

import pytest
import warp as wp

from collidecli.engine import nearest_triangles
from collidecli.engine.broadphase import all_pairs, sweep_and_prune
from collidecli.engine.broadphase import all_pairs as explicit
from collidecli.engine.broadphase import all_pairs as lane_overlap
from collidecli.engine.candidates import count_lanes, write_lanes
from collidecli.engine.cells import bound_blocks, transform_shapes
from collidecli.engine.contacts.compaction import COMPACT, count_cells
from collidecli.engine.contacts.reduction import reduce_contacts
from collidecli.engine.distances import point_kernel
from collidecli.engine.geometry.bounds import measure_grid
from collidecli.engine.geometry.signed_distance import fill_rows_of_mesh
from collidecli.engine.hydroelastic.blocks import voxel_kernels
from collidecli.engine.hydroelastic.pairs import prepare_pairs
from collidecli.engine.hydroelastic.polytopes import clip_cells
from collidecli.engine.hydroelastic.voxels import cut_voxels
from collidecli.engine.narrowphase.dispatch import collider
from collidecli.engine.narrowphase.signed_distance import SDF
from collidecli.engine.narrowphase.sub_pairs import copy_sub_pairs, list_undecided
from collidecli.engine.narrowphase.triangles.convex_touches import heightfield_touches, mesh_touches
from collidecli.engine.narrowphase.triangles.heightfield_colliders import HEIGHTFIELD
from collidecli.engine.narrowphase.triangles.heightfield_solid import MESH_HEIGHTFIELD, name_solid_features
from collidecli.engine.narrowphase.triangles.mesh_colliders import MESH
from collidecli.engine.narrowphase.triangles.mesh_mesh import MESHES
from collidecli.engine.narrowphase.triangles.surface_touches import surfaces_kernel
from collidecli.engine.nearest_triangles import least_of_contacts
from collidecli.engine.particles import elements, self_contacts, self_sweep, swept_elements, swept_points
from collidecli.engine.particles.self_contacts import WRITE_COLUMNS
from collidecli.engine.particles.soft_contacts import COMPACT_SOFT
from collidecli.engine.particles.surfaces import fit_boxes
from collidecli.engine.pipeline import find_device
from collidecli.engine.sweep.self_stage import WRITE_TOUCHES
from collidecli.scene.shape_types import ShapeType

ARCHITECTURE = 90
KERNELS = {
    "fit_boxes": fit_boxes,
    "count_candidates": elements.count_candidates,
    "write_candidates": elements.write_candidates,
    "sample_primitives": elements.SAMPLE_PRIMITIVES,
    "sample_polygons": elements.SAMPLE_POLYGONS,
    "sample_heightfields": elements.SAMPLE_GRIDS,
    "sweep_points_past_primitives": swept_points.SWEEP_PRIMITIVES,
    "sweep_points_past_polygons": swept_points.SWEEP_POLYGONS,
    "sweep_points_past_heightfields": swept_points.SWEEP_GRIDS,
    "sweep_elements_past_primitives": swept_elements.SWEEP_PRIMITIVES,
    "sweep_elements_past_polygons": swept_elements.SWEEP_POLYGONS,
    "sweep_elements_past_heightfields": swept_elements.SWEEP_GRIDS,
    "minimize_primitives": elements.MINIMIZE_PRIMITIVES,
    "minimize_hulls": elements.MINIMIZE_HULLS,
    "minimize_meshes": elements.MINIMIZE_MESHES,
    "minimize_heightfields": elements.MINIMIZE_GRIDS,
    "compact_soft": next(iter(COMPACT_SOFT.values())),
    "fit_element_boxes": self_contacts.fit_element_boxes,
    "count_self_contacts": self_contacts.count_self_contacts,
    "write_self_contacts": self_contacts.write_self_contacts,
    "write_self_columns": next(iter(WRITE_COLUMNS.values())),
    "count_self_steps": self_sweep.count_self_steps,
    "write_self_steps": self_sweep.write_self_steps,
    "sweep_self_steps": self_sweep.sweep_self_steps,
    "write_self_touches": next(iter(WRITE_TOUCHES.values())),
    "transform_shapes": transform_shapes,
    "bound_blocks": bound_blocks,
    "test_lanes": lane_overlap.test_lanes,
    "count_lanes": count_lanes,
    "write_lanes": write_lanes,
    "count_cells": count_cells,
    "test_pairs": explicit.test_pairs,
    "test_all": all_pairs.test_all,
    "write_entries": sweep_and_prune.write_entries,
    "sweep": sweep_and_prune.sweep,
    "test_unswept": sweep_and_prune.test_unswept,
    "compact": next(iter(COMPACT.values())),
    "reduce_contacts": reduce_contacts,
    "capsule_capsule": collider(ShapeType.CAPSULE, ShapeType.CAPSULE, "gjk").kernel,
    "fill_rows_of_mesh": fill_rows_of_mesh,
    "settle_of_mesh": collider(ShapeType.BOX, ShapeType.MESH, "gjk").region_depths,
    "settle_of_hull_in_field": collider(ShapeType.CONVEX_MESH, ShapeType.HEIGHTFIELD, "gjk").region_depths,
    "find_of_sdf": SDF.search,
    "sdf": collider(ShapeType.BOX, ShapeType.BOX, "gjk", has_field=True).kernel,
    "join_sdf": SDF.merge,
    "plane_hull": collider(ShapeType.PLANE, ShapeType.CONVEX_MESH, "gjk").kernel,
    "hulls": collider(ShapeType.CONVEX_MESH, ShapeType.CONVEX_MESH, "gjk").kernel,
    "find_on_mesh": MESH.search,
    "copy_sub_pairs": copy_sub_pairs,
    "merge_triangles": MESH.merge,
    "convex_triangles": collider(ShapeType.BOX, ShapeType.MESH, "gjk").kernel,
    "measure_grid": measure_grid,
    "find_on_meshes": MESHES.search,
    "meshes": collider(ShapeType.MESH, ShapeType.MESH, "gjk").kernel,
    "merge_surfaces": MESHES.merge,
    "find_on_heightfield": HEIGHTFIELD.search,
    "find_on_ground": MESH_HEIGHTFIELD.search,
    "deepen_meshes": MESHES.overlap,
    "deepen_on_ground": MESH_HEIGHTFIELD.overlap,
    "name_solid_features": name_solid_features,
    "ground": collider(ShapeType.MESH, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "sphere_field": collider(ShapeType.SPHERE, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "convex_field": collider(ShapeType.CAPSULE, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "hull_field": collider(ShapeType.CONVEX_MESH, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "convex": collider(ShapeType.CYLINDER, ShapeType.ELLIPSOID, "gjk").kernel,
    "touch": collider(ShapeType.CYLINDER, ShapeType.ELLIPSOID, "touch").kernel,
    "touch_hulls": collider(ShapeType.CONVEX_MESH, ShapeType.CONVEX_MESH, "touch").kernel,
    "touch_on_mesh": mesh_touches(False),
    "touch_hull_on_field": heightfield_touches(True),
    "touch_of_meshes": surfaces_kernel(),
    "list_undecided": list_undecided,
    "prepare_pairs": prepare_pairs,
    "clip_cells": clip_cells,
    "cut_voxels": cut_voxels,
    "sample_corners": voxel_kernels(True, True).sample_corners,
    "least_of_contacts": least_of_contacts,
    "measure_points": point_kernel(True),
    "nearest_of_plane": nearest_triangles.nearest_of_plane,
    "nearest_of_convex": nearest_triangles.KERNELS["convex"],
    "nearest_of_hull": nearest_triangles.KERNELS["hull"],
    "nearest_of_surfaces": nearest_triangles.nearest_of_surfaces,
}

HEAVY = {
    "touch",
    "touch_hulls",
    "touch_on_mesh",
    "touch_hull_on_field",
    "test_pairs",
    "test_all",
    "test_unswept",
    "find_on_mesh",
    "find_on_heightfield",
    "sphere_field",
    "hulls",
    "convex",
    "reduce_contacts",
    "convex_triangles",
    "find_on_meshes",
    "find_of_sdf",
    "sdf",
    "meshes",
    "convex_field",
    "hull_field",
    "find_on_ground",
    "ground",
    "deepen_meshes",
    "deepen_on_ground",
    "settle_of_mesh",
    "settle_of_hull_in_field",
    "cut_voxels",
    "sample_corners",
    "nearest_of_convex",
    "nearest_of_hull",
    "minimize_primitives",
    "minimize_hulls",
    "minimize_meshes",
    "minimize_heightfields",
    "sample_polygons",
    "sample_heightfields",
    "sweep_points_past_primitives",
    "sweep_points_past_polygons",
    "sweep_points_past_heightfields",
    "count_candidates",
    "write_candidates",
    "count_self_contacts",
    "write_self_contacts",
    "write_self_columns",
    "nearest_of_surfaces",
    "touch_of_meshes",
    "compact_soft",
}
"""Take a core two seconds to half a minute each: `make test-slow`."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in HEAVY)) for name in KERNELS])
def test_kernel_compiles_for_cuda(name, tmp_path, monkeypatch):
    find_device("cpu")
    monkeypatch.setattr(wp.config, "optimization_level", 0)  # whether it compiles, not how well
    if not wp.get_cuda_supported_archs():
        pytest.skip("this build of Warp has no CUDA compiler")
    built = wp.compile_aot_module(KERNELS[name].module, arch=ARCHITECTURE, module_dir=tmp_path, use_ptx=True)
    assert any(path.stat().st_size > 0 for path in built)
