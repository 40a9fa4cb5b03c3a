"""Steps of a first run on a GPU: each pair collider against the CPU, and one content hash of all ways to compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import warp as wp

from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.runtime.kernel import load_kernels
from collidecli.scene.options import ContactOptions
from tests.gpu.first import Run, StepFailed
from tests.gpu.kernels import scene_names
from tests.gpu.pairs import PAIRS, pair_difference, part_beyond
from tests.support.device_scenes import CONVEX, PHASES, REDUCED, SCENES, answer, scene_pipeline

FRAMES, FRAMES_OF_SURFACES, FRAMES_OF_REHEARSAL = 512, 16, 8
"""Frames of a pair. Of surfaces, whose depth a GPU's thread takes seconds to find, fewer."""
RUNS, RUNS_OF_SURFACES = 5, 1
CHUNKS = (1, 2, 0)
"""Cells of a batch; 0 is all."""
BLOCK_SIZES = (256, 64)
"""Threads of a block; the first is Warp's default."""


def compare_pairs(run: Run) -> dict[str, Any]:
    """The largest difference of least distances between the device and the CPU, of each pair of kinds of shapes."""
    pairs = PAIRS[:4] if run.small else PAIRS
    rows, failed = [], []
    for kinds in pairs:
        allowed = part_beyond(kinds)
        frames = FRAMES_OF_SURFACES if allowed else FRAMES
        found = pair_difference(run.device, FRAMES_OF_REHEARSAL if run.small else frames, kinds)
        rows.append({"pair": list(kinds), "allowed_beyond": allowed, **found.as_dict()})
        if not found.pairs or not found.is_rounding(allowed):
            failed.append("-".join(kinds))
    result = {"pairs": rows}
    if failed:
        raise StepFailed(f"the contacts of {', '.join(failed)} differ beyond rounding", result)
    largest = max(rows, key=lambda row: row["largest"])
    summary = f"{len(rows)} pairs; largest difference {largest['largest']:.2g} m, {'-'.join(largest['pair'])}"
    return {"summary": summary, **result}


def compare_hashes(run: Run) -> dict[str, Any]:
    """One content hash per scene and options, over runs, broad phases, sizes of chunks, workers and blocks."""
    rows, failed, count = [], [], 0
    for name in scene_names(run.small):
        most_runs = RUNS if name in CONVEX else RUNS_OF_SURFACES
        for label, options in (("all", ContactOptions()), ("reduced", REDUCED)):
            scene = SCENES[name](options)
            hashes: dict[str, list[str]] = {}
            for phase in PHASES:
                pipeline = scene_pipeline(scene, phase, run.device)
                for block in BLOCK_SIZES if name in CONVEX else BLOCK_SIZES[:1]:
                    with block_size(pipeline, block):
                        for chunk in CHUNKS:
                            for repeat in range(1 if chunk else most_runs):
                                digest, contacts = answer(pipeline, scene, chunk, 1 + 2 * (repeat % 2))
                                case = f"{phase}, block {block}, chunk {chunk}"
                                hashes.setdefault(f"{digest} {contacts}", []).append(case)
                                count += 1
            here, contacts_here = answer(scene_pipeline(scene, "explicit", "cpu"), scene)
            rows.append({"scene": name, "options": label, "hashes": hashes, "cpu": f"{here} {contacts_here}"})
            if len(hashes) != 1:
                failed.append(f"{name} ({label})")
    result = {"scenes": rows}
    if failed:
        raise StepFailed(f"several hashes of {', '.join(failed)}", result)
    return {"summary": f"{count} runs of {len(rows)} scenes and options, one hash each", **result}


@contextmanager
def block_size(pipeline: CollisionPipeline, threads: int) -> Iterator[None]:
    """Launches with blocks of so many threads. The CPU ignores it."""
    kernels, launch = pipeline.kernels(), wp.launch
    before = {kernel.module: kernel.module.options["block_dim"] for kernel in kernels}
    try:
        for module in before:
            module.options["block_dim"] = threads  # what is compiled ahead; launches name theirs
        load_kernels(kernels, pipeline.device_model.device)
        wp.launch = partial(launch, block_dim=threads)
        yield
    finally:
        wp.launch = launch
        for module, size in before.items():
            module.options["block_dim"] = size
