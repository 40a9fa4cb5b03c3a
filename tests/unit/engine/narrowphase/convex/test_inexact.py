"""Depths that are upper bounds are reported as inexact, from the collider to the run's warnings."""

import numpy as np

from collidecli.commands.run import search_warnings
from collidecli.commands.timing import TimingReport
from collidecli.engine.cells import PoseBatch
from collidecli.engine.narrowphase.convex.manifold import MAX_CONTACTS
from collidecli.engine.pipeline import ChunkReport
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder, ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.convex_runner import run_convex
from tests.support.engine_runs import MEMORY, pipeline_of
from tests.support.separate_runner import run_separate

TINY = (4e-4, 6e-4, 0.0)
HUGE = (400.0, 600.0, 0.0)
ACROSS = [0.0, 0.0, 0.0, 0.5**0.5, 0.0, 0.0, 0.5**0.5]
"""A cylinder of a millimetre across the centre of one of a kilometre: all around, the depth is equal to 1e-6, and EPA's
polytope exceeds its capacity."""
CYLINDER = ShapeType.CYLINDER


def test_the_collider_flags_it_and_still_gives_the_contact():
    assert run_separate(CYLINDER, TINY, CYLINDER, HUGE, ACROSS).exact[0] == 0
    found = run_convex(CYLINDER, TINY, CYLINDER, HUGE, [ACROSS], 1.0)
    count = int(found.count[0])
    assert found.inexact == 1
    assert 1 <= count <= MAX_CONTACTS
    np.testing.assert_allclose(found.separation[0, :count].min(), -400.0004, atol=1e-6 * HUGE[1])


def test_an_exact_pair_is_not_flagged():
    found = run_convex(CYLINDER, (0.4, 0.6, 0.0), CYLINDER, (0.4, 0.6, 0.0), [[0.3, 0.1, 0.2, 0.0, 0.6, 0.0, 0.8]], 1.0)
    assert found.inexact == 0
    assert 1 <= found.count[0] <= MAX_CONTACTS


def test_a_pair_beyond_max_separation_is_not_flagged():
    found = run_convex(CYLINDER, TINY, CYLINDER, TINY, [[1.0, 0, 0, 0, 0, 0, 1]], 0.1)
    assert (found.inexact, found.count[0]) == (0, 0)


def test_the_pipeline_counts_them_and_keeps_their_contacts():
    builder = ModelBuilder()
    config = ShapeConfig(gap=0.0)
    poses = np.zeros((2, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 1] = ACROSS
    poses[1, 0, 1, :3] = [0.0, 0.0, 2000.0]
    for radius, half_height, _ in (TINY, HUGE):
        builder.add_shape_cylinder(builder.add_body(), radius=radius, half_height=half_height, cfg=config)
    pipeline = pipeline_of(builder.finalize(), poses)
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    block, report = pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    assert (report.inexact_count, report.touching_count) == (1, 1)
    assert block.cell_counts[0] >= 1
    assert block.cell_counts[1] == 0
    again, second = pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    assert (second.inexact_count, again.contact_count) == (1, block.contact_count)


def test_the_report_sums_them_and_the_run_warns():
    timing = TimingReport()
    assert search_warnings(timing, []) == ()
    for count in (2, 0, 3):
        timing.add_chunk(ChunkReport(inexact_count=count))
    assert timing.as_tables()["inexact_pair_count"] == 5
    assert search_warnings(timing, []) == ("5 pairs hit the limit of the depth search; their depth is an upper bound",)
