"""python -m tests.bench.cold_runs [TREE ...]: whole processes beside a user's script, on scenes that
nothing was tuned on.

Each TREE is a checkout of this project whose kernels are built; without one, this checkout. In each
round the script and every tree run once, in turn, each in a process of its own on one core.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import click
import h5py
import mujoco
import numpy as np

from collidecli.importers.mujoco.compile import compile_mjcf
from tests.bench.runs import SCRIPT, write_coordinates
from tests.bench.scenes import FOLDER, BenchScene, hand, humanoid

ROOT = Path(__file__).parents[2]
SHELF_COUNT = 25
BOXES_OF_A_SHELF = 200
LUMP_VERTICES = 14


@dataclass
class Measured:
    """Seconds of the processes of one program on one scene, and per-item costs of those that write
    a contact set, one number a round."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    per_candidate: list[float] = field(default_factory=list)
    ordered: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    contents: set[str] = field(default_factory=set)


def scenes() -> dict[str, tuple[Callable[[], BenchScene | None], int]]:
    """Each scene's function and the number of frames that its coordinates are repeated or cut
    to."""
    return {
        "humanoid, 100 frames": (lambda: humanoid(10_000), 100),
        "humanoid, 10 000 frames": (lambda: humanoid(10_000), 10_000),
        "humanoid, 100 000 frames": (lambda: humanoid(10_000), 100_000),
        "robot hand, 2 000 frames": (lambda: hand(2_000), 2_000),
        "bricks and lumps while they settle, 500 frames": (lambda: rubble(0, 500), 500),
        "bricks and lumps at rest, 4 000 frames": (lambda: rubble(1_500, 4_000), 4_000),
        "warehouse of 5 000 boxes, 30 frames": (lambda: warehouse(30), 30),
    }


def rubble(start: int, frame_count: int) -> BenchScene:
    """120 flat boxes, long capsules, thin cylinders, long ellipsoids and hulls of 14 vertices, of
    three densities, that are thrown into a box at 2 m/s."""
    path = FOLDER / "rubble" / "rubble.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rubble_xml())
    model = compile_mjcf(path).mj_model
    cache = path.with_name(f"qpos_{start}_{frame_count}.npy")
    if not cache.exists():
        np.save(cache, thrown(model, start, frame_count))
    return BenchScene("bricks and lumps", path, model, np.load(cache))


def rubble_xml() -> str:
    """The MJCF of `rubble`."""
    rng = np.random.default_rng(57)
    assets = []
    bodies = []
    for number in range(120):
        size = rng.uniform(0.03, 0.12, 3)
        if number % 5 == 0:
            geom = f'type="box" size="{size[0]} {size[1]} {0.2 * size[2]}"'
        elif number % 5 == 1:
            geom = f'type="capsule" size="{0.4 * size[0]} {2 * size[1]}"'
        elif number % 5 == 2:
            geom = f'type="cylinder" size="{size[0]} {0.2 * size[1]}"'
        elif number % 5 == 3:
            geom = f'type="ellipsoid" size="{2 * size[0]} {0.6 * size[1]} {0.6 * size[2]}"'
        else:
            vertices = rng.normal(size=(LUMP_VERTICES, 3))
            vertices *= size / np.linalg.norm(vertices, axis=1, keepdims=True)
            words = " ".join(f"{value:.6f}" for value in vertices.ravel())
            assets.append(f'<mesh name="lump{number}" vertex="{words}"/>')
            geom = f'type="mesh" mesh="lump{number}"'
        place = (
            0.3 * (number % 5 - 2),
            0.3 * (number // 5 % 4 - 1.5),
            0.3 + 0.3 * (number // 20),
        )
        position = " ".join(str(value) for value in place)
        density = (300, 1_000, 2_700)[number % 3]
        bodies.append(
            f'<body pos="{position}"><freejoint/><geom {geom} density="{density}"/></body>'
        )
    walls = "".join(
        f'<geom type="box" size="{sx} {sy} 1" pos="{x} {y} 1"/>'
        for x, y, sx, sy in ((1, 0, 0.05, 1), (-1, 0, 0.05, 1), (0, 1, 1, 0.05), (0, -1, 1, 0.05))
    )
    return (
        '<mujoco><option timestep="0.004"/><asset>'
        + "".join(assets)
        + '</asset><worldbody><geom type="plane" size="0 0 1"/>'
        + walls
        + "".join(bodies)
        + "</worldbody></mujoco>"
    )


def thrown(model: mujoco.MjModel, start: int, frame_count: int) -> np.ndarray:
    """float64[F, nq]: each step of a simulation from step `start` on, which begins with velocities
    of 2 m/s in random directions."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(57)
    directions = rng.normal(size=(model.nbody - 1, 3))
    directions *= 2 / np.linalg.norm(directions, axis=1, keepdims=True)
    data.qvel[:] = np.concatenate([directions, np.zeros_like(directions)], axis=1).ravel()
    frames = []
    for step in range(start + frame_count):
        mujoco.mj_step(model, data)
        if step >= start:
            frames.append(data.qpos.copy())
    return np.stack(frames)


def warehouse(frame_count: int) -> BenchScene:
    """25 shelves of 200 boxes that stand 0.1 mm deep and shake by 1 mm, and a cart that drives
    through the aisles at 5 cm a frame."""
    path = FOLDER / "warehouse" / "warehouse.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(58)
    shelves = []
    boxes = []
    coordinates = []
    for shelf in range(SHELF_COUNT):
        x = 3.0 * (shelf % 5)
        y = 14.0 * (shelf // 5)
        for level in range(4):
            shelves.append(f'<geom type="box" size="0.5 6 0.02" pos="{x} {y} {0.5 + level}"/>')
        for number in range(BOXES_OF_A_SHELF):
            half = rng.uniform(0.05, 0.11, 3)
            level = number % 4
            row = number // 4
            boxes.append(
                f'<body><freejoint/><geom type="box" size="{half[0]} {half[1]} {half[2]}"/></body>'
            )
            place = (
                x - 0.25 + 0.5 * (row % 2),
                y - 5.7 + 0.47 * (row // 2),
                0.5 + level + 0.02 + half[2] - 1e-4,
            )
            coordinates.append([*place, 1, 0, 0, 0])
    path.write_text(
        '<mujoco><size memory="4G"/><worldbody><geom type="plane" size="0 0 1"/>'
        + "".join(shelves)
        + "".join(boxes)
        + '<body><freejoint/><geom type="box" size="0.4 0.6 0.3"/><geom type="cylinder"'
        ' size="0.1 0.6" pos="0 0 0.9"/></body></worldbody></mujoco>'
    )
    shaken = np.repeat(np.array(coordinates)[None], frame_count, axis=0)
    shaken[..., :2] += rng.uniform(-1e-3, 1e-3, (frame_count, len(coordinates), 2))
    cart = np.zeros((frame_count, 7))
    cart[:, 0] = 1.0
    cart[:, 1] = 0.05 * np.arange(frame_count)
    cart[:, 2] = 0.31
    cart[:, 3] = 1.0
    qpos = np.concatenate([shaken.reshape(frame_count, -1), cart], axis=1)
    return BenchScene("warehouse", path, compile_mjcf(path).mj_model, qpos)


def measure(command: list[str], variables: dict[str, str], folder: Path, into: Measured) -> None:
    """Run a process in a folder, on this process's core, and keep its times."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(
        command,
        env={**os.environ, **variables},
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    into.wall.append(time.perf_counter() - begin)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    into.processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def read_costs(path: Path, into: Measured) -> None:
    """Keep what the timing report of a contact set says: ns of the narrow phase a candidate, of
    order and of writing a contact."""
    with h5py.File(path) as file:
        timing = file["timing"]
        stages = timing["stage"].asstr()[:]
        seconds = dict(zip(stages, timing["seconds"][:], strict=True))
        candidates = int(timing.attrs["candidate_count"])
        contacts = int(timing.attrs["contact_count"])
        into.contents.add(str(file.attrs["content_sha256"]))
    into.per_candidate.append(1e9 * seconds["narrow_phase"] / max(candidates, 1))
    into.ordered.append(1e9 * seconds["order"] / max(contacts, 1))
    into.written.append(1e9 * seconds["write"] / max(contacts, 1))


def spread(values: list[float], unit: float) -> str:
    """The least and the median of some numbers."""
    return f"{min(values) / unit:.3g} ({median(values) / unit:.3g})"


@click.command()
@click.argument(
    "trees",
    nargs=-1,
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
)
@click.option("--repeats", default=7, show_default=True, help="Rounds, after one that warms up.")
@click.option("--only", default="", help="Measure the scenes whose name begins so.")
def main(trees: tuple[Path, ...], repeats: int, only: str) -> None:
    """Print a row a scene and program: least (median) of the seconds of the wall clock and of the
    processor, the processor's share of the script's, and costs of stages in ns."""
    print("| run | program | wall, ms | processor, ms | script's | candidate | order | write |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(dir=FOLDER.resolve()) as folder:
        for name, (scene_of, frames) in scenes().items():
            if name.startswith(only):
                _measure_scene(name, scene_of(), frames, trees or (ROOT,), repeats, Path(folder))


def _measure_scene(
    name: str,
    scene: BenchScene | None,
    frames: int,
    trees: tuple[Path, ...],
    repeats: int,
    folder: Path,
) -> None:
    if scene is None:
        print(f"| {name} | not installed |")
        return
    recording = write_coordinates(scene, folder / "motion.h5", frames)
    output = folder / "out.contacts.h5"
    files = [str(scene.path.resolve()), str(recording)]
    script = [sys.executable, str(SCRIPT), *files, str(folder / "script.h5")]
    ours = [sys.executable, "-m", "collidecli.cli.guard", "run", files[0], "-t", files[1]]
    ours += ["-o", str(output), "--force", "--quiet", "--threads", "1"]
    bytecode = {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    of_script = Measured()
    of_trees = {tree: Measured() for tree in trees}
    for _ in range(repeats + 1):
        measure(script, bytecode, folder, of_script)
        for tree, measured in of_trees.items():
            measure(ours, bytecode, tree, measured)
            read_costs(output, measured)
    least = min(of_script.processor[1:])
    print(
        f"| {name} | script | {spread(of_script.wall[1:], 1e-3)}"
        f" | {spread(of_script.processor[1:], 1e-3)} | 1 | | | |",
        flush=True,
    )
    for tree, measured in of_trees.items():
        costs = " | ".join(
            spread(values[1:], 1)
            for values in (measured.per_candidate, measured.ordered, measured.written)
        )
        print(
            f"| | {tree.name} | {spread(measured.wall[1:], 1e-3)}"
            f" | {spread(measured.processor[1:], 1e-3)}"
            f" | {min(measured.processor[1:]) / least:.2f} | {costs} |",
            flush=True,
        )
    if len({content for measured in of_trees.values() for content in measured.contents}) > 1:
        print(f"| {name} | content hashes of the trees differ |")


if __name__ == "__main__":
    main()
