"""Processor time of the sweep of a cloth of 10 000 vertices against itself between frames.

python -m tests.bench.self_sweep
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from collidecli.engine.cells import PoseBatch, transform_chunk
from collidecli.engine.device_model import upload_model
from collidecli.engine.particles.self_sweep import SelfSweepStage
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import DEFAULT_SWEEP_TOLERANCE
from tests.support.meshes import grid

SIDE, FRAMES = 99, 6


def motions(cloth: np.ndarray) -> Iterator[tuple[str, np.ndarray, float]]:
    """Name, positions float64[frames, P, 3] and limit [m] of each motion of a cloth in the plane z = 0."""
    x, y, _ = cloth.T
    time = 0.3 * np.arange(FRAMES)[:, None]
    flat = np.tile(cloth, (FRAMES, 1, 1))
    ripples = flat.copy()
    ripples[..., 2] = 0.05 * np.sin(20.0 * x + 3.0 * time) * np.cos(13.0 * y) - 0.3 * time**2
    yield "falls and ripples", ripples, 0.002
    rng = np.random.default_rng(0)
    yield "crumples at random", flat + 0.004 * rng.normal(size=flat.shape), 0.002
    folds, is_right = flat.copy(), x > 0.0
    angle = np.linspace(0.0, 5.0 / 3.0 * np.pi, FRAMES)[:, None]
    folds[:, is_right, 0], folds[:, is_right, 2] = x[is_right] * np.cos(angle), x[is_right] * np.sin(angle)
    yield "folds by 60 degrees a step", folds, 0.002
    layers = flat.copy()
    layers[:, is_right, 0] *= -1.0
    layers[:, is_right, 2] = 0.003 + 0.0005 * np.sin(3.0 * time)
    yield "rests in two layers", layers, 0.005


def main() -> None:
    """Prints pairs, rows and times of each motion."""
    vertices, faces = grid(SIDE)
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=vertices, indices=faces)
    model = builder.finalize()
    device = find_device("cpu")
    device_model = upload_model(model, device)
    poses = np.broadcast_to(model.resting_poses(), (FRAMES, *model.resting_poses().shape))
    for name, positions, limit in motions(vertices):
        stage = SelfSweepStage(device_model, (limit, 1, limit), np.dtype(np.float64), DEFAULT_SWEEP_TOLERANCE)
        batch = PoseBatch(0, FRAMES, 0, poses, positions[:, None])
        workspace = Workspace(device, 1 << 33)
        chunk = transform_chunk(device_model, batch, workspace)
        for _ in range(2):  # the first allocates
            start = time.process_time()
            rows, pairs = stage.collide_part(chunk, batch, workspace, 0, stage.width)
            seconds = time.process_time() - start
        undecided, steps = int((rows.columns["status"] == 2).sum()), FRAMES - 1
        print(
            f"{name:28}{pairs / steps:10.0f} pairs{rows.row_count / steps:10.0f} rows{undecided:4} undecided"
            f"{1e3 * seconds / steps:8.0f} ms a step{1e6 * seconds / pairs:8.2f} us a pair"
        )


if __name__ == "__main__":
    main()
