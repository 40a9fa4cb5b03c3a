"""The process that waits and the one that works: crashes, signals, pipes, terminals."""

import importlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import psutil
import pytest

from collidecli.cli.main import VERBS, main
from collidecli.cli.stop import GRACE_SECONDS, REMOVALS
from collidecli.errors import InputError
from collidecli.exit_codes import INTERRUPTED
from collidecli.storage.process_activity import Board, reading, show_on
from tests.cli.conftest import write_motion
from tests.cli.test_recordings import falling, write_demos
from tests.support.waits import PATIENCE, until

GUARD = "\nimport sys\nfrom collidecli.cli.guard import command\nsys.exit(command())"
GOLDEN = Path(__file__).parents[1] / "golden" / "contacts_1_1.h5"
CRASH = "os.kill(os.getpid(), signal.SIGSEGV)"
LASTING = """
print("ready", flush=True)
sys.stdin.read()
"""
"""Until it is ended, or told to go on."""


def script(work: str, before: str = "") -> list[str]:
    """A process whose guarded work is `work`."""
    start = "import os, signal, sys, time\nfrom collidecli.cli.guard import guarded\n"
    start += "from collidecli.storage.process_activity import reading\n"
    start += "from collidecli.storage.atomic_output import AtomicOutput\n"
    body = textwrap.indent(textwrap.dedent(work).strip() + "\nreturn 0", "    ")
    return [sys.executable, "-c", f"{start}{before}\ndef work():\n{body}\nsys.exit(guarded(work))"]


def python(code: str, *args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )


def answer(work: str, before: str = "", args: tuple[str, ...] = ()) -> tuple[int, str, str]:
    done = python(script(work, before)[-1], *args)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("code", [0, 1, 3, 70])
def test_the_command_answers_as_its_child_does(code):
    work = f"print('out'); print('err', file=sys.stderr)\nreturn {code}"
    assert answer(work) == (code, "out\n", "err\n")


READING = "with reading('scene', 'a.xml'):\n    "
ENGINE = (
    "with reading('motion', 'a.h5'):\n"
    f"    exec(compile('import os, signal; ' + {CRASH!r}, '/x/collidecli/{{}}.py', 'exec'))"
)
"""The trace of the crashed thread has the names of files."""
CRASHED = "a.xml: reading the scene crashed the library that reads it ({})\n"
CRASHES = {
    **{
        f"{READING}os.kill(os.getpid(), signal.{name})": (2, CRASHED.format(name))
        for name in ("SIGSEGV", "SIGABRT", "SIGBUS")
    },
    f"{READING}os._exit(1)": (2, CRASHED.format("exit code 1")),
    f"{READING}os.kill(os.getpid(), signal.SIGKILL)": (
        4,
        "a.xml: collide was killed while reading the scene, most likely because the system ran",
    ),
    f"{READING}pass\n{CRASH}": (
        70,
        "internal error: collide crashed (SIGSEGV)\n  please report it",
    ),
    ENGINE.format("engine/pipeline"): (70, "internal error: "),
    ENGINE.format("files/pipeline"): (2, "a.h5: reading the motion"),
}


@pytest.mark.parametrize("work", CRASHES)
def test_whose_fault_a_crash_is(work):
    code, told = CRASHES[work]
    found, out, err = answer(work)
    assert (found, out) == (code, "")
    assert err.startswith(f"error: {told}")
    assert code != 70 or "a.xml" not in err
    assert code != 4 or "--memory-limit" in err
    if code == 2:
        assert len(err.splitlines()) == 2
        _, _, err = answer(work, args=("-v",))
        assert "_exit" in work or ("Current thread" in err and "in work" in err)


LIMITED = """
import time
from collidecli.storage import reading_limit
from collidecli.storage.reading_limit import limited_reading
reading_limit.LEAST_LIMIT = 1
reading_limit.free_memory = lambda: 400 << 20
"""


@pytest.mark.rest
@pytest.mark.parametrize("limit", [0, 200])
def test_reading_ends_at_the_memory_limit(limit):
    """limit: in MiB; 0 is half of the free memory, which is replaced by 200 MiB."""
    work = f"""
with limited_reading({limit} << 20), reading('scene', 'a.xml'):
    held = []
    while len(held) < 2000:
        held.append(b'x' * (1 << 20))
        time.sleep(0.001)
"""
    code, _, err = answer(work, LIMITED)
    assert (code, "a.xml: reading the scene needs more than 0.195 GiB of memory" in err) == (
        4,
        True,
    )
    assert answer(work.replace("2000", "20") + "\nreturn 7", LIMITED)[0] == 7


@pytest.mark.rest
def test_the_memory_limit_ends_with_the_reading():
    work = """
with limited_reading(300 << 20), reading('scene', 'a.xml'):
    pass
held = b'x' * (400 << 20)
time.sleep(5 * reading_limit.CHECK_SECONDS)
return 7
"""
    assert answer(work, LIMITED)[0] == 7


@pytest.mark.rest
def test_a_stop_during_an_import_waits_for_its_end(tmp_path):
    """A library in C++ would print a traceback of the exception and go on without the module."""
    slow = (
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(0.1)\nfinished ="
        " True\n"
    )
    (tmp_path / "slow.py").write_text(slow)
    before = (
        f"sys.path.insert(0, {str(tmp_path)!r})\nfrom collidecli.cli.stop import Stopped,"
        " stopping_in_time"
    )
    work = """
with stopping_in_time():
    try:
        import slow
        print(slow.finished, flush=True)
        time.sleep(5)
    except Stopped:
        print('stopped')
"""
    assert answer(work, before) == (0, "True\nstopped\n", "")


CIRCLES = """
with reading('recording', 'a.h5'):
    with structure():
        for _ in range(4):
            structure_step()
            until = time.process_time() + 0.2
            while time.process_time() < until:
                pass
    print('read', flush=True)
    until = time.process_time() + 0.6
    while time.process_time() < until:
        pass
print('computed', flush=True)
with reading('recording', 'b.h5'), structure(), structure():
    time.sleep(0.6)
    print('waited', flush=True)
    while True:
        pass
"""
LIMIT = """
from collidecli.storage import process_activity
from collidecli.storage.process_activity import structure, structure_step
process_activity.STRUCTURE_SECONDS = 0.4
"""


@pytest.mark.rest
def test_only_a_library_that_goes_round_in_circles_is_ended():
    code, out, err = answer(CIRCLES, LIMIT)
    assert (code, out) == (2, "read\ncomputed\nwaited\n")
    assert err.startswith(
        "error: b.h5: reading the recording did not end: the structure of the HDF5 file has a cycle"
    )
    assert len(err.splitlines()) == 2
    assert "in work" in answer(CIRCLES, LIMIT, args=("-v",))[2]


SLOW_DATA = """
read = h5py.Dataset.__getitem__
def slow(dataset, rows):
    until = time.process_time() + 0.4 * (dataset.name in SLOW)
    while time.process_time() < until:
        pass
    return read(dataset, rows)
h5py.Dataset.__getitem__ = slow
"""


@pytest.mark.rest
@pytest.mark.share(3, 3)
@pytest.mark.parametrize(
    ("slow", "words"),
    [
        ([f"/data/demo_{k}/states" for k in range(3)], "traj convert demos.h5 -o converted.h5"),
        ([f"/data/demo_{k}/states" for k in range(3)], "inspect demos.h5"),
        (["/time", "/step"], "inspect motion.h5"),
        (
            ["/time/time", "/time/step", "/model/shape/body", "/model/shape/gap"],
            "inspect contacts.h5",
        ),
    ],
)
def test_the_time_limit_does_not_count_data(tmp_path: Path, slow, words):
    """A read of numbers may take longer than the limit of the structure."""
    write_demos(tmp_path / "demos.h5", {f"demo_{k}": falling() for k in range(3)})
    write_motion(tmp_path / "motion.h5")
    with h5py.File(tmp_path / "motion.h5", "a") as file:
        file["step"] = np.arange(len(file["time"]))
    shutil.copy(GOLDEN, tmp_path / "contacts.h5")
    start = (
        f"{LIMIT}\nprocess_activity.STRUCTURE_SECONDS = 0.25\nSLOW = {slow!r}\nimport sys, time,"
        f" h5py\n{SLOW_DATA}"
    )
    done = python(start + GUARD, *words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.rest
@pytest.mark.share(3, 3)
@pytest.mark.parametrize(
    "verb", [["check"], ["inspect"], ["diff", "contacts.h5"], ["run", "none.xml", "-t"]]
)
def test_strings_that_hdf5_never_finds_the_end_of(tmp_path: Path, verb):
    """HDF5's heap of strings without anything in it: the next one begins where this one does."""
    file = GOLDEN.read_bytes()
    head = file.index(b"GCOL") + 16
    (tmp_path / "contacts.h5").write_bytes(file)
    (tmp_path / "heap.h5").write_bytes(file[:head] + bytes(4096 - 16) + file[head + 4096 - 16 :])
    (tmp_path / "none.xml").write_text("<mujoco/>")
    done = python(f"{LIMIT}\n{GUARD}", *verb, "heap.h5", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    cycle = (
        r"error: heap.h5: reading the [a-z ]+ did not end: the structure of the HDF5 file has a"
        r" cycle"
    )
    assert re.match(cycle, done.stderr)


def test_what_fails_after_the_end_takes_nothing_back():
    code, _, err = answer(f"import atexit\natexit.register(lambda: {CRASH})\nreturn 1")
    assert (code, err) == (1, "")


@pytest.mark.parametrize(("ending", "expected"), [(CRASH, 70), ("return 130", 130)])
def test_a_half_written_output_is_removed(tmp_path: Path, ending: str, expected: int):
    """Also where a signal came before the block in which the output is written."""
    target = tmp_path / "out.h5"
    work = (
        f"output = AtomicOutput({str(target)!r});"
        f" output.write(b'half')\nprint(os.listdir({str(tmp_path)!r}))\n"
    )
    code, out, _ = answer(work + "sys.stdout.flush()\n" + ending)
    assert (code, ".partial" in out, list(tmp_path.iterdir())) == (expected, True, [])


def check_interrupted(process: subprocess.Popen[bytes]) -> None:
    """Its stdin stays open: nothing but the signal ends it."""
    assert process.wait(PATIENCE) == 130
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it has started
    assert process.communicate()[1] == b"error: interrupted\n"


@pytest.mark.rest
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_signal_is_told_of_once(name, send):
    process = started(LASTING)
    send(process.pid, getattr(signal, name))
    check_interrupted(process)


SLEEP = (
    "import ctypes\n{}print('ready', flush=True)\n{}ctypes.CDLL(None).system(b'sleep"
    f" {3 * PATIENCE}')"
)
"""Python calls no handler during `system`, nor during a read if the signal arrives just before
it."""
STARTING = (
    (
        "from collidecli.cli.stop import stopping_in_time\n"
        "from collidecli.engine.runtime.warp_start import stderr_without\n"
        "with stopping_in_time(), stderr_without(b'error'):\n    "
    ),
    "    ",
)
"""Lines of Warp's start are removed from stderr: the message must not be among them."""


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "around"), [("SIGTERM", ("", "")), ("SIGHUP", ("", "")), ("SIGTERM", STARTING)]
)
def test_a_signal_just_before_a_call_that_waits_is_not_lost(name, around):
    process = started(SLEEP.format(*around))
    time.sleep(0.3)
    process.send_signal(getattr(signal, name))
    check_interrupted(process)


@pytest.mark.rest
def test_an_immediate_end_leaves_no_temporary_folder(tmp_path: Path):
    """Where a call of a library outlasts the time for an orderly one."""
    before = "from collidecli.temporary_folders import TemporaryFolder\n"
    before += f"folder = TemporaryFolder('test', {str(tmp_path)!r})\n"
    process = started(SLEEP.format("open(folder.name + '/a', 'w').close()\n", ""), before)
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(signal.SIGTERM)
    check_interrupted(process)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rest
def test_a_signal_in_a_destructor_is_told_of_once():
    """Python discards exceptions that are raised there."""
    work = """
    from collidecli.cli.stop import Stopped, stopping_in_time
    class Object:
        def __del__(self):
            print("ready", flush=True)
            while True:
                time.sleep(0.01)
    with stopping_in_time():
        Object()
        time.sleep(100)
    """
    process = started(work)
    process.send_signal(signal.SIGTERM)
    check_interrupted(process)


@pytest.mark.rest
def test_a_signal_at_any_moment_of_the_start_is_told_of_once(tmp_path: Path):
    scene = tmp_path / "scene.xml"
    scene.write_text("<mujoco><worldbody><geom type='sphere' size='1'/></worldbody></mujoco>")
    # Python ends in ways of its own while it starts: so the first line of ours says when that is
    # over.
    code = (
        "import os, sys\nos.write(1, b'begun')\nfrom collidecli.cli.guard import"
        " command\nsys.exit(command())"
    )
    command = [sys.executable, "-c", code, "inspect", str(scene)]
    for wait in (0.0, 0.05, 0.1, 0.2, 0.4):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        assert process.stdout.read(5) == b"begun"
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        if process.returncode in (0, -signal.SIGINT):
            continue  # it had ended already, or ours was still being imported
        # Click ends the line that the terminal shows ^C on.
        assert (process.returncode, err.lstrip(b"\n")) == (130, b"error: interrupted\n")


@pytest.mark.rest
def test_an_ignored_signal_stays_ignored():
    process = started(LASTING + "return 5", "signal.signal(1, signal.SIG_IGN)\n")
    os.killpg(process.pid, signal.SIGHUP)
    # It goes on only now, when a signal that was not ignored would have ended it.
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 5


@pytest.mark.rest
def test_children_ignored_by_whoever_started_it_are_still_waited_for():
    assert answer("return 3", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n")[0] == 3


@pytest.mark.rest
def test_both_processes_pause_together():
    process = started(LASTING + "return 4")
    parent = psutil.Process(process.pid)
    both = (parent, *parent.children())
    process.send_signal(signal.SIGTSTP)
    until(lambda: [one.status() for one in both] == ["stopped", "stopped"])
    process.send_signal(signal.SIGCONT)
    until(lambda: "stopped" not in [one.status() for one in both])
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 4


@pytest.mark.rest
def test_a_child_does_not_outlive_its_parent():
    process = started(LASTING)
    child = psutil.Process(process.pid).children()[0]
    process.kill()
    process.wait(PATIENCE)
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    process.communicate()


def test_what_is_done_without_a_child():
    for args in ([], ["--help"], ["run", "--help"], ["help", "run"], ["--version"]):
        done = python(f"import os; os.fork = None\n{GUARD}", *args)
        assert done.returncode == (0 if args else 2), done.stderr
    done = python(f"import os; del os.fork\n{GUARD}", "check", "none.h5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: none.h5: there is no such file")


def test_the_board_tells_what_is_read():
    board = Board()
    assert (board.reading, board.code) == (("", ""), None)
    show_on(board)
    try:
        with reading("scene", "a\nb.xml"):
            with reading("recording", os.fsdecode(b"\xff.h5")):
                assert board.reading == ("recording", os.fsdecode(b"\xff.h5"))
            assert board.reading == ("scene", "a\nb.xml")
        with reading("motion"):
            assert board.reading == ("motion", os.fsdecode(b"\xff.h5"))
        assert board.reading == ("", "")
        with reading("scene", "x" * 100_000):
            assert board.reading[1].startswith("xxx")
    finally:
        show_on(None)
    for outputs in ([Path("a"), Path("b")], []):
        board.note_outputs(outputs)
        assert board.outputs == list(map(str, outputs))
    board.finish(0)
    assert board.code == 0


def started(work: str, before: str = "") -> subprocess.Popen[bytes]:
    """The guarded work in a process group of its own, once it has said that it is ready."""
    command = script(work, before)
    # Not a session of its own: nothing pauses a process group that no shell looks after.
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=os.setpgrp)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_only_what_a_library_raises_is_the_files_fault(tmp_path: Path):
    with h5py.File(tmp_path / "loop.h5", "w") as file:
        file["a"] = h5py.SoftLink("/a")
    with h5py.File(tmp_path / "loop.h5") as file:
        said = r"loop.h5: the recording is damaged: .*links"
        with pytest.raises(InputError, match=said), reading("recording", "loop.h5"):
            _ = file["a"]
        with pytest.raises(KeyError), reading("recording", "loop.h5"):
            _ = {}["a"]


def test_what_is_to_be_done_at_the_end_is_done():
    before = (
        "import atexit, tempfile\nclass Library:\n    def __del__(self): print('down')\nlibrary ="
        " Library()"
    )
    work = """
    global folder
    folder = tempfile.TemporaryDirectory()
    atexit.register(lambda: print('late', os.path.exists(folder.name)))
    sys.stdout.write('in time ')
    """
    assert answer(work, before) == (0, "in time late True\ndown\n", "")  # by the parent alone


@pytest.mark.rest
def test_cycles_are_looked_for_seldom():
    code = "import gc\nfrom collidecli.cli import guard, main\n"
    code += "main.main = lambda: print(gc.get_threshold()[0])\nguard.command()"
    assert python(code, "run").stdout == "300000\n"


COMMAND = (sys.executable, "-m", "collidecli.cli.guard")
THREADS = 2
LONG_RUN = (
    f"run scene.xml -t long.h5 --worlds 20000 --device cpu --gap 9 --threads {THREADS}".split()
)


@pytest.mark.rest
def test_help_imports_nothing_heavy(here):
    code = f"""
import sys
from collidecli.cli.main import main
for verb in {list(VERBS)}:
    assert main([verb, "--help"]) == 0
assert main(["--help"]) == 0
print("LOADED", [name for name in ("warp", "pxr", "mujoco", "h5py", "rich", "numpy") if name in sys.modules])
"""
    done = python(code)
    assert done.stdout.endswith("LOADED []\n"), done.stderr
    for verb in VERBS:
        assert f"Usage: collide {verb}" in done.stdout


@pytest.mark.rest
@pytest.mark.share(2, 2)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
# The second is one launch that takes many seconds: the exception cannot be raised before it ends.
@pytest.mark.parametrize("options", [(), ("--chunk-cells", "4000000")], ids=str)
def test_a_signal_ends_it_within_a_second(here, name, options):
    """A second of its own processors: a machine that is busy with others lets it wait, and that is
    not its fault."""
    write_motion(here / "long.h5", 200)
    before = sorted(path.name for path in here.iterdir())
    process = subprocess.Popen(
        [*COMMAND, *LONG_RUN, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not any(path.suffix == ".partial" for path in here.iterdir()):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.2)
    began = used_seconds(process.pid)
    ended = os.times()
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=PATIENCE)
    after = os.times()
    # What it used in all is known once it has been waited for.
    used = (
        after.children_user
        + after.children_system
        - ended.children_user
        - ended.children_system
        - began
    )
    assert used < THREADS * 1.0
    assert GRACE_SECONDS < 1.0
    assert (process.returncode, out, b"interrupted" in err, b"Traceback" in err) == (
        130,
        b"",
        True,
        False,
    )
    assert sorted(path.name for path in here.iterdir()) == before


def test_a_pipe_that_does_not_block_gets_all_of_the_output():
    """As from a program that reads several pipes at once; Python would write a part, without an
    error."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    work = "from collidecli.cli.streams import Streams\nStreams().prepare()\nprint('y' * 200_000)"
    process = subprocess.Popen(script(work), stdout=write_end)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        assert file.read() == "y" * 200_000 + "\n"
    assert process.wait(PATIENCE) == 0


def used_seconds(pid: int) -> float:
    """Of processors, by the process and the child that works for it."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


@pytest.mark.rest
def test_in_process_signals_are_given_back(here):
    before = list(map(signal.getsignal, (signal.SIGINT, signal.SIGTERM)))
    assert main(["inspect", "scene.xml", "--quiet"]) == 0
    assert list(map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))) == before


@pytest.mark.rest
@pytest.mark.parametrize("args", ["inspect scene.xml", "inspect scene.xml --json", "--help"])
def test_a_closed_pipe_is_no_fault(here, args):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([*COMMAND, *args.split()], stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.rest
@pytest.mark.parametrize("args", ["inspect scene.xml", "inspect scene.xml --json", "--help"])
def test_a_full_disk_is_an_output_error(here, args):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *args.split()], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    assert done.stderr.startswith(b"error: ")


@pytest.mark.rest
@pytest.mark.parametrize("no_color", [False, True])
def test_a_progress_bar_leaves_stdout_clean(here, no_color):
    main(["run", "scene.xml", "-t", "motion.h5", "-o", "warm.h5", "--device", "cpu", "--quiet"])
    out, shown = on_terminal({"NO_COLOR": "1"} if no_color else {})
    assert json.loads(out)["frames"] == 20
    found = [text in shown for text in (b"loading", b"compiling", b"20/20", b"\x1b[3")]
    assert found == [True, False, True, not no_color]


WITHOUT_CARRIED_KERNELS = """
import sys
from collidecli.engine.runtime import carried_kernels
carried_kernels.FOLDER = "/no/folder"
from collidecli.cli.guard import command
sys.exit(command())
"""


@pytest.mark.slow
def test_a_first_run_shows_that_it_compiles(here, tmp_path_factory):
    variables = {"WARP_CACHE_PATH": str(tmp_path_factory.mktemp("cache"))}
    _, shown = on_terminal(variables, (sys.executable, "-c", WITHOUT_CARRIED_KERNELS))
    pattern = rb"compiling kernels \(first run only\), (\d+) of (\d+)"
    counts = {tuple(map(int, found)) for found in re.findall(pattern, shown)}
    done, total = max(counts)
    assert 3 <= len(counts) <= 2 * total
    assert done in (total - 1, total)


def on_terminal(
    environment: dict[str, str], command: tuple[str, ...] = COMMAND
) -> tuple[bytes, bytes]:
    """Output of a run of 20 frames on stdout, and on a terminal as stderr."""
    main_end, terminal = pty.openpty()
    process = subprocess.Popen(
        [
            *command,
            "run",
            "scene.xml",
            "-t",
            "motion.h5",
            "--json",
            "--device",
            "cpu",
            "--chunk-cells",
            "1",
        ],
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
    """All that is written to a terminal until its other end is closed, which is an error on
    Linux."""
    shown = b""
    with suppress(OSError):
        while block := os.read(main_end, 65536):
            shown += block
    return shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(here, collide, shell, monkeypatch):
    answer = collide("completion", shell)
    assert (answer.code, "_COLLIDE_COMPLETE" in answer.out) == (0, True), answer.err
    assert collide.result("completion", shell)["script"] == answer.out
    monkeypatch.setenv("_COLLIDE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "collide run --broad")
    monkeypatch.setenv("COMP_CWORD", "--broad" if shell == "fish" else "2")
    found = collide()
    assert (found.code, "--broad-phase" in found.out) == (0, True)


def test_a_stop_while_modules_are_imported_leaves_no_traceback():
    """The watch thread may end the program before an import of the main thread has ended."""
    program = (
        "import os, sys, types\n"
        "from collidecli.cli.stop import REMOVALS, end_interrupted, stderr_copy\n"
        "for module, _ in REMOVALS:\n"
        "    sys.modules[module] = types.ModuleType(module)\n"
        "end_interrupted(stderr_copy())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "error: interrupted\n")


def test_what_a_stop_removes_exists():
    for module, function in REMOVALS:
        assert callable(getattr(importlib.import_module(module), function))
