"""How long until `collide` answers: the help, and the first contacts of a fresh process without and with kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.bench.result import BenchTable, spread_time

SCENES = {
    "the pile of samples/01_usd_pile": "samples/01_usd_pile/pile.usda",
    "the humanoid of samples/02_humanoid": "samples/02_humanoid/humanoid.xml",
}
MOST_REPEATS = 3
"""Of an empty cache: each compiles every kernel anew."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds of the wall clock of whole processes, whatever clock was asked for."""
    table = BenchTable(
        "start",
        "Start: whole processes, from call to exit",
        ["what", "seconds"],
        notes=[
            "`run` takes one frame and writes its file. An empty cache: WARP_CACHE_PATH is a new folder, so that every "
            "kernel is compiled. MuJoCo, USD and Warp are loaded anew in each process; their files are in the disk's "
            "cache."
        ],
    )
    _seconds("--help", cache="")
    times = np.array([_seconds("--help", cache="") for _ in range(2 * repeats)])
    table.add("`collide --help`", spread_time(times))
    table.keep("help seconds", times)
    for name, scene in SCENES.items():
        with tempfile.TemporaryDirectory() as folder:
            command = ("run", scene, "--frames", "0", "-o", f"{folder}/out.contacts.h5", "--force", "--quiet")
            empty = [_seconds(*command, cache=f"{folder}/cache{k}") for k in range(min(repeats, MOST_REPEATS))]
            warm = [_seconds(*command, cache=f"{folder}/cache0") for _ in range(repeats)]
        table.add(f"first contacts, {name}, empty kernel cache", spread_time(np.array(empty)))
        table.add(f"first contacts, {name}, kernels cached", spread_time(np.array(warm)))
        table.keep(f"{scene} empty cache seconds", empty)
        table.keep(f"{scene} cached seconds", warm)
    return table


def collide_command(*args: str) -> list[str]:
    """The command line as a process of this interpreter."""
    installed = Path(sys.executable).with_name("collide")
    start = [str(installed)] if installed.exists() else [sys.executable, "-m", "collidecli.cli.guard"]
    return [*start, *args]


def _seconds(*args: str, cache: str) -> float:
    environment = {**os.environ, **({"WARP_CACHE_PATH": cache} if cache else {})}
    start = time.perf_counter()
    subprocess.run(collide_command(*args), env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
