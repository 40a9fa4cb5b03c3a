"""The path of a device on the CPU's arrays: copies, waits and memory, for one world and for thousands.

The time says nothing about a device. What it shows: a chunk has one upload and one packed download, besides reads of
sizes and the layouts of new kinds of chunks; memory does not grow with frames, nor the host's work with worlds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import ChunkReport, build_pipeline, find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import Traffic
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.scheduler import Workers, batch_size, worker_count
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.text_format import memory
from tests.bench.environments import LINKS
from tests.bench.result import BenchTable
from tests.support.engine_runs import mixed_builder, random_poses

CASES = ((1, 1000), (1, 100_000), (4096, 10), (4096, 100), (4096, 1000))
"""Worlds and frames."""
DISTINCT = 50
"""Different frames of the motion, which is repeated."""


def robot(worlds: int) -> tuple[Model, np.ndarray]:
    """A robot of primitives over two planes, in worlds of one template; and some frames of its motion."""
    model = mixed_builder(0, LINKS).finalize(world_count=worlds)
    return model, random_poses(np.random.default_rng(1), (DISTINCT, 1, LINKS), 1.5)


def batches(model: Model, poses: np.ndarray, frames: int, cells: int) -> Iterator[PoseBatch]:
    """A motion of `frames` frames, of which one recorded world serves all worlds, in batches of about `cells` cells."""
    worlds = model.world_count
    step = max(1, cells // worlds)
    for first in range(0, frames, step):
        here = np.arange(first, min(first + step, frames)) % len(poses)
        yield PoseBatch(first * worlds, len(here) * worlds, first, poses[here])


def measure(repeats: int, clock: str) -> BenchTable:
    """Each case once, on the path of a device and on that of the CPU."""
    table = BenchTable(
        "device_path",
        f"The path of a device on the CPU's arrays: a robot of {LINKS} links",
        ["worlds", "frames", "contacts", "chunks", "uploads", "uploaded", "downloads", "downloaded", "waits", "scratch",
         "seconds", "on the CPU's path"],
        notes=["Uploads, downloads and waits are per chunk, bytes and scratch the largest of a chunk and of a worker."],
    )  # fmt: skip
    for worlds, frames in CASES:
        _measure_case(table, worlds, frames)
    return table


def _measure_case(table: BenchTable, worlds: int, frames: int) -> None:
    model, poses = robot(worlds)
    made: list[Workspace] = []
    start = Workspace.__init__

    def kept(self: Workspace, *arguments: object, **options: object) -> None:
        start(self, *arguments, **options)
        made.append(self)

    seconds = [_run(model, poses, frames)[0]]
    with patch.object(device_stream, "TREATED_AS_DEVICES", {"cpu"}), patch.object(Workspace, "__init__", kept):
        took, contacts, reports = _run(model, poses, frames)
    total = Traffic()
    for each in made:
        total = total.plus(each.traffic)
    chunks = len(reports)
    scratch = max(each.bytes for each in made)
    table.add(
        worlds, frames, f"{contacts / 1e6:.2f} M", chunks, f"{total.uploads / chunks:.2f}",
        memory(total.uploaded_bytes // chunks), f"{total.downloads / chunks:.2f}",
        memory(total.downloaded_bytes // chunks), f"{total.waits / chunks:.2f}", memory(scratch), f"{took:.2f}",
        f"{seconds[0]:.2f}",
    )  # fmt: skip
    table.keep(f"{worlds} worlds {frames} frames seconds", took)
    table.keep(f"{worlds} worlds {frames} frames scratch bytes", scratch)
    table.keep(f"{worlds} worlds {frames} frames waits a chunk", total.waits / chunks)


def _run(model: Model, poses: np.ndarray, frames: int) -> tuple[float, int, list[ChunkReport]]:
    """Processor time [s], contacts and reports."""
    device = find_device("cpu")
    engine = replace(EngineOptions(), broad_phase="explicit")
    pipeline, _ = build_pipeline(model, ContactOptions(), engine, device, lambda: poses, np.dtype(np.float64))
    workers = worker_count(1, device_stream.has_own_memory(device))
    cells = batch_size(pipeline, frames * model.world_count, workers, 0)
    begin, contacts, reports = time.process_time(), 0, []
    with Workers(pipeline, workers, 8 << 30) as pool:
        for block, report in pool.collide(batches(model, poses, frames, cells), frames * model.world_count):
            contacts += block.contact_count
            reports.append(report)
    return time.process_time() - begin, contacts, reports
