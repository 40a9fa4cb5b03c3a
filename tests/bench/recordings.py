"""Bench scenes as files that the command line takes: the scene, and its motion as a trajectory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from collidecli.storage.trajectories.writer import TrajectoryWriter
from tests.bench.scenes import BenchScene
from tests.bench.timing import model_and_poses


def write_recording(scene: BenchScene, path: Path, repeats: int = 1) -> Path:
    """The scene's motion `repeats` times over, as a trajectory of body poses in float64."""
    model, poses = model_and_poses(scene)
    with TrajectoryWriter(path, body_names=model.bodies.path, frames_expected=repeats * len(poses), force=True) as file:
        for repeat in range(repeats):
            step = np.arange(repeat * len(poses), (repeat + 1) * len(poses))
            file.append(0.01 * step, step, body_q=poses)
    return path
