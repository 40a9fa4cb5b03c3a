"""A device's answers: one for all broad phases and chunks, and the CPU's to rounding.

Each test is run twice: on the CPU treated as a device with a memory of its own, and, marked `cuda`, on a CUDA device,
where there is one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime import device_stream
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import (
    CONVEX,
    MOST_BEYOND,
    PHASES,
    REDUCED,
    ROUNDING,
    SCENES,
    answer,
    difference,
    scene_blocks,
    scene_pipeline,
)

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
OPTIONS = {"all": ContactOptions(), "reduced": REDUCED}
MOVED = 1e-12
"""A change of positions as large as rounding [m]: what another device's last bits do to contacts."""


@pytest.fixture
def device(request, monkeypatch):
    """The device's name, by which pipelines are made."""
    find_device("cpu")
    if request.param == "cpu":
        monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
        monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    elif not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    return request.param


def test_every_scene_is_tested_with_and_without_reduction():
    assert set(CONVEX) < set(SCENES)
    assert OPTIONS["reduced"].reduce_contacts


@pytest.mark.share(3)
@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", SCENES)
def test_one_answer_of_all_broad_phases_chunks_and_workers(name, options, device):
    scene = SCENES[name](OPTIONS[options])
    found = set()
    for phase in PHASES:
        pipeline = scene_pipeline(scene, phase, device)
        found |= {answer(pipeline, scene, chunk, threads) for chunk, threads in ((0, 1), (1, 3))}
    assert len(found) == 1
    assert next(iter(found))[1] > 100


@pytest.mark.share(3)
@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", SCENES)
def test_agrees_with_the_cpu_to_rounding(name, options, device, monkeypatch):
    scene = SCENES[name](OPTIONS[options])
    there = scene_blocks(scene_pipeline(scene, "sap", device), scene)
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", set())
    here = scene_blocks(scene_pipeline(scene, "sap"), scene)
    found = difference(here, there)
    assert found.pairs + len(found.groups) > 0
    assert found.is_rounding(0.0 if name in CONVEX else MOST_BEYOND), found


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("name", CONVEX)
def test_points_of_float32(name, device):
    scene = SCENES[name](ContactOptions())
    found = {answer(scene_pipeline(scene, phase, device, "float32"), scene, 2) for phase in PHASES}
    assert len(found) == 1
    blocks = scene_blocks(scene_pipeline(scene, "sap", device, "float32"), scene)
    assert blocks[0].columns["point0"].dtype == np.float32
    assert difference(blocks, scene_blocks(scene_pipeline(scene, "sap"), scene)).is_rounding()


@pytest.mark.parametrize("name", SCENES)
def test_the_comparison_allows_rounding_and_nothing_larger(name):
    scene = SCENES[name](ContactOptions())
    pipeline = scene_pipeline(scene, "sap")
    here = scene_blocks(pipeline, scene)

    def moved(by: float):
        poses = scene.poses.copy()
        poses[..., :3] += by * np.random.default_rng(0).choice([-1.0, 1.0], poses[..., :3].shape)
        return difference(here, scene_blocks(pipeline, replace(scene, poses=poses)))

    assert moved(MOVED).is_rounding(0.0 if name in CONVEX else MOST_BEYOND), moved(MOVED)
    assert not moved(1e3 * ROUNDING).is_rounding(MOST_BEYOND)
