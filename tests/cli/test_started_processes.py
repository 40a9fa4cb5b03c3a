"""Processes that verbs start end with the one that started them, and the next run removes their
folders."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.cli.conftest import write_motion
from tests.support.batches import start
from tests.support.waits import PATIENCE, until

SCENE = """<mujoco><worldbody>
  <geom type='plane' size='1 1 1'/>
  <body name='ball'><freejoint/><geom type='sphere' size='0.1'/></body>
</worldbody></mujoco>"""
LASTING = """import re, sys, time
print("ready", file=open("ready", "w"), flush=True)
if open("how").read() == "locked":
    re.match("(a*)*b", "a" * 60)  # keeps Python's lock for years
time.sleep(3600)
"""
JOBS = """[[job]]
name = "ball"
scene = "scene.xml"
motion = ["motion.h5"]
options = { device = "cpu" }
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of the commands that a test starts; a scene and its motion are
    in the current one."""
    made = tmp_path / "temporary"
    here = tmp_path / "here"
    made.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TMPDIR", str(made))
    Path("scene.xml").write_text(SCENE)
    write_motion(here / "motion.h5")
    return made


def ended(process: psutil.Process) -> bool:
    """Whether it has ended; one that nobody waits for stays as a zombie."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def family_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The process and all below it."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def kill(process: subprocess.Popen[bytes], number: int) -> None:
    """Kills one process of a family, of which all others then end."""
    family = family_of(process)
    family[number].kill()
    process.communicate(timeout=PATIENCE)
    for member in family:
        until(lambda member=member: ended(member))


@pytest.mark.rest
@pytest.mark.parametrize(("number", "how"), [(0, "waiting"), (1, "waiting"), (1, "locked")])
def test_an_engine_ends_with_a_killed_command(temporary: Path, number: int, how: str):
    """number: of the killed process, 0 for the one that waits for the one that works."""
    Path("engine.py").write_text(LASTING)
    Path("how").write_text(how)
    words = ["fidelity", "scene.xml", "-t", "motion.h5", "--engines", "own=engine.py"]
    process = start(*words)
    until(lambda: Path("ready").exists())
    assert len(family_of(process)) == 3
    kill(process, number)
    assert number == 0 or len(os.listdir(temporary)) == 2
    Path("engine.py").write_text("raise SystemExit(3)")
    again = start(*words)
    assert again.communicate(timeout=PATIENCE)[1].startswith(b"error: engine engine.py: ")
    assert again.returncode == 2
    assert os.listdir(temporary) == []


@pytest.mark.rest
@pytest.mark.parametrize("number", [0, 1])
def test_workers_end_with_a_killed_batch(temporary: Path, number: int):
    Path("jobs.toml").write_text(JOBS)
    words = ["batch", "run", "jobs.toml", "-o", "out", "--workers", "2"]
    process = start(*words)
    # a worker, and the process of Python that counts its semaphores
    until(lambda: len(family_of(process)) >= 3 or process.poll() is not None)
    kill(process, number)
    again = start(*words)
    assert (again.communicate(timeout=PATIENCE)[1], again.returncode) == (b"", 0)
    assert os.listdir(temporary) == []


@pytest.mark.rest
@pytest.mark.parametrize("before", ["", "import fcntl; del fcntl.F_SETSIG\n"])
def test_a_process_ends_where_the_pipe_is_closed(before: str):
    """before: also on systems that send no signal."""
    code = "from collidecli.started_processes import end_at_hangup\nend_at_hangup(0)\n"
    code += "import time\nprint('ready', flush=True)\ntime.sleep(3600)"
    with subprocess.Popen(
        [sys.executable, "-c", before + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.close()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    already = subprocess.run(
        [sys.executable, "-c", before + code], stdin=subprocess.DEVNULL, timeout=PATIENCE
    )
    assert already.returncode == -signal.SIGKILL
