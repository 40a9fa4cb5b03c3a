"""Construction of a pipeline from a model and a sample of its motion.

It uploads the model, chooses the broad phase, selects the pair colliders and compiles the kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from collidecli.engine.broadphase.explicit import explicit
from collidecli.engine.device_model import DeviceModel, kinds_of, type_of_kind, upload_model
from collidecli.engine.narrowphase.collider import ColliderTable
from collidecli.engine.narrowphase.dispatch import needed_colliders
from collidecli.engine.pipeline import ALWAYS, BroadPhase, CollisionPipeline, GroupStage
from collidecli.engine.runtime.compilation import begin_loading, load_kernels
from collidecli.engine.runtime.device_stream import has_own_memory, keep_freed_memory
from collidecli.engine.runtime.initialization import initialize, one_at_a_time
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.sample_bounds import blocks_of_motion, sample_bounds, world_offset
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.hydroelastic import HydroShapes, hydro_shapes
from collidecli.scene.model import Model
from collidecli.scene.option_notes import no_effect_notes
from collidecli.scene.run_options import ContactOptions, EngineOptions
from collidecli.scene.text_format import plural

if TYPE_CHECKING:  # imported where a scene needs them: defining their kernels takes time
    from collidecli.engine.contacts.reduction import Reduction
    from collidecli.engine.geometry.signed_distance.build import FieldStore
    from collidecli.engine.geometry.signed_distance.grid import SdfGrid
    from collidecli.engine.hydroelastic.stage import HydroStage

ENUMERATED_SHAPES = 3000
"""Templates with more shapes have no list of their pairs, except for broad phase explicit; lists take 36 MB at most."""
SWEEP_PAIRS_PER_SHAPE = 600
"""Allowed pairs per shape above which auto chooses sap; measured, see docs/explanation/performance.md."""

SAMPLED_PAIRS = 2000
"""Lists of pairs from this length on are tested in blocks of as many frames as the motion suggests; shorter ones,
such as a humanoid's, need no sample of the motion, which is read before the first frame. The number is not measured."""


@dataclass(frozen=True)
class BroadPhaseChoice:
    """Name of the chosen broad phase, and the reason."""

    name: str
    reason: str


def find_device(name: str) -> wp.Device:
    """The device `name`, "cpu" if that is empty. Raises InputError if there is none."""
    initialize()
    try:
        device = wp.get_device("cuda:0" if name == "cuda" else name or "cpu")
    except (ValueError, RuntimeError) as error:
        known = ", ".join(device.alias for device in wp.get_devices())
        raise InputError(f"there is no device '{name}'", "--device", f"this machine has: {known}") from error
    if has_own_memory(device):
        keep_freed_memory(device)
    return device


def load_ahead(device: wp.Device) -> None:
    """Starts to compile and load the kernels of every run on the CPU, whose cores are idle while a scene is read."""
    if not has_own_memory(device):
        begin_loading([execute_steps, *ALWAYS], device)


def choose_broad_phase(model: Model, options: EngineOptions, pair_counts: list[int] | None) -> BroadPhaseChoice:
    """The broad phase by the options; `auto` compares the allowed pairs with the shapes of the largest template."""
    if options.pipeline == "standard":
        return BroadPhaseChoice("explicit", "the standard pipeline works on explicit pairs")
    if options.broad_phase != "auto":
        return BroadPhaseChoice(options.broad_phase, "requested")
    widest = max(len(model.template_shapes(t)) for t in range(int(model.world_template.max()) + 1))
    if pair_counts is None:
        return BroadPhaseChoice("sap", f"{plural(widest, 'shape')} are too many to list their pairs")
    pairs = max(pair_counts)
    if pairs > SWEEP_PAIRS_PER_SHAPE * widest:
        return BroadPhaseChoice(
            "sap",
            f"{plural(widest, 'shape')} have {plural(pairs, 'allowed pair')}, over {SWEEP_PAIRS_PER_SHAPE} each",
        )
    return BroadPhaseChoice("explicit", f"the filters leave {plural(pairs, 'pair')} of {plural(widest, 'shape')}")


@one_at_a_time
def build_pipeline(
    model: Model,
    contact_options: ContactOptions,
    options: EngineOptions,
    device: wp.Device,
    sample_poses: Callable[[], np.ndarray],
    float_type: np.dtype,
    store: FieldStore | None = None,
    on_demand: bool = False,
) -> tuple[CollisionPipeline, BroadPhaseChoice]:
    """A pipeline for `model`, with kernels compiled and loaded, and the choice of its broad phase.

    Args:
        sample_poses: returns float64[samples, recorded worlds, B, 7], pairs of consecutive frames of the motion; called
            for the parameters of broad phases alone.
        float_type: of the witness points, float32 or float64.
        store: cache of signed distance fields between runs.
        on_demand: kernels of single colliders are compiled when the pipeline first needs them; on the CPU only.
    """
    device_model = upload_model(contact_options.apply(model), device)
    widest = device_model.layout.width
    wanted = options.broad_phase == "explicit" or options.pipeline == "standard"
    template_pairs = None
    if widest <= ENUMERATED_SHAPES or wanted:
        template_pairs = [allowed_pairs(device_model.model, t) for t in range(device_model.template_count)]
    choice = choose_broad_phase(model, options, template_pairs and [len(p) for p in template_pairs])
    hydro = hydro_shapes(device_model.model, contact_options)
    method = "touch" if contact_options.touch_only else contact_options.narrow_phase
    kind_pairs = _kind_pairs(device_model, template_pairs, hydro)
    table = needed_colliders(kind_pairs, method, device)
    surfaces, field_seconds = upload_surfaces(device_model, table, store)
    pipeline = CollisionPipeline(
        device_model,
        _broad_phase(choice.name, device_model, template_pairs, sample_poses),
        table,
        np.dtype(float_type),
        contact_options.max_contacts_per_pair,
        _reduction(contact_options, kind_pairs, device),
        surfaces,
        field_seconds,
        _hydro_stage(hydro, device_model, contact_options),
        (*no_effect_notes(device_model.model, contact_options, hydro), *hydro.notes),
        _group_stages(device_model, contact_options, sample_poses, float_type),
        on_demand and not has_own_memory(device),
        contact_options.touch_only,
    )
    # Colliders, last in the list, compile longest: they start first, so that no core is idle at the end.
    later = [each.kernel for each in table.colliders if each.sub_pair_kernels is None] if pipeline.on_demand else []
    load_kernels([kernel for kernel in pipeline.kernels()[::-1] if kernel not in later], device)
    measure_surfaces(surfaces, device_model)
    return pipeline, choice


def _group_stages(
    device_model: DeviceModel,
    options: ContactOptions,
    sample_poses: Callable[[], np.ndarray],
    float_type: np.dtype,
) -> tuple[GroupStage, ...]:
    """The stages of the groups that the model and the options have."""
    if not len(device_model.model.particles):
        return ()
    from collidecli.engine.particles.soft_contacts import soft_contacts_of

    poses = sample_poses()
    with_elements = options.soft_elements == "all"
    soft = soft_contacts_of(device_model, options.soft_gap, with_elements, poses[len(poses) // 2], float_type)
    if not options.self_contacts:
        return (soft,)
    from collidecli.engine.particles.self_contacts import self_contacts_of

    limits = options.self_contacts, options.self_contact_rings, options.rest_distance
    own = self_contacts_of(device_model, *limits, float_type)
    return soft, own


def _reduction(options: ContactOptions, kind_pairs: set[tuple[int, int]], device: wp.Device) -> Reduction | None:
    if not options.reduce_contacts:
        return None
    from collidecli.engine.contacts.reduction import reduction_of

    return reduction_of(options, types_of(kind_pairs), device)


def _hydro_stage(hydro: HydroShapes, device_model: DeviceModel, options: ContactOptions) -> HydroStage | None:
    if not hydro.has_pairs and not options.hydro_reduce:
        return None
    from collidecli.engine.hydroelastic.stage import hydro_stage

    return hydro_stage(device_model, hydro, options)


def upload_surfaces(
    device_model: DeviceModel, table: ColliderTable, store: FieldStore | None
) -> tuple[dict[str, Any], float]:
    """Further arguments of the colliders of sub-pairs, by name, and the time for signed distance fields [s].

    The clearance of meshes is not measured yet (`measure_surfaces`), since that needs kernels.
    """
    model, device = device_model.model, device_model.device
    surfaces: dict[str, Any] = dict.fromkeys(
        collider.sub_pair_kernels.surfaces for collider in table.colliders if collider.sub_pair_kernels
    )
    if surfaces.keys() & {"meshes", "measured_meshes", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.meshes import upload_meshes

        surfaces["meshes"] = upload_meshes(model.meshes, device)
    if surfaces.keys() & {"heightfields", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        surfaces["heightfields"] = upload_heightfields(model.heightfields, device)
    if surfaces.keys() & {"solids", "measured_solids"}:
        from collidecli.engine.narrowphase.triangles.heightfield_solid import upload_solids

        surfaces["solids"] = upload_solids(device_model)
    start = time.perf_counter()
    if "fields" in surfaces:
        surfaces["fields"] = _fields(device_model, store)
    return surfaces, time.perf_counter() - start


def measure_surfaces(surfaces: dict[str, Any], device_model: DeviceModel) -> None:
    """Sets the surfaces that contain meshes with their clearance; its kernel must be compiled."""
    if surfaces.keys() & {"measured_meshes", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.clearance import measure_clearance

        surfaces["measured_meshes"] = measure_clearance(
            surfaces["meshes"], device_model.model.meshes, device_model.device
        )
    if "measured_solids" in surfaces:
        from collidecli.engine.narrowphase.triangles.heightfield_solid import measured

        surfaces["measured_solids"] = measured(surfaces["solids"], device_model.device)
    if "meshes_and_heightfields" in surfaces:
        from collidecli.engine.narrowphase.triangles.heightfield_mesh import Surfaces

        both = surfaces["meshes_and_heightfields"] = Surfaces()
        both.meshes, both.heightfields = surfaces["measured_meshes"], surfaces["heightfields"]


def _fields(device_model: DeviceModel, store: FieldStore | None) -> wp.array:
    from collidecli.engine.geometry.signed_distance.build import field_of
    from collidecli.engine.narrowphase.sdf.fields import upload_fields

    model, device = device_model.model, device_model.device
    grids: dict[str, SdfGrid] = {}
    for number, shape in enumerate(model.sdfs):
        if shape.field_key not in grids:
            where = f"shape '{model.shapes.path[int(np.argmax(model.shapes.sdf == number))]}'"
            grids[shape.field_key] = field_of(shape, device, store, where)
    return upload_fields(model, device_model.rows, [grids[shape.field_key] for shape in model.sdfs], device)


def _broad_phase(
    name: str,
    device_model: DeviceModel,
    template_pairs: list[np.ndarray] | None,
    sample_poses: Callable[[], np.ndarray],
) -> BroadPhase:
    model = device_model.model
    if name == "nxn":
        from collidecli.engine.broadphase.all_pairs import AllPairs

        return AllPairs(device_model)
    if name == "explicit":
        assert template_pairs is not None
        if max(map(len, template_pairs)) < SAMPLED_PAIRS:
            return explicit(device_model, template_pairs)
        blocks = blocks_of_motion(model, *sample_bounds(device_model, sample_poses()), of_one_world=False)
        return explicit(device_model, template_pairs, blocks)
    from collidecli.engine.broadphase.sweep_and_prune import SweepAndPrune
    from collidecli.engine.broadphase.sweep_plan import plan_sweep

    samples = sample_poses()
    lower, upper = sample_bounds(device_model, samples)
    plan = plan_sweep(device_model, lower, upper, world_offset(model, samples), template_pairs)
    # Worlds that stand apart have no common boxes.
    return SweepAndPrune(device_model, plan, blocks_of_motion(model, lower, upper, of_one_world=True))


def types_of(kind_pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs of shape types among pairs of kinds."""
    return {(int(type_of_kind(a)), int(type_of_kind(b))) for a, b in kind_pairs}


def _kind_pairs(
    device_model: DeviceModel, template_pairs: list[np.ndarray] | None, hydro: HydroShapes
) -> set[tuple[int, int]]:
    """Pairs of kinds of shapes that may touch, other than hydroelastic pairs.

    Without lists of pairs, those that the filter classes allow.
    """
    model = device_model.model
    kinds, pair_filter = kinds_of(model), model.pair_filter
    if template_pairs is not None:
        used = np.concatenate([kinds[pairs[~hydro.is_pair(pairs)]] for pairs in template_pairs])
    else:
        used = np.unique(np.stack([pair_filter.shape_class, kinds], axis=1), axis=0)
        may = pair_filter.class_table[used[:, None, 0], used[None, :, 0]]
        first, second = np.nonzero(may)
        used = np.concatenate([np.stack([used[first, 1], used[second, 1]], axis=1), kinds[pair_filter.forced]])
    width = int(kinds.max(initial=0)) + 1
    present = np.flatnonzero(np.bincount(used[:, 0] * width + used[:, 1]))  # `unique` would import masked arrays
    return {divmod(int(pair), width) for pair in present}
