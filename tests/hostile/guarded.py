"""Inputs on which a library crashed, once more through the command itself: it must still answer."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.hostile.cases import case_of
from tests.hostile.driver import faults
from tests.hostile.seeds import groups

COMMAND = (sys.executable, "-m", "collidecli.cli.guard")
OPTIONS = ("-o", "out.h5", "--device", "cpu", "--threads", "1", "--quiet")


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
                args += OPTIONS if args[0] == "run" else ()
                done = subprocess.run([*COMMAND, *args], cwd=folder, env=environment, capture_output=True, timeout=60)
                facts = {
                    "code": done.returncode,
                    "args": args,
                    "main": case.main,
                    "out": done.stdout.decode("utf-8", "replace"),
                    "err": done.stderr.decode("utf-8", "replace"),
                    "left": sorted(set(os.listdir(folder)) - before),
                    "seconds": 0.0,
                    "peak": 0,
                    "opened": [],
                }
                found += [f"{case.name}: {' '.join(args[:2])}, guarded: {fault}" for fault in faults(facts)]
    return found
