"""Compute-only times of this engine and of its peers on the same frames."""

from __future__ import annotations

import time
from dataclasses import dataclass

import mujoco

from collidecli.app.collision import sample_poses
from collidecli.engine.build import build_pipeline, find_device
from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import STAGES, ChunkReport
from collidecli.engine.scheduler import Workers, chunk_size, free_memory_share
from collidecli.files.scene_mjcf import add_mjcf
from collidecli.model.builder import ModelBuilder
from collidecli.model.options import ContactOptions, EngineOptions
from tests.bench.scenes import BenchScene
from tests.support.motions import ArrayMotion

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""The wall clock, and the processor time of this process for machines that are not quiet."""


@dataclass
class Measured:
    """Seconds in all, seconds per stage over all workers, and what was found."""

    seconds: float
    stages: dict[str, float]
    candidates: int
    contacts: int


class Ours:
    """A scene set up in this engine; `measure` times a pass over every frame."""

    def __init__(self, scene: BenchScene, threads: int = 1, broad_phase: str = "auto", chunk_cells: int = 0) -> None:
        builder = ModelBuilder()
        imported = add_mjcf(builder, scene.path)
        model = builder.finalize()
        self.motion = ArrayMotion(imported.kinematics.poses(scene.qpos)[:, None])
        device = find_device("cpu")
        options = EngineOptions(broad_phase=broad_phase)
        samples = sample_poses(self.motion)
        self.pipeline, self.choice = build_pipeline(
            model, ContactOptions(), options, device, samples, self.motion.float_type
        )
        cells = chunk_size(self.pipeline, len(scene.qpos), threads, chunk_cells)
        self.batches = [
            PoseBatch(first, len(poses), first, poses)
            for first in range(0, len(scene.qpos), cells)
            for poses in [self.motion.poses[first : first + cells]]
        ]
        self.workers = Workers(self.pipeline, threads, free_memory_share())

    def measure(self) -> Measured:
        start = time.perf_counter()
        reports: list[ChunkReport] = [report for _, report in self.workers.collide(self.batches)]
        seconds = time.perf_counter() - start
        return Measured(
            seconds,
            {stage: sum(r.seconds[stage] for r in reports) for stage in STAGES},
            sum(r.candidate_count for r in reports),
            sum(r.contact_count for r in reports),
        )


def measure_mujoco(scene: BenchScene) -> Measured:
    """mj_collision alone, frame by frame; kinematics are done before the clock starts."""
    model, data = scene.mj_model, mujoco.MjData(scene.mj_model)
    seconds, contacts = 0.0, 0
    for qpos in scene.qpos:
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        start = time.perf_counter()
        mujoco.mj_collision(model, data)
        seconds += time.perf_counter() - start
        contacts += data.ncon
    return Measured(seconds, {}, 0, contacts)
