"""Sizes of the buffers that a motion takes in physics engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from collidecli.analysis.buffer_counts import BufferCounts
from collidecli.analysis.buffer_settings import ConstraintRows, SceneFacts, sizes_dict
from collidecli.engine.chunk_sizes import default_memory_limit
from collidecli.engine.pipeline_build import build_pipeline
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.scheduler import Workers, batch_size, engine_memory, worker_count
from collidecli.errors import InputError
from collidecli.importers.mujoco.constraint_rows import constraint_rows
from collidecli.motions.collision import (
    WaitingPoses,
    pose_batches,
    reduced_by_bodies,
    sample_poses,
    within_episodes,
)
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.timing import TimingReport
from collidecli.scene.allowed_pairs import pair_range
from collidecli.scene.motion import Motion
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.field_cache import FieldCache
from collidecli.verbs.profile.engine_broad_phases import EngineBroadPhases
from collidecli.verbs.profile.request import ProfileRequest
from collidecli.verbs.profile.triangles import TriangleCounts


def buffer_sizes(
    device: wp.Device,
    request: ProfileRequest,
    scene: LoadedScene,
    motion: Motion,
    fields: FieldCache,
) -> dict[str, Any] | None:
    """The entry `sizes` of a profile: one more pass, in which the candidates of each cell are
    counted. None if they are not requested."""
    if not request.sizes:
        return None
    if found := request.contact.finds_pairs_alone:
        option = f"--{found.replace('_', '-')}"
        raise InputError("--sizes counts contacts", option, "leave it out, or give no --sizes")
    model = scene.model
    samples = cache(partial(sample_poses, motion))
    with scene.named():
        built, _ = build_pipeline(
            model, request.contact, request.engine, device, samples, motion.float_type, fields
        )
    pipeline = replace(built, counts_cells=True)
    cells = len(motion.time) * model.world_count
    threads = worker_count(request.engine.threads, has_own_memory(device))
    batch = batch_size(pipeline, cells, threads, request.engine.chunk_cells)
    limit = request.engine.memory_limit or default_memory_limit()
    shapes = model.shapes
    labels = [ShapeType(int(kind)).label for kind in shapes.type]
    counts = BufferCounts(shapes.path, labels, model.world_count)
    triangles = TriangleCounts(pipeline.device_model.model)
    others = EngineBroadPhases(pipeline.device_model.model)
    with Workers(pipeline, threads, engine_memory(limit, device)) as pool:
        batches = pose_batches(motion, model, batch, TimingReport())
        waiting = WaitingPoses(batches, wanted=True)
        results = within_episodes(pool.collide(waiting.kept, cells), motion, model.world_count)
        for block, report in reduced_by_bodies(results, model, request.contact, waiting):
            counts.add(block)
            if report.cell_candidates is not None:
                counts.add_candidates(block.first_cell, report.cell_candidates)
            cell_count = len(block.cell_counts)
            triangles.begin(block.first_cell, cell_count)
            for cell, row, placed, pairs in others.add(
                block.first_cell, cell_count, waiting.of(block)
            ):
                triangles.add_pairs(cell[row], row, placed, pairs)
            triangles.end()
    facts = _scene_facts(request, scene, others, triangles)
    facts = replace(facts, groups=tuple(group.name for group in pipeline.groups))
    applied = request.contact.apply(model)
    gap = pair_range(applied.shapes.gap, applied.shapes.body, applied.forced_gap, applied.gap_rule)
    sizes = sizes_dict(counts, facts, request.size_margin, gap)
    if triangles.has_meshes and facts.triangles is not None:
        return {**sizes, "triangles": triangles.as_dict()}
    return sizes


def _scene_facts(
    request: ProfileRequest,
    scene: LoadedScene,
    others: EngineBroadPhases,
    triangles: TriangleCounts,
) -> SceneFacts:
    """What settings need besides contacts, without the groups. others, triangles: of all cells."""
    is_counted = not others.left_out
    types = scene.model.shapes.type
    return SceneFacts(
        broad_phases=others.peaks if is_counted else None,
        no_broad_phases=others.left_out,
        meshes=int((types == ShapeType.MESH).sum()),
        moving_meshes=_moving_meshes(scene),
        heightfields=bool((types == ShapeType.HEIGHTFIELD).any()),
        rows=_rows(request.scenes),
        triangles=triangles.peaks if is_counted else None,
    )


def _moving_meshes(scene: LoadedScene) -> tuple[str, ...]:
    """Paths of the triangle meshes on bodies that have no distance field."""
    shapes = scene.model.shapes
    is_moving = (shapes.type == ShapeType.MESH) & (shapes.body >= 0) & (shapes.sdf < 0)
    return tuple(shapes.path[row] for row in np.flatnonzero(is_moving).tolist())


def _rows(scenes: Sequence[str]) -> ConstraintRows | None:
    """The greatest rows of all scenes; None if one of them is not in MJCF."""
    if not scenes or any(Path(scene).suffix.lower() != ".xml" for scene in scenes):
        return None
    found = [constraint_rows(scene) for scene in scenes]
    rows = [one for one in found if one is not None]
    if len(rows) < len(found):
        return None
    return ConstraintRows(max(one[0] for one in rows), max(one[1] for one in rows))
