"""python -m tests.gpu.first: the first run on a GPU, step by step, as one JSON; ends at the first
step that fails.

docs/howto/first-run-on-a-gpu.md specifies the result. With `--device cpu` the CPU is treated as a
device with a memory of its own: a rehearsal of all but what only a GPU has.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SCHEMA = "collide.first-gpu-run/1"
EXIT_FAILED = 1
EXIT_USAGE = 2


class StepFailed(Exception):
    """A check of a step failed. result: what was measured until then."""

    def __init__(self, reason: str, result: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.result = result or {}


class NotRun(Exception):
    """A step that this machine cannot run, with the reason."""


@dataclass
class Run:
    """State of a first run. device: as given. small: sizes of a rehearsal. facts: results of steps
    by name."""

    device: str
    output: Path
    small: bool
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_rehearsal(self) -> bool:
        """Whether the CPU stands for the device."""
        return self.device == "cpu"


Step = Callable[[Run], dict[str, Any]]


def steps() -> dict[str, Step]:
    """The steps in order, by name."""
    from tests.gpu import answers, machine, sanitizer, timings

    return {
        "machine": machine.describe,
        "kernels": answers.load_all,
        "tests": machine.run_tests,
        "pairs": answers.compare_pairs,
        "hashes": answers.compare_hashes,
        "sanitizer": sanitizer.check_memory,
        "copies": timings.copies,
        "stages": timings.stages,
        "newton": timings.newton,
        "mujoco_warp": timings.mujoco_warp,
    }


def run_steps(run: Run, names: list[str]) -> dict[str, Any]:
    """Runs the named steps; the record is written after each, so that it remains when a step ends
    the process."""
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": run.device,
        "rehearsal": run.is_rehearsal,
        "verdict": "running",
        "steps": [],
    }
    available = steps()
    for name in names:
        entry = {"name": name, "status": "running", "reason": "", "seconds": 0.0, "result": {}}
        record["steps"].append(entry)
        write_record(run.output, record)
        print(f"{name}: running", flush=True)
        start = time.perf_counter()
        try:
            entry["result"] = run.facts[name] = available[name](run)
            entry["status"] = "passed"
        except NotRun as error:
            entry.update(status="not run", reason=str(error))
        except StepFailed as error:
            entry.update(status="failed", reason=str(error), result=error.result)
        except Exception as error:
            entry.update(status="failed", reason=f"{type(error).__name__}: {error}")
            entry["result"] = {"traceback": traceback.format_exc()}
        entry["seconds"] = time.perf_counter() - start
        print(f"{name}: {text_of(entry)}", flush=True)
        if entry["status"] == "failed":
            break
    record["verdict"] = "failed" if record["steps"][-1]["status"] == "failed" else "passed"
    write_record(run.output, record)
    return record


def text_of(entry: dict[str, Any]) -> str:
    """Status of a step in words, with its reason, its time and its summary."""
    words = entry["status"] + (f": {entry['reason']}" if entry["reason"] else "")
    summary = entry["result"].get("summary", "")
    return f"{words}, {entry['seconds']:.1f} s" + (f"; {summary}" if summary else "")


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replaces the JSON file."""
    partial = path.with_suffix(".json.partial")
    partial.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    os.replace(partial, path)


def main(arguments: list[str] | None = None) -> int:
    """Runs the steps; 0 if none failed, 1 if one did, 2 for arguments or packages that cannot be
    used."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.first", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu for a rehearsal")
    parser.add_argument("--output", default="out/gpu/first.json", help="the result as JSON")
    parser.add_argument(
        "--steps", default="", help="names of steps, separated by commas; empty: all"
    )
    parser.add_argument("--small", action="store_true", help="the sizes of a rehearsal")
    given = parser.parse_args(arguments)
    try:
        available = steps()
    except ImportError as error:
        print(
            f"a package is missing: {error}; docs/howto/first-run-on-a-gpu.md lists the wheels",
            file=sys.stderr,
        )
        return EXIT_USAGE
    names = [name for name in given.steps.split(",") if name] or list(available)
    unknown = [name for name in names if name not in available]
    if unknown:
        print(f"--steps: no step '{unknown[0]}'; there are {', '.join(available)}", file=sys.stderr)
        return EXIT_USAGE
    output = Path(given.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    run = Run(given.device, output, given.small or given.device == "cpu")
    record = run_steps(run, names)
    print(f"{record['verdict']}; written: {output}")
    return EXIT_FAILED if record["verdict"] == "failed" else 0


if __name__ == "__main__":
    # Steps import StepFailed and NotRun from this module by its name.
    from tests.gpu.first import main as named_main

    sys.exit(named_main())
