"""On a CUDA device: one answer again, and the CPU's to rounding. Skipped where there is no device."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.build import find_device
from tests.support.engine_runs import PHASES, assert_identical, contacts_of, pipeline_of
from tests.support.random_scenes import mixed_builder, random_poses

pytestmark = pytest.mark.cuda
FRAMES, COUNT = 7, 24


@pytest.fixture(autouse=True)
def _need_device():
    find_device("cpu")
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")


def scene():
    return mixed_builder(0, COUNT).finalize(), random_poses(np.random.default_rng(1), (FRAMES, 1, COUNT), 0.5)


def test_broad_phases_and_chunks_agree_to_the_bit():
    model, poses = scene()
    reference = contacts_of(pipeline_of(model, poses, device="cuda", broad_phase="nxn"), poses)
    for phase in PHASES.values():
        pipeline = pipeline_of(model, poses, device="cuda", **phase)
        for chunk in (1, 3, 0):
            assert_identical(contacts_of(pipeline, poses, chunk), reference)


def test_agrees_with_the_cpu_to_rounding():
    model, poses = scene()
    here, there = (contacts_of(pipeline_of(model, poses, device=d, broad_phase="sap"), poses) for d in ("cpu", "cuda"))
    # Contacts at the very edge of their reach may fall on either side of it.
    edge = 1e-6
    gap = 0.1
    pairs = [
        set(zip(c.shape0[near], c.shape1[near], strict=True))
        for c in (here, there)
        for near in [c.distance < gap - edge]
    ]
    assert pairs[0] == pairs[1]
    if here.rigid_contact_count == there.rigid_contact_count:
        assert np.abs(here.distance - there.distance).max() < edge
