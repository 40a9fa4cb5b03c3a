"""One thread against all: what more cores are worth, computing alone."""

from __future__ import annotations

import os

from tests.bench.peers import SCENES
from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.timing import Ours


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds of a pass with one thread and with more, always of the wall clock: threads are worth nothing else."""
    counts = sorted({1, 2, os.cpu_count() or 1})
    table = BenchTable(
        "threads",
        "More threads",
        ["scene", *(f"{n} thread{'s' if n > 1 else ''}, a frame" for n in counts), "times as fast"],
        notes=["Computing alone; always measured by the wall clock."],
    )
    for key in ("humanoid", "pile_1000", "pile_5000"):
        scene = SCENES[key]()
        passes = {n: Ours.of(scene, threads=n) for n in counts}
        times = interleaved({str(n): lambda one=one: one.measure().seconds for n, one in passes.items()}, repeats)
        table.add(
            scene.name,
            *(spread_time(times[str(n)] / len(scene.qpos)) for n in counts),
            ratio(times["1"], times[str(counts[-1])]),
        )
        for n in counts:
            table.keep(f"{key} {n} threads seconds", times[str(n)])
    return table
