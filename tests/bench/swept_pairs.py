"""Contacts between frames against their distances at many times: touches that are missed, and
processor time.

python -m tests.bench.swept_pairs --pairs 100000
python -m tests.bench.swept_pairs --pairs 10000 --meshes

Pairs of convex shapes are sampled at 129 times of their step, then around the least of them, four
times, at 33 times of an interval of one sixteenth of the length: the last ones are 2^-22 of the
step apart. Pairs of meshes are compared with FCL at 2^16 + 1 times
(`tests/support/swept_motions.py`).
"""

import argparse
import time
from collections import Counter

import numpy as np

import collidecli
from collidecli.engine.distances.pairs import PairDistances
from collidecli.engine.pipeline_build import find_device
from collidecli.scene.model import Model
from collidecli.scene.option_values import DEFAULT_SWEEP_TOLERANCE
from tests.support.swept_motions import (
    BODIES,
    SweptMeshes,
    random_scene,
    random_step,
    sampled_poses,
)

FIRST = 129
ZOOMED = 33
ZOOMS = 4
STEPS = 50
"""Of one model, each in a world."""
COLUMNS = ("shape0", "shape1", "touches", "enter", "leave", "least_bound")
PAIRS = np.stack(np.triu_indices(BODIES, 1), axis=1).astype(np.int32)
ROUNDING = 1e-9
"""Of a time as a share of the step, and of FCL's distances [m]."""


def least_distances(model: Model, step: np.ndarray, measured: PairDistances) -> np.ndarray:
    """float64[pairs]: the least distance of each pair at sampled times [m]."""
    times = np.linspace(0.0, 1.0, FIRST)
    poses = sampled_poses(model, step, times)
    found = measured_at(measured, PAIRS, poses[:, PAIRS])
    best = times[found.argmin(axis=0)]
    half = 1.0 / (FIRST - 1)
    least = found.min(axis=0)
    for _ in range(ZOOMS):
        near = np.clip(best + half * np.linspace(-1.0, 1.0, ZOOMED)[:, None], 0.0, 1.0)
        poses = sampled_poses(model, step, near.ravel())
        at = poses.reshape(ZOOMED, len(PAIRS), -1, 7)[:, np.arange(len(PAIRS))[:, None], PAIRS]
        found = measured_at(measured, PAIRS, at)
        best = near[found.argmin(axis=0), np.arange(len(PAIRS))]
        least = np.minimum(least, found.min(axis=0))
        half = half * 2.0 / (ZOOMED - 1)
    return least


def measured_at(measured: PairDistances, rows: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """float64[times, pairs]: distances of pairs at poses [times, pairs, 2, 7]."""
    return measured.measure(
        np.tile(rows, (len(poses), 1)), poses.reshape(-1, 2, 7)
    ).distance.reshape(len(poses), -1)


def compared(
    model: Model, step: np.ndarray, swept: dict[str, np.ndarray], measured: PairDistances
) -> Counter[str]:
    """Counts of one step of convex shapes. swept: columns of its rows."""
    least = least_distances(model, step, measured)
    row = row_of_pairs(swept)
    return Counter(
        {
            "touching": int((least <= 0.0).sum()),
            "missed": int(((least <= 0.0) & (row < 0)).sum()),
            "out of bound": int(
                (swept["least_bound"][row[row >= 0]] > least[row >= 0] + 1e-12).sum()
            ),
        }
    )


def compared_meshes(
    model: Model, step: np.ndarray, swept: dict[str, np.ndarray], measured: PairDistances
) -> Counter[str]:
    """Counts of one step of meshes: with `outside of the touch` a time of the touch that is not in
    its row, with `apart` a row at whose first time the meshes are farther apart than the tolerance,
    by FCL."""
    meshes = SweptMeshes(model, step)
    row = row_of_pairs(swept)
    counts = Counter[str]()
    for (a, b), at in zip(PAIRS.tolist(), row.tolist(), strict=True):
        touch = meshes.touch(a, b)
        counts["touching"] += touch is not None
        counts["missed"] += touch is not None and at < 0
        if at < 0:
            continue
        enter = swept["enter"][at]
        leave = swept["leave"][at]
        if touch is not None:
            counts["outside of the touch"] += (
                enter > touch[0] + ROUNDING or leave < touch[1] - ROUNDING
            )
            poses = meshes.poses(a, b, np.array([touch[0], touch.mean(), touch[1]]))
            depths = measured_at(measured, np.array([[a, b]], np.int32), poses[:, None])
            counts["out of bound"] += int((depths < swept["least_bound"][at] - 1e-12).any())
        is_certain = enter > 0.0 and swept["touches"][at]  # at the begin one may contain the other
        counts["apart"] += bool(
            is_certain and meshes.distance(a, b, enter) > DEFAULT_SWEEP_TOLERANCE + ROUNDING
        )
    return counts


def row_of_pairs(swept: dict[str, np.ndarray]) -> np.ndarray:
    """int[pairs]: the row of each pair; -1 if it has none."""
    row_of = np.full((BODIES, BODIES), -1)
    row_of[swept["shape0"], swept["shape1"]] = np.arange(len(swept["shape0"]))
    return row_of[PAIRS[:, 0], PAIRS[:, 1]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time")
    parser.add_argument("--meshes", action="store_true")
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    compare = compared_meshes if given.meshes else compared
    counts = Counter[str]()
    begin = time.perf_counter()
    seconds = 0.0

    def is_over() -> bool:
        return counts["pairs"] >= given.pairs or time.perf_counter() - begin >= given.seconds

    while not is_over():
        model = random_scene(random, given.meshes, STEPS)
        steps = [random_step(random) for _ in range(STEPS)]
        measured = PairDistances(model, find_device("cpu"), PAIRS)
        start = time.process_time()
        swept = collidecli.sweep(model, np.concatenate(steps, axis=1))
        seconds += (time.process_time() - start) / STEPS / len(PAIRS)
        counts["models"] += 1
        for world, step in enumerate(steps):
            if is_over():
                break
            counts["pairs"] += len(PAIRS)
            rows = {name: getattr(swept, name)[swept.world == world] for name in COLUMNS}
            counts["rows"] += len(rows["touches"])
            counts["undecided"] += int((~rows["touches"]).sum())
            counts.update(compare(model, step, rows, measured))
    for name, count in counts.items():
        print(f"{name:22}{count:10}")
    print(
        f"{'sweep':22}{1e6 * seconds / counts['models']:10.1f} us of processor time a pair and step"
    )


if __name__ == "__main__":
    main()
