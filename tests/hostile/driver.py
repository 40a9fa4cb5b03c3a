"""Gives cases to a worker in time, collects what is wrong with its answers, repeats crashes by the
command."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile.cases import case_of
from tests.hostile.seeds import groups
from tests.support.waits import PATIENCE

# What collide may answer to a hostile input.

MOST_SECONDS = 10.0
MOST_BYTES = 1 << 30
MOST_ERROR_LETTERS = 4000
SECRET = "SECRET-7f3a"
OPTIONS = ("--memory-limit", "--frames")
"""Options that a message may name in place of an input; collide.toml sets the second."""
WORKER_LIMIT = "the limit of the address space"
"""Of the worker, which a size in a damaged file may exceed; without a limit that is exit code 2."""
JUDGING = ("check", "diff", "audit", "fidelity")
"""Verbs whose exit code 1 is a verdict."""
OUTPUTS = ("-o", "--csv", "--parquet", "--export", "--mask")
SPOKEN = re.compile(r"(error: |warning: |  |failed call to posix_madvise)")
"""The last is what OpenUSD itself writes where it cannot map a file."""


def faults(facts: dict[str, Any]) -> Iterator[str]:
    """Everything wrong with one answer, in words; nothing where it is as it should be."""
    code = facts["code"]
    out = facts["out"]
    err = facts["err"]
    args = facts["args"]
    if "internal error" in err:
        yield err.partition("internal error: ")[2].splitlines()[0]
        return
    is_limited = code == 4 and WORKER_LIMIT in err
    if not is_limited and (code not in (0, 1, 2) or (code == 1 and args[0] not in JUDGING)):
        yield f"exit code {code}"
    if "Traceback" in err + out:
        yield "a traceback"
    if facts["seconds"] > MOST_SECONDS:
        yield f"took {facts['seconds']:.1f} s"
    if facts["peak"] > MOST_BYTES:
        yield f"took {facts['peak'] / 2**30:.1f} GiB"
    if SECRET in out or SECRET in err or "PICKLE" in out + err:
        yield "tells what is in another file, or ran what it holds"
    if facts["opened"]:
        yield f"opened {', '.join(facts['opened'][:3])}"
    wanted = (
        sorted(args[at + 1] for at, word in enumerate(args) if word in OUTPUTS) if code == 0 else []
    )
    if facts["left"] != wanted:
        yield f"left {facts['left']} behind"
    if facts.get("check", 0) != 0:
        yield "wrote a contact set that is not well formed"
    yield from _words(code, out, err, args, [facts.get("main", args[1]), *facts.get("files", ())])


def _words(code: int, out: str, err: str, args: list[str], files: list[str]) -> Iterator[str]:
    """What is wrong with the words. files: those of the input, the main one first."""
    strange = [line for line in err.splitlines() if line and not SPOKEN.match(line)]
    if strange:
        yield f"stderr has a line that is not ours: {strange[0][:120]!r}"
    if any(not c.isprintable() and c != "\n" for c in err + out):
        yield "control characters in what it says"
    spoken = re.search(r"^error: (.*?)(?=^warning: |\Z)", err, re.M | re.S)
    errors = spoken[1] if spoken else ""
    if code == 2:
        inputs = [
            word
            for word in args[1:]
            if re.search(
                r"\.(usd\w?|xml|urdf|srdf|h5|hdf5|np[yz]|csv|mcap|bag|toml|json|pkl)$", word
            )
        ]
        named = [*(name for name in inputs if name != "out.h5"), *files, *OPTIONS]
        named.append(files[0].split("/")[0])
        if not any(name in errors for name in named):
            yield f"the message names no input: {errors[:120]!r}"
        if len(errors.splitlines()) > 2 or len(errors) > MOST_ERROR_LETTERS:
            yield f"the message has {len(errors.splitlines())} lines and {len(errors)} letters"
    elif errors and WORKER_LIMIT not in errors:
        yield f"an error message with exit code {code}"
    if code == 1 and not out.strip():
        yield "a failed check, or a difference, that does not say what is wrong"


# Gives cases to a worker, in time, and collects what went wrong.

BATCH = 100
GRACE_SECONDS = 12 * MOST_SECONDS
"""For all commands of a case together, the making of it included, on a machine that is busy with
others."""


@dataclass
class Result:
    """What came of a run. crashed: cases in which the process died, and of which signal, or in which
    it was ended since it did not answer; the guard is asked later."""

    cases: int = 0
    codes: dict[int, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    crashed: dict[int, int] = field(default_factory=dict)
    crashed_names: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")

    def take(self, facts: dict[str, Any]) -> None:
        self.codes[facts["code"]] = self.codes.get(facts["code"], 0) + 1
        label = f"{facts['name']}: {' '.join(facts['args'][:3])}"
        self.slowest = max(self.slowest, (facts["seconds"], label))
        self.largest = max(self.largest, (facts["peak"], label))
        self.found += [f"{label}: {fault}" for fault in faults(facts)]


class Worker:
    """A worker process, and its answers line by line."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("COLLIDE_")
        }
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(root), environment.get("PYTHONPATH")))
        )
        command = [sys.executable, "-m", "tests.hostile.worker"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env=environment,
        )
        self._rest = b""
        if self.line(300.0) != {"ready": True}:
            raise RuntimeError(
                "the worker did not start; run python -m tests.hostile.worker to see why"
            )

    def line(self, seconds: float) -> dict[str, Any] | None:
        """The next answer; None where there is none in time, or the worker has ended."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0.0, deadline - time.monotonic())
            )
            block = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
            if not block:
                return None
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def ask(self, numbers: Sequence[int]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{' '.join(map(str, numbers))}\n".encode())
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def run_cases(numbers: Sequence[int], progress=None) -> Result:
    """Runs the cases of these numbers."""
    result = Result()
    waiting = list(numbers)
    worker = Worker()
    try:
        while waiting:
            batch = waiting[:BATCH]
            waiting = waiting[BATCH:]
            waiting = _run_batch(worker, batch, result) + waiting
            if progress:
                progress(len(numbers) - len(waiting), len(numbers), result)
    finally:
        worker.close()
    return result


def _run_batch(worker: Worker, batch: list[int], result: Result) -> list[int]:
    """Returns the cases that were not begun because one before them ended the process."""
    worker.ask(batch)
    begun = -1
    child = 0
    hung = False
    name = ""
    while True:
        facts = worker.line(GRACE_SECONDS)
        if facts is None:
            hung = True
            os.kill(child, signal.SIGKILL)
        elif "begin" in facts:
            begun = facts["begin"]
            child = facts["pid"]
        elif "made" in facts:
            name = facts["made"]
        elif "done" in facts:
            result.cases += 1
        elif "end" in facts:
            if facts["end"] == 0:
                return []
            result.cases += 1
            result.crashed[begun] = facts["end"]
            how = "waits" if hung else f"signal {-facts['end']}"
            result.crashed_names.append(f"{name} ({how})")
            return batch[batch.index(begun) + 1 :]
        else:
            result.take(facts)


COMMAND = (sys.executable, "-m", "collidecli.cli.guard")
GUARDED_OPTIONS = ("-o", "out.h5", "--device", "cpu", "--threads", "1", "--quiet")


def guard_faults(numbers: Iterable[int]) -> list[str]:
    """What is wrong with the command's answers to these cases."""
    numbers = sorted(numbers)
    if not numbers:
        return []
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        made = groups(Path(name))
        for number in numbers:
            case = case_of(number, made, name)
            folder = Path(name) / str(number)
            folder.mkdir()
            for file, data in case.files.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(data)
            before = set(os.listdir(folder))
            for command in case.commands:
                args = [case.main if word == "{}" else word for word in command]
                args += GUARDED_OPTIONS if args[0] == "run" else ()
                done = subprocess.run(
                    [*COMMAND, *args],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    timeout=PATIENCE,
                )
                facts = {
                    "code": done.returncode,
                    "args": args,
                    "main": case.main,
                    "files": sorted(case.files),
                    "seconds": 0.0,
                    "peak": 0,
                    "opened": [],
                }
                facts |= {"left": sorted(set(os.listdir(folder)) - before)}
                facts |= {
                    name: getattr(done, f"std{name}").decode("utf-8", "replace")
                    for name in ("out", "err")
                }
                found += [
                    f"{case.name}: {' '.join(args[:2])}, guarded: {fault}"
                    for fault in faults(facts)
                ]
    return found
