"""Where sweep and prune begins to pay: explicit pairs against sap as scenes grow; the number behind `auto`."""

from __future__ import annotations

import numpy as np

from collidecli.engine.pipeline import SWEEP_PAIRS_PER_SHAPE
from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.sap import crowd
from tests.bench.timing import CLOCKS, Ours

COUNTS = (30, 60, 100, 150, 200, 400, 1000)
SHAPES_A_PASS = 60_000


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of the broad phase, where every pair of shapes may touch."""
    table = BenchTable(
        "crossover",
        "Explicit pairs against sweep and prune, one core",
        ["shapes", "pairs a shape", "explicit, a frame", "sap, a frame", "sap times as fast"],
        notes=[f"`auto` picks sap above {SWEEP_PAIRS_PER_SHAPE} allowed pairs a shape. Every pair may touch here."],
    )
    for count in COUNTS:
        model, poses = crowd(count, SHAPES_A_PASS // count)
        passes = {name: Ours(model, poses, broad_phase=name, clock=CLOCKS[clock]) for name in ("explicit", "sap")}
        times = interleaved(
            {name: lambda one=one: one.measure().stages["broad_phase"] for name, one in passes.items()}, repeats
        )
        frames = np.array(len(poses))
        table.add(
            count,
            f"{(count - 1) / 2:g}",
            *(spread_time(times[name] / frames) for name in passes),
            ratio(times["explicit"], times["sap"]),
        )
        for name, seconds in times.items():
            table.keep(f"{count} {name} seconds", seconds)
    return table
