"""The verb `clearance`: least distances of a scene in motion, without a cutoff."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from collidecli.analysis.summary import TimeBins
from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.exporters.array_npz import arrays_npz
from collidecli.exporters.arrays import episode_arrays
from collidecli.motions.clearance import ClearanceBlock, MeasuredMotion
from collidecli.motions.clearance_items import Items
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import MotionResult, scene_in_motion
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import check_ending, check_output
from collidecli.results.result import Progress
from collidecli.scene.chosen_pairs import trigger_notes
from collidecli.scene.option_values import CLEARANCE_THINGS
from collidecli.scene.patterns import check_pairs_of_patterns
from collidecli.storage.array_files import arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import (
    Append,
    TableColumn,
    cell_columns,
    csv_table,
    parquet_table,
    require_pyarrow,
)

NPZ_ENDING = ".npz"
ENDINGS = (*HDF5_ENDINGS, NPZ_ENDING, ".parquet", ".csv")
Write = Callable[[ClearanceBlock], None]


@dataclass(frozen=True, kw_only=True)
class ClearanceRequest(EngineRequest):
    """A scene, its motion, and what is measured.

    by: one of CLEARANCE_THINGS; "" is "all" with `between`, else "pair". between: two patterns for
    each selection. top: number of pairs that are nearest in the whole motion; 0 is all pairs.
    output: "" writes no file. first: items that are listed. bins: intervals of time of the series
    in the result; 0 for no series.
    """

    by: str = ""
    between: Sequence[str] = ()
    top: int = 0
    output: str = ""
    compression: str = "none"
    first: int = 20
    bins: int = 0
    force: bool = False

    @property
    def kind(self) -> str:
        """What has a least distance: one of CLEARANCE_THINGS."""
        return self.by or ("all" if self.between else CLEARANCE_THINGS[0])


@dataclass(frozen=True, kw_only=True)
class ClearanceResult(MotionResult, schema="collide.clearance/1", optional=("series",)):
    """Least distances of a motion. Lengths [m], times [s].

    pairs: pairs of names that may touch, of shapes and of particle objects, in any template.
    measured: exact distances that were computed, a part of pairs times cells where bounds suffice.
    items: pairs, bodies, or 1. listed: the nearest of them, each with its least distance and where
    it is. radii: whether particles are measured, less their radii. series: least distances of the
    listed items over time, "inf" where there are none.
    """

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
    radii: bool = False
    series: dict[str, Any] | None = None


def clearance(request: ClearanceRequest, progress: Progress = None) -> ClearanceResult:
    """Measures the least distances of a motion and writes the output.

    Raises InputError for an unusable scene, recording or selection, OutputError; then there is no
    output.
    """
    check_clearance(request)
    device = find_device(request.engine.device)
    scene, motion = scene_in_motion(request)
    try:
        model = request.contact.apply(scene.model)
        measured = MeasuredMotion(
            request.kind, request.between, request.top, request.engine, model, motion, device
        )
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
    """Raises InputError for options that do not go together, OutputError for an output that cannot
    be written."""
    request.engine.checked()
    request.contact.checked()
    if request.by and request.by not in CLEARANCE_THINGS:
        raise InputError(
            f"by is '{request.by}'", "--by", f"give one of: {', '.join(CLEARANCE_THINGS)}"
        )
    check_pairs_of_patterns(request.between, "--between")
    if request.top < 0:
        raise InputError(f"top is {request.top}", "--top", "give at least 1, or 0 for all pairs")
    if request.top and request.kind != "pair":
        fix = "remove --top, or add --by pair"
        raise InputError(
            f"the nearest pairs are selected, and the distances are by {request.kind}", "--top", fix
        )
    if request.bins and not request.first:
        raise InputError(
            "the chart shows the listed distances, and none is listed",
            "--plot",
            "give --first 1 or more",
        )
    if request.compression != "none" and not request.output.lower().endswith(HDF5_ENDINGS):
        what = "compresses an HDF5 file, and none is written"
        raise InputError(what, "--compression", "leave it out, or give -o FILE.h5")
    if request.output:
        check_ending(request.output, ENDINGS, "a file of distances")
        check_output(request.output, request.force, (*request.scenes, request.trajectory))
        if request.output.lower().endswith(".parquet"):
            require_pyarrow("Parquet")


class _Tally:
    def __init__(self, measured: MeasuredMotion, request: ClearanceRequest) -> None:
        self._measured = measured
        self._count = measured.search_count
        frames, _, items = measured.shape
        self.least = np.full(items, np.inf)
        self._at = [{} for _ in range(items)]
        self._bins = TimeBins(frames, request.bins) if request.bins else None
        self._series = np.full((items, 0 if self._bins is None else len(self._bins.start)), np.inf)

    def add(self, block: ClearanceBlock) -> None:
        self._count += block.measured
        values = np.where(np.isnan(block.distance), np.inf, block.distance)
        flat = values.reshape(-1, values.shape[2])
        cell = flat.argmin(axis=0)
        least = flat[cell, np.arange(flat.shape[1])]
        for item in np.flatnonzero(least < self.least).tolist():
            frame, world = divmod(int(cell[item]), values.shape[1])
            self._at[item] = self._place(block, frame, world, item)
        self.least = np.minimum(self.least, least)
        if self._bins is not None:
            for frame, row in enumerate(values.min(axis=1)):
                bin_number = self._bins.of[block.first + frame]
                self._series[:, bin_number] = np.minimum(self._series[:, bin_number], row)

    def _place(self, block: ClearanceBlock, frame: int, world: int, item: int) -> dict[str, Any]:
        at = (frame, world, item)
        pair = self._measured.items.pair[block.pair[at]]
        paths = [self._measured.shape_names[row] for row in pair.tolist()]
        episodes = self._measured.episodes
        return {
            **(
                {}
                if episodes is None
                else {"episode": episodes.name_at(world, block.first + frame)}
            ),
            "frame": block.first + frame,
            "time": float(self._measured.motion.time[block.first + frame]),
            "world": world,
            "shape0": paths[0],
            "shape1": paths[1],
            "error": float(block.error[at]),
            **{name: getattr(block, name)[at].tolist() for name in ("normal", "point0", "point1")},
            **_element(block, at),
        }

    def result(
        self, request: ClearanceRequest, scene: LoadedScene, seconds: float
    ) -> ClearanceResult:
        items = self._measured.items
        motion = self._measured.motion
        order = [
            k for k in np.argsort(self.least, kind="stable").tolist() if np.isfinite(self.least[k])
        ]
        listed = []
        for k in order[: request.first]:
            listed.append(
                {
                    **_names(items, request.kind, k),
                    "least_distance": float(self.least[k]),
                    **self._at[k],
                }
            )
        series = None
        if self._bins is not None:
            least = [self._series[k].tolist() for k in order[: request.first]]
            series = {**self._bins.axis(motion.time), "least": least}
        return ClearanceResult(
            **MotionResult.source(request, scene, motion),
            by=request.kind,
            between=list(request.between),
            frames=len(motion.time),
            worlds=self._measured.model.world_count,
            pairs=self._measured.pair_count,
            items=len(items),
            measured=self._count,
            listed=listed,
            wall_seconds=seconds,
            warnings=(
                *scene.warnings,
                *motion.warnings,
                *self._measured.notes,
                *trigger_notes(scene.model.shapes.is_trigger),
            ),
            output=request.output or None,
            bytes=os.path.getsize(request.output) if request.output else None,
            radii=self._measured.has_objects,
            series=series,
        )


def _element(block: ClearanceBlock, at: tuple[int, int, int]) -> dict[str, Any]:
    """The nearest vertex, edge or face of each particle object of an item's nearest pair, without
    those of shapes."""
    found: dict[str, Any] = {}
    for side in ("", "0"):
        of_items = getattr(block, f"indices{side}")
        if of_items is None or of_items[at][0] < 0:
            continue
        indices = of_items[at]
        count = int((indices >= 0).sum())
        found[f"indices{side}"] = indices[:count].tolist()
        found[f"barycentric{side}"] = getattr(block, f"barycentric{side}")[at][:count].tolist()
    return found


@contextmanager
def _written(
    request: ClearanceRequest, scene: LoadedScene, measured: MeasuredMotion
) -> Iterator[Write]:
    """A function that writes a block to the output, which appears when the `with` block ends
    without an error."""
    if not request.output:
        yield lambda block: None
        return
    about: dict[str, Any] = {"scene": scene.name, "scene_sha256": scene.sha256}
    with AtomicOutput(request.output, request.force) as output:
        if request.output.lower().endswith((*HDF5_ENDINGS, NPZ_ENDING)):
            about |= {"trajectory_sha256": measured.motion.sha256, "config": _config(request)}
            arrays = ARRAYS | element_arrays(measured)
            units = {"time": "s", **{name: unit for name, (*_, unit) in arrays.items()}}
            dense = {
                name: (np.dtype(kind), (*measured.shape, *element))
                for name, (kind, element, _) in arrays.items()
            }
            form = "collide-clearance"
            tables = _tables(measured)

            def rows(block: ClearanceBlock) -> dict[str, np.ndarray]:
                return {name: getattr(block, name) for name in arrays}

            if request.output.lower().endswith(NPZ_ENDING):
                with arrays_npz(output, request.output, form, about, tables, dense) as append:
                    yield lambda block: append(rows(block))
            else:
                file = form, about, tables, units, dense
                with arrays_h5(output, *file, request.compression, checksums=False) as append:
                    yield lambda block: append(block.first, rows(block))
        else:
            columns = table_columns(measured, request.kind)
            is_csv = request.output.lower().endswith(".csv")
            with (
                csv_table(output, columns)
                if is_csv
                else parquet_table(output, columns, about) as append
            ):
                yield lambda block: _append_rows(append, measured, columns, block)
        output.commit()


def _tables(measured: MeasuredMotion) -> dict[str, np.ndarray]:
    items = measured.items
    motion = measured.motion
    return {
        "time": motion.time,
        "step": motion.step,
        "shape_path": np.array(measured.paths, object),
        "pair_shape": items.pair,
        "pair_margin": items.margin,
        "item_first": np.array(items.first, object),
        "item_second": np.array(items.second, object),
        **{array.name: next(iter(array.pieces())) for array in episode_arrays(measured.episodes)},
    }


ARRAYS = {
    "distance": (np.float64, (), "m"),
    "error": (np.float64, (), "m"),
    "normal": (np.float64, (3,), ""),
    "point0": (np.float64, (3,), "m"),
    "point1": (np.float64, (3,), "m"),
    "pair": (np.int32, (), ""),
}
"""Type, shape of an element and unit of each array [F, W, I, ...]."""
ELEMENT_ARRAYS = {
    "indices": (np.int32, (3,), ""),
    "barycentric": (np.float64, (3,), ""),
}
"""Further arrays where pairs have particle objects."""
FIRST_ARRAYS = {f"{name}0": kind for name, kind in ELEMENT_ARRAYS.items()}
"""Further arrays where pairs have two of them."""


def element_arrays(measured: MeasuredMotion) -> dict[str, tuple[Any, tuple[int, ...], str]]:
    """The arrays of particle objects that an output has."""
    of_first = FIRST_ARRAYS if measured.has_two else {}
    return (ELEMENT_ARRAYS if measured.has_objects else {}) | of_first


def _config(request: ClearanceRequest) -> dict[str, object]:
    importing = {
        **asdict(replace(request.scene_options, strict_meshes=False)),
        **asdict(request.recording),
    }
    given = {name: value for name, value in importing.items() if value}
    contact = {"margin": request.contact.margin, "static_pairs": request.contact.static_pairs}
    selection = {"by": request.kind, "between": list(request.between), "top": request.top}
    return {**given, **contact, **selection, "frames": request.frames, "worlds": request.worlds}


def table_columns(measured: MeasuredMotion, kind: str) -> tuple[TableColumn, ...]:
    """Columns of the tables."""
    real = np.dtype(np.float64)
    paths = measured.shape_names
    vectors = [(f"{name}_{axis}", unit) for name, unit in _VECTORS.items() for axis in "xyz"]
    return (
        *cell_columns(None if measured.episodes is None else measured.episodes.name),
        *_item_columns(measured.items, kind),
        TableColumn("shape0", np.dtype(np.int32), words=paths),
        TableColumn("shape1", np.dtype(np.int32), words=paths),
        TableColumn("distance", real, "m"),
        TableColumn("error", real, "m"),
        *(TableColumn(name, real, unit) for name, unit in vectors),
        *(
            TableColumn(f"{name}_{k}", np.dtype(element))
            for name, (element, _, _) in element_arrays(measured).items()
            for k in range(3)
        ),
    )


def _names(items: Items, kind: str, item: int) -> dict[str, Any]:
    """What tells an item from the others beside its nearest pair: its body, or its two patterns."""
    if kind == "body":
        return {"body": items.first[item]}
    if _has_selections(items, kind):
        return {"between": [items.first[item], items.second[item]]}
    return {}


def _item_columns(items: Items, kind: str) -> list[TableColumn]:
    """The column of `_names`."""
    number = np.dtype(np.int64)
    if kind == "body":
        return [TableColumn("body", number, words=items.first)]
    if _has_selections(items, kind):
        both = zip(items.first, items.second, strict=True)
        return [TableColumn("between", number, words=tuple(",".join(pair) for pair in both))]
    return []


def _has_selections(items: Items, kind: str) -> bool:
    return kind == "all" and len(items) > 1


_VECTORS = {"normal": "", "point0": "m", "point1": "m"}


def _append_rows(
    append: Append, measured: MeasuredMotion, columns: Sequence[TableColumn], block: ClearanceBlock
) -> None:
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
        "between": item,
        "shape0": pair[:, 0],
        "shape1": pair[:, 1],
        "distance": block.distance[at],
        "error": block.error[at],
    }
    if measured.episodes is not None:
        rows["episode"] = measured.episodes.row(world, number) + 1
    for name in _VECTORS:
        rows |= {f"{name}_{axis}": getattr(block, name)[at][:, k] for k, axis in enumerate("xyz")}
    for name in element_arrays(measured):
        rows |= {f"{name}_{k}": getattr(block, name)[at][:, k] for k in range(3)}
    append({column.name: rows[column.name] for column in columns})
