"""The problem: a scene in motion as an adapter reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collidecli.adapters.packing import ROWS, packed_problem
from collidecli.adapters.processes import check_problem_size
from collidecli.adapters.rows import EngineRows, read_rows
from collidecli.analysis.totals import ContactCounts, Tally
from collidecli.analysis.touch_intervals import Names
from collidecli.engine.distances.pairs import PairDistanceRows, PairDistances
from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.exporters.arrays import held, write_npz
from collidecli.motions.clearance import shape_poses
from collidecli.motions.clearance_items import selected_items
from collidecli.motions.collision import contact_writer
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import MotionResult, scene_in_motion
from collidecli.numerics.poses import compose_poses, inverse_poses, moved_points
from collidecli.results.result import Progress
from collidecli.scene.allowed_pairs import pair_lengths
from collidecli.scene.arguments import python_methods
from collidecli.scene.chosen_pairs import trigger_notes
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import RIGID_COLUMNS, ROW_ORDER
from collidecli.scene.distinct_values import distinct
from collidecli.scene.mixing import pair_rows
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.model_source import SourceOfSet
from collidecli.scene.motion import Motion, episodes_in
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.header import ENGINE_ATTRIBUTES, EngineRecord
from collidecli.storage.process_activity import reading
from collidecli.temporary_folders import TemporaryFolder

FRAMES_AT_ONCE = 256


@python_methods
@dataclass(frozen=True)
class Problem:
    """A scene in motion as an adapter of another engine reads it: C cells, a world in a frame each;
    S shapes; K pairs.

    model: with hulls, meshes and heightfields. arrays: by name, such as pose [C, S, 7], world poses
    of shapes, and pair [K, 2], the pairs that may touch (docs/reference/engine-problem.md).
    warnings: of the scene and of its motion.
    """

    request: EngineRequest
    model: Model
    scene: LoadedScene
    motion: Motion
    arrays: Mapping[str, np.ndarray]
    frames: int
    warnings: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of cells, shapes and pairs."""
        return len(self.arrays["pose"]), len(self.model.shapes), len(self.arrays["pair"])

    def distances(self, cell: np.ndarray, pair: np.ndarray, device: str = "") -> PairDistanceRows:
        """Exact distances of pairs in cells, int[n] each, without margins: distance, point0, point1
        and normal."""
        shapes = self.arrays["pair"]
        pose = self.arrays["pose"]
        cell = np.asarray(cell)
        pairs = shapes[np.asarray(pair)]
        return PairDistances(self.model, find_device(device), shapes).measure(
            pairs, pose[cell[:, None], pairs]
        )

    def write_contacts(
        self, path: str | os.PathLike[str], engine: str, force: bool = False, **rows: Any
    ) -> None:
        """Writes contacts of an engine as a contact set.

        Args:
            rows: the arrays cell, pair, distance, normal and point, and any other of
                docs/reference/engine-problem.md.
        Raises InputError for arrays that do not fit, OutputError; then no file is left.
        """
        _, shapes, pairs = self.shape
        told = {"shape_treated": np.full(shapes, "exact"), "shape_reason": np.full(shapes, "")}
        told |= {
            "pair_asked": np.ones(pairs, bool),
            "seconds": np.full(2, np.nan),
            "stateful": False,
        }
        told |= {
            "format": ROWS,
            "version": "",
            "options": "{}",
            "interpreter": "",
            "point_rule": "midpoint",
        }
        with TemporaryFolder("rows") as folder:
            file = os.path.join(folder, "rows.npz")
            np.savez(file, **{"engine": engine, **told, **rows})
            write_rows(self, read_rows(file, self.shape), os.fspath(path), force)

    def cell_of(self, number: np.ndarray) -> np.ndarray:
        """int64[n]: the cells of numbers frame * world count + world; -1 outside of every
        episode."""
        cells = np.full(self.frames * self.model.world_count, -1)
        cells[self.numbers] = np.arange(len(self.numbers))
        return cells[number]

    def margins(self, shapes: np.ndarray) -> np.ndarray:
        """float64[n]: sums of the margins of pairs of shapes [n, 2] [m]."""
        return pair_lengths(self.model, shapes, "margin")

    def body_poses(self, cell: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """float64[n, 7]: world poses of the bodies of shapes [n]; the world's frame of a static
        shape."""
        local = self.model.shapes.pose[shape]
        poses = compose_poses(self.arrays["pose"][cell, shape], inverse_poses(local))
        poses[self.model.shapes.body[shape] == STATIC_BODY] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        return poses

    @property
    def numbers(self) -> np.ndarray:
        """int64[C]: frame * world count + world of each cell."""
        return self.arrays["frame"] * self.model.world_count + self.arrays["world"]

    def pair_of(self, shapes: np.ndarray) -> np.ndarray:
        """int64[n]: rows of pairs of shapes [n, 2], first < second; -1 of shapes that may not
        touch."""
        return pair_rows(self.arrays["pair"], len(self.model.shapes), shapes[:, 0], shapes[:, 1])


def load_problem(request: EngineRequest, progress: Progress = None) -> Problem:
    """The problem of a request. Raises InputError for an unusable scene or motion, and for worlds
    that differ."""
    request.contact.checked()
    scene, motion = scene_in_motion(request)
    try:
        model = request.contact.apply(scene.model)
        if len(distinct(model.world_template)) > 1:
            fix = "give one scene or one environment"
            raise InputError(
                "its worlds have different shapes, and an engine gets one set", scene.name, fix
            )
        items = selected_items(model, "pair", ())
        frames = len(motion.time)
        worlds = model.world_count
        check_problem_size(model, frames * worlds)
        blocks = []
        for first in range(0, frames, FRAMES_AT_ONCE):
            with reading("motion"):
                bodies = motion.read(range(first, min(first + FRAMES_AT_ONCE, frames)))
            blocks.append(shape_poses(model, bodies).reshape(-1, len(model.shapes), 7))
            if progress:
                progress(min(first + FRAMES_AT_ONCE, frames), frames)
        frame, world = np.divmod(np.arange(frames * worlds), worlds)
        episodes = episodes_in(motion, worlds)
        inside = (
            slice(None) if episodes is None else episodes.inside(0, frames * worlds, worlds).ravel()
        )
        cells = {"frame": frame, "world": world.astype(np.int32), "time": motion.time[frame]}
        cells = {
            name: values[inside]
            for name, values in (cells | {"pose": np.concatenate(blocks)}).items()
        }
        arrays = packed_problem(
            model, items.pair, pair_lengths(model, items.pair, "gap"), items.margin, cells
        )
        left_out = ("particles are left out",) if len(model.particles) else ()
        left_out += tuple(trigger_notes(model.shapes.is_trigger))
        warnings = (*scene.warnings, *motion.warnings, *left_out)
        return Problem(request, model, scene, motion, arrays, frames, warnings)
    finally:
        motion.close()


def write_problem(problem: Problem, path: str, force: bool) -> None:
    """Writes problem.npz. Raises OutputError; then no file is left."""
    with AtomicOutput(path, force) as output:
        write_npz(output, [held(name, values) for name, values in problem.arrays.items()])
        output.commit()


@dataclass(frozen=True, kw_only=True)
class ProblemResult(MotionResult):
    """What results say of a problem. cells: worlds of frames. pairs: those that may touch."""

    frames: int
    cells: int
    shapes: int
    pairs: int
    warnings: Sequence[str]


def about(problem: Problem, more: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of `ProblemResult`. more: warnings besides those of the problem."""
    cells, shapes, pairs = problem.shape
    return {
        **MotionResult.source(problem.request, problem.scene, problem.motion),
        "frames": problem.frames,
        "cells": cells,
        "shapes": shapes,
        "pairs": pairs,
        "warnings": (*problem.warnings, *more),
    }


def write_rows(
    problem: Problem, rows: EngineRows, path: str, force: bool, **options: Any
) -> tuple[ContactCounts, str]:
    """Writes the contact set; returns its counts and content hash. Raises OutputError; then no file
    is left."""
    model = problem.model
    motion = problem.motion
    request = problem.request
    block = contact_block(problem, rows)
    tally = Tally(Names.of(model.shapes.path, model.shapes.template))
    tally.add(block)
    importing = {**asdict(request.scene_options), **asdict(request.recording)}
    config = {
        **request.contact.stored,
        **{name: value for name, value in importing.items() if value},
    }
    config = json.dumps(
        {**config, "frames": request.frames, "worlds": request.worlds}, sort_keys=True
    )
    unheld = problem.arrays["pair"][
        ~rows.asked & (rows.treated[problem.arrays["pair"]] != "skipped").all(axis=1)
    ]
    values: dict[str, Any] = {
        name: getattr(rows, name) for name in ENGINE_ATTRIBUTES if name != "name"
    }
    tables = (tuple(rows.treated.tolist()), tuple(rows.reason.tolist()), unheld[:, 0], unheld[:, 1])
    values |= dict(zip(("treated", "reason", "not_asked0", "not_asked1"), tables, strict=True))
    record = EngineRecord(name=rows.engine, **values)
    scene = SourceOfSet.of(problem.scene.name, problem.scene.sha256, problem.scene.model)
    with contact_writer(
        path, model, motion, scene, config, force=force, engine=record, **options
    ) as writer:
        writer.append(block)
        writer.end_contacts()
        if np.isfinite(rows.seconds).all():
            calls = np.array([1, problem.shape[0]])
            writer.write_timing(
                {"stage": ["set-up", "engine"], "seconds": rows.seconds, "calls": calls}
            )
        writer.finish()
        return tally.counts(
            model.world_count, episodes_in(motion, model.world_count)
        ), writer.content_sha256


@np.errstate(invalid="ignore", over="ignore")
def contact_block(problem: Problem, rows: EngineRows) -> ContactBlock:
    """The rows as contacts of all cells, in the order of a contact set. Nothing is corrected."""
    shapes = (
        problem.arrays["pair"][rows.pair].astype(np.int64) if rows.shapes is None else rows.shapes
    )
    number = problem.numbers[rows.cell]
    points = (rows.point0, rows.point1)
    offsets = [
        moved_points(inverse_poses(problem.body_poses(rows.cell, shapes[:, k])), points[k])
        for k in (0, 1)
    ]
    values = {
        "shape0": shapes[:, 0],
        "shape1": shapes[:, 1],
        "distance": rows.distance - problem.margins(shapes),
        "normal": rows.normal,
        **{f"point{k}": points[k] for k in (0, 1)},
        **{f"offset{k}": offsets[k] for k in (0, 1)},
    }
    kind = problem.motion.float_type
    count = len(number)
    values |= {c.name: c.filled(count) for c in RIGID_COLUMNS if c.name not in values}
    columns = {c.name: values[c.name].astype(c.dtype_for(kind)) for c in RIGID_COLUMNS}
    keys = [number, columns["shape0"], columns["shape1"], *(columns[name].T for name in ROW_ORDER)]
    order = np.lexsort(np.vstack([np.atleast_2d(key).astype(np.float64) for key in keys])[::-1])
    counts = np.bincount(number, minlength=problem.frames * problem.model.world_count)
    return ContactBlock(0, counts, {name: column[order] for name, column in columns.items()})
