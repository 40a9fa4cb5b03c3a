"""Commands that write are killed at random moments; what they leave is checked, and they run
again."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.cli.conftest import write_poses
from tests.hostile.seeds import ROBOT_XML
from tests.support.waits import PATIENCE

COMMAND = (sys.executable, "-m", "collidecli.cli.guard")
ENGINE = ("--device", "cpu", "--quiet")
FRAMES = 8000
TARGETS = ("process", "group", "child")


@dataclass(frozen=True)
class Victim:
    """A command that writes. outputs: its files, or the folder of a batch. again: options to
    replace them."""

    name: str
    args: tuple[str, ...]
    outputs: tuple[str, ...]
    again: tuple[str, ...]


EVENT_FILES = "--csv out.csv --parquet out.parquet --dot out.dot"
RUN = ("run", "robot.xml", "-t", "motion.h5", *ENGINE)
VICTIMS = tuple(
    Victim(name, tuple(words.split()), tuple(outputs.split()), tuple(again))
    for name, words, outputs, *again in (
        ("run", f"{' '.join(RUN)} -o out.h5 --chunk-cells 2048", "out.h5", "--force"),
        (
            "run gzip",
            f"{' '.join(RUN)} -o out.h5 --compression gzip --threads 1",
            "out.h5",
            "--force",
        ),
        ("merge", "merge first.h5 second.h5 -o out.h5 --quiet", "out.h5", "--force"),
        *(
            (
                f"export {to}",
                f"export whole.h5 --to {to} -o out.{to} --quiet",
                f"out.{to}",
                "--force",
            )
            for to in ("csv", "npz", "parquet")
        ),
        (
            "export usd",
            "export first.h5 --to usd -o out.usda --frames 0:300 --quiet",
            "out.usda",
            "--force",
        ),
        (
            "events",
            f"events whole.h5 {EVENT_FILES} --quiet",
            "out.csv out.parquet out.dot",
            "--force",
        ),
        ("batch run", "batch run jobs.toml -o nightly --workers 2", "nightly"),
        ("batch plan", "batch plan jobs.toml -o nightly", "nightly", "--force"),
        ("batch gather", "batch gather done -o out.parquet", "out.parquet", "--force"),
        (
            "batch gather parquet",
            "batch gather done --to parquet -o gathered",
            "gathered",
            "--force",
        ),
        ("batch gather merge", "batch gather done --to merge -o gathered", "gathered", "--force"),
        ("batch verify", "batch verify done --sample 100%", ""),
        ("record", "record robot.xml --frames 2000 -o out.motion.h5", "out.motion.h5", "--force"),
        (
            "traj convert",
            "traj convert motion.h5 --scene robot.xml -o out.motion.h5",
            "out.motion.h5",
            "--force",
        ),
        (
            "profile",
            "profile robot.xml --repeats 2 -o out.profile.h5",
            "out.profile.h5 out.profile.json",
            "--force",
        ),
        ("label", "label first.h5 -o out.parquet --quiet", "out.parquet", "--force"),
        (
            "import",
            "import log.npz --layout mujoco --scene robot.xml -t motion.h5 -o out.h5 --quiet",
            "out.h5",
            "--force",
        ),
        ("report", "report first.h5 -o out.html --quiet", "out.html", "--force"),
        ("plot", "plot first.h5 -o out.svg --quiet", "out.svg", "--force"),
        (
            "view",
            "view first.h5 --points-only --frames 0:9 --export out.html",
            "out.html",
            "--force",
        ),
    )
)


class Ground:
    """A folder with the inputs of all victims."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "temporary"
        self.here = folder / "here"
        for made in (self.temporary, self.here):
            made.mkdir()
        names = [name for name in os.environ if name.startswith("COLLIDE_")]
        root = str(Path(__file__).parents[2])
        self.environment = {name: value for name, value in os.environ.items() if name not in names}
        self.environment |= {
            "PYTHONPATH": root,
            "TMPDIR": str(self.temporary),
            "MPLCONFIGDIR": str(folder / "mpl"),
        }
        write_inputs(self.here)
        for frames, name in (
            (f":{FRAMES // 2}", "first"),
            (f"{FRAMES // 2}:", "second"),
            (":", "whole"),
        ):
            self.run([*RUN, "--frames", frames, "-o", f"{name}.h5"])
        self.run(["batch", "run", "jobs.toml", "-o", "done", "--workers", "2"])
        self.run(
            [
                "export",
                "whole.h5",
                "--to",
                "mujoco",
                "--scene",
                "robot.xml",
                "-o",
                "log.npz",
                "--quiet",
            ]
        )
        self.inputs = set(os.listdir(self.here))
        self._undisturbed: dict[str, tuple[float, dict[str, bytes]]] = {}

    def run(self, args: Sequence[str]) -> None:
        done = self.start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, told = done.communicate(timeout=PATIENCE)
        assert done.returncode == 0, (args, told.decode())

    def start(self, args: Sequence[str], **how) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*COMMAND, *args], cwd=self.here, env=self.environment, start_new_session=True, **how
        )

    def undisturbed(self, victim: Victim) -> tuple[float, dict[str, bytes]]:
        """Seconds that the command takes, and its output files. Leaves a cleared folder."""
        if victim.name not in self._undisturbed:
            self.clear()
            start = time.monotonic()
            self.run(victim.args)
            seconds = time.monotonic() - start
            made = {name: self.here / name for name in victim.outputs}
            files = {name: path.read_bytes() for name, path in made.items() if path.is_file()}
            self._undisturbed[victim.name] = seconds, files
        self.clear()
        return self._undisturbed[victim.name]

    def drawn(
        self, victim: Victim, rng: random.Random
    ) -> tuple[dict[str, bytes], float, list[str]]:
        """Writes the outputs of an earlier run, or none, and draws the moment of an end.

        Returns these outputs, the seconds from the start to the moment, and the arguments.
        """
        seconds, files = self.undisturbed(victim)
        before = files if rng.random() < 0.5 else {}
        for name, data in before.items():
            (self.here / name).write_bytes(data)
        moment = rng.uniform(0.0, 1.05) * seconds
        return before, moment, [*victim.args, *(victim.again if before else ())]

    def clear(self) -> None:
        """Removes everything but the inputs."""
        for folder, kept in ((self.here, self.inputs), (self.temporary, set())):
            for name in set(os.listdir(folder)) - kept:
                path = folder / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_inputs(folder: Path) -> None:
    """A scene, a motion of FRAMES frames, and a job file of three recordings."""
    (folder / "robot.xml").write_text(ROBOT_XML.replace('<include file="part.xml"/>', ""))
    rng = np.random.default_rng(0)
    write_motion(folder / "motion.h5", FRAMES, rng)
    (folder / "recordings").mkdir()
    for number in range(3):
        write_motion(folder / "recordings" / f"{number}.h5", 1000, rng)
    job = {"scene": "robot.xml", "motion": "recordings/*.h5"}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in job.items())
    (folder / "jobs.toml").write_text(f'[[job]]\nname = "robot"\n{lines}\n')


def write_motion(path: Path, frames: int, rng: np.random.Generator) -> None:
    """Trunk and ball at random heights near the floor."""
    poses = np.zeros((frames, 1, 2, 7))
    poses[..., 2] = rng.uniform(0.05, 0.35, (frames, 1, 2))
    poses[:, :, 1, 0] = 1.0
    poses[..., 6] = 1.0
    write_poses(path, poses, ["base", "ball"])


def kill_faults(ground: Ground, number: int) -> list[str]:
    """Kills the command of case `number` at its moment, runs it again, and returns everything that
    is wrong."""
    rng = random.Random(number)
    victim = VICTIMS[number % len(VICTIMS)]
    target = TARGETS[number // len(VICTIMS) % len(TARGETS)]
    before, moment, args = ground.drawn(victim, rng)
    found = [f"after the kill: {fault}" for fault in _killed(ground, args, target, moment, rng)]
    found += output_faults(ground, victim, before)
    try:
        ground.run([*victim.args, *victim.again])
    except (AssertionError, subprocess.TimeoutExpired) as error:
        found.append(f"the next run: {error}")
    found += output_faults(ground, victim, {}, complete=True)
    found += [f"left behind: {name}" for name in left_behind(ground, victim)]
    return [
        f"kill {number}, {victim.name}, {target} after {moment:.2f} s: {fault}" for fault in found
    ]


def _killed(
    ground: Ground, args: Sequence[str], target: str, moment: float, rng: random.Random
) -> Iterator[str]:
    with open(ground.folder / "told", "w+b") as told:
        process = ground.start(args, stdout=told, stderr=told)
        time.sleep(moment)
        root = psutil.Process(process.pid)
        family = [root]
        with suppress(psutil.Error):  # it has ended
            family += root.children(recursive=True)
        children = [other for other in family[1:] if not _is_pythons_own(other)]
        one = rng.choice(children) if target == "child" and children else root
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            os.killpg(process.pid, signal.SIGKILL) if target == "group" else one.kill()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            yield "hangs"
        _, alive = psutil.wait_procs(family, PATIENCE)
        yield from (f"{' '.join(other.cmdline())} outlives its parent" for other in alive)
        told.seek(0)
        said = told.read().decode(errors="replace")
        if process.returncode not in (-signal.SIGKILL, 0, 4):
            yield f"exit code {process.returncode}: {said}"
        if "Traceback" in said:
            yield f"a traceback: {said}"


def _is_pythons_own(process: psutil.Process) -> bool:
    """Whether it is the resource tracker of multiprocessing, which Python itself replaces, with a
    warning."""
    with suppress(psutil.Error):
        return any("resource_tracker" in word for word in process.cmdline())
    return False


def output_faults(
    ground: Ground, victim: Victim, before: dict[str, bytes], complete: bool = False
) -> Iterator[str]:
    for name in victim.outputs:
        path = ground.here / name
        if name == "nightly":
            yield from _batch_faults(path, complete and victim.name == "batch run")
        elif not path.exists():
            if complete or name in before:
                yield f"{name} is missing"
        elif path.is_dir():  # of `gather`, whole or not there
            files = [held for held in path.rglob("*") if held.is_file()]
            if not {"gather.json"} < {held.name for held in files}:
                yield f"{name} has only {[held.name for held in files]}"
            faults = ((held, VALID[held.suffix](held)) for held in files)
            yield from (f"{held.name} is half written: {fault}" for held, fault in faults if fault)
        elif path.read_bytes() != before.get(name):
            fault = VALID[path.suffix](path)
            if fault:
                yield f"{name} is half written: {fault}"


def _batch_faults(folder: Path, complete: bool) -> Iterator[str]:
    results = [path for path in folder.glob("results/*/*.h5") if not path.name.startswith(".")]
    if complete and len(results) != 3:
        yield f"{len(results)} of 3 contact sets"
    for path in results:
        fault = _checked(path)
        if fault:
            yield f"{path.name}: {fault}"
    if (folder / "plan.parquet").exists():
        yield from filter(None, [_parquet(folder / "plan.parquet")])
    for path in folder.glob("*/*.json"):
        yield from (f"{path.name}: {fault}" for fault in filter(None, [_json(path)]))


def left_behind(ground: Ground, victim: Victim) -> list[str]:
    allowed = ground.inputs | set(victim.outputs)
    left = sorted(set(os.listdir(ground.here)) - allowed) + [
        f"TMPDIR/{name}" for name in os.listdir(ground.temporary)
    ]
    known = (".h5", ".json", ".jsonl", ".parquet", ".zip")
    for folder in ("nightly", "done"):
        for path in (ground.here / folder).rglob("*"):
            if path.is_file() and (path.name.startswith(".") or path.suffix not in known):
                left.append(str(path.relative_to(ground.here)))
    return left


def _checked(path: Path) -> str:
    """Empty for a file that collide reads to its end."""
    from collidecli.errors import CollideError
    from collidecli.storage.profile_files import read_profile
    from collidecli.verbs.check.check import check

    try:
        if path.name.endswith(".profile.h5"):
            return "" if read_profile(path)["phases"] else "a profile without phases"
        return "; ".join(str(finding) for finding in check(str(path)).findings)
    except CollideError as error:
        return str(error)


def _parquet(path: Path) -> str:
    import pyarrow
    import pyarrow.parquet

    try:
        return "" if pyarrow.parquet.read_table(path).num_columns else "no column"
    except (OSError, pyarrow.ArrowException) as error:
        return str(error)


def _arrays(path: Path) -> str:
    try:
        with np.load(path) as arrays:
            return "" if all(arrays[name] is not None for name in arrays.files) else "no arrays"
    except Exception as error:
        return str(error)


def _ends(*endings: str) -> Callable[[Path], str]:
    def fault(path: Path) -> str:
        text = path.read_text()
        return (
            ""
            if text.rstrip().endswith(endings) and text.endswith(("\n", *endings))
            else f"ends {text[-40:]!r}"
        )

    return fault


def _table(path: Path) -> str:
    """Every line has as many cells as the first; the last one is complete."""
    text = path.read_text()
    cells = {line.count(",") for line in text.splitlines() if not line.startswith("#")}
    return "" if text.endswith("\n") and len(cells) == 1 else f"ends {text[-40:]!r}"


def _json(path: Path) -> str:
    try:
        return "" if json.loads(path.read_text()) else "is empty"
    except ValueError as error:
        return str(error)


VALID: dict[str, Callable[[Path], str]] = {
    ".h5": _checked,
    ".parquet": _parquet,
    ".npz": _arrays,
    ".json": _json,
    ".csv": _table,
    ".usda": _ends("}"),
    ".dot": _ends("}"),
    ".html": _ends("</html>"),
    ".svg": _ends("</svg>"),
    ".md": _ends("# Contacts of a batch of collide"),
}


pytestmark = [
    pytest.mark.rest,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the command forks"),
]
KILLS = 100
GROUPS = 4


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_killed_command_leaves_nothing_half_written(ground: Ground, group: int):
    found = [
        fault for number in range(group, KILLS, GROUPS) for fault in kill_faults(ground, number)
    ]
    assert found == []


def test_every_command_is_killed_in_every_way():
    assert len(
        {(number % len(VICTIMS), number // len(VICTIMS) % 3) for number in range(KILLS)}
    ) == 3 * len(VICTIMS)
