"""Timings on a GPU: copies, and scenes with contacts that stay on the device, that go to the host and
that go to a file."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_report import STAGES
from collidecli.engine.chunk_sizes import default_memory_limit
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import DeviceStream, has_own_memory
from collidecli.engine.runtime.sent_columns import send_sections
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.scheduler import Workers, batch_size, engine_memory, worker_count
from collidecli.motions.timing import TimingReport
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.storage.contact_sets.header import SOURCE_ATTRIBUTES
from collidecli.storage.contact_sets.writer import ContactWriter
from collidecli.system import processor_count
from collidecli.verbs.run.writer_thread import WriterThread
from tests.gpu.benchmark_scenes import Case, convex_cases, mesh_cases
from tests.gpu.first import Run
from tests.support.device_scenes import Scene
from tests.support.engine_runs import pipeline_of

PASSES = 5
PASSES_OF_MESHES = 1
COPY_BYTES = 1 << 28
COPY_BYTES_OF_REHEARSAL = 1 << 22
FOUND_COUNT_OF_COPY = 5
"""Number of the argument of `send_sections` that is the number of `found` numbers."""
DESTINATIONS = ("stay", "host", "file")
"""Where the contacts of a pass are at its end: on the device, in the host's memory, in a file. In all
three the poses come from the host's memory, and the host reads the sizes of each chunk."""
ONE_AT_A_TIME = "one_at_a_time"
"""As "host", with one chunk in flight: what two of them gain."""


def copies(run: Run) -> dict[str, Any]:
    """Bandwidth of copies between page-locked memory of the host and the device, and from pageable
    memory."""
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
        rates[name] = size / _median_seconds(
            lambda target=target, source=source: wp.copy(target, source), device
        )
    words = ", ".join(
        f"{name.replace('_', ' ')} {rate / 1e9:.1f} GB/s" for name, rate in rates.items()
    )
    return {"summary": words, "bytes": size, "bytes_per_second": rates}


def _median_seconds(issue: Callable[[], None], device: wp.Device) -> float:
    """Time of what `issue` issues, until it is complete; the first of the calls is not counted
    [s]."""
    seconds = []
    for _ in range(PASSES + 1):
        wp.synchronize_device(device)
        start = time.perf_counter()
        issue()
        wp.synchronize_device(device)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[1:]))


def stages(run: Run) -> dict[str, Any]:
    """Times of robots and piles on the device and on all CPU cores, with each destination of the
    contacts."""
    return _timed_cases(run, convex_cases(run.small), PASSES)


def meshes(run: Run) -> dict[str, Any]:
    """Times of meshes, as `stages` has them."""
    return _timed_cases(run, mesh_cases(run.small), PASSES_OF_MESHES)


def _timed_cases(run: Run, cases: Iterator[Case], passes: int) -> dict[str, Any]:
    """The times of cases; what is measured is kept after each."""
    result: dict[str, Any] = {"summary": "", "cases": []}
    for case in cases:
        row: dict[str, Any] = {
            "case": case.name,
            "motion": case.motion,
            "frames": len(case.scene.poses),
            "worlds": case.scene.model.world_count,
            "gap": case.scene.options.gap,
            "device": _measured(case.scene, run.device, True, passes),
            "cpu": _measured(case.scene, "cpu", False, passes),
        }
        there, here = (row[name]["host"]["seconds"] for name in ("device", "cpu"))
        row["cpu_over_device"] = here / there
        result["cases"].append(row)
        times = ", ".join(
            f"{name} {row['device'][name]['seconds'] * 1e3:.3g} ms" for name in DESTINATIONS
        )
        result["summary"] += f"{case.name}, {case.motion}: {times}, {here / there:.2f} x CPU; "
        run.keep(result)
    return result


def _measured(scene: Scene, device: str, as_device: bool, passes: int) -> dict[str, Any]:
    """Median pass over a scene for each destination. as_device: False for the CPU itself, also in a
    rehearsal; its contacts are in the host's memory."""
    treated = set(device_stream.TREATED_AS_DEVICES)
    if not as_device:
        device_stream.TREATED_AS_DEVICES.clear()
    try:
        pipeline = pipeline_of(scene.model, scene.poses[:16], scene.options, device=device)
        destinations = (*DESTINATIONS, ONE_AT_A_TIME) if as_device else DESTINATIONS[1:]
        return {
            "broad_phase": pipeline.broad_phase.name,
            **{name: median_pass(pipeline, scene, name, passes) for name in destinations},
        }
    finally:
        device_stream.TREATED_AS_DEVICES |= treated


def median_pass(
    pipeline: CollisionPipeline, scene: Scene, destination: str, passes: int
) -> dict[str, Any]:
    """The median of the passes over a scene after a first one, by workers that keep their scratch
    memory."""
    device = pipeline.device_model.device
    workers = 1 if destination == ONE_AT_A_TIME else worker_count(0, has_own_memory(device))
    with ExitStack() as stack:
        pool = stack.enter_context(
            Workers(pipeline, workers, engine_memory(default_memory_limit(), device))
        )
        if destination == "stay":
            stack.enter_context(contacts_stay())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        file = Path(folder, "contacts.h5") if destination == "file" else None
        every = [_one_pass(pool, pipeline, scene, workers, file) for _ in range(passes + 1)][1:]
    middle = sorted(every, key=lambda each: each["seconds"])[len(every) // 2]
    seconds = middle["seconds"]
    return {
        **middle,
        "workers": workers,
        "all_seconds": [each["seconds"] for each in every],
        "frames_per_second": len(scene.poses) / seconds,
        "contacts_per_second": middle["contacts"] / seconds,
    }


@contextmanager
def contacts_stay() -> Iterator[None]:
    """The columns of contacts are not copied to the host, which waits until they are complete.

    The columns of a block have the right lengths, and any values; the report has its counts.
    """
    launch = Workspace.launch

    def wait_alone(stream: DeviceStream, source: wp.array, byte_count: int) -> np.ndarray:
        stream.wait()
        return np.zeros(byte_count, np.uint8)

    def launch_but_copies(
        workspace: Workspace, kernel: wp.Kernel, count: int, arguments: list[Any]
    ) -> None:
        # Threads of a copy to the host: those that copy the numbers of the chunk alone.
        numbers = arguments[FOUND_COUNT_OF_COPY] if kernel is send_sections else count
        launch(workspace, kernel, numbers, arguments)

    with (
        patch.object(DeviceStream, "download_kept", wait_alone),
        patch.object(Workspace, "launch", launch_but_copies),
    ):
        yield


def _one_pass(
    pool: Workers, pipeline: CollisionPipeline, scene: Scene, workers: int, file: Path | None
) -> dict[str, Any]:
    """The contacts of all frames. file: where they are written, hashed and compressed as `collide
    run` does it; None leaves them where they are."""
    cells = len(scene.poses) * scene.model.world_count
    step = batch_size(pipeline, cells, workers, 0)
    batches = (
        PoseBatch(first, min(step, cells - first), 0, scene.poses)
        for first in range(0, cells, step)
    )
    stage_seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
    counts: dict[str, int] = dict.fromkeys(("contacts", "candidates", "chunks"), 0)
    start = time.perf_counter()
    with ExitStack() as stack:
        put = None if file is None else stack.enter_context(_writing(file, scene))
        for block, report in pool.collide(batches, cells):
            counts["contacts"] += report.contact_count
            counts["candidates"] += report.candidate_count
            counts["chunks"] += len(report.parts) or 1
            for stage, seconds in report.seconds.items():
                stage_seconds[stage] += seconds
            if put is not None:
                put(block)
    return {"seconds": time.perf_counter() - start, "stage_seconds": stage_seconds, **counts}


@contextmanager
def _writing(path: Path, scene: Scene) -> Iterator[Callable[[ContactBlock], None]]:
    """A function that queues blocks for a thread that writes them; the file is complete at the
    end."""
    frames = len(scene.poses)
    steps = np.arange(frames)
    attributes = dict.fromkeys(SOURCE_ATTRIBUTES, "") | {"config": "{}"}
    motion = steps * 0.01, steps, np.dtype(np.float64), attributes
    options: dict[str, Any] = {"force": True, "threads": processor_count()}
    with (
        ContactWriter(path, scene.model, frames, *motion, **options) as writer,
        WriterThread(writer, TimingReport()) as thread,
    ):
        yield thread.put
        thread.drain()
        writer.end_contacts()
        writer.write_timing({})
        writer.finish()
