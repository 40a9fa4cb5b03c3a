"""Kernels of runs that follow each other are compiled once, and the archive has those that runs
load."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import warp as wp

from collidecli.engine.joint_kinematics import MANY, pose_tree
from collidecli.engine.runtime.warp_start import initialize
from tests.cli.conftest import write_poses
from tests.support.batches import environment
from tests.support.device_scenes import SCENES

pytestmark = pytest.mark.rest

WITHOUT_CARRIED = """
import sys
from collidecli.engine.runtime import carried_kernels, kernel_loader
carried_kernels.FOLDER = ""
from collidecli.cli.guard import command
sys.exit(command())
"""
"""The command line of a package that carries no kernels: what the cache lacks is compiled."""
COMMAND = (sys.executable, "-c", WITHOUT_CARRIED)
UNFINISHED = re.compile(r"wp_.*_p[0-9]+_t[0-9]+")
POSE_TREE = "wp_pose_tree_"
SCENE = """<mujoco><worldbody>
    <geom name="base" type="sphere" size="0.5"/>
    <body name="ball" pos="0 0 2"><joint type="slide" axis="0 0 1"/>
        <geom type="sphere" size="0.3"/><geom type="box" pos="0 0 1" size="0.1 0.1 0.1"/></body></worldbody></mujoco>
"""


class Runs:
    """Runs of one scene with kernels in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.kernels = folder / "cache" / wp.config.version
        self.kernels.mkdir(parents=True)
        (folder / "scene.xml").write_text(SCENE)
        for name in ("body_q", "joint_q"):
            write_poses(
                folder / f"{name}.h5",
                np.tile([0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0], (MANY, 1, 1, 1)),
                ["ball"],
            )
        with h5py.File(folder / "joint_q.h5", "a") as file:
            del file["body_q"]
            file["joint_q"] = np.zeros((MANY, 1, 1))
            file["joint_q"].attrs["layout"] = "mujoco-qpos"

    def link_compiled(self) -> None:
        """Links to the kernels that other tests have compiled, without that of joints and the table
        of hashes."""
        initialize()
        for path in Path(str(wp.config.kernel_cache_dir)).glob("wp_*"):
            if not (path.name.startswith(POSE_TREE) or UNFINISHED.fullmatch(path.name)):
                (self.kernels / path.name).symlink_to(path)

    def start(self, recording: str, verb: str = "run") -> subprocess.Popen[bytes]:
        """A run in a process group of its own."""
        output = ("-o", "out.h5", "--force", "--quiet", "--device", "cpu")
        return subprocess.Popen(
            [*COMMAND, verb, "scene.xml", "-t", f"{recording}.h5", *output],
            cwd=self._folder,
            env={**os.environ, "WARP_CACHE_PATH": str(self.kernels.parent)},
            start_new_session=True,
        )

    def finish(self, recording: str, verb: str = "run") -> None:
        assert self.start(recording, verb).wait() == 0

    def kill(self, recording: str, after: float) -> None:
        """Begins a run and kills its processes after some seconds, if it takes that long."""
        process = self.start(recording)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def names(self) -> set[str]:
        """Of kernels and tables."""
        return {path.name for path in self.kernels.iterdir()}

    def unfinished(self) -> list[Path]:
        return [path for path in self.kernels.iterdir() if UNFINISHED.fullmatch(path.name)]

    def hash_rows(self) -> dict[str, str]:
        """Rows of the table of hashes by their keys."""
        (path,) = self.kernels.glob("*.hashes")
        return dict(line.split(" ", 1) for line in path.read_text().splitlines())


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.mark.parametrize(
    ("verb", "kills", "is_empty"),
    [
        ("run", 3, False),
        pytest.param("run", 20, True, marks=pytest.mark.slow),
        pytest.param("clearance", 0, False, marks=pytest.mark.slow),
        pytest.param("clearance", 0, True, marks=pytest.mark.slow),
    ],
)
def test_killed_runs_leave_no_work_to_later_ones(runs, verb, kills, is_empty):
    """The kernels of joints are compiled by a run that finds all others compiled."""
    if not is_empty:
        runs.link_compiled()
    runs.finish("body_q", verb)
    keys = runs.hash_rows().keys()
    assert not any(name.startswith(POSE_TREE) for name in runs.names())
    random_seconds = random.Random(kills)
    for _ in range(kills):
        runs.kill("joint_q", random_seconds.uniform(0.2, 3.0))
    # if no kill came while a kernel was compiled
    (runs.kernels / f"{pose_tree.module.name}_p1_t1").mkdir()
    for path in runs.unfinished():
        os.utime(path, (time.time() - 3700.0,) * 2)
    runs.finish("joint_q", verb)
    first = runs.names()
    rows = runs.hash_rows()
    assert any(name.startswith(POSE_TREE) for name in first)
    assert rows.keys() == keys
    assert runs.unfinished() == []
    runs.finish("joint_q", verb)
    assert (runs.names(), runs.hash_rows()) == (first, rows)


SAMPLES = Path(__file__).parents[2] / "samples"
PILE = (SAMPLES / "01_usd_pile" / "pile.usda", "--frames", "0:20")
HUMANOID = (
    SAMPLES / "02_humanoid" / "humanoid.xml",
    "-t",
    SAMPLES / "02_humanoid" / "motion.h5",
    "--frames",
    "0:20",
)
MESHES = (SAMPLES / "04_meshes" / "meshes.usda", "--frames", "0:4")
CLOTH = (SAMPLES / "06_cloth" / "cloth.usda",)
RUNS = (
    ("run", *PILE),
    (
        "run",
        *PILE,
        "--narrow-phase",
        "mpr",
        "--broad-phase",
        "sap",
        "--reduce-contacts",
        "--reduce-pairs",
        "all",
    ),
    ("run", *PILE, "--touch-only", "--broad-phase", "explicit"),
    ("run", *PILE, "--candidates-only"),
    ("run", *HUMANOID, "--worlds", "3"),
    ("run", *HUMANOID, "--sweep"),
    ("run", *MESHES),
    ("run", *MESHES, "--touch-only"),
    ("run", *MESHES, "--sweep"),
    ("run", SAMPLES / "05_hydroelastic" / "gripper.usda"),
    ("run", *CLOTH, "--self-contacts", "0.01"),
    ("run", *CLOTH, "--sweep"),
    ("clearance", *HUMANOID),
    ("clearance", *MESHES),
)
BATCH = SAMPLES / "07_cluster" / "jobs.toml"
BAG = SAMPLES / "09_ros_bag"
CELL = (BAG / "cell.xml", "-t", BAG / "drive.mcap", "--body-from", "crate=tf:base:crate")
LATER_RUNS = (
    ("run", SAMPLES / "05_hydroelastic" / "gripper.usda", "--hydro-surface"),
    ("run", *CLOTH, "--soft-elements", "all"),
    ("clearance", *PILE),
    ("run", BAG / "drive.mcap"),
    ("run", *CELL),
)
RECORDER = """
import json, sys, threading
from warp._src import context
from collidecli.engine.runtime import carried_kernels, kernel_loader
loaded, elsewhere, compiled, thread = [], [], [], threading.local()
load, compile_module, load_module = context.Module.load, context.Module._compile, kernel_loader._load

def noted_load(module, *arguments, **options):
    if not module.execs:
        (loaded if getattr(thread, "is_ours", False) else elsewhere).append(module.name)
    return load(module, *arguments, **options)

def noted_compilation(module, *arguments, **options):
    is_compiled = compile_module(module, *arguments, **options)
    compiled.extend([module.name] if is_compiled else [])
    return is_compiled

def our_load(*arguments):
    thread.is_ours = True
    load_module(*arguments)
    thread.is_ours = False

context.Module.load, context.Module._compile, kernel_loader._load = noted_load, noted_compilation, our_load

def report():
    print(json.dumps({"loaded": loaded, "elsewhere": elsewhere, "compiled": compiled}))
"""
"""Records the modules that our loader and Warp's load, and those that are compiled."""
RUN_ALL = f"""{RECORDER}
from collidecli.cli.main import main
for words in json.load(sys.stdin):
    assert main(words) == 0, words
report()
"""
BUILD_ALL = f"""{RECORDER}
from collidecli.engine.runtime.owned_process import owned_process
with owned_process():
    from collidecli.scene.options import ContactOptions
    from tests.support.device_scenes import SCENES, scene_blocks, scene_pipeline
    for name in json.load(sys.stdin):
        scene = SCENES[name](ContactOptions())
        assert sum(block.contact_count for block in scene_blocks(scene_pipeline(scene, "explicit"), scene)), name
report()
"""
MEASURE_ALL = f"""{RECORDER}
from collidecli import Shape, distance, signed_distance
corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
shapes = [Shape(kind) for kind in ("sphere", "capsule", "box", "cylinder", "cone", "ellipsoid")]
shapes += [Shape("mesh", vertices=corners, faces=faces), Shape("convex_hull", vertices=corners)]
for shape in shapes:
    assert signed_distance([3.0, 0.0, 0.0], shape) > 0.0
    for other in shapes:
        assert distance(shape, other, pose_b=[5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).distance > 0.0
report()
"""
CARRIED = """
import json
from collidecli.engine.runtime.owned_process import owned_process
with owned_process():
    from collidecli.engine.build_kernels import kernels
    print(json.dumps([kernel.module.name for kernel in kernels()]))
"""


def printed_json(code: str, given: str = "", **variables: str) -> Any:
    """What a Python of its own prints as its last line."""
    command = [sys.executable, "-c", code]
    pipes: dict[str, Any] = {"input": given, "stdout": subprocess.PIPE, "text": True}
    done = subprocess.run(command, env=environment(**variables), check=True, **pipes)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def carried() -> set[str]:
    """Modules of the archive, were it built now."""
    return set(printed_json(CARRIED))


@pytest.fixture
def check_nothing_is_compiled(
    carried: set[str], tmp_path: Path
) -> Callable[[str, list[Any]], None]:
    """A function of code that reports and its input: from an empty home the package has all that is
    loaded."""

    def check(code: str, given: list[Any]) -> None:
        home = {
            "XDG_CACHE_HOME": str(tmp_path / "fields"),
            "WARP_CACHE_PATH": str(tmp_path / "kernels"),
        }
        found = printed_json(code, json.dumps(given), **home)
        assert len(found["loaded"]) > 5
        assert not found["elsewhere"], "not by `load_kernels`"
        assert set(found["loaded"]) <= carried
        assert not found["compiled"], "is the archive of these sources? make kernels"

    return check


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))]
)
def test_no_sample_compiles_a_kernel(part, check_nothing_is_compiled, tmp_path):
    """The runs of a part share a process, as its start takes longer."""
    output = ("-o", tmp_path / "out.h5", "--force", "--quiet")
    runs = [[*map(str, (*run, *output))] for run in (*RUNS, *LATER_RUNS)[part::4]]
    if part == 3:
        runs.append(["batch", "run", str(BATCH), "-o", str(tmp_path / "batch"), "--quiet"])
    check_nothing_is_compiled(RUN_ALL, runs)


QUICK_SCENES = ["fields", "heightfields", "elements"]


@pytest.mark.parametrize("names", [QUICK_SCENES, pytest.param([*SCENES], marks=pytest.mark.slow)])
def test_no_kind_of_scene_compiles_a_kernel(names, check_nothing_is_compiled):
    """Of shapes and particles of every kind, with each other."""
    check_nothing_is_compiled(BUILD_ALL, names)


@pytest.mark.slow
def test_no_distance_in_python_compiles_a_kernel(check_nothing_is_compiled):
    check_nothing_is_compiled(MEASURE_ALL, [])


FIELD = """
import numpy as np
import collidecli
builder = collidecli.ModelBuilder()
with_field = collidecli.ShapeConfig(sdf_max_resolution=8)
for _ in range(2):
    builder.add_shape_box(builder.add_body(), hx=1.0, hy=1.0, hz=1.0, cfg=with_field)
poses = np.zeros((1, 1, 2, 7))
poses[..., 6] = 1.0
poses[:, :, 1, 2] = 1.9
assert len(collidecli.collide(builder.finalize(), poses).distance)
"""


def test_python_prints_nothing_where_a_signed_distance_field_is_built(tmp_path):
    # of fields; that of kernels too, if it is nowhere else
    variables = environment(XDG_CACHE_HOME=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", FIELD], env=variables, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
