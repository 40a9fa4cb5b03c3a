"""The verb `run`: contact set and timing report of a scene in motion."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from collidecli.analysis.frame_texts import frames_text
from collidecli.analysis.totals import ContactCounts, GroupCounts, GroupTally, SweepCounts, Tally
from collidecli.analysis.touch_intervals import Names
from collidecli.engine.pipeline_build import find_device, load_ahead
from collidecli.errors import InputError
from collidecli.motions.adjacent_links import FlushLinks
from collidecli.motions.collision import Collision, contact_writer, prepare_collision
from collidecli.motions.columns import RunColumns, check_no_columns, run_columns
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.machine import peak_memory, processor_description, processor_name, versions
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scene_cache import SceneCache
from collidecli.motions.scenes import scene_in_motion
from collidecli.motions.search_warnings import search_warnings
from collidecli.motions.timing import Span, StageTime, TimingReport
from collidecli.motions.trace import write_trace
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import TRACE, check_output
from collidecli.results.result import PathLike, Progress, Result
from collidecli.scene.allowed_pairs import pair_range
from collidecli.scene.contact_columns import OF_STEPS, RIGID_COLUMNS, Column
from collidecli.scene.mixing import check_column_names
from collidecli.scene.model_source import SourceOfSet, model_name
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.option_values import CONTACT_FORMATS
from collidecli.scene.options import OPTION_GROUPS
from collidecli.storage.compiled_loops import begin_compiling
from collidecli.storage.input_files import hash_ahead
from collidecli.verbs.run.writer_thread import WriterThread, short_switch_interval
from collidecli.wording import did_you_mean

OF_A_RUN = ("worlds", "frames", "columns")
"""Options of a run in no group of options."""


@dataclass(frozen=True, kw_only=True)
class RunRequest(EngineRequest):
    """Scene, motion, options and output of a run. columns: names of the optional contact columns to
    write. format: major version of the contact set format.

    trace: file for a trace of threads, chunks and stages; "" is none.
    """

    output: str
    columns: Sequence[str] = ()
    compression: str = "gzip"
    format: int = CONTACT_FORMATS[0]
    force: bool = False
    trace: str = ""


@dataclass(frozen=True, kw_only=True)
class RunResult(ContactCounts, Result, schema="collide.run/1"):
    """Result of a run. Lengths [m], times [s].

    shapes, bodies: counts, of all templates. worlds, frames: counts. pair_gap, pair_margin: least
    and greatest gap and margin of two shapes of which one moves [m]. gap_rule: max or sum, of the
    gaps of a pair. candidates: pairs that the broad phase found, over all cells.
    false_positive_ratio: fraction of them without a contact; None if they are not tested. groups:
    counts of each table beside /rigid_contacts; None without them. sweep, soft_sweep, self_sweep:
    of contacts between frames, of shapes, of particles with shapes, and of cloths and soft bodies
    with themselves; None without them.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = (
        "trace",
        "groups",
        "sweep",
        "soft_sweep",
        "self_sweep",
        "triggers",
    )

    scene: str
    scene_sha256: str
    trajectory: str | None
    shapes: int
    templates: int
    bodies: int
    worlds: int
    frames: int
    device: str
    threads: int
    chunk_cells: int
    pair_gap: tuple[float, float]
    gap_rule: str
    pair_margin: tuple[float, float]
    broad_phase: str
    broad_phase_reason: str
    candidates: int
    false_positive_ratio: float | None
    stages: list[StageTime]
    wall_seconds: float
    frames_per_second: float
    peak_memory_bytes: int
    output: str
    content_sha256: str
    warnings: tuple[str, ...]
    trace: str | None = None
    groups: dict[str, GroupCounts] | None = None
    sweep: SweepCounts | None = None
    soft_sweep: SweepCounts | None = None
    self_sweep: SweepCounts | None = None


def run_request(
    scene: PathLike | Sequence[PathLike],
    trajectory: PathLike | None,
    folder: Path,
    output: Path,
    options: Mapping[str, Any],
) -> RunRequest:
    """The request of the corresponding `collide run`. folder: base of relative paths.

    options: by name of a field of RunRequest or of one of its option groups. Raises InputError for
    another name.
    """
    grouped: dict[str, dict[str, Any]] = {name: {} for name in OPTION_GROUPS}
    of_run: dict[str, Any] = {}
    of_group = {
        field.name: group for group, kind in OPTION_GROUPS.items() for field in fields(kind)
    }
    del of_group["motion_layer"]
    for name, value in options.items():
        if name in OF_A_RUN:
            of_run[name] = frames_text(value) if name == "frames" else value
        elif name in of_group:
            grouped[of_group[name]][name] = tuple(value) if isinstance(value, list) else value
        else:
            raise InputError(
                f"'{name}' is no option of a run",
                "options",
                did_you_mean(name, [*OF_A_RUN, *of_group]),
            )
    importing = grouped["scene_options"]
    for name in ("disabled_pairs", "pairs_file"):
        if importing.get(name):
            importing[name] = str(folder / importing[name])
    scenes = [scene] if isinstance(scene, (str, os.PathLike)) else scene
    groups: dict[str, Any] = {
        name: OPTION_GROUPS[name](**values) for name, values in grouped.items()
    }
    for name in ("contact", "engine"):
        groups[name] = groups[name].checked()
    return RunRequest(
        scenes=[str(folder / path) for path in scenes],
        trajectory=None if trajectory is None else str(folder / trajectory),
        output=str(output),
        force=True,
        **groups,
        **of_run,
    )


def run(
    request: RunRequest, progress: Progress = None, cache: SceneCache | None = None
) -> RunResult:
    """Computes and writes the contact set. Raises CollideError; then no output file is created or
    changed.

    cache: keeps the scene for the next run in this process.
    """
    timing = TimingReport()
    request.engine.checked()
    request.contact.checked()
    check_column_names(request.columns)
    check_no_columns(request.columns, request.contact)
    check_output(
        request.output,
        request.force,
        (*request.scenes, request.trajectory),
        HDF5_ENDINGS,
        "a contact set",
    )
    if request.trace:
        check_output(request.trace, request.force, (*request.scenes, request.trajectory), *TRACE)
    with timing.stage("load"):
        device = find_device(request.engine.device)
        load_ahead(device)
        begin_compiling()
        if request.trajectory:
            hash_ahead(request.trajectory)
        scene, motion = scene_in_motion(request, cache, by_frames=True)
    try:
        # a merge compares the names of demonstrations
        if scene.recording is not None and request.recording.demos:
            named = replace(request.recording, demos=scene.recording.demos(request.recording))
            request = replace(request, recording=named)
        if not scene.ignores_particles:  # the option then changes no contact
            request = replace(request, recording=replace(request.recording, ignore_particles=False))
        return _run(request, scene, motion, device, timing, progress, cache)
    finally:
        motion.close()


def _writer_options(
    request: RunRequest, collision: Collision, columns: Sequence[Column], optional: RunColumns
) -> dict[str, Any]:
    """Options of `contact_writer`."""
    return {
        "compression": request.compression,
        "force": request.force,
        "major": request.format,
        "threads": collision.writing_threads,
        "chunk_rows": collision.chunk_rows,
        "columns": columns,
        "groups": optional.groups(collision.pipeline.groups),
        "environment": run_environment(request, collision),
    }


def _run(
    request: RunRequest,
    scene: LoadedScene,
    motion: Motion,
    device,
    timing: TimingReport,
    progress: Progress,
    cache: SceneCache | None,
) -> RunResult:
    model = scene.model
    optional = run_columns(request.contact, model, motion, request.columns, device)
    columns = (*RIGID_COLUMNS, *optional.columns, *request.contact.columns)
    with scene.named():
        collision = prepare_collision(
            model, motion, request.contact, request.engine, device, timing, columns, cache
        )
    names = Names.of(model.shapes.path, model.shapes.template)
    tally = Tally(names, model.shapes.is_trigger)
    group_tally = GroupTally()
    flush = FlushLinks(scene, len(motion.time) * model.world_count)
    written = collision.pipeline.device_model.model
    config = json.dumps(result_config(request), sort_keys=True)
    options = _writer_options(request, collision, columns, optional)
    source = SourceOfSet.of(scene.name, scene.sha256, scene.model)
    start = time.perf_counter()
    with (
        short_switch_interval(),
        contact_writer(request.output, written, motion, source, config, **options) as writer,
        closing(collision.blocks(timing)) as blocks,
        WriterThread(writer, timing) as sink,
    ):
        for block in blocks:
            sink.put(optional.added(block))
            tally.add(block)
            group_tally.add(block)
            flush.add(block)
            if progress:
                progress(
                    (block.first_cell + len(block.cell_counts)) // model.world_count,
                    len(motion.time),
                )
        sink.drain()
        with timing.stage("write"):
            writer.end_contacts()
        timing.end_run(start)
        writer.write_timing(timing.as_tables())
        content = writer.content_sha256
        writer.finish()
    elapsed = timing.end_run(start)
    if request.trace:
        timing.spans.append(Span("run", threading.current_thread().name, start, elapsed))
        write_trace(request.trace, {"collide run": [timing]}, request.force)
    counts = _counts(tally, group_tally, names, motion, model.world_count)
    counts["content_sha256"] = content
    return _result(request, scene, collision, timing, counts, flush.notes())


def _counts(
    tally: Tally, group_tally: GroupTally, names: Names, motion: Motion, worlds: int
) -> dict[str, Any]:
    """The counts of a result: of contacts, of steps, and of other groups."""
    episodes = episodes_in(motion, worlds)
    return {
        **vars(tally.counts(worlds, episodes)),
        **dict(zip(OF_STEPS, group_tally.sweeps, strict=True)),
        "groups": group_tally.counts(names, worlds, episodes) or None,
    }


def _result(
    request: RunRequest,
    scene: LoadedScene,
    collision: Collision,
    timing: TimingReport,
    counts: dict[str, Any],
    notes: tuple[str, ...],
) -> RunResult:
    model = scene.model
    applied = collision.pipeline.device_model.model
    motion = collision.motion
    device = collision.pipeline.device_model.device
    return RunResult(
        **counts,
        scene=scene.name or model_name(scene.model),
        scene_sha256=scene.sha256,
        trajectory=request.trajectory,
        shapes=len(model.shapes),
        templates=int(model.world_template.max()) + 1,
        bodies=len(model.bodies),
        worlds=model.world_count,
        frames=len(motion.time),
        device=device.name or device.alias,
        threads=collision.workers,
        chunk_cells=collision.chunk_cells,
        pair_gap=pair_range(
            applied.shapes.gap, applied.shapes.body, applied.forced_gap, applied.gap_rule
        ),
        gap_rule=applied.gap_rule,
        pair_margin=pair_range(
            applied.shapes.margin, applied.shapes.body, applied.forced_margin, "sum"
        ),
        broad_phase=collision.choice.name,
        broad_phase_reason=collision.choice.reason,
        candidates=timing.candidate_count,
        false_positive_ratio=timing.false_positive_ratio,
        stages=timing.stages(),
        wall_seconds=timing.wall_seconds,
        frames_per_second=len(motion.time) / timing.wall_seconds,
        peak_memory_bytes=peak_memory(),
        output=os.fspath(request.output),
        trace=request.trace or None,
        warnings=(
            *scene.warnings,
            *motion.warnings,
            *collision.notes,
            *search_warnings(timing, model.shapes.path),
            *notes,
        ),
    )


def result_config(request: RunRequest) -> dict[str, object]:
    """Options that can change the contact set."""
    # strict_meshes only decides whether an input is refused: it changes no contact.
    importing = {
        **asdict(replace(request.scene_options, strict_meshes=False)),
        **asdict(request.recording),
    }
    given = {
        name: value for name, value in {**importing, "columns": request.columns}.items() if value
    }
    return {**request.contact.stored, **given, "frames": request.frames, "worlds": request.worlds}


def run_environment(request: RunRequest, collision: Collision) -> dict[str, object]:
    """Attributes of the timing report: device, processor, package versions, pipeline and broad
    phase."""
    device = collision.pipeline.device_model.device
    return {
        "device": device.name or device.alias,
        "processor": processor_name(),
        "thread_count": collision.workers,
        "versions": json.dumps(versions(), sort_keys=True),
        **processor_description(),
        "chunk_cells": collision.chunk_cells,
        "pipeline": request.engine.pipeline,
        "broad_phase": collision.choice.name,
        "broad_phase_reason": collision.choice.reason,
    }
