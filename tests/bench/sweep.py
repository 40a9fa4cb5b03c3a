"""Contacts between frames against their distances at many times: touches that are missed, and processor time.

python -m tests.bench.sweep --pairs 100000
python -m tests.bench.sweep --pairs 10000 --meshes

Each pair is sampled at 129 times of its step, then around the least of them, four times, at 33 times of an interval of
one sixteenth of the length: the last ones are 2^-22 of the step apart.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.device_model import upload_model
from collidecli.engine.pair_distances import PairDistances
from collidecli.engine.pipeline_builder import find_device
from collidecli.engine.sweep.advancement import UNDECIDED
from collidecli.engine.sweep.stage import sweep_stage
from collidecli.scene.model import Model
from collidecli.scene.run_options import DEFAULT_SWEEP_TOLERANCE
from tests.support.swept_motions import BODIES, random_scene, random_step, sampled_poses

FIRST, ZOOMED, ZOOMS = 129, 33, 4
STEPS = 50
"""Of one model."""


def least_distances(model: Model, step: np.ndarray, rows: np.ndarray, measured: PairDistances) -> np.ndarray:
    """float64[pairs]: the least distance of each pair at sampled times [m]."""
    times = np.linspace(0.0, 1.0, FIRST)
    poses = sampled_poses(model, step, times)
    found = measured_at(measured, rows, poses[:, rows])
    best, half = times[found.argmin(axis=0)], 1.0 / (FIRST - 1)
    least = found.min(axis=0)
    for _ in range(ZOOMS):
        near = np.clip(best + half * np.linspace(-1.0, 1.0, ZOOMED)[:, None], 0.0, 1.0)
        poses = sampled_poses(model, step, near.ravel())
        at = poses.reshape(ZOOMED, len(rows), -1, 7)[:, np.arange(len(rows))[:, None], rows]
        found = measured_at(measured, rows, at)
        best = near[found.argmin(axis=0), np.arange(len(rows))]
        least, half = np.minimum(least, found.min(axis=0)), half * 2.0 / (ZOOMED - 1)
    return least


def measured_at(measured: PairDistances, rows: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """float64[times, pairs]: distances of pairs at poses [times, pairs, 2, 7]."""
    every = np.broadcast_to(rows, (len(poses), *rows.shape)).reshape(-1, 2)
    return measured.measure(every, poses.reshape(-1, 2, 7)).distance.reshape(len(poses), -1)


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time")
    parser.add_argument("--meshes", action="store_true")
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    rows = np.stack(np.triu_indices(BODIES, 1), axis=1).astype(np.int32)
    counts = dict.fromkeys(("pairs", "touching", "rows", "undecided", "missed", "out of bound"), 0)
    begin, swept = time.perf_counter(), 0.0
    while counts["pairs"] < given.pairs and time.perf_counter() - begin < given.seconds:
        model = random_scene(random, given.meshes)
        stage = sweep_stage(upload_model(model, find_device("cpu")), DEFAULT_SWEEP_TOLERANCE, np.dtype(np.float64))
        steps = [random_step(random) for _ in range(STEPS)]
        has_step = np.arange(2 * STEPS)[:, None] % 2 == 0
        batch = PoseBatch(0, 2 * STEPS, 0, np.concatenate(steps), has_step=has_step)
        start = time.process_time()
        found, _ = stage.sweep(batch)
        swept += time.process_time() - start
        ends = np.cumsum(found.cell_counts)
        for number, step in enumerate(steps):
            least = least_distances(model, step, rows, stage.distances)
            held = slice(ends[2 * number] - found.cell_counts[2 * number], ends[2 * number])
            columns = {name: values[held] for name, values in found.columns.items()}
            row_of = np.full((BODIES, BODIES), -1)
            row_of[columns["shape0"], columns["shape1"]] = np.arange(len(columns["shape0"]))
            row = row_of[rows[:, 0], rows[:, 1]]
            counts["pairs"] += len(rows)
            counts["touching"] += int((least <= 0.0).sum())
            counts["rows"] += len(columns["status"])
            counts["undecided"] += int((columns["status"] == UNDECIDED).sum())
            counts["missed"] += int(((least <= 0.0) & (row < 0)).sum())
            counts["out of bound"] += int((columns["least_bound"][row[row >= 0]] > least[row >= 0] + 1e-12).sum())
    for name, count in counts.items():
        print(f"{name:14}{count:10}")
    print(f"{'sweep':14}{1e6 * swept / counts['pairs']:10.1f} us of processor time a pair and step")


if __name__ == "__main__":
    main()
