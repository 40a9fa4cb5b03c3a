"""Commands under limits of the system on processes (`ulimit`), and on systems without /proc."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collidecli import process_limits
from collidecli.cli.error_messages import described_error
from collidecli.errors import InputError
from collidecli.process_limits import LimitError
from tests.cli.conftest import write_motion
from tests.support.batches import environment
from tests.support.waits import PATIENCE

GOLDEN = Path(__file__).parents[1] / "golden" / "contacts_1_1.h5"
SCENE = """<mujoco><worldbody>
  <geom type='plane' size='1 1 1'/>
  <body name='ball'><freejoint/><geom type='sphere' size='0.1'/></body>
</worldbody></mujoco>"""


def limited(
    limit: str, words: str, folder: Path, start: str = "-m collidecli"
) -> subprocess.CompletedProcess[str]:
    """`collide` under a limit, which a shell sets."""
    return subprocess.run(
        ["bash", "-c", f"{limit} && exec {sys.executable} {start} {words}"],
        cwd=folder,
        env=environment(TMPDIR=str(folder)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("-n 12", "open files is 12 (ulimit -n), and collide needs 64"),
        ("-s 256", "the stack is 256 KiB (ulimit -s 256), and collide needs 1 MiB"),
        ("-v 300000", "the address space is 293 MiB (ulimit -v 300000), and collide needs 1 GiB"),
        ("-d 300000", "private memory is 293 MiB (ulimit -d 300000), and collide needs 512 MiB"),
    ],
)
def test_a_limit_below_what_every_command_needs(tmp_path: Path, limit: str, words: str):
    done = limited(f"ulimit {limit}", f"run {GOLDEN} -o out.h5", tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"error: the limit of {words}\n  raise it: ulimit {limit[:2]} ")
    assert len(done.stderr.splitlines()) == 2
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("limit", ["-S -n 12", "-S -s 128", "-f 10", "-n 64"])
def test_a_limit_with_which_commands_work(tmp_path: Path, limit: str):
    """The first two may be raised by the process itself."""
    done = limited(f"ulimit {limit}", f"inspect {GOLDEN}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


RUN = "run scene.xml -t motion.h5 -o out.h5 -q --device cpu"
BATCH = "batch run jobs.toml -o out --workers 2 -q"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with a scene, its motion, and a job file."""
    (tmp_path / "scene.xml").write_text(SCENE)
    write_motion(tmp_path / "motion.h5")
    (tmp_path / "jobs.toml").write_text(
        "[[job]]\nname = 'ball'\nscene = 'scene.xml'\nmotion = ['motion.h5']\n"
    )
    return tmp_path


@pytest.mark.rest
@pytest.mark.parametrize(
    ("limit", "words", "code"),
    [
        ("-S -s 128", RUN, 0),
        ("-n 64", RUN, 0),
        ("-n 64", BATCH, 0),
        ("-v 1100000", RUN, 0),
        ("-f 4", RUN, 3),
        ("-f 4", BATCH, 3),
        ("-f 4", "fidelity scene.xml -t motion.h5 --engines mujoco -q", 3),
    ],
)
def test_what_a_limit_leaves(inputs: Path, limit: str, words: str, code: int):
    if "mujoco" in words:
        pytest.importorskip("mujoco")
    before = set(os.listdir(inputs))
    done = limited(f"ulimit {limit}", words, inputs)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert code == 0 or set(os.listdir(inputs)) - before <= {"out"}


WITHOUT = (
    "import os, sys, threading\n{}\nfrom collidecli.cli.guard import command\nsys.exit(command())"
)
NO_THREAD = 'def start(thread): raise RuntimeError("can\'t start new thread")\nthreading.Thread.start = start'
NO_PROCESS = (
    "def fork(): raise BlockingIOError(11, 'Resource temporarily unavailable')\nos.fork = fork"
)


@pytest.mark.parametrize(("what", "noun"), [(NO_THREAD, "thread"), (NO_PROCESS, "process")])
def test_no_further_process(tmp_path: Path, what: str, noun: str):
    (tmp_path / "start.py").write_text(WITHOUT.format(what))
    done = limited("true", f"inspect {GOLDEN} --json", tmp_path, "start.py")
    assert done.returncode == 4
    assert done.stderr.startswith(f"error: the system starts no further {noun}: a limit is reached")
    assert len(done.stderr.splitlines()) == 2
    assert '"exit_code": 4' in done.stdout


def caused(error: Exception) -> InputError:
    """An error that blames a file for what another one has caused."""
    try:
        raise InputError("is damaged", "a.h5") from error
    except InputError as made:
        return made


@pytest.mark.parametrize(
    ("error", "value", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), 100, "more files are needed than the limit"),
        (OSError(errno.ENFILE, "Too many open files"), 100, "the system has too many open files"),
        (MemoryError(), 1 << 30, "the limit of the address space, 1 GiB (ulimit -v 1048576)"),
        (RuntimeError("Failed to load the shared library 'a.so'"), 1 << 30, "the limit of the ad"),
    ],
)
def test_errors_of_limits(monkeypatch: pytest.MonkeyPatch, error, value, words):
    """A file is not blamed for them."""
    monkeypatch.setattr(process_limits.resource, "getrlimit", lambda number: (value, value))
    for each in (error, caused(error)):
        found, code = described_error(each, verbose=False)
        assert (type(found), code) == (LimitError, 4)
        assert str(found).startswith(words)


def test_other_errors_are_of_no_limit():
    """Without a limit on memory, its lack is not one of the process."""
    for error in (MemoryError(), OSError(errno.EACCES, "Permission denied"), KeyError("a")):
        assert process_limits.limit_error(error) is None
    full = OSError(errno.EFBIG, "File too large")
    assert described_error(full, verbose=False)[1] == 3
    nowhere = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    assert described_error(nowhere, verbose=False)[1] == 3


@pytest.mark.rest
@pytest.mark.parametrize(
    "words", [RUN, "inspect motion.h5", BATCH, "view out.h5 --points-only --export out.html"]
)
def test_without_proc(inputs: Path, words: str):
    """As in some containers. Outputs are new, so none may be taken for that of an ended process."""
    hidden = ["unshare", "--mount", "bash", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*hidden, "umount -l /proc"]).returncode:
        pytest.skip("this user may not unmount /proc")
    if words.startswith("view"):
        pytest.importorskip("viser")
        assert limited("true", RUN, inputs).returncode == 0
    done = subprocess.run(
        [*hidden, f"umount -l /proc && exec {sys.executable} -m collidecli {words}"],
        cwd=inputs,
        env=environment(TMPDIR=str(inputs)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
