"""Step of a first run on a GPU: every kernel is compiled and loaded; its registers, local memory and time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import warp as wp

from collidecli.engine import pipeline
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.kernel import load_kernels
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.warp_internals import is_compiled
from collidecli.scene.options import ContactOptions
from collidecli.system_resources import processor_count
from tests.gpu.first import Run
from tests.gpu.pairs import PAIRS, pair_scene
from tests.support.device_scenes import PHASES, REDUCED, SCENES, Scene, scene_pipeline

LARGE_LOCAL_MEMORY = 4096
"""Local memory of a thread that the summary reports [bytes]: the driver reserves it for every resident thread."""


def scene_names(small: bool) -> list[str]:
    """Names of the scenes of a run."""
    return list(SCENES)[:2] if small else list(SCENES)


def all_scenes(small: bool) -> Iterator[Scene]:
    """Scenes whose pipelines have the kernels of every pair of kinds of shapes, and of every option."""
    for options in (ContactOptions(), REDUCED):
        yield from (SCENES[name](options) for name in scene_names(small))
    yield from (pair_scene(pair, 1) for pair in (PAIRS[:4] if small else PAIRS))


def load_all(run: Run) -> dict[str, Any]:
    """Compiles and loads the kernels of the pipelines of all scenes and broad phases, and measures each.

    Those of the CPU, with which later steps compare, are loaded too, as all cores are free here.
    """
    device = find_device(run.device)
    free_before = device.free_memory
    kernels = _kernels_of_scenes(run)
    rows = []
    for kernel, times in _load_each(kernels, device).items():
        row: dict[str, Any] = {"kernel": kernel.key, "module": kernel.module.name, **times}
        if device.is_cuda:
            row |= wp.get_cuda_kernel_properties(kernel, device)
        rows.append(row)
    wp.synchronize_device(device)
    free_after = device.free_memory
    start = time.perf_counter()
    load_kernels([execute_steps, *kernels], wp.get_device("cpu"))
    largest = max((row.get("local_memory_size", 0) for row in rows), default=0)
    over = sum(row.get("local_memory_size", 0) > LARGE_LOCAL_MEMORY for row in rows)
    summary = f"{len(rows)} kernels, {sum(row['compiled'] for row in rows)} of them compiled"
    if device.is_cuda:
        summary += f"; local memory up to {largest} bytes a thread, {over} kernels over {LARGE_LOCAL_MEMORY} bytes"
        summary += f"; {(free_before - free_after) / 2**20:.0f} MiB of device memory"
    return {
        "summary": summary,
        "kernels": rows,
        "free_memory_before_bytes": free_before,
        "free_memory_after_bytes": free_after,
        "cpu_seconds": time.perf_counter() - start,
    }


def _kernels_of_scenes(run: Run) -> list[wp.Kernel]:
    """The kernels that pipelines of all scenes load. Only those with which scenes are built are loaded."""
    found: dict[wp.Kernel, None] = {}

    def collect(kernels: Sequence[wp.Kernel], _: wp.Device) -> None:
        found.update(dict.fromkeys(kernels))

    with patch.object(pipeline, "load_kernels", collect):
        for scene in all_scenes(run.small):
            for phase in PHASES:
                scene_pipeline(scene, phase, run.device)
    return list(found)


def _load_each(kernels: list[wp.Kernel], device: wp.Device) -> dict[wp.Kernel, dict[str, Any]]:
    """Seconds to load each kernel, and whether it had to be compiled, on all cores."""

    def load(kernel: wp.Kernel) -> dict[str, Any]:
        compiled = not is_compiled(kernel.module, device)
        start = time.perf_counter()
        load_kernels([kernel], device)
        return {"seconds": time.perf_counter() - start, "compiled": compiled}

    with ThreadPoolExecutor(processor_count()) as threads:
        return dict(zip(kernels, threads.map(load, kernels), strict=True))
