"""Passes of this engine over scenes in memory: peers, threads, broad phases, growth, methods and
stages."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from pxr import Sdf

from collidecli.engine.broadphase.choice import SWEEP_PAIRS_PER_SHAPE
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from tests.bench.result import BenchTable, in_process, interleaved, spread_time
from tests.bench.scenes import BenchScene, dog, hand, humanoid, pile, quadruped, sparse_pile
from tests.bench.timing import CLOCKS, Mujoco, Ours, model_and_poses
from tests.support.poses import random_quaternions

# A humanoid and piles against `mj_collision`: computing alone, the same frames, one core each.

SCENES: dict[str, Callable[[], BenchScene | None]] = {
    "humanoid": lambda: humanoid(10_000),
    "pile_100": lambda: pile(100, 400),
    "pile_1000": lambda: pile(1000, 60),
    "pile_5000": lambda: pile(5000, 20),
    "dog": lambda: dog(2000),
    "hand": lambda: hand(2000),
    "sparse_1000": lambda: sparse_pile(1000, 60),
    "quadruped": lambda: quadruped(2000),
}
"""The last four are scenes that nothing was tuned on."""


def measure_peers(repeats: int, clock: str) -> BenchTable:
    """Microseconds a frame of both, and how many times as fast this engine is."""
    table = BenchTable(
        "peers",
        "Against MuJoCo's mj_collision, one core each",
        [
            "scene",
            "frames",
            "contacts a frame",
            "MuJoCo, a frame",
            "ours, a frame",
            "times as fast",
        ],
        notes=[
            "Median of repeats taken in turn, least and most in brackets. Neither time includes"
            " kinematics. Both find the same pairs; the numbers of contacts differ where"
            " manifolds do."
        ],
    )
    for key, make in SCENES.items():
        scene = make()
        if scene is None:
            table.notes.append(f"{key} is not measured: its package is not installed.")
            continue
        ours = Ours.of(scene, clock=CLOCKS[clock])
        theirs = Mujoco(scene, CLOCKS[clock])
        contacts = [side.measure().contacts / len(scene.qpos) for side in (theirs, ours)]
        times = interleaved(
            {
                "mujoco": lambda t=theirs: t.measure().seconds,
                "ours": lambda o=ours: o.measure().seconds,
            },
            repeats,
        )
        counts = f"{contacts[0]:.1f}, ours {contacts[1]:.1f}"
        cells = f"{scene.name} ({ours.choice.name})", len(scene.qpos), counts
        table.add_times(cells, times, key, len(scene.qpos), "mujoco", "ours")
        table.notes.append(f"{scene.name}: {stage_shares(ours)}")
    return table


def stage_shares(ours: Ours) -> str:
    """Where the time of one pass goes, and what a candidate costs, in words."""
    measured = ours.measure()
    total = sum(measured.stages.values())
    shares = ", ".join(
        f"{stage} {seconds / total:.0%}" for stage, seconds in measured.stages.items()
    )
    cost = 1e9 * measured.stages["narrow_phase"] / max(1, measured.candidates)
    touching = measured.contacts / max(1, measured.candidates)
    return f"{shares}; narrow phase {cost:.0f} ns a candidate, {touching:.2f} contacts a candidate"


# One thread against all: what more cores are worth, computing alone.


def measure_threads(repeats: int, clock: str) -> BenchTable:
    """Seconds of a pass with one thread and with more, always of the wall clock: threads are worth
    nothing else."""
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
        measures = {
            f"{n} threads": lambda one=one: one.measure().seconds for n, one in passes.items()
        }
        times = interleaved(measures, repeats)
        table.add_times(
            (scene.name,), times, key, len(scene.qpos), "1 threads", f"{counts[-1]} threads"
        )
    return table


# What sweep and prune costs from 1 000 to 100 000 shapes that are equally crowded, against n log n.

COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000)
SHAPES_A_PASS = 100_000
"""A pass has as many frames as make this many shapes, so that small scenes are timed as long as
large ones."""
SPACE = 0.02
"""Volume a shape has for itself [m3]; the shapes are some 0.1 m in radius, so that each touches
about one other."""


def measure_sap(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of the broad phase and of all, and the exponent of n that fits them."""
    table = BenchTable(
        "sap",
        "Sweep and prune, shapes of constant density, one core",
        [
            "shapes",
            "candidates a shape",
            "broad phase, a frame",
            "a shape",
            "over n log n",
            "all stages, a frame",
        ],
    )
    broad = []
    total = []
    for count in COUNTS:
        ours = Ours(
            *crowd(count, max(1, SHAPES_A_PASS // count)), broad_phase="sap", clock=CLOCKS[clock]
        )
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
    fits = [
        exponent(COUNTS, seconds) for seconds in (broad, total, [n * np.log(n) for n in COUNTS])
    ]
    table.keep("exponents", fits)
    table.notes = [
        f"Fitted exponent of n: broad phase {fits[0]:.3f}, all stages {fits[1]:.3f}; n log n itself"
        f" {fits[2]:.3f}. `over n log n` is 1 for the smallest scene and stays below where the cost"
        " grows no faster than that."
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
    """A crowd whose bodies jump by their size in each frame, and its poses float64[frames, 1,
    count, 7]."""
    rng = np.random.default_rng(count + 1)
    side = (SPACE * count) ** (1 / 3)
    poses = np.empty((frames, 1, count, 7))
    poses[..., :3] = rng.uniform(0, side, (count, 3)) + 0.1 * rng.normal(size=(frames, 1, count, 3))
    poses[..., 3:] = random_quaternions(rng, frames, 1, count)
    return crowd_builder(count).finalize(), poses


def drifting_crowd(count: int, frames: int, step: float) -> tuple[Model, np.ndarray]:
    """A crowd whose bodies move by `step` [m] a frame, each in a straight line between the walls of
    a cube."""
    rng = np.random.default_rng(count + 2)
    side = (SPACE * count) ** (1 / 3)
    direction = rng.normal(size=(count, 3))
    direction *= step / np.linalg.norm(direction, axis=1, keepdims=True)
    path = rng.uniform(0, side, (count, 3)) + np.arange(frames)[:, None, None] * direction
    poses = np.empty((frames, 1, count, 7))
    # Reflected at the walls: a triangle wave of the straight path.
    poses[:, 0, :, :3] = side - np.abs(np.mod(path, 2.0 * side) - side)
    poses[..., 3:] = random_quaternions(rng, count)
    return crowd_builder(count).finalize(), poses


# Where sweep and prune begins to pay: explicit pairs against sap as scenes grow; the number behind
# `auto`.

CROSSOVER_COUNTS = (30, 60, 100, 150, 200, 400, 1000)
CROSSOVER_SHAPES = 60_000


def measure_crossover(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of the broad phase, where every pair of shapes may touch."""
    table = BenchTable(
        "crossover",
        "Explicit pairs against sweep and prune, one core",
        ["shapes", "pairs a shape", "explicit, a frame", "sap, a frame", "sap times as fast"],
        notes=[
            f"`auto` picks sap above {SWEEP_PAIRS_PER_SHAPE} allowed pairs a shape. Every pair may"
            " touch here."
        ],
    )
    for count in CROSSOVER_COUNTS:
        model, poses = crowd(count, CROSSOVER_SHAPES // count)
        passes = {
            name: Ours(model, poses, broad_phase=name, clock=CLOCKS[clock])
            for name in ("explicit", "sap")
        }
        times = interleaved(
            {
                name: lambda one=one: one.measure().stages["broad_phase"]
                for name, one in passes.items()
            },
            repeats,
        )
        table.add_times(
            (count, f"{(count - 1) / 2:g}"), times, str(count), len(poses), "explicit", "sap"
        )
    return table


# How the cost grows with frames, shapes, worlds and the speed of the motion: the data of
# docs/figures/growth.svg.

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


def measure_growth(repeats: int, clock: str) -> BenchTable:
    """Seconds of one pass over all cells, with one thread."""
    table = BenchTable(
        "growth",
        "Growth of the cost, one core",
        ["what grows", "number", "a cell", "a shape in a cell"],
        notes=[
            f"Frames: the humanoid. Shapes: a crowd of constant density, each moves {SLOW} of its"
            f" length a frame. Worlds: a crowd of 24 in {CELLS} cells, frames times worlds. Speed:"
            f" a crowd of {CROWD}, in lengths of a body that it moves a frame."
        ],
    )
    for what, number, model, poses in cases():
        ours = Ours(model, poses, clock=CLOCKS[clock])
        cells = len(poses) * model.world_count
        seconds = (
            interleaved({"ours": lambda ours=ours: ours.measure().seconds}, repeats)["ours"] / cells
        )
        in_cell = len(model.template_shapes(0))
        table.add(
            what,
            f"{number:,}".replace(",", " "),
            spread_time(seconds),
            f"{1e9 * np.median(seconds) / in_cell:.0f} ns",
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


# GJK with EPA against MPR, for convex pairs without a collider of their own: what each costs and
# how exact it is.


def measure_methods(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of the narrow phase, and of all, with both methods on the same pile."""
    scene = pile(1000, 60)
    model, poses = model_and_poses(scene)
    passes = {
        name: Ours(model, poses, narrow_phase=name, clock=CLOCKS[clock]) for name in ("gjk", "mpr")
    }
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
        table.add(
            name, spread_time(narrow), spread_time(times[name] / one.frame_count), f"{contacts:.1f}"
        )
        table.keep(f"{name} narrow phase seconds", narrow)
        table.keep(f"{name} seconds", times[name])
    return table


# What a plain USD stage costs at load: processor time a collider, for 1 000 and 10 000 in bodies of
# four.

STAGE_COUNTS = (1_000, 10_000)
STAGE_SHAPES = {
    "Sphere": "double radius = 0.3",
    "Cube": "double size = 0.5",
    "Capsule": 'double radius = 0.2\ndouble height = 0.5\nuniform token axis = "X"',
    "Cylinder": "double radius = 0.2\ndouble height = 0.5",
}
MATERIALS = 4
MOST_REPEATS = 3

MEASURED = """
import json, sys, time
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
builder = ModelBuilder()
start = time.process_time()
add_usd(builder, sys.argv[1])
read = time.process_time()
builder.finalize()
print(json.dumps([read - start, time.process_time() - read]))
"""


def measure_stages(repeats: int, clock: str) -> BenchTable:
    """Loads in processes of their own, by processor time, whatever clock was asked for."""
    table = BenchTable(
        "stages",
        "Plain USD stages: processor time of loading",
        ["colliders", "add_usd", "a collider", "finalize", "a collider"],
        notes=[
            "Bodies of four colliders with materials and two collision groups, .usdc; least of the"
            " repeats."
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        for count in STAGE_COUNTS:
            path = write_stage(Path(folder), count)
            seconds = np.array(
                [in_process(MEASURED, str(path)) for _ in range(min(repeats, MOST_REPEATS))]
            )
            read, final = seconds.min(axis=0)
            cells = [
                text
                for each in (read, final)
                for text in (f"{each:.2f} s", f"{1e3 * each / count:.3f} ms")
            ]
            table.add(f"{count:,}".replace(",", " "), *cells)
            table.keep(f"{count} seconds", seconds.ravel())
    return table


def write_stage(folder: Path, count: int) -> Path:
    """A .usdc stage of `count` colliders, four to a body."""
    parts = ['#usda 1.0\n(\nmetersPerUnit = 1\nupAxis = "Z"\n)\ndef Xform "World"\n{\n']
    for material in range(MATERIALS):
        parts.append(
            f'def Material "m{material}" (prepend apiSchemas = ["PhysicsMaterialAPI"])\n{{\n'
        )
        parts.append(f"float physics:dynamicFriction = {0.1 * (material + 1)}\n}}\n")
    for group, other in (("ga", "gb"), ("gb", "ga")):
        parts.append(
            f'def PhysicsCollisionGroup "{group}" (prepend apiSchemas ='
            ' ["CollectionAPI:colliders"])\n{\n'
        )
        parts.append(f"rel collection:colliders:includes = </World/b{'ab'.index(group[1])}>\n")
        parts.append(f"rel physics:filteredGroups = </World/{other}>\n}}\n")
    for body in range(count // len(STAGE_SHAPES)):
        parts.append(f'def Xform "b{body}" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n{{\n')
        parts.append(f"double3 xformOp:translate = ({body % 100}, {body // 100}, 1)\n")
        parts.append(
            "quatf xformOp:orient = (0.8, 0.6, 0, 0)\nuniform token[] xformOpOrder ="
            ' ["xformOp:translate", '
        )
        parts.append('"xformOp:orient"]\n')
        for place, (kind, sizes) in enumerate(STAGE_SHAPES.items()):
            apis = '["PhysicsCollisionAPI", "MaterialBindingAPI"]'
            parts.append(f'def {kind} "c{place}" (prepend apiSchemas = {apis})\n{{\n{sizes}\n')
            parts.append(f"rel material:binding:physics = </World/m{(body + place) % MATERIALS}>\n")
            parts.append(f"double3 xformOp:translate = ({0.1 * place}, {0.2 * place}, 0.1)\n")
            parts.append('uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n')
        parts.append("}\n")
    parts.append("}\n")
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString("".join(parts))
    path = folder / f"stage_{count}.usdc"
    layer.Export(str(path))
    return path
