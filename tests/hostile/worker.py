"""Runs cases in processes made by fork, after the libraries are loaded; one line of JSON a case on
stdout.

stdin: a line of case numbers a batch. Each batch is a child of its own, so that what a library does
to itself in one batch is gone with it; the driver ends a child that hangs, and sees which case one
died in.
"""

import contextlib
import ctypes
import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.cases import Case, case_of
from tests.hostile.seeds import Group, groups

IN_OPEN = 0x20
IN_NONBLOCK = 0x800
_EVENT = struct.Struct("iIII")


class Opened:
    """Between `begin` and `end`: names opened in `outside`, and paths that Python opened where it
    has no business.

    Python itself, its packages, the system's tables and the folder of the case are its business.
    inotify tells of folders that are watched, so native code is watched where the inputs lead to,
    in `outside`.
    """

    def __init__(self, outside: Path, folder: Path) -> None:
        self._outside, self._folder = outside, os.path.realpath(folder)
        self._python: set[str] = set()
        self._on = False
        homes = {
            sys.prefix,
            sys.base_prefix,
            str(Path(__file__).parents[2]),
            os.path.expanduser("~/.cache"),
        }
        homes |= {os.environ.get("WARP_CACHE_PATH", "/proc"), *(path for path in sys.path if path)}
        tables = ("/proc", "/sys", "/dev/null", "/etc/localtime", "/usr/share/zoneinfo")
        self._homes = (*map(os.path.realpath, homes), *tables)
        # opened to make a file without a name
        self._temporary = os.path.realpath(tempfile.gettempdir())
        self._own = tuple(os.path.join(self._temporary, name) for name in ("collide_", "collide-"))
        self._inotify = _watching(outside)
        sys.addaudithook(self._audit)

    def begin(self) -> None:
        self._events()
        self._python.clear()
        self._on = True

    def end(self) -> set[str]:
        self._on = False
        return self._events() | self._python

    def _audit(self, event: str, args: tuple) -> None:
        if not self._on or event != "open" or isinstance(args[0], int):
            return
        try:
            path = os.path.realpath(os.fsdecode(args[0]))
        except (TypeError, ValueError):
            return
        if os.path.dirname(path) == str(self._outside):
            self._python.add(os.path.basename(path))
        elif path != self._temporary and not path.startswith(
            (self._folder, *self._own, *self._homes)
        ):
            self._python.add(path)

    def _events(self) -> set[str]:
        if self._inotify < 0:
            return set()
        names = set()
        try:
            while block := os.read(self._inotify, 65536):
                while block:
                    end = _EVENT.size + _EVENT.unpack_from(block)[3]
                    names.add(os.fsdecode(block[_EVENT.size : end].split(b"\0")[0]))
                    block = block[end:]
        except BlockingIOError:
            pass
        return names - {""}


def _watching(folder: Path) -> int:
    """An inotify descriptor; -1 where the system has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return -1
    fd = libc.inotify_init1(IN_NONBLOCK)
    if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), IN_OPEN) < 0:
        return -1
    return fd


MEMORY_BYTES = 4 << 30
"""Of address space beyond what the libraries take: a fault of ours ends in MemoryError, not in a
machine that swaps."""
SECRET = "SECRET-7f3a"
RUN_OPTIONS = (
    "-o",
    "out.h5",
    "--device",
    "cpu",
    "--threads",
    "1",
    "--quiet",
    "--memory-limit",
    "256MiB",
)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        folder = Path(name)
        outside = folder / "outside"
        outside.mkdir()
        for ending in ("txt", "usda", "xml", "h5"):
            (outside / f"secret.{ending}").write_text(f"{SECRET} {SECRET}\n")
        made = in_child(lambda: groups(folder))
        warm_up(folder, made)
        answers.write(json.dumps({"ready": True}) + "\n")
        for line in sys.stdin:
            numbers = [int(word) for word in line.split()]
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    run_batch(numbers, made, folder, outside, answers)
                    code = 0
                finally:
                    answers.flush()
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            answers.write(json.dumps({"end": os.waitstatus_to_exitcode(status)}) + "\n")


def in_child(make) -> list[Group]:
    """What `make` gives, made in a process of its own: pxr starts threads, and those do not survive
    a fork."""
    import pickle

    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(write_end, "wb") as file:
            pickle.dump(make(), file)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        made = pickle.load(file)
    os.waitpid(child, 0)
    return made


def warm_up(folder: Path, made: list[Group]) -> None:
    """Everything imported, every kernel that the seeds need compiled and loaded."""
    from pxr import Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, UsdUtils  # noqa: F401

    from collidecli.cli.main import main as collide

    here = folder / "warm"
    here.mkdir()
    os.chdir(here)
    group = next(group for group in made if group.name == "mjcf")
    for name, data in group.files.items():
        Path(name).write_bytes(data)
    assert collide(["run", group.main, *RUN_OPTIONS]) == 0
    for words in (
        ["inspect", group.main],
        ["check", "out.h5"],
        ["report", "out.h5", "-o", "out.html"],
    ):
        assert collide([*words, "--quiet"]) == 0
    import pyarrow.parquet  # noqa: F401
    import viser  # noqa: F401


def run_batch(numbers: list[int], made: list[Group], folder: Path, outside: Path, answers) -> None:
    opened = Opened(outside, folder)
    said, told = (tempfile.TemporaryFile(dir=folder) for _ in range(2))  # noqa: SIM115 - until the process ends
    os.dup2(said.fileno(), 1)
    os.dup2(told.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", closefd=False, errors="backslashreplace")
    sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace", buffering=1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES, size + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        answers.write(json.dumps({"begin": number, "pid": os.getpid()}) + "\n")
        case = case_of(number, made, str(outside))
        answers.write(json.dumps({"made": case.name}) + "\n")
        here = Path(tempfile.mkdtemp(dir=folder, prefix="case-"))
        os.chdir(here)
        for name, data in case.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        for command in case.commands:
            answers.write(json.dumps(answer(case, command, opened, said, told)) + "\n")
        answers.write(json.dumps({"done": number, "name": case.name}) + "\n")
        os.chdir(folder)
        shutil.rmtree(here)


def answer(case: Case, command: tuple[str, ...], opened: Opened, said, told) -> dict:
    """What collide makes of one command, and all that a judge needs to know of it."""
    from collidecli.cli.main import main as collide

    args = [case.main if word == "{}" else word for word in command]
    args += RUN_OPTIONS if args[0] == "run" else []
    reset_peak()
    resident = peak_bytes()
    opened.begin()
    for stream in (said, told):
        stream.seek(0)
        stream.truncate()
    before = set(os.listdir())
    # a machine that is busy with others is no fault; what waits for ever is ended
    start = time.process_time()
    code = collide(args)
    seconds = time.process_time() - start
    sys.stdout.flush()
    said.seek(0)
    told.seek(0)
    facts = {
        "number": int(case.name.split()[0]),
        "name": case.name,
        "main": case.main,
        "files": sorted(case.files),
        "args": args,
        "code": code,
        "out": said.read(20_000).decode("utf-8", "replace"),
        "err": told.read(20_000).decode("utf-8", "replace"),
        "seconds": seconds,
        "peak": peak_bytes() - resident,
        "left": sorted(set(os.listdir()) - before),
        "opened": sorted(opened.end() - case.may_open),
    }
    if args[0] in ("run", "traj") and code == 0:
        facts["check"] = collide(["check", "out.h5", "--quiet"])
    for name in facts["left"]:
        shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)
    return facts


def reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Largest resident size since `reset_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    random.seed(0)
    main()
