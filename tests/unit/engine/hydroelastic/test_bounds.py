"""Kernels of hydroelastic pairs whose bound is less than their capacity, on a device's arrays: what
is beyond it is neither read nor written."""

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Pose
from collidecli.engine.hydroelastic.pairs import HydroPair
from collidecli.engine.hydroelastic.patch_sums import HydroPatch
from collidecli.engine.hydroelastic.stage import write_body_poses
from collidecli.engine.hydroelastic.voxel_blocks import (
    ENDED,
    MOST_REOPENED,
    Block,
    Level,
    reopen_pairs,
)
from collidecli.engine.pipeline_build import find_device


def ints(*values: int) -> wp.array:
    """int32 on the CPU."""
    return wp.array(np.array(values, np.int32), dtype=wp.int32, device="cpu")


def test_poses_of_bodies_are_written_up_to_the_bound():
    """Of pair 0 in cell 0 and pair 1 in cell 1; the bodies of pair 2 would be in no cell."""
    find_device("cpu")
    rows = ShapeRows()
    rows.body = ints(0)
    recorded = np.arange(21.0).reshape(3, 7)
    chunk = ChunkCells()
    chunk.shared = 0
    chunk.first_pose = ints(0, 1, 2)
    chunk.body_pose = wp.array(recorded, dtype=Pose, device="cpu")
    pose = wp.array(np.full((6, 7), -1.0), dtype=Pose, device="cpu")
    hydro = wp.zeros(3, dtype=HydroPair, device="cpu")
    arguments = [rows, chunk, ints(1, 2), 2, hydro, ints(2), pose]
    wp.launch(write_body_poses, 3, arguments, device="cpu")
    np.testing.assert_array_equal(pose.numpy()[:4], np.repeat(recorded[:2], 2, axis=0))
    np.testing.assert_array_equal(pose.numpy()[4:], -1.0)


def test_blocks_beyond_the_bound_are_not_counted():
    """A pair of one block goes on, though as many of an earlier chunk follow as end a search."""
    find_device("cpu")
    most = int(MOST_REOPENED) + 2
    level = Level()
    level.number = 0
    level.last = 1
    block = wp.zeros(most, dtype=Block, device="cpu")
    patch = wp.zeros(1, dtype=HydroPatch, device="cpu")
    for bound, goes_on in ((1, True), (most, False)):
        overlaps = ints(1)
        final_level = ints(0)
        missed = ints(0)
        arguments = [level, block, most, ints(bound), patch, overlaps, final_level, missed]
        wp.launch(reopen_pairs, 1, arguments, device="cpu")
        found = final_level.numpy()[0], missed.numpy()[0]
        assert found == ((int(ENDED), 0) if goes_on else (0, 1))
