"""Compute-only times of this engine and of its peers on the same frames."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from collidecli.engine.chunk_report import STAGES, ChunkReport
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.scheduler import Workers
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.motions.collision import pose_batches, prepare_collision
from collidecli.motions.timing import TimingReport
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from tests.bench.scenes import BenchScene
from tests.support.engine_runs import ArrayMotion

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""The wall clock, and the processor time of this process for machines that are not quiet."""


@dataclass
class Measured:
    """Seconds in all, seconds of the wall clock per stage over all workers, and what was found."""

    seconds: float
    stages: dict[str, float]
    candidates: int
    contacts: int


class Ours:
    """A model and its motion set up in this engine; `measure` times a pass over every frame.

    clock: CLOCKS["wall"] or CLOCKS["cpu"]. contact: in place of those that `narrow_phase` alone
    says.
    """

    def __init__(
        self,
        model: Model,
        poses: np.ndarray,
        threads: int = 1,
        broad_phase: str = "auto",
        chunk_cells: int = 0,
        narrow_phase: str = "gjk",
        clock: Callable[[], float] = time.perf_counter,
        contact: ContactOptions | None = None,
    ) -> None:
        motion = ArrayMotion(poses)
        timing = TimingReport()
        contact = contact or ContactOptions(narrow_phase=narrow_phase)
        engine = EngineOptions(broad_phase=broad_phase, threads=threads, chunk_cells=chunk_cells)
        made = prepare_collision(model, motion, contact, engine, find_device("cpu"), timing)
        self.choice = made.choice
        self.frame_count = len(poses)
        self._cell_count = len(poses) * model.world_count
        self._batches = list(pose_batches(motion, model, made.chunk_cells, timing))
        self._workers = Workers(made.pipeline, made.workers, made.memory_limit)
        self._clock = clock

    @classmethod
    def of(cls, scene: BenchScene, **options) -> Ours:
        return cls(*model_and_poses(scene), **options)

    def measure(self) -> Measured:
        start = self._clock()
        reports: list[ChunkReport] = [
            report for _, report in self._workers.collide(self._batches, self._cell_count)
        ]
        seconds = self._clock() - start
        return Measured(
            seconds,
            {stage: sum(r.seconds[stage] for r in reports) for stage in STAGES},
            sum(r.candidate_count for r in reports),
            sum(r.contact_count for r in reports),
        )


def model_and_poses(scene: BenchScene) -> tuple[Model, np.ndarray]:
    """The scene as this engine's model, and its motion: float64[F, 1, B, 7]."""
    builder = ModelBuilder()
    imported = add_mjcf(builder, scene.path)
    return builder.finalize(), imported.kinematics.poses(scene.qpos)[:, None]


class Mujoco:
    """A scene set up in MuJoCo; `measure` times mj_collision alone, frame by frame, on one core.

    Kinematics are not timed. The time of a call that has nothing to do (contacts disabled), the
    clock's included, is taken off, so that neither Python nor the clock counts against MuJoCo.
    """

    def __init__(self, scene: BenchScene, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model = scene.mj_model
        self._qpos = scene.qpos
        self._clock = clock
        self._data = mujoco.MjData(scene.mj_model)

    def measure(self) -> Measured:
        seconds, contacts = self._pass()
        flags = self._model.opt.disableflags
        self._model.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        try:
            idle, _ = self._pass()
        finally:
            self._model.opt.disableflags = flags
        return Measured(seconds - idle, {}, 0, contacts)

    def _pass(self) -> tuple[float, int]:
        model = self._model
        data = self._data
        clock = self._clock
        seconds = 0.0
        contacts = 0
        for qpos in self._qpos:
            data.qpos[:] = qpos
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            start = clock()
            mujoco.mj_collision(model, data)
            seconds += clock() - start
            contacts += data.ncon
        return seconds, contacts
