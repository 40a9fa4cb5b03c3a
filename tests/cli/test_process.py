"""What only a process of its own shows: help without heavy imports, signals, closed pipes, a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest

from collidecli.cli.main import VERBS, main
from collidecli.cli.stop import GRACE_SECONDS
from collidecli.escaping import printable
from tests.cli.conftest import write_motion

HEAVY = ("warp", "pxr", "mujoco", "h5py", "rich", "numpy")
COMMAND = (sys.executable, "-m", "collidecli.cli.guard")
THREADS = 2
LONG_RUN = (
    *(*COMMAND, "run", "scene.xml", "-t", "long.h5", "--worlds", "20000", "--device", "cpu", "--gap", "9"),
    *("--threads", str(THREADS)),
)


def test_help_imports_nothing_heavy(here):
    code = f"""
import sys
from collidecli.cli.main import main
for verb in {list(VERBS)}:
    assert main([verb, "--help"]) == 0
assert main(["--help"]) == 0
print("LOADED", [name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("LOADED []\n")
    for verb in VERBS:
        assert f"Usage: collide {verb}" in done.stdout


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SIGINT", ()),
        ("SIGTERM", ()),
        # One launch that takes many seconds: the exception cannot be raised before it ends.
        ("SIGINT", ("--chunk-cells", "4000000")),
        ("SIGTERM", ("--chunk-cells", "4000000")),
    ],
)
def test_a_signal_ends_it_within_a_second_and_leaves_nothing(here, name, options):
    """A second of its own processors: a machine that is busy with others lets it wait, and that is not its fault."""
    write_motion(here / "long.h5", 200)
    before = sorted(path.name for path in here.iterdir())
    process = subprocess.Popen([*LONG_RUN, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not any(path.suffix == ".partial" for path in here.iterdir()):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.2)
    began, ended = used_seconds(process.pid), os.times()
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    after = os.times()
    # What it used in all is known once it has been waited for.
    used = after.children_user + after.children_system - ended.children_user - ended.children_system - began
    assert used < THREADS * 1.0
    assert GRACE_SECONDS < 1.0
    assert process.returncode == 130
    assert out == b""
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert sorted(path.name for path in here.iterdir()) == before


def used_seconds(pid: int) -> float:
    """Of processors, by the process and the child that works for it."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def test_in_process_signals_are_given_back(here):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert main(["inspect", "scene.xml", "--quiet"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("args", [("inspect", "scene.xml"), ("inspect", "scene.xml", "--json"), ("--help",)])
def test_a_closed_pipe_is_no_fault(here, args):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([*COMMAND, *args], stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize("args", [("inspect", "scene.xml"), ("inspect", "scene.xml", "--json"), ("--help",)])
def test_a_full_disk_under_stdout_is_an_output_error(here, args):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *args], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert done.stderr.startswith(b"error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_a_progress_bar_and_stdout_stays_clean(here, no_color):
    main(["run", "scene.xml", "-t", "motion.h5", "-o", "warm.h5", "--device", "cpu", "--quiet"])
    out, shown = on_terminal({"NO_COLOR": "1"} if no_color else {})
    assert json.loads(out)["frames"] == 20
    assert b"loading" in shown
    assert b"compiling" not in shown
    assert b"20/20" in shown
    assert (b"\x1b[3" in shown) is not no_color


@pytest.mark.slow
def test_a_first_run_shows_that_it_compiles(here, tmp_path_factory):
    _, shown = on_terminal({"WARP_CACHE_PATH": str(tmp_path_factory.mktemp("cache"))})
    pattern = rb"compiling kernels \(first run only\), (\d+) of (\d+)"
    counts = {tuple(map(int, found)) for found in re.findall(pattern, shown)}
    done, total = max(counts)
    assert 3 <= len(counts) <= 2 * total
    assert done in (total - 1, total)


def on_terminal(environment: dict[str, str]) -> tuple[bytes, bytes]:
    """Output of a run of 20 frames on stdout, and on a terminal as stderr."""
    main_end, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "run", "scene.xml", "-t", "motion.h5", "--json", "--device", "cpu", "--chunk-cells", "1"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment},
    )
    os.close(terminal)
    # A terminal holds some KiB: the process waits until they are read.
    with process, ThreadPoolExecutor(1) as pool:
        shown = pool.submit(read_terminal, main_end)
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait() == 0
    os.close(main_end)
    return out, shown.result()


def read_terminal(main_end: int) -> bytes:
    """All that is written to a terminal until its other end is closed, which is an error on Linux."""
    shown = b""
    with suppress(OSError):
        while block := os.read(main_end, 65536):
            shown += block
    return shown


def test_a_name_cannot_steer_the_terminal():
    assert printable("a\x1b[2Jb\tc\u200f") == "a\\x1b[2Jb\\tc\\u200f"
    assert printable("Körper/геом") == "Körper/геом"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(here, collide, shell, monkeypatch):
    answer = collide("completion", shell)
    assert (answer.code, "_COLLIDE_COMPLETE" in answer.out) == (0, True), answer.err
    assert json.loads(collide("completion", shell, "--json").out)["script"] == answer.out
    monkeypatch.setenv("_COLLIDE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "collide run --broad")
    monkeypatch.setenv("COMP_CWORD", "--broad" if shell == "fish" else "2")
    found = collide()
    assert (found.code, "--broad-phase" in found.out) == (0, True)
