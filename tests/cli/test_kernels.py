"""Kernels of runs that follow each other are compiled once, and the archive has those that runs load."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
import warp as wp

from collidecli.engine.joint_kinematics import MANY, pose_tree
from collidecli.engine.runtime.kernel import initialize
from tests.cli.conftest import write_poses
from tests.support.batches import environment

WITHOUT_CARRIED = """
import sys
from collidecli.engine.runtime import kernel as kernel_cache
kernel_cache.FOLDER = ""
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
            write_poses(folder / f"{name}.h5", np.tile([0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0], (MANY, 1, 1, 1)), ["ball"])
        with h5py.File(folder / "joint_q.h5", "a") as file:
            del file["body_q"]
            file["joint_q"] = np.zeros((MANY, 1, 1))
            file["joint_q"].attrs["layout"] = "mujoco-qpos"

    def link_compiled(self) -> None:
        """Links to the kernels that other tests have compiled, without that of joints and the table of hashes."""
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
def test_a_later_run_compiles_nothing_and_killed_runs_leave_nothing_for_more_than_an_hour(runs, verb, kills, is_empty):
    """The kernels of joints are compiled by a run that finds all others compiled."""
    if not is_empty:
        runs.link_compiled()
    runs.finish("body_q", verb)
    keys = runs.hash_rows().keys()
    assert not any(name.startswith(POSE_TREE) for name in runs.names())
    random_seconds = random.Random(kills)
    for _ in range(kills):
        runs.kill("joint_q", random_seconds.uniform(0.2, 3.0))
    (runs.kernels / f"{pose_tree.module.name}_p1_t1").mkdir()  # if no kill came while a kernel was compiled
    for path in runs.unfinished():
        os.utime(path, (time.time() - 3700.0,) * 2)
    runs.finish("joint_q", verb)
    first, rows = runs.names(), runs.hash_rows()
    assert any(name.startswith(POSE_TREE) for name in first)
    assert rows.keys() == keys
    assert runs.unfinished() == []
    runs.finish("joint_q", verb)
    assert (runs.names(), runs.hash_rows()) == (first, rows)


SAMPLES = Path(__file__).parents[2] / "samples"
PILE = (SAMPLES / "01_usd_pile" / "pile.usda", "--frames", "0:20")
HUMANOID = (SAMPLES / "02_humanoid" / "humanoid.xml", "-t", SAMPLES / "02_humanoid" / "motion.h5", "--frames", "0:20")
MESHES = (SAMPLES / "04_meshes" / "meshes.usda", "--frames", "0:4")
CLOTH = (SAMPLES / "06_cloth" / "cloth.usda",)
RUNS = (
    ("run", *PILE),
    ("run", *PILE, "--narrow-phase", "mpr", "--broad-phase", "sap", "--reduce-contacts", "--reduce-pairs", "all"),
    ("run", *PILE, "--touch-only", "--broad-phase", "explicit"),
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
LOADED = """
import json, os, sys
from collidecli.cli.main import main
from collidecli.engine.runtime import kernel
loaded = []
for words in json.load(sys.stdin):
    assert main(words) == 0, words
    loaded.append([module.name for module, _ in kernel._loader(os.getpid())._latest])
print(json.dumps(loaded))
"""
CARRIED = """
from collidecli.engine.runtime.deferred_builtins import owned_process
with owned_process():
    from collidecli.engine.build_kernels import kernels
    print(*{kernel.module.name for kernel in kernels()})
"""


def output(code: str, given: str = "") -> str:
    """The last line that a Python of its own prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), input=given, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))])
def test_every_loaded_kernel_is_carried(part, tmp_path):
    """Of those in the archive, were it built now. The runs of a part share a process, as its start takes longer."""
    runs = RUNS[part::3]
    words = [[*map(str, run), "-o", str(tmp_path / "out.h5"), "--force", "--quiet"] for run in runs]
    carried = set(output(CARRIED).split())
    before: set[str] = set()
    for run, names in zip(runs, json.loads(output(LOADED, json.dumps(words))), strict=True):
        loaded = set(names)
        assert loaded > before, "kernels of its own"
        assert loaded <= carried, run
        before = loaded
