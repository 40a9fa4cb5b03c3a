"""Cells as lanes of blocks, and contacts that do not depend on the size of blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from collidecli.engine.candidates import blocks_of_motion
from collidecli.engine.cells import (
    MAX_SHIFT,
    MIN_LANES,
    BlockShape,
    PoseBatch,
    block_shape,
    cell_blocks,
    transform_chunk,
)
from collidecli.engine.device_model import LANES
from collidecli.engine.geometry.bounds import bounding_box, rounded_down, rounded_up
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.shape_lanes import BOUND_NUMBERS, LOWER, UPPER
from collidecli.scene.builder import ModelBuilder
from tests.support.engine_runs import PHASES, assert_identical, contacts_of, pipeline_of
from tests.support.random_scenes import mixed_builder, random_poses


@pytest.mark.parametrize("of_one_world", [False, True])
@pytest.mark.parametrize("shift", [0, 3, 5])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("templates", [[0], [0, 0, 0], [0, 1, 0, 2, 1]])
def test_every_cell_is_one_lane_of_a_block_of_its_template(templates, first, shift, of_one_world):
    template = np.array(templates)
    cells = np.arange(first, first + 61)
    frame, world = np.divmod(cells, len(template))
    blocks = cell_blocks(template[world], world, BlockShape(shift, of_one_world))
    lanes = 1 << shift
    assert len(blocks.lane_cell) == lanes * len(blocks.block_size)
    np.testing.assert_array_equal(blocks.lane_cell[blocks.cell_lane], np.arange(61))
    seen = []
    by_block = blocks.lane_cell.reshape(-1, lanes)
    for own, size, of_block in zip(by_block, blocks.block_size, blocks.block_template, strict=True):
        used = own[:size]
        seen += used.tolist()
        assert (own[size:] == own[0]).all()
        assert (template[world[used]] == of_block).all()
        for each in np.unique(world[used]):
            assert (np.diff(frame[used[world[used] == each]]) == 1).all()
        if of_one_world:
            assert len(np.unique(world[used])) == 1
    assert sorted(seen) == list(range(61))


@pytest.mark.parametrize(
    ("cells", "templates", "of_one_world", "lanes"),
    [
        (1, [0], False, 1),
        (2, [0], False, 8),
        (8, [0], False, 8),
        (9, [0], False, 16),
        (31, [0], False, 32),
        (5000, [0], False, 32),
        (32, [0] * 32, False, 32),
        (32, [0] * 32, True, 1),
        (320, [0] * 32, True, 16),
        (16, [0, 1], False, 8),
    ],
)
def test_blocks_hold_the_cells_that_may_share_one_and_are_not_larger(cells, templates, of_one_world, lanes):
    shape = block_shape(cells, np.array(templates), BlockShape(MAX_SHIFT, of_one_world))
    assert shape.lanes == lanes
    assert shape.lanes == 1 or shape.lanes >= MIN_LANES


def in_blocks(pipeline: CollisionPipeline, shape: BlockShape) -> CollisionPipeline:
    """The pipeline with other blocks."""
    return replace(pipeline, broad_phase=replace(pipeline.broad_phase, blocks=shape))


@pytest.mark.parametrize("phase", ["nxn", "sap", "explicit"])
@pytest.mark.parametrize("moving", [0.01, 1.0])
def test_contacts_do_not_depend_on_the_size_of_blocks(phase, moving):
    """Slow motion, and one in which every shape jumps by several sizes a frame; the last block is not full."""
    model = mixed_builder(3, 24).finalize()
    rng = np.random.default_rng(5)
    poses = random_poses(rng, (1, 1, 24), 0.8) + np.zeros((45, 1, 1, 1))
    poses[..., :3] += moving * rng.normal(size=poses[..., :3].shape)
    pipeline = pipeline_of(model, poses, **PHASES[phase])
    shapes = [BlockShape(shift, one) for shift in (0, 3, 4, 5) for one in (False, True)]
    found = [contacts_of(in_blocks(pipeline, shape), poses) for shape in shapes]
    assert len(found[0].distance) > 100
    for other in found[1:]:
        assert_identical(found[0], other)


@pytest.mark.parametrize("of_one_world", [False, True])
def test_worlds_share_blocks_and_keep_their_own_contacts(of_one_world):
    """Two frames of many worlds: lanes are worlds, and each has the contacts that it has alone."""
    builder = ModelBuilder()
    builder.add_world(mixed_builder(7, 12), count=20)
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(8), (2, 20, len(model.bodies)), 0.7)
    pipeline = pipeline_of(model, poses, broad_phase="explicit")
    blocks, alone = (in_blocks(pipeline, shape) for shape in (BlockShape(MAX_SHIFT, of_one_world), BlockShape()))
    found = contacts_of(blocks, poses)
    assert len(found.distance) > 100
    assert_identical(found, contacts_of(alone, poses))


@pytest.mark.parametrize(("speed", "lanes"), [(0.0, 32), (0.01, 32), (0.03, 16), (0.06, 8), (10.0, 8)])
def test_blocks_follow_the_motion(speed, lanes):
    """speed: extents a frame of most shapes; a tenth is at rest."""
    model = mixed_builder(3, 24).finalize()
    lower = np.zeros((8, len(model.shapes), 3))
    lower[:, : int(0.9 * len(model.shapes)), 1] = speed * 0.2 * np.arange(8)[:, None]
    expected = BlockShape(lanes.bit_length() - 1, of_one_world=True)
    assert blocks_of_motion(model, lower, lower + 0.2, of_one_world=True) == expected
    assert blocks_of_motion(model, lower[:1], lower[:1] + 0.2, of_one_world=False) == BlockShape(MAX_SHIFT)


@kernel
def box_of_shapes(
    shape_type: wp.array[wp.int32],
    size: wp.array[wp.vec3d],
    pose: wp.array[wp.transformd],
    inflation: wp.array[wp.float32],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """The boxes of the scalar functions."""
    thread = wp.tid()
    box = bounding_box(shape_type[thread], size[thread], pose[thread], wp.float64(inflation[thread]))
    lower[thread] = rounded_down(box.lower)
    upper[thread] = rounded_up(box.upper)


@pytest.mark.parametrize("shift", [0, 3, 5])
def test_poses_and_boxes_in_lanes_are_those_of_the_scalar_functions(shift):
    """To the bit, in vectors and in single lanes, for every type of `mixed_builder`; the last block is not full."""
    model, frames = mixed_builder(3, 24).finalize(), 45
    poses = random_poses(np.random.default_rng(6), (frames, 1, 24), 3.0)
    device_model = pipeline_of(model, poses, broad_phase="nxn").device_model
    workspace = Workspace(device_model.device, 1 << 40)
    chunk = transform_chunk(device_model, PoseBatch(0, frames, 0, poses), workspace, BlockShape(shift))
    count, width = len(model.shapes), device_model.layout.width
    # Only the first block's lanes, which are consecutive frames.
    first = width * chunk.lanes
    bound = workspace.host(chunk.instances.bound, BOUND_NUMBERS * first).reshape(-1, BOUND_NUMBERS, LANES)
    bound = bound.transpose(0, 2, 1).reshape(width, chunk.lanes, BOUND_NUMBERS)[:count]
    found = workspace.host(chunk.instances.pose, first).reshape(width, chunk.lanes, 7)[:count]
    rows = device_model.rows
    for lane in range(chunk.lanes):
        lower, upper = (wp.empty(count, dtype=wp.vec3f, device="cpu") for _ in range(2))
        placed = wp.array(np.ascontiguousarray(found[:, lane]), dtype=wp.transformd, device="cpu")
        inputs = [rows.type, rows.size, placed, rows.inflation, lower, upper]
        wp.launch(box_of_shapes, count, inputs=inputs, device="cpu")
        np.testing.assert_array_equal(bound[:, lane, int(LOWER) : int(LOWER) + 3], lower.numpy())
        np.testing.assert_array_equal(bound[:, lane, int(UPPER) : int(UPPER) + 3], upper.numpy())
