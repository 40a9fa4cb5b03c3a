"""A device's answers: one for all broad phases and chunks, and the CPU's to rounding.

Tests are run on the CPU, on the CPU treated as a device with a memory of its own, and, marked
`cuda`, on a CUDA device, where there is one.
"""

import numpy as np
import pytest
import warp as wp

from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import (
    CONVEX,
    MOST_BEYOND,
    PHASES,
    REDUCED,
    SCENES,
    answer,
    difference,
    scene_blocks,
    scene_pipeline,
)

DEVICES = ["cpu", "cpu as a device", pytest.param("cuda", marks=pytest.mark.cuda)]
OPTIONS = {"all": ContactOptions(), "reduced": REDUCED}


@pytest.fixture
def device(request, monkeypatch):
    """The device's name, by which pipelines are made."""
    find_device("cpu")
    if request.param == "cpu as a device":
        monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
        monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    elif request.param == "cuda" and not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    return request.param.split()[0]


@pytest.mark.share(11)
@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("row", "name"), [*enumerate(SCENES)])
def test_one_answer_however_it_is_computed(row, name, turn, device, monkeypatch):
    """That of the CPU with all in one batch. In `make test` a scene has one of the options on each
    device."""
    options = list(OPTIONS.values())[(row + turn + len(device_stream.TREATED_AS_DEVICES)) % 2]
    scene = SCENES[name](options)
    found = set()
    if device == "cpu":
        with monkeypatch.context() as patch:
            patch.setattr(device_stream, "TREATED_AS_DEVICES", set())
            found.add(answer(scene_pipeline(scene, "explicit"), scene))
    for phase, chunk, threads in (("nxn", 0, 1), ("sap", 1, 3), ("explicit", 2, 1)):
        found.add(answer(scene_pipeline(scene, phase, device), scene, chunk, threads))
    assert len(found) == 1
    assert next(iter(found))[1] > 100


@pytest.mark.parametrize("device", DEVICES[2:], indirect=True)
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
