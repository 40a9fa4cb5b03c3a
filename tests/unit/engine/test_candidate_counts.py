"""Numbers of candidates that touch: of the rows that are written, and as a device counts them."""

import numpy as np
import pytest
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.contact_record import count_touching
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_blocks import pair_begins
from collidecli.scene.options import ContactOptions
from tests.property.test_reduction import crowd, crowd_poses
from tests.support.engine_runs import pipeline_of


@pytest.mark.parametrize("bound", [0, 50, 1 << 20])
@pytest.mark.parametrize("threads", [1, 7, 64])
@pytest.mark.parametrize("candidates", [0, 1, 63, 1000])
def test_a_device_counts_each_candidate_once(candidates, threads, bound):
    counts = np.random.default_rng(candidates).integers(0, 3, candidates, np.int32)
    device = find_device("cpu")
    workspace = Workspace(device, 1 << 30)
    touching = wp.zeros(1, dtype=wp.int32, device=device)
    array = wp.array(np.append(counts, 9).astype(np.int32), dtype=wp.int32, device=device)
    limit = wp.array([bound], dtype=wp.int32, device=device)
    workspace.launch(count_touching, threads, [array, candidates, limit, threads, touching])
    workspace.finish()
    assert touching.numpy()[0] == np.count_nonzero(counts[:bound])


@pytest.mark.parametrize(
    "options",
    [
        ContactOptions(),
        ContactOptions(max_contacts_per_pair=1),
        ContactOptions(reduce_contacts=True, moment_matching=True),
    ],
)
def test_the_report_counts_the_pairs_of_the_rows(options):
    poses = crowd_poses()
    pipeline = pipeline_of(crowd(), poses, options)
    workspace = Workspace(pipeline.device_model.device, 1 << 40)
    block, report = pipeline.collide(PoseBatch(0, len(poses), 0, poses), workspace)
    assert report.touching_count == np.count_nonzero(pair_begins(block)) > 0
    assert report.contact_count == block.contact_count
