"""Newton's collision pipeline on the same frames, on the CPU: frame by frame, and every frame a world of one batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.pipeline import find_device
from tests.bench.passes import SCENES
from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.scenes import BenchScene
from tests.bench.timing import CLOCKS, Ours, model_and_poses

BROAD_PHASES = ("explicit", "sap", "nxn")
FRAMES = {"humanoid": 2000, "pile_100": 100, "pile_1000": 10}
"""Frames of a pass: the frames of the scene, evenly spread."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of Newton, with the fastest of its broad phases, and of this engine on one core."""
    table = BenchTable(
        "newton",
        "Against Newton, one core each",
        [
            "scene",
            "frames",
            "broad phase",
            "contacts a frame",
            "frame by frame",
            "one batch",
            "ours",
            "batch over ours",
        ],
    )
    version = newton_version(table)
    if not version:
        return table
    table.notes = [
        f"Newton {version} works in float32; kernels are launched, not captured as graphs. Its shapes have "
        "no gap here, as in ours. Each engine derives the allowed pairs and the contacts of a pair from the same MJCF "
        "by its own rules."
    ]
    for key, frame_count in FRAMES.items():
        scene = SCENES[key]()
        model, poses = model_and_poses(scene)
        poses = poses[np.linspace(0, len(poses) - 1, frame_count).astype(int)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compare(table, key, scene, Ours(model, poses, clock=CLOCKS[clock]), poses, repeats, CLOCKS[clock])
    return table


def _compare(
    table: BenchTable,
    key: str,
    scene: BenchScene,
    ours: Ours,
    poses: np.ndarray,
    repeats: int,
    clock: Callable[[], float],
) -> None:
    frames = len(poses)
    batches = {name: newton_batch(scene, poses, frames, name, clock) for name in BROAD_PHASES}
    first = {name: min(batch.measure() for _ in range(2)) for name, batch in batches.items()}
    fastest = min(first, key=lambda name: first[name])
    single = newton_batch(scene, poses, 1, fastest, clock)
    batch = batches[fastest]
    times = interleaved(
        {"frame by frame": single.measure, "batch": batch.measure, "ours": lambda: ours.measure().seconds}, repeats
    )
    table.add(
        scene.name,
        frames,
        fastest,
        f"{batch.contacts / frames:.1f}, ours {ours.measure().contacts / frames:.1f}",
        *(spread_time(times[name] / frames) for name in ("frame by frame", "batch", "ours")),
        ratio(times["batch"], times["ours"]),
    )
    for name, seconds in times.items():
        table.keep(f"{key} {name} seconds", seconds)


def newton_version(table: BenchTable) -> str:
    """Newton's version; empty where it is not installed, which the table then says. Warp says nothing from here on."""
    find_device("cpu")
    try:
        import newton
    except ImportError:
        table.notes.append("Newton is not installed: it was not measured.")
        return ""
    return newton.__version__


def newton_batch(
    scene: BenchScene, poses: np.ndarray, worlds: int, broad_phase: str, clock: Callable[[], float]
) -> NewtonFrames:
    """A scene in `worlds` copies, so many frames at a time."""
    import newton

    one, many = newton.ModelBuilder(), newton.ModelBuilder()
    one.default_shape_cfg.gap = 0.0
    one.add_mjcf(str(scene.path))
    assert one.body_count == poses.shape[2], "Newton has other bodies"
    many.replicate(one, worlds)
    model = many.finalize(device="cpu")
    model.shape_gap.zero_()
    return NewtonFrames(model, poses.reshape(-1, worlds * poses.shape[2], 7), clock, broad_phase=broad_phase)


class NewtonFrames:
    """Newton's collision pipeline of a model, at poses [turns, bodies, 7]; `measure` collides them in turn.

    contacts: found in the last pass. Raises where a buffer was too small: then contacts were lost. options: of the
    pipeline.
    """

    def __init__(self, model: Any, poses: np.ndarray, clock: Callable[[], float], **options: Any) -> None:
        import newton

        self._pipeline = newton.CollisionPipeline(model, **options)
        self._buffer = self._pipeline.contacts()
        self._state = model.state()
        self._poses = [wp.array(turn, dtype=wp.transform, device="cpu") for turn in poses.astype(np.float32)]
        self._clock = clock
        self.contacts = 0

    def measure(self) -> float:
        seconds, self.contacts = 0.0, 0
        for pose in self._poses:
            self._state.body_q = pose
            start = self._clock()
            self._pipeline.collide(self._state, self._buffer)
            seconds += self._clock() - start
            found = int(self._buffer.rigid_contact_count.numpy()[0])
            if found > self._buffer.rigid_contact_max:
                raise RuntimeError(f"{found} contacts, capacity for {self._buffer.rigid_contact_max}")
            self.contacts += found
        return seconds
