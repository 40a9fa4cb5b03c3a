"""On a CUDA device: one answer again, and the CPU's to rounding. Skipped where there is no device."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.pipeline_builder import find_device
from tests.support.engine_runs import PHASES, assert_identical, contacts_of, pipeline_of
from tests.support.random_scenes import mixed_builder, random_poses

pytestmark = pytest.mark.cuda
FRAMES, COUNT = 7, 24
ROUNDING = 1e-6
"""Distances are stored in float32, 1e-7 of some 0.3 m here, and the devices contract products differently."""


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


def least_distances(contacts) -> dict[tuple[int, int], float]:
    """The least distance that each pair of shapes has in any frame [m]."""
    least: dict[tuple[int, int], float] = {}
    for shape0, shape1, distance in zip(contacts.shape0, contacts.shape1, contacts.distance, strict=True):
        pair = int(shape0), int(shape1)
        least[pair] = min(float(distance), least.get(pair, np.inf))
    return least


def test_agrees_with_the_cpu_to_rounding():
    model, poses = scene()
    here, there = (
        least_distances(contacts_of(pipeline_of(model, poses, device=device, broad_phase="sap"), poses))
        for device in ("cpu", "cuda")
    )
    # A contact at the very edge of its reach, the default gap of 0.1 m, may fall on either side of it.
    inside = {pair for pair, distance in here.items() if distance < 0.1 - ROUNDING}
    assert inside
    assert inside <= there.keys()
    for pair in inside:
        assert abs(here[pair] - there[pair]) < ROUNDING, pair
    assert {pair for pair, distance in there.items() if distance < 0.1 - ROUNDING} <= here.keys()
