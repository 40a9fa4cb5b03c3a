"""Collision pipeline of a chunk: transforms, broad phase, narrow phase, reduction, compaction in
canonical order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import warp as wp

from collidecli.engine.broadphase.all_pairs import explicit
from collidecli.engine.candidates import KERNELS as CANDIDATES
from collidecli.engine.candidates import blocks_of_motion, expand, sample_bounds, world_offset
from collidecli.engine.cells import (
    BlockPairs,
    BlockShape,
    Chunk,
    PoseBatch,
    bound_blocks,
    transform_chunk,
    transform_shapes,
)
from collidecli.engine.compaction import (
    CONTACT_ROWS,
    compact_contacts,
    count_cells,
    keep_deepest,
    list_contacts,
    touching_pairs,
)
from collidecli.engine.contact_record import new_candidates, scan_counts
from collidecli.engine.device_model import DeviceModel, kinds_of, type_of_kind, upload_model
from collidecli.engine.narrowphase.dispatch import NarrowPhase, needed_colliders
from collidecli.engine.runtime.device_stream import has_own_memory, keep_freed_memory, uploading
from collidecli.engine.runtime.kernel_loader import begin_loading, load_kernels
from collidecli.engine.runtime.warp_start import initialize, one_at_a_time
from collidecli.engine.runtime.workspace import (
    ChunkTooLarge,
    Workspace,
    execute_steps,
    parts_that_fit,
)
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.hydroelastic import HydroShapes, hydro_shapes
from collidecli.scene.model import Model
from collidecli.scene.options import (
    DEFAULT_RESOLUTION,
    DEFAULT_STIFFNESS,
    ContactOptions,
    EngineOptions,
)
from collidecli.scene.particles import LOOSE
from collidecli.scene.tables import (
    HYDRO_PATCHES,
    TOUCHES,
    ContactBlock,
    ContactGroup,
    GroupRows,
    consecutive_groups,
    groups_of_parts,
    pair_begins,
)
from collidecli.wording import count, plural

if TYPE_CHECKING:
    from collidecli.engine.geometry.signed_distance import FieldStore
    from collidecli.engine.hydroelastic.stage import HydroStage
    from collidecli.engine.reduction import Reduction

# Warnings of options that are given and have no effect on the contacts of a scene.

NEWTON = {
    "buffer_fraction": "buffers have the exact size",
    "margin_contact_area": "only overlapping shapes have a contact surface",
}
"""Options of Newton that cannot matter here, and why."""


def no_effect_notes(model: Model, options: ContactOptions, hydro: HydroShapes) -> tuple[str, ...]:
    """A warning for each option of hydroelastic contacts and of particles that is given and has no
    effect."""
    notes = [(name, why) for name, why in NEWTON.items() if getattr(options, name) is not None]
    if options.hydro_reduce and not options.reduce_contacts:
        matched = ("normal_matching", "moment_matching", "anchor_contact")
        why = "reduced hydroelastic contacts have the exact total force"
        notes += [(name, why) for name in matched if getattr(options, name)]
    if not hydro.has_pairs and options.hydro != "all":
        unmarked = "the scene marks no two shapes that form a hydroelastic pair"
        why = "hydro is off" if options.hydro == "off" else unmarked
        given = {
            "hydro_stiffness": options.hydro_stiffness != DEFAULT_STIFFNESS,
            "hydro_resolution": options.hydro_resolution != DEFAULT_RESOLUTION,
            "hydro_surface": options.writes_surface,
            "hydro_reduce": options.hydro_reduce,
        }
        notes += [(name, why) for name, is_given in given.items() if is_given]
    particles = model.particles
    if options.self_contacts and all(kind == LOOSE for kind in particles.kind):
        notes.append(("self_contacts", "the scene has no cloth and no soft body"))
    return tuple(f"{name} has no effect: {why}" for name, why in notes)


ALWAYS = (count_cells, list_contacts, bound_blocks, *CANDIDATES, transform_shapes)
"""Kernels of every pipeline; on the CPU also `execute_steps`."""
STAGES = ("transforms", "broad_phase", "narrow_phase", "reduction", "order")


class BroadPhase(Protocol):
    """Finds the pairs of slots that may touch in a block of cells, ordered by block, slot0,
    slot1."""

    @property
    def name(self) -> str: ...

    @property
    def blocks(self) -> BlockShape:
        """The largest blocks for which it is fast."""
        ...

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs: ...

    def kernels(self) -> list[wp.Kernel]: ...


class GroupStage(Protocol):
    """Finds the rows of a group beside the rigid contacts, from the instances of a chunk."""

    @property
    def group(self) -> ContactGroup: ...

    @property
    def width(self) -> int:
        """Units of a cell, such as particles, that are independent of each other."""
        ...

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the units `begin` to `end` of each cell, and the number of their
        candidates."""
        ...

    def kernels(self) -> list[wp.Kernel]: ...


@dataclass
class ChunkReport:
    """Counts and times of a chunk. seconds: per stage of STAGES. touching_count: candidates with a
    contact.

    inexact_count: candidates whose depth is an upper bound, since an iteration limit ended the
    search. missed_count: hydroelastic pairs that overlap and whose surface was not found;
    missed_pair: the shape rows of the first of them. start: when the chunk began [s], as of
    time.perf_counter, and thread: the name of its thread; its stages follow each other. compiling:
    begin and end of each time in which it waited for its colliders' kernels [s], in no stage.
    parts: the reports of which this is the sum, empty if it is of one chunk.
    """

    cell_count: int = 0
    candidate_count: int = 0
    touching_count: int = 0
    contact_count: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    inexact_count: int = 0
    missed_count: int = 0
    missed_pair: tuple[int, int] | None = None
    start: float = field(default=0.0, compare=False)
    thread: str = field(default="", compare=False)
    compiling: tuple[tuple[float, float], ...] = field(default=(), compare=False)
    parts: tuple[ChunkReport, ...] = field(default=(), compare=False)

    def plus(self, other: ChunkReport) -> ChunkReport:
        """Sum of both reports."""
        counts = (
            "cell_count",
            "candidate_count",
            "touching_count",
            "contact_count",
            "inexact_count",
            "missed_count",
        )
        return ChunkReport(
            **{name: getattr(self, name) + getattr(other, name) for name in (*counts, "compiling")},
            seconds={
                stage: seconds + other.seconds[stage] for stage, seconds in self.seconds.items()
            },
            missed_pair=min(
                (pair for pair in (self.missed_pair, other.missed_pair) if pair), default=None
            ),
            parts=(*(self.parts or (self,)), *(other.parts or (other,))),
        )


class StageClock:
    """Adds the time of each stage to the report, including the device's work.

    The moments are marked among the launches, in a device's stream or the CPU's queue, and read by
    `close`, so that no stage waits. What Python does for later launches of one queue counts for the
    first stage in it.
    """

    def __init__(self, report: ChunkReport, workspace: Workspace) -> None:
        self._report = report
        self._workspace = workspace
        report.start, report.thread = time.perf_counter(), threading.current_thread().name
        self._last = workspace.mark()
        self._ended: list[tuple[str, Any, Any]] = []

    def end(self, stage: str) -> None:
        now = self._workspace.mark()
        self._ended.append((stage, self._last, now))
        self._last = now

    def skip(self) -> None:
        """Leaves the time since the end of the last stage out."""
        self._last = self._workspace.mark()

    def close(self) -> None:
        """Adds the times; all launches are complete."""
        for stage, begin, end in self._ended:
            self._report.seconds[stage] += self._workspace.seconds_between(begin, end)
        self._ended.clear()


def joining_bytes(result_bytes: int, with_groups: bool = False) -> int:
    """Memory of parts with `result_bytes` while they are joined: one column is doubled, of rigid
    contacts under a quarter; of a group, such as the corners of faces, under three quarters."""
    return result_bytes * (7 if with_groups else 5) // 4


def rows_within(
    stage: GroupStage, device_model: DeviceModel, batch: PoseBatch, memory_limit: int
) -> GroupRows:
    """Rows of a group in a batch within `memory_limit` bytes of scratch and result.

    The cells, and the units of one cell, are collided in as few parts as the limit allows. Raises
    ChunkTooLarge, with the bytes that are needed, where a single unit does not fit.
    """
    name = stage.group.name
    result_bytes = 0

    def of_cells(first: int, last: int) -> GroupRows:
        cells = replace(batch, first_cell=batch.first_cell + first, cell_count=last - first)

        def of_units(begin: int, end: int) -> GroupRows:
            nonlocal result_bytes
            left = memory_limit - joining_bytes(result_bytes, with_groups=True)
            workspace = Workspace(device_model.device, left, exact=True)
            try:
                chunk = transform_chunk(device_model, cells, workspace)
                rows, _ = stage.collide_part(chunk, cells, workspace, begin, end)
            except ChunkTooLarge as too_large:
                raise ChunkTooLarge(memory_limit - left + too_large.needed) from None
            result_bytes += rows.nbytes
            return rows

        if cells.cell_count > 1:
            return of_units(0, stage.width)
        return groups_of_parts([{name: part} for part in parts_that_fit(stage.width, of_units)])[
            name
        ]

    return consecutive_groups(
        [{name: part} for part in parts_that_fit(batch.cell_count, of_cells)]
    )[name]


def joined_parts(parts: list[ContactBlock]) -> ContactBlock:
    """One block of one cell from blocks of its consecutive candidates; the columns of `parts` are
    emptied."""
    if len(parts) == 1:
        return parts[0]
    names = list(parts[0].columns)
    columns = {name: np.concatenate([part.columns.pop(name) for part in parts]) for name in names}
    groups = groups_of_parts([part.groups for part in parts])
    cell_counts = np.add.reduce([part.cell_counts for part in parts])
    return ContactBlock(parts[0].first_cell, cell_counts, columns, groups)


@dataclass(frozen=True)
class CollisionPipeline:
    """A broad phase and the pair colliders of a model. It has no scratch memory: any number of
    threads may share it.

    reduction: None keeps all contacts. hydro: the hydroelastic pairs, which have no other contacts;
    None for none. notes: warnings about the scene. group_stages: of groups beside the rigid
    contacts. on_demand: the kernel of a collider without sub-pairs is compiled when the collider
    first has a candidate, in no stage's time. touch_only: the group `touches` in place of contacts.
    listing_seconds: time of listing the pairs that may touch [s].
    """

    device_model: DeviceModel
    broad_phase: BroadPhase
    narrow_phase: NarrowPhase
    float_type: np.dtype
    reduction: Reduction | None = None
    hydro: HydroStage | None = None
    notes: tuple[str, ...] = ()
    group_stages: tuple[GroupStage, ...] = ()
    on_demand: bool = False
    touch_only: bool = False
    listing_seconds: float = 0.0

    @property
    def groups(self) -> tuple[ContactGroup, ...]:
        """The groups that the blocks have."""
        hydro = () if self.hydro is None else self.hydro.written
        touches = (TOUCHES,) if self.touch_only else ()
        return (*hydro, *touches, *(stage.group for stage in self.group_stages))

    @property
    def cell_width(self) -> int:
        """Instances of a cell, and units of its groups: a measure of its work."""
        return self.device_model.layout.width + sum(stage.width for stage in self.group_stages)

    @property
    def block_cells(self) -> int:
        """Cells of consecutive frames that fill the broad phase's blocks."""
        return self.broad_phase.blocks.lanes * self.device_model.model.world_count

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of all cells of the batch, in canonical order, and the report.

        Raises ChunkTooLarge when the scratch memory is too small for the batch.
        """
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace, self.broad_phase.blocks)
        clock.end("transforms")
        pairs = self.broad_phase.find(chunk, workspace)
        clock.end("broad_phase")
        block = self._collide_pairs(chunk, pairs, workspace, report, clock)
        for stage in self.group_stages:
            block.groups[stage.group.name], _ = stage.collide_part(
                chunk, batch, workspace, 0, stage.width
            )
            clock.end("narrow_phase")
        clock.close()
        return block, report

    def collide_in_parts(
        self, batch: PoseBatch, memory_limit: int
    ) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of one cell within `memory_limit` bytes of scratch and result, and the report.

        The candidates are collided in parts, as few as the limit allows; a pair's contacts depend
        on no other pair, and the parts are in canonical order. Raises ChunkTooLarge, with the bytes
        of the whole cell, when the broad phase, a single candidate or the contacts do not fit.
        """
        pairs, report = self._host_pairs(batch, memory_limit)
        with_groups = self.hydro is not None
        result_bytes = 0
        workspace = None

        def collide(begin: int, end: int) -> tuple[ContactBlock, ChunkReport]:
            nonlocal workspace, result_bytes
            left = memory_limit - pairs.nbytes - joining_bytes(result_bytes, with_groups)
            workspace = workspace or Workspace(self.device_model.device, left, exact=True)
            workspace.memory_limit = left
            try:
                with workspace.device_errors():
                    block, part_report = self._collide_part(batch, pairs[begin:end], workspace)
            except ChunkTooLarge as too_large:
                workspace = None
                results = joining_bytes(result_bytes * len(pairs) // max(begin, 1), with_groups)
                raise ChunkTooLarge(pairs.nbytes + results + too_large.needed) from None
            result_bytes += block.nbytes
            return block, part_report

        parts = parts_that_fit(len(pairs), collide)
        block = joined_parts([part for part, _ in parts])
        for stage in self.group_stages:
            left = memory_limit - joining_bytes(block.nbytes)
            block.groups[stage.group.name] = rows_within(stage, self.device_model, batch, left)
        return block, reduce(ChunkReport.plus, (part_report for _, part_report in parts), report)

    def _host_pairs(self, batch: PoseBatch, memory_limit: int) -> tuple[np.ndarray, ChunkReport]:
        """The candidates of a batch of one cell on the host, int32[P, 2] slots; their scratch is
        free afterwards."""
        workspace = Workspace(self.device_model.device, memory_limit, exact=True)
        report = ChunkReport(cell_count=batch.cell_count)
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        pairs = self.broad_phase.find(chunk, workspace)
        clock.end("broad_phase")
        workspace.check(workspace.bytes + 8 * pairs.count)
        is_candidate = workspace.host(pairs.mask, pairs.count) != 0
        candidates = workspace.host(pairs.slots, pairs.count).reshape(-1, 2)[is_candidate]
        clock.close()
        return candidates, report

    def _collide_part(
        self, batch: PoseBatch, pairs: np.ndarray, workspace: Workspace
    ) -> tuple[ContactBlock, ChunkReport]:
        """Contacts of some of the candidates of one cell, and the report without the cell."""
        report = ChunkReport()
        clock = StageClock(report, workspace)
        chunk = transform_chunk(self.device_model, batch, workspace)
        clock.end("transforms")
        mask = workspace.uploaded(np.ones(len(pairs), np.uint32), wp.uint32)
        block_pairs = BlockPairs(workspace.uploaded(pairs, wp.vec2i), mask, len(pairs))
        block = self._collide_pairs(chunk, block_pairs, workspace, report, clock)
        clock.close()
        return block, report

    def _collide_pairs(
        self,
        chunk: Chunk,
        pairs: BlockPairs,
        workspace: Workspace,
        report: ChunkReport,
        clock: StageClock,
    ) -> ContactBlock:
        """Contacts of the candidates of a chunk; completes the report."""
        hydro = None
        if self.hydro is not None:
            hydro, pairs = self.hydro.split(chunk, pairs, workspace)
            report.candidate_count += hydro.count
        table = self.narrow_phase.table
        buckets = table.of_kinds, table.kind_count, max(1, len(table.colliders))
        listed = expand(self.device_model, chunk, pairs, buckets, "candidate", workspace)
        if self.on_demand:
            clock.end("narrow_phase")
            workspace.finish()
            report.compiling += self.narrow_phase.load_used(listed)
            clock.skip()
        count = listed.count
        report.candidate_count += count
        candidates = new_candidates(workspace, listed.pair, listed.row, count)
        emitted, inexact = self.narrow_phase.collide(chunk, candidates, listed, workspace)
        if self.touch_only:
            clock.end("narrow_phase")
            block = touching_pairs(
                chunk, candidates, count, listed.cell_end, self.float_type, workspace
            )
            report.touching_count = block.groups[TOUCHES.name].row_count
            clock.end("order")
            return block
        scale = None
        if self.reduction is not None:
            clock.end("narrow_phase")
            scale = self.reduction.reduce(
                self.device_model, chunk.instances, candidates, count, emitted.contact, workspace
            )
        # Without a reduction the scan executes with the launches of the colliders, in their stage.
        total, report.inexact_count = scan_counts(workspace, candidates, count, inexact)
        clock.end("narrow_phase" if self.reduction is None else "reduction")
        is_limited = self.narrow_phase.max_contacts_per_pair > 0
        block = compact_contacts(
            self.device_model,
            chunk,
            candidates,
            count,
            listed.cell_end,
            total,
            emitted,
            self.float_type,
            workspace,
            scale,
            is_limited,
        )
        with workspace.aside():
            report.touching_count = int(np.count_nonzero(pair_begins(block)))
        report.contact_count = block.contact_count
        clock.end("order")
        if self.hydro is not None and hydro is not None:
            block, missed = self.hydro.add_to(block, chunk, hydro, workspace)
            report.missed_count = len(missed)
            report.missed_pair = min(map(tuple, missed.tolist()), default=None)
            report.contact_count = block.contact_count
            report.touching_count += block.groups[HYDRO_PATCHES.name].row_count
            clock.end("narrow_phase")
        return block

    def kernels(self) -> list[wp.Kernel]:
        """All kernels of this pipeline, by increasing compile time."""
        kernels = [] if has_own_memory(self.device_model.device) else [execute_steps]
        kernels += [*ALWAYS, CONTACT_ROWS[np.dtype(self.float_type)].kernel]
        kernels += [keep_deepest] if self.narrow_phase.max_contacts_per_pair else []
        kernels += [] if self.reduction is None else self.reduction.kernels()
        kernels += [] if self.hydro is None else self.hydro.kernels()
        kernels += [kernel for stage in self.group_stages for kernel in stage.kernels()]
        kernels += [*self.broad_phase.kernels(), *self.narrow_phase.kernels()]
        return list(dict.fromkeys(kernels))


# Construction of a pipeline from a model and a sample of its motion.
#
# It uploads the model, chooses the broad phase, selects the pair colliders and compiles the
# kernels.

ENUMERATED_SHAPES = 3000
"""Templates with more shapes have no list of their pairs, except for broad phase explicit; lists
take 36 MB at most."""
SWEEP_PAIRS_PER_SHAPE = 600
"""Allowed pairs per shape above which auto chooses sap; measured, see
docs/explanation/performance.md."""

SAMPLED_PAIRS = 2000
"""Lists of pairs from this length on are tested in blocks of as many frames as the motion suggests;
shorter ones, such as a humanoid's, need no sample of the motion, which is read before the first
frame. The number is not measured."""


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
        begin_loading([execute_steps, *ALWAYS], device)


def choose_broad_phase(
    model: Model, options: EngineOptions, pair_counts: list[int] | None
) -> BroadPhaseChoice:
    """The broad phase by the options; `auto` compares the allowed pairs with the shapes of the
    largest template."""
    if options.pipeline == "standard":
        return BroadPhaseChoice("explicit", "the standard pipeline works on explicit pairs")
    if options.broad_phase != "auto":
        return BroadPhaseChoice(options.broad_phase, "requested")
    templates = int(model.world_template.max()) + 1
    widest = max(len(model.template_shapes(t)) for t in range(templates))
    if pair_counts is None:
        lists = f"auto lists the pairs of at most {count(ENUMERATED_SHAPES)}"
        return BroadPhaseChoice("sap", f"{plural(widest, 'shape')}; {lists}")
    pairs = max(pair_counts)
    if pairs > SWEEP_PAIRS_PER_SHAPE * widest:
        return BroadPhaseChoice(
            "sap",
            f"{plural(widest, 'shape')} have {plural(pairs, 'allowed pair')}, over"
            f" {SWEEP_PAIRS_PER_SHAPE} each",
        )
    of_template = f" in the largest of {templates} templates" if templates > 1 else ""
    return BroadPhaseChoice(
        "explicit",
        f"the filters leave {plural(pairs, 'pair')} of {plural(widest, 'shape')}{of_template}",
    )


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
        widest = device_model.layout.width
        wanted = options.broad_phase == "explicit" or options.pipeline == "standard"
        template_pairs = pair_counts = None
        begin = time.perf_counter()
        if widest <= ENUMERATED_SHAPES or wanted:
            template_pairs = [
                allowed_pairs(device_model.model, t) for t in range(device_model.template_count)
            ]
            pair_counts = [len(pairs) for pairs in template_pairs]
        listing_seconds = time.perf_counter() - begin
        choice = choose_broad_phase(model, options, pair_counts)
        hydro = hydro_shapes(device_model.model, contact_options)
        method = "touch" if contact_options.touch_only else contact_options.narrow_phase
        kind_pairs = _kind_pairs(device_model, template_pairs, hydro)
        table = needed_colliders(kind_pairs, method, device)
        pipeline = CollisionPipeline(
            device_model,
            _broad_phase(choice.name, device_model, template_pairs, sample_poses),
            NarrowPhase.of(device_model, table, store, contact_options.max_contacts_per_pair),
            np.dtype(float_type),
            _reduction(contact_options, kind_pairs, device),
            _hydro_stage(hydro, device_model, contact_options),
            (*no_effect_notes(device_model.model, contact_options, hydro), *hydro.notes),
            _group_stages(device_model, contact_options, sample_poses, float_type, store),
            on_demand and not has_own_memory(device),
            contact_options.touch_only,
            listing_seconds,
        )
    # Colliders, last in the list, compile longest: they start first, so that no core is idle at the
    # end.
    later = (
        [collider.kernel for collider in table.colliders if collider.sub_pair_kernels is None]
        if pipeline.on_demand
        else []
    )
    load_kernels([kernel for kernel in pipeline.kernels()[::-1] if kernel not in later], device)
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
    """The stages of the groups that the model and the options have."""
    stages: list[GroupStage] = []
    if len(device_model.model.particles):
        from collidecli.engine.particles.soft_contacts import soft_contacts_of

        poses = sample_poses()
        with_elements = options.soft_elements == "all"
        soft = soft_contacts_of(
            device_model, options.soft_gap, with_elements, poses[len(poses) // 2], float_type
        )
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
    queue = [] if has_own_memory(device) else [execute_steps]
    load_kernels(
        [*queue, transform_shapes, *(kernel for stage in stages for kernel in stage.kernels())],
        device,
    )


def _self_limits(options: ContactOptions) -> tuple[float, int, float]:
    return options.self_contacts, options.self_contact_rings, options.rest_distance


def _reduction(
    options: ContactOptions, kind_pairs: set[tuple[int, int]], device: wp.Device
) -> Reduction | None:
    if not options.reduce_contacts:
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
        blocks = blocks_of_motion(
            model, *sample_bounds(device_model, sample_poses()), of_one_world=False
        )
        return explicit(device_model, template_pairs, blocks)
    assert name == "sap", name
    from collidecli.engine.broadphase.sweep_and_prune import SweepAndPrune, plan_sweep

    samples = sample_poses()
    lower, upper = sample_bounds(device_model, samples)
    plan = plan_sweep(device_model, lower, upper, world_offset(model, samples), template_pairs)
    # Worlds that stand apart have no common boxes.
    return SweepAndPrune(
        device_model, plan, blocks_of_motion(model, lower, upper, of_one_world=True)
    )


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
        used = np.unique(np.stack([pair_filter.shape_class, kinds], axis=1), axis=0)
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
