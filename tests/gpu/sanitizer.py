"""Step of a first run on a GPU: compute-sanitizer's memcheck and initcheck over small scenes.

python -m tests.gpu.sanitizer DEVICE: the process that the sanitizer checks.
"""

import shutil
import subprocess
import sys
from typing import Any

from tests.gpu.first import NotRun, Run, StepFailed

TOOLS = {"memcheck": ["--report-api-errors", "no"], "initcheck": []}
"""Options of each tool: calls by which Warp probes a device may fail. racecheck sees shared memory
alone, and no kernel uses that."""
EXIT_FOUND = 9
MOST_SECONDS = 1200
KEPT_CHARACTERS = 20_000


def check_memory(run: Run) -> dict[str, Any]:
    """Runs the scenes once under each tool. Any finding fails."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        raise NotRun("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    result: dict[str, Any] = {}
    for tool, options in TOOLS.items():
        command = [
            program,
            "--tool",
            tool,
            *options,
            "--error-exitcode",
            str(EXIT_FOUND),
            "--print-limit",
            "20",
        ]
        command += [sys.executable, "-m", "tests.gpu.sanitizer", run.device]
        try:
            made = subprocess.run(
                command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise StepFailed(f"{tool} took longer than {MOST_SECONDS} s", result) from None
        output = made.stdout + made.stderr
        result[tool] = {"exit_code": made.returncode, "output": output[-KEPT_CHARACTERS:]}
        if made.returncode:
            what = (
                "found errors"
                if made.returncode == EXIT_FOUND
                else f"ended with exit code {made.returncode}"
            )
            raise StepFailed(f"{tool} {what}", result)
    return {"summary": f"no errors of {' and '.join(TOOLS)}", **result}


def main(device: str) -> None:
    """Contacts of every scene, with all broad phases."""
    from collidecli.scene.options import ContactOptions
    from tests.support.device_scenes import PHASES, REDUCED, SCENES, answer, scene_pipeline

    for name, build in SCENES.items():
        for options in (ContactOptions(), REDUCED):
            scene = build(options)
            for phase in PHASES:
                _, rows = answer(scene_pipeline(scene, phase, device), scene)
                print(name, phase, rows, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
