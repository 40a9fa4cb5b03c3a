"""What environments cost at load: seconds and peak memory of 1 to 4096 of a robot, and of contacts in all of them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from collidecli.scene.text_format import memory
from tests.bench.result import BenchTable, spread_time
from tests.support.environments import write_environments, write_robot

COUNTS = (1, 64, 1024, 4096)
AS_ONE_WORLD = (64, 256)
LINKS = 12
DIRECTIONS = {
    "reference": "each references the robot",
    "inherit": "all inherit the first",
    "copy": "each holds a copy of its specs",
}
MOST_REPEATS = 3

MEASURED = """
import json, re, sys, time
from collidecli.commands.scenes import load_scene
from collidecli.scene.options import SceneOptions
import collidecli.importers.usd.scene
start = time.perf_counter()
scene = load_scene([sys.argv[1]], None, options=SceneOptions(environments=sys.argv[2]))
seconds = time.perf_counter() - start
model = scene.model
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([seconds, peak, model.world_count, int(model.world_template.max()) + 1]))
"""
"""A process of its own for each load: no layer is in pxr's cache, and VmHWM, which Linux alone has, is its own peak."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Loads of whole processes by the wall clock, whatever clock was asked for."""
    table = BenchTable(
        "environments",
        f"Environments of a robot of {LINKS} links and {2 * LINKS} colliders: loading",
        ["environments", "file", "worlds", "templates", "load", "peak memory"],
        notes=[
            "Scene file to finalized model, in a process of its own; imports are not in the time, and are in the "
            "memory. The last rows take the whole stage as one world (`--environments none`), which is what a "
            "reader that composes every environment pays. Files are .usda, read as text."
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        robot = write_robot(Path(folder), LINKS)
        for how, words in DIRECTIONS.items():
            for count in COUNTS if how != "inherit" else COUNTS[-1:]:
                path = write_environments(Path(folder), robot, count, how, f"{how}_{count}.usda")
                _row(table, path, f"{count}: {words}", "", repeats)
        for count in AS_ONE_WORLD:
            path = write_environments(Path(folder), robot, count, name=f"one_world_{count}.usda")
            _row(table, path, f"{count}: {DIRECTIONS['reference']}, as one world", "none", 1)
    return table


def _row(table: BenchTable, path: Path, words: str, environments: str, repeats: int) -> None:
    found = [_load(path, environments) for _ in range(min(repeats, MOST_REPEATS))]
    seconds = np.array([each[0] for each in found])
    worlds, templates = found[0][2:]
    peak = max(int(each[1]) for each in found)
    table.add(words, memory(path.stat().st_size), worlds, templates, spread_time(seconds), memory(peak))
    table.keep(f"{words} seconds", seconds)
    table.keep(f"{words} peak bytes", peak)


def _load(path: Path, environments: str) -> list[float]:
    command = [sys.executable, "-c", MEASURED, str(path), environments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
