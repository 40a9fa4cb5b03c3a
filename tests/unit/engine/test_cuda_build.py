"""Kernels are one source for CPU and CUDA: NVRTC compiles them to PTX, within the budget of
registers and stack."""

import pytest
import warp as wp

from collidecli.engine import candidate_rows, touching_pairs
from collidecli.engine.broadphase import all_pairs, explicit, lane_tests, sweep_and_prune
from collidecli.engine.candidates import count_lanes, write_lanes
from collidecli.engine.cells import bound_blocks, transform_shapes
from collidecli.engine.collider_query import hull_of, primitive_of
from collidecli.engine.contact_record import count_touching
from collidecli.engine.device_kinematics import pose_configurations
from collidecli.engine.distances import surfaces
from collidecli.engine.distances.points import point_kernel
from collidecli.engine.distances.queries import copy_distances, least_of_contacts, mark_apart
from collidecli.engine.distances.rays import ray_kernel
from collidecli.engine.geometry.distance_rows import fill_rows_of_mesh
from collidecli.engine.geometry.mesh_clearance import measure_grid
from collidecli.engine.hydroelastic.pairs import prepare_pairs
from collidecli.engine.hydroelastic.polytopes import clip_cells
from collidecli.engine.hydroelastic.stage import write_body_poses
from collidecli.engine.hydroelastic.voxel_blocks import voxel_kernels
from collidecli.engine.hydroelastic.voxel_surface import cut_voxels
from collidecli.engine.narrowphase.collider_factory import WITH_EPA, collider
from collidecli.engine.narrowphase.field_collider import SDF
from collidecli.engine.narrowphase.sub_pairs import copy_sub_pairs
from collidecli.engine.narrowphase.touch_sub_pairs import list_undecided
from collidecli.engine.narrowphase.triangles.convex_colliders import (
    HEIGHTFIELD,
    MESH,
    triangle_sub_pairs,
    triangle_touches,
)
from collidecli.engine.narrowphase.triangles.heightfield_colliders import (
    MESH_HEIGHTFIELD,
    name_solid_features,
)
from collidecli.engine.narrowphase.triangles.mesh_mesh import MESHES
from collidecli.engine.narrowphase.triangles.touching_surfaces import surfaces_kernel
from collidecli.engine.ordered_contacts import CONTACT_ROWS, count_cells
from collidecli.engine.particles import (
    self_contacts,
    self_sweep,
    soft_contacts,
    swept_element_kernels,
    swept_point_kernels,
)
from collidecli.engine.particles.shape_tree import fit_boxes
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.reduction import reduce_contacts
from collidecli.scene.shape_types import ShapeType
from tests.gpu.kernel_budget import (
    MEANING,
    OF_CODE,
    OF_PTX,
    excess,
    measure,
    numbers_of_code,
    numbers_of_ptx,
    numbers_of_ptxas,
    read_budget,
    tool_versions,
)

pytestmark = pytest.mark.rest

ARCHITECTURE = 90
KERNELS = {
    "fit_boxes": fit_boxes,
    "write_candidates": soft_contacts.SoftContacts.traversal[1],
    **{f"sample_{family}": one for family, one in soft_contacts.SAMPLERS.items()},
    **{f"sweep_points_past_{family}": one for family, one in swept_point_kernels.SWEEPERS.items()},
    **{
        f"sweep_elements_past_{family}": one
        for family, one in swept_element_kernels.SWEEPERS.items()
    },
    **{f"minimize_{family}": one for family, one in soft_contacts.MINIMIZERS.items()},
    "compact_soft": next(iter(soft_contacts.SOFT_ROWS.values())).kernel,
    "fit_element_boxes": self_contacts.fit_element_boxes,
    "write_self_contacts": self_contacts.FIND_SELF_CONTACTS[1],
    "write_self_columns": next(iter(self_contacts.SELF_CONTACT_ROWS.values())).kernel,
    "write_self_steps": self_sweep.FIND_SELF_STEPS[1],
    "sweep_self_steps": self_sweep.sweep_self_steps,
    "write_self_touches": next(iter(self_sweep.SELF_SWEEP_ROWS.values())).kernel,
    "transform_shapes": transform_shapes,
    "bound_blocks": bound_blocks,
    "test_lanes": lane_tests.test_lanes,
    "count_lanes": count_lanes,
    "write_lanes": write_lanes,
    "count_cells": count_cells,
    "count_touching": count_touching,
    "mark_touching": touching_pairs.mark_touching,
    "list_touching": touching_pairs.TOUCH_ROWS.kernel,
    "list_candidates": candidate_rows.CANDIDATE_ROWS.kernel,
    "end_cells": candidate_rows.end_cells,
    "test_pairs": explicit.test_pairs,
    "test_all": all_pairs.test_all,
    "write_entries": sweep_and_prune.write_entries,
    "sweep": sweep_and_prune.sweep,
    "test_unswept": sweep_and_prune.test_unswept,
    "compact": next(iter(CONTACT_ROWS.values())).kernel,
    "reduce_contacts": reduce_contacts,
    "capsule_capsule": collider(ShapeType.CAPSULE, ShapeType.CAPSULE, "gjk").kernel,
    "fill_rows_of_mesh": fill_rows_of_mesh,
    "settle_of_mesh": collider(ShapeType.BOX, ShapeType.MESH, "gjk").region_depths,
    "settle_of_hull_in_field": (
        collider(ShapeType.CONVEX_MESH, ShapeType.HEIGHTFIELD, "gjk").region_depths
    ),
    "find_of_sdf": SDF.search,
    "sdf": collider(ShapeType.BOX, ShapeType.BOX, "gjk", has_field=True).kernel,
    "join_sdf": SDF.merge,
    "plane_hull": collider(ShapeType.PLANE, ShapeType.CONVEX_MESH, "gjk").kernel,
    "hulls": collider(ShapeType.CONVEX_MESH, ShapeType.CONVEX_MESH, "gjk").kernel,
    "find_on_mesh": triangle_sub_pairs(MESH).search,
    "copy_sub_pairs": copy_sub_pairs,
    "merge_triangles": triangle_sub_pairs(MESH).merge,
    "convex_triangles": collider(ShapeType.BOX, ShapeType.MESH, "gjk").kernel,
    "measure_grid": measure_grid,
    "find_on_meshes": MESHES.search,
    "meshes": collider(ShapeType.MESH, ShapeType.MESH, "gjk").kernel,
    "merge_surfaces": MESHES.merge,
    "find_on_heightfield": triangle_sub_pairs(HEIGHTFIELD).search,
    "find_on_ground": MESH_HEIGHTFIELD.search,
    "deepen_meshes": MESHES.overlap,
    "deepen_meshes_by_lanes": MESHES.lane_overlap,
    "deepen_on_ground": MESH_HEIGHTFIELD.overlap,
    "name_solid_features": name_solid_features,
    "ground": collider(ShapeType.MESH, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "sphere_field": collider(ShapeType.SPHERE, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "convex_field": collider(ShapeType.CAPSULE, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "hull_field": collider(ShapeType.CONVEX_MESH, ShapeType.HEIGHTFIELD, "gjk").kernel,
    "convex": collider(ShapeType.CYLINDER, ShapeType.ELLIPSOID, "gjk").kernel,
    "touch": collider(ShapeType.CYLINDER, ShapeType.ELLIPSOID, "touch").kernel,
    "touch_hulls": collider(ShapeType.CONVEX_MESH, ShapeType.CONVEX_MESH, "touch").kernel,
    "touch_on_mesh": triangle_touches(MESH, primitive_of),
    "touch_hull_on_field": triangle_touches(HEIGHTFIELD, hull_of),
    "touch_of_meshes": surfaces_kernel(),
    "list_undecided": list_undecided,
    "prepare_pairs": prepare_pairs,
    "pose_configurations": pose_configurations,
    "write_body_poses": write_body_poses,
    "clip_cells": clip_cells,
    "cut_voxels": cut_voxels,
    "sample_corners": voxel_kernels(True, True).sample_corners,
    "least_of_contacts": least_of_contacts,
    "mark_apart": mark_apart,
    "copy_distances": copy_distances,
    "measure_points": point_kernel(True),
    "cast_rays": ray_kernel(True),
    "nearest_of_plane": surfaces.nearest_of_plane,
    "nearest_of_convex": surfaces.KERNELS["convex"],
    "nearest_of_hull": surfaces.KERNELS["hull"],
    "nearest_of_surfaces": surfaces.nearest_of_surfaces,
}

HEAVY = {
    *(
        "touch",
        "touch_hulls",
        "touch_on_mesh",
        "touch_hull_on_field",
        "test_pairs",
        "test_all",
        "test_unswept",
    ),
    *("find_on_mesh", "find_on_heightfield", "sphere_field", "hulls", "convex", "reduce_contacts"),
    *(
        "convex_triangles",
        "find_on_meshes",
        "find_of_sdf",
        "sdf",
        "meshes",
        "convex_field",
        "hull_field",
    ),
    *("find_on_ground", "ground", "deepen_meshes", "deepen_on_ground", "settle_of_mesh"),
    "deepen_meshes_by_lanes",
    *(
        "settle_of_hull_in_field",
        "cut_voxels",
        "sample_corners",
        "nearest_of_convex",
        "nearest_of_hull",
    ),
    *(
        "minimize_primitives",
        "minimize_hulls",
        "minimize_meshes",
        "minimize_heightfields",
        "sample_polygons",
    ),
    *(
        "sample_heightfields",
        "sample_primitives",
        "write_self_columns",
        "nearest_of_surfaces",
        "touch_of_meshes",
    ),
    *("compact_soft", *(name for name in KERNELS if "_past_" in name)),
}
"""Take a core two seconds to half a minute each: `make test-slow`."""


@pytest.mark.share(4, 4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in HEAVY)) for name in KERNELS]
)
def test_kernel_compiles_for_cuda(name, tmp_path, monkeypatch):
    find_device("cpu")
    monkeypatch.setattr(wp.config, "optimization_level", 0)  # whether it compiles, not how well
    if not wp.get_cuda_supported_archs():
        pytest.skip("this build of Warp has no CUDA compiler")
    built = wp.compile_aot_module(
        KERNELS[name].module, arch=ARCHITECTURE, module_dir=tmp_path, use_ptx=True
    )
    assert any(path.stat().st_size > 0 for path in built)


# Registers, stack, spills, code, share of float64, local arrays and by-value arguments of kernels stay within
# tests/gpu/kernel_budget.json.

LIGHT = {"capsule_capsule", "compact", "count_lanes", "measure_grid", "sweep"}
"""Take half a second of a core each to compile, the others up to two minutes: `make test-slow`."""

PTX = """
.func  (.param .align 8 .b8 func_retval0[72]) _deep(
	.param .align 8 .b8 _deep_param_0[176],
	.param .b64 _deep_param_1
)
{
	.local .align 8 .b8 	__local_depot0[800];
}
.visible .entry kernel(
	.param .align 8 .b8 kernel_param_0[1064]
)
{
	.local .align 8 .b8 	__local_depot1[96];
}
"""
LISTING = """
	.section	.text.kernel,"ax",@progbits
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   MUFU.RCP64H R5, R3 ;
.L_x_1:
        /*0020*/              @!P0 DADD R2, R4, -R6 ;
        /*0030*/               @P1 BRA `(.L_x_1) ;
        /*0040*/             @!UP2 UMOV UR4, 0x1 ;
        /*0050*/                   I2F.U64.RP R2, R4 ;
        /*0060*/                   F2F.F32.F64 R2, R4 ;
        /*10070*/                  DSETP.GT.AND P0, PT, R2, R4, PT ;
        /*10080*/                  LDG.E.64 R2, desc[UR4][R2.64] ;
        /*10090*/                  NOP ;
"""
REPORT = """ptxas info    : Compiling entry function 'kernel' for 'sm_90'
ptxas info    : Function properties for kernel
    896 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 52 registers, used 0 barriers, 1024 bytes cumulative stack size
ptxas info    : Function properties for deep
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
"""


def test_numbers_are_read_from_ptx():
    assert numbers_of_ptx(PTX) == {"local": 800, "argument": 176}


def test_numbers_are_read_from_ptxas():
    assert numbers_of_ptxas(REPORT) == {
        "registers": 52,
        "stack": 1024,
        "spill_stores": 20,
        "spill_loads": 28,
    }


def test_numbers_are_read_from_nvdisasm():
    """Four of the ten instructions are of float64: a reciprocal's start, a sum, a conversion, a
    comparison; conversions of integers and loads of 64 bits are not."""
    assert numbers_of_code(LISTING) == {"code": 160, "float64": 400}
    with pytest.raises(RuntimeError, match="no instructions"):
        numbers_of_code("nvdisasm info: nothing")


def test_registers_of_general_convex_colliders_are_limited():
    budget = read_budget()["kernels"]
    general = ("convex", "hulls", "touch", "touch_hulls")
    assert {budget[name]["registers"] for name in general} == {WITH_EPA.registers}
    assert all(budget[name]["stack"] < 27_000 for name in general)
    assert budget["convex"]["code"] < 1_400_000


def test_each_kernel_has_a_budget():
    budget = read_budget()["kernels"]
    assert set(budget) == set(KERNELS)
    assert all(set(numbers) == set(MEANING) for numbers in budget.values())


def test_a_larger_number_is_named_with_how_to_renew_the_budget():
    budget = dict.fromkeys(MEANING, 10)
    assert excess("sweep", budget, budget) == []
    (line,) = excess("sweep", budget | {"stack": 11}, budget)
    assert line.startswith("kernel sweep: stack is 11, its budget 10")
    assert "make kernel-budget" in line


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(LIGHT, id="light"),
        pytest.param(set(KERNELS) - LIGHT, id="heavy", marks=pytest.mark.slow),
    ],
)
def test_kernels_are_within_their_budget(names):
    find_device("cpu")
    if not wp.get_cuda_supported_archs():
        pytest.skip("this build of Warp has no CUDA compiler")
    budget = read_budget()
    versions = tool_versions()
    if versions["warp"] != budget["warp"]:
        pytest.skip(
            f"the budget was measured with Warp {budget['warp']}, here is {versions['warp']}"
        )
    is_whole = versions["ptxas"] == budget["ptxas"]  # which decides on the code
    found = dict(measure(sorted(names), is_whole))
    assert set(found) == names
    expected = set(OF_PTX) if not is_whole else set(MEANING)
    if versions["nvdisasm"] == "none":
        expected -= set(OF_CODE)
    assert all(set(numbers) == expected for numbers in found.values())
    too_large = [
        line
        for name in sorted(names)
        for line in excess(name, found[name], budget["kernels"][name])
    ]
    assert not too_large, "\n".join(too_large)
    if not is_whole:
        pytest.skip(
            f"ptxas: {versions['ptxas']}, of the budget {budget['ptxas']}; only"
            f" {' and '.join(OF_PTX)} compared"
        )
