"""Step of a first run on a GPU: every kernel is compiled and loaded; its registers, local memory and time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import warp as wp

from collidecli.engine import pipeline_builder
from collidecli.engine.pipeline_builder import find_device
from collidecli.engine.runtime.warp_internals import is_compiled
from collidecli.scene.run_options import ContactOptions
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
    """Compiles and loads the kernels of the pipelines of all scenes and broad phases, and measures each."""
    device = find_device(run.device)
    free_before = device.free_memory
    measured: dict[wp.Kernel, dict[str, Any]] = {}
    with _measured_loading(measured):
        for scene in all_scenes(run.small):
            for phase in PHASES:
                scene_pipeline(scene, phase, run.device)
    rows = []
    for kernel, times in measured.items():
        row: dict[str, Any] = {"kernel": kernel.key, "module": kernel.module.name, **times}
        if device.is_cuda:
            row |= wp.get_cuda_kernel_properties(kernel, device)
        rows.append(row)
    wp.synchronize_device(device)
    free_after = device.free_memory
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
    }


@contextmanager
def _measured_loading(measured: dict[wp.Kernel, dict[str, Any]]) -> Iterator[None]:
    """Pipelines that are built meanwhile load their kernels on all cores, each measured by itself."""
    load_kernels = pipeline_builder.load_kernels
    threads = ThreadPoolExecutor(processor_count())

    def load(kernel: wp.Kernel, device: wp.Device) -> None:
        compiled = not is_compiled(kernel.module, device)
        start = time.perf_counter()
        load_kernels([kernel], device)
        measured[kernel] = {"seconds": time.perf_counter() - start, "compiled": compiled}

    def load_each(kernels: Sequence[wp.Kernel], device: wp.Device) -> None:
        list(threads.map(lambda kernel: load(kernel, device), [each for each in kernels if each not in measured]))

    pipeline_builder.load_kernels = load_each
    try:
        yield
    finally:
        pipeline_builder.load_kernels = load_kernels
        threads.shutdown()
