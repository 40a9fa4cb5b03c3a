"""A humanoid and piles against `mj_collision`: computing alone, the same frames, one core each."""

from __future__ import annotations

from collections.abc import Callable

from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.scenes import BenchScene, dog, hand, humanoid, pile, sparse_pile
from tests.bench.timing import CLOCKS, Mujoco, Ours

SCENES: dict[str, Callable[[], BenchScene | None]] = {
    "humanoid": lambda: humanoid(10_000),
    "pile_100": lambda: pile(100, 400),
    "pile_1000": lambda: pile(1000, 60),
    "pile_5000": lambda: pile(5000, 20),
    "dog": lambda: dog(2000),
    "hand": lambda: hand(2000),
    "sparse_1000": lambda: sparse_pile(1000, 60),
}
"""The last three are scenes that nothing was tuned on."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Microseconds a frame of both, and how many times as fast this engine is."""
    table = BenchTable(
        "peers",
        "Against MuJoCo's mj_collision, one core each",
        ["scene", "frames", "contacts a frame", "MuJoCo, a frame", "ours, a frame", "times as fast"],
        notes=[
            "Median of repeats taken in turn, least and most in brackets. Neither time includes kinematics. Both find "
            "the same pairs; the numbers of contacts differ where manifolds do.",
        ],
    )
    for key, make in SCENES.items():
        scene = make()
        if scene is None:
            table.notes.append(f"{key} is not measured: its package is not installed.")
            continue
        ours, theirs = Ours.of(scene, clock=CLOCKS[clock]), Mujoco(scene, CLOCKS[clock])
        contacts = [side.measure().contacts / len(scene.qpos) for side in (theirs, ours)]
        times = interleaved(
            {"mujoco": lambda t=theirs: t.measure().seconds, "ours": lambda o=ours: o.measure().seconds}, repeats
        )
        table.add(
            f"{scene.name} ({ours.choice.name})",
            len(scene.qpos),
            f"{contacts[0]:.1f}, ours {contacts[1]:.1f}",
            spread_time(times["mujoco"] / len(scene.qpos)),
            spread_time(times["ours"] / len(scene.qpos)),
            ratio(times["mujoco"], times["ours"]),
        )
        for side, seconds in times.items():
            table.keep(f"{key} {side} seconds", seconds)
        table.notes.append(f"{scene.name}: {stage_shares(ours)}")
    return table


def stage_shares(ours: Ours) -> str:
    """Where the time of one pass goes, and what a candidate costs, in words."""
    measured = ours.measure()
    total = sum(measured.stages.values())
    shares = ", ".join(f"{stage} {seconds / total:.0%}" for stage, seconds in measured.stages.items())
    cost = 1e9 * measured.stages["narrow_phase"] / max(1, measured.candidates)
    touching = measured.contacts / max(1, measured.candidates)
    return f"{shares}; narrow phase {cost:.0f} ns a candidate, {touching:.2f} contacts a candidate"
