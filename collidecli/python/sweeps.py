"""Python's `sweep`: contacts between the frames of a motion, in memory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from collidecli.analysis.totals import TOUCHES
from collidecli.engine.device_model import DeviceModel, upload_model
from collidecli.engine.group_stage import rows_within
from collidecli.engine.pipeline_build import find_device, load_stages, sweep_stages
from collidecli.exporters.dense_columns import AXES, NamedColumns
from collidecli.motions.collision import check_frames, pose_batches
from collidecli.motions.requests import EngineRequest
from collidecli.motions.timing import TimingReport
from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.scenes import (
    MotionSource,
    SceneSource,
    loaded_with_warnings,
    source_request,
)
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.contact_blocks import GroupRows, consecutive_groups
from collidecli.scene.contact_columns import SELF_SWEEP, SOFT_SWEEP, SWEEP
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.option_values import DEFAULT_SWEEP_TOLERANCE
from collidecli.scene.options import ContactOptions, EngineOptions, check_sweep_tolerance
from collidecli.storage.field_cache import FieldCache

if TYPE_CHECKING:
    import pandas
    import xarray

CELLS_AT_ONCE = 4096
OF_ELEMENTS = ("self_contacts", "self_contact_rings", "self_contact_rest")
MEMORY_LIMIT = 1 << 32
"""Scratch memory and rows of a batch [bytes]."""


@dataclass(frozen=True, repr=False)
class SweepRows:
    """What touches between a frame and the next, or is undecided; arrays of one length.

    frame, world: int64[n], of the begin of the step. touches: bool[n]; False is undecided. tunnel:
        bool[n], whether both are apart in both frames and touch between.
    enter, leave: float64[n], begin of the first touch and end of the last one, in 0 to 1 of the
        step. enter_time, leave_time: float64[n], of the motion [s]; of an array of poses without
        times, numbers of frames.
    least: float64[n], least distance that was found, less both margins; negative is penetration
        [m]. least_bound: float64[n], lower bound of every distance in the step [m].
    normal: float32[n, 3], unit, at `enter`, in world.
    """

    frame: np.ndarray
    world: np.ndarray
    touches: np.ndarray
    tunnel: np.ndarray
    enter: np.ndarray
    leave: np.ndarray
    enter_time: np.ndarray
    leave_time: np.ndarray
    least: np.ndarray
    least_bound: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.frame)

    def _columns(self) -> NamedColumns:
        """The arrays of the rows; vectors as name_x, name_y, name_z or name_0, name_1, ..."""
        columns: dict[str, np.ndarray] = {}
        for entry in fields(self):
            values = getattr(self, entry.name)
            if not isinstance(values, np.ndarray):
                continue
            if values.ndim == 1:
                columns[entry.name] = values
                continue
            is_vector = entry.name in ("normal", "point", "point0", "point1")
            ends = AXES if is_vector else range(values.shape[1])
            columns |= {f"{entry.name}_{end}": values[:, k] for k, end in enumerate(ends)}
        return NamedColumns(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each pair that touches or is undecided. Raises InputError without pandas."""
        return self._columns().to_pandas()

    def to_xarray(self) -> xarray.Dataset:
        """The columns of `to_pandas` over the dimension `row`. Raises InputError without xarray."""
        return self._columns().to_xarray()

    def _repr_html_(self) -> str:
        return self._columns()._repr_html_()

    def __repr__(self) -> str:
        counts = (
            f"pairs={len(self)} tunnels={int(self.tunnel.sum())}"
            f" undecided={int((~self.touches).sum())}"
        )
        return f"<{type(self).__name__} {counts}>"


@dataclass(frozen=True, repr=False)
class ParticleSweep(SweepRows):
    """Particles that touch a shape, and lines of cables and triangles of particles that do while
    none of their particles does, in a part of the step.

    kind: uint8[n], 0 of a particle, 1 of a line, 2 of a triangle. indices: int32[n, 3], rows of the
        model's particles; -1 none. particle: int32[n], the first of them. barycentric: float32[n,
        3], weights of the particles of a line or triangle at the point that touches at `enter`.
        shape: int32[n], rows of the model's shapes. Rows are ordered by frame, world, kind, indices
        and shape. point: [n, 3], point of the shape's surface at `enter`, in world [m]. The normal
        is from the shape to the particle; distances are less the shape's margin and the particle's
        radius.
    """

    particle: np.ndarray
    shape: np.ndarray
    point: np.ndarray
    kind: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray


@dataclass(frozen=True, repr=False)
class SelfSweep(SweepRows):
    """Vertices and faces, and pairs of edges, of cloths and soft bodies that touch.

    kind: uint8[n], 0 a vertex and a face, 1 two edges. indices: int32[n, 4], rows of the model's
        particles, of a vertex and a triangle or of both edges. Rows are ordered by frame, world,
        kind and indices. barycentric: float32[n, 4], weights of the particles at `enter`. point0,
        point1: [n, 3], closest points of both elements at `enter`, in world [m]. The normal is from
        the first element to the second; distances are without radii.
    """

    kind: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray
    point0: np.ndarray
    point1: np.ndarray


@dataclass(frozen=True, repr=False)
class Sweep(SweepRows):
    """Pairs of shapes that touch.

    shape0, shape1: int32[n], rows of the model's shapes, shape0 < shape1. Rows are ordered by
        frame, world, shape0 and shape1; a pair that stays apart has none. point0, point1: [n, 3],
        witness points at `enter`, in world [m]. The normal is from shape0 to shape1.
    shape_path: paths of the model's shapes. particles: the particles that touch a shape; None of a
    model without any. elements: the elements of cloths and soft bodies that touch each other; None
    without `self_contacts`.
    """

    shape0: np.ndarray
    shape1: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    shape_path: tuple[str, ...] = field(default=())
    particles: ParticleSweep | None = None
    elements: SelfSweep | None = None


Found = TypeVar("Found", bound=SweepRows)


def _swept_groups(
    device_model: DeviceModel,
    model: Model,
    motion: Motion,
    contact: ContactOptions,
    tolerance: float,
    store: FieldCache,
) -> dict[str, GroupRows]:
    """The rows of the tables of steps, by name. tolerance: [m]. store: of distance fields."""
    stages = sweep_stages(device_model, contact, tolerance, motion.float_type, store)
    load_stages(stages, device_model.device)
    return consecutive_groups(
        [
            {
                stage.group.name: rows_within(stage, device_model, batch, MEMORY_LIMIT)
                for stage in stages
            }
            for batch in pose_batches(motion, model, CELLS_AT_ONCE, TimingReport(), with_next=True)
        ]
    )


OPTIONS = {
    **SCENE_PARAMETERS,
    **option_parameters(ContactOptions, names=["margin", "static_pairs", *OF_ELEMENTS]),
    **option_parameters(EngineOptions, names=["device", "cache_dir", "cache_limit"]),
}


@python_call
@with_options(OPTIONS)
def sweep(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    tolerance: float | str = DEFAULT_SWEEP_TOLERANCE,
    **options: Any,
) -> Sweep:
    """Pairs of shapes, and particles and shapes, that touch between the frames of a motion: the
    rows that `collide run --sweep` writes.

    Args:
        scene, recording: as of `run`, scene files or a model; the motion has two frames at least.
        tolerance: shapes touch at this distance or less, of their surfaces inflated by their
            margins. This and the other lengths are in metres, or texts such as "2mm".
        options: of `run` for scenes and recordings. margin: in place of every shape's own [m].
            self_contacts, self_contact_rings, self_contact_rest: elements of cloths and soft
            bodies touch at `self_contacts` [m]; 0 finds none. device, cache_dir, cache_limit.
    Returns:
        The pairs; between the frames each body moves in a straight line and turns by the shortest
        rotation, and each particle moves in a straight line.
    Raises:
        InputError: a body rotates by half a turn in one step, the motion does not fit the scene, or
            an option is invalid. Warnings about files are `UserWarning`.
    """
    tolerance = checked_metres(tolerance, "tolerance")
    check_sweep_tolerance(tolerance, "tolerance", "sweep")
    request = source_request(EngineRequest, scene, recording, options)
    loaded, motion = loaded_with_warnings(request)
    with closing(motion):
        return _swept(loaded.model, motion, request, tolerance)


def _swept(model: Model, motion: Motion, request: EngineRequest, tolerance: float) -> Sweep:
    """What touches between the frames of a motion, at the distance `tolerance` [m] or less."""
    check_frames(motion)
    contact = request.contact
    engine = request.engine
    applied = contact.apply(model)
    device_model = upload_model(applied, find_device(engine.device))
    store = FieldCache(engine.cache_dir, engine.cache_limit)
    tables = _swept_groups(device_model, applied, motion, contact, tolerance, store)
    particles = (
        _result(ParticleSweep, tables[SOFT_SWEEP.name], model, motion)
        if SOFT_SWEEP.name in tables
        else None
    )
    elements = (
        _result(SelfSweep, tables[SELF_SWEEP.name], model, motion)
        if SELF_SWEEP.name in tables
        else None
    )
    rows = _result(Sweep, tables[SWEEP.name], model, motion)
    return replace(
        rows, shape_path=tuple(model.shapes.path), particles=particles, elements=elements
    )


def _result(kind: type[Found], rows: GroupRows, model: Model, motion: Motion) -> Found:
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    frame, world = np.divmod(cell, model.world_count)
    columns = dict(rows.columns)
    status = columns.pop("status")
    tunnel = columns.pop("tunnel")
    if kind is ParticleSweep:
        columns["particle"] = columns["indices"][:, 0]
        columns["point"] = columns.pop("point_world")
    begin = motion.time[frame]
    end = motion.time[frame + 1]
    times = (begin + columns[name] * (end - begin) for name in ("enter", "leave"))
    return kind(
        frame=frame, world=world, **columns, touches=status == TOUCHES, tunnel=tunnel == 1,
        **dict(zip(("enter_time", "leave_time"), times, strict=True)),
    )  # fmt: skip
