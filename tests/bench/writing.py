"""A whole run, from the first frame read to the file closed, against computing alone with as many threads."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from collidecli.commands.run import RunRequest, run
from collidecli.scene.options import EngineOptions
from tests.bench.peers import SCENES
from tests.bench.recordings import write_recording
from tests.bench.result import BenchTable, interleaved, ratio, spread_time
from tests.bench.scenes import FOLDER, BenchScene
from tests.bench.timing import Ours

COMPRESSIONS = ("gzip", "none")


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds of the wall clock, whatever clock was asked for: a run overlaps reading, computing and writing."""
    table = BenchTable(
        "writing",
        "A file written and closed, against computing alone",
        ["scene", "threads", "compression", "computing alone", "whole run", "longer by", "file, a contact"],
        notes=["Threads compute; the run's writer has one of its own. Loading and compiling are in neither."],
    )
    for key in ("humanoid", "pile_1000"):
        scene = SCENES[key]()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            recording = write_recording(scene, Path(folder) / "motion.h5")
            for threads in sorted({1, os.cpu_count() or 1}):
                _compare(table, key, scene, recording, threads, repeats)
    return table


def _compare(table: BenchTable, key: str, scene: BenchScene, recording: Path, threads: int, repeats: int) -> None:
    alone = Ours.of(scene, threads=threads)
    output = recording.with_name("out.contacts.h5")
    sizes: dict[str, float] = {}

    def whole(compression: str) -> float:
        output.unlink(missing_ok=True)  # a new file: taking an old one away is no part of writing
        request = RunRequest(
            scenes=(str(scene.path),),
            output=str(output),
            trajectory=str(recording),
            engine=EngineOptions(threads=threads),
            compression=compression,
            force=True,
        )
        result = run(request)
        sizes[compression] = output.stat().st_size / max(1, result.contacts)
        return result.wall_seconds

    times = interleaved(
        {"alone": lambda: alone.measure().seconds, **{c: lambda c=c: whole(c) for c in COMPRESSIONS}}, repeats
    )
    for compression in COMPRESSIONS:
        table.add(
            scene.name,
            threads,
            compression,
            spread_time(times["alone"]),
            spread_time(times[compression]),
            ratio(times[compression], times["alone"]),
            f"{sizes[compression]:.0f} B",
        )
    for name, seconds in times.items():
        table.keep(f"{key} {threads} threads {name} seconds", seconds)
