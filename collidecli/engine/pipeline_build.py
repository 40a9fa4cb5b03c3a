"""Construction of a pipeline from a model and a sample of its motion.

It uploads the model, chooses the broad phase, selects the pair colliders and compiles the
kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.broadphase.choice import (
    ENUMERATED_SHAPES,
    BroadPhaseChoice,
    choose_broad_phase,
    new_broad_phase,
)
from collidecli.engine.cells import POSED_SHAPES
from collidecli.engine.device_model import DeviceModel, kinds_of, type_of_kind, upload_model
from collidecli.engine.narrowphase.collider_factory import needed_colliders
from collidecli.engine.narrowphase.narrow_phase import NarrowPhase
from collidecli.engine.option_warnings import no_effect_notes
from collidecli.engine.pipeline import ALWAYS, CollisionPipeline
from collidecli.engine.runtime.device_stream import has_own_memory, keep_freed_memory, uploading
from collidecli.engine.runtime.kernel_loader import begin_loading, load_kernels
from collidecli.engine.runtime.warp_start import initialize, one_at_a_time
from collidecli.engine.runtime.workspace import load_launched, queue_kernels
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.distinct_values import distinct
from collidecli.scene.hydroelastic import HydroShapes, hydro_shapes
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions

if TYPE_CHECKING:
    from collidecli.engine.geometry.sdf_construction import FieldStore
    from collidecli.engine.group_stage import GroupStage
    from collidecli.engine.hydroelastic.stage import HydroStage
    from collidecli.engine.reduction import Reduction


def find_device(name: str) -> wp.Device:
    """The device `name`, "cpu" if that is empty. Raises InputError if there is none."""
    initialize()
    try:
        device = wp.get_device("cuda:0" if name == "cuda" else name or "cpu")
    except (ValueError, RuntimeError) as error:
        known = ", ".join(device.alias for device in wp.get_devices())
        raise InputError(
            f"there is no device '{name}'", "--device", f"this machine has: {known}"
        ) from error
    if has_own_memory(device):
        keep_freed_memory(device)
    return device


def load_ahead(device: wp.Device) -> None:
    """Starts to compile and load the kernels of every run on the CPU, whose cores are idle while a
    scene is read."""
    if not has_own_memory(device):
        begin_loading([*queue_kernels(device), *ALWAYS], device)


def _listed_pairs(device_model: DeviceModel, options: EngineOptions) -> list[np.ndarray] | None:
    """The pairs of each template that may touch; None of wide templates where no option needs
    them listed."""
    is_needed = options.broad_phase == "explicit" or options.pipeline == "standard"
    if device_model.layout.width > ENUMERATED_SHAPES and not is_needed:
        return None
    return [allowed_pairs(device_model.model, t) for t in range(device_model.template_count)]


def _first_kernels(pipeline: CollisionPipeline) -> list[wp.Kernel]:
    """The kernels that a pipeline loads before its first chunk.

    Colliders, last in the list of all, compile longest: they are first here, so that no core is
    idle at the end.
    """
    later = (
        [
            collider.kernel
            for collider in pipeline.narrow_phase.table.colliders
            if collider.sub_pair_kernels is None
        ]
        if pipeline.on_demand
        else []
    )
    return [kernel for kernel in pipeline.kernels()[::-1] if kernel not in later]


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
        sample_poses: returns float64[samples, recorded worlds, B, 7], pairs of consecutive frames
            of the motion.
        float_type: of the witness points, float32 or float64.
        store: cache of signed distance fields between runs.
        on_demand: kernels of single colliders are compiled when the pipeline first needs them; on
            the CPU only.
    """
    with uploading(device):
        device_model = upload_model(contact_options.apply(model), device)
        begin = time.perf_counter()
        template_pairs = _listed_pairs(device_model, options)
        listing_seconds = time.perf_counter() - begin
        pair_counts = None if template_pairs is None else [len(pairs) for pairs in template_pairs]
        choice = choose_broad_phase(model, options, pair_counts)
        hydro = hydro_shapes(device_model.model, contact_options)
        method = "touch" if contact_options.touch_only else contact_options.narrow_phase
        no_narrow_phase = contact_options.candidates_only
        kind_pairs = set() if no_narrow_phase else _kind_pairs(device_model, template_pairs, hydro)
        table = needed_colliders(kind_pairs, method, device)
        pipeline = CollisionPipeline(
            device_model,
            new_broad_phase(choice.name, device_model, template_pairs, sample_poses),
            NarrowPhase.of(device_model, table, store, _most_contacts(contact_options)),
            np.dtype(float_type),
            _reduction(contact_options, kind_pairs, device),
            _hydro_stage(hydro, device_model, contact_options),
            (*no_effect_notes(device_model.model, contact_options, hydro), *hydro.notes),
            _group_stages(device_model, contact_options, sample_poses, float_type, store),
            on_demand and not no_narrow_phase and not has_own_memory(device),
            contact_options.touch_only,
            listing_seconds,
            candidates_only=no_narrow_phase,
        )
    load_kernels(_first_kernels(pipeline), device)
    with uploading(device):
        pipeline.narrow_phase.measure_surfaces()
    return pipeline, choice


def _group_stages(
    device_model: DeviceModel,
    options: ContactOptions,
    sample_poses: Callable[[], np.ndarray],
    float_type: np.dtype,
    store: FieldStore | None,
) -> tuple[GroupStage, ...]:
    """The stages of the groups that the model and the options have; none with candidates alone."""
    stages: list[GroupStage] = []
    if len(device_model.model.particles) and not options.candidates_only:
        from collidecli.engine.particles.nearest_contacts import NearestSoftContacts
        from collidecli.engine.particles.soft_contacts import soft_contacts_of

        poses = sample_poses()
        with_elements = options.soft_elements != "vertices"
        soft = soft_contacts_of(
            device_model, options.soft_gap, with_elements, poses[len(poses) // 2], float_type
        )
        if options.soft_elements == "nearest":
            owner = device_model.model.particles.owner
            stages.append(NearestSoftContacts(soft, owner))
        else:
            stages.append(soft)
        if options.self_contacts:
            from collidecli.engine.particles.self_contacts import SelfContacts

            stages.append(SelfContacts(device_model, _self_limits(options), float_type))
    swept = (
        sweep_stages(device_model, options, options.sweep_tolerance, float_type, store)
        if options.sweep
        else ()
    )
    return (*stages, *swept)


def sweep_stages(
    device_model: DeviceModel,
    options: ContactOptions,
    tolerance: float,
    float_type: np.dtype,
    store: FieldStore | None = None,
) -> tuple[GroupStage, ...]:
    """The stages of contacts between frames: of shapes, of particles and triangles with shapes, and
    with `self_contacts` of cloths and soft bodies with themselves.

    tolerance: they touch at this distance or less [m]. store: cache of signed distance fields.
    """
    from collidecli.engine.sweep.stage import sweep_stage

    shapes = sweep_stage(device_model, tolerance, float_type, store)
    if not len(device_model.model.particles):
        return (shapes,)
    from collidecli.engine.sweep.soft_stages import point_sweep_stage

    points = point_sweep_stage(device_model, shapes)
    if not options.self_contacts:
        return shapes, points
    from collidecli.engine.particles.self_sweep import SelfSweepStage

    return (
        shapes,
        points,
        SelfSweepStage(device_model, _self_limits(options), float_type, tolerance),
    )


@one_at_a_time
def load_stages(stages: Sequence[GroupStage], device: wp.Device) -> None:
    """Compiles and loads the kernels with which `rows_within` finds the rows of stages without a
    pipeline."""
    load_launched(
        [*POSED_SHAPES, *(kernel for stage in stages for kernel in stage.kernels())], device
    )


def _self_limits(options: ContactOptions) -> tuple[float, int, float]:
    return options.self_contacts, options.self_contact_rings, options.rest_distance


def _most_contacts(options: ContactOptions) -> int:
    """Contacts of a pair of shapes; those of a pair of bodies are limited after their
    reduction."""
    return 0 if options.reduces_bodies else options.max_contacts_per_pair


def _reduction(
    options: ContactOptions, kind_pairs: set[tuple[int, int]], device: wp.Device
) -> Reduction | None:
    if not options.reduce_contacts or options.reduces_bodies:
        return None
    from collidecli.engine.reduction import reduction_of

    type_pairs = {(int(type_of_kind(a)), int(type_of_kind(b))) for a, b in kind_pairs}
    return reduction_of(options, type_pairs, device)


def _hydro_stage(
    hydro: HydroShapes, device_model: DeviceModel, options: ContactOptions
) -> HydroStage | None:
    if not hydro.has_pairs and not options.hydro_reduce:
        return None
    from collidecli.engine.hydroelastic.stage import hydro_stage

    return hydro_stage(device_model, hydro, options)


def _kind_pairs(
    device_model: DeviceModel, template_pairs: list[np.ndarray] | None, hydro: HydroShapes
) -> set[tuple[int, int]]:
    """Pairs of kinds of shapes that may touch, other than hydroelastic pairs.

    Without lists of pairs, those that the filter classes allow.
    """
    model = device_model.model
    kinds = kinds_of(model)
    pair_filter = model.pair_filter
    if template_pairs is not None:
        used = np.concatenate([kinds[pairs[~hydro.is_pair(pairs)]] for pairs in template_pairs])
    else:
        used = distinct(np.stack([pair_filter.shape_class, kinds], axis=1), axis=0)
        may = pair_filter.class_table[used[:, None, 0], used[None, :, 0]]
        first, second = np.nonzero(may)
        used = np.concatenate(
            [np.stack([used[first, 1], used[second, 1]], axis=1), kinds[pair_filter.forced]]
        )
    width = int(kinds.max(initial=0)) + 1
    present = np.flatnonzero(
        np.bincount(used[:, 0] * width + used[:, 1])
    )  # `unique` would import masked arrays
    return {divmod(int(pair), width) for pair in present}
