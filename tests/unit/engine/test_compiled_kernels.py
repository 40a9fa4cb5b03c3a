"""Which kernels a pipeline compiles, and when: all that it launches, and for a short run no collider without pairs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine import pipeline as pipeline_builder
from collidecli.engine import pipeline as pipelines
from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import CollisionPipeline, build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from tests.support.engine_runs import contacts_of

MEMORY = 1 << 26


def scene() -> tuple[Model, np.ndarray]:
    """Two spheres that touch, two boxes apart, a cylinder that touches a box in the second of two frames."""
    builder = ModelBuilder()
    for _ in range(2):
        builder.add_shape_sphere(builder.add_body(), radius=0.5)
    for _ in range(2):
        builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
    builder.add_shape_cylinder(builder.add_body(), radius=0.5, half_height=0.5)
    poses = np.zeros((2, 1, 5, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = 0.0, 0.9, 5.0, 10.0, 20.0
    poses[1, 0, 4, 0] = 10.9
    return builder.finalize(), poses


def built(on_demand: bool, broad_phase: str = "explicit") -> tuple[CollisionPipeline, np.ndarray]:
    model, poses = scene()
    options = EngineOptions(broad_phase=broad_phase)
    sample = lambda: poses  # noqa: E731
    made = build_pipeline(
        model, ContactOptions(), options, find_device("cpu"), sample, np.dtype(np.float64), None, on_demand
    )
    return made[0], poses


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", "explicit"])
def test_every_kernel_that_is_launched_is_compiled_before(monkeypatch, broad_phase):
    launched = set()
    launch = Workspace.launch

    def noted(self: Workspace, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        launched.add(kernel)
        launch(self, kernel, count, arguments)

    monkeypatch.setattr(Workspace, "launch", noted)
    pipeline, poses = built(False, broad_phase)
    pipeline.collide(PoseBatch(0, 2, 0, poses), Workspace(pipeline.device_model.device, MEMORY))
    assert len(launched) > 8
    assert launched <= set(pipeline.kernels())


def test_colliders_are_compiled_when_they_have_candidates(monkeypatch):
    before, during = [], []
    monkeypatch.setattr(pipeline_builder, "load_kernels", lambda kernels, device: before.extend(kernels))
    pipeline, poses = built(True)
    colliders = {collider.name: collider.kernel for collider in pipeline.table.colliders}
    assert not set(before) & set(colliders.values())
    assert set(before) | set(colliders.values()) == set(pipeline.kernels())
    load = pipelines.load_kernels
    monkeypatch.setattr(pipelines, "is_loaded", lambda kernel, device: any(kernel in kernels for kernels in during))
    monkeypatch.setattr(
        pipelines, "load_kernels", lambda kernels, device: (during.append(kernels), load(kernels, device))
    )
    found = contacts_of(pipeline, poses, chunk=1)
    assert during == [[colliders["sphere_sphere"]], [colliders["convex_convex_gjk"]]]
    expected = contacts_of(built(False)[0], poses)
    np.testing.assert_array_equal(found.distance, expected.distance)
    np.testing.assert_array_equal(found.cell_start, expected.cell_start)
    assert len(expected.distance) > 2


def test_time_of_compilation_is_in_no_stage(monkeypatch):
    pipeline, poses = built(True)
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    monkeypatch.setattr(pipelines, "is_loaded", lambda *_: False)
    monkeypatch.setattr(pipelines, "load_kernels", lambda *_: (loads.append(1), time.sleep(1.0)))
    loads: list[int] = []
    _, report = pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    assert loads
    assert sum(report.seconds.values()) < 1.0
    ((begin, end),) = report.compiling
    assert end - begin >= 1.0
