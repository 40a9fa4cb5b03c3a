"""Choice of a broad phase by options and allowed pairs, and its construction for a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.broadphase.explicit import explicit
from collidecli.engine.cells import BlockShape, Chunk
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.motion_sample import blocks_of_motion, sample_bounds, world_offset
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.model import Model
from collidecli.scene.options import EngineOptions
from collidecli.wording import count, plural

ENUMERATED_SHAPES = 3000
"""Templates with more shapes have no list of their pairs, except for broad phase explicit; lists
take 36 MB at most."""
SWEEP_PAIRS_PER_SHAPE = 600
"""Allowed pairs per shape above which auto chooses sap; measured, see
docs/explanation/performance.md."""
SAMPLED_PAIRS = 2000
"""Lists of pairs from this length on are tested in blocks of as many frames as the motion suggests;
shorter ones, such as a humanoid's, need no sample of the motion, which is read before the first
frame. The number is not measured."""


class BroadPhase(Protocol):
    """Finds the pairs of slots that may touch in a block of cells, ordered by block, slot0,
    slot1."""

    @property
    def name(self) -> str: ...

    @property
    def blocks(self) -> BlockShape:
        """The largest blocks for which it is fast."""
        ...

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs: ...

    def kernels(self) -> list[wp.Kernel]: ...


@dataclass(frozen=True)
class BroadPhaseChoice:
    """Name of the chosen broad phase, and the reason."""

    name: str
    reason: str


def choose_broad_phase(
    model: Model, options: EngineOptions, pair_counts: list[int] | None
) -> BroadPhaseChoice:
    """The broad phase by the options; `auto` compares the allowed pairs with the shapes of the
    largest template."""
    if options.pipeline == "standard":
        return BroadPhaseChoice("explicit", "the standard pipeline works on explicit pairs")
    if options.broad_phase != "auto":
        return BroadPhaseChoice(options.broad_phase, "requested")
    templates = int(model.world_template.max()) + 1
    widest = max(len(model.template_shapes(t)) for t in range(templates))
    if pair_counts is None:
        lists = f"auto lists the pairs of at most {count(ENUMERATED_SHAPES)}"
        return BroadPhaseChoice("sap", f"{plural(widest, 'shape')}; {lists}")
    pairs = max(pair_counts)
    if pairs > SWEEP_PAIRS_PER_SHAPE * widest:
        return BroadPhaseChoice(
            "sap",
            f"{plural(widest, 'shape')} have {plural(pairs, 'allowed pair')}, over"
            f" {SWEEP_PAIRS_PER_SHAPE} each",
        )
    of_template = f" in the largest of {templates} templates" if templates > 1 else ""
    return BroadPhaseChoice(
        "explicit",
        f"the filters leave {plural(pairs, 'pair')} of {plural(widest, 'shape')}{of_template}",
    )


def new_broad_phase(
    name: str,
    device_model: DeviceModel,
    template_pairs: list[np.ndarray] | None,
    sample_poses: Callable[[], np.ndarray],
) -> BroadPhase:
    """The broad phase of a name for a model. template_pairs: lists of allowed pairs, for explicit;
    sample_poses: as of `build_pipeline`."""
    model = device_model.model
    if name == "nxn":
        from collidecli.engine.broadphase.all_pairs import AllPairs

        return AllPairs(device_model)
    if name == "explicit":
        assert template_pairs is not None
        if max(map(len, template_pairs)) < SAMPLED_PAIRS:
            return explicit(device_model, template_pairs)
        blocks = blocks_of_motion(
            model, *sample_bounds(device_model, sample_poses()), of_one_world=False
        )
        return explicit(device_model, template_pairs, blocks)
    assert name == "sap", name
    from collidecli.engine.broadphase.sweep_and_prune import SweepAndPrune
    from collidecli.engine.broadphase.sweep_plan import plan_sweep

    samples = sample_poses()
    lower, upper = sample_bounds(device_model, samples)
    plan = plan_sweep(device_model, lower, upper, world_offset(model, samples), template_pairs)
    # Worlds that stand apart have no common boxes.
    return SweepAndPrune(
        device_model, plan, blocks_of_motion(model, lower, upper, of_one_world=True)
    )
