"""The problem: a scene in motion as an adapter reads it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.adapters.packing import ROWS, packed_problem
from collidecli.adapters.processes import check_problem_size
from collidecli.adapters.rows import read_rows
from collidecli.adapters.written_rows import write_rows
from collidecli.engine.distances import PairDistanceRows, PairDistances
from collidecli.engine.pipeline import find_device
from collidecli.errors import InputError
from collidecli.exporters.arrays import held, write_npz
from collidecli.motions.clearance import selected_items, shape_poses
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import LoadedScene, MotionResult, scene_in_motion
from collidecli.numerics import compose_poses, inverse_poses
from collidecli.results.result import Progress
from collidecli.scene.filters import pair_lengths
from collidecli.scene.mixing import pair_rows
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.process_activity import reading

FRAMES_AT_ONCE = 256


@dataclass(frozen=True)
class Problem:
    """A scene in motion as an adapter of another engine reads it: C cells, a world in a frame each; S shapes; K pairs.

    model: with hulls, meshes and heightfields. arrays: by name, such as pose [C, S, 7], world poses of shapes, and pair
    [K, 2], the pairs that may touch (docs/reference/engine-problem.md). warnings: of the scene and of its motion.
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
        """Exact distances of pairs in cells, int[n] each, without margins: distance, point0, point1 and normal."""
        shapes, pose = self.arrays["pair"], self.arrays["pose"]
        cell, pairs = np.asarray(cell), shapes[np.asarray(pair)]
        return PairDistances(self.model, find_device(device), shapes).measure(pairs, pose[cell[:, None], pairs])

    def write_contacts(self, path: str | os.PathLike[str], engine: str, force: bool = False, **rows: Any) -> None:
        """Writes contacts of an engine as a contact set.

        Args:
            rows: the arrays cell, pair, distance, normal and point, and any other of docs/reference/engine-problem.md.
        Raises InputError for arrays that do not fit, OutputError; then no file is left.
        """
        _, shapes, pairs = self.shape
        told = {"shape_treated": np.full(shapes, "exact"), "shape_reason": np.full(shapes, "")}
        told |= {"pair_asked": np.ones(pairs, bool), "seconds": np.full(2, np.nan), "stateful": False}
        told |= {"format": ROWS, "version": "", "options": "{}", "interpreter": "", "point_rule": "midpoint"}
        with tempfile.TemporaryDirectory(prefix="collide-") as folder:
            file = os.path.join(folder, "rows.npz")
            np.savez(file, **{"engine": engine, **told, **rows})
            write_rows(self, read_rows(file, self.shape), os.fspath(path), force)

    def cell_of(self, number: np.ndarray) -> np.ndarray:
        """int64[n]: the cells of numbers frame * world count + world; -1 outside of every episode."""
        cells = np.full(self.frames * self.model.world_count, -1)
        cells[self.numbers] = np.arange(len(self.numbers))
        return cells[number]

    def margins(self, shapes: np.ndarray) -> np.ndarray:
        """float64[n]: sums of the margins of pairs of shapes [n, 2] [m]."""
        return pair_lengths(self.model, shapes, "margin")

    def body_poses(self, cell: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """float64[n, 7]: world poses of the bodies of shapes [n]; the world's frame of a static shape."""
        local = self.model.shapes.pose[shape]
        poses = compose_poses(self.arrays["pose"][cell, shape], inverse_poses(local))
        poses[self.model.shapes.body[shape] == STATIC_BODY] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        return poses

    @property
    def numbers(self) -> np.ndarray:
        """int64[C]: frame * world count + world of each cell."""
        return self.arrays["frame"] * self.model.world_count + self.arrays["world"]

    def pair_of(self, shapes: np.ndarray) -> np.ndarray:
        """int64[n]: rows of pairs of shapes [n, 2], first < second; -1 of shapes that may not touch."""
        return pair_rows(self.arrays["pair"], len(self.model.shapes), shapes[:, 0], shapes[:, 1])


def load_problem(request: EngineRequest, progress: Progress = None) -> Problem:
    """The problem of a request. Raises InputError for an unusable scene or motion, and for worlds that differ."""
    request.contact.checked()
    scene, motion = scene_in_motion(request)
    try:
        model = request.contact.apply(scene.model)
        if len(np.unique(model.world_template)) > 1:
            fix = "give one scene or one environment"
            raise InputError("its worlds have different shapes, and an engine gets one set", scene.name, fix)
        items, frames, worlds = selected_items(model, "pair", ()), len(motion.time), model.world_count
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
        inside = slice(None) if episodes is None else episodes.inside(0, frames * worlds, worlds).ravel()
        cells = {"frame": frame, "world": world.astype(np.int32), "time": motion.time[frame]}
        cells = {name: values[inside] for name, values in (cells | {"pose": np.concatenate(blocks)}).items()}
        arrays = packed_problem(model, items.pair, pair_lengths(model, items.pair, "gap"), items.margin, cells)
        left_out = ("particles are left out",) if len(model.particles) else ()
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
