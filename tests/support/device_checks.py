"""python -m tests.support.device_checks [SCENE ...]: scenes on a device's path under checked
launches, as JSON.

The CPU is treated as a device with a memory of its own; kernels visit their threads in several
orders, and each access is recorded (`checked_launches`). Scratch arrays are exactly as long as
requested, and hold nothing when a chunk begins. WARP_CACHE_PATH must be a folder of its own.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp

from tests.support import checked_launches as checks

GUARD_BYTES = 256
POISON = 0xCD
SEEDS = 5
FEW_CELLS = 2
ORDERS = [("ascending", 0), ("descending", 0), *(("permuted", seed) for seed in range(SEEDS))]


class Scratch:
    """Scratch arrays of workspaces, exactly as long as requested, between guards, and without
    values at first."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[np.ndarray, int]] = {}

    def empty(self, count: int, dtype: Any) -> wp.array:
        """An array of poison between two guards."""
        size = count * wp.types.type_size_in_bytes(dtype)
        block = np.full(size + 2 * GUARD_BYTES + 16, POISON, np.uint8)
        first = block.__array_interface__["data"][0]
        pointer = first + GUARD_BYTES + (-first - GUARD_BYTES) % 16
        checks.set_state(first, len(block), checks.OUTSIDE)
        checks.set_state(pointer, size, checks.UNWRITTEN)
        self._held[pointer] = (block, size)
        return wp.array(ptr=pointer, shape=count, dtype=dtype, device="cpu")

    def begin_chunk(self) -> None:
        """Nothing of an earlier chunk may be read."""
        for pointer, (block, size) in self._held.items():
            block[...] = POISON
            checks.set_state(pointer, size, checks.UNWRITTEN)

    def release(self) -> None:
        """Frees all arrays."""
        for block, _ in self._held.values():
            checks.set_state(block.__array_interface__["data"][0], len(block), checks.HAS_VALUE)
        self._held.clear()

    def install(self) -> None:
        """Replaces the allocation of workspaces, and marks what the host and Warp's own functions
        write."""
        from collidecli.engine.pipeline import CollisionPipeline
        from collidecli.engine.runtime.recorded_launches import RecordedLaunches
        from collidecli.engine.runtime.workspace import Workspace

        start = Workspace.__init__
        fill = Workspace.fill
        sort = Workspace.sort
        packed = Workspace.packed_table
        scan = RecordedLaunches.scan
        copy = wp.copy
        collide = CollisionPipeline.collide

        def filled(workspace, target, value, count=None):
            fill(workspace, target, value, count)
            size = _bytes(target) if count is None else _bytes(target) // target.size * count
            checks.set_state(target.ptr, size, checks.HAS_VALUE)

        def sorted_(workspace, key, value, count, bits):
            sort(workspace, key, value, count, bits)
            for array in (key, value):
                checks.set_state(array.ptr, _bytes(array) // array.size * count, checks.HAS_VALUE)

        def packed_table(workspace, name, *arguments):
            struct, arrays = packed(workspace, name, *arguments)
            whole = vars(next(iter(arrays.values())))["held"]
            checks.set_state(whole.ptr, _bytes(whole), checks.OUTSIDE)
            for array in arrays.values():
                checks.set_state(array.ptr, _bytes(array), checks.UNWRITTEN)
            return struct, arrays

        def scanned(launches, counts, count, ends):
            scan(launches, counts, count, ends)
            checks.set_state(ends.ptr, 4 * count, checks.HAS_VALUE)

        def copied(dest, src, dest_offset=0, src_offset=0, count=0, stream=None):
            copy(dest, src, dest_offset, src_offset, count, stream)
            size = wp.types.type_size_in_bytes(dest.dtype)
            if dest.ptr in self._held:
                checks.set_state(
                    dest.ptr + dest_offset * size, (count or src.size) * size, checks.HAS_VALUE
                )

        def collided(pipeline, batch, workspace):
            self.begin_chunk()
            return collide(pipeline, batch, workspace)

        Workspace.__init__ = lambda workspace, device, limit, exact=True: start(
            workspace, device, limit, True
        )
        Workspace._allocated = lambda _, count, dtype, needed: self.empty(count, dtype)
        Workspace.fill = filled
        Workspace.sort = sorted_
        Workspace.packed_table = packed_table
        RecordedLaunches.scan = scanned
        wp.copy = copied
        CollisionPipeline.collide = collided


@contextmanager
def without_margins() -> Iterator[None]:
    """Capacities of expected numbers are those of the last chunk, which are exceeded often."""
    from collidecli.engine.runtime import chunk_counts

    names = ("MARGIN", "LEAST_MARGIN", "SPARE")
    kept = {name: getattr(chunk_counts, name) for name in names}
    try:
        for name in names:
            setattr(chunk_counts, name, 0)
        yield
    finally:
        for name, value in kept.items():
            setattr(chunk_counts, name, value)


def _bytes(array: wp.array) -> int:
    return array.size * wp.types.type_size_in_bytes(array.dtype)


def check_scene(name: str, scratch: Scratch) -> dict[str, Any]:
    """Hashes of a scene by options, broad phase and order; what was found; how much was covered."""
    from collidecli.scene.options import ContactOptions
    from tests.support.device_scenes import PHASES, RECORDED, REDUCED, answer, scene_pipeline

    hashes: dict[str, dict[str, str]] = {}
    findings: Counter[tuple[str, str]] = Counter()
    kernels: set[str] = set()
    cells = rows = 0
    block = checks.control()
    before = block[[checks.LAUNCHES, checks.THREADS, checks.ACCESSES]].astype(np.int64)
    for label, options in (("all", ContactOptions()), ("reduced", REDUCED)):
        scene = RECORDED[name](options)
        for phase in PHASES:
            checks.set_order("ascending")
            pipeline = scene_pipeline(scene, phase)
            kernels |= {kernel.key for kernel in pipeline.kernels()}
            for order, seed in ORDERS:
                checks.set_order(order, seed)
                # In chunks of few cells most numbers of elements are expected, without margins.
                chunk = FEW_CELLS if seed % 2 else 0
                with checks.recording() as found, without_margins():
                    digest, rows = answer(pipeline, scene, chunk)
                hashes.setdefault(label, {})[f"{phase}, {order} {seed}"] = digest
                findings.update((each.kind, each.kernel) for each in found)
                cells += len(scene.poses) * scene.model.world_count
                scratch.release()
    launches, threads, accesses = (
        block[[checks.LAUNCHES, checks.THREADS, checks.ACCESSES]] - before
    ).tolist()
    return {
        "hashes": hashes,
        "findings": [[*key, count] for key, count in sorted(findings.items())],
        "kernels": sorted(kernels),
        "cells": cells,
        "rows": rows,
        "launches": launches,
        "threads": threads,
        "accesses": accesses,
    }


def main(names: list[str]) -> None:
    """Prints what was found in each scene."""
    checks.install()
    from collidecli.engine.runtime import device_stream
    from tests.support.device_scenes import RECORDED

    device_stream.TREATED_AS_DEVICES.add("cpu")
    device_stream.keep_freed_memory = lambda device: None
    scratch = Scratch()
    scratch.install()
    wp.config.log_level = wp.LOG_ERROR
    found = {name: check_scene(name, scratch) for name in names or RECORDED}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
