"""Sweep and prune of worlds that stand apart: the columns go with each world, and candidates are those of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.broadphase.sweep_and_prune import SweepAndPrune
from collidecli.engine.candidates import world_offset
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from tests.support.engine_runs import PHASES, candidates_of, pipeline_of

HALF_TURN = (0.0, 0.0, 1.0, 0.0)
PLACES = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (100.0, 300.0, 0.0, 0.0, 0.0, 0.0, 1.0), (-700.0, 50.0, 9.0, *HALF_TURN))


def crowd(count: int) -> Model:
    """Boxes on a floor, in three worlds of one template, over a plane and a slab that are in all."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder()
    builder.default_gap = 0.0
    builder.begin_world("e0", PLACES[0])
    for x, y in rng.uniform(0.0, 8.0, (count, 2)):
        pose = (x, y, 0.2, 0.0, 0.0, 0.0, 1.0)
        builder.add_shape_box(builder.add_body(pose), hx=0.1, hy=0.1, hz=0.1)
    builder.add_shape_sphere(-1, (4.0, 4.0, 0.5, 0.0, 0.0, 0.0, 1.0), radius=0.5)
    builder.end_world()
    for k, place in enumerate(PLACES[1:], 1):
        builder.repeat_world(0, f"e{k}", place)
    builder.add_ground_plane()
    builder.add_shape_box(-1, (0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0), hx=2000.0, hy=2000.0, hz=1.0)
    return builder.finalize()


@pytest.mark.parametrize("recorded", [1, 3])
def test_candidates_are_those_of_all_pairs_and_columns_go_with_the_worlds(recorded):
    model = crowd(300)
    poses = model.bodies.pose[None, None] if recorded == 1 else model.resting_poses()[None]
    pipelines = {name: pipeline_of(model, poses, **PHASES[name]) for name in ("nxn", "sap")}
    found = {name: candidates_of(pipeline, poses) for name, pipeline in pipelines.items()}
    np.testing.assert_array_equal(found["sap"], found["nxn"])
    assert len(found["sap"]) > 300
    sweep = pipelines["sap"].broad_phase
    assert isinstance(sweep, SweepAndPrune)
    assert sweep.plan.column_count > 8
    offset = sweep.plan.columns.offset.numpy()
    axes = [sweep.plan.columns.u, sweep.plan.columns.v]
    np.testing.assert_allclose(offset, world_offset(model, poses)[:, axes], rtol=1e-6)


@pytest.mark.parametrize("recorded", [1, 3])
def test_offsets_are_those_of_the_middle_body(recorded):
    model = crowd(5)
    poses = model.bodies.pose[None, None] if recorded == 1 else model.resting_poses()[None]
    middle = np.median(model.bodies.pose[:, :2], axis=0)
    expected = [np.zeros(3), PLACES[1][:3], np.array([*(np.array(PLACES[2][:2]) - 2.0 * middle), 9.0])]
    np.testing.assert_allclose(world_offset(model, poses), expected, atol=1e-9)


def test_offsets_without_bodies_and_of_worlds_that_only_the_recording_sets_apart():
    np.testing.assert_allclose(world_offset(crowd(0), np.zeros((1, 1, 0, 7))), [place[:3] for place in PLACES])
    one, several = ModelBuilder(), ModelBuilder()
    one.add_shape_sphere(one.add_body())
    several.add_world(one, count=3)
    model = several.finalize()
    poses = np.zeros((2, 3, 1, 7))
    poses[..., 6] = 1.0
    poses[:, :, 0, 0] = [0.0, 40.0, 80.0]
    np.testing.assert_array_equal(world_offset(model, poses)[:, 0], [0.0, 40.0, 80.0])
