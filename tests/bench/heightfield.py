"""dm_control's quadruped on 512 x 512 heights against `mj_collision`, and what a terrain of 4096 x 4096 costs."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from collidecli.importers.mujoco.compile import compile_mjcf
from collidecli.scene.builder import ModelBuilder
from tests.bench.passes import stage_shares
from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.scenes import FOLDER, BenchScene
from tests.bench.timing import CLOCKS, Mujoco, Ours
from tests.support.meshes import bumpy
from tests.support.oracle import rotation_of
from tests.support.quadruped import HALF_SIZE, terrain, walk, write_quadruped

FRAMES = 2000
SIDES = (512, 4096)
BODIES = 100
LAID = 20
"""Frames of meshes that lie on a terrain."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Microseconds a frame of both, and a sphere's time on terrains of two sizes."""
    table = BenchTable(
        "heightfield",
        "Heightfields, one core",
        ["scene", "MuJoCo, a frame", "ours, a frame", "times as fast"],
        notes=["Computing alone. Median of repeats taken in turn, least and most in brackets."],
    )
    scene = quadruped(512)
    ours, theirs = Ours.of(scene, clock=CLOCKS[clock]), Mujoco(scene, CLOCKS[clock])
    times = interleaved({"mujoco": lambda: theirs.measure().seconds, "ours": lambda: ours.measure().seconds}, repeats)
    both = [spread_time(times[side] / FRAMES) for side in ("mujoco", "ours")]
    table.add(scene.name, *both, ratio(times["mujoco"], times["ours"]))
    for side, seconds in times.items():
        table.keep(f"quadruped {side} seconds", seconds)
    table.notes.append(f"{scene.name}: {stage_shares(ours)}")
    rolls = {side: rolling(side, clock, table) for side in SIDES}
    times = interleaved({str(side): lambda one=one: one.measure().seconds for side, one in rolls.items()}, repeats)
    for side in SIDES:
        table.add(f"a sphere on {side} x {side} heights", "", spread_time(times[str(side)] / FRAMES), "")
        table.keep(f"sphere {side} seconds", times[str(side)])
    _measure_meshes(table, repeats, clock)
    return table


def _measure_meshes(table: BenchTable, repeats: int, clock: str) -> None:
    """Bodies of 5000 triangles each, laid on terrains of two sizes whose cells are of one size."""
    laid = {side: lying(side, clock) for side in SIDES}
    times = interleaved({str(side): lambda one=one: one.measure().seconds for side, one in laid.items()}, repeats)
    for side in SIDES:
        name = f"{BODIES} meshes of 5000 triangles on {side} x {side} heights"
        table.add(name, "", spread_time(times[str(side)] / LAID), "")
        table.keep(f"meshes {side} seconds", times[str(side)])


def lying(side: int, clock: str) -> Ours:
    """Meshes somewhere in the middle of a terrain, their lowest point 5 mm in it, turned at random in each frame."""
    rng = np.random.default_rng(1)
    heights = (5.0 * terrain(side, np.random.default_rng(0))).astype(np.float32)
    half = HALF_SIZE * (side - 1) / 511.0
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights, half, half, 0.1)
    vertices, faces = bumpy(rng, 51, 50, 0.3)
    turn = rng.normal(size=(LAID, BODIES, 4))
    turn /= np.linalg.norm(turn, axis=2, keepdims=True)
    poses = np.zeros((LAID, 1, BODIES, 7))
    poses[:, 0, :, 3:] = turn
    poses[:, 0, :, :2] = 2.0 * (np.stack(np.divmod(np.arange(BODIES), 10), axis=1) - 4.5)
    for body in range(BODIES):
        builder.add_shape_mesh(builder.add_body(), vertices, faces)
        for frame in range(LAID):
            placed = vertices @ rotation_of(poses[frame, 0, body][None])[0].T + poses[frame, 0, body, :3]
            column, row = np.round((placed[:, :2].T / half + 1.0) * 0.5 * (side - 1)).astype(int)
            poses[frame, 0, body, 2] = (heights[row, column] - placed[:, 2]).max() - 0.005
    return Ours(builder.finalize(), poses, clock=CLOCKS[clock])


def quadruped(count: int) -> BenchScene:
    """The quadruped walks under random controls."""
    folder = FOLDER / f"quadruped_{count}"
    path = write_quadruped(folder, count)
    model = compile_mjcf(path).mj_model
    cache = folder / f"qpos_{FRAMES}.npy"
    if not cache.exists():
        np.save(cache, walk(model, FRAMES, every=2, settle=400))
    return BenchScene(f"dm_control's quadruped on {count} x {count} heights", path, model, np.load(cache))


def rolling(side: int, clock: str, table: BenchTable) -> Ours:
    """A sphere across a terrain; notes how long its heights took to load and what they took of memory."""
    heights = (5.0 * terrain(side, np.random.default_rng(0))).astype(np.float32)
    poses = np.zeros((FRAMES, 1, 1, 7))
    poses[:, 0, 0, 6] = 1.0
    poses[:, 0, 0, 0] = np.linspace(-20.0, 20.0, FRAMES)
    at = np.round(poses[:, 0, 0, 0] / HALF_SIZE * 255.5 + 0.5 * (side - 1)).astype(int)
    poses[:, 0, 0, 2] = heights[side // 2, at] + 0.3
    tracemalloc.start()
    start = time.perf_counter()
    builder = ModelBuilder()
    half = HALF_SIZE * (side - 1) / 511.0  # cells are of one size
    builder.add_shape_heightfield(-1, heights, half, half, 0.1)
    builder.add_shape_sphere(builder.add_body(), radius=0.3)
    one = Ours(builder.finalize(), poses, clock=CLOCKS[clock])
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = f"{heights.nbytes / 2**20:.1f} MiB of heights"
    table.notes.append(
        f"{side} x {side}: {size}; loading took {seconds:.2f} s and {peak / 2**20:.1f} MiB more at most."
    )
    return one
