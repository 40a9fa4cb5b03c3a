"""The verb `clearance`: least distances of a scene in motion, without a cutoff, per pair, per body or of selections."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from collidecli.commands.clearance_blocks import Clearance, ClearanceBlock, selected_items
from collidecli.commands.output_paths import HDF5_ENDINGS, check_ending, check_output
from collidecli.commands.result import Progress, Result
from collidecli.commands.scenes import LoadedScene, SceneRequest, scene_in_motion
from collidecli.engine.joint_kinematics import begin_loading_kinematics
from collidecli.engine.pair_distances import PairDistances
from collidecli.engine.pipeline_builder import find_device
from collidecli.engine.scheduler import processing_threads
from collidecli.errors import InputError
from collidecli.exporters.arrays import episode_arrays
from collidecli.importers.meshes.part_cache import parts_kept_in
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.option_choices import CLEARANCE_THINGS
from collidecli.scene.run_options import EngineOptions
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.clearance_files import ARRAYS, ClearanceWriter
from collidecli.storage.field_cache import FieldCache
from collidecli.storage.flat_tables import TableColumn, csv_table, parquet_table, require_pyarrow

CLEARANCE_ENDINGS = (*HDF5_ENDINGS, ".parquet", ".csv")
Write = Callable[[ClearanceBlock], None]


@dataclass(frozen=True, kw_only=True)
class ClearanceRequest(SceneRequest):
    """A scene, its motion, and what is measured.

    by: one of CLEARANCE_THINGS; "" is "all" with `between`, else "pair". between: two patterns, or none. top: number of
    pairs that are nearest in the whole motion; 0 is all pairs. output: "" writes no file. first: items that are listed.
    bins: intervals of time of the series in the result; 0 for no series.
    """

    by: str = ""
    between: Sequence[str] = ()
    top: int = 0
    output: str = ""
    compression: str = "none"
    first: int = 20
    bins: int = 0
    force: bool = False
    engine: EngineOptions = field(default_factory=EngineOptions)

    @property
    def memory_limit(self) -> int:
        return self.engine.memory_limit

    @property
    def kind(self) -> str:
        """What has a least distance: one of CLEARANCE_THINGS."""
        return self.by or ("all" if self.between else CLEARANCE_THINGS[0])


@dataclass(frozen=True, kw_only=True)
class ClearanceResult(Result):
    """Least distances of a motion. Lengths [m], times [s].

    pairs: pairs of shapes that may touch; of several templates, of all. measured: exact distances that were computed,
    a part of pairs times cells where bounds suffice. items: pairs, bodies, or 1. listed: the nearest of them, each with
    its least distance and where it is. series: least distances of the listed items over time, "inf" where
    there are none.
    """

    SCHEMA: ClassVar[str] = "collide.clearance/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("series",)

    scene: str
    scene_sha256: str
    trajectory: str | None
    trajectory_sha256: str
    by: str
    between: list[str]
    frames: int
    worlds: int
    pairs: int
    items: int
    measured: int
    listed: list[dict[str, Any]]
    wall_seconds: float
    warnings: tuple[str, ...]
    output: str | None
    bytes: int | None
    series: dict[str, Any] | None = None


def clearance(request: ClearanceRequest, progress: Progress = None) -> ClearanceResult:
    """Measures the least distances of a motion and writes the output.

    Raises InputError for an unusable scene, recording or selection, OutputError; then there is no output.
    """
    check_clearance(request)
    device = find_device(request.engine.device)
    with parts_kept_in(request.engine.cache_dir, request.engine.cache_limit):
        scene, motion = scene_in_motion(request)
    try:
        model = request.contact.apply(scene.model)
        measured = MeasuredMotion(request, model, motion, device)
        start = time.perf_counter() - measured.search_seconds
        tally = _Tally(measured, request)
        done = 0
        with _written(request, scene, measured) as write:
            for block in measured.blocks():
                write(block)
                tally.add(block)
                done += len(block.distance)
                if progress:
                    progress(done, len(motion.time))
        return tally.result(request, scene, time.perf_counter() - start)
    finally:
        motion.close()


def check_clearance(request: ClearanceRequest) -> None:
    """Raises InputError for options that do not go together, OutputError for an output that cannot be written."""
    request.engine.checked()
    request.contact.checked()
    if request.by and request.by not in CLEARANCE_THINGS:
        raise InputError(f"by is '{request.by}'", "--by", f"give one of: {', '.join(CLEARANCE_THINGS)}")
    if len(request.between) not in (0, 2):
        raise InputError(f"{len(request.between)} selections are given", "--between", "give two patterns, or none")
    if request.top < 0:
        raise InputError(f"top is {request.top}", "--top", "give at least 1, or 0 for all pairs")
    if request.top and request.kind != "pair":
        fix = "remove --top, or add --by pair"
        raise InputError(f"the nearest pairs are selected, and the distances are by {request.kind}", "--top", fix)
    if request.bins and not request.first:
        raise InputError("the chart shows the listed distances, and none is listed", "--plot", "give --first 1 or more")
    if request.compression != "none" and not request.output.lower().endswith(HDF5_ENDINGS):
        raise InputError(
            "compresses an HDF5 file, and none is written", "--compression", "leave it out, or give -o FILE.h5"
        )
    if request.output:
        check_ending(request.output, CLEARANCE_ENDINGS, "a file of distances")
        check_output(request.output, request.force, (*request.scenes, request.trajectory))
        if request.output.lower().endswith(".parquet"):
            require_pyarrow("Parquet")


class MeasuredMotion:
    """The items of a model in motion and their least distances.

    search_count, search_seconds: distances measured to find the nearest pairs, and its time [s]. notes: warnings.
    """

    def __init__(self, request: ClearanceRequest, model: Model, motion: Motion, device: Any) -> None:
        self.model, self.motion, self.items = model, motion, selected_items(model, request.kind, request.between)
        self.pair_count = len(self.items.pair)
        fields = FieldCache(request.engine.cache_dir, request.engine.cache_limit)
        begin_loading_kinematics(motion)
        distances = PairDistances(model, device, self.items.pair, fields)
        threads = processing_threads(request.engine.threads)
        self.search_count, start = 0, time.perf_counter()
        if 0 < request.top < len(self.items):
            search = Clearance(model, motion, self.items, distances, threads)
            nearest = np.sort(search.nearest_pairs(request.top))
            self.items = self.items.only(nearest)
            self.search_count = search.measured
        self.search_seconds = time.perf_counter() - start
        self._clearance = Clearance(model, motion, self.items, distances, threads)
        unmeasured = ("distances of particles are not measured",) if len(model.particles) else ()
        self.notes = (*fields.notes, *unmeasured)

    def blocks(self) -> Iterator[ClearanceBlock]:
        """The least distances of all frames, in order."""
        return self._clearance.blocks()

    @property
    def episodes(self) -> Episodes | None:
        """Of the motion in the worlds of the model."""
        return episodes_in(self.motion, self.model.world_count)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of frames, worlds and items."""
        return len(self.motion.time), self.model.world_count, len(self.items)


class _Tally:
    """The least distance of each item, where it is, and its series in bins of frames."""

    def __init__(self, measured: MeasuredMotion, request: ClearanceRequest) -> None:
        self._measured, self._count = measured, measured.search_count
        frames, _, items = measured.shape
        self.least = np.full(items, np.inf)
        self._at = [{} for _ in range(items)]
        self._per_bin = max(1, -(-frames // request.bins)) if request.bins else 0
        bins = -(-frames // self._per_bin) if self._per_bin else 0
        self._series = np.full((items, bins), np.inf)

    def add(self, block: ClearanceBlock) -> None:
        """Adds a block."""
        self._count += block.measured
        values = np.where(np.isnan(block.distance), np.inf, block.distance)
        flat = values.reshape(-1, values.shape[2])
        cell = flat.argmin(axis=0)
        found = flat[cell, np.arange(flat.shape[1])]
        for item in np.flatnonzero(found < self.least).tolist():
            frame, world = divmod(int(cell[item]), values.shape[1])
            self._at[item] = self._place(block, frame, world, item)
        self.least = np.minimum(self.least, found)
        if self._per_bin:
            for frame, row in enumerate(values.min(axis=1)):
                bin_number = (block.first + frame) // self._per_bin
                self._series[:, bin_number] = np.minimum(self._series[:, bin_number], row)

    def _place(self, block: ClearanceBlock, frame: int, world: int, item: int) -> dict[str, Any]:
        at = (frame, world, item)
        pair = self._measured.items.pair[block.pair[at]]
        paths = [self._measured.model.shapes.path[row] for row in pair.tolist()]
        return {
            "frame": block.first + frame,
            "time": float(self._measured.motion.time[block.first + frame]),
            "world": world,
            "shape0": paths[0],
            "shape1": paths[1],
            "error": float(block.error[at]),
            **{name: getattr(block, name)[at].tolist() for name in ("normal", "point0", "point1")},
        }

    def result(self, request: ClearanceRequest, scene: LoadedScene, seconds: float) -> ClearanceResult:
        """The result of the verb."""
        items, motion = self._measured.items, self._measured.motion
        order = [k for k in np.argsort(self.least, kind="stable").tolist() if np.isfinite(self.least[k])]
        listed = []
        for k in order[: request.first]:
            names = {"body": items.first[k]} if request.kind == "body" else {}
            listed.append({**names, "least_distance": float(self.least[k]), **self._at[k]})
        series = None
        if self._per_bin:
            starts = np.arange(self._series.shape[1]) * self._per_bin
            series = {
                "frames_per_bin": self._per_bin,
                "frame": starts.tolist(),
                "time": motion.time[starts].tolist(),
                "least": [self._series[k].tolist() for k in order[: request.first]],
            }
        return ClearanceResult(
            scene=scene.name,
            scene_sha256=scene.sha256,
            trajectory=request.trajectory,
            trajectory_sha256=motion.sha256,
            by=request.kind,
            between=list(request.between),
            frames=len(motion.time),
            worlds=self._measured.model.world_count,
            pairs=self._measured.pair_count,
            items=len(items),
            measured=self._count,
            listed=listed,
            wall_seconds=seconds,
            warnings=(*scene.warnings, *motion.warnings, *self._measured.notes),
            output=request.output or None,
            bytes=os.path.getsize(request.output) if request.output else None,
            series=series,
        )


@contextmanager
def _written(request: ClearanceRequest, scene: LoadedScene, measured: MeasuredMotion) -> Iterator[Write]:
    """A function that writes a block to the output, which appears when the `with` block ends without an error."""
    if not request.output:
        yield lambda block: None
        return
    with ExitStack() as stack:
        output = stack.enter_context(AtomicOutput(request.output, request.force))
        if request.output.lower().endswith(HDF5_ENDINGS):
            writer = _hdf5(output, request, scene, measured)
            with writer:
                yield lambda block: writer.append(block.first, {name: getattr(block, name) for name in ARRAYS})
        else:
            columns = table_columns(measured, request.kind)
            about = {"scene": scene.name, "scene_sha256": scene.sha256}
            is_csv = request.output.lower().endswith(".csv")
            with csv_table(output, columns) if is_csv else parquet_table(output, columns, about) as append:
                yield lambda block: _append_rows(append, measured, request.kind, block)
        output.commit()


def _hdf5(
    output: AtomicOutput, request: ClearanceRequest, scene: LoadedScene, measured: MeasuredMotion
) -> ClearanceWriter:
    items, motion = measured.items, measured.motion
    tables = {
        "time": motion.time,
        "step": motion.step,
        "shape_path": np.array(measured.model.shapes.path, object),
        "pair_shape": items.pair,
        "pair_margin": items.margin,
        "item_first": np.array(items.first, object),
        "item_second": np.array(items.second, object),
        **{array.name: next(iter(array.pieces())) for array in episode_arrays(measured.episodes)},
    }
    about = {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        "trajectory_sha256": motion.sha256,
        "config": json.dumps(_config(request), sort_keys=True),
    }
    return ClearanceWriter(output, tables, measured.shape, about, request.compression)


def _config(request: ClearanceRequest) -> dict[str, object]:
    """Options that change the distances."""
    importing = {**asdict(replace(request.scene_options, strict_meshes=False)), **asdict(request.recording)}
    given = {name: value for name, value in importing.items() if value}
    contact = {"margin": request.contact.margin, "static_pairs": request.contact.static_pairs}
    own = {"by": request.kind, "between": list(request.between), "top": request.top}
    return {**given, **contact, **own, "frames": request.frames, "worlds": request.worlds}


def table_columns(measured: MeasuredMotion, kind: str) -> tuple[TableColumn, ...]:
    """Columns of the tables."""
    whole, real, paths = np.dtype(np.int64), np.dtype(np.float64), measured.model.shapes.path
    episodes = measured.episodes
    vectors = [(f"{name}_{axis}", unit) for name, unit in _VECTORS.items() for axis in "xyz"]
    return (
        TableColumn("frame", whole),
        TableColumn("step", whole),
        TableColumn("time", real, "s"),
        TableColumn("world", whole),
        *([] if episodes is None else [TableColumn("episode", whole, words=("", *episodes.name))]),
        *([TableColumn("body", whole, words=measured.items.first)] if kind == "body" else []),
        TableColumn("shape0", np.dtype(np.int32), words=paths),
        TableColumn("shape1", np.dtype(np.int32), words=paths),
        TableColumn("distance", real, "m"),
        TableColumn("error", real, "m"),
        *(TableColumn(name, real, unit) for name, unit in vectors),
    )


_VECTORS = {"normal": "", "point0": "m", "point1": "m"}


def _append_rows(append: Callable[..., None], measured: MeasuredMotion, kind: str, block: ClearanceBlock) -> None:
    frame, world, item = np.nonzero(block.pair >= 0)
    if not len(frame):
        return
    at = frame, world, item
    pair = measured.items.pair[block.pair[at]]
    number = block.first + frame
    rows = {
        "frame": number,
        "step": measured.motion.step[number],
        "time": measured.motion.time[number],
        "world": world,
        "body": item,
        "shape0": pair[:, 0],
        "shape1": pair[:, 1],
        "distance": block.distance[at],
        "error": block.error[at],
    }
    if measured.episodes is not None:
        rows["episode"] = measured.episodes.row(world, number) + 1
    for name in _VECTORS:
        rows |= {f"{name}_{axis}": getattr(block, name)[at][:, k] for k, axis in enumerate("xyz")}
    append({column.name: rows[column.name] for column in table_columns(measured, kind)})
