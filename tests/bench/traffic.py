"""Bytes that a device copies to the host, by verb, from the counters of its streams."""

import io
import json
import shlex
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import collidecli
from collidecli.cli.main import main
from tests.bench.result import BenchTable
from tests.bench.runs import write_recording
from tests.bench.scenes import BenchScene, pile
from tests.support.device_traffic import CountedTraffic, counted_traffic

PILE = 100
FRAMES = 64
COMMANDS = {
    "`run`": ("run {scene} -t {motion} -o {folder}/all.h5", ("contacts",), "contact"),
    "`run --touch-only`": (
        "run {scene} -t {motion} --touch-only -o {folder}/touches.h5",
        ("groups", "touches", "rows"),
        "pair",
    ),
    "`audit`": ("audit {scene} -t {motion}", (), "contact"),
    "`clearance`": ("clearance {scene} -t {motion} -o {folder}/c.h5", ("measured",), "distance"),
    "`events` and `label` of the set": (
        "label {folder}/all.h5 -o {folder}/labels.npz",
        (),
        "contact",
    ),
}
"""Command, keys of the number of rows in its JSON, of none it is that of an earlier command with
such rows, and what a row is. `events` reads the columns of a set that `label` reads."""
KEPT = "`collide(..., keep_on_device=True)`"


def measure_traffic(repeats: int, clock: str) -> BenchTable:
    """Bytes to the host of each verb for a settled pile, by the counters; equal in every repeat, so
    none is repeated."""
    table = BenchTable(
        "traffic",
        "Bytes to the host, by verb",
        ["command", "rows", "bytes", "bytes a row", "copies", "bytes of the setup"],
        notes=[
            f"A settled pile of {PILE} primitives, {FRAMES} frames, on the CPU treated as a device."
            " The setup is the sample of the motion from which the broad phase is planned."
        ],
    )
    rows: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        scene = pile(PILE, FRAMES)
        motion = write_recording(scene, Path(folder) / "motion.h5")
        for name, (command, keys, row) in COMMANDS.items():
            words = command.format(scene=scene.path, motion=motion, folder=folder)
            with counted_traffic() as counted:
                result: Any = _result(words)
            for key in keys:
                result = result[key]
            rows[row] = result if keys else rows[row]
            _add(table, name, row, rows[row], counted)
        with counted_traffic() as counted:
            found = len(_kept(scene, motion))
        _add(table, KEPT, "contact", found, counted)
    return table


def _add(table: BenchTable, name: str, row: str, rows: int, counted: CountedTraffic) -> None:
    """A row of what was copied."""
    size = counted.total.downloaded_bytes
    each = f"{size / rows:.1f}"
    setup = counted.of_setup.downloaded_bytes
    table.add(name, f"{rows} {row}s", size, each, counted.total.downloads, setup)
    table.keep(f"{name} bytes", size)


def _result(words: str) -> dict[str, Any]:
    """The object that a command prints with --json."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with redirect_stdout(out):
        main([*shlex.split(words), "--json"])
    return json.loads(out.buffer.getvalue())  # pyright: ignore[reportAttributeAccessIssue]


def _kept(scene: BenchScene, motion: Path) -> collidecli.DeviceContacts:
    model, poses = collidecli.open_recording(motion).with_scene(scene.path)
    try:
        return collidecli.collide(model, poses, keep_on_device=True)
    finally:
        poses.close()
