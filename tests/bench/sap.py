"""What sweep and prune costs from 1 000 to 100 000 shapes that are equally crowded, against n log n."""

from __future__ import annotations

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from tests.bench.result import BenchTable, interleaved, spread_time
from tests.bench.timing import CLOCKS, Ours

COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000)
SHAPES_A_PASS = 100_000
"""A pass has as many frames as make this many shapes, so that small scenes are timed as long as large ones."""
SPACE = 0.02
"""Volume a shape has for itself [m3]; the shapes are some 0.1 m in radius, so that each touches about one other."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of the broad phase and of all, and the exponent of n that fits them."""
    table = BenchTable(
        "sap",
        "Sweep and prune, shapes of constant density, one core",
        ["shapes", "candidates a shape", "broad phase, a frame", "a shape", "over n log n", "all stages, a frame"],
    )
    broad, total = [], []
    for count in COUNTS:
        ours = Ours(*crowd(count, max(1, SHAPES_A_PASS // count)), broad_phase="sap", clock=CLOCKS[clock])
        stages: list[tuple[float, float]] = []
        candidates = ours.measure().candidates / ours.frame_count / count

        def one_pass(ours: Ours = ours, stages: list = stages) -> float:
            measured = ours.measure()
            stages.append((measured.stages["broad_phase"], sum(measured.stages.values())))
            return measured.seconds

        interleaved({"sap": one_pass}, repeats)
        phase, every = np.array(stages[1:]).T / ours.frame_count
        broad.append(float(np.median(phase)))
        total.append(float(np.median(every)))
        unit = broad[0] / (COUNTS[0] * np.log(COUNTS[0]))
        table.add(
            f"{count:,}".replace(",", " "),
            f"{candidates:.2f}",
            spread_time(phase),
            f"{1e9 * broad[-1] / count:.0f} ns",
            f"{broad[-1] / (count * np.log(count)) / unit:.2f}",
            spread_time(every),
        )
        table.keep(f"{count} broad phase seconds", phase)
        table.keep(f"{count} all stages seconds", every)
    fits = [exponent(COUNTS, seconds) for seconds in (broad, total, [n * np.log(n) for n in COUNTS])]
    table.keep("exponents", fits)
    table.notes = [
        f"Fitted exponent of n: broad phase {fits[0]:.3f}, all stages {fits[1]:.3f}; n log n itself {fits[2]:.3f}. "
        "`over n log n` is 1 for the smallest scene and stays below where the cost grows no faster than that."
    ]
    return table


def exponent(counts: tuple[int, ...], seconds: list[float]) -> float:
    """p of the c * n^p that fits best, in least squares of the logarithms."""
    return float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])


def crowd_builder(count: int) -> ModelBuilder:
    """`count` bodies of a sphere, a capsule or a box each."""
    rng = np.random.default_rng(count)
    builder = ModelBuilder()
    builder.default_gap = 0.0
    for index, (a, b, c) in enumerate(rng.uniform(0.06, 0.12, (count, 3))):
        body = builder.add_body()
        if index % 3 == 0:
            builder.add_shape_sphere(body, radius=a)
        elif index % 3 == 1:
            builder.add_shape_capsule(body, radius=0.7 * a, half_height=0.7 * b)
        else:
            builder.add_shape_box(body, hx=0.7 * a, hy=0.7 * b, hz=0.7 * c)
    return builder


def crowd(count: int, frames: int) -> tuple[Model, np.ndarray]:
    """A crowd whose bodies jump by their size in each frame, and its poses float64[frames, 1, count, 7]."""
    rng = np.random.default_rng(count + 1)
    side = (SPACE * count) ** (1 / 3)
    poses = np.empty((frames, 1, count, 7))
    poses[..., :3] = rng.uniform(0, side, (count, 3)) + 0.1 * rng.normal(size=(frames, 1, count, 3))
    turn = rng.normal(size=(frames, 1, count, 4))
    poses[..., 3:] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
    return crowd_builder(count).finalize(), poses


def drifting_crowd(count: int, frames: int, step: float) -> tuple[Model, np.ndarray]:
    """A crowd whose bodies move by `step` [m] a frame, each in a straight line between the walls of a cube."""
    rng = np.random.default_rng(count + 2)
    side = (SPACE * count) ** (1 / 3)
    direction = rng.normal(size=(count, 3))
    direction *= step / np.linalg.norm(direction, axis=1, keepdims=True)
    path = rng.uniform(0, side, (count, 3)) + np.arange(frames)[:, None, None] * direction
    poses = np.empty((frames, 1, count, 7))
    # Reflected at the walls: a triangle wave of the straight path.
    poses[:, 0, :, :3] = side - np.abs(np.mod(path, 2.0 * side) - side)
    turn = rng.normal(size=(count, 4))
    poses[..., 3:] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
    return crowd_builder(count).finalize(), poses
