"""Runs of the whole program, and loads of stages and fields."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from collidecli.engine.geometry.sdf_construction import field_of
from collidecli.engine.pipeline_build import find_device
from collidecli.scene.options import EngineOptions
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.field_cache import FieldCache
from collidecli.storage.trajectory_writer import TrajectoryWriter
from collidecli.verbs.run.run import RunRequest, run
from collidecli.wording import memory
from tests.bench.passes import SCENES
from tests.bench.result import BenchTable, in_process, interleaved, ratio, spread_time
from tests.bench.scenes import FOLDER, BenchScene, humanoid
from tests.bench.timing import Ours, model_and_poses
from tests.support import fields
from tests.support.usd_scenes import write_environments, write_robot

ENVIRONMENT_COUNTS = (1, 64, 1024, 4096)
LINKS = 12
AS_ONE_WORLD = (64, 256)
DIRECTIONS = {
    "reference": "each references the robot",
    "inherit": "all inherit the first",
    "copy": "each holds a copy of its specs",
}

MEASURED = """
import json, re, sys, time
from collidecli.motions.scenes import load_scene
from collidecli.scene.options import SceneOptions
import collidecli.importers.usd.scene
start = time.perf_counter()
scene = load_scene([sys.argv[1]], None, options=SceneOptions(environments=sys.argv[2]))
seconds = time.perf_counter() - start
model = scene.model
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([seconds, peak, model.world_count, int(model.world_template.max()) + 1]))
"""
"""A process of its own for each load: no layer is in pxr's cache, and VmHWM, which Linux alone has,
is its own peak."""


def measure_environments(repeats: int, clock: str) -> BenchTable:
    """Loads of whole processes by the wall clock, whatever clock was asked for."""
    table = BenchTable(
        "environments",
        f"Environments of a robot of {LINKS} links and {2 * LINKS} colliders: loading",
        ["environments", "file", "worlds", "templates", "load", "peak memory"],
        notes=[
            "Scene file to finalized model, in a process of its own; imports are not in the time,"
            " and are in the memory. The last rows take the whole stage as one world"
            " (`--environments none`), which is what a reader that composes every environment pays."
            " Files are .usda, read as text."
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        robot = write_robot(Path(folder), LINKS)
        for how, words in DIRECTIONS.items():
            for count in ENVIRONMENT_COUNTS if how != "inherit" else ENVIRONMENT_COUNTS[-1:]:
                path = write_environments(Path(folder), robot, count, how, f"{how}_{count}.usda")
                _row(table, path, f"{count}: {words}", "", repeats)
        for count in AS_ONE_WORLD:
            path = write_environments(Path(folder), robot, count, name=f"one_world_{count}.usda")
            _row(table, path, f"{count}: {DIRECTIONS['reference']}, as one world", "none", 1)
    return table


def _row(table: BenchTable, path: Path, words: str, environments: str, repeats: int) -> None:
    found = [
        in_process(MEASURED, str(path), environments) for _ in range(min(repeats, MOST_REPEATS))
    ]
    seconds = np.array([each[0] for each in found])
    worlds, templates = found[0][2:]
    peak = max(int(each[1]) for each in found)
    table.add(
        words, memory(path.stat().st_size), worlds, templates, spread_time(seconds), memory(peak)
    )
    table.keep(f"{words} seconds", seconds)
    table.keep(f"{words} peak bytes", peak)


# How long until `collide` answers: the help, first contacts, and whole runs against imports and a
# script of MuJoCo.

START_SCENES = {
    "the pile of samples/01_usd_pile": (
        "samples/01_usd_pile/pile.usda",
        "from pxr import Usd, UsdGeom, UsdPhysics",
    ),
    "the humanoid of samples/02_humanoid": ("samples/02_humanoid/humanoid.xml", "import mujoco"),
}
"""Scene, and the import of its parser."""
SCRIPT = Path(__file__).with_name("contact_script.py")
FRAMES = (100, 10_000, 100_000)
MOST_REPEATS = 3
"""Of loads, and of an empty cache, where each may compile every kernel anew."""


def measure_start(repeats: int, clock: str) -> BenchTable:
    """Seconds of whole processes, in turn: of the wall clock, or with --clock cpu of the
    processor."""
    run = partial(_seconds, clock)
    table = BenchTable(
        "start",
        "Whole processes, from call to exit",
        ["what", "seconds", "times that of"],
        notes=[
            (
                "`run` takes one frame and writes its file, or as many frames as stated. An empty"
                " cache: WARP_CACHE_PATH is a new folder, into which the package's kernels are"
                " copied where it carries any. MuJoCo, USD and Warp are loaded anew in each"
                " process; their files are in the disk's cache, and so is the bytecode of all"
                " modules."
            ),
            (
                "Imports: an interpreter that imports warp, numpy, h5py and the scene's parser, and"
                " ends. Script: `tests/bench/contact_script.py`, which reads the same coordinates,"
                " calls `mj_kinematics` and `mj_collision` for each frame, and writes the contacts"
                " with h5py, not compressed and not hashed."
            ),
        ],
    )
    with tempfile.TemporaryDirectory() as bytecode:
        # Some machines turn the cache of bytecode off, and compiling would be most of a start.
        kept = {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        _measure_help(table, partial(run, kept), repeats)
        for name, (scene, parser) in START_SCENES.items():
            _measure_scene(table, partial(run, kept), repeats, name, scene, parser)
        _measure_script(table, partial(run, kept), repeats)
    return table


Run = Callable[..., float]
"""Seconds of a command; keyword arguments are variables of its environment."""


def _measure_help(table: BenchTable, run: Run, repeats: int) -> None:
    times = interleaved(
        {
            "help": lambda: run(collide_command("--help")),
            "none": lambda: run([sys.executable, "-c", ""]),
        },
        2 * repeats,
    )
    table.add(
        "`collide --help`",
        spread_time(times["help"]),
        f"{ratio(times['help'], times['none'])} an empty program",
    )
    table.keep("help seconds", times["help"])


def _measure_scene(
    table: BenchTable, run: Run, repeats: int, name: str, scene: str, parser: str
) -> None:
    imports = [sys.executable, "-c", f"import warp, numpy, h5py; {parser}"]
    with tempfile.TemporaryDirectory() as folder:
        command = collide_command(
            "run", scene, "--frames", "0", "-o", f"{folder}/out.h5", "--force", "--quiet"
        )
        caches = iter(range(MOST_REPEATS + 1))
        empty = interleaved(
            {"run": lambda: run(command, WARP_CACHE_PATH=f"{folder}/cache{next(caches)}")},
            min(repeats, MOST_REPEATS),
        )["run"]
        times = interleaved(
            {
                "imports": lambda: run(imports),
                "cached": lambda: run(command, WARP_CACHE_PATH=f"{folder}/cache0"),
            },
            repeats,
        )
    share = f"{ratio(times['cached'], times['imports'])} the imports"
    table.add(f"imports, {name}", spread_time(times["imports"]), "")
    table.add(f"first contacts, {name}, kernels cached", spread_time(times["cached"]), share)
    table.add(f"first contacts, {name}, empty kernel cache", spread_time(empty), "")
    table.keep(f"{scene} empty cache seconds", empty)
    table.keep(f"{scene} cached seconds", times["cached"])
    table.keep(f"{scene} imports seconds", times["imports"])


def _measure_script(table: BenchTable, run: Run, repeats: int) -> None:
    scene = humanoid(FRAMES[1])
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for frames in FRAMES:
            recording = write_coordinates(scene, Path(folder) / f"{frames}.h5", frames)
            files = str(scene.path), str(recording)
            script = [sys.executable, str(SCRIPT), *files, f"{folder}/script.h5"]
            ours = [
                "run",
                files[0],
                "-t",
                files[1],
                "-o",
                f"{folder}/out.contacts.h5",
                "--force",
                "--quiet",
            ]
            times = interleaved(
                {
                    "script": partial(run, script),
                    "run": partial(run, collide_command(*ours)),
                    "one thread": partial(run, collide_command(*ours, "--threads", "1")),
                },
                repeats,
            )
            table.add(f"script, {scene.name}, {frames} frames", spread_time(times["script"]), "")
            for kind, words in (("run", ""), ("one thread", ", one thread")):
                share = f"{ratio(times[kind], times['script'])} the script"
                table.add(
                    f"`run`, {scene.name}, {frames} frames{words}", spread_time(times[kind]), share
                )
            for kind, seconds in times.items():
                table.keep(f"{frames} frames {kind} seconds", seconds)


def write_coordinates(scene: BenchScene, path: Path, frames: int) -> Path:
    """The scene's coordinates, repeated to this number of frames, as a trajectory that has them in
    place of poses."""
    qpos = np.resize(scene.qpos, (frames, scene.qpos.shape[1]))
    with TrajectoryWriter(
        path, coordinate_count=scene.mj_model.nq, frames_expected=frames, force=True
    ) as file:
        step = np.arange(frames)
        file.append(0.01 * step, step, joint_q=qpos[:, None])
    return path


def collide_command(*args: str) -> list[str]:
    """The command line as a process of this interpreter."""
    installed = Path(sys.executable).with_name("collide")
    start = (
        [str(installed)] if installed.exists() else [sys.executable, "-m", "collidecli.cli.guard"]
    )
    return [*start, *args]


def _seconds(clock: str, kept: dict[str, str], command: list[str], **environment: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        command, env={**os.environ, **kept, **environment}, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter() - start
    return (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if clock == "cpu"
        else wall
    )


# Bench scenes as files that the command line takes: the scene, and its motion as a trajectory.


def write_recording(scene: BenchScene, path: Path, repeats: int = 1) -> Path:
    """The scene's motion `repeats` times over, as a trajectory of body poses in float64."""
    model, poses = model_and_poses(scene)
    with TrajectoryWriter(
        path, body_names=model.bodies.path, frames_expected=repeats * len(poses), force=True
    ) as file:
        for repeat in range(repeats):
            step = np.arange(repeat * len(poses), (repeat + 1) * len(poses))
            file.append(0.01 * step, step, body_q=poses)
    return path


# A whole run, from the first frame read to the file closed, against computing alone with as many
# threads.

COMPRESSIONS = ("gzip", "none")


def measure_writing(repeats: int, clock: str) -> BenchTable:
    """Seconds of the wall clock, whatever clock was asked for: a run overlaps reading, computing
    and writing."""
    table = BenchTable(
        "writing",
        "A file written and closed, against computing alone",
        [
            "scene",
            "threads",
            "compression",
            "computing alone",
            "whole run",
            "longer by",
            "file, a contact",
        ],
        notes=[
            "Threads compute; the run's writer has one of its own. Loading and compiling are in"
            " neither."
        ],
    )
    for key in ("humanoid", "pile_1000"):
        scene = SCENES[key]()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            recording = write_recording(scene, Path(folder) / "motion.h5")
            for threads in sorted({1, os.cpu_count() or 1}):
                _compare(table, key, scene, recording, threads, repeats)
    return table


def _compare(
    table: BenchTable, key: str, scene: BenchScene, recording: Path, threads: int, repeats: int
) -> None:
    alone = Ours.of(scene, threads=threads)
    output = recording.with_name("out.contacts.h5")
    sizes: dict[str, float] = {}

    def whole(compression: str) -> float:
        output.unlink(missing_ok=True)  # a new file: taking an old one away is no part of writing
        request = RunRequest(
            scenes=(str(scene.path),),
            output=str(output),
            trajectory=str(recording),
            engine=EngineOptions(threads=threads),
            compression=compression,
            force=True,
        )
        result = run(request)
        sizes[compression] = output.stat().st_size / max(1, result.contacts)
        return result.wall_seconds

    times = interleaved(
        {
            "alone": lambda: alone.measure().seconds,
            **{c: lambda c=c: whole(c) for c in COMPRESSIONS},
        },
        repeats,
    )
    for compression in COMPRESSIONS:
        table.add(
            scene.name,
            threads,
            compression,
            spread_time(times["alone"]),
            spread_time(times[compression]),
            ratio(times[compression], times["alone"]),
            f"{sizes[compression]:.0f} B",
        )
    for name, seconds in times.items():
        table.keep(f"{key} {threads} threads {name} seconds", seconds)


# Peak memory of whole processes: a trajectory ten times as long, and --memory-limit.

LIMITS = ("", "256MiB", "64MiB")
CASES = {"humanoid": (1, 10), "pile_100": (5, 50)}
"""How often each scene's motion is repeated: enough for whole chunks, and ten times that."""


def measure_memory(repeats: int, clock: str) -> BenchTable:
    """Largest resident size of each run, once each: memory is no matter of chance."""
    table = BenchTable(
        "memory",
        "Peak memory of `collide run`",
        ["scene", "frames", "--memory-limit", "peak", "trajectory", "contact set"],
        notes=[
            "The peak is of the whole process: Python, MuJoCo, USD, Warp and the kernels take what"
            " the run of one frame shows; the limit is for scratch memory and waiting blocks"
            " besides."
        ],
    )
    for key, longer in CASES.items():
        scene = SCENES[key]()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            short, long = (
                write_recording(scene, Path(folder) / f"motion_{n}.h5", n) for n in longer
            )
            cases = [(short, "0", ""), (short, ":", ""), *((long, ":", limit) for limit in LIMITS)]
            for recording, frames, limit in cases:
                output = Path(folder) / "out.contacts.h5"
                options = ["--memory-limit", limit] if limit else []
                command = collide_command(
                    "run", str(scene.path), "-t", str(recording), "--frames", frames, *options
                )
                command += ["-o", str(output), "--json", "--force"]
                facts = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                peak = facts["peak_memory_bytes"]
                count = facts["frames"]
                table.add(
                    scene.name,
                    count,
                    limit or "none",
                    memory(peak),
                    memory(recording.stat().st_size),
                    memory(output.stat().st_size),
                )
                table.keep(f"{key} {count} frames limit {limit or 'none'} peak bytes", peak)
    return table


RESOLUTIONS = (32, 64)
BAND = (-0.05, 0.05)


def measure_fields(repeats: int, clock: str) -> BenchTable:
    """Seconds of the wall clock, whatever clock was asked for: building uses every core."""
    table = BenchTable(
        "fields",
        "Signed distance fields: built, and found in the cache",
        ["surface", "voxels along", "building", "a hit", "MiB"],
        notes=[f"On the CPU. The band is {BAND[1]:g} m to either side, the kernels are compiled."],
    )
    surfaces = {"torus": fields.ring(), "open bowl": fields.bowl(), "dirty blobs": fields.dirty()}
    device = find_device("cpu")
    for name, mesh in surfaces.items():
        for resolution in RESOLUTIONS:
            shape = fields.field_of(
                ShapeType.MESH, mesh=mesh, max_resolution=resolution, narrow_band_range=BAND
            )
            grid = field_of(shape, device)
            with tempfile.TemporaryDirectory() as folder:
                cache = FieldCache(folder)
                field_of(shape, device, cache)
                built = _times(repeats, lambda shape=shape: field_of(shape, device))
                hits = _times(
                    repeats, lambda shape=shape, cache=cache: field_of(shape, device, cache)
                )
            table.add(
                name,
                str(resolution),
                spread_time(built),
                spread_time(hits),
                f"{grid.bytes / 2**20:.1f}",
            )
            table.keep(f"{name} {resolution} building seconds", built)
            table.keep(f"{name} {resolution} hit seconds", hits)
    return table


def _times(repeats: int, work) -> np.ndarray:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return np.array(times)
