"""Peak memory of whole processes: a trajectory ten times as long, and --memory-limit."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from collidecli.scene.arguments import memory
from tests.bench.peers import SCENES
from tests.bench.recordings import write_recording
from tests.bench.result import BenchTable
from tests.bench.scenes import FOLDER
from tests.bench.start import collide_command

LIMITS = ("", "256MiB", "64MiB")
CASES = {"humanoid": (1, 10), "pile_100": (5, 50)}
"""How often each scene's motion is repeated: enough for whole chunks, and ten times that."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Largest resident size of each run, once each: memory is no matter of chance."""
    table = BenchTable(
        "memory",
        "Peak memory of `collide run`",
        ["scene", "frames", "--memory-limit", "peak", "trajectory", "contact set"],
        notes=[
            "The peak is of the whole process: Python, MuJoCo, USD, Warp and the kernels take what the run of one "
            "frame shows; the limit is for scratch memory and waiting blocks besides."
        ],
    )
    for key, longer in CASES.items():
        scene = SCENES[key]()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            short, long = (write_recording(scene, Path(folder) / f"motion_{n}.h5", n) for n in longer)
            cases = [(short, "0", ""), (short, ":", ""), *((long, ":", limit) for limit in LIMITS)]
            for recording, frames, limit in cases:
                output = Path(folder) / "out.contacts.h5"
                options = ["--memory-limit", limit] if limit else []
                command = [
                    "run",
                    str(scene.path),
                    "-t",
                    str(recording),
                    "--frames",
                    frames,
                    "-o",
                    str(output),
                    "--json",
                ]
                command = collide_command(*command, "--force", *options)
                facts = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                peak, count = facts["peak_memory_bytes"], facts["frames"]
                table.add(
                    scene.name, count, limit or "none", memory(peak), memory(recording.stat().st_size),
                    memory(output.stat().st_size),
                )  # fmt: skip
                table.keep(f"{key} {count} frames limit {limit or 'none'} peak bytes", peak)
    return table
