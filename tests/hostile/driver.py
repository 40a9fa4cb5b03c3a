"""Gives cases to a worker, in time, and collects what went wrong."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile.verdict import MOST_SECONDS, faults

BATCH = 100
GRACE_SECONDS = 12 * MOST_SECONDS
"""For all commands of a case together, the making of it included, on a machine that is busy with others."""


@dataclass
class Result:
    """What came of a run. crashed: cases in which the process died, and of which signal; the guard is asked later."""

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
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COLLIDE_")}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), environment.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "tests.hostile.worker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root, env=environment
        )
        self._rest = b""
        if self.line(300.0) != {"ready": True}:
            raise RuntimeError("the worker did not start; run python -m tests.hostile.worker to see why")

    def line(self, seconds: float) -> dict[str, Any] | None:
        """The next answer; None where there is none in time, or the worker has ended."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
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
    result, waiting = Result(), list(numbers)
    worker = Worker()
    try:
        while waiting:
            batch, waiting = waiting[:BATCH], waiting[BATCH:]
            waiting = _run_batch(worker, batch, result) + waiting
            if progress:
                progress(len(numbers) - len(waiting), len(numbers), result)
    finally:
        worker.close()
    return result


def _run_batch(worker: Worker, batch: list[int], result: Result) -> list[int]:
    """Returns the cases that were not begun because one before them ended the process."""
    worker.ask(batch)
    begun, child, hung, name = -1, 0, False, ""
    while True:
        facts = worker.line(GRACE_SECONDS)
        if facts is None:
            hung = True
            result.found.append(f"{name or begun}: hangs")
            os.kill(child, signal.SIGKILL)
        elif "begin" in facts:
            begun, child = facts["begin"], facts["pid"]
        elif "made" in facts:
            name = facts["made"]
        elif "done" in facts:
            result.cases += 1
        elif "end" in facts:
            if facts["end"] == 0:
                return []
            result.cases += 1
            if not hung:
                result.crashed[begun] = facts["end"]
                result.crashed_names.append(f"{name} (signal {-facts['end']})")
            return batch[batch.index(begun) + 1 :]
        else:
            result.take(facts)
