"""The verb `profile`: times and contacts of every broad phase on one motion, and a
recommendation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import warp as wp

from collidecli.engine.broadphase.choice import BroadPhaseChoice
from collidecli.engine.chunk_sizes import default_memory_limit
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.pipeline_build import build_pipeline, find_device, load_ahead
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel_cache import result_notes
from collidecli.engine.scheduler import Workers, batch_size, engine_memory, worker_count
from collidecli.motions.collision import (
    WaitingPoses,
    pose_batches,
    reduced_by_bodies,
    sample_poses,
    within_episodes,
)
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.machine import processor_name, versions
from collidecli.motions.scenes import MotionResult, scene_in_motion
from collidecli.motions.timing import TimingReport
from collidecli.motions.trace import write_trace
from collidecli.results.result import Progress
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import PAIR_TABLES, RIGID_CONTACTS, ContactGroup
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.option_values import BROAD_PHASES
from collidecli.scene.options import ContactOptions
from collidecli.storage.contact_sets.header import row_shape
from collidecli.storage.content_hash import StreamDigest, content_hash
from collidecli.storage.field_cache import FieldCache
from collidecli.verbs.profile.devices import compare_devices, find_devices
from collidecli.verbs.profile.engines import own_engine, profile_engines
from collidecli.verbs.profile.measured import Advice, DeviceProfile, Measured
from collidecli.verbs.profile.sizes import buffer_sizes
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.verbs.profile.request import ProfileRequest

PHASES = {
    name: {"pipeline": "unified", "broad_phase": name} for name in BROAD_PHASES if name != "auto"
}
PHASES["standard"] = {"pipeline": "standard", "broad_phase": "auto"}
"""Engine options of each measured entry; `standard` is a separate pipeline, whose broad phase is
explicit."""
MOST_PAIR_TESTS = 2_000_000_000
"""nxn is skipped if one pass would test more pairs, about ten seconds per pass on one core."""
MOST_LISTED_PAIRS = 50_000_000
"""explicit is skipped if a template has more pairs of shapes: their list takes 2 GB."""
LIST_PAIRS = ("explicit", "standard")
"""Entries that cannot do without a list of the pairs that may touch."""
MOST_TIMES_REPEATS = 4
"""If none is clearly the fastest, the passes are repeated up to this many times the requested
number."""
MOST_EXTRA_SECONDS = 60.0
"""No repeat beyond the requested number begins later than this after the first such repeat."""
LEAST_PASSES = 3
"""Fewer passes of a broad phase do not show how much its time varies."""


@dataclass(frozen=True, kw_only=True)
class ProfileResult(MotionResult, schema="collide.profile/1", rows="phases"):
    """Result of a profile. Times [s], summed over workers except wall_seconds, each as median,
    extremes and repeats.

    phases: of each of PHASES its name, `skipped` (reason or None), times, counts and hash of
    contacts, or of pairs that are found alone. identical: every broad phase found the same of
    these, bit for bit. repeats: passes of each broad phase. fastest: the one with the least median
    compute time; is_clear: whether its times lie apart from those of all others, by quartiles.
    auto: what `--broad-phase auto` chooses,
    its reason, and whether no other is clearly faster. With several devices all this is of the
    first; identical is of each device by itself; devices has the times of the fastest broad phase
    and the phases of each device, device_advice the fastest. engines: of this engine and of others
    version, interpreter, options, contacts, set-up, time of a cell, and what a call from Python is
    for: chunks, cells, pairs, None if unknown. sizes: with `--sizes`, the greatest numbers of
    candidates, pairs and contacts, and settings that follow. output, json_output, trace: files, if
    any are written.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = (
        "devices",
        "device_advice",
        "engines",
        "sizes",
        "output",
        "json_output",
        "trace",
    )

    shapes: int
    worlds: int
    frames: int
    device: str
    processor: str
    threads: int
    chunk_cells: int
    versions: dict[str, str]
    repeats: int
    phases: list[dict[str, Any]]
    identical: bool
    fastest: str
    is_clear: bool
    auto: dict[str, Any]
    advice: str
    warnings: tuple[str, ...]
    devices: list[dict[str, Any]] | None = None
    device_advice: str | None = None
    engines: list[dict[str, Any]] | None = None
    sizes: dict[str, Any] | None = None
    output: str | None = None
    json_output: str | None = None
    trace: str | None = None

    def __repr__(self) -> str:
        phases = [phase["name"] for phase in self.phases if phase["skipped"] is None]
        sizes = f"frames={self.frames} worlds={self.worlds} shapes={self.shapes}"
        found = f"fastest={self.fastest!r} is_clear={self.is_clear} identical={self.identical}"
        return f"<Profile {sizes} device={self.device!r} phases={phases} {found}>"


def profile(request: ProfileRequest, progress: Progress = None) -> ProfileResult:
    """Runs every broad phase `repeats` times, interleaved, after one warm-up pass of each that
    hashes the contacts.

    Repeats further until one is clearly the fastest, within the limits MOST_TIMES_REPEATS and
    MOST_EXTRA_SECONDS. Several devices are measured one after the other.

    Loading, compiling and reading the motion are not measured. Raises InputError as `run` does.
    """
    request.contact.checked()
    devices = (
        find_devices(request.devices) if request.devices else [find_device(request.engine.device)]
    )
    load_ahead(devices[0])
    asked = request.engines or request.engine_python or request.engine_option
    others = profile_engines(request) if asked else []
    scene, motion = scene_in_motion(request, by_frames=True)
    try:
        fields = FieldCache(request.engine.cache_dir, request.engine.cache_limit)
        runs = [
            _profile_device(device, request, scene, motion, fields, progress) for device in devices
        ]
        first = runs[0]
        if request.trace:
            write_trace(request.trace, _passes_by_name(runs), request.force)
        several = runs if len(runs) > 1 else []
        walls = [(str(run.device.alias), run.fastest.wall_seconds()) for run in several]
        return ProfileResult(
            **MotionResult.source(request, scene, motion),
            shapes=len(scene.model.shapes),
            worlds=scene.model.world_count,
            frames=len(motion.time),
            processor=processor_name(),
            versions=versions(),
            identical=all(
                len({m.contacts_sha256 for m in run.measured if not m.skipped}) == 1 for run in runs
            ),
            **_fields_of_device(first),
            devices=[run.as_dict(len(motion.time)) for run in several] or None,
            device_advice=compare_devices(walls) if walls else None,
            engines=(
                [own_engine(first, len(motion.time) * scene.model.world_count), *others]
                if others
                else None
            ),
            sizes=buffer_sizes(devices[0], request, scene, motion, fields),
            trace=request.trace or None,
            warnings=(*scene.warnings, *motion.warnings, *fields.notes, *result_notes()),
        )
    finally:
        motion.close()


def _passes_by_name(runs: Sequence[DeviceProfile]) -> dict[str, list[TimingReport]]:
    """The passes of each broad phase of a device; names of devices other than the first are
    added to theirs."""
    passes = {}
    for run in runs:
        of_device = "" if run is runs[0] else f", {run.device.alias}"
        passes |= {m.name + of_device: m.passes for m in run.measured if m.passes}
    return passes


def _fields_of_device(run: DeviceProfile) -> dict[str, Any]:
    """Fields of `ProfileResult` that are of one device."""
    return {
        "device": run.device.name or run.device.alias,
        "threads": run.threads,
        "chunk_cells": run.chunk_cells,
        "repeats": max(len(m.passes) for m in run.measured),
        "phases": [m.as_dict() for m in run.measured],
        "fastest": run.advice.fastest,
        "is_clear": run.advice.is_clear,
        "auto": {
            "choice": run.choice.name,
            "reason": run.choice.reason,
            "agrees": run.advice.auto_agrees,
        },
        "advice": run.advice.text,
    }


def _profile_device(
    device: wp.Device,
    request: ProfileRequest,
    scene: LoadedScene,
    motion: Motion,
    fields: FieldCache,
    progress: Progress,
) -> DeviceProfile:
    samples = cache(partial(sample_poses, motion))

    def build(**engine: str) -> tuple[CollisionPipeline, BroadPhaseChoice]:
        options = replace(request.engine, **engine)
        with scene.named():
            return build_pipeline(
                scene.model, request.contact, options, device, samples, motion.float_type, fields
            )

    _, choice = build(pipeline="unified", broad_phase="auto")
    measured = [Measured(name, skip_reason(name, scene, len(motion.time))) for name in PHASES]
    pipelines = {}
    for phase in measured:
        if not phase.skipped:
            begin = time.perf_counter()
            built = pipelines[phase.name] = build(**PHASES[phase.name])[0]
            phase.listing_seconds = built.listing_seconds if phase.name in LIST_PAIRS else 0.0
            phase.setup_seconds = time.perf_counter() - begin
    threads = worker_count(request.engine.threads, has_own_memory(device))
    first = next(iter(pipelines.values()))
    cells = batch_size(
        first, len(motion.time) * scene.model.world_count, threads, request.engine.chunk_cells
    )
    _measure(request, measured, pipelines, threads, cells, motion, progress)
    return DeviceProfile(device, measured, choice, advise(measured, choice), threads, cells)


def skip_reason(name: str, scene: LoadedScene, frame_count: int) -> str:
    """Why a broad phase would take too long or too much memory on this scene; empty if it would
    not."""
    model = scene.model
    widths = np.array(
        [len(model.template_shapes(t)) for t in range(int(model.world_template.max()) + 1)]
    )
    pairs = widths * (widths - 1) // 2
    tests = frame_count * int(pairs[model.world_template].sum())
    if name == "nxn" and tests > MOST_PAIR_TESTS:
        return f"a pass would test {tests:.2g} pairs, over {MOST_PAIR_TESTS:.0e}"
    if name in ("explicit", "standard") and int(pairs.max()) > MOST_LISTED_PAIRS:
        return (
            f"the list would have up to {int(pairs.max()):.2g} pairs, over {MOST_LISTED_PAIRS:.0e}"
        )
    return ""


def advise(measured: Sequence[Measured], choice: BroadPhaseChoice) -> Advice:
    """Compares the compute times, those of the table. The choice among nxn, sap and explicit;
    standard is explicit.

    A broad phase is clearly slower if its lower quartile is above the upper quartile of the
    fastest.
    """
    run = [m for m in measured if not m.skipped and m.name != "standard"]
    times = {m.name: m.compute_seconds() for m in run}
    medians = {name: float(np.median(values)) for name, values in times.items()}
    fastest = min(medians, key=lambda name: medians[name])
    upper = np.quantile(times[fastest], 0.75)
    passes = min(map(len, times.values()))
    are_few = passes < LEAST_PASSES
    others = [name for name in times if name != fastest]
    rivals = [name for name in others if are_few or np.quantile(times[name], 0.25) <= upper]
    agrees = choice.name in (fastest, *rivals)
    auto = f"auto picks {choice.name} ({choice.reason})"
    if rivals:
        rivals.sort(key=lambda name: medians[name])
        names = ", ".join([fastest, *rivals])
        why = f"the times of {names} vary by more than they differ"
        if are_few:
            least = f"--repeats {LEAST_PASSES} measures more"
            why = f"{plural(passes, 'measurement')} each cannot tell how much times vary; {least}"
        text = f"none is clearly the fastest: {why}; {auto}"
        if not agrees:
            text += ", which is clearly slower"
        return Advice(fastest, False, agrees, text)
    if choice.name == fastest:
        return Advice(fastest, True, True, f"choose {fastest}; auto picks it too ({choice.reason})")
    if choice.name not in medians:
        return Advice(fastest, True, False, f"choose {fastest}; {auto}, which was not measured")
    slower = medians[choice.name] / medians[fastest] - 1.0 if medians[fastest] else 0.0
    return Advice(
        fastest, True, False, f"choose {fastest}; {auto}, which takes {slower:.0%} longer"
    )


def _measure(
    request: ProfileRequest,
    measured: list[Measured],
    pipelines: dict[str, CollisionPipeline],
    threads: int,
    cells: int,
    motion: Motion,
    progress: Progress,
) -> None:
    """Fills in passes and hashes.

    Repeats are interleaved, in alternating order, so that a slow period of the machine and the pass
    before affect all equally.
    """
    running = [m for m in measured if not m.skipped]
    frames = len(motion.time)
    done = 0
    repeat = 0
    extra_since = math.inf
    limit = request.engine.memory_limit or default_memory_limit()
    share = engine_memory(limit, next(iter(pipelines.values())).device_model.device) // len(running)
    with ExitStack() as stack:
        pools = {
            name: stack.enter_context(Workers(built, threads, share))
            for name, built in pipelines.items()
        }
        # Sizes are counted in a pass of their own, and more passes do not change them.
        while repeat <= request.repeats or not (
            request.sizes or _is_decided(running, request.repeats, extra_since)
        ):
            if repeat == request.repeats + 1:
                extra_since = time.perf_counter()
            for phase in running if repeat % 2 else running[::-1]:
                digest = digest_of(request.contact, motion.float_type) if repeat == 0 else None
                model = pipelines[phase.name].device_model.model
                report = _one_pass(pools[phase.name], motion, model, cells, request.contact, digest)
                if digest is not None:
                    phase.contacts_sha256 = digest.value()
                else:
                    phase.passes.append(report)
                done += frames
                if progress:
                    progress(done, frames * len(running) * (max(repeat, request.repeats) + 1))
            repeat += 1


def _is_decided(running: Sequence[Measured], repeats: int, extra_since: float) -> bool:
    """Whether one broad phase is clearly the fastest, or the limit of repeats is reached.
    extra_since: [s]."""
    passes = len(running[0].passes)
    if (
        passes >= MOST_TIMES_REPEATS * repeats
        or time.perf_counter() - extra_since > MOST_EXTRA_SECONDS
    ):
        return True
    competing = [m for m in running if m.name != "standard"]
    return len(competing) < 2 or advise(competing, BroadPhaseChoice(competing[0].name, "")).is_clear


def _one_pass(
    pool: Workers,
    motion: Motion,
    model: Model,
    cells: int,
    contact: ContactOptions,
    digest: ContactDigest | None,
) -> TimingReport:
    report = TimingReport()
    with report.span("pass") as span:
        batches = pose_batches(motion, model, cells, report, allocate=pool.pose_memory)
        waiting = WaitingPoses(batches, contact.reduces_bodies)
        results = pool.collide(waiting.kept, len(motion.time) * model.world_count)
        results = within_episodes(results, motion, model.world_count)
        for block, chunk in reduced_by_bodies(results, model, contact, waiting):
            report.add_chunk(chunk)
            if digest is not None:
                digest.add(block)
    report.wall_seconds = span.seconds
    return report


def digest_of(contact: ContactOptions, float_type: np.dtype) -> ContactDigest:
    """An empty hash of the table that a run of these options has: of contacts, or of pairs."""
    return ContactDigest(float_type, PAIR_TABLES.get(contact.finds_pairs_alone, RIGID_CONTACTS))


class ContactDigest:
    """One hash of all rows of a table, by default the contacts, computed from the columns as the
    content hash of a contact set is."""

    def __init__(self, float_type: np.dtype, table: ContactGroup = RIGID_CONTACTS) -> None:
        self._table = table.name
        self._start = StreamDigest(f"/{table.name}/cell_start", np.dtype(np.int64))
        self._start.update(np.zeros(1, np.int64))
        self._rows = 0
        self._columns = {
            column.name: StreamDigest(
                f"/{table.name}/{column.name}", column.dtype_for(float_type), row_shape(column)
            )
            for column in table.columns
        }

    def add(self, block: ContactBlock) -> None:
        """Adds the next block, in the order of cells."""
        rows = block.tables[self._table]
        self._start.update(self._rows + np.cumsum(rows.cell_counts, dtype=np.int64))
        self._rows += rows.row_count
        for name, digest in self._columns.items():
            digest.update(rows.columns[name])

    def value(self) -> str:
        return content_hash((self._start, *self._columns.values()))
