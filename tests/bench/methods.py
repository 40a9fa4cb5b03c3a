"""GJK with EPA against MPR, for convex pairs without a collider of their own: what each costs and how exact it is."""

from __future__ import annotations

import numpy as np

from tests.bench.result import BenchTable, interleaved, spread_time
from tests.bench.scenes import pile
from tests.bench.timing import CLOCKS, Ours, model_and_poses


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of the narrow phase, and of all, with both methods on the same pile."""
    scene = pile(1000, 60)
    model, poses = model_and_poses(scene)
    passes = {name: Ours(model, poses, narrow_phase=name, clock=CLOCKS[clock]) for name in ("gjk", "mpr")}
    table = BenchTable(
        "methods",
        f"GJK with EPA, and MPR: {scene.name}, one core",
        ["--narrow-phase", "narrow phase, a frame", "all stages, a frame", "contacts a frame"],
        notes=["The pairs that have a closed form are in both, and cost the same."],
    )
    stages: dict[str, list[float]] = {name: [] for name in passes}

    def one_pass(name: str) -> float:
        measured = passes[name].measure()
        stages[name].append(measured.stages["narrow_phase"])
        return measured.seconds

    times = interleaved({name: lambda name=name: one_pass(name) for name in passes}, repeats)
    for name, one in passes.items():
        narrow = np.array(stages[name][1:]) / one.frame_count
        contacts = one.measure().contacts / one.frame_count
        table.add(name, spread_time(narrow), spread_time(times[name] / one.frame_count), f"{contacts:.1f}")
        table.keep(f"{name} narrow phase seconds", narrow)
        table.keep(f"{name} seconds", times[name])
    return table
