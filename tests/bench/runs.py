"""Runs of the whole program: start, writing and peak memory."""

from __future__ import annotations

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

from collidecli.commands.run import RunRequest, run
from collidecli.scene.options import EngineOptions
from collidecli.scene.text_format import memory
from collidecli.storage.trajectory_files import TrajectoryWriter
from tests.bench.passes import SCENES
from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.scenes import FOLDER, BenchScene, humanoid
from tests.bench.timing import Ours, model_and_poses

# How long until `collide` answers: the help, first contacts, and whole runs against imports and a script of MuJoCo.

START_SCENES = {
    "the pile of samples/01_usd_pile": ("samples/01_usd_pile/pile.usda", "from pxr import Usd, UsdGeom, UsdPhysics"),
    "the humanoid of samples/02_humanoid": ("samples/02_humanoid/humanoid.xml", "import mujoco"),
}
"""Scene, and the import of its parser."""
SCRIPT = Path(__file__).with_name("contact_script.py")
FRAMES = (100, 10_000, 100_000)
MOST_REPEATS = 3
"""Of an empty cache: each may compile every kernel anew."""


def measure_start(repeats: int, clock: str) -> BenchTable:
    """Seconds of whole processes, in turn: of the wall clock, or with --clock cpu of the processor."""
    run = partial(_seconds, clock)
    table = BenchTable(
        "start",
        "Whole processes, from call to exit",
        ["what", "seconds", "times that of"],
        notes=[
            "`run` takes one frame and writes its file, or as many frames as stated. An empty cache: WARP_CACHE_PATH "
            "is a new folder, into which the package's kernels are copied where it carries any. MuJoCo, USD and Warp "
            "are loaded anew in each process; "
            "their files are in the disk's cache, and so is the bytecode of all modules.",
            "Imports: an interpreter that imports warp, numpy, h5py and the scene's parser, and ends. Script: "
            "`tests/bench/contact_script.py`, which reads the same coordinates, calls `mj_kinematics` and "
            "`mj_collision` for each frame, and writes the contacts with h5py, not compressed and not hashed.",
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
        {"help": lambda: run(collide_command("--help")), "none": lambda: run([sys.executable, "-c", ""])}, 2 * repeats
    )
    table.add("`collide --help`", spread_time(times["help"]), f"{ratio(times['help'], times['none'])} an empty program")
    table.keep("help seconds", times["help"])


def _measure_scene(table: BenchTable, run: Run, repeats: int, name: str, scene: str, parser: str) -> None:
    imports = [sys.executable, "-c", f"import warp, numpy, h5py; {parser}"]
    with tempfile.TemporaryDirectory() as folder:
        command = collide_command("run", scene, "--frames", "0", "-o", f"{folder}/out.h5", "--force", "--quiet")
        caches = iter(range(MOST_REPEATS + 1))
        empty = interleaved(
            {"run": lambda: run(command, WARP_CACHE_PATH=f"{folder}/cache{next(caches)}")}, min(repeats, MOST_REPEATS)
        )["run"]
        times = interleaved(
            {"imports": lambda: run(imports), "cached": lambda: run(command, WARP_CACHE_PATH=f"{folder}/cache0")},
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
            recording = _write_coordinates(scene, Path(folder) / f"{frames}.h5", frames)
            files = str(scene.path), str(recording)
            script = [sys.executable, str(SCRIPT), *files, f"{folder}/script.h5"]
            ours = ["run", files[0], "-t", files[1], "-o", f"{folder}/out.contacts.h5", "--force", "--quiet"]
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
                table.add(f"`run`, {scene.name}, {frames} frames{words}", spread_time(times[kind]), share)
            for kind, seconds in times.items():
                table.keep(f"{frames} frames {kind} seconds", seconds)


def _write_coordinates(scene: BenchScene, path: Path, frames: int) -> Path:
    """The scene's coordinates, repeated to this number of frames, as a trajectory that has them in place of poses."""
    qpos = np.resize(scene.qpos, (frames, scene.qpos.shape[1]))
    with TrajectoryWriter(path, coordinate_count=scene.mj_model.nq, frames_expected=frames, force=True) as file:
        step = np.arange(frames)
        file.append(0.01 * step, step, joint_q=qpos[:, None])
    return path


def collide_command(*args: str) -> list[str]:
    """The command line as a process of this interpreter."""
    installed = Path(sys.executable).with_name("collide")
    start = [str(installed)] if installed.exists() else [sys.executable, "-m", "collidecli.cli.guard"]
    return [*start, *args]


def _seconds(clock: str, kept: dict[str, str], command: list[str], **environment: str) -> float:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env={**os.environ, **kept, **environment}, check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime if clock == "cpu" else wall


# Bench scenes as files that the command line takes: the scene, and its motion as a trajectory.


def write_recording(scene: BenchScene, path: Path, repeats: int = 1) -> Path:
    """The scene's motion `repeats` times over, as a trajectory of body poses in float64."""
    model, poses = model_and_poses(scene)
    with TrajectoryWriter(path, body_names=model.bodies.path, frames_expected=repeats * len(poses), force=True) as file:
        for repeat in range(repeats):
            step = np.arange(repeat * len(poses), (repeat + 1) * len(poses))
            file.append(0.01 * step, step, body_q=poses)
    return path


# A whole run, from the first frame read to the file closed, against computing alone with as many threads.

COMPRESSIONS = ("gzip", "none")


def measure_writing(repeats: int, clock: str) -> BenchTable:
    """Seconds of the wall clock, whatever clock was asked for: a run overlaps reading, computing and writing."""
    table = BenchTable(
        "writing",
        "A file written and closed, against computing alone",
        ["scene", "threads", "compression", "computing alone", "whole run", "longer by", "file, a contact"],
        notes=["Threads compute; the run's writer has one of its own. Loading and compiling are in neither."],
    )
    for key in ("humanoid", "pile_1000"):
        scene = SCENES[key]()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            recording = write_recording(scene, Path(folder) / "motion.h5")
            for threads in sorted({1, os.cpu_count() or 1}):
                _compare(table, key, scene, recording, threads, repeats)
    return table


def _compare(table: BenchTable, key: str, scene: BenchScene, recording: Path, threads: int, repeats: int) -> None:
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
        {"alone": lambda: alone.measure().seconds, **{c: lambda c=c: whole(c) for c in COMPRESSIONS}}, repeats
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
            "The peak is of the whole process: Python, MuJoCo, USD, Warp and the kernels take what the run of one "
            "frame shows; the limit is for scratch memory and waiting blocks besides."
        ],
    )
    for key, longer in CASES.items():
        scene = SCENES[key]()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            short, long = (write_recording(scene, Path(folder) / f"motion_{n}.h5", n) for n in longer)
            cases = [(short, "0", ""), (short, ":", ""), *((long, ":", limit) for limit in LIMITS)]
            for recording, frames, limit in cases:
                output = Path(folder) / "out.contacts.h5"
                options = ["--memory-limit", limit] if limit else []
                command = [
                    "run",
                    str(scene.path),
                    "-t",
                    str(recording),
                    "--frames",
                    frames,
                    "-o",
                    str(output),
                    "--json",
                ]
                command = collide_command(*command, "--force", *options)
                facts = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                peak, count = facts["peak_memory_bytes"], facts["frames"]
                table.add(
                    scene.name, count, limit or "none", memory(peak), memory(recording.stat().st_size),
                    memory(output.stat().st_size),
                )  # fmt: skip
                table.keep(f"{key} {count} frames limit {limit or 'none'} peak bytes", peak)
    return table
