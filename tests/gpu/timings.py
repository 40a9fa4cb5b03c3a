"""Steps of a first run on a GPU: bandwidth of copies, and times of the stages beside those of all CPU cores."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import STAGES, CollisionPipeline, find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.scheduler import Workers, batch_size, default_memory_limit, engine_memory, worker_count
from tests.gpu.first import Run
from tests.gpu.timing_scenes import cases
from tests.support.device_scenes import Scene
from tests.support.engine_runs import pipeline_of

PASSES = 5
COPY_BYTES, COPY_BYTES_OF_REHEARSAL = 1 << 28, 1 << 22


def copies(run: Run) -> dict[str, Any]:
    """Bandwidth of copies between page-locked memory of the host and the device, and from pageable memory."""
    device = find_device(run.device)
    size = COPY_BYTES_OF_REHEARSAL if run.small else COPY_BYTES
    on_device = wp.zeros(size, dtype=wp.uint8, device=device)
    locked = wp.zeros(size, dtype=wp.uint8, device="cpu", pinned=device.is_cuda)
    pageable = wp.zeros(size, dtype=wp.uint8, device="cpu")
    rates = {}
    for name, target, source in (
        ("upload", on_device, locked),
        ("download", locked, on_device),
        ("upload_of_pageable_memory", on_device, pageable),
    ):
        rates[name] = size / _median_seconds(lambda target=target, source=source: wp.copy(target, source), device)
    words = ", ".join(f"{name.replace('_', ' ')} {rate / 1e9:.1f} GB/s" for name, rate in rates.items())
    return {"summary": words, "bytes": size, "bytes_per_second": rates}


def _median_seconds(issue: Callable[[], None], device: wp.Device) -> float:
    """Time of what `issue` issues, until it is complete; the first of the calls is not counted [s]."""
    seconds = []
    for _ in range(PASSES + 1):
        wp.synchronize_device(device)
        start = time.perf_counter()
        issue()
        wp.synchronize_device(device)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[1:]))


def stages(run: Run) -> dict[str, Any]:
    """Wall-clock time, time of each stage, frames and contacts per second of each case, on the device and the CPU."""
    rows, words = [], []
    for case in cases(run.small):
        row: dict[str, Any] = {"case": case.name, "frames": len(case.scene.poses)}
        for name in dict.fromkeys(("device", "cpu")):
            row[name] = _measured(case.scene, run.device if name == "device" else "cpu", name == "device")
        row["cpu_over_device"] = row["cpu"]["seconds"] / row["device"]["seconds"]
        rows.append(row)
        words.append(
            f"{case.name}: {row['device']['frames_per_second']:.3g} frames/s, {row['cpu_over_device']:.2f} x CPU"
        )
    return {"summary": "; ".join(words), "cases": rows}


def _measured(scene: Scene, device: str, as_device: bool) -> dict[str, Any]:
    """Median of the passes over a scene. as_device: False for the CPU itself, also in a rehearsal."""
    treated = set(device_stream.TREATED_AS_DEVICES)
    if not as_device:
        device_stream.TREATED_AS_DEVICES.clear()
    try:
        pipeline = pipeline_of(scene.model, scene.poses[:16], scene.options, device=device)
        passes = _passes(pipeline, scene)[1:]
    finally:
        device_stream.TREATED_AS_DEVICES |= treated
    middle = sorted(passes, key=lambda each: each["seconds"])[len(passes) // 2]
    seconds, cells = middle["seconds"], len(scene.poses) * scene.model.world_count
    return {
        **middle,
        "all_seconds": [each["seconds"] for each in passes],
        "broad_phase": pipeline.broad_phase.name,
        "frames_per_second": len(scene.poses) / seconds,
        "cells_per_second": cells / seconds,
        "contacts_per_second": middle["contacts"] / seconds,
    }


def _passes(pipeline: CollisionPipeline, scene: Scene) -> list[dict[str, Any]]:
    """PASSES over a scene after a first one, by workers that keep their scratch memory."""
    device = pipeline.device_model.device
    workers = worker_count(0, has_own_memory(device))
    with Workers(pipeline, workers, engine_memory(default_memory_limit(), device)) as pool:
        return [{**_one_pass(pool, pipeline, scene, workers), "workers": workers} for _ in range(PASSES + 1)]


def _one_pass(pool: Workers, pipeline: CollisionPipeline, scene: Scene, workers: int) -> dict[str, Any]:
    """The contacts of all frames, as blocks in the host's memory: without reading, hashing, compressing and writing."""
    cells = len(scene.poses) * scene.model.world_count
    step = batch_size(pipeline, cells, workers, 0)
    batches = (PoseBatch(first, min(step, cells - first), 0, scene.poses) for first in range(0, cells, step))
    stage_seconds, contacts, candidates, chunks = dict.fromkeys(STAGES, 0.0), 0, 0, 0
    start = time.perf_counter()
    for block, report in pool.collide(batches, cells):
        contacts, candidates = contacts + block.contact_count, candidates + report.candidate_count
        chunks += len(report.parts) or 1
        for stage, seconds in report.seconds.items():
            stage_seconds[stage] += seconds
    return {
        "seconds": time.perf_counter() - start,
        "stage_seconds": stage_seconds,
        "contacts": contacts,
        "candidates": candidates,
        "chunks": chunks,
    }
