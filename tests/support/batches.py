"""Batches of small recordings, `collide` in a process of its own, and a Dask cluster of processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

JOBS = """
[[job]]
name = "balls"
scene = "scene.xml"
motion = ["demos/*.h5"]
options = { gap = 0.02, device = "cpu" }
"""
COLLIDE = (sys.executable, "-c", "from collidecli.cli.guard import command; raise SystemExit(command())")
REPOSITORY = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    """The variables of this process; Python finds what this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)]), **more}


def start(*words: str, **more: str) -> subprocess.Popen[bytes]:
    """`collide` with these words, its output in pipes, as the leader of a process group."""
    return subprocess.Popen(
        [*COLLIDE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**more),
        start_new_session=True,
    )


def until(holds: Callable[[], object], seconds: float = 300.0, every: float = 0.05) -> None:
    """Waits until `holds` returns something true; an assertion error after `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(every)


def result_count(folder: str) -> int:
    """Number of contact sets in a batch."""
    return sum(not path.name.startswith(".") for path in Path(folder, "results").rglob("*.h5"))


def _command(process: psutil.Process) -> str:
    """Command line of a process; "" for one that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Cluster:
    """A Dask scheduler with a dashboard, and workers: each a process of its own, ended by `close`."""

    def __init__(self, folder: Path, workers: int = 2, threads: int = 1) -> None:
        self.file = folder / "scheduler.json"
        self._folder, self._processes = folder, []
        self.scheduler = self._start(
            "scheduler", "--scheduler-file", str(self.file), "--host", "127.0.0.1", "--port", "0",
            "--dashboard-address", "127.0.0.1:0",
        )  # fmt: skip
        until(self.file.exists)
        self.workers = [self.add_worker(threads) for _ in range(workers)]

    def add_worker(self, threads: int = 1) -> subprocess.Popen[bytes]:
        """Starts one more worker."""
        return self._start(
            "worker", "--scheduler-file", str(self.file), "--nthreads", str(threads), "--no-dashboard",
            "--local-directory", str(self._folder / "scratch"), "--host", "127.0.0.1",
        )  # fmt: skip

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"dask-{words[0]}-{len(self._processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], stdout=log, stderr=log, env=environment(), cwd=self._folder
        )
        log.close()
        self._processes.append(process)
        return process

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def dashboard(self, page: str = "/status") -> str:
        """A page of the scheduler's web server."""
        port = json.loads(self.file.read_text())["services"]["dashboard"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=20) as answer:
            return answer.read().decode()

    def worker_children(self) -> list[psutil.Process]:
        """The processes below the workers that compute episodes, or will."""
        found = []
        for worker in self.workers:
            with suppress(psutil.NoSuchProcess):
                found += psutil.Process(worker.pid).children(recursive=True)
        return [child for child in found if "spawn_main" in _command(child)]

    def close(self) -> None:
        """Ends everything that was started."""
        family = []
        for process in self._processes:
            if process.poll() is None:
                family += psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGKILL)
            process.wait()
        for child in family:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
