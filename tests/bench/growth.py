"""How the cost grows with frames, shapes, worlds and the speed of the motion: the data of docs/figures/growth.svg."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from tests.bench.result import BenchTable, interleaved, spread_time
from tests.bench.sap import crowd_builder, drifting_crowd
from tests.bench.scenes import humanoid
from tests.bench.timing import CLOCKS, Ours, model_and_poses

FRAMES = (100, 1_000, 10_000, 100_000)
SHAPES = (100, 300, 1_000, 3_000, 10_000)
WORLDS = (1, 8, 64, 512, 4096)
CELLS = 4096
SPEEDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Lengths of a body that it moves a frame."""
BODY_LENGTH = 0.18
"""Mean length of the bodies of a crowd [m]."""
SLOW = 0.01
"""Lengths of a body a frame where something else grows."""
CROWD = 1_000
CROWD_FRAMES = 64


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds of one pass over all cells, with one thread."""
    table = BenchTable(
        "growth",
        "Growth of the cost, one core",
        ["what grows", "number", "a cell", "a shape in a cell"],
        notes=[
            f"Frames: the humanoid. Shapes: a crowd of constant density, each moves {SLOW} of its length a frame. "
            f"Worlds: a crowd of 24 in {CELLS} cells, frames times worlds. Speed: a crowd of {CROWD}, in lengths of a "
            "body that it moves a frame."
        ],
    )
    for what, number, model, poses in cases():
        ours = Ours(model, poses, clock=CLOCKS[clock])
        cells = len(poses) * model.world_count
        seconds = interleaved({"ours": lambda ours=ours: ours.measure().seconds}, repeats)["ours"] / cells
        in_cell = len(model.template_shapes(0))
        table.add(
            what, f"{number:,}".replace(",", " "), spread_time(seconds), f"{1e9 * np.median(seconds) / in_cell:.0f} ns"
        )
        table.keep(f"{what} {number} seconds a cell", seconds)
    return table


def cases() -> Iterator[tuple[str, float, Model, np.ndarray]]:
    """What grows, its number, the model and the poses of each measurement."""
    model, poses = model_and_poses(humanoid(10_000))
    for frames in FRAMES:
        yield "frames", frames, model, np.concatenate([poses] * -(-frames // len(poses)))[:frames]
    for count in SHAPES:
        yield "shapes", count, *drifting_crowd(count, max(32, 64_000 // count), SLOW * BODY_LENGTH)
    for worlds in WORLDS:
        single = drifting_crowd(24, CELLS // worlds, SLOW * BODY_LENGTH)
        builder = ModelBuilder()
        builder.add_world(crowd_builder(24), count=worlds)
        yield "worlds", worlds, builder.finalize(), np.repeat(single[1], worlds, axis=1)
    for speed in SPEEDS:
        yield "speed", speed, *drifting_crowd(CROWD, CROWD_FRAMES, speed * BODY_LENGTH)
